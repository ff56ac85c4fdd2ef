/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The promises of versions.h and database.h that a store as a whole does not show: where a reading
 * of the log stops, how far one step of a sweep goes, and what a missing meta value is.
 */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "server/storage/sqlite/database.h"
#include "server/storage/sqlite/versions.h"
#include "sqlite_fixture.h"

#define MIB ((size_t)1024 * 1024)

static struct hfd_sqlite_db db;
static uint64_t revision; /* the newest */
static struct hf_status status;

/* What the memory had before does not matter. */
static void open_db(const char *name) {
        memset(&db, 0xa5, sizeof db);
        assert_int_equal(hfd_sqlite_db_open(&db, sqlite_fixture_path(name), true, &status), 0);
        assert_int_equal(hfd_sqlite_db_fill(&db, sqlite_fixture_path(name), &status), 0);
        assert_int_equal(hfd_sqlite_revision(&db, &revision, &status), 0);
        assert_int_equal(revision, 1);
}

static void run(enum hfd_sqlite_statement which) {
        assert_int_equal(hfd_sqlite_db_run(&db, which, &status), 0);
}

/* Writes n keys as one revision, with values of so many bytes. */
static void put(size_t n, size_t n_bytes) {
        struct hf__buf *value = hf__buf_new(n_bytes);
        struct hfd_op ops[HFD_TXN_MAX];
        char keys[HFD_TXN_MAX][8];
        const struct hfd_txn txn = {.ops = ops, .n_ops = n};
        const struct hfd_sqlite_current nothing = {0};

        memset(value->data, 'v', n_bytes);
        for (size_t i = 0; i < n; i++) {
                (void)snprintf(keys[i], sizeof keys[i], "/%zu", i);
                ops[i] = (struct hfd_op){.kind = HFD_PUT, .key = keys[i], .value = value};
        }
        run(HFD_SQL_BEGIN_WRITE);
        assert_int_equal(hfd_sqlite_write(&db, &txn, &nothing, &revision, &status), 0);
        run(HFD_SQL_COMMIT);
        hf__buf_unref(value);
}

/* Reads the log from a revision on; at most `max` writes, apart from the rest of a revision. */
static void expect_log(uint64_t from, size_t max, size_t n, uint64_t next, bool more) {
        struct hfd_sqlite_kvs kvs = {0};
        uint64_t position = from;
        bool has_more = !more;

        assert_int_equal(hfd_sqlite_log(&db, &position, max, &kvs, &has_more, &status), 0);
        assert_int_equal(kvs.n, n);
        assert_int_equal(position, next);
        assert_int_equal(has_more, more);
        if (n > 0) {
                assert_int_equal(kvs.kvs[0].mod_revision, from);
                assert_int_equal(kvs.kvs[n - 1].mod_revision, next - 1);
        }
        hfd_sqlite_kvs_deinit(&kvs);
}

static void test_a_reading_of_the_log_stops_at_so_many_writes(void **state) {
        open_db("log.db");
        for (int i = 0; i < 10; i++)
                put(1, 10); /* the revisions 2 to 11 */
        expect_log(2, 3, 3, 5, true);
        expect_log(5, 3, 3, 8, true);
        expect_log(2, 10, 10, 12, false);
        expect_log(9, 3, 3, 12, false);
        expect_log(12, 3, 0, 12, false);
        put(4, 10); /* the revision 12, which is read as a whole */
        put(1, 10);
        expect_log(10, 3, 2 + 4, 13, true);
        expect_log(10, 6, 2 + 4, 13, true);
        expect_log(10, 7, 2 + 4 + 1, 14, false);
        hfd_sqlite_db_close(&db);
}

/* So the memory of a watch that is far behind is bounded. */
static void test_a_reading_of_the_log_stops_at_4_MiB(void **state) {
        open_db("large.db");
        for (int i = 0; i < 6; i++)
                put(1, MIB);
        expect_log(2, 100, 4, 6, true);
        expect_log(6, 100, 2, 8, false);
        put(2, MIB / 2); /* the revision 8 */
        put(1, 1);
        expect_log(5, 100, 3 + 2, 9, true);
        hfd_sqlite_db_close(&db);
}

static uint64_t meta(const char *name) {
        uint64_t value = 12345;

        assert_int_equal(hfd_sqlite_db_meta(&db, name, &value, &status), 0);
        return value;
}

static void test_a_meta_value_that_is_missing_is_0(void **state) {
        open_db("meta.db");
        assert_true(meta("history") > 0);
        assert_int_equal(meta("compacted"), 0);
        assert_int_equal(hfd_sqlite_db_set_meta(&db, "compacted", 7, &status), 0);
        assert_int_equal(hfd_sqlite_db_set_meta(&db, "compacted", 8, &status), 0);
        assert_int_equal(meta("compacted"), 8);
        assert_int_equal(meta("swept"), 0);
        hfd_sqlite_db_close(&db);
}

/* One step. It notes how far it has looked, so that the next one goes on behind. */
static void expect_sweep(size_t max, bool done, int64_t n_left, uint64_t swept) {
        bool is_done = !done;

        assert_int_equal(hfd_sqlite_sweep(&db, max, &is_done, &status), 0);
        assert_int_equal(is_done, done);
        assert_int_equal(sqlite_fixture_sql("sweep.db", "SELECT count(*) FROM versions"), n_left);
        assert_int_equal(meta("swept"), swept * HFD_TXN_MAX + (swept > 0 ? HFD_TXN_MAX - 1 : 0));
}

static void test_a_sweep_goes_on_where_the_last_one_ended(void **state) {
        open_db("sweep.db");
        for (int i = 0; i < 10; i++)
                put(1, 10);           /* the revisions 2 to 11 of one key */
        expect_sweep(4, true, 10, 0); /* nothing is compacted */
        assert_int_equal(hfd_sqlite_db_set_meta(&db, "compacted", 9, &status), 0);
        bool done = true;
        assert_int_equal(hfd_sqlite_sweep(&db, 4, &done, &status), 0);
        assert_false(done); /* it has looked at the revisions 2 to 5, of which 5 is left */
        assert_int_equal(meta("swept"), 5 * HFD_TXN_MAX);
        assert_int_equal(sqlite_fixture_sql("sweep.db", "SELECT min(id) FROM versions"),
                         5 * HFD_TXN_MAX);
        assert_int_equal(hfd_sqlite_sweep(&db, 4, &done, &status), 0);
        assert_false(done); /* the revisions 6 to 9; it does not know that these were the last */
        expect_sweep(4, true, 3, 8);
        expect_sweep(4, true, 3, 8);
        hfd_sqlite_db_close(&db);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_reading_of_the_log_stops_at_so_many_writes),
                cmocka_unit_test(test_a_reading_of_the_log_stops_at_4_MiB),
                cmocka_unit_test(test_a_meta_value_that_is_missing_is_0),
                cmocka_unit_test(test_a_sweep_goes_on_where_the_last_one_ended),
        };
        return cmocka_run_group_tests(tests, sqlite_fixture_setup, sqlite_fixture_teardown);
}
