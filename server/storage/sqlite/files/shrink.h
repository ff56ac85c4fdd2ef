/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Compacts the file of a SQLite store at its newest revision, and gives the space back. Thread:
 * any. */
#include <stdint.h>

#include <holdfast/error.h>

struct hfd_sqlite_shrunk {
        uint64_t revision;                      /* the compacted one */
        uint64_t n_removed;                     /* versions */
        uint64_t n_bytes_before, n_bytes_after; /* of the file and its WAL */
};

/*
 * No other process may use the file meanwhile: HF_E_BUSY. Removes the versions that a compaction by
 * the store removes in the end. Blocks for the disk, which needs room for about as much as is
 * removed. 0, HF_E_BUSY, HF_E_NOT_FOUND, HF_E_INVALID or -errno. After an error either nothing was
 * removed, or everything was removed and only the space was not given back.
 */
int hfd_sqlite_shrink(const char *path, struct hfd_sqlite_shrunk *ret_shrunk,
                      struct hf_status *reterr_status);
