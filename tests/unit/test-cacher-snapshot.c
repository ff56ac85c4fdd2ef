/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots of the cacher's objects, now and at earlier revisions, without a store and its
 * watch. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread.h"
#include "failing_memory.h"
#include "server/cacher/requests/store_identity.h"
#include "server/cacher/requests/store_lag.h"
#include "server/cacher/state/cacher_state.h"
#include "server/cacher/watch/snapshot.h"
#include "server/resources/rows/resource_table.h"

#define UNDO_MAX  4096
#define SLICE_MAX 128

static const struct hf_host host = {.size = sizeof(struct hf_host)};
static struct hfd_cacher cacher;
static const struct hfd_resource *resource;
static struct hfd_object_tree *tree;
static struct hfd_event_history *history;
static size_t n_live;

/* The linker redirects these functions here. */
static struct {
        void (*run)(void); /* called by the next change of a tree, which is not under the lock */
        size_t n_slices, n_in_slice, largest;
} seen;
bool __real_hfd_event_history_seek(const struct hfd_event_history *of, uint64_t number, size_t *i);
bool __wrap_hfd_event_history_seek(const struct hfd_event_history *of, uint64_t number, size_t *i);
const struct hfd_change *__real_hfd_event_history_at(const struct hfd_event_history *of, size_t i);
const struct hfd_change *__wrap_hfd_event_history_at(const struct hfd_event_history *of, size_t i);
int __real_hfd_object_tree_put(struct hfd_object_tree *to, struct hfd_object *object,
                               struct hfd_object **old);
int __wrap_hfd_object_tree_put(struct hfd_object_tree *to, struct hfd_object *object,
                               struct hfd_object **old);

bool __wrap_hfd_event_history_seek(const struct hfd_event_history *of, uint64_t number, size_t *i) {
        seen.n_slices++;
        seen.n_in_slice = 0;
        return __real_hfd_event_history_seek(of, number, i);
}

const struct hfd_change *__wrap_hfd_event_history_at(const struct hfd_event_history *of, size_t i) {
        if (++seen.n_in_slice > seen.largest)
                seen.largest = seen.n_in_slice;
        return __real_hfd_event_history_at(of, i);
}

int __wrap_hfd_object_tree_put(struct hfd_object_tree *to, struct hfd_object *object,
                               struct hfd_object **old) {
        void (*run)(void) = seen.run;

        seen.run = NULL;
        if (run)
                run();
        return __real_hfd_object_tree_put(to, object, old);
}

static int setup(void **state) {
        memset(&seen, 0, sizeof seen);
        n_live = failing_memory_n_live();
        memset(&cacher, 0, sizeof cacher);
        cacher.host = &host;
        assert_int_equal(hf__mutex_init(&cacher.mu), 0);
        cacher.identity = hfd_store_identity_new(&host, NULL, NULL);
        cacher.lag = hfd_store_lag_new(&cacher);
        assert_true(cacher.identity && cacher.lag);
        hfd_event_histories_init(&cacher.histories);
        resource = hfd_resource_find("", "v1", "configmaps");
        tree = &cacher.trees[hfd_resource_index(resource)];
        history = &cacher.histories.of[hfd_resource_index(resource)];
        cacher.synced = true;
        cacher.n_fills = 3;
        return 0;
}
static int teardown(void **state) {
        hfd_event_histories_done(&cacher.histories);
        hfd_object_tree_clear(tree);
        hfd_store_lag_free(cacher.lag);
        hfd_store_identity_free(cacher.identity);
        pthread_mutex_destroy(&cacher.mu);
        assert_int_equal(failing_memory_n_live(), n_live);
        return 0;
}

/* The cache sees a put, or a deletion, of this object at the next revision. */
static void change(const char *path, bool is_put) {
        struct hfd_object *object = hfd_object_unreadable(resource, path, ++cacher.revision), *old;
        struct hfd_history_garbage garbage = {.n = 0};
        struct hfd_change event = {.object = object};

        assert_non_null(object);
        if (is_put)
                assert_int_equal(hfd_object_tree_put(tree, hfd_object_ref(object), &old), 0);
        else
                assert_int_equal(hfd_object_tree_remove(tree, path, &old), 0);
        event.before = old;
        event.type = HF_EVENT_DELETED;
        if (is_put)
                event.type = old ? HF_EVENT_MODIFIED : HF_EVENT_ADDED;
        hfd_event_history_add(&cacher.histories, event, tree, 1, &garbage);
        hfd_history_garbage_free(&garbage);
}

/* Revision 1: a; 2: a b; 3: a (changed) b; 4: b; 5: b c; 6: a b c */
static void make_past(void) {
        change("ns/a", true);
        change("ns/b", true);
        change("ns/a", true);
        change("ns/a", false);
        change("ns/c", true);
        change("ns/a", true);
}
static const char *const past[] = {"",     "a@1 ",     "a@1 b@2 ",    "a@3 b@2 ",
                                   "b@2 ", "b@2 c@5 ", "a@6 b@2 c@5 "};

static void expect_contents(const struct hfd_object_tree *objects, const char *expected) {
        struct hfd_object_iter iter;
        struct hfd_object *object;
        char text[256] = "";

        hfd_object_iter_init(&iter, objects, &(struct hfd_scope){0}, "");
        while ((object = hfd_object_iter_next(&iter)) != NULL)
                (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s@%llu ",
                               strchr(object->path, '/') + 1, (unsigned long long)object->revision);
        assert_string_equal(text, expected);
}

static void test_a_snapshot_of_now_shares_the_objects(void **state) {
        struct hfd_snapshot snapshot;

        make_past();
        assert_true(hfd_snapshot_take(&cacher, resource, 0, &snapshot));
        assert_ptr_equal(snapshot.objects.root, tree->root);
        assert_int_equal(snapshot.revision, 6);
        assert_int_equal(snapshot.changed, 6);
        assert_int_equal(snapshot.fill, 3);
        cacher.revision = 9; /* the store has written another resource */
        change("ns/d", true);
        expect_contents(&snapshot.objects, past[6]);
        hfd_snapshot_done(&snapshot);
        assert_null(snapshot.objects.root);
        assert_int_equal(snapshot.revision + snapshot.changed + snapshot.fill, 0);
        assert_true(hfd_snapshot_take(&cacher, resource, 9, &snapshot));
        expect_contents(&snapshot.objects, past[6]);
        assert_int_equal(snapshot.revision, 9);
        assert_int_equal(snapshot.changed, 6);
        hfd_snapshot_done(&snapshot);
}

static void test_the_state_at_each_earlier_revision_is_known(void **state) {
        struct hfd_snapshot snapshot;

        make_past();
        for (uint64_t at = 1; at <= 6; at++) {
                assert_true(hfd_snapshot_take(&cacher, resource, at, &snapshot));
                expect_contents(&snapshot.objects, past[at]);
                assert_int_equal(snapshot.revision, at);
                assert_int_equal(snapshot.changed, at);
                hfd_snapshot_done(&snapshot);
        }
        expect_contents(tree, past[6]);
        /* Other resources have changed since, this one has not. */
        cacher.revision = 20;
        assert_true(hfd_snapshot_take(&cacher, resource, 15, &snapshot));
        assert_ptr_equal(snapshot.objects.root, tree->root);
        assert_int_equal(snapshot.revision, 15);
        hfd_snapshot_done(&snapshot);
}

static void test_a_kept_state_is_used_again(void **state) {
        struct hfd_snapshot snapshot, again;

        make_past();
        assert_true(hfd_snapshot_take(&cacher, resource, 3, &snapshot));
        snapshot.fill--; /* it is from before the cache was filled again */
        hfd_snapshot_keep(&cacher, resource, &snapshot);
        assert_int_equal(history->n_states, 0);
        snapshot.fill++;
        hfd_snapshot_keep(&cacher, resource, &snapshot);
        assert_int_equal(history->n_states, 1);
        assert_true(hfd_snapshot_take(&cacher, resource, 3, &again));
        assert_ptr_equal(again.objects.root, snapshot.objects.root);
        expect_contents(&again.objects, past[3]);
        hfd_snapshot_done(&again);
        hfd_snapshot_done(&snapshot);
}

static void test_other_revisions_are_unknown(void **state) {
        struct hfd_snapshot snapshot;

        make_past();
        assert_false(hfd_snapshot_take(&cacher, resource, 7, &snapshot));
        history->floor = 2;
        assert_false(hfd_snapshot_take(&cacher, resource, 1, &snapshot));
        assert_true(hfd_snapshot_take(&cacher, resource, 2, &snapshot));
        hfd_snapshot_done(&snapshot);
        /* After a replacement of the store, an earlier revision may have another state. */
        hfd_store_identity_replaced(&cacher, "a test says so");
        assert_false(hfd_snapshot_take(&cacher, resource, 3, &snapshot));
        assert_true(hfd_snapshot_take(&cacher, resource, 0, &snapshot));
        hfd_snapshot_done(&snapshot);
        cacher.synced = false;
        assert_false(hfd_snapshot_take(&cacher, resource, 0, &snapshot));
}

static void test_too_many_changes_are_not_undone(void **state) {
        struct hfd_snapshot snapshot;

        for (int i = 0; i <= UNDO_MAX + 1; i++)
                change("ns/a", true);
        assert_true(hfd_snapshot_take(&cacher, resource, 2, &snapshot));
        expect_contents(&snapshot.objects, "a@2 ");
        hfd_snapshot_done(&snapshot);
        assert_false(hfd_snapshot_take(&cacher, resource, 1, &snapshot));
}

/* ---- slices ---- */

/* n changes of ns/a. */
static void make_long_past(size_t n) {
        for (size_t i = 0; i < n; i++)
                change("ns/a", true);
}

/* The lock is free while changes are undone, so others need not wait for all of them. */
static void check_lock(void) {
        assert_int_equal(pthread_mutex_trylock(&cacher.mu), 0);
        pthread_mutex_unlock(&cacher.mu);
        seen.run = check_lock;
}

static void test_changes_are_undone_in_slices(void **state) {
        static const struct {
                size_t n, n_slices, largest;
        } cases[] = {{1, 1, 1},
                     {SLICE_MAX, 1, SLICE_MAX},
                     {SLICE_MAX + 1, 2, SLICE_MAX},
                     {10 * SLICE_MAX, 10, SLICE_MAX}};
        struct hfd_snapshot snapshot;

        make_long_past(10 * SLICE_MAX + 1);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                uint64_t at = cacher.revision - cases[i].n;
                char text[32];
                memset(&seen, 0, sizeof seen);
                seen.run = check_lock;
                assert_true(hfd_snapshot_take(&cacher, resource, at, &snapshot));
                assert_int_equal(seen.n_slices, cases[i].n_slices);
                assert_int_equal(seen.largest, cases[i].largest);
                (void)snprintf(text, sizeof text, "a@%zu ", (size_t)at);
                expect_contents(&snapshot.objects, text);
                hfd_snapshot_done(&snapshot);
        }
}

static void change_more(void) {
        change("ns/a", false);
        change("ns/b", true);
}

static void test_changes_between_two_slices_do_not_matter(void **state) {
        struct hfd_snapshot snapshot;

        make_long_past(3 * SLICE_MAX + 1);
        seen.run = change_more;
        assert_true(hfd_snapshot_take(&cacher, resource, 1, &snapshot));
        assert_null(seen.run);
        assert_int_equal(seen.n_slices, 3);
        expect_contents(&snapshot.objects, "a@1 ");
        hfd_snapshot_done(&snapshot);
        expect_contents(tree, "b@387 "); /* after the deletion at 386 */
}

/* The history drops the change of revision 2, which has not been undone yet. */
static void drop_oldest(void) {
        struct hfd_history_garbage garbage = {.n = 0};

        while (history->floor < 2) {
                cacher.histories.max_bytes = cacher.histories.n_bytes - 1;
                pthread_mutex_lock(&cacher.mu);
                assert_true(hfd_event_histories_trim(&cacher.histories, 1, &garbage));
                pthread_mutex_unlock(&cacher.mu);
                hfd_history_garbage_free(&garbage);
        }
        assert_true(history->floor < SLICE_MAX);
}

static void interrupt(void) { hfd_event_history_interrupt(history, cacher.revision); }

/* The cache is filled again, and its new history has the same revisions. */
static void fill_again(void) {
        static struct hfd_event_histories old;

        hfd_event_histories_restart(&cacher.histories, 0, &old);
        hfd_event_histories_done(&old);
        cacher.n_fills++;
        cacher.revision = 0;
        make_long_past(2 * SLICE_MAX + 1);
}

/* The client gets 410, unless the store has the state. */
static void expect_unknown_after(void (*event)(void)) {
        struct hfd_snapshot snapshot;

        make_long_past(2 * SLICE_MAX + 1);
        seen.run = event;
        assert_false(hfd_snapshot_take(&cacher, resource, 1, &snapshot));
        assert_null(seen.run);
}

static void test_a_change_that_is_dropped_between_two_slices(void **state) {
        expect_unknown_after(drop_oldest);
}

static void test_an_interruption_between_two_slices(void **state) {
        expect_unknown_after(interrupt);
}

static void test_a_filling_between_two_slices(void **state) { expect_unknown_after(fill_again); }

/* Without memory the state is unknown, and nothing is left behind. */
static void test_a_state_without_memory_is_unknown(void **state) {
        struct hfd_snapshot snapshot;

        make_past();
        for (int n = 0; n < 30; n++) {
                failing_memory_arm(n);
                bool known = hfd_snapshot_take(&cacher, resource, 1 + (uint64_t)n % 5, &snapshot);
                failing_memory_disarm();
                assert_int_equal(known, !failing_memory_hit());
                if (known) {
                        expect_contents(&snapshot.objects, past[1 + n % 5]);
                        hfd_snapshot_done(&snapshot);
                }
        }
        expect_contents(tree, past[6]);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                CASE(test_a_snapshot_of_now_shares_the_objects),
                CASE(test_the_state_at_each_earlier_revision_is_known),
                CASE(test_a_kept_state_is_used_again),
                CASE(test_other_revisions_are_unknown),
                CASE(test_too_many_changes_are_not_undone),
                CASE(test_changes_are_undone_in_slices),
                CASE(test_changes_between_two_slices_do_not_matter),
                CASE(test_a_change_that_is_dropped_between_two_slices),
                CASE(test_an_interruption_between_two_slices),
                CASE(test_a_filling_between_two_slices),
                CASE(test_a_state_without_memory_is_unknown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
