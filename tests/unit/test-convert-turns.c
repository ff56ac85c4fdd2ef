/* SPDX-License-Identifier: Apache-2.0 */
/* Turns of watches at conversion webhooks: their limits, and the order of those that wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/registry/base/convert_turns.h"
#include "server/resources/custom/custom_kind.h"

static struct hfd_convert_turns turns;
static struct hfd_custom_kind kinds[8];

static int setup(void **state) {
        for (size_t i = 0; i < 8; i++)
                kinds[i].n_watch_conversions = 0;
        return hfd_convert_turns_init(&turns);
}

static int teardown(void **state) {
        hfd_convert_turns_done(&turns);
        return 0;
}

static void test_a_kind_that_is_full_holds_no_other(void **state) {
        static struct hfd_convert_turn a[HFD_CONVERT_TURNS_OF_KIND + 2], b;

        for (size_t i = 0; i < HFD_CONVERT_TURNS_OF_KIND + 2; i++) {
                a[i].kind = &kinds[0];
                assert_int_equal(hfd_convert_turns_enter(&turns, &a[i]),
                                 i < HFD_CONVERT_TURNS_OF_KIND ? HFD_CONVERT_BEGINS
                                                               : HFD_CONVERT_WAITS);
        }
        b.kind = &kinds[1];
        assert_int_equal(hfd_convert_turns_enter(&turns, &b), HFD_CONVERT_BEGINS);
        /* a turn of another kind makes no room for this one */
        assert_null(hfd_convert_turns_leave(&turns, &kinds[1]));
        assert_ptr_equal(hfd_convert_turns_leave(&turns, &kinds[0]), &a[HFD_CONVERT_TURNS_OF_KIND]);
        assert_ptr_equal(hfd_convert_turns_leave(&turns, &kinds[0]),
                         &a[HFD_CONVERT_TURNS_OF_KIND + 1]);
        for (size_t i = 0; i < HFD_CONVERT_TURNS_OF_KIND; i++)
                assert_null(hfd_convert_turns_leave(&turns, &kinds[0]));
        assert_int_equal(turns.n, 0);
}

static void test_all_kinds_together_have_a_limit(void **state) {
        static struct hfd_convert_turn some[HFD_CONVERT_TURNS], late[2];

        for (size_t i = 0; i < HFD_CONVERT_TURNS; i++) {
                some[i].kind = &kinds[i % 8];
                assert_int_equal(hfd_convert_turns_enter(&turns, &some[i]), HFD_CONVERT_BEGINS);
        }
        for (size_t i = 0; i < 2; i++) {
                late[i].kind = &kinds[i];
                assert_int_equal(hfd_convert_turns_enter(&turns, &late[i]), HFD_CONVERT_WAITS);
        }
        /* each leave lets the first waiting turn go on */
        assert_ptr_equal(hfd_convert_turns_leave(&turns, &kinds[7]), &late[0]);
        assert_ptr_equal(hfd_convert_turns_leave(&turns, &kinds[7]), &late[1]);
        for (size_t i = 0; i < HFD_CONVERT_TURNS; i++)
                if (kinds[i % 8].n_watch_conversions > 0)
                        assert_null(hfd_convert_turns_leave(&turns, &kinds[i % 8]));
        for (size_t i = 0; i < 8; i++)
                while (kinds[i].n_watch_conversions > 0)
                        assert_null(hfd_convert_turns_leave(&turns, &kinds[i]));
        assert_int_equal(turns.n, 0);
}

/* While a webhook hangs, clients begin and end watches: those that have ended leave the list. */
static void test_a_turn_that_is_canceled_waits_no_more(void **state) {
        static struct hfd_convert_turn some[HFD_CONVERT_TURNS_OF_KIND], late[3], again;

        for (size_t i = 0; i < HFD_CONVERT_TURNS_OF_KIND; i++) {
                some[i].kind = &kinds[0];
                assert_int_equal(hfd_convert_turns_enter(&turns, &some[i]), HFD_CONVERT_BEGINS);
        }
        assert_false(
                hfd_convert_turns_cancel(&turns,
                                         &some[0])); /* no effect: this one has its turn already */
        for (size_t i = 0; i < 3; i++) {
                late[i].kind = &kinds[0];
                assert_int_equal(hfd_convert_turns_enter(&turns, &late[i]), HFD_CONVERT_WAITS);
        }
        assert_true(hfd_convert_turns_cancel(&turns, &late[2])); /* the last */
        assert_true(hfd_convert_turns_cancel(&turns, &late[0])); /* the first */
        assert_false(hfd_convert_turns_cancel(&turns, &late[0]));
        assert_int_equal(hfd_convert_turns_enter(&turns, &late[0]), HFD_CONVERT_CANCELED);
        again.kind = &kinds[0];
        assert_int_equal(hfd_convert_turns_enter(&turns, &again), HFD_CONVERT_WAITS);
        assert_ptr_equal(hfd_convert_turns_leave(&turns, &kinds[0]), &late[1]);
        assert_ptr_equal(hfd_convert_turns_leave(&turns, &kinds[0]), &again);
        for (size_t i = 0; i < HFD_CONVERT_TURNS_OF_KIND; i++)
                assert_null(hfd_convert_turns_leave(&turns, &kinds[0]));
        assert_int_equal(turns.n, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_a_kind_that_is_full_holds_no_other),
                TEST(test_all_kinds_together_have_a_limit),
                TEST(test_a_turn_that_is_canceled_waits_no_more),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
