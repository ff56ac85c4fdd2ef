/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each allocation of the creation, of a filling, of an event and of a watch fails once: the cache
 * is filled again, or it has everything; no watch misses a change; nothing is left behind.
 */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/metrics.h>

#include "base/buf.h"
#include "failing_memory.h"
#include "hand_clock.h"
#include "patience.h"
#include "scripted_cacher.h"
#include "scripted_watch.h"
#include "server/cacher/state/cacher_state.h"
#include "server/cacher/sync/reflector.h"
#include "server/cacher/watch/snapshot.h"
#include "server/resources/rows/resource_table.h"
#include "time_units.h"

static const struct hfd_resource *configmaps(void) {
        return hfd_resource_find("", "v1", "configmaps");
}

static struct hf__buf *make_value(const char *text) {
        struct hf__buf *value = hf__buf_copy(text, strlen(text));

        assert_non_null(value);
        return value;
}

/* The cache is filled and follows the store, or waits to fill itself again. */
static bool has_settled(void) {
        pthread_mutex_lock(&scripted.cacher->mu);
        bool has = scripted.cacher->watch.id != 0 ||
                   hfd_reflector_due_locked(scripted.cacher) != HF_NSEC_NEVER;
        pthread_mutex_unlock(&scripted.cacher->mu);
        return has;
}

/* Fills the cache again, after a failure. */
static void fill_again(uint64_t revision) {
        unsigned n = scripted_store_n_watches(&scripted.store);

        scripted_cacher_await_backoff();
        scripted_cacher_move(SEC);
        scripted_cacher_reply_epoch(NULL, revision);
        scripted_cacher_reply_list(revision);
        scripted_cacher_await_watch(n + 1);
}

/* Runs the step with each of its allocations failing, of which there are at least so many. */
static void try_all(void (*step)(int n), int at_least) {
        int n = 0;

        do {
                step(n);
                (void)scripted_cacher_tear_down(NULL);
                assert_int_equal(scripted_cacher_set_up(NULL), 0);
        } while (failing_memory_hit() && ++n < 1000);
        assert_true(n >= at_least && n < 1000);
}

/* ---- the creation ---- */

static void ignore_text(void *ctx, const char *text, size_t n) {}

/* A metric that cannot be registered is left out; all else must be there. */
static void create_without(int n) {
        struct hf_host host = {.size = sizeof host, .clock = &hand_clock};
        const struct hfd_cacher_config config = {.store = &scripted.store.base,
                                                 .prefix = "/registry"};
        struct hfd_cacher *cacher = NULL;

        assert_int_equal(hf_metrics_new(&host.metrics), 0);
        failing_memory_arm(n);
        int r = hfd_cacher_new(&host, &config, &cacher);
        failing_memory_disarm();
        assert_true(r == 0 ? cacher != NULL : r == -ENOMEM && failing_memory_hit() && !cacher);
        hf_metrics_write(host.metrics, ignore_text, NULL); /* must not call parts that were freed */
        if (r == 0) {
                assert_int_equal(hfd_cacher_start(cacher), 0);
                struct scripted_request epoch = scripted_store_next(&scripted.store, SCRIPTED_GET);
                scripted_reply_error(&epoch, HF_E_UNAVAILABLE);
                hf_metrics_write(host.metrics, ignore_text, NULL);
        }
        hfd_cacher_free(cacher);
        hf_metrics_free(host.metrics);
}

static void test_a_creation_is_complete_or_undone(void **state) {
        failing_memory_try_all(create_without, 10);
}

/* ---- a filling ---- */

static void fill_without(int n) {
        const struct hfd_kv kvs[] = {
                {.key = "/registry/configmaps/ns/a",
                 .value = make_value(SCRIPTED_OBJECT("a")),
                 .mod_revision = 5},
                {.key = "/registry/configmaps/ns/bad",
                 .value = make_value("nonsense"),
                 .mod_revision = 6},
                {.key = "/registry/secrets/ns/s",
                 .value = make_value(SCRIPTED_OBJECT("s")),
                 .mod_revision = 7},
        };

        assert_int_equal(hfd_cacher_start(scripted.cacher), 0);
        scripted_cacher_reply_epoch(NULL, 10);
        struct scripted_request page = scripted_store_next(&scripted.store, SCRIPTED_LIST);
        failing_memory_arm(n);
        scripted_reply(&page, &(struct hfd_store_reply){.revision = 10, .kvs = kvs, .n_kvs = 3});
        PATIENCE_AWAIT(has_settled());
        failing_memory_disarm();
        if (scripted_store_is_watched(&scripted.store)) {
                assert_int_equal(scripted_cacher_seen("ns/a"), 5);
                assert_int_equal(scripted_cacher_n_logged("ns/bad is not a valid object"), 1);
                assert_int_equal(hfd_cacher_revision(scripted.cacher), 10);
        } else {
                assert_false(hfd_cacher_synced(scripted.cacher));
                fill_again(12);
                assert_int_equal(scripted_cacher_seen("ns/b"), 7);
        }
        for (size_t i = 0; i < 3; i++)
                hf__buf_unref(kvs[i].value);
}

static void test_a_filling_is_complete_or_repeated(void **state) { try_all(fill_without, 3); }

/* ---- events ---- */

/* A put, a change and a deletion, while a snapshot shares the nodes of the tree. */
static void change_without(int n) {
        static const char *const changed[] = {"+c@11 ", "~a@12 ", "-b@13 ", "-a@14 "};
        struct hf__buf *c = make_value(SCRIPTED_OBJECT("c")), *bad = make_value("nonsense");
        struct hfd_watch_event events[] = {
                {HFD_WATCH_PUT, {"/registry/configmaps/ns/c", c, 11, 11}, 11},
                {HFD_WATCH_PUT, {"/registry/configmaps/ns/a", c, 12, 5}, 12},
                {HFD_WATCH_DELETE, {"/registry/configmaps/ns/b", NULL, 13, 0}, 13},
                {HFD_WATCH_PUT, {"/registry/configmaps/ns/a", bad, 14, 5}, 14},
        };
        struct scripted_watch first, second;
        struct hfd_snapshot snapshot;
        size_t n_seen = 0;

        scripted_cacher_fill();
        scripted_watch_begin(&first, (struct scripted_watch_spec){.from_now = true});
        scripted_watch_begin(&second, (struct scripted_watch_spec){.ns = "ns", .from_now = true});
        assert_true(hfd_snapshot_take(scripted.cacher, configmaps(), 0, &snapshot));
        failing_memory_arm(n);
        for (size_t i = 0; i < 4 && scripted_store_is_watched(&scripted.store); i++)
                scripted_store_events(&scripted.store, &events[i], 1);
        failing_memory_disarm();
        const char *seen = first.text;
        while (n_seen < 4 && strncmp(seen, changed[n_seen], strlen(changed[n_seen])) == 0)
                seen += strlen(changed[n_seen++]);
        if (scripted_store_is_watched(&scripted.store)) {
                assert_int_equal(hfd_cacher_revision(scripted.cacher), 14);
                assert_int_equal(scripted_cacher_seen("ns/c"), 11);
                assert_int_equal(scripted_cacher_seen("ns/a"), 0);
                assert_int_equal(scripted_cacher_seen("ns/b"), 0);
                if (n_seen < 4) /* the watch had no memory for an event */
                        assert_string_equal(seen, "END:0 ");
        } else {
                assert_string_equal(seen, n_seen < 4 ? "" : "END:0 ");
                fill_again(20);
                scripted_watch_await(&first);
                assert_int_equal(scripted_cacher_seen("ns/a"), 5);
                assert_int_equal(scripted_cacher_seen("ns/c"), 0);
                assert_non_null(strstr(first.text, "END:410 "));
                assert_non_null(strstr(second.text, "END:410 "));
        }
        scripted_watch_done(&first);
        scripted_watch_done(&second);
        assert_int_equal(hfd_object_tree_size(&snapshot.objects), 2);
        hfd_snapshot_done(&snapshot);
        hf__buf_unref(c);
        hf__buf_unref(bad);
}

static void test_no_event_is_lost(void **state) { try_all(change_without, 3); }

/* ---- the beginning of a watch ---- */

static bool ignore_events(void *ctx, struct hfd_watch_item *items, size_t n) { return true; }
static void ignore_end(void *ctx, int error, const struct hfd_response *response) {}

static void begin_without(int n) {
        static const struct hfd_watch_sink sink = {.events = ignore_events, .end = ignore_end};
        struct hfd_selector labels = {0}, fields = {0};
        const struct hfd_watcher_spec spec = {.resource = configmaps(),
                                              .ns = "ns",
                                              .name = "",
                                              .labels = &labels,
                                              .fields = &fields};
        struct hfd_response response = {0};
        struct hfd_watcher *watcher = NULL;
        char reason[320];

        scripted_cacher_fill();
        assert_int_equal(hfd_selector_parse("k=v", false, spec.resource, &labels, reason,
                                            sizeof reason),
                         0);
        assert_int_equal(hfd_selector_parse("metadata.name!=b", true, spec.resource, &fields,
                                            reason, sizeof reason),
                         0);
        failing_memory_arm(n);
        bool begun = hfd_watcher_new(scripted.cacher, &spec, &sink, NULL, &response, &watcher);
        failing_memory_disarm();
        assert_int_equal(begun, !failing_memory_hit());
        if (begun) {
                hfd_watcher_cancel(watcher);
                hfd_watcher_unref(watcher);
        } else {
                assert_int_equal(response.code, 500);
        }
        hfd_response_done(&response);
        hfd_selector_done(&labels);
        hfd_selector_done(&fields);
}

static void test_a_watch_without_memory_is_refused(void **state) { try_all(begin_without, 2); }

/* ---- an audit, a read of the epoch, a write of the progress key ---- */

/* All three are tried again later. */
static void wait_without(int n) {
        scripted_cacher_fill();
        failing_memory_arm(n);
        scripted_cacher_move(200 * SEC);
        while (scripted_store_n_waiting(&scripted.store) > 0) {
                enum scripted_kind kind = scripted.store.waiting[0].kind;
                struct scripted_request request = scripted_store_next(&scripted.store, kind);
                const struct hfd_kv kvs[] = {
                        {.key = "/registry/configmaps/ns/a", .mod_revision = 5},
                        {.key = "/registry/configmaps/ns/b", .mod_revision = 7},
                };
                scripted_reply(&request,
                               &(struct hfd_store_reply){.revision = 10,
                                                         .kvs = kvs,
                                                         .n_kvs = kind == SCRIPTED_LIST ? 2 : 0});
        }
        failing_memory_disarm();
        assert_true(scripted_store_is_watched(&scripted.store));
        assert_int_equal(scripted_cacher_n_logged("differs"), 0);
}

static void test_what_needs_no_answer_is_tried_again(void **state) { try_all(wait_without, 3); }

int main(void) {
        const struct CMUnitTest tests[] = {
                SCRIPTED_TEST(test_a_creation_is_complete_or_undone),
                SCRIPTED_TEST(test_a_filling_is_complete_or_repeated),
                SCRIPTED_TEST(test_no_event_is_lost),
                SCRIPTED_TEST(test_a_watch_without_memory_is_refused),
                SCRIPTED_TEST(test_what_needs_no_answer_is_tried_again),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
