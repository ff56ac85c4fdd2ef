/* SPDX-License-Identifier: Apache-2.0 */
/* The run file of an instance: its lock shows whether the instance is alive, and its content
 * whether it leads. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/process/runfile.h"

static const struct hf_fence leads = {.ns = "kube-system",
                                      .name = "holdfast",
                                      .term = UINT64_C(9223372036854775809),
                                      .identity = "host_a;1"};

static char dir[64];

static int make_dir(void **state) {
        strcpy(dir, "/tmp/runfile-XXXXXX");
        return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state) {
        char command[128];
        snprintf(command, sizeof command, "rm -rf '%s'", dir);
        return system(command);
}

/*
 * Starts a process that locks and writes the file of `instance`, reports that through a pipe, and
 * lives until it is killed.
 */
static pid_t spawn_holder(const char *instance, const struct hf_fence *record) {
        int ready[2];
        char byte = 0;
        assert(pipe(ready) == 0);
        pid_t pid = fork();
        assert(pid >= 0);
        if (pid == 0) {
                struct hfd_runfile *runfile = NULL;
                if (hfd_runfile_lock(dir, instance, &runfile, NULL) != 0 ||
                    hfd_runfile_write(runfile, record) != 0)
                        _exit(1);
                if (write(ready[1], "x", 1) != 1)
                        _exit(1);
                for (;;)
                        pause();
        }
        close(ready[1]);
        assert(read(ready[0], &byte, 1) == 1);
        close(ready[0]);
        return pid;
}

static void kill_holder(pid_t pid) {
        assert(kill(pid, SIGKILL) == 0);
        assert(waitpid(pid, NULL, 0) == pid);
}

static void test_the_record_of_a_running_instance_is_locked(void **state) {
        struct hfd_runfile *runfile = NULL, *second = NULL;
        struct hf_fence found = {0};
        struct hf_status status = {0};
        char pid_text[32];
        pid_t pid = spawn_holder("a", &leads);
        snprintf(pid_text, sizeof pid_text, "process %d", (int)pid);

        assert_int_equal(hfd_runfile_lock(dir, "a", &runfile, &status), HF_E_BUSY);
        assert_non_null(strstr(status.message, "/a.lock"));
        assert_non_null(strstr(status.message, pid_text));
        assert_int_equal(hfd_runfile_read_if_dead(dir, "a", &found, &runfile, &status), HF_E_BUSY);
        assert_non_null(strstr(status.message, pid_text));

        kill_holder(pid);
        assert_int_equal(hfd_runfile_read_if_dead(dir, "a", &found, &runfile, &status), 0);
        assert_string_equal(found.ns, leads.ns);
        assert_string_equal(found.name, leads.name);
        assert_string_equal(found.identity, leads.identity);
        assert_true(found.term == leads.term);

        /* While its Lease is being released, no instance can start. */
        assert_int_equal(hfd_runfile_lock(dir, "a", &second, &status), HF_E_BUSY);
        runfile = hfd_runfile_free(runfile);
        assert_int_equal(hfd_runfile_lock(dir, "a", &second, &status), 0);
        hfd_runfile_free(second);
        /* Taking the file empties the record. */
        assert_int_equal(hfd_runfile_read_if_dead(dir, "a", &found, &runfile, &status),
                         HF_E_NOT_FOUND);
}

static void test_instances_have_separate_files(void **state) {
        struct hfd_runfile *runfile = NULL;
        pid_t pid = spawn_holder("a", NULL);
        assert_int_equal(hfd_runfile_lock(dir, "b", &runfile, NULL), 0);
        hfd_runfile_free(runfile);
        kill_holder(pid);
}

/*
 * A child that was forked and executes another program does not keep the lock. The end of the
 * close-on-exec pipe shows when it does.
 */
static void test_the_lock_does_not_survive_exec(void **state) {
        struct hfd_runfile *runfile = NULL;
        int hold[2], executed[2];
        char byte;
        assert(pipe(hold) == 0 && pipe2(executed, O_CLOEXEC) == 0);
        assert_int_equal(hfd_runfile_lock(dir, "a", &runfile, NULL), 0);
        pid_t pid = fork();
        assert(pid >= 0);
        if (pid == 0) {
                dup2(hold[0], 0);
                close(hold[1]);
                execlp("cat", "cat", (char *)NULL);
                _exit(127);
        }
        close(executed[1]);
        assert_int_equal(read(executed[0], &byte, 1), 0);
        hfd_runfile_free(runfile);
        assert_int_equal(hfd_runfile_lock(dir, "a", &runfile, NULL), 0);
        hfd_runfile_free(runfile);
        close(executed[0]);
        close(hold[0]);
        close(hold[1]);
        int exit_status = -1;
        assert(waitpid(pid, &exit_status, 0) == pid);
        assert_int_equal(exit_status, 0);
}

static void test_a_shorter_record_replaces_a_longer_one(void **state) {
        struct hf_fence found = {0}, brief = {.ns = "n", .name = "l", .term = 7, .identity = "i"},
                        both = leads;
        struct hfd_runfile *runfile = NULL;
        strcpy(both.also_ns, "old-ns");
        strcpy(both.also_name, "old");
        assert_int_equal(hfd_runfile_lock(dir, "a", &runfile, NULL), 0);
        assert_int_equal(hfd_runfile_write(runfile, &both), 0);
        hfd_runfile_free(runfile);
        assert_int_equal(hfd_runfile_read_if_dead(dir, "a", &found, &runfile, NULL), 0);
        assert_string_equal(found.name, leads.name);
        assert_string_equal(found.also_ns, "old-ns");
        assert_string_equal(found.also_name, "old");
        assert_int_equal(hfd_runfile_write(runfile, &brief), 0);
        hfd_runfile_free(runfile);
        assert_int_equal(hfd_runfile_read_if_dead(dir, "a", &found, &runfile, NULL), 0);
        assert_string_equal(found.identity, "i");
        assert_string_equal(found.also_name, "");
        assert_true(found.term == 7);
        hfd_runfile_free(runfile);
}

/* Neither a truncated record nor a whole record with other content releases anything. */
static void test_torn_and_foreign_content_is_refused(void **state) {
        static const char *const foreign[] = {
                "{}\n",
                "{\"format\":2,\"pid\":1,\"lease\":{\"namespace\":\"n\",\"name\":\"l\","
                "\"identity\":\"i\",\"term\":\"7\"}}\n",
                "{\"format\":1,\"pid\":1,\"lease\":{\"namespace\":\"n\",\"name\":\"l\","
                "\"identity\":\"i\",\"term\":\"0\"}}\n",
                "{\"format\":1,\"pid\":1,\"lease\":{\"namespace\":\"n\",\"name\":\"l\","
                "\"identity\":\"i\",\"term\":\"7x\"}}\n",
                "{\"format\":1,\"pid\":1,\"lease\":{\"namespace\":\"n\",\"name\":\"l\","
                "\"identity\":\"\",\"term\":\"7\"}}\n",
                "{\"format\":1,\"pid\":1,\"lease\":{\"namespace\":\"n\",\"name\":\"l\",\"term\":"
                "\"7\"}}\n",
                "{\"format\":1,\"pid\":1,\"lease\":{\"namespace\":\"n\",\"name\":\"l\","
                "\"identity\":\"i\",\"term\":\"7\"}}\n}\n",
                "{\"format\":1,\"pid\":1,\"lease\":{\"namespace\":\"n\",\"name\":\"l\","
                "\"identity\":\"i\",\"term\":\"7\"},\"also\":{}}\n",
        };
        struct hfd_runfile *runfile = NULL;
        struct hf_fence found = {0};
        char path[128], text[4096];
        assert_int_equal(hfd_runfile_lock(dir, "a", &runfile, NULL), 0);
        assert_int_equal(hfd_runfile_write(runfile, &leads), 0);
        hfd_runfile_free(runfile);
        snprintf(path, sizeof path, "%s/a.lock", dir);
        int fd = open(path, O_RDWR);
        ssize_t n = read(fd, text, sizeof text);
        assert_true(n > 50);
        for (ssize_t i = 0; i < n; i++) {
                assert(ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)i, 0) == i);
                assert_int_equal(hfd_runfile_read_if_dead(dir, "a", &found, &runfile, NULL),
                                 HF_E_INVALID);
        }
        for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
                ssize_t length = (ssize_t)strlen(foreign[i]);
                assert(ftruncate(fd, 0) == 0 &&
                       pwrite(fd, foreign[i], (size_t)length, 0) == length);
                assert_int_equal(hfd_runfile_read_if_dead(dir, "a", &found, &runfile, NULL),
                                 HF_E_INVALID);
        }
        close(fd);
}

static void test_reading_creates_no_file(void **state) {
        struct hfd_runfile *runfile = NULL;
        struct hf_fence found = {0};
        struct hf_status status = {0};
        struct stat st;
        char path[128];
        assert_int_equal(hfd_runfile_read_if_dead(dir, "none", &found, &runfile, &status), -ENOENT);
        assert_non_null(strstr(status.message, "none.lock"));
        snprintf(path, sizeof path, "%s/none.lock", dir);
        assert_int_equal(stat(path, &st), -1);
        assert_int_equal(hfd_runfile_lock(dir, "../x", &runfile, &status), HF_E_INVALID);
        assert_int_equal(hfd_runfile_lock("/proc/none", "a", &runfile, &status) < 0, 1);
        assert_non_null(strstr(status.message, "/proc/none"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_the_record_of_a_running_instance_is_locked,
                                                make_dir, remove_dir),
                cmocka_unit_test_setup_teardown(test_instances_have_separate_files, make_dir,
                                                remove_dir),
                cmocka_unit_test_setup_teardown(test_the_lock_does_not_survive_exec, make_dir,
                                                remove_dir),
                cmocka_unit_test_setup_teardown(test_a_shorter_record_replaces_a_longer_one,
                                                make_dir, remove_dir),
                cmocka_unit_test_setup_teardown(test_torn_and_foreign_content_is_refused, make_dir,
                                                remove_dir),
                cmocka_unit_test_setup_teardown(test_reading_creates_no_file, make_dir, remove_dir),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
