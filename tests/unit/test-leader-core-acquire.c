/* SPDX-License-Identifier: Apache-2.0 */
/* The elector's core: how a Lease is acquired. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "core_fixture.h"
#include "leader/core_lease.h"

/* Scenario of docs/parity.md: CG01. */
static void test_an_absent_lease_is_created(void **state) {
        struct core_fixture f;

        core_fixture_start(&f);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_READ));
        assert_non_null(core_fixture_find_action(&f, HF__ACT_WATCH));
        core_fixture_read_done(&f, HF_E_NOT_FOUND, NULL);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        assert_false(f.sent.exists);
        assert_string_equal(f.sent.holder, "baz");
        assert_int_equal(f.sent.transitions, 0);
        assert_int_equal(f.sent.duration_s, 15);
        f.now += 30 * MSEC; /* the latency of the write counts against the validity */
        core_fixture_write_done(&f, 0);
        assert_int_equal(core_fixture_find_action(&f, HF__ACT_TERM_START)->term, f.revision);
        assert_int_equal(core_fixture_find_action(&f, HF__ACT_TERM_START)->valid_until,
                         f.now - 30 * MSEC + 10 * SEC);
        assert_int_equal(f.core.state, HF_LEADING);
}

/* leaseTransitions has 32 bits in Kubernetes. A Lease with the maximum can still be acquired. */
static void test_the_count_of_transitions_does_not_overflow(void **state) {
        struct core_fixture f;
        struct hf__record record, gone = {0};

        core_fixture_start(&f);
        record = core_fixture_held_by(&f, "", 1);
        record.transitions = 0x7fffffff;
        core_fixture_read_done(&f, 0, &record);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        assert_int_equal(f.sent.transitions, 0x7fffffff);
        core_fixture_write_done(&f, 0);
        core_fixture_set_revision(&f, &gone);
        core_fixture_watched(&f, &gone);
        core_fixture_step(&f, HF__EV_JOINED);
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 15 * SEC));
        assert_false(f.sent.exists);
        assert_int_equal(f.sent.transitions, 0x7fffffff);
}

/* However often it is seen to be absent, a Lease that is created again continues the count. */
static void test_a_lease_that_stays_absent_keeps_its_count(void **state) {
        struct core_fixture f;
        struct hf__record record, gone = {0};

        core_fixture_start(&f);
        record = core_fixture_held_by(&f, "qux", 15);
        record.transitions = 5;
        core_fixture_read_done(&f, 0, &record);
        core_fixture_set_revision(&f, &gone);
        core_fixture_watched(&f, &gone);
        assert_false(f.sent.exists);
        assert_int_equal(f.sent.transitions, 6);
        core_fixture_write_done(&f, HF_E_TIMEOUT);
        core_fixture_read_done(&f, HF_E_NOT_FOUND, NULL);
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 15 * SEC));
        assert_false(f.sent.exists);
        assert_int_equal(f.sent.transitions, 6);
}

/* Scenarios of docs/parity.md: CG02, CG04, CG06. */
static void test_a_free_lease_is_acquired_at_once(void **state) {
        struct core_fixture f;
        struct hf__record record;

        record = core_fixture_start_behind(&f, "", 1);
        assert_true(core_fixture_find_action(&f, HF__ACT_WRITE) && f.sent.exists);
        assert_string_equal(f.sent.rv, record.rv);
        assert_int_equal(f.sent.transitions, 1);
}

/* Scenarios of docs/parity.md: CG03, CG05, CG07. */
static void test_a_standby_waits_for_the_recorded_duration(void **state) {
        struct core_fixture f;

        (void)core_fixture_start_behind(&f, "bing", 3);
        hf_nsec seen = f.now;
        assert_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 3 * SEC));
        assert_int_equal(f.now, seen + 3 * SEC); /* exactly, and without a read before */
        assert_int_equal(f.sent.transitions, 1);
}

/* Scenario of docs/parity.md: ET07. */
static void test_a_renewal_restarts_the_wait(void **state) {
        struct core_fixture f;
        struct hf__record record;

        record = core_fixture_start_behind(&f, "bing", 3);
        f.now += 2 * SEC;
        record.renew_us++;
        core_fixture_set_revision(&f, &record);
        core_fixture_watched(&f, &record);
        assert_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 3 * SEC - 1));
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 1));
}

static void test_an_old_watch_event_is_ignored(void **state) {
        struct core_fixture f;
        struct hf__record old, record;

        core_fixture_start(&f);
        old = core_fixture_held_by(&f, "", 1);
        record = core_fixture_held_by(&f, "bing", 15);
        core_fixture_read_done(&f, 0, &record);
        core_fixture_watched(&f, &old);
        assert_null(core_fixture_find_action(&f, HF__ACT_WRITE));
}

/* This holds even if the event was late and the Lease was deleted meanwhile, whoever reported that.
 */
static void test_an_old_watch_event_does_not_bring_a_lease_back(void **state) {
        struct core_fixture f;
        struct hf__record record = core_fixture_start_behind(&f, "bing", 60), late, gone = {0};

        core_fixture_watched(&f, &record);
        core_fixture_step(&f, HF__EV_WATCH_LOST);
        if (!core_fixture_find_action(&f, HF__ACT_READ))
                assert_non_null(core_fixture_wait_for(&f, HF__ACT_READ, 3 * SEC));
        core_fixture_read_done(&f, HF_E_NOT_FOUND, NULL);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        core_fixture_watched(&f, &record);
        assert_false(f.core.observed.exists);
        late = record;
        core_fixture_set_revision(&f, &late);
        core_fixture_set_revision(&f, &gone);
        core_fixture_watched(&f, &gone);
        core_fixture_watched(&f, &late);
        assert_false(f.core.observed.exists);
}

static void test_a_release_wakes_the_standby(void **state) {
        struct core_fixture f;
        struct hf__record record;

        record = core_fixture_start_behind(&f, "bing", 15);
        record = core_fixture_held_by(&f, "", 1);
        core_fixture_watched(&f, &record);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
}

/*
 * Follows a Lease whose watch is silent, up to the last read before the expiry. Returns the time of
 * the expiry.
 */
static hf_nsec advance_to_last_read(struct core_fixture *f) {
        core_fixture_start(f);
        f->now += 8 * MSEC; /* a read takes this long */
        f->lease = core_fixture_held_by(f, "bing", 15);
        hf_nsec expiry = f->now + 15 * SEC;
        core_fixture_read_done(f, 0, &f->lease);
        core_fixture_watched(f, &f->lease);
        /* At half of the duration, because the watch may be dead. */
        assert_non_null(core_fixture_wait_for(f, HF__ACT_READ, 8 * SEC));
        f->now += 8 * MSEC;
        core_fixture_read_done(f, 0, &f->lease);
        assert_non_null(core_fixture_wait_for(f, HF__ACT_READ, 8 * SEC));
        assert_int_equal(expiry - f->now, 10 * MSEC);
        return expiry;
}

static void test_a_last_read_sees_a_renewal_that_the_watch_missed(void **state) {
        struct core_fixture f;
        struct hf__record renewed;

        hf_nsec expiry = advance_to_last_read(&f);
        renewed = f.lease;
        renewed.renew_us++;
        core_fixture_set_revision(&f, &renewed);
        f.now += 8 * MSEC;
        core_fixture_read_done(&f, 0, &renewed);
        assert_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 15 * SEC - 1));
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 1));
        assert_int_equal(f.now, expiry - 2 * MSEC + 15 * SEC);
}

static void test_a_last_read_does_not_delay_the_acquire(void **state) {
        struct core_fixture f;
        enum { ANSWERED, LATE, FAILED, HEARD };

        for (int how = ANSWERED; how <= HEARD; how++) {
                hf_nsec expiry = advance_to_last_read(&f);
                uint32_t look = f.core.op_id;
                f.now += 8 * MSEC;
                if (how == ANSWERED)
                        core_fixture_read_done(&f, 0, &f.lease);
                else if (how == FAILED)
                        core_fixture_read_done(&f, HF_E_UNAVAILABLE, NULL);
                else if (how == HEARD)
                        core_fixture_watched(&f, &f.lease);
                assert_true(
                        how == LATE ||
                        !core_fixture_find_action(&f, HF__ACT_READ)); /* that was the last read */
                assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 2 * MSEC));
                assert_int_equal(f.now, expiry);
                f.event.op_id = look;
                core_fixture_step(&f, HF__EV_READ_DONE);
                assert_int_equal(f.actions.n, 0);
                core_fixture_write_done(&f, 0);
                assert_non_null(core_fixture_find_action(&f, HF__ACT_TERM_START));
        }
}

static void test_a_named_successor_goes_first(void **state) {
        struct core_fixture f;
        struct hf__record record;

        record = core_fixture_start_behind(&f, "bing", 15);
        record = core_fixture_held_by(&f, "", 1);
        snprintf(record.successor, sizeof record.successor, "other");
        core_fixture_watched(&f, &record);
        assert_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 2 * SEC - 1));
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 1));

        core_fixture_start(&f);
        record = core_fixture_held_by(&f, "", 1);
        snprintf(record.successor, sizeof record.successor, "baz");
        core_fixture_read_done(&f, 0, &record);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        assert_string_equal(f.sent.successor, "");
}

static void test_a_standby_polls_without_a_watch(void **state) {
        struct core_fixture f;
        struct hf__record record;
        hf_nsec from;

        record = core_fixture_start_behind(&f, "bing", 60);
        core_fixture_watched(&f, &record);
        from = f.now;
        core_fixture_step(&f, HF__EV_WATCH_LOST);
        for (int i = 0; i < 5; i++) {
                assert_true(core_fixture_wait_for(&f, HF__ACT_READ, 2400 * MSEC) ||
                            core_fixture_find_action(&f, HF__ACT_WATCH));
                core_fixture_read_done(&f, 0, &record);
                assert_true(f.now >= from + 2 * SEC && f.now <= from + 2400 * MSEC);
                from = f.now;
                /* Reopening the watch, which breaks again, causes no additional read. */
                if (f.core.watching)
                        core_fixture_step(&f, HF__EV_WATCH_LOST);
                assert_null(core_fixture_find_action(&f, HF__ACT_READ));
        }
}

static void test_a_watch_that_breaks_at_once_is_reopened_after_a_retry_period(void **state) {
        struct core_fixture f;
        struct hf__record record = core_fixture_start_behind(&f, "bing", 60);

        core_fixture_watched(&f, &record);
        for (int i = 0; i < 3; i++) {
                hf_nsec from;

                core_fixture_step(&f, HF__EV_WATCH_LOST);
                while (!core_fixture_find_action(&f, HF__ACT_WATCH)) {
                        assert_true(f.actions.wake_at < f.now + 10 * SEC);
                        f.now = f.actions.wake_at > f.now ? f.actions.wake_at : f.now;
                        core_fixture_step(&f, HF__EV_TICK);
                        if (core_fixture_find_action(&f, HF__ACT_READ))
                                core_fixture_read_done(&f, 0, &record);
                }
                from = f.now;
                core_fixture_step(&f, HF__EV_WATCH_LOST);
                assert_null(core_fixture_find_action(&f, HF__ACT_WATCH));
                f.now = from + 2 * SEC - 1;
                core_fixture_step(&f, HF__EV_TICK);
                assert_null(core_fixture_find_action(&f, HF__ACT_WATCH));
                if (core_fixture_find_action(&f, HF__ACT_READ))
                        core_fixture_read_done(&f, 0, &record);
                f.now = from + 2 * SEC;
                core_fixture_step(&f, HF__EV_TICK);
                assert_non_null(core_fixture_find_action(&f, HF__ACT_WATCH));
        }
}

/* docs/parity.md, A11: same identity, another acquire time */
static void test_a_process_with_the_same_identity_is_another_holder(void **state) {
        struct core_fixture f;
        struct hf__record record;

        record = core_fixture_start_behind(&f, "baz", 15);
        assert_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        assert_non_null(core_fixture_find_action(&f, HF__ACT_REPORT));
        assert_non_null(core_fixture_find_action(&f, HF__ACT_REPORT)->text);
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 15 * SEC));

        /*
         * A process with the same identity acquires the Lease: the name of the holder does not
         * change.
         */
        core_fixture_lead(&f);
        record = f.lease;
        record.acquire_us += 5;
        core_fixture_set_revision(&f, &record);
        core_fixture_watched(&f, &record);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_TERM_ABORT));
        assert_non_null(core_fixture_find_action(&f, HF__ACT_REPORT)->text);
        assert_true(f.core.collision);
        core_fixture_step(&f, HF__EV_JOINED);
        /* Its record must expire like any other. */
        assert_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        record.holder[0] = '\0';
        core_fixture_set_revision(&f, &record);
        core_fixture_watched(&f, &record);
        assert_false(f.core.collision);
}

/* Scenario of docs/parity.md: ET09. */
static void test_after_a_lost_reply_the_lease_is_acquired_again(void **state) {
        struct core_fixture f;
        struct hf__record first;

        core_fixture_start(&f);
        core_fixture_read_done(&f, HF_E_NOT_FOUND, NULL);
        core_fixture_write_done(&f, HF_E_TIMEOUT);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_READ));
        first = f.sent;
        first.exists = true;
        core_fixture_set_revision(&f, &first);
        core_fixture_read_done(&f, 0, &first);
        assert_null(core_fixture_find_action(&f, HF__ACT_TERM_START)); /* a read starts no term */
        assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        assert_true(f.sent.acquire_us > first.acquire_us);
        assert_string_equal(f.sent.rv, first.rv);
        core_fixture_write_done(&f, 0);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_TERM_START));
}

/* Fails each operation for this long. */
static void be_unavailable(struct core_fixture *f, hf_nsec duration) {
        hf_nsec until = f->now + duration;

        while (f->actions.wake_at < until) {
                f->now = f->actions.wake_at;
                core_fixture_step(f, HF__EV_TICK);
                if (core_fixture_find_action(f, HF__ACT_READ))
                        core_fixture_read_done(f, HF_E_UNAVAILABLE, NULL);
                else if (core_fixture_find_action(f, HF__ACT_WRITE))
                        core_fixture_write_done(f, HF_E_UNAVAILABLE);
        }
        f->now = until;
}

/* The server comes back after the expiry, with replies so quick that each last read ends before the
 * delay after the failures. The last reads must not prolong that delay, each by another one. */
static void test_a_lease_that_expired_while_the_server_was_away_is_acquired(void **state) {
        struct core_fixture f;

        (void)core_fixture_start_behind(&f, "bing", 15);
        core_fixture_watched(&f, &f.lease);
        be_unavailable(&f, 30 * SEC);
        assert_true(f.core.n_failures > 1);
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 6 * SEC));
        core_fixture_write_done(&f, 0);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_TERM_START));
}

static void test_an_acquire_with_a_late_reply_starts_no_term(void **state) {
        struct core_fixture f;

        core_fixture_start(&f);
        core_fixture_read_done(&f, HF_E_NOT_FOUND, NULL);
        f.now += 10 * SEC; /* the process was paused with the reply in its queue */
        core_fixture_write_done(&f, 0);
        assert_null(core_fixture_find_action(&f, HF__ACT_TERM_START));
        assert_int_equal(f.core.state, HF_FOLLOWING);
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 3 * SEC));
}

static void test_an_acquire_overwritten_before_its_reply_starts_no_term(void **state) {
        struct core_fixture f;
        struct hf__record mine, other;

        core_fixture_start(&f);
        core_fixture_read_done(&f, HF_E_NOT_FOUND, NULL);
        mine = f.sent;
        mine.exists = true;
        core_fixture_set_revision(&f, &mine);
        other = core_fixture_held_by(&f, "bing", 15);
        core_fixture_watched(&f, &other);
        f.event.op_id = f.core.op_id;
        f.event.record = mine;
        core_fixture_step(&f, HF__EV_WRITE_DONE);
        assert_null(core_fixture_find_action(&f, HF__ACT_TERM_START));
}

/* 0 = it is free already, or its own */
static void test_a_lease_that_may_be_written_has_no_time(void **state) {
        struct core_fixture f;

        core_fixture_lead(&f);
        assert_true(hf__core_free_at(&f.core) == 0);
        (void)core_fixture_start_behind(&f, "", 15);
        assert_true(hf__core_free_at(&f.core) == 0);
        (void)core_fixture_start_behind(&f, "bing", 15);
        assert_true(hf__core_free_at(&f.core) == f.core.observed_at + 15 * SEC);
        f.core.holder_is_dead = true;
        assert_true(hf__core_free_at(&f.core) == 0);
}

/* A standby that holds back leaves a free Lease to others, but not one that was handed to it. */
static void test_a_standby_that_holds_back_takes_a_lease_later(void **state) {
        struct core_fixture f;
        struct hf__record record;

        for (int handed = 0; handed < 2; handed++) {
                core_fixture_start(&f);
                record = core_fixture_held_by(&f, "bing", 15);
                core_fixture_read_done(&f, 0, &record);
                f.event.hold_back = 6 * SEC;
                core_fixture_step(&f, HF__EV_HOLD_BACK);
                record = core_fixture_held_by(&f, "", 1);
                strcpy(record.successor, handed ? "baz" : "");
                core_fixture_watched(&f, &record);
                if (handed) {
                        assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
                        continue;
                }
                assert_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 6 * SEC - MSEC));
                assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 2 * MSEC));
        }
        /* An elector that holds back leaves an expired Lease too. When it need not hold back any
         * more, it takes the Lease at once. */
        core_fixture_start(&f);
        f.event.hold_back = 6 * SEC;
        core_fixture_step(&f, HF__EV_HOLD_BACK);
        record = core_fixture_held_by(&f, "bing", 15);
        core_fixture_read_done(&f, 0, &record);
        assert_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 20 * SEC));
        core_fixture_step(&f, HF__EV_HOLD_BACK);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
}

/* The write is the one that takes an expired Lease: at the revision of the record. */
static void test_the_lease_of_a_dead_process_is_taken_before_it_expires(void **state) {
        struct core_fixture f;
        core_fixture_start(&f);
        struct hf__record held = core_fixture_held_by(&f, "other", 15);
        held.acquire_us = 7;
        core_fixture_read_done(&f, 0, &held);
        assert_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        f.event.record = held;
        f.event.record.acquire_us = 8; /* the proof is for another term */
        core_fixture_step(&f, HF__EV_HOLDER_DEAD);
        assert_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        f.event.record = held;
        strcpy(f.event.record.holder, "somebody");
        core_fixture_step(&f, HF__EV_HOLDER_DEAD);
        assert_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        f.event.record = held;
        core_fixture_step(&f, HF__EV_HOLDER_DEAD);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        assert_string_equal(f.sent.rv, held.rv);
        assert_int_equal(f.sent.cause, HF__CAUSE_DIED);
        core_fixture_write_done(&f, 0);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_TERM_START));
}

/* The dead process's last renewal was applied late: it is still dead. Another process has taken the
 * Lease: it is alive. */
static void test_a_proof_of_death_lasts_as_long_as_the_term_of_the_dead(void **state) {
        struct core_fixture f;
        core_fixture_start(&f);
        struct hf__record held = core_fixture_held_by(&f, "other", 15);
        held.acquire_us = 7;
        core_fixture_read_done(&f, 0, &held);
        f.event.record = held;
        core_fixture_step(&f, HF__EV_HOLDER_DEAD);
        core_fixture_write_done(&f, HF_E_CONFLICT);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_READ));
        held.renew_us++;
        core_fixture_set_revision(&f, &held);
        core_fixture_read_done(&f, 0, &held);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        core_fixture_write_done(&f, HF_E_CONFLICT);
        struct hf__record taken = core_fixture_held_by(&f, "third", 15);
        taken.acquire_us = 9;
        const struct hf__core_action *read =
                core_fixture_find_action(&f, HF__ACT_READ)
                        ? core_fixture_find_action(&f, HF__ACT_READ)
                        : core_fixture_wait_for(&f, HF__ACT_READ, 5 * SEC);
        assert_non_null(read);
        core_fixture_read_done(&f, 0, &taken);
        assert_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        assert_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 10 * SEC));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_lease_that_may_be_written_has_no_time),
                cmocka_unit_test(test_an_absent_lease_is_created),
                cmocka_unit_test(test_the_count_of_transitions_does_not_overflow),
                cmocka_unit_test(test_a_lease_that_stays_absent_keeps_its_count),
                cmocka_unit_test(test_a_free_lease_is_acquired_at_once),
                cmocka_unit_test(test_a_standby_waits_for_the_recorded_duration),
                cmocka_unit_test(test_a_renewal_restarts_the_wait),
                cmocka_unit_test(test_an_old_watch_event_is_ignored),
                cmocka_unit_test(test_an_old_watch_event_does_not_bring_a_lease_back),
                cmocka_unit_test(test_a_release_wakes_the_standby),
                cmocka_unit_test(test_a_last_read_sees_a_renewal_that_the_watch_missed),
                cmocka_unit_test(test_a_last_read_does_not_delay_the_acquire),
                cmocka_unit_test(test_a_named_successor_goes_first),
                cmocka_unit_test(test_a_standby_that_holds_back_takes_a_lease_later),
                cmocka_unit_test(test_a_standby_polls_without_a_watch),
                cmocka_unit_test(test_a_watch_that_breaks_at_once_is_reopened_after_a_retry_period),
                cmocka_unit_test(test_a_process_with_the_same_identity_is_another_holder),
                cmocka_unit_test(test_after_a_lost_reply_the_lease_is_acquired_again),
                cmocka_unit_test(test_a_lease_that_expired_while_the_server_was_away_is_acquired),
                cmocka_unit_test(test_an_acquire_with_a_late_reply_starts_no_term),
                cmocka_unit_test(test_an_acquire_overwritten_before_its_reply_starts_no_term),
                cmocka_unit_test(test_the_lease_of_a_dead_process_is_taken_before_it_expires),
                cmocka_unit_test(test_a_proof_of_death_lasts_as_long_as_the_term_of_the_dead),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
