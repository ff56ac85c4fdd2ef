/* SPDX-License-Identifier: Apache-2.0 */
/* The elector's core: failures in a row, replies that an event overtakes, and the moments at which
 * something ends. */
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

/* ---- failures in a row ---- */

/* Two acquires of a free Lease that conflict, the second one right after the read that the first
 * one asks for. */
static void conflict_twice(struct core_fixture *f) {
        struct hf__record free = core_fixture_start_behind(f, "", 1);

        assert_non_null(core_fixture_find_action(f, HF__ACT_WRITE));
        core_fixture_write_done(f, HF_E_CONFLICT);
        assert_non_null(core_fixture_find_action(f, HF__ACT_READ));
        core_fixture_set_revision(f, &free);
        core_fixture_read_done(f, 0, &free);
        assert_non_null(core_fixture_find_action(f, HF__ACT_WRITE));
        core_fixture_write_done(f, HF_E_CONFLICT);
        assert_null(core_fixture_find_action(f, HF__ACT_READ));
}

/* A server that refuses each write at a revision that it has just returned gets a request per retry
 * period, not a read and a write at once. */
static void test_a_read_that_succeeds_does_not_end_the_delay_of_the_writes(void **state) {
        struct core_fixture f;

        conflict_twice(&f);
        struct hf__record free = f.lease;
        for (int i = 0; i < 3; i++) {
                hf_nsec from = f.now;
                assert_non_null(core_fixture_wait_for(&f, HF__ACT_READ, 3 * SEC));
                assert_in_range(f.now - from, 2 * SEC, 2400 * MSEC);
                core_fixture_set_revision(&f, &free);
                core_fixture_read_done(&f, 0, &free);
                assert_null(core_fixture_find_action(&f, HF__ACT_WRITE));
                from = f.now;
                assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 3 * SEC));
                assert_in_range(f.now - from, 2 * SEC, 2400 * MSEC);
                core_fixture_write_done(&f, HF_E_CONFLICT);
        }
}

/* The conflicts were those of a race, which another process has won. */
static void test_another_holder_ends_a_row_of_failures(void **state) {
        struct core_fixture f;

        conflict_twice(&f);
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_READ, 3 * SEC));
        struct hf__record record = core_fixture_held_by(&f, "bing", 15);
        core_fixture_read_done(&f, 0, &record);
        f.now += 3 * SEC;
        record = core_fixture_held_by(&f, "", 1);
        core_fixture_watched(&f, &record);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        core_fixture_write_done(&f, HF_E_CONFLICT);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_READ)); /* at once: it is the first */
}

/* ---- replies and events ---- */

/* An event came during the read. The response counts if its revision is newer, and only then. */
static void test_the_newer_of_an_event_and_a_response_counts(void **state) {
        struct core_fixture f;

        for (int is_newer = 0; is_newer < 2; is_newer++) {
                core_fixture_start(&f);
                struct hf__record older = core_fixture_held_by(&f, is_newer ? "bing" : "", 15);
                struct hf__record newer = core_fixture_held_by(&f, is_newer ? "" : "bing", 15);
                core_fixture_watched(&f, is_newer ? &older : &newer);
                core_fixture_read_done(&f, 0, is_newer ? &newer : &older);
                assert_string_equal(f.core.observed.holder, newer.holder);
                assert_null(core_fixture_find_action(&f, HF__ACT_READ));
                assert_int_equal(core_fixture_find_action(&f, HF__ACT_WRITE) != NULL, is_newer);
        }
}

/* In a restored backup a smaller revision may be the newer one. */
static void test_after_a_replaced_history_an_event_of_a_smaller_revision_counts(void **state) {
        struct core_fixture f;
        struct hf__record record = core_fixture_start_behind(&f, "bing", 15);

        core_fixture_step(&f, HF__EV_STALE_TERM);
        strcpy(record.holder, "bong");
        strcpy(record.rv, "1");
        record.rv_number = 1;
        core_fixture_watched(&f, &record);
        assert_string_equal(f.core.observed.holder, "bong");
}

/* ---- incomplete records ---- */

/* A record without a renewTime does not show for how long nobody has led. */
static void test_without_a_renew_time_no_gap_is_recorded(void **state) {
        struct core_fixture f;

        core_fixture_start(&f);
        struct hf__record record = core_fixture_held_by(&f, "bing", 3);
        record.renew_us = 0;
        core_fixture_read_done(&f, 0, &record);
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 3 * SEC));
        assert_int_equal(f.sent.cause, HF__CAUSE_EXPIRED);
        assert_int_equal(f.sent.gap_us, 0);
}

/* ---- answers without sense ---- */

/* A Lease that has no revision cannot be written. It is read again, but only now and then. */
static void test_a_lease_without_a_revision_is_read_at_intervals(void **state) {
        struct core_fixture f;

        core_fixture_start(&f);
        for (int i = 0; i < 3; i++) {
                struct hf__record record = core_fixture_held_by(&f, i == 1 ? "" : "bing", 15);
                record.rv[0] = '\0';
                record.rv_number = 0;
                core_fixture_read_done(&f, 0, &record);
                assert_null(core_fixture_find_action(&f, HF__ACT_READ));
                assert_null(core_fixture_wait_for(&f, HF__ACT_READ, 2 * SEC - 1));
                assert_non_null(core_fixture_wait_for(&f, HF__ACT_READ, SEC));
        }
}

/* The server says that it has written the record, and shows that it has not. */
static void test_a_write_that_changes_nothing_is_repeated_at_intervals(void **state) {
        struct core_fixture f;
        struct hf__record free = core_fixture_start_behind(&f, "", 15);

        for (int i = 0; i < 3; i++) {
                assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
                assert_string_equal(f.sent.holder, "baz");
                core_fixture_set_revision(&f, &free);
                f.sent = free;
                core_fixture_write_done(&f, 0);
                assert_int_equal(f.core.state, HF_FOLLOWING);
                assert_null(core_fixture_find_action(&f, HF__ACT_WRITE));
                assert_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 2 * SEC - 1));
                assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, SEC));
        }
        core_fixture_lead(&f);
        core_fixture_step(&f, HF__EV_STOP);
        struct hf__record ours = f.sent;
        core_fixture_step(&f, HF__EV_JOINED);
        for (int i = 0; i < 3; i++) {
                assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
                assert_string_equal(f.sent.holder, "");
                f.sent = ours;
                core_fixture_write_done(&f, 0);
                assert_int_equal(f.core.state, HF_RELEASING);
                assert_null(core_fixture_find_action(&f, HF__ACT_WRITE));
                assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, SEC));
        }
}

/* Somebody clears or deletes the Lease right after our acquire, and the event comes before the
 * reply. Nothing speaks against another acquire at once. */
static void test_a_lease_that_is_free_again_before_the_reply_is_acquired_at_once(void **state) {
        struct core_fixture f;

        for (int is_deleted = 0; is_deleted < 2; is_deleted++) {
                (void)core_fixture_start_behind(&f, "", 15);
                assert_string_equal(f.sent.holder, "baz");
                struct hf__record ours = f.sent;
                ours.exists = true;
                core_fixture_set_revision(&f, &ours);
                struct hf__record free = core_fixture_held_by(&f, "", 15);
                free.exists = !is_deleted;
                core_fixture_watched(&f, &free);
                assert_null(core_fixture_find_action(&f, HF__ACT_WRITE));
                f.event.op_id = f.core.op_id;
                f.event.record = ours;
                core_fixture_step(&f, HF__EV_WRITE_DONE);
                assert_int_equal(f.core.state, HF_FOLLOWING);
                assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
                assert_string_equal(f.sent.holder, "baz");
                core_fixture_write_done(&f, 0);
                assert_int_equal(f.core.state, HF_LEADING);
        }
}

/* Of two Leases that belong together neither has a record that counts, but one of them may name
 * this process: a stop must give it back. */
static void test_a_lease_that_stays_absent_may_become_unsettled(void **state) {
        for (int settles = 0; settles < 2; settles++) {
                struct core_fixture f;
                struct hf__record absent = {.unsettled = true};
                core_fixture_start(&f);
                core_fixture_read_done(&f, HF_E_NOT_FOUND, NULL);
                core_fixture_write_done(&f, HF_E_FORBIDDEN);
                core_fixture_set_revision(&f, &absent);
                core_fixture_watched(&f, &absent);
                if (settles) {
                        absent.unsettled = false;
                        core_fixture_set_revision(&f, &absent);
                        core_fixture_watched(&f, &absent);
                }
                core_fixture_step(&f, HF__EV_STOP);
                assert_int_equal(f.core.state, settles ? HF_STOPPED : HF_RELEASING);
        }
}

/* A backup was restored, and the Lease cannot be read: it may name this process. */
static void test_a_stop_that_could_not_read_claims_no_release(void **state) {
        for (int is_read = 0; is_read < 2; is_read++) {
                struct core_fixture f;
                struct hf__record record = core_fixture_start_behind(&f, "bing", 15);
                core_fixture_step(&f, HF__EV_STALE_TERM);
                assert_non_null(core_fixture_find_action(&f, HF__ACT_READ));
                core_fixture_step(&f, HF__EV_STOP);
                assert_int_equal(f.core.state, HF_RELEASING);
                if (is_read)
                        core_fixture_read_done(&f, 0, &record);
                else
                        assert_non_null(core_fixture_wait_for(&f, HF__ACT_STOPPED, 10 * SEC));
                assert_int_equal(f.core.state, HF_STOPPED);
                assert_int_equal(core_fixture_find_action(&f, HF__ACT_STOPPED)->released, is_read);
        }
}

/* The release of a hand-over has almost used up its time. A stop then has its own time. */
static void test_a_stop_during_the_release_of_a_hand_over_has_its_full_time(void **state) {
        struct core_fixture f;

        core_fixture_lead(&f);
        core_fixture_hand_over(&f, "bing");
        core_fixture_step(&f, HF__EV_JOINED);
        assert_int_equal(f.core.state, HF_RELEASING);
        assert_null(core_fixture_wait_for(&f, HF__ACT_STOPPED, 9 * SEC));
        hf_nsec from = f.now;
        core_fixture_step(&f, HF__EV_STOP);
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_STOPPED, 10 * SEC));
        assert_int_equal(f.now - from, 10 * SEC); /* two request timeouts */
}

/* ---- the moment of an end ---- */

/* At its expiry a Lease no longer names the candidate that the coordinator chose. */
static void test_a_named_candidate_is_too_late_at_the_expiry(void **state) {
        for (int is_late = 0; is_late < 2; is_late++) {
                struct core_fixture f;
                core_fixture_start(&f);
                f.core.config.coordinated = true;
                struct hf__record record = core_fixture_held_by(&f, "baz", 5);
                hf_nsec seen_at = f.now;
                core_fixture_read_done(&f, 0, &record);
                assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
                core_fixture_write_done(&f, HF_E_FORBIDDEN);
                f.now = seen_at + 5 * SEC - !is_late;
                core_fixture_step(&f, HF__EV_TICK);
                assert_int_equal(core_fixture_find_action(&f, HF__ACT_WRITE) != NULL, !is_late);
        }
}

/* A term of exactly a lease duration is a long one: no backoff follows its loss. */
static void test_a_term_of_a_lease_duration_is_long(void **state) {
        for (int is_long = 0; is_long < 2; is_long++) {
                struct core_fixture f;
                core_fixture_lead(&f);
                hf_nsec until = f.now + 15 * SEC - !is_long;
                while (until - f.now > 2 * SEC) {
                        assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 2 * SEC));
                        core_fixture_write_done(&f, 0);
                }
                f.now = until;
                core_fixture_step(&f, HF__EV_STALE_TERM);
                core_fixture_step(&f, HF__EV_JOINED);
                core_fixture_reads_the_known(&f);
                assert_int_equal(core_fixture_find_action(&f, HF__ACT_WRITE) != NULL, is_long);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_read_that_succeeds_does_not_end_the_delay_of_the_writes),
                cmocka_unit_test(test_another_holder_ends_a_row_of_failures),
                cmocka_unit_test(test_the_newer_of_an_event_and_a_response_counts),
                cmocka_unit_test(
                        test_after_a_replaced_history_an_event_of_a_smaller_revision_counts),
                cmocka_unit_test(test_without_a_renew_time_no_gap_is_recorded),
                cmocka_unit_test(test_a_lease_without_a_revision_is_read_at_intervals),
                cmocka_unit_test(test_a_write_that_changes_nothing_is_repeated_at_intervals),
                cmocka_unit_test(
                        test_a_lease_that_is_free_again_before_the_reply_is_acquired_at_once),
                cmocka_unit_test(test_a_lease_that_stays_absent_may_become_unsettled),
                cmocka_unit_test(test_a_stop_that_could_not_read_claims_no_release),
                cmocka_unit_test(test_a_stop_during_the_release_of_a_hand_over_has_its_full_time),
                cmocka_unit_test(test_a_named_candidate_is_too_late_at_the_expiry),
                cmocka_unit_test(test_a_term_of_a_lease_duration_is_long),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
