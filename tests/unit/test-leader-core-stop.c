/* SPDX-License-Identifier: Apache-2.0 */
/* The elector's core: stops, hand-overs, releases, and outcomes that are unknown at that time. */
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

/* PN01, CR01, CR10, CR16, CG12: drain, join, shut the gate, release, in this order. */
static void test_a_stop_drains_joins_shuts_the_gate_and_releases(void **state) {
        struct core_fixture f;
        struct hf__record held;

        core_fixture_lead(&f);
        held = f.sent;
        core_fixture_step(&f, HF__EV_STOP);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_TERM_DRAIN));
        assert_null(core_fixture_find_action(&f, HF__ACT_GATE_SHUT));
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE,
                                              2 * SEC)); /* it is renewed during the drain */
        assert_string_equal(f.sent.holder, "baz");
        core_fixture_write_done(&f, 0);
        core_fixture_step(&f, HF__EV_JOINED);
        assert_int_equal(f.actions.list[0].type, HF__ACT_GATE_SHUT);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        assert_string_equal(f.sent.holder, "");
        assert_string_equal(f.sent.successor, "");
        assert_int_equal(f.sent.duration_s, 1);
        assert_int_equal(f.sent.transitions, held.transitions);
        assert_int_equal(atoi(f.sent.rv), f.revision);
        core_fixture_write_done(&f, 0);
        assert_true(core_fixture_find_action(&f, HF__ACT_STOPPED)->released);
}

/* The elector's own release would come back as an event: ten thousand events, when as many electors
 * of a process stop. */
static void test_a_stop_closes_the_watch_with_the_release(void **state) {
        struct core_fixture f;

        core_fixture_lead(&f);
        core_fixture_step(&f, HF__EV_STOP);
        assert_null(core_fixture_find_action(&f, HF__ACT_UNWATCH));
        core_fixture_step(&f, HF__EV_JOINED);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_UNWATCH));
        assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        core_fixture_write_done(&f, 0);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_STOPPED));
        assert_null(core_fixture_find_action(&f, HF__ACT_UNWATCH)); /* it is closed already */
}

static void test_a_failed_release_of_a_stop_opens_the_watch_again(void **state) {
        struct core_fixture f;
        struct hf__record record;

        core_fixture_lead(&f);
        record = f.sent;
        core_fixture_step(&f, HF__EV_STOP);
        core_fixture_step(&f, HF__EV_JOINED);
        core_fixture_write_done(&f, HF_E_CONFLICT);
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_WATCH, 2 * SEC));
        core_fixture_set_revision(&f, &record);
        core_fixture_read_done(&f, 0, &record);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_UNWATCH));
        assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        core_fixture_write_done(&f, 0);
        assert_true(core_fixture_find_action(&f, HF__ACT_STOPPED)->released);
}

/* Scenarios of docs/parity.md: CG13, CG14, A01. */
static void test_a_release_after_a_conflict_reads_and_retries(void **state) {
        struct core_fixture f;
        struct hf__record record;

        core_fixture_lead(&f);
        record = f.sent;
        core_fixture_step(&f, HF__EV_STOP);
        core_fixture_step(&f, HF__EV_JOINED);
        core_fixture_write_done(&f, HF_E_CONFLICT);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_READ));
        core_fixture_set_revision(&f, &record);
        /* The Lease is still held: the release is repeated with the new revision. */
        core_fixture_read_done(&f, 0, &record);
        assert_string_equal(f.sent.rv, record.rv);
        core_fixture_write_done(&f, HF_E_CONFLICT);
        if (!core_fixture_find_action(&f, HF__ACT_READ))
                assert_non_null(core_fixture_wait_for(&f, HF__ACT_READ, 5 * SEC));
        record = core_fixture_held_by(&f, "bing", 15);
        /* It belongs to another process and is left alone. */
        core_fixture_read_done(&f, 0, &record);
        assert_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        assert_true(core_fixture_find_action(&f, HF__ACT_STOPPED)->released);
}

/* Scenario of docs/parity.md: CG15. */
static void test_a_stop_with_a_renewal_under_way_releases(void **state) {
        struct core_fixture f;

        core_fixture_lead(&f);
        core_fixture_wait_for(&f, HF__ACT_WRITE, 2 * SEC);
        core_fixture_step(&f, HF__EV_STOP);
        core_fixture_step(&f, HF__EV_JOINED);
        assert_null(core_fixture_find_action(&f, HF__ACT_WRITE)); /* one operation at a time */
        core_fixture_write_done(&f, 0);
        assert_string_equal(f.sent.holder, "");
        core_fixture_write_done(&f, 0);
        assert_true(core_fixture_find_action(&f, HF__ACT_STOPPED)->released);
}

/* Scenario of docs/parity.md: CG16. */
static void test_a_stop_with_a_read_under_way_releases(void **state) {
        struct core_fixture f;
        struct hf__record record;

        core_fixture_lead(&f);
        record = f.sent;
        core_fixture_wait_for(&f, HF__ACT_WRITE, 2 * SEC);
        core_fixture_write_done(&f, HF_E_CONFLICT);
        core_fixture_step(&f, HF__EV_STOP);
        core_fixture_step(&f, HF__EV_JOINED);
        core_fixture_set_revision(&f, &record);
        core_fixture_read_done(&f, 0, &record);
        assert_string_equal(f.sent.holder, "");
        assert_string_equal(f.sent.rv, record.rv);
}

static void test_a_release_ends_in_bounded_time(void **state) {
        struct core_fixture f;
        hf_nsec from;

        core_fixture_lead(&f);
        core_fixture_step(&f, HF__EV_STOP);
        core_fixture_step(&f, HF__EV_JOINED);
        from = f.now;
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_STOPPED, 10 * SEC));
        assert_false(core_fixture_find_action(&f, HF__ACT_STOPPED)->released);
        assert_true(f.now <= from + 10 * SEC);
}

/* Scenarios of docs/parity.md: CR03, A06, A07, A12. */
static void test_a_follower_stops_at_once(void **state) {
        struct core_fixture f;

        core_fixture_start(&f);
        /* A read is under way, but there is nothing to wait for. */
        core_fixture_step(&f, HF__EV_STOP);
        assert_true(core_fixture_find_action(&f, HF__ACT_STOPPED)->released);

        (void)core_fixture_start_behind(&f, "bing", 15);
        core_fixture_step(&f, HF__EV_STOP);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_STOPPED));
        assert_int_equal(f.actions.wake_at, HF_NSEC_NEVER);
}

/* Scenario of docs/parity.md: A06. */
static void test_a_stop_with_an_acquire_under_way_starts_no_term(void **state) {
        struct core_fixture f;
        struct hf__record record;

        core_fixture_start(&f);
        core_fixture_read_done(&f, HF_E_NOT_FOUND, NULL);
        core_fixture_step(&f, HF__EV_STOP);
        assert_null(core_fixture_find_action(&f, HF__ACT_STOPPED));
        core_fixture_write_done(&f, 0); /* it was acquired: no term starts, it is released */
        assert_null(core_fixture_find_action(&f, HF__ACT_TERM_START));
        assert_string_equal(f.sent.holder, "");
        core_fixture_write_done(&f, 0);
        assert_true(core_fixture_find_action(&f, HF__ACT_STOPPED)->released);

        core_fixture_start(&f);
        core_fixture_read_done(&f, HF_E_NOT_FOUND, NULL);
        core_fixture_write_done(&f, HF_E_TIMEOUT);
        core_fixture_step(&f, HF__EV_STOP); /* only a read can tell whether it was acquired */
        assert_null(core_fixture_find_action(&f, HF__ACT_STOPPED));
        record = f.sent;
        record.exists = true;
        core_fixture_set_revision(&f, &record);
        core_fixture_read_done(&f, 0, &record);
        assert_string_equal(f.sent.holder, "");
}

/*
 * A06: The request hangs somewhere. It has no visible effect, and may be applied after the process
 * is gone.
 */
static void test_a_stop_settles_an_acquire_with_a_lost_reply(void **state) {
        struct core_fixture f;
        struct hf__record record;

        core_fixture_start(&f); /* an absent Lease: the acquire creates it */
        core_fixture_read_done(&f, HF_E_NOT_FOUND, NULL);
        core_fixture_write_done(&f, HF_E_TIMEOUT);
        core_fixture_step(&f, HF__EV_STOP);
        core_fixture_read_done(&f, HF_E_NOT_FOUND, NULL);
        assert_non_null(
                core_fixture_find_action(&f,
                                         HF__ACT_WRITE)); /* a release is created in its place */
        assert_false(f.sent.exists);
        assert_string_equal(f.sent.holder, "");
        core_fixture_write_done(&f, 0);
        assert_true(core_fixture_find_action(&f, HF__ACT_STOPPED)->released);

        core_fixture_start(&f); /* an expired Lease: it could be acquired, so it may be released */
        record = core_fixture_held_by(&f, "bing", 15);
        core_fixture_read_done(&f, 0, &record);
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 16 * SEC));
        core_fixture_write_done(&f, HF_E_TIMEOUT);
        core_fixture_step(&f, HF__EV_STOP);
        core_fixture_read_done(&f, 0, &record);
        assert_string_equal(f.sent.holder, "");
        assert_string_equal(f.sent.rv, record.rv);
        core_fixture_write_done(&f, HF_E_CONFLICT); /* the acquire was applied in the meantime */
        assert_non_null(core_fixture_find_action(&f, HF__ACT_READ));
        strcpy(record.holder, "baz");
        record.acquire_us = f.core.last_acquire_us;
        core_fixture_set_revision(&f, &record);
        core_fixture_read_done(&f, 0, &record);
        assert_string_equal(f.sent.rv, record.rv);
        core_fixture_write_done(&f, 0);
        assert_true(core_fixture_find_action(&f, HF__ACT_STOPPED)->released);

        /* another process holds it again: it is left alone, and the acquire's condition fails */
        core_fixture_start(&f);
        core_fixture_read_done(&f, HF_E_NOT_FOUND, NULL);
        core_fixture_write_done(&f, HF_E_TIMEOUT);
        core_fixture_step(&f, HF__EV_STOP);
        record = core_fixture_held_by(&f, "bing", 15);
        core_fixture_read_done(&f, 0, &record);
        assert_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        assert_true(core_fixture_find_action(&f, HF__ACT_STOPPED)->released);
}

/*
 * A backup was restored: the revision that a standby knows may be used again for a record of
 * another process.
 */
static void test_after_a_replaced_history_a_read_precedes_the_next_write(void **state) {
        struct hf__record record;
        struct core_fixture f;

        record = core_fixture_start_behind(&f, "bing", 15);
        core_fixture_step(&f, HF__EV_STALE_TERM);
        assert_int_equal(f.core.state, HF_FOLLOWING);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_READ));
        f.now += 60 * SEC; /* the lease duration has passed long ago */
        core_fixture_read_done(&f, HF_E_UNAVAILABLE, NULL);
        assert_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_READ, 3 * SEC));
        record = core_fixture_held_by(&f, "bong", 15);
        record.rv_number = 1;
        strcpy(record.rv, "1");
        core_fixture_read_done(&f, 0, &record); /* an older revision, but the true record */
        assert_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 15 * SEC - 1));
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 1));
        assert_string_equal(f.sent.rv, "1");
}

/* Scenario of docs/parity.md: CR17. */
static void test_the_drain_deadline_aborts_the_term(void **state) {
        struct core_fixture f;
        hf_nsec from;

        core_fixture_lead(&f);
        core_fixture_step(&f, HF__EV_STOP);
        from = f.now;
        while (f.core.state == HF_DRAINING) {
                core_fixture_wait_for(&f, HF__ACT_WRITE, 2 * SEC);
                if (core_fixture_find_action(&f, HF__ACT_WRITE))
                        core_fixture_write_done(&f, 0);
        }
        assert_int_equal(f.now, from + 10 * SEC);
        assert_int_equal(f.core.state, HF_ABORTING);
        core_fixture_step(&f, HF__EV_JOINED);
        assert_int_equal(f.core.state, HF_RELEASING);
}

/* The process is paused during the last half second of a drain or a release, and learns it 2 s
 * after the deadline, or a little earlier. */
static void test_a_drain_and_a_release_begin_anew_after_a_pause(void **state) {
        struct core_fixture f;

        for (unsigned way = 0; way < 4; way++) {
                bool is_paused = way % 2 == 0, is_release = way >= 2;
                core_fixture_lead(&f);
                core_fixture_step(&f, HF__EV_STOP);
                if (is_release)
                        core_fixture_step(&f, HF__EV_JOINED);
                hf_nsec until = f.core.deadline.at;
                while (f.now + SEC < until) {
                        f.now += SEC;
                        core_fixture_step(&f, HF__EV_TICK);
                        if (core_fixture_find_action(&f, HF__ACT_WRITE) && !is_release)
                                core_fixture_write_done(&f, 0);
                }
                f.now = until + 2 * SEC - !is_paused;
                core_fixture_step(&f, HF__EV_TICK);
                if (!is_paused) {
                        assert_int_equal(f.core.state, is_release ? HF_STOPPED : HF_ABORTING);
                        continue;
                }
                assert_int_equal(f.core.state, is_release ? HF_RELEASING : HF_DRAINING);
                assert_int_equal(f.core.deadline.at, f.now + 10 * SEC);
        }
}

static void test_a_core_knows_by_when_it_stops(void **state) {
        struct core_fixture f;

        core_fixture_lead(&f);
        const hf_nsec drain = f.core.config.timing.drain_deadline,
                      grace = f.core.config.timing.stop_grace,
                      release = 2 * f.core.config.timing.request_timeout;
        assert_int_equal(hf__core_stops_by(&f.core), 0);
        core_fixture_step(&f, HF__EV_STOP);
        assert_int_equal(f.core.state, HF_DRAINING);
        assert_int_equal(hf__core_stops_by(&f.core), f.now + drain + grace + release);
        f.now += SEC;
        core_fixture_step(&f, HF__EV_STALE_TERM);
        assert_int_equal(f.core.state, HF_ABORTING);
        assert_int_equal(hf__core_stops_by(&f.core), f.now + grace + release);
        f.now += SEC;
        core_fixture_step(&f, HF__EV_JOINED);
        assert_int_equal(f.core.state, HF_RELEASING);
        assert_int_equal(hf__core_stops_by(&f.core), f.now + release);
        f.now += release;
        core_fixture_step(&f, HF__EV_TICK);
        assert_int_equal(f.core.state, HF_STOPPED);
        assert_int_equal(hf__core_stops_by(&f.core), 0);
}

static void test_a_hand_over_names_the_successor(void **state) {
        struct core_fixture f;

        core_fixture_lead(&f);
        core_fixture_watched(&f, &f.lease);
        core_fixture_hand_over(&f, "other");
        assert_non_null(core_fixture_find_action(&f, HF__ACT_TERM_DRAIN));
        core_fixture_step(&f, HF__EV_JOINED);
        assert_null(core_fixture_find_action(&f, HF__ACT_UNWATCH)); /* it follows afterwards */
        assert_string_equal(f.sent.holder, "");
        assert_string_equal(f.sent.successor, "other");
        core_fixture_write_done(&f, 0);
        assert_int_equal(f.core.state, HF_FOLLOWING);
        assert_null(core_fixture_find_action(&f, HF__ACT_STOPPED));
        assert_null(core_fixture_wait_for(&f, HF__ACT_WRITE,
                                          4 * SEC - 1)); /* let the successor try first */
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 1)); /* it has not tried yet */
        core_fixture_write_done(&f, 0);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_TERM_START));
}

/* Another program changes the free Lease, a label of it for example. */
static void test_a_change_without_a_holder_does_not_end_the_wait(void **state) {
        struct core_fixture f;

        core_fixture_lead(&f);
        core_fixture_watched(&f, &f.lease);
        core_fixture_hand_over(&f, "other");
        core_fixture_step(&f, HF__EV_JOINED);
        core_fixture_write_done(&f, 0);
        struct hf__record record;
        hf__core_observed(&f.core, &record);
        core_fixture_set_revision(&f, &record);
        core_fixture_watched(&f, &record);
        assert_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 4 * SEC - 1));
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 1));
}

/* Leads, and hands over to "other", which leads then. Returns its Lease. */
static struct hf__record be_succeeded(struct core_fixture *f) {
        core_fixture_lead(f);
        core_fixture_watched(f, &f->lease);
        core_fixture_hand_over(f, "other");
        core_fixture_step(f, HF__EV_JOINED);
        core_fixture_write_done(f, 0);
        struct hf__record record = core_fixture_held_by(f, "other", 15);
        core_fixture_watched(f, &record);
        assert_null(core_fixture_wait_for(f, HF__ACT_WRITE, SEC));
        return record;
}

/* A process that has just released leads at once when the Lease is handed back to it. */
static void test_a_lease_can_be_handed_back_at_once(void **state) {
        struct core_fixture f;
        struct hf__record record = be_succeeded(&f);

        record.holder[0] = '\0';
        strcpy(record.successor, "baz");
        core_fixture_set_revision(&f, &record);
        core_fixture_watched(&f, &record);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        assert_string_equal(f.sent.holder, "baz");
}

/* It holds back only for the successor: after another term, a free Lease is free for all. */
static void test_the_wait_for_a_successor_ends_with_the_next_term(void **state) {
        struct core_fixture f;
        struct hf__record record = be_succeeded(&f);

        record.holder[0] = '\0'; /* released, without a successor */
        core_fixture_set_revision(&f, &record);
        core_fixture_watched(&f, &record);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        assert_string_equal(f.sent.holder, "baz");
}

static void test_an_annotation_may_ask_for_a_hand_over(void **state) {
        struct core_fixture f;
        struct hf__record record;

        core_fixture_lead(&f);
        record = f.lease;
        strcpy(record.hand_over_to, "baz"); /* itself: nothing to do */
        core_fixture_set_revision(&f, &record);
        core_fixture_watched(&f, &record);
        assert_null(core_fixture_find_action(&f, HF__ACT_TERM_DRAIN));
        strcpy(record.hand_over_to, "other");
        core_fixture_set_revision(&f, &record);
        core_fixture_watched(&f, &record);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_TERM_DRAIN));
        core_fixture_step(&f, HF__EV_JOINED);
        assert_string_equal(f.sent.holder, "");
        assert_string_equal(f.sent.successor, "other");
        assert_string_equal(f.sent.hand_over_to, ""); /* the request is fulfilled */
        core_fixture_write_done(&f, 0);
        assert_int_equal(f.core.state, HF_FOLLOWING);

        core_fixture_lead(&f); /* without a watch, the conflict of the next renewal reveals it */
        record = f.lease;
        strcpy(record.hand_over_to, "other");
        core_fixture_set_revision(&f, &record);
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 2 * SEC));
        core_fixture_write_done(&f, HF_E_CONFLICT);
        core_fixture_read_done(&f, 0, &record);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_TERM_DRAIN));

        core_fixture_start(&f); /* a request to a follower has no effect, whoever the holder is */
        record = core_fixture_held_by(&f, "bing", 15);
        strcpy(record.hand_over_to, "baz");
        core_fixture_read_done(&f, 0, &record);
        assert_null(core_fixture_find_action(&f, HF__ACT_WRITE));
}

static void test_a_late_reply_of_a_previous_operation_is_ignored(void **state) {
        struct core_fixture f;
        uint32_t former;

        core_fixture_lead(&f);
        core_fixture_wait_for(&f, HF__ACT_WRITE, 2 * SEC);
        former = f.core.op_id;
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_READ, 5 * SEC));
        f.event.op_id = former;
        f.event.record = f.sent;
        core_fixture_set_revision(&f, &f.event.record);
        core_fixture_step(&f, HF__EV_WRITE_DONE);
        assert_int_equal(f.actions.n, 0);
}

/* every state handles a stop and ends */
static void test_a_stop_ends_an_abort_and_a_hand_over(void **state) {
        struct core_fixture f;

        core_fixture_lead(&f);
        core_fixture_step(&f, HF__EV_STALE_TERM);
        core_fixture_step(&f, HF__EV_STOP);
        assert_int_equal(f.core.state, HF_ABORTING);
        core_fixture_step(&f, HF__EV_JOINED);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_READ));
        core_fixture_reads_the_known(&f);
        assert_string_equal(f.sent.holder, ""); /* the Lease is still mine */
        core_fixture_write_done(&f, 0);
        assert_true(core_fixture_find_action(&f, HF__ACT_STOPPED)->released);

        core_fixture_lead(&f);
        core_fixture_hand_over(&f, "other");
        core_fixture_step(&f, HF__EV_JOINED);
        core_fixture_step(&f, HF__EV_STOP);
        core_fixture_write_done(&f, 0);
        assert_true(core_fixture_find_action(&f, HF__ACT_STOPPED)->released);
}

/*
 * The outcome of the acquire is unknown, and its revision may be used again. To invalidate it now
 * would clear the record of a process that has renewed meanwhile.
 */
static void test_a_stop_waits_before_it_clears_a_lease_of_a_replaced_history(void **state) {
        struct hf__record record;
        struct core_fixture f;
        hf_nsec seen_at;

        record = core_fixture_start_behind(&f, "bing", 15);
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 15 * SEC));
        core_fixture_step(&f, HF__EV_STALE_TERM);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_READ));
        record.renew_us++; /* the old revision, and another record */
        core_fixture_read_done(&f, 0, &record);
        seen_at = f.now;
        assert_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 14 * SEC));
        core_fixture_step(&f, HF__EV_STOP);
        assert_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        if (core_fixture_find_action(&f, HF__ACT_READ))
                core_fixture_read_done(&f, 0, &record);
        assert_null(core_fixture_wait_for(&f, HF__ACT_WRITE, seen_at + 15 * SEC - 1 - f.now));
        assert_int_equal(f.core.state, HF_RELEASING);
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, SEC));
        assert_string_equal(f.sent.holder, "");
        assert_string_equal(f.sent.rv, record.rv);
        core_fixture_write_done(&f, 0);
        assert_true(core_fixture_find_action(&f, HF__ACT_STOPPED)->released);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_stop_waits_before_it_clears_a_lease_of_a_replaced_history),
                cmocka_unit_test(test_a_stop_drains_joins_shuts_the_gate_and_releases),
                cmocka_unit_test(test_a_stop_closes_the_watch_with_the_release),
                cmocka_unit_test(test_a_failed_release_of_a_stop_opens_the_watch_again),
                cmocka_unit_test(test_a_release_after_a_conflict_reads_and_retries),
                cmocka_unit_test(test_a_stop_with_a_renewal_under_way_releases),
                cmocka_unit_test(test_a_stop_with_a_read_under_way_releases),
                cmocka_unit_test(test_a_release_ends_in_bounded_time),
                cmocka_unit_test(test_a_follower_stops_at_once),
                cmocka_unit_test(test_a_stop_with_an_acquire_under_way_starts_no_term),
                cmocka_unit_test(test_a_stop_settles_an_acquire_with_a_lost_reply),
                cmocka_unit_test(test_after_a_replaced_history_a_read_precedes_the_next_write),
                cmocka_unit_test(test_the_drain_deadline_aborts_the_term),
                cmocka_unit_test(test_a_drain_and_a_release_begin_anew_after_a_pause),
                cmocka_unit_test(test_a_core_knows_by_when_it_stops),
                cmocka_unit_test(test_a_hand_over_names_the_successor),
                cmocka_unit_test(test_a_change_without_a_holder_does_not_end_the_wait),
                cmocka_unit_test(test_a_lease_can_be_handed_back_at_once),
                cmocka_unit_test(test_the_wait_for_a_successor_ends_with_the_next_term),
                cmocka_unit_test(test_an_annotation_may_ask_for_a_hand_over),
                cmocka_unit_test(test_a_late_reply_of_a_previous_operation_is_ignored),
                cmocka_unit_test(test_a_stop_ends_an_abort_and_a_hand_over),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
