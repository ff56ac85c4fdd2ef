/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recent past of the cache when memory runs out. The caller of hfd_event_history_add holds the
 * cacher's lock, so nothing may be freed in it: only hfd_history_garbage_free is called without the
 * lock. The count of live blocks shows where the blocks are freed.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "failing_memory.h"
#include "server/cacher/history/event_history.h"
#include "server/resources/rows/resource_table.h"

static struct hfd_change make_change(uint64_t revision) {
        const struct hfd_resource *resource = hfd_resource_find("", "v1", "configmaps");
        struct hfd_change change = {.type = HF_EVENT_MODIFIED,
                                    .object = hfd_object_unreadable(resource, "ns/a", revision),
                                    .before =
                                            hfd_object_unreadable(resource, "ns/a", revision - 1)};

        assert_non_null(change.object);
        assert_non_null(change.before);
        return change;
}

static void drop(struct hfd_change *change) {
        hfd_object_unref(change->object);
        hfd_object_unref(change->before);
}

static void add(struct hfd_event_histories *histories, uint64_t revision,
                struct hfd_history_garbage *garbage) {
        const struct hfd_object_tree tree = {0};

        assert_true(hfd_event_history_add(histories, make_change(revision), &tree, 1, garbage));
}

/* Fills a history with n changes, a full ring, and adds another without memory for it. */
static void check_shortage(size_t n) {
        static struct hfd_event_histories histories;
        static struct hfd_history_garbage garbage;
        const struct hfd_object_tree tree = {0};
        size_t before = failing_memory_n_live(), floor = n + 2;

        hfd_event_histories_init(&histories);
        for (uint64_t i = 2; i < floor; i++)
                add(&histories, i, &garbage);
        struct hfd_event_history *history =
                &histories.of[hfd_resource_index(hfd_resource_find("", "v1", "configmaps"))];
        assert_int_equal(history->n, n);
        assert_int_equal(history->space, n);
        struct hfd_change change = make_change(floor);
        size_t filled = failing_memory_n_live();
        failing_memory_arm(0);
        assert_false(hfd_event_history_add(&histories, change, &tree, 1, &garbage));
        failing_memory_disarm();
        assert_true(failing_memory_hit());
        assert_int_equal(failing_memory_n_live(), filled); /* nothing was freed under the lock */
        drop(&change);
        assert_int_equal(history->n, 0);
        assert_int_equal(history->floor, floor);
        assert_int_equal(histories.n_bytes, 0);
        add(&histories, floor + 1, &garbage); /* the history goes on with the next change */
        assert_int_equal(history->n, 1);
        hfd_history_garbage_free(&garbage);
        assert_true(failing_memory_n_live() + 2 * n <= filled);
        hfd_event_histories_done(&histories);
        assert_int_equal(failing_memory_n_live(), before);
}

static void test_a_shortage_frees_nothing_under_the_lock(void **state) {
        for (size_t n = 16; n <= 4096; n *= 4)
                check_shortage(n);
}

/* Kept states have bytes of their own, which are counted until the states are dropped, too. */
static void test_a_shortage_leaves_what_states_count(void **state) {
        enum { FULL = 16 };
        static struct hfd_event_histories histories;
        static struct hfd_history_garbage garbage;
        size_t index = hfd_resource_index(hfd_resource_find("", "v1", "configmaps"));
        struct hfd_object_tree tree = {0};
        size_t before = failing_memory_n_live(), empty = 0;

        hfd_event_histories_init(&histories);
        struct hfd_event_history *history = hfd_event_history_of(&histories, index);
        for (uint64_t i = 2; i < FULL + 2; i++) {
                assert_true(hfd_event_history_add(&histories, make_change(i), &tree, 1, &garbage));
                empty = i == 3 ? histories.n_bytes / 2 * FULL : empty;
                if (i == 3 || i == 5) /* the nodes that the next change copies belong to it */
                        hfd_event_history_keep(&histories, index, i, &tree, &garbage);
                tree.n_copied += i == 3 || i == 5;
        }
        assert_int_equal(history->n_states, 2);
        assert_true(history->states[0].n_bytes > 0 && history->states[1].n_bytes > 0);
        assert_int_equal(histories.n_bytes,
                         empty + history->states[0].n_bytes + history->states[1].n_bytes);
        struct hfd_change change = make_change(FULL + 2);
        failing_memory_arm(0);
        assert_false(hfd_event_history_add(&histories, change, &tree, 1, &garbage));
        failing_memory_disarm();
        drop(&change);
        assert_int_equal(history->n, 0);
        assert_int_equal(histories.n_bytes,
                         history->states[0].n_bytes + history->states[1].n_bytes);
        histories.due = 0;
        assert_true(hfd_event_histories_trim(&histories, 1, &garbage));
        assert_int_equal(history->n_states, 0);
        assert_int_equal(histories.n_bytes, 0);
        hfd_history_garbage_free(&garbage);
        hfd_event_histories_done(&histories);
        assert_int_equal(failing_memory_n_live(), before);
}

static void test_a_change_without_memory_is_still_the_callers(void **state) {
        static struct hfd_event_histories histories;
        static struct hfd_history_garbage garbage;
        const struct hfd_object_tree tree = {0};
        size_t before = failing_memory_n_live();

        hfd_event_histories_init(&histories);
        for (uint64_t i = 2; i < 6; i++) {
                struct hfd_change change = make_change(i);
                size_t filled = failing_memory_n_live();
                failing_memory_arm(0);
                assert_false(hfd_event_history_add(&histories, change, &tree, 1, &garbage));
                failing_memory_disarm();
                assert_int_equal(failing_memory_n_live(), filled);
                drop(&change);
        }
        hfd_history_garbage_free(&garbage);
        hfd_event_histories_done(&histories);
        assert_int_equal(failing_memory_n_live(), before);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_shortage_frees_nothing_under_the_lock),
                cmocka_unit_test(test_a_shortage_leaves_what_states_count),
                cmocka_unit_test(test_a_change_without_memory_is_still_the_callers),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
