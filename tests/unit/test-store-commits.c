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

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_commits_that_follow_are_kept_together),
                cmocka_unit_test(test_after_a_gap_only_the_later_commits_are_kept),
                cmocka_unit_test(test_too_many_commits_are_left_to_the_file),
                cmocka_unit_test_setup_teardown(
                        test_each_watch_has_the_writes_of_both_stores_in_order, open_stores,
                        close_stores),
        };

        return cmocka_run_group_tests(tests, sqlite_fixture_setup, sqlite_fixture_teardown);
}
