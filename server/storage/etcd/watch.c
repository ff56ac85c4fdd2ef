/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches: each is one POST whose body is the create request and whose answer streams until one
 * side ends it.
 *
 * A watch belongs to the engine from its submission to its on_done, which ends and frees it; all of
 * its callbacks run on the engine's thread, so nothing here needs a lock. The engine's request id
 * is the watch's id, and cancelling a watch is cancelling the request.
 *
 * The stream is a sequence of gRPC messages that come in pieces of any size. Whole messages are
 * handed on from where they lie; only a rest is kept. etcd puts a revision's events into one
 * message (fragments are not asked for), so a revision is never split.
 *
 * A watch never resumes by itself: what it knows is delivered, and its user knows the last
 * revision. Compaction is told in a message, and etcd leaves the stream open; we end it. An etcd
 * that says nothing at all is noticed by the wait for the header block, which etcd sends with
 * "created".
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/storage/etcd/etcd.h"

#define HEAD_TIMEOUT (5 * HF_NSEC_PER_SEC)
#define REST_KEPT    (64 * 1024) /* a larger buffer is given back when it is empty */

struct watch {
        struct hfd_etcd *etcd;
        size_t endpoint;
        struct hfd_watch_handler handler;
        void *ctx;
        char *rest; /* owned: the beginning of a message */
        size_t n_rest, space;
        struct hf_status end; /* end.error != 0: why the watch ends itself */
};

static int watch_fail(struct watch *watch, int error, const char *why) {
        return hf_fail(&watch->end, error, "etcd %s: watch ended: %s",
                       watch->etcd->endpoints[watch->endpoint], why);
}

/* 0, or the watch ends. */
static int watch_event(struct watch *watch, const struct hfd_etcd_watch_response *event) {
        if (event->compact_revision)
                return watch_fail(watch, HF_E_GONE, "its start is compacted");
        if (event->canceled)
                return watch_fail(watch, HF_E_UNAVAILABLE,
                                  *event->cancel_reason ? event->cancel_reason
                                                        : "canceled by etcd");
        if (event->n_events) {
                watch->handler.event(watch->ctx, event->events, event->n_events);
        } else if (!event->created) {
                struct hfd_watch_event progress = {.type = HFD_WATCH_PROGRESS,
                                                   .revision = event->revision};

                watch->handler.event(watch->ctx, &progress, 1);
        }
        return 0;
}

static int watch_message(struct watch *watch, const char *data, size_t n) {
        struct hfd_etcd_watch_response event;
        struct hfd_arena arena;
        int r;

        hfd_arena_init(&arena);
        r = hfd_etcd_parse_watch_response(data, n, &arena, &event);
        if (r != 0)
                watch_fail(watch, HF_E_UNAVAILABLE, hf_strerror(r));
        else
                r = watch_event(watch, &event);
        hfd_etcd_release_watch_response(&event);
        hfd_arena_deinit(&arena);
        return r;
}

/* Handles the whole messages at the front of data. *ret_used says how many bytes they had;
 * *ret_wanted how long the next is. */
static int watch_messages(struct watch *watch, const char *data, size_t n, size_t *ret_used,
                          size_t *ret_wanted) {
        size_t used = 0, wanted = HFD_GRPC_PREFIX;

        while (n - used >= HFD_GRPC_PREFIX) {
                uint32_t n_message;

                if (hfd_grpc_prefix_read(data + used, &n_message) || n_message > HFD_ETCD_BODY_MAX)
                        return watch_fail(watch, HF_E_UNAVAILABLE, "it sent what is not a message");
                wanted = HFD_GRPC_PREFIX + (size_t)n_message;
                if (n - used < wanted)
                        break;
                if (watch_message(watch, data + used + HFD_GRPC_PREFIX, n_message))
                        return -1;
                used += wanted;
                wanted = HFD_GRPC_PREFIX;
        }
        *ret_used = used;
        *ret_wanted = wanted;
        return 0;
}

static int rest_append(struct watch *watch, const char *data, size_t n, size_t wanted) {
        size_t space = watch->n_rest + n > wanted ? watch->n_rest + n : wanted;

        if (space > watch->space) {
                char *bigger = realloc(watch->rest, space);

                if (!bigger)
                        return watch_fail(watch, HF_E_UNAVAILABLE, hf_strerror(-ENOMEM));
                watch->rest = bigger;
                watch->space = space;
        }
        memcpy(watch->rest + watch->n_rest, data, n);
        watch->n_rest += n;
        return 0;
}

static int watch_data(void *ctx, const void *data, size_t n) {
        struct watch *watch = ctx;
        size_t used, wanted = 0;

        if (!watch->n_rest) {
                if (watch_messages(watch, data, n, &used, &wanted))
                        return -1;
                return used < n ? rest_append(watch, (const char *)data + used, n - used, wanted)
                                : 0;
        }
        if (rest_append(watch, data, n, 0) ||
            watch_messages(watch, watch->rest, watch->n_rest, &used, &wanted))
                return -1;
        if (used) {
                watch->n_rest -= used;
                memmove(watch->rest, watch->rest + used, watch->n_rest);
        }
        if (!watch->n_rest && watch->space > REST_KEPT) {
                free(watch->rest);
                watch->rest = NULL;
                watch->space = 0;
        }
        return 0;
}

static void watch_done(void *ctx, const struct hf__http_result *result) {
        struct watch *watch = ctx;

        if (!watch->end.error) {
                int r = hfd_etcd_error(result, false, watch->etcd->endpoints[watch->endpoint],
                                       &watch->end);

                if (r != HF_E_GONE && r != HF_E_CANCELED) {
                        /* Whatever it was, the stream is gone, and trying elsewhere is the cure. */
                        watch->end.error = HF_E_UNAVAILABLE;
                        hfd_etcd_move_on(watch->etcd, watch->endpoint);
                }
        }
        watch->handler.end(watch->ctx, watch->end.error, &watch->end);
        free(watch->rest);
        free(watch);
}

int hfd_etcd_watch(struct hfd_store *store, const char *begin, const char *end, uint64_t revision,
                   const struct hfd_watch_handler *handler, void *ctx, uint64_t *ret_id) {
        struct hfd_etcd *etcd = hfd_etcd_of(store);
        const char *headers[] = {"content-type: application/grpc", "te: trailers",
                                 "hasleader: true"};
        char url[HFD_ETCD_URL_MAX + 64];
        struct hf__buf *body = hfd_etcd_pack_watch(begin, end, revision);
        struct watch *watch = body ? malloc(sizeof *watch) : NULL;
        struct hf__http_request request;
        int r;

        if (!watch) {
                hf__buf_unref(body);
                return -ENOMEM;
        }
        *watch = (struct watch){.etcd = etcd,
                                .endpoint = hfd_etcd_endpoint(etcd),
                                .handler = *handler,
                                .ctx = ctx};
        request = (struct hf__http_request){
                .headers = headers,
                .n_headers = 3,
                .body = body->data,
                .n_body = body->n,
                .lane = HFD_ETCD_LANE_WATCH,
                .deadline = HF_NSEC_NEVER,
                .head_timeout = HEAD_TIMEOUT,
                .on_data = watch_data,
                .on_done = watch_done,
                .ctx = watch,
        };
        hfd_etcd_request(etcd, watch->endpoint, "Watch/Watch", url, &request);
        r = hf__http_submit(etcd->engine, &request, ret_id);
        hf__buf_unref(body);
        if (r != 0)
                free(watch);
        return r;
}

void hfd_etcd_watch_cancel(struct hfd_store *store, uint64_t id) {
        hf__http_cancel(hfd_etcd_of(store)->engine, id);
}
