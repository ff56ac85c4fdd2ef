/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contents of objects and their hashes.
 *
 * Invariant: the hash of a content is the same in every version of this program, because it is kept
 * in ledgers: a change of what is stripped, or of the canonical text, would make every object look
 * edited.
 */
#include "bootstrap/content.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/sha256.h"
#include "base/strbuf.h"
#include "bootstrap/steps.h"

void hf__content_strip(struct hf__json *object) {
        static const char *const server_fields[] = {"uid",
                                                    "resourceVersion",
                                                    "creationTimestamp",
                                                    "generation",
                                                    "managedFields",
                                                    "selfLink",
                                                    "deletionTimestamp",
                                                    "deletionGracePeriodSeconds"};
        struct hf__json *metadata = hf__json_get(object, "metadata");

        hf__json_drop(object, "status");
        if (!hf__json_is_object(metadata))
                return;
        for (size_t i = 0; i < sizeof server_fields / sizeof server_fields[0]; i++)
                hf__json_drop(metadata, server_fields[i]);
        struct hf__json *annotations = hf__json_get(metadata, "annotations");
        if (!hf__json_is_object(annotations))
                return;
        hf__json_drop(annotations, HF__STAMP);
        /* An object whose only annotation is the stamp must equal its manifest. */
        if (hf__json_count(annotations) == 0)
                hf__json_drop(metadata, "annotations");
}

/* ---- the canonical text: keys in order, no white space ---- */

static int by_key(const void *a, const void *b) {
        return strcmp(hf__json_key(*(const struct hf__json *const *)a),
                      hf__json_key(*(const struct hf__json *const *)b));
}

static int print_sorted(const struct hf__json *json, struct hf__strbuf *out);

static int print_object(const struct hf__json *json, struct hf__strbuf *out) {
        size_t n = hf__json_count(json), i = 0;
        const struct hf__json **members = calloc(n ? n : 1, sizeof *members);
        int r = members ? 0 : -ENOMEM;

        for (const struct hf__json *m = hf__json_first(json); r == 0 && m && i < n;
             m = hf__json_next(m))
                members[i++] = m;
        if (r == 0)
                qsort(members, i, sizeof *members, by_key);
        hf__strbuf_putc(out, '{');
        for (size_t k = 0; r == 0 && k < i; k++) {
                const char *key = hf__json_key(members[k]);
                if (k)
                        hf__strbuf_putc(out, ',');
                hf__strbuf_json(out, key, strlen(key));
                hf__strbuf_putc(out, ':');
                r = print_sorted(members[k], out);
        }
        hf__strbuf_putc(out, '}');
        free(members);
        return r;
}

/* The parser limits the depth of the recursion to HF__JSON_DEPTH_MAX. */
static int print_sorted(const struct hf__json *json, struct hf__strbuf *out) {
        int r = 0;

        if (hf__json_is_object(json))
                return print_object(json, out);
        if (!hf__json_is_array(json)) {
                hf__json_print(json, out);
                return out->error;
        }
        hf__strbuf_putc(out, '[');
        for (const struct hf__json *m = hf__json_first(json); r == 0 && m; m = hf__json_next(m)) {
                r = print_sorted(m, out);
                hf__strbuf_putc(out, ','); /* also after the last: the text is only hashed */
        }
        hf__strbuf_putc(out, ']');
        return r;
}

int hf__content_hash(const struct hf__json *json, hf__hash ret_hash) {
        struct hf__strbuf text = {0};
        int r = print_sorted(json, &text);

        if (r == 0)
                r = text.error;
        if (r == 0)
                hf__sha256_text(text.data, text.n, HF__HASH_DIGITS, ret_hash);
        hf__strbuf_done(&text);
        return r;
}

int hf__content_see(const char *object, size_t n, struct hf__content_seen *ret_seen) {
        struct hf__json *json;
        int r = hf__json_parse(object ? object : "", object ? n : 0, &json, NULL);

        if (r != 0)
                return r;
        struct hf__json *metadata = hf__json_get(json, "metadata");
        const char *stamp =
                hf__json_text(hf__json_get(hf__json_get(metadata, "annotations"), HF__STAMP));
        *ret_seen = (struct hf__content_seen){0};
        if (stamp && strlen(stamp) == HF__HASH_DIGITS)
                memcpy(ret_seen->stamp, stamp, sizeof ret_seen->stamp);
        /* A controller that adds its finalizer or owner has not edited the content. */
        hf__content_strip(json);
        hf__json_drop(metadata, "finalizers");
        hf__json_drop(metadata, "ownerReferences");
        r = hf__content_hash(json, ret_seen->present);
        hf__json_free(json);
        return r;
}

/* ---- bodies ---- */

/* Sets the stamp, and makes the annotations if there are none. */
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

int hf__content_print_new(const struct hf__step *step, struct hf__strbuf *out) {
        struct hf__json *object;
        int r = hf__json_parse(step->content, step->n_content, &object, NULL);

        if (r == 0) {
                r = print_stamped(object, step, out);
                hf__json_free(object);
        }
        return r;
}

/* Replaces the top-level fields, the labels and the annotations by those of the manifest. The rest
 * of the metadata, and the status, stay. */
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
                const struct hf__json *mine =
                        hf__json_get(hf__json_get(content, "metadata"), stated[i]);
                hf__json_drop(metadata, stated[i]);
                if (mine)
                        r = hf__json_put(metadata, stated[i], hf__json_dup(mine));
        }
        return r;
}

int hf__content_print_replacement(const struct hf__step *step, const char *present, size_t n,
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
