/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The context of a request contains what the filters know about it. It is created when the
 * request's head has arrived, attached to the HTTP request as its context, and freed with the
 * request's last reference.
 *
 * Thread: the connection's worker creates it and runs the filters of the head, which set the
 * members. Afterwards only these change:
 *
 *      place, runs   on the worker
 *      unsent        on the worker; its links on any thread, under the lock of unsent.h
 *      seats         on the worker until they enter the level; then on any thread, under the lock
 *                    of the level (flow_level.h)
 *      departure     on any thread; it needs no lock
 *
 * Other threads that hold a reference to the request may read all other members, and use
 * `departure`. What `audited` refers to has its own lock (audit/record.h).
 */
#include "base/departure.h"
#include "server/audit/audit.h"
#include "server/auth/auth.h"
#include "server/auth/impersonation_rights.h"
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

/* One allocation with the strings of info and user at its end, and no longer than they need,
 * because each request and each watch keeps one. */
struct hfd_request_context {
        struct hfd_filters *filters;                   /* borrowed; outlives all requests */
        struct hfd_http_request *request;              /* borrowed: the request owns this */
        struct hfd_request_info info;                  /* its strings are in text */
        struct hfd_request_labels labels;              /* for the metrics */
        struct hfd_inflight_place place;               /* whether a shutdown waits for it */
        struct hfd_auth *auth;                         /* borrowed */
        struct hfd_authorizer *authorizer;             /* borrowed; NULL = only fixed rules */
        struct hfd_service_accounts *service_accounts; /* borrowed; NULL = no tokens */
        /* Owned. Only for a watch: the expiry and the objects on which the token of its sender
         * depends; NULL = there are none. */
        struct hfd_credential *credential;
        /* Owned; the user after impersonation; NULL = nothing needs it (filters.c). */
        struct hfd_requester *requester;
        /* Owned. Only for a watch with impersonation: its sender, who may lose the right to
         * impersonate the user. NULL = nobody is impersonated, or the sender is in system:masters,
         * which cannot lose the right. */
        struct hfd_requester *sender;
        size_t n_named_groups; /* groups that the headers name; set only with sender */
        enum hfd_impersonation_mode impersonation_mode; /* only if somebody is impersonated */
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
        struct hfd_unsent *accounts;    /* borrowed; charged for what a watch has unread */
        struct hfd_unsent_entry unsent; /* charged if the client reads slowly */
        /* For the audit log; all NULL without an audit log. */
        struct hfd_audit *audit;          /* borrowed */
        struct hfd_audit_record *audited; /* owned reference; NULL = the request is not recorded */
        char *audit_id;                   /* owned */
        /* In text; before impersonation. For the log, the accounts of unread responses, and the
         * flow. "" = not authenticated. */
        const char *user;
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
