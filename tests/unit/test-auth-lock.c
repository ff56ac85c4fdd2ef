/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for a lock file. No test waits for a time limit to pass, except limits of zero. If a
 * wake-up is missed, a test does not end.
 */
#undef NDEBUG
#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/auth/files.h"

#define AGES     (3600 * HF_NSEC_PER_SEC)
#define N_ROUNDS 200

static char dir[64], path[80];

static int make_dir(void **state) {
        strcpy(dir, "/tmp/lock-XXXXXX");
        if (!mkdtemp(dir))
                return -1;
        snprintf(path, sizeof path, "%s/.lock", dir);
        return 0;
}

static int remove_dir(void **state) {
        char command[128];
        snprintf(command, sizeof command, "rm -rf '%s'", dir);
        return system(command);
}

static void expect_byte(int fd) {
        char byte;
        assert_int_equal(read(fd, &byte, 1), 1);
}

struct holder {
        pid_t pid;
        int talk; /* a byte written to it releases the lock */
};

/* A process that holds the lock. It lives on after it has released it. */
static struct holder hold(void) {
        int to[2], from[2], fd = -1;
        assert(pipe(to) == 0 && pipe(from) == 0);
        pid_t pid = fork();
        assert(pid >= 0);
        if (pid == 0) {
                char byte = 0;
                close(to[1]);
                close(from[0]);
                if (hfd_await_lock(path, AGES, hf_cancel_never(), &fd, NULL) != 0 ||
                    write(from[1], &byte, 1) != 1 || read(to[0], &byte, 1) != 1)
                        _exit(1);
                close(fd);
                while (read(to[0], &byte, 1) > 0)
                        ;
                _exit(0);
        }
        close(to[0]);
        close(from[1]);
        expect_byte(from[0]);
        close(from[0]);
        return (struct holder){pid, to[1]};
}

static void end(struct holder holder, int expected_signal) {
        int status = -1;
        close(holder.talk);
        assert_int_equal(waitpid(holder.pid, &status, 0), holder.pid);
        assert_int_equal(WIFSIGNALED(status) ? WTERMSIG(status) : 0, expected_signal);
}

static void test_waiting_for_a_held_lock_ends_with_its_deadline(void **state) {
        struct holder holder = hold();
        struct hf_status status = {0};
        int fd = -1;
        assert_int_equal(hfd_await_lock(path, 0, hf_cancel_never(), &fd, &status), HF_E_BUSY);
        assert_non_null(strstr(status.message, path));
        assert_int_equal(hfd_await_lock(path, HF_NSEC_PER_MSEC, hf_cancel_never(), &fd, &status),
                         HF_E_BUSY);
        assert_int_equal(write(holder.talk, "", 1), 1);
        assert_int_equal(hfd_await_lock(path, AGES, hf_cancel_never(), &fd, &status), 0);
        assert_int_equal(close(fd), 0);
        end(holder, 0);
}

static void *fire(void *ctx) {
        struct hf_cancel *token = ctx;
        hf_cancel_fire(token, HF_CANCEL_STOPPING);
        return NULL;
}

/* A token ends the wait at once, whether it fired before, fires meanwhile, or has a deadline. */
static void test_a_token_ends_the_wait(void **state) {
        struct holder holder = hold();
        struct hf_cancel *token = NULL;
        pthread_t thread;
        int fd = -1;
        assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &token), 0);
        assert_int_equal(pthread_create(&thread, NULL, fire, token), 0);
        struct hf_status status = {0};
        assert_int_equal(hfd_await_lock(path, AGES, token, &fd, &status), HF_E_CANCELED);
        assert_non_null(strstr(status.message, path));
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(hfd_await_lock(path, AGES, token, &fd, NULL), HF_E_CANCELED);
        hf_cancel_unref(token);

        assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &token), 0);
        hf_cancel_set_deadline(token, hf_now(hf_clock_system()) + 20 * HF_NSEC_PER_MSEC);
        assert_int_equal(hfd_await_lock(path, AGES, token, &fd, NULL), HF_E_CANCELED);

        /* A free lock is taken even with a fired token: there is no wait. */
        assert_int_equal(write(holder.talk, "", 1), 1);
        assert_int_equal(hfd_await_lock(path, AGES, hf_cancel_never(), &fd, NULL), 0);
        assert_int_equal(close(fd), 0);
        assert_int_equal(hfd_await_lock(path, AGES, token, &fd, NULL), 0);
        assert_int_equal(close(fd), 0);
        hf_cancel_unref(token);
        end(holder, 0);
}

static void test_a_lock_that_cannot_be_opened_is_named(void **state) {
        char other[96];
        struct hf_status status = {0};
        int fd = -1;
        snprintf(other, sizeof other, "%s/none/.lock", dir);
        assert_true(hfd_await_lock(other, AGES, hf_cancel_never(), &fd, &status) < 0);
        assert_non_null(strstr(status.message, other));
        assert_int_equal(symlink("elsewhere", path), 0);
        assert_true(hfd_await_lock(path, AGES, hf_cancel_never(), &fd, &status) < 0);
        assert_non_null(strstr(status.message, path));
}

/* The holder releases the lock or is killed, at a random moment of the wait. */
static void test_a_lock_is_free_after_a_release_or_a_death(void **state) {
        for (int i = 0; i < N_ROUNDS; i++) {
                struct holder holder = hold();
                bool kills = i % 2;
                int fd = -1;
                if (kills)
                        assert_int_equal(kill(holder.pid, SIGKILL), 0);
                else
                        assert_int_equal(write(holder.talk, "", 1), 1);
                assert_int_equal(hfd_await_lock(path, AGES, hf_cancel_never(), &fd, NULL), 0);
                assert_int_equal(close(fd), 0);
                end(holder, kills ? SIGKILL : 0);
        }
}

/* Increments the number in the file by a read and a write, which only the lock makes atomic. */
static bool count_up(const char *file) {
        char text[32] = "0";
        FILE *stream = fopen(file, "re");
        if (stream && !fgets(text, sizeof text, stream))
                return false;
        if (stream)
                fclose(stream);
        stream = fopen(file, "we");
        return stream && fprintf(stream, "%d", atoi(text) + 1) > 0 && fclose(stream) == 0;
}

/* Several processes release the lock and acquire it again at once. */
static void test_only_one_process_holds_the_lock(void **state) {
        enum { PROCESSES = 5, ROUNDS = 100 };
        pid_t pids[PROCESSES];
        char file[80], *text = NULL;
        snprintf(file, sizeof file, "%s/count", dir);
        for (int i = 0; i < PROCESSES; i++) {
                pids[i] = fork();
                assert(pids[i] >= 0);
                for (int round = 0; pids[i] == 0; round++) {
                        int fd = -1;
                        if (round == ROUNDS)
                                _exit(0);
                        if (hfd_await_lock(path, AGES, hf_cancel_never(), &fd, NULL) != 0 ||
                            !count_up(file))
                                _exit(1);
                        close(fd);
                }
        }
        for (int i = 0; i < PROCESSES; i++) {
                int status = -1;
                assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
                assert_int_equal(status, 0);
        }
        assert_int_equal(hfd_read_file(file, &text, NULL), 0);
        assert_int_equal(atoi(text), PROCESSES * ROUNDS);
        free(text);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_waiting_for_a_held_lock_ends_with_its_deadline,
                                                make_dir, remove_dir),
                cmocka_unit_test_setup_teardown(test_a_token_ends_the_wait, make_dir, remove_dir),
                cmocka_unit_test_setup_teardown(test_a_lock_that_cannot_be_opened_is_named,
                                                make_dir, remove_dir),
                cmocka_unit_test_setup_teardown(test_a_lock_is_free_after_a_release_or_a_death,
                                                make_dir, remove_dir),
                cmocka_unit_test_setup_teardown(test_only_one_process_holds_the_lock, make_dir,
                                                remove_dir),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
