/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /debug/api_priority_and_fairness/...: tables of the priority levels, their queues and the
 * requests in them, as kube-apiserver has them.
 *
 * Invariant: the text is made for each request, and its size is limited, because many requests may
 * wait.
 */
#include "server/handlers/flow_dump_handler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "server/filters/request/query.h"
#include "server/filters/status_response.h"
#include "server/flow/flow_control.h"
#include "server/flow/flow_dump.h"
#include "server/handlers/read_endpoint.h"

#define ROOT     "/debug/api_priority_and_fairness/"
#define BODY_MAX ((size_t)16 << 20) /* bytes; a longer text is a failure */

struct hfd_flow_dump_handler {
        const struct hf_host *host;     /* borrowed */
        struct hfd_flow_levels *levels; /* borrowed */
};

/* Appends the table that the path names. False: there is no such table. */
static bool append_table(const struct hfd_flow_dump_handler *handler,
                         struct hfd_http_request *request, struct hf__strbuf *text) {
        const char *table = hfd_http_request_path(request) + strlen(ROOT);
        char details[8] = "";

        if (strcmp(table, "dump_priority_levels") == 0) {
                hfd_flow_dump_levels(handler->levels, text);
        } else if (strcmp(table, "dump_queues") == 0) {
                hfd_flow_dump_queues(handler->levels, text);
        } else if (strcmp(table, "dump_requests") == 0) {
                int r = hfd_query_get(hfd_http_request_query(request), "includeRequestDetails",
                                      details, sizeof details);
                /* As in kube-apiserver, every value but the empty one asks for the details.
                 * HF_E_INVALID: the value is too long for the buffer, or badly encoded. */
                hfd_flow_dump_requests(handler->levels, handler->host,
                                       r == HF_E_INVALID || (r == 0 && *details), text);
        } else {
                return false;
        }
        return true;
}

static void handle_dump(void *ctx, struct hfd_http_request *request) {
        struct hf__strbuf body = {.max = BODY_MAX};

        if (hfd_read_endpoint_accepts(request, true)) {
                if (append_table(ctx, request, &body))
                        hfd_read_endpoint_reply(request, "text/plain; charset=utf-8", &body);
                else
                        hfd_status_response_text(request, 404, "404 page not found\n", 0, false);
        }
        hf__strbuf_done(&body);
        hfd_http_request_unref(request);
}

int hfd_flow_dump_handler_new(const struct hf_host *host, struct hfd_flow_control *flow,
                              struct hfd_router *router,
                              struct hfd_flow_dump_handler **ret_handler) {
        struct hfd_flow_dump_handler *handler = calloc(1, sizeof *handler);

        if (!handler)
                return -ENOMEM;
        handler->host = host;
        handler->levels = hfd_flow_control_levels(flow);
        int r = hfd_router_add(router, ROOT, handle_dump, handler);
        if (r != 0)
                free(handler);
        else
                *ret_handler = handler;
        return r;
}

struct hfd_flow_dump_handler *hfd_flow_dump_handler_free(struct hfd_flow_dump_handler *handler) {
        free(handler);
        return NULL;
}
