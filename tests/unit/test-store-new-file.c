/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that appear complete or not at all and replace nothing; and the checks of a file's
 * header before SQLite opens it.
 */
#undef NDEBUG
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "pki_dir.h"
#include "server/storage/new_file.h"
#include "server/storage/sqlite/engine/header.h"

static struct hf_status status;

/* A path in the directory of the test, in one of four static buffers. */
static const char *at(const char *name) {
        static char paths[4][PATH_MAX];
        static unsigned next;
        char *path = paths[next++ % 4];

        (void)snprintf(path, PATH_MAX, "%s/%s", pki_dir, name);
        return path;
}

static void write_file(const char *path, const void *data, size_t n) {
        FILE *file = fopen(path, "w");

        assert_non_null(file);
        assert_int_equal(fwrite(data, 1, n, file), n);
        assert_int_equal(fclose(file), 0);
}

static void expect_text(const char *path, const char *text) {
        char found[64] = "";
        FILE *file = fopen(path, "r");

        assert_non_null(file);
        (void)fread(found, 1, sizeof found - 1, file);
        (void)fclose(file);
        assert_string_equal(found, text);
}

static void expect_message(int r, int expected, const char *message) {
        assert_int_equal(r, expected);
        assert_int_equal(status.error, expected);
        if (!strstr(status.message, message))
                assert_string_equal(status.message, message);
        status = (struct hf_status){0};
}

/* The linker redirects renameat2 here. */
static int rename_error; /* what it fails with; 0 = it does not */
int __real_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags);
int __wrap_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags);
int __wrap_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags) {
        if (rename_error == 0)
                return __real_renameat2(from_fd, from, to_fd, to, flags);
        errno = rename_error;
        return -1;
}

/* And fsync here. */
static ino_t synced[2]; /* what was synced last, and what before it */
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd) {
        struct stat info;

        assert_int_equal(fstat(fd, &info), 0);
        synced[1] = synced[0];
        synced[0] = info.st_ino;
        return __real_fsync(fd);
}

/* ---- new files ---- */

static void test_a_new_file_is_private_and_appears_at_the_end(void **state) {
        char temporary[PATH_MAX];
        struct stat info;

        assert_int_equal(hfd_new_file_begin(at("new"), temporary, &status), 0);
        assert_ptr_equal(strstr(temporary, at("new.")), temporary);
        assert_int_equal(strlen(temporary), strlen(at("new.XXXXXX")));
        assert_int_equal(stat(temporary, &info), 0);
        assert_int_equal(info.st_mode & 0777, 0600);
        assert_int_equal(info.st_size, 0);
        assert_int_equal(hfd_new_file_check_absent(at("new"), &status), 0);
        write_file(temporary, "x", 1);
        assert_int_equal(hfd_new_file_publish(temporary, at("new"), &status), 0);
        assert_int_equal(access(temporary, F_OK), -1);
        expect_text(at("new"), "x");
        /* A crash of the machine loses neither its content nor its name. */
        assert_true(synced[1] == info.st_ino);
        assert_int_equal(stat(pki_dir, &info), 0);
        assert_true(synced[0] == info.st_ino);
}

static void test_a_file_is_never_replaced(void **state) {
        char temporary[PATH_MAX];

        assert_int_equal(hfd_new_file_begin(at("there"), temporary, &status), 0);
        write_file(at("there"), "old", 3);
        expect_message(hfd_new_file_check_absent(at("there"), &status), HF_E_EXISTS,
                       "there exists: move it away, or choose another name");
        expect_message(hfd_new_file_publish(temporary, at("there"), &status), HF_E_EXISTS,
                       "there cannot be created: File exists");
        expect_text(at("there"), "old");
        assert_int_equal(unlink(temporary), 0);
        temporary[0] = '\0';
        expect_message(hfd_new_file_begin(at("there"), temporary, &status), HF_E_EXISTS,
                       "there exists");
        assert_int_equal(symlink("/nowhere", at("link")), 0); /* a name, too */
        expect_message(hfd_new_file_begin(at("link"), temporary, &status), HF_E_EXISTS,
                       "link exists");
}

/* Not every file system can rename without replacing. */
static void test_a_file_gets_a_second_name_where_it_must(void **state) {
        static const int errors[] = {EINVAL, ENOSYS};
        char temporary[PATH_MAX];

        for (size_t i = 0; i < 2; i++) {
                const char *name = i == 0 ? "second" : "third";
                assert_int_equal(hfd_new_file_begin(at(name), temporary, &status), 0);
                write_file(temporary, "x", 1);
                rename_error = errors[i];
                assert_int_equal(hfd_new_file_publish(temporary, at(name), &status), 0);
                rename_error = 0;
                assert_int_equal(access(temporary, F_OK), -1);
                expect_text(at(name), "x");
                write_file(temporary, "y", 1);
                rename_error = errors[i];
                expect_message(hfd_new_file_publish(temporary, at(name), &status), HF_E_EXISTS,
                               "cannot be created: File exists");
                rename_error = 0;
                expect_text(at(name), "x");
                assert_int_equal(unlink(temporary), 0);
        }
        assert_int_equal(hfd_new_file_begin(at("fourth"), temporary, &status), 0);
        rename_error = EPERM;
        expect_message(hfd_new_file_publish(temporary, at("fourth"), &status), -EPERM,
                       "cannot be created: Operation not permitted");
        rename_error = 0;
        assert_int_equal(access(at("fourth"), F_OK), -1);
        assert_int_equal(unlink(temporary), 0);
}

static void test_what_cannot_be_made_is_said(void **state) {
        char temporary[PATH_MAX], path[PATH_MAX];

        memset(path, 'p', sizeof path);
        path[PATH_MAX - 7] = '\0'; /* with the suffix it has PATH_MAX bytes */
        expect_message(hfd_new_file_begin(path, temporary, &status), HF_E_TOO_LARGE,
                       "the path is too long");
        path[PATH_MAX - 8] = '\0';
        expect_message(hfd_new_file_begin(path, temporary, &status), -ENAMETOOLONG, "ppp");
        expect_message(hfd_new_file_begin(at("missing/new"), temporary, &status), -ENOENT,
                       "missing/new cannot be created: No such file or directory");
        write_file(at("file"), "", 0);
        expect_message(hfd_new_file_check_absent(at("file/new"), &status), -ENOTDIR,
                       "file/new cannot be looked at: Not a directory");
        expect_message(hfd_new_file_publish(at("gone"), at("new2"), &status), -ENOENT,
                       "gone cannot be synced: No such file or directory");
        expect_message(hfd_new_file_publish(at("file"), at("missing/new2"), &status), -ENOENT,
                       "missing/new2 cannot be created: No such file or directory");
}

/* ---- headers ---- */

static int check(const void *data, size_t n) {
        write_file(at("store"), data, n);
        return hfd_sqlite_check_header(at("store"), &status);
}

static void put_u32(unsigned char *bytes, uint32_t number) {
        for (int i = 0; i < 4; i++)
                bytes[i] = (unsigned char)(number >> (24 - 8 * i));
}

static void test_a_header_shows_whose_file_it_is(void **state) {
        unsigned char header[101] = "SQLite format 3";

        assert_int_equal(check("", 0), 0); /* it becomes a store */
        expect_message(check(header, 99), HF_E_INVALID, "store is not a file of SQLite");
        put_u32(header + 28, 1); /* its tables may still be in the WAL */
        assert_int_equal(check(header, 100), 0);
        put_u32(header + 28, 2);
        expect_message(check(header, 100), HF_E_INVALID,
                       "store is a database of another program, not a store of holdfastd");
        put_u32(header + 28, 0);
        put_u32(header + 60, 1);
        expect_message(check(header, 100), HF_E_INVALID, "a database of another program");
        put_u32(header + 60, 0);
        put_u32(header + 68, 1);
        expect_message(check(header, 100), HF_E_INVALID, "a database of another program");
        put_u32(header + 28, 9);
        put_u32(header + 68, HFD_SQLITE_APPLICATION_ID);
        assert_int_equal(check(header, 101), 0);
        put_u32(header + 60, HFD_SQLITE_SCHEMA_VERSION);
        assert_int_equal(check(header, 100), 0);
        put_u32(header + 60, HFD_SQLITE_SCHEMA_VERSION + 1);
        expect_message(check(header, 100), HF_E_INVALID,
                       "store was written by a later version of holdfastd (schema ");
        header[14] = '4';
        expect_message(check(header, 100), HF_E_INVALID, "store is not a file of SQLite");
        header[14] = '3';
        header[15] = 'x'; /* the NUL belongs to it */
        expect_message(check(header, 100), HF_E_INVALID, "store is not a file of SQLite");
}

static void test_a_missing_file_needs_a_directory(void **state) {
        assert_int_equal(hfd_sqlite_check_header(at("none"), &status), 0);
        expect_message(hfd_sqlite_check_header(at("missing/none"), &status), HF_E_INVALID,
                       "missing/none cannot be created: No such file or directory");
        write_file(at("plain"), "", 0);
        expect_message(hfd_sqlite_check_header(at("plain/none"), &status), HF_E_INVALID,
                       "plain/none cannot be opened: Not a directory");
        assert_int_equal(hfd_sqlite_check_place(at("none"), &status), 0);
        assert_int_equal(hfd_sqlite_check_place(at("missing/none"), &status), 0);
}

static void test_a_link_to_nothing_is_not_a_missing_file(void **state) {
        assert_int_equal(symlink("nothing", at("dangling")), 0);
        expect_message(hfd_sqlite_check_header(at("dangling"), &status), HF_E_INVALID,
                       "dangling cannot be opened: No such file or directory");
}

/* A directory is left to SQLite, which names it. */
static void test_only_a_regular_file_can_be_a_store(void **state) {
        assert_int_equal(mkfifo(at("pipe"), 0600), 0);
        expect_message(hfd_sqlite_check_place(at("pipe"), &status), HF_E_INVALID,
                       "pipe cannot be opened: it is not a regular file");
        expect_message(hfd_sqlite_check_header(at("pipe"), &status), HF_E_INVALID,
                       "pipe cannot be opened: it is not a regular file");
        write_file(at("regular"), "x", 1);
        assert_int_equal(hfd_sqlite_check_place(at("regular"), &status), 0);
        assert_int_equal(hfd_sqlite_check_place(at("."), &status), 0);
}

static void test_numbers_are_compared(void **state) {
        assert_int_equal(hfd_sqlite_check_numbers(HFD_SQLITE_APPLICATION_ID,
                                                  HFD_SQLITE_SCHEMA_VERSION, "f", &status),
                         0);
        expect_message(hfd_sqlite_check_numbers(HFD_SQLITE_APPLICATION_ID + 1, 0, "f", &status),
                       HF_E_INVALID, "f is a database of another program");
        expect_message(hfd_sqlite_check_numbers(HFD_SQLITE_APPLICATION_ID,
                                                HFD_SQLITE_SCHEMA_VERSION + 1, "f", &status),
                       HF_E_INVALID, "f was written by a later version");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_new_file_is_private_and_appears_at_the_end),
                cmocka_unit_test(test_a_file_is_never_replaced),
                cmocka_unit_test(test_a_file_gets_a_second_name_where_it_must),
                cmocka_unit_test(test_what_cannot_be_made_is_said),
                cmocka_unit_test(test_a_header_shows_whose_file_it_is),
                cmocka_unit_test(test_a_missing_file_needs_a_directory),
                cmocka_unit_test(test_a_link_to_nothing_is_not_a_missing_file),
                cmocka_unit_test(test_only_a_regular_file_can_be_a_store),
                cmocka_unit_test(test_numbers_are_compared),
        };
        return cmocka_run_group_tests(tests, pki_dir_make, pki_dir_remove);
}
