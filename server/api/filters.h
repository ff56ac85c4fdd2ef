/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The filter chain in front of the router, in the field's order: shutdown answers (429 with Retry-After 5 in
 * send-retry-after mode; apiserver.md 2.1), request accounting (in-flight limits with a lane of their own for leases and
 * system traffic: 429, Retry-After 1), authentication (401), non-resource authorization (403), then the router's handler;
 * metrics and the access log when the answer is finished.
 *
 * hfd_filters_handle is the handler given to the HTTP server. It hangs a struct hfd_request_info on the request.
 */
#include "server/auth/auth.h"
#include "server/http/router.h"

struct hfd_filters;

struct hfd_filters_config {
        struct hfd_router *router;    /* borrowed */
        struct hfd_auth *auth;        /* borrowed */
        size_t max_inflight;          /* read-only requests; 0 = 400 */
        size_t max_mutating_inflight; /* 0 = 200 */
        bool send_retry_after;
};

struct hfd_request_info {
        struct hfd_user user;
        bool watch; /* long-running: not counted as in flight, drained apart */
        bool mutating;
};
/* What the filters found out about a request; never NULL within a routed handler. */
const struct hfd_request_info *hfd_request_info(struct hfd_request *request);

int hfd_filters_new(const struct hf_host *host, const struct hfd_filters_config *config, struct hfd_filters **ret_filters);
struct hfd_filters *hfd_filters_free(struct hfd_filters *filters);
void hfd_filters_handle(void *filters, struct hfd_request *request);

/* From now on new non-exempt requests get 429 (send_retry_after) or 503 (else). Thread: any. */
void hfd_filters_refuse(struct hfd_filters *filters);
/* Requests under way, watches left out. Thread: any. */
size_t hfd_filters_inflight(struct hfd_filters *filters);
/* Blocks until none is under way, or boot time deadline: HF_E_TIMEOUT. */
int hfd_filters_wait_drained(struct hfd_filters *filters, hf_nsec deadline);

/* Answers with a Kubernetes Status body (used by all layers of the server). status.http_code must be set. Takes no reference. */
void hfd_request_reply_status(struct hfd_request *request, const struct hf_status *status);
