/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The handler chain in front of the router. A request passes these filters in this order; each
 * either lets it go on, or answers it:
 *
 *      request_info     what it asks for (400 an invalid path, 405 an unknown method)
 *      inflight         the server shuts down (429 with Retry-After 5 in send-retry-after mode,
 *                       otherwise 503); counted, so that the shutdown waits for it
 *      authentication   who asks (401)
 *      impersonation    for whom (400, 403)
 *      authorization    may they (403)
 *      inflight         too many of its lane are under way (429 with Retry-After 1)
 *      (audit)          its place: the user and the decision are known, nothing is done yet
 *      router           the handler of the path (404)
 *
 * and when the response is finished: request_metrics, and the access log.
 *
 * The limits come after authorization, so that a user without rights cannot hold a place. Health,
 * version and metrics are exempt from both counts: probes are answered to the very end.
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

/* The handler for the HTTP server. It hangs a context on the request (request_context.h). */
void hfd_filters_handle(void *filters, struct hfd_http_request *request);
/*
 * The HTTP server's on_head: a request counts as under way from its head on. One whose body was
 * still being sent when the server began to refuse is waited for, and served.
 */
void hfd_filters_head(void *filters, struct hfd_http_request *request);

/* From now on new requests that are not exempt are refused. */
void hfd_filters_refuse(struct hfd_filters *filters);
/* Requests under way, watches left out. */
size_t hfd_filters_inflight(struct hfd_filters *filters);
/* Blocks until none is under way, or until boot time deadline: HF_E_TIMEOUT. */
int hfd_filters_wait_drained(struct hfd_filters *filters, hf_nsec deadline);
