/* SPDX-License-Identifier: Apache-2.0 */
/* Two Leases led as one: the scenarios of client-go, what ends a term, and what is left behind. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "two_lease_fixture.h"

/*
 * ---- client-go's scenarios for a lock of two: the primary is the old Lease, the secondary the new
 * one ----
 */

static void given(struct two_lease_fixture *f, enum hf__two_lease_side side, const char *holder) {
        struct hf__record record = {.duration_s = *holder ? 10 : 1,
                                    .acquire_us = f->now / 1000 - 5,
                                    .renew_us = f->now / 1000 - 3};

        (void)snprintf(record.holder, sizeof record.holder, "%s", holder);
        two_lease_fixture_put(f, side, &record);
}

static void expect_led(const struct two_lease_fixture *f, int64_t transitions) {
        assert_true(f->processes[0].acts);
        for (int side = OLD; side <= NEW; side++) {
                assert_string_equal(f->lease[side].holder, "baz");
                assert_int_equal(f->lease[side].transitions, transitions);
                assert_int_equal(f->lease[side].acquire_us,
                                 f->processes[0].core.term_record.acquire_us);
        }
}

static void expect_refused(const struct two_lease_fixture *f, const char *holder,
                           uint64_t revision) {
        assert_false(f->processes[0].acts);
        assert_string_equal(f->processes[0].core.observed.holder, holder);
        assert_int_equal(f->revision, revision); /* nothing was written */
}

/* Scenario of docs/parity.md: CG39. */
static void test_both_leases_are_created(void **state) {
        struct two_lease_fixture *f = two_lease_fixture_new(1);

        two_lease_fixture_start(f, 0, KNOWS_BOTH, "baz");
        two_lease_fixture_run_for(f, SEC);
        expect_led(f, 0);
        assert_true(f->lease[OLD].rv_number < f->lease[NEW].rv_number); /* the old one first */
        assert_int_equal(f->processes[0].n_requests, 4); /* two reads, two creations */
}

/* Scenario of docs/parity.md: CG40. */
static void test_a_free_old_lease_is_acquired_and_the_new_one_created(void **state) {
        struct two_lease_fixture *f = two_lease_fixture_new(1);

        given(f, OLD, "");
        two_lease_fixture_start(f, 0, KNOWS_BOTH, "baz");
        two_lease_fixture_run_for(f, SEC);
        expect_led(f, 1);
}

/* Scenario of docs/parity.md: CG41. */
static void test_two_free_leases_are_acquired(void **state) {
        struct two_lease_fixture *f = two_lease_fixture_new(1);

        given(f, OLD, "");
        given(f, NEW, "");
        two_lease_fixture_start(f, 0, KNOWS_BOTH, "baz");
        two_lease_fixture_run_for(f, SEC);
        expect_led(f, 1);
}

/* Scenario of docs/parity.md: CG42. */
static void test_an_expired_old_lease_is_taken_over(void **state) {
        struct two_lease_fixture *f = two_lease_fixture_new(1);

        given(f, OLD, "bing");
        two_lease_fixture_start(f, 0, KNOWS_BOTH, "baz");
        two_lease_fixture_run_for(f, 10 * SEC);
        expect_refused(f, "bing", 101); /* for the recorded duration */
        two_lease_fixture_run_for(f, SEC);
        expect_led(f, 1);
}

/* Scenario of docs/parity.md: CG43. */
static void test_two_expired_leases_are_taken_over(void **state) {
        struct two_lease_fixture *f = two_lease_fixture_new(1);

        given(f, OLD, "bing");
        given(f, NEW, "bing");
        two_lease_fixture_start(f, 0, KNOWS_BOTH, "baz");
        two_lease_fixture_run_for(f, 11 * SEC);
        expect_led(f, 1);
}

/* Scenarios of docs/parity.md: CG44, CG47. */
static void test_with_two_holders_nobody_leads(void **state) {
        struct two_lease_fixture *f = two_lease_fixture_new(1);

        given(f, OLD, "bing");
        given(f, NEW, "other");
        two_lease_fixture_start(f, 0, KNOWS_BOTH, "baz");
        for (int i = 0; i < 20; i++) { /* as long as either of them is renewed */
                two_lease_fixture_run_for(f, 5 * SEC);
                expect_refused(f, HF__TWO_LEASE_UNKNOWN, 102 + (uint64_t)i);
                struct hf__record renewed = f->lease[i % 2];
                renewed.renew_us = 1; /* even with a clock that is far behind */
                renewed.transitions = i;
                two_lease_fixture_put(f, i % 2, &renewed);
        }
        two_lease_fixture_run_for(f, 11 * SEC);
        expect_led(f, 20);
}

/*
 * The holder with the earlier times is alive. Nothing in the combined record changes except the
 * change_count.
 */
static void test_either_of_two_holders_keeps_the_lock(void **state) {
        for (int living = OLD; living <= NEW; living++) {
                struct two_lease_fixture *f = two_lease_fixture_new(1);
                given(f, OLD, "bing");
                given(f, NEW, "other");
                struct hf__record renewed = f->lease[living];
                two_lease_fixture_start(f, 0, KNOWS_BOTH, "baz");
                for (int i = 0; i < 10; i++) {
                        two_lease_fixture_run_for(f, 5 * SEC);
                        expect_refused(f, HF__TWO_LEASE_UNKNOWN, 102 + (uint64_t)i);
                        renewed.renew_us = 1 + i;
                        two_lease_fixture_put(f, living, &renewed);
                }
        }
}

/* The longer of the two durations counts. */
static void test_the_longer_of_two_durations_counts(void **state) {
        for (int side = OLD; side <= NEW; side++) {
                struct two_lease_fixture *f = two_lease_fixture_new(1);
                given(f, OLD, "bing");
                given(f, NEW, "other");
                struct hf__record longer = f->lease[side];
                longer.duration_s = 30;
                two_lease_fixture_put(f, side, &longer);
                two_lease_fixture_start(f, 0, KNOWS_BOTH, "baz");
                two_lease_fixture_run_for(f, 29 * SEC);
                expect_refused(f, HF__TWO_LEASE_UNKNOWN, 103);
                two_lease_fixture_run_for(f, 2 * SEC);
                expect_led(f, 1);
        }
}

/* Scenario of docs/parity.md: CG45. */
static void test_expired_leases_of_unknown_holders_are_taken_over(void **state) {
        struct two_lease_fixture *f = two_lease_fixture_new(1);

        given(f, OLD, HF__TWO_LEASE_UNKNOWN);
        given(f, NEW, HF__TWO_LEASE_UNKNOWN);
        two_lease_fixture_start(f, 0, KNOWS_BOTH, "baz");
        two_lease_fixture_run_for(f, 11 * SEC);
        expect_led(f, 1);
}

/* Scenarios of docs/parity.md: CG46, CG48. */
static void test_a_renewed_lease_is_left_alone(void **state) {
        struct two_lease_fixture *f = two_lease_fixture_new(1);

        given(f, OLD, "bing");
        two_lease_fixture_start(f, 0, KNOWS_BOTH, "baz");
        two_lease_fixture_run_for(f, 5 * SEC);
        expect_refused(f, "bing", 101);
        given(f, NEW, "bing");
        two_lease_fixture_run_for(f, 5 * SEC);
        expect_refused(f, "bing", 102);
}

/* Scenario of docs/parity.md: CG49. */
static void test_both_leases_are_renewed(void **state) {
        struct two_lease_fixture *f = two_lease_fixture_new(1);

        two_lease_fixture_start(f, 0, KNOWS_BOTH, "baz");
        two_lease_fixture_run_for(f, SEC);
        uint64_t old = f->lease[OLD].rv_number, new = f->lease[NEW].rv_number;
        unsigned n = f->processes[0].n_requests;
        two_lease_fixture_run_for(f, 2 * SEC);
        expect_led(f, 0);
        assert_true(f->lease[OLD].rv_number > old && f->lease[NEW].rv_number > new);
        assert_int_equal(f->processes[0].n_requests, n + 2); /* without a read */
        assert_int_equal(f->n_terms[KNOWS_BOTH], 1);
}

/* ---- the ends of terms, and the Leases afterwards ---- */

static void test_losing_either_lease_ends_the_term(void **state) {
        for (int side = OLD; side <= NEW; side++) {
                for (int how = 0; how < 3; how++) {
                        struct two_lease_fixture *f = two_lease_fixture_new(2);
                        two_lease_fixture_start(f, 0, KNOWS_BOTH, "baz");
                        two_lease_fixture_run_for(f, SEC);
                        struct hf__record record = f->lease[side];
                        if (how == 0)
                                strcpy(record.holder, "thief");
                        else if (how == 1)
                                record.holder[0] = '\0'; /* cleared, everything else unchanged */
                        else
                                record.acquire_us++;
                        two_lease_fixture_put(f, side, &record);
                        two_lease_fixture_run_for(f, 10 * MSEC);
                        assert_false(f->processes[0].acts);
                }
        }
}

/*
 * If the new Lease is taken by another process, the old one still names this one. It is released
 * when the work of the term has certainly ended.
 */
static void test_a_half_held_lock_is_released(void **state) {
        struct two_lease_fixture *f = two_lease_fixture_new(3);

        two_lease_fixture_start(f, 0, KNOWS_BOTH, "baz");
        two_lease_fixture_run_for(f, SEC);
        struct hf__record stolen = f->lease[NEW];
        strcpy(stolen.holder, "thief");
        two_lease_fixture_put(f, NEW, &stolen);
        hf_nsec at = f->now;
        while (f->lease[OLD].holder[0]) {
                two_lease_fixture_run_for(f, 500 * MSEC);
                stolen = f->lease[NEW];
                stolen.renew_us++; /* the thief is alive */
                two_lease_fixture_put(f, NEW, &stolen);
                assert_true(f->now - at < 40 * SEC);
        }
        assert_true(f->now - at >= 15 * SEC);
        assert_int_equal(f->n_given_back, 1);
        assert_string_equal(f->lease[NEW].holder, "thief");
        assert_string_equal(f->processes[0].core.observed.holder, "thief");
}

/*
 * The old Lease still names this process, but the combined record does not. A stop leaves neither
 * Lease with its name.
 */
static void test_a_stop_releases_a_half_held_lock(void **state) {
        struct two_lease_fixture *f = two_lease_fixture_new(3);

        two_lease_fixture_start(f, 0, KNOWS_BOTH, "baz");
        two_lease_fixture_run_for(f, SEC);
        struct hf__record stolen = f->lease[NEW];
        strcpy(stolen.holder, "thief");
        two_lease_fixture_put(f, NEW, &stolen);
        two_lease_fixture_run_for(f, 2 * SEC);
        assert_string_equal(f->lease[OLD].holder, "baz");
        two_lease_fixture_feed(f, 0, HF__EV_STOP);
        two_lease_fixture_run_for(f, 5 * SEC);
        assert_int_equal(f->processes[0].core.state, HF_STOPPED);
        assert_true(f->processes[0].is_done);
        assert_string_equal(f->lease[OLD].holder, "");
        assert_string_equal(f->lease[NEW].holder, "thief");
}

/*
 * The old Lease was written, and another process holds the new one. The old one is released, so
 * that processes that know only the old one need not wait until it expires.
 */
static void test_a_refused_acquire_is_undone(void **state) {
        struct two_lease_fixture *f = two_lease_fixture_new(3);

        given(f, OLD, "");
        given(f, NEW, "");
        two_lease_fixture_start(f, 0, KNOWS_BOTH, "baz");
        while (!f->lease[OLD].holder[0])
                two_lease_fixture_run_for(f, MSEC / 10);
        given(f, NEW, "other");
        two_lease_fixture_run_for(f, SEC);
        assert_int_equal(f->n_undone, 1);
        assert_string_equal(f->lease[OLD].holder, "");
        assert_string_equal(f->lease[NEW].holder, "other");
        assert_int_equal(f->n_terms[KNOWS_BOTH], 0);
}

static void test_a_stop_releases_both(void **state) {
        struct two_lease_fixture *f = two_lease_fixture_new(4);

        two_lease_fixture_start(f, 0, KNOWS_BOTH, "baz");
        two_lease_fixture_run_for(f, SEC);
        two_lease_fixture_feed(f, 0, HF__EV_STOP);
        two_lease_fixture_run_for(f, 3 * SEC);
        assert_int_equal(f->processes[0].core.state, HF_STOPPED);
        for (int side = OLD; side <= NEW; side++) {
                assert_string_equal(f->lease[side].holder, "");
                assert_int_equal(f->lease[side].duration_s, 1);
        }
}

/* ---- the decisions of the lock alone ---- */

static struct hf__record record_of(const char *holder, uint64_t revision) {
        struct hf__record record = {.exists = true,
                                    .duration_s = 15,
                                    .acquire_us = 7,
                                    .renew_us = 8,
                                    .rv_number = revision};

        (void)snprintf(record.holder, sizeof record.holder, "%s", holder);
        (void)snprintf(record.rv, sizeof record.rv, "%u", (unsigned)revision);
        return record;
}

struct pair {
        struct hf__two_lease two;
        struct hf__two_lease_commands did;
        struct hf__core_time now;
};

static void response(struct pair *pair, enum hf__two_lease_side side, int result,
                     const struct hf__record *record) {
        hf__two_lease_response(&pair->two, side, pair->two.part[side].request_id, result, 0, record,
                               pair->now, &pair->did);
}

static const struct hf__two_lease_command *last_of(const struct pair *pair) {
        assert_true(pair->did.n > 0);
        return &pair->did.list[pair->did.n - 1];
}

static void expect_answer(const struct pair *pair, uint32_t op_id, int result) {
        assert_int_equal(last_of(pair)->type, HF__TWO_LEASE_RESPONSE);
        assert_int_equal(last_of(pair)->op_id, op_id);
        assert_int_equal(last_of(pair)->result, result);
}

static void expect_write(const struct pair *pair, enum hf__two_lease_side side, const char *holder,
                         uint64_t revision) {
        assert_int_equal(pair->did.n, 1);
        assert_int_equal(last_of(pair)->type, HF__TWO_LEASE_WRITE);
        assert_int_equal(last_of(pair)->side, side);
        assert_string_equal(last_of(pair)->record.holder, holder);
        assert_int_equal(last_of(pair)->record.rv_number, revision);
}

/* Reads both Leases, as operation 1. The combined record is in last_of(). */
static void begin_pair(struct pair *pair, const struct hf__record *old,
                       const struct hf__record *new) {
        memset(pair, 0, sizeof *pair);
        pair->now = (struct hf__core_time){.boot = 1000 * SEC, .real_us = 1000000000};
        hf__two_lease_init(&pair->two, "baz", 15 * SEC);
        hf__two_lease_read(&pair->two, 1, pair->now.boot + 5 * SEC, pair->now, &pair->did);
        response(pair, OLD, 0, old);
        response(pair, NEW, 0, new);
        expect_answer(pair, 1, 0);
}

static void write_pair(struct pair *pair, uint32_t op_id, const char *holder,
                       enum hf__cause cause) {
        struct hf__record record = last_of(pair)->record;

        (void)snprintf(record.holder, sizeof record.holder, "%s", holder);
        record.duration_s = 15;
        if (cause != HF__CAUSE_NONE)
                record.acquire_us = pair->now.real_us;
        record.cause = cause;
        hf__two_lease_write(&pair->two, op_id, &record, pair->now.boot + 5 * SEC, pair->now,
                            &pair->did);
}

/* The record that the write sent, as the server returns it. */
static struct hf__record written(const struct pair *pair, uint64_t revision) {
        struct hf__record record = last_of(pair)->record;

        record.exists = true;
        record.cause = HF__CAUSE_NONE;
        record.rv_number = revision;
        (void)snprintf(record.rv, sizeof record.rv, "%u", (unsigned)revision);
        return record;
}

static void lead_pair(struct pair *pair) {
        struct hf__record old = record_of("", 10), new = record_of("", 11);

        begin_pair(pair, &old, &new);
        write_pair(pair, 2, "baz", HF__CAUSE_RELEASED);
        expect_write(pair, OLD, "baz", 10);
        old = written(pair, 12);
        response(pair, OLD, 0, &old);
        expect_write(pair, NEW, "baz", 11);
        new = written(pair, 13);
        response(pair, NEW, 0, &new);
        expect_answer(pair, 2, 0);
        assert_int_equal(last_of(pair)->record.term, 13);
        assert_int_equal(pair->two.old_term, 12);
}

static void test_an_older_watch_event_is_ignored(void **state) {
        struct hf__record old = record_of("", 10), new = record_of("", 11),
                          newer = record_of("bing", 20);
        struct pair pair;

        begin_pair(&pair, &old, &new);
        hf__two_lease_read(&pair.two, 2, pair.now.boot + 5 * SEC, pair.now, &pair.did);
        hf__two_lease_watched(&pair.two, OLD, &newer, pair.now, &pair.did);
        response(&pair, OLD, 0, &old); /* it was under way when the watch reported more */
        response(&pair, NEW, 0, &new);
        expect_answer(&pair, 2, 0);
        assert_string_equal(last_of(&pair)->record.holder, "bing");
        hf__two_lease_watched(&pair.two, OLD, &old, pair.now, &pair.did);
        assert_int_equal(pair.did.n, 0);
        assert_string_equal(pair.two.part[OLD].record.holder, "bing");
}

static void test_an_abandoned_operation_sends_nothing(void **state) {
        struct hf__record old = record_of("", 10), new = record_of("", 11), mine;
        struct pair pair;

        begin_pair(&pair, &old, &new);
        write_pair(&pair, 2, "baz", HF__CAUSE_RELEASED);
        mine = written(&pair, 12);
        uint32_t request_id = pair.two.part[OLD].request_id;
        hf__two_lease_read(&pair.two, 3, pair.now.boot + 5 * SEC, pair.now, &pair.did);
        assert_int_equal(pair.did.list[0].type, HF__TWO_LEASE_RESPONSE);
        assert_int_equal(pair.did.list[0].result, HF_E_TIMEOUT);
        hf__two_lease_response(&pair.two, OLD, request_id, 0, 0, &mine, pair.now, &pair.did);
        assert_int_equal(pair.did.n, 0);
        assert_int_not_equal(pair.two.part[OLD].request_id, 0); /* the read still gets its reply */

        begin_pair(&pair, &old, &new);
        write_pair(&pair, 2, "baz", HF__CAUSE_RELEASED);
        mine = written(&pair, 12);
        pair.now.boot += 5 * SEC; /* this process was paused */
        response(&pair, OLD, 0, &mine);
        expect_answer(&pair, 2, HF_E_TIMEOUT);
        assert_int_equal(pair.did.n, 1);
}

/* The old Lease has been written by then, so the outcome can only be determined by a read. */
static void test_a_timeout_of_the_new_lease_leaves_the_outcome_unknown(void **state) {
        struct hf__record old = record_of("", 10), new = record_of("", 11), mine;
        struct pair pair;

        begin_pair(&pair, &old, &new);
        write_pair(&pair, 2, "baz", HF__CAUSE_RELEASED);
        mine = written(&pair, 12);
        response(&pair, OLD, 0, &mine);
        response(&pair, NEW, HF_E_TIMEOUT, NULL); /* it may be applied, so nothing is undone */
        assert_int_equal(pair.did.n, 1);
        expect_answer(&pair, 2, HF_E_TIMEOUT);

        lead_pair(&pair);
        write_pair(&pair, 3, "baz", HF__CAUSE_NONE);
        mine = written(&pair, 14);
        response(&pair, OLD, 0, &mine);
        response(&pair, NEW, HF_E_FORBIDDEN, NULL);
        expect_answer(&pair, 3, HF_E_TIMEOUT);
}

/*
 * A release invalidates an acquire that may still be applied. A Lease of another process is not
 * changed.
 */
static void test_a_release_invalidates_a_pending_acquire(void **state) {
        for (int side = OLD; side <= NEW; side++) {
                struct hf__record old = record_of("", 10), new = record_of("", 11), mine;
                struct pair pair;
                begin_pair(&pair, &old, &new);
                write_pair(&pair, 2, "baz", HF__CAUSE_RELEASED);
                if (side == NEW) {
                        old = written(&pair, 12);
                        response(&pair, OLD, 0, &old);
                }
                response(&pair, side, HF_E_TIMEOUT, NULL);
                expect_answer(&pair, 2, HF_E_TIMEOUT);
                hf__two_lease_read(&pair.two, 3, pair.now.boot + 5 * SEC, pair.now, &pair.did);
                response(&pair, OLD, 0, &old);
                response(&pair, NEW, 0, &new);
                expect_answer(&pair, 3, 0);
                assert_true(last_of(&pair)->record.unsettled);
                write_pair(&pair, 4, "", HF__CAUSE_NONE);
                expect_write(&pair, OLD, "", side == OLD ? 10 : 12);
                mine = written(&pair, 14);
                response(&pair, OLD, 0, &mine);
                if (side == NEW) {
                        expect_write(&pair, NEW, "", 11);
                        mine = written(&pair, 15);
                        response(&pair, NEW, 0, &mine);
                }
                expect_answer(&pair, 4, 0);
                assert_false(last_of(&pair)->record.unsettled);
        }
}

/* Neither Lease is renewed without the other. */
static void test_a_half_held_lock_is_not_renewed(void **state) {
        struct hf__record stolen = record_of("thief", 20), cleared = record_of("", 20);
        struct pair pair;

        for (int side = OLD; side <= NEW; side++)
                for (int how = 0; how < 2; how++) {
                        lead_pair(&pair);
                        hf__two_lease_watched(&pair.two, side, how ? &stolen : &cleared, pair.now,
                                              &pair.did);
                        write_pair(&pair, 3, "baz", HF__CAUSE_NONE);
                        assert_int_equal(pair.did.n, 1);
                        expect_answer(&pair, 3, HF_E_CONFLICT);
                }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_both_leases_are_created),
                cmocka_unit_test(test_a_free_old_lease_is_acquired_and_the_new_one_created),
                cmocka_unit_test(test_two_free_leases_are_acquired),
                cmocka_unit_test(test_an_expired_old_lease_is_taken_over),
                cmocka_unit_test(test_two_expired_leases_are_taken_over),
                cmocka_unit_test(test_with_two_holders_nobody_leads),
                cmocka_unit_test(test_either_of_two_holders_keeps_the_lock),
                cmocka_unit_test(test_the_longer_of_two_durations_counts),
                cmocka_unit_test(test_expired_leases_of_unknown_holders_are_taken_over),
                cmocka_unit_test(test_a_renewed_lease_is_left_alone),
                cmocka_unit_test(test_both_leases_are_renewed),
                cmocka_unit_test(test_losing_either_lease_ends_the_term),
                cmocka_unit_test(test_a_half_held_lock_is_released),
                cmocka_unit_test(test_a_stop_releases_a_half_held_lock),
                cmocka_unit_test(test_a_refused_acquire_is_undone),
                cmocka_unit_test(test_a_stop_releases_both),
                cmocka_unit_test(test_an_older_watch_event_is_ignored),
                cmocka_unit_test(test_an_abandoned_operation_sends_nothing),
                cmocka_unit_test(test_a_timeout_of_the_new_lease_leaves_the_outcome_unknown),
                cmocka_unit_test(test_a_release_invalidates_a_pending_acquire),
                cmocka_unit_test(test_a_half_held_lock_is_not_renewed),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
