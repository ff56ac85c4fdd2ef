/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A store in a file of SQLite under a clock that stands still until the test moves it
 * (hand_clock.h). The test lets statements of SQLite fail, lets a thread of the store wait, and
 * counts what the store does.
 *
 * One store at a time. Asserts by cmocka, and by assert on the store's threads. Thread: the test's,
 * apart from what is atomic and the functions for `done`.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hand_clock.h"
#include "patience.h"
#include "server/storage/store.h"
#include "sqlite_fixture.h"

struct timed_sqlite {
        struct hfd_store *store;
        atomic_bool fails; /* steps of SQLite do */
        /* Those do whose text begins with this, on the thread of this name. NULL: none; the
         * writer. */
        _Atomic(const char *) fails_in, fails_on;
        atomic_int n_logged;    /* rows that the watcher has read from the file */
        atomic_int n_looked_up; /* keys whose newest row the writer has read from it */
        /* The next step of the thread of this name waits, whose text begins so. NULL: none; any. */
        _Atomic(const char *) holds, holds_in;
        atomic_bool is_held, let_go;
        atomic_int n_releases, n_warnings;
        atomic_int n_transactions;     /* of the writer, also those that remove old versions */
        atomic_int n_done, n_written;  /* operations; and those that succeeded */
        atomic_int last_error;         /* of one that did not */
        atomic_uint_fast64_t revision; /* of the last one */
};
extern struct timed_sqlite timed;
extern const struct hf_host timed_sqlite_host;

/* For cmocka_run_group_tests: also make and remove the directory of sqlite_fixture.h. */
int timed_sqlite_set_up(void **state);
int timed_sqlite_tear_down(void **state);

/* Opens a store in this file of the directory; everything above begins anew. */
void timed_sqlite_open(const char *name);
void timed_sqlite_close(void);

/* `done` of an operation. The first counts it; the second asserts that it has succeeded, too; the
 * third keeps the thread that calls it until let_go. */
void timed_sqlite_count_any(void *ctx, const struct hfd_store_reply *reply);
void timed_sqlite_count_done(void *ctx, const struct hfd_store_reply *reply);
void timed_sqlite_hold(void *ctx, const struct hfd_store_reply *reply);

void timed_sqlite_start_put(const char *key, hfd_store_fn done, void *ctx);
/* compared: the revision that the key must have; 0 = it does not matter */
void timed_sqlite_start_put_if(const char *key, uint64_t compared, hfd_store_fn done, void *ctx);
/* The i-th key, in a buffer of the thread. */
const char *timed_sqlite_key(int i);
/* Starts writes of the first n keys, which are counted and must succeed. */
void timed_sqlite_start_puts(int n);
/* Waits until n operations have been counted since the store was opened. */
void timed_sqlite_await_done(int n);
/* Writes the key /a n times, one after the other. */
void timed_sqlite_put(int n);
/* Keeps the writer busy with one operation until let_go. What is started meanwhile is one batch. */
void timed_sqlite_hold_writer(void);
