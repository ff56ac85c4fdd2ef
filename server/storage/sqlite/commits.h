/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the writer has committed and the watcher has not looked at yet, so that the watcher need not
 * read it from the file. Private to server/storage/sqlite.
 *
 * Lock: the caller holds the store's mu, unless it owns the struct alone. Nothing blocks. A zeroed
 * struct is empty.
 */
#include <stdbool.h>
#include <stdint.h>

#include "server/storage/sqlite/versions.h"

struct hfd_sqlite_commits {
        uint64_t history;
        uint64_t first, next;         /* all writes of the revisions first to next - 1 are here */
        size_t n_bytes;               /* of the values */
        struct hfd_sqlite_kvs writes; /* owned; in order */
};

/* At most so many writes, or bytes of their values, are kept. More are read from the file. */
#define HFD_SQLITE_COMMITS_MAX   256
#define HFD_SQLITE_COMMITS_BYTES (4 * 1024 * 1024)

/* Frees what it has; it is empty then. */
void hfd_sqlite_commits_deinit(struct hfd_sqlite_commits *commits);
/*
 * Appends `next`, or takes its place if it does not follow or if both are too much. Takes what is
 * in `next`, and leaves there what the caller shall free without the lock.
 */
void hfd_sqlite_commits_add(struct hfd_sqlite_commits *commits, struct hfd_sqlite_commits *next);
