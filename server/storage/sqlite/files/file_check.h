/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Looks for damage in the file of a SQLite store. Thread: any. Blocks on the file. */
#include <stddef.h>

#include <holdfast/error.h>

#define HFD_SQLITE_FAULTS_MAX 100 /* how many are reported */

struct hfd_sqlite_faults {
        /* Called for each of the first HFD_SQLITE_FAULTS_MAX faults, with a line of text. NULL = no
         * callback. */
        void (*report)(void *ctx, const char *text);
        void *ctx;
        size_t n;        /* of all faults that were found, also of those that are not reported */
        char first[464]; /* the text of the first fault */
};

/*
 * Reads the whole file at one revision; other processes may use it meanwhile. Changes nothing in
 * it, but SQLite may leave an empty -wal and a -shm beside it. The caller zeroes *faults, apart
 * from report and ctx. 0: faults->n is the number of faults; that the file is no store counts as
 * one. HF_E_INVALID: SQLite cannot be loaded, so nothing was checked. HF_E_NOT_FOUND, HF_E_BUSY or
 * -errno: the check could not be completed, so the file may have other faults.
 */
int hfd_sqlite_check(const char *path, struct hfd_sqlite_faults *faults,
                     struct hf_status *reterr_status);
