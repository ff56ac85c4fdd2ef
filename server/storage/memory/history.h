/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The revisioned data of the memory store: keys in order, each with its versions, and a log of all
 * writes for watches.
 *
 * A version is immutable and shared by the key that has it, the log, and replies under way. Pure:
 * no lock, no thread, no clock; whoever owns the history guards it, reference counts included.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/storage/store.h"

struct hfd_version {
        unsigned refs;
        uint64_t mod, create;
        struct hf__buf *value; /* owned reference; NULL = a deletion */
        char key[];
};

struct hfd_history_key {
        char *name; /* owned */
        struct hfd_version *
                *versions; /* owned references, oldest first; none after a failed write */
        size_t n, space;
};

struct hfd_history {
        uint64_t revision;            /* of the last write; 1 = nothing was written yet */
        uint64_t compacted;           /* reads below it are gone */
        struct hfd_history_key *keys; /* owned, sorted by name */
        size_t n_keys, space_keys;
        struct hfd_version **log; /* owned references, in the order of writing */
        size_t n_log, space_log;
};

struct hfd_version *hfd_version_ref(struct hfd_version *version);
struct hfd_version *hfd_version_unref(struct hfd_version *version); /* accepts NULL, returns NULL */

void hfd_history_init(struct hfd_history *history);
void hfd_history_deinit(struct hfd_history *history);

/* The key's version as of revision; NULL = it did not exist then. Borrowed. */
struct hfd_version *hfd_history_get(const struct hfd_history *history, const char *key,
                                    uint64_t revision);
/* The index of the first key >= name. */
size_t hfd_history_find(const struct hfd_history *history, const char *name);
/* The version of keys[index] as of revision; NULL = it did not exist then. Borrowed. */
struct hfd_version *hfd_history_at(const struct hfd_history *history, size_t index,
                                   uint64_t revision);
bool hfd_history_compare(const struct hfd_history *history, const struct hfd_compare *compare);
/* All ops in one new revision, or none and -ENOMEM. Deletions of what does not exist write nothing.
 */
int hfd_history_write(struct hfd_history *history, const struct hfd_op *ops, size_t n_ops);
/* Forgets what reads at `revision` and later do not see; the log keeps what is at or after
 * keep_log. */
void hfd_history_compact(struct hfd_history *history, uint64_t revision, uint64_t keep_log);
/* The index of the first entry of the log with a mod revision >= revision. */
size_t hfd_history_log_find(const struct hfd_history *history, uint64_t revision);
