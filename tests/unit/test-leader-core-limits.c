/* SPDX-License-Identifier: Apache-2.0 */
/* The elector's core: the shortest and the longest time until it tries again, and every field that
 * it writes. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/error.h>

#include "core_fixture.h"

/* The default timing: a Lease of 15 s, 10 s to act, 2 s between renewals, 5 s for a request. */

/* How long it takes until the core requests this action. */
static hf_nsec time_until(struct core_fixture *f, enum hf__core_action_type type, hf_nsec at_most) {
        hf_nsec from = f->now;

        assert_non_null(core_fixture_wait_for(f, type, at_most));
        return f->now - from;
}

/* ---- when it tries again ---- */

static void test_a_lease_without_a_duration_has_ours(void **state) {
        struct core_fixture f;

        core_fixture_start_behind(&f, "bing", 0);
        assert_int_equal(time_until(&f, HF__ACT_WRITE, 20 * SEC), 15 * SEC);
}

static void test_no_write_of_a_term_may_be_applied_after_its_validity(void **state) {
        struct core_fixture f;
        const struct hf__core_action *write;
        bool is_limited = false;

        core_fixture_lead(&f);
        while ((write = core_fixture_wait_for(&f, HF__ACT_WRITE, 10 * SEC))) {
                hf_nsec valid_until = f.core.valid_until;
                assert_int_equal(write->deadline,
                                 f.now + 5 * SEC < valid_until ? f.now + 5 * SEC : valid_until);
                is_limited |= write->deadline == valid_until;
                f.now += 100 * MSEC;
                core_fixture_write_done(&f, HF_E_UNAVAILABLE);
                if (f.core.state != HF_LEADING)
                        break;
        }
        assert_true(is_limited);
}

static void refuse_write(struct core_fixture *f, hf_nsec retry_after) {
        f->event.retry_after = retry_after;
        core_fixture_write_done(f, HF_E_TOO_MANY);
}

/* A leader tries sooner when less time is left, and waits for the server only for half of that
 * time. */
static void test_a_leader_does_not_wait_until_it_is_too_late(void **state) {
        struct core_fixture f;

        core_fixture_lead(&f);
        assert_int_equal(time_until(&f, HF__ACT_WRITE, 3 * SEC), 2 * SEC);
        refuse_write(&f, 100 * SEC); /* 8 s of the term are left */
        assert_int_equal(time_until(&f, HF__ACT_WRITE, 8 * SEC), 4 * SEC);
        refuse_write(&f, 0); /* 4 s are left */
        assert_int_equal(time_until(&f, HF__ACT_WRITE, 4 * SEC), 1 * SEC);
        refuse_write(&f, 0); /* 3 s */
        assert_int_equal(time_until(&f, HF__ACT_WRITE, 3 * SEC), 750 * MSEC);
        refuse_write(&f, 500 * MSEC); /* less than a quarter of the 2250 ms that are left */
        assert_int_equal(time_until(&f, HF__ACT_WRITE, 3 * SEC), 2250 * MSEC / 4);
}

/* A renewal returns to its phase. The next one comes half a period later at least. */
static void test_half_a_retry_period_is_long_enough_between_renewals(void **state) {
        struct core_fixture f;

        core_fixture_lead(&f);
        f.core.config.renew_phase = (f.now + SEC) % (2 * SEC) + 1;
        assert_int_equal(time_until(&f, HF__ACT_WRITE, 5 * SEC), 2 * SEC);
        core_fixture_write_done(&f, 0);
        assert_int_equal(time_until(&f, HF__ACT_WRITE, 5 * SEC), SEC + 1);
        core_fixture_write_done(&f, 0);
        f.core.config.renew_phase = (f.now + SEC) % (2 * SEC);
        assert_int_equal(time_until(&f, HF__ACT_WRITE, 5 * SEC), 2 * SEC);
        core_fixture_write_done(&f, 0);
        assert_int_equal(time_until(&f, HF__ACT_WRITE, 5 * SEC), SEC);
        core_fixture_write_done(&f, 0);
        f.core.config.renew_phase = (f.now + SEC) % (2 * SEC) - 1;
        (void)time_until(&f, HF__ACT_WRITE, 5 * SEC);
        core_fixture_write_done(&f, 0);
        assert_int_equal(time_until(&f, HF__ACT_WRITE, 5 * SEC), (SEC - 1 + 2 * SEC) / 2);
}

static void test_a_standby_waits_for_the_server_for_a_lease_duration_at_most(void **state) {
        struct core_fixture f;

        core_fixture_start(&f);
        f.event.retry_after = 1000 * SEC;
        core_fixture_read_done(&f, HF_E_TOO_MANY, NULL);
        assert_in_range(time_until(&f, HF__ACT_READ, 1000 * SEC), 15 * SEC, 18 * SEC);
        f.event.retry_after = 7 * SEC;
        core_fixture_read_done(&f, HF_E_TOO_MANY, NULL);
        assert_in_range(time_until(&f, HF__ACT_READ, 1000 * SEC), 7 * SEC, 7 * SEC * 12 / 10);
        core_fixture_read_done(&f, HF_E_FORBIDDEN, NULL);
        assert_in_range(time_until(&f, HF__ACT_READ, 1000 * SEC), 2 * SEC, 2400 * MSEC);
}

static void begin_release(struct core_fixture *f) {
        core_fixture_step(f, HF__EV_STOP);
        assert_non_null(core_fixture_find_action(f, HF__ACT_TERM_DRAIN));
        core_fixture_step(f, HF__EV_JOINED);
        assert_non_null(core_fixture_find_action(f, HF__ACT_WRITE));
}

static void test_a_release_is_tried_several_times(void **state) {
        struct core_fixture f;

        core_fixture_lead(&f);
        begin_release(&f);
        refuse_write(&f, 100 * SEC);
        assert_int_equal(time_until(&f, HF__ACT_WRITE, 10 * SEC), 2500 * MSEC);
        refuse_write(&f, 0);
        assert_int_equal(time_until(&f, HF__ACT_WRITE, 10 * SEC), 625 * MSEC);
        refuse_write(&f, 1 * SEC);
        assert_int_equal(time_until(&f, HF__ACT_WRITE, 10 * SEC), 1 * SEC);
        core_fixture_write_done(&f, 0);
        assert_true(core_fixture_find_action(&f, HF__ACT_STOPPED)->released);
}

/* Each conflict after a success is the first one in a row, so the Lease is read at once. */
static void test_a_success_ends_a_row_of_failures(void **state) {
        struct core_fixture f;

        core_fixture_lead(&f);
        for (int i = 0; i < 3; i++) {
                struct hf__record record = f.sent;
                assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 2 * SEC));
                core_fixture_write_done(&f, HF_E_CONFLICT);
                assert_non_null(core_fixture_find_action(&f, HF__ACT_READ));
                core_fixture_set_revision(&f, &record); /* a user edited it */
                core_fixture_read_done(&f, 0, &record);
                assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
                core_fixture_write_done(&f, 0);
                assert_non_null(core_fixture_find_action(&f, HF__ACT_EXTEND));
        }
}

/* ---- doubt ---- */

/* After an acquire that may still be applied, a stop first releases the Lease. After another one it
 * ends at once. */
static void test_a_stop_waits_only_for_an_acquire_of_unknown_outcome(void **state) {
        static const struct {
                int error;
                bool may_be_applied;
        } rows[] = {
                {HF_E_TIMEOUT, true},       {HF_E_UNAVAILABLE, true},
                {HF_E_CANCELED, true},      {-5, true},
                {HF_E_FORBIDDEN, false},    {HF_E_INVALID, false},
                {HF_E_UNAUTHORIZED, false},
        };

        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                struct core_fixture f;
                core_fixture_start(&f);
                core_fixture_read_done(&f, HF_E_NOT_FOUND, NULL);
                assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
                core_fixture_write_done(&f, rows[i].error);
                core_fixture_step(&f, HF__EV_STOP);
                assert_int_equal(f.core.state, rows[i].may_be_applied ? HF_RELEASING : HF_STOPPED);
        }
}

/* ---- terms in a row ---- */

static struct hf__record lose(struct core_fixture *f) {
        struct hf__record record = core_fixture_held_by(f, "bing", 15);

        core_fixture_watched(f, &record);
        assert_non_null(core_fixture_find_action(f, HF__ACT_TERM_ABORT));
        core_fixture_step(f, HF__EV_JOINED);
        assert_int_equal(f->core.state, HF_FOLLOWING);
        return record;
}

/* The other holder releases. Returns the time until this process takes the Lease again. */
static hf_nsec time_to_lead_again(struct core_fixture *f) {
        struct hf__record free = core_fixture_held_by(f, "", 1);
        hf_nsec from = f->now;

        core_fixture_watched(f, &free);
        f->lease = free;
        if (!core_fixture_find_action(f, HF__ACT_WRITE))
                assert_non_null(core_fixture_wait_for(f, HF__ACT_WRITE, 60 * SEC));
        hf_nsec waited = f->now - from;
        core_fixture_write_done(f, 0);
        assert_non_null(core_fixture_find_action(f, HF__ACT_TERM_START));
        return waited;
}

static void lead_for(struct core_fixture *f, hf_nsec duration) {
        hf_nsec until = f->now + duration;

        while (core_fixture_wait_for(f, HF__ACT_WRITE, 2 * SEC) && f->now < until)
                core_fixture_write_done(f, 0);
        core_fixture_write_done(f, 0);
}

static void test_a_long_term_ends_a_row_of_short_ones(void **state) {
        struct core_fixture f;

        for (int way = 0; way < 2; way++) {
                core_fixture_lead(&f);
                core_fixture_step(&f, HF__EV_TICK);
                (void)lose(&f);
                assert_in_range(time_to_lead_again(&f), 2 * SEC, 2400 * MSEC);
                (void)lose(&f);
                assert_in_range(time_to_lead_again(&f), 4 * SEC, 4800 * MSEC);
                lead_for(&f, 15 * SEC);
                if (way == 0) { /* it is lost: no wait */
                        (void)lose(&f);
                        assert_int_equal(time_to_lead_again(&f), 0);
                } else { /* it is handed over: the wait for the successor */
                        core_fixture_hand_over(&f, "bing");
                        core_fixture_step(&f, HF__EV_JOINED);
                        core_fixture_write_done(&f, 0);
                        assert_int_equal(f.core.state, HF_FOLLOWING);
                        (void)time_to_lead_again(&f);
                }
                (void)lose(&f);
                assert_in_range(time_to_lead_again(&f), 2 * SEC, 2400 * MSEC);
        }
}

static void hand_over(struct core_fixture *f) {
        core_fixture_hand_over(f, "bing");
        core_fixture_step(f, HF__EV_JOINED);
        core_fixture_write_done(f, 0);
        assert_int_equal(f->core.state, HF_FOLLOWING);
}

static void test_a_short_term_that_is_handed_over_ends_no_row(void **state) {
        struct core_fixture f;

        core_fixture_lead(&f);
        core_fixture_step(&f, HF__EV_TICK);
        (void)lose(&f);
        assert_in_range(time_to_lead_again(&f), 2 * SEC, 2400 * MSEC);
        hand_over(&f);
        (void)time_to_lead_again(&f);
        (void)lose(&f);
        assert_in_range(time_to_lead_again(&f), 4 * SEC, 4800 * MSEC);
}

/* The successor of an earlier hand-over is not that of a later release. */
static void test_a_release_names_no_successor_of_an_earlier_term(void **state) {
        struct core_fixture f;

        core_fixture_lead(&f);
        hand_over(&f);
        assert_string_equal(f.sent.successor, "bing");
        (void)time_to_lead_again(&f);
        core_fixture_step(&f, HF__EV_STOP);
        core_fixture_step(&f, HF__EV_JOINED);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        assert_string_equal(core_fixture_find_action(&f, HF__ACT_WRITE)->record.holder, "");
        assert_string_equal(core_fixture_find_action(&f, HF__ACT_WRITE)->record.successor, "");
}

/* ---- what is written ---- */

static void test_an_acquire_sets_every_field(void **state) {
        struct core_fixture f;

        core_fixture_start(&f);
        struct hf__record seen = core_fixture_held_by(&f, "", 1);
        strcpy(seen.successor, "baz");
        strcpy(seen.hand_over_to, "bing");
        seen.transitions = 4;
        core_fixture_read_done(&f, 0, &seen);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        assert_string_equal(f.sent.holder, "baz");
        assert_string_equal(f.sent.successor, "");
        assert_string_equal(f.sent.hand_over_to, "");
        assert_int_equal(f.sent.duration_s, 15);
        assert_int_equal(f.sent.transitions, 5);
        assert_int_equal(f.sent.acquire_us, f.now / 1000);
        assert_int_equal(f.sent.renew_us, f.now / 1000);
        assert_int_equal(f.sent.cause, HF__CAUSE_HANDED_OVER);
        assert_int_equal(f.sent.gap_us, f.now / 1000 - seen.renew_us);
        assert_string_equal(f.sent.rv, seen.rv);
}

static void test_a_release_sets_every_field(void **state) {
        struct core_fixture f;

        core_fixture_lead(&f);
        int64_t acquire_us = f.sent.acquire_us;
        struct hf__record edited = f.sent;
        strcpy(edited.successor, "nobody"); /* a user has edited the Lease */
        core_fixture_set_revision(&f, &edited);
        f.now += SEC;
        core_fixture_watched(&f, &edited);
        assert_int_equal(f.core.state, HF_LEADING);
        begin_release(&f);
        assert_string_equal(f.sent.holder, "");
        assert_string_equal(f.sent.successor, "");
        assert_int_equal(f.sent.duration_s, 1);
        assert_int_equal(f.sent.acquire_us, acquire_us + 1000000);
        assert_int_equal(f.sent.renew_us, acquire_us + 1000000);
        assert_int_equal(f.sent.cause, HF__CAUSE_NONE);
        assert_string_equal(f.sent.rv, edited.rv);
}

/* The successor of a hand-over is named once. */
static void test_a_later_release_names_no_successor(void **state) {
        struct core_fixture f;

        core_fixture_lead(&f);
        core_fixture_hand_over(&f, "bing");
        core_fixture_step(&f, HF__EV_JOINED);
        assert_string_equal(f.sent.successor, "bing");
        core_fixture_write_done(&f, 0);
        assert_int_equal(f.core.state, HF_FOLLOWING);
        assert_int_equal(time_until(&f, HF__ACT_WRITE, 10 * SEC), 4 * SEC); /* bing is gone */
        core_fixture_write_done(&f, 0);
        assert_int_equal(f.core.state, HF_LEADING);
        begin_release(&f);
        assert_string_equal(f.sent.successor, "");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_lease_without_a_duration_has_ours),
                cmocka_unit_test(test_no_write_of_a_term_may_be_applied_after_its_validity),
                cmocka_unit_test(test_a_leader_does_not_wait_until_it_is_too_late),
                cmocka_unit_test(test_half_a_retry_period_is_long_enough_between_renewals),
                cmocka_unit_test(test_a_standby_waits_for_the_server_for_a_lease_duration_at_most),
                cmocka_unit_test(test_a_release_is_tried_several_times),
                cmocka_unit_test(test_a_success_ends_a_row_of_failures),
                cmocka_unit_test(test_a_stop_waits_only_for_an_acquire_of_unknown_outcome),
                cmocka_unit_test(test_a_long_term_ends_a_row_of_short_ones),
                cmocka_unit_test(test_a_short_term_that_is_handed_over_ends_no_row),
                cmocka_unit_test(test_a_release_names_no_successor_of_an_earlier_term),
                cmocka_unit_test(test_an_acquire_sets_every_field),
                cmocka_unit_test(test_a_release_sets_every_field),
                cmocka_unit_test(test_a_later_release_names_no_successor),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
