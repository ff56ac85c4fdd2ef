/* SPDX-License-Identifier: Apache-2.0 */
/* The bodies of scales, bindings and evictions: their mistakes, and what is made of them. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api_core_request.h"
#include "api_fixture.h"
#include "server/registry/base/options.h"
#include "server/resources/rows/resource_table.h"
#include "server/resources/workloads/workloads.h"
#include "store_client.h"

static const struct hf_resource pods = {"", "v1", "pods"},
                                deployments = {"apps", "v1", "deployments"};

#define CONTAINERS "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]"

static void create_objects(struct api_fixture *f) {
        api_fixture_make(f, pods, "default",
                         "{\"metadata\":{\"name\":\"p\"},\"spec\":{" CONTAINERS "}}");
        api_fixture_make(f, deployments, "default",
                         "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"selector\":{\"matchLabels\":{"
                         "\"z\":\"1\",\"b\":\"2\"}},\"template\":{\"metadata\":{\"labels\":{"
                         "\"z\":\"1\",\"b\":\"2\"}},\"spec\":{" CONTAINERS "}}}}");
        assert_int_equal(api_fixture_get(f, pods, "default", "p"), 0);
        assert_int_equal(api_fixture_get(f, deployments, "default", "d"), 0);
}

/* Sends a request to a part, as handlers/rest/rest.c makes it. Returns the HTTP code.
 * *ret_warnings: the mistakes in the body, valid until the next call. */
static int ask(struct api_fixture *f, enum hfd_verb verb, enum hfd_patch patch,
               enum hfd_subresource part, const char *query, const char *body,
               const char **ret_warnings) {
        static struct api_core_request request;
        const struct hf_resource of = part == HFD_SUB_SCALE ? deployments : pods;
        struct hfd_response answer = {0};

        request = (struct api_core_request){.request = {.verb = verb,
                                                        .patch = patch,
                                                        .subresource = part,
                                                        .resource = hfd_resource_of_part(part),
                                                        .ns = "default",
                                                        .body = body,
                                                        .n_body = strlen(body)}};
        request.request.part_of = hfd_resource_find(of.group, of.version, of.plural);
        (void)snprintf(request.request.name, sizeof request.request.name, "%s",
                       part == HFD_SUB_SCALE ? "d" : "p");
        assert_true(hfd_options_parse(&request.request, query, &answer));
        (void)api_core_request_run(f->registry, &request);
        (void)api_fixture_set_last(f, &request.response);
        if (ret_warnings)
                *ret_warnings = request.warnings;
        return f->last.status.http_code;
}

static void expect_replicas(struct api_fixture *f, const char *replicas) {
        char member[40];

        assert_int_equal(api_fixture_get(f, deployments, "default", "d"), 0);
        (void)snprintf(member, sizeof member, "\"replicas\":%s", replicas);
        assert_non_null(strstr(f->last.body, member));
}

static void test_the_last_of_duplicate_fields_counts_in_a_part(void **state) {
        struct api_fixture *f = *state;
        const char *warnings;

        create_objects(f);
        assert_int_equal(ask(f, HFD_UPDATE, 0, HFD_SUB_SCALE, "",
                             "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"replicas\":2,"
                             "\"replicas\":3},\"more\":1}",
                             &warnings),
                         200);
        assert_string_equal(warnings, "duplicate field \"spec.replicas\"\nunknown field \"more\"");
        expect_replicas(f, "3");
        assert_int_equal(ask(f, HFD_PATCH, HFD_PATCH_MERGE, HFD_SUB_SCALE, "",
                             "{\"spec\":{\"replicas\":4},\"spec\":{\"replicas\":5,\"x\":1}}",
                             &warnings),
                         200);
        assert_string_equal(warnings, "duplicate field \"spec\"\nunknown field \"spec.x\"");
        expect_replicas(f, "5");
        assert_int_equal(ask(f, HFD_CREATE, 0, HFD_SUB_BINDING, "",
                             "{\"metadata\":{\"name\":\"p\"},\"target\":{\"name\":\"a\","
                             "\"name\":\"b\"}}",
                             &warnings),
                         201);
        assert_string_equal(warnings, "duplicate field \"target.name\"");
        assert_int_equal(api_fixture_get(f, pods, "default", "p"), 0);
        assert_string_equal(api_fixture_text_at(f, "spec.nodeName"), "b");
        assert_int_equal(ask(f, HFD_CREATE, 0, HFD_SUB_EVICTION, "",
                             "{\"metadata\":{\"name\":\"p\"},\"deleteOptions\":{"
                             "\"preconditions\":{\"uid\":\"other\"}},\"deleteOptions\":{}}",
                             &warnings),
                         201);
        assert_string_equal(warnings, "duplicate field \"deleteOptions\"");
        assert_int_equal(api_fixture_get(f, pods, "default", "p"), HF_E_NOT_FOUND);
}

static void test_a_part_with_mistakes_is_refused_in_strict_mode(void **state) {
        struct api_fixture *f = *state;

        create_objects(f);
        assert_int_equal(ask(f, HFD_UPDATE, 0, HFD_SUB_SCALE, "fieldValidation=Strict",
                             "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"replicas\":2,"
                             "\"replicas\":3},\"more\":1}",
                             NULL),
                         400);
        api_fixture_expect_failure(f, 400, "BadRequest",
                                   "Scale in version \"v1\" cannot be handled as a Scale: strict "
                                   "decoding error: duplicate field \"spec.replicas\", unknown "
                                   "field \"more\"");
        assert_int_equal(ask(f, HFD_PATCH, HFD_PATCH_MERGE, HFD_SUB_SCALE, "fieldValidation=Strict",
                             "{\"spec\":{\"replicas\":4},\"spec\":{\"replicas\":5}}", NULL),
                         422);
        assert_non_null(
                strstr(f->last.status.message, "strict decoding error: duplicate field \"spec\""));
        assert_int_equal(ask(f, HFD_PATCH, HFD_PATCH_APPLY, HFD_SUB_SCALE,
                             "fieldManager=m&force=true",
                             "{\"apiVersion\":\"autoscaling/v1\",\"kind\":\"Scale\",\"spec\":{"
                             "\"replicas\":5,\"more\":1}}",
                             NULL),
                         500);
        assert_non_null(strstr(f->last.status.message, ".spec.more: field not declared in schema"));
        assert_int_equal(ask(f, HFD_PATCH, HFD_PATCH_APPLY, HFD_SUB_SCALE,
                             "fieldManager=m&force=true&fieldValidation=Strict",
                             "{\"apiVersion\":\"autoscaling/v1\",\"kind\":\"Scale\",\"spec\":{"
                             "\"replicas\":5,\"replicas\":6}}",
                             NULL),
                         400);
        assert_non_null(strstr(f->last.status.message, "duplicate field \"spec.replicas\""));
        expect_replicas(f, "1");
        assert_int_equal(ask(f, HFD_CREATE, 0, HFD_SUB_EVICTION, "fieldValidation=Strict",
                             "{\"metadata\":{\"name\":\"p\"},\"deleteOption\":{}}", NULL),
                         400);
        assert_int_equal(api_fixture_get(f, pods, "default", "p"), 0);
}

static void test_the_body_of_a_part_is_utf8(void **state) {
        struct api_fixture *f = *state;

        create_objects(f);
        assert_int_equal(ask(f, HFD_PATCH, HFD_PATCH_MERGE, HFD_SUB_SCALE, "",
                             "{\"metadata\":{\"annotations\":{\"a\":\"\xff\"}}}", NULL),
                         400);
        assert_int_equal(ask(f, HFD_CREATE, 0, HFD_SUB_BINDING, "",
                             "{\"metadata\":{\"annotations\":{\"a\":\"\xff\"}},\"target\":{"
                             "\"name\":\"a\"}}",
                             NULL),
                         400);
}

/* ---- which object, and which version of it ---- */

#define APPLIED(metadata)                                                                          \
        "{\"apiVersion\":\"autoscaling/v1\",\"kind\":\"Scale\",\"metadata\":{" metadata "},"       \
        "\"spec\":{\"replicas\":6}}"

static int apply(struct api_fixture *f, const char *body) {
        return ask(f, HFD_PATCH, HFD_PATCH_APPLY, HFD_SUB_SCALE, "fieldManager=m&force=true", body,
                   NULL);
}

static void test_a_scale_names_no_other_object_than_its_path(void **state) {
        static const char name[] = "the name of the object (e) does not match the name on the URL "
                                   "(d)",
                          namespace[] = "the namespace of the provided object does not match the "
                                        "namespace sent on the request";
        struct api_fixture *f = *state;

        create_objects(f);
        assert_int_equal(ask(f, HFD_PATCH, HFD_PATCH_MERGE, HFD_SUB_SCALE, "",
                             "{\"metadata\":{\"name\":\"e\"},\"spec\":{\"replicas\":6}}", NULL),
                         400);
        api_fixture_expect_failure(f, 400, "BadRequest", name);
        assert_int_equal(ask(f, HFD_PATCH, HFD_PATCH_JSON, HFD_SUB_SCALE, "",
                             "[{\"op\":\"replace\",\"path\":\"/metadata/namespace\",\"value\":"
                             "\"n\"},{\"op\":\"replace\",\"path\":\"/spec/replicas\",\"value\":6}]",
                             NULL),
                         400);
        api_fixture_expect_failure(f, 400, "BadRequest", namespace);
        assert_int_equal(apply(f, APPLIED("\"name\":\"e\"")), 400);
        api_fixture_expect_failure(f, 400, "BadRequest", name);
        assert_int_equal(apply(f, APPLIED("\"namespace\":\"n\"")), 400);
        api_fixture_expect_failure(f, 400, "BadRequest", namespace);
        expect_replicas(f, "1");
        assert_int_equal(apply(f, APPLIED("\"name\":\"d\",\"namespace\":\"default\"")), 200);
        expect_replicas(f, "6");
}

/* kube-apiserver has words of its own for them. */
static void test_a_binding_and_an_eviction_name_the_pod(void **state) {
        static const char *const bodies[] = {"{\"target\":{\"name\":\"n\"}}",
                                             "{\"metadata\":{\"name\":\"q\"},\"target\":{"
                                             "\"name\":\"n\"}}"};
        struct api_fixture *f = *state;

        create_objects(f);
        for (size_t i = 0; i < 2; i++) {
                assert_int_equal(ask(f, HFD_CREATE, 0, HFD_SUB_BINDING, "", bodies[i], NULL), 400);
                api_fixture_expect_failure(f, 400, "BadRequest",
                                           "name in URL does not match name in Binding object");
        }
        assert_int_equal(ask(f, HFD_CREATE, 0, HFD_SUB_EVICTION, "",
                             "{\"metadata\":{\"name\":\"q\"}}", NULL),
                         400);
        api_fixture_expect_failure(f, 400, "BadRequest",
                                   "name in URL does not match name in Eviction object");
        assert_int_equal(api_fixture_get(f, pods, "default", "p"), 0);
}

static void test_an_applied_scale_may_require_a_version(void **state) {
        struct api_fixture *f = *state;
        char body[400];

        create_objects(f);
        assert_int_equal(apply(f, APPLIED("\"resourceVersion\":\"1\"")), 409);
        expect_replicas(f, "1");
        (void)snprintf(body, sizeof body, APPLIED("\"resourceVersion\":\"%s\",\"uid\":\"%s\""),
                       api_fixture_text_at(f, "metadata.resourceVersion"),
                       api_fixture_text_at(f, "metadata.uid"));
        assert_int_equal(apply(f, body), 200);
        expect_replicas(f, "6");
}

static void test_a_scale_of_another_object_is_a_conflict(void **state) {
        struct api_fixture *f = *state;
        char message[300];

        create_objects(f);
        (void)snprintf(message, sizeof message,
                       "Operation cannot be fulfilled on deployments/scale.apps \"d\": "
                       "Precondition "
                       "failed: UID in precondition: x, UID in object meta: %s",
                       api_fixture_text_at(f, "metadata.uid"));
        assert_int_equal(ask(f, HFD_PATCH, HFD_PATCH_MERGE, HFD_SUB_SCALE, "",
                             "{\"metadata\":{\"uid\":\"x\"},\"spec\":{\"replicas\":6}}", NULL),
                         409);
        api_fixture_expect_failure(f, 409, "Conflict", message);
        assert_int_equal(apply(f, APPLIED("\"uid\":\"x\"")), 409);
        api_fixture_expect_failure(f, 409, "Conflict", message);
        expect_replicas(f, "1");
}

/* In Kubernetes the store compares the uid in a PUT, before the rest of the body is looked at. */
static void test_the_uid_in_an_update_of_a_scale_is_a_precondition(void **state) {
        struct api_fixture *f = *state;
        char end[200];

        create_objects(f);
        (void)snprintf(end, sizeof end,
                       ", ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in "
                       "precondition: x, UID in object meta: %s",
                       api_fixture_text_at(f, "metadata.uid"));
        for (int replicas = -1; replicas <= 6; replicas += 7) {
                char body[120];
                (void)snprintf(body, sizeof body,
                               "{\"metadata\":{\"name\":\"d\",\"uid\":\"x\"},\"spec\":{"
                               "\"replicas\":%d}}",
                               replicas);
                assert_int_equal(ask(f, HFD_UPDATE, 0, HFD_SUB_SCALE, "", body, NULL), 409);
                assert_ptr_equal(strstr(f->last.status.message,
                                        "Operation cannot be fulfilled on deployments.apps \"d\": "
                                        "StorageError: invalid object, Code: 4, Key: "),
                                 f->last.status.message);
                assert_non_null(strstr(f->last.status.message, "deployments/default/d, "));
                assert_non_null(strstr(f->last.status.message, end));
        }
        expect_replicas(f, "1");
}

static void test_a_patch_of_a_scale_fails_like_others(void **state) {
        struct api_fixture *f = *state;

        create_objects(f);
        assert_int_equal(ask(f, HFD_PATCH, HFD_PATCH_JSON, HFD_SUB_SCALE, "",
                             "[{\"op\":\"test\",\"path\":\"/spec/replicas\",\"value\":7}]", NULL),
                         422);
        assert_non_null(strstr(f->last.status.message, "the server rejected our request due to an "
                                                       "error in our request: "));
        assert_int_equal(ask(f, HFD_PATCH, HFD_PATCH_JSON, HFD_SUB_SCALE, "",
                             "[{\"op\":\"replace\",\"path\":\"\",\"value\":[]}]", NULL),
                         422);
        assert_non_null(strstr(f->last.status.message,
                               "cannot unmarshal array into Go value of type v1.Scale"));
}

/* ---- what another program has stored ---- */

static void test_a_binding_may_meet_any_stored_labels(void **state) {
        static const struct {
                const char *labels;
                int code;
        } cases[] = {{"[]", 400}, {"\"a\"", 400}, {"null", 201}, {"{}", 201}};
        struct api_fixture *f = *state;
        char text[300];

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                (void)snprintf(text, sizeof text,
                               "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":"
                               "\"p\",\"namespace\":\"default\",\"uid\":\"u\",\"labels\":%s},"
                               "\"spec\":{" CONTAINERS "}}",
                               cases[i].labels);
                assert_true(store_client_put(f->store, "/registry/pods/default/p", text) > 0);
                assert_int_equal(ask(f, HFD_CREATE, 0, HFD_SUB_BINDING, "",
                                     "{\"metadata\":{\"name\":\"p\",\"labels\":{\"l\":\"v\"}},"
                                     "\"target\":{\"name\":\"a\"}}",
                                     NULL),
                                 cases[i].code);
                if (cases[i].code != 201)
                        continue;
                assert_int_equal(api_fixture_get(f, pods, "default", "p"), 0);
                assert_string_equal(api_fixture_text_at(f, "metadata.labels.l"), "v");
        }
}

/* ---- the selector ---- */

static void test_the_selector_of_a_scale_is_sorted(void **state) {
        struct api_fixture *f = *state;

        create_objects(f);
        assert_int_equal(ask(f, HFD_GET, 0, HFD_SUB_SCALE, "", "", NULL), 200);
        assert_string_equal(api_fixture_text_at(f, "status.selector"), "b=2,z=1");
}

int main(void) {
        hfd_resources_add_workloads();
        const struct CMUnitTest tests[] = {
                API_TEST(test_the_last_of_duplicate_fields_counts_in_a_part),
                API_TEST(test_a_part_with_mistakes_is_refused_in_strict_mode),
                API_TEST(test_the_body_of_a_part_is_utf8),
                API_TEST(test_a_scale_names_no_other_object_than_its_path),
                API_TEST(test_a_binding_and_an_eviction_name_the_pod),
                API_TEST(test_an_applied_scale_may_require_a_version),
                API_TEST(test_a_scale_of_another_object_is_a_conflict),
                API_TEST(test_the_uid_in_an_update_of_a_scale_is_a_precondition),
                API_TEST(test_a_patch_of_a_scale_fails_like_others),
                API_TEST(test_a_binding_may_meet_any_stored_labels),
                API_TEST(test_the_selector_of_a_scale_is_sorted),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
