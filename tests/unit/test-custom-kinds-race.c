/* SPDX-License-Identifier: Apache-2.0 */
/* Reads, writes and watches of custom objects while their definition is changed, deleted and
 * created. */
#undef NDEBUG
#include "api_fixture.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "gadget_definition.h"
#include "patience.h"
#include "store_client.h"

static void put_definition(struct api_fixture *f, const char *text) {
        assert_true(store_client_put(f->store, CRD, text) > 0);
}

#define ROUNDS 60

struct storm {
        struct api_fixture *f;
        atomic_bool stop;
        atomic_int n_reads, n_events, n_watches_open;
};

static int send(struct api_fixture *f, const struct hf_request *request, char **ret_body) {
        struct api_response response;

        api_response_init(&response);
        assert(hf_client_request(f->client, request, api_response_fill, &response, NULL) == 0);
        int r = api_response_wait(&response);
        if (ret_body) {
                *ret_body = response.body;
                response.body = NULL;
        }
        api_response_deinit(&response);
        return r;
}

static void *write_objects(void *ctx) {
        struct storm *storm = ctx;

        for (int i = 0; !atomic_load(&storm->stop); i++) {
                char name[8], body[160];
                (void)snprintf(name, sizeof name, "g%d", i % 5);
                (void)snprintf(body, sizeof body,
                               "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Gadget\","
                               "\"metadata\":{\"name\":\"%s\"},\"spec\":{\"n\":%d}}",
                               name, i);
                struct hf_request request = {.size = sizeof request,
                                             .verb = i % 3 == 2 ? HF_VERB_DELETE : HF_VERB_CREATE,
                                             .resource = gadgets,
                                             .ns = "default",
                                             .name = i % 3 == 2 ? name : NULL,
                                             .body = i % 3 == 2 ? NULL : body,
                                             .n_body = i % 3 == 2 ? 0 : strlen(body)};
                (void)send(storm->f, &request, NULL);
        }
        return NULL;
}

/* Every object has the type of the row, and the default of one of the definitions. */
static void check_object(const struct hf__json *object) {
        const char *text = hf__json_string(object, "spec.text");

        assert(strcmp(hf__json_string(object, "apiVersion"), "example.com/v1") == 0);
        assert(strcmp(hf__json_string(object, "kind"), "Gadget") == 0);
        assert(text && strlen(text) > 0 && strstr("first second x", text));
}

static void *read_objects(void *ctx) {
        struct storm *storm = ctx;
        const struct hf_request request = {.size = sizeof request,
                                           .verb = HF_VERB_LIST,
                                           .resource = gadgets,
                                           .ns = "default"};

        while (!atomic_load(&storm->stop)) {
                struct hf__json *json = NULL;
                char *body = NULL;
                if (send(storm->f, &request, &body) == 0) {
                        assert(hf__json_parse(body, strlen(body), &json, NULL) == 0);
                        for (const struct hf__json *o = hf__json_first(hf__json_get(json, "items"));
                             o; o = hf__json_next(o))
                                check_object(o);
                        atomic_fetch_add(&storm->n_reads, 1);
                }
                hf__json_free(json);
                free(body);
        }
        return NULL;
}

static void on_event(void *ctx, const struct hf_event *event) {
        struct storm *storm = ctx;
        struct hf__json *json = NULL;

        assert(hf__json_parse(event->object, event->n_object, &json, NULL) == 0);
        check_object(json);
        hf__json_free(json);
        atomic_fetch_add(&storm->n_events, 1);
}

static void on_end(void *ctx, int error, const struct hf_status *status) {
        struct storm *storm = ctx;

        atomic_fetch_sub(&storm->n_watches_open, 1);
}

/* Begins watches while definitions change. Each watch ends when the kind with which it began is
 * replaced. */
static void *watch_objects(void *ctx) {
        struct storm *storm = ctx;
        const struct hf_watch_spec spec = {.size = sizeof spec, .resource = gadgets};
        uint64_t id;

        while (!atomic_load(&storm->stop)) {
                if (atomic_load(&storm->n_watches_open) >= 4)
                        continue;
                atomic_fetch_add(&storm->n_watches_open, 1);
                assert(hf_client_watch(storm->f->client, &spec, on_event, on_end, storm, &id) == 0);
        }
        return NULL;
}

static void test_definitions_change_while_objects_are_used(void **state) {
        struct api_fixture *f = *state;
        struct storm storm = {.f = f};
        void *(*const mains[])(void *) = {write_objects, write_objects, read_objects,
                                          watch_objects};
        pthread_t threads[sizeof mains / sizeof mains[0]];

        put_definition(f, DEFINITION(VERSION("v1", "true", "first")));
        PATIENCE_AWAIT(api_fixture_get(f, gadgets, "default", "none") == HF_E_NOT_FOUND &&
                       f->last.status.http_code == 404 &&
                       strstr(f->last.body, "gadgets.example.com"));
        for (size_t i = 0; i < sizeof mains / sizeof mains[0]; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, mains[i], &storm), 0);
        for (int i = 0; i < ROUNDS; i++) {
                int n_reads = atomic_load(&storm.n_reads);
                if (i % 10 == 9)
                        assert_true(store_client_delete(f->store, CRD) > 0);
                else if (i % 2 == 0)
                        put_definition(f, DEFINITION(VERSION("v1", "true", "second")));
                else
                        put_definition(f,
                                       DEFINITION(VERSION("v1", "false",
                                                          "x") "," VERSION("v2", "true", "first")));
                if (i % 10 != 9)
                        PATIENCE_AWAIT(atomic_load(&storm.n_reads) > n_reads);
        }
        put_definition(f, DEFINITION(VERSION("v1", "true", "second")));
        PATIENCE_AWAIT(atomic_load(&storm.n_events) > 0);
        atomic_store(&storm.stop, true);
        for (size_t i = 0; i < sizeof mains / sizeof mains[0]; i++)
                assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(store_client_delete(f->store, CRD) > 0);
        PATIENCE_AWAIT(atomic_load(&storm.n_watches_open) == 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_definitions_change_while_objects_are_used,
                                                api_fixture_set_up_custom, api_fixture_tear_down),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
