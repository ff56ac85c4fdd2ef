/* SPDX-License-Identifier: Apache-2.0 */
/* The elector's core: what keeps a term, and what ends it. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "core_fixture.h"

/* Scenarios of docs/parity.md: CG08, CG18. */
static void test_a_renewal_is_one_write_per_period(void **state) {
        struct core_fixture f;
        hf_nsec sent = 0;

        core_fixture_lead(&f);
        for (int i = 0; i < 3; i++) {
                assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 2 * SEC));
                if (i)
                        assert_int_equal(f.now, sent + 2 * SEC); /* from one write to the next */
                sent = f.now;
                f.now += 40 * MSEC;
                core_fixture_write_done(&f, 0);
                assert_int_equal(core_fixture_find_action(&f, HF__ACT_EXTEND)->valid_until,
                                 sent + 10 * SEC);
                assert_null(core_fixture_find_action(&f, HF__ACT_READ));
        }
}

/* Scenario of docs/parity.md: CG19. */
static void test_after_a_conflict_a_lease_that_is_still_mine_is_kept(void **state) {
        struct core_fixture f;
        struct hf__record record;

        core_fixture_lead(&f);
        record = f.sent;
        core_fixture_wait_for(&f, HF__ACT_WRITE, 2 * SEC);
        core_fixture_write_done(&f, HF_E_CONFLICT);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_READ));
        core_fixture_set_revision(&f, &record); /* labels were changed */
        core_fixture_read_done(&f, 0, &record);
        assert_null(core_fixture_find_action(&f, HF__ACT_EXTEND)); /* a read extends nothing */
        assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        assert_string_equal(f.sent.rv, record.rv);
        core_fixture_write_done(&f, 0);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_EXTEND));
}

/* Scenario of docs/parity.md: A09. */
static void test_a_lost_reply_is_neither_failure_nor_success(void **state) {
        struct core_fixture f;
        struct hf__record applied;
        hf_nsec valid_until;

        core_fixture_lead(&f);
        core_fixture_wait_for(&f, HF__ACT_WRITE, 2 * SEC);
        valid_until = f.core.valid_until;
        applied = f.sent;
        core_fixture_set_revision(&f, &applied);
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_READ,
                                              5 * SEC)); /* the core ends the operation itself */
        core_fixture_read_done(&f, 0, &applied);
        assert_int_equal(f.core.valid_until, valid_until);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        assert_string_equal(f.sent.rv, applied.rv);
}

/* Scenarios of docs/parity.md: CR02, A02, A03. */
static void test_a_record_of_another_holder_ends_the_term_at_once(void **state) {
        struct core_fixture f;
        struct hf__record record;

        for (int way = 0; way < 4; way++) {
                core_fixture_lead(&f);
                record = f.sent;
                if (way == 0)
                        snprintf(record.holder, sizeof record.holder, "bing");
                else if (way == 1)
                        record.acquire_us++;
                else if (way == 2)
                        record.duration_s++;
                else
                        record.holder[0] = '\0';
                core_fixture_set_revision(&f, &record);
                core_fixture_watched(&f, &record);
                assert_int_equal(f.actions.list[0].type, HF__ACT_GATE_SHUT);
                assert_int_equal(f.actions.list[1].type, HF__ACT_TERM_ABORT);
                assert_int_equal(f.core.state, HF_ABORTING);
        }
}

/* Scenario of docs/parity.md: A10. */
static void test_a_deletion_ends_the_term_and_the_next_is_higher(void **state) {
        struct core_fixture f;
        struct hf__record gone = {0};
        uint64_t term;

        core_fixture_lead(&f);
        term = f.core.term;
        core_fixture_set_revision(&f, &gone);
        core_fixture_watched(&f, &gone);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_TERM_ABORT));
        assert_null(
                core_fixture_find_action(&f, HF__ACT_WRITE)); /* not before the work has joined */
        core_fixture_step(&f, HF__EV_JOINED);
        if (!core_fixture_find_action(&f, HF__ACT_WRITE))
                assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 3 * SEC));
        assert_false(f.sent.exists);
        assert_int_equal(f.sent.transitions, 1); /* the count survives the deletion of the Lease */
        core_fixture_write_done(&f, 0);
        assert_true(core_fixture_find_action(&f, HF__ACT_TERM_START)->term > term);
}

/* The server says so in its reply to the renewal, before any watch does. */
static void test_a_renewal_of_a_deleted_lease_ends_the_term(void **state) {
        static const int others[] = {HF_E_UNAVAILABLE, HF_E_TIMEOUT, HF_E_CONFLICT, HF_E_FORBIDDEN};
        struct core_fixture f;

        core_fixture_lead(&f);
        core_fixture_wait_for(&f, HF__ACT_WRITE, 2 * SEC);
        core_fixture_write_done(&f, HF_E_NOT_FOUND);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_TERM_ABORT));
        assert_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        assert_int_equal(f.core.state, HF_ABORTING);
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
                core_fixture_lead(&f);
                core_fixture_wait_for(&f, HF__ACT_WRITE, 2 * SEC);
                core_fixture_write_done(&f, others[i]);
                assert_null(core_fixture_find_action(&f, HF__ACT_TERM_ABORT));
                assert_int_equal(f.core.state, HF_LEADING);
        }
}

static void test_own_and_older_watch_events_change_nothing(void **state) {
        struct core_fixture f;
        struct hf__record old;

        core_fixture_lead(&f);
        old = f.sent;
        core_fixture_watched(&f, &old);
        assert_int_equal(f.core.state, HF_LEADING);
        snprintf(old.holder, sizeof old.holder, "bing");
        old.rv_number--;
        core_fixture_watched(&f, &old);
        assert_int_equal(f.core.state, HF_LEADING);
}

static void test_a_read_decides_where_revisions_are_opaque(void **state) {
        struct core_fixture f;
        struct hf__record other;

        core_fixture_lead(&f);
        other = f.sent;
        other.rv_number = 0;
        snprintf(other.rv, sizeof other.rv, "x1");
        other.holder[0] = '\0';
        f.now += SEC;
        core_fixture_watched(&f, &other);
        assert_int_equal(f.core.state, HF_LEADING);
        assert_int_equal(f.core.heard_at, f.now); /* the event shows that the server is there */
        assert_non_null(core_fixture_find_action(&f, HF__ACT_READ));
        core_fixture_read_done(&f, 0, &other);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_TERM_ABORT));
}

/* The process does not run from the abort until long after the stop grace, so its controllers had
 * no time to return. A tick that is a little late is no such pause. */
static void test_the_stop_grace_begins_anew_after_a_pause(void **state) {
        struct core_fixture f;

        for (hf_nsec late = 2 * SEC - 1; late <= 2 * SEC; late++) {
                core_fixture_lead(&f);
                core_fixture_step(&f, HF__EV_STALE_TERM);
                hf_nsec grace = f.core.config.timing.stop_grace;
                f.now += grace + late;
                core_fixture_step(&f, HF__EV_TICK);
                if (late < 2 * SEC) {
                        assert_int_equal(f.core.state, HF_STUCK);
                        continue;
                }
                assert_int_equal(f.core.state, HF_ABORTING);
                hf_nsec resumed = f.now;
                assert_non_null(core_fixture_wait_for(&f, HF__ACT_STUCK, grace));
                assert_int_equal(f.now, resumed + grace);
        }
}

/* Where the core is always woken 2 s late, a controller that never returns is reported too. */
static void test_the_stop_grace_begins_anew_three_times_at_most(void **state) {
        struct core_fixture f;

        core_fixture_lead(&f);
        core_fixture_step(&f, HF__EV_STALE_TERM);
        for (unsigned n = 0; n < 3; n++) {
                f.now = f.actions.wake_at + 2 * SEC;
                core_fixture_step(&f, HF__EV_TICK);
                assert_int_equal(f.core.state, HF_ABORTING);
                assert_int_equal(f.actions.wake_at, f.now + f.core.config.timing.stop_grace);
        }
        f.now = f.actions.wake_at + 2 * SEC;
        core_fixture_step(&f, HF__EV_TICK);
        assert_int_equal(f.core.state, HF_STUCK);
}

/* The loop runs late, but the controllers have returned, and the loop is about to say so. */
static void test_controllers_that_have_returned_are_not_stuck(void **state) {
        struct core_fixture f;

        core_fixture_lead(&f);
        core_fixture_step(&f, HF__EV_STALE_TERM);
        f.now += f.core.config.timing.stop_grace;
        f.event.joins = true;
        core_fixture_step(&f, HF__EV_STALE_TERM);
        assert_int_equal(f.core.state, HF_ABORTING);
        core_fixture_step(&f, HF__EV_JOINED);
        assert_int_equal(f.core.state, HF_FOLLOWING);
}

/* Scenarios of docs/parity.md: A04, A18. */
static void test_a_hung_store_ends_the_term_on_time(void **state) {
        struct core_fixture f;
        hf_nsec sent;

        core_fixture_lead(&f);
        sent = f.now;
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_GATE_SHUT, 10 * SEC));
        assert_int_equal(f.now, sent + 10 * SEC);
        assert_int_equal(f.actions.list[0].type, HF__ACT_GATE_SHUT);
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_STUCK,
                                              2500 * MSEC)); /* the work ignores its token */
        assert_int_equal(f.core.state, HF_STUCK);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_UNWATCH)); /* its watch is open */
        core_fixture_step(&f, HF__EV_JOINED);
        assert_int_equal(f.core.state, HF_STUCK);
        core_fixture_step(&f, HF__EV_STOP);
        assert_null(core_fixture_find_action(&f, HF__ACT_WRITE));
}

static void test_refused_renewals_are_retried_faster_before_the_deadline(void **state) {
        struct core_fixture f;
        hf_nsec last = 0, until;
        int n = 0;

        core_fixture_lead(&f);
        until = f.core.valid_until;
        while (core_fixture_wait_for(&f, HF__ACT_WRITE, 3 * SEC) && f.core.state == HF_LEADING) {
                if (last && n != 3)
                        assert_true(f.now - last <= 2 * SEC);
                last = f.now;
                f.event.retry_after = n == 2 ? 600 * SEC : 0; /* longer than anything else */
                core_fixture_write_done(&f, n % 2 ? HF_E_FORBIDDEN : HF_E_TOO_MANY);
                n++;
        }
        assert_true(n >= 5);
        assert_true(until - last < SEC);
}

/* The expiry is handled before the event, even before a good one. */
static void test_a_paused_leader_wakes_with_its_gate_shut(void **state) {
        struct core_fixture f;

        core_fixture_lead(&f);
        core_fixture_wait_for(&f, HF__ACT_WRITE, 2 * SEC);
        f.now += 20 * SEC;
        core_fixture_write_done(&f, 0);
        assert_int_equal(f.actions.list[0].type, HF__ACT_GATE_SHUT);
        assert_null(core_fixture_find_action(&f, HF__ACT_EXTEND));
        assert_int_equal(f.core.state, HF_ABORTING);
}

/* Scenario of docs/parity.md: A14. */
static void test_a_stale_term_ends_the_term(void **state) {
        static const struct {
                int error;
                const char *why;
        } cases[] = {{HF_E_STALE_TERM, "a write was refused: the term is stale"},
                     {HF_E_UNFENCED, "the server did not confirm the fence of a write"},
                     {-ENOMEM, "its controllers could not start"},
                     {0, "the embedder ended it"}};
        struct core_fixture f;

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                core_fixture_lead(&f);
                f.event.result = cases[i].error;
                core_fixture_step(&f, HF__EV_STALE_TERM);
                assert_int_equal(f.actions.list[0].type, HF__ACT_GATE_SHUT);
                assert_string_equal(core_fixture_find_action(&f, HF__ACT_TERM_ABORT)->text,
                                    cases[i].why);
                assert_string_equal(f.core.last_end, cases[i].why);
        }
}

static void set_odd_rv(struct hf__record *record, const char *rv) {
        record->rv_number = 0;
        snprintf(record->rv, sizeof record->rv, "%s", rv);
}

/*
 * If revisions are not numbers, a watch event during an acquire may be older or newer than the
 * reply: a read decides.
 */
static void test_without_numeric_revisions_an_overtaken_acquire_is_read_again(void **state) {
        struct core_fixture f;

        core_fixture_start(&f);
        core_fixture_read_done(&f, HF_E_NOT_FOUND, NULL);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        struct hf__record other = core_fixture_held_by(&f, "other", 15);
        set_odd_rv(&other, "x1");
        core_fixture_watched(&f, &other);
        f.event.op_id = f.core.op_id;
        f.event.record = f.sent;
        f.event.record.exists = true;
        set_odd_rv(&f.event.record, "x0");
        core_fixture_step(&f, HF__EV_WRITE_DONE);
        /* The core reads at once, although the outcome of the acquire is not certain. */
        assert_non_null(core_fixture_find_action(&f, HF__ACT_READ));
        core_fixture_read_done(&f, 0, &other);
        assert_int_not_equal(f.core.state, HF_LEADING);
}

/* Scenario of docs/parity.md: A19. */
static void test_the_backoff_grows_and_resets(void **state) {
        struct core_fixture f;
        hf_nsec ended, pause[3];

        core_fixture_lead(&f);
        for (int i = 0; i < 3; i++) {
                core_fixture_step(&f, HF__EV_STALE_TERM);
                ended = f.now;
                core_fixture_step(&f, HF__EV_JOINED);
                assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 30 * SEC));
                pause[i] = f.now - ended;
                core_fixture_write_done(&f, 0);
        }
        assert_true(pause[0] >= 2 * SEC && pause[1] >= 4 * SEC && pause[2] >= 8 * SEC &&
                    pause[2] <= 18 * SEC);
        for (int i = 0; i < 8; i++) {
                core_fixture_wait_for(&f, HF__ACT_WRITE, 2 * SEC);
                core_fixture_write_done(&f, 0);
        }
        core_fixture_step(&f, HF__EV_STALE_TERM);
        core_fixture_step(&f, HF__EV_JOINED);
        /* The known state of the Lease is in doubt. */
        assert_non_null(core_fixture_find_action(&f, HF__ACT_READ));
        core_fixture_reads_the_known(&f);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
}

/* Loses the term at once, and returns how long the core waits before it acquires again. */
static hf_nsec pause_after_a_short_term(struct core_fixture *f) {
        core_fixture_step(f, HF__EV_STALE_TERM);
        hf_nsec ended = f->now;
        core_fixture_step(f, HF__EV_JOINED);
        core_fixture_reads_the_known(f);
        assert_non_null(core_fixture_wait_for(f, HF__ACT_WRITE, 30 * SEC));
        hf_nsec pause = f->now - ended;
        core_fixture_write_done(f, 0);
        return pause;
}

static void test_a_long_term_that_is_handed_over_resets_the_backoff(void **state) {
        for (int is_long = 0; is_long < 2; is_long++) {
                struct core_fixture f;
                core_fixture_lead(&f);
                (void)pause_after_a_short_term(&f);
                hf_nsec until = f.now + 15 * SEC - !is_long; /* the lease duration */
                while (until - f.now > 2 * SEC) {
                        assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 2 * SEC));
                        core_fixture_write_done(&f, 0);
                }
                f.now = until;
                core_fixture_hand_over(&f, "other");
                core_fixture_step(&f, HF__EV_JOINED);
                core_fixture_write_done(&f, 0); /* the release */
                assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 5 * SEC));
                core_fixture_write_done(&f, 0);
                assert_int_equal(f.core.state, HF_LEADING);
                hf_nsec pause = pause_after_a_short_term(&f);
                assert_true(is_long ? pause < 3 * SEC : pause >= 4 * SEC);
        }
}

/* A hundred electors acquire at the same moment. Two retry periods later their renewals are as far
 * apart as their phases are, and none was late or in haste. */
static void test_renewals_that_begin_together_spread_over_the_retry_period(void **state) {
        const hf_nsec period = 2 * SEC;
        unsigned n_in[10] = {0};

        for (int i = 0; i < 100; i++) {
                struct core_fixture f;
                core_fixture_start(&f);
                f.core.config.renew_phase = 1 + i * (period / 100);
                core_fixture_read_done(&f, HF_E_NOT_FOUND, NULL);
                core_fixture_write_done(&f, 0);
                hf_nsec begin = f.now;
                while (f.now < begin + 2 * period) {
                        hf_nsec last = f.now;
                        assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, period));
                        assert_true(f.now - last >= period / 2 && f.now - last <= period);
                        core_fixture_write_done(&f, 0);
                }
                assert_true(f.now % period == f.core.config.renew_phase % period);
                n_in[f.now % period / (period / 10)]++;
        }
        for (int i = 0; i < 10; i++)
                assert_int_equal(n_in[i], 10);
}

static void test_the_backoff_is_limited_by_the_lease_duration(void **state) {
        struct core_fixture f;
        hf_nsec day = 86400 * SEC;

        core_fixture_lead(&f);
        f.core.config.timing = (struct hf_leader_timing){.lease_duration = 100 * day,
                                                         .renew_deadline = 50 * day,
                                                         .retry_period = 10 * day,
                                                         .request_timeout = 5 * SEC,
                                                         .stop_grace = SEC,
                                                         .drain_deadline = SEC};
        for (int i = 0; i < 40; i++) {
                core_fixture_step(&f, HF__EV_STALE_TERM);
                hf_nsec ended = f.now;
                core_fixture_step(&f, HF__EV_JOINED);
                assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 200 * day));
                assert_true(f.now - ended >= (i < 3 ? 10 * day : 80 * day) &&
                            f.now - ended <= 120 * day);
                core_fixture_write_done(&f, 0);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_renewal_is_one_write_per_period),
                cmocka_unit_test(test_after_a_conflict_a_lease_that_is_still_mine_is_kept),
                cmocka_unit_test(test_a_lost_reply_is_neither_failure_nor_success),
                cmocka_unit_test(test_a_record_of_another_holder_ends_the_term_at_once),
                cmocka_unit_test(test_a_deletion_ends_the_term_and_the_next_is_higher),
                cmocka_unit_test(test_a_renewal_of_a_deleted_lease_ends_the_term),
                cmocka_unit_test(test_own_and_older_watch_events_change_nothing),
                cmocka_unit_test(test_a_read_decides_where_revisions_are_opaque),
                cmocka_unit_test(test_the_stop_grace_begins_anew_after_a_pause),
                cmocka_unit_test(test_the_stop_grace_begins_anew_three_times_at_most),
                cmocka_unit_test(test_controllers_that_have_returned_are_not_stuck),
                cmocka_unit_test(test_a_hung_store_ends_the_term_on_time),
                cmocka_unit_test(test_refused_renewals_are_retried_faster_before_the_deadline),
                cmocka_unit_test(test_a_paused_leader_wakes_with_its_gate_shut),
                cmocka_unit_test(test_a_stale_term_ends_the_term),
                cmocka_unit_test(test_without_numeric_revisions_an_overtaken_acquire_is_read_again),
                cmocka_unit_test(test_the_backoff_grows_and_resets),
                cmocka_unit_test(test_a_long_term_that_is_handed_over_resets_the_backoff),
                cmocka_unit_test(test_renewals_that_begin_together_spread_over_the_retry_period),
                cmocka_unit_test(test_the_backoff_is_limited_by_the_lease_duration),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
