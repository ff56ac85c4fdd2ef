/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each request that is not refused at the door carries a struct passage, its context, from the
 * first filter to the last unref.
 *
 * Two counts, both under `mu`: `n_draining`, the requests that a shutdown waits for, and one per
 * lane. Whether we refuse and the first count are read and changed together, so that after
 * hfd_filters_refuse no request slips in uncounted. A passage gives back what it holds when its
 * answer is finished, once, on whatever thread that is; the holder's flags are touched before the
 * handler runs and when the answer is finished, never at the same time.
 */
#include "server/filters/filters.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "server/filters/request_info.h"
#include "server/filters/request_metrics.h"
#include "server/filters/status_response.h"

struct hfd_filters {
        /* immutable after new */
        const struct hf_host *host;          /* borrowed */
        struct hfd_router *router;           /* borrowed */
        struct hfd_auth *auth;               /* borrowed */
        struct hfd_request_metrics *metrics; /* owned */
        size_t max[HFD_N_LANES];
        bool send_retry_after;
        pthread_cond_t drained; /* signalled when n_draining reaches 0 */
        /* guarded by mu */
        pthread_mutex_t mu;
        bool refusing;
        size_t n_draining;
        size_t n_lane[HFD_N_LANES];
};

struct request_context {
        struct hfd_request_info info;     /* first: what hfd_request_info hands out */
        struct hfd_filters *filters;      /* borrowed; outlives all requests */
        struct hfd_http_request *request; /* borrowed: the request owns this */
        struct hfd_request_kind kind;
        const char *verb; /* static text; "" = the method is not one of ours */
        bool bad_path;
        bool counted;       /* in n_draining */
        bool admitted;      /* let in, at the head or when complete */
        enum hfd_lane lane; /* HFD_LANE_NONE = holds no place */
};

const struct hfd_request_info *hfd_request_info(struct hfd_http_request *request) {
        const struct request_context *request_context = hfd_http_request_context(request);
        return &request_context->info;
}

int hfd_filters_new(const struct hf_host *host, const struct hfd_filters_config *config,
                    struct hfd_filters **ret_filters) {
        struct hfd_filters *filters = calloc(1, sizeof *filters);
        if (!filters)
                return -ENOMEM;
        filters->host = host;
        filters->router = config->router;
        filters->auth = config->auth;
        filters->send_retry_after = config->send_retry_after;
        filters->max[HFD_LANE_READ] = config->max_inflight ? config->max_inflight : 400;
        filters->max[HFD_LANE_MUTATE] =
                config->max_mutating_inflight ? config->max_mutating_inflight : 200;
        filters->max[HFD_LANE_LEASE] =
                config->max_lease_inflight ? config->max_lease_inflight : 200;
        int r = hf__mutex_init(&filters->mu);
        if (r == 0 && (r = hf_cond_init(&filters->drained)) != 0)
                pthread_mutex_destroy(&filters->mu);
        if (r != 0) {
                free(filters);
                return r;
        }
        r = hfd_request_metrics_new(host, &filters->metrics);
        if (r != 0) {
                hfd_filters_free(filters);
                return r;
        }
        *ret_filters = filters;
        return 0;
}

struct hfd_filters *hfd_filters_free(struct hfd_filters *filters) {
        if (!filters)
                return NULL;
        hfd_request_metrics_free(filters->metrics);
        pthread_cond_destroy(&filters->drained);
        pthread_mutex_destroy(&filters->mu);
        free(filters);
        return NULL;
}

/* Probes and scrapes: outside of every count, answered to the end. */
static bool is_exempt(const char *path) {
        static const char *const prefixes[] = {"/healthz", "/livez", "/readyz", "/metrics"};
        for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
                if (strncmp(path, prefixes[i], strlen(prefixes[i])) == 0)
                        return true;
        return strcmp(path, "/version") == 0;
}

/* ---- counts ---- */

/* Counts the request as under way, unless the server ends: then false, and it must be refused. A
 * watch is only let in. */
static bool enter(struct request_context *request_context) {
        struct hfd_filters *filters = request_context->filters;
        pthread_mutex_lock(&filters->mu);
        bool open = !filters->refusing;
        if (open && !request_context->info.watch) {
                filters->n_draining++;
                request_context->counted = true;
        }
        pthread_mutex_unlock(&filters->mu);
        request_context->admitted = open;
        return open;
}

static bool take_place(struct request_context *request_context, enum hfd_lane lane) {
        struct hfd_filters *filters = request_context->filters;
        pthread_mutex_lock(&filters->mu);
        bool free_place = filters->n_lane[lane] < filters->max[lane];
        if (free_place) {
                filters->n_lane[lane]++;
                request_context->lane = lane;
        }
        hfd_request_metrics_inflight(filters->metrics, lane, filters->n_lane[lane]);
        pthread_mutex_unlock(&filters->mu);
        return free_place;
}

static void leave(struct request_context *request_context) {
        struct hfd_filters *filters = request_context->filters;
        enum hfd_lane lane = request_context->lane;
        pthread_mutex_lock(&filters->mu);
        if (lane != HFD_LANE_NONE)
                hfd_request_metrics_inflight(filters->metrics, lane, --filters->n_lane[lane]);
        if (request_context->counted && --filters->n_draining == 0)
                pthread_cond_broadcast(&filters->drained);
        request_context->counted = false;
        request_context->lane = HFD_LANE_NONE;
        pthread_mutex_unlock(&filters->mu);
}

void hfd_filters_refuse(struct hfd_filters *filters) {
        pthread_mutex_lock(&filters->mu);
        filters->refusing = true;
        pthread_mutex_unlock(&filters->mu);
}

size_t hfd_filters_inflight(struct hfd_filters *filters) {
        pthread_mutex_lock(&filters->mu);
        size_t n = filters->n_draining;
        pthread_mutex_unlock(&filters->mu);
        return n;
}

int hfd_filters_wait_drained(struct hfd_filters *filters, hf_nsec deadline) {
        const struct hf_clock *clock = hf_host_clock(filters->host);
        int r = 0;
        pthread_mutex_lock(&filters->mu);
        while (filters->n_draining > 0 && r == 0)
                r = clock->wait(clock->ctx, &filters->drained, &filters->mu, deadline);
        if (filters->n_draining == 0)
                r = 0;
        pthread_mutex_unlock(&filters->mu);
        return r;
}

/* ---- the passage ---- */

static void finished(void *ctx, int code, size_t n_bytes) {
        struct request_context *request_context = ctx;
        struct hfd_filters *filters = request_context->filters;
        struct hfd_http_request *request = request_context->request;
        leave(request_context);
        hf_nsec received =
                hfd_http_request_received_at(request); /* 0: it ended before it was complete */
        hf_nsec took = received ? hf_now(hf_host_clock(filters->host)) - received : 0;
        hfd_request_metrics_done(filters->metrics, request_context->kind, code,
                                 request_context->info.watch || !received ? -1 : took);
        const char *query = hfd_http_request_query(request);
        hf_log(&filters->host->log, code >= 500 ? HF_LOG_INFO : HF_LOG_DEBUG, "http",
               "%s %.400s%s%.200s %d %.3f ms %zu bytes %s %s %s", hfd_http_request_method(request),
               hfd_http_request_path(request), query[0] ? "?" : "", query, code, (double)took / 1e6,
               n_bytes, hfd_http_request_protocol(request), hfd_http_request_remote(request),
               request_context->info.user);
}

static void reply_simple(struct hfd_http_request *request, int code, uint32_t retry_after_s,
                         const char *message) {
        struct hf_status status = {.http_code = code, .retry_after_s = retry_after_s};
        (void)snprintf(status.message, sizeof status.message, "%s", message);
        hfd_http_request_reply_status(request, &status);
}

static void refuse(struct hfd_filters *filters, struct hfd_http_request *request) {
        if (filters->send_retry_after)
                hfd_reply_text(request, 429,
                               "The apiserver is shutting down, please try again later.\n", 5,
                               true);
        else
                reply_simple(request, 503, 1, "apiserver is shutting down");
}

static bool is_reading(const char *verb) {
        static const char *const reading[] = {"get", "list", "watch", "head", "options"};
        for (size_t i = 0; i < sizeof reading / sizeof reading[0]; i++)
                if (strcmp(verb, reading[i]) == 0)
                        return true;
        return false;
}

static bool is_lease(const struct hfd_request_path *path) {
        return path->is_resource && strcmp(path->resource, "leases") == 0 &&
               strcmp(path->group, "coordination.k8s.io") == 0;
}

static bool authorized(struct request_context *request_context, const struct hfd_user *user,
                       const struct hfd_request_path *path) {
        const char *verb = request_context->verb;
        char single[HF_NAME_MAX + 1];
        bool many = strcmp(verb, "list") == 0 || strcmp(verb, "watch") == 0;
        const char *name = path->name;
        if (many && !name[0] &&
            hfd_query_single_name(hfd_http_request_query(request_context->request), single))
                name = single;
        const struct hfd_attributes asked = {.verb = verb,
                                             .group = path->group,
                                             .resource = path->resource,
                                             .ns = path->ns,
                                             .name = name,
                                             .path = hfd_http_request_path(
                                                     request_context->request),
                                             .is_resource = path->is_resource};
        if (hfd_auth_allows(request_context->filters->auth, user, &asked))
                return true;
        hfd_reply_forbidden(request_context->request, user, &asked, path->subresource);
        return false;
}

/* For whom the request is made, where it is for somebody else. False: it has been answered. */
static bool impersonated(struct request_context *request_context, struct hfd_user *user) {
        struct hfd_user asked;
        int r = hfd_auth_impersonate(request_context->request, user, &asked);
        if (r == 0)
                return true;
        if (r == HF_E_FORBIDDEN) {
                const struct hfd_attributes users = {.verb = "impersonate",
                                                     .group = "",
                                                     .resource = "users",
                                                     .ns = "",
                                                     .name = asked.name,
                                                     .is_resource = true};
                hfd_reply_forbidden(request_context->request, user, &users, "");
        } else
                reply_simple(request_context->request, 400, 0,
                             "the headers of the impersonation name no user, or too many groups");
        return false;
}

/* True: the request may go on to its handler. False: it has been answered. */
static bool pass(struct request_context *request_context, const struct hfd_request_path *path,
                 bool exempt) {
        struct hfd_filters *filters = request_context->filters;
        struct hfd_user user;
        if (!exempt && !request_context->admitted && !enter(request_context)) {
                refuse(filters, request_context->request);
                return false;
        }
        user.name[0] = '\0';
        int unknown = hfd_auth_authenticate(filters->auth, request_context->request, &user);
        (void)stpcpy(request_context->info.user,
                     user.name); /* for the log; the groups have served once it is authorized */
        if (unknown) {
                reply_simple(request_context->request, 401, 0, "Unauthorized");
                return false;
        }
        if (!impersonated(request_context, &user) || !authorized(request_context, &user, path))
                return false;
        if (exempt || request_context->info.watch)
                return true;
        enum hfd_lane lane = is_lease(path)                   ? HFD_LANE_LEASE
                             : request_context->info.mutating ? HFD_LANE_MUTATE
                                                              : HFD_LANE_READ;
        if (!take_place(request_context, lane)) {
                hfd_reply_text(request_context->request, 429,
                               "Too many requests, please try again later.\n", 1, false);
                return false;
        }
        return true;
}

/* What kind of request it is. */
static void classify(struct request_context *request_context, struct hfd_request_path *ret_path) {
        struct hfd_http_request *request = request_context->request;
        request_context->bad_path =
                hfd_request_path_parse(hfd_http_request_path(request), ret_path) != 0;
        request_context->verb = hfd_request_verb(hfd_http_request_method(request), ret_path,
                                                 hfd_http_request_query(request));
        request_context->kind = hfd_request_kind(request_context->verb, ret_path->resource);
        request_context->info.watch = strcmp(request_context->verb, "watch") == 0;
        request_context->info.mutating = !is_reading(request_context->verb);
}

static struct request_context *begin(struct hfd_filters *filters, struct hfd_http_request *request,
                                     struct hfd_request_path *ret_path) {
        struct request_context *request_context = malloc(sizeof *request_context);
        if (!request_context)
                return NULL;
        *request_context = (struct request_context){.filters = filters,
                                                    .request = request,
                                                    .lane = HFD_LANE_NONE};
        hfd_http_request_set_context(request, request_context, free);
        hfd_http_request_on_finished(request, finished, request_context);
        classify(request_context, ret_path);
        return request_context;
}

void hfd_filters_head(void *ctx, struct hfd_http_request *request) {
        struct hfd_request_path path;
        struct request_context *request_context = begin(ctx, request, &path);
        if (!request_context)
                return; /* the handler tries again */
        if (!is_exempt(hfd_http_request_path(request)))
                (void)enter(request_context); /* refused: the answer is given when the request is
                                                 complete */
}

void hfd_filters_handle(void *ctx, struct hfd_http_request *request) {
        struct hfd_filters *filters = ctx;
        struct hfd_request_path path;
        hfd_http_handler handler = NULL;
        void *handler_ctx = NULL;
        struct request_context *request_context = hfd_http_request_context(request);
        if (request_context) /* begun at the head */
                (void)hfd_request_path_parse(hfd_http_request_path(request), &path);
        else
                request_context = begin(filters, request, &path);
        if (!request_context) {
                reply_simple(request, 503, 1, "out of memory");
                hfd_http_request_unref(request);
                return;
        }
        if (request_context->bad_path)
                reply_simple(request, 400, 0, "the path is not valid");
        else if (!request_context->verb[0])
                reply_simple(request, 405, 0,
                             "the server does not allow this method on the requested resource");
        else if (pass(request_context, &path, is_exempt(hfd_http_request_path(request)))) {
                if (hfd_router_find(filters->router, hfd_http_request_path(request), &handler,
                                    &handler_ctx) == 0) {
                        handler(handler_ctx, request); /* takes the reference */
                        return;
                }
                hfd_reply_text(request, 404, "404 page not found\n", 0, false);
        }
        hfd_http_request_unref(request);
}
