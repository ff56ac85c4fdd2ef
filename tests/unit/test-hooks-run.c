/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting and stopping hooks: order, deadlines, tokens, and errors. test-hooks-threads.c has the
 * threads of hooks, and test-hooks-races.c has starts and stops on two threads.
 */
#undef NDEBUG
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/hooks.h>

#include "hooks_fixture.h"
#include "text_asserts.h"

static int failing_start(struct hf_hook_context *context, void *ctx,
                         struct hf_status *reterr_status) {
        return hf_fail(reterr_status, HF_E_UNAVAILABLE, "%s has no luck", (const char *)ctx);
}
static int failing_stop(struct hf_hook_context *context, void *ctx,
                        struct hf_status *reterr_status) {
        hooks_fixture_note(ctx, "-");
        return hf_fail(reterr_status, HF_E_BUSY, "%s would not", (const char *)ctx);
}
/* Returns only after the shutdown was requested. */
static int patient_start(struct hf_hook_context *context, void *ctx,
                         struct hf_status *reterr_status) {
        hooks_fixture_note(ctx, "+");
        assert(hf_cancel_wait(hf_hook_shutting_down(context), HF_NSEC_NEVER) == HF_E_CANCELED);
        hooks_fixture_note(ctx, "=");
        return HF_E_CANCELED;
}

static void test_starts_follow_their_order_and_stops_reverse_it(void **state) {
        const char *on_a[] = {"a"}, *on_both[] = {"a", "b"};
        struct hf_hook list[] = {
                {.size = sizeof(struct hf_hook),
                 .name = "c",
                 .start = hooks_fixture_start,
                 .stop = hooks_fixture_stop,
                 .after = on_both,
                 .n_after = 2},
                {.size = sizeof(struct hf_hook),
                 .name = "b",
                 .start = hooks_fixture_start,
                 .stop = hooks_fixture_stop,
                 .after = on_a,
                 .n_after = 1},
                {.size = sizeof(struct hf_hook),
                 .name = "a",
                 .start = hooks_fixture_start,
                 .stop = hooks_fixture_stop},
        };
        struct hf_status status;
        struct hf_hooks *hooks = HOOKS_FIXTURE_NEW(list);
        assert_int_equal(hf_hooks_start(hooks, &status), 0);
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        hf_hooks_free(hooks);
        assert_string_equal(hooks_fixture_diary(), "a+ b+ c+ c- b- a- ");
}

/* Each of the two waits for the other, so they end only if both run at the same time. */
static sem_t meet[2];
static int meeting(struct hf_hook_context *context, void *ctx, struct hf_status *reterr_status) {
        int i = ctx == &meet[1];
        sem_post(&meet[i]);
        sem_wait(&meet[!i]);
        return 0;
}
static void test_independent_hooks_run_at_once(void **state) {
        struct hf_hook list[] = {
                {.size = sizeof(struct hf_hook),
                 .name = "a",
                 .start = meeting,
                 .stop = meeting,
                 .ctx = &meet[0]},
                {.size = sizeof(struct hf_hook),
                 .name = "b",
                 .start = meeting,
                 .stop = meeting,
                 .ctx = &meet[1]},
        };
        struct hf_status status;
        sem_init(&meet[0], 0, 0);
        sem_init(&meet[1], 0, 0);
        struct hf_hooks *hooks = HOOKS_FIXTURE_NEW(list);
        assert_int_equal(hf_hooks_start(hooks, &status), 0);
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        hf_hooks_free(hooks);
}

static void test_a_failed_start_is_named_and_started_hooks_are_stopped(void **state) {
        struct hf_hook list[] = {
                {.size = sizeof(struct hf_hook), .name = "a"},
                {.size = sizeof(struct hf_hook), .name = "b", .start = failing_start},
                {.size = sizeof(struct hf_hook), .name = "c"},
        };
        struct hf_status status;
        struct hf_hooks *hooks = HOOKS_FIXTURE_NEW_CHAIN(list);
        assert_int_equal(hf_hooks_start(hooks, &status), HF_E_UNAVAILABLE);
        assert_in(status.message, "\"b\"");
        assert_in(status.message, "b has no luck");
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        hf_hooks_free(hooks);
        /* b was started, so it is stopped; c was not */
        assert_string_equal(hooks_fixture_diary(), "a+ b- a- ");
}

static void test_a_start_past_its_deadline_is_named(void **state) {
        struct hf_hook list[] = {{.size = sizeof(struct hf_hook),
                                  .name = "slow",
                                  .start = patient_start,
                                  .stop = hooks_fixture_stop,
                                  .start_deadline = 20 * HF_NSEC_PER_MSEC}};
        struct hf_status status;
        struct hf_hooks *hooks = HOOKS_FIXTURE_NEW(list);
        assert_int_equal(hf_hooks_start(hooks, &status), HF_E_TIMEOUT);
        assert_in(status.message, "\"slow\"");
        assert_in(status.message, "20 ms");
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        hf_hooks_free(hooks);
        hooks_fixture_assert_before("slow+", "slow-");
}

static void test_a_deadline_may_be_as_late_as_never(void **state) {
        struct hf_hook list[] = {{.size = sizeof(struct hf_hook),
                                  .name = "a",
                                  .start = hooks_fixture_start,
                                  .stop = hooks_fixture_stop,
                                  .start_deadline = HF_NSEC_NEVER,
                                  .stop_deadline = HF_NSEC_NEVER},
                                 {.size = sizeof(struct hf_hook),
                                  .name = "b",
                                  .start = hooks_fixture_start,
                                  .stop = hooks_fixture_stop,
                                  .start_deadline = HF_NSEC_NEVER - 1,
                                  .stop_deadline = HF_NSEC_NEVER - 1}};
        struct hf_status status;
        struct hf_hooks *hooks = HOOKS_FIXTURE_NEW(list);
        assert_int_equal(hf_hooks_start(hooks, &status), 0);
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        hf_hooks_free(hooks);
        hooks_fixture_assert_before("a+", "a-");
        hooks_fixture_assert_before("b+", "b-");
}

static void *shut_down_main(void *ctx) {
        hf_hooks_shut_down(ctx);
        return NULL;
}
static struct hf_hooks *to_shut_down;
static int shutting_start(struct hf_hook_context *context, void *ctx,
                          struct hf_status *reterr_status) {
        hooks_fixture_note(ctx, "+");
        hf_hooks_shut_down(to_shut_down);
        return 0;
}
/* Scenario of docs/parity.md: A12. */
static void test_shutting_down_during_the_start_begins_nothing_more(void **state) {
        struct hf_hook list[] = {
                {.size = sizeof(struct hf_hook), .name = "a", .start = shutting_start},
                {.size = sizeof(struct hf_hook), .name = "b"},
        };
        struct hf_status status;
        struct hf_hooks *hooks = to_shut_down = HOOKS_FIXTURE_NEW_CHAIN(list);
        assert_int_equal(hf_hooks_start(hooks, &status), HF_E_CANCELED);
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        hf_hooks_free(hooks);
        assert_string_equal(hooks_fixture_diary(), "a+ a- ");
}

static void test_shutting_down_before_the_start_starts_nothing(void **state) {
        struct hf_hook list[] = {{.size = sizeof(struct hf_hook),
                                  .name = "a",
                                  .start = hooks_fixture_start,
                                  .stop = hooks_fixture_stop}};
        struct hf_status status;
        struct hf_hooks *hooks = HOOKS_FIXTURE_NEW(list);
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, shut_down_main, hooks), 0);
        pthread_join(thread, NULL);
        assert_int_equal(hf_hooks_start(hooks, &status), HF_E_CANCELED);
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        hf_hooks_free(hooks);
        assert_string_equal(hooks_fixture_diary(), "");
}

static void test_stopping_before_the_start_closes_it(void **state) {
        struct hf_hook list[] = {{.size = sizeof(struct hf_hook),
                                  .name = "a",
                                  .start = hooks_fixture_start,
                                  .stop = hooks_fixture_stop}};
        struct hf_status status;
        struct hf_hooks *hooks = HOOKS_FIXTURE_NEW(list);
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        assert_int_equal(hf_hooks_start(hooks, &status), HF_E_CLOSED);
        hf_hooks_free(hooks);
        assert_string_equal(hooks_fixture_diary(), "");
}

static void test_the_errors_of_all_stops_are_reported(void **state) {
        struct hf_hook list[] = {
                {.size = sizeof(struct hf_hook), .name = "a", .stop = failing_stop},
                {.size = sizeof(struct hf_hook), .name = "b"},
                {.size = sizeof(struct hf_hook), .name = "c", .stop = failing_stop},
        };
        struct hf_status status;
        struct hf_hooks *hooks = HOOKS_FIXTURE_NEW_CHAIN(list);
        assert_int_equal(hf_hooks_start(hooks, &status), 0);
        assert_int_equal(hf_hooks_stop(hooks, &status), HF_E_BUSY);
        assert_in(status.message, "c would not");
        assert_in(status.message, "a would not");
        hf_hooks_free(hooks);
        assert_string_equal(hooks_fixture_diary(), "a+ b+ c+ c- b- a- ");
}

static sem_t freedom;
static int stubborn_stop(struct hf_hook_context *context, void *ctx,
                         struct hf_status *reterr_status) {
        sem_wait(&freedom);
        hooks_fixture_note(ctx, "!");
        sem_post(&freedom);
        return 0;
}
/* Scenario of docs/parity.md: A13. */
static void test_a_stop_past_its_deadline_is_stuck_and_does_not_hold_up_the_others(void **state) {
        struct hf_hook list[] = {
                {.size = sizeof(struct hf_hook), .name = "a"},
                {.size = sizeof(struct hf_hook),
                 .name = "b",
                 .stop = stubborn_stop,
                 .stop_deadline = 20 * HF_NSEC_PER_MSEC},
        };
        struct hf_status status;
        sem_init(&freedom, 0, 0);
        /* referenced here, because it is never freed */
        struct hf_hooks *hooks = to_shut_down = HOOKS_FIXTURE_NEW_CHAIN(list);
        assert_int_equal(hf_hooks_start(hooks, &status), 0);
        assert_int_equal(hf_hooks_stop(hooks, &status), HF_E_STUCK);
        assert_in(status.message, "\"b\" is stuck");
        assert_string_equal(hooks_fixture_diary(), "a+ b+ a- ");
        assert_null(hf_hooks_free(hooks)); /* frees nothing: the thread still runs in it */
        sem_post(&freedom);
        sem_wait(&freedom); /* the thread has continued, and the memory that it uses still exists */
}

static int stubborn_start(struct hf_hook_context *context, void *ctx,
                          struct hf_status *reterr_status) {
        return stubborn_stop(context, ctx, reterr_status);
}
static void test_a_start_that_never_returned_is_reported_with_its_own_deadline(void **state) {
        struct hf_hook list[] = {{.size = sizeof(struct hf_hook),
                                  .name = "a",
                                  .start = stubborn_start,
                                  .start_deadline = 20 * HF_NSEC_PER_MSEC,
                                  .stop_deadline = 30 * HF_NSEC_PER_MSEC}};
        struct hf_status status;
        static struct hf_hooks *volatile left; /* keeps what is never freed referenced */
        sem_init(&freedom, 0, 0);
        struct hf_hooks *hooks = left = HOOKS_FIXTURE_NEW(list);
        assert_int_equal(hf_hooks_start(hooks, &status), HF_E_TIMEOUT);
        assert_int_equal(hf_hooks_stop(hooks, &status), HF_E_STUCK);
        assert_in(status.message,
                  "\"a\" is stuck: its start function has not returned by its deadline (20 ms)");
        assert_null(hf_hooks_free(hooks)); /* frees nothing: the thread still runs in it */
        sem_post(&freedom);
        sem_wait(&freedom); /* the thread has continued, and the memory that it uses still exists */
}

static int token_stop(struct hf_hook_context *context, void *ctx, struct hf_status *reterr_status) {
        /* While hooks stop, the API still serves: only the first token has fired. */
        hooks_fixture_note(ctx, hf_cancel_fired(hf_hook_shutting_down(context)) &&
                                                !hf_cancel_fired(hf_hook_stopped(context))
                                        ? "-"
                                        : "?");
        return 0;
}
static void test_the_two_tokens_fire_one_after_the_other(void **state) {
        struct hf_hook list[] = {{.size = sizeof(struct hf_hook),
                                  .name = "a",
                                  .start = hooks_fixture_start,
                                  .stop = token_stop}};
        struct hf_status status;
        struct hf_hooks *hooks = HOOKS_FIXTURE_NEW(list);
        assert_int_equal(hf_hooks_start(hooks, &status), 0);
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        hf_hooks_fire_stopped(hooks);
        hf_hooks_free(hooks);
        assert_string_equal(hooks_fixture_diary(), "a+ a- ");
}

/* The test leaves a stuck thread alone on purpose, so the sanitizer must not report it. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "report_thread_leaks=0"; }

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_starts_follow_their_order_and_stops_reverse_it),
                cmocka_unit_test(test_independent_hooks_run_at_once),
                cmocka_unit_test(test_a_failed_start_is_named_and_started_hooks_are_stopped),
                cmocka_unit_test(test_a_start_past_its_deadline_is_named),
                cmocka_unit_test(test_a_deadline_may_be_as_late_as_never),
                cmocka_unit_test(test_shutting_down_during_the_start_begins_nothing_more),
                cmocka_unit_test(test_shutting_down_before_the_start_starts_nothing),
                cmocka_unit_test(test_stopping_before_the_start_closes_it),
                cmocka_unit_test(test_the_errors_of_all_stops_are_reported),
                cmocka_unit_test(
                        test_a_stop_past_its_deadline_is_stuck_and_does_not_hold_up_the_others),
                cmocka_unit_test(
                        test_a_start_that_never_returned_is_reported_with_its_own_deadline),
                cmocka_unit_test(test_the_two_tokens_fire_one_after_the_other),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
