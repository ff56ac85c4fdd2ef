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

struct passage {
        struct hfd_request_info info; /* first: what hfd_request_info hands out */
        struct hfd_filters *filters;  /* borrowed; outlives all requests */
        struct hfd_request *request;  /* borrowed: the request owns this */
        struct hfd_request_kind kind;
        const char *verb; /* static text; "" = the method is not one of ours */
        bool bad_path;
        bool counted;       /* in n_draining */
        bool admitted;      /* let in, at the head or when complete */
        enum hfd_lane lane; /* HFD_LANE_NONE = holds no place */
};

const struct hfd_request_info *hfd_request_info(struct hfd_request *request) {
        const struct passage *passage = hfd_request_context(request);
        return &passage->info;
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
static bool enter(struct passage *passage) {
        struct hfd_filters *filters = passage->filters;
        pthread_mutex_lock(&filters->mu);
        bool open = !filters->refusing;
        if (open && !passage->info.watch) {
                filters->n_draining++;
                passage->counted = true;
        }
        pthread_mutex_unlock(&filters->mu);
        passage->admitted = open;
        return open;
}

static bool take_place(struct passage *passage, enum hfd_lane lane) {
        struct hfd_filters *filters = passage->filters;
        pthread_mutex_lock(&filters->mu);
        bool free_place = filters->n_lane[lane] < filters->max[lane];
        if (free_place) {
                filters->n_lane[lane]++;
                passage->lane = lane;
        }
        hfd_request_metrics_inflight(filters->metrics, lane, filters->n_lane[lane]);
        pthread_mutex_unlock(&filters->mu);
        return free_place;
}

static void leave(struct passage *passage) {
        struct hfd_filters *filters = passage->filters;
        enum hfd_lane lane = passage->lane;
        pthread_mutex_lock(&filters->mu);
        if (lane != HFD_LANE_NONE)
                hfd_request_metrics_inflight(filters->metrics, lane, --filters->n_lane[lane]);
        if (passage->counted && --filters->n_draining == 0)
                pthread_cond_broadcast(&filters->drained);
        passage->counted = false;
        passage->lane = HFD_LANE_NONE;
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
        struct passage *passage = ctx;
        struct hfd_filters *filters = passage->filters;
        struct hfd_request *request = passage->request;
        leave(passage);
        hf_nsec received =
                hfd_request_received_at(request); /* 0: it ended before it was complete */
        hf_nsec took = received ? hf_now(hf_host_clock(filters->host)) - received : 0;
        hfd_request_metrics_done(filters->metrics, passage->kind, code,
                                 passage->info.watch || !received ? -1 : took);
        const char *query = hfd_request_query(request);
        hf_log(&filters->host->log, code >= 500 ? HF_LOG_INFO : HF_LOG_DEBUG, "http",
               "%s %.400s%s%.200s %d %.3f ms %zu bytes %s %s %s", hfd_request_method(request),
               hfd_request_path(request), query[0] ? "?" : "", query, code, (double)took / 1e6,
               n_bytes, hfd_request_protocol(request), hfd_request_remote(request),
               passage->info.user);
}

static void reply_simple(struct hfd_request *request, int code, uint32_t retry_after_s,
                         const char *message) {
        struct hf_status status = {.http_code = code, .retry_after_s = retry_after_s};
        (void)snprintf(status.message, sizeof status.message, "%s", message);
        hfd_request_reply_status(request, &status);
}

static void refuse(struct hfd_filters *filters, struct hfd_request *request) {
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

static bool authorized(struct passage *passage, const struct hfd_user *user,
                       const struct hfd_request_path *path) {
        const char *verb = passage->verb;
        char single[HF_NAME_MAX + 1];
        bool many = strcmp(verb, "list") == 0 || strcmp(verb, "watch") == 0;
        const char *name = path->name;
        if (many && !name[0] && hfd_query_single_name(hfd_request_query(passage->request), single))
                name = single;
        const struct hfd_attributes asked = {.verb = verb,
                                             .group = path->group,
                                             .resource = path->resource,
                                             .ns = path->ns,
                                             .name = name,
                                             .path = hfd_request_path(passage->request),
                                             .is_resource = path->is_resource};
        if (hfd_auth_allows(passage->filters->auth, user, &asked))
                return true;
        hfd_reply_forbidden(passage->request, user, &asked, path->subresource);
        return false;
}

/* For whom the request is made, where it is for somebody else. False: it has been answered. */
static bool impersonated(struct passage *passage, struct hfd_user *user) {
        struct hfd_user asked;
        int r = hfd_auth_impersonate(passage->request, user, &asked);
        if (r == 0)
                return true;
        if (r == HF_E_FORBIDDEN) {
                const struct hfd_attributes users = {.verb = "impersonate",
                                                     .group = "",
                                                     .resource = "users",
                                                     .ns = "",
                                                     .name = asked.name,
                                                     .is_resource = true};
                hfd_reply_forbidden(passage->request, user, &users, "");
        } else
                reply_simple(passage->request, 400, 0,
                             "the headers of the impersonation name no user, or too many groups");
        return false;
}

/* True: the request may go on to its handler. False: it has been answered. */
static bool pass(struct passage *passage, const struct hfd_request_path *path, bool exempt) {
        struct hfd_filters *filters = passage->filters;
        struct hfd_user user;
        if (!exempt && !passage->admitted && !enter(passage)) {
                refuse(filters, passage->request);
                return false;
        }
        user.name[0] = '\0';
        int unknown = hfd_auth_authenticate(filters->auth, passage->request, &user);
        (void)stpcpy(passage->info.user,
                     user.name); /* for the log; the groups have served once it is authorized */
        if (unknown) {
                reply_simple(passage->request, 401, 0, "Unauthorized");
                return false;
        }
        if (!impersonated(passage, &user) || !authorized(passage, &user, path))
                return false;
        if (exempt || passage->info.watch)
                return true;
        enum hfd_lane lane = is_lease(path)           ? HFD_LANE_LEASE
                             : passage->info.mutating ? HFD_LANE_MUTATE
                                                      : HFD_LANE_READ;
        if (!take_place(passage, lane)) {
                hfd_reply_text(passage->request, 429,
                               "Too many requests, please try again later.\n", 1, false);
                return false;
        }
        return true;
}

/* What kind of request it is. */
static void classify(struct passage *passage, struct hfd_request_path *ret_path) {
        struct hfd_request *request = passage->request;
        passage->bad_path = hfd_request_path_parse(hfd_request_path(request), ret_path) != 0;
        passage->verb =
                hfd_request_verb(hfd_request_method(request), ret_path, hfd_request_query(request));
        passage->kind = hfd_request_kind(passage->verb, ret_path->resource);
        passage->info.watch = strcmp(passage->verb, "watch") == 0;
        passage->info.mutating = !is_reading(passage->verb);
}

static struct passage *begin(struct hfd_filters *filters, struct hfd_request *request,
                             struct hfd_request_path *ret_path) {
        struct passage *passage = malloc(sizeof *passage);
        if (!passage)
                return NULL;
        *passage = (struct passage){.filters = filters, .request = request, .lane = HFD_LANE_NONE};
        hfd_request_set_context(request, passage, free);
        hfd_request_on_finished(request, finished, passage);
        classify(passage, ret_path);
        return passage;
}

void hfd_filters_head(void *ctx, struct hfd_request *request) {
        struct hfd_request_path path;
        struct passage *passage = begin(ctx, request, &path);
        if (!passage)
                return; /* the handler tries again */
        if (!is_exempt(hfd_request_path(request)))
                (void)enter(
                        passage); /* refused: the answer is given when the request is complete */
}

void hfd_filters_handle(void *ctx, struct hfd_request *request) {
        struct hfd_filters *filters = ctx;
        struct hfd_request_path path;
        hfd_http_handler handler = NULL;
        void *handler_ctx = NULL;
        struct passage *passage = hfd_request_context(request);
        if (passage) /* begun at the head */
                (void)hfd_request_path_parse(hfd_request_path(request), &path);
        else
                passage = begin(filters, request, &path);
        if (!passage) {
                reply_simple(request, 503, 1, "out of memory");
                hfd_request_unref(request);
                return;
        }
        if (passage->bad_path)
                reply_simple(request, 400, 0, "the path is not valid");
        else if (!passage->verb[0])
                reply_simple(request, 405, 0,
                             "the server does not allow this method on the requested resource");
        else if (pass(passage, &path, is_exempt(hfd_request_path(request)))) {
                if (hfd_router_find(filters->router, hfd_request_path(request), &handler,
                                    &handler_ctx) == 0) {
                        handler(handler_ctx, request); /* takes the reference */
                        return;
                }
                hfd_reply_text(request, 404, "404 page not found\n", 0, false);
        }
        hfd_request_unref(request);
}
