/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of one priority level: seats, queues, fairness, in times that the test chooses. */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/flow/core/dealer.h"
#include "server/flow/core/queue_set.h"
#include "server/flow/core/retry_after.h"
#include "server/flow/core/work_estimate.h"

#define MSEC HF_NSEC_PER_MSEC
#define SEC  HF_NSEC_PER_SEC
#define N    400

static struct hfd_queue_set set;
static struct hfd_seats seats[N];
static const struct hfd_queue_config queues = {.kind = HFD_LEVEL_QUEUE,
                                               .n_queues = 8,
                                               .n_hand = 1,
                                               .max_length = 3},
                                     reject = {.kind = HFD_LEVEL_REJECT},
                                     exempt = {.kind = HFD_LEVEL_EXEMPT};

static void start(const struct hfd_queue_config *config, unsigned limit) {
        memset(seats, 0, sizeof seats);
        assert_int_equal(hfd_queue_set_init(&set, config, limit, 0), 0);
}

/* Request i arrives. Its hash gives a hand with only this queue. */
static enum hfd_verdict arrive(size_t i, unsigned width, unsigned queue, hf_nsec now) {
        struct hfd_decisions decisions = {0};
        enum hfd_verdict verdict = hfd_queue_set_arrive(&set, &seats[i], width, queue, now,
                                                        now + 15 * SEC, &decisions);

        assert_null(decisions.granted);
        return verdict;
}

/* Request i leaves. Returns the first request that gets seats; N = none. */
static size_t leave(size_t i, hf_nsec now) {
        struct hfd_decisions decisions = {0};

        (void)hfd_queue_set_leave(&set, &seats[i], now, &decisions);
        assert_null(decisions.expired);
        return decisions.granted ? (size_t)(decisions.granted - seats) : N;
}

static void end(void) {
        for (size_t i = 0; i < N; i++)
                (void)leave(i, SEC);
        hfd_queue_set_done(&set);
}

static void test_a_full_level_refuses(void **state) {
        start(&reject, 2);
        assert_int_equal(arrive(0, 1, 0, 0), HFD_VERDICT_EXECUTE);
        assert_int_equal(arrive(1, 2, 0, 0), HFD_VERDICT_NO_SEATS);
        assert_int_equal(arrive(1, 1, 0, 0), HFD_VERDICT_EXECUTE);
        assert_int_equal(arrive(2, 1, 0, 0), HFD_VERDICT_NO_SEATS);
        assert_int_equal(leave(0, MSEC), N);
        assert_int_equal(arrive(2, 1, 0, MSEC), HFD_VERDICT_EXECUTE);
        assert_int_equal(set.n_rejected, 2);
        assert_int_equal(set.n_dispatched, 3);
        end();
}

static void test_an_exempt_level_has_no_limit(void **state) {
        start(&exempt, 0);
        for (size_t i = 0; i < N; i++)
                assert_int_equal(arrive(i, 10, 0, 0), HFD_VERDICT_EXECUTE);
        assert_int_equal(hfd_queue_set_demand(&set), 10 * N);
        end();
}

static void test_requests_wait_in_their_order(void **state) {
        start(&queues, 1);
        assert_int_equal(arrive(0, 1, 5, 0), HFD_VERDICT_EXECUTE);
        for (size_t i = 1; i <= 3; i++)
                assert_int_equal(arrive(i, 1, 5, 0), HFD_VERDICT_WAIT);
        assert_int_equal(arrive(4, 1, 5, 0), HFD_VERDICT_QUEUE_FULL);
        assert_int_equal(arrive(4, 1, 6, 0), HFD_VERDICT_WAIT); /* another queue has room */
        assert_int_equal(leave(4, MSEC), N);                    /* its client has left */
        assert_int_equal(leave(2, MSEC), N);
        assert_int_equal(leave(0, 2 * MSEC), 1);
        assert_int_equal(leave(1, 3 * MSEC), 3);
        assert_int_equal(leave(3, 4 * MSEC), N);
        assert_int_equal(set.n_cancelled, 2);
        end();
}

static void test_a_wide_request_waits_for_its_seats(void **state) {
        start(&queues, 4);
        assert_int_equal(arrive(0, 3, 0, 0), HFD_VERDICT_EXECUTE);
        assert_int_equal(arrive(1, 2, 1, 0), HFD_VERDICT_WAIT);
        assert_int_equal(arrive(2, 3, 2, 0), HFD_VERDICT_WAIT);
        assert_int_equal(leave(0, MSEC), 1);
        assert_int_equal(set.executing_seats, 2);
        assert_int_equal(leave(1, 2 * MSEC), 2);
        /* Wider than the limit: it runs, but alone. */
        assert_int_equal(arrive(3, 9, 3, 2 * MSEC), HFD_VERDICT_WAIT);
        assert_int_equal(leave(2, 3 * MSEC), 3);
        assert_int_equal(arrive(4, 1, 4, 3 * MSEC), HFD_VERDICT_WAIT);
        assert_int_equal(leave(3, 4 * MSEC), 4);
        end();
}

/* If a wide request that is next gives up, the requests behind it get the free seats. */
static void test_who_gives_up_lets_others_pass(void **state) {
        start(&queues, 2);
        assert_int_equal(arrive(0, 1, 0, 0), HFD_VERDICT_EXECUTE);
        assert_int_equal(arrive(1, 2, 1, 0), HFD_VERDICT_WAIT);
        assert_int_equal(arrive(2, 2, 1, 0), HFD_VERDICT_WAIT);
        assert_int_equal(arrive(3, 1, 1, 0), HFD_VERDICT_WAIT);
        assert_int_equal(leave(1, MSEC), N);
        assert_int_equal(leave(2, MSEC), 3);
        end();
}

static void test_nobody_waits_longer_than_allowed(void **state) {
        struct hfd_decisions decisions = {0};

        start(&queues, 1);
        assert_int_equal(hfd_queue_set_deadline(&set), HF_NSEC_NEVER);
        assert_int_equal(arrive(0, 1, 0, 0), HFD_VERDICT_EXECUTE);
        assert_int_equal(arrive(1, 1, 0, 0), HFD_VERDICT_WAIT);
        assert_int_equal(arrive(2, 1, 1, SEC), HFD_VERDICT_WAIT);
        assert_int_equal(hfd_queue_set_deadline(&set), 15 * SEC);
        hfd_queue_set_expire(&set, 15 * SEC - 1, &decisions);
        assert_null(decisions.expired);
        hfd_queue_set_expire(&set, 15 * SEC, &decisions);
        assert_ptr_equal(decisions.expired, &seats[1]);
        assert_null(seats[1].decided);
        assert_int_equal(seats[1].state, HFD_SEATS_OUTSIDE);
        assert_int_equal(hfd_queue_set_deadline(&set), 16 * SEC);
        assert_int_equal(set.n_timed_out, 1);
        assert_int_equal(leave(0, 15 * SEC), 2);
        end();
}

/* A flow with one request at a time gets its turn, however many requests of another flow wait. */
static void test_a_meek_flow_passes_a_greedy_one(void **state) {
        const struct hfd_queue_config long_queues = {.kind = HFD_LEVEL_QUEUE,
                                                     .n_queues = 2,
                                                     .n_hand = 1,
                                                     .max_length = N};
        hf_nsec now = 0;

        start(&long_queues, 1);
        for (size_t i = 0; i < 200; i++)
                (void)arrive(i, 1, 0, now);
        assert_int_equal(set.n_waiting, 199);
        for (size_t served = 0, i = 0; served < 20; served++) {
                size_t meek = 200 + served;
                assert_int_equal(arrive(meek, 1, 1, now), HFD_VERDICT_WAIT);
                size_t n = 0;
                for (size_t next = N; next != meek; n++) {
                        now += 3 * MSEC;
                        next = leave(i, now);
                        i = next;
                        assert_true(next < N);
                }
                assert_true(n <= 2); /* at most one of the greedy flow is between */
        }
        end();
}

/* The work of long requests counts, not their number. */
static void test_long_requests_count_for_their_time(void **state) {
        const struct hfd_queue_config long_queues = {.kind = HFD_LEVEL_QUEUE,
                                                     .n_queues = 2,
                                                     .n_hand = 1,
                                                     .max_length = N};
        hf_nsec now = 0, times[2] = {0, 0};
        size_t running = 0;

        start(&long_queues, 1);
        for (size_t i = 0; i < N; i++) /* even ones are long */
                (void)arrive(i, 1, i % 2, 0);
        while (set.n_waiting > 230) {
                hf_nsec time = (running % 2 ? 2 : 30) * MSEC;
                now += time;
                times[running % 2] += time;
                running = leave(running, now);
        }
        /* The test is valid only if both flows always had requests waiting. */
        assert_true(times[0] > 200 * MSEC && times[1] > 200 * MSEC);
        hf_nsec difference = llabs(times[0] - times[1]);
        assert_true(difference < 100 * MSEC);
        end();
}

static void test_queues_change_while_requests_wait(void **state) {
        const struct hfd_queue_config fewer = {.kind = HFD_LEVEL_QUEUE,
                                               .n_queues = 1,
                                               .n_hand = 1,
                                               .max_length = 3};
        struct hfd_decisions decisions = {0};

        start(&queues, 1);
        assert_int_equal(arrive(0, 1, 7, 0), HFD_VERDICT_EXECUTE);
        assert_int_equal(arrive(1, 1, 7, 0), HFD_VERDICT_WAIT);
        assert_int_equal(arrive(2, 1, 6, 0), HFD_VERDICT_WAIT);
        assert_int_equal(hfd_queue_set_configure(&set, &fewer, MSEC, &decisions), 0);
        assert_null(decisions.granted);
        assert_int_equal(arrive(3, 1, 7, MSEC), HFD_VERDICT_WAIT); /* in queue 0 */
        assert_ptr_equal(seats[3].queue, set.queues[0]);
        assert_int_equal(hfd_queue_set_configure(&set, &reject, MSEC, &decisions), 0);
        assert_int_equal(arrive(4, 1, 0, MSEC), HFD_VERDICT_NO_SEATS);
        hfd_queue_set_limit(&set, 3, 2 * MSEC, &decisions);
        size_t n = 0;
        for (const struct hfd_seats *m = decisions.granted; m; m = m->decided)
                n++;
        assert_int_equal(n, 2);
        hfd_queue_set_limit(&set, 1, 2 * MSEC, &decisions);
        (void)leave(0, 3 * MSEC);
        assert_int_equal(set.n_waiting, 1); /* two still have seats, and the limit is one */
        end();
}

/* A level with a share of 0 and nothing borrowed serves nobody. */
static void test_without_seats_everybody_waits(void **state) {
        start(&queues, 0);
        assert_int_equal(arrive(0, 1, 0, 0), HFD_VERDICT_WAIT);
        assert_int_equal(set.n_waiting, 1);
        end();
}

/* Virtual time begins again before it overflows, and the order stays. */
static void test_virtual_time_begins_again(void **state) {
        struct hfd_decisions decisions = {0};
        hf_nsec now = 0;
        bool again = false;

        start(&queues, 100000);
        assert_int_equal(arrive(0, 100000, 0, 0), HFD_VERDICT_EXECUTE);
        assert_int_equal(arrive(1, 1, 0, 0), HFD_VERDICT_WAIT);
        assert_int_equal(arrive(2, 1, 1, 0), HFD_VERDICT_WAIT);
        for (int i = 0; i < 100000 && !again; i++) {
                int64_t before = set.r;
                now += 600 * SEC;
                hfd_queue_set_limit(&set, 100000, now, &decisions);
                assert_true(set.r >= 0);
                again = set.r < before;
        }
        assert_true(again);
        assert_int_equal(arrive(3, 1, 2, now), HFD_VERDICT_WAIT);
        (void)hfd_queue_set_leave(&set, &seats[0], now, &decisions);
        assert_ptr_equal(decisions.granted, &seats[2]);          /* its queue was empty */
        assert_ptr_equal(decisions.granted->decided, &seats[3]); /* it came later */
        assert_ptr_equal(decisions.granted->decided->decided, &seats[1]);
        end();
}

static void test_more_queues_than_memory_allows(void **state) {
        const struct hfd_queue_config many = {.kind = HFD_LEVEL_QUEUE,
                                              .n_queues = 10000000,
                                              .n_hand = 2,
                                              .max_length = 1};

        start(&many, 1);
        assert_int_equal(set.n_queues, HFD_QUEUES_MAX);
        assert_int_equal(arrive(0, 1, 1234567890, 0), HFD_VERDICT_EXECUTE);
        end();
}

/* ---- hands ---- */

static void test_hands_have_different_queues(void **state) {
        unsigned hand[HFD_HAND_MAX], seen[16] = {0};

        for (uint64_t flow = 0; flow < 1000; flow++) {
                hfd_dealer_deal(hfd_dealer_hash(flow, "user"), 16, 5, hand);
                for (unsigned i = 0; i < 5; i++) {
                        assert_true(hand[i] < 16 && (i == 0 || hand[i] > hand[i - 1]));
                        seen[hand[i]]++;
                }
        }
        for (unsigned i = 0; i < 16; i++) /* 312 on average */
                assert_true(seen[i] > 230 && seen[i] < 400);
        hfd_dealer_deal(UINT64_MAX, 4, 4, hand);
        for (unsigned i = 0; i < 4; i++)
                assert_int_equal(hand[i], i);
        assert_true(hfd_dealer_hash(1, "a") != hfd_dealer_hash(2, "a"));
        assert_true(hfd_dealer_hash(1, "a") != hfd_dealer_hash(1, "b"));
}

/* ---- widths and retries ---- */

static void test_lists_are_wide(void **state) {
        assert_int_equal(hfd_work_width(0, 0, 0), 1);
        assert_int_equal(hfd_work_width(100, 0, 0), 1);
        assert_int_equal(hfd_work_width(101, 0, 0), 2);
        assert_int_equal(hfd_work_width(5000, 0, 0), 10);
        assert_int_equal(hfd_work_width(5000, 0, 4), 4);
        assert_int_equal(hfd_work_width(5000, 250, 0), 3);
        assert_int_equal(hfd_work_width(SIZE_MAX, SIZE_MAX, 0), 10);
}

static void test_retry_after_follows_the_refusals(void **state) {
        struct hfd_retry_after retry = {0};
        int64_t second = 1000;
        unsigned after = 0;

        assert_int_equal(hfd_retry_after_refuse(&retry, second), 1);
        assert_int_equal(hfd_retry_after_refuse(&retry, second), 1);
        assert_int_equal(hfd_retry_after_refuse(&retry, second), 1);
        assert_int_equal(hfd_retry_after_refuse(&retry, second + 1), 2);
        for (int i = 0; i < 200; i++) {
                second++;
                for (int n = 0; n < 100; n++)
                        after = hfd_retry_after_refuse(&retry, second);
        }
        assert_int_equal(after, HFD_RETRY_AFTER_MAX);
        for (int i = 0; i < 40; i++) { /* few: one second less each time */
                second += 50;
                after = hfd_retry_after_refuse(&retry, second);
        }
        assert_int_equal(after, 1);
        assert_int_equal(hfd_retry_after_refuse(&retry, second - 5),
                         1); /* another thread's clock */
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_full_level_refuses),
                cmocka_unit_test(test_an_exempt_level_has_no_limit),
                cmocka_unit_test(test_requests_wait_in_their_order),
                cmocka_unit_test(test_a_wide_request_waits_for_its_seats),
                cmocka_unit_test(test_who_gives_up_lets_others_pass),
                cmocka_unit_test(test_nobody_waits_longer_than_allowed),
                cmocka_unit_test(test_a_meek_flow_passes_a_greedy_one),
                cmocka_unit_test(test_long_requests_count_for_their_time),
                cmocka_unit_test(test_queues_change_while_requests_wait),
                cmocka_unit_test(test_without_seats_everybody_waits),
                cmocka_unit_test(test_virtual_time_begins_again),
                cmocka_unit_test(test_more_queues_than_memory_allows),
                cmocka_unit_test(test_hands_have_different_queues),
                cmocka_unit_test(test_lists_are_wide),
                cmocka_unit_test(test_retry_after_follows_the_refusals),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
