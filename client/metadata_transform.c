/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reduces an object to {"apiVersion":..,"kind":..,"metadata":{..}}, without managedFields, which
 * are often larger than all the rest.
 *
 * Copies the remaining members byte for byte, so that no number is rounded and no key is reordered.
 * The result is never longer than the object, unless the text is not valid (truncated, or with
 * metadata that are not an object). Then it may have up to MAX_BRACES more bytes, for which the
 * scratch buffer has room, until the error is noticed.
 */
#include "client/metadata_transform.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "client/json_span.h"

#define SCRATCH    2048
#define MAX_BRACES 4 /* two opening and two closing ones */

/* Receives the result. If `at` is NULL, it only counts the bytes. */
struct output {
        char *at;
        size_t n;
};

static void add_bytes(struct output *out, const char *data, size_t n) {
        if (out->at)
                out->at = mempcpy(out->at, data, n);
        out->n += n;
}

static bool key_equals(struct hf__span key, const char *name) {
        return key.n == strlen(name) && memcmp(key.data, name, key.n) == 0;
}

static void add_key(struct output *out, bool first, struct hf__span key) {
        if (!first)
                add_bytes(out, ",", 1);
        add_bytes(out, key.data - 1, key.n + 2); /* the span excludes the quotes around it */
        add_bytes(out, ":", 1);
}

/* Copies all members of the metadata except managedFields. *at is where the metadata begin, and is
 * moved to their end. 0 or -EPROTO. */
static int add_metadata(struct output *out, struct hf__span object, size_t *at) {
        struct hf__span metadata = {object.data + *at, object.n - *at}, key, value;
        size_t i = 0;
        bool first = true;
        int r;

        add_bytes(out, "{", 1);
        while ((r = hf__span_next_member(metadata, &i, &key, &value)) > 0) {
                if (key_equals(key, "managedFields"))
                        continue;
                add_key(out, first, key);
                add_bytes(out, value.data, value.n);
                first = false;
        }
        add_bytes(out, "}", 1);
        *at += i;
        return r;
}

/* Copies the value at *at; of metadata, only the members that are kept. 0 or -EPROTO. */
static int add_value(struct output *out, struct hf__span object, size_t *at, bool is_metadata) {
        struct hf__span value;

        if (is_metadata)
                return add_metadata(out, object, at);
        int r = hf__span_value(object, at, &value);
        if (r == 0)
                add_bytes(out, value.data, value.n);
        return r;
}

static int add_object(struct output *out, struct hf__span object) {
        struct hf__span key, value;
        size_t at = 0;
        bool first = true;
        int r;

        add_bytes(out, "{", 1);
        while ((r = hf__span_next_key(object, &at, &key)) > 0) {
                bool is_metadata = key_equals(key, "metadata");
                if (is_metadata || key_equals(key, "apiVersion") || key_equals(key, "kind")) {
                        add_key(out, first, key);
                        first = false;
                        r = add_value(out, object, &at, is_metadata);
                } else {
                        r = hf__span_value(object, &at, &value);
                }
                if (r < 0)
                        break;
        }
        add_bytes(out, "}", 1);
        return r;
}

int hf__metadata_transform(const char *object, size_t n, struct hf__buf **ret_object) {
        const struct hf__span text = {object, n};
        /* For an object that fits the scratch buffer, as most do, one pass is enough. For a larger
         * one the first pass counts and the second one writes. */
        char scratch[SCRATCH];
        bool fits = n + MAX_BRACES <= sizeof scratch;
        struct output out = {.at = fits ? scratch : NULL};

        int r = add_object(&out, text);
        if (r < 0)
                return r;
        struct hf__buf *result = hf__buf_new(out.n);
        if (!result)
                return -ENOMEM;
        if (fits) {
                assert(out.n <= sizeof scratch);
                memcpy(result->data, scratch, out.n);
        } else {
                struct output second = {.at = result->data};
                (void)add_object(&second, text);
                assert(second.n == result->n);
        }
        *ret_object = result;
        return 0;
}
