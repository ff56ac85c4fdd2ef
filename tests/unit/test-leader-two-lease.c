/* SPDX-License-Identifier: Apache-2.0 */
/* Two Leases led as one: the scenarios of the field, what ends a term, and what is left behind. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "two_lease_world.h"

/* ---- the field's scenarios for a lock of two: the primary is the old Lease, the secondary the new one ---- */

static void given(struct world *w, enum hf__two_side side, const char *holder) {
        struct hf__record record = {.duration_s = *holder ? 10 : 1, .acquire_us = w->now / 1000 - 5, .renew_us = w->now / 1000 - 3};

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
        assert_int_equal(w->procs[0].n_requests, 4);                    /* two reads, two creations */
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
                expect_refused(w, HF__TWO_UNKNOWN, 102 + (uint64_t)i);
                struct hf__record renewed = w->lease[i % 2];
                renewed.renew_us = 1; /* also by a clock that is far behind */
                renewed.transitions = i;
                put(w, i % 2, &renewed);
        }
        run_for(w, 11 * S);
        expect_led(w, 20);
}

static void test_takes_over_from_holders_that_nobody_knows(void **state) { /* CG45 */
        struct world *w = new_world(1);

        given(w, OLD, HF__TWO_UNKNOWN);
        given(w, NEW, HF__TWO_UNKNOWN);
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

/* A new Lease that is stolen leaves the old one in the leader's name: it is given back when the term's work is over for sure. */
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

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_creates_both),
                cmocka_unit_test(test_takes_a_free_old_one_and_creates_the_new),
                cmocka_unit_test(test_takes_both_when_both_are_free),
                cmocka_unit_test(test_takes_over_a_silent_old_one),
                cmocka_unit_test(test_takes_over_both_when_silent),
                cmocka_unit_test(test_of_two_holders_nobody_leads),
                cmocka_unit_test(test_takes_over_from_holders_that_nobody_knows),
                cmocka_unit_test(test_leaves_a_fresh_one_alone),
                cmocka_unit_test(test_renews_both),
                cmocka_unit_test(test_either_lease_ends_the_term),
                cmocka_unit_test(test_half_a_lock_is_given_back),
                cmocka_unit_test(test_a_stop_releases_both),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
