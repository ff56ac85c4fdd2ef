/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests on a connection, for its protocol. This file counts their memory, asks on_head about
 * each of them, and dispatches or refuses them. The functions are declared in connection.h.
 *
 * Invariant: what a request holds is counted until the request is detached, always by
 * hfd_connection_detach. So for a connection without requests at most the pending input of HTTP/1.1
 * is counted.
 */
#include "server/http/connection/connection.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "server/http/request/reason_phrase.h"

/* What others keep for a stranger's request until its response is sent: the filters their context,
 * nghttp2 its stream. Roughly, in bytes; even so a stranger's 250 streams with small heads fit into
 * HFD_ACCOUNT_STRANGER_SHARE. The requests of known senders have seats, which limit their number,
 * and watches have limits of their own. */
#define OTHERS_SHARE 512

int hfd_connection_new_request(struct hfd_connection *connection,
                               struct hfd_http_request **ret_request) {
        int r = hfd_http_request_new(&connection->worker->mailbox, connection->origin, ret_request);

        if (r != 0)
                return r;
        (*ret_request)->connection = connection;
        connection->n_requests++;
        (*ret_request)->connection_context = &connection->context;
        return 0;
}

int hfd_connection_account(struct hfd_connection *connection, struct hfd_http_request *request,
                           size_t extra) {
        size_t before = request->accounted;

        request->accounted = hfd_http_request_memory(request) + extra;
        if (!connection->share.known)
                request->accounted += OTHERS_SHARE;
        if (request->accounted == before)
                return 0;
        return hfd_account_change(&connection->worker->http->account, &connection->share, before,
                                  request->accounted);
}

void hfd_connection_drop_content(struct hfd_connection *connection,
                                 struct hfd_http_request *request) {
        hfd_http_request_drop_content(request);
        (void)hfd_connection_account(connection, request, 0);
}

void hfd_connection_report_unsent(struct hfd_connection *connection) {
        while (connection->responded) {
                struct hfd_http_request *request = connection->responded;

                connection->responded = request->responded_next;
                if (request->connection && !request->response.complete)
                        request->on_unsent(request->on_unsent_ctx, request->response.content_length,
                                           false);
                hfd_http_request_unref(request);
        }
}

void hfd_connection_detach(struct hfd_connection *connection, struct hfd_http_request *request) {
        assert(request->connection == connection && connection->n_requests > 0);
        connection->n_requests--;
        if (request->accepted) {
                assert(connection->n_accepted > 0);
                connection->n_accepted--;
                request->accepted = false;
        }
        (void)hfd_account_change(&connection->worker->http->account, &connection->share,
                                 request->accounted, 0);
        request->accounted = 0;
        hfd_http_request_detach(request);
}

bool hfd_connection_decide(struct hfd_connection *connection, struct hfd_http_request *request) {
        struct hfd_http *http = connection->worker->http;

        assert(!request->dispatched && !request->response.refused);
        hfd_strangers_touch(&connection->stranger, connection->worker->now);
        if (hfd_connection_verify_again(connection) != 0) {
                /* A 401 would make the client throw its certificate away. */
                hfd_connection_refuse(connection, request, 503);
                return false;
        }
        enum hfd_http_verdict verdict =
                http->on_head ? http->on_head(http->ctx, request) : HFD_HTTP_READ_BODY;
        if (verdict == HFD_HTTP_IGNORE_BODY || verdict == HFD_HTTP_REFUSED_STRANGER)
                hfd_connection_forget_sender(connection);
        switch (verdict) {
        case HFD_HTTP_READ_BODY:
                assert(!request->accepted);
                request->accepted = true;
                connection->n_accepted++;
                hfd_connection_make_known(connection);
                return true;
        case HFD_HTTP_IGNORE_BODY: hfd_connection_dispatch(connection, request); return false;
        case HFD_HTTP_REFUSED:
        case HFD_HTTP_REFUSED_STRANGER:
                request->response.refused = true;
                hfd_connection_drop_content(connection, request);
                return false;
        }
        return false;
}

void hfd_connection_dispatch(struct hfd_connection *connection, struct hfd_http_request *request) {
        struct hfd_http *http = connection->worker->http;

        assert(!request->dispatched && !request->response.refused);
        request->received_at = connection->worker->now;
        request->dispatched = true;
        http->handler(http->ctx, hfd_http_request_ref(request));
}

/* The body of a 413, the refusal that a correct client is most likely to get. kubectl shows the
 * message of a Status and ignores plain text, so it is a Status as kube-apiserver sends it. NULL =
 * out of memory. */
static struct hf__buf *too_large_status(size_t max_body) {
        char status[256];
        int n = snprintf(status, sizeof status,
                         "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                         "\"status\":\"Failure\","
                         "\"message\":\"Request entity too large: limit is %zu\","
                         "\"reason\":\"RequestEntityTooLarge\",\"code\":413}\n",
                         max_body);

        assert(n > 0 && (size_t)n < sizeof status);
        return hf__buf_copy(status, (size_t)n);
}

void hfd_connection_refuse(struct hfd_connection *connection, struct hfd_http_request *request,
                           int code) {
        const char *phrase = hfd_reason_phrase(code);
        const char *type = code == 413 ? "application/json" : "text/plain";
        struct hf__buf *body = code == 413 ? too_large_status(connection->worker->http->max_body)
                                           : hf__buf_copy(phrase, strlen(phrase));

        assert(!request->dispatched);
        request->response.refused = true;
        hfd_http_request_reply(request, code, type, NULL, 0, body);
        hf__buf_unref(body);
        hfd_connection_drop_content(connection, request);
}
