/* SPDX-License-Identifier: Apache-2.0 */
/* Several files that are written together: after a failure none of the later ones is written,
 * and no temporary file is left. test-auth-pki.c kills a process at each step of it. */
#undef NDEBUG
#include <assert.h>
#include <dirent.h>
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
#include "server/auth/write_file.h"

static char dir[] = "/tmp/holdfast-write-XXXXXX";
static char paths[3][64];

static int make_dir(void **state) {
        strcpy(dir + strlen(dir) - 6, "XXXXXX");
        assert(mkdtemp(dir));
        for (int i = 0; i < 3; i++)
                (void)snprintf(paths[i], sizeof paths[i], "%s/%c", dir, 'a' + i);
        return 0;
}

static int remove_dir(void **state) {
        for (int i = 0; i < 3; i++)
                if (unlink(paths[i]) != 0)
                        (void)rmdir(paths[i]);
        return rmdir(dir); /* fails if anything else is left */
}

static void assert_file(const char *path, const char *text, mode_t mode) {
        struct stat st;
        char *found = NULL;

        assert_int_equal(hfd_read_file(path, &found, NULL), 0);
        assert_string_equal(found, text);
        free(found);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, mode);
}

static size_t count_files(void) {
        DIR *entries = opendir(dir);
        size_t n = 0;

        assert(entries);
        for (struct dirent *entry; (entry = readdir(entries)) != NULL;)
                n += entry->d_name[0] != '.';
        (void)closedir(entries);
        return n;
}

static void test_files_are_written_and_replaced_together(void **state) {
        struct hfd_new_file files[] = {{paths[0], "one", 0600},
                                       {paths[1], "", 0644},
                                       {paths[2], "three", 0640}};

        assert_int_equal(hfd_write_files(files, 0, NULL), 0);
        assert_int_equal(count_files(), 0);
        assert_int_equal(hfd_write_file(paths[2], "old", 0600, NULL), 0);
        assert_int_equal(hfd_write_files(files, 3, NULL), 0);
        assert_file(paths[0], "one", 0600);
        assert_file(paths[1], "", 0644);
        assert_file(paths[2], "three", 0640);
        assert_int_equal(count_files(), 3);
}

/* The second one cannot be moved to its place. */
static void test_a_file_that_cannot_be_replaced_is_named(void **state) {
        const struct hfd_new_file files[] = {{paths[0], "one", 0600},
                                             {paths[1], "two", 0600},
                                             {paths[2], "three", 0600}};
        struct hf_status status = {0};

        assert_int_equal(mkdir(paths[1], 0700), 0);
        assert_int_equal(hfd_write_files(files, 3, &status), -EISDIR);
        assert_non_null(strstr(status.message, paths[1]));
        assert_file(paths[0], "one", 0600);
        assert_int_equal(count_files(), 2);
}

/* The last one cannot be made, so none is moved to its place. */
static void test_a_file_that_cannot_be_made_leaves_the_others_as_they_were(void **state) {
        char missing[96];
        const struct hfd_new_file files[] = {{paths[0], "new", 0600}, {missing, "two", 0600}};
        struct hf_status status = {0};

        (void)snprintf(missing, sizeof missing, "%s/missing/b", dir);
        assert_int_equal(hfd_write_file(paths[0], "old", 0600, NULL), 0);
        assert_int_equal(hfd_write_files(files, 2, &status), -ENOENT);
        assert_non_null(strstr(status.message, missing));
        assert_file(paths[0], "old", 0600);
        assert_int_equal(count_files(), 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_files_are_written_and_replaced_together,
                                                make_dir, remove_dir),
                cmocka_unit_test_setup_teardown(test_a_file_that_cannot_be_replaced_is_named,
                                                make_dir, remove_dir),
                cmocka_unit_test_setup_teardown(
                        test_a_file_that_cannot_be_made_leaves_the_others_as_they_were, make_dir,
                        remove_dir),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
