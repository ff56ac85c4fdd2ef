/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See api_fixture.h. A request waits with a response of its own, which is moved to `last` only when
 * it is complete. So `last` is valid even after a test has failed in the middle of a request.
 */
#include "api_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api_core_request.h"
#include "base/json.h"
#include "hand_clock.h"
#include "server/cacher/feed/kind_feed.h"
#include "server/registry/loopback.h"
#include "server/resources/custom/custom_table.h"
#include "server/resources/rows/resource_table.h"
#include "server/storage/memory/store.h"
#include "server/storage/store.h"
#include "time_units.h"

static void wait_synced(struct api_fixture *f) {
        struct hf_cancel *token;
        struct hf_status status = {0};

        assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &token), 0);
        hf_cancel_set_deadline(token, in_msec(10000));
        assert_int_equal(hfd_cacher_wait_synced(f->cacher, token, &status), 0);
        hf_cancel_unref(token);
}

static unsigned char observers_of(const struct hfd_resource *resource) {
        return hfd_kind_feed_observes(resource);
}

static void on_observed(void *ctx, unsigned observers) {
        struct api_fixture *f = ctx;

        (void)observers;
        hfd_kind_feed_wake(f->feed);
}

static int set_up(void **state, const struct hf_clock *clock, bool custom) {
        struct api_fixture *f = calloc(1, sizeof *f);

        assert_non_null(f);
        api_response_init(&f->last);
        f->host = (struct hf_host){.size = sizeof f->host, .clock = clock};
        assert_int_equal(hfd_memory_store_new(&f->host, &f->store), 0);
        struct hfd_cacher_config config = {.store = f->store, .prefix = "/registry"};
        if (custom) {
                f->table = hfd_custom_table_new();
                assert_non_null(f->table);
                config.table = f->table;
                config.observers = observers_of;
                config.on_observed = on_observed;
                config.ctx = f;
        }
        assert_int_equal(hfd_cacher_new(&f->host, &config, &f->cacher), 0);
        if (custom)
                assert_int_equal(hfd_kind_feed_new(&f->host, f->cacher, f->table, &f->feed), 0);
        assert_int_equal(hfd_registry_new(&f->host, f->cacher, &f->registry), 0);
        assert_int_equal(hfd_cacher_start(f->cacher), 0);
        wait_synced(f);
        assert_int_equal(hfd_loopback_new(f->registry, &f->client), 0);
        *state = f;
        return 0;
}

int api_fixture_set_up(void **state) { return set_up(state, NULL, false); }

int api_fixture_set_up_custom(void **state) { return set_up(state, NULL, true); }

int api_fixture_set_up_custom_by_hand(void **state) {
        hand_clock_reset();
        return set_up(state, &hand_clock, true);
}

int api_fixture_set_up_by_hand(void **state) {
        hand_clock_reset();
        return set_up(state, &hand_clock, false);
}

int api_fixture_tear_down(void **state) {
        struct api_fixture *f = *state;

        hf_client_free(f->client);
        hfd_registry_free(f->registry);
        hfd_kind_feed_stop(f->feed);
        hfd_cacher_free(f->cacher);
        hfd_kind_feed_free(f->feed);
        f->store->ops->free(f->store);
        hfd_custom_table_free(f->table);
        api_response_deinit(&f->last);
        free(f);
        return 0;
}

/* ---- requests ---- */

/* Moves everything but the mutex and the condition, which no thread uses any more. */
int api_fixture_set_last(struct api_fixture *f, struct api_response *response) {
        free(f->last.body);
        f->last.error = response->error;
        f->last.fence_echoed = response->fence_echoed;
        f->last.status = response->status;
        f->last.body = response->body;
        response->body = NULL; /* f->last owns it now */
        api_response_deinit(response);
        return f->last.error;
}

int api_fixture_send(struct api_fixture *f, const struct hf_request *request) {
        struct api_response response;

        api_response_init(&response);
        assert_int_equal(hf_client_request(f->client, request, api_response_fill, &response, NULL),
                         0);
        (void)api_response_wait(&response);
        return api_fixture_set_last(f, &response);
}

int api_fixture_request_fenced(struct api_fixture *f, enum hf_verb verb,
                               struct hf_resource resource, const char *ns, const char *name,
                               const char *query, const char *body, const struct hf_fence *fence) {
        const struct hf_request request = {.size = sizeof request,
                                           .verb = verb,
                                           .resource = resource,
                                           .ns = ns,
                                           .name = name,
                                           .query = query,
                                           .body = body,
                                           .n_body = body ? strlen(body) : 0,
                                           .fence = fence};

        return api_fixture_send(f, &request);
}

int api_fixture_request(struct api_fixture *f, enum hf_verb verb, struct hf_resource resource,
                        const char *ns, const char *name, const char *query, const char *body) {
        return api_fixture_request_fenced(f, verb, resource, ns, name, query, body, NULL);
}

int api_fixture_request_subresource(struct api_fixture *f, struct hf_resource resource,
                                    const char *name, const char *subresource, const char *body) {
        const struct hf_request request = {.size = sizeof request,
                                           .verb = body ? HF_VERB_UPDATE : HF_VERB_GET,
                                           .resource = resource,
                                           .name = name,
                                           .subresource = subresource,
                                           .body = body,
                                           .n_body = body ? strlen(body) : 0};

        return api_fixture_send(f, &request);
}

int api_fixture_patch(struct api_fixture *f, struct hf_resource resource, const char *ns,
                      const char *name, enum hfd_subresource subresource, enum hfd_patch type,
                      const char *query, const char *body) {
        struct api_core_request request = {.request = {.verb = HFD_PATCH,
                                                       .subresource = subresource,
                                                       .patch = type,
                                                       .body = body,
                                                       .n_body = strlen(body)}};
        struct hfd_response answer = {0};

        request.request.resource =
                hfd_resource_find(resource.group, resource.version, resource.plural);
        (void)snprintf(request.request.ns, sizeof request.request.ns, "%s", ns ? ns : "");
        (void)snprintf(request.request.name, sizeof request.request.name, "%s", name);
        assert_true(hfd_options_parse(&request.request, query, &answer));
        (void)api_core_request_run(f->registry, &request);
        return api_fixture_set_last(f, &request.response);
}

void api_fixture_make(struct api_fixture *f, struct hf_resource resource, const char *ns,
                      const char *body) {
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, resource, ns, NULL, NULL, body), 0);
        assert_int_equal(f->last.status.http_code, 201);
}

int api_fixture_get(struct api_fixture *f, struct hf_resource resource, const char *ns,
                    const char *name) {
        return api_fixture_request(f, HF_VERB_GET, resource, ns, name, NULL, NULL);
}

int api_fixture_delete(struct api_fixture *f, struct hf_resource resource, const char *ns,
                       const char *name, const char *options) {
        return api_fixture_request(f, HF_VERB_DELETE, resource, ns, name, NULL, options);
}

void api_fixture_make_workspaces(struct api_fixture *f, int n) {
        for (int i = 0; i < n; i++) {
                char body[200];
                (void)snprintf(body, sizeof body,
                               "{\"metadata\":{\"name\":\"w%02d\","
                               "\"labels\":{\"parity\":\"%s\",\"a.b/n\":\"%d\"}}}",
                               i, i % 2 ? "odd" : "even", i);
                assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL,
                                                     NULL, body),
                                 0);
        }
}

size_t api_fixture_n_selected(struct api_fixture *f, const char *query) {
        assert_int_equal(api_fixture_request(f, HF_VERB_LIST, api_workspaces, NULL, NULL, query,
                                             NULL),
                         0);
        return api_fixture_count_at(f, "items");
}

/* ---- the last response ---- */

static struct hf__json *parse_last(const struct api_fixture *f) {
        struct hf__json *json = NULL;

        assert_non_null(f->last.body);
        assert_int_equal(hf__json_parse(f->last.body, strlen(f->last.body), &json, NULL), 0);
        return json;
}

const char *api_fixture_text_at(const struct api_fixture *f, const char *path) {
        static char texts[4][600];
        static unsigned next;
        char *text = texts[next++ % 4];
        struct hf__json *json = parse_last(f);
        const char *value = hf__json_string(json, path);

        (void)snprintf(text, sizeof texts[0], "%s", value ? value : "");
        hf__json_free(json);
        return text;
}

size_t api_fixture_count_at(const struct api_fixture *f, const char *path) {
        struct hf__json *json = parse_last(f);
        size_t n = hf__json_count(hf__json_path(json, path));

        hf__json_free(json);
        return n;
}

void api_fixture_expect_failure(const struct api_fixture *f, int code, const char *reason,
                                const char *message) {
        assert_int_equal(f->last.status.http_code, code);
        assert_string_equal(api_fixture_text_at(f, "reason"), reason);
        assert_string_equal(api_fixture_text_at(f, "message"), message);
        assert_string_equal(api_fixture_text_at(f, "status"), "Failure");
}
