/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two Leases led as one: random fleets. HOLDFAST_SEED=n begins with schedule n,
 * HOLDFAST_SCHEDULES=n sets their number.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "two_lease_fixture.h"

/* Ends the faults. Within a few lease durations one process must lead, and continue to lead. */
static void calm(struct two_lease_fixture *f, enum two_lease_knowledge kind) {
        f->faults = false;
        for (int i = 0; i < TWO_LEASE_MAX_PROCESSES; i++) {
                f->processes[i].paused_until = 0;
                two_lease_fixture_crash(f, i);
                two_lease_fixture_start(f, i, kind, NULL);
        }
        two_lease_fixture_run_for(f, 60 * SEC);
        unsigned n = f->n_terms[kind];
        two_lease_fixture_run_for(f, 60 * SEC);
        assert_int_equal(f->n_terms[kind], n);
        unsigned n_acting = 0;
        for (int i = 0; i < TWO_LEASE_MAX_PROCESSES; i++)
                n_acting += f->processes[i].acts;
        assert_int_equal(n_acting, 1);
}

static void run_fleets(enum two_lease_knowledge a, enum two_lease_knowledge b,
                       uint64_t first_seed) {
        unsigned n_terms[3] = {0}, n_split = 0, n_given_back = 0, n_undone = 0;
        unsigned n_schedules =
                getenv("HOLDFAST_SCHEDULES") ? (unsigned)atoi(getenv("HOLDFAST_SCHEDULES")) : 400;

        if (getenv("HOLDFAST_SEED"))
                first_seed = strtoull(getenv("HOLDFAST_SEED"), NULL, 10);
        for (uint64_t seed = first_seed; seed < first_seed + n_schedules; seed++) {
                struct two_lease_fixture *f = two_lease_fixture_new(seed);
                two_lease_fixture_run_fleet(f, a, b, 600 * SEC);
                calm(f, KNOWS_BOTH);
                for (int i = 0; i < 3; i++)
                        n_terms[i] += f->n_terms[i];
                n_split += f->n_split_crashes;
                n_given_back += f->n_given_back;
                n_undone += f->n_undone;
        }
        print_message("terms %u old, %u both, %u new; %u crashes between two writes, %u given "
                      "back, %u undone\n",
                      n_terms[0], n_terms[1], n_terms[2], n_split, n_given_back, n_undone);
        assert_true(n_terms[a] >= n_schedules && n_terms[b] >= n_schedules);
        assert_true(n_split >= n_schedules / 100);
        if (b == KNOWS_NEW)
                assert_true(n_given_back + n_undone >= n_schedules / 100);
}

static void test_old_and_both_never_lead_together(void **state) {
        run_fleets(KNOWS_OLD, KNOWS_BOTH, 1);
}
static void test_both_and_new_never_lead_together(void **state) {
        run_fleets(KNOWS_BOTH, KNOWS_NEW, 1000000);
}

/*
 * This shows why the middle step of a migration is necessary, and that the test detects an overlap.
 */
static void test_old_and_new_must_not_run_together(void **state) {
        struct two_lease_fixture *f = two_lease_fixture_new(5);

        f->overlap_is_expected = true;
        two_lease_fixture_run_fleet(f, KNOWS_OLD, KNOWS_NEW, 600 * SEC);
        assert_true(f->n_overlaps > 0);
}

/* A crash at each reply, and so between any two writes. Then exactly one of the others leads. */
static void test_after_a_crash_at_any_reply_one_process_leads(void **state) {
        unsigned n_split = 0;

        for (unsigned at = 1; at <= 120; at++) {
                struct two_lease_fixture *f = two_lease_fixture_new(77);
                f->crash_at = at;
                two_lease_fixture_start(f, 0, KNOWS_BOTH, NULL);
                two_lease_fixture_start(f, 1, at % 2 ? KNOWS_OLD : KNOWS_NEW, NULL);
                two_lease_fixture_start(f, 2, KNOWS_BOTH, NULL);
                for (int i = 0; i < 4; i++) {
                        two_lease_fixture_run_for(f, 10 * SEC);
                        for (int k = 0; k < TWO_LEASE_MAX_PROCESSES; k++)
                                if (f->processes[k].acts && i % 2) {
                                        two_lease_fixture_feed(f, k, HF__EV_STOP);
                                        two_lease_fixture_run_for(f, 3 * SEC);
                                        two_lease_fixture_start(f, k, f->processes[k].knows, NULL);
                                        break;
                                }
                }
                f->crash_at = 0;
                two_lease_fixture_run_for(f, 40 * SEC);
                unsigned n_acting = 0;
                for (int i = 0; i < TWO_LEASE_MAX_PROCESSES; i++)
                        n_acting += f->processes[i].alive && f->processes[i].acts;
                if (n_acting != 1)
                        fail_msg("%u lead after a crash at reply %u", n_acting, at);
                n_split += f->n_split_crashes;
        }
        assert_true(n_split >= 2);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_old_and_both_never_lead_together),
                cmocka_unit_test(test_both_and_new_never_lead_together),
                cmocka_unit_test(test_old_and_new_must_not_run_together),
                cmocka_unit_test(test_after_a_crash_at_any_reply_one_process_leads),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
