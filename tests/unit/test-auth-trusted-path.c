/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files and directories are trusted. Files of another owner can be made by root only, so
 * other users skip these tests.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
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

#include "server/auth/files.h"
#include "server/auth/trusted_path.h"

#define STRANGER 54321

static char top[64];

/* The path of an entry in the test's directory; valid until the eighth next call. */
static const char *in(const char *name) {
        static char paths[8][256];
        static unsigned next;
        char *path = paths[next++ % 8];
        snprintf(path, sizeof paths[0], "%s/%s", top, name);
        return path;
}

static int make_top(void **state) {
        strcpy(top, "/tmp/trusted-XXXXXX"); /* others may write to /tmp, but it is sticky */
        return mkdtemp(top) && mkdir(in("dir"), 0700) == 0 ? 0 : -1;
}

static int remove_top(void **state) {
        char command[128];
        snprintf(command, sizeof command, "rm -rf '%s'", top);
        return system(command);
}

static void put(const char *name, mode_t mode) {
        FILE *file = fopen(in(name), "w");
        assert_non_null(file);
        assert_true(fputs("text", file) >= 0 && fclose(file) == 0);
        assert_int_equal(chmod(in(name), mode), 0);
}

static void expect_read(const char *name) {
        struct hf_status status = {0};
        char *text = NULL;
        if (hfd_read_file(in(name), &text, &status) != 0)
                fail_msg("%s", status.message);
        assert_string_equal(text, "text");
        free(text);
}

/* The message must name the path that is to be corrected, and the command for it. */
static void expect_message(const struct hf_status *status, const char *fault, const char *command,
                           const char *at) {
        char end[512];
        snprintf(end, sizeof end, ": %s %s", command, at);
        size_t n = strlen(status->message), n_end = strlen(end);
        if (strncmp(status->message, at, strlen(at)) != 0 || !strstr(status->message, fault) ||
            n < n_end || strcmp(status->message + n - n_end, end) != 0)
                fail_msg("expected %s ... %s%s, got %s", at, fault, end, status->message);
}

static void expect_refused(const char *name, const char *fault, const char *command,
                           const char *at) {
        struct hf_status status = {0};
        char *text = NULL;
        assert_int_equal(hfd_read_file(in(name), &text, &status), HF_E_INVALID);
        assert_null(text);
        expect_message(&status, fault, command, at);
}

static void test_a_file_that_others_may_write_is_refused(void **state) {
        static const mode_t good[] = {0400, 0600, 0640, 0644}, bad[] = {0620, 0602, 0666, 0777};
        for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
                put("dir/file", good[i]);
                expect_read("dir/file");
        }
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
                put("dir/file", bad[i]);
                expect_refused("dir/file", "can be written by other users", "chmod go-w",
                               in("dir/file"));
        }
}

static void test_a_parent_that_others_may_write_is_refused_unless_sticky(void **state) {
        assert_int_equal(mkdir(in("dir/below"), 0700), 0);
        put("dir/below/file", 0600);
        static const mode_t bad[] = {0770, 0707, 0777};
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
                assert_int_equal(chmod(in("dir"), bad[i]), 0);
                expect_refused("dir/below/file", "can be written by other users", "chmod go-w",
                               in("dir"));
        }
        assert_int_equal(chmod(in("dir"), 01777), 0);
        expect_read("dir/below/file");
}

static void test_another_owner_is_refused(void **state) {
        char command[64];
        snprintf(command, sizeof command, "chown %d", (int)geteuid());
        if (geteuid() != 0)
                skip();
        put("dir/file", 0600);
        assert_int_equal(chown(in("dir/file"), STRANGER, 0), 0);
        expect_refused("dir/file", "belongs to user 54321", command, in("dir/file"));
        put("dir/good", 0600);
        assert_int_equal(chown(in("dir"), STRANGER, 0), 0);
        expect_refused("dir/good", "belongs to user 54321", command, in("dir"));
        assert_int_equal(chown(in("dir"), 0, 0), 0);
        expect_read("dir/good");
        /* In a sticky directory a stranger can create links, but cannot replace those of others. */
        assert_int_equal(chmod(in("dir"), 01777), 0);
        assert_int_equal(symlink("good", in("dir/link")), 0);
        expect_read("dir/link");
        assert_int_equal(lchown(in("dir/link"), STRANGER, 0), 0);
        snprintf(command, sizeof command, "chown -h %d", (int)geteuid());
        expect_refused("dir/link", "belongs to user 54321", command, in("dir/link"));
}

/* Kubernetes mounts Secrets like this: file -> ..data/file, ..data -> a directory. */
static void test_the_target_of_a_link_counts_and_every_directory_on_the_way(void **state) {
        assert_int_equal(mkdir(in("open"), 0700), 0);
        put("open/file", 0600);
        assert_int_equal(symlink("../open", in("dir/..data")), 0);
        assert_int_equal(symlink("..data/file", in("dir/file")), 0);
        assert_int_equal(symlink(in("dir/file"), in("dir/absolute")), 0);
        expect_read("dir/file");
        expect_read("dir/absolute");
        assert_int_equal(chmod(in("open/file"), 0666), 0);
        expect_refused("dir/absolute", "can be written", "chmod go-w", in("open/file"));
        assert_int_equal(chmod(in("open/file"), 0600), 0);
        assert_int_equal(chmod(in("open"), 0777), 0);
        expect_refused("dir/absolute", "can be written", "chmod go-w", in("open"));
}

static void test_links_in_a_circle_end(void **state) {
        struct hf_status status = {0};
        char *text = NULL;
        assert_int_equal(symlink("b", in("dir/a")), 0);
        assert_int_equal(symlink("a", in("dir/b")), 0);
        assert_int_equal(hfd_read_file(in("dir/a"), &text, &status), -ELOOP);
        assert_non_null(strstr(status.message, in("dir/a")));
}

static void test_a_directory_is_made_below_trusted_ones_only(void **state) {
        struct hf_status status = {0};
        struct stat st;
        assert_int_equal(hfd_make_dir(in("dir/x//y/./z/../z/"), &status), 0);
        assert_int_equal(stat(in("dir/x/y/z"), &st), 0);
        assert_int_equal(st.st_mode & 07777, 0700);
        assert_int_equal(chmod(in("dir"), 0777), 0);
        assert_int_equal(hfd_make_dir(in("dir/new"), &status), HF_E_INVALID);
        expect_message(&status, "can be written", "chmod go-w", in("dir"));
        assert_int_equal(stat(in("dir/new"), &st), -1);
        /* A new directory below a sticky one is accepted. The data directory itself must not be
         * writable by others, sticky or not. */
        assert_int_equal(chmod(in("dir"), 01777), 0);
        assert_int_equal(hfd_make_dir(in("dir/new"), &status), 0);
        assert_int_equal(hfd_make_dir(in("dir"), &status), HF_E_INVALID);
        expect_message(&status, "can be written", "chmod go-w", in("dir"));
        put("dir/file", 0600);
        assert_int_equal(hfd_make_dir(in("dir/file"), &status), -ENOTDIR);
}

static void test_relative_paths_begin_in_the_working_directory(void **state) {
        char before[256], *text = NULL;
        struct hf_status status = {0};
        assert_non_null(getcwd(before, sizeof before));
        put("dir/file", 0600);
        assert_int_equal(chdir(in("dir")), 0);
        assert_int_equal(hfd_read_file("../dir/./file", &text, &status), 0);
        free(text);
        assert_int_equal(chmod(in("dir"), 0777), 0);
        assert_int_equal(hfd_read_file("file", &text, &status), HF_E_INVALID);
        expect_message(&status, "can be written", "chmod go-w", in("dir"));
        assert_int_equal(hfd_read_file("", &text, &status), HF_E_NOT_FOUND);
        assert_int_equal(chdir(before), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_a_file_that_others_may_write_is_refused,
                                                make_top, remove_top),
                cmocka_unit_test_setup_teardown(
                        test_a_parent_that_others_may_write_is_refused_unless_sticky, make_top,
                        remove_top),
                cmocka_unit_test_setup_teardown(test_another_owner_is_refused, make_top,
                                                remove_top),
                cmocka_unit_test_setup_teardown(
                        test_the_target_of_a_link_counts_and_every_directory_on_the_way, make_top,
                        remove_top),
                cmocka_unit_test_setup_teardown(test_links_in_a_circle_end, make_top, remove_top),
                cmocka_unit_test_setup_teardown(test_a_directory_is_made_below_trusted_ones_only,
                                                make_top, remove_top),
                cmocka_unit_test_setup_teardown(test_relative_paths_begin_in_the_working_directory,
                                                make_top, remove_top),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
