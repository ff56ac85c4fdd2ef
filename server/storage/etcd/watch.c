/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches on etcd. Each is one POST whose body is the create request and whose response streams
 * until one side ends it.
 *
 * Invariant: the engine owns a watch from its submission to on_watch_done, which ends and frees it.
 * All of its callbacks run on the engine's thread, so that nothing here needs a lock. The engine's
 * request id is the watch's id, and cancelling the watch is cancelling the request.
 *
 * The stream is a sequence of gRPC messages that arrive in pieces of any size. Complete messages
 * are parsed in place; only an incomplete one is kept in `rest`. etcd puts the events of one
 * revision into one message (we do not ask for fragments), so a revision is never split.
 *
 * A watch never resumes by itself: its user knows the last revision and decides. After a compaction
 * etcd sends a message and leaves the stream open; we end it. An etcd that sends nothing at all is
 * noticed because the header block, which comes with "created", must arrive within HEAD_TIMEOUT.
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

#define HEAD_TIMEOUT (5 * HF_NSEC_PER_SEC)
#define REST_KEPT    (64 * 1024) /* a larger buffer is freed when it is empty */

struct watch {
        struct hfd_etcd *etcd; /* borrowed */
        size_t endpoint;
        struct hfd_watch_handler handler;
        void *ctx;
        char *rest; /* owned; the beginning of an incomplete message */
        size_t n_rest, space;
        struct hf_status end; /* end.error != 0: why we end the watch */
};

/* Records why the watch ends. The engine ends the request when its callback returns a value other
 * than 0. */
static int fail_watch(struct watch *watch, int error, const char *why) {
        return hf_fail(&watch->end, error, "etcd %s: watch ended: %s",
                       watch->etcd->endpoints[watch->endpoint], why);
}

/* 0, or another value: the watch must end. */
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
 * *ret_wanted that of the next message. 0, or another value: the watch must end. */
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

/* Keeps data. wanted: the length of the message, so that the buffer grows only once for it. */
static int append_rest(struct watch *watch, const char *data, size_t n, size_t wanted) {
        size_t space = watch->n_rest + n > wanted ? watch->n_rest + n : wanted;

        if (space > watch->space) {
                char *bigger = realloc(watch->rest, space);

                if (!bigger)
                        return fail_watch(watch, HF_E_UNAVAILABLE, hf_strerror(-ENOMEM));
                watch->rest = bigger;
                watch->space = space;
        }
        memcpy(watch->rest + watch->n_rest, data, n);
        watch->n_rest += n;
        return 0;
}

static void free_large_rest(struct watch *watch) {
        if (watch->n_rest > 0 || watch->space <= REST_KEPT)
                return;
        free(watch->rest);
        watch->rest = NULL;
        watch->space = 0;
}

static int on_watch_data(void *ctx, const void *data, size_t n) {
        struct watch *watch = ctx;
        size_t used, wanted = 0;

        assert(watch->end.error == 0);
        if (watch->n_rest == 0) {
                if (handle_messages(watch, data, n, &used, &wanted) != 0)
                        return -1;
                return used < n ? append_rest(watch, (const char *)data + used, n - used, wanted)
                                : 0;
        }
        if (append_rest(watch, data, n, 0) != 0 ||
            handle_messages(watch, watch->rest, watch->n_rest, &used, &wanted) != 0)
                return -1;
        if (used > 0) {
                watch->n_rest -= used;
                memmove(watch->rest, watch->rest + used, watch->n_rest);
        }
        free_large_rest(watch);
        return 0;
}

static void on_watch_done(void *ctx, const struct hf__http_result *result) {
        struct watch *watch = ctx;

        if (watch->end.error == 0) {
                int r = hfd_grpc_status_error(result, false,
                                              watch->etcd->endpoints[watch->endpoint], &watch->end);

                if (r != HF_E_GONE && r != HF_E_CANCELED) {
                        /* For every other error the stream is lost, but another endpoint may
                         * work. */
                        watch->end.error = HF_E_UNAVAILABLE;
                        hfd_etcd_fail_over(watch->etcd, watch->endpoint);
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
