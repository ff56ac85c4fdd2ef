/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each request to etcd, field by field, without an etcd: protobuf-c unpacks what
 * server/storage/etcd/pack.c has packed.
 */
#undef NDEBUG
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "failing_memory.h"
#include "server/storage/etcd/pack.h"
#include "server/storage/grpc/prefix.h"
#include "server/storage/rpc.pb-c.h"

/* ---- requests, as text ---- */

static void add_bytes(struct hf__strbuf *out, const char *name, ProtobufCBinaryData bytes) {
        hf__strbuf_printf(out, " %s=", name);
        for (size_t i = 0; i < bytes.len; i++)
                hf__strbuf_printf(out,
                                  bytes.data[i] > ' ' && bytes.data[i] < 0x7f ? "%c" : "\\%02x",
                                  bytes.data[i]);
}

static void add_range(struct hf__strbuf *out, const Hfd__RangeRequest *range) {
        hf__strbuf_puts(out, "range");
        add_bytes(out, "key", range->key);
        add_bytes(out, "end", range->range_end);
        hf__strbuf_printf(out, " limit=%" PRId64 " revision=%" PRId64 "%s%s;", range->limit,
                          range->revision, range->keys_only ? " keys" : "",
                          range->count_only ? " count" : "");
}

static void add_operation(struct hf__strbuf *out, const Hfd__RequestOp *op) {
        if (op->request_case == HFD__REQUEST_OP__REQUEST_REQUEST_RANGE) {
                add_range(out, op->request_range);
                return;
        }
        if (op->request_case == HFD__REQUEST_OP__REQUEST_REQUEST_PUT) {
                hf__strbuf_puts(out, "put");
                add_bytes(out, "key", op->request_put->key);
                add_bytes(out, "value", op->request_put->value);
        } else if (op->request_case == HFD__REQUEST_OP__REQUEST_REQUEST_DELETE_RANGE) {
                hf__strbuf_puts(out, "delete");
                add_bytes(out, "key", op->request_delete_range->key);
                add_bytes(out, "end", op->request_delete_range->range_end);
        } else
                hf__strbuf_puts(out, "?");
        hf__strbuf_puts(out, ";");
}

static void add_compare(struct hf__strbuf *out, const Hfd__Compare *compare) {
        static const char *const results[] = {"=", ">", "<", "!="};

        hf__strbuf_puts(out, "if");
        add_bytes(out, "key", compare->key);
        if (compare->target == HFD__COMPARE__TARGET__MOD &&
            compare->target_union_case == HFD__COMPARE__TARGET_UNION_MOD_REVISION)
                hf__strbuf_printf(out, " mod %s %" PRId64, results[compare->result],
                                  compare->mod_revision);
        else if (compare->target == HFD__COMPARE__TARGET__VALUE &&
                 compare->target_union_case == HFD__COMPARE__TARGET_UNION_VALUE) {
                hf__strbuf_printf(out, " %s", results[compare->result]);
                add_bytes(out, "value", compare->value);
        } else
                hf__strbuf_puts(out, " ?");
        hf__strbuf_puts(out, ";");
}

/* Unpacks the message of a body, and checks its prefix. */
static ProtobufCMessage *unpack(const ProtobufCMessageDescriptor *descriptor,
                                const struct hf__buf *body) {
        uint32_t n;

        assert_non_null(body);
        assert_true(body->n >= HFD_GRPC_PREFIX);
        assert_int_equal(hfd_grpc_prefix_read(body->data, &n), 0);
        assert_int_equal(body->n, HFD_GRPC_PREFIX + n);
        ProtobufCMessage *message =
                protobuf_c_message_unpack(descriptor, NULL, n,
                                          (const uint8_t *)body->data + HFD_GRPC_PREFIX);
        assert_non_null(message);
        return message;
}

/* Takes the reference of the body and the text. */
static void expect_text(struct hf__buf *body, ProtobufCMessage *message, struct hf__strbuf *text,
                        const char *expected) {
        hf__strbuf_putc(text, '\0');
        assert_string_equal(text->data, expected);
        hf__strbuf_done(text);
        protobuf_c_message_free_unpacked(message, NULL);
        hf__buf_unref(body);
}

static void expect_range(struct hf__buf *body, const char *expected) {
        ProtobufCMessage *message = unpack(&hfd__range_request__descriptor, body);
        struct hf__strbuf text = {0};

        add_range(&text, (Hfd__RangeRequest *)message);
        expect_text(body, message, &text, expected);
}

static void expect_watch(struct hf__buf *body, const char *expected) {
        ProtobufCMessage *message = unpack(&hfd__watch_request__descriptor, body);
        const Hfd__WatchRequest *watch = (Hfd__WatchRequest *)message;
        struct hf__strbuf text = {0};

        if (watch->request_union_case == HFD__WATCH_REQUEST__REQUEST_UNION_CREATE_REQUEST) {
                add_bytes(&text, "key", watch->create_request->key);
                add_bytes(&text, "end", watch->create_request->range_end);
                hf__strbuf_printf(&text, " from=%" PRId64 "%s",
                                  watch->create_request->start_revision,
                                  watch->create_request->progress_notify ? " progress" : "");
        } else if (watch->request_union_case == HFD__WATCH_REQUEST__REQUEST_UNION_PROGRESS_REQUEST)
                hf__strbuf_puts(&text, watch->progress_request ? "progress" : "?");
        expect_text(body, message, &text, expected);
}

static void expect_txn(const struct hfd_txn *txn, const char *expected) {
        struct hf__buf *body = hfd_etcd_pack_txn(txn);
        ProtobufCMessage *message = unpack(&hfd__txn_request__descriptor, body);
        const Hfd__TxnRequest *request = (Hfd__TxnRequest *)message;
        struct hf__strbuf text = {0};

        for (size_t i = 0; i < request->n_compare; i++)
                add_compare(&text, request->compare[i]);
        hf__strbuf_puts(&text, " then ");
        for (size_t i = 0; i < request->n_success; i++)
                add_operation(&text, request->success[i]);
        hf__strbuf_puts(&text, " else ");
        for (size_t i = 0; i < request->n_failure; i++)
                add_operation(&text, request->failure[i]);
        expect_text(body, message, &text, expected);
}

static void test_reads_are_packed(void **state) {
        expect_range(hfd_etcd_pack_get("/a"), "range key=/a end= limit=0 revision=0;");
        expect_range(hfd_etcd_pack_list("/a/", "/a0", 7, 500, true),
                     "range key=/a/ end=/a0 limit=500 revision=7 keys;");
        expect_range(hfd_etcd_pack_list("", "", 0, 0, false),
                     "range key=\\00 end=\\00 limit=0 revision=0;");
        expect_range(hfd_etcd_pack_list("/a", "/b", 0, SIZE_MAX, false),
                     "range key=/a end=/b limit=9223372036854775807 revision=0;");
        expect_range(hfd_etcd_pack_revision(), "range key=\\00 end= limit=0 revision=0 count;");
}

static void test_watches_and_compactions_are_packed(void **state) {
        expect_watch(hfd_etcd_pack_watch("/a/", "/a0", 9), " key=/a/ end=/a0 from=9 progress");
        expect_watch(hfd_etcd_pack_watch("", "", 0), " key=\\00 end=\\00 from=0 progress");
        expect_watch(hfd_etcd_pack_watch_progress(), "progress");

        struct hf__buf *body = hfd_etcd_pack_compact(77);
        ProtobufCMessage *message = unpack(&hfd__compaction_request__descriptor, body);
        assert_int_equal(((Hfd__CompactionRequest *)message)->revision, 77);
        assert_false(((Hfd__CompactionRequest *)message)->physical);
        protobuf_c_message_free_unpacked(message, NULL);
        hf__buf_unref(body);
}

static void test_transactions_are_packed(void **state) {
        static const char *const keys[] = {"/a", "/b"};
        struct hf__buf *value = hf__buf_copy("v\0w", 3);
        const struct hfd_compare compares[] = {
                {.kind = HFD_MOD_EQUALS, .key = "/a", .revision = 3},
                {.kind = HFD_VALUE_EQUALS, .key = "/b", .value = "x\0", .n_value = 2},
                {.kind = HFD_VALUE_BEGINS, .key = "/c", .value = "ab", .n_value = 2},
                {.kind = HFD_VALUE_BEGINS, .key = "/d", .value = "a\xff\xff", .n_value = 3},
                {.kind = HFD_VALUE_BEGINS, .key = "/e", .value = "\xff", .n_value = 1},
                {.kind = HFD_VALUE_BEGINS, .key = "/f", .value = NULL, .n_value = 0},
        };
        const struct hfd_op ops[] = {{.kind = HFD_PUT, .key = "/a", .value = value},
                                     {.kind = HFD_DELETE, .key = "/b"},
                                     {.kind = HFD_DELETE, .key = "/c"}};

        assert_non_null(value);
        expect_txn(&(struct hfd_txn){.compares = compares,
                                     .n_compares = 6,
                                     .ops = ops,
                                     .n_ops = 3,
                                     .get_on_failure = keys,
                                     .n_get_on_failure = 2},
                   "if key=/a mod = 3;if key=/b = value=x\\00;"
                   "if key=/c > value=ab;if key=/c < value=ac;"
                   "if key=/d > value=a\\ff\\ff;if key=/d < value=b;"
                   "if key=/e > value=\\ff;if key=/f > value=;"
                   " then put key=/a value=v\\00w;delete key=/b end=;delete key=/c end=;"
                   " else range key=/a end= limit=0 revision=0;"
                   "range key=/b end= limit=0 revision=0;");
        /* A transaction that only compares contains a read, because otherwise it would need no
         * quorum. */
        expect_txn(&(struct hfd_txn){.compares = compares, .n_compares = 1},
                   "if key=/a mod = 3; then range key=\\00 end= limit=0 revision=0 count; else ");
        expect_txn(&(struct hfd_txn){.ops = ops, .n_ops = 1},
                   " then put key=/a value=v\\00w; else ");
        expect_txn(&(struct hfd_txn){.get_on_failure = keys, .n_get_on_failure = 1},
                   " then  else range key=/a end= limit=0 revision=0;");
        hf__buf_unref(value);
}

static void test_the_largest_transaction_is_packed(void **state) {
        struct hfd_compare compares[HFD_TXN_MAX];
        struct hfd_op ops[HFD_TXN_MAX];
        const char *keys[HFD_TXN_MAX];
        char names[HFD_TXN_MAX][8];

        for (size_t i = 0; i < HFD_TXN_MAX; i++) {
                (void)snprintf(names[i], sizeof names[i], "/%zu", i);
                keys[i] = names[i];
                compares[i] = (struct hfd_compare){.kind = HFD_VALUE_BEGINS,
                                                   .key = names[i],
                                                   .value = "a",
                                                   .n_value = 1};
                ops[i] = (struct hfd_op){.kind = HFD_DELETE, .key = names[i]};
        }
        struct hf__buf *body =
                hfd_etcd_pack_txn(&(struct hfd_txn){.compares = compares,
                                                    .n_compares = HFD_TXN_MAX,
                                                    .ops = ops,
                                                    .n_ops = HFD_TXN_MAX,
                                                    .get_on_failure = keys,
                                                    .n_get_on_failure = HFD_TXN_MAX});
        ProtobufCMessage *message = unpack(&hfd__txn_request__descriptor, body);
        const Hfd__TxnRequest *request = (Hfd__TxnRequest *)message;
        assert_int_equal(request->n_compare, 2 * HFD_TXN_MAX);
        assert_int_equal(request->n_success, HFD_TXN_MAX);
        assert_int_equal(request->n_failure, HFD_TXN_MAX);
        protobuf_c_message_free_unpacked(message, NULL);
        hf__buf_unref(body);
}

static void request_life(int n) {
        const struct hfd_compare compares[] =
                {{.kind = HFD_VALUE_BEGINS, .key = "/c", .value = "ab", .n_value = 2},
                 {.kind = HFD_VALUE_BEGINS, .key = "/d", .value = "ab", .n_value = 2}};
        const struct hfd_txn txn = {.compares = compares, .n_compares = 2};

        failing_memory_arm(n);
        struct hf__buf *body = hfd_etcd_pack_txn(&txn);
        failing_memory_disarm();
        assert_int_equal(body == NULL, failing_memory_hit());
        hf__buf_unref(body);
}

static void test_a_request_without_memory_is_none(void **state) {
        failing_memory_try_all(request_life, 2);
}

int main(void) {
        const struct CMUnitTest cases[] = {
                cmocka_unit_test(test_reads_are_packed),
                cmocka_unit_test(test_watches_and_compactions_are_packed),
                cmocka_unit_test(test_transactions_are_packed),
                cmocka_unit_test(test_the_largest_transaction_is_packed),
                cmocka_unit_test(test_a_request_without_memory_is_none),
        };

        return cmocka_run_group_tests(cases, NULL, NULL);
}
