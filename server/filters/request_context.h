/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the filters know about a request. It is created when the request's head has arrived,
 * attached to the HTTP request as its context, and freed with the request's last reference.
 *
 * Thread: the connection's worker creates it and runs the filters. Afterwards only `place` changes,
 * once: the same worker releases it when the response is finished. Other threads that hold a
 * reference to the request may read the other members.
 */
#include "server/auth/auth.h"
#include "server/filters/inflight.h"
#include "server/filters/request_info.h"
#include "server/filters/request_metrics.h"
#include "server/http/http.h"

struct hfd_filters;

struct hfd_request_context {
        struct hfd_filters *filters;      /* borrowed; outlives all requests */
        struct hfd_http_request *request; /* borrowed: the request owns this */
        struct hfd_request_info *info;    /* owned */
        struct hfd_request_kind kind;     /* for the metrics */
        struct hfd_inflight_place place;
        char *user; /* owned; the authenticated user, for the access log; NULL = none */
};

/* The request's context. NULL: it has no context yet. */
struct hfd_request_context *hfd_request_context(struct hfd_http_request *request);
/* Creates the context, and attaches it to the request. 0 or -ENOMEM. */
int hfd_request_context_new(struct hfd_filters *filters, struct hfd_http_request *request,
                            struct hfd_request_context **ret_context);
/* The parsed request. Must not be called before the filters have created the context. */
const struct hfd_request_info *hfd_request_info(struct hfd_http_request *request);
