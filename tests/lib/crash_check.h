/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Compares the file of a SQLite store with the records of the crash-writer that was ended. The
 * check demands that:
 *
 *  - SQLite finds the file intact;
 *  - each acknowledged write is there with its revision, and so is each write that a watch had
 *    delivered;
 *  - a write without an acknowledgement is there completely or not at all. It is not there if its
 *    error said so. No other write is there;
 *  - each revision has one write, phase after phase. A watch from the compacted revision on
 *    delivers them, and one from an older revision is told that it is gone;
 *  - the list of the keys, at the newest revision and at the compacted one, is what the writes
 *    make of an empty store;
 *  - the next write gets the next revision.
 */
#include <stdbool.h>
#include <stddef.h>

#include "crash_plan.h"

struct crash_run {
        enum crash_plan_kind plan;
        const struct crash_record *records; /* in the order in which they were written */
        size_t n_records;
};

/* Opens the file as holdfastd does. NULL: it cannot be opened, and `problem` says why. */
struct hfd_store *crash_check_open(const char *path, char *problem, size_t max_problem);
/* Checks the store, and frees it. False: `problem` is a line that says what is wrong. */
bool crash_check(struct hfd_store *store, const char *path, const struct crash_run *run,
                 char *problem, size_t max_problem);
