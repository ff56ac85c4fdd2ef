/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Warnings and annotations. A webhook may send a million of them in one response, so each is looked
 * up by its hash and not compared with all others.
 *
 * Invariants: a warning or an annotation that does not fit is dropped as a whole, never cut. An
 * index names each warning, or each key, once. It always has free places, so every search ends.
 */
#include "server/admission/notes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define SPACE_MIN 16

void hfd_admission_notes_done(struct hfd_admission_notes *notes) {
        hf__strbuf_done(&notes->warnings);
        hf__strbuf_done(&notes->annotations);
        free(notes->lines.places);
        free(notes->keys.places);
        notes->lines = (struct hfd_note_index){0};
        notes->keys = (struct hfd_note_index){0};
}

/* ---- the index ---- */

/* FNV-1a with a seed. The low bits choose the place, so the high ones are mixed into them. */
static size_t hash_text(const struct hfd_note_index *index, const char *text, size_t n) {
        uint64_t h = index->seed;

        for (size_t i = 0; i < n; i++)
                h = (h ^ (unsigned char)text[i]) * 0x100000001b3U;
        return (size_t)(h ^ (h >> 32));
}

/* The place for a text of n bytes: one that names an equal text, or a free one. end: the byte that
 * follows each text in base. */
static uint32_t *find_place(const struct hfd_note_index *index, const char *base, const char *text,
                            size_t n, char end) {
        size_t at = hash_text(index, text, n);

        for (;; at++) {
                uint32_t *place = &index->places[at & (index->space - 1)];
                if (*place == 0)
                        return place;
                const char *found = base + *place - 1;
                if (strncmp(found, text, n) == 0 && found[n] == end)
                        return place;
        }
}

/* Makes the index twice as large. 0 or -ENOMEM. */
static int grow_index(struct hfd_note_index *index, const char *base, char end) {
        struct hfd_note_index larger = {.seed = index->seed, .n = index->n};

        larger.space = index->space > 0 ? 2 * index->space : SPACE_MIN;
        larger.places = calloc(larger.space, sizeof *larger.places);
        if (!larger.places)
                return -ENOMEM;
        /* Soon after the boot of the machine there may be no random numbers yet. An address is not
         * known to a webhook, either. */
        if (larger.seed == 0 && getrandom(&larger.seed, sizeof larger.seed, GRND_NONBLOCK) < 0)
                larger.seed = (uintptr_t)larger.places;
        for (size_t i = 0; i < index->space; i++) {
                if (index->places[i] == 0)
                        continue;
                const char *text = base + index->places[i] - 1, *stop = strchr(text, end);
                *find_place(&larger, base, text, (size_t)(stop - text), end) = index->places[i];
        }
        free(index->places);
        *index = larger;
        return 0;
}

/*
 * The text of n bytes has just been appended at `begin`. True: it is new, and the index names it
 * now. False: an equal one is there already, or memory ran out; the caller removes the text again.
 */
static bool add_to_index(struct hfd_note_index *index, const struct hf__strbuf *texts, size_t begin,
                         size_t n, char end) {
        if (texts->error != 0 ||
            (4 * (index->n + 1) > 3 * index->space && grow_index(index, texts->data, end) != 0))
                return false;
        uint32_t *place = find_place(index, texts->data, texts->data + begin, n, end);
        if (*place != 0)
                return false;
        *place = (uint32_t)begin + 1;
        index->n++;
        return true;
}

/* Removes the text that was appended at `begin`, and forgets the error of an append that failed. */
static void truncate_to(struct hf__strbuf *texts, size_t begin) {
        texts->error = 0;
        texts->n = begin;
        if (texts->data)
                texts->data[begin] = '\0';
}

/* ---- warnings ---- */

static void add_warning(struct hfd_admission_notes *notes, const char *text, size_t n) {
        struct hf__strbuf *warnings = &notes->warnings;
        size_t begin = warnings->n;

        if (n == 0 || begin + n + 1 > HFD_ADMISSION_WARNINGS_MAX)
                return;
        hf__strbuf_add(warnings, text, n);
        hf__strbuf_putc(warnings, '\n');
        for (size_t i = begin; warnings->error == 0 && i < begin + n; i++)
                if ((unsigned char)warnings->data[i] < ' ' || warnings->data[i] == 0x7f)
                        warnings->data[i] = ' ';
        if (!add_to_index(&notes->lines, warnings, begin, n, '\n'))
                truncate_to(warnings, begin);
}

void hfd_admission_warn(struct hfd_admission_notes *notes, const char *text) {
        if (notes)
                add_warning(notes, text, strlen(text));
}

/* ---- annotations ---- */

void hfd_admission_annotate(struct hfd_admission_notes *notes, const char *key, const char *value) {
        size_t n_key = strlen(key), n = n_key + strlen(value) + 2;

        if (!notes || notes->annotations.n + n > HFD_ADMISSION_ANNOTATIONS_MAX)
                return;
        size_t begin = notes->annotations.n;
        hf__strbuf_add(&notes->annotations, key, n_key + 1);
        hf__strbuf_add(&notes->annotations, value, n - n_key - 1);
        if (!add_to_index(&notes->keys, &notes->annotations, begin, n_key, '\0'))
                truncate_to(&notes->annotations, begin);
}

void hfd_admission_notes_merge(struct hfd_admission_notes *notes,
                               const struct hfd_admission_notes *from) {
        const char *at = from->warnings.n ? from->warnings.data : "";

        while (*at) {
                size_t n = strcspn(at, "\n");
                add_warning(notes, at, n);
                at += n + (at[n] == '\n');
        }
        for (size_t i = 0; i < from->annotations.n;) {
                const char *key = from->annotations.data + i;
                const char *value = key + strlen(key) + 1;
                hfd_admission_annotate(notes, key, value);
                i += strlen(key) + strlen(value) + 2;
        }
}
