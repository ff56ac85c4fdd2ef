/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The identities of the elements of a list that a strategic merge patch merges: the scalar under
 * the merge key, or, in a list without such a key, the element itself if it is a scalar. Those in
 * hfd_merge_keys are copies, so the elements may be changed or freed. Pure. Thread: owner only.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

struct hf__json;

#define HFD_MERGE_KEY_TEXT 32 /* bytes of the text of a number or a boolean, with the NUL */

/* Values of different types are different identities, even if their texts are equal. */
struct hfd_merge_key {
        char type; /* of the scalar; 0 = the element has no identity */
        const char *text;
        size_t position; /* in the list */
};

struct hfd_merge_keys {
        struct hf__strbuf texts;       /* owned; those of all entries, each with its NUL */
        const char *key;               /* borrowed; the merge key, or NULL */
        struct hfd_merge_key *entries; /* owned; sorted, and by position where they are equal */
        size_t n;                      /* elements without an identity have no entry */
        size_t n_elements;
        size_t steps; /* what making the entries has cost, for hfd_patch_spend */
};

/* list may be NULL: then it has no elements. key: the member that identifies an element, borrowed
 * until done; NULL = elements are scalars. 0 or -ENOMEM; call done in either case. */
int hfd_merge_keys_init(struct hfd_merge_keys *keys, const struct hf__json *list, const char *key);
/* Accepts {0}. */
void hfd_merge_keys_done(struct hfd_merge_keys *keys);
/* The first entry with the identity of this element, which may belong to another list; equal ones
 * follow. NULL = none. Takes log n time, and time for the members before the key. */
const struct hfd_merge_key *hfd_merge_keys_find(const struct hfd_merge_keys *keys,
                                                const struct hf__json *element);
/* Whether the entry is equal to the one before it. The entry must not be the first; it may be one
 * past the last, for which the result is false. */
bool hfd_merge_keys_repeats(const struct hfd_merge_keys *keys, const struct hfd_merge_key *entry);
/* The identity of one element, without a position. It borrows from the element or the buffer. */
struct hfd_merge_key hfd_merge_key_of(const struct hf__json *element, const char *key,
                                      char buffer[HFD_MERGE_KEY_TEXT]);
bool hfd_merge_key_is_same(const struct hfd_merge_key *a, const struct hfd_merge_key *b);
