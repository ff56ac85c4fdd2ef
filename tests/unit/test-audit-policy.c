/* SPDX-License-Identifier: Apache-2.0 */
/* The audit policy: which rule decides, and which mistakes in the file are refused. Both tests are
 * tables. */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/error.h>

#include "server/audit/audit_policy.h"

#define N(array) (sizeof(array) / sizeof(array)[0])
#define HEAD     "apiVersion: audit.k8s.io/v1\nkind: Policy\n"

static struct hfd_audit_policy *parse(const char *text) {
        struct hfd_audit_policy *policy = NULL;
        struct hf_status status = {0};
        int r = hfd_audit_policy_parse(text, strlen(text), &policy, &status);

        if (r != 0)
                print_message("%s\n", status.message);
        assert_int_equal(r, 0);
        return policy;
}

/* ---- decisions ---- */

static const char policy_text[] =
        HEAD "omitStages: [RequestReceived]\n"
             "rules:\n"
             "- {level: None, users: ['system:kube-proxy', quiet], verbs: [watch]}\n"
             "- {level: Request, userGroups: [auditors, others]}\n"
             "- {level: None, nonResourceURLs: ['/healthz*', /version]}\n"
             "- level: RequestResponse\n"
             "  omitManagedFields: true\n"
             "  omitStages: [ResponseStarted]\n"
             "  resources:\n"
             "  - {group: '', resources: [secrets], resourceNames: [one, two]}\n"
             "  - {group: apps}\n"
             "- level: Request\n"
             "  namespaces: [shop, '']\n"
             "  resources: [{resources: [pods, pods/log, '*/status', 'nodes/*']}]\n"
             "- {level: Metadata, resources: [{group: '', resources: ['*']}], namespaces: [all]}\n"
             "- {level: Metadata, nonResourceURLs: ['*'], verbs: [post]}\n"
             "- {level: Metadata, verbs: [delete]}\n";

struct row {
        const char *user, *group_of_user, *verb, *group, *resource, *subresource, *ns, *name, *path;
        enum hfd_audit_level level;
};

static const struct row rows[] = {
        {"quiet", "g", "watch", "", "pods", "", "shop", "", NULL, HFD_AUDIT_NONE},
        {"quiet", "g", "get", "", "pods", "", "shop", "", NULL, HFD_AUDIT_REQUEST},
        {"a", "others", "watch", "x", "y", "", "z", "", NULL, HFD_AUDIT_REQUEST},
        {"a", "g", "get", NULL, NULL, NULL, NULL, NULL, "/healthz/etcd", HFD_AUDIT_NONE},
        {"a", "g", "post", NULL, NULL, NULL, NULL, NULL, "/healthz", HFD_AUDIT_NONE},
        {"a", "g", "post", NULL, NULL, NULL, NULL, NULL, "/versions", HFD_AUDIT_METADATA},
        {"a", "g", "post", NULL, NULL, NULL, NULL, NULL, "/version", HFD_AUDIT_NONE},
        {"a", "g", "get", NULL, NULL, NULL, NULL, NULL, "/api", HFD_AUDIT_NONE},
        {"a", "g", "get", "", "secrets", "", "n", "two", NULL, HFD_AUDIT_REQUEST_RESPONSE},
        {"a", "g", "get", "", "secrets", "", "n", "three", NULL, HFD_AUDIT_NONE},
        {"a", "g", "list", "", "secrets", "", "n", "", NULL, HFD_AUDIT_NONE},
        {"a", "g", "get", "apps", "anything", "scale", "n", "q", NULL, HFD_AUDIT_REQUEST_RESPONSE},
        {"a", "g", "get", "", "pods", "", "shop", "p", NULL, HFD_AUDIT_REQUEST},
        {"a", "g", "get", "", "pods", "log", "shop", "p", NULL, HFD_AUDIT_REQUEST},
        {"a", "g", "get", "", "pods", "exec", "shop", "p", NULL, HFD_AUDIT_NONE},
        {"a", "g", "get", "", "services", "status", "shop", "p", NULL, HFD_AUDIT_REQUEST},
        {"a", "g", "get", "", "services", "", "shop", "p", NULL, HFD_AUDIT_NONE},
        {"a", "g", "get", "", "nodes", "proxy", "", "p", NULL, HFD_AUDIT_REQUEST},
        {"a", "g", "get", "", "nodes", "", "", "p", NULL, HFD_AUDIT_REQUEST},
        {"a", "g", "get", "", "nodesX", "proxy", "", "p", NULL, HFD_AUDIT_NONE},
        {"a", "g", "get", "", "pods", "", "elsewhere", "p", NULL, HFD_AUDIT_NONE},
        {"a", "g", "get", "other", "pods", "", "shop", "p", NULL, HFD_AUDIT_NONE},
        {"a", "g", "get", "", "configmaps", "x", "all", "p", NULL, HFD_AUDIT_METADATA},
        {"a", "g", "delete", "", "configmaps", "", "shop", "p", NULL, HFD_AUDIT_METADATA},
        {"a", "g", "delete", NULL, NULL, NULL, NULL, NULL, "/x", HFD_AUDIT_METADATA},
        {NULL, NULL, "get", "", "pods", "", "shop", "p", NULL, HFD_AUDIT_REQUEST},
        {NULL, NULL, "watch", "x", "y", "", "z", "p", NULL, HFD_AUDIT_NONE},
};

static const char *or_empty(const char *text) { return text ? text : ""; }

static struct hfd_audit_decision decide(const struct hfd_audit_policy *policy,
                                        const struct row *row) {
        const char *const groups[] = {"system:authenticated", row->group_of_user};
        const struct hfd_subject user = {.name = row->user, .groups = groups, .n_groups = 2};
        const struct hfd_attributes attributes = {.verb = row->verb,
                                                  .group = or_empty(row->group),
                                                  .resource = or_empty(row->resource),
                                                  .subresource = or_empty(row->subresource),
                                                  .ns = or_empty(row->ns),
                                                  .name = or_empty(row->name),
                                                  .path = row->path ? row->path : "/api/x",
                                                  .is_resource = !row->path};

        return hfd_audit_policy_decide(policy, row->user ? &user : NULL, &attributes);
}

static void test_first_matching_rule_decides(void **state) {
        struct hfd_audit_policy *policy = parse(policy_text);
        (void)state;

        for (size_t i = 0; i < N(rows); i++) {
                struct hfd_audit_decision decision = decide(policy, &rows[i]);
                if (decision.level != rows[i].level)
                        print_message("row %zu\n", i);
                assert_int_equal(decision.level, rows[i].level);
        }
        hfd_audit_policy_unref(policy);
}

static void test_stages_are_united_and_managed_fields_overridden(void **state) {
        struct hfd_audit_policy *policy = parse(policy_text);
        (void)state;

        struct hfd_audit_decision decision = decide(policy, &rows[8]);
        assert_int_equal(decision.omitted,
                         1u << HFD_AUDIT_REQUEST_RECEIVED | 1u << HFD_AUDIT_RESPONSE_STARTED);
        assert_true(decision.omit_managed_fields);
        decision = decide(policy, &rows[1]);
        assert_int_equal(decision.omitted, 1u << HFD_AUDIT_REQUEST_RECEIVED);
        assert_false(decision.omit_managed_fields);
        hfd_audit_policy_unref(policy);
        policy = parse("{\"apiVersion\":\"audit.k8s.io/v1\",\"kind\":\"Policy\","
                       "\"omitManagedFields\":true,\"metadata\":{\"name\":\"x\"},\"rules\":["
                       "{\"level\":\"Metadata\",\"users\":[\"a\"],\"omitManagedFields\":false},"
                       "{\"level\":\"Request\",\"users\":null,\"resources\":[]}]}");
        assert_false(decide(policy, &rows[8]).omit_managed_fields);
        assert_true(decide(policy, &rows[0]).omit_managed_fields);
        hfd_audit_policy_unref(policy);
}

/* ---- faults ---- */

static const struct {
        const char *text, *message;
} faults[] = {
        {"", "it is not an object"},
        {"{", "line 1: did not find expected node content"},
        {"a: [", "line "},
        {"{\"a\":1,\"a\":2}", "the field a occurs twice"},
        {"kind: Policy\nrules: []\n", "apiVersion: must be audit.k8s.io/v1"},
        {"apiVersion: audit.k8s.io/v1beta1\nkind: Policy\n", "apiVersion: must be audit.k8s.io/v1"},
        {"apiVersion: audit.k8s.io/v1\nkind: Event\n", "kind: must be Policy"},
        {HEAD, "rules: needs at least one rule"},
        {HEAD "rules: []\n", "rules: needs at least one rule"},
        {HEAD "rules: 3\n", "rules: must be a list"},
        {HEAD "rules: [x]\n", "rules: must be a list of objects"},
        {HEAD "rule: []\n", "rule: unknown field"},
        {HEAD "rules: [{verbs: [get]}]\n", "rules[0].level: required"},
        {HEAD "rules: [{level: None}, {level: metadata}]\n",
         "rules[1].level: \"metadata\" is not one of None, Metadata, Request, RequestResponse"},
        {HEAD "rules: [{level: None, verb: [get]}]\n", "rules[0].verb: unknown field"},
        {HEAD "rules: [{level: None, verbs: get}]\n", "rules[0].verbs: must be a list"},
        {HEAD "rules: [{level: None, verbs: [1]}]\n", "rules[0].verbs: must be a list of strings"},
        {HEAD "omitStages: [Begin]\nrules: [{level: None}]\n",
         "omitStages: \"Begin\" is not one of RequestReceived, ResponseStarted, ResponseComplete, "
         "Panic"},
        {HEAD "rules: [{level: None, omitStages: [panic]}]\n", "rules[0].omitStages: \"panic\""},
        {HEAD "omitStages: RequestReceived\nrules: [{level: None}]\n",
         "omitStages: must be a list"},
        {HEAD "omitStages: [1]\nrules: [{level: None}]\n", "omitStages: must be a list of strings"},
        {HEAD "rules: [{level: None, omitStages: Panic}]\n", "rules[0].omitStages: must be a list"},
        {HEAD "rules: [{level: None, omitManagedFields: 1}]\n",
         "rules[0].omitManagedFields: must be true or false"},
        {HEAD "rules: [{level: None, resources: [pods]}]\n",
         "rules[0].resources: must be a list of objects"},
        {HEAD "rules: [{level: None, resources: [{group: apps/v1}]}]\n",
         "rules[0].resources[0].group: must be the name of an API group, without a version"},
        {HEAD "rules: [{level: None, resources: [{}, {resourceNames: [a]}]}]\n",
         "rules[0].resources[1].resourceNames: needs at least one resource"},
        {HEAD "rules: [{level: None, resources: [{names: [a]}]}]\n",
         "rules[0].resources[0].names: unknown field"},
        {HEAD "rules: [{level: None, nonResourceURLs: [healthz]}]\n",
         "rules[0].nonResourceURLs: a path must begin with '/'"},
        {HEAD "rules: [{level: None, nonResourceURLs: ['/a*/b']}]\n",
         "rules[0].nonResourceURLs: '*' must be the last character of a path"},
        {HEAD "rules: [{level: None, nonResourceURLs: [/a], namespaces: [b]}]\n",
         "rules[0].nonResourceURLs: a rule is either for resources or for other paths"},
};

static void test_a_fault_names_its_field(void **state) {
        (void)state;

        for (size_t i = 0; i < N(faults); i++) {
                struct hfd_audit_policy *policy = NULL;
                struct hf_status status = {0};
                int r = hfd_audit_policy_parse(faults[i].text, strlen(faults[i].text), &policy,
                                               &status);
                if (r != HF_E_INVALID || !strstr(status.message, faults[i].message))
                        print_message("fault %zu: %d %s\n", i, r, status.message);
                assert_int_equal(r, HF_E_INVALID);
                assert_ptr_equal(strstr(status.message, faults[i].message), status.message);
                assert_null(policy);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_first_matching_rule_decides),
                cmocka_unit_test(test_stages_are_united_and_managed_fields_overridden),
                cmocka_unit_test(test_a_fault_names_its_field),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
