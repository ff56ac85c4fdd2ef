/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A server in a box, for unit tests: the API's core over the memory store, with its loopback
 * client, and calls that wait. To be included after cmocka; everything is static. Ends each test
 * with tear_down; main frees last.body.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/client.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/cacher/cacher_private.h"
#include "server/handlers/discovery.h"
#include "server/handlers/openapi.h"
#include "server/registry/loopback.h"
#include "server/registry/registry.h"
#include "server/registry/request.h"
#include "server/storage/memory/store.h"
#include "server/storage/store.h"

/* ---- a server in a box ---- */

struct box {
        struct hf_host host;
        struct hfd_store *store;
        struct hfd_cacher *cacher;
        struct hfd_registry *registry;
        struct hf_client *client;
};

static inline int set_up(void **state) {
        struct box *box = calloc(1, sizeof *box);
        struct hf_status status = {0};

        box->host.size = sizeof box->host;
        assert_int_equal(hfd_memory_store_new(&box->host, &box->store), 0);
        struct hfd_cacher_config config = {.store = box->store, .prefix = "/registry"};
        assert_int_equal(hfd_cacher_new(&box->host, &config, &box->cacher), 0);
        assert_int_equal(hfd_registry_new(&box->host, box->cacher, &box->registry), 0);
        assert_int_equal(hfd_cacher_start(box->cacher), 0);
        struct hf_cancel *token;
        assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &token), 0);
        hf_cancel_set_deadline(token, hf_now(hf_clock_system()) + 10 * HF_NSEC_PER_SEC);
        assert_int_equal(hfd_cacher_wait_synced(box->cacher, token, &status), 0);
        hf_cancel_unref(token);
        assert_int_equal(hfd_loopback_new(box->registry, &box->client), 0);
        *state = box;
        return 0;
}

static inline int tear_down(void **state) {
        struct box *box = *state;

        hf_client_free(box->client);
        hfd_registry_free(box->registry);
        hfd_cacher_free(box->cacher);
        box->store->ops->free(box->store);
        free(box);
        return 0;
}

/* ---- calls that wait ---- */

struct result {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        bool done;
        int error;
        bool echoed;
        char *body;
        struct hf_status status;
};

static inline void on_reply(void *ctx, const struct hf_response *reply) {
        struct result *r = ctx;

        pthread_mutex_lock(&r->mu);
        r->done = true;
        r->error = reply->error;
        r->echoed = reply->fence_echoed;
        r->status = reply->status;
        r->body = reply->body ? strndup(reply->body, reply->n_body) : NULL;
        pthread_cond_signal(&r->cond);
        pthread_mutex_unlock(&r->mu);
}

static const struct hf_resource leases
        __attribute__((unused)) = {"coordination.k8s.io", "v1", "leases"};
static const struct hf_resource configmaps __attribute__((unused)) = {"", "v1", "configmaps"};
static const struct hf_resource namespaces __attribute__((unused)) = {"", "v1", "namespaces"};
static const struct hf_resource workspaces
        __attribute__((unused)) = {"tenancy.holdfast.dev", "v1alpha1", "workspaces"};

/* The last answer; its body is freed by the next call. */
static struct result last;

static inline int run(struct box *box, const struct hf_request *request) {
        struct result r = {.mu = PTHREAD_MUTEX_INITIALIZER};

        pthread_cond_init(&r.cond, NULL);
        assert_int_equal(hf_client_request(box->client, request, on_reply, &r, NULL), 0);
        pthread_mutex_lock(&r.mu);
        while (!r.done)
                pthread_cond_wait(&r.cond, &r.mu);
        pthread_mutex_unlock(&r.mu);
        pthread_cond_destroy(&r.cond);
        pthread_mutex_destroy(&r.mu);
        free(last.body);
        last = r;
        return r.error;
}

static inline int call_fenced(struct box *box, enum hf_verb verb, struct hf_resource resource,
                              const char *ns, const char *name, const char *query, const char *body,
                              const struct hf_fence *fence) {
        struct hf_request request = {.verb = verb,
                                     .resource = resource,
                                     .ns = ns,
                                     .name = name,
                                     .query = query,
                                     .body = body,
                                     .n_body = body ? strlen(body) : 0,
                                     .fence = fence};
        return run(box, &request);
}

/* On a subresource; body NULL gets it. */
static inline int do_part(struct box *box, struct hf_resource resource, const char *name,
                          const char *subresource, const char *body) {
        struct hf_request request = {.verb = body ? HF_VERB_UPDATE : HF_VERB_GET,
                                     .resource = resource,
                                     .name = name,
                                     .subresource = subresource,
                                     .body = body,
                                     .n_body = body ? strlen(body) : 0};
        return run(box, &request);
}

static inline int do_call(struct box *box, enum hf_verb verb, struct hf_resource resource,
                          const char *ns, const char *name, const char *query, const char *body) {
        return call_fenced(box, verb, resource, ns, name, query, body, NULL);
}

/* ---- patches, asked of the core itself: a client has no verb for them ---- */

struct patch_call {
        struct hfd_request request; /* first: done is given this */
        struct result result;
};

static inline void on_patched(struct hfd_request *request, const struct hfd_response *response) {
        struct patch_call *patch = (struct patch_call *)request;
        struct hf_response reply = {.error = response->status.error,
                                    .status = response->status,
                                    .body = response->body->data,
                                    .n_body = response->body->n,
                                    .fence_echoed = response->fence_compared};

        reply.status.http_code = response->code;
        on_reply(&patch->result, &reply);
}

/* Makes the call and waits for its answer, whose body is the caller's. */
static inline void await_patch(struct box *box, struct patch_call *patch) {
        hfd_registry_serve(box->registry, &patch->request);
        pthread_mutex_lock(&patch->result.mu);
        while (!patch->result.done)
                pthread_cond_wait(&patch->result.cond, &patch->result.mu);
        pthread_mutex_unlock(&patch->result.mu);
        hfd_options_done(&patch->request.options);
}

static inline int do_patch(struct box *box, struct hf_resource resource, const char *ns,
                           const char *name, enum hfd_subresource subresource, enum hfd_patch type,
                           const char *query, const char *body) {
        struct patch_call patch = {.request = {.verb = HFD_PATCH,
                                               .subresource = subresource,
                                               .patch = type,
                                               .body = body,
                                               .n_body = strlen(body),
                                               .deadline = hf_now(hf_clock_system()) +
                                                           10 * HF_NSEC_PER_SEC,
                                               .done = on_patched},
                                   .result = {.mu = PTHREAD_MUTEX_INITIALIZER,
                                              .cond = PTHREAD_COND_INITIALIZER}};
        struct hfd_response response = {0};

        patch.request.resource =
                hfd_resource_find(resource.group, resource.version, resource.plural);
        (void)snprintf(patch.request.ns, sizeof patch.request.ns, "%s", ns ? ns : "");
        (void)snprintf(patch.request.name, sizeof patch.request.name, "%s", name);
        assert_true(hfd_options_parse(&patch.request, query, &response));
        await_patch(box, &patch);
        free(last.body);
        last = patch.result;
        return last.error;
}

/* A text of the last answer's body; static buffers in turn. */
static inline const char *text_at(const char *path) {
        static char texts[4][600];
        static unsigned turn;
        struct hf__json *json = NULL;
        char *text = texts[turn++ % 4];

        *text = '\0';
        assert_non_null(last.body);
        assert_int_equal(hf__json_parse(last.body, strlen(last.body), &json, NULL), 0);
        const char *value = hf__json_string(json, path);
        if (value)
                (void)snprintf(text, sizeof texts[0], "%s", value);
        hf__json_free(json);
        return text;
}

static inline size_t count_at(const char *path) {
        struct hf__json *json = NULL;

        assert_int_equal(hf__json_parse(last.body, strlen(last.body), &json, NULL), 0);
        size_t n = hf__json_count(hf__json_path(json, path));
        hf__json_free(json);
        return n;
}

static inline void expect_status(int code, const char *reason, const char *message) {
        assert_int_equal(last.status.http_code, code);
        assert_string_equal(text_at("reason"), reason);
        assert_string_equal(text_at("message"), message);
        assert_string_equal(text_at("status"), "Failure");
}

static inline void make_workspaces(struct box *box, int n) {
        for (int i = 0; i < n; i++) {
                char body[200];
                (void)snprintf(body, sizeof body,
                               "{\"metadata\":{\"name\":\"w%02d\",\"labels\":{\"parity\":\"%s\","
                               "\"a.b/n\":\"%d\"}}}",
                               i, i % 2 ? "odd" : "even", i);
                assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL, body),
                                 0);
        }
}

static inline size_t n_selected(struct box *box, const char *query) {
        assert_int_equal(do_call(box, HF_VERB_LIST, workspaces, NULL, NULL, query, NULL), 0);
        return count_at("items");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
