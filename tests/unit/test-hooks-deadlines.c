/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deadlines of hooks, on a clock that the test moves: it stands still until the functions that run
 * are blocked, and then jumps to the deadline that a coordinator waits for. So each deadline is
 * exact, and a coordinator that would wait for another one shows.
 */
#undef NDEBUG
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/hooks.h>

#include "hooks/hook_registry.h"
#include "patience.h"

#define SECOND    HF_NSEC_PER_SEC
#define MAX_IDLES 1000 /* the most waits whose deadline has passed already */

/* ---- the clock ---- */

static struct {
        _Atomic hf_nsec now;
        atomic_int n_blocked; /* functions of hooks that block now */
        atomic_int n_wanted;  /* the clock jumps when so many block */
        atomic_int n_jumps;   /* jumps that are left */
        atomic_int n_late;    /* jumps that go beyond the deadline, from the next one on */
        _Atomic hf_nsec late; /* how far */
        atomic_int n_idles;
} time_of_test;

/* If set: when the coordinator of the stop, which is the test's thread, sees that the stop function
 * of this hook has returned, its deadline has just passed. */
static struct hf_hook_context *returns_late;
static pthread_t test_thread;

static hf_nsec test_now(void *ctx) {
        if (returns_late && pthread_equal(pthread_self(), test_thread) &&
            returns_late->stop_returned)
                atomic_store(&time_of_test.now, returns_late->stop_until.at);
        return atomic_load(&time_of_test.now);
}

/* Wakes up each millisecond, which the contract of a clock allows. But a coordinator that waits
 * without a deadline gets only its signal: if none comes, it has missed something. */
static int test_wait(void *ctx, pthread_cond_t *cond, pthread_mutex_t *mutex, hf_nsec deadline) {
        const struct hf_clock *system = hf_clock_system();

        if (deadline == HF_NSEC_NEVER)
                return system->wait(system->ctx, cond, mutex, HF_NSEC_NEVER);
        if (system->wait(system->ctx, cond, mutex, hf_now(system) + HF_NSEC_PER_MSEC) !=
            HF_E_TIMEOUT)
                return 0;
        if (deadline <= test_now(NULL)) {
                assert(atomic_fetch_add(&time_of_test.n_idles, 1) < MAX_IDLES);
                return HF_E_TIMEOUT;
        }
        if (atomic_load(&time_of_test.n_blocked) < atomic_load(&time_of_test.n_wanted) ||
            atomic_load(&time_of_test.n_jumps) == 0)
                return 0;
        atomic_fetch_sub(&time_of_test.n_jumps, 1);
        bool is_late = atomic_fetch_sub(&time_of_test.n_late, 1) > 0;
        atomic_store(&time_of_test.now, deadline + (is_late ? atomic_load(&time_of_test.late) : 0));
        return HF_E_TIMEOUT;
}

static const struct hf_clock test_clock = {sizeof test_clock, test_now,  test_now,
                                           test_now,          test_wait, NULL};
static const struct hf_host host = {.size = sizeof host, .clock = &test_clock};

static int setup(void **state) {
        atomic_store(&time_of_test.now, 1000 * SECOND);
        atomic_store(&time_of_test.n_blocked, 0);
        atomic_store(&time_of_test.n_wanted, 1);
        atomic_store(&time_of_test.n_jumps, 100);
        atomic_store(&time_of_test.n_late, 0);
        atomic_store(&time_of_test.n_idles, 0);
        return 0;
}
static void jump_late(hf_nsec late, int n) {
        atomic_store(&time_of_test.late, late);
        atomic_store(&time_of_test.n_late, n);
}
/* The time since the test began. */
static hf_nsec elapsed(void) { return test_now(NULL) - 1000 * SECOND; }

/* ---- functions of hooks ---- */

/* A function that blocks until the test lets it go on. */
struct block {
        sem_t may_return;
        atomic_bool has_returned;
};

static void block_init(struct block *block) {
        assert_int_equal(sem_init(&block->may_return, 0, 0), 0);
        atomic_store(&block->has_returned, false);
}

static int blocking(struct hf_hook_context *context, void *ctx, struct hf_status *reterr_status) {
        struct block *block = ctx;

        atomic_fetch_add(&time_of_test.n_blocked, 1);
        while (sem_wait(&block->may_return) != 0)
                continue;
        atomic_fetch_sub(&time_of_test.n_blocked, 1);
        atomic_store(&block->has_returned, true);
        return 0;
}
static int succeeding(struct hf_hook_context *context, void *ctx, struct hf_status *reterr_status) {
        return 0;
}
static void blocking_job(void *ctx, struct hf_cancel *token) { (void)blocking(NULL, ctx, NULL); }
static int spawning(struct hf_hook_context *context, void *ctx, struct hf_status *reterr_status) {
        return hf_hook_spawn(context, "job", blocking_job, ctx);
}

/* ---- tests ---- */

/* Lets a thread return for which a stop no longer waits. Its hooks are stuck, so they stay. */
static void release(struct block *block) {
        assert_int_equal(sem_post(&block->may_return), 0);
        PATIENCE_AWAIT(atomic_load(&block->has_returned));
}

static struct hf_hooks *hooks_of(const struct hf_hook *list, size_t n) {
        struct hf_hooks *hooks = NULL;

        assert_int_equal(hf_hooks_new(&host, NULL, &hooks), 0);
        for (size_t i = 0; i < n; i++)
                assert_int_equal(hf_hooks_add(hooks, &list[i], "test", NULL), 0);
        return hooks;
}

/* Referenced here, because hooks that are stuck are never freed. Nothing reads the array: without
 * volatile the compiler would leave it out. */
static struct hf_hooks *volatile stuck[16];
static size_t n_stuck;

static void leave_stuck(struct hf_hooks *hooks) {
        assert_true(n_stuck < sizeof stuck / sizeof stuck[0]);
        stuck[n_stuck++] = hooks;
        assert_null(hf_hooks_free(hooks));
}

static void test_a_start_has_sixty_seconds_and_a_stop_thirty(void **state) {
        static struct block block;
        struct hf_hook hook = {.size = sizeof hook, .name = "a", .start = blocking, .ctx = &block};
        struct hf_status status = {0};
        struct hf_hooks *hooks = hooks_of(&hook, 1);

        block_init(&block);
        assert_int_equal(hf_hooks_start(hooks, &status), HF_E_TIMEOUT);
        assert_int_equal(elapsed(), 60 * SECOND);
        assert_string_equal(status.message,
                            "hook \"a\" has not finished its start by its deadline (60000 ms)");
        assert_int_equal(hf_hooks_stop(hooks, &status), HF_E_STUCK);
        assert_int_equal(elapsed(), 90 * SECOND);
        assert_string_equal(status.message, "hook \"a\" is stuck: its start function has not "
                                            "returned by its deadline (60000 ms)");
        leave_stuck(hooks);
        release(&block);
}

static void test_the_nearest_deadline_of_a_start_counts(void **state) {
        static struct block blocks[3];
        struct hf_hook list[] = {
                {.size = sizeof(struct hf_hook),
                 .name = "a",
                 .start = blocking,
                 .start_deadline = 9 * SECOND,
                 .ctx = &blocks[0]},
                {.size = sizeof(struct hf_hook),
                 .name = "b",
                 .start = blocking,
                 .start_deadline = 7 * SECOND,
                 .ctx = &blocks[1]},
                {.size = sizeof(struct hf_hook),
                 .name = "c",
                 .start = blocking,
                 .start_deadline = 8 * SECOND,
                 .ctx = &blocks[2]},
        };
        struct hf_status status = {0};
        struct hf_hooks *hooks = hooks_of(list, 3);

        for (int i = 0; i < 3; i++)
                block_init(&blocks[i]);
        atomic_store(&time_of_test.n_wanted, 3);
        assert_int_equal(hf_hooks_start(hooks, &status), HF_E_TIMEOUT);
        assert_int_equal(elapsed(), 7 * SECOND);
        assert_non_null(strstr(status.message, "\"b\""));
        for (int i = 0; i < 3; i++)
                release(&blocks[i]);
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        hf_hooks_free(hooks);
}

/* What releasing_stop saw, before it released the start that hangs. */
static struct {
        struct block *start;
        bool start_had_returned;
        hf_nsec at;
} stop_seen;

static int releasing_stop(struct hf_hook_context *context, void *ctx,
                          struct hf_status *reterr_status) {
        stop_seen.start_had_returned = atomic_load(&stop_seen.start->has_returned);
        stop_seen.at = elapsed();
        release(stop_seen.start);
        return 0;
}

static void *start_main(void *ctx) {
        static int result;

        result = hf_hooks_start(ctx, NULL);
        return &result;
}

static void test_a_stop_gives_a_start_its_time_and_then_runs_beside_it(void **state) {
        static struct block block;
        struct hf_hook hook = {.size = sizeof hook,
                               .name = "a",
                               .start = blocking,
                               .stop = releasing_stop,
                               .start_deadline = 5 * SECOND,
                               .ctx = &block};

        /* A pause that is noticed 2 s after the deadline gives the start its time anew. */
        for (hf_nsec late = 2 * SECOND - 1; late <= 2 * SECOND; late++) {
                bool is_paused = late == 2 * SECOND;
                struct hf_hooks *hooks = hooks_of(&hook, 1);
                pthread_t thread;
                void *result;
                setup(NULL);
                block_init(&block);
                stop_seen.start = &block;
                atomic_store(&time_of_test.n_wanted, 2); /* the clock stands still */
                assert_int_equal(pthread_create(&thread, NULL, start_main, hooks), 0);
                PATIENCE_AWAIT(atomic_load(&time_of_test.n_blocked) > 0);
                hf_hooks_shut_down(hooks);
                assert_int_equal(pthread_join(thread, &result), 0);
                assert_int_equal(*(int *)result, HF_E_CANCELED);
                atomic_store(&time_of_test.n_jumps, 1 + is_paused); /* to the start's deadline */
                jump_late(late, 1);
                atomic_store(&time_of_test.n_wanted, 1);
                assert_int_equal(hf_hooks_stop(hooks, NULL), 0);
                assert_false(stop_seen.start_had_returned);
                assert_int_equal(stop_seen.at, (is_paused ? 10 : 5) * SECOND + late);
                hf_hooks_free(hooks);
        }
}

static int setting_a_deadline(struct hf_hook_context *context, void *ctx,
                              struct hf_status *reterr_status) {
        hf_hook_set_stop_deadline(context, 5 * SECOND);
        return 0;
}

static void test_a_start_may_set_the_deadline_of_its_stop(void **state) {
        static struct block block;
        const struct hf_hook hook = {.size = sizeof hook,
                                     .name = "a",
                                     .start = setting_a_deadline,
                                     .stop = blocking,
                                     .stop_deadline = 3 * SECOND,
                                     .ctx = &block};
        struct hf_hooks *hooks = hooks_of(&hook, 1);

        block_init(&block);
        assert_int_equal(hf_hooks_start(hooks, NULL), 0);
        assert_int_equal(hf_hooks_stop(hooks, NULL), HF_E_STUCK);
        assert_int_equal(elapsed(), 5 * SECOND);
        leave_stuck(hooks);
        release(&block);
}

static int blocking_with_another_deadline(struct hf_hook_context *context, void *ctx,
                                          struct hf_status *reterr_status) {
        hf_hook_set_stop_deadline(context, 50 * SECOND);
        return blocking(context, ctx, reterr_status);
}

/* Not even when the deadline begins anew. */
static void test_a_stop_cannot_change_its_own_deadline(void **state) {
        static struct block block;
        const struct hf_hook hook = {.size = sizeof hook,
                                     .name = "a",
                                     .start = succeeding,
                                     .stop = blocking_with_another_deadline,
                                     .stop_deadline = 3 * SECOND,
                                     .ctx = &block};
        struct hf_hooks *hooks = hooks_of(&hook, 1);

        block_init(&block);
        assert_int_equal(hf_hooks_start(hooks, NULL), 0);
        jump_late(2 * SECOND, 1);
        assert_int_equal(hf_hooks_stop(hooks, NULL), HF_E_STUCK);
        assert_int_equal(elapsed(), (3 + 2 + 3) * SECOND);
        leave_stuck(hooks);
        release(&block);
}

/* The message says which of the hook's threads has not returned. The second hook has no stop
 * function, because the clock would not wait for its return. */
static void test_a_stuck_stop_names_what_has_not_returned(void **state) {
        static struct block blocks[2];
        static const char *const expected[] = {
                "hook \"a\" is stuck: its stop function has not returned by its deadline (30000 "
                "ms)",
                "hook \"a\" is stuck: one of its threads has not returned by its deadline (3000 "
                "ms)",
        };
        const struct hf_hook list[] = {
                {.size = sizeof(struct hf_hook),
                 .name = "a",
                 .start = succeeding,
                 .stop = blocking,
                 .ctx = &blocks[0]},
                {.size = sizeof(struct hf_hook),
                 .name = "a",
                 .start = spawning,
                 .stop_deadline = 3 * SECOND,
                 .ctx = &blocks[1]},
        };

        for (int i = 0; i < 2; i++) {
                struct hf_hooks *hooks = hooks_of(&list[i], 1);
                struct hf_status status = {0};
                setup(NULL);
                block_init(&blocks[i]);
                atomic_store(&time_of_test.n_wanted, 2); /* the start must not be interrupted */
                assert_int_equal(hf_hooks_start(hooks, &status), 0);
                atomic_store(&time_of_test.n_wanted, 1);
                assert_int_equal(hf_hooks_stop(hooks, &status), HF_E_STUCK);
                assert_string_equal(status.message, expected[i]);
                assert_int_equal(elapsed(), (i == 0 ? 30 : 3) * SECOND);
                leave_stuck(hooks);
                release(&blocks[i]);
        }
}

/* A hook that is stuck must not use up the time of those that are stopped after it. */
static void test_each_stop_has_a_deadline_of_its_own(void **state) {
        static struct block blocks[2];
        static const char *const on_a[] = {"a"};
        /* b stops first, although it was registered first */
        struct hf_hook list[] = {
                {.size = sizeof(struct hf_hook),
                 .name = "b",
                 .start = succeeding,
                 .stop = blocking,
                 .stop_deadline = 3 * SECOND,
                 .after = on_a,
                 .n_after = 1,
                 .ctx = &blocks[1]},
                {.size = sizeof(struct hf_hook),
                 .name = "a",
                 .start = succeeding,
                 .stop = blocking,
                 .stop_deadline = 4 * SECOND,
                 .ctx = &blocks[0]},
        };
        struct hf_status status = {0};
        struct hf_hooks *hooks = hooks_of(list, 2);

        block_init(&blocks[0]);
        block_init(&blocks[1]);
        atomic_store(&time_of_test.n_wanted, 3); /* the starts must not be interrupted */
        assert_int_equal(hf_hooks_start(hooks, &status), 0);
        atomic_store(&time_of_test.n_wanted, 1);
        assert_int_equal(hf_hooks_stop(hooks, &status), HF_E_STUCK);
        assert_int_equal(elapsed(), 7 * SECOND);
        assert_string_equal(status.message,
                            "hook \"a\" is stuck: its stop function has not returned by its "
                            "deadline (4000 ms); hook \"b\" is stuck: its stop function has not "
                            "returned by its deadline (3000 ms)");
        leave_stuck(hooks);
        release(&blocks[0]);
        release(&blocks[1]);
}

static void test_a_stop_that_returns_at_its_deadline_is_not_stuck(void **state) {
        const struct hf_hook hook = {.size = sizeof hook,
                                     .name = "a",
                                     .start = succeeding,
                                     .stop = succeeding,
                                     .stop_deadline = 3 * SECOND};
        struct hf_status status = {0};
        struct hf_hooks *hooks = hooks_of(&hook, 1);

        atomic_store(&time_of_test.n_jumps, 0);
        assert_int_equal(hf_hooks_start(hooks, &status), 0);
        test_thread = pthread_self();
        returns_late = hooks->list[0];
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        assert_int_equal(elapsed(), 3 * SECOND);
        returns_late = NULL;
        hf_hooks_free(hooks);
}

/* A coordinator that sees the time only 2 s after a deadline did not run meanwhile, and neither did
 * the hook. */
static void test_a_deadline_begins_anew_after_a_pause(void **state) {
        static struct block blocks[2];

        for (int i = 0; i < 2; i++) {
                const hf_nsec late = 2 * SECOND - (i == 0);
                const struct hf_hook hook = {.size = sizeof hook,
                                             .name = "a",
                                             .start = blocking,
                                             .start_deadline = 7 * SECOND,
                                             .stop_deadline = 3 * SECOND,
                                             .ctx = &blocks[i]};
                struct hf_hooks *hooks = hooks_of(&hook, 1);
                struct hf_status status = {0};
                setup(NULL);
                block_init(&blocks[i]);
                jump_late(late, 1);
                assert_int_equal(hf_hooks_start(hooks, &status), HF_E_TIMEOUT);
                assert_int_equal(elapsed(), (i == 0 ? 7 : 14) * SECOND + late);
                /* The start has had its time: the stop does not wait for it again. */
                atomic_fetch_add(&time_of_test.now, 60 * SECOND);
                hf_nsec from = elapsed();
                jump_late(late, 1);
                assert_int_equal(hf_hooks_stop(hooks, &status), HF_E_STUCK);
                assert_int_equal(elapsed() - from, (i == 0 ? 3 : 6) * SECOND + late);
                leave_stuck(hooks);
                release(&blocks[i]);
        }
}

/* Where a coordinator always sees the time 2 s late, a hook that never returns is reported too. */
static void test_a_deadline_begins_anew_three_times_at_most(void **state) {
        static struct block block;
        const struct hf_hook hook = {.size = sizeof hook,
                                     .name = "a",
                                     .start = blocking,
                                     .start_deadline = 7 * SECOND,
                                     .stop_deadline = 3 * SECOND,
                                     .ctx = &block};
        struct hf_hooks *hooks = hooks_of(&hook, 1);

        block_init(&block);
        jump_late(2 * SECOND, 100);
        assert_int_equal(hf_hooks_start(hooks, NULL), HF_E_TIMEOUT);
        assert_int_equal(elapsed(), 4 * (7 + 2) * SECOND);
        hf_nsec from = elapsed();
        assert_int_equal(hf_hooks_stop(hooks, NULL), HF_E_STUCK);
        assert_int_equal(elapsed() - from, 4 * (3 + 2) * SECOND);
        leave_stuck(hooks);
        release(&block);
}

/* The test leaves stuck threads alone on purpose, so the sanitizer must not report them. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "report_thread_leaks=0"; }

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(test_a_start_has_sixty_seconds_and_a_stop_thirty, setup),
                cmocka_unit_test_setup(test_the_nearest_deadline_of_a_start_counts, setup),
                cmocka_unit_test_setup(test_a_start_may_set_the_deadline_of_its_stop, setup),
                cmocka_unit_test_setup(test_a_stop_cannot_change_its_own_deadline, setup),
                cmocka_unit_test_setup(test_a_stop_gives_a_start_its_time_and_then_runs_beside_it,
                                       setup),
                cmocka_unit_test_setup(test_a_stuck_stop_names_what_has_not_returned, setup),
                cmocka_unit_test_setup(test_each_stop_has_a_deadline_of_its_own, setup),
                cmocka_unit_test_setup(test_a_stop_that_returns_at_its_deadline_is_not_stuck,
                                       setup),
                cmocka_unit_test_setup(test_a_deadline_begins_anew_after_a_pause, setup),
                cmocka_unit_test_setup(test_a_deadline_begins_anew_three_times_at_most, setup),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
