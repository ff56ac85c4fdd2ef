/* SPDX-License-Identifier: Apache-2.0 */
/* The loop's descriptor is readable exactly while a task waits. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>

#include "base/loop.h"

static struct hf_loop *loop;

static int setup(void **state) { return hf_loop_new(&loop); }
static int teardown(void **state) {
        loop = hf_loop_free(loop);
        return 0;
}

static bool is_readable(void) {
        struct pollfd fd = {.fd = hf_loop_fd(loop), .events = POLLIN};

        return poll(&fd, 1, 0) == 1;
}

static void count(void *ctx) { (*(int *)ctx)++; }

static void test_a_dispatched_task_leaves_nothing_to_read(void **state) {
        int n = 0;
        struct hf__loop_task task = {.fn = count, .ctx = &n};

        assert_false(is_readable());
        hf__loop_queue(loop, &task);
        hf__loop_queue(loop, &task); /* it is queued already */
        assert_true(is_readable());
        assert_int_equal(hf_loop_dispatch(loop), 1);
        assert_int_equal(n, 1);
        assert_false(is_readable());
}

static void test_a_removed_task_leaves_nothing_to_read(void **state) {
        int n = 0;
        struct hf__loop_task first = {.fn = count, .ctx = &n}, second = first, third = first;

        hf__loop_queue(loop, &first);
        hf__loop_queue(loop, &second);
        hf__loop_queue(loop, &third);
        hf__loop_remove(loop, &third);
        hf__loop_remove(loop, &first);
        assert_true(is_readable());
        hf__loop_remove(loop, &second);
        hf__loop_remove(loop, &second); /* no effect: it is not queued any more */
        assert_false(is_readable());
        assert_int_equal(hf_loop_dispatch(loop), 0);
        /* when it is queued again, the descriptor becomes readable */
        hf__loop_queue(loop, &second);
        assert_true(is_readable());
        assert_int_equal(hf_loop_dispatch(loop), 1);
        assert_int_equal(n, 1);
}

static struct hf__loop_task late;

static void remove_late(void *ctx) { hf__loop_remove(loop, &late); }

static void test_a_task_may_remove_the_last_one(void **state) {
        int n = 0;
        struct hf__loop_task remover = {.fn = remove_late};

        late = (struct hf__loop_task){.fn = count, .ctx = &n};
        hf__loop_queue(loop, &remover);
        hf__loop_queue(loop, &late);
        assert_int_equal(hf_loop_dispatch(loop), 1);
        assert_int_equal(n, 0);
        assert_false(is_readable());
}

static void replace_late(void *ctx) {
        hf__loop_remove(loop, &late);
        assert_int_equal(hf_loop_post(loop, count, ctx), 0);
}

static void test_a_call_posted_by_a_task_waits_also_if_another_was_removed(void **state) {
        int n = 0;
        struct hf__loop_task replacer = {.fn = replace_late, .ctx = &n};

        late = (struct hf__loop_task){.fn = count, .ctx = &n};
        hf__loop_queue(loop, &replacer);
        hf__loop_queue(loop, &late);
        assert_int_equal(hf_loop_dispatch(loop), 1);
        assert_int_equal(n, 0);
        assert_true(is_readable());
        assert_int_equal(hf_loop_dispatch(loop), 1);
        assert_int_equal(n, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_a_dispatched_task_leaves_nothing_to_read),
                TEST(test_a_removed_task_leaves_nothing_to_read),
                TEST(test_a_task_may_remove_the_last_one),
                TEST(test_a_call_posted_by_a_task_waits_also_if_another_was_removed),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
