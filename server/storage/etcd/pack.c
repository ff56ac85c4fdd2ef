/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes requests to etcd with protobuf-c (rpc.proto).
 *
 * Invariant: the message structs borrow the caller's keys and values. These are copied only once,
 * into the body, which is one allocation of the right size. The one exception is the upper bound of
 * HFD_VALUE_BEGINS, which txn_pack owns until the message is packed.
 */
#include "server/storage/etcd/pack.h"

#include <assert.h>
#include <string.h>

#include "server/storage/grpc/prefix.h"
#include "server/storage/keys.h"
#include "server/storage/rpc.pb-c.h"

/* protobuf-c declares the bytes as not const, but packing does not change them. */
static ProtobufCBinaryData to_bytes(const void *data, size_t n) {
        return (ProtobufCBinaryData){.len = n, .data = (uint8_t *)(uintptr_t)data};
}

static ProtobufCBinaryData string_to_bytes(const char *string) {
        return to_bytes(string, strlen(string));
}

/* The beginning or the end of a range. In store.h, an empty bound means no bound; etcd expects a
 * NUL byte for that. */
static ProtobufCBinaryData bound_to_bytes(const char *bound) {
        return *bound ? string_to_bytes(bound) : to_bytes("", 1);
}

static struct hf__buf *pack_message(const ProtobufCMessage *message) {
        size_t n = protobuf_c_message_get_packed_size(message);
        struct hf__buf *body = n <= UINT32_MAX ? hf__buf_new(HFD_GRPC_PREFIX + n) : NULL;

        if (!body)
                return NULL;
        hfd_grpc_prefix_write(body->data, (uint32_t)n);
        protobuf_c_message_pack(message, (uint8_t *)body->data + HFD_GRPC_PREFIX);
        return body;
}

struct hf__buf *hfd_etcd_pack_get(const char *key) {
        Hfd__RangeRequest range = HFD__RANGE_REQUEST__INIT;

        range.key = string_to_bytes(key);
        return pack_message(&range.base);
}

struct hf__buf *hfd_etcd_pack_list(const char *begin, const char *end, uint64_t revision,
                                   size_t limit, bool keys_only) {
        Hfd__RangeRequest range = HFD__RANGE_REQUEST__INIT;

        range.key = bound_to_bytes(begin);
        range.range_end = bound_to_bytes(end);
        range.revision = (int64_t)revision;
        range.limit = limit > INT64_MAX ? INT64_MAX : (int64_t)limit;
        range.keys_only = keys_only;
        return pack_message(&range.base);
}

struct hf__buf *hfd_etcd_pack_revision(void) {
        Hfd__RangeRequest range = HFD__RANGE_REQUEST__INIT;

        range.key = to_bytes("", 1); /* the key NUL; it need not exist */
        range.count_only = true;
        return pack_message(&range.base);
}

struct hf__buf *hfd_etcd_pack_compact(uint64_t revision) {
        Hfd__CompactionRequest compaction = HFD__COMPACTION_REQUEST__INIT;

        compaction.revision = (int64_t)revision;
        return pack_message(&compaction.base);
}

struct hf__buf *hfd_etcd_pack_watch(const char *begin, const char *end, uint64_t revision) {
        Hfd__WatchCreateRequest create = HFD__WATCH_CREATE_REQUEST__INIT;
        Hfd__WatchRequest watch = HFD__WATCH_REQUEST__INIT;

        create.key = bound_to_bytes(begin);
        create.range_end = bound_to_bytes(end);
        create.start_revision = (int64_t)revision;
        create.progress_notify = true;
        watch.request_union_case = HFD__WATCH_REQUEST__REQUEST_UNION_CREATE_REQUEST;
        watch.create_request = &create;
        return pack_message(&watch.base);
}

struct hf__buf *hfd_etcd_pack_watch_progress(void) {
        Hfd__WatchProgressRequest progress = HFD__WATCH_PROGRESS_REQUEST__INIT;
        Hfd__WatchRequest watch = HFD__WATCH_REQUEST__INIT;

        watch.request_union_case = HFD__WATCH_REQUEST__REQUEST_UNION_PROGRESS_REQUEST;
        watch.progress_request = &progress;
        return pack_message(&watch.base);
}

/*
 * The messages of one transaction. HFD_VALUE_BEGINS needs up to two of etcd's compares, and a
 * modified copy of its value.
 */
struct txn_pack {
        Hfd__TxnRequest txn;
        Hfd__Compare compares[2 * HFD_TXN_MAX], *compare_refs[2 * HFD_TXN_MAX];
        Hfd__RequestOp ops[HFD_TXN_MAX], *op_refs[HFD_TXN_MAX];
        Hfd__PutRequest puts[HFD_TXN_MAX];
        Hfd__DeleteRangeRequest deletes[HFD_TXN_MAX];
        Hfd__RequestOp gets[HFD_TXN_MAX], *get_refs[HFD_TXN_MAX];
        Hfd__RangeRequest ranges[HFD_TXN_MAX];
        struct hf__buf *ends[HFD_TXN_MAX]; /* owned */
        size_t n_ends;
};

static Hfd__Compare *add_compare(struct txn_pack *state, const char *key,
                                 Hfd__Compare__Result result) {
        size_t i = state->txn.n_compare++;
        Hfd__Compare *compare = &state->compares[i];

        assert(i < 2 * HFD_TXN_MAX);
        hfd__compare__init(compare);
        compare->key = string_to_bytes(key);
        compare->result = result;
        state->compare_refs[i] = compare;
        return compare;
}

static void add_value_compare(struct txn_pack *state, const char *key, Hfd__Compare__Result result,
                              const void *value, size_t n) {
        Hfd__Compare *compare = add_compare(state, key, result);

        compare->target = HFD__COMPARE__TARGET__VALUE;
        compare->target_union_case = HFD__COMPARE__TARGET_UNION_VALUE;
        compare->value = to_bytes(value, n);
}

/*
 * Expresses HFD_VALUE_BEGINS by etcd's compares. The values that begin with P and are longer are
 * exactly those greater than P and less than P's successor. The successor is P without its trailing
 * 0xff bytes, with its last byte incremented. If P has no other bytes, there is no upper bound. A
 * VALUE compare of a key that does not exist fails in etcd, as store.h requires. Returns false when
 * out of memory.
 */
static bool add_prefix_compare(struct txn_pack *state, const struct hfd_compare *compare) {
        const unsigned char *value = compare->value;
        size_t n = compare->n_value;
        struct hf__buf *end;

        add_value_compare(state, compare->key, HFD__COMPARE__RESULT__GREATER, value, n);
        while (n > 0 && value[n - 1] == 0xff)
                n--;
        if (n == 0)
                return true;
        end = hf__buf_copy(value, n);
        if (!end)
                return false;
        end->data[n - 1] = (char)(value[n - 1] + 1);
        state->ends[state->n_ends++] = end;
        add_value_compare(state, compare->key, HFD__COMPARE__RESULT__LESS, end->data, n);
        return true;
}

static bool add_compares(struct txn_pack *state, const struct hfd_txn *txn) {
        for (size_t i = 0; i < txn->n_compares; i++) {
                const struct hfd_compare *compare = &txn->compares[i];
                Hfd__Compare *mod;

                switch (compare->kind) {
                case HFD_MOD_EQUALS:
                        mod = add_compare(state, compare->key, HFD__COMPARE__RESULT__EQUAL);
                        mod->target = HFD__COMPARE__TARGET__MOD;
                        mod->target_union_case = HFD__COMPARE__TARGET_UNION_MOD_REVISION;
                        mod->mod_revision = (int64_t)compare->revision;
                        break;
                case HFD_VALUE_EQUALS:
                        add_value_compare(state, compare->key, HFD__COMPARE__RESULT__EQUAL,
                                          compare->value, compare->n_value);
                        break;
                case HFD_VALUE_BEGINS:
                        if (!add_prefix_compare(state, compare))
                                return false;
                        break;
                }
        }
        return true;
}

static void add_op(struct txn_pack *state, const struct hfd_op *op) {
        size_t i = state->txn.n_success++;
        Hfd__RequestOp *request = &state->ops[i];

        assert(i < HFD_TXN_MAX);
        hfd__request_op__init(request);
        state->op_refs[i] = request;
        if (op->kind == HFD_PUT) {
                hfd__put_request__init(&state->puts[i]);
                state->puts[i].key = string_to_bytes(op->key);
                state->puts[i].value = to_bytes(op->value->data, op->value->n);
                request->request_case = HFD__REQUEST_OP__REQUEST_REQUEST_PUT;
                request->request_put = &state->puts[i];
        } else {
                hfd__delete_range_request__init(&state->deletes[i]);
                state->deletes[i].key = string_to_bytes(op->key);
                request->request_case = HFD__REQUEST_OP__REQUEST_REQUEST_DELETE_RANGE;
                request->request_delete_range = &state->deletes[i];
        }
}

static void add_get(struct txn_pack *state, const char *key) {
        size_t i = state->txn.n_failure++;

        assert(i < HFD_TXN_MAX);
        hfd__range_request__init(&state->ranges[i]);
        state->ranges[i].key = string_to_bytes(key);
        hfd__request_op__init(&state->gets[i]);
        state->gets[i].request_case = HFD__REQUEST_OP__REQUEST_REQUEST_RANGE;
        state->gets[i].request_range = &state->ranges[i];
        state->get_refs[i] = &state->gets[i];
}

/*
 * Adds a read whose result is ignored, so that the transaction needs a quorum. etcd executes
 * a transaction without writes from the member's own state, unless it contains a range that is not
 * serializable. Without any range, a member that lags behind would compare with an old state, even
 * if it is cut off from the others.
 */
static void add_quorum_read(struct txn_pack *state) {
        hfd__range_request__init(&state->ranges[0]);
        state->ranges[0].key = to_bytes("", 1); /* the key NUL; it need not exist */
        state->ranges[0].count_only = true;
        hfd__request_op__init(&state->gets[0]);
        state->gets[0].request_case = HFD__REQUEST_OP__REQUEST_REQUEST_RANGE;
        state->gets[0].request_range = &state->ranges[0];
        state->op_refs[state->txn.n_success++] = &state->gets[0];
}

struct hf__buf *hfd_etcd_pack_txn(const struct hfd_txn *txn) {
        /* Not zeroed, because it has several KiB and most of it stays unused. */
        struct txn_pack state;
        struct hf__buf *body = NULL;

        hfd__txn_request__init(&state.txn);
        state.txn.compare = state.compare_refs;
        state.txn.success = state.op_refs;
        state.txn.failure = state.get_refs;
        state.n_ends = 0;
        if (add_compares(&state, txn)) {
                for (size_t i = 0; i < txn->n_ops; i++)
                        add_op(&state, &txn->ops[i]);
                for (size_t i = 0; i < txn->n_get_on_failure; i++)
                        add_get(&state, txn->get_on_failure[i]);
                if (txn->n_ops == 0 && txn->n_get_on_failure == 0)
                        add_quorum_read(&state);
                body = pack_message(&state.txn.base);
        }
        while (state.n_ends > 0)
                hf__buf_unref(state.ends[--state.n_ends]);
        return body;
}
