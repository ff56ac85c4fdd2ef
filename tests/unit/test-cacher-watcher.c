/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A watcher whose sink has no room: changes wait, nothing is lost or reordered, the end is not
 * delayed. And a watcher whose owner sends the existing objects itself.
 */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "api_fixture.h"
#include "base/thread.h"
#include "patience.h"
#include "server/cacher/watch/snapshot.h"
#include "server/cacher/watch/watcher.h"
#include "server/resources/rows/resource_table.h"

struct seen {
        struct hfd_watcher *watcher;
        atomic_bool ready;
        atomic_int n_asked; /* calls of ready */

        pthread_mutex_t mu;
        pthread_cond_t cond;
        char names[4096]; /* of the objects in the events, with a space behind each */
        size_t n_names, n_events, largest_batch;
        bool ended;
        int end_error;
};

static bool on_ready(void *ctx) {
        struct seen *seen = ctx;

        atomic_fetch_add(&seen->n_asked, 1);
        return atomic_load(&seen->ready);
}

static bool on_events(void *ctx, struct hfd_watch_item *items, size_t n) {
        struct seen *seen = ctx;

        pthread_mutex_lock(&seen->mu);
        assert_false(seen->ended);
        seen->n_events += n;
        seen->largest_batch = n > seen->largest_batch ? n : seen->largest_batch;
        for (size_t i = 0; i < n; i++)
                seen->n_names += (size_t)snprintf(seen->names + seen->n_names,
                                                  sizeof seen->names - seen->n_names, "%s ",
                                                  items[i].object ? hfd_object_name(items[i].object)
                                                                  : "bookmark");
        pthread_cond_broadcast(&seen->cond);
        pthread_mutex_unlock(&seen->mu);
        return true;
}

static void on_end(void *ctx, int error, const struct hfd_response *response) {
        struct seen *seen = ctx;

        pthread_mutex_lock(&seen->mu);
        assert_false(seen->ended);
        seen->ended = true;
        seen->end_error = error;
        pthread_cond_broadcast(&seen->cond);
        pthread_mutex_unlock(&seen->mu);
}

static const struct hfd_watch_sink sink = {.ready = on_ready, .events = on_events, .end = on_end};

static void watch(struct api_fixture *f, struct seen *seen, bool from_now) {
        struct hfd_selector labels = {0}, fields = {0};
        struct hfd_response response = {0};
        const struct hfd_watcher_spec spec = {.resource = hfd_resource_find(api_workspaces.group,
                                                                            api_workspaces.version,
                                                                            api_workspaces.plural),
                                              .ns = "",
                                              .name = "",
                                              .labels = &labels,
                                              .fields = &fields,
                                              .from_now = from_now};

        memset(seen, 0, sizeof *seen);
        assert_int_equal(hf__mutex_cond_init(&seen->mu, &seen->cond), 0);
        assert_true(hfd_watcher_new(f->cacher, &spec, &sink, seen, &response, &seen->watcher));
}

static void await_events(struct seen *seen, size_t n) {
        pthread_mutex_lock(&seen->mu);
        PATIENCE_AWAIT_LOCKED(&seen->cond, &seen->mu, seen->n_events >= n);
        pthread_mutex_unlock(&seen->mu);
}

static void await_end(struct seen *seen) {
        pthread_mutex_lock(&seen->mu);
        PATIENCE_AWAIT_LOCKED(&seen->cond, &seen->mu, seen->ended);
        pthread_mutex_unlock(&seen->mu);
}

static void release(struct seen *seen) {
        hfd_watcher_cancel(seen->watcher);
        await_end(seen);
        hfd_watcher_unref(seen->watcher);
        pthread_cond_destroy(&seen->cond);
        pthread_mutex_destroy(&seen->mu);
}

static void test_changes_wait_until_there_is_room(void **state) {
        struct api_fixture *f = *state;
        struct seen seen;
        char expected[4096] = "";

        watch(f, &seen, true);
        hfd_watcher_start(seen.watcher);
        api_fixture_make_workspaces(f, 100);
        assert_int_equal(api_fixture_n_selected(f, NULL), 100); /* the cacher has them all */
        PATIENCE_AWAIT(atomic_load(&seen.n_asked) > 0);
        assert_int_equal(seen.n_events, 0);
        hfd_watcher_resume(seen.watcher); /* there is no room yet */
        assert_int_equal(seen.n_events, 0);
        atomic_store(&seen.ready, true);
        hfd_watcher_resume(seen.watcher);
        await_events(&seen, 100);
        for (int i = 0; i < 100; i++)
                sprintf(expected + strlen(expected), "w%02d ", i);
        assert_string_equal(seen.names, expected);
        assert_true(seen.largest_batch > 1 && seen.largest_batch <= 64);
        release(&seen);
}

/* A client that does not read must not delay a shutdown: what waits is dropped. */
static void test_the_end_does_not_wait_for_room(void **state) {
        struct api_fixture *f = *state;
        struct seen seen;

        watch(f, &seen, true);
        hfd_watcher_start(seen.watcher);
        api_fixture_make_workspaces(f, 10);
        hfd_cacher_end_watches(f->cacher);
        await_end(&seen);
        assert_int_equal(seen.end_error, 0);
        assert_int_equal(seen.n_events, 0);
        release(&seen);
}

/* The owner takes the objects that exist. Changes wait until it has sent them. */
static void test_the_owner_sends_the_snapshot(void **state) {
        struct api_fixture *f = *state;
        struct hfd_snapshot snapshot;
        struct seen seen;

        api_fixture_make_workspaces(f, 5);
        assert_int_equal(api_fixture_n_selected(f, NULL), 5);
        watch(f, &seen, false);
        atomic_store(&seen.ready, true);
        hfd_watcher_open(seen.watcher);
        assert_true(hfd_watcher_take_snapshot(seen.watcher, &snapshot));
        assert_int_equal(hfd_object_tree_size(&snapshot.objects), 5);
        assert_false(hfd_watcher_take_snapshot(seen.watcher, &snapshot)); /* it is taken */
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL, NULL,
                                             "{\"metadata\":{\"name\":\"later\"}}"),
                         0);
        assert_int_equal(api_fixture_n_selected(f, NULL), 6);
        assert_int_equal(seen.n_events, 0);
        assert_int_equal(hfd_object_tree_size(&snapshot.objects), 5);
        hfd_watcher_start(seen.watcher);
        await_events(&seen, 1);
        assert_string_equal(seen.names, "later ");
        hfd_snapshot_done(&snapshot);
        release(&seen);
}

/* If nobody takes it, the watcher delivers it, in batches. */
static void test_the_watcher_delivers_the_snapshot(void **state) {
        struct api_fixture *f = *state;
        struct seen seen;

        api_fixture_make_workspaces(f, 99);
        assert_int_equal(api_fixture_n_selected(f, NULL), 99);
        watch(f, &seen, false);
        atomic_store(&seen.ready, true);
        hfd_watcher_start(seen.watcher);
        await_events(&seen, 99);
        assert_int_equal(seen.n_events, 99);
        assert_true(seen.largest_batch <= 64);
        release(&seen);
}

/* The watch ends while its owner sends the objects: the end comes at once, without the changes. */
static void test_an_end_before_the_start(void **state) {
        struct api_fixture *f = *state;
        struct seen seen;

        watch(f, &seen, false);
        hfd_watcher_open(seen.watcher);
        api_fixture_make_workspaces(f, 3);
        assert_int_equal(api_fixture_n_selected(f, NULL), 3);
        assert_false(seen.ended);
        hfd_cacher_end_watches(f->cacher);
        await_end(&seen);
        assert_int_equal(seen.n_events, 0);
        hfd_watcher_start(seen.watcher); /* no effect: its owner does not know of the end yet */
        assert_int_equal(seen.n_events, 0);
        release(&seen);
}

/* ---- the past, while objects change ---- */

enum { N_UPDATES = 1000, N_FOLLOWERS = 64 };

struct follower {
        struct hfd_watcher *watcher;
        _Atomic uint64_t revision; /* of the last event */
        atomic_bool has_gap, ended;
};

static bool on_followed(void *ctx, struct hfd_watch_item *items, size_t n) {
        struct follower *follower = ctx;

        for (size_t i = 0; i < n; i++) {
                uint64_t last = atomic_load(&follower->revision);
                if (items[i].revision != last + 1)
                        atomic_store(&follower->has_gap, true);
                atomic_store(&follower->revision, items[i].revision);
        }
        return true;
}

static void on_follower_ended(void *ctx, int error, const struct hfd_response *response) {
        atomic_store(&((struct follower *)ctx)->ended, true);
}

static void follow(struct api_fixture *f, struct follower *follower, uint64_t revision) {
        static const struct hfd_watch_sink following = {.events = on_followed,
                                                        .end = on_follower_ended};
        struct hfd_selector labels = {0}, fields = {0};
        struct hfd_response response = {0};
        const struct hfd_watcher_spec spec = {.resource = hfd_resource_find(api_workspaces.group,
                                                                            api_workspaces.version,
                                                                            api_workspaces.plural),
                                              .ns = "",
                                              .name = "",
                                              .labels = &labels,
                                              .fields = &fields,
                                              .revision = revision};

        *follower = (struct follower){.revision = revision};
        assert_true(hfd_watcher_new(f->cacher, &spec, &following, follower, &response,
                                    &follower->watcher));
        hfd_watcher_start(follower->watcher);
}

static void *update_all_the_time(void *ctx) {
        struct api_fixture *f = ctx;
        char body[100];

        for (int i = 0; i < N_UPDATES; i++) {
                (void)snprintf(body, sizeof body,
                               "{\"metadata\":{\"name\":\"busy\",\"labels\":{\"n\":\"%d\"}}}", i);
                int r = api_fixture_request(f, HF_VERB_UPDATE, api_workspaces, NULL, "busy", NULL,
                                            body);
                assert(r == 0);
        }
        return NULL;
}

/* Watches begin at the first revision while the object changes: each of them gets every change
 * once, in order, from the history and then from its queue. */
static void test_the_past_joins_the_present_without_a_gap(void **state) {
        static struct follower followers[N_FOLLOWERS];
        struct api_fixture *f = *state;
        pthread_t thread;

        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL, NULL,
                                             "{\"metadata\":{\"name\":\"busy\"}}"),
                         0);
        assert_int_equal(api_fixture_n_selected(f, NULL), 1); /* the cacher has it */
        uint64_t first = hfd_cacher_revision(f->cacher);
        assert_int_equal(pthread_create(&thread, NULL, update_all_the_time, f), 0);
        for (size_t i = 0; i < N_FOLLOWERS; i++) {
                uint64_t until = first + (i + 1) * N_UPDATES / (N_FOLLOWERS + 1);
                PATIENCE_AWAIT(hfd_cacher_revision(f->cacher) >= until);
                follow(f, &followers[i], first);
        }
        assert_int_equal(pthread_join(thread, NULL), 0);
        for (size_t i = 0; i < N_FOLLOWERS; i++) {
                PATIENCE_AWAIT(atomic_load(&followers[i].revision) == first + N_UPDATES);
                assert_false(atomic_load(&followers[i].has_gap));
                assert_false(atomic_load(&followers[i].ended));
                hfd_watcher_cancel(followers[i].watcher);
                PATIENCE_AWAIT(atomic_load(&followers[i].ended));
                hfd_watcher_unref(followers[i].watcher);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                API_TEST(test_changes_wait_until_there_is_room),
                API_TEST(test_the_end_does_not_wait_for_room),
                API_TEST(test_the_owner_sends_the_snapshot),
                API_TEST(test_the_watcher_delivers_the_snapshot),
                API_TEST(test_an_end_before_the_start),
                API_TEST(test_the_past_joins_the_present_without_a_gap),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
