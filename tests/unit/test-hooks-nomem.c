/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks when an allocation or a thread creation fails: whatever was begun is stopped once, in
 * order, the failure is reported, and nothing is left behind.
 */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/health.h>
#include <holdfast/hooks.h>

#include "failing_memory.h"

#define N_HOOKS 3

/* How often the functions of each hook ran. */
struct hook {
        atomic_int n_starts, n_stops, n_jobs;
        int spawned; /* result of the spawn in its start */
        bool is_added;
};

static void wait_for_stop(void *ctx, struct hf_cancel *token) {
        struct hook *hook = ctx;

        atomic_fetch_add(&hook->n_jobs, 1);
        assert(hf_cancel_wait(token, HF_NSEC_NEVER) == HF_E_CANCELED);
        atomic_fetch_sub(&hook->n_jobs, 1);
}

static void short_job(void *ctx, struct hf_cancel *token) {}

/* Spawns two threads that stay and some that do not. */
static int start(struct hf_hook_context *context, void *ctx, struct hf_status *reterr_status) {
        struct hook *hook = ctx;
        int r = 0;

        atomic_fetch_add(&hook->n_starts, 1);
        for (int i = 0; r == 0 && i < 6; i++) {
                bool had_failed = failing_memory_hit();
                r = hf_hook_spawn(context, "job", i < 2 ? wait_for_stop : short_job, hook);
                assert((r != 0) == (failing_memory_hit() && !had_failed));
        }
        hook->spawned = r;
        return r;
}

static int stop(struct hf_hook_context *context, void *ctx, struct hf_status *reterr_status) {
        struct hook *hook = ctx;

        atomic_fetch_add(&hook->n_stops, 1);
        assert(hf_cancel_fired(hf_hook_shutting_down(context)));
        return 0;
}

static void find_check(void *ctx, const char *name, bool healthy, const char *reason) {
        struct hook **hook = ctx;

        assert_true((*hook)->is_added);
        assert_true(!healthy || atomic_load(&(*hook)->n_starts) == 1);
        while (!(++*hook)->is_added && (*hook)->spawned != 1)
                continue;
}

/* A hook that was refused has left no health check, and one that was added has one. */
static void assert_checks(struct hf_health *health, struct hook hooks[N_HOOKS + 1]) {
        struct hook *next = hooks;

        hooks[N_HOOKS].spawned = 1; /* ends the search */
        while (!next->is_added && next->spawned != 1)
                next++;
        (void)hf_health_each(health, HF_READYZ, find_check, &next);
        assert_ptr_equal(next, &hooks[N_HOOKS]);
}

static void life(int n) {
        static const char *const names[N_HOOKS] = {"a", "b", "c"};
        struct hf_health *health = NULL;
        struct hook state[N_HOOKS + 1] = {0};
        struct hf_hooks *hooks = NULL;
        struct hf_status status = {0};
        int r;

        assert_int_equal(hf_health_new(&health), 0);
        const struct hf_host host = {.size = sizeof host, .health = health};
        failing_memory_arm(n);
        r = hf_hooks_new(&host, NULL, &hooks);
        assert_true(r == 0 || is_shortage(r));
        assert_true((r == 0) == (hooks != NULL));
        assert_true((r == 0) == !failing_memory_hit());
        for (int i = 0; hooks && i < N_HOOKS; i++) {
                struct hf_hook hook = {.size = sizeof hook,
                                       .name = names[i],
                                       .start = start,
                                       .stop = i == 1 ? NULL : stop,
                                       .after = i ? &names[i - 1] : NULL,
                                       .n_after = i > 0 && state[i - 1].is_added,
                                       .ctx = &state[i]};
                bool had_failed = failing_memory_hit();
                status = (struct hf_status){0};
                r = hf_hooks_add(hooks, &hook, "test", &status);
                state[i].is_added = r == 0;
                assert_true((r != 0) == (failing_memory_hit() && !had_failed));
                assert_true(r == 0 || (is_shortage(r) && strstr(status.message, names[i])));
        }
        if (hooks) {
                assert_checks(health, state);
                r = hf_hooks_start(hooks, &status);
                assert_true(r == 0 || (is_shortage(r) && strstr(status.message, "hook")));
                assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        }
        failing_memory_disarm();
        for (int i = 0; hooks && i < N_HOOKS; i++) {
                int begun = atomic_load(&state[i].n_starts);
                assert_in_range(begun, 0, state[i].is_added);
                assert_int_equal(atomic_load(&state[i].n_stops), i == 1 ? 0 : begun);
                assert_int_equal(atomic_load(&state[i].n_jobs), 0);
                /* Each hook begins unless one before it has failed. */
                if (i > 0 && begun && state[i - 1].is_added)
                        assert_true(atomic_load(&state[i - 1].n_starts) == 1 &&
                                    state[i - 1].spawned == 0);
        }
        hf_hooks_free(hooks);
        assert_int_equal(hf_health_each(health, HF_READYZ, NULL, NULL), 0);
        hf_health_free(health);
}

static int report_stuck(struct hf_hook_context *context, void *ctx,
                        struct hf_status *reterr_status) {
        return HF_E_STUCK;
}
static int do_nothing(struct hf_hook_context *context, void *ctx, struct hf_status *reterr_status) {
        return 0;
}

/* Work that is stuck may still use everything. */
static void test_hooks_that_are_stuck_keep_all_their_memory(void **state) {
        static const struct hf_host host = {.size = sizeof host};
        static struct hf_hooks *hooks; /* referenced here, because it is never freed */
        struct hf_hook hook = {.size = sizeof hook,
                               .name = "a",
                               .start = do_nothing,
                               .stop = report_stuck};

        assert_int_equal(hf_hooks_new(&host, NULL, &hooks), 0);
        assert_int_equal(hf_hooks_add(hooks, &hook, "test", NULL), 0);
        assert_int_equal(hf_hooks_start(hooks, NULL), 0);
        assert_int_equal(hf_hooks_stop(hooks, NULL), HF_E_STUCK);
        size_t before = failing_memory_n_live();
        assert_null(hf_hooks_free(hooks));
        assert_int_equal(failing_memory_n_live(), before);
}

/* The hooks were started, and nobody has stopped them. The thread sanitizer would report that their
 * thread is not joined. */
static void test_hooks_that_were_not_stopped_keep_all_their_memory(void **state) {
#ifdef __SANITIZE_THREAD__
        skip();
#endif
        static const struct hf_host host = {.size = sizeof host};
        static struct hf_hooks *hooks; /* referenced here, because it is never freed */
        struct hf_hook hook = {.size = sizeof hook, .name = "a", .start = do_nothing};

        assert_int_equal(hf_hooks_new(&host, NULL, &hooks), 0);
        assert_int_equal(hf_hooks_add(hooks, &hook, "test", NULL), 0);
        assert_int_equal(hf_hooks_start(hooks, NULL), 0);
        size_t before = failing_memory_n_live();
        assert_null(hf_hooks_free(hooks));
        assert_int_equal(failing_memory_n_live(), before);
}

static int refuse(struct hf_hook_context *context, void *ctx, struct hf_status *reterr_status) {
        return HF_E_INVALID;
}
static int return_at_the_end(struct hf_hook_context *context, void *ctx,
                             struct hf_status *reterr_status) {
        (void)hf_cancel_wait(hf_hook_shutting_down(context), HF_NSEC_NEVER);
        return 0;
}

/* The start of all hooks has failed before one of them returns from its own: nobody but the stop
 * can join its thread. */
static void test_a_stop_joins_a_start_that_returns_late(void **state) {
        static const struct hf_host host = {.size = sizeof host};
        const struct hf_hook list[] = {
                {.size = sizeof(struct hf_hook), .name = "a", .start = return_at_the_end},
                {.size = sizeof(struct hf_hook), .name = "b", .start = refuse},
        };
        struct hf_hooks *hooks;
        int before = failing_memory_n_threads();

        assert_int_equal(hf_hooks_new(&host, NULL, &hooks), 0);
        for (int i = 0; i < 2; i++)
                assert_int_equal(hf_hooks_add(hooks, &list[i], "test", NULL), 0);
        assert_int_equal(hf_hooks_start(hooks, NULL), HF_E_INVALID);
        assert_int_equal(hf_hooks_stop(hooks, NULL), 0);
        assert_int_equal(failing_memory_n_threads(), before);
        hf_hooks_free(hooks);
}

static void test_hooks_that_were_never_started_are_freed(void **state) {
        static const struct hf_host host = {.size = sizeof host};
        struct hf_hooks *hooks;
        struct hf_hook hook = {.size = sizeof hook, .name = "a", .start = do_nothing};
        size_t before = failing_memory_n_live();

        assert_int_equal(hf_hooks_new(&host, NULL, &hooks), 0);
        assert_int_equal(hf_hooks_add(hooks, &hook, "test", NULL), 0);
        hf_hooks_free(hooks);
        assert_int_equal(failing_memory_n_live(), before);
}

static void test_hooks_are_stopped_when_something_fails(void **state) {
        failing_memory_try_all(life, 20);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_hooks_are_stopped_when_something_fails),
                cmocka_unit_test(test_hooks_that_are_stuck_keep_all_their_memory),
                cmocka_unit_test(test_hooks_that_were_not_stopped_keep_all_their_memory),
                cmocka_unit_test(test_a_stop_joins_a_start_that_returns_late),
                cmocka_unit_test(test_hooks_that_were_never_started_are_freed),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
