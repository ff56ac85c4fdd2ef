/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The revisioned data of the memory store: the keys in order, each with its versions, and a log of
 * all writes for the watches. Private to server/storage/memory.
 *
 * The contents of a version are immutable once it is in the log. Its key, the log, and replies and
 * events until they are delivered share it. Pure: no lock, no thread, no clock. The owner
 * serializes all calls. A callback may read the versions in its reply or events at the same time.
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
        /* Owned references, oldest first; n is 0 if the write that added the key has failed. */
        struct hfd_version **versions;
        size_t n, space;
};

struct hfd_history {
        uint64_t revision;  /* revision of the latest write; 1 = nothing was written yet */
        uint64_t compacted; /* reads below this revision end with HF_E_GONE */
        struct hfd_history_key *keys; /* owned, sorted by name */
        size_t n_keys, space_keys;
        struct hfd_version **log; /* owned references, in the order of the writes */
        size_t n_log, space_log;
};

struct hfd_version *hfd_version_ref(struct hfd_version *version);
struct hfd_version *hfd_version_unref(struct hfd_version *version); /* accepts NULL, returns NULL */

void hfd_history_init(struct hfd_history *history);
void hfd_history_deinit(struct hfd_history *history);

/* The index of the first key that is not below name. */
size_t hfd_history_find(const struct hfd_history *history, const char *name);
/* The version of keys[index], or of the key by name, at a revision. Borrowed; NULL = the key did
 * not exist at that revision. */
struct hfd_version *hfd_history_at(const struct hfd_history *history, size_t index,
                                   uint64_t revision);
struct hfd_version *hfd_history_get(const struct hfd_history *history, const char *key,
                                    uint64_t revision);
/* Whether the compare holds for the current state. */
bool hfd_history_compare(const struct hfd_history *history, const struct hfd_compare *compare);
/* Writes all ops in one new revision and returns 0, or writes none of them and returns -ENOMEM.
 * Deleting a key that does not exist writes nothing. The ops have passed hfd_txn_check. */
int hfd_history_write(struct hfd_history *history, const struct hfd_op *ops, size_t n_ops);
/* Removes the versions that no read at revision or later can return. The log keeps the writes from
 * revision keep_log on. The caller makes sure that history->compacted < revision, and that revision
 * is not above history->revision. */
void hfd_history_compact(struct hfd_history *history, uint64_t revision, uint64_t keep_log);
/* The index of the first log entry whose mod revision is not below revision. */
size_t hfd_history_log_find(const struct hfd_history *history, uint64_t revision);
