/* SPDX-License-Identifier: Apache-2.0 */
/* The helpers for controllers that send requests: upserts, owned objects, definitions. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/client_port.h>
#include <holdfast/definition.h>
#include <holdfast/owned.h>
#include <holdfast/upsert.h>

#include "base/json.h"
#include "fake_api_client.h"

/* ---- upserts ---- */

static struct {
        struct fake_api *api;
        struct fake_api_client *client;
} f;

static int setup(void **state) {
        f.api = fake_api_new();
        f.client = fake_api_client_new(f.api);
        return 0;
}
static int teardown(void **state) {
        hf_client_free(&f.client->base);
        fake_api_free(f.api);
        return 0;
}

static int upsert(const char *body, enum hf_upsert_result *ret_result) {
        const struct hf_request request = {.size = sizeof request,
                                           .resource = {"", "v1", "things"},
                                           .ns = "a",
                                           .name = "x",
                                           .body = body,
                                           .n_body = strlen(body)};
        struct hf_status status = {0};
        int r = hf_upsert(&f.client->base, &request, hf_cancel_never(), ret_result, NULL, &status);
        assert_int_equal(r, status.error);
        return r;
}

static void assert_stored(const char *path, const char *value) {
        char *text = fake_api_get(f.api, "things/a/x");
        struct hf__json *json = NULL;
        assert_non_null(text);
        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        const char *found = hf__json_string(json, path);
        if (value)
                assert_string_equal(found, value);
        else
                assert_null(hf__json_path(json, path));
        hf__json_free(json);
        free(text);
}

#define THING(members)                                                                             \
        "{\"kind\":\"Thing\",\"metadata\":{\"name\":\"x\",\"namespace\":\"a\"}," members "}"

static void test_an_upsert_creates_then_changes_only_what_differs(void **state) {
        enum hf_upsert_result result = HF_UPSERT_UNCHANGED;

        assert_int_equal(upsert(THING("\"v\":\"1\",\"w\":{\"p\":\"q\",\"r\":\"s\"}"), &result), 0);
        assert_int_equal(result, HF_UPSERT_CREATED);
        assert_int_equal(f.api->store.n_commits, 1);
        assert_int_equal(upsert(THING("\"v\":\"1\",\"w\":{\"r\":\"s\"}"), &result), 0);
        assert_int_equal(result, HF_UPSERT_UNCHANGED);
        assert_int_equal(f.api->store.n_commits, 1);
        assert_int_equal(upsert(THING("\"v\":null,\"w\":{\"r\":\"t\"}"), &result), 0);
        assert_int_equal(result, HF_UPSERT_UPDATED);
        assert_int_equal(f.api->store.n_commits, 2);
        assert_stored("w.p", "q");
        assert_stored("w.r", "t");
        assert_stored("v", NULL);
}

static void test_an_upsert_begins_again_after_a_conflict(void **state) {
        enum hf_upsert_result result;

        fake_api_put_thing(f.api, "a", "x", "1");
        fake_api_client_refuse_writes(f.client, HF_E_CONFLICT, 4);
        assert_int_equal(upsert(THING("\"v\":\"2\""), &result), 0);
        assert_stored("v", "2");
        fake_api_client_refuse_writes(f.client, HF_E_CONFLICT, 5);
        assert_int_equal(upsert(THING("\"v\":\"3\""), &result), HF_E_CONFLICT);
        assert_stored("v", "2");
        fake_api_delete(f.api, "things/a/x");
        fake_api_client_refuse_writes(f.client, HF_E_EXISTS, 1);
        assert_int_equal(upsert(THING("\"v\":\"4\""), &result), 0);
        assert_int_equal(result, HF_UPSERT_CREATED);
}

static void test_an_upsert_sends_no_unknown_write_again(void **state) {
        fake_api_put_thing(f.api, "a", "x", "1");
        fake_api_client_refuse_writes(f.client, HF_E_TIMEOUT, 1);
        unsigned n = fake_api_n_requests(f.api);
        assert_int_equal(upsert(THING("\"v\":\"2\""), NULL), HF_E_TIMEOUT);
        assert_true(fake_api_n_requests(f.api) <= n + 2);
        assert_stored("v", "1");
}

static void test_an_upsert_leaves_another_object_alone(void **state) {
        fake_api_put_thing(f.api, "a", "x", "1");
        assert_int_equal(upsert("{\"metadata\":{\"uid\":\"other\"},\"v\":\"2\"}", NULL),
                         HF_E_CONFLICT);
        assert_int_equal(upsert("{\"metadata\":{\"resourceVersion\":\"9999\"},\"v\":\"2\"}", NULL),
                         HF_E_CONFLICT);
        assert_stored("v", "1");
        assert_int_equal(upsert("[]", NULL), HF_E_INVALID);
}

static void test_an_upsert_creates_no_object_that_had_to_exist(void **state) {
        static const char *const bodies[] =
                {"{\"kind\":\"Thing\",\"metadata\":{\"name\":\"x\",\"uid\":\"gone\"}}",
                 "{\"kind\":\"Thing\",\"metadata\":{\"name\":\"x\",\"resourceVersion\":\"7\"}}"};

        for (size_t i = 0; i < 2; i++) {
                unsigned n = fake_api_n_requests(f.api);
                assert_int_equal(upsert(bodies[i], NULL), HF_E_CONFLICT);
                assert_int_equal(f.api->store.n_commits, 0);
                assert_int_equal(fake_api_n_requests(f.api), n + 1); /* the read */
        }
}

/* A client that lets another writer change the object just before the first update. */
struct race {
        struct hf_client base; /* first */
        bool raced;
};

static int race_request(struct hf_client *client, const struct hf_request *request,
                        hf_response_fn done, void *ctx, uint64_t *ret_id) {
        struct race *race = (struct race *)client;
        if (request->verb == HF_VERB_UPDATE && !race->raced) {
                race->raced = true;
                (void)fake_api_put(f.api, "things/a/x", THING("\"v\":\"1\",\"w\":\"kept\""));
        }
        return hf_client_request(&f.client->base, request, done, ctx, ret_id);
}
static void race_cancel(struct hf_client *client, uint64_t id) {
        hf_client_cancel(&f.client->base, id);
}
static const struct hf_client_ops race_ops = {.size = sizeof race_ops,
                                              .request = race_request,
                                              .cancel = race_cancel};

/* This holds even if the body has an empty version, which means "overwrite" to a server. */
static void test_an_upsert_overwrites_no_concurrent_change(void **state) {
        static const char *const bodies[] =
                {"{\"v\":\"2\"}", "{\"metadata\":{\"resourceVersion\":\"\"},\"v\":\"2\"}",
                 "{\"metadata\":{\"resourceVersion\":null},\"v\":\"2\"}"};

        for (size_t i = 0; i < 3; i++) {
                struct race race = {.base = {.ops = &race_ops, .host = &f.api->host}};
                const struct hf_request request = {.size = sizeof request,
                                                   .resource = {"", "v1", "things"},
                                                   .ns = "a",
                                                   .name = "x",
                                                   .body = bodies[i],
                                                   .n_body = strlen(bodies[i])};
                fake_api_put_thing(f.api, "a", "x", "1");
                assert_int_equal(hf_upsert(&race.base, &request, hf_cancel_never(), NULL, NULL,
                                           NULL),
                                 0);
                assert_true(race.raced);
                assert_stored("v", "2");
                assert_stored("w", "kept");
        }
}

/* ---- owned objects ---- */

#define OWNER(uid)                                                                                 \
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"o\","              \
        "\"namespace\":\"a\",\"uid\":\"" uid "\"}}"
#define OWNED "{\"metadata\":{\"name\":\"x\",\"namespace\":\"a\"}}"
#define OWNED_BY(uid)                                                                              \
        "{\"metadata\":{\"name\":\"x\",\"namespace\":\"a\",\"uid\":\"own\",\"ownerReferences\":[{" \
        "\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"o\",\"uid\":\"" uid               \
        "\",\"controller\":true}]},\"v\":\"1\",\"w\":\"kept\"}"

static struct hf_request owned_request(const char *body) {
        return (struct hf_request){.size = sizeof(struct hf_request),
                                   .resource = {"", "v1", "things"},
                                   .ns = "a",
                                   .name = "x",
                                   .body = body,
                                   .n_body = body ? strlen(body) : 0};
}

static int owned_upsert(const char *body, enum hf_upsert_result *ret_result) {
        const struct hf_request request = owned_request(body);
        struct hf_status status = {0};
        int r = hf_owned_upsert(&f.client->base, &request, OWNER("u"), strlen(OWNER("u")),
                                hf_cancel_never(), ret_result, &status);
        assert_int_equal(r, status.error);
        return r;
}

static void test_an_owned_object_is_created_and_kept(void **state) {
        enum hf_upsert_result result = HF_UPSERT_UNCHANGED;
        char *text;

        assert_int_equal(owned_upsert("{\"v\":\"1\"}", &result), 0);
        assert_int_equal(result, HF_UPSERT_CREATED);
        assert_stored("v", "1");
        assert_stored("metadata.namespace", "a");
        text = fake_api_get(f.api, "things/a/x");
        assert_non_null(strstr(text, "\"uid\":\"u\",\"controller\":true"));
        free(text);
        fake_api_put(f.api, "things/a/x", OWNED_BY("u"));
        assert_int_equal(owned_upsert("{\"v\":\"1\"}", &result), 0);
        assert_int_equal(result, HF_UPSERT_UNCHANGED);
        assert_int_equal(owned_upsert("{\"v\":\"2\"}", &result), 0);
        assert_int_equal(result, HF_UPSERT_UPDATED);
        assert_stored("v", "2");
        assert_stored("w", "kept");
        assert_int_equal(owned_upsert("[]", NULL), HF_E_INVALID);
}

static void test_an_object_of_another_owner_is_left_alone(void **state) {
        const struct hf_request named = owned_request(NULL);

        fake_api_put(f.api, "things/a/x", OWNED_BY("other"));
        assert_int_equal(owned_upsert("{\"v\":\"2\"}", NULL), HF_E_EXISTS);
        assert_stored("v", "1");
        assert_int_equal(hf_owned_delete(&f.client->base, &named, OWNER("u"), strlen(OWNER("u")),
                                         hf_cancel_never(), NULL),
                         0);
        assert_stored("v", "1");
        assert_int_equal(hf_owned_delete(&f.client->base, &named, OWNER("other"),
                                         strlen(OWNER("other")), hf_cancel_never(), NULL),
                         0);
        assert_null(fake_api_get(f.api, "things/a/x"));
        assert_int_equal(hf_owned_delete(&f.client->base, &named, OWNER("other"),
                                         strlen(OWNER("other")), hf_cancel_never(), NULL),
                         0);
        assert_int_equal(hf_owned_delete(&f.client->base, &named, OWNED, strlen(OWNED),
                                         hf_cancel_never(), NULL),
                         HF_E_INVALID);
}

/* Between the read and the create another writer creates the object. */
static void test_an_owned_object_is_read_again_when_another_writer_was_first(void **state) {
        fake_api_client_refuse_writes(f.client, HF_E_EXISTS, 4);
        assert_int_equal(owned_upsert("{\"v\":\"1\"}", NULL), 0);
        assert_stored("v", "1");
        fake_api_delete(f.api, "things/a/x");
        fake_api_client_refuse_writes(f.client, HF_E_EXISTS, 5);
        assert_int_equal(owned_upsert("{\"v\":\"1\"}", NULL), HF_E_EXISTS);
}

/* ---- definitions ---- */

#define THINGS "things.example.com"
#define DEFINITION(status)                                                                         \
        "{\"metadata\":{\"name\":\"" THINGS "\"},\"spec\":{\"group\":\"example.com\",\"names\":{"  \
        "\"plural\":\"things\"},\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true}]" \
        "}" status "}"
#define NAMES_ACCEPTED(status)                                                                     \
        "{\"type\":\"NamesAccepted\",\"status\":\"" status "\",\"message\":\"taken\"}"
#define ESTABLISHED      "{\"type\":\"Established\",\"status\":\"True\"}"
#define WITH(conditions) ",\"status\":{\"conditions\":[" conditions "]}"

static int establish(const char *definition, struct hf_cancel *token, struct hf_status *status) {
        return hf_definition_establish(&f.client->base, definition, strlen(definition), token,
                                       status);
}

static void test_a_definition_is_established_or_refused(void **state) {
        const struct {
                const char *stored;
                int r;
        } cases[] = {{DEFINITION(WITH(NAMES_ACCEPTED("True") "," ESTABLISHED)), 0},
                     {DEFINITION(WITH(NAMES_ACCEPTED("False"))), HF_E_CONFLICT}};
        struct hf_status status = {0};

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                fake_api_put(f.api, "customresourcedefinitions//" THINGS, cases[i].stored);
                assert_int_equal(establish(DEFINITION(""), hf_cancel_never(), &status), cases[i].r);
        }
        assert_string_equal(status.message, THINGS ": taken");
}

static void test_a_wait_for_a_definition_ends_with_its_token(void **state) {
        struct hf_cancel *token;
        char *text;

        assert_int_equal(hf_cancel_new(hf_cancel_never(), hf_clock_system(), &token), 0);
        hf_cancel_set_deadline(token, hf_now(hf_clock_system()) + 50 * HF_NSEC_PER_MSEC);
        assert_int_equal(establish(DEFINITION(""), token, NULL), HF_E_CANCELED);
        hf_cancel_unref(token);
        text = fake_api_get(f.api, "customresourcedefinitions//" THINGS);
        assert_non_null(text); /* it was created */
        free(text);
}

static void test_what_is_no_definition_is_refused(void **state) {
        static const char *const wrong[] =
                {"{", "[]", "{\"metadata\":{\"name\":\"x\"}}",
                 ("{\"metadata\":{\"name\":\"x\"},\"spec\":{\"group\":\"g\",\"names\":{\"plural\":"
                  "\"p\"},\"versions\":[{\"name\":\"v1\",\"served\":true}]}}")};
        struct hf_status status = {0};

        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
                assert_int_equal(establish(wrong[i], hf_cancel_never(), &status), HF_E_INVALID);
                assert_true(status.message[0]);
        }
        assert_int_equal(f.api->store.n_commits, 0);
        assert_int_equal(establish(DEFINITION(""), NULL, &status), -EINVAL);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(
                        test_an_upsert_creates_then_changes_only_what_differs, setup, teardown),
                cmocka_unit_test_setup_teardown(test_an_upsert_begins_again_after_a_conflict, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_an_upsert_sends_no_unknown_write_again, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_an_upsert_leaves_another_object_alone, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_an_upsert_creates_no_object_that_had_to_exist,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(test_an_upsert_overwrites_no_concurrent_change,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(test_an_owned_object_is_created_and_kept, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_an_object_of_another_owner_is_left_alone,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(
                        test_an_owned_object_is_read_again_when_another_writer_was_first, setup,
                        teardown),
                cmocka_unit_test_setup_teardown(test_a_definition_is_established_or_refused, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_a_wait_for_a_definition_ends_with_its_token,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(test_what_is_no_definition_is_refused, setup,
                                                teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
