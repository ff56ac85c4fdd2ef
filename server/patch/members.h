/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Changes an object member by member. An index finds each member, so that merging two large objects
 * does not take time proportional to the product of their sizes.
 *
 * It is made for merging two objects, where each key of the second occurs once. So the index need
 * not contain members added since init, and dropped members are not set again.
 *
 * Thread: owner only.
 */
#include <stddef.h>

struct hf__json;

struct hfd_members {
        struct hf__json *object;  /* borrowed; changed by drop and set only, until done */
        struct hf__json **by_key; /* owned, sorted; NULL = few members, searched one by one */
        struct hf__json *dropped; /* owned; an array; by_key still points to them */
        size_t n;                 /* length of by_key */
};

/* 0 or -ENOMEM. The caller calls done in any case. */
int hfd_members_init(struct hfd_members *members, struct hf__json *object);
void hfd_members_done(struct hfd_members *members);
/* Returns the member, with any value set since init. NULL: the object does not have it. */
struct hf__json *hfd_members_find(const struct hfd_members *members, const char *key);
/* Removes member, which find has returned. It may be freed. 0 or -ENOMEM. */
int hfd_members_drop(struct hfd_members *members, struct hf__json *member);
/*
 * Adds or replaces a member. Takes value, also on failure. value NULL gives -ENOMEM, so the caller
 * need not check whether a copy has failed. 0 or -ENOMEM.
 */
int hfd_members_set(struct hfd_members *members, const char *key, struct hf__json *value);
