/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reports of an elector about its terms: log lines, metrics, health, Events, on_change and the
 * leader's information. The clock moves only when the test moves it, so every number is exact.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "clocked_elector.h"
#include "patience.h"

#include <holdfast/error.h>

#define SERIES(name) "holdfast_leader_" name "{lease=\"kube-system/lead\"}"

static const struct clocked_options plain = {0};

static void start_leading(const struct clocked_options *options) {
        clocked_elector_init();
        clocked_elector_start(options);
        clocked_await_term();
}

static unsigned n_logged(const char *line) {
        unsigned n = 0;

        pthread_mutex_lock(&clocked.mu);
        for (const char *at = clocked.log; (at = strstr(at, line)); at++)
                n++;
        pthread_mutex_unlock(&clocked.mu);
        return n;
}

static void add_check(void *ctx, const char *name, bool healthy, const char *reason) {
        size_t n = strlen(ctx);

        (void)snprintf((char *)ctx + n, 600 - n, "%s %s%s\n", name,
                       healthy ? "ok" : "failed: ", healthy ? "" : reason);
}

static void finish(void) {
        clocked_elector_stop();
        clocked_elector_free();
}

/* Moves the clock until the elector leads. The previous holder, x, has died when the clock began,
 * and its Lease cannot be taken before 107 s. */
static void take_over_late(void) {
        clocked_elector_init();
        clocked_put_lease("x", "");
        clocked_elector_start(&plain);
        CLOCKED_AWAIT(strcmp(clocked_info().holder, "x") == 0);
        clocked_move(99 * SEC);
        fake_api_client_hold_requests(clocked.client, true);
        clocked_move(8 * SEC);
}

static void test_a_take_over_is_measured(void **state) {
        take_over_late();
        assert_true(clocked_logged("6 kube-system/lead: following, led by x\n"));
        assert_true(clocked_is(HF_FOLLOWING));
        assert_true(clocked_info().since == hand_clock_now() - 107 * SEC);
        assert_true(clocked_info().free_at == hand_clock_now() - 7 * SEC);
        assert_true(clocked_metric(SERIES("leaderless_seconds_total")) == 7);
        fake_api_client_hold_requests(clocked.client, false);
        clocked_await_term();
        assert_true(clocked_logged("5 kube-system/lead: leading, term "));
        assert_true(clocked_logged(" (expired by x, gap 107.000 s)\n"));
        assert_true(clocked_metric(SERIES("handover_gap_seconds")) == 107);
        assert_true(clocked_metric(SERIES("transitions_total")) == 2);
        assert_true(clocked_info().since == hand_clock_now());
        clocked_move(5 * SEC);
        assert_true(clocked_metric(SERIES("leaderless_seconds_total")) == 7);
        finish();
}

/* This process must wait for the successor, but nobody leads meanwhile. */
static void test_a_lease_that_waits_for_its_successor_has_no_leader(void **state) {
        clocked_elector_init();
        fake_api_put(clocked.api, CLOCKED_LEASE,
                     "{\"metadata\":{\"annotations\":{\"holdfast.dev/successor\":\"b\"}},"
                     "\"spec\":{\"holderIdentity\":\"\",\"leaseDurationSeconds\":1}}");
        clocked_elector_start(&plain);
        CLOCKED_AWAIT(clocked_info().free_at == hand_clock_now() + 10 * SEC);
        clocked_move(4 * SEC);
        assert_true(clocked_metric(SERIES("leaderless_seconds_total")) == 4);
        clocked_move(6 * SEC);
        clocked_await_term();
        assert_true(clocked_metric(SERIES("leaderless_seconds_total")) == 10);
        finish();
}

static void test_renewals_keep_the_term_and_are_measured(void **state) {
        start_leading(&plain);
        assert_true(clocked_info().valid_until == hand_clock_now() + 60 * SEC);
        for (int i = 0; i < 9; i++) /* longer than one write keeps the term valid */
                clocked_move(10 * SEC);
        assert_true(hf_elector_may_act(clocked.elector));
        assert_int_equal(clocked_info().n_terms, 1);
        double n = clocked_metric(SERIES("renew_duration_seconds_count"));
        assert_true(n >= 9); /* the acquire and at least 8 renewals */
        assert_true(clocked_metric(SERIES("renew_duration_seconds_sum")) == 0);
        fake_api_client_hold_requests(clocked.client, true);
        clocked_move(10 * SEC);
        hf_nsec sent_at = hand_clock_now();
        clocked_move(3 * SEC);
        assert_true(clocked_metric(SERIES("lease_remaining_seconds")) < 60 - 3);
        fake_api_client_hold_requests(clocked.client, false);
        clocked_settle();
        assert_true(clocked_metric(SERIES("renew_duration_seconds_count")) == n + 1);
        assert_true(clocked_metric(SERIES("renew_duration_seconds_sum")) == 3);
        /* The validity counts from the time at which the renewal was sent. */
        assert_true(clocked_info().valid_until == sent_at + 60 * SEC);
        assert_true(clocked_metric(SERIES("lease_remaining_seconds")) == 57);
        assert_true(clocked_metric(SERIES("lock_silence_seconds")) == 0);
        assert_true(clocked_metric("leader_election_slowpath_total{name=\"lead\"}") == 0);
        finish();
}

static void test_the_end_of_a_term_is_measured_from_its_drain(void **state) {
        start_leading(&plain);
        assert_int_equal(hf_elector_step_down(clocked.elector), 0);
        CLOCKED_AWAIT(clocked_is(HF_DRAINING));
        assert_true(clocked_logged("6 kube-system/lead: draining the controllers of the term: "
                                   "stepped down\n"));
        for (int i = 0; i < 4; i++)
                clocked_move(10 * SEC);
        assert_true(clocked_is(HF_ABORTING));
        assert_true(clocked_logged("4 kube-system/lead: the term is over: the drain deadline "
                                   "passed\n"));
        assert_string_equal(clocked_info().last_end, "the drain deadline passed");
        clocked_move(5 * SEC);
        clocked_elector_let_end();
        CLOCKED_AWAIT(clocked_is(HF_FOLLOWING));
        assert_true(clocked_metric(SERIES("stop_duration_seconds_count")) == 1);
        assert_true(clocked_metric(SERIES("stop_duration_seconds_sum")) == 45);
        CLOCKED_AWAIT(clocked_logged("6 kube-system/lead: following, led by nobody\n"));
        assert_true(clocked_metric(SERIES("term")) == 0);
        /* Nobody has led since the abort, and this process waits before it leads again. */
        clocked_move(3 * SEC);
        assert_true(clocked_metric(SERIES("leaderless_seconds_total")) == 8);
        /* The end of the next term is measured anew. */
        clocked_move(100 * SEC);
        CLOCKED_AWAIT(clocked_is(HF_LEADING));
        assert_int_equal(hf_elector_step_down(clocked.elector), 0);
        CLOCKED_AWAIT(clocked_is(HF_FOLLOWING));
        assert_true(clocked_metric(SERIES("stop_duration_seconds_count")) == 2);
        assert_true(clocked_metric(SERIES("stop_duration_seconds_sum")) == 45);
        finish();
}

static void test_a_controller_that_does_not_return_is_reported(void **state) {
        struct hf_status status = {0};

        start_leading(&plain);
        assert_true(clocked_metric(SERIES("stuck")) == 0);
        hf_elector_end_term(clocked.elector);
        CLOCKED_AWAIT(clocked_is(HF_ABORTING));
        clocked_move(19 * SEC);
        assert_true(clocked_is(HF_ABORTING));
        clocked_move(1 * SEC);
        assert_true(clocked_is(HF_STUCK));
        assert_string_equal(clocked_info().stuck_controller, "worker");
        assert_true(clocked_metric(SERIES("stuck")) == 1);
        assert_true(clocked_logged("3 kube-system/lead: controller worker has not returned by the "
                                   "end of the stop grace (20.000 s): the Lease is not released"));
        assert_int_equal(hf_electors_stop(clocked.electors, &status), HF_E_STUCK);
        clocked_elector_let_end();
        pthread_mutex_lock(&clocked.mu);
        PATIENCE_AWAIT_LOCKED(&clocked.changed, &clocked.mu, clocked.n_running == 0);
        pthread_mutex_unlock(&clocked.mu);
        PATIENCE_AWAIT(hf__term_is_joined(clocked.elector->term));
        clocked_elector_free();
}

/* While the loop is in on_change, the controllers return, and then more than the stop grace passes.
 * The second request to end the term, which the loop finds then, must not make it stuck. */
static void return_and_pause(enum hf_leader_state state) {
        if (state != HF_ABORTING)
                return;
        clocked_elector_let_end();
        PATIENCE_AWAIT(hf__term_is_joined(clocked.elector->term));
        hf_elector_end_term(clocked.elector);
        hand_clock_move(21 * SEC);
}

/* The loop runs late, but the controllers have returned in time. */
static void test_a_controller_that_has_returned_is_not_stuck(void **state) {
        clocked_elector_init();
        clocked.in_change = return_and_pause;
        clocked_elector_start(&plain);
        clocked_await_term();
        hf_elector_end_term(clocked.elector);
        PATIENCE_AWAIT(clocked_is(HF_FOLLOWING) || clocked_is(HF_STUCK));
        assert_true(clocked_is(HF_FOLLOWING));
        assert_true(clocked_metric(SERIES("stuck")) == 0);
        finish();
}

static bool health_says(const char *words) {
        char text[600] = "";

        (void)hf_health_each(clocked.host.health, HF_HEALTHZ, add_check, text);
        return strstr(text, words) != NULL;
}

/* The first failure in a row is logged as a warning, the others as debug messages. */
static void test_a_failure_is_a_warning_once_until_a_success(void **state) {
        static const char warning[] =
                "4 kube-system/lead: writing the Lease failed: the fake API server: forbidden\n";

        start_leading(&plain);
        fake_api_client_refuse(clocked.client, HF_E_FORBIDDEN, 2);
        clocked_move(10 * SEC);
        clocked_move(10 * SEC);
        assert_int_equal(n_logged(warning), 1);
        assert_true(clocked_logged("7 kube-system/lead: writing the Lease failed: the fake API "
                                   "server: forbidden\n"));
        clocked_move(10 * SEC);
        fake_api_client_refuse(clocked.client, HF_E_FORBIDDEN, 1);
        clocked_move(10 * SEC);
        assert_int_equal(n_logged(warning), 2);
        finish();
}

/* A standby that cannot read the Lease reports why, until it can read it. */
static void test_health_names_the_failure_of_a_silent_lock(void **state) {
        clocked_elector_init();
        clocked_put_lease("x", "");
        clocked_elector_start(&plain);
        CLOCKED_AWAIT(strcmp(clocked_info().holder, "x") == 0);
        fake_api_client_refuse(clocked.client, HF_E_FORBIDDEN, 0);
        for (int i = 0; i < 8; i++)
                clocked_move(10 * SEC);
        assert_true(health_says("leaderElection-lock ok"));
        /* A response that was under way may have come after the first moves. */
        for (int i = 0; i < 40 && health_says("leaderElection-lock ok"); i++)
                clocked_move(1 * SEC);
        assert_true(health_says("leaderElection-lock failed: lease kube-system/lead has not been "
                                "reached for 81 s: the fake API server: forbidden"));
        assert_true(clocked_logged("4 kube-system/lead: reading the Lease failed: the fake API "
                                   "server: forbidden\n"));
        assert_true(clocked_metric(SERIES("lock_silence_seconds")) == 81);
        fake_api_client_set_mode(clocked.client, FAKE_API_RESPONDS);
        for (int i = 0; i < 2; i++)
                clocked_move(10 * SEC);
        assert_true(health_says("leaderElection-lock ok"));
        finish();
}

/* A retry period of more than half a lease duration: a leader hears of its Lease that rarely. */
static void test_health_waits_for_the_next_renewal_of_a_leader(void **state) {
        const struct hf_leader_timing slow = {.lease_duration = 100 * SEC,
                                              .renew_deadline = 70 * SEC,
                                              .retry_period = 55 * SEC,
                                              .request_timeout = 2 * SEC,
                                              .stop_grace = 20 * SEC,
                                              .drain_deadline = 40 * SEC};

        start_leading(&(struct clocked_options){.timing = &slow});
        fake_api_client_hold_requests(clocked.client, true);
        clocked_move(53 * SEC);
        assert_true(health_says("leaderElection-lock ok"));
        fake_api_client_hold_requests(clocked.client, false);
        finish();
}

/* A follower had nothing to release. */
static void test_a_stop_says_whether_the_lease_is_held(void **state) {
        struct hf_status status = {0};

        clocked_elector_init();
        clocked_put_lease("x", "");
        clocked_elector_start(&plain);
        CLOCKED_AWAIT(strcmp(clocked_info().holder, "x") == 0);
        clocked_elector_stop();
        assert_true(clocked_logged("6 kube-system/lead: stopped, this process does not hold the "
                                   "Lease\n"));
        clocked_elector_free();

        start_leading(&plain);
        fake_api_client_refuse(clocked.client, HF_E_UNAVAILABLE, 0);
        clocked_elector_let_end();
        assert_int_equal(hf_electors_stop_begin(clocked.electors, NULL, NULL, NULL), 0);
        PATIENCE_AWAIT(clocked_is(HF_RELEASING));
        hand_clock_move(60 * SEC);
        PATIENCE_AWAIT(hf_electors_stop_poll(clocked.electors, &status) != HF_E_BUSY);
        assert_int_equal(hf_electors_stop_poll(clocked.electors, &status), HF_E_TIMEOUT);
        assert_true(clocked_logged("6 kube-system/lead: stopped, the Lease may name this process "
                                   "until it expires\n"));
        clocked_elector_free();
}

/* Returns when the stop waits for it, which nobody does before its drain. */
static int return_late(struct hf_term *term, void *ctx) {
        (void)hf_cancel_wait(hf_term_drain(term), HF_NSEC_NEVER);
        hand_clock_await_deadline(121 * SEC, 130 * SEC);
        return 0;
}

/* The clock stands still, so only its return ends the wait. The stop would wait for the drain, the
 * grace and two requests, which take at most 120 s, and a little longer. */
static void test_a_stop_notices_the_last_controller_of_the_instance(void **state) {
        static const struct clocked_options local = {.local = return_late};

        start_leading(&local);
        finish();
}

static void test_a_read_during_a_term_is_counted(void **state) {
        start_leading(&plain);
        fake_api_client_hold_events(clocked.client, true);
        char *lease = fake_api_get(clocked.api, CLOCKED_LEASE);
        fake_api_put(clocked.api, CLOCKED_LEASE, lease); /* a user has edited a label */
        free(lease);
        clocked_move(10 * SEC);
        assert_true(clocked_is(HF_LEADING));
        assert_int_equal(clocked_info().n_terms, 1);
        assert_true(clocked_metric("leader_election_slowpath_total{name=\"lead\"}") == 1);
        fake_api_client_hold_events(clocked.client, false);
        finish();
}

static void test_on_change_is_called_once_for_each_change(void **state) {
        static const struct clocked_change expected[] = {
                {HF_LEADING, "a"},  {HF_DRAINING, "a"},  {HF_RELEASING, "a"},
                {HF_FOLLOWING, ""}, {HF_FOLLOWING, "x"}, {HF_STOPPED, "x"},
        };

        start_leading(&plain);
        clocked_elector_let_end();
        assert_int_equal(hf_elector_step_down(clocked.elector), 0);
        CLOCKED_AWAIT(clocked_is(HF_FOLLOWING));
        clocked_put_lease("x", "");
        CLOCKED_AWAIT(strcmp(clocked_info().holder, "x") == 0);
        clocked_elector_stop();
        assert_true(clocked.leading_was_told);
        assert_int_equal(clocked.n_changes, sizeof expected / sizeof *expected);
        for (unsigned i = 0; i < clocked.n_changes; i++) {
                assert_int_equal(clocked.changes[i].state, expected[i].state);
                assert_string_equal(clocked.changes[i].holder, expected[i].holder);
        }
        clocked_elector_free();
}

static void test_a_twin_is_warned_of(void **state) {
        clocked_elector_init();
        clocked_put_lease("a", "");
        clocked_elector_start(&plain);
        CLOCKED_AWAIT(clocked_info().identity_taken);
        CLOCKED_AWAIT(clocked_logged("4 kube-system/lead: the Lease is held under this process's "
                                     "identity, but this process did not acquire it: another "
                                     "process has, or had, the same identity\n"));
        assert_true(clocked_metric(SERIES("identity_collisions_total")) == 1);
        assert_true(health_says("leaderElection-lock failed: lease kube-system/lead is held by "
                                "another process that uses our identity, a"));
        finish();
}

static bool has_event(const char *name, const char *part) {
        char key[80];

        (void)snprintf(key, sizeof key, "events/kube-system/lead.leader-%s", name);
        char *text = fake_api_get(clocked.api, key);
        bool has = text && strstr(text, part);
        free(text);
        return has;
}

static void test_events_are_about_the_record_that_began_the_term(void **state) {
        static const struct clocked_options with_events = {.events = true};

        clocked_elector_init();
        clocked_put_lease("", ",\"leaseTransitions\":4");
        clocked_elector_start(&with_events);
        clocked_await_term();
        char rv[60];
        (void)snprintf(rv, sizeof rv, "\"resourceVersion\":\"%llu\"",
                       (unsigned long long)clocked_info().term);
        clocked_move(999 * MSEC);
        assert_false(has_event("5-became", ""));
        clocked_move(1 * MSEC);
        assert_true(has_event("5-became", "\"a became leader\""));
        assert_true(has_event("5-became", rv));
        assert_true(has_event("5-became", "\"uid\":\""));
        clocked_elector_let_end();
        clocked_put_lease("x", ",\"leaseTransitions\":9");
        CLOCKED_AWAIT(clocked_is(HF_FOLLOWING));
        clocked_move(1 * SEC);
        assert_true(has_event("5-stopped", "\"a stopped leading\""));
        assert_true(has_event("5-stopped", rv));
        finish();
}

/* When the loop ends, the last Events wait for a moment, so that they do not come before the first
 * writes of the next leader. */
static void test_the_last_events_give_way_to_the_successor(void **state) {
        static const struct clocked_options with_events = {.events = true};

        clocked_elector_init();
        clocked_put_lease("", ",\"leaseTransitions\":4");
        /* An Event of an older term: the last requests replace it, and nobody waits for them. */
        fake_api_put(clocked.api, "events/kube-system/lead.leader-5-became", "{\"metadata\":{}}");
        clocked_elector_start(&with_events);
        clocked_await_term();
        clocked_elector_let_end();
        assert_int_equal(hf_electors_stop_begin(clocked.electors, NULL, NULL, NULL), 0);
        hand_clock_await_deadline(10 * MSEC, 60 * MSEC);
        assert_false(has_event("5-became", "\"a became leader\""));
        hand_clock_move(60 * MSEC);
        PATIENCE_AWAIT(hf_electors_stop_poll(clocked.electors, NULL) == 0);
        PATIENCE_AWAIT(has_event("5-became", "\"a became leader\""));
        clocked_elector_free();
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_take_over_is_measured),
                cmocka_unit_test(test_a_lease_that_waits_for_its_successor_has_no_leader),
                cmocka_unit_test(test_renewals_keep_the_term_and_are_measured),
                cmocka_unit_test(test_the_end_of_a_term_is_measured_from_its_drain),
                cmocka_unit_test(test_a_controller_that_does_not_return_is_reported),
                cmocka_unit_test(test_a_controller_that_has_returned_is_not_stuck),
                cmocka_unit_test(test_a_failure_is_a_warning_once_until_a_success),
                cmocka_unit_test(test_health_names_the_failure_of_a_silent_lock),
                cmocka_unit_test(test_health_waits_for_the_next_renewal_of_a_leader),
                cmocka_unit_test(test_a_stop_says_whether_the_lease_is_held),
                cmocka_unit_test(test_a_read_during_a_term_is_counted),
                cmocka_unit_test(test_a_stop_notices_the_last_controller_of_the_instance),
                cmocka_unit_test(test_on_change_is_called_once_for_each_change),
                cmocka_unit_test(test_a_twin_is_warned_of),
                cmocka_unit_test(test_events_are_about_the_record_that_began_the_term),
                cmocka_unit_test(test_the_last_events_give_way_to_the_successor),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
