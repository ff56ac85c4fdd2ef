/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of the storage interface: keys, transactions, lists, and many requests at once. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "patience.h"
#include "server/storage/keys.h"
#include "server/storage/term_record.h"
#include "store_fixture.h"
#include "watch_recorder.h"

static void test_keys_are_created_read_updated_and_deleted(void **state) {
        struct store_fixture *f = *state;
        struct store_reply created, got, updated, deleted;

        assert_int_equal(store_client_get(f->store, store_fixture_key(f, "a"), &got), 0);
        assert_int_equal(got.n_kvs, 0);
        assert_true(got.revision > 0);
        store_reply_deinit(&got);

        assert_int_equal(store_fixture_write_at(f, "a", 0, "one", &created), 0);
        assert_int_equal(store_client_get(f->store, store_fixture_key(f, "a"), &got), 0);
        assert_int_equal(got.n_kvs, 1);
        assert_string_equal(got.kvs[0].key, store_fixture_key(f, "a"));
        assert_string_equal(store_reply_value(&got, 0), "one");
        assert_int_equal(got.kvs[0].mod_revision, created.revision);
        assert_int_equal(got.kvs[0].create_revision, created.revision);
        store_reply_deinit(&got);

        assert_int_equal(store_fixture_write_at(f, "a", created.revision, "two", &updated), 0);
        assert_true(updated.revision > created.revision);
        assert_int_equal(store_client_get(f->store, store_fixture_key(f, "a"), &got), 0);
        assert_string_equal(store_reply_value(&got, 0), "two");
        assert_int_equal(got.kvs[0].mod_revision, updated.revision);
        assert_int_equal(got.kvs[0].create_revision, created.revision);
        store_reply_deinit(&got);

        assert_int_equal(store_fixture_write_at(f, "a", updated.revision, NULL, &deleted), 0);
        assert_true(deleted.revision > updated.revision);
        assert_int_equal(store_client_get(f->store, store_fixture_key(f, "a"), &got), 0);
        assert_int_equal(got.n_kvs, 0);
        store_reply_deinit(&got);
        store_reply_deinit(&created);
        store_reply_deinit(&updated);
        store_reply_deinit(&deleted);
}

static void test_a_conflict_returns_the_stored_value(void **state) {
        struct store_fixture *f = *state;
        struct store_reply response;
        uint64_t first = store_client_put(f->store, store_fixture_key(f, "a"), "mine"), second;

        assert_int_equal(store_fixture_write_at(f, "a", 0, "other", &response), HF_E_CONFLICT);
        assert_int_equal(response.n_kvs, 1);
        assert_string_equal(store_reply_value(&response, 0), "mine");
        assert_int_equal(response.kvs[0].mod_revision, first);
        store_reply_deinit(&response);

        second = store_client_put(f->store, store_fixture_key(f, "a"), "mine again");
        assert_int_equal(store_fixture_write_at(f, "a", first, NULL, &response), HF_E_CONFLICT);
        assert_int_equal(response.kvs[0].mod_revision, second);
        store_reply_deinit(&response);

        /* A missing key is left out. */
        assert_int_equal(store_fixture_write_at(f, "b", 7, "x", &response), HF_E_CONFLICT);
        assert_int_equal(response.n_kvs, 0);
        store_reply_deinit(&response);
        assert_int_equal(store_client_get(f->store, store_fixture_key(f, "b"), &response), 0);
        assert_int_equal(response.n_kvs, 0);
        store_reply_deinit(&response);
}

static void test_an_empty_value_is_stored(void **state) {
        struct store_fixture *f = *state;
        struct store_reply response;

        assert_true(store_client_put(f->store, store_fixture_key(f, "a"), "") > 0);
        assert_int_equal(store_client_get(f->store, store_fixture_key(f, "a"), &response), 0);
        assert_int_equal(response.n_kvs, 1);
        assert_non_null(response.kvs[0].value);
        assert_int_equal(response.kvs[0].value->n, 0);
        store_reply_deinit(&response);
        assert_int_equal(store_fixture_write_if(f, HFD_VALUE_EQUALS, 0, "", 0, "a", "x", NULL), 0);
        assert_int_equal(store_fixture_write_if(f, HFD_VALUE_EQUALS, 0, "", 0, "missing", "x",
                                                NULL),
                         HF_E_CONFLICT);
}

static void test_values_are_compared_for_equality(void **state) {
        struct store_fixture *f = *state;
        store_client_put(f->store, store_fixture_key(f, "a"), "abc");
        assert_int_equal(store_fixture_write_if(f, HFD_VALUE_EQUALS, 0, "ab", 2, "a", "x", NULL),
                         HF_E_CONFLICT);
        assert_int_equal(store_fixture_write_if(f, HFD_VALUE_EQUALS, 0, "abcd", 4, "a", "x", NULL),
                         HF_E_CONFLICT);
        assert_int_equal(store_fixture_write_if(f, HFD_VALUE_EQUALS, 0, "abc", 3, "a", "x", NULL),
                         0);
}

static bool begins(struct store_fixture *f, const char *value, const void *with, size_t n) {
        int r;

        store_client_put(f->store, store_fixture_key(f, "a"), value);
        r = store_fixture_write_if(f, HFD_VALUE_BEGINS, 0, with, n, "a", value, NULL);
        assert_true(r == 0 || r == HF_E_CONFLICT);
        return r == 0;
}

static void test_values_are_compared_by_prefix(void **state) {
        struct store_fixture *f = *state;
        assert_true(begins(f, "node-1\n2026", "node-1\n", 7));
        assert_true(begins(f, "node-1\n\x01", "node-1\n", 7));
        assert_true(begins(f, "node-1\n\xff\xff", "node-1\n", 7));
        assert_false(begins(f, "node-1\n", "node-1\n", 7)); /* nothing follows it */
        assert_false(begins(f, "node-1", "node-1\n", 7));
        assert_false(begins(f, "node-10\n2026", "node-1\n", 7));
        assert_false(begins(f, "node-1\v2026", "node-1\n", 7));
        assert_false(begins(f, "node-1\t2026", "node-1\n", 7));
        assert_false(begins(f, "node-0\n2026", "node-1\n", 7));
        assert_false(begins(f, "", "node-1\n", 7));
        /* The last byte has no successor. */
        assert_true(begins(f, "a\xff\xff!", "a\xff\xff", 3));
        assert_false(begins(f, "b", "a\xff\xff", 3));
        assert_false(begins(f, "a\xff", "a\xff\xff", 3));
        assert_true(begins(f, "\xff\xff", "\xff", 1));
        assert_false(begins(f, "\xfe\xff", "\xff", 1));
        /* The empty prefix matches every value that is not empty. */
        assert_true(begins(f, "x", "", 0));
        assert_false(begins(f, "", "", 0));
        assert_int_equal(store_fixture_write_if(f, HFD_VALUE_BEGINS, 0, "x", 1, "missing", "x",
                                                NULL),
                         HF_E_CONFLICT);
        assert_int_equal(store_fixture_write_if(f, HFD_VALUE_BEGINS, 0, "", 0, "missing", "x",
                                                NULL),
                         HF_E_CONFLICT);
}

static void test_a_fence_compares_term_and_identity(void **state) {
        struct store_fixture *f = *state;
        struct hf_fence fence = {.ns = "ns", .name = "lease", .identity = "node-1_abc"};
        struct hf__buf *record = hfd_term_record_value("node-1_abc", "2026-11-21T02:36:00.000000Z"),
                       *value = hf__buf_copy("x", 1);
        struct hfd_fence_compares compares;
        struct hfd_op op = {.kind = HFD_PUT,
                            .key = store_fixture_key(f, "written"),
                            .value = value};
        struct hfd_txn txn = {.compares = compares.compares,
                              .n_compares = 2,
                              .ops = &op,
                              .n_ops = 1};
        struct hf__buf *foreign = hfd_term_record_value("a\nb", "");

        assert_memory_equal(foreign->data, "a b\n-", 6);
        assert_int_equal(hfd_fence_compares(&compares, f->prefix, &fence), 0);
        assert_int_equal(store_client_txn(f->store, &txn, NULL), HF_E_CONFLICT);
        fence.term = store_client_put(f->store, compares.key[0], record->data);
        assert_int_equal(hfd_fence_compares(&compares, f->prefix, &fence), 0);
        assert_int_equal(store_client_txn(f->store, &txn, NULL), 0);
        /* The same term with another holder, and the same holder with another term. */
        strcpy(fence.identity, "node-1_ab");
        assert_int_equal(hfd_fence_compares(&compares, f->prefix, &fence), 0);
        assert_int_equal(store_client_txn(f->store, &txn, NULL), HF_E_CONFLICT);
        strcpy(fence.identity, "node-1_abc");
        fence.term--;
        assert_int_equal(hfd_fence_compares(&compares, f->prefix, &fence), 0);
        assert_int_equal(store_client_txn(f->store, &txn, NULL), HF_E_CONFLICT);
        hf__buf_unref(foreign);
        hf__buf_unref(record);
        hf__buf_unref(value);
}

static void test_a_transaction_is_atomic(void **state) {
        struct store_fixture *f = *state;
        struct hf__buf *value = hf__buf_copy("v", 1);
        uint64_t old = store_client_put(f->store, store_fixture_key(f, "old"), "v"),
                 before = store_client_revision(f->store);
        const char *a = store_fixture_key(f, "a"), *b = store_fixture_key(f, "b"),
                   *gone = store_fixture_key(f, "old"), *missing = store_fixture_key(f, "missing"),
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
        struct store_reply written, list;

        /* One of two comparisons fails: nothing is written. */
        compares[1].revision = old + 1;
        assert_int_equal(store_client_txn(f->store, &txn, &list), HF_E_CONFLICT);
        assert_int_equal(list.n_kvs, 1);
        assert_string_equal(list.kvs[0].key, gone);
        store_reply_deinit(&list);
        assert_int_equal(store_client_revision(f->store), before);

        compares[1].revision = old;
        assert_int_equal(store_client_txn(f->store, &txn, &written), 0);
        assert_int_equal(written.revision, before + 1);
        assert_int_equal(store_client_list(f->store, f->prefix, NULL, 0, 0, false, &list), 0);
        assert_int_equal(list.n_kvs, 2);
        assert_int_equal(list.kvs[0].mod_revision, written.revision);
        assert_int_equal(list.kvs[1].mod_revision, written.revision);
        store_reply_deinit(&list);
        store_reply_deinit(&written);
        hf__buf_unref(value);
}

/* What a write knows of the key that it is compared with is not taken for that of its own key. */
static void test_a_write_may_depend_on_another_key(void **state) {
        struct store_fixture *f = *state;
        char a[128], b[128];
        struct hf__buf *value = hf__buf_copy("new", 3);
        struct store_reply list;

        snprintf(a, sizeof a, "%s", store_fixture_key(f, "a"));
        snprintf(b, sizeof b, "%s", store_fixture_key(f, "b"));
        uint64_t first = store_client_put(f->store, a, "1");
        uint64_t created = store_client_put(f->store, b, "1");
        struct hfd_compare compare = {.kind = HFD_MOD_EQUALS, .key = a, .revision = first};
        struct hfd_op op = {.kind = HFD_PUT, .key = b, .value = value};
        struct hfd_txn txn = {.compares = &compare, .n_compares = 1, .ops = &op, .n_ops = 1};

        assert_int_equal(store_client_txn(f->store, &txn, NULL), 0);
        assert_int_equal(store_client_list(f->store, f->prefix, NULL, 0, 0, false, &list), 0);
        assert_int_equal(list.n_kvs, 2);
        assert_int_equal(list.kvs[0].mod_revision, first);
        assert_int_equal(list.kvs[1].mod_revision, created + 1);
        assert_int_equal(list.kvs[1].create_revision, created);
        store_reply_deinit(&list);
        op.kind = HFD_DELETE;
        assert_int_equal(store_client_txn(f->store, &txn, NULL), 0);
        assert_int_equal(store_client_mod_revision(f->store, a), first);
        assert_int_equal(store_client_mod_revision(f->store, b), 0);
        op.kind = HFD_PUT;
        assert_int_equal(store_client_txn(f->store, &txn, NULL), 0);
        assert_int_equal(store_client_list(f->store, b, NULL, 0, 0, false, &list), 0);
        assert_int_equal(list.kvs[0].create_revision, created + 3);
        store_reply_deinit(&list);
        hf__buf_unref(value);
}

static void test_a_transaction_without_effect_makes_no_revision(void **state) {
        struct store_fixture *f = *state;
        uint64_t before = store_client_revision(f->store);

        assert_int_equal(store_client_delete(f->store, store_fixture_key(f, "missing")), before);
        assert_int_equal(store_client_revision(f->store), before);
        assert_int_equal(store_client_put(f->store, store_fixture_key(f, "a"), "x"), before + 1);
        assert_int_equal(store_client_revision(f->store), before + 1);
}

static void test_misuse_is_refused(void **state) {
        struct store_fixture *f = *state;
        struct hf__buf *value = hf__buf_copy("v", 1);
        struct hfd_op twice[] = {{.kind = HFD_PUT,
                                  .key = store_fixture_key(f, "a"),
                                  .value = value},
                                 {.kind = HFD_DELETE, .key = store_fixture_key(f, "a")}};
        struct hfd_op many[HFD_TXN_MAX + 1];
        struct hfd_txn txn = {.ops = twice, .n_ops = 2};
        char *long_key = malloc(HFD_KEY_MAX + 1);

        assert_int_equal(store_client_txn(f->store, &txn, NULL), -EINVAL);
        for (size_t i = 0; i <= HFD_TXN_MAX; i++)
                many[i] = (struct hfd_op){.kind = HFD_DELETE, .key = "x"};
        txn = (struct hfd_txn){.ops = many, .n_ops = HFD_TXN_MAX + 1};
        assert_int_equal(store_client_txn(f->store, &txn, NULL), HF_E_TOO_LARGE);
        txn.n_ops = 1;
        many[0].kind = HFD_PUT;
        assert_int_equal(store_client_txn(f->store, &txn, NULL), -EINVAL);
        memset(long_key, 'k', HFD_KEY_MAX);
        long_key[HFD_KEY_MAX] = 0;
        many[0] = (struct hfd_op){.kind = HFD_PUT, .key = long_key, .value = value};
        assert_int_equal(store_client_txn(f->store, &txn, NULL), HF_E_TOO_LARGE);
        assert_int_equal(store_client_get(f->store, "", NULL), -EINVAL);
        free(long_key);
        hf__buf_unref(value);
}

static void test_a_transaction_of_maximum_size_succeeds(void **state) {
        struct store_fixture *f = *state;
        struct hfd_compare compares[HFD_TXN_MAX];
        struct hfd_op ops[HFD_TXN_MAX];
        char names[HFD_TXN_MAX][128];
        struct hf__buf *value = hf__buf_copy("node\n1", 6);
        struct hfd_txn txn = {.compares = compares,
                              .n_compares = HFD_TXN_MAX,
                              .ops = ops,
                              .n_ops = HFD_TXN_MAX};
        struct store_reply list;

        for (size_t i = 0; i < HFD_TXN_MAX; i++) {
                snprintf(names[i], sizeof names[i], "%s%02zu", f->prefix, i);
                store_client_put(f->store, names[i], "node\n0");
                compares[i] = (struct hfd_compare){.kind = HFD_VALUE_BEGINS,
                                                   .key = names[i],
                                                   .value = "node\n",
                                                   .n_value = 5};
                ops[i] = (struct hfd_op){.kind = HFD_PUT, .key = names[i], .value = value};
        }
        assert_int_equal(store_client_txn(f->store, &txn, NULL), 0);
        assert_int_equal(store_client_list(f->store, f->prefix, NULL, 0, 0, false, &list), 0);
        assert_int_equal(list.n_kvs, HFD_TXN_MAX);
        for (size_t i = 0; i < HFD_TXN_MAX; i++) {
                assert_string_equal(list.kvs[i].key, names[i]);
                assert_string_equal(store_reply_value(&list, i), "node\n1");
        }
        store_reply_deinit(&list);
        hf__buf_unref(value);
}

static void test_lists_return_ranges_of_keys(void **state) {
        struct store_fixture *f = *state;
        struct store_reply list;
        uint64_t revision;

        store_client_put(f->store, store_fixture_key(f, "b"), "2");
        store_client_put(f->store, store_fixture_key(f, "a"), "1");
        store_client_put(f->store, store_fixture_key(f, "c/d"), "3");
        revision = store_client_put(f->store, store_fixture_key(f, "c"), "4");
        assert_int_equal(store_client_list(f->store, f->prefix, NULL, 0, 0, false, &list), 0);
        assert_int_equal(list.n_kvs, 4);
        assert_false(list.more);
        assert_true(list.revision >= revision);
        assert_string_equal(list.kvs[0].key, store_fixture_key(f, "a"));
        assert_string_equal(list.kvs[1].key, store_fixture_key(f, "b"));
        assert_string_equal(list.kvs[2].key, store_fixture_key(f, "c"));
        assert_string_equal(list.kvs[3].key, store_fixture_key(f, "c/d"));
        assert_string_equal(store_reply_value(&list, 3), "3");
        store_reply_deinit(&list);

        assert_int_equal(store_client_list(f->store, store_fixture_key(f, "c"), NULL, 0, 0, true,
                                           &list),
                         0);
        assert_int_equal(list.n_kvs, 2);
        assert_null(list.kvs[0].value);
        assert_int_equal(list.kvs[0].mod_revision, revision);
        store_reply_deinit(&list);

        assert_int_equal(store_client_list(f->store, store_fixture_key(f, "nothing"), NULL, 0, 0,
                                           false, &list),
                         0);
        assert_int_equal(list.n_kvs, 0);
        store_reply_deinit(&list);
        /* A start before the prefix changes nothing. A start behind the prefix finds nothing. */
        assert_int_equal(store_client_list(f->store, f->prefix, "/", 0, 0, false, &list), 0);
        assert_int_equal(list.n_kvs, 4);
        store_reply_deinit(&list);
        assert_int_equal(store_client_list(f->store, f->prefix, "/z", 0, 0, false, &list), 0);
        assert_int_equal(list.n_kvs, 0);
        store_reply_deinit(&list);
        /* The empty prefix means all keys. */
        assert_int_equal(store_client_list(f->store, "", NULL, 0, 0, true, &list), 0);
        assert_true(list.n_kvs >= 4);
        store_reply_deinit(&list);
}

static void test_pages_of_a_list_show_one_revision(void **state) {
        struct store_fixture *f = *state;
        char name[16], next[256] = "";
        struct store_reply page;
        uint64_t revision = 0;
        unsigned n = 0, pages = 0;

        for (unsigned i = 0; i < 25; i++) {
                snprintf(name, sizeof name, "k%02u", i);
                store_client_put(f->store, store_fixture_key(f, name), "old");
        }
        do {
                assert_int_equal(store_client_list(f->store, f->prefix, *next ? next : NULL,
                                                   revision, 10, false, &page),
                                 0);
                if (!revision)
                        revision = page.revision;
                for (size_t i = 0; i < page.n_kvs; i++, n++) {
                        snprintf(name, sizeof name, "k%02u", n);
                        assert_string_equal(page.kvs[i].key, store_fixture_key(f, name));
                        assert_string_equal(store_reply_value(&page, i), "old");
                }
                assert_int_equal(page.more, n < 25);
                snprintf(next, sizeof next, "%s\x01", page.kvs[page.n_kvs - 1].key);
                /* Objects change between the pages. */
                store_client_put(f->store, store_fixture_key(f, "k24"), "new");
                store_client_put(f->store, store_fixture_key(f, "k20x"), "new");
                store_client_delete(f->store, store_fixture_key(f, "k15"));
                pages++;
                store_reply_deinit(&page);
        } while (n < 25);
        assert_int_equal(pages, 3);
        assert_int_equal(store_client_list(f->store, f->prefix, NULL, 0, 0, false, &page), 0);
        assert_int_equal(page.n_kvs, 25);
        store_reply_deinit(&page);
}

struct counter {
        struct store_fixture *f;
        const char *key;
        int rounds;
        int failed;
};

/* Read, add one, write if unchanged. The next attempt begins with what the conflict returned. */
static void *count(void *ctx) {
        struct counter *counter = ctx;
        struct store_fixture *f = counter->f;

        for (int i = 0; i < counter->rounds; i++) {
                struct store_reply now;
                int r = store_client_get(f->store, counter->key, &now);

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
                                         (now.n_kvs ? atoi(store_reply_value(&now, 0)) : 0) + 1);

                        op.value = hf__buf_copy(text, (size_t)n);
                        store_reply_deinit(&now);
                        r = store_client_txn(f->store, &txn, &now);
                        hf__buf_unref(op.value);
                        if (r != HF_E_CONFLICT)
                                break;
                        r = 0;
                }
                store_reply_deinit(&now);
                if (r != 0)
                        counter->failed++;
        }
        return NULL;
}

static void test_concurrent_writers_lose_nothing(void **state) {
        struct store_fixture *f = *state;
        enum { N = 8, ROUNDS = 100 };
        struct counter counters[N];
        pthread_t threads[N];
        static struct watch_recorder recorder;
        struct store_reply response;
        char name[128];

        snprintf(name, sizeof name, "%s", store_fixture_key(f, "counter"));
        assert_int_equal(watch_recorder_start(&recorder, f->store, f->prefix,
                                              store_fixture_prefix_end(f),
                                              store_client_revision(f->store) + 1),
                         0);
        for (int i = 0; i < N; i++) {
                counters[i] = (struct counter){.f = f, .key = name, .rounds = ROUNDS};
                assert_int_equal(pthread_create(&threads[i], NULL, count, &counters[i]), 0);
        }
        for (int i = 0; i < N; i++) {
                pthread_join(threads[i], NULL);
                assert_int_equal(counters[i].failed, 0);
        }
        assert_int_equal(store_client_get(f->store, name, &response), 0);
        assert_int_equal(atoi(store_reply_value(&response, 0)), N * ROUNDS);
        store_reply_deinit(&response);
        watch_recorder_await(&recorder, N * ROUNDS);
        assert_int_equal(recorder.n, N * ROUNDS);
        for (int i = 0; i < N * ROUNDS; i++) {
                assert_int_equal(atoi(recorder.events[i].value->data), i + 1);
                if (i)
                        assert_true(recorder.events[i].revision > recorder.events[i - 1].revision);
        }
        watch_recorder_stop(&recorder);
}

static int put_bytes(struct store_fixture *f, const char *name, size_t n) {
        struct hfd_op op = {.kind = HFD_PUT,
                            .key = store_fixture_key(f, name),
                            .value = hf__buf_new(n)};
        struct hfd_txn txn = {.ops = &op, .n_ops = 1};
        struct store_reply response;
        int r;

        for (size_t i = 0; i < n; i++)
                op.value->data[i] = (char)(i * 31 + i / 256);
        r = store_client_txn(f->store, &txn, &response);
        if (r != 0 && r != HF_E_TOO_LARGE)
                fprintf(stderr, "%zu bytes: %s\n", n, response.status.message);
        store_reply_deinit(&response);
        hf__buf_unref(op.value);
        return r;
}

static void test_large_values_are_stored_and_watched(void **state) {
        struct store_fixture *f = *state;
        const size_t n = 1024 * 1024;
        static struct watch_recorder recorder;
        struct store_reply response;

        assert_int_equal(watch_recorder_start(&recorder, f->store, f->prefix,
                                              store_fixture_prefix_end(f),
                                              store_client_revision(f->store) + 1),
                         0);
        assert_int_equal(put_bytes(f, "a", n), 0);
        assert_int_equal(put_bytes(f, "b", n), 0);
        assert_int_equal(put_bytes(f, "c", 1700 * 1024), HF_E_TOO_LARGE);
        assert_int_equal(put_bytes(f, "c", 8 * n), HF_E_TOO_LARGE);
        if (store_client_list(f->store, f->prefix, NULL, 0, 0, false, &response) != 0)
                fail_msg("the list of both: %s", response.status.message);
        assert_int_equal(response.n_kvs, 2);
        for (size_t i = 0; i < 2; i++) {
                assert_int_equal(response.kvs[i].value->n, n);
                for (size_t j = 0; j < n; j++)
                        if (response.kvs[i].value->data[j] != (char)(j * 31 + j / 256))
                                fail_msg("byte %zu differs", j);
        }
        watch_recorder_await(&recorder, 2);
        assert_int_equal(recorder.n, 2);
        assert_memory_equal(recorder.events[1].value->data, response.kvs[1].value->data, n);
        store_reply_deinit(&response);
        watch_recorder_stop(&recorder);
}

/* By itself, too, but an idle store may take seconds for it. */
static void test_a_store_that_works_counts_its_iterations(void **state) {
        struct store_fixture *f = *state;

        for (int i = 0; i < 2; i++) {
                uint64_t before = f->store->ops->iterations(f->store);
                assert_true(store_client_put(f->store, store_fixture_key(f, "a"), "x") > 0);
                PATIENCE_AWAIT(f->store->ops->iterations(f->store) > before);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                STORE_TEST(test_keys_are_created_read_updated_and_deleted),
                STORE_TEST(test_a_conflict_returns_the_stored_value),
                STORE_TEST(test_an_empty_value_is_stored),
                STORE_TEST(test_values_are_compared_for_equality),
                STORE_TEST(test_values_are_compared_by_prefix),
                STORE_TEST(test_a_fence_compares_term_and_identity),
                STORE_TEST(test_a_transaction_is_atomic),
                STORE_TEST(test_a_write_may_depend_on_another_key),
                STORE_TEST(test_a_transaction_without_effect_makes_no_revision),
                STORE_TEST(test_misuse_is_refused),
                STORE_TEST(test_a_transaction_of_maximum_size_succeeds),
                STORE_TEST(test_lists_return_ranges_of_keys),
                STORE_TEST(test_pages_of_a_list_show_one_revision),
                STORE_TEST(test_concurrent_writers_lose_nothing),
                STORE_TEST(test_large_values_are_stored_and_watched),
                STORE_TEST(test_a_store_that_works_counts_its_iterations),
        };
        return store_fixture_run(tests, sizeof tests / sizeof tests[0]);
}
