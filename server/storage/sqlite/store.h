/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A file of SQLite as a store, for the instances of one machine. Several processes may use one
 * file.
 *
 * Threads: as server/storage/store.h describes. Four threads call back: for writes, small reads,
 * lists, and watches. The last one also ends operations whose deadline has passed.
 */
#include "server/storage/store.h"

/*
 * Opens the file, or with `create` makes it if there is none (mode 0600), and starts the threads.
 * Blocks for the disk. Beside the file there are PATH-wal and PATH-shm of SQLite, and PATH-notify,
 * through which processes tell each other of writes. 0, HF_E_INVALID (the file cannot be used, or
 * SQLite cannot be loaded: the message says why), HF_E_UNAVAILABLE (another process holds the file
 * locked for too long) or -errno. The caller frees the store with ops->free.
 */
int hfd_sqlite_store_new(const struct hf_host *host, const char *path, bool create,
                         struct hfd_store **ret_store, struct hf_status *reterr_status);
