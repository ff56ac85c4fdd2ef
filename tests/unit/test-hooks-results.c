/* SPDX-License-Identifier: Apache-2.0 */
/* What the caller of the hooks learns: results, messages, tokens, and refusals at odd moments. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
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

#include <holdfast/health.h>
#include <holdfast/hooks.h>

static const struct hf_host silent = {.size = sizeof silent};

static int succeed(struct hf_hook_context *context, void *ctx, struct hf_status *reterr_status) {
        return 0;
}
static int fail_silently(struct hf_hook_context *context, void *ctx,
                         struct hf_status *reterr_status) {
        return HF_E_BUSY;
}
/* Returns another error than the one in its status. */
static int fail_twice(struct hf_hook_context *context, void *ctx, struct hf_status *reterr_status) {
        (void)hf_fail(reterr_status, HF_E_CONFLICT, "one reason");
        return HF_E_BUSY;
}
static int stay_stuck(struct hf_hook_context *context, void *ctx, struct hf_status *reterr_status) {
        return hf_fail(reterr_status, HF_E_STUCK, "work is left");
}
static int keep_context(struct hf_hook_context *context, void *ctx,
                        struct hf_status *reterr_status) {
        *(struct hf_hook_context **)ctx = context;
        return 0;
}

static struct hf_hooks *hooks_of(const struct hf_hook *list, size_t n) {
        struct hf_hooks *hooks = NULL;

        assert_int_equal(hf_hooks_new(&silent, NULL, &hooks), 0);
        for (size_t i = 0; i < n; i++)
                assert_int_equal(hf_hooks_add(hooks, &list[i], "test", NULL), 0);
        return hooks;
}

/* ---- results of functions ---- */

static void test_the_result_of_a_function_counts_and_has_a_message(void **state) {
        static const struct {
                int (*fn)(struct hf_hook_context *context, void *ctx,
                          struct hf_status *reterr_status);
                const char *message;
        } cases[] = {{fail_silently, NULL}, {fail_twice, "one reason"}};

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                const char *why = cases[i].message ? cases[i].message : hf_strerror(HF_E_BUSY);
                struct hf_hook list[] = {{.size = sizeof(struct hf_hook),
                                          .name = "a",
                                          .start = succeed,
                                          .stop = cases[i].fn},
                                         {.size = sizeof(struct hf_hook),
                                          .name = "b",
                                          .start = cases[i].fn}};
                struct hf_hooks *hooks = hooks_of(list, 2);
                struct hf_status status = {0};
                char expected[200];

                assert_int_equal(hf_hooks_start(hooks, &status), HF_E_BUSY);
                assert_int_equal(status.error, HF_E_BUSY);
                (void)snprintf(expected, sizeof expected, "hook \"b\" failed: %s", why);
                assert_string_equal(status.message, expected);
                assert_int_equal(hf_hooks_stop(hooks, &status), HF_E_BUSY);
                (void)snprintf(expected, sizeof expected, "hook \"a\" failed to stop: %s", why);
                assert_string_equal(status.message, expected);
                hf_hooks_free(hooks);
        }
}

static void test_the_first_error_of_the_stops_is_returned_unless_one_is_stuck(void **state) {
        struct hf_hook list[] = {{.size = sizeof(struct hf_hook),
                                  .name = "a",
                                  .start = succeed,
                                  .stop = fail_silently},
                                 {.size = sizeof(struct hf_hook),
                                  .name = "b",
                                  .start = succeed,
                                  .stop = stay_stuck}};
        struct hf_status status = {0};
        struct hf_hooks *hooks = hooks_of(list, 1);

        assert_int_equal(hf_hooks_start(hooks, &status), 0);
        assert_int_equal(hf_hooks_stop(hooks, &status), HF_E_BUSY);
        hf_hooks_free(hooks);
        /* referenced here, because it is never freed: the function says that it left work */
        static struct hf_hooks *volatile left;
        hooks = left = hooks_of(list, 2);
        assert_int_equal(hf_hooks_start(hooks, &status), 0);
        assert_int_equal(hf_hooks_stop(hooks, &status), HF_E_STUCK);
        assert_non_null(strstr(status.message, "hook \"b\" failed to stop: work is left"));
        assert_non_null(strstr(status.message, "hook \"a\" failed to stop"));
        assert_null(hf_hooks_free(left));
}

static void test_many_errors_are_cut_at_the_end_of_the_message(void **state) {
        static char names[40][64];
        struct hf_hook list[40];
        struct hf_status status = {0};

        for (size_t i = 0; i < 40; i++) {
                (void)snprintf(names[i], sizeof names[i], "hook-with-a-long-name-number-%zu", i);
                list[i] = (struct hf_hook){.size = sizeof(struct hf_hook),
                                           .name = names[i],
                                           .start = succeed,
                                           .stop = fail_silently};
        }
        struct hf_hooks *hooks = hooks_of(list, 40);
        assert_int_equal(hf_hooks_start(hooks, &status), 0);
        assert_int_equal(hf_hooks_stop(hooks, &status), HF_E_BUSY);
        assert_int_equal(strlen(status.message), sizeof status.message - 1);
        assert_non_null(strstr(status.message, "number-39\" failed to stop: "));
        assert_non_null(strstr(status.message, "; hook \"hook-with-a-long-name-number-38\""));
        hf_hooks_free(hooks);
}

/* A hook is usually registered after those that it depends on, but it need not be. */
static void test_a_stop_ends_when_dependents_were_registered_first(void **state) {
        const char *on_a[] = {"a"}, *on_b[] = {"b"};
        struct hf_hook list[] = {
                {.size = sizeof(struct hf_hook),
                 .name = "c",
                 .start = succeed,
                 .stop = succeed,
                 .after = on_b,
                 .n_after = 1},
                {.size = sizeof(struct hf_hook),
                 .name = "b",
                 .start = fail_silently,
                 .stop = succeed,
                 .after = on_a,
                 .n_after = 1},
                {.size = sizeof(struct hf_hook), .name = "a", .start = succeed, .stop = succeed},
        };
        struct hf_hooks *hooks = hooks_of(list, 3);

        assert_int_equal(hf_hooks_start(hooks, NULL), HF_E_BUSY);
        assert_int_equal(hf_hooks_stop(hooks, NULL), 0);
        hf_hooks_free(hooks);
}

/* ---- tokens, and what is refused once they have fired ---- */

static void test_the_stopped_token_fires_when_the_caller_says_so(void **state) {
        struct hf_hook_context *context = NULL;
        struct hf_hook hook = {.size = sizeof hook,
                               .name = "a",
                               .start = keep_context,
                               .ctx = &context};
        struct hf_hooks *hooks = hooks_of(&hook, 1);

        assert_int_equal(hf_hooks_start(hooks, NULL), 0);
        assert_false(hf_cancel_fired(hf_hook_shutting_down(context)));
        hf_hooks_shut_down(hooks);
        assert_true(hf_cancel_fired(hf_hook_shutting_down(context)));
        assert_int_equal(hf_hooks_stop(hooks, NULL), 0);
        assert_false(hf_cancel_fired(hf_hook_stopped(context)));
        hf_hooks_fire_stopped(hooks);
        assert_true(hf_cancel_fired(hf_hook_stopped(context)));
        hf_hooks_free(hooks);
}

static void never(void *ctx, struct hf_cancel *token) { abort(); }

static void test_no_thread_begins_after_the_shutdown_has_begun(void **state) {
        struct hf_hook_context *context = NULL;
        struct hf_hook hook = {.size = sizeof hook,
                               .name = "a",
                               .start = keep_context,
                               .ctx = &context};
        struct hf_hooks *hooks = hooks_of(&hook, 1);

        assert_int_equal(hf_hooks_start(hooks, NULL), 0);
        hf_hooks_shut_down(hooks); /* the stop of the hook has not begun */
        assert_int_equal(hf_hook_spawn(context, "late", never, NULL), HF_E_CLOSED);
        assert_int_equal(hf_hooks_stop(hooks, NULL), 0);
        assert_int_equal(hf_hook_spawn(context, "later", never, NULL), HF_E_CLOSED);
        hf_hooks_free(hooks);
}

static void test_a_start_after_the_shutdown_is_refused_at_once(void **state) {
        struct hf_hook hook = {.size = sizeof hook, .name = "a", .start = succeed};
        struct hf_hooks *hooks = hooks_of(&hook, 1);
        struct hf_status status = {0};

        hf_hooks_shut_down(hooks);
        assert_int_equal(hf_hooks_start(hooks, &status), HF_E_CANCELED);
        assert_string_equal(status.message, "shut down before the start");
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        hf_hooks_free(hooks);
}

/* ---- a stop that meets a start ---- */

/*
 * A clock that keeps the start coordinator in its wait until the stop waits for it, or has returned
 * without waiting.
 */
static struct {
        atomic_bool is_in_start, has_left_start, stop_waits, stop_returned;
        pthread_t starter;
} held;

static int holding_wait(void *ctx, pthread_cond_t *cond, pthread_mutex_t *mutex, hf_nsec deadline) {
        const struct hf_clock *system = hf_clock_system();

        if (!pthread_equal(pthread_self(), held.starter)) {
                if (deadline == HF_NSEC_NEVER)
                        atomic_store(&held.stop_waits, true);
                return system->wait(system->ctx, cond, mutex, deadline);
        }
        atomic_store(&held.is_in_start, true);
        pthread_mutex_unlock(mutex);
        while (!atomic_load(&held.stop_waits) && !atomic_load(&held.stop_returned))
                (void)hf_cancel_wait(hf_cancel_never(), hf_now(system) + HF_NSEC_PER_MSEC);
        pthread_mutex_lock(mutex);
        atomic_store(&held.has_left_start, true);
        return 0;
}
static hf_nsec system_now(void *ctx) { return hf_now(hf_clock_system()); }
static const struct hf_clock holding_clock = {sizeof holding_clock, system_now,   system_now,
                                              system_now,           holding_wait, NULL};

static int await_shutdown(struct hf_hook_context *context, void *ctx,
                          struct hf_status *reterr_status) {
        const struct hf_clock *system = hf_clock_system();

        while (!hf_cancel_fired(hf_hook_shutting_down(context)))
                (void)hf_cancel_wait(hf_cancel_never(), hf_now(system) + HF_NSEC_PER_MSEC);
        return 0;
}

static void *start_main(void *ctx) {
        static int result;

        held.starter = pthread_self();
        result = hf_hooks_start(ctx, NULL);
        return &result;
}

/* If the stop returned earlier, the caller could free the hooks while the start still uses them. */
static void test_a_stop_returns_only_after_the_start(void **state) {
        static const struct hf_host host = {.size = sizeof host, .clock = &holding_clock};
        struct hf_hook hook = {.size = sizeof hook, .name = "a", .start = await_shutdown};
        struct hf_hooks *hooks = NULL;
        pthread_t thread;
        void *result;

        assert_int_equal(hf_hooks_new(&host, NULL, &hooks), 0);
        assert_int_equal(hf_hooks_add(hooks, &hook, "test", NULL), 0);
        assert_int_equal(pthread_create(&thread, NULL, start_main, hooks), 0);
        while (!atomic_load(&held.is_in_start))
                (void)hf_cancel_wait(hf_cancel_never(), system_now(NULL) + HF_NSEC_PER_MSEC);
        assert_int_equal(hf_hooks_stop(hooks, NULL), 0);
        assert_true(atomic_load(&held.has_left_start));
        atomic_store(&held.stop_returned, true);
        assert_int_equal(pthread_join(thread, &result), 0);
        assert_int_equal(*(int *)result, HF_E_CANCELED);
        hf_hooks_free(hooks);
}

/* ---- waiting ---- */

static atomic_uint n_waits;

static int counting_wait(void *ctx, pthread_cond_t *cond, pthread_mutex_t *mutex,
                         hf_nsec deadline) {
        const struct hf_clock *system = hf_clock_system();

        atomic_fetch_add(&n_waits, 1);
        return system->wait(system->ctx, cond, mutex, deadline);
}

static int take_a_while(struct hf_hook_context *context, void *ctx,
                        struct hf_status *reterr_status) {
        (void)hf_cancel_wait(hf_cancel_never(), system_now(NULL) + 50 * HF_NSEC_PER_MSEC);
        return 0;
}

/* The coordinators sleep while a function runs. */
static void test_waiting_for_a_function_costs_no_processor(void **state) {
        static const struct hf_clock clock = {sizeof clock, system_now,    system_now,
                                              system_now,   counting_wait, NULL};
        static const struct hf_host host = {.size = sizeof host, .clock = &clock};
        struct hf_hook hook = {.size = sizeof hook,
                               .name = "a",
                               .start = take_a_while,
                               .stop = take_a_while};
        struct hf_hooks *hooks = NULL;

        assert_int_equal(hf_hooks_new(&host, NULL, &hooks), 0);
        assert_int_equal(hf_hooks_add(hooks, &hook, "test", NULL), 0);
        assert_int_equal(hf_hooks_start(hooks, NULL), 0);
        assert_int_equal(hf_hooks_stop(hooks, NULL), 0);
        assert_in_range(atomic_load(&n_waits), 2, 20);
        hf_hooks_free(hooks);
}

/* ---- registration ---- */

static void test_a_hook_gets_the_client_of_the_hooks(void **state) {
        static int client;
        struct hf_hook_context *context = NULL;
        struct hf_hook hook = {.size = sizeof hook,
                               .name = "a",
                               .start = keep_context,
                               .ctx = &context};
        struct hf_hooks *hooks = NULL;

        assert_int_equal(hf_hooks_new(&silent, (struct hf_client *)&client, &hooks), 0);
        assert_int_equal(hf_hooks_add(hooks, &hook, "test", NULL), 0);
        assert_int_equal(hf_hooks_start(hooks, NULL), 0);
        assert_ptr_equal(hf_hook_client(context), &client);
        assert_int_equal(hf_hooks_stop(hooks, NULL), 0);
        hf_hooks_free(hooks);
}

static void test_a_duplicate_names_both_callers_also_with_health_checks(void **state) {
        struct hf_host host = {.size = sizeof host};
        struct hf_hook hook = {.size = sizeof hook, .name = "a", .start = succeed};
        struct hf_hooks *hooks = NULL;
        struct hf_status status = {0};

        assert_int_equal(hf_health_new(&host.health), 0);
        assert_int_equal(hf_hooks_new(&host, NULL, &hooks), 0);
        assert_int_equal(hf_hooks_add(hooks, &hook, NULL, &status), 0);
        assert_int_equal(hf_hooks_add(hooks, &hook, "me.c:1", &status), HF_E_EXISTS);
        assert_string_equal(status.message, "hook \"a\" (by me.c:1) is already registered by an "
                                            "unnamed caller");
        assert_int_equal(hf_health_each(host.health, HF_LIVEZ, NULL, NULL), 1);
        hf_hooks_free(hooks);
        hf_health_free(host.health);
}

static void test_a_list_of_names_that_is_missing_is_refused(void **state) {
        const char *const none[] = {NULL};
        struct hf_hook hook = {.size = sizeof hook, .name = "a", .start = succeed, .n_after = 1};
        struct hf_hooks *hooks = hooks_of(NULL, 0);

        assert_int_equal(hf_hooks_add(hooks, &hook, "test", NULL), HF_E_INVALID);
        hook.after = none;
        assert_int_equal(hf_hooks_add(hooks, &hook, "test", NULL), HF_E_INVALID);
        assert_int_equal(hf_hooks_start(hooks, NULL), 0);
        assert_int_equal(hf_hooks_stop(hooks, NULL), 0);
        hf_hooks_free(hooks);
}

static void test_a_cycle_is_found_beside_hooks_that_are_free_of_it(void **state) {
        const char *on_b_and_c[] = {"b", "c"}, *on_d[] = {"d"}, *on_a[] = {"a"};
        struct hf_hook list[] = {
                {.size = sizeof(struct hf_hook),
                 .name = "a",
                 .start = succeed,
                 .after = on_b_and_c,
                 .n_after = 2},
                {.size = sizeof(struct hf_hook),
                 .name = "b",
                 .start = succeed,
                 .after = on_d,
                 .n_after = 1},
                {.size = sizeof(struct hf_hook),
                 .name = "c",
                 .start = succeed,
                 .after = on_a,
                 .n_after = 1},
                {.size = sizeof(struct hf_hook), .name = "d", .start = succeed},
        };
        struct hf_hooks *hooks = hooks_of(list, 4);
        struct hf_status status = {0};

        assert_int_equal(hf_hooks_start(hooks, &status), HF_E_INVALID);
        assert_string_equal(status.message,
                            "hooks wait for each other in a cycle: \"a\" after \"c\" after \"a\"");
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        hf_hooks_free(hooks);
}

static sem_t check_entered, check_may_leave;
static bool blocking_check(void *ctx, char *reason, size_t max_reason) {
        (void)sem_post(&check_entered);
        while (sem_wait(&check_may_leave) != 0)
                continue;
        return true;
}
static void *run_checks(void *ctx) {
        (void)hf_health_each(ctx, HF_READYZ, NULL, NULL);
        return NULL;
}
struct late_hook {
        struct hf_hooks *hooks;
        struct hf_status status;
        int result;
};
static void *add_late(void *ctx) {
        struct late_hook *late = ctx;
        struct hf_hook hook = {.size = sizeof hook, .name = "late", .start = succeed};

        late->result = hf_hooks_add(late->hooks, &hook, "test", &late->status);
        return NULL;
}

/* The registration passes its first check, waits to add its health check, and comes too late. */
static void test_a_hook_that_comes_too_late_leaves_no_health_check(void **state) {
        struct hf_host host = {.size = sizeof host};
        struct late_hook late = {0};
        pthread_t checks, adds;

        assert_int_equal(sem_init(&check_entered, 0, 0), 0);
        assert_int_equal(sem_init(&check_may_leave, 0, 0), 0);
        assert_int_equal(hf_health_new(&host.health), 0);
        assert_int_equal(hf_health_add(host.health, "slow", HF_READYZ, blocking_check, NULL), 0);
        assert_int_equal(hf_hooks_new(&host, NULL, &late.hooks), 0);
        assert_int_equal(pthread_create(&checks, NULL, run_checks, host.health), 0);
        assert_int_equal(sem_wait(&check_entered), 0);
        assert_int_equal(pthread_create(&adds, NULL, add_late, &late), 0);
        /* Whether the registration has begun by now or not, it ends after the start. */
        (void)hf_cancel_wait(hf_cancel_never(), system_now(NULL) + 20 * HF_NSEC_PER_MSEC);
        assert_int_equal(hf_hooks_start(late.hooks, NULL), 0);
        assert_int_equal(sem_post(&check_may_leave), 0);
        assert_int_equal(pthread_join(checks, NULL), 0);
        assert_int_equal(pthread_join(adds, NULL), 0);
        assert_int_equal(late.result, HF_E_CLOSED);
        assert_non_null(strstr(late.status.message, "\"late\""));
        assert_int_equal(hf_health_each(host.health, HF_LIVEZ, NULL, NULL), 0);
        assert_int_equal(hf_hooks_stop(late.hooks, NULL), 0);
        hf_hooks_free(late.hooks);
        hf_health_free(host.health);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_result_of_a_function_counts_and_has_a_message),
                cmocka_unit_test(test_the_first_error_of_the_stops_is_returned_unless_one_is_stuck),
                cmocka_unit_test(test_many_errors_are_cut_at_the_end_of_the_message),
                cmocka_unit_test(test_a_stop_ends_when_dependents_were_registered_first),
                cmocka_unit_test(test_the_stopped_token_fires_when_the_caller_says_so),
                cmocka_unit_test(test_no_thread_begins_after_the_shutdown_has_begun),
                cmocka_unit_test(test_a_start_after_the_shutdown_is_refused_at_once),
                cmocka_unit_test(test_a_stop_returns_only_after_the_start),
                cmocka_unit_test(test_waiting_for_a_function_costs_no_processor),
                cmocka_unit_test(test_a_hook_gets_the_client_of_the_hooks),
                cmocka_unit_test(test_a_duplicate_names_both_callers_also_with_health_checks),
                cmocka_unit_test(test_a_list_of_names_that_is_missing_is_refused),
                cmocka_unit_test(test_a_cycle_is_found_beside_hooks_that_are_free_of_it),
                cmocka_unit_test(test_a_hook_that_comes_too_late_leaves_no_health_check),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
