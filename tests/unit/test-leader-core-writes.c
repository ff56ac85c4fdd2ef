/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The elector's core and writes of a term whose outcome is unknown when its controllers have
 * returned (rule 13). A Lease of 15 s with a renew deadline of 10 s leaves 5 s to the last write of
 * its holder. A release has 10 s.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core_fixture.h"

static void step_doubt(struct core_fixture *f, enum hf__core_event_type type, hf_nsec doubt_at) {
        f->event.doubt_at = doubt_at;
        core_fixture_step(f, type);
}

static bool releases(const struct core_fixture *f) {
        const struct hf__core_action *action = core_fixture_find_action(f, HF__ACT_WRITE);

        return action && action->record.holder[0] == '\0';
}

static void test_a_release_waits_as_long_as_an_expiry_would(void **state) {
        struct core_fixture f;

        core_fixture_lead(&f);
        hf_nsec doubt_at = f.now + SEC;
        f.now += 2 * SEC;
        core_fixture_step(&f, HF__EV_STOP);
        step_doubt(&f, HF__EV_JOINED, doubt_at);
        assert_int_equal(f.core.state, HF_RELEASING);
        assert_false(releases(&f));
        assert_int_equal(f.core.valid_until, 0); /* the gate is shut all the same */
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 10 * SEC));
        assert_true(releases(&f));
        assert_int_equal(f.now, doubt_at + 5 * SEC);
        core_fixture_write_done(&f, 0);
        assert_true(core_fixture_find_action(&f, HF__ACT_STOPPED)->released);
}

static void test_an_old_doubt_delays_nothing(void **state) {
        struct core_fixture f;

        core_fixture_lead(&f);
        hf_nsec doubt_at = f.now;
        f.now += 5 * SEC;
        core_fixture_step(&f, HF__EV_STOP);
        core_fixture_write_done(&f, 0); /* a renewal was due */
        step_doubt(&f, HF__EV_JOINED, doubt_at);
        assert_true(releases(&f));
}

static void test_a_release_follows_the_last_answer(void **state) {
        struct core_fixture f;

        core_fixture_lead(&f);
        core_fixture_step(&f, HF__EV_STOP);
        step_doubt(&f, HF__EV_JOINED, HF_NSEC_NEVER);
        f.now += SEC;
        core_fixture_step(&f, HF__EV_TICK);
        assert_false(releases(&f));
        step_doubt(&f, HF__EV_SETTLED, 0);
        assert_true(releases(&f));
        core_fixture_write_done(&f, 0);
        assert_true(core_fixture_find_action(&f, HF__ACT_STOPPED)->released);
}

/* The last write ends without a response. The core waits until it can no longer take effect. */
static void test_an_end_without_an_answer_begins_the_wait(void **state) {
        struct core_fixture f;

        core_fixture_lead(&f);
        core_fixture_step(&f, HF__EV_STOP);
        step_doubt(&f, HF__EV_JOINED, HF_NSEC_NEVER);
        f.now += SEC;
        hf_nsec doubt_at = f.now;
        step_doubt(&f, HF__EV_SETTLED, doubt_at);
        assert_false(releases(&f));
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 10 * SEC));
        assert_int_equal(f.now, doubt_at + 5 * SEC);
}

static void test_the_wait_ends_with_the_time_of_the_release(void **state) {
        struct core_fixture f;

        core_fixture_lead(&f);
        core_fixture_step(&f, HF__EV_STOP);
        hf_nsec joined_at = f.now;
        step_doubt(&f, HF__EV_JOINED, HF_NSEC_NEVER);
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_STOPPED, 15 * SEC));
        assert_false(core_fixture_find_action(&f, HF__ACT_STOPPED)->released);
        assert_int_equal(f.now, joined_at + 10 * SEC);
}

/* A lost Lease cannot be released, so the core does not wait. */
static void test_a_lost_lease_is_not_waited_for(void **state) {
        struct core_fixture f;

        core_fixture_lead(&f);
        struct hf__record other = core_fixture_held_by(&f, "bing", 15);
        core_fixture_watched(&f, &other);
        assert_int_equal(f.core.state, HF_ABORTING);
        core_fixture_step(&f, HF__EV_STOP);
        step_doubt(&f, HF__EV_JOINED, f.now);
        assert_true(core_fixture_find_action(&f, HF__ACT_STOPPED)->released);
}

static void test_the_next_term_begins_after_the_writes_of_the_last(void **state) {
        struct core_fixture f;

        core_fixture_lead(&f);
        f.now += 20 * SEC; /* a long pause */
        core_fixture_step(&f, HF__EV_TICK);
        assert_int_equal(f.core.state, HF_ABORTING);
        hf_nsec doubt_at = f.now;
        step_doubt(&f, HF__EV_JOINED, doubt_at);
        assert_int_equal(f.core.state, HF_FOLLOWING);
        if (core_fixture_find_action(&f, HF__ACT_READ))
                core_fixture_read_done(&f, 0, &f.lease);
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 30 * SEC));
        assert_string_equal(f.sent.holder, "baz");
        assert_int_equal(f.now, doubt_at + 5 * SEC);
}

/* A hand-over that cannot release ends in time too, and the process may lead again. */
static void test_a_hand_over_with_a_hanging_write_ends(void **state) {
        struct core_fixture f;

        core_fixture_lead(&f);
        core_fixture_hand_over(&f, "bing");
        hf_nsec joined_at = f.now;
        step_doubt(&f, HF__EV_JOINED, HF_NSEC_NEVER);
        assert_int_equal(f.core.state, HF_RELEASING);
        while (f.core.state == HF_RELEASING) {
                assert_true(f.actions.wake_at > f.now);
                f.now = f.actions.wake_at;
                core_fixture_step(&f, HF__EV_TICK);
                assert_false(releases(&f));
        }
        assert_int_equal(f.core.state, HF_FOLLOWING);
        assert_int_equal(f.now, joined_at + 10 * SEC);
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 30 * SEC));
        assert_string_equal(f.sent.holder, "baz");
        assert_true(f.now >= joined_at + 15 * SEC);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_release_waits_as_long_as_an_expiry_would),
                cmocka_unit_test(test_an_old_doubt_delays_nothing),
                cmocka_unit_test(test_a_release_follows_the_last_answer),
                cmocka_unit_test(test_an_end_without_an_answer_begins_the_wait),
                cmocka_unit_test(test_the_wait_ends_with_the_time_of_the_release),
                cmocka_unit_test(test_a_lost_lease_is_not_waited_for),
                cmocka_unit_test(test_the_next_term_begins_after_the_writes_of_the_last),
                cmocka_unit_test(test_a_hand_over_with_a_hanging_write_ends),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
