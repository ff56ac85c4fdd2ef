/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The watches of a SQLite store. The contract is that of struct hfd_store_ops (store.h). Private to
 * server/storage/sqlite.
 *
 * Thread: any. Neither function waits for the disk: the store's watcher thread reads the file and
 * makes the callbacks.
 */
#include "server/storage/store.h"

int hfd_sqlite_watch_start(struct hfd_store *store, const char *begin, const char *end,
                           uint64_t revision, const struct hfd_watch_handler *handler, void *ctx,
                           uint64_t *ret_id);
void hfd_sqlite_watch_cancel(struct hfd_store *store, uint64_t id);
