/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A way of writing SQLite's WAL with fewer system calls: it collects the frames of a commit and
 * writes them with a few calls. SQLite alone makes two calls for each page. The connection must
 * have synchronous=FULL, because the frames are written when the commit syncs the file. Private to
 * server/storage/sqlite.
 *
 * Thread: that of the connection.
 */
#include <stdbool.h>

#include "server/storage/sqlite/engine/sqlite_library.h"

/* The name under which SQLite knows this way of opening files (a VFS). */
#define HFD_SQLITE_VFS "holdfast"

/* Makes the name known, if it is not yet. SQLite must be loaded. Returns SQLITE_OK or an error of
 * SQLite. Thread: any. */
int hfd_sqlite_wal_register(void);
/*
 * Forgets frames that were not written, because their commit failed. Call it after the commit
 * or its failure, and before the rollback and the release of the file's lock: after that, another
 * process may write at the same place in the WAL.
 * Does nothing if the connection was not opened with HFD_SQLITE_VFS. free_memory: also frees the
 * memory in which frames are collected, until it is needed again. An idle connection may call this
 * function for that purpose, too.
 */
void hfd_sqlite_wal_drop(sqlite3 *db, bool free_memory);
