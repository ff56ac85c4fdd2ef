/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks through the metadata of both versions, as text and without parsing them.
 *
 * Invariant: the result is true only if the metadata are certainly the same, because a wrong true
 * loses an event. Members in another order, or written in another way, count as a change, which
 * costs no more than an event that nobody needs.
 */
#include "server/registry/kept_metadata.h"

#include <string.h>

#include "client/json_span.h"
#include "server/resources/objects/object.h"
#include "server/resources/packed.h"

static bool is_one_of(struct hf__span key, const char *const *names, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (key.data[0] == names[i][0] && key.n == strlen(names[i]) &&
                    memcmp(key.data, names[i], key.n) == 0)
                        return true;
        return false;
}

/* Finds the next key whose value must be compared. Returns what hf__span_next_key returns. */
static int next_key(struct hf__span metadata, size_t *at, struct hf__span *ret_key) {
        static const char *const left_out[] = {"resourceVersion", "managedFields"};
        int r = hf__span_next_key(metadata, at, ret_key);

        while (r > 0 && is_one_of(*ret_key, left_out, sizeof left_out / sizeof left_out[0])) {
                struct hf__span value;
                r = hf__span_value(metadata, at, &value);
                if (r == 0)
                        r = hf__span_next_key(metadata, at, ret_key);
        }
        return r;
}

/* Moves *at past the value. False: the text has a different value there. (If its value is longer
 * and only begins in the same way, the next hf__span_next_key fails.) */
static bool skip_equal(struct hf__span text, size_t *at, struct hf__span value) {
        if (text.n - *at < value.n || memcmp(text.data + *at, value.data, value.n) != 0)
                return false;
        *at += value.n;
        return true;
}

/* The object's text from the opening brace of its metadata on: resourceVersion is its first member.
 */
static struct hf__span metadata_of(const struct hfd_object *object) {
        size_t begin = object->splice_at - (size_t)1;

        return (struct hf__span){object->bytes->data + begin, object->bytes->n - begin};
}

static bool metadata_equal(struct hf__span old, struct hf__span new) {
        static const char *const needs_every_version[] = {"ownerReferences", "finalizers",
                                                          "deletionTimestamp"};
        struct hf__span old_key, key, value;
        size_t old_at = 0, at = 0;

        for (;;) {
                int r = next_key(new, &at, &key), old_r = next_key(old, &old_at, &old_key);
                if (r <= 0 || old_r <= 0)
                        return r == 0 && old_r == 0;
                if (key.n != old_key.n || memcmp(key.data, old_key.data, key.n) != 0 ||
                    is_one_of(key, needs_every_version,
                              sizeof needs_every_version / sizeof needs_every_version[0]) ||
                    hf__span_value(new, &at, &value) != 0 || !skip_equal(old, &old_at, value))
                        return false;
        }
}

/* Packed bytes would have to be unpacked first, so they count as a change. */
bool hfd_kept_metadata(const struct hfd_object *before, const struct hfd_object *after) {
        return before->resource == after->resource && before->bytes && after->bytes &&
               !hfd_is_packed(before->bytes) && !hfd_is_packed(after->bytes) &&
               metadata_equal(metadata_of(before), metadata_of(after));
}
