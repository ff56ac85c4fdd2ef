/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The handler chain in front of the router. A request passes these filters in this order; each
 * either passes it on, or sends a response (503 if memory runs out):
 *
 *      authentication   determines the user (401; 503 while the token cannot be checked)
 *      audit            begins a record, unless the audit policy's level is None
 *      request_info     refuses what could not be parsed (400 invalid path, 405 unknown method)
 *      timeout          checks the parameter `timeout` (400)
 *      impersonation    replaces the user (400, 403)
 *      priority         finds the FlowSchema and the priority level, and names them in the response
 *      authorization    checks the rights of the user (403)
 *      inflight         refuses while the server shuts down (429 with Retry-After 5 in
 *                       send-retry-after mode, otherwise 503); counts the request, so that the
 *                       shutdown waits for it
 *
 * These filters run when the head of the request has arrived. If one refuses, no handler is called,
 * and the body is not kept. The other steps follow when the request is complete:
 *
 *      unsent           limits the responses that the user has not read (429 with Retry-After 1)
 *      priority         gives the request seats of its level, lets it wait for them, or refuses it
 *                       (429 with Retry-After)
 *      router           calls the handler of the path (404)
 *
 * When the response is finished, request_metrics counts the request, the access log records it, and
 * the last event of its audit record is queued.
 *
 * A request that waits for seats occupies no thread. Its worker continues it.
 *
 * Requests are counted and get seats after authorization, so that a user without rights can neither
 * occupy seats nor delay a shutdown. Health, version and metrics are exempt from the counts and the
 * levels and are not refused by them, so that probes get responses until the listener closes. A
 * watch has seats until its response has begun, and a shutdown ends it instead of waiting for it.
 */
#include "server/auth/auth.h"
#include "server/authorization/authorizer.h"
#include "server/flow/flow_control.h"
#include "server/http/router.h"

struct hfd_filters;
struct hfd_service_accounts;

struct hfd_filters_config {
        struct hfd_router *router;                     /* borrowed */
        struct hfd_auth *auth;                         /* borrowed */
        struct hfd_authorizer *authorizer;             /* borrowed; NULL = only the fixed rules */
        struct hfd_audit *audit;                       /* borrowed; NULL = there is no audit log */
        struct hfd_service_accounts *service_accounts; /* borrowed; NULL = no tokens */
        struct hfd_flow_control *flow;                 /* borrowed; NULL = no priority levels */
        bool send_retry_after;
};

/* host and what config refers to outlive the filters. 0 or -errno. */
int hfd_filters_new(const struct hf_host *host, const struct hfd_filters_config *config,
                    struct hfd_filters **ret_filters);
/* Requires that no request is in progress. Accepts NULL, returns NULL. */
struct hfd_filters *hfd_filters_free(struct hfd_filters *filters);

/*
 * The HTTP server's on_head; filters is the struct hfd_filters. It attaches a context to the
 * request (request_context.h). If it has sent a response, returns HFD_HTTP_REFUSED_STRANGER if the
 * sender is not authenticated, else HFD_HTTP_REFUSED. Otherwise the server reads the body, except
 * that of a read by the anonymous user: unknown clients must not make the server keep bodies.
 * Thread: worker. Never blocks.
 */
enum hfd_http_verdict hfd_filters_head(void *filters, struct hfd_http_request *request);
/* The handler for the HTTP server, for requests that hfd_filters_head did not refuse. Thread:
 * worker. Never blocks. */
void hfd_filters_handle(void *filters, struct hfd_http_request *request);

/* From now on new requests that are not exempt are refused, and those that wait for seats wait 2 s
 * at most. Call it once. Thread: any, as for the functions below. */
void hfd_filters_refuse(struct hfd_filters *filters);
/* The number of requests in progress, without watches and exempt ones. */
size_t hfd_filters_inflight(struct hfd_filters *filters);
/*
 * Blocks until hfd_filters_inflight is 0, then returns 0. HF_E_TIMEOUT: deadline, a time of the
 * boot clock, has passed.
 */
int hfd_filters_wait_drained(struct hfd_filters *filters, hf_nsec deadline);
