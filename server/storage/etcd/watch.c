/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches on etcd. Each watch is one POST. Its body is the create request, and its response is a
 * stream that lasts until one side ends it.
 *
 * Invariant: the engine owns a watch from its submission to on_watch_done, which ends and frees it.
 * All of its callbacks run on the engine's thread, so that nothing here needs a lock. The engine's
 * request id is the watch's id, and cancelling the watch is cancelling the request.
 *
 * The stream is a sequence of gRPC messages that arrive in pieces of any size. Complete messages
 * are parsed in place; only an incomplete message is copied to `partial`. etcd puts the events of
 * one revision into one message (the create request does not allow fragments), so a revision is
 * never split.
 *
 * A watch never resumes by itself, because only its user knows which revision to resume at. If the
 * start revision is compacted, etcd sends a message but leaves the stream open, so this file ends
 * it. etcd sends the response headers together with the "created" message. They must arrive within
 * HEAD_TIMEOUT, so an etcd that accepts connections but does not respond is noticed.
 */
#include "server/storage/etcd/watch.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/storage/etcd/etcd.h"
#include "server/storage/etcd/grpc_prefix.h"
#include "server/storage/etcd/grpc_status.h"
#include "server/storage/etcd/pack.h"
#include "server/storage/etcd/parse.h"

#define HEAD_TIMEOUT     (5 * HF_NSEC_PER_SEC)
#define PARTIAL_KEPT_MAX (64 * 1024) /* a larger buffer is freed when it is empty */

struct watch {
        struct hfd_etcd *etcd; /* borrowed */
        size_t endpoint;
        struct hfd_watch_handler handler;
        void *ctx;
        char *partial;           /* owned; the first n_partial bytes of an incomplete message */
        size_t n_partial, space; /* space: capacity of partial, in bytes */
        struct hf_status end; /* end.error != 0: this file has ended the watch, for this reason */
};

/* Records why the watch ends, and returns error. on_watch_data passes a value other than 0 to the
 * engine, which then ends the request. */
static int fail_watch(struct watch *watch, int error, const char *why) {
        return hf_fail(&watch->end, error, "etcd %s: watch ended: %s",
                       watch->etcd->endpoints[watch->endpoint], why);
}

/* Runs the handler for one message. Not 0: the watch must end. */
static int deliver_response(struct watch *watch, const struct hfd_etcd_watch_response *response) {
        if (response->compact_revision != 0)
                return fail_watch(watch, HF_E_GONE, "its start revision is compacted");
        if (response->canceled)
                return fail_watch(watch, HF_E_UNAVAILABLE,
                                  *response->cancel_reason ? response->cancel_reason
                                                           : "canceled by etcd");
        if (response->n_events > 0) {
                watch->handler.event(watch->ctx, response->events, response->n_events);
        } else if (!response->created) {
                struct hfd_watch_event progress = {.type = HFD_WATCH_PROGRESS,
                                                   .revision = response->revision};

                watch->handler.event(watch->ctx, &progress, 1);
        }
        return 0;
}

static int handle_message(struct watch *watch, const char *data, size_t n) {
        struct hfd_etcd_watch_response response;
        struct hfd_arena arena;
        int r;

        hfd_arena_init(&arena);
        r = hfd_etcd_parse_watch_response(data, n, &arena, &response);
        if (r != 0)
                (void)fail_watch(watch, HF_E_UNAVAILABLE, hf_strerror(r));
        else
                r = deliver_response(watch, &response);
        hfd_etcd_release_watch_response(&response);
        hfd_arena_deinit(&arena);
        return r;
}

/* Handles the complete messages at the beginning of data. *ret_used is their length in bytes,
 * *ret_wanted that of the next message, as far as it is known. Not 0: the watch must end. */
static int handle_messages(struct watch *watch, const char *data, size_t n, size_t *ret_used,
                           size_t *ret_wanted) {
        size_t used = 0, wanted = HFD_GRPC_PREFIX;

        while (n - used >= HFD_GRPC_PREFIX) {
                uint32_t n_message;

                if (hfd_grpc_prefix_read(data + used, &n_message) != 0 ||
                    n_message > HFD_ETCD_BODY_MAX)
                        return fail_watch(watch, HF_E_UNAVAILABLE, "etcd sent a malformed message");
                wanted = HFD_GRPC_PREFIX + (size_t)n_message;
                if (n - used < wanted)
                        break;
                if (handle_message(watch, data + used + HFD_GRPC_PREFIX, n_message) != 0)
                        return -1;
                used += wanted;
                wanted = HFD_GRPC_PREFIX;
        }
        *ret_used = used;
        *ret_wanted = wanted;
        return 0;
}

/* Appends data to `partial`. wanted: the length of the whole message, so that the buffer grows only
 * once for it; 0 = unknown. */
static int append_partial(struct watch *watch, const char *data, size_t n, size_t wanted) {
        size_t space = watch->n_partial + n > wanted ? watch->n_partial + n : wanted;

        if (space > watch->space) {
                char *bigger = realloc(watch->partial, space);

                if (!bigger)
                        return fail_watch(watch, HF_E_UNAVAILABLE, hf_strerror(-ENOMEM));
                watch->partial = bigger;
                watch->space = space;
        }
        memcpy(watch->partial + watch->n_partial, data, n);
        watch->n_partial += n;
        return 0;
}

/* One large message must not keep its memory allocated for the lifetime of the watch. */
static void free_large_partial(struct watch *watch) {
        if (watch->n_partial > 0 || watch->space <= PARTIAL_KEPT_MAX)
                return;
        free(watch->partial);
        watch->partial = NULL;
        watch->space = 0;
}

static int on_watch_data(void *ctx, const void *data, size_t n) {
        struct watch *watch = ctx;
        size_t used, wanted = 0;

        assert(watch->end.error == 0);
        if (watch->n_partial == 0) {
                if (handle_messages(watch, data, n, &used, &wanted) != 0)
                        return -1;
                return used < n ? append_partial(watch, (const char *)data + used, n - used, wanted)
                                : 0;
        }
        if (append_partial(watch, data, n, 0) != 0 ||
            handle_messages(watch, watch->partial, watch->n_partial, &used, &wanted) != 0)
                return -1;
        if (used > 0) {
                watch->n_partial -= used;
                memmove(watch->partial, watch->partial + used, watch->n_partial);
        }
        free_large_partial(watch);
        return 0;
}

static void on_watch_done(void *ctx, const struct hf__http_result *result) {
        struct watch *watch = ctx;

        if (watch->end.error == 0) {
                int r = hfd_grpc_status_error(result, false,
                                              watch->etcd->endpoints[watch->endpoint], &watch->end);

                if (r != HF_E_GONE && r != HF_E_CANCELED) {
                        /* After any other error the user can resume the watch, perhaps on another
                         * endpoint. */
                        watch->end.error = HF_E_UNAVAILABLE;
                        hfd_etcd_fail_over(watch->etcd, watch->endpoint);
                        hfd_etcd_watch_fail_over(watch->etcd, watch->endpoint);
                }
        }
        watch->handler.end(watch->ctx, watch->end.error, &watch->end);
        free(watch->partial);
        free(watch);
}

int hfd_etcd_watch(struct hfd_store *store, const char *begin, const char *end, uint64_t revision,
                   const struct hfd_watch_handler *handler, void *ctx, uint64_t *ret_id) {
        struct hfd_etcd *etcd = hfd_etcd_of(store);
        const char *headers[] = {"content-type: application/grpc", "te: trailers",
                                 "hasleader: true"};
        char url[HFD_ETCD_URL_MAX];
        struct hf__buf *body = hfd_etcd_pack_watch(begin, end, revision);
        struct watch *watch = body ? malloc(sizeof *watch) : NULL;
        struct hf__http_request request;
        int r;

        assert(handler->event && handler->end);
        if (!watch) {
                hf__buf_unref(body);
                return -ENOMEM;
        }
        *watch = (struct watch){.etcd = etcd,
                                .endpoint = hfd_etcd_watch_endpoint(etcd),
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
                .on_data = on_watch_data,
                .on_done = on_watch_done,
                .ctx = watch,
        };
        hfd_etcd_prepare_request(etcd, watch->endpoint, "Watch/Watch", url, &request);
        r = hf__http_submit(etcd->engine, &request, ret_id);
        hf__buf_unref(body);
        if (r != 0)
                free(watch);
        return r;
}

void hfd_etcd_watch_cancel(struct hfd_store *store, uint64_t id) {
        hf__http_cancel(hfd_etcd_of(store)->engine, id);
}

/* All watches are on the same endpoint, apart from those that end just now. */
void hfd_etcd_watch_suspect(struct hfd_store *store, uint64_t id) {
        struct hfd_etcd *etcd = hfd_etcd_of(store);

        hfd_etcd_watch_fail_over(etcd, hfd_etcd_watch_endpoint(etcd));
        hfd_etcd_watch_cancel(store, id);
}
