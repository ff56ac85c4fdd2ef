/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The writes that the writer thread has committed and the watcher thread (sqlite.h) has not
 * delivered yet, so that the watcher need not read them from the file. Private to
 * server/storage/sqlite.
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

/* The most writes, and bytes of their values, that are kept. More are read from the file. */
#define HFD_SQLITE_COMMITS_MAX   256
#define HFD_SQLITE_COMMITS_BYTES (4 * 1024 * 1024)

/* Frees the contents, and leaves the struct empty. */
void hfd_sqlite_commits_deinit(struct hfd_sqlite_commits *commits);
/*
 * Appends the writes of `next` to `commits`. If they do not follow those of `commits`, if both
 * together are too many, or if memory runs out, they replace those of `commits`. If they alone are
 * too many, `commits` becomes empty. Sums up next->n_bytes itself. `next` is consumed: afterwards
 * it has what was replaced, and the caller frees that by hfd_sqlite_commits_deinit, without mu.
 */
void hfd_sqlite_commits_add(struct hfd_sqlite_commits *commits, struct hfd_sqlite_commits *next);
