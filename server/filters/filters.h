/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The handler chain in front of the router. A request passes these filters in this order; each
 * either passes it on, or sends a response:
 *
 *      request_info     parses what is requested (400 invalid path, 405 unknown method)
 *      inflight         refuses while the server shuts down (429 with Retry-After 5 in
 *                       send-retry-after mode, otherwise 503); counts the request, so that the
 *                       shutdown waits for it
 *      authentication   determines the user (401)
 *      impersonation    replaces the user (400, 403)
 *      authorization    checks the rights of the user (403)
 *      inflight         limits the requests of a lane (429 with Retry-After 1)
 *      (audit)          not implemented; it belongs here, where user and decision are known and the
 *                       request has had no effect yet
 *      router           calls the handler of the path (404)
 *
 * When the response is finished, request_metrics counts the request, and the access log records it.
 *
 * The limits come after authorization, so that a user without rights cannot fill a lane. Health,
 * version and metrics are exempt from both uses of inflight, so that probes get responses under
 * load and during the whole shutdown.
 *
 * Thread: any.
 */
#include "server/auth/auth.h"
#include "server/http/router.h"

struct hfd_filters;

struct hfd_filters_config {
        struct hfd_router *router;    /* borrowed */
        struct hfd_auth *auth;        /* borrowed */
        size_t max_inflight;          /* read-only requests; 0 = 400 */
        size_t max_mutating_inflight; /* 0 = 200 */
        size_t max_lease_inflight;    /* 0 = 200 */
        bool send_retry_after;
};

int hfd_filters_new(const struct hf_host *host, const struct hfd_filters_config *config,
                    struct hfd_filters **ret_filters);
struct hfd_filters *hfd_filters_free(struct hfd_filters *filters);

/* The handler for the HTTP server. It attaches a context to the request (request_context.h). */
void hfd_filters_handle(void *filters, struct hfd_http_request *request);
/*
 * The on_head callback of the HTTP server. A request counts as in progress as soon as its head has
 * arrived. If the server begins to refuse requests while the body is still arriving, the shutdown
 * waits for that request, and it is served.
 */
void hfd_filters_head(void *filters, struct hfd_http_request *request);

/* From now on new requests that are not exempt are refused. */
void hfd_filters_refuse(struct hfd_filters *filters);
/* The number of requests in progress, without watches. */
size_t hfd_filters_inflight(struct hfd_filters *filters);
/*
 * Blocks until no request is in progress (watches do not count). HF_E_TIMEOUT: deadline, a time of
 * the boot clock, has passed.
 */
int hfd_filters_wait_drained(struct hfd_filters *filters, hf_nsec deadline);
