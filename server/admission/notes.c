/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings and annotations. Invariant: a warning or an annotation that does not fit is dropped as a
 * whole, never cut. */
#include "server/admission/notes.h"

#include <string.h>

void hfd_admission_notes_done(struct hfd_admission_notes *notes) {
        hf__strbuf_done(&notes->warnings);
        hf__strbuf_done(&notes->annotations);
}

/* Whether lines contains the line of n bytes, after its control characters have become spaces. */
static bool has_line(const struct hf__strbuf *lines, const char *text, size_t n) {
        const char *at = lines->n ? lines->data : "";

        while (*at) {
                size_t n_line = strcspn(at, "\n"), i = 0;
                while (n_line == n && i < n &&
                       at[i] == ((unsigned char)text[i] < ' ' ? ' ' : text[i]))
                        i++;
                if (n_line == n && i == n)
                        return true;
                at += n_line + (at[n_line] == '\n');
        }
        return false;
}

void hfd_admission_warn(struct hfd_admission_notes *notes, const char *text) {
        size_t n = strlen(text);

        if (!notes || n == 0 || notes->warnings.n + n + 1 > HFD_ADMISSION_WARNINGS_MAX ||
            has_line(&notes->warnings, text, n))
                return;
        size_t begin = notes->warnings.n;
        hf__strbuf_add(&notes->warnings, text, n);
        hf__strbuf_putc(&notes->warnings, '\n');
        if (notes->warnings.error != 0) {
                hf__strbuf_reset(&notes->warnings);
                return;
        }
        for (size_t i = begin; i < begin + n; i++)
                if ((unsigned char)notes->warnings.data[i] < ' ')
                        notes->warnings.data[i] = ' ';
}

static bool has_key(const struct hf__strbuf *annotations, const char *key) {
        size_t at = 0;

        while (at < annotations->n) {
                const char *found = annotations->data + at;
                if (strcmp(found, key) == 0)
                        return true;
                at += strlen(found) + 1;
                at += strlen(annotations->data + at) + 1;
        }
        return false;
}

void hfd_admission_annotate(struct hfd_admission_notes *notes, const char *key, const char *value) {
        size_t n = strlen(key) + strlen(value) + 2;

        if (!notes || notes->annotations.n + n > HFD_ADMISSION_ANNOTATIONS_MAX ||
            has_key(&notes->annotations, key))
                return;
        hf__strbuf_add(&notes->annotations, key, strlen(key) + 1);
        hf__strbuf_add(&notes->annotations, value, strlen(value) + 1);
        if (notes->annotations.error != 0)
                hf__strbuf_reset(&notes->annotations);
}

void hfd_admission_notes_merge(struct hfd_admission_notes *notes,
                               const struct hfd_admission_notes *from) {
        char line[HFD_ADMISSION_WARNINGS_MAX];
        const char *at = from->warnings.n ? from->warnings.data : "";

        while (*at) {
                size_t n = strcspn(at, "\n");
                memcpy(line, at, n);
                line[n] = '\0';
                hfd_admission_warn(notes, line);
                at += n + (at[n] == '\n');
        }
        for (size_t i = 0; i < from->annotations.n;) {
                const char *key = from->annotations.data + i;
                const char *value = key + strlen(key) + 1;
                hfd_admission_annotate(notes, key, value);
                i += strlen(key) + strlen(value) + 2;
        }
}
