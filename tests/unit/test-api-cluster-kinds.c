/* SPDX-License-Identifier: Apache-2.0 */
/* Priority classes, runtime classes and API services: their defaults, and the messages of refusals.
 */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api_fixture.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "server/handlers/protobuf_body.h"
#include "server/resources/rows/resource_table.h"

static const struct hf_resource priorities = {"scheduling.k8s.io", "v1", "priorityclasses"};
static const struct hf_resource runtimes = {"node.k8s.io", "v1", "runtimeclasses"};
static const struct hf_resource templates = {"", "v1", "podtemplates"};
static const struct hf_resource services = {"apiregistration.k8s.io", "v1", "apiservices"};

static int create(struct api_fixture *f, struct hf_resource resource, const char *body) {
        return api_fixture_request(f, HF_VERB_CREATE, resource, NULL, NULL, NULL, body);
}

static int merge(struct api_fixture *f, struct hf_resource resource, const char *name,
                 const char *body) {
        return api_fixture_patch(f, resource, NULL, name, HFD_SUB_NONE, HFD_PATCH_MERGE, NULL,
                                 body);
}

static void expect_refused(struct api_fixture *f, struct hf_resource resource, const char *body,
                           const char *message) {
        assert_int_equal(create(f, resource, body), HF_E_INVALID);
        api_fixture_expect_failure(f, 422, "Invalid", message);
}

#define PRIORITY(name, more) "{\"metadata\":{\"name\":\"" name "\"}," more "}"
#define BAD_PRIORITY(name)   "PriorityClass.scheduling.k8s.io \"" name "\" is invalid: "
#define RESERVED                                                                                   \
        "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for "   \
        "system use only. error: "

static void test_priority_classes_are_defaulted_and_validated(void **state) {
        struct api_fixture *f = *state;

        assert_int_equal(create(f, priorities, PRIORITY("low", "\"globalDefault\":false")), 0);
        assert_non_null(strstr(f->last.body, "\"value\":0"));
        assert_non_null(strstr(f->last.body, "\"preemptionPolicy\":\"PreemptLowerPriority\""));
        assert_non_null(strstr(f->last.body, "\"generation\":1"));
        assert_null(strstr(f->last.body, "\"globalDefault\""));
        assert_int_equal(create(f, priorities, PRIORITY("top", "\"value\":1000000000")), 0);
        expect_refused(f, priorities, PRIORITY("over", "\"value\":1000000001"),
                       BAD_PRIORITY(
                               "over") "value: Forbidden: maximum allowed value of a user defined "
                                       "priority is 1000000000");
        expect_refused(f, priorities, PRIORITY("p", "\"preemptionPolicy\":\"Always\""),
                       BAD_PRIORITY(
                               "p") "preemptionPolicy: Unsupported value: \"Always\": supported "
                                    "values: \"PreemptLowerPriority\", \"Never\"");
        expect_refused(f, priorities, PRIORITY("p", "\"preemptionPolicy\":\"\""),
                       BAD_PRIORITY("p") "preemptionPolicy: Required value");
        expect_refused(f, priorities, PRIORITY("system-mine", "\"value\":1"),
                       BAD_PRIORITY("system-mine") RESERVED
                       "system-mine is not a known system priority class");
        expect_refused(f, priorities, PRIORITY("system-node-critical", "\"value\":1"),
                       BAD_PRIORITY("system-node-critical") RESERVED
                       "value of system-node-critical PriorityClass must be 2000001000");
        assert_int_equal(create(f, priorities,
                                PRIORITY("system-node-critical", "\"value\":2000001000")),
                         0);
}

static void test_priority_classes_change_in_part_only(void **state) {
        struct api_fixture *f = *state;

        assert_int_equal(create(f, priorities, PRIORITY("p", "\"value\":5")), 0);
        assert_int_equal(merge(f, priorities, "p", "{\"value\":6,\"preemptionPolicy\":\"Never\"}"),
                         HF_E_INVALID);
        api_fixture_expect_failure(f, 422, "Invalid",
                                   BAD_PRIORITY("p") "[value: Forbidden: may not be changed in an "
                                                     "update., preemptionPolicy: Invalid value: "
                                                     "\"Never\": field is immutable]");
        assert_int_equal(merge(f, priorities, "p", "{\"description\":\"d\"}"), 0);
        assert_non_null(strstr(f->last.body, "\"generation\":1"));
}

static void test_one_priority_class_is_the_default(void **state) {
        struct api_fixture *f = *state;
        static const char message[] = "priorityclasses.scheduling.k8s.io \"b\" is forbidden: "
                                      "PriorityClass a is already marked as default. Only one "
                                      "default can exist";

        assert_int_equal(create(f, priorities, PRIORITY("a", "\"globalDefault\":true")), 0);
        assert_int_equal(create(f, priorities, PRIORITY("b", "\"globalDefault\":true")),
                         HF_E_FORBIDDEN);
        api_fixture_expect_failure(f, 403, "Forbidden", message);
        assert_int_equal(create(f, priorities, PRIORITY("b", "\"value\":1")), 0);
        assert_int_equal(merge(f, priorities, "b", "{\"globalDefault\":true}"), HF_E_FORBIDDEN);
        api_fixture_expect_failure(f, 403, "Forbidden", message);
        assert_int_equal(merge(f, priorities, "a",
                               "{\"globalDefault\":true,\"description\":\"d\"}"),
                         0);
        assert_int_equal(merge(f, priorities, "a", "{\"globalDefault\":null}"), 0);
        assert_int_equal(merge(f, priorities, "b", "{\"globalDefault\":true}"), 0);
}

static void test_system_priority_classes_stay(void **state) {
        struct api_fixture *f = *state;

        assert_int_equal(create(f, priorities,
                                PRIORITY("system-cluster-critical", "\"value\":2000000000")),
                         0);
        assert_int_equal(api_fixture_delete(f, priorities, NULL, "system-cluster-critical", NULL),
                         HF_E_FORBIDDEN);
        api_fixture_expect_failure(f, 403, "Forbidden",
                                   "priorityclasses.scheduling.k8s.io \"system-cluster-critical\" "
                                   "is forbidden: this is a system priority class and cannot be "
                                   "deleted");
}

#define RUNTIME(more)   "{\"metadata\":{\"name\":\"r\"}," more "}"
#define TOLERATES(list) "\"handler\":\"runc\",\"scheduling\":{\"tolerations\":[" list "]}"
#define BAD_RUNTIME     "RuntimeClass.node.k8s.io \"r\" is invalid: "

static void test_runtime_classes_are_validated(void **state) {
        struct api_fixture *f = *state;

        expect_refused(f, runtimes, RUNTIME("\"handler\":\"\""),
                       BAD_RUNTIME "handler: Required value");
        assert_int_equal(create(f, runtimes, RUNTIME("\"handler\":\"Run_C\"")), HF_E_INVALID);
        assert_non_null(strstr(api_fixture_text_at(f, "message"),
                               "handler: Invalid value: \"Run_C\": a lowercase RFC 1123 label"));
        expect_refused(f, runtimes,
                       RUNTIME("\"handler\":\"runc\",\"overhead\":{\"podFixed\":{\"cpu\":\"-1\","
                               "\"pods\":"
                               "\"1\",\"x.org/gpu\":-2}}"),
                       BAD_RUNTIME
                       "[overhead.limits[cpu]: Invalid value: \"-1\": must be greater than or "
                       "equal to 0, overhead.limits[pods]: Invalid value: \"pods\": must be a "
                       "standard resource for containers, overhead.limits[x.org/gpu]: Invalid "
                       "value: \"-2\": must be greater than or equal to 0]");
        expect_refused(
                f, runtimes,
                RUNTIME(TOLERATES("{\"operator\":\"Equal\"},{\"key\":\"a\",\"operator\":\"Exists\","
                                  "\"value\":\"b\"}")),
                BAD_RUNTIME
                "[scheduling.tolerations[0].operator: Invalid value: \"Equal\": operator must be "
                "Exists when `key` is empty, which means \"match all values and all keys\", "
                "scheduling.tolerations[1].operator: Invalid value: \"b\": value must be empty "
                "when "
                "`operator` is 'Exists']");
        expect_refused(
                f, runtimes,
                RUNTIME(TOLERATES("{\"key\":\"a\",\"operator\":\"Near\",\"effect\":\"E\","
                                  "\"tolerationSeconds\":1}")),
                BAD_RUNTIME
                "[scheduling.tolerations[0].effect: Invalid value: \"E\": effect must be "
                "'NoExecute' when `tolerationSeconds` is set, scheduling.tolerations[0].operator: "
                "Unsupported value: \"Near\": supported values: \"Equal\", \"Exists\", "
                "scheduling.tolerations[0].effect: Unsupported value: \"E\": supported values: "
                "\"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"]");
        assert_int_equal(create(f, runtimes,
                                RUNTIME("\"handler\":\"runc\",\"overhead\":{\"podFixed\":{\"cpu\":"
                                        "\"1\"}},\"scheduling\":{\"nodeSelector\":{\"a\":\"b\"},"
                                        "\"tolerations\":[{\"key\":\"a\",\"operator\":\"Exists\"}"
                                        "]}")),
                         0);
        assert_int_equal(merge(f, runtimes, "r", "{\"handler\":\"other\"}"), HF_E_INVALID);
        /* A patch without a resourceVersion gets that of the object. */
        api_fixture_expect_failure(f, 422, "Invalid",
                                   BAD_RUNTIME "handler: Invalid value: \"other\": field is "
                                               "immutable");
}

#define SERVICE(name, spec) "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{" spec "}}"
#define GOOD_SPEC                                                                                  \
        "\"group\":\"x.org\",\"version\":\"v1\",\"groupPriorityMinimum\":100,\"versionPriority\":" \
        "10"
#define BAD_SERVICE(name) "APIService.apiregistration.k8s.io \"" name "\" is invalid: "

static void test_api_services_are_defaulted_and_validated(void **state) {
        struct api_fixture *f = *state;

        assert_int_equal(create(f, services, SERVICE("v1.x.org", GOOD_SPEC)), 0);
        assert_non_null(strstr(f->last.body, "\"reason\":\"Local\""));
        assert_int_equal(create(f, services,
                                SERVICE("v2.x.org",
                                        "\"group\":\"x.org\",\"version\":\"v2\","
                                        "\"groupPriorityMinimum\":100,\"versionPriority\":10,"
                                        "\"service\":{\"name\":\"s\",\"namespace\":\"n\"}")),
                         0);
        assert_non_null(strstr(f->last.body, "\"port\":443"));
        assert_null(strstr(f->last.body, "\"conditions\""));
        expect_refused(f, services, SERVICE("v3.x.org", GOOD_SPEC),
                       BAD_SERVICE(
                               "v3.x.org") "metadata.name: Invalid value: \"v3.x.org\": must be "
                                           "`spec.version+\".\"+spec.group`: \"v1.x.org\"");
        expect_refused(
                f, services,
                SERVICE("v2.", "\"version\":\"v2\",\"service\":{},\"caBundle\":\"YQ==\","
                               "\"insecureSkipTLSVerify\":true"),
                BAD_SERVICE("v2.") "[spec.group: Required value: only v1 may have an empty group "
                                   "and it better be legacy kube, spec.groupPriorityMinimum: "
                                   "Invalid value: 0: must be positive and less than 20000, "
                                   "spec.versionPriority: Invalid value: 0: must be positive and "
                                   "less than 1000, spec.service.namespace: Required value, "
                                   "spec.service.name: Required value, "
                                   "spec.insecureSkipTLSVerify: Invalid value: true: may not be "
                                   "true if caBundle is present]");
        expect_refused(
                f, services,
                SERVICE("v1.y.org", "\"group\":\"y.org\",\"version\":\"v1\","
                                    "\"groupPriorityMinimum\":20001,\"versionPriority\":1,"
                                    "\"caBundle\":\"YWI=\",\"insecureSkipTLSVerify\":true"),
                BAD_SERVICE("v1.y.org") "[spec.groupPriorityMinimum: Invalid value: 20001: must be "
                                        "positive and less than "
                                        "20000, spec.caBundle: Invalid value: \"2 bytes\": local "
                                        "APIServices may not have "
                                        "a caBundle, spec.insecureSkipTLSVerify: Invalid value: "
                                        "true: local APIServices "
                                        "may not have insecureSkipTLSVerify]");
}

/* Every cut of the body is refused or decoded as a smaller message, without a read beyond its end.
 */
static void expect_protobuf(const struct hf_resource *resource, const char *body, size_t n,
                            const char *wanted) {
        const struct hfd_resource *row =
                hfd_resource_find(resource->group, resource->version, resource->plural);
        struct hf__strbuf out = {0};
        struct hf__json *json = NULL;

        assert_int_equal(hfd_protobuf_to_json(row, false, body, n, &json), 0);
        hf__json_print(json, &out);
        assert_string_equal(out.data, wanted);
        hf__strbuf_done(&out);
        hf__json_free(json);
        for (size_t cut = 4; cut < n; cut++) {
                char *copy = malloc(cut);
                memcpy(copy, body, cut);
                json = NULL;
                if (hfd_protobuf_to_json(row, false, copy, cut, &json) == 0)
                        hf__json_free(json);
                free(copy);
        }
}

static void test_protobuf_bodies_have_bytes_and_quantities(void **state) {
        static const char runtime[] = "k8s\0\x12\x12\x12\x01h\x1a\x0d\x0a\x0b\x0a\x03"
                                      "cpu\x12\x04\x0a\x02"
                                      "1m";
        static const char service[] = "k8s\0\x12\x08\x12\x06\x2a\x01"
                                      "b\x2a\x01"
                                      "a";

        expect_protobuf(&runtimes, runtime, sizeof runtime - 1,
                        "{\"handler\":\"h\",\"overhead\":{\"podFixed\":{\"cpu\":\"1m\"}}}");
        expect_protobuf(&services, service, sizeof service - 1,
                        "{\"spec\":{\"caBundle\":\"YQ==\"}}");
}

/* Clients in Go send an empty message for a quantity that was never set. */
static void test_an_empty_quantity_in_protobuf_is_zero(void **state) {
        static const char runtime[] = "k8s\0\x12\x0e\x12\x01h\x1a\x09\x0a\x07\x0a\x03"
                                      "cpu\x12\0";
        static const char limit[] =
                "k8s\0\x12\x0f\x12\x0d\x12\x0b\x0a\x09\x0a\x01v\x12\x04\x12\x02\x12\0";
        static const char divisor[] =
                "k8s\0\x12\x11\x12\x0f\x12\x0d\x12\x0b\x3a\x09\x1a\x07\x12\x05"
                "\x12\x01r\x1a\0";

        expect_protobuf(&runtimes, runtime, sizeof runtime - 1,
                        "{\"handler\":\"h\",\"overhead\":{\"podFixed\":{\"cpu\":\"0\"}}}");
        expect_protobuf(&templates, limit, sizeof limit - 1,
                        "{\"template\":{\"spec\":{\"volumes\":[{\"name\":\"v\","
                        "\"emptyDir\":{\"sizeLimit\":\"0\"}}]}}}");
        /* The defaults add it to a field that is no pointer, as with a body in JSON. */
        expect_protobuf(&templates, divisor, sizeof divisor - 1,
                        "{\"template\":{\"spec\":{\"containers\":[{\"env\":[{\"valueFrom\":{"
                        "\"resourceFieldRef\":{\"resource\":\"r\"}}}]}]}}}");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                API_TEST(test_priority_classes_are_defaulted_and_validated),
                API_TEST(test_priority_classes_change_in_part_only),
                API_TEST(test_one_priority_class_is_the_default),
                API_TEST(test_system_priority_classes_stay),
                API_TEST(test_runtime_classes_are_validated),
                API_TEST(test_api_services_are_defaulted_and_validated),
                cmocka_unit_test(test_protobuf_bodies_have_bytes_and_quantities),
                cmocka_unit_test(test_an_empty_quantity_in_protobuf_is_zero),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
