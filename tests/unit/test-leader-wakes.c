/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The elector's loop acts on each input by itself. The clock stands still, so no input is noticed
 * only because the loop looks at all electors once a second.
 */
#undef NDEBUG
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "clocked_elector.h"
#include "lock_file_process.h"

#include <holdfast/error.h>

#define REFUSED "holdfast_leader_fenced_writes_refused_total{lease=\"kube-system/lead\"}"

#define LEADERLESS "holdfast_leader_leaderless_seconds_total{lease=\"kube-system/lead\"}"

static const struct clocked_options plain = {0};

static bool is_told; /* guarded by clocked.mu */

static void tell_controller(void) {
        pthread_mutex_lock(&clocked.mu);
        is_told = true;
        pthread_cond_broadcast(&clocked.changed);
        pthread_mutex_unlock(&clocked.mu);
}

/* Begins a write when the test tells it to, and returns at the drain, with or without a
 * response. */
static int write_when_told(struct hf_term *term) {
        pthread_mutex_lock(&clocked.mu);
        PATIENCE_AWAIT_LOCKED(&clocked.changed, &clocked.mu, is_told);
        pthread_mutex_unlock(&clocked.mu);
        assert_int_equal(clocked_begin_write(term, HF_VERB_CREATE), 0);
        (void)hf_cancel_wait(hf_term_drain(term), HF_NSEC_NEVER);
        return 0;
}

static void start_writer(const struct clocked_options *options) {
        clocked_elector_init();
        is_told = false;
        clocked.run = write_when_told;
        clocked_elector_start(options);
        clocked_await_term();
}

static void finish(void) {
        clocked_elector_stop();
        clocked_elector_free();
}

static void test_a_refused_write_ends_the_term(void **state) {
        start_writer(&plain);
        fake_api_client_hold_events(clocked.client, true);
        clocked_put_lease("x", "");
        tell_controller();
        PATIENCE_AWAIT(clocked_is(HF_FOLLOWING));
        assert_string_equal(clocked_info().last_end, "a write was refused: the term is stale");
        assert_true(clocked_metric(REFUSED) == 1);
        finish();
}

/* The server of this term does not know fences, although the elector needs them. */
static void test_a_fence_that_is_not_confirmed_ends_the_term(void **state) {
        start_writer(&plain);
        pthread_mutex_lock(&clocked.api->mu);
        clocked.client->ignores_fences = true;
        pthread_mutex_unlock(&clocked.api->mu);
        tell_controller();
        PATIENCE_AWAIT(clocked_is(HF_FOLLOWING));
        assert_string_equal(clocked_info().last_end,
                            "the server did not confirm the fence of a write");
        finish();
}

/* Asks twice for the end of the term, so that another message follows the first at once. While the
 * loop is in on_change for the first, the fence refuses a write, and the controller returns. */
static void refuse_and_return(enum hf_leader_state state) {
        if (state == HF_LEADING) {
                pthread_mutex_lock(&clocked.mu);
                PATIENCE_AWAIT_LOCKED(&clocked.changed, &clocked.mu, clocked.n_running == 1);
                pthread_mutex_unlock(&clocked.mu);
                for (int i = 0; i < 2; i++)
                        assert_int_equal(hf_elector_step_down(clocked.elector), 0);
        } else if (state == HF_DRAINING) {
                clocked_put_lease("x", "");
                tell_controller();
                PATIENCE_AWAIT(clocked_metric(REFUSED) == 1);
                PATIENCE_AWAIT(hf__term_is_joined(clocked.elector->term));
        }
}

/* The refusal comes first: a release must not rely on what was known before it. */
static void test_a_refusal_precedes_the_return_of_the_controllers(void **state) {
        clocked_elector_init();
        is_told = false;
        clocked.run = write_when_told;
        clocked.in_change = refuse_and_return;
        fake_api_client_hold_events(clocked.client, true);
        clocked_elector_start(&plain);
        PATIENCE_AWAIT(clocked_info().n_terms == 1 && clocked_is(HF_FOLLOWING));
        assert_string_equal(clocked_info().last_end, "a write was refused: the term is stale");
        finish();
}

static void test_the_end_that_the_embedder_requests_comes(void **state) {
        clocked_elector_init();
        clocked_elector_start(&plain);
        clocked_await_term();
        clocked_move(5 * SEC);
        hf_elector_end_term(clocked.elector);
        PATIENCE_AWAIT(clocked_is(HF_ABORTING));
        /* The holder is the same, but the state has changed. */
        assert_true(clocked_info().since == hand_clock_now());
        clocked_elector_let_end();
        PATIENCE_AWAIT(clocked_is(HF_FOLLOWING));
        assert_string_equal(clocked_info().last_end, "the embedder ended it");
        finish();
}

/* Without fences, the Lease is released only after the last response. */
static void test_the_last_response_releases_the_lease(void **state) {
        static const struct clocked_options unfenced = {.unfenced = true};

        start_writer(&unfenced);
        fake_api_client_hold_requests(clocked.client, true);
        tell_controller();
        PATIENCE_AWAIT(fake_api_n_requests(clocked.api) >= 3); /* a read, the acquire, the write */
        assert_int_equal(hf_elector_step_down(clocked.elector), 0);
        PATIENCE_AWAIT(clocked_is(HF_RELEASING));
        clocked_settle();
        assert_true(clocked_logged("6 kube-system/lead: a write of the term may still take effect, "
                                   "because it has no response yet and the server has not "
                                   "confirmed fences\n"));
        unsigned n = fake_api_n_requests(clocked.api);
        fake_api_client_hold_requests(clocked.client, false);
        PATIENCE_AWAIT(clocked_is(HF_FOLLOWING));
        assert_int_equal(clocked_info().holder[0], 0);
        assert_int_equal(fake_api_n_requests(clocked.api), n + 1);
        assert_false(clocked_logged("its outcome is unknown"));
        finish();
}

static void test_a_term_without_threads_ends(void **state) {
        static const struct clocked_options held = {.held = true};

        clocked_elector_init();
        clocked_elector_start(&held);
        PATIENCE_AWAIT(fake_api_n_requests(clocked.api) > 0);
        clocked.host.thread_stack_bytes = SIZE_MAX / 2; /* no such thread can be created */
        fake_api_client_hold_requests(clocked.client, false);
        PATIENCE_AWAIT(clocked_info().n_terms == 1 && clocked_is(HF_FOLLOWING));
        assert_int_equal(clocked.n_runs, 0);
        assert_false(hf_elector_may_act(clocked.elector));
        assert_true(clocked_logged(
                "3 kube-system/lead: cannot start the thread of controller worker: "));
        assert_true(clocked_logged("3 kube-system/lead: the controllers of term 2 cannot start, so "
                                   "the term ends: "));
        assert_true(clocked_metric("leader_election_master_status{name=\"lead\"}") == 0);
        assert_string_equal(clocked_info().last_end, "its controllers could not start");
        finish();
}

/* More electors than operations may be under way at a time. */
static void test_electors_that_wait_for_their_turn_get_it(void **state) {
        static const struct clocked_options many = {.n_more = 200};
        struct hf_leader_info info = {.size = sizeof info};

        clocked_elector_init();
        clocked_elector_start(&many);
        clocked_await_term();
        for (unsigned i = 0; i < many.n_more; i++)
                do
                        hf_elector_info(clocked.more[i], &info);
                while (info.state != HF_LEADING);
        finish();
}

/* ---- the times of an elector ---- */

/* Moves the clock until just before a time at which something is due, and settles: then nothing has
 * happened. Then moves it to that time, and wakes no elector: only its timer makes the loop look.
 */
static void move_to_due(hf_nsec by) {
        unsigned n = fake_api_n_requests(clocked.api);

        clocked_move(by - 50 * MSEC);
        assert_int_equal(fake_api_n_requests(clocked.api), n);
        hand_clock_move(50 * MSEC);
}

/* How long it is until the elector's next phase. */
static hf_nsec until_phase(const struct hf_elector *elector) {
        hf_nsec phase = elector->core.config.renew_phase;

        return 10 * SEC - (hand_clock_now() + 10 * SEC - phase) % (10 * SEC);
}

/* Begins a term, and moves the clock to a renewal. From there on they come every 10 s: an elector
 * has a phase of its own, to which its renewals return. */
static void start_renewing(void) {
        clocked_elector_init();
        clocked_elector_start(&plain);
        clocked_await_term();
        for (int i = 0; i < 2; i++)
                clocked_move(until_phase(clocked.elector));
}

static void await_request(void) {
        unsigned n = fake_api_n_requests(clocked.api);

        move_to_due(10 * SEC);
        PATIENCE_AWAIT(fake_api_n_requests(clocked.api) > n);
        clocked_settle();
        assert_int_equal(fake_api_n_requests(clocked.api), n + 1);
}

/* Each renewal sets the time of the next one. */
static void test_the_timer_of_a_leader_makes_it_renew(void **state) {
        start_renewing();
        for (int i = 0; i < 4; i++)
                await_request();
        assert_true(clocked_is(HF_LEADING));
        assert_int_equal(clocked_info().n_terms, 1);
        finish();
}

static const struct hf_elector *next_to_renew(struct hf_elector *const *all, unsigned n) {
        const struct hf_elector *next = all[0];

        for (unsigned i = 1; i < n; i++)
                if (until_phase(all[i]) < until_phase(next))
                        next = all[i];
        return next;
}

/*
 * Several electors of a process renew one after the other, each at its own time. The clock first
 * moves in small steps until all have come to their phases: a renewal that is much too late would
 * leave its phase again.
 */
static void test_each_elector_has_its_own_time(void **state) {
        static const struct clocked_options several = {.n_more = 4};
        struct hf_leader_info info = {.size = sizeof info};
        struct hf_elector *all[5];

        clocked_elector_init();
        clocked_elector_start(&several);
        clocked_await_term();
        all[0] = clocked.elector;
        for (unsigned i = 0; i < several.n_more; i++) {
                all[i + 1] = clocked.more[i];
                do
                        hf_elector_info(clocked.more[i], &info);
                while (info.state != HF_LEADING);
        }
        for (int i = 0; i < 250; i++)
                clocked_move(100 * MSEC);
        clocked_move(until_phase(next_to_renew(all, 5)));
        for (int round = 0; round < 10; round++) {
                unsigned n = fake_api_n_requests(clocked.api);
                move_to_due(until_phase(next_to_renew(all, 5)));
                PATIENCE_AWAIT(fake_api_n_requests(clocked.api) > n);
                clocked_settle();
                assert_int_equal(fake_api_n_requests(clocked.api), n + 1);
        }
        finish();
}

/* The time at which a renewal without a response is given up takes the place of that of the next
 * renewal, and is replaced when the response comes. */
static void test_a_response_sets_the_timer_anew(void **state) {
        start_renewing();
        fake_api_client_hold_requests(clocked.client, true);
        await_request();
        clocked_move(3 * SEC); /* the renewal is under way */
        fake_api_client_hold_requests(clocked.client, false);
        clocked_settle();
        unsigned n = fake_api_n_requests(clocked.api);
        move_to_due(7 * SEC); /* it counts from the time at which the last one was sent */
        PATIENCE_AWAIT(fake_api_n_requests(clocked.api) > n);
        finish();
}

/* Time under a known leader counts as led up to the step that notices its end. */
static void test_the_time_before_an_event_belongs_to_the_leader_before_it(void **state) {
        clocked_elector_init();
        clocked_put_lease("x", "");
        clocked_elector_start(&plain);
        CLOCKED_AWAIT(strcmp(clocked_info().holder, "x") == 0);
        for (int i = 0; i < 3; i++) {
                hand_clock_move(300 * MSEC);
                clocked_put_lease(i % 2 ? "x" : "y", "");
                PATIENCE_AWAIT(strcmp(clocked_info().holder, i % 2 ? "x" : "y") == 0);
        }
        hand_clock_move(300 * MSEC);
        fake_api_delete(clocked.api, CLOCKED_LEASE);
        clocked_await_term();
        assert_true(clocked_metric(LEADERLESS) == 0);
        finish();
}

/* The process x holds the Lease and has a lock file. The Lease passes on when it has died. */
static void follow_a_holder(bool dies) {
        char directory[] = "/dev/shm/leader-wakes-XXXXXX", own[64], other[64];
        char process[HF__HOLDER_PROCESS_MAX], lease[HF__HOLDER_PROCESS_MAX + 400];
        int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

        if (fd < 0)
                skip(); /* an old kernel, or valgrind, which does not know the call */
        (void)close(fd);
        assert_non_null(mkdtemp(directory));
        (void)snprintf(own, sizeof own, "%s/own.lock", directory);
        (void)snprintf(other, sizeof other, "%s/other.lock", directory);
        pid_t pid = lock_file_process_start(other, false, process);
        clocked_elector_init();
        (void)snprintf(lease, sizeof lease,
                       "{\"metadata\":{\"name\":\"lead\",\"annotations\":{\"holdfast.dev/"
                       "holder-process\":\"%lld x %s\"}},\"spec\":{\"holderIdentity\":\"x\","
                       "\"leaseDurationSeconds\":100,\"acquireTime\":\"%s\"}}",
                       (long long)HAND_CLOCK_REAL * 1000000, process, HAND_CLOCK_REAL_Z);
        fake_api_put(clocked.api, CLOCKED_LEASE, lease);
        clocked_elector_start(&(struct clocked_options){.lock_file = own});
        CLOCKED_AWAIT(strcmp(clocked_info().holder, "x") == 0);
        clocked_move(50 * SEC); /* meanwhile the elector finds that x is alive */
        assert_true(clocked_is(HF_FOLLOWING));
        if (dies) {
                lock_file_process_kill(pid);
                PATIENCE_AWAIT(clocked_is(HF_LEADING));
                clocked_await_term();
                assert_true(clocked_logged("5 kube-system/lead: the lock file of x proves that its "
                                           "process is dead: not waiting for the expiry of its "
                                           "Lease\n"));
                assert_true(clocked_logged(" (died by x, gap "));
        }
        finish();
        if (!dies)
                lock_file_process_kill(pid);
        (void)unlink(own);
        (void)unlink(other);
        (void)rmdir(directory);
}

static void test_the_death_of_the_holder_is_noticed(void **state) { follow_a_holder(true); }
/* Nothing of the holder is left in the set that is freed, which asserts it. */
static void test_a_standby_may_end_before_the_holder(void **state) { follow_a_holder(false); }

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_refused_write_ends_the_term),
                cmocka_unit_test(test_a_fence_that_is_not_confirmed_ends_the_term),
                cmocka_unit_test(test_a_refusal_precedes_the_return_of_the_controllers),
                cmocka_unit_test(test_the_end_that_the_embedder_requests_comes),
                cmocka_unit_test(test_the_last_response_releases_the_lease),
                cmocka_unit_test(test_a_term_without_threads_ends),
                cmocka_unit_test(test_electors_that_wait_for_their_turn_get_it),
                cmocka_unit_test(test_the_timer_of_a_leader_makes_it_renew),
                cmocka_unit_test(test_a_response_sets_the_timer_anew),
                cmocka_unit_test(test_each_elector_has_its_own_time),
                cmocka_unit_test(test_the_time_before_an_event_belongs_to_the_leader_before_it),
                cmocka_unit_test(test_the_death_of_the_holder_is_noticed),
                cmocka_unit_test(test_a_standby_may_end_before_the_holder),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
