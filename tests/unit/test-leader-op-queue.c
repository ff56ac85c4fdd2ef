/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of the operations of many electors (leader/op_queue.h), with locks that only count. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <holdfast/client_port.h>

#include "leader/elector.h"
#include "leader/op_queue.h"
#include "time_units.h"

#define N 300

static struct fixture {
        struct hf__op_queue queue;
        struct hf_elector *electors;
        unsigned n_sent, order[4 * N];
} f;

struct counting_lock {
        struct hf__lock base;
        unsigned index;
};
static struct counting_lock locks[N];

static void count_read(struct hf__lock *lock, uint32_t op_id, hf_nsec deadline) {
        f.order[f.n_sent++] = ((struct counting_lock *)lock)->index;
}
static void count_write(struct hf__lock *lock, uint32_t op_id, const struct hf__record *record,
                        hf_nsec deadline) {
        count_read(lock, op_id, deadline);
}

static int set_up(void **state) {
        static const struct hf__lock_ops ops = {.read = count_read, .write = count_write};

        f = (struct fixture){.electors = calloc(N, sizeof *f.electors)};
        assert_non_null(f.electors);
        for (unsigned i = 0; i < N; i++) {
                locks[i] = (struct counting_lock){{.ops = &ops}, i};
                f.electors[i].lock = &locks[i].base;
                f.electors[i].core.observed.holder = f.electors[i].core.observed.successor =
                        f.electors[i].core.observed.hand_over_to = "";
        }
        return 0;
}

static int tear_down(void **state) {
        free(f.electors);
        return 0;
}

/* The core of an elector requests a write, as it does in a step. */
static void request(unsigned i, uint32_t op_id, hf_nsec now) {
        f.electors[i].core.op_kind = HF__OP_RENEW;
        f.electors[i].core.op_id = op_id;
        f.electors[i].core.op_deadline = now + 5 * SEC;
        (void)hf__op_queue_add(&f.queue, &f.electors[i], now);
}

/* Each elector whose turn has come requests its operation again, as its core does in a step. */
static void take_turns(hf_nsec now) {
        struct hf_elector *elector;

        while ((elector = hf__op_queue_next(&f.queue, now))) {
                assert_true(hf__op_queue_is_unsent(&f.queue, elector));
                assert_true(hf__op_queue_add(&f.queue, elector, now));
                assert_false(hf__op_queue_is_unsent(&f.queue, elector));
        }
}

static void test_no_more_than_the_limit_is_under_way(void **state) {
        for (unsigned i = 0; i < N; i++)
                request(i, 1, SEC);
        assert_int_equal(f.n_sent, HF__OP_QUEUE_LIMIT);
        take_turns(SEC);
        assert_true(hf__op_queue_wake_at(&f.queue) == SEC + HF__OP_QUEUE_PATIENCE);
        assert_int_equal(f.n_sent, HF__OP_QUEUE_LIMIT);
        for (unsigned i = 0; i < N; i++) { /* each reply makes room for one */
                hf__op_queue_ended(&f.queue, &f.electors[i], 1, SEC);
                take_turns(SEC);
                unsigned expected = i + 1 + HF__OP_QUEUE_LIMIT;
                assert_int_equal(f.n_sent, expected < N ? expected : N);
        }
        for (unsigned i = 0; i < N; i++) /* in the order of the requests */
                assert_int_equal(f.order[i], i);
        assert_int_equal(f.queue.n_under_way, 0);
        assert_true(hf__op_queue_wake_at(&f.queue) == HF_NSEC_NEVER);
}

static void test_an_operation_that_was_given_up_is_not_sent(void **state) {
        for (unsigned i = 0; i < HF__OP_QUEUE_LIMIT + 3; i++)
                request(i, 1, SEC);
        f.electors[HF__OP_QUEUE_LIMIT].core.op_kind = HF__OP_NONE;
        request(HF__OP_QUEUE_LIMIT + 1, 2, SEC); /* in the place of the first one */
        for (unsigned i = 0; i < HF__OP_QUEUE_LIMIT; i++)
                hf__op_queue_ended(&f.queue, &f.electors[i], 1, SEC);
        take_turns(SEC);
        assert_true(hf__op_queue_wake_at(&f.queue) == HF_NSEC_NEVER);
        assert_int_equal(f.n_sent, HF__OP_QUEUE_LIMIT + 2);
        assert_int_equal(f.order[HF__OP_QUEUE_LIMIT], HF__OP_QUEUE_LIMIT + 1);
        assert_int_equal(f.electors[HF__OP_QUEUE_LIMIT + 1].ticket.op_id, 2);
        assert_int_equal(f.order[HF__OP_QUEUE_LIMIT + 1], HF__OP_QUEUE_LIMIT + 2);
}

static void test_an_operation_that_waits_is_known_to_be_unsent(void **state) {
        for (unsigned i = 0; i < HF__OP_QUEUE_LIMIT + 2; i++)
                request(i, 1, SEC);
        for (unsigned i = 0; i < HF__OP_QUEUE_LIMIT + 2; i++)
                assert_int_equal(hf__op_queue_is_unsent(&f.queue, &f.electors[i]),
                                 i >= HF__OP_QUEUE_LIMIT);
        f.electors[HF__OP_QUEUE_LIMIT].core.op_kind = HF__OP_NONE;
        assert_false(hf__op_queue_is_unsent(&f.queue, &f.electors[HF__OP_QUEUE_LIMIT]));
}

/* When the turn of an elector comes, its core may find that nothing is due. */
static void test_a_turn_that_is_not_used_is_the_next_ones(void **state) {
        for (unsigned i = 0; i < HF__OP_QUEUE_LIMIT + 2; i++)
                request(i, 1, SEC);
        hf__op_queue_ended(&f.queue, &f.electors[0], 1, SEC);
        assert_ptr_equal(hf__op_queue_next(&f.queue, SEC), &f.electors[HF__OP_QUEUE_LIMIT]);
        f.electors[HF__OP_QUEUE_LIMIT].core.op_kind = HF__OP_NONE;
        take_turns(SEC);
        assert_int_equal(f.n_sent, HF__OP_QUEUE_LIMIT + 1);
        assert_int_equal(f.order[HF__OP_QUEUE_LIMIT], HF__OP_QUEUE_LIMIT + 1);
        request(HF__OP_QUEUE_LIMIT, 2, SEC); /* it waits again, like every other one */
        assert_int_equal(f.n_sent, HF__OP_QUEUE_LIMIT + 1);
}

static void test_a_server_without_replies_does_not_hold_up_the_queue(void **state) {
        for (unsigned i = 0; i < N; i++)
                request(i, 1, SEC);
        hf_nsec at = hf__op_queue_wake_at(&f.queue);
        take_turns(at - 1);
        assert_true(hf__op_queue_wake_at(&f.queue) == at);
        assert_int_equal(f.n_sent, HF__OP_QUEUE_LIMIT);
        take_turns(at);
        assert_true(hf__op_queue_wake_at(&f.queue) == at + HF__OP_QUEUE_PATIENCE);
        assert_int_equal(f.n_sent, 2 * HF__OP_QUEUE_LIMIT);
        hf__op_queue_ended(&f.queue, &f.electors[0], 1, at); /* of the earlier round */
        take_turns(at);
        assert_int_equal(f.n_sent, 2 * HF__OP_QUEUE_LIMIT);
        hf__op_queue_ended(&f.queue, &f.electors[HF__OP_QUEUE_LIMIT], 1, at);
        take_turns(at);
        assert_int_equal(f.n_sent, 2 * HF__OP_QUEUE_LIMIT + 1);
}

/* The core gives an operation up and requests another. The first one's late reply counts once. */
static void test_an_elector_counts_once(void **state) {
        request(0, 1, SEC);
        request(0, 2, 6 * SEC);
        assert_int_equal(f.queue.n_under_way, 1);
        hf__op_queue_ended(&f.queue, &f.electors[0], 1, 6 * SEC);
        assert_int_equal(f.queue.n_under_way, 1);
        hf__op_queue_ended(&f.queue, &f.electors[0], 2, 6 * SEC);
        hf__op_queue_ended(&f.queue, &f.electors[0], 2, 6 * SEC);
        assert_int_equal(f.queue.n_under_way, 0);
}

/* A server that does not reply holds up only the electors that use its client. */
static void test_each_client_has_a_queue_of_its_own(void **state) {
        struct hf__op_queues queues = {0};
        struct hf_client one = {0}, other = {0};

        struct hf__op_queue *queue = hf__op_queues_get(&queues, &one);
        assert_non_null(queue);
        assert_ptr_equal(hf__op_queues_get(&queues, &one), queue);
        assert_ptr_not_equal(hf__op_queues_get(&queues, &other), queue);
        assert_ptr_equal(hf__op_queues_get(&queues, &one), queue);
        hf__op_queues_done(&queues);
}

/* Each client has a queue of its own, which all its electors share, and the loop finds every one.
 */
static void test_each_client_has_its_queue(void **state) {
        struct hf__op_queues queues = {0};
        struct hf_client clients[3];
        struct hf__op_queue *list[3];
        unsigned n = 0;

        for (int i = 0; i < 3; i++) {
                list[i] = hf__op_queues_get(&queues, &clients[i]);
                assert_non_null(list[i]);
        }
        for (int i = 0; i < 3; i++) {
                assert_ptr_equal(hf__op_queues_get(&queues, &clients[i]), list[i]);
                assert_ptr_not_equal(list[i], list[(i + 1) % 3]);
        }
        for (struct hf__op_queue *queue = queues.first; queue; queue = queue->next)
                n++;
        assert_int_equal(n, 3);
        hf__op_queues_done(&queues);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_client_has_its_queue),
                cmocka_unit_test_setup_teardown(test_no_more_than_the_limit_is_under_way, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_an_operation_that_was_given_up_is_not_sent,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_an_operation_that_waits_is_known_to_be_unsent,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_turn_that_is_not_used_is_the_next_ones,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(
                        test_a_server_without_replies_does_not_hold_up_the_queue, set_up,
                        tear_down),
                cmocka_unit_test_setup_teardown(test_an_elector_counts_once, set_up, tear_down),
                cmocka_unit_test(test_each_client_has_a_queue_of_its_own),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
