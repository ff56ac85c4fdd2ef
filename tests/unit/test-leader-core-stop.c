/* SPDX-License-Identifier: Apache-2.0 */
/* The elector's core: stops, hand-overs, releases, and the doubts that are settled on the way. */
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

#include "tests/lib/core_rig.h"

/* PN01, CR01, CR10, CR16, CG12; the order of design 4 */
static void test_stop_drains_joins_shuts_releases(void **state) {
        struct rig rig;
        struct hf__record held;

        lead(&rig);
        held = rig.sent;
        step(&rig, HF__EV_STOP);
        assert_non_null(did(&rig, HF__ACT_TERM_DRAIN));
        assert_null(did(&rig, HF__ACT_GATE_SHUT));
        assert_non_null(wait_for(&rig, HF__ACT_WRITE, 2 * S)); /* renewed while it drains */
        assert_string_equal(rig.sent.holder, "baz");
        answer_write(&rig, 0);
        step(&rig, HF__EV_JOINED);
        assert_int_equal(rig.actions.list[0].type, HF__ACT_GATE_SHUT);
        assert_non_null(did(&rig, HF__ACT_WRITE));
        assert_string_equal(rig.sent.holder, "");
        assert_string_equal(rig.sent.successor, "");
        assert_int_equal(rig.sent.duration_s, 1);
        assert_int_equal(rig.sent.transitions, held.transitions);
        assert_int_equal(atoi(rig.sent.rv), rig.revision);
        answer_write(&rig, 0);
        assert_true(did(&rig, HF__ACT_STOPPED)->released);
        assert_non_null(did(&rig, HF__ACT_UNWATCH));
}

static void test_release_meets_a_conflict(void **state) { /* CG13, CG14, A01 */
        struct rig rig;
        struct hf__record record;

        lead(&rig);
        record = rig.sent;
        step(&rig, HF__EV_STOP);
        step(&rig, HF__EV_JOINED);
        answer_write(&rig, HF_E_CONFLICT);
        assert_non_null(did(&rig, HF__ACT_READ));
        set_rv(&rig, &record);
        answer_read(&rig, 0, &record); /* still mine: again, on the new revision */
        assert_string_equal(rig.sent.rv, record.rv);
        answer_write(&rig, HF_E_CONFLICT);
        if (!did(&rig, HF__ACT_READ))
                assert_non_null(wait_for(&rig, HF__ACT_READ, 5 * S));
        record = held_by(&rig, "bing", 15);
        answer_read(&rig, 0, &record); /* somebody else's: left alone */
        assert_null(did(&rig, HF__ACT_WRITE));
        assert_true(did(&rig, HF__ACT_STOPPED)->released);
}

static void test_stop_with_a_renewal_under_way(void **state) { /* CG15 */
        struct rig rig;

        lead(&rig);
        wait_for(&rig, HF__ACT_WRITE, 2 * S);
        step(&rig, HF__EV_STOP);
        step(&rig, HF__EV_JOINED);
        assert_null(did(&rig, HF__ACT_WRITE)); /* one operation at a time */
        answer_write(&rig, 0);
        assert_string_equal(rig.sent.holder, "");
        answer_write(&rig, 0);
        assert_true(did(&rig, HF__ACT_STOPPED)->released);
}

static void test_stop_with_a_read_under_way(void **state) { /* CG16 */
        struct rig rig;
        struct hf__record record;

        lead(&rig);
        record = rig.sent;
        wait_for(&rig, HF__ACT_WRITE, 2 * S);
        answer_write(&rig, HF_E_CONFLICT);
        step(&rig, HF__EV_STOP);
        step(&rig, HF__EV_JOINED);
        set_rv(&rig, &record);
        answer_read(&rig, 0, &record);
        assert_string_equal(rig.sent.holder, "");
        assert_string_equal(rig.sent.rv, record.rv);
}

static void test_release_is_bounded(void **state) {
        struct rig rig;
        hf_nsec from;

        lead(&rig);
        step(&rig, HF__EV_STOP);
        step(&rig, HF__EV_JOINED);
        from = rig.now;
        assert_non_null(wait_for(&rig, HF__ACT_STOPPED, 10 * S));
        assert_false(did(&rig, HF__ACT_STOPPED)->released);
        assert_true(rig.now <= from + 10 * S);
}

static void test_stop_of_a_follower(void **state) { /* CR03, A06, A07, A12 */
        struct rig rig;
        struct hf__record record;

        start(&rig);
        step(&rig, HF__EV_STOP); /* with a read under way: nothing to wait for */
        assert_true(did(&rig, HF__ACT_STOPPED)->released);

        start(&rig);
        record = held_by(&rig, "bing", 15);
        answer_read(&rig, 0, &record);
        step(&rig, HF__EV_STOP);
        assert_non_null(did(&rig, HF__ACT_STOPPED));
        assert_int_equal(rig.actions.wake_at, HF_NSEC_NEVER);
}

static void test_stop_with_an_acquire_under_way(void **state) { /* A06 */
        struct rig rig;
        struct hf__record record;

        start(&rig);
        answer_read(&rig, HF_E_NOT_FOUND, NULL);
        step(&rig, HF__EV_STOP);
        assert_null(did(&rig, HF__ACT_STOPPED));
        answer_write(&rig, 0); /* it was taken: no term starts, it is given back */
        assert_null(did(&rig, HF__ACT_TERM_START));
        assert_string_equal(rig.sent.holder, "");
        answer_write(&rig, 0);
        assert_true(did(&rig, HF__ACT_STOPPED)->released);

        start(&rig);
        answer_read(&rig, HF_E_NOT_FOUND, NULL);
        answer_write(&rig, HF_E_TIMEOUT);
        step(&rig, HF__EV_STOP); /* whether it was taken only a read can tell */
        assert_null(did(&rig, HF__ACT_STOPPED));
        record = rig.sent;
        record.exists = true;
        set_rv(&rig, &record);
        answer_read(&rig, 0, &record);
        assert_string_equal(rig.sent.holder, "");
}

/* The request hangs somewhere: nothing is to be seen of it, and it may be applied after the process
 * is gone. */
static void test_a_stop_leaves_no_acquire_behind(void **state) { /* A06 */
        struct rig rig;
        struct hf__record record;

        start(&rig); /* an absent Lease: the acquire creates it */
        answer_read(&rig, HF_E_NOT_FOUND, NULL);
        answer_write(&rig, HF_E_TIMEOUT);
        step(&rig, HF__EV_STOP);
        answer_read(&rig, HF_E_NOT_FOUND, NULL);
        assert_non_null(did(&rig, HF__ACT_WRITE)); /* a release is created in its place */
        assert_false(rig.sent.exists);
        assert_string_equal(rig.sent.holder, "");
        answer_write(&rig, 0);
        assert_true(did(&rig, HF__ACT_STOPPED)->released);

        start(&rig); /* an expired one: as it might be taken, it may be released */
        record = held_by(&rig, "bing", 15);
        answer_read(&rig, 0, &record);
        assert_non_null(wait_for(&rig, HF__ACT_WRITE, 16 * S));
        answer_write(&rig, HF_E_TIMEOUT);
        step(&rig, HF__EV_STOP);
        answer_read(&rig, 0, &record);
        assert_string_equal(rig.sent.holder, "");
        assert_string_equal(rig.sent.rv, record.rv);
        answer_write(&rig, HF_E_CONFLICT); /* it was applied in the meantime */
        assert_non_null(did(&rig, HF__ACT_READ));
        strcpy(record.holder, "baz");
        record.acquire_us = rig.core.last_acquire_us;
        set_rv(&rig, &record);
        answer_read(&rig, 0, &record);
        assert_string_equal(rig.sent.rv, record.rv);
        answer_write(&rig, 0);
        assert_true(did(&rig, HF__ACT_STOPPED)->released);

        start(&rig); /* one that is held again: left alone, and the acquire's condition is gone with
                        it */
        answer_read(&rig, HF_E_NOT_FOUND, NULL);
        answer_write(&rig, HF_E_TIMEOUT);
        step(&rig, HF__EV_STOP);
        record = held_by(&rig, "bing", 15);
        answer_read(&rig, 0, &record);
        assert_null(did(&rig, HF__ACT_WRITE));
        assert_true(did(&rig, HF__ACT_STOPPED)->released);
}

/* A backup was restored: a revision that a standby knows may have been issued anew, for the Lease
 * of somebody else. */
static void test_replaced_history_is_read_before_a_write(void **state) {
        struct hf__record record;
        struct rig rig;

        start(&rig);
        record = held_by(&rig, "bing", 15);
        answer_read(&rig, 0, &record);
        step(&rig, HF__EV_STALE_TERM);
        assert_int_equal(rig.core.state, HF_FOLLOWING);
        assert_non_null(did(&rig, HF__ACT_READ));
        rig.now += 60 * S; /* the lease duration is over long since */
        answer_read(&rig, HF_E_UNAVAILABLE, NULL);
        assert_null(did(&rig, HF__ACT_WRITE));
        assert_non_null(wait_for(&rig, HF__ACT_READ, 3 * S));
        record = held_by(&rig, "bong", 15);
        record.rv_number = 1;
        strcpy(record.rv, "1");
        answer_read(&rig, 0, &record); /* older by its revision, and true */
        assert_null(wait_for(&rig, HF__ACT_WRITE, 15 * S - 1));
        assert_non_null(wait_for(&rig, HF__ACT_WRITE, 1));
        assert_string_equal(rig.sent.rv, "1");
}

static void test_the_drain_deadline_aborts(void **state) { /* CR17 */
        struct rig rig;
        hf_nsec from;

        lead(&rig);
        step(&rig, HF__EV_STOP);
        from = rig.now;
        while (rig.core.state == HF_DRAINING) {
                wait_for(&rig, HF__ACT_WRITE, 2 * S);
                if (did(&rig, HF__ACT_WRITE))
                        answer_write(&rig, 0);
        }
        assert_int_equal(rig.now, from + 10 * S);
        assert_int_equal(rig.core.state, HF_ABORTING);
        step(&rig, HF__EV_JOINED);
        assert_int_equal(rig.core.state, HF_RELEASING);
}

static void test_hand_over(void **state) {
        struct rig rig;

        lead(&rig);
        watch(&rig, &rig.lease);
        hand_over(&rig, "other");
        assert_non_null(did(&rig, HF__ACT_TERM_DRAIN));
        step(&rig, HF__EV_JOINED);
        assert_string_equal(rig.sent.holder, "");
        assert_string_equal(rig.sent.successor, "other");
        answer_write(&rig, 0);
        assert_int_equal(rig.core.state, HF_FOLLOWING);
        assert_null(did(&rig, HF__ACT_STOPPED));
        assert_null(
                wait_for(&rig, HF__ACT_WRITE, 4 * S - 1)); /* the successor has the first word */
        assert_non_null(wait_for(&rig, HF__ACT_WRITE, 1)); /* and has not said it */
        answer_write(&rig, 0);
        assert_non_null(did(&rig, HF__ACT_TERM_START));
}

/* Whoever has just released need not wait when the Lease is handed back to it. */
static void test_hand_over_and_back(void **state) {
        struct rig rig;
        struct hf__record record;

        lead(&rig);
        watch(&rig, &rig.lease);
        hand_over(&rig, "other");
        step(&rig, HF__EV_JOINED);
        answer_write(&rig, 0);
        record = held_by(&rig, "other", 15);
        watch(&rig, &record);
        assert_null(wait_for(&rig, HF__ACT_WRITE, S));
        record.holder[0] = '\0';
        strcpy(record.successor, "baz");
        set_rv(&rig, &record);
        watch(&rig, &record);
        assert_non_null(did(&rig, HF__ACT_WRITE));
        assert_string_equal(rig.sent.holder, "baz");
}

/* The hold was for the successor: once somebody has led since, what is then left free is anybody's.
 */
static void test_the_hold_ends_with_the_next_term(void **state) {
        struct rig rig;
        struct hf__record record;

        lead(&rig);
        watch(&rig, &rig.lease);
        hand_over(&rig, "other");
        step(&rig, HF__EV_JOINED);
        answer_write(&rig, 0);
        record = held_by(&rig, "other", 15);
        watch(&rig, &record);
        assert_null(wait_for(&rig, HF__ACT_WRITE, S));
        record.holder[0] = '\0'; /* it is stopped, and nobody is named */
        set_rv(&rig, &record);
        watch(&rig, &record);
        assert_non_null(did(&rig, HF__ACT_WRITE));
        assert_string_equal(rig.sent.holder, "baz");
}

static void test_the_record_may_ask_for_a_hand_over(void **state) {
        struct rig rig;
        struct hf__record record;

        lead(&rig);
        record = rig.lease;
        strcpy(record.hand_over_to, "baz"); /* itself: nothing to do */
        set_rv(&rig, &record);
        watch(&rig, &record);
        assert_null(did(&rig, HF__ACT_TERM_DRAIN));
        strcpy(record.hand_over_to, "other");
        set_rv(&rig, &record);
        watch(&rig, &record);
        assert_non_null(did(&rig, HF__ACT_TERM_DRAIN));
        step(&rig, HF__EV_JOINED);
        assert_string_equal(rig.sent.holder, "");
        assert_string_equal(rig.sent.successor, "other");
        assert_string_equal(rig.sent.hand_over_to, ""); /* what was asked for is done */
        answer_write(&rig, 0);
        assert_int_equal(rig.core.state, HF_FOLLOWING);

        lead(&rig); /* without a watch the conflict of the next renewal tells */
        record = rig.lease;
        strcpy(record.hand_over_to, "other");
        set_rv(&rig, &record);
        assert_non_null(wait_for(&rig, HF__ACT_WRITE, 2 * S));
        answer_write(&rig, HF_E_CONFLICT);
        answer_read(&rig, 0, &record);
        assert_non_null(did(&rig, HF__ACT_TERM_DRAIN));

        start(&rig); /* a follower is not asked, whoever holds it */
        record = held_by(&rig, "bing", 15);
        strcpy(record.hand_over_to, "baz");
        answer_read(&rig, 0, &record);
        assert_null(did(&rig, HF__ACT_WRITE));
}

static void test_a_late_answer_of_a_former_operation_is_ignored(void **state) {
        struct rig rig;
        uint32_t former;

        lead(&rig);
        wait_for(&rig, HF__ACT_WRITE, 2 * S);
        former = rig.core.op_id;
        assert_non_null(wait_for(&rig, HF__ACT_READ, 5 * S));
        rig.event.op_id = former;
        rig.event.record = rig.sent;
        set_rv(&rig, &rig.event.record);
        step(&rig, HF__EV_WRITE_DONE);
        assert_int_equal(rig.actions.n, 0);
}

/* every state meets a stop and ends */
static void test_stop_beats_everything_under_way(void **state) {
        struct rig rig;

        lead(&rig);
        step(&rig, HF__EV_STALE_TERM);
        step(&rig, HF__EV_STOP);
        assert_int_equal(rig.core.state, HF_ABORTING);
        step(&rig, HF__EV_JOINED);
        assert_non_null(did(&rig, HF__ACT_READ));
        answer_read(&rig, 0, &rig.core.observed);
        assert_string_equal(rig.sent.holder, ""); /* the Lease is still mine */
        answer_write(&rig, 0);
        assert_true(did(&rig, HF__ACT_STOPPED)->released);

        lead(&rig);
        hand_over(&rig, "other");
        step(&rig, HF__EV_JOINED);
        step(&rig, HF__EV_STOP);
        answer_write(&rig, 0);
        assert_true(did(&rig, HF__ACT_STOPPED)->released);
}

/* The acquire in doubt names a revision that was issued anew: to take its condition away clears the
 * Lease of who renewed meanwhile. */
static void test_a_stop_waits_before_it_clears_a_lease_of_a_replaced_history(void **state) {
        struct hf__record record;
        struct rig rig;
        hf_nsec seen_at;

        start(&rig);
        record = held_by(&rig, "bing", 15);
        answer_read(&rig, 0, &record);
        assert_non_null(wait_for(&rig, HF__ACT_WRITE, 15 * S));
        step(&rig, HF__EV_STALE_TERM);
        assert_non_null(did(&rig, HF__ACT_READ));
        record.renew_us++; /* the old revision, and another record */
        answer_read(&rig, 0, &record);
        seen_at = rig.now;
        assert_null(wait_for(&rig, HF__ACT_WRITE, 14 * S));
        step(&rig, HF__EV_STOP);
        assert_null(did(&rig, HF__ACT_WRITE));
        if (did(&rig, HF__ACT_READ))
                answer_read(&rig, 0, &record);
        assert_null(wait_for(&rig, HF__ACT_WRITE, seen_at + 15 * S - 1 - rig.now));
        assert_int_equal(rig.core.state, HF_RELEASING);
        assert_non_null(wait_for(&rig, HF__ACT_WRITE, S));
        assert_string_equal(rig.sent.holder, "");
        assert_string_equal(rig.sent.rv, record.rv);
        answer_write(&rig, 0);
        assert_true(did(&rig, HF__ACT_STOPPED)->released);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_stop_waits_before_it_clears_a_lease_of_a_replaced_history),
                cmocka_unit_test(test_stop_drains_joins_shuts_releases),
                cmocka_unit_test(test_release_meets_a_conflict),
                cmocka_unit_test(test_stop_with_a_renewal_under_way),
                cmocka_unit_test(test_stop_with_a_read_under_way),
                cmocka_unit_test(test_release_is_bounded),
                cmocka_unit_test(test_stop_of_a_follower),
                cmocka_unit_test(test_stop_with_an_acquire_under_way),
                cmocka_unit_test(test_a_stop_leaves_no_acquire_behind),
                cmocka_unit_test(test_replaced_history_is_read_before_a_write),
                cmocka_unit_test(test_the_drain_deadline_aborts),
                cmocka_unit_test(test_hand_over),
                cmocka_unit_test(test_hand_over_and_back),
                cmocka_unit_test(test_the_hold_ends_with_the_next_term),
                cmocka_unit_test(test_the_record_may_ask_for_a_hand_over),
                cmocka_unit_test(test_a_late_answer_of_a_former_operation_is_ignored),
                cmocka_unit_test(test_stop_beats_everything_under_way),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
