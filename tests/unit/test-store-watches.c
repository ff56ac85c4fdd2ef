/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of the storage interface: watches, and the history that they begin from. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "store_fixture.h"
#include "time_units.h"
#include "watch_recorder.h"

static void test_a_compacted_revision_is_gone(void **state) {
        struct store_fixture *f = *state;
        uint64_t first = store_client_put(f->store, store_fixture_key(f, "a"), "1"),
                 second = store_client_put(f->store, store_fixture_key(f, "a"), "2"),
                 third = store_client_put(f->store, store_fixture_key(f, "b"), "1");
        static struct watch_recorder recorder;
        struct store_reply list;

        assert_int_equal(store_client_compact(f->store, second), 0);
        assert_int_equal(store_client_list(f->store, f->prefix, NULL, first, 0, false, NULL),
                         HF_E_GONE);
        assert_int_equal(store_client_list(f->store, f->prefix, NULL, second, 0, false, &list), 0);
        assert_int_equal(list.n_kvs, 1);
        assert_string_equal(store_reply_value(&list, 0), "2");
        store_reply_deinit(&list);
        assert_int_equal(store_client_compact(f->store, second), HF_E_GONE);
        assert_int_equal(store_client_compact(f->store, third + 100), HF_E_INVALID);
        assert_int_equal(store_client_list(f->store, f->prefix, NULL, third + 100, 0, false, NULL),
                         HF_E_INVALID);

        assert_int_equal(watch_recorder_start(&recorder, f->store, f->prefix,
                                              store_fixture_prefix_end(f), first),
                         0);
        assert_int_equal(watch_recorder_await_end(&recorder), HF_E_GONE);
        assert_int_equal(recorder.n, 0);
        watch_recorder_stop(&recorder);
        assert_int_equal(watch_recorder_start(&recorder, f->store, f->prefix,
                                              store_fixture_prefix_end(f), second + 1),
                         0);
        watch_recorder_await(&recorder, 1);
        assert_int_equal(recorder.events[0].mod_revision, third);
        watch_recorder_stop(&recorder);
}

/* The compaction removes the deletion itself. A store that keeps it delivers it; another one must
 * say that it is gone. etcd 3.4.23 by itself does neither. */
static void test_a_deletion_at_the_compacted_revision_is_not_left_out(void **state) {
        struct store_fixture *f = *state;
        static struct watch_recorder recorder;
        uint64_t deleted;

        store_client_put(f->store, store_fixture_key(f, "a"), "1");
        deleted = store_client_delete(f->store, store_fixture_key(f, "a"));
        assert_int_equal(store_client_compact(f->store, deleted), 0);
        store_client_put(f->store, store_fixture_key(f, "b"), "1");
        assert_int_equal(watch_recorder_start(&recorder, f->store, f->prefix,
                                              store_fixture_prefix_end(f), deleted),
                         0);
        watch_recorder_await(&recorder, 1);
        if (recorder.n == 0)
                assert_int_equal(watch_recorder_await_end(&recorder), HF_E_GONE);
        else
                assert_int_equal(recorder.events[0].mod_revision, deleted);
        watch_recorder_stop(&recorder);
}

/* After a compaction just before its first revision, a watch goes on as if there had been none. */
static void test_a_watch_goes_on_after_the_compacted_revision(void **state) {
        struct store_fixture *f = *state;
        static struct watch_recorder recorder;
        uint64_t first = store_client_put(f->store, store_fixture_key(f, "a"), "1"), deleted;

        deleted = store_client_delete(f->store, store_fixture_key(f, "a"));
        assert_int_equal(store_client_compact(f->store, first), 0);
        assert_int_equal(watch_recorder_start(&recorder, f->store, f->prefix,
                                              store_fixture_prefix_end(f), deleted),
                         0);
        watch_recorder_await(&recorder, 1);
        assert_int_equal(recorder.n, 1);
        assert_int_equal(recorder.events[0].mod_revision, deleted);
        watch_recorder_stop(&recorder);
}

static void test_a_watch_from_the_past_continues_with_new_events(void **state) {
        struct store_fixture *f = *state;
        uint64_t first = store_client_put(f->store, store_fixture_key(f, "a"), "1"), deleted, third;
        static struct watch_recorder recorder;

        deleted = store_client_delete(f->store, store_fixture_key(f, "a"));
        store_client_put(f->store, "/elsewhere", "x");
        assert_int_equal(watch_recorder_start(&recorder, f->store, f->prefix,
                                              store_fixture_prefix_end(f), first),
                         0);
        watch_recorder_await(&recorder, 2);
        third = store_client_put(f->store, store_fixture_key(f, "a"), "3");
        watch_recorder_await(&recorder, 3);
        assert_int_equal(recorder.n, 3);
        assert_int_equal(recorder.events[0].type, HFD_WATCH_PUT);
        assert_string_equal(recorder.events[0].key, store_fixture_key(f, "a"));
        assert_string_equal(recorder.events[0].value->data, "1");
        assert_int_equal(recorder.events[0].mod_revision, first);
        assert_int_equal(recorder.events[0].create_revision, first);
        assert_int_equal(recorder.events[0].revision, first);
        assert_int_equal(recorder.events[1].type, HFD_WATCH_DELETE);
        assert_string_equal(recorder.events[1].key, store_fixture_key(f, "a"));
        assert_null(recorder.events[1].value);
        assert_int_equal(recorder.events[1].mod_revision, deleted);
        assert_int_equal(recorder.events[2].mod_revision, third);
        assert_int_equal(recorder.events[2].create_revision, third);
        watch_recorder_stop(&recorder);
        assert_int_equal(recorder.error, HF_E_CANCELED);
}

static void test_a_watch_sees_only_its_range(void **state) {
        struct store_fixture *f = *state;
        static struct watch_recorder recorder;
        char end[128];
        uint64_t start = store_client_revision(f->store) + 1;

        snprintf(end, sizeof end, "%s", store_fixture_key(f, "c"));
        assert_int_equal(watch_recorder_start(&recorder, f->store, store_fixture_key(f, "b"), end,
                                              start),
                         0);
        store_client_put(f->store, store_fixture_key(f, "a"), "-");
        store_client_put(f->store, store_fixture_key(f, "b"), "+");
        store_client_put(f->store, store_fixture_key(f, "bzz"), "+");
        store_client_put(f->store, store_fixture_key(f, "c"), "-");
        store_client_delete(f->store, store_fixture_key(f, "c"));
        store_client_delete(f->store, store_fixture_key(f, "b"));
        watch_recorder_await(&recorder, 3);
        assert_int_equal(recorder.n, 3);
        assert_string_equal(recorder.events[0].key, store_fixture_key(f, "b"));
        assert_string_equal(recorder.events[1].key, store_fixture_key(f, "bzz"));
        assert_int_equal(recorder.events[2].type, HFD_WATCH_DELETE);
        watch_recorder_stop(&recorder);
}

static void test_events_of_one_revision_arrive_together(void **state) {
        struct store_fixture *f = *state;
        struct hf__buf *value = hf__buf_copy("v", 1);
        static struct watch_recorder live, late;
        uint64_t start = store_client_revision(f->store) + 1;
        char names[HFD_TXN_MAX][128];
        struct hfd_op ops[HFD_TXN_MAX];
        struct hfd_txn txn = {.ops = ops, .n_ops = HFD_TXN_MAX};
        const size_t n = 40 * HFD_TXN_MAX;

        assert_int_equal(watch_recorder_start(&live, f->store, f->prefix,
                                              store_fixture_prefix_end(f), start),
                         0);
        for (size_t i = 0; i < HFD_TXN_MAX; i++) {
                snprintf(names[i], sizeof names[i], "%s%02zu", f->prefix, i);
                ops[i] = (struct hfd_op){.kind = HFD_PUT, .key = names[i], .value = value};
        }
        for (int i = 0; i < 40; i++)
                assert_int_equal(store_client_txn(f->store, &txn, NULL), 0);
        assert_int_equal(watch_recorder_start(&late, f->store, f->prefix,
                                              store_fixture_prefix_end(f), start),
                         0);
        watch_recorder_await(&live, n);
        watch_recorder_await(&late, n);
        for (struct watch_recorder *recorder = &live;; recorder = &late) {
                assert_int_equal(recorder->n, n);
                for (size_t i = 0; i < n; i++) {
                        assert_int_equal(recorder->events[i].revision, start + i / HFD_TXN_MAX);
                        assert_string_equal(recorder->events[i].key, names[i % HFD_TXN_MAX]);
                        if (i % HFD_TXN_MAX)
                                assert_int_equal(recorder->events[i].batch,
                                                 recorder->events[i - 1].batch);
                }
                if (recorder == &late)
                        break;
        }
        watch_recorder_stop(&live);
        watch_recorder_stop(&late);
        hf__buf_unref(value);
}

static void test_a_watch_from_now_can_be_canceled(void **state) {
        struct store_fixture *f = *state;
        static struct watch_recorder first, second;

        store_client_put(f->store, store_fixture_key(f, "a"), "before");
        assert_int_equal(watch_recorder_start(&first, f->store, f->prefix,
                                              store_fixture_prefix_end(f),
                                              store_client_revision(f->store) + 1),
                         0);
        assert_int_equal(watch_recorder_start(&second, f->store, f->prefix,
                                              store_fixture_prefix_end(f),
                                              store_client_revision(f->store) + 1),
                         0);
        assert_int_not_equal(first.id, second.id);
        f->store->ops->watch_cancel(f->store, first.id);
        assert_int_equal(watch_recorder_await_end(&first), HF_E_CANCELED);
        f->store->ops->watch_cancel(f->store, first.id); /* a watch that has ended: no effect */
        f->store->ops->watch_cancel(f->store, 987654321);
        f->store->ops->watch_suspect(f->store, 987654321);
        store_client_put(f->store, store_fixture_key(f, "a"), "after");
        watch_recorder_await(&second, 1);
        assert_int_equal(first.n, 0);
        assert_string_equal(second.events[0].value->data, "after");
        f->store->ops->watch_suspect(f->store, second.id); /* it is canceled too */
        assert_int_equal(watch_recorder_await_end(&second), HF_E_CANCELED);
        watch_recorder_stop(&first);
        watch_recorder_stop(&second);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                STORE_TEST(test_a_compacted_revision_is_gone),
                STORE_TEST(test_a_deletion_at_the_compacted_revision_is_not_left_out),
                STORE_TEST(test_a_watch_goes_on_after_the_compacted_revision),
                STORE_TEST(test_a_watch_from_the_past_continues_with_new_events),
                STORE_TEST(test_a_watch_sees_only_its_range),
                STORE_TEST(test_events_of_one_revision_arrive_together),
                STORE_TEST(test_a_watch_from_now_can_be_canceled),
        };
        return store_fixture_run(tests, sizeof tests / sizeof tests[0]);
}
