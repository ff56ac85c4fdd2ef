/* SPDX-License-Identifier: Apache-2.0 */
/* The threads that a hook has spawned: they are canceled, joined, and not kept. */
#undef NDEBUG
#include <assert.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <holdfast/hooks.h>

#include "hooks/hook_registry.h"
#include "hooks/threads.h"
#include "hooks_fixture.h"

struct spawn_test {
        struct hf_hook_context *context;
        atomic_int n_ended;
        int late;
};
static void supervised(void *ctx, struct hf_cancel *token) {
        struct spawn_test *test = ctx;
        assert(hf_cancel_wait(token, HF_NSEC_NEVER) == HF_E_CANCELED);
        atomic_fetch_add(&test->n_ended, 1);
}
static int spawning_start(struct hf_hook_context *context, void *ctx,
                          struct hf_status *reterr_status) {
        struct spawn_test *test = ctx;
        test->context = context;
        int r = hf_hook_spawn(context, "one", supervised, test);
        return r != 0 ? r : hf_hook_spawn(context, "two", supervised, test);
}
static int spawning_stop(struct hf_hook_context *context, void *ctx,
                         struct hf_status *reterr_status) {
        struct spawn_test *test = ctx;
        test->late = hf_hook_spawn(context, "late", supervised, test);
        return 0;
}
static void test_spawned_threads_are_canceled_and_joined(void **state) {
        struct spawn_test test = {0};
        struct hf_hook list[] = {{.size = sizeof(struct hf_hook),
                                  .name = "a",
                                  .start = spawning_start,
                                  .stop = spawning_stop,
                                  .ctx = &test}};
        struct hf_status status;
        struct hf_hooks *hooks = HOOKS_FIXTURE_NEW(list);
        assert_int_equal(hf_hooks_start(hooks, &status), 0);
        assert_int_equal(atomic_load(&test.n_ended), 0);
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        assert_int_equal(atomic_load(&test.n_ended), 2);
        assert_int_equal(test.late, HF_E_CLOSED);
        assert_int_equal(hf_hook_spawn(test.context, "later", supervised, &test), HF_E_CLOSED);
        hf_hooks_free(hooks);
}

static void test_a_hook_without_a_stop_still_joins_its_threads(void **state) {
        struct spawn_test test = {0};
        struct hf_hook list[] = {{.size = sizeof(struct hf_hook),
                                  .name = "a",
                                  .start = spawning_start,
                                  .ctx = &test}};
        struct hf_status status;
        struct hf_hooks *hooks = HOOKS_FIXTURE_NEW(list);
        assert_int_equal(hf_hooks_start(hooks, &status), 0);
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        assert_int_equal(atomic_load(&test.n_ended), 2);
        hf_hooks_free(hooks);
}

static void short_job(void *ctx, struct hf_cancel *token) { sem_post(ctx); }
static int context_start(struct hf_hook_context *context, void *ctx,
                         struct hf_status *reterr_status) {
        *(struct hf_hook_context **)ctx = context;
        return 0;
}
static unsigned n_threads_kept(struct hf_hook_context *context) {
        unsigned n = 0;
        pthread_mutex_lock(&context->hooks->mu);
        for (struct hf__hook_thread *thread = context->threads; thread; thread = thread->next)
                n++;
        pthread_mutex_unlock(&context->hooks->mu);
        return n;
}
/* A hook may spawn a thread for each job, for as long as the process lives. */
static void test_threads_that_have_returned_are_not_kept(void **state) {
        struct hf_hook_context *context = NULL;
        struct hf_hook list[] = {{.size = sizeof(struct hf_hook),
                                  .name = "a",
                                  .start = context_start,
                                  .ctx = &context}};
        struct hf_status status;
        sem_t ran;
        sem_init(&ran, 0, 0);
        struct hf_hooks *hooks = HOOKS_FIXTURE_NEW(list);
        assert_int_equal(hf_hooks_start(hooks, &status), 0);
        hf_nsec until = hf_now(hf_clock_system()) + 20 * HF_NSEC_PER_SEC;
        unsigned n_kept = UINT_MAX;
        for (unsigned i = 0; (i < 100 || n_kept > 2) && hf_now(hf_clock_system()) < until; i++) {
                assert_int_equal(hf_hook_spawn(context, "job", short_job, &ran), 0);
                sem_wait(&ran);
                n_kept = n_threads_kept(context);
        }
        assert_in_range(n_kept, 0, 2);
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        hf_hooks_free(hooks);
        sem_destroy(&ran);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_spawned_threads_are_canceled_and_joined),
                cmocka_unit_test(test_a_hook_without_a_stop_still_joins_its_threads),
                cmocka_unit_test(test_threads_that_have_returned_are_not_kept),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
