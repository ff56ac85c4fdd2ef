/* SPDX-License-Identifier: Apache-2.0 */
/* Merge patch (RFC 7386), and the index of members that makes merging two large objects cheap. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/patch/patch.h"

#define FEW 16

static int by_key(const void *a, const void *b) {
        return strcmp(hf__json_key(*(struct hf__json *const *)a),
                      hf__json_key(*(struct hf__json *const *)b));
}

int hfd_members_init(struct hfd_members *members, struct hf__json *object) {
        size_t i = 0;

        *members = (struct hfd_members){.object = object, .n = hf__json_count(object)};
        if (members->n <= FEW)
                return 0;
        members->gone = hf__json_array();
        members->by_key = malloc(members->n * sizeof *members->by_key);
        if (!members->by_key || !members->gone)
                return -ENOMEM;
        for (struct hf__json *m = hf__json_first(object); m; m = hf__json_next(m))
                members->by_key[i++] = m;
        qsort(members->by_key, members->n, sizeof *members->by_key, by_key);
        return 0;
}

void hfd_members_done(struct hfd_members *members) {
        free(members->by_key);
        hf__json_free(members->gone);
}

static struct hf__json **slot_of(const struct hfd_members *members, const char *key) {
        size_t low = 0, high = members->n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                int order = strcmp(key, hf__json_key(members->by_key[middle]));
                if (!order)
                        return &members->by_key[middle];
                if (order < 0)
                        high = middle;
                else
                        low = middle + 1;
        }
        return NULL;
}

struct hf__json *hfd_members_find(const struct hfd_members *members, const char *key) {
        if (!members->by_key)
                return hf__json_get(members->object, key);
        struct hf__json **slot = slot_of(members, key);
        return slot ? *slot : NULL;
}

int hfd_members_drop(struct hfd_members *members, struct hf__json *member) {
        struct hf__json *out = hf__json_detach(members->object, member);

        if (members->by_key)
                return hf__json_append(members->gone, out);
        hf__json_free(out);
        return 0;
}

int hfd_members_set(struct hfd_members *members, const char *key, struct hf__json *value) {
        struct hf__json *there = members->by_key ? NULL : hf__json_get(members->object, key);
        struct hf__json **slot = members->by_key ? slot_of(members, key) : &there;

        if (!slot || !*slot)
                return hf__json_add(members->object, key, value);
        int r = hf__json_replace(members->object, *slot, value);
        if (r == 0)
                *slot = value;
        return r;
}

static int merge(struct hf__json *target, const struct hf__json *patch);

static int merge_member(struct hfd_members *members, const struct hf__json *m) {
        struct hf__json *there = hfd_members_find(members, hf__json_key(m)), *value;
        int r = 0;

        if (hf__json_is_null(m))
                return there ? hfd_members_drop(members, there) : 0;
        if (hf__json_is_object(m) && hf__json_is_object(there))
                return merge(there, m);
        value = hf__json_is_object(m) ? hf__json_object() : hf__json_dup(m);
        if (!value)
                r = -ENOMEM;
        else if (hf__json_is_object(m)) /* merged into an empty one: nulls in it are no values */
                r = merge(value, m);
        if (r == 0)
                return hfd_members_set(members, hf__json_key(m), value);
        hf__json_free(value);
        return r;
}

/* As deep as the patch is. */
static int merge(struct hf__json *target, const struct hf__json *patch) {
        struct hfd_members members;
        int r = hfd_members_init(&members, target);

        for (const struct hf__json *m = hf__json_first(patch); m && r == 0; m = hf__json_next(m))
                r = merge_member(&members, m);
        hfd_members_done(&members);
        return r;
}

int hfd_patch_merge(struct hf__json **document, const struct hf__json *patch) {
        return merge(*document, patch);
}
