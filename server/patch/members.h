/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An object that is changed member by member. Each member is found without a search through all of
 * them, so that merging two large objects does not take the product of their sizes.
 *
 * For a merge of two objects, where each key of the second comes once: members that were added
 * since init need not be found, and those that were dropped are not set again.
 *
 * Thread: owner only.
 */
#include <stddef.h>

struct hf__json;

struct hfd_members {
        struct hf__json *object;  /* borrowed; changed by drop and set only, until done */
        struct hf__json **by_key; /* owned, sorted; NULL = few enough to look at each */
        struct hf__json *dropped; /* owned; an array; by_key still points to them */
        size_t n;                 /* in by_key */
};

/* 0 or -ENOMEM. The caller calls done in any case. */
int hfd_members_init(struct hfd_members *members, struct hf__json *object);
void hfd_members_done(struct hfd_members *members);
/* The member as it was at init, or as set since. NULL: there is none. */
struct hf__json *hfd_members_find(const struct hfd_members *members, const char *key);
/* Removes member, which find has returned. It may be freed. 0 or -ENOMEM. */
int hfd_members_drop(struct hfd_members *members, struct hf__json *member);
/*
 * Adds or replaces. Takes value, also on failure; NULL is -ENOMEM, so that a copy that failed may
 * be given. 0 or -ENOMEM.
 */
int hfd_members_set(struct hfd_members *members, const char *key, struct hf__json *value);
