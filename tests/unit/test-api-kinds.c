/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secrets, service accounts, lease candidates, roles and bindings: their fields, the messages of
 * refusals, their tables.
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
#include "base/strbuf.h"
#include "server/cacher/history/object_tree.h"
#include "server/resources/rows/resource_table.h"

#define RBAC "rbac.authorization.k8s.io"

static const struct hf_resource secrets = {"", "v1", "secrets"};
static const struct hf_resource accounts = {"", "v1", "serviceaccounts"};
static const struct hf_resource lease_objects = {"coordination.k8s.io", "v1", "leases"};
static const struct hf_resource candidates = {"coordination.k8s.io", "v1beta1", "leasecandidates"};
static const struct hf_resource roles = {RBAC, "v1", "roles"};
static const struct hf_resource cluster_roles = {RBAC, "v1", "clusterroles"};
static const struct hf_resource bindings = {RBAC, "v1", "rolebindings"};
static const struct hf_resource cluster_bindings = {RBAC, "v1", "clusterrolebindings"};

static int create(struct api_fixture *f, struct hf_resource resource, const char *body) {
        bool cluster = strncmp(resource.plural, "cluster", 7) == 0;

        return api_fixture_request(f, HF_VERB_CREATE, resource, cluster ? NULL : "default", NULL,
                                   NULL, body);
}

static int update(struct api_fixture *f, struct hf_resource resource, const char *name,
                  const char *body) {
        bool cluster = strncmp(resource.plural, "cluster", 7) == 0;

        return api_fixture_request(f, HF_VERB_UPDATE, resource, cluster ? NULL : "default", name,
                                   NULL, body);
}

static void expect_refused(struct api_fixture *f, struct hf_resource resource, const char *body,
                           const char *message) {
        assert_int_equal(create(f, resource, body), HF_E_INVALID);
        api_fixture_expect_failure(f, 422, "Invalid", message);
}

static void unreadable(struct api_fixture *f, struct hf_resource resource, const char *body,
                       const char *message) {
        assert_int_equal(create(f, resource, body), HF_E_INVALID);
        api_fixture_expect_failure(f, 400, "BadRequest", message);
}

static void test_secrets_merge_string_data_and_keep_their_type(void **state) {
        struct api_fixture *f = *state;

        assert_int_equal(create(f, secrets,
                                "{\"metadata\":{\"name\":\"s\"},\"data\":{\"a\":\"MQ==\",\"b\":"
                                "\"Mg==\"},\"stringData\":{\"b\":\"foo\","
                                "\"c\":\"\"}}"),
                         0);
        assert_non_null(
                strstr(f->last.body, "\"data\":{\"a\":\"MQ==\",\"b\":\"Zm9v\",\"c\":\"\"}"));
        assert_null(strstr(f->last.body, "stringData"));
        assert_string_equal(api_fixture_text_at(f, "type"), "Opaque");
        assert_int_equal(update(f, secrets, "s",
                                "{\"metadata\":{\"name\":\"s\"},\"type\":\"other\"}"),
                         HF_E_INVALID);
        api_fixture_expect_failure(f, 422, "Invalid",
                                   "Secret \"s\" is invalid: type: Invalid value: \"other\": field "
                                   "is immutable");
        assert_int_equal(update(f, secrets, "s",
                                "{\"metadata\":{\"name\":\"s\"},\"immutable\":true,\"data\":{\"a\":"
                                "\"MQ==\"}}"),
                         0);
        assert_string_equal(api_fixture_text_at(f, "type"), "Opaque");
        assert_int_equal(update(f, secrets, "s",
                                "{\"metadata\":{\"name\":\"s\"},\"immutable\":true,\"data\":{\"a\":"
                                "\"Mg==\"}}"),
                         HF_E_INVALID);
        api_fixture_expect_failure(f, 422, "Invalid",
                                   "Secret \"s\" is invalid: data: Forbidden: field is immutable "
                                   "when `immutable` is set");
        assert_int_equal(update(f, secrets, "s",
                                "{\"metadata\":{\"name\":\"s\",\"labels\":{\"a\":\"b\"}},"
                                "\"immutable\":true,\"data\":{\"a\":\"MQ==\"}}"),
                         0);
}

static void test_secrets_are_validated_by_their_type(void **state) {
        struct api_fixture *f = *state;

        unreadable(f, secrets, "{\"metadata\":{\"name\":\"t\"},\"data\":{\"a\":\"MQ=\"}}",
                   "Secret in version \"v1\" cannot be handled as a Secret: illegal base64 data at "
                   "input byte 3");
        unreadable(f, secrets, "{\"metadata\":{\"name\":\"t\"},\"data\":{\"a\":1}}",
                   "Secret in version \"v1\" cannot be handled as a Secret: json: cannot unmarshal "
                   "number into Go struct field Secret.data of type []uint8");
        expect_refused(f, secrets,
                       "{\"metadata\":{\"name\":\"t\"},\"type\":\"kubernetes.io/ssh-auth\","
                       "\"data\":{\"ssh-privatekey\":\"\"}}",
                       "Secret \"t\" is invalid: data[ssh-privatekey]: Required value");
        expect_refused(f, secrets, "{\"metadata\":{\"name\":\"t\"},\"type\":\"kubernetes.io/tls\"}",
                       "Secret \"t\" is invalid: [data[tls.crt]: Required value, data[tls.key]: "
                       "Required value]");
        expect_refused(f, secrets,
                       "{\"metadata\":{\"name\":\"t\"},\"type\":\"kubernetes.io/"
                       "service-account-token\"}",
                       "Secret \"t\" is invalid: "
                       "metadata.annotations[kubernetes.io/service-account.name]: Required value");
        expect_refused(f, secrets,
                       "{\"metadata\":{\"name\":\"t\"},\"type\":\"kubernetes.io/dockercfg\","
                       "\"stringData\":{\".dockercfg\":\"1\"}}",
                       "Secret \"t\" is invalid: data[.dockercfg]: Invalid value: "
                       "\"<secret contents redacted>\": it is no JSON object");
        assert_int_equal(create(f, secrets,
                                "{\"metadata\":{\"name\":\"n\"},\"type\":\"kubernetes.io/"
                                "dockercfg\",\"stringData\":{\".dockercfg\":\"null\"}}"),
                         0);
        assert_int_equal(create(f, secrets,
                                "{\"metadata\":{\"name\":\"t\"},\"stringData\":{\"a b\":\"\"}}"),
                         HF_E_INVALID);
        assert_non_null(
                strstr(api_fixture_text_at(f, "message"),
                       "data[a b]: Invalid value: \"a b\": a valid config key must consist of"));
}

static void test_secrets_can_be_selected_by_their_type(void **state) {
        struct api_fixture *f = *state;

        assert_int_equal(create(f, secrets, "{\"metadata\":{\"name\":\"s\"}}"), 0);
        assert_int_equal(api_fixture_request(f, HF_VERB_LIST, secrets, "default", NULL,
                                             "fieldSelector=type%3DOpaque", NULL),
                         0);
        assert_int_equal(api_fixture_count_at(f, "items"), 1);
        assert_int_equal(api_fixture_request(f, HF_VERB_LIST, secrets, "default", NULL,
                                             "fieldSelector=type!%3DOpaque", NULL),
                         0);
        assert_int_equal(api_fixture_count_at(f, "items"), 0);
}

static void test_secrets_are_limited_to_1_mib(void **state) {
        struct api_fixture *f = *state;
        size_t n = (1u << 20) + 3;
        char *body = malloc(2 * n);

        for (int over = 0; over < 2; over++) {
                size_t at = (size_t)
                        snprintf(body, 2 * n,
                                 "{\"metadata\":{\"name\":\"s%d\"},\"stringData\":{\"a\":\"", over);
                memset(body + at, 'x', (1u << 20) + (size_t)over);
                (void)snprintf(body + at + (1u << 20) + over, 8, "\"}}");
                if (over)
                        expect_refused(f, secrets, body,
                                       "Secret \"s1\" is invalid: data: Too long: may not be more "
                                       "than "
                                       "1048576 bytes");
                else
                        assert_int_equal(create(f, secrets, body), 0);
        }
        assert_non_null(strstr(f->last.body, "\"reason\":\"FieldValueTooLong\""));
        free(body);
}

static void make_invalid(struct api_fixture *f, struct hf_resource resource, const char *ns,
                         const char *body, const char *message) {
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, resource, ns, NULL, NULL, body),
                         HF_E_INVALID);
        api_fixture_expect_failure(f, 422, "Invalid", message);
}

#define NAME_RULE                                                                                  \
        "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with "   \
        "an "                                                                                      \
        "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "     \
        "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"

static void test_keys_of_labels_are_refused_in_the_words_of_kubernetes(void **state) {
        struct api_fixture *f = *state;

        make_invalid(f, api_configmaps, "default",
                     "{\"metadata\":{\"name\":\"a\",\"labels\":{\"a/b/c\":\"\"}}}",
                     "ConfigMap \"a\" is invalid: metadata.labels: Invalid value: \"a/b/c\": a "
                     "valid "
                     "label key " NAME_RULE " with an optional DNS subdomain prefix and '/' (e.g. "
                     "'example.com/MyName')");
        make_invalid(f, api_configmaps, "default",
                     "{\"metadata\":{\"name\":\"a\",\"labels\":{\"/b\":\"\"}}}",
                     "ConfigMap \"a\" is invalid: metadata.labels: Invalid value: \"/b\": prefix "
                     "part "
                     "must be non-empty");
        make_invalid(f, api_configmaps, "default",
                     "{\"metadata\":{\"name\":\"a\",\"annotations\":{\"a/\":\"\"}}}",
                     "ConfigMap \"a\" is invalid: [metadata.annotations: Invalid value: \"a/\": "
                     "name "
                     "part must be non-empty, metadata.annotations: Invalid value: \"a/\": name "
                     "part " NAME_RULE "]");
        /* In an annotation the case does not matter, not even in the prefix. */
        api_fixture_make(f, api_configmaps, "default",
                         "{\"metadata\":{\"name\":\"a\",\"annotations\":{\"Example.COM/"
                         "B\":\"\"}}}");
}

static void test_a_key_of_a_configmap_is_in_one_part_only(void **state) {
        make_invalid(*state, api_configmaps, "default",
                     "{\"metadata\":{\"name\":\"a\"},\"data\":{\"x\":\"\",\"y\":\"\"},"
                     "\"binaryData\":{"
                     "\"y\":\"\"}}",
                     "ConfigMap \"a\" is invalid: data[y]: Invalid value: \"y\": duplicate of key "
                     "present in binaryData");
}

static void test_a_cluster_scoped_object_loses_its_namespace(void **state) {
        struct api_fixture *f = *state;

        api_fixture_make(f, api_workspaces, NULL,
                         "{\"metadata\":{\"name\":\"w\",\"namespace\":\"default\"}}");
        assert_string_equal(api_fixture_text_at(f, "metadata.namespace"), "");
}

static void test_service_accounts_are_validated(void **state) {
        struct api_fixture *f = *state;

        assert_int_equal(create(f, accounts,
                                "{\"metadata\":{\"name\":\"a\"},\"secrets\":[{\"name\":\"s\"}],"
                                "\"imagePullSecrets\":null,"
                                "\"automountServiceAccountToken\":false}"),
                         0);
        assert_null(strstr(f->last.body, "imagePullSecrets"));
        unreadable(f, accounts, "{\"metadata\":{\"name\":\"b\"},\"secrets\":[\"s\"]}",
                   "ServiceAccount in version \"v1\" cannot be handled as a ServiceAccount: json: "
                   "cannot unmarshal string into Go struct field ServiceAccount.secrets of type "
                   "v1.ObjectReference");
        assert_int_equal(create(f, accounts,
                                "{\"metadata\":{\"name\":\"b\"},"
                                "\"automountServiceAccountToken\":\"no\"}"),
                         HF_E_INVALID);
}

static void test_roles_are_validated(void **state) {
        struct api_fixture *f = *state;

        assert_int_equal(create(f, roles,
                                "{\"metadata\":{\"name\":\"system:reader\"},\"rules\":[{\"verbs\":["
                                "\"get\"],\"apiGroups\":[\"\"],"
                                "\"resources\":["
                                "\"pods\"]}]}"),
                         0);
        assert_int_equal(api_fixture_request(f, HF_VERB_GET, roles, "default", "system:reader",
                                             NULL, NULL),
                         0);
        assert_int_equal(create(f, roles, "{\"metadata\":{\"name\":\"empty\"}}"), 0);
        expect_refused(
                f, roles, "{\"metadata\":{\"name\":\"r\"},\"rules\":[{}]}",
                "Role.rbac.authorization.k8s.io \"r\" is invalid: [rules[0].verbs: Required value: "
                "verbs must contain at least one value, rules[0].apiGroups: Required value: "
                "resource rules must supply at least one api group, rules[0].resources: Required "
                "value: resource rules must supply at least one resource]");
        expect_refused(f, roles,
                       "{\"metadata\":{\"name\":\"r\"},\"rules\":[{\"verbs\":[\"get\"],"
                       "\"nonResourceURLs\":[\"/healthz\"]}]}",
                       "Role.rbac.authorization.k8s.io \"r\" is invalid: rules[0].nonResourceURLs: "
                       "Invalid value: [\"/healthz\"]: "
                       "namespaced "
                       "rules cannot apply to non-resource URLs");
        assert_int_equal(create(f, cluster_roles,
                                "{\"metadata\":{\"name\":\"r\"},\"rules\":[{\"verbs\":[\"get\"],"
                                "\"nonResourceURLs\":[\"/healthz\"]}]}"),
                         0);
        expect_refused(
                f, cluster_roles,
                "{\"metadata\":{\"name\":\"s\"},\"rules\":[{\"verbs\":[\"get\"],"
                "\"nonResourceURLs\":[\"/a\",\"/"
                "b\"],\"resources\":[\"c\"]}]}",
                "ClusterRole.rbac.authorization.k8s.io \"s\" is invalid: rules[0].nonResourceURLs: "
                "Invalid value: [\"/a\",\"/b\"]: rules cannot apply to both regular resources and "
                "non-resource URLs");
        expect_refused(f, cluster_roles, "{\"metadata\":{\"name\":\"s\"},\"aggregationRule\":{}}",
                       "ClusterRole.rbac.authorization.k8s.io \"s\" is invalid: "
                       "aggregationRule.clusterRoleSelectors: Required value: at least one "
                       "clusterRoleSelector required if aggregationRule is non-nil");
        unreadable(f, roles, "{\"metadata\":{\"name\":\"r\"},\"rules\":[{\"verbs\":\"get\"}]}",
                   "Role in version \"v1\" cannot be handled as a Role: json: cannot unmarshal "
                   "string into Go struct field PolicyRule.rules.verbs of type []string");
        expect_refused(f, roles, "{\"metadata\":{\"name\":\"a/b\"}}",
                       "Role.rbac.authorization.k8s.io \"a/b\" is invalid: metadata.name: Invalid "
                       "value: "
                       "\"a/b\": may not contain '/'");
        expect_refused(f, roles, "{\"metadata\":{\"name\":\"..\"}}",
                       "Role.rbac.authorization.k8s.io \"..\" is invalid: metadata.name: Invalid "
                       "value: "
                       "\"..\": may not be '..'");
}

static void test_bindings_are_validated_and_defaulted(void **state) {
        struct api_fixture *f = *state;

        assert_int_equal(create(f, bindings,
                                "{\"metadata\":{\"name\":\"b\"},\"roleRef\":{\"kind\":\"Role\","
                                "\"name\":\"r\"},\"subjects\":[{\"kind\":"
                                "\"User\","
                                "\"name\":\"alice\"},{\"kind\":\"ServiceAccount\",\"name\":\"a\","
                                "\"namespace\":\"n\"}]}"),
                         0);
        assert_string_equal(api_fixture_text_at(f, "roleRef.apiGroup"), RBAC);
        assert_non_null(strstr(f->last.body,
                               "{\"kind\":\"User\",\"name\":\"alice\",\"apiGroup\":\"" RBAC "\"}"));
        assert_non_null(strstr(f->last.body,
                               "{\"kind\":\"ServiceAccount\",\"name\":\"a\",\"namespace\":\"n\"}"));
        assert_int_equal(update(f, bindings, "b",
                                "{\"metadata\":{\"name\":\"b\"},\"roleRef\":{\"kind\":\"Role\","
                                "\"name\":\"other\"}}"),
                         HF_E_INVALID);
        api_fixture_expect_failure(f, 422, "Invalid",
                                   "RoleBinding.rbac.authorization.k8s.io \"b\" is invalid: "
                                   "roleRef: Invalid value: {\"APIGroup\":\"" RBAC
                                   "\",\"Kind\":\"Role\",\"Name\":\"other\"}: cannot change "
                                   "roleRef");
        assert_int_equal(update(f, bindings, "b",
                                "{\"metadata\":{\"name\":\"b\"},\"roleRef\":{\"kind\":\"Role\","
                                "\"name\":\"r\"}}"),
                         0);
        expect_refused(
                f, bindings,
                "{\"metadata\":{\"name\":\"c\"},\"roleRef\":{\"kind\":\"Pod\",\"apiGroup\":\"x\"},"
                "\"subjects\":[{\"kind\":\"Pod\"},{"
                "\"kind\":"
                "\"ServiceAccount\",\"name\":\"a\"}]}",
                "RoleBinding.rbac.authorization.k8s.io \"c\" is invalid: [roleRef.apiGroup: "
                "Unsupported value: \"x\": supported values: "
                "\"" RBAC "\", roleRef.kind: Unsupported value: \"Pod\": supported values: "
                "\"Role\", \"ClusterRole\", roleRef.name: Required value, "
                "subjects[0].name: Required value, subjects[0].kind: Unsupported value: \"Pod\": "
                "supported values: \"ServiceAccount\", "
                "\"User\", "
                "\"Group\"]");
        expect_refused(f, cluster_bindings,
                       "{\"metadata\":{\"name\":\"c\"},\"roleRef\":{\"kind\":\"ClusterRole\","
                       "\"name\":\"r\"},\"subjects\":[{\"kind\":\"ServiceAccount\",\"name\":"
                       "\"a\"}]}",
                       "ClusterRoleBinding.rbac.authorization.k8s.io \"c\" is invalid: "
                       "subjects[0].namespace: Required value");
        assert_int_equal(create(f, cluster_bindings,
                                "{\"metadata\":{\"name\":\"b\"},\"roleRef\":{\"kind\":\"Role\","
                                "\"name\":\"r\"}}"),
                         HF_E_INVALID);
        assert_int_equal(create(f, cluster_bindings,
                                "{\"metadata\":{\"name\":\"system:b\"},\"roleRef\":{\"kind\":"
                                "\"ClusterRole\",\"name\":\"cluster-admin\"},"
                                "\"subjects\":[{"
                                "\"kind\":\"Group\",\"name\":\"system:masters\"}]}"),
                         0);
}

/* Names that must be escaped in a continue token, in pages of one. */
static void test_continue_tokens_work_with_special_characters(void **state) {
        static const char *const names[] = {"a\\\"b", "a\\\\u0000", "a{}:,", "system:x"};
        struct api_fixture *f = *state;
        char body[120], query[700] = "limit=1";

        for (size_t i = 0; i < 4; i++) {
                (void)snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"%s\"}}", names[i]);
                assert_int_equal(create(f, roles, body), 0);
        }
        for (size_t i = 0; i < 4; i++) {
                assert_int_equal(api_fixture_request(f, HF_VERB_LIST, roles, "default", NULL, query,
                                                     NULL),
                                 0);
                assert_int_equal(api_fixture_count_at(f, "items"), 1);
                (void)snprintf(body, sizeof body, "\"name\":\"%s\"", names[i]);
                assert_non_null(strstr(f->last.body, body));
                (void)snprintf(query, sizeof query, "limit=1&continue=%s",
                               api_fixture_text_at(f, "metadata.continue"));
        }
        assert_string_equal(api_fixture_text_at(f, "metadata.continue"), "");
}

static void test_unknown_fields_are_refused_in_strict_mode(void **state) {
        struct api_fixture *f = *state;

        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, cluster_roles, NULL, NULL,
                                             "fieldValidation=Strict",
                                             "{\"metadata\":{\"name\":\"r\"},\"ruls\":[],"
                                             "\"rules\":[{\"verbs\":[\"*\"],\"apiGroups\":[\"*\"],"
                                             "\"resources\":[\"*\"]},{\"verbz\":[]}]}"),
                         HF_E_INVALID);
        api_fixture_expect_failure(f, 400, "BadRequest",
                                   "ClusterRole in version \"v1\" cannot be handled as a "
                                   "ClusterRole: strict decoding error: unknown field \"ruls\", "
                                   "unknown field \"rules[1].verbz\"");
}

#define CANDIDATE(name, spec) "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{" spec "}}"
#define GOOD_SPEC                                                                                  \
        "\"leaseName\":\"l\",\"binaryVersion\":\"1.2.3\",\"emulationVersion\":\"1.2.0\","          \
        "\"strategy\":\"OldestEmulationVersion\""
#define INVALID(what) "LeaseCandidate.coordination.k8s.io \"c\" is invalid: " what

/* As in Kubernetes, where few kinds allow it. */
static void test_an_update_creates_a_lease_candidate_or_a_runtime_class(void **state) {
        static const struct hf_resource classes = {"node.k8s.io", "v1", "runtimeclasses"};
        struct api_fixture *f = *state;

        assert_int_equal(update(f, candidates, "c", CANDIDATE("c", GOOD_SPEC)), 0);
        assert_int_equal(f->last.status.http_code, 201);
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, classes, NULL, "r", NULL,
                                             "{\"metadata\":{\"name\":\"r\"},\"handler\":\"h\"}"),
                         0);
        assert_int_equal(f->last.status.http_code, 201);
        assert_int_equal(update(f, secrets, "s", "{\"metadata\":{\"name\":\"s\"}}"),
                         HF_E_NOT_FOUND);
}

static void test_a_lease_candidate_keeps_the_name_of_its_lease(void **state) {
        struct api_fixture *f = *state;

        assert_int_equal(create(f, candidates,
                                CANDIDATE("C_1", GOOD_SPEC ",\"pingTime\":null,\"renewTime\":"
                                                           "\"2026-11-21T02:36:00.000000Z\"")),
                         0);
        assert_string_equal(api_fixture_text_at(f, "apiVersion"), "coordination.k8s.io/v1beta1");
        assert_null(strstr(f->last.body, "pingTime"));
        char revision[32], body[400];
        (void)snprintf(revision, sizeof revision, "%s",
                       api_fixture_text_at(f, "metadata.resourceVersion"));
        (void)snprintf(body, sizeof body,
                       "{\"metadata\":{\"name\":\"C_1\",\"resourceVersion\":\"%s\"},"
                       "\"spec\":{\"leaseName\":\"m\",\"binaryVersion\":\"1.2.3\","
                       "\"strategy\":\"a.b/c\"}}",
                       revision);
        assert_int_equal(update(f, candidates, "C_1", body), HF_E_INVALID);
        api_fixture_expect_failure(f, 422, "Invalid",
                                   "LeaseCandidate.coordination.k8s.io \"C_1\" is invalid: "
                                   "spec.leaseName: Invalid value: \"m\": field is immutable");
}

static void test_lease_candidates_are_validated(void **state) {
        struct api_fixture *f = *state;
        char body[400];

        assert_int_equal(create(f, candidates,
                                CANDIDATE("ok", "\"leaseName\":\"l\",\"binaryVersion\":\"1.2.3-rc."
                                                "1+x\",\"strategy\":\"a.b/c\"")),
                         0);
        expect_refused(f, candidates, CANDIDATE("c", ""),
                       INVALID("[spec.leaseName: Required value, spec.strategy: Required value, "
                               "spec.binaryVersion: Invalid value: \"\": must be a semantic "
                               "version: "
                               "major.minor.patch]"));
        expect_refused(
                f, candidates,
                CANDIDATE("c", "\"leaseName\":\"l\",\"binaryVersion\":\"1.2.3\",\"strategy\":"
                               "\"OldestEmulationVersion\""),
                INVALID("spec.emulationVersion: Required value: must be specified when `strategy` "
                        "is 'OldestEmulationVersion'"));
        expect_refused(f, candidates,
                       CANDIDATE("c", "\"leaseName\":\"l\",\"binaryVersion\":\"1.2.3\","
                                      "\"emulationVersion\":\"1.3.0\",\"strategy\":\"a.b/c\""),
                       INVALID("spec.binaryVersion: Invalid value: \"1.2.3\": must be greater than "
                               "or "
                               "equal to `emulationVersion`"));
        static const char *const versions[] = {"1",       "1.2",    "v1.2.3", "01.2.3",
                                               "1.2.3.4", "1.2.3-", "1.2.3 ", "1..3"};
        for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
                (void)snprintf(body, sizeof body,
                               "{\"metadata\":{\"name\":\"c\"},\"spec\":{\"leaseName\":\"l\","
                               "\"binaryVersion\":\"%s\",\"strategy\":\"a.b/c\"}}",
                               versions[i]);
                assert_int_equal(create(f, candidates, body), HF_E_INVALID);
                assert_int_equal(f->last.status.http_code, 422);
        }
        unreadable(f, candidates, CANDIDATE("c", "\"leaseName\":7"),
                   "LeaseCandidate in version \"v1beta1\" cannot be handled as a LeaseCandidate: "
                   "json: cannot unmarshal number into Go struct field "
                   "LeaseCandidateSpec.spec.leaseName of type string");
        assert_int_equal(create(f, candidates, CANDIDATE("c:d", GOOD_SPEC)), HF_E_INVALID);
        assert_int_equal(f->last.status.http_code, 422);
}

/*
 * The cases of Kubernetes' TestValidateCoordinatedLeaseStrategy, and the rules for a preferred
 * holder.
 */
static void test_lease_strategies_are_validated_as_in_kubernetes(void **state) {
        struct api_fixture *f = *state;

        expect_refused(f, lease_objects, CANDIDATE("l", "\"strategy\":\"foobar\""),
                       "Lease.coordination.k8s.io \"l\" is invalid: spec.strategy.strategy: "
                       "Unsupported "
                       "value: \"foobar\": supported values: "
                       "\"OldestEmulationVersion\"");
        expect_refused(f, lease_objects,
                       CANDIDATE("l", "\"strategy\":\"example.com/foobar/toomanyslashes\""),
                       "Lease.coordination.k8s.io \"l\" is invalid: spec.strategy.strategy: "
                       "Invalid "
                       "value: \"example.com/foobar/toomanyslashes\": "
                       "must be of the form domain/name");
        expect_refused(f, lease_objects, CANDIDATE("l", "\"preferredHolder\":\"x\""),
                       "Lease.coordination.k8s.io \"l\" is invalid: spec.preferredHolder: "
                       "Forbidden: may "
                       "only be specified if `strategy` is defined");
        assert_int_equal(create(f, lease_objects,
                                CANDIDATE("l", "\"strategy\":\"OldestEmulationVersion\","
                                               "\"preferredHolder\":\"x\"")),
                         0);
        assert_string_equal(api_fixture_text_at(f, "spec.preferredHolder"), "x");
        assert_int_equal(create(f, lease_objects,
                                CANDIDATE("m", "\"strategy\":\"example.com/foobar\"")),
                         0);
        assert_string_equal(api_fixture_text_at(f, "spec.strategy"), "example.com/foobar");
}

/* An unused kind costs one row of pointers in the server. */
static void test_the_resource_table_fits_its_limits(void **state) {
        assert_true(hfd_resources_count() <= HFD_RESOURCES_MAX);
        assert_true(sizeof(struct hfd_object_tree) <= 16);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                API_TEST(test_secrets_merge_string_data_and_keep_their_type),
                API_TEST(test_secrets_are_validated_by_their_type),
                API_TEST(test_secrets_can_be_selected_by_their_type),
                API_TEST(test_secrets_are_limited_to_1_mib),
                API_TEST(test_service_accounts_are_validated),
                API_TEST(test_keys_of_labels_are_refused_in_the_words_of_kubernetes),
                API_TEST(test_a_key_of_a_configmap_is_in_one_part_only),
                API_TEST(test_a_cluster_scoped_object_loses_its_namespace),
                API_TEST(test_roles_are_validated),
                API_TEST(test_bindings_are_validated_and_defaulted),
                API_TEST(test_an_update_creates_a_lease_candidate_or_a_runtime_class),
                API_TEST(test_a_lease_candidate_keeps_the_name_of_its_lease),
                API_TEST(test_lease_candidates_are_validated),
                API_TEST(test_lease_strategies_are_validated_as_in_kubernetes),
                API_TEST(test_continue_tokens_work_with_special_characters),
                API_TEST(test_unknown_fields_are_refused_in_strict_mode),
                cmocka_unit_test(test_the_resource_table_fits_its_limits),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
