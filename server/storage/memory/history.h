/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The revisioned data of the memory store: the keys in order, each with its versions, and a log of
 * all writes for the watches. Private to server/storage/memory.
 *
 * A version is immutable and shared by its key, the log, and replies under way. Pure: no lock, no
 * thread, no clock. The owner of the history guards all of it, the versions' counts included.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/storage/store.h"

struct hfd_version {
        unsigned refs; /* not atomic */
        uint64_t mod, create;
        struct hf__buf *value; /* owned reference; NULL = a deletion */
        char key[];
};

struct hfd_history_key {
        char *name; /* owned */
        /* Owned references, oldest first; none if the write that created the key has failed. */
        struct hfd_version **versions;
        size_t n, space;
};

struct hfd_history {
        uint64_t revision;  /* revision of the latest write; 1 = nothing was written yet */
        uint64_t compacted; /* reads below it are gone */
        struct hfd_history_key *keys; /* owned, sorted by name */
        size_t n_keys, space_keys;
        struct hfd_version **log; /* owned references, in the order of writing */
        size_t n_log, space_log;
};

struct hfd_version *hfd_version_ref(struct hfd_version *version);
struct hfd_version *hfd_version_unref(struct hfd_version *version); /* accepts NULL, returns NULL */

void hfd_history_init(struct hfd_history *history);
void hfd_history_deinit(struct hfd_history *history);

/* The index of the first key that is not below name. */
size_t hfd_history_find(const struct hfd_history *history, const char *name);
/* The version of keys[index], or of the key, as of revision; NULL = it did not exist then.
 * Borrowed. */
struct hfd_version *hfd_history_at(const struct hfd_history *history, size_t index,
                                   uint64_t revision);
struct hfd_version *hfd_history_get(const struct hfd_history *history, const char *key,
                                    uint64_t revision);
/* Whether the compare holds for the current state. */
bool hfd_history_compare(const struct hfd_history *history, const struct hfd_compare *compare);
/* Writes all ops in one new revision, or none and returns -ENOMEM. Deleting a key that does not
 * exist writes nothing. The ops have passed hfd_txn_check. */
int hfd_history_write(struct hfd_history *history, const struct hfd_op *ops, size_t n_ops);
/* Forgets what reads at revision or later do not need. The log keeps writes from keep_log on. */
void hfd_history_compact(struct hfd_history *history, uint64_t revision, uint64_t keep_log);
/* The index of the first log entry whose mod revision is not below revision. */
size_t hfd_history_log_find(const struct hfd_history *history, uint64_t revision);
