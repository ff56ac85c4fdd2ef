/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of the storage port: watches, and the history they begin from. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store_cases.h"

static void test_compacted_is_gone(void **state) {
        uint64_t first = call_put(store, key("a"), "1"), second = call_put(store, key("a"), "2"),
                 third = call_put(store, key("b"), "1");
        static struct recorder recorder;
        struct call_answer list;

        assert_int_equal(call_compact(store, second), 0);
        assert_int_equal(call_list(store, prefix, NULL, first, 0, false, NULL), HF_E_GONE);
        assert_int_equal(call_list(store, prefix, NULL, second, 0, false, &list), 0);
        assert_int_equal(list.n_kvs, 1);
        assert_string_equal(call_value(&list, 0), "2");
        call_answer_done(&list);
        assert_int_equal(call_compact(store, second), HF_E_GONE);
        assert_int_equal(call_compact(store, third + 100), HF_E_INVALID);
        assert_int_equal(call_list(store, prefix, NULL, third + 100, 0, false, NULL), HF_E_INVALID);

        assert_int_equal(recorder_start(&recorder, store, prefix, prefix_end(), first), 0);
        assert_int_equal(recorder_wait_end(&recorder), HF_E_GONE);
        assert_int_equal(recorder.n, 0);
        recorder_done(&recorder);
        assert_int_equal(recorder_start(&recorder, store, prefix, prefix_end(), second + 1), 0);
        recorder_wait(&recorder, 1);
        assert_int_equal(recorder.events[0].mod_revision, third);
        recorder_done(&recorder);
}

static void test_watch_from_the_past_and_on(void **state) {
        uint64_t first = call_put(store, key("a"), "1"), deleted, third;
        static struct recorder recorder;

        deleted = call_delete(store, key("a"));
        call_put(store, "/elsewhere", "x");
        assert_int_equal(recorder_start(&recorder, store, prefix, prefix_end(), first), 0);
        recorder_wait(&recorder, 2);
        third = call_put(store, key("a"), "3");
        recorder_wait(&recorder, 3);
        assert_int_equal(recorder.n, 3);
        assert_int_equal(recorder.events[0].type, HFD_WATCH_PUT);
        assert_string_equal(recorder.events[0].key, key("a"));
        assert_string_equal(recorder.events[0].value->data, "1");
        assert_int_equal(recorder.events[0].mod_revision, first);
        assert_int_equal(recorder.events[0].create_revision, first);
        assert_int_equal(recorder.events[0].revision, first);
        assert_int_equal(recorder.events[1].type, HFD_WATCH_DELETE);
        assert_string_equal(recorder.events[1].key, key("a"));
        assert_null(recorder.events[1].value);
        assert_int_equal(recorder.events[1].mod_revision, deleted);
        assert_int_equal(recorder.events[2].mod_revision, third);
        assert_int_equal(recorder.events[2].create_revision, third);
        recorder_done(&recorder);
        assert_int_equal(recorder.error, HF_E_CANCELED);
}

static void test_watch_sees_its_range_only(void **state) {
        static struct recorder recorder;
        char end[128];
        uint64_t start = call_revision(store) + 1;

        snprintf(end, sizeof end, "%s", key("c"));
        assert_int_equal(recorder_start(&recorder, store, key("b"), end, start), 0);
        call_put(store, key("a"), "-");
        call_put(store, key("b"), "+");
        call_put(store, key("bzz"), "+");
        call_put(store, key("c"), "-");
        call_delete(store, key("c"));
        call_delete(store, key("b"));
        recorder_wait(&recorder, 3);
        assert_int_equal(recorder.n, 3);
        assert_string_equal(recorder.events[0].key, key("b"));
        assert_string_equal(recorder.events[1].key, key("bzz"));
        assert_int_equal(recorder.events[2].type, HFD_WATCH_DELETE);
        recorder_done(&recorder);
}

static void test_watch_keeps_a_revision_together(void **state) {
        struct hf__buf *value = hf__buf_copy("v", 1);
        static struct recorder live, late;
        uint64_t start = call_revision(store) + 1;
        char names[HFD_TXN_MAX][128];
        struct hfd_op ops[HFD_TXN_MAX];
        struct hfd_txn txn = {.ops = ops, .n_ops = HFD_TXN_MAX};
        const size_t n = 40 * HFD_TXN_MAX;

        assert_int_equal(recorder_start(&live, store, prefix, prefix_end(), start), 0);
        for (size_t i = 0; i < HFD_TXN_MAX; i++) {
                snprintf(names[i], sizeof names[i], "%s%02zu", prefix, i);
                ops[i] = (struct hfd_op){.kind = HFD_PUT, .key = names[i], .value = value};
        }
        for (int i = 0; i < 40; i++)
                assert_int_equal(call_txn(store, &txn, NULL), 0);
        assert_int_equal(recorder_start(&late, store, prefix, prefix_end(), start), 0);
        recorder_wait(&live, n);
        recorder_wait(&late, n);
        for (struct recorder *recorder = &live;; recorder = &late) {
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
        recorder_done(&live);
        recorder_done(&late);
        hf__buf_unref(value);
}

static void test_watch_from_now_and_cancel(void **state) {
        static struct recorder first, second;

        call_put(store, key("a"), "before");
        assert_int_equal(recorder_start(&first, store, prefix, prefix_end(),
                                        call_revision(store) + 1),
                         0);
        assert_int_equal(recorder_start(&second, store, prefix, prefix_end(),
                                        call_revision(store) + 1),
                         0);
        assert_int_not_equal(first.id, second.id);
        store->ops->watch_cancel(store, first.id);
        assert_int_equal(recorder_wait_end(&first), HF_E_CANCELED);
        store->ops->watch_cancel(store, first.id); /* of an ended watch: nothing */
        store->ops->watch_cancel(store, 987654321);
        call_put(store, key("a"), "after");
        recorder_wait(&second, 1);
        assert_int_equal(first.n, 0);
        assert_string_equal(second.events[0].value->data, "after");
        recorder_done(&first);
        recorder_done(&second);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                CASE(test_compacted_is_gone),         CASE(test_watch_from_the_past_and_on),
                CASE(test_watch_sees_its_range_only), CASE(test_watch_keeps_a_revision_together),
                CASE(test_watch_from_now_and_cancel),
        };
        return run_over_every_store(tests, sizeof tests / sizeof tests[0]);
}
