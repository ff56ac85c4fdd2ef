/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects that were stored before their kind had a default. An update compares with the object that
 * has its defaults, as Kubernetes does: so the default changes nothing, and has no owner.
 */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api_fixture.h"
#include "server/resources/rows/resource_table.h"
#include "store_client.h"

static const struct hf_resource statefulsets = {"apps", "v1", "statefulsets"},
                                jobs = {"batch", "v1", "jobs"}, pods = {"", "v1", "pods"},
                                secrets = {"", "v1", "secrets"};

#define STORED(version, kind, rest)                                                                \
        "{\"kind\":\"" kind "\",\"apiVersion\":\"" version                                         \
        "\",\"metadata\":{\"name\":\"a\",\"namespace\":\"default\",\"uid\":\"u\","                 \
        "\"generation\":3,\"creationTimestamp\":\"2026-01-01T00:00:00Z\"}," rest "}"
#define SENT(rest) "{\"metadata\":{\"name\":\"a\"}," rest "}"
#define POD(policy)                                                                                \
        "{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}],\"restartPolicy\":\"" policy "\"}"
#define SET                                                                                        \
        "\"serviceName\":\"s\",\"selector\":{\"matchLabels\":{\"a\":\"b\"}},\"template\":"         \
        "{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":" POD("Always") "}"
#define JOB   "\"template\":{\"spec\":" POD("Never") "}"
#define LABEL "{\"metadata\":{\"labels\":{\"x\":\"y\"}}}"

static void store(struct api_fixture *f, const char *plural, const char *text) {
        char key[80];

        (void)snprintf(key, sizeof key, "/registry/%s/default/a", plural);
        assert_true(store_client_put(f->store, key, text) > 0);
}

static int put(struct api_fixture *f, struct hf_resource resource, const char *body) {
        return api_fixture_request(f, HF_VERB_UPDATE, resource, "default", "a", NULL, body);
}

static int patch(struct api_fixture *f, struct hf_resource resource, const char *body) {
        return api_fixture_patch(f, resource, "default", "a", HFD_SUB_NONE, HFD_PATCH_MERGE, NULL,
                                 body);
}

/* Both fields cannot change, and clients that have read a newer object of the kind send them. */
static void test_a_default_changes_no_immutable_field(void **state) {
        struct api_fixture *f = *state;

        store(f, "statefulsets", STORED("apps/v1", "StatefulSet", "\"spec\":{" SET "}"));
        assert_int_equal(put(f, statefulsets,
                             SENT("\"spec\":{\"podManagementPolicy\":\"OrderedReady\"," SET "}")),
                         0);
        assert_string_equal(api_fixture_text_at(f, "spec.podManagementPolicy"), "OrderedReady");
        assert_int_equal(put(f, statefulsets,
                             SENT("\"spec\":{\"podManagementPolicy\":\"Parallel\"," SET "}")),
                         HF_E_INVALID);
        store(f, "jobs", STORED("batch/v1", "Job", "\"spec\":{" JOB "}"));
        assert_int_equal(put(f, jobs, SENT("\"spec\":{\"completionMode\":\"NonIndexed\"," JOB "}")),
                         0);
        assert_string_equal(api_fixture_text_at(f, "spec.completionMode"), "NonIndexed");
        store(f, "secrets", STORED("v1", "Secret", "\"type\":\"\",\"data\":{}"));
        assert_int_equal(put(f, secrets, SENT("\"type\":\"Opaque\"")), 0);
        assert_int_equal(put(f, secrets, SENT("\"type\":\"other\"")), HF_E_INVALID);
}

/* A patch of something else adds the defaults, which are nobody's, and no generation. */
static void test_a_default_has_no_owner_and_no_generation(void **state) {
        struct api_fixture *f = *state;

        store(f, "statefulsets",
              "{\"kind\":\"StatefulSet\",\"apiVersion\":\"apps/v1\",\"metadata\":{\"name\":"
              "\"a\",\"namespace\":\"default\",\"uid\":\"u\",\"generation\":3,"
              "\"managedFields\":[{\"manager\":\"m\",\"operation\":\"Update\",\"apiVersion\":"
              "\"apps/v1\",\"time\":\"2026-01-01T00:00:00Z\",\"fieldsType\":\"FieldsV1\","
              "\"fieldsV1\":{\"f:spec\":{\"f:serviceName\":{}}}}]},\"spec\":{" SET "}}");
        assert_int_equal(patch(f, statefulsets, LABEL), 0);
        assert_string_equal(api_fixture_text_at(f, "spec.podManagementPolicy"), "OrderedReady");
        assert_non_null(strstr(f->last.body, "\"generation\":3,"));
        assert_non_null(strstr(f->last.body, "\"f:labels\""));
        assert_null(strstr(f->last.body, "f:podManagementPolicy"));
}

/* The object with its defaults is not the one that is stored, so it is written. */
static void test_a_default_that_is_sent_is_stored(void **state) {
        struct api_fixture *f = *state;
        uint64_t before;
        const char *key = "/registry/statefulsets/default/a";

        store(f, "statefulsets", STORED("apps/v1", "StatefulSet", "\"spec\":{" SET "}"));
        before = store_client_mod_revision(f->store, key);
        assert_int_equal(put(f, statefulsets,
                             "{\"kind\":\"StatefulSet\",\"apiVersion\":\"apps/v1\",\"metadata\":{"
                             "\"name\":\"a\"},\"spec\":{" SET "}}"),
                         0);
        assert_string_equal(api_fixture_text_at(f, "spec.podManagementPolicy"), "OrderedReady");
        uint64_t written = store_client_mod_revision(f->store, key);
        assert_true(written > before);
        /* Now it has them: the same members in another order write nothing. */
        assert_int_equal(put(f, statefulsets,
                             "{\"spec\":{\"replicas\":1," SET "},\"metadata\":{\"name\":\"a\"},"
                             "\"apiVersion\":\"apps/v1\",\"kind\":\"StatefulSet\"}"),
                         0);
        assert_int_equal(store_client_mod_revision(f->store, key), written);
}

/* Another program may have stored anything. Defaults are set around what has a wrong type. */
static void test_values_of_wrong_types_in_the_store_are_harmless(void **state) {
        static const char *const specs[] = {
                "7",
                "[]",
                "{\"template\":true,\"volumeClaimTemplates\":{\"a\":5},\"updateStrategy\":[1]}",
                "{\"template\":{\"metadata\":4,\"spec\":{\"containers\":\"x\",\"volumes\":[7]}}}",
                ("{\"template\":{\"spec\":{\"volumes\":[[\"x\"]],\"containers\":[{\"resources\":"
                 "{\"limits\":[1]}}]}}}"),
        };
        static const char pod[] = "\"spec\":{\"containers\":[5,{\"name\":\"c\",\"image\":\"i\","
                                  "\"resources\":{\"limits\":{\"cpu\":\"1\"},\"requests\":[2]},"
                                  "\"ports\":{},\"env\":[[]]}],\"volumes\":{\"a\":[]}},"
                                  "\"status\":[]";
        struct api_fixture *f = *state;
        char text[600];

        for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
                (void)snprintf(text, sizeof text, STORED("apps/v1", "StatefulSet", "\"spec\":%s"),
                               specs[i]);
                store(f, "statefulsets", text);
                assert_int_not_equal(patch(f, statefulsets, LABEL), 0);
                assert_int_equal(f->last.status.http_code, 422);
        }
        (void)snprintf(text, sizeof text, "%s%s}",
                       "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\","
                       "\"namespace\":\"default\",\"uid\":\"u\"},",
                       pod);
        store(f, "pods", text);
        assert_int_not_equal(patch(f, pods, LABEL), 0);
        assert_int_equal(f->last.status.http_code, 422);
}

/* Containers and limits of a wrong type, beside values that would get defaults from them. */
static void test_limits_of_wrong_types_in_the_store_are_harmless(void **state) {
        static const struct hf_resource limit_ranges = {"", "v1", "limitranges"};
        struct api_fixture *f = *state;

        store(f, "pods",
              "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\",\"namespace\":"
              "\"default\",\"uid\":\"u\"},\"spec\":{\"volumes\":[[\"x\"]],\"containers\":[{"
              "\"name\":"
              "\"c\",\"image\":\"i\",\"resources\":{\"limits\":[1],\"requests\":{\"cpu\":\"1\"}}}]}"
              "}");
        assert_int_not_equal(patch(f, pods, LABEL), 0);
        assert_int_equal(f->last.status.http_code, 422);
        store(f, "limitranges",
              STORED("v1", "LimitRange",
                     "\"spec\":{\"limits\":[{\"type\":\"Container\",\"max\":[\"x\"]}]}"));
        assert_int_not_equal(patch(f, limit_ranges, LABEL), 0);
        assert_int_equal(f->last.status.http_code, 422);
}

/* A valid configuration takes the place of one whose rules are no objects. */
static void test_a_configuration_with_odd_rules_in_the_store_is_replaced(void **state) {
        static const struct hf_resource hooks = {"admissionregistration.k8s.io", "v1",
                                                 "validatingwebhookconfigurations"},
                                        policies = {"admissionregistration.k8s.io", "v1",
                                                    "validatingadmissionpolicies"};
        struct api_fixture *f = *state;

        assert_true(store_client_put(f->store, "/registry/validatingwebhookconfigurations/a",
                                     STORED("admissionregistration.k8s.io/v1",
                                            "ValidatingWebhookConfiguration",
                                            "\"webhooks\":[{\"rules\":[\"x\"]}]")) > 0);
        assert_int_equal(api_fixture_patch(f, hooks, NULL, "a", HFD_SUB_NONE, HFD_PATCH_MERGE, NULL,
                                           "{\"webhooks\":[]}"),
                         0);
        assert_true(store_client_put(
                            f->store, "/registry/validatingadmissionpolicies/a",
                            STORED("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy",
                                   "\"spec\":{\"matchConstraints\":{\"resourceRules\":[7]}}")) > 0);
        assert_int_equal(
                api_fixture_patch(f, policies, NULL, "a", HFD_SUB_NONE, HFD_PATCH_MERGE, NULL,
                                  "{\"spec\":{\"matchConstraints\":{\"resourceRules\":[{"
                                  "\"apiGroups\":[\"\"],\"apiVersions\":[\"v1\"],\"operations\":["
                                  "\"CREATE\"],\"resources\":[\"pods\"]}]},\"validations\":[{"
                                  "\"expression\":\"true\"}]}}"),
                0);
}

/* Older versions of the server stored the line breaks of a manifest. The bytes are the same without
 * them, so an immutable Secret can get a label; other bytes it cannot get. */
static void test_line_breaks_in_the_store_are_no_change(void **state) {
        struct api_fixture *f = *state;

        store(f, "secrets",
              STORED("v1", "Secret",
                     "\"type\":\"Opaque\",\"immutable\":true,\"data\":{\"k\":\"aGVs\\nbG8=\"}"));
        assert_int_equal(patch(f, secrets, LABEL), 0);
        assert_int_not_equal(patch(f, secrets, "{\"data\":{\"k\":\"aGVsbG9v\"}}"), 0);
        assert_int_equal(f->last.status.http_code, 422);
        assert_int_not_equal(patch(f, secrets, "{\"data\":{\"l\":\"\"}}"), 0);
        assert_int_equal(f->last.status.http_code, 422);
}

int main(void) {
        hfd_resources_add_workloads();
        const struct CMUnitTest tests[] = {
                API_TEST(test_a_default_changes_no_immutable_field),
                API_TEST(test_a_default_has_no_owner_and_no_generation),
                API_TEST(test_a_default_that_is_sent_is_stored),
                API_TEST(test_values_of_wrong_types_in_the_store_are_harmless),
                API_TEST(test_limits_of_wrong_types_in_the_store_are_harmless),
                API_TEST(test_a_configuration_with_odd_rules_in_the_store_is_replaced),
                API_TEST(test_line_breaks_in_the_store_are_no_change),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
