/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A set of things by their key, in key order: a sorted array of pointers. Lists arrive in key
 * order, so filling it appends. The things are their owner's; each begins with a struct hf__keyed
 * whose key never changes while it is in. Thread: the owner's.
 */
#include <stdbool.h>
#include <stddef.h>

struct hf__keyed {
        const char *key;
};

struct hf__key_index {
        struct hf__keyed **items; /* owned array of borrowed items */
        size_t n, space;
};

void hf__key_index_done(struct hf__key_index *index); /* frees the array only */
struct hf__keyed *hf__key_index_find(const struct hf__key_index *index, const char *key);
struct hf__keyed *hf__key_index_from(const struct hf__key_index *index,
                                     const char *key); /* the first that is not before key */
/* The key must not be in yet. 0 or -ENOMEM. */
int hf__key_index_insert(struct hf__key_index *index, struct hf__keyed *item);
void hf__key_index_remove(struct hf__key_index *index, const char *key); /* nothing when absent */
