/* SPDX-License-Identifier: Apache-2.0 */
/* The elector's core: what keeps a term and what ends it. */
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

static void test_renews_by_one_write_per_period(void **state) { /* CG08, CG18 */
        struct rig rig;
        hf_nsec sent = 0;

        lead(&rig);
        for (int i = 0; i < 3; i++) {
                assert_non_null(wait_for(&rig, HF__ACT_WRITE, 2 * S));
                if (i)
                        assert_int_equal(rig.now, sent + 2 * S); /* from send to send */
                sent = rig.now;
                rig.now += 40 * MS;
                answer_write(&rig, 0);
                assert_int_equal(did(&rig, HF__ACT_EXTEND)->valid_until, sent + 10 * S);
                assert_null(did(&rig, HF__ACT_READ));
        }
}

static void test_a_conflict_is_read_and_goes_on_when_still_mine(void **state) { /* CG19 */
        struct rig rig;
        struct hf__record record;

        lead(&rig);
        record = rig.sent;
        wait_for(&rig, HF__ACT_WRITE, 2 * S);
        answer_write(&rig, HF_E_CONFLICT);
        assert_non_null(did(&rig, HF__ACT_READ));
        set_rv(&rig, &record); /* labels */
        answer_read(&rig, 0, &record);
        assert_null(did(&rig, HF__ACT_EXTEND)); /* a read extends nothing */
        assert_non_null(did(&rig, HF__ACT_WRITE));
        assert_string_equal(rig.sent.rv, record.rv);
        answer_write(&rig, 0);
        assert_non_null(did(&rig, HF__ACT_EXTEND));
}

static void test_a_lost_reply_is_neither_failure_nor_success(void **state) { /* A09 */
        struct rig rig;
        struct hf__record applied;
        hf_nsec valid_until;

        lead(&rig);
        wait_for(&rig, HF__ACT_WRITE, 2 * S);
        valid_until = rig.core.valid_until;
        applied = rig.sent;
        set_rv(&rig, &applied);
        assert_non_null(
                wait_for(&rig, HF__ACT_READ, 5 * S)); /* the core ends the operation itself */
        answer_read(&rig, 0, &applied);
        assert_int_equal(rig.core.valid_until, valid_until);
        assert_non_null(did(&rig, HF__ACT_WRITE));
        assert_string_equal(rig.sent.rv, applied.rv);
}

static void test_a_record_not_mine_ends_the_term_at_once(void **state) { /* CR02, A02, A03 */
        struct rig rig;
        struct hf__record record;

        for (int way = 0; way < 4; way++) {
                lead(&rig);
                record = rig.sent;
                if (way == 0)
                        snprintf(record.holder, sizeof record.holder, "bing");
                else if (way == 1)
                        record.acquire_us++;
                else if (way == 2)
                        record.duration_s++;
                else
                        record.holder[0] = '\0';
                set_rv(&rig, &record);
                watch(&rig, &record);
                assert_int_equal(rig.actions.list[0].type, HF__ACT_GATE_SHUT);
                assert_int_equal(rig.actions.list[1].type, HF__ACT_TERM_ABORT);
                assert_int_equal(rig.core.state, HF_ABORTING);
        }
}

static void test_deletion_ends_the_term_and_the_next_is_higher(void **state) { /* A10 */
        struct rig rig;
        struct hf__record gone = {0};
        uint64_t term;

        lead(&rig);
        term = rig.core.term;
        set_rv(&rig, &gone);
        watch(&rig, &gone);
        assert_non_null(did(&rig, HF__ACT_TERM_ABORT));
        assert_null(did(&rig, HF__ACT_WRITE)); /* not before the work has joined */
        step(&rig, HF__EV_JOINED);
        if (!did(&rig, HF__ACT_WRITE))
                assert_non_null(wait_for(&rig, HF__ACT_WRITE, 3 * S));
        assert_false(rig.sent.exists);
        assert_int_equal(rig.sent.transitions, 1); /* the count outlives the Lease */
        answer_write(&rig, 0);
        assert_true(did(&rig, HF__ACT_TERM_START)->term > term);
}

static void test_my_own_echo_and_older_news_say_nothing(void **state) {
        struct rig rig;
        struct hf__record old;

        lead(&rig);
        old = rig.sent;
        watch(&rig, &old);
        assert_int_equal(rig.core.state, HF_LEADING);
        snprintf(old.holder, sizeof old.holder, "bing");
        old.rv_number--;
        watch(&rig, &old);
        assert_int_equal(rig.core.state, HF_LEADING);
}

static void test_opaque_revisions_are_settled_by_a_read(void **state) {
        struct rig rig;
        struct hf__record other;

        lead(&rig);
        other = rig.sent;
        other.rv_number = 0;
        snprintf(other.rv, sizeof other.rv, "x1");
        other.holder[0] = '\0';
        watch(&rig, &other);
        assert_int_equal(rig.core.state, HF_LEADING);
        assert_non_null(did(&rig, HF__ACT_READ));
        answer_read(&rig, 0, &other);
        assert_non_null(did(&rig, HF__ACT_TERM_ABORT));
}

static void test_a_hung_store_ends_the_term_on_time(void **state) { /* A04, A18 */
        struct rig rig;
        hf_nsec sent;

        lead(&rig);
        sent = rig.now;
        assert_non_null(wait_for(&rig, HF__ACT_GATE_SHUT, 10 * S));
        assert_int_equal(rig.now, sent + 10 * S);
        assert_int_equal(rig.actions.list[0].type, HF__ACT_GATE_SHUT);
        assert_non_null(wait_for(&rig, HF__ACT_STUCK, 2500 * MS)); /* the work ignores its token */
        assert_int_equal(rig.core.state, HF_STUCK);
        step(&rig, HF__EV_JOINED);
        assert_int_equal(rig.core.state, HF_STUCK);
        step(&rig, HF__EV_STOP);
        assert_null(did(&rig, HF__ACT_WRITE));
}

static void test_refused_renewals_are_tried_more_often_towards_the_end(void **state) {
        struct rig rig;
        hf_nsec last = 0, until;
        int n = 0;

        lead(&rig);
        until = rig.core.valid_until;
        while (wait_for(&rig, HF__ACT_WRITE, 3 * S) && rig.core.state == HF_LEADING) {
                if (last && n != 3)
                        assert_true(rig.now - last <= 2 * S);
                last = rig.now;
                rig.event.retry_after = n == 2 ? 600 * S : 0; /* patience that nobody has */
                answer_write(&rig, n % 2 ? HF_E_FORBIDDEN : HF_E_TOO_MANY);
                n++;
        }
        assert_true(n >= 5);
        assert_true(until - last < S);
}

/* the expiry comes before the event, also a good one */
static void test_a_paused_leader_wakes_inert(void **state) {
        struct rig rig;

        lead(&rig);
        wait_for(&rig, HF__ACT_WRITE, 2 * S);
        rig.now += 20 * S;
        answer_write(&rig, 0);
        assert_int_equal(rig.actions.list[0].type, HF__ACT_GATE_SHUT);
        assert_null(did(&rig, HF__ACT_EXTEND));
        assert_int_equal(rig.core.state, HF_ABORTING);
}

static void test_a_stale_term_ends_the_term(void **state) { /* A14 */
        struct rig rig;

        lead(&rig);
        step(&rig, HF__EV_STALE_TERM);
        assert_int_equal(rig.actions.list[0].type, HF__ACT_GATE_SHUT);
}

static void set_odd_rv(struct hf__record *record, const char *rv) {
        record->rv_number = 0;
        snprintf(record->rv, sizeof record->rv, "%s", rv);
}

/* Where revisions are no numbers, the watch's news during an acquire may be older or newer than its
 * answer: a read decides. */
static void test_without_numbers_an_acquire_overtaken_by_news_is_read_again(void **state) {
        struct rig rig;

        start(&rig);
        answer_read(&rig, HF_E_NOT_FOUND, NULL);
        assert_non_null(did(&rig, HF__ACT_WRITE));
        struct hf__record other = held_by(&rig, "other", 15);
        set_odd_rv(&other, "x1");
        watch(&rig, &other);
        rig.event.op_id = rig.core.op_id;
        rig.event.record = rig.sent;
        rig.event.record.exists = true;
        set_odd_rv(&rig.event.record, "x0");
        step(&rig, HF__EV_WRITE_DONE);
        assert_non_null(did(&rig, HF__ACT_READ)); /* at once, whether it leads until then or not */
        answer_read(&rig, 0, &other);
        assert_int_not_equal(rig.core.state, HF_LEADING);
}

static void test_backoff_grows_and_resets(void **state) { /* A19 */
        struct rig rig;
        hf_nsec ended, pause[3];

        lead(&rig);
        for (int i = 0; i < 3; i++) {
                step(&rig, HF__EV_STALE_TERM);
                ended = rig.now;
                step(&rig, HF__EV_JOINED);
                assert_non_null(wait_for(&rig, HF__ACT_WRITE, 30 * S));
                pause[i] = rig.now - ended;
                answer_write(&rig, 0);
        }
        assert_true(pause[0] >= 2 * S && pause[1] >= 4 * S && pause[2] >= 8 * S &&
                    pause[2] <= 18 * S);
        for (int i = 0; i < 8; i++) {
                wait_for(&rig, HF__ACT_WRITE, 2 * S);
                answer_write(&rig, 0);
        }
        step(&rig, HF__EV_STALE_TERM);
        step(&rig, HF__EV_JOINED);
        assert_non_null(did(&rig, HF__ACT_READ)); /* what was known of the Lease is in doubt */
        answer_read(&rig, 0, &rig.core.observed);
        assert_non_null(did(&rig, HF__ACT_WRITE));
}

static void test_backoff_of_long_periods_ends_at_the_lease_duration(void **state) {
        struct rig rig;
        hf_nsec day = 86400 * S;

        lead(&rig);
        rig.core.config.timing = (struct hf_leader_timing){.lease_duration = 100 * day,
                                                           .renew_deadline = 50 * day,
                                                           .retry_period = 10 * day,
                                                           .request_timeout = 5 * S,
                                                           .stop_grace = S,
                                                           .drain_deadline = S};
        for (int i = 0; i < 40; i++) {
                step(&rig, HF__EV_STALE_TERM);
                hf_nsec ended = rig.now;
                step(&rig, HF__EV_JOINED);
                assert_non_null(wait_for(&rig, HF__ACT_WRITE, 200 * day));
                assert_true(rig.now - ended >= (i < 3 ? 10 * day : 80 * day) &&
                            rig.now - ended <= 120 * day);
                answer_write(&rig, 0);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_renews_by_one_write_per_period),
                cmocka_unit_test(test_a_conflict_is_read_and_goes_on_when_still_mine),
                cmocka_unit_test(test_a_lost_reply_is_neither_failure_nor_success),
                cmocka_unit_test(test_a_record_not_mine_ends_the_term_at_once),
                cmocka_unit_test(test_deletion_ends_the_term_and_the_next_is_higher),
                cmocka_unit_test(test_my_own_echo_and_older_news_say_nothing),
                cmocka_unit_test(test_opaque_revisions_are_settled_by_a_read),
                cmocka_unit_test(test_a_hung_store_ends_the_term_on_time),
                cmocka_unit_test(test_refused_renewals_are_tried_more_often_towards_the_end),
                cmocka_unit_test(test_a_paused_leader_wakes_inert),
                cmocka_unit_test(test_a_stale_term_ends_the_term),
                cmocka_unit_test(test_without_numbers_an_acquire_overtaken_by_news_is_read_again),
                cmocka_unit_test(test_backoff_grows_and_resets),
                cmocka_unit_test(test_backoff_of_long_periods_ends_at_the_lease_duration),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
