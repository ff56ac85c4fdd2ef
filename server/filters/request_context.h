/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The context of a request contains what the filters know about it. It is created when the
 * request's head has arrived, attached to the HTTP request as its context, and freed with the
 * request's last reference.
 *
 * Thread: the connection's worker creates it and runs the filters. Afterwards only `place`,
 * `unsent`, `runs` and `departure` change, on the same worker: when the request gets its seats,
 * when its response is not read at once, and when it is finished. The links in `unsent`, and
 * `seats`, may also change on other threads, under the locks of unsent.h and flow_level.h. Other
 * threads that hold a reference to the request may read the other members, and use `departure`.
 */
#include "base/departure.h"
#include "server/audit/audit.h"
#include "server/auth/auth.h"
#include "server/authorization/authorizer.h"
#include "server/filters/limits/inflight.h"
#include "server/filters/limits/unsent.h"
#include "server/filters/request/request_info.h"
#include "server/filters/request/request_metrics.h"
#include "server/flow/flow_index.h"
#include "server/flow/flow_level.h"
#include "server/http/http.h"

struct hfd_filters;
struct hfd_service_accounts;

/* One allocation, only as long as its strings, because each request and watch has one. */
struct hfd_request_context {
        struct hfd_filters *filters;                   /* borrowed; outlives all requests */
        struct hfd_http_request *request;              /* borrowed: the request owns this */
        struct hfd_request_info info;                  /* its strings are in text */
        struct hfd_request_labels labels;              /* for the metrics */
        struct hfd_inflight_place place;               /* whether a shutdown waits for it */
        struct hfd_auth *auth;                         /* borrowed */
        struct hfd_authorizer *authorizer;             /* borrowed; NULL = only fixed rules */
        struct hfd_service_accounts *service_accounts; /* borrowed; NULL = no tokens */
        /* Owned. Only for a watch: the objects on which the token of its sender depends; NULL =
         * there are none. */
        struct hfd_credential *credential;
        /* Owned; the user after impersonation; NULL = nothing needs it (filters.c). */
        struct hfd_requester *requester;
        /* Priority and fairness; all NULL without levels. The index, an owned reference, has the
         * headers of the response and the level. */
        struct hfd_flow_index *flow_index;
        const struct hfd_flow_match *flow;     /* borrowed from the index */
        struct hfd_flow_control *flow_control; /* borrowed */
        struct hfd_flow_place seats;           /* in the level */
        char *flow_user;     /* owned; the user after impersonation; NULL = `user` */
        char *selected_name; /* owned; what a list or watch selects by name; NULL = nothing */
        bool is_admin;       /* the user, after impersonation, may do everything */
        bool runs;           /* it is counted as running (request_metrics.h) */
        /* The response was sent, or the client has left. */
        struct hf__departure departure;
        struct hfd_unsent *accounts;    /* borrowed; the watches of the request charge it */
        struct hfd_unsent_entry unsent; /* charged if the client reads slowly */
        /* For the audit log; all NULL without a policy. */
        struct hfd_audit *audit;          /* borrowed */
        struct hfd_audit_record *audited; /* owned reference; NULL = the request is not recorded */
        char *audit_id;                   /* owned */
        const char *user; /* in text; before impersonation, for the log; "" = not authenticated */
        char text[];
};

/* The request's context. NULL: it has no context yet. */
struct hfd_request_context *hfd_request_context(struct hfd_http_request *request);
/* Creates the context, and attaches it to the request. user is copied. 0 or -ENOMEM. */
int hfd_request_context_new(struct hfd_filters *filters, struct hfd_http_request *request,
                            const char *user, struct hfd_request_context **ret_context);
/* The parsed request. Never NULL. Only for a request with a context; the requests that the
 * filters pass to a handler have one. */
const struct hfd_request_info *hfd_request_info(struct hfd_http_request *request);
