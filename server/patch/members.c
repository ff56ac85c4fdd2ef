/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An index of an object's members: an array sorted by key, created only for an object with many
 * members.
 *
 * Invariant: every pointer in the array stays valid until done, because the search compares the
 * keys of all members. So a dropped member is moved to `dropped` instead of freed.
 */
#include "server/patch/members.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

#define LINEAR_SEARCH_MAX 16 /* up to this many members, a linear search is as fast */

static int compare_keys(const void *a, const void *b) {
        return strcmp(hf__json_key(*(struct hf__json *const *)a),
                      hf__json_key(*(struct hf__json *const *)b));
}

int hfd_members_init(struct hfd_members *members, struct hf__json *object) {
        size_t i = 0;

        assert(hf__json_is_object(object));
        *members = (struct hfd_members){.object = object, .n = hf__json_count(object)};
        if (members->n <= LINEAR_SEARCH_MAX)
                return 0;
        members->dropped = hf__json_array();
        members->by_key = malloc(members->n * sizeof *members->by_key);
        if (!members->by_key || !members->dropped)
                return -ENOMEM;
        for (struct hf__json *m = hf__json_first(object); m; m = hf__json_next(m))
                members->by_key[i++] = m;
        assert(i == members->n);
        qsort(members->by_key, members->n, sizeof *members->by_key, compare_keys);
        return 0;
}

void hfd_members_done(struct hfd_members *members) {
        free(members->by_key);
        hf__json_free(members->dropped);
}

/* Finds the slot of a key in by_key. NULL: the index does not contain the key. */
static struct hf__json **find_slot(const struct hfd_members *members, const char *key) {
        size_t low = 0, high = members->n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                int order = strcmp(key, hf__json_key(members->by_key[middle]));
                if (order == 0)
                        return &members->by_key[middle];
                if (order < 0)
                        high = middle;
                else
                        low = middle + 1;
        }
        return NULL;
}

struct hf__json *hfd_members_find(const struct hfd_members *members, const char *key) {
        struct hf__json **slot;

        if (!members->by_key)
                return hf__json_get(members->object, key);
        slot = find_slot(members, key);
        return slot ? *slot : NULL;
}

int hfd_members_drop(struct hfd_members *members, struct hf__json *member) {
        struct hf__json *detached = hf__json_detach(members->object, member);

        if (members->by_key)
                return hf__json_append(members->dropped, detached);
        hf__json_free(detached);
        return 0;
}

int hfd_members_set(struct hfd_members *members, const char *key, struct hf__json *value) {
        struct hf__json **slot = NULL, *member;
        int r;

        if (members->by_key) {
                slot = find_slot(members, key);
                member = slot ? *slot : NULL;
        } else {
                member = hf__json_get(members->object, key);
        }
        if (!member)
                return hf__json_add(members->object, key, value);
        r = hf__json_replace(members->object, member, value); /* frees member */
        if (r == 0 && slot)
                *slot = value; /* the index must not point to the freed member */
        return r;
}
