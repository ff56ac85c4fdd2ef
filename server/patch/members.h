/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Changes an object member by member. An index finds each member, so that merging two large objects
 * does not take time proportional to the product of their sizes.
 *
 * This is made for a merge, which sets or drops each key at most once. The index does not contain
 * the members that were added after init, and a dropped key must not be set again.
 *
 * The struct must not be copied or moved (json_index.h). Thread: owner only.
 */
#include <stddef.h>

#include "base/json_index.h"

struct hfd_members {
        struct hf__json *object;      /* borrowed; until done only drop and set may change it */
        struct hf__json_index by_key; /* of the members at init */
        struct hf__json *dropped;     /* owned; an array of the members that were dropped */
        size_t steps;                 /* what the index costs, for hfd_patch_spend */
};

/* 0 or -ENOMEM. The caller calls hfd_members_done, also after a failure. */
int hfd_members_init(struct hfd_members *members, struct hf__json *object);
void hfd_members_done(struct hfd_members *members);
/* Returns the member with this key, borrowed. NULL: the object had no such member at init, or the
 * member was dropped. */
struct hf__json *hfd_members_find(const struct hfd_members *members, const char *key);
/* Removes the member with this key, if hfd_members_find returns one. 0 or -ENOMEM. */
int hfd_members_drop(struct hfd_members *members, const char *key);
/*
 * Adds or replaces a member. Takes ownership of value, even on failure. If value is NULL, returns
 * -ENOMEM, so the caller need not check whether it could copy the value. 0 or -ENOMEM.
 */
int hfd_members_set(struct hfd_members *members, const char *key, struct hf__json *value);
