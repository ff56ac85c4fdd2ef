/* SPDX-License-Identifier: Apache-2.0 */
/* How the library starts threads, and what hf__mutex_assert_held detects. */
#if defined(NDEBUG) || defined(HF__RELEASE)
#define COSTLY_ASSERTS false /* the library is built with the same flags */
#else
#define COSTLY_ASSERTS true
#endif
#if defined(__SANITIZE_THREAD__)
#define FINDS_RACES true
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FINDS_RACES true
#endif
#endif
#ifndef FINDS_RACES
#define FINDS_RACES false
#endif
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast/error.h>

#include "base/thread.h"

static const struct hf_host host = {.size = sizeof host};

struct seen {
        char name[16];
        sigset_t mask;
};

static void *look_around(void *ctx) {
        struct seen *seen = ctx;

        assert_int_equal(pthread_getname_np(pthread_self(), seen->name, sizeof seen->name), 0);
        assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &seen->mask), 0);
        return seen;
}

static void test_a_thread_has_a_name_and_blocks_all_signals(void **state) {
        struct seen seen = {0};
        pthread_t thread;
        sigset_t mask;
        void *result;

        assert_int_equal(hf__thread_start(&host, "a-name-that-is-cut", look_around, &seen, &thread),
                         0);
        result = hf__thread_join(thread);
        assert_ptr_equal(result, &seen);
        assert_string_equal(seen.name, "a-name-that-is-");
        assert_int_equal(sigismember(&seen.mask, SIGTERM), 1);
        assert_int_equal(sigismember(&seen.mask, SIGPIPE), 1);
        assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &mask), 0);
        assert_int_equal(sigismember(&mask, SIGTERM), 0);
}

static void test_a_stack_that_is_too_small_is_refused(void **state) {
        const struct hf_host small = {.size = sizeof small, .thread_stack_bytes = 4096};
        pthread_t thread;

        assert_int_equal(hf__thread_start(&small, "t", look_around, NULL, &thread), -EINVAL);
}

/* The page of a variable on the thread's stack. */
static void *find_stack(void *ctx) {
        uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), variable = (uintptr_t)&page;

        return (void *)(variable / page * page);
}

static void test_a_joined_thread_leaves_no_stack_behind(void **state) {
        unsigned char resident;
        pthread_t thread;

        assert_int_equal(hf__thread_start(&host, "stack", find_stack, NULL, &thread), 0);
        void *page = hf__thread_join(thread);
        assert_int_equal(mincore(page, 1, &resident), -1);
        assert_int_equal(errno, ENOMEM); /* nothing is mapped there */
}

static void *is_held_main(void *mutex) { return hf__mutex_is_held(mutex) ? mutex : NULL; }

static void *is_held_on_another_thread(pthread_mutex_t *mutex) {
        pthread_t thread;
        void *result;

        assert_int_equal(hf__thread_start(&host, "asks", is_held_main, mutex, &thread), 0);
        result = hf__thread_join(thread);
        return result;
}

static void test_a_mutex_knows_whether_it_is_held(void **state) {
        pthread_mutex_t mutex;

        assert_int_equal(hf__mutex_init(&mutex), 0);
        assert_int_equal(pthread_mutex_lock(&mutex), 0);
        assert_true(hf__mutex_is_held(&mutex));
        hf__mutex_assert_held(&mutex);
        if (COSTLY_ASSERTS)
                assert_null(is_held_on_another_thread(&mutex));
        assert_int_equal(pthread_mutex_unlock(&mutex), 0);
        if (COSTLY_ASSERTS) {
                assert_false(hf__mutex_is_held(&mutex));
                assert_null(is_held_on_another_thread(&mutex));
                /* The check has not changed the mutex. */
                assert_int_equal(pthread_mutex_trylock(&mutex), 0);
                assert_int_equal(pthread_mutex_unlock(&mutex), 0);
        }
        assert_int_equal(pthread_mutex_destroy(&mutex), 0);
}

static void lock_twice(pthread_mutex_t *mutex) {
        pthread_mutex_lock(mutex);
        pthread_mutex_lock(mutex);
}

static void unlock_unlocked(pthread_mutex_t *mutex) { pthread_mutex_unlock(mutex); }

/* Whether misuse(mutex) ends the process. It runs in a child. */
static bool ends_process(void (*misuse)(pthread_mutex_t *mutex)) {
        pthread_mutex_t mutex;
        int status;

        assert_int_equal(hf__mutex_init(&mutex), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
                (void)signal(SIGABRT, SIG_DFL); /* cmocka's handler would end the test */
                misuse(&mutex);
                _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(pthread_mutex_destroy(&mutex), 0);
        return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void test_a_wrong_use_of_a_mutex_ends_the_process(void **state) {
        /* Without costly assertions, locking twice would wait for ever. The thread sanitizer makes
         * a report of its own. */
        if (!COSTLY_ASSERTS || FINDS_RACES)
                return;
        assert_true(ends_process(lock_twice));
        assert_true(ends_process(unlock_unlocked));
}

static void test_a_mutex_comes_with_a_condition_to_wait_for(void **state) {
        const struct hf_clock *clock = hf_host_clock(&host);
        pthread_mutex_t mutex;
        pthread_cond_t cond;

        assert_int_equal(hf__mutex_cond_init(&mutex, &cond), 0);
        assert_int_equal(pthread_mutex_lock(&mutex), 0);
        hf__mutex_assert_held(&mutex);
        assert_int_equal(clock->wait(clock->ctx, &cond, &mutex, hf_now(clock)), HF_E_TIMEOUT);
        hf__mutex_assert_held(&mutex);
        assert_int_equal(pthread_mutex_unlock(&mutex), 0);
        assert_int_equal(pthread_cond_destroy(&cond), 0);
        assert_int_equal(pthread_mutex_destroy(&mutex), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_thread_has_a_name_and_blocks_all_signals),
                cmocka_unit_test(test_a_stack_that_is_too_small_is_refused),
                cmocka_unit_test(test_a_joined_thread_leaves_no_stack_behind),
                cmocka_unit_test(test_a_mutex_knows_whether_it_is_held),
                cmocka_unit_test(test_a_wrong_use_of_a_mutex_ends_the_process),
                cmocka_unit_test(test_a_mutex_comes_with_a_condition_to_wait_for),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
