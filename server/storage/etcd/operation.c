/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations on etcd. Each is one unary gRPC call, with one or more attempts, each on one
 * endpoint.
 *
 * Invariant: exactly one thread owns a call at any time, so that nothing here needs a lock. The
 * channel owns it from its start to on_call_done, which either starts it again or finishes and
 * frees it. The call keeps the packed body, because another attempt may need it.
 *
 * Retries. If an endpoint certainly did not execute the call (connection refused, no leader), every
 * call may be tried on the next endpoint. If the endpoint may have executed the call, only a
 * repeatable call (a read, a compaction) is tried again. With several endpoints, each attempt of a
 * repeatable call except the last gets half of the remaining time, so that an endpoint which hangs
 * does not use up all of it. No attempt gets a later deadline than the operation has.
 */
#include "server/storage/etcd/operation.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "server/storage/etcd/etcd.h"
#include "server/storage/etcd/grpc_status.h"
#include "server/storage/etcd/pack.h"
#include "server/storage/etcd/parse.h"
#include "server/storage/keys.h"

/*
 * etcd's default limit for a request. A larger one is refused before it is sent, because etcd
 * rejects it late, and the other calls on the connection wait while it is sent.
 */
#define REQUEST_MAX ((size_t)1536 * 1024)

#define RANGE "/etcdserverpb.KV/Range"

/* The way in which the request of an operation is sent. */
struct target {
        struct hfd_grpc_channel *channel; /* borrowed */
        unsigned lane;
        const char *path; /* static text */
        enum hfd_etcd_response kind;
        bool repeatable; /* executing it twice does no harm */
};

struct call {
        struct hfd_grpc_stream stream;
        struct hfd_etcd *etcd; /* borrowed */
        struct target target;
        unsigned attempts; /* made so far */
        size_t endpoint;   /* used by the latest attempt */
        hf_nsec deadline;
        struct hf__buf *body; /* owned */
        hfd_store_fn done;
        void *ctx;
};

static void on_call_done(void *ctx, const struct hfd_grpc_result *result);

/* A call gets a second attempt even with one endpoint: an idle connection may be dead, and only the
 * first attempt on it shows that. */
static unsigned max_attempts(const struct call *call) {
        return call->etcd->n_endpoints > 1 ? (unsigned)call->etcd->n_endpoints : 2;
}

static hf_nsec call_now(const struct call *call) {
        return hf_now(hf_host_clock(call->etcd->store.host));
}

/* Makes one attempt on the endpoint in use. 0, or HF_E_CLOSED: then on_call_done is not called. */
static int start_attempt(struct call *call) {
        struct hfd_grpc_request request = {
                .path = call->target.path,
                .body = call->body,
                .endpoint = hfd_etcd_endpoint(call->etcd),
                .lane = call->target.lane,
                .deadline = call->deadline,
                .max_message = HFD_ETCD_BODY_MAX,
                .on_done = on_call_done,
                .ctx = call,
        };
        hf_nsec left = call->deadline - call_now(call);

        assert(call->attempts < max_attempts(call));
        call->endpoint = request.endpoint;
        call->attempts++;
        if (call->target.repeatable && call->etcd->n_endpoints > 1 &&
            call->attempts < max_attempts(call) && left > 0)
                request.deadline = call->deadline - left / 2;
        return hfd_grpc_channel_start(call->target.channel, &call->stream, &request);
}

/* Runs the caller's callback and frees the call. */
static void finish_call(struct call *call, const struct hfd_store_reply *reply) {
        call->done(call->ctx, reply);
        hf__buf_unref(call->body);
        free(call);
}

/* Whether the call gets another attempt after this error. */
static bool may_retry(struct call *call, const struct hfd_grpc_result *result, int error) {
        if (error != HF_E_UNAVAILABLE && error != HF_E_TIMEOUT)
                return false;
        hfd_etcd_fail_over(call->etcd, call->endpoint);
        if (call->attempts >= max_attempts(call) || call_now(call) >= call->deadline)
                return false;
        if (call->target.repeatable)
                return true;
        /* The only endpoint has refused the write itself, so it would refuse it again. */
        if (call->etcd->n_endpoints == 1 && result->status > 0)
                return false;
        return error == HF_E_UNAVAILABLE;
}

/* A good response is exactly one message. 0, -ENOMEM or -EPROTO. */
static int parse_call(struct call *call, const struct hfd_grpc_result *result,
                      struct hf__arena *arena, struct hfd_store_reply *reply) {
        return result->message ? hfd_etcd_parse(call->target.kind, result->message,
                                                result->n_message, arena, reply)
                               : -EPROTO;
}

/* The attempt failed: tries again, or finishes the call. */
static void on_call_failed(struct call *call, const struct hfd_grpc_result *result) {
        struct hfd_store_reply reply = {0};
        int r = hfd_grpc_status_error(result, !call->target.repeatable,
                                      call->etcd->endpoints[call->endpoint].url, &reply.status);

        if (may_retry(call, result, r)) {
                r = start_attempt(call);
                if (r == 0)
                        return;
                r = hf_fail(&reply.status, HF_E_CANCELED, "the store is closing");
        }
        reply.error = r;
        finish_call(call, &reply);
}

static void on_call_done(void *ctx, const struct hfd_grpc_result *result) {
        struct call *call = ctx;
        struct hfd_store_reply reply = {0};
        struct hf__arena arena;
        int r;

        if (result->outcome != 0 || result->code != 200 || result->status != 0) {
                on_call_failed(call, result);
                return;
        }
        hf__arena_init(&arena);
        r = parse_call(call, result, &arena, &reply);
        if (r != 0) {
                hfd_etcd_release_reply(&reply);
                reply = (struct hfd_store_reply){0};
                reply.error = hf_fail(&reply.status, r, "etcd %s: the response is malformed: %s",
                                      call->etcd->endpoints[call->endpoint].url, hf_strerror(r));
        }
        finish_call(call, &reply);
        hfd_etcd_release_reply(&reply);
        hf__arena_deinit(&arena);
}

HF__CLEANUP_DEFINE(body_cleanup, struct hf__buf *, hf__buf_unref)

/* Takes over body, which is NULL if the request could not be packed (pack.h). */
static int start_call(struct hfd_store *store, const struct target *target, struct hf__buf *body,
                      hf_nsec deadline, hfd_store_fn done, void *ctx) {
        HF__CLEANUP(body_cleanup) struct hf__buf *own_body = body;
        HF__CLEANUP(hf__free_cleanup) struct call *call = body ? malloc(sizeof *call) : NULL;

        if (!call)
                return -ENOMEM;
        call->etcd = hfd_etcd_of(store);
        call->target = *target;
        call->attempts = 0;
        call->deadline = deadline;
        call->body = body;
        call->done = done;
        call->ctx = ctx;
        int r = start_attempt(call);
        if (r != 0)
                return r;
        /* finish_call releases both, and may have done so already: do not look into them. */
        (void)HF__TAKE(own_body);
        (void)HF__TAKE(call);
        return 0;
}

/* Sets the channel and the lane of a get or a transaction. */
static void choose_channel(struct target *target, struct hfd_etcd *etcd, bool urgent) {
        target->channel = urgent ? etcd->leases : etcd->calls;
        target->lane = urgent ? HFD_ETCD_ONLY_LANE : HFD_ETCD_LANE_CALLS;
}

int hfd_etcd_get(struct hfd_store *store, const char *key, bool urgent, hf_nsec deadline,
                 hfd_store_fn done, void *ctx) {
        struct target target = {.path = RANGE, .kind = HFD_ETCD_RANGE, .repeatable = true};

        choose_channel(&target, hfd_etcd_of(store), urgent);
        if (!key || *key == 0)
                return -EINVAL;
        return start_call(store, &target, hfd_etcd_pack_get(key), deadline, done, ctx);
}

int hfd_etcd_list(struct hfd_store *store, const char *prefix, const char *start_key,
                  uint64_t revision, size_t limit, bool keys_only, hf_nsec deadline,
                  hfd_store_fn done, void *ctx) {
        const struct target target = {.channel = hfd_etcd_of(store)->lists,
                                      .lane = HFD_ETCD_ONLY_LANE,
                                      .path = RANGE,
                                      .kind = keys_only ? HFD_ETCD_RANGE_KEYS : HFD_ETCD_RANGE,
                                      .repeatable = true};
        const char *begin = start_key && strcmp(start_key, prefix) > 0 ? start_key : prefix;
        char end[HFD_KEY_MAX];
        int r = hfd_key_prefix_end(end, prefix);

        if (r != 0)
                return r;
        return start_call(store, &target,
                          hfd_etcd_pack_list(begin, end, revision, limit, keys_only), deadline,
                          done, ctx);
}

int hfd_etcd_txn(struct hfd_store *store, const struct hfd_txn *txn, hf_nsec deadline,
                 hfd_store_fn done, void *ctx) {
        struct target target = {.path = "/etcdserverpb.KV/Txn",
                                .kind = HFD_ETCD_TXN,
                                /* a transaction without ops is a read */
                                .repeatable = txn->n_ops == 0};
        struct hf__buf *body;
        int r = hfd_txn_check(txn);

        choose_channel(&target, hfd_etcd_of(store), txn->urgent);
        if (r != 0)
                return r;
        body = hfd_etcd_pack_txn(txn);
        if (body && body->n > REQUEST_MAX) {
                hf__buf_unref(body);
                return HF_E_TOO_LARGE;
        }
        return start_call(store, &target, body, deadline, done, ctx);
}

int hfd_etcd_compact(struct hfd_store *store, uint64_t revision, hf_nsec deadline,
                     hfd_store_fn done, void *ctx) {
        const struct target target = {.channel = hfd_etcd_of(store)->calls,
                                      .lane = HFD_ETCD_LANE_CALLS,
                                      .path = "/etcdserverpb.KV/Compact",
                                      .kind = HFD_ETCD_COMPACT,
                                      .repeatable = true};

        return start_call(store, &target, hfd_etcd_pack_compact(revision), deadline, done, ctx);
}

int hfd_etcd_revision(struct hfd_store *store, hf_nsec deadline, hfd_store_fn done, void *ctx) {
        const struct target target = {.channel = hfd_etcd_of(store)->calls,
                                      .lane = HFD_ETCD_LANE_CALLS,
                                      .path = RANGE,
                                      .kind = HFD_ETCD_RANGE_KEYS,
                                      .repeatable = true};

        return start_call(store, &target, hfd_etcd_pack_revision(), deadline, done, ctx);
}
