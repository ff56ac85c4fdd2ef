/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See one_watch.h. The sink records what it gets, and it asserts what the delivery promises to
 * every sink: no call without events, and no second delivery during a call.
 */
#include "one_watch.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread.h"
#include "failing_memory.h"
#include "server/resources/resource.h"
#include "server/resources/rows/resource_table.h"

struct hfd_delivery one_watch;
struct one_watch_seen one_watch_seen;
struct hfd_cacher one_watch_cacher;
static pthread_mutex_t *const mu = &one_watch_cacher.mu;
static size_t n_live; /* allocations at the beginning of the test */

/* ---- the sink ---- */

static bool on_ready(void *ctx) {
        one_watch_seen.n_asked++;
        if (one_watch_seen.resumes && one_watch_seen.n_asked == 1) {
                pthread_mutex_lock(mu);
                one_watch.resumed = true;
                pthread_mutex_unlock(mu);
                return false;
        }
        if (one_watch_seen.n_room == 0)
                return false;
        one_watch_seen.n_room--;
        return true;
}

static void on_waiting_changed(void *ctx) {
        one_watch_seen.n_waiting++;
        one_watch_seen.told = atomic_load(&one_watch.n_bytes);
}

static bool on_events(void *ctx, struct hfd_watch_item *items, size_t n) {
        assert_true(n > 0);
        size_t n_before = ++one_watch_seen.n_calls;
        if (one_watch_seen.runs_again) {
                pthread_mutex_lock(mu);
                assert_false(hfd_delivery_run_locked(&one_watch));
                pthread_mutex_unlock(mu);
                assert_int_equal(one_watch_seen.n_calls, n_before);
        }
        if (one_watch_seen.changes) {
                one_watch_seen.changes = false;
                one_watch_change("ns/a", one_watch_cacher.revision + 1);
        }
        for (size_t i = 0; i < n; i++)
                one_watch_seen.last_revision = items[i].revision == one_watch_seen.last_revision + 1
                                                       ? items[i].revision
                                                       : 0;
        one_watch_seen.n_events += n;
        one_watch_seen.largest = n > one_watch_seen.largest ? n : one_watch_seen.largest;
        for (size_t i = 0; i < n && one_watch_seen.n_text < sizeof one_watch_seen.text - 64; i++)
                one_watch_seen.n_text +=
                        (size_t)snprintf(one_watch_seen.text + one_watch_seen.n_text,
                                         sizeof one_watch_seen.text - one_watch_seen.n_text,
                                         "%c%s@%" PRIu64 " ", "+~-b"[items[i].type],
                                         items[i].object ? hfd_object_name(items[i].object) : "",
                                         items[i].revision);
        return !one_watch_seen.refuses;
}

static void on_end(void *ctx, int error, const struct hfd_response *response) {
        one_watch_seen.n_ends++;
        one_watch_seen.end_error = error;
        one_watch_seen.end_code = response->code;
        one_watch_seen.end_has_body = response->body != NULL;
}

/* ---- the watch ---- */

static const struct hfd_resource *configmaps(void) {
        return hfd_resource_find("", "v1", "configmaps");
}

int one_watch_set_up(void **state) {
        n_live = failing_memory_n_live();
        memset(&one_watch_seen, 0, sizeof one_watch_seen);
        one_watch_seen.n_room = SIZE_MAX;
        assert_int_equal(hf__mutex_init(mu), 0);
        hfd_event_histories_init(&one_watch_cacher.histories);
        one_watch_cacher.revision = 0;
        one_watch = (struct hfd_delivery){.cacher = &one_watch_cacher,
                                          .sink = {.ready = on_ready,
                                                   .waiting_changed = on_waiting_changed,
                                                   .events = on_events,
                                                   .end = on_end},
                                          .resource = configmaps(),
                                          .ns = "",
                                          .started = true};
        return 0;
}

int one_watch_tear_down(void **state) {
        hfd_delivery_done(&one_watch);
        hfd_event_histories_done(&one_watch_cacher.histories);
        pthread_mutex_destroy(mu);
        assert_int_equal(failing_memory_n_live(), n_live);
        return 0;
}

struct hfd_object *one_watch_make(const char *path, const char *labels, uint64_t revision) {
        char text[256];

        (void)snprintf(text, sizeof text,
                       "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":"
                       "{\"name\":\"%s\",\"labels\":{%s}}}",
                       strchr(path, '/') + 1, labels);
        struct hf__buf *stored = hf__buf_copy(text, strlen(text));
        struct hfd_object *object = hfd_object_new(configmaps(), path, revision, stored);
        assert_non_null(object);
        hf__buf_unref(stored);
        return object;
}

void one_watch_queue(const char *path, const char *labels, const char *before, uint64_t revision) {
        struct hfd_change change = {.type = HF_EVENT_MODIFIED};

        if (!labels)
                change.type = HF_EVENT_DELETED;
        else if (!before)
                change.type = HF_EVENT_ADDED;
        change.object = one_watch_make(path, labels ? labels : before, revision);
        if (before)
                change.before = one_watch_make(path, before, revision - 1);
        pthread_mutex_lock(mu);
        hfd_delivery_queue_locked(&one_watch, &change, revision);
        pthread_mutex_unlock(mu);
        hfd_object_unref(change.object);
        hfd_object_unref(change.before);
}

void one_watch_queue_bookmarks(uint64_t first, size_t n) {
        const struct hfd_change bookmark = {.type = HF_EVENT_BOOKMARK};

        pthread_mutex_lock(mu);
        for (size_t i = 0; i < n; i++)
                hfd_delivery_queue_locked(&one_watch, &bookmark, first + i);
        pthread_mutex_unlock(mu);
}

void one_watch_remember(const char *path, uint64_t revision) {
        const struct hfd_object_tree tree = {0};
        const struct hfd_change change = {.type = HF_EVENT_MODIFIED,
                                          .object = one_watch_make(path, "", revision),
                                          .before = one_watch_make(path, "", revision - 1)};
        struct hfd_history_garbage garbage = {.n = 0};

        pthread_mutex_lock(mu);
        hfd_event_history_add(&one_watch_cacher.histories, change, &tree, 1, &garbage);
        one_watch_cacher.revision = revision;
        pthread_mutex_unlock(mu);
        assert_int_equal(garbage.n, 0);
}

void one_watch_change(const char *path, uint64_t revision) {
        one_watch_queue(path, "", "", revision);
        one_watch_remember(path, revision);
}

void one_watch_begin_after(uint64_t revision) {
        struct hfd_event_history *history =
                hfd_event_history_of(&one_watch_cacher.histories, hfd_resource_index(configmaps()));
        size_t first;

        one_watch.started = false;
        assert_true(hfd_event_history_resume(history, revision, &first));
        pthread_mutex_lock(mu);
        hfd_delivery_catch_up_locked(&one_watch, history, first);
        pthread_mutex_unlock(mu);
}

void one_watch_forget(void) {
        struct hfd_history_garbage garbage = {.n = 0};
        bool done = false;

        one_watch_cacher.histories.max_bytes = 0;
        while (!done) {
                done = hfd_event_histories_trim(&one_watch_cacher.histories, 1, &garbage);
                hfd_history_garbage_free(&garbage);
        }
}

bool one_watch_run(void) {
        pthread_mutex_lock(mu);
        bool ended = hfd_delivery_run_locked(&one_watch);
        pthread_mutex_unlock(mu);
        assert_false(one_watch.delivering);
        if (ended)
                hfd_delivery_end(&one_watch);
        return ended;
}

void one_watch_request_end(int error) {
        pthread_mutex_lock(mu);
        hfd_delivery_request_end_locked(&one_watch, error);
        pthread_mutex_unlock(mu);
}

void one_watch_cancel(void) {
        pthread_mutex_lock(mu);
        hfd_delivery_cancel_locked(&one_watch);
        pthread_mutex_unlock(mu);
}

void one_watch_select_by(const char *labels, const char *fields) {
        char reason[320];

        assert_int_equal(hfd_selector_parse(labels, false, configmaps(), &one_watch.labels, reason,
                                            sizeof reason),
                         0);
        assert_int_equal(hfd_selector_parse(fields, true, configmaps(), &one_watch.fields, reason,
                                            sizeof reason),
                         0);
}
