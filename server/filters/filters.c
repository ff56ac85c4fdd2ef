/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handler chain; filters.h has its order.
 *
 * Invariants:
 *  - Everything up to the decision whether a request may be served needs its head only. So a client
 *    without the right to make the request can make the server neither keep a body, nor wait for
 *    one at a shutdown.
 *  - A request that may be served, except a watch or an exempt one, is counted from its head on.
 *    Otherwise a shutdown could cut off a request that a client is sending.
 *  - A request that waits for seats keeps one reference to itself: the one that the HTTP server has
 *    passed to hfd_filters_handle. on_decided drops it, or leave_level if the request leaves first.
 */
#include "server/filters/filters.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log_request.h"
#include "server/filters/audit.h"
#include "server/filters/authentication.h"
#include "server/filters/authorization.h"
#include "server/filters/impersonation.h"
#include "server/filters/limits/inflight.h"
#include "server/filters/priority.h"
#include "server/filters/request_context.h"
#include "server/filters/status_response.h"
#include "server/filters/timeout.h"
#include "server/flow/flow_levels.h"

/* How long requests may still wait for seats when the server shuts down. Other instances serve
 * them sooner than one whose seats are taken. */
#define SHUTDOWN_WAIT (2 * HF_NSEC_PER_SEC)

struct hfd_filters {
        /* immutable after new */
        const struct hf_host *host;                    /* borrowed */
        struct hfd_router *router;                     /* borrowed */
        struct hfd_auth *auth;                         /* borrowed */
        struct hfd_authorizer *authorizer;             /* borrowed; NULL = only fixed rules */
        struct hfd_audit *audit;                       /* borrowed; NULL = there is no audit log */
        struct hfd_service_accounts *service_accounts; /* borrowed; NULL = no tokens */
        struct hfd_flow_control *flow;                 /* borrowed; NULL = no priority levels */
        struct hfd_request_metrics *metrics;           /* owned */
        struct hfd_inflight *inflight;                 /* owned */
        struct hfd_unsent *unsent;                     /* owned */
        bool send_retry_after;
};

HF__CLEANUP_DEFINE(filters_cleanup, struct hfd_filters *, hfd_filters_free)

int hfd_filters_new(const struct hf_host *host, const struct hfd_filters_config *config,
                    struct hfd_filters **ret_filters) {
        HF__CLEANUP(filters_cleanup) struct hfd_filters *filters = calloc(1, sizeof *filters);

        if (!filters)
                return -ENOMEM;
        filters->host = host;
        filters->router = config->router;
        filters->auth = config->auth;
        filters->authorizer = config->authorizer;
        filters->audit = config->audit;
        filters->service_accounts = config->service_accounts;
        filters->flow = config->flow;
        filters->send_retry_after = config->send_retry_after;
        int r = hfd_request_metrics_new(host, &filters->metrics);
        if (r != 0)
                return r;
        r = hfd_inflight_new(host, &filters->inflight);
        if (r != 0)
                return r;
        r = hfd_unsent_new(host, NULL, &filters->unsent);
        if (r != 0)
                return r;
        *ret_filters = HF__TAKE(filters);
        return 0;
}

struct hfd_filters *hfd_filters_free(struct hfd_filters *filters) {
        if (!filters)
                return NULL;
        hfd_unsent_free(filters->unsent);
        hfd_inflight_free(filters->inflight);
        hfd_request_metrics_free(filters->metrics);
        free(filters);
        return NULL;
}

static hf_nsec now_of(const struct hfd_filters *filters) {
        return hf_now(hf_host_clock(filters->host));
}

void hfd_filters_refuse(struct hfd_filters *filters) {
        hfd_inflight_refuse(filters->inflight);
        if (filters->flow)
                hfd_flow_levels_hurry(hfd_flow_control_levels(filters->flow),
                                      now_of(filters) + SHUTDOWN_WAIT);
}

size_t hfd_filters_inflight(struct hfd_filters *filters) {
        return hfd_inflight_count(filters->inflight);
}

int hfd_filters_wait_drained(struct hfd_filters *filters, hf_nsec deadline) {
        return hfd_inflight_wait(filters->inflight, deadline);
}

/* ---- the end of a request ---- */

/* The request needs no seats any more, or gives up waiting for them. */
static void leave_level(struct hfd_request_context *context, hf_nsec now) {
        if (context->runs)
                hfd_request_metrics_inflight(context->filters->metrics, context->info.mutating, -1);
        context->runs = false;
        if (hfd_flow_level_leave(&context->seats, now))
                hfd_http_request_unref(context->request);
}

/*
 * Called on the request's worker: the response has begun, but not all of it is sent. The request
 * gives back its seats. If waits is false, the client has had a chance to read the response, and
 * the bytes are charged to the user's account. After waits true the function may be called again.
 */
static void on_unsent(void *ctx, size_t n_bytes, bool waits) {
        struct hfd_request_context *context = ctx;

        leave_level(context, now_of(context->filters));
        if (waits || context->info.watch) /* the stream of a watch charges it */
                return;
        /* A stream has no length. It is charged with what a list may have waiting to be sent. */
        hfd_unsent_add(context->filters->unsent, &context->unsent, context->user, context->request,
                       n_bytes > 0 ? n_bytes : HFD_UNSENT_STREAM);
}

/* took: the duration; negative = there is none. */
static void log_request(const struct hfd_request_context *context, int code, hf_nsec took,
                        size_t n_bytes) {
        const struct hf_log *log = &context->filters->host->log;
        struct hfd_http_request *request = context->request;
        const char *query = hfd_http_request_query(request);
        char duration[32] = "-";

        if (code < 500 && log->max_level < HF_LOG_DEBUG)
                return; /* hf_log would drop the line, as it does with most requests */
        if (took >= 0)
                (void)snprintf(duration, sizeof duration, "%.3f ms", (double)took / 1e6);
        hf__log_set_request(context->audit_id);
        hf_log(log, code >= 500 ? HF_LOG_INFO : HF_LOG_DEBUG, "http",
               "%s %.400s%s%.200s %d %s %zu bytes %s %s %s", hfd_http_request_method(request),
               hfd_http_request_path(request), query[0] ? "?" : "", query, code, duration, n_bytes,
               hfd_http_request_protocol(request), hfd_http_request_remote(request), context->user);
        hf__log_set_request(NULL);
}

/* Called once, on the request's worker, when the response is finished or the client has gone. */
static void on_finished(void *ctx, int code, size_t n_bytes) {
        struct hfd_request_context *context = ctx;
        struct hfd_filters *filters = context->filters;
        struct hfd_http_request *request = context->request;

        assert(filters && request);
        hf__departure_leave(&context->departure);
        hfd_audit_filter_end(context, code);
        hf_nsec now = now_of(filters);
        leave_level(context, now);
        hfd_inflight_release(filters->inflight, &context->place);
        hfd_unsent_remove(filters->unsent, &context->unsent);
        /* The time of arrival is 0 if hfd_filters_handle was not called: the request was refused by
         * its head or for its body, or its client left before it had sent the whole request. Then
         * there is no duration. */
        hf_nsec received = hfd_http_request_received_at(request);
        hf_nsec took = received ? now - received : -1;
        hfd_request_metrics_count(filters->metrics, context->labels, code,
                                  context->info.watch ? -1 : took);
        log_request(context, code, took, n_bytes);
}

/* ---- the filters that have no file of their own ---- */

/* Requests of probes and scrapes, and those for the version, are exempt: they are not counted, need
 * no seats, and are served in a shutdown. */
static bool is_exempt(const char *path) {
        static const char *const prefixes[] = {"/healthz", "/livez", "/readyz", "/metrics"};

        if (strncmp(path, "/api", 4) == 0) /* most requests */
                return false;
        for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
                size_t n = strlen(prefixes[i]);
                if (strncmp(path, prefixes[i], n) == 0 && (path[n] == '\0' || path[n] == '/'))
                        return true;
        }
        return strcmp(path, "/version") == 0;
}

/* Refuses an invalid path and an unknown method, so that no later filter sees one. Only audit sees
 * them. */
static bool check_request_info(struct hfd_request_context *context) {
        if (!context->info.valid_path) {
                hfd_status_response_code(context->request, 400, 0, "the path is not valid");
                return false;
        }
        if (!context->info.verb[0]) {
                hfd_status_response_code(context->request, 405, 0,
                                         "the server does not allow this method on the "
                                         "requested resource");
                return false;
        }
        return true;
}

/* Refuses the request if the server is shutting down. */
static bool admit_request(struct hfd_request_context *context) {
        struct hfd_filters *filters = context->filters;

        if (hfd_inflight_admit(filters->inflight, !context->info.watch, &context->place))
                return true;
        if (filters->send_retry_after)
                hfd_status_response_text(context->request, 429,
                                         "The apiserver is shutting down, please try again "
                                         "later.\n",
                                         5, true);
        else
                hfd_status_response_code(context->request, 503, 1, "apiserver is shutting down");
        return false;
}

static bool is_list(const struct hfd_request_context *context) {
        return strcmp(context->info.verb, "list") == 0;
}

/* Refuses the request if the accounts of unread responses have no room for it (hfd_unsent_admit). A
 * watch is not refused: it is charged later. */
static bool admit_response(struct hfd_request_context *context) {
        if (context->info.watch ||
            hfd_unsent_admit(context->filters->unsent, context->user, is_list(context)))
                return true;
        hfd_priority_refuse(context, 1);
        return false;
}

/* ---- the chain ---- */

/* Begins the record of the request, unless the audit policy's level for it is None. user NULL = it
 * is not authenticated. */
static void begin_audit(struct hfd_request_context *context, const struct hfd_user *user) {
        if (!context->audit)
                return;
        assert(!context->audited);
        (void)hfd_authorization_select_name(context); /* if it fails, authorization refuses */
        const struct hfd_attributes attributes = hfd_request_attributes(context);
        hfd_audit_filter_begin(context, user, &attributes);
}

/* True: the request may go on. False: a response was sent. */
static bool run_chain(struct hfd_request_context *context, struct hfd_user *user) {
        begin_audit(context, user);
        if (!check_request_info(context) || !hfd_timeout_filter(context) ||
            !hfd_impersonation_filter(context, user))
                return false;
        hfd_priority_filter(context, context->filters->flow, user);
        return hfd_authorization_filter(context, user) &&
               (is_exempt(hfd_http_request_path(context->request)) || admit_request(context));
}

/*
 * Keeps the user for later. A watch needs it when rights change, and a write needs it for admission
 * and for the checks of what its user may grant. Other requests save the memory, and so does a
 * watch of an administrator, who always has all rights, unless its sender may lose the right to
 * impersonate the administrator. False: out of memory.
 */
static bool keep_requester(struct hfd_request_context *context, const struct hfd_user *user) {
        const struct hfd_request_info *info = &context->info;

        if (!info->mutating && (!info->watch || (context->is_admin && !context->sender)))
                return true;
        context->requester = hfd_requester_new(user);
        return context->requester != NULL;
}

/* The verdict about a request that was refused. */
static enum hfd_http_verdict refused(bool is_stranger) {
        return is_stranger ? HFD_HTTP_REFUSED_STRANGER : HFD_HTTP_REFUSED;
}

enum hfd_http_verdict hfd_filters_head(void *ctx, struct hfd_http_request *request) {
        struct hfd_filters *filters = ctx;
        struct hfd_request_context *context;
        struct hfd_user user;
        HF__CLEANUP(hf__free_cleanup) struct hfd_credential *credential = NULL;
        int r = hfd_authentication_filter(request, filters->auth, &user, &credential);
        /* Found out before impersonation. After another error than HF_E_UNAUTHORIZED nothing is
         * known about the sender, so the connection stays as it is. */
        bool is_stranger = r == 0 ? hfd_authentication_is_anonymous(&user) : r == HF_E_UNAUTHORIZED;

        if (hfd_request_context_new(filters, request, user.name, &context) != 0) {
                /* Without a context the request is neither counted nor logged. */
                hfd_authentication_refuse(request, r != 0 ? r : -ENOMEM);
                return refused(is_stranger);
        }
        hfd_audit_filter_init(context, filters->audit);
        context->accounts = filters->unsent;
        context->auth = filters->auth;
        context->authorizer = filters->authorizer;
        context->service_accounts = filters->service_accounts;
        if (context->info.watch) /* only a watch is ended when its token becomes invalid */
                context->credential = HF__TAKE(credential);
        hfd_http_request_on_finished(request, on_finished, context);
        hfd_http_request_on_unsent(request, on_unsent, context);
        if (r != 0) {
                begin_audit(context, NULL);
                hfd_authentication_refuse(request, r);
                return refused(is_stranger);
        }
        if (!run_chain(context, &user))
                return refused(is_stranger);
        context->is_admin = hfd_auth_is_admin(&user);
        if (!keep_requester(context, &user)) {
                hfd_status_response_code(request, 503, 1, "out of memory");
                return refused(is_stranger);
        }
        /* If an anonymous client has got this far with a write, authorization allows the write, and
         * its body is needed. */
        return !is_stranger || context->info.mutating ? HFD_HTTP_READ_BODY : HFD_HTTP_IGNORE_BODY;
}

/* Calls the handler of the path. Takes over the caller's reference to the request. */
static void call_handler(struct hfd_request_context *context) {
        struct hfd_http_request *request = context->request;
        hfd_http_handler handler = NULL;
        void *handler_ctx = NULL;

        if (hfd_router_find(context->filters->router, hfd_http_request_path(request), &handler,
                            &handler_ctx) == 0) {
                handler(handler_ctx, request);
                return;
        }
        hfd_status_response_text(request, 404, "404 page not found\n", 0, false);
        hfd_http_request_unref(request);
}

/* Runs a request that has its seats. For a list, admit_response has been called just before, so
 * that hardly any other list can be admitted between that call and the reservation. Thread: worker.
 * Takes over the caller's reference to the request. */
static void run_filters(struct hfd_request_context *context) {
        context->runs = true;
        if (is_list(context))
                hfd_unsent_reserve(context->filters->unsent, &context->unsent, context->user);
        hfd_request_metrics_inflight(context->filters->metrics, context->info.mutating, 1);
        call_handler(context);
}

/* ---- the end of a wait ---- */

/* Thread: worker, as for on_expired. The account may have become full while a list waited for its
 * seats. */
static void on_granted(void *ctx) {
        struct hfd_request_context *context = ctx;

        if (is_list(context) && !admit_response(context))
                return;
        hfd_http_request_ref(context->request); /* for the handler */
        run_filters(context);
}

static void on_expired(void *ctx) {
        struct hfd_request_context *context = ctx;

        hfd_priority_refuse(context,
                            hfd_flow_level_refuse(context->seats.level, now_of(context->filters)));
}

/* Thread: any. The worker calls nothing if the client has left: then on_finished gives the seats
 * back. */
static void on_decided(struct hfd_flow_place *place, bool granted) {
        struct hfd_request_context *context = hfd_priority_context(place);
        struct hfd_http_request *request = context->request;

        hfd_http_request_continue(request, granted ? on_granted : on_expired, context);
        hfd_http_request_unref(request); /* the reference that the wait had */
}

void hfd_filters_handle(void *ctx, struct hfd_http_request *request) {
        static const struct hfd_flow_owner owner = {on_decided, hfd_priority_describe};
        struct hfd_request_context *context = hfd_request_context(request);
        unsigned retry_after = 1;

        assert(context);
        if (is_exempt(hfd_http_request_path(request))) {
                call_handler(context);
                return;
        }
        if (!admit_response(context)) {
                hfd_http_request_unref(request);
                return;
        }
        switch (hfd_priority_enter(context, &owner, &retry_after)) {
        case HFD_VERDICT_EXECUTE: run_filters(context); break;
        case HFD_VERDICT_WAIT: /* on_decided or on_finished follows, or has been called */ break;
        case HFD_VERDICT_QUEUE_FULL:
        case HFD_VERDICT_NO_SEATS:
                hfd_priority_refuse(context, retry_after);
                hfd_http_request_unref(request);
        }
}
