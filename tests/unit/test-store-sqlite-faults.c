/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each step of SQLite fails once, as it does when the disk fails: an operation is then refused, or
 * its reply is true, and the store goes on. The test replaces functions of hfd_sqlite. Binding can
 * only fail if it copies.
 */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include <cmocka.h>

#include "base/buf.h"
#include "patience.h"
#include "server/storage/sqlite/engine/sqlite_library.h"
#include "server/storage/sqlite/files/file_check.h"
#include "server/storage/sqlite/store.h"
#include "sqlite_fixture.h"
#include "store_client.h"
#include "watch_recorder.h"

static const struct hf_host host = {.size = sizeof(struct hf_host)};
static struct hfd_store *store;

/* The linker redirects getrandom here. */
static bool has_no_random;

ssize_t __real_getrandom(void *to, size_t n, unsigned flags);
ssize_t __wrap_getrandom(void *to, size_t n, unsigned flags);
ssize_t __wrap_getrandom(void *to, size_t n, unsigned flags) {
        return has_no_random ? -1 : __real_getrandom(to, n, flags);
}

/* ---- the calls ---- */

static struct hfd_sqlite_library real;
static atomic_int calls_left = INT32_MAX; /* before one fails */
static atomic_int failure;                /* of SQLite: what that one returns */
static atomic_bool has_failed;
static _Thread_local bool failed_last; /* this thread's last call was the one */

static atomic_bool only_prepares; /* are counted, and fail */

static bool fails(bool prepares) {
        failed_last =
                (prepares || !atomic_load(&only_prepares)) && atomic_fetch_sub(&calls_left, 1) == 0;
        if (failed_last)
                atomic_store(&has_failed, true);
        return failed_last;
}

static int bad_step(sqlite3_stmt *statement) {
        return fails(false) ? atomic_load(&failure) : real.step(statement);
}
static int bad_prepare(sqlite3 *db, const char *text, int n, unsigned flags, sqlite3_stmt **ret,
                       const char **ret_tail) {
        return fails(true) ? atomic_load(&failure)
                           : real.prepare_v3(db, text, n, flags, ret, ret_tail);
}
static int bad_bind_text(sqlite3_stmt *statement, int i, const char *text, int n,
                         void (*release)(void *)) {
        if (release != SQLITE_TRANSIENT || !fails(false))
                return real.bind_text(statement, i, text, n, release);
        (void)real.bind_text(statement, i, NULL, 0, SQLITE_STATIC); /* the old text is gone */
        return atomic_load(&failure);
}
static int bad_errcode(sqlite3 *db) {
        return failed_last ? atomic_load(&failure) : real.errcode(db);
}
static atomic_int cause; /* errno of the failure; 0 = the real one */

static int errno_of_failure(sqlite3 *db) {
        return atomic_load(&cause) != 0 ? atomic_load(&cause) : real.system_errno(db);
}

static void arm(int n, int error) {
        atomic_store(&failure, error);
        atomic_store(&has_failed, false);
        atomic_store(&calls_left, n);
}

/* Whether a call has failed. */
static bool disarm(void) {
        atomic_store(&calls_left, INT32_MAX);
        return atomic_load(&has_failed);
}

static int set_up(void **state) {
        struct hf_status status = {0};

        if (sqlite_fixture_setup(state) != 0 || hfd_sqlite_load(&status) != 0)
                return 1;
        real = hfd_sqlite;
        hfd_sqlite.step = bad_step;
        hfd_sqlite.prepare_v3 = bad_prepare;
        hfd_sqlite.bind_text = bad_bind_text;
        hfd_sqlite.errcode = bad_errcode;
        hfd_sqlite.system_errno = errno_of_failure;
        return 0;
}

static int tear_down(void **state) {
        hfd_sqlite = real;
        return sqlite_fixture_teardown(state);
}

/* ---- a store with known contents ---- */

static int open_store(const char *name, struct hf_status *status) {
        return hfd_sqlite_store_new(&host, sqlite_fixture_path(name), true, &store, status);
}

static int last_number, known, perhaps; /* the value of /a; `perhaps` if a write is in doubt */
static uint64_t known_revision;         /* of the last write that was confirmed */

static int put(const char *key, uint64_t *ret_revision) {
        char text[16];
        struct store_reply reply;

        (void)snprintf(text, sizeof text, "%d", ++last_number);
        struct hf__buf *value = hf__buf_copy(text, strlen(text));
        const struct hfd_op op = {.kind = HFD_PUT, .key = key, .value = value};
        const struct hfd_txn txn = {.ops = &op, .n_ops = 1};
        int r = store_client_txn(store, &txn, &reply);
        assert_int_equal(reply.status.error, r);
        *ret_revision = reply.revision;
        hf__buf_unref(value);
        store_reply_deinit(&reply);
        return r;
}

static void write_a(void) {
        uint64_t revision;
        int r = put("/a", &revision);

        if (r == 0) {
                assert_true(revision > known_revision);
                known = perhaps = last_number;
                known_revision = revision;
        } else if (r == HF_E_TIMEOUT) {
                perhaps = last_number;
        } else {
                assert_int_equal(r, HF_E_UNAVAILABLE);
        }
}

static void check_value(const struct store_reply *reply, size_t i) {
        int value = atoi(store_reply_value(reply, i));

        assert_string_equal(reply->kvs[i].key, "/a");
        assert_true(value == known || value == perhaps);
}

static void read_a(void) {
        struct store_reply reply;

        int r = store_client_get(store, "/a", &reply);
        assert_true(r == 0 || r == -EIO);
        assert_int_equal(reply.status.error, r);
        assert_int_equal(reply.n_kvs, r == 0 ? 1 : 0);
        if (r == 0) {
                check_value(&reply, 0);
                assert_true(reply.revision >= known_revision && reply.cluster_id != 0);
        }
        store_reply_deinit(&reply);
}

/* The values are in versions that follow each other, so that a list searches for one. */
static void list_at(uint64_t revision, int value) {
        struct store_reply reply;

        int r = store_client_list(store, "/a", NULL, revision, 0, false, &reply);
        assert_true(r == 0 || r == -EIO);
        assert_int_equal(reply.n_kvs, r == 0 ? 1 : 0);
        if (r == 0 && revision == 0)
                check_value(&reply, 0);
        else if (r == 0)
                assert_int_equal(atoi(store_reply_value(&reply, 0)), value);
        store_reply_deinit(&reply);
}

static void conflict(void) {
        const struct hfd_compare wrong = {.kind = HFD_MOD_EQUALS, .key = "/a", .revision = 1};
        const struct hfd_op gone = {.kind = HFD_DELETE, .key = "/a"};
        const char *const keys[] = {"/a", "/none"};
        const struct hfd_txn txn = {.compares = &wrong,
                                    .n_compares = 1,
                                    .ops = &gone,
                                    .n_ops = 1,
                                    .get_on_failure = keys,
                                    .n_get_on_failure = 2};
        struct store_reply reply;

        int r = store_client_txn(store, &txn, &reply);
        assert_true(r == HF_E_CONFLICT || r == HF_E_UNAVAILABLE || r == HF_E_TIMEOUT);
        assert_int_equal(reply.n_kvs, r == HF_E_CONFLICT ? 1 : 0);
        if (r == HF_E_CONFLICT)
                check_value(&reply, 0);
        store_reply_deinit(&reply);
}

/* The compares hold, so a failure must not look like a conflict. */
static void write_compared(void) {
        char text[16], old[16];
        struct store_reply reply;

        (void)snprintf(old, sizeof old, "%d", known);
        (void)snprintf(text, sizeof text, "%d", ++last_number);
        struct hf__buf *value = hf__buf_copy(text, strlen(text));
        const struct hfd_compare compares[] =
                {{.kind = HFD_MOD_EQUALS, .key = "/a", .revision = known_revision},
                 {.kind = HFD_VALUE_EQUALS, .key = "/a", .value = old, .n_value = strlen(old)}};
        const struct hfd_op op = {.kind = HFD_PUT, .key = "/a", .value = value};
        const struct hfd_txn txn = {.compares = compares, .n_compares = 2, .ops = &op, .n_ops = 1};

        int r = store_client_txn(store, &txn, &reply);
        assert_true(r == 0 || r == HF_E_UNAVAILABLE || r == HF_E_TIMEOUT);
        if (r == 0) {
                known = perhaps = last_number;
                known_revision = reply.revision;
        }
        hf__buf_unref(value);
        store_reply_deinit(&reply);
}

static void make_and_delete(void) {
        uint64_t revision;
        struct store_reply reply;
        const struct hfd_op gone = {.kind = HFD_DELETE, .key = "/b"};
        const struct hfd_txn txn = {.ops = &gone, .n_ops = 1};
        bool made = put("/b", &revision) == 0;

        int r = store_client_txn(store, &txn, &reply);
        bool deleted = r == 0;
        store_reply_deinit(&reply);
        r = store_client_list(store, "/b", NULL, 0, 0, true, &reply);
        if (r == 0 && made)
                assert_true(!deleted || reply.n_kvs == 0);
        store_reply_deinit(&reply);
}

static bool is_compacted;

static void compact(void) {
        uint64_t at = known_revision;
        int r = store_client_compact(store, at);

        if (r == 0)
                is_compacted = true;
        else
                assert_true(r == HF_E_UNAVAILABLE || r == HF_E_TIMEOUT || r == HF_E_GONE);
}

/* It works again, perhaps after one more operation that finds what the failure has left. */
static void expect_sound(const char *name) {
        struct hfd_sqlite_faults faults = {0};
        struct hf_status status = {0};

        PATIENCE_AWAIT(store_client_put(store, "/sound", "x") > 0);
        struct store_reply reply;
        assert_int_equal(store_client_get(store, "/a", &reply), 0);
        assert_int_equal(reply.n_kvs, 1);
        check_value(&reply, 0);
        known = perhaps = atoi(store_reply_value(&reply, 0));
        store_reply_deinit(&reply);
        assert_int_equal(hfd_sqlite_check(sqlite_fixture_path(name), &faults, &status), 0);
        assert_int_equal(faults.n, 0);
}

static void start(const char *name) {
        struct hf_status status = {0};

        if (open_store(name, &status) != 0)
                fail_msg("%s", status.message);
        known_revision = 0;
        for (int i = 0; i < 20; i++)
                write_a();
}

/* ---- tests ---- */

static void try_all(const char *name, void (*act)(void)) {
        int n = 0;

        start(name);
        do {
                arm(n++, SQLITE_IOERR);
                act();
        } while (disarm());
        assert_true(n > 2);
        expect_sound(name);
        store->ops->free(store);
}

static uint64_t old_revision;
static int old_value;

/* So many versions that the list searches for the last one after it has seen them all, and then for
 * the next key. */
static void put_eight(void) {
        for (int i = 0; i < 8; i++)
                assert_true(store_client_put(store, "/e", "x") > 0);
        assert_true(store_client_put(store, "/e/next", "x") > 0);
}

static void list_eight(void) {
        struct store_reply reply;

        int r = store_client_list(store, "/e", NULL, 0, 0, false, &reply);
        assert_true(r == 0 || r == -EIO);
        assert_int_equal(reply.n_kvs, r == 0 ? 2 : 0);
        store_reply_deinit(&reply);
}

static void read_everything(void) {
        read_a();
        list_eight();
        list_at(0, 0);
        list_at(old_revision, old_value);
}

static void test_a_read_that_fails_returns_nothing(void **state) {
        start("reads.db");
        old_revision = known_revision;
        old_value = known;
        put_eight();
        for (int i = 0; i < 12; i++)
                write_a();
        int n = 0;
        do {
                arm(n++, SQLITE_IOERR);
                read_everything();
        } while (disarm());
        assert_true(n > 10);
        expect_sound("reads.db");
        store->ops->free(store);
}

/* A store prepares each statement when it first uses it. */
static void test_a_statement_that_cannot_be_prepared_is_an_error(void **state) {
        struct hf_status status = {0};
        int n = 0;
        bool hit;

        start("prepared.db");
        put_eight();
        old_revision = known_revision;
        old_value = known;
        store->ops->free(store);
        atomic_store(&only_prepares, true);
        do {
                assert_int_equal(open_store("prepared.db", &status), 0);
                arm(n++, SQLITE_IOERR);
                list_at(old_revision, old_value); /* the first that searches for a version */
                read_everything();
                conflict();
                write_compared();
                make_and_delete();
                hit = disarm();
                read_everything(); /* may find a transaction that did not end */
                expect_sound("prepared.db");
                store->ops->free(store);
        } while (hit);
        atomic_store(&only_prepares, false);
        assert_true(n > 12);
}

static void test_a_write_that_fails_is_not_done(void **state) {
        try_all("writes.db", write_a);
        try_all("compared.db", write_compared);
        try_all("conflicts.db", conflict);
        try_all("deletes.db", make_and_delete);
}

static void test_a_compaction_that_fails_can_be_repeated(void **state) {
        int n = 0;
        bool hit;

        start("compactions.db");
        do {
                write_a();
                write_a();
                is_compacted = false;
                arm(n++, SQLITE_IOERR);
                compact();
                hit = disarm();
                if (!is_compacted)
                        compact();
                assert_true(is_compacted);
                assert_int_equal(store_client_list(store, "/a", NULL, known_revision - 1, 0, true,
                                                   NULL),
                                 HF_E_GONE);
        } while (hit);
        expect_sound("compactions.db");
        /* No version was left out: only the last ones of /a and /sound are left. */
        assert_int_equal(store_client_compact(store, store_client_revision(store)), 0);
        PATIENCE_AWAIT(sqlite_fixture_sql("compactions.db", "SELECT count(*) FROM versions") == 2);
        store->ops->free(store);
}

/* No event is left out: the watch has all, or it ends. */
static void test_a_watch_that_cannot_read_ends(void **state) {
        static struct watch_recorder recorder;
        int n = 0;
        bool hit;

        start("watches.db");
        do {
                uint64_t first = known_revision + 1;
                arm(n++, SQLITE_IOERR);
                assert_int_equal(watch_recorder_start(&recorder, store, "/a", "/b", first), 0);
                watch_recorder_await(&recorder, 0);
                hit = disarm();
                write_a();
                write_a();
                watch_recorder_await(&recorder, 2);
                if (recorder.ended)
                        assert_int_equal(recorder.error, HF_E_UNAVAILABLE);
                else
                        assert_int_equal(recorder.events[0].mod_revision, first);
                watch_recorder_stop(&recorder);
        } while (hit || n < 20);
        expect_sound("watches.db");
        store->ops->free(store);
}

/* No write follows after which it would look again. */
static void test_a_watch_of_the_past_that_cannot_read_ends(void **state) {
        static struct watch_recorder recorder;
        int n = 0;
        bool hit;

        start("past.db");
        do {
                write_a();
                uint64_t first = known_revision;
                write_a();
                arm(n++, SQLITE_IOERR);
                assert_int_equal(watch_recorder_start(&recorder, store, "/a", "/b", first), 0);
                watch_recorder_await(&recorder, 2);
                hit = disarm();
                if (recorder.ended)
                        assert_int_equal(recorder.error, HF_E_UNAVAILABLE);
                else
                        assert_int_equal(recorder.events[0].mod_revision, first);
                watch_recorder_stop(&recorder);
        } while (hit || n < 20);
        expect_sound("past.db");
        store->ops->free(store);
}

static void test_a_file_that_cannot_be_read_is_not_opened(void **state) {
        int n = 0, r;

        start("opened.db");
        store->ops->free(store);
        do {
                struct hf_status status = {0};
                arm(n++, SQLITE_IOERR);
                r = open_store("opened.db", &status);
                (void)disarm();
                if (r == 0)
                        break;
                assert_int_equal(r, -EIO);
                assert_non_null(strstr(status.message, "opened.db cannot be used: "));
        } while (true);
        assert_true(n > 2);
        expect_sound("opened.db");
        store->ops->free(store);
}

/* A new file needs a random number. The reason is not one of SQLite's. */
static void test_a_missing_random_number_is_named(void **state) {
        struct hf_status status = {0};

        has_no_random = true;
        int r = open_store("random.db", &status);
        has_no_random = false;
        assert_int_equal(r, -EIO);
        assert_non_null(
                strstr(status.message, "random.db cannot be used: there are no random numbers"));
        assert_int_equal(open_store("random.db", &status), 0);
        store->ops->free(store);
}

/* Different failures have different errors: a full disk, a damaged file, and so on. */
static void test_the_errors_of_sqlite_are_told_apart(void **state) {
        static const struct {
                int code, error, cause;
        } cases[] = {{SQLITE_BUSY, HF_E_UNAVAILABLE, 0}, {SQLITE_LOCKED, HF_E_UNAVAILABLE, 0},
                     {SQLITE_FULL, -ENOSPC, 0},          {SQLITE_NOMEM, -ENOMEM, 0},
                     {SQLITE_READONLY, -EROFS, 0},       {SQLITE_NOTADB, -EBADMSG, 0},
                     {SQLITE_CORRUPT, -EBADMSG, 0},      {SQLITE_IOERR, -EIO, 0},
                     {SQLITE_IOERR_READ, -EIO, 0},       {SQLITE_IOERR, -EIO, EIO},
                     {SQLITE_IOERR, -ENOSPC, ENOSPC},    {SQLITE_ERROR, -EIO, 0}};
        struct store_reply reply;

        start("errors.db");
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                atomic_store(&cause, cases[i].cause);
                do { /* until it is not the watcher that fails */
                        arm(0, cases[i].code);
                        int r = store_client_get(store, "/a", &reply);
                        if (r != 0)
                                assert_int_equal(r, cases[i].error);
                        if (r != 0)
                                assert_int_equal(strncmp(reply.status.message,
                                                         "the store's file: ", 18),
                                                 0);
                        store_reply_deinit(&reply);
                        if (r != 0)
                                break;
                } while (disarm());
        }
        (void)disarm();
        atomic_store(&cause, 0);
        expect_sound("errors.db");
        store->ops->free(store);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_read_that_fails_returns_nothing),
                cmocka_unit_test(test_a_statement_that_cannot_be_prepared_is_an_error),
                cmocka_unit_test(test_a_write_that_fails_is_not_done),
                cmocka_unit_test(test_a_compaction_that_fails_can_be_repeated),
                cmocka_unit_test(test_a_watch_that_cannot_read_ends),
                cmocka_unit_test(test_a_watch_of_the_past_that_cannot_read_ends),
                cmocka_unit_test(test_a_file_that_cannot_be_read_is_not_opened),
                cmocka_unit_test(test_a_missing_random_number_is_named),
                cmocka_unit_test(test_the_errors_of_sqlite_are_told_apart),
        };
        return cmocka_run_group_tests(tests, set_up, tear_down);
}
