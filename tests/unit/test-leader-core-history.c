/* SPDX-License-Identifier: Apache-2.0 */
/* The elector's core: what an acquire records about the previous term. */
#undef NDEBUG
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

static void assert_cause(const struct core_fixture *f, enum hf__cause cause, const char *previous,
                         int64_t gap_us) {
        assert_non_null(core_fixture_find_action(f, HF__ACT_WRITE));
        assert_int_equal(f->sent.cause, cause);
        assert_string_equal(f->sent.previous, previous);
        assert_int_equal(f->sent.gap_us, gap_us);
}

static void test_an_acquire_records_its_cause(void **state) {
        struct core_fixture f;
        struct hf__record record, gone = {0};

        core_fixture_start(&f);
        core_fixture_read_done(&f, HF_E_NOT_FOUND, NULL);
        assert_cause(&f, HF__CAUSE_CREATED, "", 0);

        core_fixture_start(&f);
        record = core_fixture_held_by(&f, "bing", 3);
        record.renew_us = f.now / 1000 - 250000;
        core_fixture_read_done(&f, 0, &record);
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 3 * SEC));
        assert_cause(&f, HF__CAUSE_EXPIRED, "bing", 3250000);

        record = core_fixture_start_behind(&f, "bing", 15);
        record = core_fixture_held_by(&f, "", 1);
        record.renew_us = f.now / 1000;
        f.now += 8 * MSEC;
        core_fixture_watched(&f, &record);
        assert_cause(&f, HF__CAUSE_RELEASED, "bing", 8000);

        core_fixture_start(&f);
        record = core_fixture_held_by(&f, "", 1);
        snprintf(record.successor, sizeof record.successor, "baz");
        record.renew_us =
                f.now / 1000 + 5000; /* its clock is ahead of ours: the gap is never negative */
        core_fixture_read_done(&f, 0, &record);
        assert_cause(&f, HF__CAUSE_HANDED_OVER, "", 0);

        core_fixture_start(&f);
        record = core_fixture_held_by(&f, "bing", 15);
        record.renew_us = f.now / 1000;
        core_fixture_read_done(&f, 0, &record);
        f.now += 2 * MSEC;
        core_fixture_set_revision(&f, &gone);
        core_fixture_watched(&f, &gone);
        assert_cause(&f, HF__CAUSE_DELETED, "bing", 2000);
}

static void test_only_an_acquire_has_a_cause(void **state) {
        struct core_fixture f;

        core_fixture_lead(&f);
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 2 * SEC));
        assert_int_equal(f.sent.cause, HF__CAUSE_NONE);
        core_fixture_write_done(&f, 0);
        core_fixture_step(&f, HF__EV_STOP);
        core_fixture_step(&f, HF__EV_JOINED);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        assert_string_equal(f.sent.holder, "");
        assert_int_equal(f.sent.cause, HF__CAUSE_NONE);
        assert_string_equal(f.sent.previous, "");
}

/* Scenario of docs/parity.md: ET03. */
static void test_a_term_lost_and_acquired_again_is_recorded_as_regained(void **state) {
        struct core_fixture f;

        core_fixture_lead(&f);
        assert_int_equal(f.core.term_record.cause, HF__CAUSE_CREATED);
        core_fixture_step(&f, HF__EV_STALE_TERM);
        core_fixture_step(&f, HF__EV_JOINED);
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 15 * SEC));
        assert_int_equal(f.sent.cause, HF__CAUSE_REGAINED);
        assert_string_equal(f.sent.previous, "baz");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_an_acquire_records_its_cause),
                cmocka_unit_test(test_only_an_acquire_has_a_cause),
                cmocka_unit_test(test_a_term_lost_and_acquired_again_is_recorded_as_regained),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
