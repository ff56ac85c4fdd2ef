/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A machine without SQLite, or with one that is too old: whatever needs a store's file says so, and
 * touches no file. A process looks for the library once, so each attempt is a process of its own.
 */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/storage/sqlite/files/backup.h"
#include "server/storage/sqlite/files/file_check.h"
#include "server/storage/sqlite/files/shrink.h"
#include "server/storage/sqlite/store.h"
#include "sqlite_fixture.h"

static const struct hf_host host = {.size = sizeof(struct hf_host)};
static bool has_no_library;
static const char *missing_function; /* NULL = none */
static int n_closed;

void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);
void *__real_dlsym(void *handle, const char *name);
void *__wrap_dlsym(void *handle, const char *name);
int __real_dlclose(void *handle);
int __wrap_dlclose(void *handle);

void *__wrap_dlopen(const char *name, int flags) {
        return has_no_library && strstr(name, "sqlite") ? NULL : __real_dlopen(name, flags);
}

void *__wrap_dlsym(void *handle, const char *name) {
        return missing_function && strcmp(name, missing_function) == 0 ? NULL
                                                                       : __real_dlsym(handle, name);
}

int __wrap_dlclose(void *handle) {
        n_closed++;
        return __real_dlclose(handle);
}

static int open_store(const char *path, struct hf_status *status) {
        struct hfd_store *store = NULL;
        int r = hfd_sqlite_store_new(&host, path, true, &store, status);

        if (store)
                store->ops->free(store);
        return r;
}

/* Nothing is said about the file: it may be good, and must not be restored from a backup. */
static int check(const char *path, struct hf_status *status) {
        struct hfd_sqlite_faults faults = {0};
        int r = hfd_sqlite_check(path, &faults, status);

        return faults.n == 0 ? r : -EIO;
}

static int shrink(const char *path, struct hf_status *status) {
        struct hfd_sqlite_shrunk shrunk;

        return hfd_sqlite_shrink(path, &shrunk, status);
}

static int backup(const char *path, struct hf_status *status) {
        return hfd_sqlite_backup(path, sqlite_fixture_path("target.db"), status);
}

static int (*const attempts[])(const char *path, struct hf_status *status) = {open_store, check,
                                                                              shrink, backup};

/* In another process: whether the attempt says what is missing. */
static bool says_what_is_missing(size_t i) {
        int status;
        pid_t child = fork();

        assert_true(child >= 0);
        if (child == 0) {
                struct hf_status said = {0};
                int r = attempts[i](sqlite_fixture_path("a.db"), &said);
                bool is_named = strstr(said.message, "needs libsqlite3.so.0") != NULL;
                bool is_closed = n_closed == (has_no_library ? 0 : 1);
                _exit(r == HF_E_INVALID && is_named && is_closed ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void expect_refusals(void) {
        for (size_t i = 0; i < sizeof attempts / sizeof attempts[0]; i++)
                assert_true(says_what_is_missing(i));
        assert_int_equal(access(sqlite_fixture_path("target.db"), F_OK), -1);
        assert_int_equal(access(sqlite_fixture_path("a.db-notify"), F_OK), -1);
}

static void test_a_missing_library_is_named(void **state) {
        (void)sqlite_fixture_sql("a.db", "CREATE TABLE t (x)");
        has_no_library = true;
        expect_refusals();
        has_no_library = false;
}

static void test_an_old_library_is_refused(void **state) {
        static const char *const functions[] = {"sqlite3_bind_blob", "sqlite3_total_changes64",
                                                "sqlite3_vfs_register"};

        for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
                missing_function = functions[i];
                expect_refusals();
        }
        missing_function = NULL;
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_missing_library_is_named),
                cmocka_unit_test(test_an_old_library_is_refused),
        };
        return cmocka_run_group_tests(tests, sqlite_fixture_setup, sqlite_fixture_teardown);
}
