/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds the children of a JSON container by a text, without walking the container each time:
 *
 *      of an object                     by their keys
 *      of an array                      by the strings themselves
 *      of an array of objects           by the string that each has under one key
 *
 * Building takes time proportional to n log n, and a search to log n. So a search for each child of
 * another container does not take time proportional to the product of the two sizes.
 *
 * The index contains the children that existed when it was built, and borrows their texts: the
 * caller must not free these before hf__json_index_done. A child may be moved, and others may be
 * added. The index itself must not be copied or moved, because `entries` may point to `few`.
 * Thread: an index belongs to one thread.
 */
#include <stdbool.h>
#include <stddef.h>

struct hf__json;

#define HF__JSON_INDEX_FEW 8

struct hf__json_index_entry {
        const char *text;      /* borrowed from the item */
        struct hf__json *item; /* borrowed; the caller may set it, for example to NULL */
        size_t position;       /* in the container; 0 = the first child */
};

struct hf__json_index {
        /* Sorted by text, and by position where texts are equal. */
        struct hf__json_index_entry *entries;
        size_t n; /* without the children that have no text, except after init_texts */
        struct hf__json_index_entry few[HF__JSON_INDEX_FEW]; /* entries of a small container */
};

/*
 * Builds the index of container, which may be NULL or a scalar: then it is empty. key: the member
 * with the text of an array's element; NULL = the elements themselves are strings. 0 or -ENOMEM.
 * The caller calls done after success, and may do so after a failure.
 */
int hf__json_index_init(struct hf__json_index *index, const struct hf__json *container,
                        const char *key);
/* The same for an array of objects, but an object without such a text has the text "", as Go reads
 * an absent member. */
int hf__json_index_init_texts(struct hf__json_index *index, const struct hf__json *array,
                              const char *key);
void hf__json_index_done(struct hf__json_index *index);
/*
 * Adds copies of the members of `from`, which may be NULL, to the object `into`. The members of
 * `from` must have different keys. If `into` has a member of the same key, the copy takes its place
 * if `replace` is true, and is left out otherwise. 0, or -ENOMEM: some of the members may have been
 * added. Takes time proportional to n log n.
 */
int hf__json_add_members(struct hf__json *into, const struct hf__json *from, bool replace);
/* The first entry with this text; the entries of further children with it follow. NULL = none. */
struct hf__json_index_entry *hf__json_index_find(const struct hf__json_index *index,
                                                 const char *text);
