/* SPDX-License-Identifier: Apache-2.0 */
/* Proofs of death by lock files (leader/holder_lock.h), with real processes. */
#undef NDEBUG
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "count_descriptors.h"
#include "lock_file_process.h"

static struct fixture {
        char dir[64], own[96], other[96];
        struct hf__holder_lock *lock;
        char process[HF__HOLDER_PROCESS_MAX]; /* the description of the other process */
        pid_t pid;
} f;

static long file_system; /* the type that the kernel reports; 0 = the real one */

int __real_fstatfs64(int fd, struct statfs *ret);
int __wrap_fstatfs64(int fd, struct statfs *ret);
int __wrap_fstatfs64(int fd, struct statfs *ret) {
        int r = __real_fstatfs64(fd, ret);

        if (file_system)
                ret->f_type = file_system;
        return r;
}

static void start_other(bool with_child) {
        f.pid = lock_file_process_start(f.other, with_child, f.process);
}

static int set_up(void **state) {
        memset(&f, 0, sizeof f);
        strcpy(f.dir, "/dev/shm/holder-lock-XXXXXX");
        assert_non_null(mkdtemp(f.dir));
        (void)snprintf(f.own, sizeof f.own, "%s/own.lock", f.dir);
        (void)snprintf(f.other, sizeof f.other, "%s/other.lock", f.dir);
        assert_int_equal(hf__holder_lock_new(f.own, &f.lock, NULL), 0);
        return 0;
}

static int tear_down(void **state) {
        if (f.pid > 0) {
                (void)kill(-f.pid, SIGKILL);
                (void)waitpid(f.pid, NULL, 0);
        }
        hf__holder_lock_free(f.lock);
        (void)unlink(f.own);
        (void)unlink(f.other);
        (void)rmdir(f.dir);
        return 0;
}

static void kill_other(void) {
        lock_file_process_kill(f.pid);
        f.pid = 0;
}

static bool is_dead(void) { return hf__holder_lock_is_dead(f.lock, f.process); }

static void test_only_the_death_of_a_process_is_a_death(void **state) {
        int status;

        start_other(false);
        assert_false(is_dead());
        assert_int_equal(kill(f.pid, SIGSTOP), 0);
        assert_int_equal(waitpid(f.pid, &status, WUNTRACED), f.pid);
        assert_true(WIFSTOPPED(status));
        assert_false(is_dead());
        kill_other();
        assert_true(is_dead());
}

static void test_a_child_that_was_forked_counts(void **state) {
        /* so that the child becomes ours when its parent is dead, and can be waited for */
        assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
        start_other(true);
        pid_t group = f.pid;
        kill_other();
        assert_false(is_dead());
        assert_int_equal(kill(-group, SIGKILL), 0);
        assert_true(waitpid(-group, NULL, 0) > 0);
        assert_true(is_dead());
        assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

static void test_a_file_that_was_deleted_or_replaced_proves_nothing(void **state) {
        start_other(false);
        assert_int_equal(unlink(f.other), 0);
        assert_false(is_dead());
        int fd = open(f.other, O_CREAT | O_RDWR | O_EXCL, 0600);
        assert_true(fd >= 0);
        close(fd);
        assert_false(is_dead());
        kill_other();
        assert_false(is_dead());
}

static void test_a_link_and_a_pipe_in_its_place_prove_nothing(void **state) {
        char moved[96];

        start_other(false);
        kill_other();
        assert_true(is_dead());
        (void)snprintf(moved, sizeof moved, "%s/moved", f.dir);
        assert_int_equal(rename(f.other, moved), 0);
        assert_int_equal(symlink(moved, f.other), 0);
        assert_false(is_dead());
        assert_int_equal(unlink(f.other), 0);
        assert_int_equal(mkfifo(f.other, 0600), 0);
        assert_false(is_dead());
        assert_int_equal(unlink(moved), 0);
}

/* Changes one character of the nth part of the description, and expects that it proves nothing. */
static void expect_nothing_after_a_change(size_t at) {
        char changed[sizeof f.process];

        memcpy(changed, f.process, sizeof changed);
        changed[at] = changed[at] == '1' ? '2' : '1';
        assert_false(hf__holder_lock_is_dead(f.lock, changed));
}

static void test_a_process_of_another_place_is_unknown(void **state) {
        start_other(false);
        kill_other();
        assert_true(is_dead());
        const char *pidns = strchr(f.process, '/'), *root = strchr(pidns + 1, '/'),
                   *pid = strchr(root + 1, ' '), *file = strchr(pid + 1, ' '),
                   *inode = strchr(file, ':'), *created = strchr(inode + 1, ':');
        expect_nothing_after_a_change(0); /* the boot id */
        expect_nothing_after_a_change((size_t)(pidns + 1 - f.process));
        expect_nothing_after_a_change((size_t)(root + 1 - f.process));
        expect_nothing_after_a_change((size_t)(file + 1 - f.process)); /* the device */
        expect_nothing_after_a_change((size_t)(inode + 1 - f.process));
        expect_nothing_after_a_change((size_t)(created + 1 - f.process));
        static const char *const malformed[] = {
                "", "x", "a b c d", "1 2 3 4 5", "../../etc/passwd 1 2 3",
        };
        for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++)
                assert_false(hf__holder_lock_is_dead(f.lock, malformed[i]));
        strcpy(strrchr(f.process, ' ') + 1, "../x");
        assert_false(is_dead());
}

static void test_the_owner_of_a_file_knows_that_its_previous_owner_is_dead(void **state) {
        struct hf__holder_lock *lock = NULL;
        struct hf_status status = {0};

        start_other(false);
        assert_int_equal(hf__holder_lock_new(f.other, &lock, &status), HF_E_BUSY);
        assert_non_null(strstr(status.message, "other.lock"));
        kill_other();
        assert_int_equal(hf__holder_lock_new(f.other, &lock, &status), 0);
        assert_false(is_dead()); /* the file is locked again, but by a stranger */
        assert_true(hf__holder_lock_is_dead(lock, f.process));
        assert_false(hf__holder_lock_is_dead(lock, hf__holder_lock_process(lock)));
        hf__holder_lock_free(lock);
}

static void test_a_name_alone_is_a_file_of_the_working_directory(void **state) {
        struct hf__holder_lock *lock = NULL;
        char directory[512], path[128];

        assert_non_null(getcwd(directory, sizeof directory));
        assert_int_equal(chdir(f.dir), 0);
        assert_int_equal(hf__holder_lock_new("alone.lock", &lock, NULL), 0);
        assert_int_equal(chdir(directory), 0);
        assert_non_null(lock);
        hf__holder_lock_free(lock);
        (void)snprintf(path, sizeof path, "%s/alone.lock", f.dir);
        assert_int_equal(unlink(path), 0);
}

static void test_bad_paths_are_refused(void **state) {
        struct hf__holder_lock *lock = NULL;
        struct hf_status status = {0};
        static const struct {
                const char *path, *message;
        } bad[] = {{"/dev/shm/.hidden", "must not begin with a dot"},
                   {"/dev/shm/", "must have a name of 1 to "},
                   {"/dev/shm/a b", "letters, digits, dots, dashes and underscores"},
                   {"/proc/self/status", "the lock file /proc/self/status"}};

        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
                status = (struct hf_status){0};
                assert_int_equal(hf__holder_lock_new(bad[i].path, &lock, &status), HF_E_INVALID);
                assert_non_null(strstr(status.message, bad[i].message));
                assert_null(lock);
        }
}

/* A pipe has no lasting creation time, and a lock on it has no meaning. */
static void test_a_pipe_is_no_lock_file(void **state) {
        struct hf__holder_lock *lock = NULL;
        struct hf_status status = {0};

        assert_int_equal(mkfifo(f.other, 0600), 0);
        assert_int_equal(hf__holder_lock_new(f.other, &lock, &status), HF_E_INVALID);
        assert_non_null(strstr(status.message, "must be a regular file on a local file system"));
        assert_null(lock);
}

/* Another machine, or another kernel on this one, may hold the lock of a file on NFS. */
static void test_a_file_of_a_network_is_no_lock_file(void **state) {
        struct hf__holder_lock *lock = NULL;
        struct hf_status status = {0};

        start_other(false);
        kill_other();
        file_system = 0x6969;
        assert_int_equal(hf__holder_lock_new(f.other, &lock, &status), HF_E_INVALID);
        assert_non_null(strstr(status.message, "must be a regular file on a local file system"));
        assert_null(lock);
        assert_false(is_dead());
        file_system = 0;
        assert_true(is_dead());
}

static void test_nothing_stays_open(void **state) {
        hf__holder_lock_free(f.lock);
        unsigned n = count_descriptors();
        assert_int_equal(hf__holder_lock_new(f.own, &f.lock, NULL), 0);
        start_other(false);
        assert_false(is_dead());
        f.lock = hf__holder_lock_free(f.lock);
        assert_null(f.lock);
        assert_int_equal(count_descriptors(), n);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_only_the_death_of_a_process_is_a_death, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_a_child_that_was_forked_counts, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(
                        test_a_file_that_was_deleted_or_replaced_proves_nothing, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_link_and_a_pipe_in_its_place_prove_nothing,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_pipe_is_no_lock_file, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_process_of_another_place_is_unknown, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(
                        test_the_owner_of_a_file_knows_that_its_previous_owner_is_dead, set_up,
                        tear_down),
                cmocka_unit_test_setup_teardown(test_a_file_of_a_network_is_no_lock_file, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_nothing_stays_open, set_up, tear_down),
                cmocka_unit_test_setup_teardown(
                        test_a_name_alone_is_a_file_of_the_working_directory, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_bad_paths_are_refused, set_up, tear_down),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
