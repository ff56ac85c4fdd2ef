/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A large list over HTTP. Its pieces are made on the pool of threads, and only while fewer than
 * HFD_UNSENT_STREAM bytes of it wait to be sent. So the text of a list of any size takes little
 * memory, and a client that does not read keeps no thread busy. If the list is to be indented, up
 * to HFD_REST_PRETTY_MAX bytes are collected first; if the client accepts gzip, HFD_GZIP_MIN bytes,
 * because a smaller list is not compressed.
 *
 *      send -> step: makes pieces until enough wait -> idle --the worker has sent some--> step ...
 *                                                          --the client has left--------> last step
 *
 * Lifetime. The struct hfd_rest_list is the handler context of the HTTP request, so it lives as
 * long as callbacks of the request may come. From send on it owns rest, which holds a reference to
 * the request. The last step frees rest; if the pool has stopped, hfd_rest_list_send does. After
 * that, a submit by a late callback does nothing (work_pool.h). hfd_rest_list_send holds a
 * reference of its own: as soon as `started` is set, a callback may submit the task, and its last
 * step may drop the reference of rest while hfd_rest_list_send still uses the list.
 *
 * Invariant: rest and body belong to the thread that runs a step. Callbacks only set `gone` and
 * submit the task.
 */
#include "server/handlers/rest/rest_list.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "server/filters/audited.h"
#include "server/filters/limits/unsent.h"
#include "server/filters/request_context.h"
#include "server/handlers/gzip.h"
#include "server/handlers/negotiation.h"
#include "server/pool/work_pool.h"
#include "server/registry/list/list_body.h"

/* Chunks that one step makes, if it neither selects nor converts objects, nor indents the list. */
#define STEP_CHUNKS 4

struct hfd_rest_list {
        struct hfd_work_task task; /* first member: step casts it back */
        struct hfd_work_pool *pool;
        atomic_bool gone; /* the client has left */
        /* The task may be submitted. It is stored with release and loaded with acquire, so that a
         * step that a callback submits sees rest and body. */
        atomic_bool started;

        /* From send on, these belong to the thread that runs a step. */
        struct hfd_rest_request *rest; /* owned */
        struct hfd_list_body *body;    /* owned */
        bool streaming;                /* the head was sent */
        bool pretty;                   /* collect the pieces, to send them indented */
        bool wants_gzip;               /* collect them until they are worth compressing */
        struct hf__strbuf collected;   /* owned */
        struct hfd_gzip *gzip;         /* owned; NULL = not compressed, or not yet */
};

static void list_free(void *ctx) {
        struct hfd_rest_list *list = ctx;

        assert(!list->rest && !list->body);
        free(list);
}

/* Also called for a small list, whose response was sent without the task. Thread: worker. */
static void on_drained(void *ctx) {
        struct hfd_rest_list *list = ctx;

        if (atomic_load_explicit(&list->started, memory_order_acquire))
                (void)hfd_work_submit(list->pool, &list->task);
}

/* Thread: worker. `gone` only saves work: a step that does not see it yet finds out when it sends,
 * because the response drops everything. So relaxed is enough. */
static void on_gone(void *ctx) {
        struct hfd_rest_list *list = ctx;

        atomic_store_explicit(&list->gone, true, memory_order_relaxed);
        if (atomic_load_explicit(&list->started, memory_order_acquire))
                (void)hfd_work_submit(list->pool, &list->task);
}

/* ---- steps ---- */

/* Ends the list, whether it was sent or not. This may drop the last reference to the HTTP request,
 * and so free the list. */
static enum hfd_work_result end_list(struct hfd_rest_list *list) {
        struct hfd_rest_request *rest = list->rest;

        list->body = hfd_list_body_free(list->body);
        list->rest = NULL;
        hf__strbuf_done(&list->collected);
        list->gzip = hfd_gzip_free(list->gzip);
        hfd_rest_free(rest);
        return HFD_WORK_DONE;
}

static enum hfd_work_result fail_list(struct hfd_rest_list *list) {
        struct hfd_http_request *http_request = list->rest->http_request;
        struct hfd_response response = {0};

        if (list->streaming) {
                hfd_http_request_cut(http_request); /* half a list must not look complete */
        } else {
                hfd_response_no_memory(&response);
                hfd_rest_respond(http_request, NULL, &response, NULL);
                hfd_response_done(&response);
        }
        return end_list(list);
}

/* Nothing was sent yet, and the list will not be: the client has left, or the server stops. */
static enum hfd_work_result finish_unavailable(struct hfd_rest_list *list) {
        struct hfd_response response = {0};

        hfd_response_store_error(&response, HF_E_CANCELED, NULL);
        hfd_rest_respond(list->rest->http_request, NULL, &response, NULL);
        hfd_response_done(&response);
        return end_list(list);
}

/* Sends the head. 0 or -ENOMEM. */
static int begin_stream(struct hfd_rest_list *list) {
        static const struct hfd_header gzip_headers[] = {HFD_GZIP_HEADERS};
        struct hfd_header headers[2 + sizeof gzip_headers / sizeof gzip_headers[0]] = {
                {"cache-control", "no-cache, private"}};
        char warning[HFD_REST_WARNING_MAX];
        size_t n = 1;

        if (list->wants_gzip && hfd_gzip_new(&list->gzip) != 0)
                return -ENOMEM;
        if (list->gzip) {
                memcpy(headers + n, gzip_headers, sizeof gzip_headers);
                n += sizeof gzip_headers / sizeof gzip_headers[0];
        }
        n += hfd_rest_deprecation_header(&list->rest->request, warning, headers + n);
        hfd_http_request_stream(list->rest->http_request, 200,
                                hfd_rest_content_type(&list->rest->request), headers, n);
        list->streaming = true;
        return 0;
}

/* Sends n bytes, compressed; last: the list ends with them. */
static int send_packed(struct hfd_rest_list *list, const char *data, size_t n, bool last) {
        struct hf__buf *packed = NULL;
        int r = hfd_gzip_add(list->gzip, data, n, last, &packed);

        if (r == 0 && packed)
                r = hfd_http_request_push(list->rest->http_request, packed);
        hf__buf_unref(packed);
        return r;
}

/* 0, -ENOMEM, or what hfd_http_request_push returns. */
static int send_piece(struct hfd_rest_list *list, struct hf__buf *piece) {
        int r = list->streaming ? 0 : begin_stream(list);

        if (r != 0)
                return r;
        hfd_audited_response(list->rest->http_request, list->rest->request.protobuf ? NULL : piece);
        if (list->gzip)
                return send_packed(list, piece->data, piece->n, false);
        return hfd_http_request_push(list->rest->http_request, piece);
}

/* Sends what was collected: it has become too large to be indented, or large enough to be
 * compressed. */
static int send_collected(struct hfd_rest_list *list) {
        struct hf__buf *piece = hf__strbuf_to_buf(&list->collected);
        int r = piece ? send_piece(list, piece) : -ENOMEM;

        hf__buf_unref(piece);
        hf__strbuf_done(&list->collected);
        list->pretty = false;
        return r;
}

static bool is_collecting(const struct hfd_rest_list *list) {
        return list->pretty || (list->wants_gzip && !list->streaming);
}

/* Sends a piece, or adds it to the collected ones. Results as of send_piece. */
static int take_piece(struct hfd_rest_list *list, struct hf__buf *piece) {
        if (!is_collecting(list))
                return send_piece(list, piece);
        hf__strbuf_add(&list->collected, piece->data, piece->n);
        if (list->collected.error != 0)
                return list->collected.error;
        size_t max = list->pretty ? HFD_REST_PRETTY_MAX : HFD_GZIP_MIN - 1;
        return list->collected.n > max ? send_collected(list) : 0;
}

static enum hfd_work_result finish_well(struct hfd_rest_list *list) {
        const struct hfd_request *request = &list->rest->request;
        struct hfd_response response = {0};

        if (list->gzip && send_packed(list, "", 0, true) != 0)
                return fail_list(list);
        if (is_collecting(list)) {
                hfd_response_ok(&response, 200, hf__strbuf_to_buf(&list->collected));
                if (request->protobuf && response.code == 200)
                        hfd_rest_respond_as_is(list->rest->http_request, request, &response);
                else
                        hfd_rest_respond(list->rest->http_request, request, &response, NULL);
                hfd_response_done(&response);
        } else {
                hfd_http_request_end(list->rest->http_request);
        }
        return end_list(list);
}

static enum hfd_work_result step_list(struct hfd_work_task *task) {
        struct hfd_rest_list *list = (struct hfd_rest_list *)task;
        const struct hfd_request *request = &list->rest->request;
        bool copies = request->format == HFD_AS_JSON && !request->protobuf &&
                      !request->options.labels.n && !request->options.fields.n;
        int n = copies && !list->pretty ? STEP_CHUNKS : 1;

        if (atomic_load_explicit(&list->gone, memory_order_relaxed) ||
            hfd_work_is_cancelled(list->pool, task))
                return list->streaming ? fail_list(list) : finish_unavailable(list);
        while (n-- > 0) {
                struct hf__buf *piece;
                bool ended;

                if (list->streaming &&
                    hfd_http_request_unsent(list->rest->http_request) >= HFD_UNSENT_STREAM)
                        return HFD_WORK_IDLE;
                int r = hfd_list_body_next(list->body, &piece, &ended);
                if (r == 0 && piece)
                        r = take_piece(list, piece);
                hf__buf_unref(piece);
                if (r != 0)
                        return fail_list(list);
                if (ended)
                        return finish_well(list);
        }
        return HFD_WORK_MORE;
}

/* ---- start ---- */

bool hfd_rest_list_prepare(struct hfd_rest_request *rest) {
        struct hfd_http_request *http_request = rest->http_request;
        struct hfd_rest_list *list = calloc(1, sizeof *list);

        assert(rest->request.verb == HFD_LIST && !rest->list);
        if (!list)
                return false;
        list->task = (struct hfd_work_task){.step = step_list, .owner = rest->request.owner};
        list->pool = rest->registry->work;
        rest->list = list;
        rest->request.abandoned = &list->gone;
        rest->request.takes_list_body = strcmp(hfd_http_request_method(http_request), "HEAD") != 0;
        hfd_http_request_set_handler_context(http_request, list, list_free);
        hfd_http_request_on_gone(http_request, on_gone, list);
        /* Half of the limit: the worker has bytes to send while the next pieces are made. */
        hfd_http_request_on_drained(http_request, HFD_UNSENT_STREAM / 2, on_drained, list);
        return true;
}

void hfd_rest_list_send(struct hfd_rest_request *rest, struct hfd_list_body *body) {
        struct hfd_rest_list *list = rest->list;
        struct hfd_http_request *http_request = hfd_http_request_ref(rest->http_request);

        assert(list && !list->rest);
        list->rest = rest;
        list->body = body;
        list->pretty = !rest->request.protobuf &&
                       hfd_negotiate_pretty(hfd_http_request_query(http_request),
                                            hfd_http_request_header(http_request, "user-agent"));
        list->wants_gzip = hfd_gzip_is_accepted(http_request);
        atomic_store_explicit(&list->started, true, memory_order_release);
        if (!hfd_work_submit(list->pool, &list->task))
                (void)finish_unavailable(list); /* the pool has stopped: no step runs */
        hfd_http_request_unref(http_request);
}
