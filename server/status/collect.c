/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gathering the picture over the network. Two ways out: an API client for the Leases (one server at
 * a time, the kubeconfig's to begin with), and an HTTP engine for the /debug/leader of each
 * instance at the endpoint that its identity Lease names.
 *
 * Credentials. Whoever may write Leases chooses those endpoints, so they get no secret: only https
 * with verification is asked, and a bearer token goes to a verified server only. A client
 * certificate shows who asks and cannot be used by who is asked.
 *
 * Threads. Everything belongs to the command's one thread, but for what `mu` guards: the answers,
 * which come on the engine's thread, and whether the watch is open, which ends on the client's.
 */
#include "server/status/status.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/http/engine.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include "client/kubeconfig.h"

#define LIST_TIMEOUT (3 * HF_NSEC_PER_SEC)
#define ASK_TIMEOUT  (2 * HF_NSEC_PER_SEC)
#define PEACE        4 /* rounds for which one that did not answer is not asked */
#define MAX_ANSWER   ((size_t)64 << 10)

static const struct hf_resource lease_resource = {"coordination.k8s.io", "v1", "leases"};

struct ask {
        struct hfd_status_collector *gather;
        struct hfd_status_instance *instance; /* borrowed until answered */
};

struct hfd_status_collector {
        /* immutable */
        const struct hf_host *host;     /* borrowed */
        struct hf__kubeconfig config;   /* owned */
        struct hf__http_engine *engine; /* owned */
        struct hf__http_tls *tls;       /* owned; NULL = plain http, then no instance is asked */
        char *authorization;            /* owned; the header line; NULL = none */
        /* the owner's only */
        char server[160];         /* that client speaks to */
        struct hf_client *client; /* owned */
        struct ask asks[HFD_STATUS_MAX_INSTANCES];
        void (*changed)(void *ctx);
        void *ctx;

        pthread_mutex_t mu;
        pthread_cond_t answered;
        /* guarded by mu */
        unsigned n_asked; /* not answered yet */
        bool watching;
};

/* ---- the server of the Leases ---- */

static int connect_to(struct hfd_status_collector *gather, const char *server, bool is_own,
                      struct hf_status *reterr_status) {
        struct hf_rest_config config = gather->config.rest;
        struct hf_client *client = NULL;

        config.server = server;
        config.timeout = LIST_TIMEOUT;
        config.user_agent = "holdfastd-status";
        if (!is_own)
                config.server_name = NULL; /* the name belongs to the kubeconfig's server */
        int r = hf_rest_client_new(gather->host, &config, &client, reterr_status);
        if (r != 0)
                return r;
        gather->client = hf_client_free(gather->client); /* its watch has ended with it */
        gather->client = client;
        (void)snprintf(gather->server, sizeof gather->server, "%s", server);
        return 0;
}

static int list_leases(struct hfd_status_collector *gather, struct hf_cancel *token,
                       struct hfd_status_model *picture, struct hf_status *reterr_status) {
        struct hf_request call = {.verb = HF_VERB_LIST, .resource = lease_resource};
        char *list = NULL;
        size_t n = 0;
        int r = hf_client_do(gather->client, &call, token, &list, &n, reterr_status);

        if (r == 0) {
                r = hfd_status_take_leases(picture, list, n);
                if (r != 0)
                        (void)hf_fail(reterr_status, r, "%s: the answer is not a list of Leases",
                                      gather->server);
                else
                        memcpy(picture->server, gather->server, sizeof picture->server);
        }
        free(list);
        return r;
}

static bool may_ask(const struct hfd_status_collector *gather, const char *endpoint) {
        return gather->tls && !gather->config.rest.insecure &&
               strncmp(endpoint, "https://", 8) == 0;
}

int hfd_status_collector_leases(struct hfd_status_collector *gather, struct hf_cancel *token,
                                struct hfd_status_model *picture, struct hf_status *reterr_status) {
        struct hf_status other;
        int r = list_leases(gather, token, picture, reterr_status);

        for (unsigned i = 0;
             i < picture->n_instances && (r == HF_E_UNAVAILABLE || r == HF_E_TIMEOUT); i++) {
                const struct hfd_status_instance *instance = &picture->instances[i];
                char endpoint[sizeof instance->endpoint];
                memcpy(endpoint, instance->endpoint,
                       sizeof endpoint); /* the picture is about to change */
                /* Who did not answer a moment ago is not waited for again. */
                if (!may_ask(gather, endpoint) || strcmp(endpoint, gather->server) == 0 ||
                    strcmp(instance->state, "unreachable") == 0)
                        continue;
                if (connect_to(gather, endpoint, false, &other) == 0 &&
                    list_leases(gather, token, picture, &other) == 0)
                        r = 0;
        }
        /* All are away: whoever comes back is most likely found where the kubeconfig says. */
        if ((r == HF_E_UNAVAILABLE || r == HF_E_TIMEOUT) &&
            strcmp(gather->server, gather->config.rest.server) != 0)
                (void)connect_to(gather, gather->config.rest.server, true, &other);
        return r;
}

bool hfd_status_collector_is_deaf(const struct hfd_status_collector *gather,
                                  const struct hfd_status_model *picture) {
        for (unsigned i = 0; i < picture->n_instances; i++)
                if (strcmp(picture->instances[i].endpoint, gather->server) == 0 &&
                    strcmp(picture->instances[i].state, "unreachable") == 0)
                        return true;
        return false;
}

/* ---- the watch ---- */

static void on_event(void *ctx, const struct hf_event *event) {
        struct hfd_status_collector *gather = ctx;
        if (event->type != HF_EVENT_BOOKMARK)
                gather->changed(gather->ctx);
}

static void on_end(void *ctx, int error, const struct hf_status *status) {
        struct hfd_status_collector *gather = ctx;

        (void)pthread_mutex_lock(&gather->mu);
        gather->watching = false;
        (void)pthread_mutex_unlock(&gather->mu);
        gather->changed(gather->ctx);
}

void hfd_status_collector_watch(struct hfd_status_collector *gather,
                                const struct hfd_status_model *picture, void (*changed)(void *ctx),
                                void *ctx) {
        struct hf_watch_spec spec = {.resource = lease_resource,
                                     .resource_version = picture->resource_version,
                                     .bookmarks = true,
                                     .lane = HF_LANE_WATCH};

        (void)pthread_mutex_lock(&gather->mu);
        bool open = gather->watching;
        gather->watching = true;
        (void)pthread_mutex_unlock(&gather->mu);
        if (open)
                return;
        gather->changed = changed;
        gather->ctx = ctx;
        /* One that cannot be opened has ended at once: the next round tries again. */
        if (hf_client_watch(gather->client, &spec, on_event, on_end, gather, NULL) != 0)
                on_end(gather, HF_E_CLOSED, NULL);
}

/* ---- the instances ---- */

static void on_answer(void *ctx, const struct hf__http_result *result) {
        struct ask *ask = ctx;
        struct hfd_status_collector *gather = ask->gather;
        int code = result->outcome == 0 ? result->code : 0;

        (void)pthread_mutex_lock(&gather->mu);
        hfd_status_take_response(ask->instance, code, result->body ? result->body : "",
                                 result->body ? result->n_body : 0);
        ask->instance->n_unasked = code == 0;
        gather->n_asked--;
        (void)pthread_cond_signal(&gather->answered);
        (void)pthread_mutex_unlock(&gather->mu);
}

static void ask_instance(struct hfd_status_collector *gather, struct ask *ask) {
        char url[sizeof ask->instance->endpoint + 16];
        const char *headers[] = {"Accept: application/json", "User-Agent: holdfastd-status",
                                 gather->authorization};
        struct hf__http_request request = {
                .method = "GET",
                .url = url,
                .headers = headers,
                .n_headers = gather->authorization ? 3 : 2,
                .tls = gather->tls,
                .deadline = hf_now(hf_host_clock(gather->host)) + ASK_TIMEOUT,
                .max_body = MAX_ANSWER,
                .on_done = on_answer,
                .ctx = ask,
        };

        (void)snprintf(url, sizeof url, "%s/debug/leader", ask->instance->endpoint);
        (void)pthread_mutex_lock(&gather->mu);
        gather->n_asked++;
        (void)pthread_mutex_unlock(&gather->mu);
        if (hf__http_submit(gather->engine, &request, NULL) != 0) {
                struct hf__http_result nothing = {.outcome = HF_E_UNAVAILABLE};
                on_answer(ask, &nothing);
        }
}

void hfd_status_collector_responses(struct hfd_status_collector *gather,
                                    struct hfd_status_model *picture) {
        const struct hf_clock *clock = hf_host_clock(gather->host);

        for (unsigned i = 0; i < picture->n_instances; i++) {
                struct hfd_status_instance *instance = &picture->instances[i];
                gather->asks[i] = (struct ask){.gather = gather, .instance = instance};
                if (!may_ask(gather, instance->endpoint) ||
                    (instance->n_unasked && instance->n_unasked++ <= PEACE))
                        continue;
                ask_instance(gather, &gather->asks[i]);
        }
        (void)pthread_mutex_lock(&gather->mu);
        while (gather->n_asked > 0) /* the engine answers by the deadline, always */
                (void)clock->wait(clock->ctx, &gather->answered, &gather->mu, HF_NSEC_NEVER);
        (void)pthread_mutex_unlock(&gather->mu);
}

/* ---- the gatherer ---- */

static int make_engine(struct hfd_status_collector *gather) {
        const struct hf_rest_config *rest = &gather->config.rest;
        const struct hf__http_tls_config tls = {.ca_pem = rest->ca_pem,
                                                .cert_pem = rest->cert_pem,
                                                .key_pem = rest->key_pem};

        if (rest->bearer_token &&
            asprintf(&gather->authorization, "Authorization: Bearer %s", rest->bearer_token) < 0) {
                gather->authorization = NULL;
                return -ENOMEM;
        }
        int r = hf__http_engine_new(gather->host, "hf-status", &gather->engine);
        if (r == 0 && strncmp(rest->server, "https://", 8) == 0)
                r = hf__http_tls_new(&tls, &gather->tls);
        return r;
}

int hfd_status_collector_new(const struct hf_host *host, const char *kubeconfig,
                             struct hfd_status_collector **ret_gather,
                             struct hf_status *reterr_status) {
        struct hfd_status_collector *gather = calloc(1, sizeof *gather);
        if (!gather)
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        gather->host = host;
        int r = hf__mutex_init(&gather->mu);
        if (r == 0 && (r = hf_cond_init(&gather->answered)) != 0)
                (void)pthread_mutex_destroy(&gather->mu);
        if (r != 0) {
                free(gather);
                return hf_fail(reterr_status, r, "%s", hf_strerror(r));
        }
        r = hf__kubeconfig_load(kubeconfig, &gather->config, reterr_status);
        if (r == 0)
                r = connect_to(gather, gather->config.rest.server, true, reterr_status);
        if (r == 0 && (r = make_engine(gather)) != 0)
                (void)hf_fail(reterr_status, r, "cannot make an HTTP client: %s", hf_strerror(r));
        if (r != 0) {
                hfd_status_collector_free(gather);
                return r;
        }
        *ret_gather = gather;
        return 0;
}

struct hfd_status_collector *hfd_status_collector_free(struct hfd_status_collector *gather) {
        if (!gather)
                return NULL;
        hf_client_free(gather->client);
        (void)hf__http_engine_free(gather->engine);
        (void)hf__http_tls_unref(gather->tls);
        if (gather->authorization)
                explicit_bzero(gather->authorization, strlen(gather->authorization));
        free(gather->authorization);
        hf__kubeconfig_done(&gather->config);
        (void)pthread_cond_destroy(&gather->answered);
        (void)pthread_mutex_destroy(&gather->mu);
        free(gather);
        return NULL;
}
