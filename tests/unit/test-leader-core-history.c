/* SPDX-License-Identifier: Apache-2.0 */
/* The elector's core: what an acquire says of what went before. */
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

#include "tests/lib/core_rig.h"

static void assert_cause(const struct rig *rig, enum hf__cause cause, const char *previous,
                         int64_t gap_us) {
        assert_non_null(did(rig, HF__ACT_WRITE));
        assert_int_equal(rig->sent.cause, cause);
        assert_string_equal(rig->sent.previous, previous);
        assert_int_equal(rig->sent.gap_us, gap_us);
}

static void test_an_acquire_says_what_it_follows_on(void **state) {
        struct rig rig;
        struct hf__record record, gone = {0};

        start(&rig);
        answer_read(&rig, HF_E_NOT_FOUND, NULL);
        assert_cause(&rig, HF__CAUSE_CREATED, "", 0);

        start(&rig);
        record = held_by(&rig, "bing", 3);
        record.renew_us = rig.now / 1000 - 250000;
        answer_read(&rig, 0, &record);
        assert_non_null(wait_for(&rig, HF__ACT_WRITE, 3 * S));
        assert_cause(&rig, HF__CAUSE_EXPIRED, "bing", 3250000);

        start(&rig);
        record = held_by(&rig, "bing", 15);
        answer_read(&rig, 0, &record);
        record = held_by(&rig, "", 1);
        record.renew_us = rig.now / 1000;
        rig.now += 8 * MS;
        watch(&rig, &record);
        assert_cause(&rig, HF__CAUSE_RELEASED, "bing", 8000);

        start(&rig);
        record = held_by(&rig, "", 1);
        snprintf(record.successor, sizeof record.successor, "baz");
        record.renew_us =
                rig.now / 1000 + 5000; /* its clock is ahead of ours: never less than nothing */
        answer_read(&rig, 0, &record);
        assert_cause(&rig, HF__CAUSE_HANDED_OVER, "", 0);

        start(&rig);
        record = held_by(&rig, "bing", 15);
        record.renew_us = rig.now / 1000;
        answer_read(&rig, 0, &record);
        rig.now += 2 * MS;
        set_rv(&rig, &gone);
        watch(&rig, &gone);
        assert_cause(&rig, HF__CAUSE_DELETED, "bing", 2000);
}

static void test_only_an_acquire_has_a_cause(void **state) {
        struct rig rig;

        lead(&rig);
        assert_non_null(wait_for(&rig, HF__ACT_WRITE, 2 * S));
        assert_int_equal(rig.sent.cause, HF__CAUSE_NONE);
        answer_write(&rig, 0);
        step(&rig, HF__EV_STOP);
        step(&rig, HF__EV_JOINED);
        assert_non_null(did(&rig, HF__ACT_WRITE));
        assert_string_equal(rig.sent.holder, "");
        assert_int_equal(rig.sent.cause, HF__CAUSE_NONE);
        assert_string_equal(rig.sent.previous, "");
}

static void test_a_term_lost_and_taken_again_is_regained(void **state) { /* ET03 */
        struct rig rig;

        lead(&rig);
        assert_int_equal(rig.core.mine.cause, HF__CAUSE_CREATED);
        step(&rig, HF__EV_STALE_TERM);
        step(&rig, HF__EV_JOINED);
        assert_non_null(wait_for(&rig, HF__ACT_WRITE, 15 * S));
        assert_int_equal(rig.sent.cause, HF__CAUSE_REGAINED);
        assert_string_equal(rig.sent.previous, "baz");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_an_acquire_says_what_it_follows_on),
                cmocka_unit_test(test_only_an_acquire_has_a_cause),
                cmocka_unit_test(test_a_term_lost_and_taken_again_is_regained),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
