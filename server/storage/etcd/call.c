/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unary calls: one operation of the port is one gRPC call, tried on one endpoint after the other.
 *
 * A call belongs to the engine from its submission to its on_done, where it is either submitted
 * once more or answered and freed; so exactly one thread has it at any time, and nothing here needs
 * a lock. The packed body is kept for a further attempt.
 *
 * Whether there is one: an endpoint that certainly did nothing (refused, no leader) may be followed
 * by the next for any call; one that may have done it only for calls that can be repeated (reads,
 * compaction). With several endpoints a repeatable call gives each attempt but the last half of the
 * time that is left, so that a hung endpoint does not use it all up. The deadline of the operation
 * is never exceeded.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/storage/etcd/etcd.h"
#include "server/storage/keys.h"

struct call {
        struct hfd_etcd *etcd;
        enum hfd_etcd_response kind;
        const char *path;
        bool repeatable;
        unsigned lane;
        unsigned attempts; /* made */
        size_t endpoint;   /* of the last attempt */
        hf_nsec deadline;
        struct hf__buf *body; /* owned */
        hfd_store_fn done;
        void *ctx;
};

static void call_done(void *ctx, const struct hf__http_result *result);

static unsigned max_attempts(const struct call *call) {
        /* With one endpoint a read is repeated once: a kept connection is found dead only when it
         * is used. */
        return call->etcd->n_endpoints > 1 ? (unsigned)call->etcd->n_endpoints
               : call->repeatable          ? 2
                                           : 1;
}

static hf_nsec call_now(const struct call *call) {
        return hf_now(hf_host_clock(call->etcd->store.host));
}

static int call_submit(struct call *call) {
        char url[HFD_ETCD_URL_MAX + 64], timeout[48];
        const char *headers[] = {"content-type: application/grpc", "te: trailers", timeout};
        struct hf__http_request request = {
                .headers = headers,
                .n_headers = 3,
                .body = call->body->data,
                .n_body = call->body->n,
                .lane = call->lane,
                .deadline = call->deadline,
                .max_body = HFD_ETCD_BODY_MAX,
                .idempotent = call->repeatable,
                .on_done = call_done,
                .ctx = call,
        };
        hf_nsec left = call->deadline - call_now(call);
        long long left_ms;

        call->endpoint = hfd_etcd_endpoint(call->etcd);
        call->attempts++;
        if (call->repeatable && call->etcd->n_endpoints > 1 &&
            call->attempts < max_attempts(call) && left > 0) {
                left /= 2;
                request.deadline = call->deadline - left;
        }
        /* The header has at most eight digits. */
        left_ms = left / HF_NSEC_PER_MSEC;
        snprintf(timeout, sizeof timeout, "grpc-timeout: %lldm",
                 left_ms < 1          ? 1
                 : left_ms > 99999999 ? 99999999
                                      : left_ms);
        hfd_etcd_request(call->etcd, call->endpoint, call->path, url, &request);
        return hf__http_submit(call->etcd->engine, &request, NULL);
}

static void call_answer(struct call *call, const struct hfd_store_reply *reply) {
        call->done(call->ctx, reply);
        hf__buf_unref(call->body);
        free(call);
}

/* Whether the error of the attempt leaves the call another one. */
static bool call_again(struct call *call, int error) {
        if (error != HF_E_UNAVAILABLE && error != HF_E_TIMEOUT)
                return false;
        hfd_etcd_move_on(call->etcd, call->endpoint);
        return (error == HF_E_UNAVAILABLE || call->repeatable) &&
               call->attempts < max_attempts(call) && call_now(call) < call->deadline;
}

/* A good answer's body is one gRPC message. Returns 0 or why it is not. */
static int call_parse(struct call *call, const struct hf__http_result *result,
                      struct hfd_arena *arena, struct hfd_store_reply *reply) {
        uint32_t n;
        int r;

        if (result->n_body < HFD_GRPC_PREFIX)
                return -EPROTO;
        r = hfd_grpc_prefix_read(result->body, &n);
        if (r != 0)
                return r;
        if (n != result->n_body - HFD_GRPC_PREFIX)
                return -EPROTO;
        return hfd_etcd_parse(call->kind, (const char *)result->body + HFD_GRPC_PREFIX, n, arena,
                              reply);
}

static void call_done(void *ctx, const struct hf__http_result *result) {
        struct call *call = ctx;
        const char *endpoint = call->etcd->endpoints[call->endpoint];
        struct hfd_store_reply reply = {0};
        struct hfd_arena arena;
        int r;

        if (result->outcome || result->code != 200 || result->grpc_status != 0) {
                r = hfd_etcd_error(result, !call->repeatable, endpoint, &reply.status);
                if (call_again(call, r)) {
                        r = call_submit(call);
                        if (r == 0)
                                return;
                        r = hf_fail(&reply.status,
                                    r == HF_E_CLOSED ? HF_E_CANCELED : HF_E_UNAVAILABLE,
                                    "cannot try again: %s", hf_strerror(r));
                }
                reply.error = r;
                call_answer(call, &reply);
                return;
        }
        hfd_arena_init(&arena);
        r = call_parse(call, result, &arena, &reply);
        if (r != 0) {
                hfd_etcd_release(&reply);
                reply = (struct hfd_store_reply){0};
                reply.error = hf_fail(&reply.status, r, "etcd %s: the answer cannot be read: %s",
                                      endpoint, hf_strerror(r));
        }
        call_answer(call, &reply);
        hfd_etcd_release(&reply);
        hfd_arena_deinit(&arena);
}

/* Takes body. */
static int call_start(struct hfd_store *store, enum hfd_etcd_response kind, const char *path,
                      bool repeatable, unsigned lane, struct hf__buf *body, hf_nsec deadline,
                      hfd_store_fn done, void *ctx) {
        struct call *call = body ? malloc(sizeof *call) : NULL;
        int r;

        if (!call) {
                hf__buf_unref(body);
                return -ENOMEM;
        }
        *call = (struct call){.etcd = hfd_etcd_of(store),
                              .kind = kind,
                              .path = path,
                              .repeatable = repeatable,
                              .lane = lane,
                              .deadline = deadline,
                              .body = body,
                              .done = done,
                              .ctx = ctx};
        r = call_submit(call);
        if (r != 0) {
                hf__buf_unref(call->body);
                free(call);
        }
        return r;
}

int hfd_etcd_get(struct hfd_store *store, const char *key, hf_nsec deadline, hfd_store_fn done,
                 void *ctx) {
        if (!key || !*key)
                return -EINVAL;
        return call_start(store, HFD_ETCD_RANGE, "KV/Range", true, HFD_ETCD_LANE_CALLS,
                          hfd_etcd_pack_get(key), deadline, done, ctx);
}

int hfd_etcd_list(struct hfd_store *store, const char *prefix, const char *start_key,
                  uint64_t revision, size_t limit, bool keys_only, hf_nsec deadline,
                  hfd_store_fn done, void *ctx) {
        const char *begin = start_key && strcmp(start_key, prefix) > 0 ? start_key : prefix;
        char end[HFD_KEY_MAX];
        int r = hfd_key_prefix_end(end, prefix);

        if (r != 0)
                return r;
        return call_start(store, keys_only ? HFD_ETCD_RANGE_KEYS : HFD_ETCD_RANGE, "KV/Range", true,
                          HFD_ETCD_LANE_CALLS,
                          hfd_etcd_pack_list(begin, end, revision, limit, keys_only), deadline,
                          done, ctx);
}

/*
 * etcd's default limit. What is larger is refused here: etcd answers it late, or resets the stream
 * while it is still coming, and after either a large answer on the same connection has been seen to
 * stall with libcurl 7.88.
 */
#define REQUEST_MAX ((size_t)1536 * 1024)

int hfd_etcd_txn(struct hfd_store *store, const struct hfd_txn *txn, hf_nsec deadline,
                 hfd_store_fn done, void *ctx) {
        struct hf__buf *body;
        int r = hfd_txn_check(txn);

        if (r != 0)
                return r;
        body = hfd_etcd_pack_txn(txn);
        if (body && body->n > REQUEST_MAX) {
                hf__buf_unref(body);
                return HF_E_TOO_LARGE;
        }
        /* A transaction that writes nothing is a read. */
        return call_start(store, HFD_ETCD_TXN, "KV/Txn", !txn->n_ops,
                          txn->urgent ? HFD_ETCD_LANE_LEASE : HFD_ETCD_LANE_CALLS, body, deadline,
                          done, ctx);
}

int hfd_etcd_compact(struct hfd_store *store, uint64_t revision, hf_nsec deadline,
                     hfd_store_fn done, void *ctx) {
        return call_start(store, HFD_ETCD_COMPACT, "KV/Compact", true, HFD_ETCD_LANE_CALLS,
                          hfd_etcd_pack_compact(revision), deadline, done, ctx);
}

int hfd_etcd_revision(struct hfd_store *store, hf_nsec deadline, hfd_store_fn done, void *ctx) {
        return call_start(store, HFD_ETCD_RANGE_KEYS, "KV/Range", true, HFD_ETCD_LANE_CALLS,
                          hfd_etcd_pack_revision(), deadline, done, ctx);
}
