/* SPDX-License-Identifier: Apache-2.0 */
/* Two Leases led as one: the scenarios of the field, what ends a term, and what is left behind. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "two_lease_world.h"

/* ---- the field's scenarios for a lock of two: the primary is the old Lease, the secondary the new
 * one ---- */

static void given(struct world *w, enum hf__two_lease_side side, const char *holder) {
        struct hf__record record = {.duration_s = *holder ? 10 : 1,
                                    .acquire_us = w->now / 1000 - 5,
                                    .renew_us = w->now / 1000 - 3};

        (void)snprintf(record.holder, sizeof record.holder, "%s", holder);
        put(w, side, &record);
}

static void expect_led(const struct world *w, int64_t transitions) {
        assert_true(w->procs[0].acts);
        for (int side = OLD; side <= NEW; side++) {
                assert_string_equal(w->lease[side].holder, "baz");
                assert_int_equal(w->lease[side].transitions, transitions);
                assert_int_equal(w->lease[side].acquire_us, w->procs[0].core.mine.acquire_us);
        }
}

static void expect_refused(const struct world *w, const char *holder, uint64_t revision) {
        assert_false(w->procs[0].acts);
        assert_string_equal(w->procs[0].core.observed.holder, holder);
        assert_int_equal(w->revision, revision); /* nothing was written */
}

static void test_creates_both(void **state) { /* CG39 */
        struct world *w = new_world(1);

        start(w, 0, KNOWS_BOTH, "baz");
        run_for(w, S);
        expect_led(w, 0);
        assert_true(w->lease[OLD].rv_number < w->lease[NEW].rv_number); /* the old one first */
        assert_int_equal(w->procs[0].n_requests, 4); /* two reads, two creations */
}

static void test_takes_a_free_old_one_and_creates_the_new(void **state) { /* CG40 */
        struct world *w = new_world(1);

        given(w, OLD, "");
        start(w, 0, KNOWS_BOTH, "baz");
        run_for(w, S);
        expect_led(w, 1);
}

static void test_takes_both_when_both_are_free(void **state) { /* CG41 */
        struct world *w = new_world(1);

        given(w, OLD, "");
        given(w, NEW, "");
        start(w, 0, KNOWS_BOTH, "baz");
        run_for(w, S);
        expect_led(w, 1);
}

static void test_takes_over_a_silent_old_one(void **state) { /* CG42 */
        struct world *w = new_world(1);

        given(w, OLD, "bing");
        start(w, 0, KNOWS_BOTH, "baz");
        run_for(w, 10 * S);
        expect_refused(w, "bing", 101); /* for as long as was recorded */
        run_for(w, S);
        expect_led(w, 1);
}

static void test_takes_over_both_when_silent(void **state) { /* CG43 */
        struct world *w = new_world(1);

        given(w, OLD, "bing");
        given(w, NEW, "bing");
        start(w, 0, KNOWS_BOTH, "baz");
        run_for(w, 11 * S);
        expect_led(w, 1);
}

static void test_of_two_holders_nobody_leads(void **state) { /* CG44, CG47 */
        struct world *w = new_world(1);

        given(w, OLD, "bing");
        given(w, NEW, "other");
        start(w, 0, KNOWS_BOTH, "baz");
        for (int i = 0; i < 20; i++) { /* as long as one of them is renewed, whichever */
                run_for(w, 5 * S);
                expect_refused(w, HF__TWO_LEASE_UNKNOWN, 102 + (uint64_t)i);
                struct hf__record renewed = w->lease[i % 2];
                renewed.renew_us = 1; /* also by a clock that is far behind */
                renewed.transitions = i;
                put(w, i % 2, &renewed);
        }
        run_for(w, 11 * S);
        expect_led(w, 20);
}

/* The one whose times are the lesser lives: nothing that the two show together changes, but for the
 * beat. */
static void test_either_of_two_holders_keeps_the_lock(void **state) {
        for (int living = OLD; living <= NEW; living++) {
                struct world *w = new_world(1);
                given(w, OLD, "bing");
                given(w, NEW, "other");
                struct hf__record renewed = w->lease[living];
                start(w, 0, KNOWS_BOTH, "baz");
                for (int i = 0; i < 10; i++) {
                        run_for(w, 5 * S);
                        expect_refused(w, HF__TWO_LEASE_UNKNOWN, 102 + (uint64_t)i);
                        renewed.renew_us = 1 + i;
                        put(w, living, &renewed);
                }
        }
}

/* Of two durations the longer is waited for. */
static void test_waits_for_the_longer_of_two_holders(void **state) {
        for (int side = OLD; side <= NEW; side++) {
                struct world *w = new_world(1);
                given(w, OLD, "bing");
                given(w, NEW, "other");
                struct hf__record longer = w->lease[side];
                longer.duration_s = 30;
                put(w, side, &longer);
                start(w, 0, KNOWS_BOTH, "baz");
                run_for(w, 29 * S);
                expect_refused(w, HF__TWO_LEASE_UNKNOWN, 103);
                run_for(w, 2 * S);
                expect_led(w, 1);
        }
}

static void test_takes_over_from_holders_that_nobody_knows(void **state) { /* CG45 */
        struct world *w = new_world(1);

        given(w, OLD, HF__TWO_LEASE_UNKNOWN);
        given(w, NEW, HF__TWO_LEASE_UNKNOWN);
        start(w, 0, KNOWS_BOTH, "baz");
        run_for(w, 11 * S);
        expect_led(w, 1);
}

static void test_leaves_a_fresh_one_alone(void **state) { /* CG46, CG48 */
        struct world *w = new_world(1);

        given(w, OLD, "bing");
        start(w, 0, KNOWS_BOTH, "baz");
        run_for(w, 5 * S);
        expect_refused(w, "bing", 101);
        given(w, NEW, "bing");
        run_for(w, 5 * S);
        expect_refused(w, "bing", 102);
}

static void test_renews_both(void **state) { /* CG49 */
        struct world *w = new_world(1);

        start(w, 0, KNOWS_BOTH, "baz");
        run_for(w, S);
        uint64_t old = w->lease[OLD].rv_number, new = w->lease[NEW].rv_number;
        unsigned n = w->procs[0].n_requests;
        run_for(w, 2 * S);
        expect_led(w, 0);
        assert_true(w->lease[OLD].rv_number > old && w->lease[NEW].rv_number > new);
        assert_int_equal(w->procs[0].n_requests, n + 2); /* without a read */
        assert_int_equal(w->n_terms[KNOWS_BOTH], 1);
}

/* ---- what ends a term, and what is left behind ---- */

static void test_either_lease_ends_the_term(void **state) {
        for (int side = OLD; side <= NEW; side++) {
                for (int how = 0; how < 3; how++) {
                        struct world *w = new_world(2);
                        start(w, 0, KNOWS_BOTH, "baz");
                        run_for(w, S);
                        struct hf__record record = w->lease[side];
                        if (how == 0)
                                strcpy(record.holder, "thief");
                        else if (how == 1)
                                record.holder[0] = '\0'; /* cleared, all else as it was */
                        else
                                record.acquire_us++;
                        put(w, side, &record);
                        run_for(w, 10 * MS);
                        assert_false(w->procs[0].acts);
                }
        }
}

/* A new Lease that is stolen leaves the old one in the leader's name: it is given back when the
 * term's work is over for sure. */
static void test_half_a_lock_is_given_back(void **state) {
        struct world *w = new_world(3);

        start(w, 0, KNOWS_BOTH, "baz");
        run_for(w, S);
        struct hf__record stolen = w->lease[NEW];
        strcpy(stolen.holder, "thief");
        put(w, NEW, &stolen);
        hf_nsec at = w->now;
        while (w->lease[OLD].holder[0]) {
                run_for(w, 500 * MS);
                stolen = w->lease[NEW];
                stolen.renew_us++; /* the thief lives */
                put(w, NEW, &stolen);
                assert_true(w->now - at < 40 * S);
        }
        assert_true(w->now - at >= 15 * S);
        assert_int_equal(w->n_given_back, 1);
        assert_string_equal(w->lease[NEW].holder, "thief");
        assert_string_equal(w->procs[0].core.observed.holder, "thief");
}

/* Two holders: the old Lease is still mine, and the pair does not bear my name. A stop leaves none
 * behind. */
static void test_a_stop_gives_half_a_lock_back(void **state) {
        struct world *w = new_world(3);

        start(w, 0, KNOWS_BOTH, "baz");
        run_for(w, S);
        struct hf__record stolen = w->lease[NEW];
        strcpy(stolen.holder, "thief");
        put(w, NEW, &stolen);
        run_for(w, 2 * S);
        assert_string_equal(w->lease[OLD].holder, "baz");
        order(w, 0, HF__EV_STOP);
        run_for(w, 5 * S);
        assert_int_equal(w->procs[0].core.state, HF_STOPPED);
        assert_true(w->procs[0].is_done);
        assert_string_equal(w->lease[OLD].holder, "");
        assert_string_equal(w->lease[NEW].holder, "thief");
}

/* The old Lease is written, the new one is somebody else's: whoever knows the old one only does not
 * wait for its expiry. */
static void test_a_refused_taking_is_undone(void **state) {
        struct world *w = new_world(3);

        given(w, OLD, "");
        given(w, NEW, "");
        start(w, 0, KNOWS_BOTH, "baz");
        while (!w->lease[OLD].holder[0])
                run_for(w, MS / 10);
        given(w, NEW, "other");
        run_for(w, S);
        assert_int_equal(w->n_undone, 1);
        assert_string_equal(w->lease[OLD].holder, "");
        assert_string_equal(w->lease[NEW].holder, "other");
        assert_int_equal(w->n_terms[KNOWS_BOTH], 0);
}

static void test_a_stop_releases_both(void **state) {
        struct world *w = new_world(4);

        start(w, 0, KNOWS_BOTH, "baz");
        run_for(w, S);
        order(w, 0, HF__EV_STOP);
        run_for(w, 3 * S);
        assert_int_equal(w->procs[0].core.state, HF_STOPPED);
        for (int side = OLD; side <= NEW; side++) {
                assert_string_equal(w->lease[side].holder, "");
                assert_int_equal(w->lease[side].duration_s, 1);
        }
}

/* ---- the decisions by themselves ---- */

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
        hf__two_lease_response(&pair->two, side, pair->two.part[side].asked, result, 0, record,
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

/* Reads both, as op 1; the pair's record is in last_of(). */
static void begin_pair(struct pair *pair, const struct hf__record *old,
                       const struct hf__record *new) {
        memset(pair, 0, sizeof *pair);
        pair->now = (struct hf__core_time){.boot = 1000 * S, .real_us = 1000000000};
        hf__two_lease_init(&pair->two, "baz", 15 * S);
        hf__two_lease_read(&pair->two, 1, pair->now.boot + 5 * S, pair->now, &pair->did);
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
        hf__two_lease_write(&pair->two, op_id, &record, pair->now.boot + 5 * S, pair->now,
                            &pair->did);
}

/* What the write asked for, as the server returns it. */
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

static void test_older_news_does_not_count(void **state) {
        struct hf__record old = record_of("", 10), new = record_of("", 11),
                          newer = record_of("bing", 20);
        struct pair pair;

        begin_pair(&pair, &old, &new);
        hf__two_lease_read(&pair.two, 2, pair.now.boot + 5 * S, pair.now, &pair.did);
        hf__two_lease_watched(&pair.two, OLD, &newer, pair.now, &pair.did);
        response(&pair, OLD, 0, &old); /* it was on its way when the watch told more */
        response(&pair, NEW, 0, &new);
        expect_answer(&pair, 2, 0);
        assert_string_equal(last_of(&pair)->record.holder, "bing");
        hf__two_lease_watched(&pair.two, OLD, &old, pair.now, &pair.did);
        assert_int_equal(pair.did.n, 0);
        assert_string_equal(pair.two.part[OLD].record.holder, "bing");
}

static void test_an_operation_that_was_given_up_sends_nothing(void **state) {
        struct hf__record old = record_of("", 10), new = record_of("", 11), mine;
        struct pair pair;

        begin_pair(&pair, &old, &new);
        write_pair(&pair, 2, "baz", HF__CAUSE_RELEASED);
        mine = written(&pair, 12);
        uint32_t asked = pair.two.part[OLD].asked;
        hf__two_lease_read(&pair.two, 3, pair.now.boot + 5 * S, pair.now, &pair.did);
        assert_int_equal(pair.did.list[0].type, HF__TWO_LEASE_RESPONSE);
        assert_int_equal(pair.did.list[0].result, HF_E_TIMEOUT);
        hf__two_lease_response(&pair.two, OLD, asked, 0, 0, &mine, pair.now, &pair.did);
        assert_int_equal(pair.did.n, 0);
        assert_int_not_equal(pair.two.part[OLD].asked, 0); /* the read is still to be answered */

        begin_pair(&pair, &old, &new);
        write_pair(&pair, 2, "baz", HF__CAUSE_RELEASED);
        mine = written(&pair, 12);
        pair.now.boot += 5 * S; /* this process was paused */
        response(&pair, OLD, 0, &mine);
        expect_answer(&pair, 2, HF_E_TIMEOUT);
        assert_int_equal(pair.did.n, 1);
}

/* The old Lease is written by then: only a read tells how things are. */
static void test_what_the_new_lease_leaves_open_is_unknown(void **state) {
        struct hf__record old = record_of("", 10), new = record_of("", 11), mine;
        struct pair pair;

        begin_pair(&pair, &old, &new);
        write_pair(&pair, 2, "baz", HF__CAUSE_RELEASED);
        mine = written(&pair, 12);
        response(&pair, OLD, 0, &mine);
        response(&pair, NEW, HF_E_TIMEOUT, NULL); /* it may be applied: nothing is undone */
        assert_int_equal(pair.did.n, 1);
        expect_answer(&pair, 2, HF_E_TIMEOUT);

        lead_pair(&pair);
        write_pair(&pair, 3, "baz", HF__CAUSE_NONE);
        mine = written(&pair, 14);
        response(&pair, OLD, 0, &mine);
        response(&pair, NEW, HF_E_FORBIDDEN, NULL);
        expect_answer(&pair, 3, HF_E_TIMEOUT);
}

/* A taking that may yet be applied is outdated by the release; what is none of ours is not touched.
 */
static void test_a_release_outdates_a_taking(void **state) {
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
                hf__two_lease_read(&pair.two, 3, pair.now.boot + 5 * S, pair.now, &pair.did);
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

/* Neither is renewed by itself. */
static void test_half_a_lock_is_not_renewed(void **state) {
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
                cmocka_unit_test(test_creates_both),
                cmocka_unit_test(test_takes_a_free_old_one_and_creates_the_new),
                cmocka_unit_test(test_takes_both_when_both_are_free),
                cmocka_unit_test(test_takes_over_a_silent_old_one),
                cmocka_unit_test(test_takes_over_both_when_silent),
                cmocka_unit_test(test_of_two_holders_nobody_leads),
                cmocka_unit_test(test_either_of_two_holders_keeps_the_lock),
                cmocka_unit_test(test_waits_for_the_longer_of_two_holders),
                cmocka_unit_test(test_takes_over_from_holders_that_nobody_knows),
                cmocka_unit_test(test_leaves_a_fresh_one_alone),
                cmocka_unit_test(test_renews_both),
                cmocka_unit_test(test_either_lease_ends_the_term),
                cmocka_unit_test(test_half_a_lock_is_given_back),
                cmocka_unit_test(test_a_stop_gives_half_a_lock_back),
                cmocka_unit_test(test_a_refused_taking_is_undone),
                cmocka_unit_test(test_a_stop_releases_both),
                cmocka_unit_test(test_older_news_does_not_count),
                cmocka_unit_test(test_an_operation_that_was_given_up_sends_nothing),
                cmocka_unit_test(test_what_the_new_lease_leaves_open_is_unknown),
                cmocka_unit_test(test_a_release_outdates_a_taking),
                cmocka_unit_test(test_half_a_lock_is_not_renewed),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
