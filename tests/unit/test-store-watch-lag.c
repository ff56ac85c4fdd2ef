/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decisions about a watch that lags: single cases, and a simulation in virtual time of a store
 * with several members that freeze and go on at random.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "server/storage/watch_lag.h"

#define SEC  HF_NSEC_PER_SEC
#define MSEC HF_NSEC_PER_MSEC

/* A watch that was opened at time `now`, at revision 10 of the cache. */
static struct hfd_watch_lag opened(hf_nsec now) {
        struct hfd_watch_lag lag = {0};

        hfd_watch_lag_reached(&lag, 10, now);
        hfd_watch_lag_opened(&lag, now);
        return lag;
}

static void test_nothing_is_due_before_the_first_watch(void **state) {
        struct hfd_watch_lag lag = {0};

        hfd_watch_lag_replied(&lag, 10, 10, 1 * SEC);
        assert_int_equal(hfd_watch_lag_decide(&lag, 100 * SEC), HFD_WATCH_LAG_WAIT);
        assert_true(hfd_watch_lag_due(&lag) == HF_NSEC_NEVER);
        assert_int_equal(hfd_watch_lag_revisions(&lag), 0);
        lag = opened(SEC);
        hfd_watch_lag_closed(&lag);
        assert_int_equal(hfd_watch_lag_decide(&lag, 100 * SEC), HFD_WATCH_LAG_WAIT);
}

static void test_a_revision_that_was_certainly_written_reopens_the_watch(void **state) {
        struct hfd_watch_lag lag = opened(0);

        hfd_watch_lag_replied(&lag, 15, 12, 5 * SEC);
        assert_true(hfd_watch_lag_due(&lag) == 6 * SEC);
        assert_int_equal(hfd_watch_lag_decide(&lag, 6 * SEC - 1), HFD_WATCH_LAG_WAIT);
        assert_int_equal(hfd_watch_lag_revisions(&lag), 2);
        assert_true(hfd_watch_lag_time(&lag, 6 * SEC) == SEC);
        assert_int_equal(hfd_watch_lag_decide(&lag, 6 * SEC), HFD_WATCH_LAG_REOPEN);
        hfd_watch_lag_closed(&lag);
        hfd_watch_lag_opened(&lag, 7 * SEC);
        hfd_watch_lag_reached(&lag, 12, 7 * SEC);
        assert_int_equal(hfd_watch_lag_revisions(&lag), 0);
        assert_true(hfd_watch_lag_time(&lag, 8 * SEC) == 0);
}

static void test_a_revision_of_anybody_asks_for_progress(void **state) {
        struct hfd_watch_lag lag = opened(0);

        hfd_watch_lag_replied(&lag, 15, 0, 5 * SEC);
        assert_int_equal(hfd_watch_lag_decide(&lag, 6 * SEC - 1), HFD_WATCH_LAG_WAIT);
        assert_int_equal(hfd_watch_lag_decide(&lag, 6 * SEC), HFD_WATCH_LAG_WRITE_PROGRESS);
        assert_int_equal(hfd_watch_lag_revisions(&lag), 0); /* not certain */
        /* The write succeeds, and its event comes: all is well. */
        hfd_watch_lag_replied(&lag, 16, 16, 6 * SEC);
        hfd_watch_lag_reached(&lag, 16, 6 * SEC + 1);
        assert_true(hfd_watch_lag_due(&lag) > 10 * SEC);
        /* Or the event does not come. */
        hfd_watch_lag_replied(&lag, 17, 0, 8 * SEC);
        assert_int_equal(hfd_watch_lag_decide(&lag, 9 * SEC), HFD_WATCH_LAG_WRITE_PROGRESS);
        hfd_watch_lag_replied(&lag, 18, 18, 9 * SEC);
        assert_int_equal(hfd_watch_lag_decide(&lag, 10 * SEC), HFD_WATCH_LAG_REOPEN);
}

static void test_a_write_that_fails_is_repeated_less_and_less_often(void **state) {
        struct hfd_watch_lag lag = opened(0);
        int n = 0;

        hfd_watch_lag_replied(&lag, 15, 0, 0);
        for (hf_nsec now = 0; now < 120 * SEC; now += SEC / 10)
                n += hfd_watch_lag_decide(&lag, now) == HFD_WATCH_LAG_WRITE_PROGRESS;
        assert_in_range(n, 5, 12);
}

/* Each waits twice as long as the one before, but not longer than 16 s. */
static void test_the_waits_between_writes_double(void **state) {
        static const int waits[] = {1, 2, 4, 8, 16, 16, 16};
        struct hfd_watch_lag lag = opened(0);
        hf_nsec now = 0;

        hfd_watch_lag_replied(&lag, 15, 0, 0);
        for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
                assert_true(hfd_watch_lag_due(&lag) == now + waits[i] * SEC);
                now += waits[i] * SEC;
                assert_int_equal(hfd_watch_lag_decide(&lag, now), HFD_WATCH_LAG_WRITE_PROGRESS);
        }
}

/* The wait before the next reopening is short again if none was necessary for a minute. */
static void test_a_minute_without_a_reopening_ends_the_row(void **state) {
        for (int late = 0; late < 2; late++) {
                struct hfd_watch_lag lag = opened(0);
                hf_nsec again = 61 * SEC - !late; /* the first reopening is at 1 s */

                hfd_watch_lag_replied(&lag, 15, 12, 0);
                assert_int_equal(hfd_watch_lag_decide(&lag, SEC), HFD_WATCH_LAG_REOPEN);
                hfd_watch_lag_closed(&lag);
                hfd_watch_lag_opened(&lag, SEC);
                hfd_watch_lag_reached(&lag, 15, 2 * SEC);
                hfd_watch_lag_replied(&lag, 20, 20, again);
                assert_true(hfd_watch_lag_due(&lag) == again + (late ? 1 : 2) * SEC);
        }
}

static void test_a_quiet_watch_is_probed(void **state) {
        struct hfd_watch_lag lag = opened(0);
        int n = 0;

        for (hf_nsec now = 0; now < 60 * SEC; now += SEC / 10)
                n += hfd_watch_lag_decide(&lag, now) == HFD_WATCH_LAG_PROBE;
        assert_int_equal(n, 11);
}

/* Any reply shows as much as a probe. */
static void test_a_reply_puts_the_probe_off(void **state) {
        struct hfd_watch_lag lag = opened(0);

        assert_true(hfd_watch_lag_due(&lag) == 5 * SEC);
        hfd_watch_lag_replied(&lag, 10, 0, 3 * SEC);
        assert_true(hfd_watch_lag_due(&lag) == 8 * SEC);
        assert_int_equal(hfd_watch_lag_decide(&lag, 8 * SEC), HFD_WATCH_LAG_PROBE);
        assert_true(hfd_watch_lag_due(&lag) == 13 * SEC);
}

/* A watch that is opened anew puts the probe off, but an event that shows nothing new does not. */
static void test_a_new_watch_puts_the_probe_off(void **state) {
        struct hfd_watch_lag lag = opened(0);

        hfd_watch_lag_reached(&lag, 10, 3 * SEC);
        assert_true(hfd_watch_lag_due(&lag) == 5 * SEC);
        hfd_watch_lag_closed(&lag);
        hfd_watch_lag_opened(&lag, 4 * SEC);
        assert_true(hfd_watch_lag_due(&lag) == 9 * SEC);
}

static void test_an_event_ends_the_row_of_failed_writes(void **state) {
        struct hfd_watch_lag lag = opened(0);

        hfd_watch_lag_replied(&lag, 15, 0, 0);
        assert_int_equal(hfd_watch_lag_decide(&lag, 1 * SEC), HFD_WATCH_LAG_WRITE_PROGRESS);
        hfd_watch_lag_reached(&lag, 15, 1 * SEC);
        hfd_watch_lag_replied(&lag, 16, 0, 2 * SEC);
        assert_true(hfd_watch_lag_due(&lag) == 3 * SEC);
}

/* A write that is known already says nothing new, so only a later one ends the row. */
static void test_a_write_of_ours_ends_the_row_of_failed_ones(void **state) {
        struct hfd_watch_lag lag = opened(0);

        hfd_watch_lag_reached(&lag, 14, 0);
        hfd_watch_lag_replied(&lag, 15, 12, 0);
        assert_int_equal(hfd_watch_lag_decide(&lag, 1 * SEC), HFD_WATCH_LAG_WRITE_PROGRESS);
        assert_true(hfd_watch_lag_due(&lag) == 3 * SEC);
        hfd_watch_lag_replied(&lag, 15, 12, 2 * SEC);
        assert_true(hfd_watch_lag_due(&lag) == 3 * SEC);
        hfd_watch_lag_replied(&lag, 15, 13, 2 * SEC);
        assert_true(hfd_watch_lag_due(&lag) == 2 * SEC);
}

/* A backlog: every reply is ahead of the cache, but events flow. */
static void test_a_watch_that_delivers_is_left_alone(void **state) {
        struct hfd_watch_lag lag = opened(0);

        for (hf_nsec now = 0; now < 100 * SEC; now += SEC / 2) {
                uint64_t i = (uint64_t)(now / (SEC / 2));
                hfd_watch_lag_replied(&lag, 1000 + 100 * i, 1000 + 100 * i, now);
                hfd_watch_lag_reached(&lag, 11 + i, now);
                assert_int_equal(hfd_watch_lag_decide(&lag, now), HFD_WATCH_LAG_WAIT);
        }
        assert_true(hfd_watch_lag_time(&lag, 100 * SEC) == 100 * SEC);
}

/* No member delivers anything: the watch does not wander from one to the next all the time. */
static void test_reopening_in_vain_becomes_rare(void **state) {
        struct hfd_watch_lag lag = opened(0);
        int n = 0;

        hfd_watch_lag_replied(&lag, 15, 15, 0);
        for (hf_nsec now = 0; now < 120 * SEC; now += SEC / 10) {
                if (hfd_watch_lag_decide(&lag, now) != HFD_WATCH_LAG_REOPEN)
                        continue;
                n++;
                hfd_watch_lag_opened(&lag, now);
        }
        assert_in_range(n, 8, 12);
}

/* ---- the simulation ---- */

enum { N_MEMBERS = 3, STEP_MS = 50 };

struct member {
        bool is_frozen;
        hf_nsec changed_at;
};

struct sim {
        uint64_t seed;
        hf_nsec now;
        uint64_t revision; /* of the store */
        uint64_t ours;     /* the highest that wrote a watched key */
        struct member members[N_MEMBERS];
        size_t watch; /* the member that the watch is on; requests reach one that works */
        uint64_t cached;
        bool reopening;
        hf_nsec behind_since; /* the cache is behind `ours`; 0 = it is not */
        struct hfd_watch_lag lag;
        int n_reopened, n_asked;
        hf_nsec reopened[256];
};

static unsigned draw(struct sim *sim, unsigned n) {
        sim->seed = sim->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (unsigned)(sim->seed >> 33) % n;
}

static void write_store(struct sim *sim, bool is_ours) {
        sim->revision++;
        if (is_ours)
                sim->ours = sim->revision;
}

static void freeze_or_go_on(struct sim *sim) {
        struct member *member = &sim->members[draw(sim, N_MEMBERS)];
        unsigned n_frozen = 0;

        for (size_t i = 0; i < N_MEMBERS; i++)
                n_frozen += sim->members[i].is_frozen;
        if (!member->is_frozen && n_frozen == N_MEMBERS / 2)
                return; /* a quorum remains */
        member->is_frozen = !member->is_frozen;
        member->changed_at = sim->now;
}

/* The watch delivers, unless its member is frozen. A request's reply may overtake its event. */
static void deliver(struct sim *sim) {
        struct member *member = &sim->members[sim->watch];

        if (sim->reopening && draw(sim, 4) == 0) {
                sim->reopening = false;
                hfd_watch_lag_opened(&sim->lag, sim->now);
        }
        if (sim->reopening || member->is_frozen || draw(sim, 3) == 0 || sim->ours <= sim->cached)
                return;
        sim->cached = sim->ours;
        hfd_watch_lag_reached(&sim->lag, sim->cached, sim->now);
}

static void reopen(struct sim *sim) {
        const struct member *member = &sim->members[sim->watch];

        /* The watch may leave a member only if it is frozen, or was so until just now. */
        if (!member->is_frozen)
                assert_true(sim->now - member->changed_at < 2 * SEC);
        assert_in_range(sim->n_reopened, 0, 254);
        sim->reopened[sim->n_reopened++] = sim->now;
        if (sim->n_reopened > 8)
                assert_true(sim->now - sim->reopened[sim->n_reopened - 9] >= 20 * SEC);
        sim->watch = (sim->watch + 1) % N_MEMBERS;
        sim->reopening = true;
        hfd_watch_lag_closed(&sim->lag);
}

static void act(struct sim *sim) {
        switch (hfd_watch_lag_decide(&sim->lag, sim->now)) {
        case HFD_WATCH_LAG_WAIT: break;
        case HFD_WATCH_LAG_PROBE:
                hfd_watch_lag_replied(&sim->lag, sim->revision, 0, sim->now);
                break;
        case HFD_WATCH_LAG_WRITE_PROGRESS:
                sim->n_asked++;
                write_store(sim, true);
                hfd_watch_lag_replied(&sim->lag, sim->revision, sim->revision, sim->now);
                break;
        case HFD_WATCH_LAG_REOPEN: reopen(sim); break;
        }
}

/* The cache never stays behind for long, because a member that works is always found. */
static void check(struct sim *sim) {
        if (sim->ours <= sim->cached)
                sim->behind_since = 0;
        else if (sim->behind_since == 0)
                sim->behind_since = sim->now;
        else
                assert_true(sim->now - sim->behind_since < 60 * SEC);
}

static void run_schedule(uint64_t from, int *n_reopened, int *n_asked) {
        struct sim sim = {.seed = from, .revision = 10, .ours = 10, .cached = 10, .now = SEC};
        unsigned quiet, foreign;

        draw(&sim, 2);
        quiet = draw(&sim, 3);   /* how busy we are: 0 = all the time, 2 = never */
        foreign = draw(&sim, 3); /* how busy others are */
        hfd_watch_lag_reached(&sim.lag, sim.cached, sim.now);
        hfd_watch_lag_opened(&sim.lag, sim.now);
        for (hf_nsec end = 600 * SEC; sim.now < end; sim.now += STEP_MS * MSEC) {
                if (draw(&sim, 400) == 0)
                        freeze_or_go_on(&sim);
                if (foreign > 0 && draw(&sim, foreign == 1 ? 2 : 100) == 0)
                        write_store(&sim, false);
                if (draw(&sim, 100) == 0)
                        write_store(&sim, true); /* another instance */
                if (quiet == 0 || (quiet == 1 && draw(&sim, 60) == 0)) {
                        write_store(&sim, true);
                        hfd_watch_lag_replied(&sim.lag, sim.revision, sim.revision, sim.now);
                }
                if (draw(&sim, 20) == 0) /* a read */
                        hfd_watch_lag_replied(&sim.lag, sim.revision, 0, sim.now);
                deliver(&sim);
                act(&sim);
                check(&sim);
        }
        assert_true(sim.n_asked < 600);
        *n_reopened += sim.n_reopened;
        *n_asked += sim.n_asked;
}

static uint64_t seed; /* of the schedule that is running */

static void test_members_that_freeze_at_random(void **state) {
        const char *one = getenv("HOLDFAST_SEED");
        int n_reopened = 0, n_asked = 0;

        for (seed = one ? strtoull(one, NULL, 10) : 1; one || seed <= 300; seed++) {
                run_schedule(seed, &n_reopened, &n_asked);
                if (one)
                        break;
        }
        if (!one) /* it happened at all */
                assert_true(n_reopened > 300 && n_asked > 300);
        seed = 0;
}

static int print_seed(void **state) {
        if (seed > 0)
                print_error("repeat it with HOLDFAST_SEED=%llu\n", (unsigned long long)seed);
        return 0;
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_nothing_is_due_before_the_first_watch),
                cmocka_unit_test(test_a_revision_that_was_certainly_written_reopens_the_watch),
                cmocka_unit_test(test_a_revision_of_anybody_asks_for_progress),
                cmocka_unit_test(test_a_write_that_fails_is_repeated_less_and_less_often),
                cmocka_unit_test(test_the_waits_between_writes_double),
                cmocka_unit_test(test_a_minute_without_a_reopening_ends_the_row),
                cmocka_unit_test(test_a_quiet_watch_is_probed),
                cmocka_unit_test(test_a_reply_puts_the_probe_off),
                cmocka_unit_test(test_a_new_watch_puts_the_probe_off),
                cmocka_unit_test(test_an_event_ends_the_row_of_failed_writes),
                cmocka_unit_test(test_a_write_of_ours_ends_the_row_of_failed_ones),
                cmocka_unit_test(test_a_watch_that_delivers_is_left_alone),
                cmocka_unit_test(test_reopening_in_vain_becomes_rare),
                cmocka_unit_test_teardown(test_members_that_freeze_at_random, print_seed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
