/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a SQLite store leaves its watcher in memory, alone and beside another store that writes to
 * the same file.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mailbox.h"
#include "patience.h"
#include "server/storage/sqlite/commits.h"
#include "server/storage/sqlite/store.h"
#include "sqlite_fixture.h"
#include "store_client.h"
#include "watch_recorder.h"

/* One commit of n writes, of a revision each. */
static struct hfd_sqlite_commits committed(uint64_t first, size_t n, size_t n_bytes) {
        struct hfd_sqlite_commits commits = {.history = 7, .first = first, .next = first + n};

        for (size_t i = 0; i < n; i++)
                assert_int_equal(hfd_sqlite_kvs_add(&commits.writes, strdup("/a"),
                                                    hf__buf_new(n_bytes), first + i, first),
                                 0);
        return commits;
}

static void add(struct hfd_sqlite_commits *commits, struct hfd_sqlite_commits next) {
        hfd_sqlite_commits_add(commits, &next);
        hfd_sqlite_commits_deinit(&next);
}

static void assert_range(const struct hfd_sqlite_commits *commits, uint64_t first, uint64_t next) {
        assert_int_equal(commits->first, first);
        assert_int_equal(commits->next, next);
        assert_int_equal(commits->writes.n, next - first);
        for (size_t i = 0; i < commits->writes.n; i++)
                assert_int_equal(commits->writes.kvs[i].mod_revision, first + i);
}

static void test_commits_that_follow_are_kept_together(void **state) {
        struct hfd_sqlite_commits commits = {0};

        add(&commits, committed(2, 1, 10));
        assert_range(&commits, 2, 3);
        add(&commits, committed(3, 20, 10));
        add(&commits, committed(23, 2, 10));
        assert_range(&commits, 2, 25);
        assert_int_equal(commits.n_bytes, 230);
        hfd_sqlite_commits_deinit(&commits);
        assert_range(&commits, 0, 0);
}

static void test_after_a_gap_only_the_later_commits_are_kept(void **state) {
        struct hfd_sqlite_commits commits = {0}, other = committed(11, 1, 10);

        add(&commits, committed(2, 3, 10));
        add(&commits, committed(6, 4, 10)); /* 5 is another process's */
        assert_range(&commits, 6, 10);
        add(&commits, committed(10, 1, 10));
        assert_range(&commits, 6, 11);
        other.history = 8; /* the file is another one */
        add(&commits, other);
        assert_range(&commits, 11, 12);
        hfd_sqlite_commits_deinit(&commits);
}

static void test_too_many_commits_are_left_to_the_file(void **state) {
        struct hfd_sqlite_commits commits = {0};

        add(&commits, committed(2, 200, 10));
        add(&commits, committed(202, HFD_SQLITE_COMMITS_MAX - 200, 10));
        assert_range(&commits, 2, 2 + HFD_SQLITE_COMMITS_MAX);
        add(&commits, committed(2 + HFD_SQLITE_COMMITS_MAX, 1, 10));
        assert_range(&commits, 2 + HFD_SQLITE_COMMITS_MAX, 3 + HFD_SQLITE_COMMITS_MAX);
        add(&commits, committed(3 + HFD_SQLITE_COMMITS_MAX, HFD_SQLITE_COMMITS_MAX + 1, 10));
        assert_int_equal(commits.writes.n, 0);
        add(&commits, committed(1000, 1, HFD_SQLITE_COMMITS_BYTES));
        add(&commits, committed(1001, 1, 1));
        assert_range(&commits, 1001, 1002);
        add(&commits, committed(1002, 1, HFD_SQLITE_COMMITS_BYTES + 1));
        assert_int_equal(commits.writes.n, 0);
        hfd_sqlite_commits_deinit(&commits);
}

/* ---- two stores, as two processes have them ---- */

enum { ROUNDS = 200 };

static struct hfd_store *stores[2];
static struct watch_recorder recorders[2];

static int open_stores(void **state) {
        static const struct hf_host host = {.size = sizeof host};
        struct hf_status status = {0};

        for (int i = 0; i < 2; i++)
                if (hfd_sqlite_store_new(&host, sqlite_fixture_path("two.db"), true, &stores[i],
                                         &status) != 0)
                        return -1;
        return 0;
}

static int close_stores(void **state) {
        for (int i = 0; i < 2; i++)
                if (stores[i])
                        stores[i]->ops->free(stores[i]);
        return 0;
}

static void test_each_watch_has_the_writes_of_both_stores_in_order(void **state) {
        uint64_t written[2 * ROUNDS] = {0};
        char value[32];

        for (int i = 0; i < 2; i++)
                assert_int_equal(watch_recorder_start(&recorders[i], stores[i], "/", "0", 2), 0);
        for (int n = 0; n < 2 * ROUNDS; n++) {
                (void)snprintf(value, sizeof value, "%d", n);
                /* Turns of different lengths, so that commits follow each other and do not. */
                written[n] = store_client_put(stores[n % 7 % 2], n % 3 ? "/a" : "/b", value);
        }
        for (int i = 0; i < 2; i++) {
                watch_recorder_await(&recorders[i], 2 * ROUNDS);
                for (int n = 0; n < 2 * ROUNDS; n++) {
                        (void)snprintf(value, sizeof value, "%d", n);
                        assert_int_equal(recorders[i].events[n].revision, written[n]);
                        assert_string_equal(recorders[i].events[n].value->data, value);
                        assert_string_equal(recorders[i].events[n].key, n % 3 ? "/a" : "/b");
                        assert_int_equal(recorders[i].events[n].create_revision,
                                         written[n % 3 ? 1 : 0]);
                }
                assert_int_equal(recorders[i].n, 2 * ROUNDS);
                watch_recorder_stop(&recorders[i]);
        }
}

/* ---- the threads behind the watches ---- */

enum { N_WATCHES = 8 };

/* A thread to which all watches pass their events. It is woken by count_wake. */
static struct {
        pthread_mutex_t mu;
        pthread_cond_t changed;
        /* guarded by mu */
        unsigned n_events, n_wakes, n_ended;
} owner = {.mu = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void count(unsigned *counter) {
        pthread_mutex_lock(&owner.mu);
        ++*counter;
        pthread_cond_broadcast(&owner.changed);
        pthread_mutex_unlock(&owner.mu);
}

static void count_wake(void *ctx) { count(&owner.n_wakes); }

static void pass_on(void *ctx, const struct hfd_watch_event *events, size_t n) {
        if (hf__mailbox_delay_call(count_wake, &owner) == HF__NOT_DELAYED)
                count_wake(&owner);
        count(&owner.n_events);
}

static void count_end(void *ctx, int error, const struct hf_status *status) {
        count(&owner.n_ended);
}

static void await_count(const unsigned *counter, unsigned n) {
        pthread_mutex_lock(&owner.mu);
        PATIENCE_AWAIT_LOCKED(&owner.changed, &owner.mu, *counter == n);
        pthread_mutex_unlock(&owner.mu);
}

/* The commits of the second store are read from the file. A commit that is made while the watcher
 * serves the watches one by one reaches some of them then, and the others after that. */
static void test_a_commit_does_not_wake_for_each_watch(void **state) {
        static const struct hfd_watch_handler handler = {.event = pass_on, .end = count_end};
        uint64_t ids[N_WATCHES];

        for (int i = 0; i < N_WATCHES; i++)
                assert_int_equal(stores[0]->ops->watch(stores[0], "/wake", "/wakf", 2, &handler,
                                                       NULL, &ids[i]),
                                 0);
        for (unsigned i = 0; i < 10; i++) {
                (void)store_client_put(stores[i % 2], "/wake", "now");
                await_count(&owner.n_events, (i + 1) * N_WATCHES);
        }
        for (int i = 0; i < N_WATCHES; i++)
                stores[0]->ops->watch_cancel(stores[0], ids[i]);
        await_count(&owner.n_ended, N_WATCHES);
        assert_in_range(owner.n_wakes, 1, 2 * 10);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_commits_that_follow_are_kept_together),
                cmocka_unit_test(test_after_a_gap_only_the_later_commits_are_kept),
                cmocka_unit_test(test_too_many_commits_are_left_to_the_file),
                cmocka_unit_test_setup_teardown(
                        test_each_watch_has_the_writes_of_both_stores_in_order, open_stores,
                        close_stores),
                cmocka_unit_test_setup_teardown(test_a_commit_does_not_wake_for_each_watch,
                                                open_stores, close_stores),
        };

        return cmocka_run_group_tests(tests, sqlite_fixture_setup, sqlite_fixture_teardown);
}
