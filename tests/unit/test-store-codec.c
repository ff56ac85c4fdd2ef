/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages and errors of etcd, without an etcd: malformed messages are refused, and unknown
 * outcomes are reported as unknown.
 */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/storage/etcd/etcd.h"
#include "server/storage/etcd/grpc_status.h"
#include "server/storage/etcd/pack.h"
#include "server/storage/etcd/parse.h"
#include "server/storage/etcd/store.h"
#include "server/storage/grpc/endpoint.h"
#include "server/storage/grpc/prefix.h"
#include "server/storage/keys.h"
#include "server/storage/rpc.pb-c.h"

static int parse(enum hfd_etcd_response kind, const void *data, size_t n,
                 struct hfd_store_reply *reply, struct hf__arena *arena) {
        *reply = (struct hfd_store_reply){0};
        hf__arena_init(arena);
        return hfd_etcd_parse(kind, data, n, arena, reply);
}

/* header{cluster_id 7, revision 300}, kv{key "ab", mod 3, value "xyz"}, more */
static const char range_message[] = "\x0a\x05\x08\x07\x18\xac\x02"
                                    "\x12\x0b\x0a\x02"
                                    "ab"
                                    "\x18\x03\x2a\x03"
                                    "xyz"
                                    "\x18\x01";

static void test_a_range_response_is_parsed(void **state) {
        struct hfd_store_reply reply;
        struct hf__arena arena;

        assert_int_equal(parse(HFD_ETCD_RANGE, range_message, sizeof range_message - 1, &reply,
                               &arena),
                         0);
        assert_int_equal(reply.revision, 300);
        assert_int_equal(reply.cluster_id, 7);
        assert_int_equal(reply.n_kvs, 1);
        assert_true(reply.more);
        assert_string_equal(reply.kvs[0].key, "ab");
        assert_int_equal(reply.kvs[0].mod_revision, 3);
        assert_string_equal(reply.kvs[0].value->data, "xyz");
        hfd_etcd_release_reply(&reply);
        hf__arena_deinit(&arena);
}

static void test_a_truncated_message_is_a_protocol_error(void **state) {
        struct hfd_store_reply reply;
        struct hf__arena arena;

        for (size_t n = 0; n < sizeof range_message - 1; n++) {
                char *copy = malloc(n + 1); /* so that the sanitizers detect a read past the end */
                int r;

                memcpy(copy, range_message, n);
                r = parse(HFD_ETCD_RANGE, copy, n, &reply, &arena);
                /* A message that is truncated between two fields is valid. */
                assert_true(r == -EPROTO || (r == 0 && (n == 7 || n == 20)));
                hfd_etcd_release_reply(&reply);
                hf__arena_deinit(&arena);
                free(copy);
        }
}

static void test_random_bytes_crash_nothing(void **state) {
        struct hfd_store_reply reply;
        struct hfd_etcd_watch_response event;
        struct hf__arena arena;
        unsigned seed = 1;
        char noise[64];

        for (int i = 0; i < 20000; i++) {
                size_t n;

                for (n = 0; n < sizeof noise; n++) {
                        seed = seed * 1103515245 + 12345;
                        noise[n] = (char)(seed >> 16 & (i % 2 ? 0xff : 0x1f));
                }
                n = seed >> 8 & 63;
                for (int kind = HFD_ETCD_RANGE; kind <= HFD_ETCD_COMPACT; kind++) {
                        parse((enum hfd_etcd_response)kind, noise, n, &reply, &arena);
                        hfd_etcd_release_reply(&reply);
                        hf__arena_deinit(&arena);
                }
                hf__arena_init(&arena);
                hfd_etcd_parse_watch_response(noise, n, &arena, &event);
                hfd_etcd_release_watch_response(&event);
                hf__arena_deinit(&arena);
        }
}

static void test_a_key_with_a_nul_is_refused(void **state) {
        static const char message[] = "\x0a\x02\x18\x05"
                                      "\x12\x05\x0a\x03"
                                      "a\0b";
        struct hfd_store_reply reply;
        struct hf__arena arena;

        assert_int_equal(parse(HFD_ETCD_RANGE, message, sizeof message - 1, &reply, &arena),
                         -EPROTO);
        hfd_etcd_release_reply(&reply);
        hf__arena_deinit(&arena);
}

/*
 * etcd answers a transaction from the state of one member, without a quorum, if it neither writes
 * nor contains a range that is not serializable. So none of ours is like that.
 */
static void test_every_transaction_needs_a_quorum(void **state) {
        static const char *const keys[] = {"/a"};
        const struct hfd_compare compare = {.kind = HFD_MOD_EQUALS, .key = "/a", .revision = 1};
        const struct hfd_op delete = {.kind = HFD_DELETE, .key = "/a"};
        const struct hfd_txn txns[] = {
                {.compares = &compare, .n_compares = 1},
                {.compares = &compare,
                 .n_compares = 1,
                 .get_on_failure = keys,
                 .n_get_on_failure = 1},
                {.compares = &compare, .n_compares = 1, .ops = &delete, .n_ops = 1},
                {.n_compares = 0},
        };

        for (size_t i = 0; i < sizeof txns / sizeof txns[0]; i++) {
                struct hf__buf *body = hfd_etcd_pack_txn(&txns[i]);
                Hfd__TxnRequest *txn;

                assert_non_null(body);
                txn = hfd__txn_request__unpack(NULL, body->n - HFD_GRPC_PREFIX,
                                               (const uint8_t *)body->data + HFD_GRPC_PREFIX);
                assert_non_null(txn);
                /* etcd's rule: each operation, of both branches, must be a serializable range. Our
                 * ranges cannot be serializable: rpc.proto does not have that field. */
                assert_true(txn->n_success + txn->n_failure > 0);
                hfd__txn_request__free_unpacked(txn, NULL);
                hf__buf_unref(body);
        }
}

static void test_the_grpc_prefix_is_parsed(void **state) {
        uint32_t n;

        assert_int_equal(hfd_grpc_prefix_read("\0\x01\x02\x03\xff", &n), 0);
        assert_int_equal(n, 0x010203ff);
        assert_int_equal(hfd_grpc_prefix_read("\1\0\0\0\0", &n), -EPROTO);
}

static void test_the_arena_aligns_and_zeroes(void **state) {
        struct hf__arena arena;
        char *blocks[400];

        hf__arena_init(&arena);
        for (size_t i = 0; i < 400; i++) {
                blocks[i] = hf__arena_alloc(&arena, i * 100);
                assert_non_null(blocks[i]);
                assert_int_equal((uintptr_t)blocks[i] % _Alignof(max_align_t), 0);
                assert_int_equal(blocks[i][i * 100], 0);
                memset(blocks[i], (int)i, i * 100);
        }
        for (size_t i = 0; i < 400; i++)
                for (size_t j = 0; j < i * 100; j++)
                        assert_true(blocks[i][j] == (char)i);
        assert_null(hf__arena_alloc(&arena, SIZE_MAX - 4));
        assert_true(arena.failed);
        hf__arena_deinit(&arena);
}

static int grpc(int status, const char *text, bool unknown) {
        struct hfd_grpc_result result = {.code = 200,
                                         .status = status,
                                         .status_text = text,
                                         .error_text = ""};
        struct hf_status words;
        int r = hfd_grpc_status_error(&result, unknown, "http://x", &words);

        assert_int_equal(words.error, r);
        return r;
}

#define ETCD_MAX ((size_t)1536 * 1024) /* etcd's default limit for a request */

/* What storage/copy.c writes for one large value. etcd adds a header of some 50 bytes. */
static void test_a_value_of_another_store_fits_into_a_request(void **state) {
        char key[HFD_KEY_MAX], mark[HFD_KEY_MAX];
        const char *get = key;

        memset(key, 'k', sizeof key);
        memset(mark, 'm', sizeof mark);
        key[sizeof key - 1] = mark[sizeof mark - 1] = '\0';
        struct hf__buf *value = hf__buf_new(HFD_TXN_BYTES_MAX - strlen(key));
        assert_non_null(value);
        memset(value->data, 'v', value->n);
        const struct hfd_op put = {.kind = HFD_PUT, .key = key, .value = value};
        const struct hfd_compare compares[] = {{.kind = HFD_MOD_EQUALS,
                                                .key = mark,
                                                .revision = INT64_MAX},
                                               {.kind = HFD_MOD_EQUALS, .key = key}};
        const struct hfd_txn written = {.ops = &put, .n_ops = 1}, copied = {.compares = compares,
                                                                            .n_compares = 2,
                                                                            .ops = &put,
                                                                            .n_ops = 1,
                                                                            .get_on_failure = &get,
                                                                            .n_get_on_failure = 1};
        assert_int_equal(hfd_txn_bytes(&written), HFD_TXN_BYTES_MAX);
        struct hf__buf *body = hfd_etcd_pack_txn(&copied);
        assert_non_null(body);
        assert_true(body->n + 100 <= ETCD_MAX);
        hf__buf_unref(body);
        hf__buf_unref(value);
}

static void test_grpc_errors_are_mapped(void **state) {
        assert_int_equal(grpc(11, "etcdserver: mvcc: required revision has been compacted", false),
                         HF_E_GONE);
        assert_int_equal(grpc(11, "etcdserver: mvcc: required revision is a future revision",
                              false),
                         HF_E_INVALID);
        assert_int_equal(grpc(3, "etcdserver: request is too large", true), HF_E_TOO_LARGE);
        assert_int_equal(grpc(8, "grpc: received message larger than max (9 vs. 2)", true),
                         HF_E_TOO_LARGE);
        assert_int_equal(grpc(8, "etcdserver: mvcc: database space exceeded", true), -ENOSPC);
        assert_int_equal(grpc(8, "etcdserver: too many requests", true), HF_E_UNAVAILABLE);
        assert_int_equal(grpc(8, "the quota of a proxy", true), HF_E_TIMEOUT);
        assert_int_equal(grpc(8, "the quota of a proxy", false), HF_E_UNAVAILABLE);
        assert_int_equal(grpc(14, "etcdserver: request timed out", false), HF_E_TIMEOUT);
        assert_int_equal(
                grpc(14, "etcdserver: request timed out, possibly due to previous leader failure",
                     true),
                HF_E_TIMEOUT);
        assert_int_equal(grpc(14, "etcdserver: no leader", true), HF_E_UNAVAILABLE);
        assert_int_equal(grpc(14, "etcdserver: server stopped", true), HF_E_TIMEOUT);
        assert_int_equal(grpc(14, "etcdserver: server stopped", false), HF_E_UNAVAILABLE);
        assert_int_equal(grpc(14, "transport is closing", true), HF_E_TIMEOUT);
        assert_int_equal(grpc(4, "context deadline exceeded", true), HF_E_TIMEOUT);
        assert_int_equal(grpc(1, "canceled", true), HF_E_TIMEOUT);
        assert_int_equal(grpc(2, "raft proposal dropped", true), HF_E_UNAVAILABLE);
        assert_int_equal(grpc(2, "context deadline exceeded", true), HF_E_TIMEOUT);
        assert_int_equal(grpc(2, "context canceled", true), HF_E_TIMEOUT);
        assert_int_equal(grpc(3, "etcdserver: key is not provided", true), HF_E_INVALID);
        assert_int_equal(grpc(2, "what?", true), -EIO);
        assert_int_equal(grpc(12, "unknown service", true), -EIO);
        /* etcd has ended the stream of a watch well. */
        assert_int_equal(grpc(0, "", false), HF_E_UNAVAILABLE);
        /* A response that ended well but has no status was cut. */
        assert_int_equal(grpc(-1, "", true), HF_E_TIMEOUT);
        assert_int_equal(grpc(-1, "", false), HF_E_UNAVAILABLE);
}

static void test_engine_outcomes_are_mapped(void **state) {
        static const int outcomes[][2] = {{HF_E_UNAVAILABLE, HF_E_UNAVAILABLE},
                                          {HF_E_UNAUTHORIZED, HF_E_UNAVAILABLE},
                                          {HF_E_TIMEOUT, HF_E_TIMEOUT},
                                          {HF_E_CANCELED, HF_E_CANCELED}};
        struct hf_status words;

        for (size_t i = 0; i < 4; i++) {
                struct hfd_grpc_result result = {.outcome = outcomes[i][0],
                                                 .status = -1,
                                                 .status_text = "",
                                                 .error_text = "why"};

                assert_int_equal(hfd_grpc_status_error(&result, true, "http://x", &words),
                                 outcomes[i][1]);
        }
}

static void test_the_end_of_a_prefix_range_is_computed(void **state) {
        char end[HFD_KEY_MAX];

        assert_int_equal(hfd_key_prefix_end(end, "/registry/"), 0);
        assert_string_equal(end, "/registry0");
        assert_int_equal(hfd_key_prefix_end(end, "a\xff\xff"), 0);
        assert_string_equal(end, "b");
        assert_int_equal(hfd_key_prefix_end(end, "\xff"), 0);
        assert_string_equal(end, "");
        assert_int_equal(hfd_key_prefix_end(end, ""), 0);
        assert_string_equal(end, "");
        char room[HFD_KEY_MAX + 1] = "\xff"; /* the bytes before the key are ignored */
        assert_int_equal(hfd_key_prefix_end(room + 1, ""), 0);
        assert_string_equal(room, "\xff");
        char longest[HFD_KEY_MAX + 1];
        memset(longest, 'k', sizeof longest);
        longest[HFD_KEY_MAX] = '\0';
        assert_int_equal(hfd_key_prefix_end(end, longest), HF_E_TOO_LARGE);
        longest[HFD_KEY_MAX - 1] = '\0';
        assert_int_equal(hfd_key_prefix_end(end, longest), 0);
        assert_int_equal(strlen(end), HFD_KEY_MAX - 1);
        assert_int_equal(end[HFD_KEY_MAX - 2], 'l');
}

static void test_a_term_record_is_known_by_its_key(void **state) {
        static const struct {
                const char *key;
                bool is_record;
        } cases[] = {
                {"/registry.holdfast/terms/ns/name", true},
                {"/registry.holdfast/terms/", true},
                {"/registry.holdfast/terms", false},
                {"/registry.holdfast/compact", false},
                {"/registry/leases/ns/name", false},
                {"/registrx.holdfast/terms/ns/name", false},
                {"/registry", false},
        };
        char key[HFD_KEY_MAX];

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                assert_int_equal(hfd_key_is_term_record(cases[i].key, "/registry"),
                                 cases[i].is_record);
        assert_int_equal(hfd_key_term_record(key, "/registry", "ns", "name"), 0);
        assert_string_equal(key, cases[0].key);
}

static void assert_next(const char *key, size_t n, const char *expected) {
        char next[HFD_KEY_MAX];

        memset(next, 'z', sizeof next);
        hfd_key_after(next, key);
        assert_true(strcmp(next, key) > 0);
        assert_int_equal(strlen(next), n);
        assert_memory_equal(next, expected, n);
}

static void test_the_next_page_starts_after_a_key_of_any_length(void **state) {
        char key[HFD_KEY_MAX + 1], expected[HFD_KEY_MAX + 1];
        const size_t longest = HFD_KEY_MAX - 1;

        assert_next("/a/b", 5, "/a/b\x01");
        memset(key, 'k', sizeof key);
        memset(expected, 'k', sizeof expected);
        key[longest - 1] = 0;
        expected[longest - 1] = 1;
        assert_next(key, longest, expected);
        /* No allowed key begins with one of the greatest length. */
        key[longest - 1] = 'k';
        key[longest] = 0;
        expected[longest - 1] = 'l';
        assert_next(key, longest, expected);
        memcpy(key + longest - 2, "\xff\xff", 2);
        expected[longest - 3] = 'l';
        assert_next(key, longest - 2, expected);
        hfd_key_after(key, key); /* in place */
        assert_int_equal(strlen(key), longest - 2);
        assert_memory_equal(key, expected, longest - 2);
}

/* Other programs may write longer keys than ours. */
static void test_the_next_page_may_start_after_a_key_that_is_too_long(void **state) {
        char key[2 * HFD_KEY_MAX], expected[HFD_KEY_MAX];
        struct {
                char next[HFD_KEY_MAX], after[8];
        } room;

        memset(key, 'k', sizeof key);
        key[sizeof key - 1] = 0;
        memset(expected, 'k', sizeof expected);
        memcpy(expected + sizeof expected - 2, "l", 2);
        memset(&room, 'z', sizeof room);
        hfd_key_after(room.next, key);
        assert_string_equal(room.next, expected);
        assert_memory_equal(room.after, "zzzzzzzz", sizeof room.after);
}

static void test_invalid_endpoints_are_refused(void **state) {
        static const char *const bad[] = {"",         "127.0.0.1:2379", "ftp://x:1",  "http://",
                                          "http:///", "https://a/b",    "http://a?x", "http://u@a"};
        const struct hf_host host = {.size = sizeof host};
        struct hfd_store *store;
        struct hf_status status;

        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
                const char *endpoints[] = {bad[i], NULL};
                struct hfd_etcd_config config = {.endpoints = endpoints};

                assert_int_equal(hfd_etcd_store_new(&host, &config, &store, &status), HF_E_INVALID);
                assert_int_equal(status.error, HF_E_INVALID);
        }
        assert_int_equal(hfd_etcd_store_new(&host, &(struct hfd_etcd_config){0}, &store, &status),
                         HF_E_INVALID);
}

static void assert_endpoint(const char *url, const char *host, const char *port,
                            const char *authority, bool tls) {
        struct hfd_grpc_endpoint endpoint;
        struct hf_status status;

        assert_int_equal(hfd_grpc_endpoint_parse(url, &endpoint, &status), 0);
        assert_string_equal(endpoint.host, host);
        assert_string_equal(endpoint.port, port);
        assert_string_equal(endpoint.authority, authority);
        assert_int_equal(endpoint.tls, tls);
}

static void test_endpoints_have_host_and_port(void **state) {
        static const char *const bad[] = {"http://a:0",  "http://a:65536", "http://a:b",
                                          "http://a:",   "http://:1",      "http://[::1",
                                          "http://[]:1", "http://[::1]1",  "http://a:1:2"};
        struct hfd_grpc_endpoint endpoint;
        struct hf_status status;

        assert_endpoint("http://127.0.0.1:2379", "127.0.0.1", "2379", "127.0.0.1:2379", false);
        assert_endpoint("https://etcd-1.example:2379/", "etcd-1.example", "2379",
                        "etcd-1.example:2379", true);
        assert_endpoint("http://[::1]:65535", "::1", "65535", "[::1]:65535", false);
        assert_endpoint("https://etcd", "etcd", "443", "etcd", true);
        assert_endpoint("http://[::1]", "::1", "80", "[::1]", false);
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
                assert_int_equal(hfd_grpc_endpoint_parse(bad[i], &endpoint, &status), HF_E_INVALID);
}

int main(void) {
        const struct CMUnitTest cases[] = {
                cmocka_unit_test(test_a_range_response_is_parsed),
                cmocka_unit_test(test_a_truncated_message_is_a_protocol_error),
                cmocka_unit_test(test_random_bytes_crash_nothing),
                cmocka_unit_test(test_a_key_with_a_nul_is_refused),
                cmocka_unit_test(test_every_transaction_needs_a_quorum),
                cmocka_unit_test(test_the_grpc_prefix_is_parsed),
                cmocka_unit_test(test_the_arena_aligns_and_zeroes),
                cmocka_unit_test(test_a_value_of_another_store_fits_into_a_request),
                cmocka_unit_test(test_grpc_errors_are_mapped),
                cmocka_unit_test(test_engine_outcomes_are_mapped),
                cmocka_unit_test(test_the_end_of_a_prefix_range_is_computed),
                cmocka_unit_test(test_a_term_record_is_known_by_its_key),
                cmocka_unit_test(test_the_next_page_starts_after_a_key_of_any_length),
                cmocka_unit_test(test_the_next_page_may_start_after_a_key_that_is_too_long),
                cmocka_unit_test(test_invalid_endpoints_are_refused),
                cmocka_unit_test(test_endpoints_have_host_and_port),
        };

        return cmocka_run_group_tests(cases, NULL, NULL);
}
