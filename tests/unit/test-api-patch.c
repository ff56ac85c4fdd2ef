/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that patch objects: what they change, and how they are refused. */
#undef NDEBUG
#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api_core_request.h"
#include "api_fixture.h"
#include "base/strbuf.h"
#include "server/resources/rows/resource_table.h"

static const struct hf_resource accounts = {"", "v1", "serviceaccounts"};

static int patch_cm(struct api_fixture *f, enum hfd_patch type, const char *body) {
        return api_fixture_patch(f, api_configmaps, "default", "c", HFD_SUB_NONE, type, NULL, body);
}

static void make_cm(struct api_fixture *f) {
        assert_int_equal(
                api_fixture_request(f, HF_VERB_CREATE, api_configmaps, "default", NULL, NULL,
                                    "{\"metadata\":{\"name\":\"c\",\"labels\":{\"a\":\"b\"}},"
                                    "\"data\":{\"k\":\"v\"}}"),
                0);
}

static void test_patch_requests_are_served(void **state) {
        struct api_fixture *f = *state;
        char revision[32], body[200];

        assert_int_equal(patch_cm(f, HFD_PATCH_MERGE, "{}"), HF_E_NOT_FOUND);
        api_fixture_expect_failure(f, 404, "NotFound", "configmaps \"c\" not found");
        assert_int_equal(patch_cm(f, HFD_PATCH_MERGE, "{\"metadata\":{\"uid\":\"gone\"}}"),
                         HF_E_NOT_FOUND);
        make_cm(f);
        (void)snprintf(revision, sizeof revision, "%s",
                       api_fixture_text_at(f, "metadata.resourceVersion"));
        assert_int_equal(patch_cm(f, HFD_PATCH_MERGE, "{\"data\":{\"k\":\"v\"}}"),
                         0); /* no change, so nothing is written */
        assert_string_equal(api_fixture_text_at(f, "metadata.resourceVersion"), revision);
        assert_int_equal(patch_cm(f, HFD_PATCH_MERGE,
                                  "{\"metadata\":{\"labels\":{\"a\":null,\"c\":\"d\"}},\"data\":{"
                                  "\"l\":\"w\"}}"),
                         0);
        assert_int_equal(f->last.status.http_code, 200);
        assert_non_null(strstr(f->last.body, "\"labels\":{\"c\":\"d\"}"));
        assert_non_null(strstr(f->last.body, "\"data\":{\"k\":\"v\",\"l\":\"w\"}"));
        assert_int_equal(patch_cm(f, HFD_PATCH_JSON,
                                  "[{\"op\":\"test\",\"path\":\"/data/"
                                  "k\",\"value\":\"v\"},{\"op\":\"replace\",\"path\":\"/data/"
                                  "k\",\"value\":\"x\"}]"),
                         0);
        assert_string_equal(api_fixture_text_at(f, "data.k"), "x");
        assert_int_equal(patch_cm(f, HFD_PATCH_JSON,
                                  "[{\"op\":\"test\",\"path\":\"/data/k\",\"value\":\"v\"}]"),
                         HF_E_INVALID);
        api_fixture_expect_failure(f, 422, "Invalid",
                                   "the server rejected our request due to an error in our "
                                   "request: testing value /data/k failed: test failed");
        assert_int_equal(patch_cm(f, HFD_PATCH_STRATEGIC,
                                  "{\"data\":{\"$patch\":\"replace\",\"m\":\"n\"}}"),
                         0);
        assert_non_null(strstr(f->last.body, "\"data\":{\"m\":\"n\"}"));
        /* A resourceVersion in the patch is a precondition. */
        (void)snprintf(body, sizeof body,
                       "{\"metadata\":{\"resourceVersion\":\"%s\"},\"data\":{\"k\":\"y\"}}",
                       revision);
        assert_int_equal(patch_cm(f, HFD_PATCH_MERGE, body), HF_E_CONFLICT);
        api_fixture_expect_failure(f, 409, "Conflict",
                                   "Operation cannot be fulfilled on configmaps \"c\": the object "
                                   "has been modified; please apply your changes to the latest "
                                   "version and try again");
        /* A uid is not: as in Kubernetes, it is a field that cannot be changed. */
        assert_int_equal(patch_cm(f, HFD_PATCH_MERGE, "{\"metadata\":{\"uid\":\"other\"}}"),
                         HF_E_INVALID);
        assert_int_equal(f->last.status.http_code, 422);
}

/* Expects the response to a patch whose result is not of the kind: it names the field "patch",
 * whose value begins with these characters, and no object. */
static void expect_refused_result(struct api_fixture *f, const char *value, const char *reason) {
        char begin[100];

        assert_int_equal(f->last.status.http_code, 422);
        assert_string_equal(api_fixture_text_at(f, "reason"), "Invalid");
        const char *message = api_fixture_text_at(f, "message");
        (void)snprintf(begin, sizeof begin, " \"\" is invalid: patch: Invalid value: %s", value);
        assert_memory_equal(message, begin, strlen(begin));
        assert_true(strlen(message) > strlen(reason));
        assert_string_equal(message + strlen(message) - strlen(reason), reason);
        assert_non_null(strstr(f->last.body,
                               "\"details\":{\"causes\":[{\"reason\":"
                               "\"FieldValueInvalid\",\"message\":\"Invalid value: "));
        assert_non_null(strstr(f->last.body, "\"field\":\"patch\"}]}"));
}

/* The result is validated like the body of an update. */
static void test_bad_patches_and_results_are_refused(void **state) {
        struct api_fixture *f = *state;

        make_cm(f);
        assert_int_equal(patch_cm(f, HFD_PATCH_MERGE, "{\"data\":{\"m\":\"n\"}}"), 0);
        assert_int_equal(patch_cm(f, HFD_PATCH_MERGE, "{\"metadata\":{\"name\":\"d\"}}"),
                         HF_E_INVALID);
        api_fixture_expect_failure(f, 400, "BadRequest",
                                   "the name of the object (d) does not match the name on "
                                   "the URL (c)");
        static const char wrong_type[] =
                "json: cannot unmarshal number into Go struct field ConfigMap.data of type string";
        assert_int_equal(patch_cm(f, HFD_PATCH_MERGE, "{\"data\":{\"k\":5}}"), HF_E_INVALID);
        expect_refused_result(f, "\"{\\\"", wrong_type);
        assert_int_equal(patch_cm(f, HFD_PATCH_JSON,
                                  "[{\"op\":\"add\",\"path\":\"/data/k\",\"value\":5}]"),
                         HF_E_INVALID);
        expect_refused_result(f, "\"{\\\"", wrong_type);
        assert_int_equal(patch_cm(f, HFD_PATCH_STRATEGIC, "{\"data\":{\"k\":5}}"), HF_E_INVALID);
        expect_refused_result(f, "\"map[data:map[k:5]]\"", ": cannot convert int64 to string");
        assert_int_equal(patch_cm(f, HFD_PATCH_MERGE, "{\"metadata\":{\"labels\":{\"-\":\"\"}}}"),
                         HF_E_INVALID);
        assert_int_equal(f->last.status.http_code, 422);
        assert_int_equal(patch_cm(f, HFD_PATCH_JSON,
                                  "[{\"op\":\"replace\",\"path\":\"\",\"value\":5}]"),
                         HF_E_INVALID);
        api_fixture_expect_failure(f, 422, "Invalid",
                                   "the server rejected our request due to an error in our "
                                   "request: json: cannot unmarshal number into Go value of "
                                   "type v1.ConfigMap");
        assert_int_equal(patch_cm(f, HFD_PATCH_MERGE, "[]"), HF_E_INVALID);
        api_fixture_expect_failure(f, 400, "BadRequest",
                                   "error decoding patch: json: cannot unmarshal array into Go "
                                   "value of type map[string]interface {}");
        assert_int_equal(patch_cm(f, HFD_PATCH_MERGE, "{\"data\":{\"k\":\"1\",\"k\":\"2\"}}"), 0);
        assert_non_null(strstr(f->last.body, "\"k\":\"2\""));
        assert_int_equal(patch_cm(f, HFD_PATCH_MERGE, "{\"a\":"), HF_E_INVALID);
        api_fixture_expect_failure(f, 400, "BadRequest",
                                   "error decoding patch: json: syntax error at offset 4");
        assert_int_equal(api_fixture_patch(f, api_configmaps, "default", "c", HFD_SUB_NONE,
                                           HFD_PATCH_MERGE, "fieldValidation=Strict",
                                           "{\"dataa\":{}}"),
                         HF_E_INVALID);
        expect_refused_result(f, "\"{\\\"", "strict decoding error: unknown field \"dataa\"");
        assert_int_equal(api_fixture_patch(f, api_configmaps, "default", "c", HFD_SUB_NONE,
                                           HFD_PATCH_MERGE, "dryRun=All", "{\"data\":null}"),
                         0);
        assert_int_equal(api_fixture_request(f, HF_VERB_GET, api_configmaps, "default", "c", NULL,
                                             NULL),
                         0);
        assert_string_equal(api_fixture_text_at(f, "data.m"), "n");
}

/* The messages are those of Kubernetes, because people search for them. */
struct refused_patch {
        enum hfd_patch type;
        int code;
        const char *patch, *reason;
};

static void expect_reasons(struct api_fixture *f, const struct refused_patch *cases, size_t n) {
        static const char refused[] =
                "the server rejected our request due to an error in our request: ";

        make_cm(f);
        assert_int_equal(patch_cm(f, HFD_PATCH_MERGE,
                                  "{\"metadata\":{\"ownerReferences\":[{\"apiVersion\":\"v1\","
                                  "\"kind\":\"Secret\",\"name\":\"s\",\"uid\":\"1\"}]}}"),
                         0);
        for (size_t i = 0; i < n; i++) {
                char message[400];
                (void)snprintf(message, sizeof message, "%s%s", cases[i].code == 422 ? refused : "",
                               cases[i].reason);
                assert_int_equal(patch_cm(f, cases[i].type, cases[i].patch), HF_E_INVALID);
                api_fixture_expect_failure(f, cases[i].code,
                                           cases[i].code == 422 ? "Invalid" : "BadRequest",
                                           message);
        }
}

static void test_reasons_of_json_patch_have_the_words_of_kubernetes(void **state) {
        static const struct refused_patch cases[] = {
                {HFD_PATCH_JSON, 422, "[{\"op\":\"add\",\"path\":\"data\",\"value\":1}]",
                 "add operation does not apply: doc is missing path: \"data\": missing value"},
                {HFD_PATCH_JSON, 422, "[{\"op\":\"add\",\"path\":\"/x/y\",\"value\":1}]",
                 "add operation does not apply: doc is missing path: \"/x/y\": missing value"},
                {HFD_PATCH_JSON, 422, "[{\"op\":\"remove\",\"path\":\"/data/x\"}]",
                 "error in remove for path: '/data/x': Unable to remove nonexistent key: x: "
                 "missing "
                 "value"},
                {HFD_PATCH_JSON, 422, "[{\"op\":\"replace\",\"path\":\"/data/x\",\"value\":1}]",
                 "replace operation does not apply: doc is missing key: /data/x: missing value"},
                {HFD_PATCH_JSON, 422, "[{\"op\":\"test\",\"path\":\"/x/y\",\"value\":1}]",
                 "test operation does not apply: is missing path: /x/y: missing value"},
                {HFD_PATCH_JSON, 422, "[{\"op\":\"move\",\"from\":\"/x/y\",\"path\":\"/z\"}]",
                 "move operation does not apply: doc is missing from path: /x/y: missing value"},
                {HFD_PATCH_JSON, 422, "[{\"op\":\"copy\",\"from\":\"/data\",\"path\":\"/x/y\"}]",
                 "copy operation does not apply: doc is missing destination path: /x/y: missing "
                 "value"},
                {HFD_PATCH_JSON, 422, "[{\"op\":\"spam\",\"path\":\"/x\"}]",
                 "Unexpected kind: spam"},
                {HFD_PATCH_JSON, 422, "[{\"op\":\"add\",\"path\":\"/x\"}]",
                 "add operation failed to decode value: operation, missing value field: missing "
                 "value"},
                {HFD_PATCH_JSON, 422,
                 "[{\"op\":\"add\",\"path\":\"/l\",\"value\":[]},"
                 "{\"op\":\"add\",\"path\":\"/l/2\",\"value\":1}]",
                 "error in add for path: '/l/2': Unable to access invalid index: 2: invalid index "
                 "referenced"},
                {HFD_PATCH_JSON, 400, "[1]",
                 "error decoding patch: json: cannot unmarshal number into Go value of type "
                 "handlers.jsonPatchOp"},
        };

        expect_reasons(*state, cases, sizeof cases / sizeof cases[0]);
}

static void test_reasons_of_strategic_merge_patch_have_the_words_of_kubernetes(void **state) {
        static const struct refused_patch cases[] = {
                {HFD_PATCH_STRATEGIC, 422,
                 "{\"metadata\":{\"ownerReferences\":[{\"name\":\"a\"}]}}",
                 "map: metadata.ownerReferences does not contain declared merge key: uid"},
                {HFD_PATCH_STRATEGIC, 422,
                 "{\"metadata\":{\"$setElementOrder/finalizers\":[1],\"finalizers\":[]}}",
                 "metadata.finalizers: expected a string, but received a int64"},
                {HFD_PATCH_STRATEGIC, 422,
                 "{\"metadata\":{\"$setElementOrder/finalizers\":[1.5],\"finalizers\":[]}}",
                 "metadata.finalizers: expected a string, but received a float64"},
                {HFD_PATCH_STRATEGIC, 422, "{\"data\":{\"$patch\":\"spam\"}}",
                 "unknown patch type: spam in map: data"},
                {HFD_PATCH_STRATEGIC, 400, "{\"data\":{\"$retainKeys\":1}}",
                 "invalid patch format of retainKeys"},
                {HFD_PATCH_STRATEGIC, 400, "{\"metadata\":{\"$setElementOrder/finalizers\":1}}",
                 "invalid patch format of setElementOrder list"},
                {HFD_PATCH_STRATEGIC, 400,
                 "{\"metadata\":{\"$deleteFromPrimitiveList/finalizers\":1}}",
                 "invalid patch format of primitive list"},
        };

        expect_reasons(*state, cases, sizeof cases / sizeof cases[0]);
}

static void test_too_many_operations_are_refused(void **state) {
        struct api_fixture *f = *state;
        struct hf__strbuf patch = {0};

        make_cm(f);
        for (int i = 0; i <= HFD_PATCH_OPS_MAX; i++)
                hf__strbuf_puts(&patch, i ? ",{}" : "[{}");
        hf__strbuf_putc(&patch, ']');
        assert_int_equal(patch_cm(f, HFD_PATCH_JSON, patch.data), HF_E_TOO_LARGE);
        api_fixture_expect_failure(f, 413, "RequestEntityTooLarge",
                                   "Request entity too large: The allowed maximum operations in a "
                                   "JSON patch is 10000, got 10001");
        hf__strbuf_done(&patch);
}

static void test_a_patch_changes_either_status_or_object(void **state) {
        struct api_fixture *f = *state;

        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL, NULL,
                                             "{\"metadata\":{\"name\":\"w\"},\"spec\":{\"a\":1}}"),
                         0);
        assert_int_equal(api_fixture_patch(f, api_workspaces, NULL, "w", HFD_SUB_STATUS,
                                           HFD_PATCH_MERGE, NULL,
                                           "{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"status\":{"
                                           "\"phase\":\"Ready\"}}"),
                         0);
        assert_string_equal(api_fixture_text_at(f, "status.phase"), "Ready");
        assert_null(strstr(f->last.body, "labels"));
        assert_int_equal(api_fixture_patch(f, api_workspaces, NULL, "w", HFD_SUB_NONE,
                                           HFD_PATCH_MERGE, NULL,
                                           "{\"status\":null,\"spec\":{\"a\":2}}"),
                         0);
        assert_string_equal(api_fixture_text_at(f, "status.phase"), "Ready");
        assert_non_null(strstr(f->last.body, "\"generation\":2"));
        /* A patch removes the last finalizer. */
        assert_int_equal(api_fixture_patch(f, api_workspaces, NULL, "w", HFD_SUB_NONE,
                                           HFD_PATCH_MERGE, NULL,
                                           "{\"metadata\":{\"finalizers\":[\"a.b/c\"]}}"),
                         0);
        assert_int_equal(api_fixture_request(f, HF_VERB_DELETE, api_workspaces, NULL, "w", NULL,
                                             NULL),
                         0);
        assert_int_equal(
                api_fixture_patch(f, api_workspaces, NULL, "w", HFD_SUB_NONE, HFD_PATCH_JSON, NULL,
                                  "[{\"op\":\"remove\",\"path\":\"/metadata/finalizers\"}]"),
                0);
        assert_int_equal(api_fixture_request(f, HF_VERB_GET, api_workspaces, NULL, "w", NULL, NULL),
                         HF_E_NOT_FOUND);
}

/* A client that names the version which it has read must not overwrite a newer one. */
static void test_an_apply_to_the_status_is_for_the_version_that_it_names(void **state) {
        struct api_fixture *f = *state;
        char revision[32], config[400];

        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL, NULL,
                                             "{\"metadata\":{\"name\":\"w\"},\"spec\":{\"a\":1}}"),
                         0);
        for (int stale = 0; stale < 2; stale++) {
                (void)snprintf(revision, sizeof revision, "%s",
                               api_fixture_text_at(f, "metadata.resourceVersion"));
                (void)snprintf(config, sizeof config,
                               "{\"apiVersion\":\"%s/%s\",\"kind\":\"Workspace\",\"metadata\":{"
                               "\"name\":\"w\",\"resourceVersion\":\"%s\"},\"status\":{\"phase\":"
                               "\"%d\"}}",
                               api_workspaces.group, api_workspaces.version, revision, stale);
                if (stale)
                        assert_int_equal(api_fixture_patch(f, api_workspaces, NULL, "w",
                                                           HFD_SUB_STATUS, HFD_PATCH_MERGE, NULL,
                                                           "{\"status\":{\"phase\":\"Ready\"}}"),
                                         0);
                assert_int_equal(api_fixture_patch(f, api_workspaces, NULL, "w", HFD_SUB_STATUS,
                                                   HFD_PATCH_APPLY, "fieldManager=m&force=true",
                                                   config),
                                 stale ? HF_E_CONFLICT : 0);
                if (!stale)
                        assert_null(strstr(f->last.body, "f:resourceVersion"));
        }
        assert_int_equal(api_fixture_request(f, HF_VERB_GET, api_workspaces, NULL, "w", NULL, NULL),
                         0);
        assert_string_equal(api_fixture_text_at(f, "status.phase"), "Ready");
}

/* The report of mistakes is limited, but a field that nobody could own is always refused. */
static void test_an_unknown_field_is_refused_beside_many_duplicate_ones(void **state) {
        struct api_fixture *f = *state;
        struct hf__strbuf config = {0};

        make_cm(f);
        hf__strbuf_puts(&config,
                        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":"
                        "\"c\"},\"data\":{");
        for (int i = 0; i < 2 * HFD_STRICT_MAX; i++)
                hf__strbuf_printf(&config, "%s\"k%d\":\"v\"", i ? "," : "", i / 2);
        hf__strbuf_puts(&config, "}");
        for (int unknown = 0; unknown < 2; unknown++) {
                struct hf__strbuf body = {0};
                hf__strbuf_printf(&body, "%s%s}", config.data, unknown ? ",\"spam\":1" : "");
                assert_int_equal(api_fixture_patch(f, api_configmaps, "default", "c", HFD_SUB_NONE,
                                                   HFD_PATCH_APPLY, "fieldManager=m&force=true",
                                                   body.data),
                                 unknown ? HF_E_INVALID : 0);
                hf__strbuf_done(&body);
        }
        assert_non_null(strstr(f->last.body, ".spam: field not declared in schema"));
        hf__strbuf_done(&config);
}

/* A patch is a write like any other: its transaction compares the fence. */
static void test_a_patch_compares_the_fence(void **state) {
        struct api_fixture *f = *state;
        uint64_t term;

        make_cm(f);
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_leases, "kube-system", NULL,
                                             NULL,
                                             "{\"metadata\":{\"name\":\"l\"},\"spec\":{"
                                             "\"holderIdentity\":\"me\"}}"),
                         0);
        term = strtoull(api_fixture_text_at(f, "metadata.resourceVersion"), NULL, 10);
        for (int stale = 0; stale < 2; stale++) {
                const struct hf_fence fence = {.ns = "kube-system",
                                               .name = "l",
                                               .identity = "me",
                                               .term = term + (uint64_t)stale};
                struct api_core_request patch = {
                        .request = {.verb = HFD_PATCH,
                                    .patch = HFD_PATCH_MERGE,
                                    .ns = "default",
                                    .name = "c",
                                    .body = "{\"data\":{\"k\":\"fenced\"}}",
                                    .n_body = 23,
                                    .fence = &fence}};
                patch.request.resource = hfd_resource_find("", "v1", "configmaps");
                assert_int_equal(api_core_request_run(f->registry, &patch),
                                 stale ? HF_E_STALE_TERM : 0);
                assert_true(patch.response.fence_echoed);
                api_response_deinit(&patch.response);
        }
}

/* ---- concurrent patches: all are applied, and none undoes another ---- */

struct patcher {
        struct api_fixture *f;
        int index;
};

static void *patch_thread(void *ctx) {
        struct patcher *p = ctx;
        char body[120];

        for (int i = 0; i < 50; i++) {
                struct api_core_request patch = {.request = {.verb = HFD_PATCH,
                                                             .patch = HFD_PATCH_STRATEGIC,
                                                             .ns = "default",
                                                             .name = "a",
                                                             .body = body}};
                patch.request.resource = hfd_resource_find("", "v1", "serviceaccounts");
                patch.request.n_body =
                        (size_t)snprintf(body, sizeof body,
                                         "{\"secrets\":[{\"name\":\"s-%d-%d\"}]}", p->index, i);
                assert(api_core_request_run(p->f->registry, &patch) == 0);
                api_response_deinit(&patch.response);
        }
        return NULL;
}

static void test_concurrent_patches_are_all_applied(void **state) {
        struct api_fixture *f = *state;
        struct patcher patchers[4];
        pthread_t threads[4];

        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, accounts, "default", NULL, NULL,
                                             "{\"metadata\":{\"name\":\"a\"}}"),
                         0);
        for (int i = 0; i < 4; i++) {
                patchers[i] = (struct patcher){f, i};
                assert_int_equal(pthread_create(&threads[i], NULL, patch_thread, &patchers[i]), 0);
        }
        for (int i = 0; i < 4; i++)
                pthread_join(threads[i], NULL);
        assert_int_equal(api_fixture_request(f, HF_VERB_GET, accounts, "default", "a", NULL, NULL),
                         0);
        assert_int_equal(api_fixture_count_at(f, "secrets"), 200);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                API_TEST(test_patch_requests_are_served),
                API_TEST(test_bad_patches_and_results_are_refused),
                API_TEST(test_reasons_of_json_patch_have_the_words_of_kubernetes),
                API_TEST(test_reasons_of_strategic_merge_patch_have_the_words_of_kubernetes),
                API_TEST(test_too_many_operations_are_refused),
                API_TEST(test_a_patch_changes_either_status_or_object),
                API_TEST(test_an_apply_to_the_status_is_for_the_version_that_it_names),
                API_TEST(test_an_unknown_field_is_refused_beside_many_duplicate_ones),
                API_TEST(test_a_patch_compares_the_fence),
                API_TEST(test_concurrent_patches_are_all_applied),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
