/* SPDX-License-Identifier: Apache-2.0 */
/* The elector's core and operations that have to wait before they are sent. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <holdfast/error.h>

#include "core_fixture.h"

static void step_unsent(struct core_fixture *f, enum hf__core_event_type type) {
        f->event.op_unsent = true;
        core_fixture_step(f, type);
}

/* Leads until a renewal is due. */
static void renew(struct core_fixture *f) {
        core_fixture_lead(f);
        assert_non_null(core_fixture_wait_for(f, HF__ACT_WRITE, 2 * SEC));
        assert_int_equal(f->core.op_kind, HF__OP_RENEW);
}

static void test_it_is_requested_again_at_its_deadline(void **state) {
        struct core_fixture f;

        renew(&f);
        f.now = f.core.op_deadline;
        step_unsent(&f, HF__EV_TICK);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        assert_int_equal(f.core.op_kind, HF__OP_RENEW);
        assert_false(f.core.in_doubt);
        assert_true(f.core.op_deadline > f.now);
}

/* An operation keeps its place in the queue only if each step requests it again. */
static void test_it_is_requested_again_at_any_event(void **state) {
        struct core_fixture f;

        renew(&f);
        f.now += SEC / 100;
        step_unsent(&f, HF__EV_WATCH_LOST);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        assert_int_equal(f.core.op_kind, HF__OP_RENEW);
}

static void test_validity_counts_from_the_sending(void **state) {
        struct core_fixture f;

        renew(&f);
        hf_nsec first_at = f.now;
        f.now += 3 * SEC;
        step_unsent(&f, HF__EV_TICK);
        f.now += SEC;
        core_fixture_write_done(&f, 0);
        assert_int_equal(core_fixture_find_action(&f, HF__ACT_EXTEND)->valid_until,
                         first_at + 3 * SEC + f.core.config.timing.renew_deadline);
}

static void test_a_release_does_not_wait_for_it(void **state) {
        struct core_fixture f;

        renew(&f);
        step_unsent(&f, HF__EV_STOP);
        step_unsent(&f, HF__EV_JOINED);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        assert_string_equal(f.sent.holder, "");
        core_fixture_write_done(&f, 0);
        assert_true(core_fixture_find_action(&f, HF__ACT_STOPPED)->released);
}

static void test_a_release_that_never_was_sent_leaves_no_doubt(void **state) {
        struct core_fixture f;

        core_fixture_lead(&f);
        core_fixture_step(&f, HF__EV_STOP);
        core_fixture_step(&f, HF__EV_JOINED);
        assert_string_equal(f.sent.holder, "");
        f.now = f.core.deadline.at;
        step_unsent(&f, HF__EV_TICK);
        assert_false(core_fixture_find_action(&f, HF__ACT_STOPPED)->released);
        assert_false(f.core.in_doubt);
}

static void test_a_stop_does_not_wait_for_an_acquire(void **state) {
        struct core_fixture f;

        core_fixture_start(&f);
        core_fixture_read_done(&f, HF_E_NOT_FOUND, NULL);
        assert_int_equal(f.core.op_kind, HF__OP_ACQUIRE);
        step_unsent(&f, HF__EV_STOP);
        assert_true(core_fixture_find_action(&f, HF__ACT_STOPPED)->released);
}

/* Another process has taken the Lease while the acquire waited. */
static void test_an_acquire_is_not_sent_if_it_is_of_no_use(void **state) {
        struct core_fixture f;
        struct hf__record record;

        core_fixture_start(&f);
        core_fixture_read_done(&f, HF_E_NOT_FOUND, NULL);
        record = core_fixture_held_by(&f, "qux", 15);
        f.event.op_unsent = true;
        core_fixture_watched(&f, &record);
        assert_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        assert_int_equal(f.core.op_kind, HF__OP_NONE);
}

static void test_a_stop_does_not_wait_for_the_first_read(void **state) {
        struct core_fixture f;

        core_fixture_start(&f);
        assert_int_equal(f.core.op_kind, HF__OP_READ);
        step_unsent(&f, HF__EV_STOP);
        assert_true(core_fixture_find_action(&f, HF__ACT_STOPPED)->released);
}

static void test_a_read_that_the_next_write_needs_is_still_needed(void **state) {
        struct core_fixture f;

        renew(&f);
        core_fixture_write_done(&f, HF_E_CONFLICT);
        assert_int_equal(f.core.op_kind, HF__OP_READ);
        f.now = f.core.op_deadline;
        step_unsent(&f, HF__EV_TICK);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_READ));
        assert_int_equal(f.core.n_failures, 1);
        core_fixture_read_done(&f, 0, &f.lease);
        assert_int_equal(f.core.op_kind, HF__OP_RENEW);
}

static void test_a_final_read_is_still_sent(void **state) {
        struct core_fixture f;
        struct hf__record record;

        core_fixture_start(&f);
        record = core_fixture_held_by(&f, "qux", 15);
        core_fixture_read_done(&f, 0, &record);
        core_fixture_watched(&f, &record);
        while (!f.core.op_is_final_read || f.core.op_kind != HF__OP_READ) {
                assert_non_null(core_fixture_wait_for(&f, HF__ACT_READ, 15 * SEC));
                if (!f.core.op_is_final_read)
                        core_fixture_read_done(&f, 0, &record);
        }
        step_unsent(&f, HF__EV_TICK);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_READ));
        assert_true(f.core.op_is_final_read);
}

static void test_an_earlier_doubt_remains(void **state) {
        struct core_fixture f;

        renew(&f);
        core_fixture_write_done(&f, HF_E_TIMEOUT);
        assert_true(f.core.in_doubt);
        step_unsent(&f, HF__EV_TICK);
        assert_true(f.core.in_doubt);
        assert_int_equal(f.core.op_kind, HF__OP_READ);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_it_is_requested_again_at_its_deadline),
                cmocka_unit_test(test_it_is_requested_again_at_any_event),
                cmocka_unit_test(test_validity_counts_from_the_sending),
                cmocka_unit_test(test_a_release_does_not_wait_for_it),
                cmocka_unit_test(test_a_release_that_never_was_sent_leaves_no_doubt),
                cmocka_unit_test(test_a_stop_does_not_wait_for_an_acquire),
                cmocka_unit_test(test_an_acquire_is_not_sent_if_it_is_of_no_use),
                cmocka_unit_test(test_a_stop_does_not_wait_for_the_first_read),
                cmocka_unit_test(test_a_read_that_the_next_write_needs_is_still_needed),
                cmocka_unit_test(test_a_final_read_is_still_sent),
                cmocka_unit_test(test_an_earlier_doubt_remains),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
