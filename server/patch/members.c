/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes an object through an index of the members that it had at first.
 *
 * Invariant: the key of each member at init stays allocated until done, because a search may
 * compare the key of any of them. So a dropped member is moved to `dropped` instead of freed. A
 * value that replaces a member takes over its key.
 */
#include "server/patch/members.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "server/patch/patch.h"

/* A search compares keys, which a client may have made long and similar. */
static size_t count_steps(const struct hf__json_index *index) {
        size_t steps = index->n;

        for (size_t i = 0; i < index->n; i++)
                steps += strlen(index->entries[i].text) / HFD_PATCH_STEP_BYTES;
        return steps;
}

int hfd_members_init(struct hfd_members *members, struct hf__json *object) {
        assert(hf__json_is_object(object));
        members->object = object;
        members->dropped = NULL;
        int r = hf__json_index_init(&members->by_key, object, NULL);
        members->steps = r == 0 ? count_steps(&members->by_key) : 0;
        return r;
}

void hfd_members_done(struct hfd_members *members) {
        hf__json_index_done(&members->by_key);
        hf__json_free(members->dropped);
}

struct hf__json *hfd_members_find(const struct hfd_members *members, const char *key) {
        struct hf__json_index_entry *entry = hf__json_index_find(&members->by_key, key);

        return entry ? entry->item : NULL;
}

int hfd_members_drop(struct hfd_members *members, const char *key) {
        struct hf__json_index_entry *entry = hf__json_index_find(&members->by_key, key);

        if (!entry || !entry->item)
                return 0;
        if (!members->dropped)
                members->dropped = hf__json_array();
        if (!members->dropped)
                return -ENOMEM;
        struct hf__json *detached = hf__json_detach(members->object, entry->item);
        entry->item = NULL;
        return hf__json_append(members->dropped, detached);
}

int hfd_members_set(struct hfd_members *members, const char *key, struct hf__json *value) {
        struct hf__json_index_entry *entry = hf__json_index_find(&members->by_key, key);
        int r;

        if (!entry)
                return hf__json_add(members->object, key, value);
        assert(entry->item);
        r = hf__json_replace(members->object, entry->item, value); /* frees the old item */
        if (r == 0)
                entry->item = value;
        return r;
}
