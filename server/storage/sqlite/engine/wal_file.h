/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * SQLite's WAL as the connections of a store write it: the frames of a commit are collected and
 * written with a few calls, where SQLite makes two for each page. Private to
 * server/storage/sqlite.
 *
 * Thread: that of the connection.
 */
#include <stdbool.h>

#include "server/storage/sqlite/engine/library.h"

/* The name under which SQLite knows this way of opening files (a VFS). */
#define HFD_SQLITE_VFS "holdfast"

/* Makes the name known, if it is not yet. SQLite must be loaded. Returns SQLITE_OK or an error of
 * SQLite. Thread: any. */
int hfd_sqlite_wal_register(void);
/*
 * Forgets frames that were not written, because their commit failed. Call it after each transaction
 * that writes, before its end: later the place of these frames in the WAL may be that of others.
 * Does nothing if the connection was not opened with HFD_SQLITE_VFS. free_memory: also frees the
 * memory in which frames are collected, until it is needed again.
 */
void hfd_sqlite_wal_drop(sqlite3 *db, bool free_memory);
