/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that lack an argument: each function of the client returns -EINVAL, and does nothing else.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/client_port.h>
#include <holdfast/condition.h>
#include <holdfast/definition.h>
#include <holdfast/finalizer.h>
#include <holdfast/informer.h>
#include <holdfast/owner.h>
#include <holdfast/upsert.h>
#include <holdfast/workqueue.h>

static const struct hf_host host = {.size = sizeof host};
static unsigned n_calls; /* calls of the implementation below */

static int count_request(struct hf_client *self, const struct hf_request *request,
                         hf_response_fn done, void *ctx, uint64_t *ret_id) {
        n_calls++;
        return 0;
}
static int count_watch(struct hf_client *self, const struct hf_watch_spec *spec,
                       hf_event_fn on_event, hf_watch_end_fn on_end, void *ctx, uint64_t *ret_id) {
        n_calls++;
        return 0;
}
static const struct hf_client_ops ops = {.size = sizeof ops,
                                         .request = count_request,
                                         .watch = count_watch};
static struct hf_client client = {.ops = &ops, .host = &host};

static void on_response(void *ctx, const struct hf_response *response) {}
static void on_event(void *ctx, const struct hf_event *event) {}
static void on_end(void *ctx, int error, const struct hf_status *status) {}

static void assert_request(const struct hf_request *request, int result) {
        n_calls = 0;
        assert_int_equal(hf_client_request(&client, request, on_response, NULL, NULL), result);
        assert_int_equal(n_calls, result == 0);
}

/* Each row: the arguments of a verb, and whether they are enough. */
static void test_a_request_needs_what_its_verb_uses(void **state) {
        static const struct {
                enum hf_verb verb;
                const char *name;
                const char *body;
                int result;
        } cases[] = {
                {HF_VERB_GET, "a", NULL, 0},
                {HF_VERB_GET, "", NULL, -EINVAL},
                {HF_VERB_GET, NULL, NULL, -EINVAL},
                {HF_VERB_LIST, NULL, NULL, 0},
                {HF_VERB_CREATE, NULL, "{}", 0},
                {HF_VERB_CREATE, NULL, "", -EINVAL},
                {HF_VERB_CREATE, "a", NULL, -EINVAL},
                {HF_VERB_UPDATE, "a", "{}", 0},
                {HF_VERB_UPDATE, "a", "", -EINVAL},
                {HF_VERB_UPDATE, NULL, "{}", -EINVAL},
                {HF_VERB_UPDATE, "", "{}", -EINVAL},
                {HF_VERB_DELETE, "a", NULL, 0},
                {HF_VERB_DELETE, "a", "{}", 0},
                {HF_VERB_DELETE, NULL, NULL, -EINVAL},
                {HF_VERB_DELETE_COLLECTION, NULL, NULL, 0},
                {(enum hf_verb)99, "a", "{}", -EINVAL},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf_request request = {.size = sizeof request,
                                             .verb = cases[i].verb,
                                             .resource = {"", "v1", "things"},
                                             .name = cases[i].name,
                                             .body = cases[i].body,
                                             .n_body = cases[i].body ? strlen(cases[i].body) : 0};
                assert_request(&request, cases[i].result);
        }
        struct hf_request request = {.size = sizeof request,
                                     .verb = HF_VERB_DELETE,
                                     .resource = {"", "v1", "things"},
                                     .name = "a",
                                     .n_body = 2}; /* bytes without a body */
        assert_request(&request, -EINVAL);
}

static const struct hf_resource incomplete[] = {{"", NULL, "things"},
                                                {"", "", "things"},
                                                {"", "v1", NULL},
                                                {"", "v1", ""},
                                                {"", NULL, NULL}};
#define N_INCOMPLETE (sizeof incomplete / sizeof incomplete[0])

static void test_a_request_and_a_watch_need_all_arguments(void **state) {
        struct hf_request request = {.size = sizeof request,
                                     .verb = HF_VERB_LIST,
                                     .resource = {"", "v1", "things"}};
        struct hf_watch_spec spec = {.size = sizeof spec, .resource = {"", "v1", "things"}};

        n_calls = 0;
        assert_int_equal(hf_client_request(NULL, &request, on_response, NULL, NULL), -EINVAL);
        assert_int_equal(hf_client_request(&client, NULL, on_response, NULL, NULL), -EINVAL);
        assert_int_equal(hf_client_request(&client, &request, NULL, NULL, NULL), -EINVAL);
        assert_int_equal(hf_client_watch(NULL, &spec, on_event, on_end, NULL, NULL), -EINVAL);
        assert_int_equal(hf_client_watch(&client, NULL, on_event, on_end, NULL, NULL), -EINVAL);
        assert_int_equal(hf_client_watch(&client, &spec, NULL, on_end, NULL, NULL), -EINVAL);
        assert_int_equal(hf_client_watch(&client, &spec, on_event, NULL, NULL, NULL), -EINVAL);
        for (size_t i = 0; i < N_INCOMPLETE; i++) {
                request.resource = spec.resource = incomplete[i];
                assert_int_equal(hf_client_request(&client, &request, on_response, NULL, NULL),
                                 -EINVAL);
                assert_int_equal(hf_client_watch(&client, &spec, on_event, on_end, NULL, NULL),
                                 -EINVAL);
        }
        assert_int_equal(n_calls, 0);
        spec.resource = (struct hf_resource){"", "v1", "things"};
        assert_int_equal(hf_client_watch(&client, &spec, on_event, on_end, NULL, NULL), 0);
        assert_int_equal(n_calls, 1);
}

static void test_a_request_that_waits_needs_a_client_and_a_token(void **state) {
        const struct hf_request request = {.size = sizeof request,
                                           .verb = HF_VERB_LIST,
                                           .resource = {"", "v1", "things"}};
        const struct hf_request bad = {.size = sizeof bad, .verb = HF_VERB_LIST};
        struct hf_status status = {0};

        assert_int_equal(hf_client_do(NULL, &request, hf_cancel_never(), NULL, NULL, &status),
                         -EINVAL);
        assert_int_equal(hf_client_do(&client, &request, NULL, NULL, NULL, &status), -EINVAL);
        assert_string_equal(status.message, "a blocking request needs a client and a token");
        assert_int_equal(hf_client_do(&client, &bad, hf_cancel_never(), NULL, NULL, &status),
                         -EINVAL);
        assert_non_null(strstr(status.message, "the request could not be started"));
        assert_int_equal(hf_client_do(&client, &bad, hf_cancel_never(), NULL, NULL, NULL), -EINVAL);
        assert_null(hf_client_free(NULL));
}

static struct hf_response odd;

static int reply_oddly(struct hf_client *self, const struct hf_request *request,
                       hf_response_fn done, void *ctx, uint64_t *ret_id) {
        done(ctx, &odd);
        return 0;
}

/* Another implementation may have the size of another version. */
static void test_an_implementation_is_checked(void **state) {
        const struct hf_request request = {.size = sizeof request,
                                           .verb = HF_VERB_LIST,
                                           .resource = {"", "v1", "things"}};
        struct hf_client_ops odd_ops = {.size = 1, .request = reply_oddly};
        struct hf_client of_odd = {.ops = &odd_ops, .host = &host};
        struct hf_status status = {0};
        char *body = NULL;

        assert_int_equal(hf_client_do(&of_odd, &request, hf_cancel_never(), NULL, NULL, &status),
                         -EINVAL);
        assert_non_null(strstr(status.message, "hf_client_ops"));
        odd_ops.size = sizeof odd_ops;
        odd = (struct hf_response){.size = 1, .body = "x", .n_body = 1};
        assert_int_equal(hf_client_do(&of_odd, &request, hf_cancel_never(), &body, NULL, &status),
                         -EINVAL);
        assert_non_null(strstr(status.message, "hf_response"));
        assert_null(body);
        odd.size = sizeof odd;
        assert_int_equal(hf_client_do(&of_odd, &request, hf_cancel_never(), &body, NULL, NULL), 0);
        assert_string_equal(body, "x");
        free(body);
}

static void test_an_upsert_needs_a_name_a_body_and_what_a_request_needs(void **state) {
        const struct hf_request good = {.size = sizeof good,
                                        .verb = HF_VERB_UPDATE,
                                        .resource = {"", "v1", "things"},
                                        .ns = "a",
                                        .name = "x",
                                        .body = "{}",
                                        .n_body = 2};
        struct hf_request bad[3] = {good, good, good};
        struct hf_status status = {0};

        bad[0].name = NULL;
        bad[1].body = NULL;
        bad[2].body = "[]";
        n_calls = 0;
        assert_int_equal(hf_upsert(NULL, &good, hf_cancel_never(), NULL, NULL, &status), -EINVAL);
        assert_int_equal(hf_upsert(&client, &good, NULL, NULL, NULL, &status), -EINVAL);
        assert_string_equal(status.message, "an upsert needs a name and a body");
        for (int i = 0; i < 2; i++)
                assert_int_equal(hf_upsert(&client, &bad[i], hf_cancel_never(), NULL, NULL,
                                           &status),
                                 -EINVAL);
        assert_int_equal(hf_upsert(&client, &bad[2], hf_cancel_never(), NULL, NULL, &status),
                         HF_E_INVALID);
        assert_non_null(strstr(status.message, "x: the body is not a JSON object"));
        assert_int_equal(n_calls, 0);
}

static void test_a_rest_client_needs_a_host_and_a_server(void **state) {
        const struct hf_rest_config config = {.size = sizeof config, .server = "http://h"};
        struct hf_client *made = NULL;
        struct hf_status status = {0};

        assert_int_equal(hf_rest_client_new(NULL, &config, &made, NULL), -EINVAL);
        assert_int_equal(hf_rest_client_new(&host, NULL, &made, NULL), -EINVAL);
        assert_int_equal(hf_rest_client_new(&host, &config, NULL, NULL), -EINVAL);
        assert_int_equal(hf_rest_client_new(&host, &(struct hf_rest_config){.size = sizeof config},
                                            &made, &status),
                         HF_E_INVALID);
        assert_true(status.message[0]);
        assert_null(made);
}

static void ignore_object(void *ctx, enum hf_event_type type, const char *ns, const char *name,
                          const char *object, size_t n) {}
static void no_values(void *ctx, const char *ns, const char *name, const char *object, size_t n,
                      struct hf_informer_values *values) {}

static void test_an_informer_needs_a_client_and_a_resource(void **state) {
        const struct hf_informer_config good = {.size = sizeof good,
                                                .client = &client,
                                                .resource = {"", "v1", "things"}};
        struct hf_informer *informer = NULL;
        struct hf_informer_config config = good;

        assert_int_equal(hf_informer_new(NULL, &good, &informer), -EINVAL);
        assert_int_equal(hf_informer_new(&host, NULL, &informer), -EINVAL);
        assert_int_equal(hf_informer_new(&host, &good, NULL), -EINVAL);
        config.client = NULL;
        assert_int_equal(hf_informer_new(&host, &config, &informer), -EINVAL);
        config = good;
        config.resource.version = NULL;
        assert_int_equal(hf_informer_new(&host, &config, &informer), -EINVAL);
        config = good;
        config.resource.plural = NULL;
        assert_int_equal(hf_informer_new(&host, &config, &informer), -EINVAL);
        config = good;
        config.resync = -1;
        assert_int_equal(hf_informer_new(&host, &config, &informer), -EINVAL);
        config = good;
        config.size = 0;
        assert_int_equal(hf_informer_new(&host, &config, &informer), -EINVAL);
        assert_null(informer);
        assert_null(hf_informer_free(NULL));
}

static void test_functions_of_an_informer_need_their_arguments(void **state) {
        const struct hf_informer_config config = {.size = sizeof config,
                                                  .client = &client,
                                                  .resource = {"", "v1", "things"}};
        struct hf_informer *informer = NULL;
        struct hf_informer_handler *handler;
        char *object = NULL;

        assert_int_equal(hf_informer_new(&host, &config, &informer), 0);
        assert_int_equal(hf_informer_add_handler(NULL, ignore_object, NULL, &handler), -EINVAL);
        assert_int_equal(hf_informer_add_handler(informer, NULL, NULL, &handler), -EINVAL);
        assert_int_equal(hf_informer_add_handler(informer, ignore_object, NULL, NULL), -EINVAL);
        assert_int_equal(hf_informer_n_handlers(informer), 0);
        assert_int_equal(hf_informer_get(NULL, "a", "b", &object, NULL), -EINVAL);
        assert_int_equal(hf_informer_get(informer, "a", NULL, &object, NULL), -EINVAL);
        assert_int_equal(hf_informer_get(informer, "a", "b", NULL, NULL), -EINVAL);
        char long_name[HF_NAME_MAX + 2];
        memset(long_name, 'a', sizeof long_name - 1);
        long_name[sizeof long_name - 1] = '\0';
        assert_int_equal(hf_informer_get(informer, "a", long_name, &object, NULL), HF_E_NOT_FOUND);
        assert_int_equal(hf_informer_get(informer, "a", "b", &object, NULL), HF_E_NOT_FOUND);
        assert_int_equal(hf_informer_wait(NULL, NULL, hf_cancel_never()), -EINVAL);
        assert_int_equal(hf_informer_wait(informer, NULL, NULL), -EINVAL);
        assert_int_equal(hf_informer_wait(informer, "x", hf_cancel_never()), -EINVAL);
        assert_int_equal(hf_informer_wait_all(NULL, 1, NULL, hf_cancel_never()), -EINVAL);
        assert_int_equal(hf_informer_wait_term(NULL, 1, "7", hf_cancel_never()), -EINVAL);
        assert_int_equal(hf_informer_wait_term(&informer, 1, NULL, hf_cancel_never()), -EINVAL);
        assert_int_equal(hf_informer_wait_term(&informer, 1, "7", NULL), -EINVAL);
        /* Only numeric versions can be compared. */
        struct hf_informer *one_revision = NULL, *both[2] = {informer, NULL};
        struct hf_informer_config ordered = config;
        struct hf_cancel *fired;
        ordered.one_revision = true;
        assert_int_equal(hf_informer_new(&host, &ordered, &one_revision), 0);
        assert_int_equal(hf_cancel_new(NULL, NULL, &fired), 0);
        hf_cancel_fire(fired, HF_CANCEL_STOPPING);
        both[1] = one_revision;
        assert_int_equal(hf_informer_wait_term(&one_revision, 1, "x", fired), -EINVAL);
        assert_int_equal(hf_informer_wait_term(both, 2, "x", fired), -EINVAL);
        assert_int_equal(hf_informer_wait_term(both, 2, "7", fired), HF_E_CANCELED);
        assert_int_equal(hf_informer_wait_term(&informer, 1, "x", fired), HF_E_CANCELED);
        hf_cancel_unref(fired);
        hf_informer_free(one_revision);
        assert_int_equal(hf_informer_add_index(informer, NULL, no_values, NULL), -EINVAL);
        assert_int_equal(hf_informer_add_index(informer, "i", NULL, NULL), -EINVAL);
        assert_int_equal(hf_informer_values_add(NULL, "v"), -EINVAL);
        assert_int_equal(hf_informer_start(NULL), -EINVAL);
        hf_informer_free(informer);
}

static void test_a_queue_needs_a_host_and_a_name(void **state) {
        struct hf_workqueue *queue = NULL;

        assert_int_equal(hf_workqueue_new(NULL, "q", &queue), -EINVAL);
        assert_int_equal(hf_workqueue_new(&host, NULL, &queue), -EINVAL);
        assert_int_equal(hf_workqueue_new(&host, "q", NULL), -EINVAL);
        assert_null(queue);
        assert_null(hf_workqueue_free(NULL));
}

/* ---- the helpers for objects ---- */

static void test_helpers_need_their_texts_and_results(void **state) {
        static const struct hf_condition ready = {.size = sizeof ready,
                                                  .type = "Ready",
                                                  .status = "True",
                                                  .reason = "Done"};
        struct hf_condition bad[] = {ready, ready, ready, ready, ready};
        char *object = NULL, name[HF_NAME_MAX + 1];
        bool is;

        assert_int_equal(hf_condition_set(NULL, "{}", 2, &ready, &object, NULL), -EINVAL);
        assert_int_equal(hf_condition_set(&host, NULL, 2, &ready, &object, NULL), -EINVAL);
        assert_int_equal(hf_condition_set(&host, "{}", 2, &ready, NULL, NULL), -EINVAL);
        bad[0].size = 1;
        bad[1].type = NULL;
        bad[2].status = NULL;
        bad[3].reason = NULL;
        bad[4].status = "true";
        for (size_t i = 0; i < 5; i++)
                assert_int_equal(hf_condition_set(&host, "{}", 2, &bad[i], &object, NULL), -EINVAL);
        assert_int_equal(hf_definition_establish(NULL, "{}", 2, hf_cancel_never(), NULL), -EINVAL);
        assert_int_equal(hf_definition_establish(&client, NULL, 2, hf_cancel_never(), NULL),
                         -EINVAL);
        assert_int_equal(hf_definition_establish(&client, "{}", 2, NULL, NULL), -EINVAL);
        assert_int_equal(hf_owner_set(NULL, 2, "{}", 2, &object), -EINVAL);
        assert_int_equal(hf_owner_set("{}", 2, NULL, 2, &object), -EINVAL);
        assert_int_equal(hf_owner_set("{}", 2, "{}", 2, NULL), -EINVAL);
        assert_int_equal(hf_owner_check(NULL, 2, "u", &is), -EINVAL);
        assert_int_equal(hf_owner_check("{}", 2, NULL, &is), -EINVAL);
        assert_int_equal(hf_owner_check("{}", 2, "u", NULL), -EINVAL);
        assert_int_equal(hf_owner_name(NULL, 2, NULL, "K", name), -EINVAL);
        assert_int_equal(hf_owner_name("{}", 2, NULL, NULL, name), -EINVAL);
        assert_int_equal(hf_owner_name("{}", 2, NULL, "K", NULL), -EINVAL);
        assert_int_equal(hf_finalizer_set(NULL, 2, "f", true, &object, NULL), -EINVAL);
        assert_int_equal(hf_finalizer_set("{}", 2, NULL, true, &object, NULL), -EINVAL);
        assert_int_equal(hf_finalizer_set("{}", 2, "f", true, NULL, NULL), -EINVAL);
        assert_int_equal(hf_finalizer_check(NULL, 2, "f", &is, NULL), -EINVAL);
        assert_int_equal(hf_finalizer_check("{}", 2, NULL, &is, NULL), -EINVAL);
        assert_null(object);
}

/* The controller may be any of the owners. */
static void test_the_controller_is_found_among_the_owners(void **state) {
        static const char text[] =
                "{\"metadata\":{\"ownerReferences\":["
                "{\"uid\":\"u1\",\"kind\":\"K\",\"apiVersion\":\"v1\",\"name\":\"a\"},"
                "{\"uid\":\"u2\",\"kind\":\"K\",\"apiVersion\":\"v1\",\"name\":\"b\","
                "\"controller\":true},"
                "{\"uid\":\"u3\",\"kind\":\"K\",\"apiVersion\":\"v1\",\"name\":\"c\"}]}}";
        static const char *const uids[] = {"u1", "u2", "u3"};
        char name[HF_NAME_MAX + 1];
        bool is;

        for (size_t i = 0; i < 3; i++) {
                assert_int_equal(hf_owner_check(text, strlen(text), uids[i], &is), 0);
                assert_int_equal(is, i == 1);
        }
        assert_int_equal(hf_owner_name(text, strlen(text), NULL, "K", name), 0);
        assert_string_equal(name, "b");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_helpers_need_their_texts_and_results),
                cmocka_unit_test(test_the_controller_is_found_among_the_owners),
                cmocka_unit_test(test_a_request_needs_what_its_verb_uses),
                cmocka_unit_test(test_a_request_and_a_watch_need_all_arguments),
                cmocka_unit_test(test_a_request_that_waits_needs_a_client_and_a_token),
                cmocka_unit_test(test_an_implementation_is_checked),
                cmocka_unit_test(test_a_rest_client_needs_a_host_and_a_server),
                cmocka_unit_test(test_an_upsert_needs_a_name_a_body_and_what_a_request_needs),
                cmocka_unit_test(test_an_informer_needs_a_client_and_a_resource),
                cmocka_unit_test(test_functions_of_an_informer_need_their_arguments),
                cmocka_unit_test(test_a_queue_needs_a_host_and_a_name),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
