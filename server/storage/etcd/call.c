/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations on etcd. Each is one unary gRPC call, with one or more attempts, each on one
 * endpoint.
 *
 * Invariant: exactly one thread owns a call at any time, so that nothing here needs a lock. The
 * engine owns it from its submission to on_call_done, which either submits it again or finishes and
 * frees it. The call keeps the packed body, because another attempt may need it.
 *
 * Retries. If an endpoint certainly did not execute the call (connection refused, no leader), every
 * call may be tried on the next endpoint. If the endpoint may have executed the call, only a
 * repeatable call (a read, a compaction) is tried again. With several endpoints, each attempt of a
 * repeatable call except the last gets half of the remaining time, so that an endpoint which hangs
 * does not use up all of it. The operation's deadline is never exceeded.
 */
#include "server/storage/etcd/call.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/storage/etcd/etcd.h"
#include "server/storage/etcd/grpc_prefix.h"
#include "server/storage/etcd/grpc_status.h"
#include "server/storage/etcd/pack.h"
#include "server/storage/etcd/parse.h"
#include "server/storage/keys.h"

/*
 * etcd's default limit for a request. A larger one is refused before it is sent, because etcd
 * rejects it late or resets the stream during the upload. With libcurl 7.88, a large response on
 * the same connection can stall after such a reset.
 */
#define REQUEST_MAX ((size_t)1536 * 1024)

#define GRPC_TIMEOUT_MAX_MS 99999999 /* the header has at most eight digits */

struct call {
        struct hfd_etcd *etcd; /* borrowed */
        enum hfd_etcd_response kind;
        const char *path; /* static text */
        bool repeatable;  /* executing it twice does no harm */
        unsigned lane;
        unsigned attempts; /* made so far */
        size_t endpoint;   /* used by the latest attempt */
        hf_nsec deadline;
        struct hf__buf *body; /* owned */
        hfd_store_fn done;
        void *ctx;
};

static void on_call_done(void *ctx, const struct hf__http_result *result);

static unsigned max_attempts(const struct call *call) {
        if (call->etcd->n_endpoints > 1)
                return (unsigned)call->etcd->n_endpoints;
        /* A repeatable call gets a second attempt even with one endpoint: an idle connection may be
         * dead, and only the first attempt on it shows that. */
        return call->repeatable ? 2 : 1;
}

static hf_nsec call_now(const struct call *call) {
        return hf_now(hf_host_clock(call->etcd->store.host));
}

/* Makes one attempt on the endpoint in use. 0, or an error: then on_call_done is not called. */
static int submit_call(struct call *call) {
        char url[HFD_ETCD_URL_MAX], timeout[48];
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
                .on_done = on_call_done,
                .ctx = call,
        };
        hf_nsec left = call->deadline - call_now(call);
        long long left_ms;

        assert(call->attempts < max_attempts(call));
        call->endpoint = hfd_etcd_endpoint(call->etcd);
        call->attempts++;
        if (call->repeatable && call->etcd->n_endpoints > 1 &&
            call->attempts < max_attempts(call) && left > 0) {
                left /= 2;
                request.deadline = call->deadline - left;
        }
        left_ms = left / HF_NSEC_PER_MSEC;
        if (left_ms < 1)
                left_ms = 1;
        if (left_ms > GRPC_TIMEOUT_MAX_MS)
                left_ms = GRPC_TIMEOUT_MAX_MS;
        snprintf(timeout, sizeof timeout, "grpc-timeout: %lldm", left_ms);
        hfd_etcd_prepare_request(call->etcd, call->endpoint, call->path, url, &request);
        return hf__http_submit(call->etcd->engine, &request, NULL);
}

/* Runs the caller's callback and frees the call. */
static void finish_call(struct call *call, const struct hfd_store_reply *reply) {
        call->done(call->ctx, reply);
        hf__buf_unref(call->body);
        free(call);
}

/* Handles an error that may be the endpoint's fault: switches to the next endpoint. True: the call
 * gets another attempt. */
static bool fail_over_to_retry(struct call *call, int error) {
        if (error != HF_E_UNAVAILABLE && error != HF_E_TIMEOUT)
                return false;
        hfd_etcd_fail_over(call->etcd, call->endpoint);
        return (error == HF_E_UNAVAILABLE || call->repeatable) &&
               call->attempts < max_attempts(call) && call_now(call) < call->deadline;
}

/* Parses the body of a successful response, which is exactly one gRPC message. 0, -ENOMEM or
 * -EPROTO. */
static int parse_call(struct call *call, const struct hf__http_result *result,
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

/* The attempt failed: tries again, or finishes the call. */
static void on_call_failed(struct call *call, const struct hf__http_result *result) {
        struct hfd_store_reply reply = {0};
        int r = hfd_grpc_status_error(result, !call->repeatable,
                                      call->etcd->endpoints[call->endpoint], &reply.status);

        if (fail_over_to_retry(call, r)) {
                r = submit_call(call);
                if (r == 0)
                        return;
                r = hf_fail(&reply.status, r == HF_E_CLOSED ? HF_E_CANCELED : HF_E_UNAVAILABLE,
                            "cannot try again: %s", hf_strerror(r));
        }
        reply.error = r;
        finish_call(call, &reply);
}

static void on_call_done(void *ctx, const struct hf__http_result *result) {
        struct call *call = ctx;
        struct hfd_store_reply reply = {0};
        struct hfd_arena arena;
        int r;

        if (result->outcome != 0 || result->code != 200 || result->grpc_status != 0) {
                on_call_failed(call, result);
                return;
        }
        hfd_arena_init(&arena);
        r = parse_call(call, result, &arena, &reply);
        if (r != 0) {
                hfd_etcd_release_reply(&reply);
                reply = (struct hfd_store_reply){0};
                reply.error = hf_fail(&reply.status, r, "etcd %s: the response is malformed: %s",
                                      call->etcd->endpoints[call->endpoint], hf_strerror(r));
        }
        finish_call(call, &reply);
        hfd_etcd_release_reply(&reply);
        hfd_arena_deinit(&arena);
}

/* Starts a call. Consumes the reference to body; NULL: packing has run out of memory. */
static int start_call(struct hfd_store *store, enum hfd_etcd_response kind, const char *path,
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
        r = submit_call(call);
        if (r != 0) {
                hf__buf_unref(call->body);
                free(call);
        }
        return r;
}

int hfd_etcd_get(struct hfd_store *store, const char *key, hf_nsec deadline, hfd_store_fn done,
                 void *ctx) {
        if (!key || *key == 0)
                return -EINVAL;
        return start_call(store, HFD_ETCD_RANGE, "KV/Range", true, HFD_ETCD_LANE_CALLS,
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
        return start_call(store, keys_only ? HFD_ETCD_RANGE_KEYS : HFD_ETCD_RANGE, "KV/Range", true,
                          HFD_ETCD_LANE_CALLS,
                          hfd_etcd_pack_list(begin, end, revision, limit, keys_only), deadline,
                          done, ctx);
}

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
        /* A transaction without ops only compares, so it may be repeated like a read. */
        return start_call(store, HFD_ETCD_TXN, "KV/Txn", txn->n_ops == 0,
                          txn->urgent ? HFD_ETCD_LANE_LEASE : HFD_ETCD_LANE_CALLS, body, deadline,
                          done, ctx);
}

int hfd_etcd_compact(struct hfd_store *store, uint64_t revision, hf_nsec deadline,
                     hfd_store_fn done, void *ctx) {
        return start_call(store, HFD_ETCD_COMPACT, "KV/Compact", true, HFD_ETCD_LANE_CALLS,
                          hfd_etcd_pack_compact(revision), deadline, done, ctx);
}

int hfd_etcd_revision(struct hfd_store *store, hf_nsec deadline, hfd_store_fn done, void *ctx) {
        return start_call(store, HFD_ETCD_RANGE_KEYS, "KV/Range", true, HFD_ETCD_LANE_CALLS,
                          hfd_etcd_pack_revision(), deadline, done, ctx);
}
