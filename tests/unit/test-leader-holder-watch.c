/* SPDX-License-Identifier: Apache-2.0 */
/* When the process that holds a Lease is tested for its death (leader/holder_watch.h): with a real
 * process, and times that the test chooses. */
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
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "leader/elector.h"
#include "leader/holder_watch.h"
#include "leader/lock_port.h"
#include "lock_file_process.h"
#include "time_units.h"

static struct fixture {
        char dir[64], own[96], other[96];
        char process[HF__HOLDER_PROCESS_MAX]; /* the description of the holder */
        pid_t pid;
        int epoll_fd;
        struct hf__holder_watch *watch;
        struct hf__lock lock;
        struct hf_elector elector;
} f;

static bool describe(struct hf__lock *lock, const char *holder, int64_t acquire_us, char *process,
                     size_t max) {
        (void)snprintf(process, max, "%s", f.process);
        return true;
}
static const struct hf__lock_ops ops = {.process = describe};

/* The elector follows a leader in another process of this host. */
static int set_up(void **state) {
        memset(&f, 0, sizeof f);
        strcpy(f.dir, "/dev/shm/holder-watch-XXXXXX");
        assert_non_null(mkdtemp(f.dir));
        (void)snprintf(f.own, sizeof f.own, "%s/own.lock", f.dir);
        (void)snprintf(f.other, sizeof f.other, "%s/other.lock", f.dir);
        f.pid = lock_file_process_start(f.other, false, f.process);
        assert_int_equal(hf__holder_watch_new(f.own, &f.watch, NULL), 0);
        f.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        assert_true(f.epoll_fd >= 0);
        hf__holder_watch_set_epoll(f.watch, f.epoll_fd);
        f.lock.ops = &ops;
        f.elector.identity = "a";
        f.elector.lock = &f.lock;
        f.elector.core.state = HF_FOLLOWING;
        f.elector.core.observed =
                (struct hf__core_seen){.exists = true, .acquire_us = 1, .holder = "b"};
        return 0;
}

static void kill_holder(void) {
        if (f.pid > 0)
                lock_file_process_kill(f.pid);
        f.pid = 0;
}

static int tear_down(void **state) {
        kill_holder();
        hf__holder_watch_drop(f.watch, &f.elector);
        hf__holder_watch_free(f.watch);
        close(f.epoll_fd);
        (void)unlink(f.own);
        (void)unlink(f.other);
        (void)rmdir(f.dir);
        return 0;
}

static bool is_dead(hf_nsec now) { return hf__holder_watch_is_dead(f.watch, &f.elector, now); }

/* Waits for the end of the process, and returns its descriptor. */
static int await_end(void) {
        struct epoll_event event;

        assert_int_equal(epoll_wait(f.epoll_fd, &event, 1, 20000), 1);
        return event.data.fd;
}

static void test_the_end_of_the_process_is_noticed_at_once(void **state) {
        assert_false(is_dead(SEC));
        kill_holder();
        assert_true(hf__holder_watch_on_fd(f.watch, await_end()));
        assert_true(is_dead(SEC));
}

/* Nobody waits for the descriptor any more, so it must not wake the loop again and again. */
static void test_the_descriptor_of_a_process_that_ended_is_closed_once(void **state) {
        struct epoll_event event;

        assert_false(is_dead(SEC));
        kill_holder();
        int fd = await_end();
        assert_true(hf__holder_watch_on_fd(f.watch, fd));
        assert_int_equal(epoll_wait(f.epoll_fd, &event, 1, 0), 0);
        assert_false(hf__holder_watch_on_fd(f.watch, fd));
        /* The number belongs to another file now. */
        assert_int_equal(dup2(f.epoll_fd, fd), fd);
        hf__holder_watch_drop(f.watch, &f.elector);
        assert_true(fcntl(fd, F_GETFD) >= 0);
        close(fd);
}

/* A test costs system calls, and the loop asks at every event. */
static void test_a_process_is_tested_once_a_second(void **state) {
        assert_false(is_dead(SEC));
        kill_holder();
        assert_false(is_dead(SEC + SEC - 1));
        assert_true(is_dead(SEC + SEC));
}

static void test_a_dead_process_stays_dead(void **state) {
        kill_holder();
        assert_true(is_dead(SEC));
        f.pid = lock_file_process_start(f.other, false, (char[HF__HOLDER_PROCESS_MAX]){0});
        assert_true(is_dead(3 * SEC));
}

/* A result of a test is about one holder and one term. */
static void test_another_term_is_looked_at_anew(void **state) {
        kill_holder();
        assert_true(is_dead(SEC));
        f.pid = lock_file_process_start(f.other, false, f.process);
        f.elector.core.observed.acquire_us++;
        assert_false(is_dead(SEC));
        kill_holder();
        assert_true(is_dead(2 * SEC));
        f.pid = lock_file_process_start(f.other, false, f.process);
        f.elector.core.observed.holder = "c";
        assert_false(is_dead(3 * SEC));
}

static void test_only_a_follower_asks_for_another_holder(void **state) {
        struct hf__core_seen *record = &f.elector.core.observed;

        kill_holder();
        f.elector.core.state = HF_LEADING;
        assert_false(is_dead(SEC));
        f.elector.core.state = HF_FOLLOWING;
        record->exists = false;
        assert_false(is_dead(2 * SEC));
        record->exists = true;
        record->holder = "a";
        assert_false(is_dead(3 * SEC));
        record->holder = "";
        assert_false(is_dead(4 * SEC));
        record->holder = "b";
        assert_true(is_dead(5 * SEC));
}

/* Electors whose Leases one process holds share the results of its tests. */
static void test_electors_share_a_process(void **state) {
        struct hf_elector other = f.elector;

        assert_false(is_dead(SEC));
        assert_false(hf__holder_watch_is_dead(f.watch, &other, SEC));
        hf__holder_watch_drop(f.watch, &f.elector);
        kill_holder();
        assert_true(hf__holder_watch_on_fd(f.watch, await_end()));
        assert_true(hf__holder_watch_is_dead(f.watch, &other, SEC));
        hf__holder_watch_drop(f.watch, &other);
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
                TEST(test_the_end_of_the_process_is_noticed_at_once),
                TEST(test_the_descriptor_of_a_process_that_ended_is_closed_once),
                TEST(test_a_process_is_tested_once_a_second),
                TEST(test_a_dead_process_stays_dead),
                TEST(test_another_term_is_looked_at_anew),
                TEST(test_only_a_follower_asks_for_another_holder),
                TEST(test_electors_share_a_process),
#undef TEST
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
