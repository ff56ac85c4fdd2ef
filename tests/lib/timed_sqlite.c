/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See timed_sqlite.h. Some functions of SQLite are replaced, so that steps fail or wait as the
 * test wants, and so that the test sees them. The store's threads call these functions, so what
 * they share with the test is atomic.
 */
#include "timed_sqlite.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "base/buf.h"
#include "server/storage/sqlite/engine/sqlite_library.h"
#include "server/storage/sqlite/store.h"

#define LOG "SELECT id, created, key, value FROM versions WHERE id >=" /* what watches read */

static struct hfd_sqlite_library real;
struct timed_sqlite timed;

/* ---- SQLite and the host ---- */

static bool is_thread(const char *wanted) {
        char name[16] = "";

        (void)pthread_getname_np(pthread_self(), name, sizeof name);
        return strcmp(name, wanted) == 0;
}

static bool begins_with(const char *text, const char *beginning) {
        return strncmp(text, beginning, strlen(beginning)) == 0;
}

static void hold_if_wanted(const char *text) {
        const char *wanted = atomic_load(&timed.holds), *holds_in = atomic_load(&timed.holds_in);

        if (!wanted || !is_thread(wanted) || (holds_in && !begins_with(text, holds_in)))
                return;
        atomic_store(&timed.holds, NULL);
        atomic_store(&timed.is_held, true);
        PATIENCE_AWAIT(atomic_load(&timed.let_go));
}

static int step_or_fail(sqlite3_stmt *statement) {
        const char *text = sqlite3_sql(statement), *fails_in = atomic_load(&timed.fails_in);

        hold_if_wanted(text);
        atomic_fetch_add(&timed.n_transactions, begins_with(text, "BEGIN IMMEDIATE"));
        atomic_fetch_add(&timed.n_looked_up,
                         begins_with(text, "SELECT id, created, value IS NULL"));
        if (fails_in && begins_with(text, fails_in) &&
            is_thread(timed.fails_on ? timed.fails_on : "hfd-sql-write"))
                return SQLITE_IOERR;
        int r = atomic_load(&timed.fails) ? SQLITE_IOERR : real.step(statement);
        atomic_fetch_add(&timed.n_logged, r == SQLITE_ROW && begins_with(text, LOG));
        return r;
}

static int errcode_of_failure(sqlite3 *db) {
        return atomic_load(&timed.fails) || atomic_load(&timed.fails_in) ? SQLITE_IOERR
                                                                         : real.errcode(db);
}

static int count_release(sqlite3 *db) {
        atomic_fetch_add(&timed.n_releases, 1);
        return real.db_release_memory(db);
}

static void count_warning(void *ctx, enum hf_log_level level, const char *component,
                          const char *message) {
        atomic_fetch_add(&timed.n_warnings, level == HF_LOG_WARNING);
}

const struct hf_host timed_sqlite_host = {.size = sizeof(struct hf_host),
                                          .clock = &hand_clock,
                                          .log = {.write = count_warning}};

int timed_sqlite_set_up(void **state) {
        struct hf_status status = {0};

        if (sqlite_fixture_setup(state) != 0 || hfd_sqlite_load(&status) != 0)
                return 1;
        real = hfd_sqlite;
        hfd_sqlite.step = step_or_fail;
        hfd_sqlite.errcode = errcode_of_failure;
        hfd_sqlite.db_release_memory = count_release;
        return 0;
}

int timed_sqlite_tear_down(void **state) {
        hfd_sqlite = real;
        return sqlite_fixture_teardown(state);
}

void timed_sqlite_open(const char *name) {
        struct hf_status status = {0};

        memset(&timed, 0, sizeof timed);
        hand_clock_reset();
        if (hfd_sqlite_store_new(&timed_sqlite_host, sqlite_fixture_path(name), true, &timed.store,
                                 &status) != 0)
                fail_msg("%s", status.message);
}

void timed_sqlite_close(void) { timed.store->ops->free(timed.store); }

/* ---- operations ---- */

void timed_sqlite_count_any(void *ctx, const struct hfd_store_reply *reply) {
        atomic_store(&timed.revision, reply->revision);
        if (reply->error != 0)
                atomic_store(&timed.last_error, reply->error);
        atomic_fetch_add(&timed.n_written, reply->error == 0);
        atomic_fetch_add(&timed.n_done, 1);
}

void timed_sqlite_count_done(void *ctx, const struct hfd_store_reply *reply) {
        assert(reply->error == 0);
        timed_sqlite_count_any(ctx, reply);
}

void timed_sqlite_hold(void *ctx, const struct hfd_store_reply *reply) {
        atomic_store(&timed.is_held, true);
        PATIENCE_AWAIT(atomic_load(&timed.let_go));
}

void timed_sqlite_start_put_if(const char *key, uint64_t compared, hfd_store_fn done, void *ctx) {
        struct hf__buf *value = hf__buf_copy("x", 1);
        const struct hfd_compare compare = {.kind = HFD_MOD_EQUALS,
                                            .key = key,
                                            .revision = compared};
        const struct hfd_op op = {.kind = HFD_PUT, .key = key, .value = value};
        const struct hfd_txn txn = {.compares = &compare,
                                    .n_compares = compared != 0 ? 1 : 0,
                                    .ops = &op,
                                    .n_ops = 1};

        assert(timed.store->ops->txn(timed.store, &txn, HF_NSEC_NEVER, done, ctx) == 0);
        hf__buf_unref(value);
}

void timed_sqlite_start_put(const char *key, hfd_store_fn done, void *ctx) {
        timed_sqlite_start_put_if(key, 0, done, ctx);
}

const char *timed_sqlite_key(int i) {
        static _Thread_local char key[16];

        (void)snprintf(key, sizeof key, "/k/%d", i);
        return key;
}

void timed_sqlite_start_puts(int n) {
        for (int i = 0; i < n; i++)
                timed_sqlite_start_put(timed_sqlite_key(i), timed_sqlite_count_done, NULL);
}

void timed_sqlite_await_done(int n) { PATIENCE_AWAIT(atomic_load(&timed.n_done) == n); }

void timed_sqlite_put(int n) {
        for (int i = 0; i < n; i++) {
                int before = atomic_load(&timed.n_done);
                timed_sqlite_start_put("/a", timed_sqlite_count_done, NULL);
                timed_sqlite_await_done(before + 1);
        }
}

/* The thread that is busy with one operation runs what was queued meanwhile in one batch. */
void timed_sqlite_hold_writer(void) {
        atomic_store(&timed.is_held, false);
        atomic_store(&timed.let_go, false);
        timed_sqlite_start_put("/held", timed_sqlite_hold, NULL);
        PATIENCE_AWAIT(atomic_load(&timed.is_held));
}
