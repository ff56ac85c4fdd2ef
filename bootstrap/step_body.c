/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bodies of creates and updates.
 *
 * Invariant: each body has the stamp, which is the hash of the manifest's content. After a crash or
 * a lost response it shows the next attempt that bootstrap wrote the object.
 */
#include "bootstrap/step_body.h"

#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/strbuf.h"

/* Sets the stamp, by its key (hf__json_put_string) and not by a path (hf__json_set_string), because
 * the name of the annotation contains a dot. */
static int set_stamp(struct hf__json *object, const struct hf__step *step) {
        struct hf__json *metadata = hf__json_get(object, "metadata");
        int r = 0;

        if (!hf__json_is_object(hf__json_get(metadata, "annotations")))
                r = hf__json_put(metadata, "annotations", hf__json_object());
        if (r != 0)
                return r;
        return hf__json_put_string(hf__json_get(metadata, "annotations"), HF__STAMP, step->hash);
}

static int print_stamped(struct hf__json *object, const struct hf__step *step,
                         struct hf__strbuf *out) {
        int r = set_stamp(object, step);

        if (r == 0) {
                hf__json_print(object, out);
                r = out->error;
        }
        return r;
}

int hf__step_body_new(const struct hf__step *step, struct hf__strbuf *out) {
        struct hf__json *object;
        int r = hf__json_parse(step->content, step->n_content, &object, NULL);

        if (r == 0) {
                r = print_stamped(object, step, out);
                hf__json_free(object);
        }
        return r;
}

/* Replaces the top-level fields, the labels and the annotations by those of the manifest. Keeps the
 * rest of the metadata and the status, because they belong to the server and to controllers. */
static int replace_content(struct hf__json *object, const struct hf__json *content) {
        static const char *const stated[] = {"labels", "annotations"};
        struct hf__json *metadata = hf__json_get(object, "metadata"), *next;
        int r = hf__json_is_object(metadata) ? 0 : HF_E_INVALID;

        for (struct hf__json *m = hf__json_first(object); r == 0 && m; m = next) {
                next = hf__json_next(m);
                if (strcmp(hf__json_key(m), "metadata") != 0 &&
                    strcmp(hf__json_key(m), "status") != 0)
                        hf__json_drop(object, hf__json_key(m));
        }
        for (const struct hf__json *m = hf__json_first(content); r == 0 && m; m = hf__json_next(m))
                if (strcmp(hf__json_key(m), "metadata") != 0)
                        r = hf__json_put(object, hf__json_key(m), hf__json_dup(m));
        for (size_t i = 0; r == 0 && i < sizeof stated / sizeof stated[0]; i++) {
                const struct hf__json *wanted =
                        hf__json_get(hf__json_get(content, "metadata"), stated[i]);
                hf__json_drop(metadata, stated[i]);
                if (wanted)
                        r = hf__json_put(metadata, stated[i], hf__json_dup(wanted));
        }
        return r;
}

int hf__step_body_replacement(const struct hf__step *step, const char *present, size_t n,
                              struct hf__strbuf *out) {
        struct hf__json *object = NULL, *content = NULL;
        int r = hf__json_parse(present ? present : "", present ? n : 0, &object, NULL);

        if (r == 0)
                r = hf__json_parse(step->content, step->n_content, &content, NULL);
        if (r == 0)
                r = replace_content(object, content);
        if (r == 0)
                r = print_stamped(object, step, out);
        hf__json_free(object);
        hf__json_free(content);
        return r;
}
