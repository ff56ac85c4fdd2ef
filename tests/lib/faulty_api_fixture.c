/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See faulty_api_fixture.h. The API is freed before the store, because it calls the store until
 * then.
 */
#include "faulty_api_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/registry/loopback.h"
#include "store_client.h"
#include "time_units.h"

static void on_replaced(void *ctx) {
        struct faulty_api_fixture *f = ctx;

        atomic_fetch_add(&f->n_replaced, 1);
}

int faulty_api_fixture_set_up(void **state) {
        struct faulty_api_fixture *f = calloc(1, sizeof *f);

        assert_non_null(f);
        f->host.size = sizeof f->host;
        faulty_store_init(&f->store, &f->host);
        const struct hfd_cacher_config config = {.store = &f->store.base,
                                                 .prefix = "/registry",
                                                 .on_history_replaced = on_replaced,
                                                 .ctx = f};
        assert_int_equal(hfd_cacher_new(&f->host, &config, &f->cacher), 0);
        assert_int_equal(hfd_registry_new(&f->host, f->cacher, &f->registry), 0);
        assert_int_equal(hfd_cacher_start(f->cacher), 0);
        assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &f->token), 0);
        hf_cancel_set_deadline(f->token, in_msec(60000));
        assert_int_equal(hfd_cacher_wait_synced(f->cacher, f->token, NULL), 0);
        assert_int_equal(hfd_loopback_new(f->registry, &f->client), 0);
        *state = f;
        return 0;
}

int faulty_api_fixture_tear_down(void **state) {
        struct faulty_api_fixture *f = *state;

        hf_client_free(f->client);
        hfd_registry_free(f->registry);
        hfd_cacher_free(f->cacher);
        faulty_store_deinit(&f->store);
        hf_cancel_unref(f->token);
        free(f);
        return 0;
}

int faulty_api_fixture_request(struct faulty_api_fixture *f, enum hf_verb verb, const char *name,
                               const char *body, struct hf_status *ret_status) {
        const struct hf_request request = {.size = sizeof request,
                                           .verb = verb,
                                           .resource = api_workspaces,
                                           .name = name,
                                           .body = body,
                                           .n_body = body ? strlen(body) : 0};

        return hf_client_do(f->client, &request, f->token, NULL, NULL, ret_status);
}

void faulty_api_fixture_create(struct faulty_api_fixture *f, const char *name) {
        char body[128];

        (void)snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"%s\"}}", name);
        assert_int_equal(faulty_api_fixture_request(f, HF_VERB_CREATE, NULL, body, NULL), 0);
}

struct client_watch *faulty_api_fixture_watch(struct faulty_api_fixture *f) {
        const struct hf_watch_spec spec = {.size = sizeof spec, .resource = api_workspaces};

        return client_watch_new(f->client, &spec);
}

int faulty_api_fixture_end_watch(struct faulty_api_fixture *f, struct client_watch *watch,
                                 size_t n) {
        hfd_cacher_end_watches(f->cacher);
        client_watch_await(watch, n);
        return client_watch_await_end(watch);
}

void faulty_api_fixture_put(struct faulty_api_fixture *f, const char *key, const char *text) {
        assert_true(store_client_put(f->store.inner, key, text) > 0);
}
