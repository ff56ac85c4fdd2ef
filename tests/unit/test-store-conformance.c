/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of the storage port: keys, transactions, lists, and many at once. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/storage/term_record.h"
#include "store_cases.h"

static void test_create_get_update_delete(void **state) {
        struct call_answer created, got, updated, deleted;

        assert_int_equal(call_get(store, key("a"), &got), 0);
        assert_int_equal(got.n_kvs, 0);
        assert_true(got.revision > 0);
        call_answer_done(&got);

        assert_int_equal(write_at("a", 0, "one", &created), 0);
        assert_int_equal(call_get(store, key("a"), &got), 0);
        assert_int_equal(got.n_kvs, 1);
        assert_string_equal(got.kvs[0].key, key("a"));
        assert_string_equal(call_value(&got, 0), "one");
        assert_int_equal(got.kvs[0].mod_revision, created.revision);
        assert_int_equal(got.kvs[0].create_revision, created.revision);
        call_answer_done(&got);

        assert_int_equal(write_at("a", created.revision, "two", &updated), 0);
        assert_true(updated.revision > created.revision);
        assert_int_equal(call_get(store, key("a"), &got), 0);
        assert_string_equal(call_value(&got, 0), "two");
        assert_int_equal(got.kvs[0].mod_revision, updated.revision);
        assert_int_equal(got.kvs[0].create_revision, created.revision);
        call_answer_done(&got);

        assert_int_equal(write_at("a", updated.revision, NULL, &deleted), 0);
        assert_true(deleted.revision > updated.revision);
        assert_int_equal(call_get(store, key("a"), &got), 0);
        assert_int_equal(got.n_kvs, 0);
        call_answer_done(&got);
        call_answer_done(&created);
        call_answer_done(&updated);
        call_answer_done(&deleted);
}

static void test_conflict_shows_what_is_there(void **state) {
        struct call_answer response;
        uint64_t first = call_put(store, key("a"), "mine"), second;

        assert_int_equal(write_at("a", 0, "other", &response), HF_E_CONFLICT);
        assert_int_equal(response.n_kvs, 1);
        assert_string_equal(call_value(&response, 0), "mine");
        assert_int_equal(response.kvs[0].mod_revision, first);
        call_answer_done(&response);

        second = call_put(store, key("a"), "mine again");
        assert_int_equal(write_at("a", first, NULL, &response), HF_E_CONFLICT);
        assert_int_equal(response.kvs[0].mod_revision, second);
        call_answer_done(&response);

        /* What is missing is left out. */
        assert_int_equal(write_at("b", 7, "x", &response), HF_E_CONFLICT);
        assert_int_equal(response.n_kvs, 0);
        call_answer_done(&response);
        assert_int_equal(call_get(store, key("b"), &response), 0);
        assert_int_equal(response.n_kvs, 0);
        call_answer_done(&response);
}

static void test_empty_value(void **state) {
        struct call_answer response;

        assert_true(call_put(store, key("a"), "") > 0);
        assert_int_equal(call_get(store, key("a"), &response), 0);
        assert_int_equal(response.n_kvs, 1);
        assert_non_null(response.kvs[0].value);
        assert_int_equal(response.kvs[0].value->n, 0);
        call_answer_done(&response);
        assert_int_equal(write_if(HFD_VALUE_EQUALS, 0, "", 0, "a", "x", NULL), 0);
        assert_int_equal(write_if(HFD_VALUE_EQUALS, 0, "", 0, "missing", "x", NULL), HF_E_CONFLICT);
}

static void test_value_equals(void **state) {
        call_put(store, key("a"), "abc");
        assert_int_equal(write_if(HFD_VALUE_EQUALS, 0, "ab", 2, "a", "x", NULL), HF_E_CONFLICT);
        assert_int_equal(write_if(HFD_VALUE_EQUALS, 0, "abcd", 4, "a", "x", NULL), HF_E_CONFLICT);
        assert_int_equal(write_if(HFD_VALUE_EQUALS, 0, "abc", 3, "a", "x", NULL), 0);
}

static bool begins(const char *value, const void *with, size_t n) {
        int r;

        call_put(store, key("a"), value);
        r = write_if(HFD_VALUE_BEGINS, 0, with, n, "a", value, NULL);
        assert_true(r == 0 || r == HF_E_CONFLICT);
        return r == 0;
}

static void test_value_begins(void **state) {
        assert_true(begins("node-1\n2026", "node-1\n", 7));
        assert_true(begins("node-1\n\x01", "node-1\n", 7));
        assert_true(begins("node-1\n\xff\xff", "node-1\n", 7));
        assert_false(begins("node-1\n", "node-1\n", 7)); /* nothing behind it */
        assert_false(begins("node-1", "node-1\n", 7));
        assert_false(begins("node-10\n2026", "node-1\n", 7));
        assert_false(begins("node-1\v2026", "node-1\n", 7));
        assert_false(begins("node-1\t2026", "node-1\n", 7));
        assert_false(begins("node-0\n2026", "node-1\n", 7));
        assert_false(begins("", "node-1\n", 7));
        /* The last byte has no successor. */
        assert_true(begins("a\xff\xff!", "a\xff\xff", 3));
        assert_false(begins("b", "a\xff\xff", 3));
        assert_false(begins("a\xff", "a\xff\xff", 3));
        assert_true(begins("\xff\xff", "\xff", 1));
        assert_false(begins("\xfe\xff", "\xff", 1));
        /* The empty beginning: all that is not empty. */
        assert_true(begins("x", "", 0));
        assert_false(begins("", "", 0));
        assert_int_equal(write_if(HFD_VALUE_BEGINS, 0, "x", 1, "missing", "x", NULL),
                         HF_E_CONFLICT);
        assert_int_equal(write_if(HFD_VALUE_BEGINS, 0, "", 0, "missing", "x", NULL), HF_E_CONFLICT);
}

static void test_fence_compares(void **state) {
        struct hf_fence fence = {.ns = "ns", .name = "lease", .identity = "node-1_abc"};
        struct hf__buf *record = hfd_term_record_value("node-1_abc", "2026-11-21T02:36:00.000000Z"),
                       *value = hf__buf_copy("x", 1);
        struct hfd_fence_compares compares;
        struct hfd_op op = {.kind = HFD_PUT, .key = key("written"), .value = value};
        struct hfd_txn txn = {.compares = compares.compares,
                              .n_compares = 2,
                              .ops = &op,
                              .n_ops = 1};
        struct hf__buf *foreign = hfd_term_record_value("a\nb", "");

        assert_memory_equal(foreign->data, "a b\n-", 6);
        assert_int_equal(hfd_fence_compares(&compares, prefix, &fence), 0);
        assert_int_equal(call_txn(store, &txn, NULL), HF_E_CONFLICT);
        fence.term = call_put(store, compares.key[0], record->data);
        assert_int_equal(hfd_fence_compares(&compares, prefix, &fence), 0);
        assert_int_equal(call_txn(store, &txn, NULL), 0);
        /* The same term under another holder, and the same holder under another term. */
        strcpy(fence.identity, "node-1_ab");
        assert_int_equal(hfd_fence_compares(&compares, prefix, &fence), 0);
        assert_int_equal(call_txn(store, &txn, NULL), HF_E_CONFLICT);
        strcpy(fence.identity, "node-1_abc");
        fence.term--;
        assert_int_equal(hfd_fence_compares(&compares, prefix, &fence), 0);
        assert_int_equal(call_txn(store, &txn, NULL), HF_E_CONFLICT);
        hf__buf_unref(foreign);
        hf__buf_unref(record);
        hf__buf_unref(value);
}

static void test_txn_is_one_step(void **state) {
        struct hf__buf *value = hf__buf_copy("v", 1);
        uint64_t old = call_put(store, key("old"), "v"), before = call_revision(store);
        const char *a = key("a"), *b = key("b"), *gone = key("old"), *missing = key("missing"),
                   *gets[] = {a, gone, missing};
        struct hfd_compare compares[] = {{.kind = HFD_MOD_EQUALS, .key = a},
                                         {.kind = HFD_MOD_EQUALS, .key = gone, .revision = old}};
        struct hfd_op ops[] = {{.kind = HFD_PUT, .key = a, .value = value},
                               {.kind = HFD_DELETE, .key = gone},
                               {.kind = HFD_DELETE, .key = missing},
                               {.kind = HFD_PUT, .key = b, .value = value}};
        struct hfd_txn txn = {.compares = compares,
                              .n_compares = 2,
                              .ops = ops,
                              .n_ops = 4,
                              .get_on_failure = gets,
                              .n_get_on_failure = 3};
        struct call_answer written, list;

        /* One of two compares fails: nothing is written. */
        compares[1].revision = old + 1;
        assert_int_equal(call_txn(store, &txn, &list), HF_E_CONFLICT);
        assert_int_equal(list.n_kvs, 1);
        assert_string_equal(list.kvs[0].key, gone);
        call_answer_done(&list);
        assert_int_equal(call_revision(store), before);

        compares[1].revision = old;
        assert_int_equal(call_txn(store, &txn, &written), 0);
        assert_int_equal(written.revision, before + 1);
        assert_int_equal(call_list(store, prefix, NULL, 0, 0, false, &list), 0);
        assert_int_equal(list.n_kvs, 2);
        assert_int_equal(list.kvs[0].mod_revision, written.revision);
        assert_int_equal(list.kvs[1].mod_revision, written.revision);
        call_answer_done(&list);
        call_answer_done(&written);
        hf__buf_unref(value);
}

static void test_txn_without_effect_makes_no_revision(void **state) {
        uint64_t before = call_revision(store);

        assert_int_equal(call_delete(store, key("missing")), before);
        assert_int_equal(call_revision(store), before);
        assert_int_equal(call_put(store, key("a"), "x"), before + 1);
        assert_int_equal(call_revision(store), before + 1);
}

static void test_misuse_is_refused(void **state) {
        struct hf__buf *value = hf__buf_copy("v", 1);
        struct hfd_op twice[] = {{.kind = HFD_PUT, .key = key("a"), .value = value},
                                 {.kind = HFD_DELETE, .key = key("a")}};
        struct hfd_op many[HFD_TXN_MAX + 1];
        struct hfd_txn txn = {.ops = twice, .n_ops = 2};
        char *long_key = malloc(HFD_KEY_MAX + 1);

        assert_int_equal(call_txn(store, &txn, NULL), -EINVAL);
        for (size_t i = 0; i <= HFD_TXN_MAX; i++)
                many[i] = (struct hfd_op){.kind = HFD_DELETE, .key = "x"};
        txn = (struct hfd_txn){.ops = many, .n_ops = HFD_TXN_MAX + 1};
        assert_int_equal(call_txn(store, &txn, NULL), HF_E_TOO_LARGE);
        txn.n_ops = 1;
        many[0].kind = HFD_PUT;
        assert_int_equal(call_txn(store, &txn, NULL), -EINVAL);
        memset(long_key, 'k', HFD_KEY_MAX);
        long_key[HFD_KEY_MAX] = 0;
        many[0] = (struct hfd_op){.kind = HFD_PUT, .key = long_key, .value = value};
        assert_int_equal(call_txn(store, &txn, NULL), HF_E_TOO_LARGE);
        assert_int_equal(call_get(store, "", NULL), -EINVAL);
        free(long_key);
        hf__buf_unref(value);
}

static void test_full_txn(void **state) {
        struct hfd_compare compares[HFD_TXN_MAX];
        struct hfd_op ops[HFD_TXN_MAX];
        char names[HFD_TXN_MAX][128];
        struct hf__buf *value = hf__buf_copy("node\n1", 6);
        struct hfd_txn txn = {.compares = compares,
                              .n_compares = HFD_TXN_MAX,
                              .ops = ops,
                              .n_ops = HFD_TXN_MAX};
        struct call_answer list;

        for (size_t i = 0; i < HFD_TXN_MAX; i++) {
                snprintf(names[i], sizeof names[i], "%s%02zu", prefix, i);
                call_put(store, names[i], "node\n0");
                compares[i] = (struct hfd_compare){.kind = HFD_VALUE_BEGINS,
                                                   .key = names[i],
                                                   .value = "node\n",
                                                   .n_value = 5};
                ops[i] = (struct hfd_op){.kind = HFD_PUT, .key = names[i], .value = value};
        }
        assert_int_equal(call_txn(store, &txn, NULL), 0);
        assert_int_equal(call_list(store, prefix, NULL, 0, 0, false, &list), 0);
        assert_int_equal(list.n_kvs, HFD_TXN_MAX);
        for (size_t i = 0; i < HFD_TXN_MAX; i++) {
                assert_string_equal(list.kvs[i].key, names[i]);
                assert_string_equal(call_value(&list, i), "node\n1");
        }
        call_answer_done(&list);
        hf__buf_unref(value);
}

static void test_list(void **state) {
        struct call_answer list;
        uint64_t revision;

        call_put(store, key("b"), "2");
        call_put(store, key("a"), "1");
        call_put(store, key("c/d"), "3");
        revision = call_put(store, key("c"), "4");
        assert_int_equal(call_list(store, prefix, NULL, 0, 0, false, &list), 0);
        assert_int_equal(list.n_kvs, 4);
        assert_false(list.more);
        assert_true(list.revision >= revision);
        assert_string_equal(list.kvs[0].key, key("a"));
        assert_string_equal(list.kvs[1].key, key("b"));
        assert_string_equal(list.kvs[2].key, key("c"));
        assert_string_equal(list.kvs[3].key, key("c/d"));
        assert_string_equal(call_value(&list, 3), "3");
        call_answer_done(&list);

        assert_int_equal(call_list(store, key("c"), NULL, 0, 0, true, &list), 0);
        assert_int_equal(list.n_kvs, 2);
        assert_null(list.kvs[0].value);
        assert_int_equal(list.kvs[0].mod_revision, revision);
        call_answer_done(&list);

        assert_int_equal(call_list(store, key("nothing"), NULL, 0, 0, false, &list), 0);
        assert_int_equal(list.n_kvs, 0);
        call_answer_done(&list);
        /* A start before the prefix changes nothing, one behind it finds nothing. */
        assert_int_equal(call_list(store, prefix, "/", 0, 0, false, &list), 0);
        assert_int_equal(list.n_kvs, 4);
        call_answer_done(&list);
        assert_int_equal(call_list(store, prefix, "/z", 0, 0, false, &list), 0);
        assert_int_equal(list.n_kvs, 0);
        call_answer_done(&list);
        /* The empty prefix is everything. */
        assert_int_equal(call_list(store, "", NULL, 0, 0, true, &list), 0);
        assert_true(list.n_kvs >= 4);
        call_answer_done(&list);
}

static void test_pages_show_one_revision(void **state) {
        char name[16], next[256] = "";
        struct call_answer page;
        uint64_t revision = 0;
        unsigned n = 0, pages = 0;

        for (unsigned i = 0; i < 25; i++) {
                snprintf(name, sizeof name, "k%02u", i);
                call_put(store, key(name), "old");
        }
        do {
                assert_int_equal(call_list(store, prefix, *next ? next : NULL, revision, 10, false,
                                           &page),
                                 0);
                if (!revision)
                        revision = page.revision;
                for (size_t i = 0; i < page.n_kvs; i++, n++) {
                        snprintf(name, sizeof name, "k%02u", n);
                        assert_string_equal(page.kvs[i].key, key(name));
                        assert_string_equal(call_value(&page, i), "old");
                }
                assert_int_equal(page.more, n < 25);
                snprintf(next, sizeof next, "%s\x01", page.kvs[page.n_kvs - 1].key);
                /* Between the pages the world changes. */
                call_put(store, key("k24"), "new");
                call_put(store, key("k20x"), "new");
                call_delete(store, key("k15"));
                pages++;
                call_answer_done(&page);
        } while (n < 25);
        assert_int_equal(pages, 3);
        assert_int_equal(call_list(store, prefix, NULL, 0, 0, false, &page), 0);
        assert_int_equal(page.n_kvs, 25);
        call_answer_done(&page);
}

struct counter {
        const char *key;
        int rounds;
        int failed;
};

/* Read, add one, write if unchanged; what the conflict showed is the next try's start. */
static void *count(void *ctx) {
        struct counter *counter = ctx;

        for (int i = 0; i < counter->rounds; i++) {
                struct call_answer now;
                int r = call_get(store, counter->key, &now);

                while (r == 0) {
                        char text[32];
                        const char *gets[] = {counter->key};
                        struct hfd_compare compare = {.kind = HFD_MOD_EQUALS,
                                                      .key = counter->key,
                                                      .revision = now.n_kvs
                                                                          ? now.kvs[0].mod_revision
                                                                          : 0};
                        struct hfd_op op = {.kind = HFD_PUT, .key = counter->key};
                        struct hfd_txn txn = {.compares = &compare,
                                              .n_compares = 1,
                                              .ops = &op,
                                              .n_ops = 1,
                                              .get_on_failure = gets,
                                              .n_get_on_failure = 1};
                        int n = snprintf(text, sizeof text, "%d",
                                         (now.n_kvs ? atoi(call_value(&now, 0)) : 0) + 1);

                        op.value = hf__buf_copy(text, (size_t)n);
                        call_answer_done(&now);
                        r = call_txn(store, &txn, &now);
                        hf__buf_unref(op.value);
                        if (r != HF_E_CONFLICT)
                                break;
                        r = 0;
                }
                call_answer_done(&now);
                if (r != 0)
                        counter->failed++;
        }
        return NULL;
}

static void test_concurrent_writers_lose_nothing(void **state) {
        enum { N = 8, ROUNDS = 100 };
        struct counter counters[N];
        pthread_t threads[N];
        static struct recorder recorder;
        struct call_answer response;
        char name[128];

        snprintf(name, sizeof name, "%s", key("counter"));
        assert_int_equal(recorder_start(&recorder, store, prefix, prefix_end(),
                                        call_revision(store) + 1),
                         0);
        for (int i = 0; i < N; i++) {
                counters[i] = (struct counter){.key = name, .rounds = ROUNDS};
                assert_int_equal(pthread_create(&threads[i], NULL, count, &counters[i]), 0);
        }
        for (int i = 0; i < N; i++) {
                pthread_join(threads[i], NULL);
                assert_int_equal(counters[i].failed, 0);
        }
        assert_int_equal(call_get(store, name, &response), 0);
        assert_int_equal(atoi(call_value(&response, 0)), N * ROUNDS);
        call_answer_done(&response);
        recorder_wait(&recorder, N * ROUNDS);
        assert_int_equal(recorder.n, N * ROUNDS);
        for (int i = 0; i < N * ROUNDS; i++) {
                assert_int_equal(atoi(recorder.events[i].value->data), i + 1);
                if (i)
                        assert_true(recorder.events[i].revision > recorder.events[i - 1].revision);
        }
        recorder_done(&recorder);
}

static int put_bytes(const char *name, size_t n) {
        struct hfd_op op = {.kind = HFD_PUT, .key = key(name), .value = hf__buf_new(n)};
        struct hfd_txn txn = {.ops = &op, .n_ops = 1};
        struct call_answer response;
        int r;

        for (size_t i = 0; i < n; i++)
                op.value->data[i] = (char)(i * 31 + i / 256);
        r = call_txn(store, &txn, &response);
        if (r != 0 && r != HF_E_TOO_LARGE)
                fprintf(stderr, "%zu bytes: %s\n", n, response.status.message);
        call_answer_done(&response);
        hf__buf_unref(op.value);
        return r;
}

static void test_large_values(void **state) {
        const size_t n = 1024 * 1024;
        static struct recorder recorder;
        struct call_answer response;

        assert_int_equal(recorder_start(&recorder, store, prefix, prefix_end(),
                                        call_revision(store) + 1),
                         0);
        assert_int_equal(put_bytes("a", n), 0);
        assert_int_equal(put_bytes("b", n), 0);
        assert_int_equal(put_bytes("c", 1700 * 1024), HF_E_TOO_LARGE);
        assert_int_equal(put_bytes("c", 8 * n), HF_E_TOO_LARGE);
        if (call_list(store, prefix, NULL, 0, 0, false, &response) != 0)
                fail_msg("the list of both: %s", response.status.message);
        assert_int_equal(response.n_kvs, 2);
        for (size_t i = 0; i < 2; i++) {
                assert_int_equal(response.kvs[i].value->n, n);
                for (size_t j = 0; j < n; j++)
                        if (response.kvs[i].value->data[j] != (char)(j * 31 + j / 256))
                                fail_msg("byte %zu differs", j);
        }
        recorder_wait(&recorder, 2);
        assert_int_equal(recorder.n, 2);
        assert_memory_equal(recorder.events[1].value->data, response.kvs[1].value->data, n);
        call_answer_done(&response);
        recorder_done(&recorder);
}

/* A deadline in the past ends the operation at once, done or not; never does it hang. */
static void test_deadline(void **state) {
        struct call_answer response;

        call_answer_init(&response);
        assert_int_equal(store->ops->get(store, key("a"), 1, call_store_answer, &response), 0);
        call_wait(&response);
        assert_true(response.error == 0 || response.error == HF_E_TIMEOUT ||
                    response.error == HF_E_UNAVAILABLE);
        call_answer_done(&response);
}

static void test_turns_and_revision_grow(void **state) {
        uint64_t iterations = store->ops->iterations(store), revision = call_revision(store);

        for (int i = 0; i < 5; i++) {
                uint64_t next = call_put(store, key("a"), "x");

                assert_true(next > revision);
                revision = next;
        }
        assert_true(call_revision(store) >= revision);
        assert_true(store->ops->iterations(store) > iterations);
}

/* An operation started in a callback, as the optimistic loop of an update does. */
struct chain {
        struct hfd_store *store;
        const char *key;
        int left;
        struct call_answer last;
};

static void chain_next(void *ctx, const struct hfd_store_reply *reply) {
        struct chain *chain = ctx;

        if (reply->error || chain->left-- == 0)
                call_store_answer(&chain->last, reply);
        else if (chain->store->ops->get(chain->store, chain->key, call_deadline(20000), chain_next,
                                        chain))
                abort();
}

static void test_callbacks_start_operations(void **state) {
        struct chain chain = {.store = store, .key = key("a"), .left = 50};

        call_put(store, key("a"), "x");
        call_answer_init(&chain.last);
        assert_int_equal(store->ops->get(store, chain.key, call_deadline(20000), chain_next,
                                         &chain),
                         0);
        assert_int_equal(call_wait(&chain.last), 0);
        assert_int_equal(chain.last.n_kvs, 1);
        call_answer_done(&chain.last);
}

static void test_free_ends_everything(void **state) {
        enum { N = 64 };
        struct hfd_store *own = open_store();
        struct call_answer *answers = calloc(N, sizeof *answers);
        static struct recorder recorders[4];
        struct hf__buf *value = hf__buf_copy("v", 1);

        for (int i = 0; i < 4; i++)
                assert_int_equal(recorder_start(&recorders[i], own, prefix, prefix_end(), 0), 0);
        for (int i = 0; i < N; i++) {
                struct hfd_op op = {.kind = HFD_PUT, .key = key("a"), .value = value};
                struct hfd_txn txn = {.ops = &op, .n_ops = 1};

                call_answer_init(&answers[i]);
                assert_int_equal(own->ops->txn(own, &txn, call_deadline(20000), call_store_answer,
                                               &answers[i]),
                                 0);
        }
        own->ops->free(own);
        for (int i = 0; i < N; i++) {
                assert_true(answers[i].done);
                assert_true(answers[i].error == 0 || answers[i].error == HF_E_CANCELED);
                call_answer_done(&answers[i]);
        }
        for (int i = 0; i < 4; i++) {
                assert_true(recorders[i].ended);
                assert_int_equal(recorders[i].error, HF_E_CANCELED);
                recorders[i].store = NULL;
                recorder_done(&recorders[i]);
        }
        free(answers);
        hf__buf_unref(value);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                CASE(test_create_get_update_delete),
                CASE(test_conflict_shows_what_is_there),
                CASE(test_empty_value),
                CASE(test_value_equals),
                CASE(test_value_begins),
                CASE(test_fence_compares),
                CASE(test_txn_is_one_step),
                CASE(test_txn_without_effect_makes_no_revision),
                CASE(test_misuse_is_refused),
                CASE(test_full_txn),
                CASE(test_list),
                CASE(test_pages_show_one_revision),
                CASE(test_concurrent_writers_lose_nothing),
                CASE(test_large_values),
                CASE(test_deadline),
                CASE(test_turns_and_revision_grow),
                CASE(test_callbacks_start_operations),
                CASE(test_free_ends_everything),
        };
        return run_over_every_store(tests, sizeof tests / sizeof tests[0]);
}
