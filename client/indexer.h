/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The indexer: records, for each index of an informer, which entries of the store have which value.
 *
 * Lock: the informer's mu guards the contents of the indexes together with the store, so that a
 * reader finds an object under exactly the values of the state that it reads. Only the reflector's
 * thread changes them. It computes the values of an object without the lock, because that calls
 * functions of the user. The list of indexes does not change after start.
 */
#include <stddef.h>
#include <stdint.h>

#include <holdfast/informer.h>

struct hf__index;       /* one index: its function and its nodes */
struct hf__index_node;  /* one value of an index, with the entries that have it */
struct hf__index_value; /* a value that an index function added */
struct hf__informer_entry;

struct hf__indexer {
        struct hf__index *indexes; /* owned list */
        uint64_t n_updates;        /* numbers the updates; the reflector's thread only */
};

/* The values of one object, as the index functions add them. */
struct hf_informer_values {
        struct hf__index *index;        /* the index whose function is running */
        struct hf__index_value *values; /* owned */
        size_t n, space;
        int error; /* 0 or -ENOMEM; never reset */
};

/*
 * Calls the index functions for a state of an object. Thread: the reflector's, without the lock. 0
 * or -ENOMEM; the caller calls hf__indexer_values_done in both cases.
 */
int hf__indexer_values_of(const struct hf__indexer *indexer, const struct hf__informer_entry *entry,
                          const char *object, size_t n, struct hf_informer_values *ret_values);
void hf__indexer_values_done(struct hf_informer_values *values);
/* Moves the entry from its previous values to these. 0, or -ENOMEM: nothing has changed. */
int hf__indexer_update_locked(struct hf__indexer *indexer, struct hf__informer_entry *entry,
                              const struct hf_informer_values *values);
/* Removes the entry from all indexes. Must be called before the entry leaves the store. */
void hf__indexer_remove_locked(struct hf__informer_entry *entry);
/* Frees the indexes. The store must be empty. */
void hf__indexer_done(struct hf__indexer *indexer);
