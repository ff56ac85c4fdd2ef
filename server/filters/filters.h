/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The filter chain in front of the router: shutdown answers (429 with Retry-After 5 in
 * send-retry-after mode, else 503; apiserver.md 2.1), the count of requests under way that a drain
 * waits for, authentication (401), authorization of resource and non-resource requests (403),
 * in-flight limits (429, Retry-After 1), then the router's handler (404); metrics and the access
 * log when the answer is finished.
 *
 * Limits come after authorization, so that nobody without rights can hold a place. There are three
 * lanes: reading, mutating, and one of its own for leases, so that heavy traffic never costs a
 * leader its lease. Watches are in none of them and are not waited for; health, version and metrics
 * neither, so that probes are answered to the very end.
 *
 * hfd_filters_handle is the handler given to the HTTP server, hfd_filters_head its on_head. It
 * hangs a struct hfd_request_info on the request.
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

struct hfd_request_info {
        char user[sizeof((struct hfd_user *)NULL)->name];
        bool watch; /* long-running: not counted as in flight, drained apart */
        bool mutating;
};
/* What the filters found out about a request; never NULL within a routed handler. */
const struct hfd_request_info *hfd_request_info(struct hfd_http_request *request);

int hfd_filters_new(const struct hf_host *host, const struct hfd_filters_config *config,
                    struct hfd_filters **ret_filters);
struct hfd_filters *hfd_filters_free(struct hfd_filters *filters);
void hfd_filters_handle(void *filters, struct hfd_http_request *request);
/*
 * The on_head given to it: a request counts as under way from its head on, so that one whose body
 * was still being sent when the server began to refuse is waited for, and served.
 */
void hfd_filters_head(void *filters, struct hfd_http_request *request);

/* From now on new non-exempt requests get 429 (send_retry_after) or 503 (else). Thread: any. */
void hfd_filters_refuse(struct hfd_filters *filters);
/* Requests under way, watches left out. Thread: any. */
size_t hfd_filters_inflight(struct hfd_filters *filters);
/* Blocks until none is under way, or boot time deadline: HF_E_TIMEOUT. */
int hfd_filters_wait_drained(struct hfd_filters *filters, hf_nsec deadline);

/* Answers with a Kubernetes Status body (used by all layers of the server). status.http_code must
 * be set. Takes no reference. */
void hfd_http_request_reply_status(struct hfd_http_request *request,
                                   const struct hf_status *status);
