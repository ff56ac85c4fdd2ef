/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network side of `holdfastd status`. An API client reads the Leases from one API server at a
 * time, at first from the server that the kubeconfig names. An HTTP engine gets /debug/leader from
 * each instance, at the endpoint in the instance's identity Lease.
 *
 * Invariants:
 * - A request is sent to an endpoint from a Lease only if may_query allows it. The header explains
 *   why: a client that can write a Lease must not get our credentials.
 * - hfd_status_collector_query_instances returns only after all of its requests have ended, because
 *   on_response writes into the caller's model.
 *
 * Threads. One thread calls all functions of the header. Responses arrive on the engine's thread,
 * and events and the end of the watch on the client's thread. A request or watch that cannot start
 * ends on the calling thread. `mu` guards what threads share, but not `changed` and its ctx.
 */
#include "server/status/collector.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/http/engine.h"
#include "base/http/http_tls.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include "client/json_span.h"
#include "client/kubeconfig.h"
#include "server/status/model.h"

#define LIST_TIMEOUT  (3 * HF_NSEC_PER_SEC)
#define QUERY_TIMEOUT (2 * HF_NSEC_PER_SEC)
/* How many refreshes skip an instance that did not respond. */
#define SKIPPED_REFRESHES 4
#define MAX_RESPONSE      ((size_t)64 << 10) /* bytes; much more than /debug/leader sends */

static const struct hf_resource lease_resource = {"coordination.k8s.io", "v1", "leases"};

/* A request for the /debug/leader of one instance. */
struct query {
        struct hfd_status_collector *collector;
        struct hfd_status_instance *instance; /* borrowed from the model until on_response */
};

struct hfd_status_collector {
        /* immutable */
        const struct hf_host *host;     /* borrowed */
        struct hf__kubeconfig config;   /* owned */
        struct hf__http_engine *engine; /* owned */
        struct hf__http_tls *tls;       /* owned; NULL = plain http: no instance is queried */
        /* Owned; the header line with the bearer token for instances. NULL = the kubeconfig has no
         * token, or may_send_token forbids sending it. Requests to instances never have a token of
         * a tokenFile, because only `client` reads that file. */
        char *authorization;
        /* the calling thread only */
        char server[160];         /* URL of the server that client talks to */
        struct hf_client *client; /* owned */
        struct query queries[HFD_STATUS_MAX_INSTANCES];
        /* Written by the calling thread while no watch is open, read by the client's thread while
         * one is open. */
        void (*changed)(void *ctx);
        void *ctx; /* of changed */

        pthread_mutex_t mu;
        pthread_cond_t all_done;
        /* guarded by mu */
        unsigned n_pending; /* requests to instances that have not ended */
        bool watching;      /* a watch is open, or is being opened */
};

/* Whether an endpoint from a Lease may get the token: only if the kubeconfig has a CA. TLS then
 * accepts only certificates of that CA. Without it, a certificate of any public CA would do. */
static bool may_send_token(const struct hfd_status_collector *collector) {
        return collector->config.rest.ca_pem && !collector->config.rest.insecure;
}

/* ---- the server of the Leases ---- */

/* Replaces the client by one for the server with this URL. is_configured: the kubeconfig names the
 * server. On failure the previous client stays in use. */
static int replace_client(struct hfd_status_collector *collector, const char *server,
                          bool is_configured, struct hf_status *reterr_status) {
        struct hf_rest_config config = collector->config.rest;
        struct hf_client *client = NULL;

        config.server = server;
        /* The read itself tries the other servers, so that it knows which one has responded. */
        config.other_servers = NULL;
        config.n_other_servers = 0;
        config.timeout = LIST_TIMEOUT;
        config.user_agent = "holdfastd-status";
        if (!is_configured)
                config.server_name = NULL; /* it is the name of the kubeconfig's servers */
        if (!is_configured && !may_send_token(collector))
                config.bearer_token = config.token_file = NULL;
        int r = hf_rest_client_new(collector->host, &config, &client, reterr_status);
        if (r != 0)
                return r;
        collector->client =
                hf_client_free(collector->client); /* ends its watch, which calls on_watch_end */
        collector->client = client;
        (void)snprintf(collector->server, sizeof collector->server, "%s", server);
        return 0;
}

static int list_leases(struct hfd_status_collector *collector, struct hf_cancel *token,
                       struct hfd_status_model *model, struct hf_status *reterr_status) {
        struct hf_request request = {.size = sizeof request,
                                     .verb = HF_VERB_LIST,
                                     .resource = lease_resource};
        char *list = NULL;
        size_t n = 0;
        int r = hf_client_do(collector->client, &request, token, &list, &n, reterr_status);

        if (r == 0) {
                r = hfd_status_model_set_leases(model, list, n);
                if (r != 0)
                        (void)hf_fail(reterr_status, r, "%s: the response is not a list of Leases",
                                      collector->server);
                else
                        memcpy(model->server, collector->server, sizeof model->server);
        }
        free(list);
        return r;
}

/*
 * Whether a request may be sent to an endpoint from a Lease: only if TLS verifies the server, and
 * the kubeconfig has a CA or a client certificate. The request may still carry no credentials; the
 * instance then refuses it, but its refusal shows that it runs.
 */
static bool may_query(const struct hfd_status_collector *collector, const char *endpoint) {
        return collector->tls && !collector->config.rest.insecure &&
               strncmp(endpoint, "https://", 8) == 0 &&
               (may_send_token(collector) || collector->config.cert_pem);
}

/* Reads the Leases from the further servers that the kubeconfig names, until a read succeeds. Only
 * needed while the model has no instances, so usually for the first read only. */
static int try_other_servers(struct hfd_status_collector *collector, struct hf_cancel *token,
                             struct hfd_status_model *model) {
        const struct hf_rest_config *rest = &collector->config.rest;
        struct hf_status other;
        int r = HF_E_UNAVAILABLE;

        for (size_t i = 0; i < rest->n_other_servers && r != 0; i++) {
                r = replace_client(collector, rest->other_servers[i], true, &other);
                if (r == 0)
                        r = list_leases(collector, token, model, &other);
        }
        return r;
}

int hfd_status_collector_read_leases(struct hfd_status_collector *collector,
                                     struct hf_cancel *token, struct hfd_status_model *model,
                                     struct hf_status *reterr_status) {
        struct hf_status other;
        int r = list_leases(collector, token, model, reterr_status);

        for (unsigned i = 0; i < model->n_instances && (r == HF_E_UNAVAILABLE || r == HF_E_TIMEOUT);
             i++) {
                const struct hfd_status_instance *instance = &model->instances[i];
                char endpoint[sizeof instance->endpoint];
                /* A copy, because list_leases overwrites the model. */
                memcpy(endpoint, instance->endpoint, sizeof endpoint);
                /* Skip instances whose last query failed, or that were not queried yet: most likely
                 * the read would fail as well, often after a timeout. */
                if (!may_query(collector, endpoint) || strcmp(endpoint, collector->server) == 0 ||
                    strcmp(instance->state, "unreachable") == 0 ||
                    strcmp(instance->state, HFD_STATUS_OTHER_CA_STATE) == 0)
                        continue;
                if (replace_client(collector, endpoint, false, &other) == 0 &&
                    list_leases(collector, token, model, &other) == 0)
                        r = 0;
        }
        if ((r == HF_E_UNAVAILABLE || r == HF_E_TIMEOUT) && model->n_instances == 0 &&
            try_other_servers(collector, token, model) == 0)
                r = 0;
        /* No server responds. The next attempt begins with the kubeconfig's server again, because a
         * restarted server is most likely to be there. */
        if ((r == HF_E_UNAVAILABLE || r == HF_E_TIMEOUT) &&
            strcmp(collector->server, collector->config.rest.server) != 0)
                (void)replace_client(collector, collector->config.rest.server, true, &other);
        return r;
}

bool hfd_status_collector_is_server_unreachable(const struct hfd_status_collector *collector,
                                                const struct hfd_status_model *model) {
        for (unsigned i = 0; i < model->n_instances; i++)
                if (strcmp(model->instances[i].endpoint, collector->server) == 0 &&
                    strcmp(model->instances[i].state, "unreachable") == 0)
                        return true;
        return false;
}

/* ---- the watch ---- */

/* Whether the Lease is the heartbeat of a node, which the model does not show. There are many in a
 * cluster of nodes, and each renewal is an event. */
static bool is_heartbeat(const struct hf_event *event) {
        static const char quoted[] = "\"" HFD_STATUS_NODE_NAMESPACE "\"";
        struct hf__span meta, ns;

        return hf__span_member((struct hf__span){event->object, event->n_object}, "metadata",
                               &meta) &&
               hf__span_member(meta, "namespace", &ns) && ns.n == sizeof quoted - 1 &&
               memcmp(ns.data, quoted, ns.n) == 0;
}

static void on_watch_event(void *ctx, const struct hf_event *event) {
        struct hfd_status_collector *collector = ctx;
        if (event->type != HF_EVENT_BOOKMARK && !is_heartbeat(event))
                collector->changed(collector->ctx);
}

static void on_watch_end(void *ctx, int error, const struct hf_status *status) {
        struct hfd_status_collector *collector = ctx;

        /* Copy `changed` and `ctx` first: once `watching` is false and mu is free, the calling
         * thread may open the next watch and replace them. */
        (void)pthread_mutex_lock(&collector->mu);
        void (*changed)(void *ctx) = collector->changed;
        void *changed_ctx = collector->ctx;
        collector->watching = false;
        (void)pthread_mutex_unlock(&collector->mu);
        changed(changed_ctx);
}

void hfd_status_collector_watch(struct hfd_status_collector *collector,
                                const struct hfd_status_model *model, void (*changed)(void *ctx),
                                void *ctx) {
        assert(changed && model);
        struct hf_watch_spec spec = {.size = sizeof spec,
                                     .resource = lease_resource,
                                     .resource_version = model->resource_version,
                                     .bookmarks = true,
                                     .lane = HF_LANE_WATCH};

        (void)pthread_mutex_lock(&collector->mu);
        bool open = collector->watching;
        collector->watching = true;
        if (!open) {
                collector->changed = changed;
                collector->ctx = ctx;
        }
        (void)pthread_mutex_unlock(&collector->mu);
        if (open)
                return;
        /* A watch that cannot be opened counts as ended, and the next refresh opens a new one. */
        if (hf_client_watch(collector->client, &spec, on_watch_event, on_watch_end, collector,
                            NULL) != 0)
                on_watch_end(collector, HF_E_CLOSED, NULL);
}

/* ---- the instances ---- */

static void on_response(void *ctx, const struct hf__http_result *result) {
        struct query *query = ctx;
        struct hfd_status_collector *collector = query->collector;
        int code = result->other_ca ? HFD_STATUS_OTHER_CA : 0;

        if (result->outcome == 0)
                code = result->code;
        (void)pthread_mutex_lock(&collector->mu);
        assert(collector->n_pending > 0); /* the caller waits, so its model is still there */
        hfd_status_model_set_response(query->instance, code, result->body ? result->body : "",
                                      result->body ? result->n_body : 0);
        /* An instance that does not respond costs a timeout each time, so it is skipped for some
         * refreshes. */
        query->instance->n_skipped = code == 0 ? 1 : 0;
        collector->n_pending--;
        (void)pthread_cond_signal(&collector->all_done);
        (void)pthread_mutex_unlock(&collector->mu);
}

/* Sends one request. on_response is called in every case, even if the engine does not accept the
 * request. */
static void query_instance(struct hfd_status_collector *collector, struct query *query) {
        char url[sizeof query->instance->endpoint + 16];
        const char *headers[] = {"Accept: application/json", "User-Agent: holdfastd-status",
                                 collector->authorization};
        struct hf__http_request request = {
                .method = "GET",
                .url = url,
                .headers = headers,
                .n_headers = collector->authorization ? 3 : 2,
                .tls = collector->tls,
                .deadline = hf_now(hf_host_clock(collector->host)) + QUERY_TIMEOUT,
                .max_body = MAX_RESPONSE,
                .on_done = on_response,
                .ctx = query,
        };

        (void)snprintf(url, sizeof url, "%s/debug/leader", query->instance->endpoint);
        (void)pthread_mutex_lock(&collector->mu);
        assert(collector->n_pending < HFD_STATUS_MAX_INSTANCES);
        collector->n_pending++;
        (void)pthread_mutex_unlock(&collector->mu);
        if (hf__http_submit(collector->engine, &request, NULL) != 0) {
                struct hf__http_result failure = {.outcome = HF_E_UNAVAILABLE};
                on_response(query, &failure);
        }
}

void hfd_status_collector_query_instances(struct hfd_status_collector *collector,
                                          struct hfd_status_model *model) {
        const struct hf_clock *clock = hf_host_clock(collector->host);

        assert(model->n_instances <= HFD_STATUS_MAX_INSTANCES);
        for (unsigned i = 0; i < model->n_instances; i++) {
                struct hfd_status_instance *instance = &model->instances[i];
                collector->queries[i] =
                        (struct query){.collector = collector, .instance = instance};
                if (!may_query(collector, instance->endpoint) ||
                    (instance->n_skipped > 0 && instance->n_skipped++ <= SKIPPED_REFRESHES))
                        continue;
                query_instance(collector, &collector->queries[i]);
        }
        (void)pthread_mutex_lock(&collector->mu);
        while (collector->n_pending > 0) /* each request has a deadline, so this wait ends */
                (void)clock->wait(clock->ctx, &collector->all_done, &collector->mu, HF_NSEC_NEVER);
        (void)pthread_mutex_unlock(&collector->mu);
}

/* ---- construction ---- */

static int make_engine(struct hfd_status_collector *collector) {
        const struct hf_rest_config *rest = &collector->config.rest;
        const struct hf__http_tls_config tls = {.ca_pem = rest->ca_pem,
                                                .cert_pem = rest->cert_pem,
                                                .key_pem = rest->key_pem};

        if (rest->bearer_token && may_send_token(collector) &&
            asprintf(&collector->authorization, "Authorization: Bearer %s", rest->bearer_token) <
                    0) {
                collector->authorization = NULL;
                return -ENOMEM;
        }
        int r = hf__http_engine_new(collector->host, "hf-status", &collector->engine);
        if (r == 0 && strncmp(rest->server, "https://", 8) == 0)
                r = hf__http_tls_new(&tls, &collector->tls);
        return r;
}

HF__CLEANUP_DEFINE(collector_cleanup, struct hfd_status_collector *, hfd_status_collector_free)

int hfd_status_collector_new(const struct hf_host *host, const char *kubeconfig,
                             struct hfd_status_collector **ret_collector,
                             struct hf_status *reterr_status) {
        HF__CLEANUP(hf__free_cleanup)
        struct hfd_status_collector *memory = calloc(1, sizeof *memory);
        if (!memory)
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        int r = hf__mutex_cond_init(&memory->mu, &memory->all_done);
        if (r != 0)
                return hf_fail(reterr_status, r, "%s", hf_strerror(r));
        HF__CLEANUP(collector_cleanup) struct hfd_status_collector *collector = HF__TAKE(memory);
        collector->host = host;
        r = hf__kubeconfig_load(kubeconfig, &collector->config, reterr_status);
        if (r != 0)
                return r;
        r = replace_client(collector, collector->config.rest.server, true, reterr_status);
        if (r != 0)
                return r;
        r = make_engine(collector);
        if (r != 0)
                return hf_fail(reterr_status, r, "cannot create an HTTP client: %s",
                               hf_strerror(r));
        *ret_collector = HF__TAKE(collector);
        return 0;
}

struct hfd_status_collector *hfd_status_collector_free(struct hfd_status_collector *collector) {
        if (!collector)
                return NULL;
        assert(collector->n_pending == 0); /* requests hold pointers into the caller's model */
        hf_client_free(collector->client);
        (void)hf__http_engine_free(collector->engine);
        (void)hf__http_tls_unref(collector->tls);
        if (collector->authorization)
                explicit_bzero(collector->authorization, strlen(collector->authorization));
        free(collector->authorization);
        hf__kubeconfig_done(&collector->config);
        (void)pthread_cond_destroy(&collector->all_done);
        (void)pthread_mutex_destroy(&collector->mu);
        free(collector);
        return NULL;
}
