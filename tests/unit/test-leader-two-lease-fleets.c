/* SPDX-License-Identifier: Apache-2.0 */
/* Two Leases led as one: random fleets. HOLDFAST_SEED=n runs the schedules from n on,
 * HOLDFAST_SCHEDULES=n so many. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "two_lease_world.h"

static void chaos(struct world *w, enum kind a, enum kind b) {
        int proc = (int)(draw(w) % w->n_procs);

        switch (draw(w) % 8) {
        case 0: crash(w, proc); break;
        case 1: w->procs[proc].paused_until = w->now + up_to(w, 40 * S); break;
        case 2: order(w, proc, HF__EV_STOP); break;
        case 3:
        case 4:
                if (!w->procs[proc].alive || w->procs[proc].core.state == HF_STOPPED)
                        start(w, proc, chance(w, 500) ? a : b,
                              NULL); /* another version may come up in its place */
                break;
        case 5: {
                int side = (int)(draw(w) % 2);
                struct hf__record same = w->lease[side];
                if (same.exists)
                        put(w, side, &same); /* somebody edits the labels */
                break;
        }
        case 6: w->faults = !w->faults; break;
        default: break;
        }
}

static void schedule(struct world *w, enum kind a, enum kind b, hf_nsec length) {
        hf_nsec until = w->now + length;

        w->faults = true;
        for (int i = 0; i < MAX_PROCS; i++)
                start(w, i, i % 2 ? a : b, NULL);
        while (w->now < until) {
                run_for(w, up_to(w, 6 * S));
                chaos(w, a, b);
        }
}

/* Nothing goes wrong any more: within a few lease durations one leads, and it stays so. */
static void calm(struct world *w, enum kind kind) {
        w->faults = false;
        for (int i = 0; i < MAX_PROCS; i++) {
                w->procs[i].paused_until = 0;
                crash(w, i);
                start(w, i, kind, NULL);
        }
        run_for(w, 60 * S);
        unsigned n = w->n_terms[kind];
        run_for(w, 60 * S);
        assert_int_equal(w->n_terms[kind], n);
        unsigned n_acting = 0;
        for (int i = 0; i < MAX_PROCS; i++)
                n_acting += w->procs[i].acts;
        assert_int_equal(n_acting, 1);
}

static void run_fleets(enum kind a, enum kind b, uint64_t first_seed) {
        unsigned n_terms[3] = {0}, n_split = 0, n_given_back = 0, n_undone = 0;
        unsigned n_schedules =
                getenv("HOLDFAST_SCHEDULES") ? (unsigned)atoi(getenv("HOLDFAST_SCHEDULES")) : 400;

        if (getenv("HOLDFAST_SEED"))
                first_seed = strtoull(getenv("HOLDFAST_SEED"), NULL, 10);
        for (uint64_t seed = first_seed; seed < first_seed + n_schedules; seed++) {
                struct world *w = new_world(seed);
                schedule(w, a, b, 600 * S);
                calm(w, KNOWS_BOTH);
                for (int i = 0; i < 3; i++)
                        n_terms[i] += w->n_terms[i];
                n_split += w->n_split_crashes;
                n_given_back += w->n_given_back;
                n_undone += w->n_undone;
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

/* Why the middle step cannot be left out; and that this test would see an overlap. */
static void test_old_and_new_must_not_run_together(void **state) {
        struct world *w = new_world(5);

        w->overlap_is_expected = true;
        schedule(w, KNOWS_OLD, KNOWS_NEW, 600 * S);
        assert_true(w->n_overlaps > 0);
}

/* A crash at each reply in turn, so between any two writes: whoever is left leads, and alone. */
static void test_a_crash_at_any_reply(void **state) {
        unsigned n_split = 0;

        for (unsigned at = 1; at <= 120; at++) {
                struct world *w = new_world(77);
                w->crash_at = at;
                start(w, 0, KNOWS_BOTH, NULL);
                start(w, 1, at % 2 ? KNOWS_OLD : KNOWS_NEW, NULL);
                start(w, 2, KNOWS_BOTH, NULL);
                for (int i = 0; i < 4; i++) {
                        run_for(w, 10 * S);
                        for (int k = 0; k < MAX_PROCS; k++)
                                if (w->procs[k].acts && i % 2) {
                                        order(w, k, HF__EV_STOP);
                                        run_for(w, 3 * S);
                                        start(w, k, w->procs[k].kind, NULL);
                                        break;
                                }
                }
                w->crash_at = 0;
                run_for(w, 40 * S);
                unsigned n_acting = 0;
                for (int i = 0; i < MAX_PROCS; i++)
                        n_acting += w->procs[i].alive && w->procs[i].acts;
                if (n_acting != 1)
                        fail_msg("%u lead after a crash at reply %u", n_acting, at);
                n_split += w->n_split_crashes;
        }
        assert_true(n_split >= 2);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_old_and_both_never_lead_together),
                cmocka_unit_test(test_both_and_new_never_lead_together),
                cmocka_unit_test(test_old_and_new_must_not_run_together),
                cmocka_unit_test(test_a_crash_at_any_reply),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
