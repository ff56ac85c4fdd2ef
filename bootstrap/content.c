/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contents of objects and their hashes.
 *
 * Invariant: every version of this program computes the same hash of the same content, because
 * ledgers keep the hashes. If the stripped fields or the canonical text changed, every object would
 * look edited.
 */
#include "bootstrap/content.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/sha256.h"
#include "base/strbuf.h"

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

static int compare_keys(const void *a, const void *b) {
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
                qsort(members, i, sizeof *members, compare_keys);
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
                hf__strbuf_putc(out, ','); /* after the last element too: it is only hashed */
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

int hf__content_inspect(const char *object, size_t n, struct hf__content_seen *ret_seen) {
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
