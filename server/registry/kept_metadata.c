/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether a change leaves the metadata of an object as they are, by a walk through the text
 * of both versions. It parses neither, because it runs for each change and each watch of metadata.
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

/* The object's text from the opening brace of its metadata on. In every object resourceVersion, at
 * splice_at, is the first member of the metadata, so the brace precedes it. */
static struct hf__span metadata_of(const struct hfd_object *object) {
        size_t begin = object->splice_at - (size_t)1;

        return (struct hf__span){object->bytes->data + begin, object->bytes->n - begin};
}

static bool needs_every_version(struct hf__span key) {
        static const char *const names[] = {"ownerReferences", "finalizers", "deletionTimestamp"};

        return is_one_of(key, names, sizeof names / sizeof names[0]);
}

static bool metadata_equal(struct hf__span old, struct hf__span new) {
        struct hf__span old_key, key, value;
        size_t old_at = 0, at = 0;

        for (;;) {
                int r = next_key(new, &at, &key), old_r = next_key(old, &old_at, &old_key);
                if (r <= 0 || old_r <= 0)
                        return r == 0 && old_r == 0;
                if (key.n != old_key.n || memcmp(key.data, old_key.data, key.n) != 0 ||
                    needs_every_version(key) || hf__span_value(new, &at, &value) != 0 ||
                    !skip_equal(old, &old_at, value))
                        return false;
        }
}

/* ---- texts that differ in times only ---- */

/* Whether the n bytes differ in digits only. Then their brackets and quotes are the same, so if
 * they are a whole value in the new text, they are one in the old text, too. */
static bool differ_in_digits(const char *old, const char *new, size_t n) {
        for (size_t i = 0; i < n; i++) {
                while (n - i >= 8 && memcmp(old + i, new + i, 8) == 0)
                        i += 8;
                if (i < n && old[i] != new[i] &&
                    (old[i] < '0' || old[i] > '9' || new[i] < '0' || new[i] > '9'))
                        return false;
        }
        return true;
}

/*
 * Finds the most frequent case faster than metadata_equal: after the resourceVersion, the bytes of
 * both versions are the same up to the end of the metadata, apart from digits in managedFields. So
 * only the new version is walked through. old_at, at: the offset of the comma after the
 * resourceVersion. False: it is another case, in which metadata_equal decides.
 */
static bool metadata_renewed(struct hf__span old, size_t old_at, struct hf__span new, size_t at) {
        static const char *const managers[] = {"managedFields"};
        const char *before = old.data + old_at, *begin = new.data + at;
        struct hf__span key, value, list = {begin, 0};
        int r;

        while ((r = hf__span_next_key(new, &at, &key)) > 0) {
                if (needs_every_version(key) || hf__span_value(new, &at, &value) != 0)
                        return false;
                if (is_one_of(key, managers, 1))
                        list = value;
        }
        size_t n = (size_t)(new.data + at - begin), n_first = (size_t)(list.data - begin),
               list_end = n_first + list.n;
        return r == 0 && old.n - old_at >= n && memcmp(before, begin, n_first) == 0 &&
               differ_in_digits(before + n_first, list.data, list.n) &&
               memcmp(before + list_end, begin + list_end, n - list_end) == 0;
}

/* Packed bytes would have to be unpacked first, so they count as a change. */
bool hfd_kept_metadata(const struct hfd_object *before, const struct hfd_object *after) {
        return before->resource == after->resource && before->bytes && after->bytes &&
               !hfd_is_packed(before->bytes) && !hfd_is_packed(after->bytes) &&
               (metadata_renewed(metadata_of(before), before->n_splice, metadata_of(after),
                                 after->n_splice) ||
                metadata_equal(metadata_of(before), metadata_of(after)));
}
