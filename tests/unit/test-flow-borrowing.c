/* SPDX-License-Identifier: Apache-2.0 */
/* How the seats of the server are divided among the priority levels. */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "server/flow/core/borrowing.h"
#include "server/flow/core/seat_demand.h"
#include "server/flow/flow_level_spec.h"

#define SEC HF_NSEC_PER_SEC

/* Kubernetes' own levels: exempt, leader-election, node-high, system, workload-high, workload-low,
 * global-default, catch-all. */
static const struct hfd_level_shares own[] = {{true, 0, 0, -1},    {false, 10, 0, -1},
                                              {false, 40, 25, -1}, {false, 30, 33, -1},
                                              {false, 40, 50, -1}, {false, 100, 90, -1},
                                              {false, 20, 50, -1}, {false, 5, 0, -1}};
#define N (sizeof own / sizeof own[0])

static struct hfd_level_limits levels[N];

static void divide(void) {
        memset(levels, 0, sizeof levels);
        for (size_t i = 0; i < N; i++) {
                hfd_borrowing_nominal(&own[i], 245, 600, &levels[i]);
                levels[i].current = hfd_borrowing_first(&levels[i]);
        }
}

/* The expected limits are those that kube-apiserver shows with its default flags. */
static void test_the_nominal_limits_are_those_of_kubernetes(void **state) {
        static const unsigned nominal[N] = {0, 25, 98, 74, 98, 245, 49, 13},
                              lower[N] = {0, 25, 73, 50, 49, 24, 24, 13};

        divide();
        for (size_t i = 0; i < N; i++) {
                assert_int_equal(levels[i].nominal, nominal[i]);
                assert_int_equal(levels[i].lower, lower[i]);
                assert_int_equal(levels[i].upper, nominal[i] + 600);
        }
        assert_int_equal(levels[5].current, 135);
}

static void test_a_busy_level_borrows_from_idle_ones(void **state) {
        unsigned sum = 0;

        divide();
        levels[6].high_watermark = 300; /* global-default */
        levels[6].smoothed = 280;
        assert_true(hfd_borrowing_adjust(levels, N) > 0);
        for (size_t i = 1; i < N; i++) {
                assert_true(levels[i].current >= levels[i].lower);
                assert_true(levels[i].current <= levels[i].upper);
                sum += levels[i].current;
        }
        /* All seats are given out, and the busy level has nearly all that can be lent. */
        assert_true(sum >= 600 && sum <= 604);
        assert_true(levels[6].current > 280);
        assert_int_equal(levels[0].current, 0);
}

/* A level never loses seats that it wants, up to its nominal limit. */
static void test_a_level_that_wants_its_seats_keeps_them(void **state) {
        divide();
        for (size_t i = 1; i < N; i++) {
                levels[i].high_watermark = 500;
                levels[i].smoothed = 500;
        }
        (void)hfd_borrowing_adjust(levels, N);
        for (size_t i = 1; i < N; i++)
                assert_int_equal(levels[i].current, levels[i].nominal);
}

static void test_exempt_requests_take_from_what_is_lendable(void **state) {
        divide();
        for (size_t i = 1; i < N; i++)
                levels[i].high_watermark = levels[i].nominal;
        levels[0].high_watermark = 100;
        assert_true(hfd_borrowing_adjust(levels, N) == 0);
        assert_int_equal(levels[0].current, 100);
        unsigned sum = 0;
        for (size_t i = 1; i < N; i++) {
                assert_true(levels[i].current >= levels[i].lower);
                sum += levels[i].current;
        }
        assert_true(sum >= 498 && sum <= 506); /* 602 - 100 */
        levels[0].high_watermark = UINT64_MAX;
        (void)hfd_borrowing_adjust(levels, N);
        for (size_t i = 1; i < N; i++)
                assert_int_equal(levels[i].current, levels[i].lower);
}

static void test_borrowing_has_a_limit(void **state) {
        const struct hfd_level_shares shares = {false, 50, 0, 20};
        struct hfd_level_limits limits = {0};

        hfd_borrowing_nominal(&shares, 100, 600, &limits);
        assert_int_equal(limits.upper, 360);
        assert_int_equal(hfd_borrowing_max_width(245, 6), 37);
        assert_int_equal(hfd_borrowing_max_width(13, 8), 1);
        assert_int_equal(hfd_borrowing_max_width(0, 8), 1);
}

static void test_demand_is_measured_over_time(void **state) {
        struct hfd_seat_demand demand;

        hfd_seat_demand_init(&demand, 0);
        hfd_seat_demand_set(&demand, 10, 0);
        hfd_seat_demand_set(&demand, 0, 5 * SEC);
        hfd_seat_demand_end_period(&demand, 10 * SEC);
        assert_int_equal(demand.high_watermark, 10);
        assert_true(demand.average > 4.99 && demand.average < 5.01);
        assert_true(demand.deviation > 4.99 && demand.deviation < 5.01);
        assert_true(demand.smoothed > 9.99 && demand.smoothed < 10.01);
        hfd_seat_demand_end_period(&demand, 20 * SEC); /* idle: it falls slowly */
        assert_int_equal(demand.high_watermark, 0);
        assert_true(demand.smoothed > 9.7 && demand.smoothed < 9.8);
        hfd_seat_demand_end_period(&demand, 20 * SEC); /* no time has passed */
        assert_true(demand.smoothed > 9.7);
}

/* ---- levels from objects ---- */

static bool read_spec(const char *text, struct hfd_flow_level_spec *ret_spec) {
        struct hf__json *json = NULL;

        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        bool good = hfd_flow_level_spec_read(json, ret_spec);
        hf__json_free(json);
        return good;
}

static void test_levels_are_read(void **state) {
        struct hfd_flow_level_spec spec;

        assert_true(read_spec("{\"spec\":{\"type\":\"Exempt\",\"exempt\":{\"lendablePercent\":7}}}",
                              &spec));
        assert_true(spec.shares.is_exempt && spec.shares.shares == 0);
        assert_int_equal(spec.shares.lendable_percent, 7);
        assert_int_equal(spec.queues.kind, HFD_LEVEL_EXEMPT);
        assert_true(read_spec("{\"spec\":{\"type\":\"Limited\",\"limited\":{\"limitResponse\":{"
                              "\"type\":\"Reject\"},\"borrowingLimitPercent\":0}}}",
                              &spec));
        assert_true(spec.shares.shares == 30 && spec.shares.borrowing_percent == 0);
        assert_int_equal(spec.queues.kind, HFD_LEVEL_REJECT);
        assert_true(read_spec("{\"spec\":{\"type\":\"Limited\",\"limited\":{"
                              "\"nominalConcurrencyShares\":0,\"limitResponse\":{"
                              "\"type\":\"Queue\",\"queuing\":{\"queues\":5,\"handSize\":2}}}}}",
                              &spec));
        assert_int_equal(spec.shares.shares, 0);
        assert_true(spec.shares.borrowing_percent == -1 && spec.queues.n_queues == 5 &&
                    spec.queues.n_hand == 2 && spec.queues.max_length == 50);
}

/* The store may hold anything. */
static void test_a_malformed_level_is_absent(void **state) {
        static const char *const texts[] =
                {"{}",
                 "{\"spec\":{\"type\":\"Limited\"}}",
                 "{\"spec\":{\"type\":\"Other\"}}",
                 "{\"spec\":{\"type\":\"Exempt\",\"exempt\":{\"lendablePercent\":101}}}",
                 "{\"spec\":{\"type\":\"Limited\",\"limited\":{\"nominalConcurrencyShares\":-1,"
                 "\"limitResponse\":{\"type\":\"Reject\"}}}}",
                 "{\"spec\":{\"type\":\"Limited\",\"limited\":{\"limitResponse\":{\"type\":"
                 "\"Queue\","
                 "\"queuing\":{\"queues\":0}}}}}"};
        struct hfd_flow_level_spec spec;

        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
                assert_false(read_spec(texts[i], &spec));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_nominal_limits_are_those_of_kubernetes),
                cmocka_unit_test(test_a_busy_level_borrows_from_idle_ones),
                cmocka_unit_test(test_a_level_that_wants_its_seats_keeps_them),
                cmocka_unit_test(test_exempt_requests_take_from_what_is_lendable),
                cmocka_unit_test(test_borrowing_has_a_limit),
                cmocka_unit_test(test_demand_is_measured_over_time),
                cmocka_unit_test(test_levels_are_read),
                cmocka_unit_test(test_a_malformed_level_is_absent),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
