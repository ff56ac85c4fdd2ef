/* SPDX-License-Identifier: Apache-2.0 */
/* When a watch of the cacher gets its bookmarks and its end, under a clock that the test moves. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api_fixture.h"
#include "hand_clock.h"
#include "patience.h"
#include "server/cacher/watch/watcher.h"
#include "server/cacher/watch/watcher_private.h"
#include "server/cacher/watch/watchers.h"
#include "server/resources/rows/resource_table.h"

#define TICK_MAX 256

struct seen {
        struct hfd_watcher *watcher;
        atomic_uint n_objects, n_bookmarks, n_ends;
        _Atomic uint64_t bookmark; /* revision of the last one */
        atomic_int error;          /* of the end */
};

static bool on_events(void *ctx, struct hfd_watch_item *items, size_t n) {
        struct seen *seen = ctx;

        for (size_t i = 0; i < n; i++)
                if (items[i].object) {
                        atomic_fetch_add(&seen->n_objects, 1);
                } else {
                        atomic_store(&seen->bookmark, items[i].revision);
                        atomic_fetch_add(&seen->n_bookmarks, 1);
                }
        return true;
}

static void on_end(void *ctx, int error, const struct hfd_response *response) {
        struct seen *seen = ctx;

        atomic_store(&seen->error, error);
        atomic_fetch_add(&seen->n_ends, 1);
}

static void watch_from(struct api_fixture *f, struct seen *seen, uint64_t revision,
                       int64_t timeout_s, bool bookmarks) {
        static const struct hfd_watch_sink sink = {.events = on_events, .end = on_end};
        struct hfd_selector labels = {0}, fields = {0};
        struct hfd_response response = {0};
        const struct hfd_watcher_spec spec = {.resource = hfd_resource_find(api_workspaces.group,
                                                                            api_workspaces.version,
                                                                            api_workspaces.plural),
                                              .ns = "",
                                              .name = "",
                                              .labels = &labels,
                                              .fields = &fields,
                                              .revision = revision,
                                              .from_now = revision == 0,
                                              .timeout_s = timeout_s,
                                              .bookmarks = bookmarks};

        memset(seen, 0, sizeof *seen);
        assert_true(hfd_watcher_new(f->cacher, &spec, &sink, seen, &response, &seen->watcher));
        hfd_watcher_start(seen->watcher);
}

static void watch(struct api_fixture *f, struct seen *seen, int64_t timeout_s, bool bookmarks) {
        watch_from(f, seen, 0, timeout_s, bookmarks);
}

static void release(struct seen *seen) {
        hfd_watcher_cancel(seen->watcher);
        PATIENCE_AWAIT(atomic_load(&seen->n_ends) == 1);
        hfd_watcher_unref(seen->watcher);
}

static void move(hf_nsec by) {
        hand_clock_move(by);
        hand_clock_await_waiter();
}

/* Moves the clock to just before a bookmark, and then to it. */
static void expect_bookmark(struct seen *seen, hf_nsec after) {
        unsigned n = atomic_load(&seen->n_bookmarks);

        move(after - 1);
        assert_int_equal(atomic_load(&seen->n_bookmarks), n);
        move(1);
        PATIENCE_AWAIT(atomic_load(&seen->n_bookmarks) == n + 1);
        hand_clock_await_waiter();
        assert_int_equal(atomic_load(&seen->n_bookmarks), n + 1);
        assert_int_equal(atomic_load(&seen->n_ends), 0);
}

static void expect_end(struct seen *seen, hf_nsec after) {
        unsigned n = atomic_load(&seen->n_bookmarks);

        move(after - 1);
        assert_int_equal(atomic_load(&seen->n_ends), 0);
        move(1);
        PATIENCE_AWAIT(atomic_load(&seen->n_ends) == 1);
        assert_int_equal(atomic_load(&seen->error), 0);
        assert_int_equal(atomic_load(&seen->n_bookmarks), n);
}

/* Bookmarks come every minute and 2 s before the end, so that the client can resume there. */
static void test_bookmarks_come_each_minute_and_before_the_end(void **state) {
        struct seen seen;

        watch(*state, &seen, 200, true);
        for (int i = 0; i < 3; i++)
                expect_bookmark(&seen, 60 * SEC);
        expect_bookmark(&seen, 18 * SEC);
        expect_end(&seen, 2 * SEC);
        release(&seen);
}

/* The timer runs late, so that the last bookmark and the end are due together. */
static void test_a_late_timer_sends_the_bookmark_before_the_end(void **state) {
        struct seen seen;

        watch(*state, &seen, 30, true);
        move(31 * SEC);
        PATIENCE_AWAIT(atomic_load(&seen.n_ends) == 1);
        assert_int_equal(atomic_load(&seen.n_bookmarks), 1);
        release(&seen);
}

static void test_a_short_watch_has_the_last_bookmark_only(void **state) {
        struct seen seen;

        watch(*state, &seen, 30, true);
        expect_bookmark(&seen, 28 * SEC);
        expect_end(&seen, 2 * SEC);
        release(&seen);
}

/* The timeouts are chosen so that the last bookmark is due together with a regular one. */
static void test_no_bookmark_comes_twice(void **state) {
        struct seen seen;

        watch(*state, &seen, 62, true);
        expect_bookmark(&seen, 60 * SEC);
        expect_end(&seen, 2 * SEC);
        release(&seen);
        watch(*state, &seen, 122, true);
        for (int i = 0; i < 2; i++)
                expect_bookmark(&seen, 60 * SEC);
        expect_end(&seen, 2 * SEC);
        release(&seen);
}

static void test_a_watch_without_bookmarks_only_ends(void **state) {
        struct seen seen;

        watch(*state, &seen, 100, false);
        expect_end(&seen, 100 * SEC);
        assert_int_equal(atomic_load(&seen.n_bookmarks), 0);
        release(&seen);
}

/* If the client names no timeout, a watch ends after half an hour to an hour. */
static void test_a_watch_without_a_timeout_ends_within_the_hour(void **state) {
        struct seen seen[8];

        for (size_t i = 0; i < 8; i++)
                watch(*state, &seen[i], 0, false);
        move(1800 * SEC - 1);
        for (size_t i = 0; i < 8; i++)
                assert_int_equal(atomic_load(&seen[i].n_ends), 0);
        move(1800 * SEC + 1);
        for (size_t i = 0; i < 8; i++) {
                PATIENCE_AWAIT(atomic_load(&seen[i].n_ends) == 1);
                assert_int_equal(atomic_load(&seen[i].error), 0);
                release(&seen[i]);
        }
}

/* The watches do not end in the order in which they began. */
static void test_watches_end_at_their_own_times(void **state) {
        struct seen late, early, middle;

        watch(*state, &late, 90, false);
        watch(*state, &early, 30, false);
        watch(*state, &middle, 60, false);
        expect_end(&early, 30 * SEC);
        expect_end(&middle, 30 * SEC);
        expect_end(&late, 30 * SEC);
        release(&late);
        release(&early);
        release(&middle);
}

static void test_a_bookmark_has_the_revision_that_was_reached(void **state) {
        struct api_fixture *f = *state;
        struct seen seen;

        watch(f, &seen, 600, true);
        api_fixture_make_workspaces(f, 3);
        PATIENCE_AWAIT(atomic_load(&seen.n_objects) == 3);
        expect_bookmark(&seen, 60 * SEC);
        assert_int_equal(atomic_load(&seen.bookmark), hfd_cacher_revision(f->cacher));
        release(&seen);
}

/* Such a revision belongs to a history that the store has lost. The watch might never get an event.
 */
static void test_a_revision_that_the_store_has_not_reached_is_gone(void **state) {
        struct api_fixture *f = *state;
        struct seen seen, at_head;

        api_fixture_make_workspaces(f, 1);
        uint64_t head = hfd_cacher_revision(f->cacher);
        watch_from(f, &at_head, head, 600, false);
        watch_from(f, &seen, head + 1000, 600, false);
        PATIENCE_AWAIT(atomic_load(&seen.n_ends) == 1);
        assert_int_equal(atomic_load(&seen.error), HF_E_GONE);
        assert_int_equal(atomic_load(&at_head.n_ends), 0);
        release(&seen);
        release(&at_head);
}

#define TEST(name)                                                                                 \
        cmocka_unit_test_setup_teardown(name, api_fixture_set_up_by_hand, api_fixture_tear_down)

/* Their clients connected at the same time. The lock is released between two parts of them. */
static void test_many_watches_end_in_parts(void **state) {
        static const size_t parts[] = {TICK_MAX, TICK_MAX, 1, 0};
        static struct seen seen[2 * TICK_MAX + 1];
        struct api_fixture *f = *state;
        pthread_mutex_t *mu = &f->cacher->mu;
        hf_nsec now = hand_clock_now() + 11 * SEC;

        for (size_t i = 0; i < sizeof seen / sizeof seen[0]; i++)
                watch(f, &seen[i], 10, false);
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
                struct hfd_watcher *dirty = NULL;
                size_t n = 0;
                pthread_mutex_lock(mu);
                assert_int_equal(hfd_watchers_due_locked(f->cacher) <= now, parts[i] > 0);
                hfd_watchers_tick_locked(f->cacher, now, &dirty);
                for (const struct hfd_watcher *w = dirty; w; w = w->dirty_next)
                        n++;
                pthread_mutex_unlock(mu);
                assert_int_equal(n, parts[i]);
                hfd_watchers_deliver(dirty);
        }
        for (size_t i = 0; i < sizeof seen / sizeof seen[0]; i++)
                release(&seen[i]);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_bookmarks_come_each_minute_and_before_the_end),
                TEST(test_a_late_timer_sends_the_bookmark_before_the_end),
                TEST(test_a_short_watch_has_the_last_bookmark_only),
                TEST(test_no_bookmark_comes_twice),
                TEST(test_a_watch_without_bookmarks_only_ends),
                TEST(test_a_watch_without_a_timeout_ends_within_the_hour),
                TEST(test_watches_end_at_their_own_times),
                TEST(test_many_watches_end_in_parts),
                TEST(test_a_bookmark_has_the_revision_that_was_reached),
                TEST(test_a_revision_that_the_store_has_not_reached_is_gone),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
