/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each response of etcd, field by field, without an etcd: protobuf-c packs what
 * server/storage/etcd/parse.c parses. test-store-codec.c has malformed ones.
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

#include "failing_memory.h"
#include "server/storage/etcd/parse.h"
#include "server/storage/rpc.pb-c.h"

/* Parses the message; the reply is released by `release`. */
static struct hf__arena arena;
static int parse(enum hfd_etcd_response kind, const ProtobufCMessage *message,
                 struct hfd_store_reply *reply) {
        static uint8_t data[65536];
        size_t n = protobuf_c_message_get_packed_size(message);

        assert_true(n <= sizeof data);
        (void)protobuf_c_message_pack(message, data);
        *reply = (struct hfd_store_reply){0};
        hf__arena_init(&arena);
        return hfd_etcd_parse(kind, data, n, &arena, reply);
}
static void release(struct hfd_store_reply *reply) {
        hfd_etcd_release_reply(reply);
        assert_int_equal(reply->n_kvs, 0);
        hf__arena_deinit(&arena);
}

static ProtobufCBinaryData bytes_of(const char *text) {
        return (ProtobufCBinaryData){strlen(text), (uint8_t *)text};
}

static Hfd__KeyValue kv_of(const char *key, const char *value) {
        Hfd__KeyValue kv = HFD__KEY_VALUE__INIT;

        kv.key = bytes_of(key);
        kv.value = bytes_of(value);
        kv.mod_revision = 30;
        kv.create_revision = 20;
        return kv;
}

static Hfd__ResponseHeader header_of_test(void) {
        Hfd__ResponseHeader header = HFD__RESPONSE_HEADER__INIT;

        header.cluster_id = 7;
        header.revision = 100;
        return header;
}

static void expect_header(const struct hfd_store_reply *reply) {
        assert_int_equal(reply->revision, 100);
        assert_int_equal(reply->cluster_id, 7);
}

static void expect_kv(const struct hfd_kv *kv, const char *key, const char *value) {
        assert_string_equal(kv->key, key);
        assert_int_equal(kv->mod_revision, 30);
        assert_int_equal(kv->create_revision, 20);
        if (!value) {
                assert_null(kv->value);
                return;
        }
        assert_int_equal(kv->value->n, strlen(value));
        assert_string_equal(kv->value->data, value);
}

static void test_ranges_are_parsed(void **state) {
        Hfd__ResponseHeader header = header_of_test();
        Hfd__KeyValue a = kv_of("/a", "1"), b = kv_of("/b", ""), bad = kv_of("", "1");
        Hfd__KeyValue *kvs[] = {&a, &b, &bad};
        Hfd__RangeResponse range = HFD__RANGE_RESPONSE__INIT;
        struct hfd_store_reply reply;

        range.header = &header;
        range.kvs = kvs;
        range.n_kvs = 2;
        range.more = true;
        assert_int_equal(parse(HFD_ETCD_RANGE, &range.base, &reply), 0);
        expect_header(&reply);
        assert_int_equal(reply.error, 0);
        assert_true(reply.more);
        assert_int_equal(reply.n_kvs, 2);
        expect_kv(&reply.kvs[0], "/a", "1");
        expect_kv(&reply.kvs[1], "/b", "");
        release(&reply);
        range.more = false;
        assert_int_equal(parse(HFD_ETCD_RANGE_KEYS, &range.base, &reply), 0);
        assert_false(reply.more);
        assert_int_equal(reply.n_kvs, 2);
        expect_kv(&reply.kvs[0], "/a", NULL);
        expect_kv(&reply.kvs[1], "/b", NULL);
        release(&reply);
        range.n_kvs = 3; /* the last one has no key: what is complete is released */
        assert_int_equal(parse(HFD_ETCD_RANGE, &range.base, &reply), -EPROTO);
        assert_int_equal(reply.n_kvs, 2);
        release(&reply);
        range.n_kvs = 2;
        range.header = NULL;
        assert_int_equal(parse(HFD_ETCD_RANGE, &range.base, &reply), -EPROTO);
        release(&reply);
}

static void test_transactions_are_parsed(void **state) {
        Hfd__ResponseHeader header = header_of_test();
        Hfd__KeyValue a = kv_of("/a", "1"), b = kv_of("/b", "2"), bad = kv_of("", "1");
        Hfd__KeyValue *two[] = {&a, &b}, *none[] = {&bad};
        Hfd__RangeResponse ranges[] = {HFD__RANGE_RESPONSE__INIT, HFD__RANGE_RESPONSE__INIT};
        Hfd__ResponseOp ops[] = {HFD__RESPONSE_OP__INIT, HFD__RESPONSE_OP__INIT,
                                 HFD__RESPONSE_OP__INIT};
        Hfd__ResponseOp *responses[] = {&ops[0], &ops[1], &ops[2]};
        Hfd__TxnResponse txn = HFD__TXN_RESPONSE__INIT;
        struct hfd_store_reply reply;

        ranges[0].kvs = two;
        ranges[0].n_kvs = 2;
        ranges[1].kvs = two;
        ranges[1].n_kvs = 1;
        for (size_t i = 0; i < 2; i++) { /* the one between them is that of a put */
                ops[2 * i].response_case = HFD__RESPONSE_OP__RESPONSE_RESPONSE_RANGE;
                ops[2 * i].response_range = &ranges[i];
        }
        txn.header = &header;
        txn.responses = responses;
        txn.n_responses = 3;
        assert_int_equal(parse(HFD_ETCD_TXN, &txn.base, &reply), 0);
        expect_header(&reply);
        assert_int_equal(reply.error, HF_E_CONFLICT);
        assert_int_equal(reply.status.error, HF_E_CONFLICT);
        assert_string_equal(reply.status.message, "a compare of the transaction failed");
        assert_int_equal(reply.n_kvs, 3);
        expect_kv(&reply.kvs[0], "/a", "1");
        expect_kv(&reply.kvs[1], "/b", "2");
        expect_kv(&reply.kvs[2], "/a", "1");
        release(&reply);
        txn.succeeded = true; /* what it has read is ignored then */
        assert_int_equal(parse(HFD_ETCD_TXN, &txn.base, &reply), 0);
        expect_header(&reply);
        assert_int_equal(reply.error, 0);
        assert_int_equal(reply.n_kvs, 0);
        release(&reply);
        txn.succeeded = false;
        ranges[0].kvs = none;
        ranges[0].n_kvs = 1;
        assert_int_equal(parse(HFD_ETCD_TXN, &txn.base, &reply), -EPROTO);
        assert_int_equal(reply.n_kvs, 0);
        release(&reply);
        txn.succeeded = true;
        txn.header = NULL;
        assert_int_equal(parse(HFD_ETCD_TXN, &txn.base, &reply), -EPROTO);
        release(&reply);
}

static void test_compactions_are_parsed(void **state) {
        Hfd__ResponseHeader header = header_of_test();
        Hfd__CompactionResponse compaction = HFD__COMPACTION_RESPONSE__INIT;
        struct hfd_store_reply reply;

        assert_int_equal(parse(HFD_ETCD_COMPACT, &compaction.base, &reply), -EPROTO);
        release(&reply);
        compaction.header = &header;
        assert_int_equal(parse(HFD_ETCD_COMPACT, &compaction.base, &reply), 0);
        expect_header(&reply);
        release(&reply);
        assert_int_equal(parse((enum hfd_etcd_response)9, &compaction.base, &reply), -EINVAL);
        release(&reply);
}

static int parse_watch(const Hfd__WatchResponse *message,
                       struct hfd_etcd_watch_response *ret_response) {
        static uint8_t data[65536];
        size_t n = protobuf_c_message_get_packed_size(&message->base);

        assert_true(n <= sizeof data);
        (void)protobuf_c_message_pack(&message->base, data);
        hf__arena_init(&arena);
        return hfd_etcd_parse_watch_response(data, n, &arena, ret_response);
}
static void release_watch(struct hfd_etcd_watch_response *response) {
        hfd_etcd_release_watch_response(response);
        assert_int_equal(response->n_events, 0);
        hf__arena_deinit(&arena);
}

static void test_states_of_watches_are_parsed(void **state) {
        Hfd__ResponseHeader header = header_of_test();
        Hfd__WatchResponse message = HFD__WATCH_RESPONSE__INIT;
        struct hfd_etcd_watch_response got;

        assert_int_equal(parse_watch(&message, &got), -EPROTO); /* it has no header */
        assert_string_equal(got.cancel_reason, "");
        release_watch(&got);
        message.header = &header;
        assert_int_equal(parse_watch(&message, &got), 0);
        assert_int_equal(got.revision, 100);
        assert_false(got.created || got.canceled || got.is_probed);
        assert_int_equal(got.compact_revision, 0);
        assert_int_equal(got.n_events, 0);
        assert_string_equal(got.cancel_reason, "");
        release_watch(&got);
        message.created = true;
        assert_int_equal(parse_watch(&message, &got), 0);
        assert_true(got.created && !got.canceled && !got.is_probed);
        release_watch(&got);
        message.created = false;
        message.watch_id = -1;
        assert_int_equal(parse_watch(&message, &got), 0);
        assert_true(got.is_probed && !got.created && !got.canceled);
        release_watch(&got);
        message.watch_id = 0;
        message.canceled = true;
        message.compact_revision = 55;
        message.cancel_reason = (char *)"too old";
        assert_int_equal(parse_watch(&message, &got), 0);
        assert_true(got.canceled && !got.created && !got.is_probed);
        assert_int_equal(got.compact_revision, 55);
        assert_string_equal(got.cancel_reason, "too old");
        release_watch(&got);
}

static void test_events_are_parsed(void **state) {
        Hfd__ResponseHeader header = header_of_test();
        Hfd__KeyValue a = kv_of("/a", "1"), b = kv_of("/b", "");
        Hfd__Event events[] = {HFD__EVENT__INIT, HFD__EVENT__INIT, HFD__EVENT__INIT};
        Hfd__Event *refs[] = {&events[0], &events[1], &events[2]};
        Hfd__WatchResponse message = HFD__WATCH_RESPONSE__INIT;
        struct hfd_etcd_watch_response got;

        b.create_revision = 0;
        b.mod_revision = 31;
        events[0].kv = &a;
        events[1].type = HFD__EVENT__TYPE__DELETE;
        events[1].kv = &b;
        message.header = &header;
        message.events = refs;
        message.n_events = 2;
        assert_int_equal(parse_watch(&message, &got), 0);
        assert_int_equal(got.n_events, 2);
        assert_int_equal(got.events[0].type, HFD_WATCH_PUT);
        assert_int_equal(got.events[0].revision, 30);
        expect_kv(&got.events[0].kv, "/a", "1");
        assert_int_equal(got.events[1].type, HFD_WATCH_DELETE);
        assert_int_equal(got.events[1].revision, 31);
        assert_string_equal(got.events[1].kv.key, "/b");
        assert_int_equal(got.events[1].kv.create_revision, 0);
        assert_null(got.events[1].kv.value);
        release_watch(&got);
        message.n_events = 3; /* the last one has no key and value: what is complete is released */
        assert_int_equal(parse_watch(&message, &got), -EPROTO);
        assert_int_equal(got.n_events, 2);
        release_watch(&got);
        message.n_events = 2; /* a watch could not go on after an event without a revision */
        b.mod_revision = 0;
        assert_int_equal(parse_watch(&message, &got), -EPROTO);
        release_watch(&got);
}

/* ---- without memory: the result is -ENOMEM, and not that the message is malformed ---- */

#define N_MANY 400 /* so that what is allocated for them has chunks of its own */

static Hfd__ResponseHeader many_header;
static Hfd__KeyValue pairs[N_MANY], *pair_refs[N_MANY];
static Hfd__Event many_events[N_MANY], *event_refs[N_MANY];
static Hfd__RangeResponse many_range = HFD__RANGE_RESPONSE__INIT;

static void make_many(void) {
        many_header = header_of_test();
        for (size_t i = 0; i < N_MANY; i++) {
                pairs[i] = kv_of("/a", "1");
                pair_refs[i] = &pairs[i];
                hfd__event__init(&many_events[i]);
                many_events[i].kv = &pairs[i];
                event_refs[i] = &many_events[i];
        }
        many_range.header = &many_header;
        many_range.kvs = pair_refs;
        many_range.n_kvs = N_MANY;
}

static void response_life(int n, enum hfd_etcd_response kind, const ProtobufCMessage *message) {
        struct hfd_store_reply reply;

        failing_memory_arm(n);
        int r = parse(kind, message, &reply);
        failing_memory_disarm();
        assert_int_equal(r, failing_memory_hit() ? -ENOMEM : 0);
        release(&reply);
}

static void range_life(int n) { response_life(n, HFD_ETCD_RANGE, &many_range.base); }

/* So the array of keys is the first block that has no room at some of these lengths. */
static void range_lives_of_each_length(void (*life)(int n)) {
        for (size_t n_kvs = 1; n_kvs <= N_MANY; n_kvs += 5) {
                many_range.n_kvs = n_kvs;
                for (int n = 0; n < 8; n++)
                        life(n);
        }
        many_range.n_kvs = N_MANY;
}

static void txn_life(int n) {
        Hfd__ResponseOp op = HFD__RESPONSE_OP__INIT, *responses[] = {&op};
        Hfd__TxnResponse txn = HFD__TXN_RESPONSE__INIT;

        op.response_case = HFD__RESPONSE_OP__RESPONSE_RESPONSE_RANGE;
        op.response_range = &many_range;
        txn.header = &many_header;
        txn.responses = responses;
        txn.n_responses = 1;
        response_life(n, HFD_ETCD_TXN, &txn.base);
}

static void watch_life(int n) {
        Hfd__WatchResponse watch = HFD__WATCH_RESPONSE__INIT;
        struct hfd_etcd_watch_response got;

        watch.header = &many_header;
        watch.events = event_refs;
        watch.n_events = N_MANY;
        failing_memory_arm(n);
        int r = parse_watch(&watch, &got);
        failing_memory_disarm();
        assert_int_equal(r, failing_memory_hit() ? -ENOMEM : 0);
        release_watch(&got);
}

static void test_a_response_without_memory_says_so(void **state) {
        make_many();
        failing_memory_try_all(range_life, N_MANY);
        failing_memory_try_all(txn_life, N_MANY);
        failing_memory_try_all(watch_life, N_MANY);
        range_lives_of_each_length(range_life);
        range_lives_of_each_length(txn_life);
}

int main(void) {
        const struct CMUnitTest cases[] = {
                cmocka_unit_test(test_ranges_are_parsed),
                cmocka_unit_test(test_transactions_are_parsed),
                cmocka_unit_test(test_compactions_are_parsed),
                cmocka_unit_test(test_states_of_watches_are_parsed),
                cmocka_unit_test(test_events_are_parsed),
                cmocka_unit_test(test_a_response_without_memory_says_so),
        };

        return cmocka_run_group_tests(cases, NULL, NULL);
}
