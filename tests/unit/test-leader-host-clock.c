/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Electors of a host whose clock shows another time than the system's, or jumps. The clock of these
 * tests is the system's plus an offset.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/error.h>

#include "elector_fixture.h"
#include "hooks/hook_registry.h"

#define SLICE (5 * HF_NSEC_PER_MSEC) /* a wait notices a jump of the clock after this time */

static _Atomic hf_nsec offset;
static pthread_t main_thread;
static atomic_uint n_main_waits; /* waits of the main thread that have ended */

static hf_nsec read_boot(void *ctx) { return hf_now(hf_clock_system()) + atomic_load(&offset); }
static hf_nsec read_monotonic(void *ctx) { return hf_clock_system()->monotonic(NULL); }
static hf_nsec read_real(void *ctx) { return hf_clock_system()->real(NULL); }

static int wait_slice(void *ctx, pthread_cond_t *cond, pthread_mutex_t *mutex, hf_nsec deadline) {
        const struct hf_clock *clock = hf_clock_system();
        hf_nsec left = deadline == HF_NSEC_NEVER ? SLICE : deadline - read_boot(NULL);

        if (left <= 0)
                return HF_E_TIMEOUT;
        int r = clock->wait(clock->ctx, cond, mutex, hf_now(clock) + (left < SLICE ? left : SLICE));
        if (pthread_equal(pthread_self(), main_thread))
                atomic_fetch_add(&n_main_waits, 1);
        if (r != HF_E_TIMEOUT)
                return r;
        return read_boot(NULL) >= deadline ? HF_E_TIMEOUT : 0;
}

static const struct hf_clock host_clock = {.size = sizeof host_clock,
                                           .boot = read_boot,
                                           .monotonic = read_monotonic,
                                           .real = read_real,
                                           .wait = wait_slice};

static struct {
        struct fake_api *api;
        struct fake_api_client *client;
        struct hf_electors *electors;
        atomic_bool is_leading, has_stopped;
        _Atomic hf_nsec jump_at_drain; /* 0 = none */
} f;

/* A controller that returns when it is drained. With jump_at_drain the clock then jumps, and the
 * controller stays until the main thread has looked at the clock again. */
static int run(struct hf_term *term, void *ctx) {
        pthread_mutex_lock(&f.api->mu);
        atomic_store(&f.is_leading, true);
        pthread_cond_broadcast(&f.api->changed);
        pthread_mutex_unlock(&f.api->mu);
        (void)hf_cancel_wait(hf_term_drain(term), HF_NSEC_NEVER);
        if (atomic_load(&f.jump_at_drain) == 0)
                return 0;
        atomic_fetch_add(&offset, atomic_load(&f.jump_at_drain));
        unsigned from = atomic_load(&n_main_waits);
        while (atomic_load(&n_main_waits) < from + 3 && !atomic_load(&f.has_stopped))
                (void)hf_cancel_wait(hf_cancel_never(), hf_now(hf_clock_system()) + SLICE);
        return 0;
}

static void setup(hf_nsec from) {
        atomic_store(&offset, from);
        main_thread = pthread_self();
        atomic_store(&f.is_leading, false);
        atomic_store(&f.has_stopped, false);
        atomic_store(&f.jump_at_drain, 0);
        f.api = fake_api_new();
        f.api->host.clock = &host_clock;
        f.client = fake_api_client_new(f.api);
        assert_int_equal(hf_electors_new(&f.api->host, &f.electors), 0);
}

static void add_elector(hf_nsec scale) {
        const struct hf_controller worker = {.size = sizeof worker, .name = "worker", .run = run};
        const struct hf_elector_config config = {
                .size = sizeof config,
                .ns = "kube-system",
                .name = "lead",
                .identity = "a",
                .client = &f.client->base,
                .timing = {.lease_duration = 2 * scale,
                           .renew_deadline = 1 * scale,
                           .retry_period = scale / 5,
                           .drain_deadline = 1 * scale},
                .controllers = &worker,
                .n_controllers = 1,
                .events = true,
        };
        assert_int_equal(hf_electors_add(f.electors, &config, NULL, NULL), 0);
}

static void teardown(void) {
        hf_electors_free(f.electors);
        hf_client_free(&f.client->base);
        fake_api_free(f.api);
}

static bool leads(void *ctx) { return atomic_load(&f.is_leading); }

static void assert_stops(int r, const struct hf_status *status) {
        if (r != 0)
                fail_msg("stop: %s", status->message);
}

static void test_a_stop_ends_under_a_clock_that_is_ahead(void **state) {
        struct hf_status status = {0};

        setup(3600 * HF_NSEC_PER_SEC);
        add_elector(HF_NSEC_PER_SEC);
        assert_int_equal(hf_electors_start(f.electors, NULL), 0);
        elector_fixture_await(f.api, leads, NULL, __LINE__);
        assert_stops(hf_electors_stop(f.electors, &status), &status);
        teardown();
}

static bool has_renewed(void *ctx) { return f.api->store.n_commits >= *(size_t *)ctx; }

/* The loop runs a few times for each renewal. If it spun, it would run thousands of times. */
static void test_the_loop_does_not_spin_under_a_clock_that_is_behind(void **state) {
        struct hf_status status = {0};
        size_t n = 12;

        setup(-100 * HF_NSEC_PER_SEC);
        add_elector(HF_NSEC_PER_SEC);
        assert_int_equal(hf_electors_start(f.electors, NULL), 0);
        elector_fixture_await(f.api, has_renewed, &n, __LINE__);
        assert_in_range(hf_electors_iterations(f.electors), n, 40 * n);
        assert_stops(hf_electors_stop(f.electors, &status), &status);
        teardown();
}

/* The stop of this elector may take more than a minute, and the hooks must give it that time. */
static void test_the_hook_has_the_time_of_electors_that_were_added_later(void **state) {
        struct hf_status status = {0};
        struct hf_hooks *hooks = NULL;

        setup(0);
        assert_int_equal(hf_hooks_new(&f.api->host, &f.client->base, &hooks), 0);
        assert_int_equal(hf_controllers_install(hooks, f.electors, NULL, 0, NULL), 0);
        add_elector(60 * HF_NSEC_PER_SEC);
        atomic_store(&f.jump_at_drain, 15 * HF_NSEC_PER_SEC);
        assert_int_equal(hf_hooks_start(hooks, NULL), 0);
        elector_fixture_await(f.api, leads, NULL, __LINE__);
        pthread_mutex_lock(&hooks->mu);
        hf_nsec deadline = hooks->list[0]->hook.stop_deadline;
        pthread_mutex_unlock(&hooks->mu);
        assert_true(deadline > 2 * 60 * HF_NSEC_PER_SEC);
        int r = hf_hooks_stop(hooks, &status);
        atomic_store(&f.has_stopped, true);
        assert_stops(r, &status);
        hf_hooks_fire_stopped(hooks);
        hf_hooks_free(hooks);
        teardown();
}

/* The machine is suspended for an hour while the controllers drain. Every deadline of the stop has
 * passed when it resumes, but the threads that the stop waits for had no time. */
static void test_a_stop_goes_on_after_a_suspension(void **state) {
        struct hf_status status = {0};
        struct hf_hooks *hooks = NULL;

        setup(0);
        assert_int_equal(hf_hooks_new(&f.api->host, &f.client->base, &hooks), 0);
        assert_int_equal(hf_controllers_install(hooks, f.electors, NULL, 0, NULL), 0);
        add_elector(10 * HF_NSEC_PER_SEC);
        atomic_store(&f.jump_at_drain, 3600 * HF_NSEC_PER_SEC);
        assert_int_equal(hf_hooks_start(hooks, NULL), 0);
        elector_fixture_await(f.api, leads, NULL, __LINE__);
        int r = hf_hooks_stop(hooks, &status);
        atomic_store(&f.has_stopped, true);
        assert_stops(r, &status);
        hf_hooks_fire_stopped(hooks);
        hf_hooks_free(hooks);
        teardown();
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_stop_ends_under_a_clock_that_is_ahead),
                cmocka_unit_test(test_the_loop_does_not_spin_under_a_clock_that_is_behind),
                cmocka_unit_test(test_the_hook_has_the_time_of_electors_that_were_added_later),
                cmocka_unit_test(test_a_stop_goes_on_after_a_suspension),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
