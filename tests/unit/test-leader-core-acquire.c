/* SPDX-License-Identifier: Apache-2.0 */
/* The elector's core: how a Lease is taken. */
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

static void test_creates_an_absent_lease(void **state) { /* CG01 */
        struct rig rig;

        start(&rig);
        assert_non_null(did(&rig, HF__ACT_READ));
        assert_non_null(did(&rig, HF__ACT_WATCH));
        answer_read(&rig, HF_E_NOT_FOUND, NULL);
        assert_non_null(did(&rig, HF__ACT_WRITE));
        assert_false(rig.sent.exists);
        assert_string_equal(rig.sent.holder, "baz");
        assert_int_equal(rig.sent.transitions, 0);
        assert_int_equal(rig.sent.duration_s, 15);
        rig.now += 30 * MS; /* the way of the write counts against the validity */
        answer_write(&rig, 0);
        assert_int_equal(did(&rig, HF__ACT_TERM_START)->term, rig.revision);
        assert_int_equal(did(&rig, HF__ACT_TERM_START)->valid_until, rig.now - 30 * MS + 10 * S);
        assert_int_equal(rig.core.state, HF_LEADING);
}

/* The field has 32 bits. Who left it full does not keep the Lease from everybody for ever. */
static void test_a_full_count_of_transitions_stays(void **state) {
        struct rig rig;
        struct hf__record record, gone = {0};

        start(&rig);
        record = held_by(&rig, "", 1);
        record.transitions = 0x7fffffff;
        answer_read(&rig, 0, &record);
        assert_non_null(did(&rig, HF__ACT_WRITE));
        assert_int_equal(rig.sent.transitions, 0x7fffffff);
        answer_write(&rig, 0);
        set_rv(&rig, &gone);
        watch(&rig, &gone);
        step(&rig, HF__EV_JOINED);
        assert_non_null(wait_for(&rig, HF__ACT_WRITE, 15 * S));
        assert_false(rig.sent.exists);
        assert_int_equal(rig.sent.transitions, 0x7fffffff);
}

static void test_takes_an_empty_one_at_once(void **state) { /* CG02, CG04, CG06 */
        struct rig rig;
        struct hf__record record;

        start(&rig);
        record = held_by(&rig, "", 1);
        answer_read(&rig, 0, &record);
        assert_true(did(&rig, HF__ACT_WRITE) && rig.sent.exists);
        assert_string_equal(rig.sent.rv, record.rv);
        assert_int_equal(rig.sent.transitions, 1);
}

static void test_waits_the_recorded_duration_out(void **state) { /* CG03, CG05, CG07 */
        struct rig rig;
        struct hf__record record;
        hf_nsec seen;

        start(&rig);
        record = held_by(&rig, "bing", 3);
        answer_read(&rig, 0, &record);
        seen = rig.now;
        assert_null(did(&rig, HF__ACT_WRITE));
        assert_non_null(wait_for(&rig, HF__ACT_WRITE, 3 * S));
        assert_int_equal(rig.now, seen + 3 * S); /* to the dot, and without reading first */
        assert_int_equal(rig.sent.transitions, 1);
}

static void test_a_renewal_of_the_holder_starts_the_wait_again(void **state) { /* ET07 */
        struct rig rig;
        struct hf__record record;

        start(&rig);
        record = held_by(&rig, "bing", 3);
        answer_read(&rig, 0, &record);
        rig.now += 2 * S;
        record.renew_us++;
        set_rv(&rig, &record);
        watch(&rig, &record);
        assert_null(wait_for(&rig, HF__ACT_WRITE, 3 * S - 1));
        assert_non_null(wait_for(&rig, HF__ACT_WRITE, 1));
}

static void test_old_news_is_ignored(void **state) {
        struct rig rig;
        struct hf__record old, record;

        start(&rig);
        old = held_by(&rig, "", 1);
        record = held_by(&rig, "bing", 15);
        answer_read(&rig, 0, &record);
        watch(&rig, &old);
        assert_null(did(&rig, HF__ACT_WRITE));
}

static void test_a_release_wakes_the_standby(void **state) {
        struct rig rig;
        struct hf__record record;

        start(&rig);
        record = held_by(&rig, "bing", 15);
        answer_read(&rig, 0, &record);
        record = held_by(&rig, "", 1);
        watch(&rig, &record);
        assert_non_null(did(&rig, HF__ACT_WRITE));
}

/* Follows a Lease that another holds and whose watch is silent, up to the last look; returns the
 * expiry. */
static hf_nsec until_the_last_look(struct rig *rig) {
        start(rig);
        rig->now += 8 * MS; /* a read takes so long */
        rig->lease = held_by(rig, "bing", 15);
        hf_nsec expiry = rig->now + 15 * S;
        answer_read(rig, 0, &rig->lease);
        watch(rig, &rig->lease);
        assert_non_null(
                wait_for(rig, HF__ACT_READ, 8 * S)); /* half-way, for the watch may be dead */
        rig->now += 8 * MS;
        answer_read(rig, 0, &rig->lease);
        assert_non_null(wait_for(rig, HF__ACT_READ, 8 * S));
        assert_int_equal(expiry - rig->now, 10 * MS);
        return expiry;
}

static void test_a_last_look_sees_a_renewal_that_the_watch_has_not_told(void **state) {
        struct rig rig;
        struct hf__record renewed;

        hf_nsec expiry = until_the_last_look(&rig);
        renewed = rig.lease;
        renewed.renew_us++;
        set_rv(&rig, &renewed);
        rig.now += 8 * MS;
        answer_read(&rig, 0, &renewed);
        assert_null(wait_for(&rig, HF__ACT_WRITE, 15 * S - 1));
        assert_non_null(wait_for(&rig, HF__ACT_WRITE, 1));
        assert_int_equal(rig.now, expiry - 2 * MS + 15 * S);
}

static void test_a_last_look_delays_nothing(void **state) {
        struct rig rig;
        enum { ANSWERED, LATE, FAILED, HEARD };

        for (int how = ANSWERED; how <= HEARD; how++) {
                hf_nsec expiry = until_the_last_look(&rig);
                uint32_t look = rig.core.op_id;
                rig.now += 8 * MS;
                if (how == ANSWERED)
                        answer_read(&rig, 0, &rig.lease);
                else if (how == FAILED)
                        answer_read(&rig, HF_E_UNAVAILABLE, NULL);
                else if (how == HEARD)
                        watch(&rig, &rig.lease);
                assert_true(how == LATE || !did(&rig, HF__ACT_READ)); /* it was the last */
                assert_non_null(wait_for(&rig, HF__ACT_WRITE, 2 * MS));
                assert_int_equal(rig.now, expiry);
                rig.event.op_id = look;
                step(&rig, HF__EV_READ_DONE);
                assert_int_equal(rig.actions.n, 0);
                answer_write(&rig, 0);
                assert_non_null(did(&rig, HF__ACT_TERM_START));
        }
}

static void test_a_named_successor_goes_first(void **state) {
        struct rig rig;
        struct hf__record record;

        start(&rig);
        record = held_by(&rig, "bing", 15);
        answer_read(&rig, 0, &record);
        record = held_by(&rig, "", 1);
        snprintf(record.successor, sizeof record.successor, "other");
        watch(&rig, &record);
        assert_null(wait_for(&rig, HF__ACT_WRITE, 2 * S - 1));
        assert_non_null(wait_for(&rig, HF__ACT_WRITE, 1));

        start(&rig);
        record = held_by(&rig, "", 1);
        snprintf(record.successor, sizeof record.successor, "baz");
        answer_read(&rig, 0, &record);
        assert_non_null(did(&rig, HF__ACT_WRITE));
        assert_string_equal(rig.sent.successor, "");
}

static void test_polls_without_a_watch(void **state) {
        struct rig rig;
        struct hf__record record;
        hf_nsec from;

        start(&rig);
        record = held_by(&rig, "bing", 60);
        answer_read(&rig, 0, &record);
        watch(&rig, &record);
        from = rig.now;
        step(&rig, HF__EV_WATCH_LOST);
        for (int i = 0; i < 5; i++) {
                assert_true(wait_for(&rig, HF__ACT_READ, 2400 * MS) || did(&rig, HF__ACT_WATCH));
                answer_read(&rig, 0, &record);
                assert_true(rig.now >= from + 2 * S && rig.now <= from + 2400 * MS);
                from = rig.now;
                if (rig.core.watching) /* it is opened again, and breaks again: no other read
                                          because of that */
                        step(&rig, HF__EV_WATCH_LOST);
                assert_null(did(&rig, HF__ACT_READ));
        }
}

/* A11: same identity, not our acquire time */
static void test_a_twin_is_nobody_we_know(void **state) {
        struct rig rig;
        struct hf__record record;

        start(&rig);
        record = held_by(&rig, "baz", 15);
        answer_read(&rig, 0, &record);
        assert_null(did(&rig, HF__ACT_WRITE));
        assert_non_null(did(&rig, HF__ACT_REPORT));
        assert_non_null(did(&rig, HF__ACT_REPORT)->text);
        assert_non_null(wait_for(&rig, HF__ACT_WRITE, 15 * S));

        lead(&rig); /* a twin that takes it from me: the holder's name does not even change */
        record = rig.lease;
        record.acquire_us += 5;
        set_rv(&rig, &record);
        watch(&rig, &record);
        assert_non_null(did(&rig, HF__ACT_TERM_ABORT));
        assert_non_null(did(&rig, HF__ACT_REPORT)->text);
        assert_true(rig.core.collision);
        step(&rig, HF__EV_JOINED);
        assert_null(did(&rig, HF__ACT_WRITE)); /* its record is waited out like anybody's */
        record.holder[0] = '\0';
        set_rv(&rig, &record);
        watch(&rig, &record);
        assert_false(rig.core.collision);
}

static void test_a_lost_acquire_is_acquired_anew(void **state) { /* ET09 */
        struct rig rig;
        struct hf__record first;

        start(&rig);
        answer_read(&rig, HF_E_NOT_FOUND, NULL);
        answer_write(&rig, HF_E_TIMEOUT);
        assert_non_null(did(&rig, HF__ACT_READ));
        first = rig.sent;
        first.exists = true;
        set_rv(&rig, &first);
        answer_read(&rig, 0, &first);
        assert_null(did(&rig, HF__ACT_TERM_START)); /* a read starts no term */
        assert_non_null(did(&rig, HF__ACT_WRITE));
        assert_true(rig.sent.acquire_us > first.acquire_us);
        assert_string_equal(rig.sent.rv, first.rv);
        answer_write(&rig, 0);
        assert_non_null(did(&rig, HF__ACT_TERM_START));
}

static void test_an_acquire_answered_too_late_starts_nothing(void **state) {
        struct rig rig;

        start(&rig);
        answer_read(&rig, HF_E_NOT_FOUND, NULL);
        rig.now += 10 * S; /* the process was stopped with the answer in its mail */
        answer_write(&rig, 0);
        assert_null(did(&rig, HF__ACT_TERM_START));
        assert_int_equal(rig.core.state, HF_FOLLOWING);
        assert_non_null(wait_for(&rig, HF__ACT_WRITE, 3 * S));
}

static void test_an_acquire_overwritten_before_its_answer_starts_nothing(void **state) {
        struct rig rig;
        struct hf__record mine, other;

        start(&rig);
        answer_read(&rig, HF_E_NOT_FOUND, NULL);
        mine = rig.sent;
        mine.exists = true;
        set_rv(&rig, &mine);
        other = held_by(&rig, "bing", 15);
        watch(&rig, &other);
        rig.event.op_id = rig.core.op_id;
        rig.event.record = mine;
        step(&rig, HF__EV_WRITE_DONE);
        assert_null(did(&rig, HF__ACT_TERM_START));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_creates_an_absent_lease),
                cmocka_unit_test(test_a_full_count_of_transitions_stays),
                cmocka_unit_test(test_takes_an_empty_one_at_once),
                cmocka_unit_test(test_waits_the_recorded_duration_out),
                cmocka_unit_test(test_a_renewal_of_the_holder_starts_the_wait_again),
                cmocka_unit_test(test_old_news_is_ignored),
                cmocka_unit_test(test_a_release_wakes_the_standby),
                cmocka_unit_test(test_a_last_look_sees_a_renewal_that_the_watch_has_not_told),
                cmocka_unit_test(test_a_last_look_delays_nothing),
                cmocka_unit_test(test_a_named_successor_goes_first),
                cmocka_unit_test(test_polls_without_a_watch),
                cmocka_unit_test(test_a_twin_is_nobody_we_know),
                cmocka_unit_test(test_a_lost_acquire_is_acquired_anew),
                cmocka_unit_test(test_an_acquire_answered_too_late_starts_nothing),
                cmocka_unit_test(test_an_acquire_overwritten_before_its_answer_starts_nothing),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
