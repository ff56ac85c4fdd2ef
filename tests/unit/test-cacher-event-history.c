/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The histories of the cacher alone (server/cacher/history/event_history.h): the ring of changes,
 * the kept states, what both cost, and when they are dropped. test-cacher-history.c has them in the
 * cacher.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "failing_memory.h"
#include "server/cacher/history/event_history.h"
#include "server/resources/resource.h"
#include "server/resources/rows/resource_table.h"
#include "time_units.h"

#define PERIOD     (5 * SEC) /* from the end of a change's window to the next trim */
#define RING_MIN   16
#define NODE_BYTES 48

static struct hfd_event_histories histories;
static struct hfd_event_history *history; /* of ConfigMaps */
static size_t index_of_history;
static struct hfd_object_tree tree;
static struct hfd_history_garbage garbage;

static const struct hfd_resource *resource_of(const char *kind) {
        return hfd_resource_find("", "v1", kind);
}

static size_t n_live;

static int setup(void **state) {
        n_live = failing_memory_n_live();
        tree = (struct hfd_object_tree){0};
        garbage.n = garbage.n_states = 0;
        memset(&histories, 'x', sizeof histories);
        hfd_event_histories_init(&histories);
        index_of_history = hfd_resource_index(resource_of("configmaps"));
        history = &histories.of[index_of_history];
        return 0;
}
static int teardown(void **state) {
        hfd_history_garbage_free(&garbage);
        hfd_event_histories_done(&histories);
        assert_true(histories.due == HF_NSEC_NEVER);
        assert_int_equal(histories.n_bytes, 0);
        hfd_object_tree_clear(&tree);
        assert_int_equal(failing_memory_n_live(), n_live);
        return 0;
}

static struct hfd_object *make(const char *kind, uint64_t revision) {
        struct hfd_object *object = hfd_object_unreadable(resource_of(kind), "ns/a", revision);

        assert_non_null(object);
        return object;
}

static size_t memory_of_one(void) {
        struct hfd_object *object = make("configmaps", 1);
        size_t n = hfd_object_memory(object);

        hfd_object_unref(object);
        return n;
}

static void add_to(const char *kind, enum hf_event_type type, uint64_t revision, hf_nsec now) {
        struct hfd_change change = {.type = type, .object = make(kind, revision)};

        if (type != HF_EVENT_ADDED)
                change.before = make(kind, revision - 1);
        hfd_event_history_add(&histories, change, &tree, now, &garbage);
}
static void add(uint64_t revision, hf_nsec now) {
        add_to("configmaps", HF_EVENT_ADDED, revision, now);
}

/* Trims until nothing is left to trim. Returns how often the garbage was full. */
static unsigned trim(hf_nsec now) {
        unsigned n = 0;

        while (!hfd_event_histories_trim(&histories, now, &garbage)) {
                hfd_history_garbage_free(&garbage);
                n++;
        }
        hfd_history_garbage_free(&garbage);
        return n;
}

/* Asserts that the history has exactly the revisions from first to last, in order. */
static void expect_revisions(uint64_t first, uint64_t last) {
        assert_int_equal(history->n, last + 1 - first);
        for (size_t i = 0; i < history->n; i++)
                assert_int_equal(hfd_event_history_at(history, i)->object->revision, first + i);
}

/* ---- the ring ---- */

static void test_a_new_history_has_the_usual_limits(void **state) {
        assert_int_equal(histories.max_bytes, HFD_EVENT_HISTORY_BYTES);
        assert_true(histories.window == HFD_EVENT_HISTORY_WINDOW);
        assert_true(histories.due == HF_NSEC_NEVER);
        assert_int_equal(histories.n_bytes, 0);
        for (size_t i = 0; i < HFD_RESOURCES_MAX; i++)
                assert_int_equal(histories.of[i].n + histories.of[i].space + histories.of[i].floor,
                                 0);
}

static void test_changes_are_found_by_revision(void **state) {
        assert_int_equal(hfd_event_history_after(history, 0), 0);
        assert_int_equal(hfd_event_history_changed(history, 7), 0);
        for (uint64_t i = 1; i <= 9; i++)
                add(10 * i, 1);
        for (uint64_t i = 0; i <= 9; i++) {
                assert_int_equal(hfd_event_history_after(history, 10 * i), i);
                assert_int_equal(hfd_event_history_after(history, 10 * i + 9), i);
                assert_int_equal(hfd_event_history_changed(history, 10 * i), 10 * i);
                assert_int_equal(hfd_event_history_changed(history, 10 * i + 9), 10 * i);
        }
        histories.max_bytes = 8 * sizeof(struct hfd_history_entry);
        assert_int_equal(trim(1), 0);
        assert_int_equal(history->floor, 10);
        assert_int_equal(hfd_event_history_changed(history, 19), 10);
        assert_int_equal(hfd_event_history_changed(history, 20), 20);
}

static void test_a_watch_repeats_changes_of_one_revision_that_may_be_seen_in_part(void **state) {
        size_t i = 99;

        assert_true(hfd_event_history_resume(history, 0, &i));
        assert_int_equal(i, 0);
        add(10, 1);
        add(20, 1);
        add(20, 1);
        add(20, 1);
        add(30, 1);
        assert_true(hfd_event_history_resume(history, 10, &i));
        assert_int_equal(i, 1); /* the client has seen one change */
        assert_true(hfd_event_history_resume(history, 20, &i));
        assert_int_equal(i, 1);
        assert_true(hfd_event_history_resume(history, 25, &i));
        assert_int_equal(i, 4);
        assert_true(hfd_event_history_resume(history, 30, &i));
        assert_int_equal(i, 5);
        /* Only two changes stay, so revision 20 is not complete any more. */
        histories.max_bytes = 2 * sizeof(struct hfd_history_entry);
        assert_int_equal(trim(1), 0);
        assert_int_equal(history->floor, 20);
        assert_false(hfd_event_history_resume(history, 20, &i));
        assert_true(hfd_event_history_resume(history, 30, &i));
}

/* Whether the change with this number can be found, and its index is right. */
static bool finds(uint64_t number, size_t index) {
        size_t i = SIZE_MAX;

        return hfd_event_history_seek(history, number, &i) && i == index;
}

/* A reader remembers the number of a change, and finds the change again. */
static void test_a_number_is_never_used_again(void **state) {
        struct hfd_event_histories old;

        for (uint64_t i = 1; i <= 10; i++)
                add(i, (hf_nsec)i * 10 * SEC);
        assert_true(hfd_event_history_number(history, 4) == 4);
        assert_true(finds(4, 4) && finds(10, 10));
        (void)trim(30 * SEC + HFD_EVENT_HISTORY_WINDOW + PERIOD);
        expect_revisions(4, 10);
        assert_false(finds(2, 0));
        assert_true(finds(3, 0) && finds(10, 7));
        hfd_event_history_interrupt(history, 6);
        assert_false(finds(5, 2)); /* its revision is 6 */
        assert_true(finds(6, 3) && finds(10, 7));
        hfd_event_histories_restart(&histories, 20, &old);
        hfd_event_histories_done(&old);
        assert_true(finds(10, 0) && hfd_event_history_number(history, 0) == 10);
        for (uint64_t i = 21; history->n < RING_MIN; i++)
                add(i, 0);
        struct hfd_change change = {.type = HF_EVENT_ADDED, .object = make("configmaps", 100)};
        failing_memory_arm(0);
        assert_false(hfd_event_history_add(&histories, change, &tree, 0, &garbage)); /* no room */
        failing_memory_disarm();
        hfd_object_unref(change.object);
        assert_int_equal(history->n, 0);
        assert_false(finds(10, 0) || finds(10 + RING_MIN, 0));
        assert_true(finds(10 + RING_MIN + 1, 0));
}

/* A change that is at the floor may not be the only one of its revision. */
static void test_a_revision_that_is_there_in_part_is_not_found(void **state) {
        for (uint64_t i = 1; i <= 3; i++)
                add(2, (hf_nsec)i * 10 * SEC);
        assert_true(finds(1, 1));
        (void)trim(10 * SEC + HFD_EVENT_HISTORY_WINDOW + PERIOD);
        assert_int_equal(history->n, 2);
        assert_false(finds(1, 0));
        assert_true(finds(3, 2));
}

static uint16_t tag(const char *text) { return hfd_history_tag(text, strlen(text)); }

/* Namespaces often differ only in the last characters. */
static void test_tags_depend_on_every_byte(void **state) {
        assert_int_equal(tag(""), 0);
        assert_int_not_equal(tag("tenant00"), tag("tenant01"));
        assert_int_not_equal(tag("tenant00"), tag("tenant10"));
        assert_int_not_equal(tag("config-map-00-01"), tag("config-map-00-02"));
        assert_int_not_equal(tag("xconfig"), tag("yconfig"));
        assert_int_not_equal(tag("a1"), tag("a2"));
}

/* An interruption raises the floor. Changes in the ring neither raise it further nor lower it. */
static void test_an_interruption_raises_the_floor(void **state) {
        add(10, 1);
        add(20, 2);
        hfd_event_history_interrupt(history, 25);
        assert_int_equal(history->floor, 25);
        assert_int_equal(hfd_event_history_changed(history, 27), 25);
        hfd_event_history_interrupt(history, 15);
        assert_int_equal(history->floor, 25);
        add(30, 3);
        assert_int_equal(hfd_event_history_changed(history, 29), 25);
        assert_int_equal(hfd_event_history_changed(history, 30), 30);
        histories.window = 0;
        histories.due = 0;
        assert_int_equal(trim(2), 0);
        expect_revisions(30, 30);
        assert_int_equal(history->floor, 25);
}

static void test_the_ring_grows_and_shrinks(void **state) {
        uint64_t last = 0, first = 1;

        assert_null(history->ring);
        for (size_t space = RING_MIN; space <= 128; space *= 2) {
                while (last < space) {
                        add(++last, 1);
                        assert_int_equal(history->space, space);
                        expect_revisions(1, last);
                }
        }
        /* The ring keeps its size while newer changes replace the oldest. */
        for (int i = 0; i < 200; i++) {
                histories.max_bytes = 100 * sizeof(struct hfd_history_entry);
                assert_int_equal(trim(1), 0);
                first = last - 99;
                add(++last, 1);
                expect_revisions(first, last);
                assert_int_equal(history->space, 128);
        }
        /* When less than a quarter of the ring is used, it shrinks to the half. */
        for (size_t n = 100; n > 0; n--) {
                size_t space = 128;
                histories.max_bytes = n * sizeof(struct hfd_history_entry);
                assert_int_equal(trim(1), 0);
                expect_revisions(last + 1 - n, last);
                for (size_t limit = 32; n < limit && space > RING_MIN; limit /= 2)
                        space /= 2;
                assert_int_equal(history->space, space);
        }
        histories.max_bytes = 0;
        assert_int_equal(trim(1), 0);
        assert_int_equal(history->n, 0);
        assert_null(history->ring);
        assert_int_equal(history->space, 0);
        assert_int_equal(history->floor, last);
}

static void test_without_memory_a_history_begins_anew(void **state) {
        size_t live = failing_memory_n_live();

        for (uint64_t i = 1; i <= RING_MIN; i++)
                add(i, 1);
        struct hfd_change change = {.type = HF_EVENT_MODIFIED,
                                    .object = make("configmaps", RING_MIN + 1),
                                    .before = make("configmaps", RING_MIN)};
        failing_memory_arm(0);
        assert_false(hfd_event_history_add(&histories, change, &tree, 1, &garbage));
        failing_memory_disarm();
        assert_true(failing_memory_hit());
        hfd_object_unref(change.object);
        hfd_object_unref(change.before);
        assert_int_equal(history->n, 0);
        assert_int_equal(history->floor, RING_MIN + 1);
        assert_int_equal(histories.n_bytes, 0);
        hfd_history_garbage_free(&garbage);
        assert_int_equal(failing_memory_n_live(), live);
        add(RING_MIN + 2, 1);
        expect_revisions(RING_MIN + 2, RING_MIN + 2);
}

/* ---- what it costs ---- */

/* Only memory that the cache itself does not need counts: previous states and deleted objects. */
static void test_bytes_are_what_only_the_history_keeps(void **state) {
        const size_t entry = sizeof(struct hfd_history_entry), object = memory_of_one();

        add_to("configmaps", HF_EVENT_ADDED, 1, 1);
        assert_int_equal(history->n_bytes, entry);
        add_to("configmaps", HF_EVENT_MODIFIED, 2, 1);
        assert_int_equal(history->n_bytes, 2 * entry + object);
        add_to("configmaps", HF_EVENT_DELETED, 3, 1);
        assert_int_equal(history->n_bytes, 3 * entry + 3 * object);
        add_to("secrets", HF_EVENT_MODIFIED, 4, 1);
        assert_int_equal(history->n_bytes, 3 * entry + 3 * object);
        assert_int_equal(histories.n_bytes, 4 * entry + 4 * object);
        histories.max_bytes = histories.n_bytes;
        assert_int_equal(trim(1), 0);
        assert_int_equal(history->n, 3); /* it is not above the limit */
        histories.max_bytes--;
        assert_int_equal(trim(1), 0);
        expect_revisions(2, 3); /* the largest history has lost its oldest change */
        assert_int_equal(history->n_bytes, 2 * entry + 3 * object);
}

static void test_a_full_garbage_is_emptied_before_it_goes_on(void **state) {
        const size_t n = 3 * HFD_HISTORY_GARBAGE_MAX;

        for (uint64_t i = 1; i <= n; i++)
                add(i, 1);
        histories.max_bytes = 0;
        assert_false(hfd_event_histories_trim(&histories, 1, &garbage));
        assert_int_equal(garbage.n, HFD_HISTORY_GARBAGE_MAX);
        expect_revisions(HFD_HISTORY_GARBAGE_MAX + 1, n);
        hfd_history_garbage_free(&garbage);
        assert_int_equal(garbage.n, 0);
        assert_int_equal(trim(1), 1);
        assert_int_equal(history->n, 0);
}

/* ---- time ---- */

static void test_a_look_for_old_changes_is_due_after_the_window(void **state) {
        const hf_nsec due = 10 * SEC + HFD_EVENT_HISTORY_WINDOW + PERIOD;

        add(1, 10 * SEC);
        assert_true(histories.due == due);
        add(2, 20 * SEC);
        assert_true(histories.due == due);
        add_to("secrets", HF_EVENT_ADDED, 3, 30 * SEC);
        assert_int_equal(trim(due - 1), 0);
        assert_int_equal(history->n, 2);
        assert_int_equal(trim(due), 0); /* at 90 s, removes the changes from 15 s or before */
        expect_revisions(2, 2);
        assert_true(histories.due == 20 * SEC + HFD_EVENT_HISTORY_WINDOW + PERIOD);
        assert_int_equal(trim(20 * SEC + HFD_EVENT_HISTORY_WINDOW + PERIOD), 0);
        assert_int_equal(history->n, 0);
        assert_int_equal(histories.of[hfd_resource_index(resource_of("secrets"))].n, 1);
        assert_true(histories.due == 30 * SEC + HFD_EVENT_HISTORY_WINDOW + PERIOD);
        assert_int_equal(trim(histories.due), 0);
        assert_true(histories.due == HF_NSEC_NEVER);
}

/* A change as old as the window is removed; a newer one stays. */
static void test_the_window_is_exact(void **state) {
        add(1, 0);
        add(2, PERIOD);
        add(3, PERIOD + 1);
        assert_int_equal(trim(HFD_EVENT_HISTORY_WINDOW + PERIOD), 0);
        expect_revisions(3, 3);
}

/* A full garbage interrupts a trim. The next trim goes on there. */
static void test_many_old_changes_go_in_several_steps(void **state) {
        for (uint64_t i = 1; i <= 2 * HFD_HISTORY_GARBAGE_MAX + 1; i++)
                add(i, 1);
        assert_int_equal(trim(1000 * SEC), 2);
        assert_int_equal(history->n, 0);
        assert_true(histories.due == HF_NSEC_NEVER);
}

/* ---- states ---- */

/* Makes a tree with one object of this revision. The history keeps it as the state
 * after that change. */
static void keep(uint64_t changed) {
        struct hfd_object_tree one = {0};
        struct hfd_object *old;

        assert_int_equal(hfd_object_tree_put(&one, make("configmaps", changed), &old), 0);
        hfd_event_history_keep(&histories, index_of_history, changed, &one, &garbage);
        hfd_object_tree_clear(&one);
}

static uint64_t kept(uint64_t changed) {
        const struct hfd_object_tree *objects = hfd_event_history_state(history, changed);

        return objects ? hfd_object_tree_find(objects, "ns/a")->revision : 0;
}

static void test_states_are_kept_in_order(void **state) {
        static const uint64_t order[] = {30, 10, 20, 40, 20, 10};

        for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
                keep(order[i]);
        assert_int_equal(history->n_states, 4);
        for (size_t i = 0; i < 4; i++) {
                assert_int_equal(history->states[i].changed, 10 * (i + 1));
                assert_int_equal(kept(10 * (i + 1)), 10 * (i + 1));
                assert_int_equal(kept(10 * (i + 1) + 1), 0);
        }
        assert_int_equal(garbage.n_states, 0);
}

static void test_the_oldest_state_makes_room(void **state) {
        for (uint64_t i = 1; i <= HFD_EVENT_HISTORY_STATES; i++)
                keep(i);
        assert_int_equal(garbage.n_states, 0);
        keep(100);
        assert_int_equal(garbage.n_states, 1);
        assert_int_equal(history->n_states, HFD_EVENT_HISTORY_STATES);
        assert_int_equal(kept(1), 0);
        assert_int_equal(kept(2), 2);
        assert_int_equal(kept(100), 100);
        hfd_history_garbage_free(&garbage);
        assert_int_equal(garbage.n_states, 0);
}

/* A state is dropped when the history no longer reaches back to it. */
static void test_a_state_before_the_floor_goes(void **state) {
        for (uint64_t i = 1; i <= 3; i++) {
                add(i, (hf_nsec)i);
                keep(i);
        }
        histories.max_bytes = 2 * sizeof(struct hfd_history_entry);
        assert_int_equal(trim(1), 0);
        assert_int_equal(history->floor, 1);
        assert_int_equal(kept(1), 1); /* the history still has the first change after it */
        histories.max_bytes = sizeof(struct hfd_history_entry);
        assert_int_equal(trim(1), 0);
        assert_int_equal(history->floor, 2);
        assert_int_equal(kept(1), 0);
        assert_int_equal(kept(2), 2);
        keep(1); /* no effect: this revision is before the floor */
        assert_int_equal(kept(1), 0);
        assert_int_equal(history->n_states, 2);
        keep(2);
        assert_int_equal(history->n_states, 2);
}

/* The trim of old changes drops their states too, in several steps if there are many. */
static void test_old_states_go_with_their_changes(void **state) {
        for (uint64_t i = 1; i <= HFD_EVENT_HISTORY_STATES; i++) {
                add(i, 1);
                keep(i);
        }
        add(100, 1000 * SEC);
        garbage.states[0] = garbage.states[1] = (struct hfd_object_tree){0};
        garbage.n_states = 2; /* the garbage has room for all dropped states but one */
        assert_false(hfd_event_histories_trim(&histories, 1000 * SEC, &garbage));
        assert_int_equal(garbage.n_states, HFD_EVENT_HISTORY_STATES);
        hfd_history_garbage_free(&garbage);
        assert_int_equal(trim(1000 * SEC), 0);
        expect_revisions(100, 100);
        assert_int_equal(history->n_states, 1); /* the state at the floor */
        assert_int_equal(kept(HFD_EVENT_HISTORY_STATES), HFD_EVENT_HISTORY_STATES);
}

/* After a shortage of memory the floor is above all states. The next trim drops them. */
static void test_states_that_a_shortage_leaves_go_later(void **state) {
        for (uint64_t i = 1; i <= RING_MIN; i++) {
                add(i, 1);
                keep(i);
        }
        struct hfd_change change = {.type = HF_EVENT_ADDED, .object = make("configmaps", 100)};
        failing_memory_arm(0);
        assert_false(hfd_event_history_add(&histories, change, &tree, 1, &garbage));
        failing_memory_disarm();
        hfd_object_unref(change.object);
        assert_int_equal(history->floor, 100);
        assert_int_equal(history->n_states, HFD_EVENT_HISTORY_STATES);
        garbage.states[0] = (struct hfd_object_tree){0};
        garbage.n_states = 1;
        assert_false(hfd_event_histories_trim(&histories, 1000 * SEC, &garbage));
        assert_int_equal(garbage.n_states, HFD_EVENT_HISTORY_STATES);
        assert_int_equal(history->n_states, 1);
        hfd_history_garbage_free(&garbage);
        assert_int_equal(trim(1000 * SEC), 0);
        assert_int_equal(history->n_states, 0);
}

/* A change copies the nodes that it modifies. The old nodes may then belong to the newest kept
 * state alone. */
static void test_copied_nodes_count_for_the_newest_state(void **state) {
        const size_t entry = sizeof(struct hfd_history_entry);

        tree.n_copied = 5;
        add(1, 1);
        assert_int_equal(history->n_bytes, entry); /* there was no state */
        keep(1);
        tree.n_copied = 7;
        add(2, 1);
        assert_int_equal(history->n_bytes, 2 * entry + 2 * NODE_BYTES);
        keep(2);
        tree.n_copied = 8;
        add(3, 1);
        assert_int_equal(history->states[0].n_bytes, 2 * NODE_BYTES);
        assert_int_equal(history->states[1].n_bytes, 1 * NODE_BYTES);
        assert_int_equal(histories.n_bytes, 3 * entry + 3 * NODE_BYTES);
        histories.max_bytes = 2 * entry + 2 * NODE_BYTES;
        assert_int_equal(trim(1), 0);
        expect_revisions(3, 3); /* the first state has gone with the second change */
        assert_int_equal(history->n_states, 1);
        assert_int_equal(histories.n_bytes, entry + NODE_BYTES);
        tree.n_copied = 0;
}

/* ---- a new beginning ---- */

static void test_a_restart_moves_everything_out(void **state) {
        struct hfd_event_histories old;

        histories.max_bytes = 12345;
        histories.window = 7 * SEC;
        add(1, 1);
        keep(1);
        size_t n_bytes = histories.n_bytes;
        hfd_event_histories_restart(&histories, 50, &old);
        assert_int_equal(histories.max_bytes, 12345);
        assert_true(histories.window == 7 * SEC);
        assert_int_equal(histories.n_bytes, 0);
        assert_true(histories.due == HF_NSEC_NEVER);
        for (size_t i = 0; i < HFD_RESOURCES_MAX; i++) {
                assert_int_equal(histories.of[i].floor, 50);
                assert_int_equal(histories.of[i].n + histories.of[i].n_states, 0);
        }
        assert_int_equal(old.n_bytes, n_bytes);
        assert_int_equal(old.of[index_of_history].n, 1);
        assert_int_equal(old.of[index_of_history].n_states, 1);
        hfd_event_histories_done(&old);
        assert_int_equal(old.n_bytes, 0);
        assert_true(old.due == HF_NSEC_NEVER);
        /* So does a history that is used for the first time. */
        assert_int_equal(hfd_event_history_of(&histories, HFD_RESOURCES_MAX)->floor, 50);
        keep(50); /* the state at the floor can be kept */
        assert_int_equal(kept(50), 50);
        add(51, 1);
        expect_revisions(51, 51);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                CASE(test_a_new_history_has_the_usual_limits),
                CASE(test_changes_are_found_by_revision),
                CASE(test_a_watch_repeats_changes_of_one_revision_that_may_be_seen_in_part),
                CASE(test_a_number_is_never_used_again),
                CASE(test_a_revision_that_is_there_in_part_is_not_found),
                CASE(test_tags_depend_on_every_byte),
                CASE(test_an_interruption_raises_the_floor),
                CASE(test_the_ring_grows_and_shrinks),
                CASE(test_without_memory_a_history_begins_anew),
                CASE(test_bytes_are_what_only_the_history_keeps),
                CASE(test_a_full_garbage_is_emptied_before_it_goes_on),
                CASE(test_a_look_for_old_changes_is_due_after_the_window),
                CASE(test_the_window_is_exact),
                CASE(test_many_old_changes_go_in_several_steps),
                CASE(test_states_are_kept_in_order),
                CASE(test_the_oldest_state_makes_room),
                CASE(test_a_state_before_the_floor_goes),
                CASE(test_old_states_go_with_their_changes),
                CASE(test_states_that_a_shortage_leaves_go_later),
                CASE(test_copied_nodes_count_for_the_newest_state),
                CASE(test_a_restart_moves_everything_out),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
