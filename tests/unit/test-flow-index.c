/* SPDX-License-Identifier: Apache-2.0 */
/* Which FlowSchema a request has, and which priority level. */
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

#include "base/json.h"
#include "server/flow/flow_index.h"
#include "server/resources/strategies/flow/flow_objects.h"

static struct hf__json *parse(const char *text) {
        struct hf__json *json = NULL;

        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        return json;
}

static void add_schema(struct hfd_flow_builder *builder, const char *text) {
        struct hf__json *json = parse(text);

        assert_int_equal(hfd_flow_builder_add_schema(builder, json), 0);
        hf__json_free(json);
}

static void add_level(struct hfd_flow_builder *builder, const char *text) {
        struct hf__json *json = parse(text);

        assert_int_equal(hfd_flow_builder_add_level(builder, json), 0);
        hf__json_free(json);
}

/* All objects that every server has, with their names as UIDs. */
static struct hfd_flow_builder *default_builder(void) {
        struct hfd_flow_builder *builder = hfd_flow_builder_new();
        size_t n;
        const struct hfd_flow_object *objects = hfd_flow_objects(&n);

        assert_non_null(builder);
        for (size_t i = 0; i < n; i++) {
                struct hf__json *json = hfd_flow_object_make(&objects[i]);
                assert_int_equal(hf__json_set_string(json, "metadata.uid", objects[i].name), 0);
                if (strcmp(objects[i].kind, HFD_FLOW_LEVEL_KIND) == 0)
                        assert_int_equal(hfd_flow_builder_add_level(builder, json), 0);
                else
                        assert_int_equal(hfd_flow_builder_add_schema(builder, json), 0);
                hf__json_free(json);
        }
        return builder;
}

#define AUTHENTICATED "system:authenticated"

struct request {
        const char *user, *group, *verb, *api_group, *resource, *subresource, *ns, *path;
};

static const struct hfd_flow_match *match(const struct hfd_flow_index *index,
                                          const struct request *request) {
        const char *const groups[] = {request->group ? request->group : AUTHENTICATED,
                                      AUTHENTICATED};
        const struct hfd_subject subject = {request->user, groups, 2};
        const struct hfd_attributes attributes =
                {.verb = request->verb,
                 .group = request->api_group ? request->api_group : "",
                 .resource = request->resource ? request->resource : "",
                 .subresource = request->subresource ? request->subresource : "",
                 .ns = request->ns ? request->ns : "",
                 .name = "",
                 .path = request->path ? request->path : "",
                 .is_resource = request->resource != NULL};

        return hfd_flow_index_match(index, &subject, &attributes);
}

static void expect(const struct hfd_flow_index *index, const struct request *request,
                   const char *schema, const char *level) {
        const struct hfd_flow_match *found = match(index, request);

        assert_string_equal(found->schema, schema);
        assert_string_equal(found->level, level);
}

#define COORDINATION "coordination.k8s.io"
#define ACCOUNTS     "system:serviceaccounts"

static void test_requests_have_the_schemas_of_kubernetes(void **state) {
        static const struct {
                struct request request;
                const char *schema, *level;
        } cases[] = {
                {{"admin", "system:masters", "list", "", "secrets"}, "exempt", "exempt"},
                {{"joe", NULL, "get", .path = "/healthz"}, "probes", "exempt"},
                {{"joe", NULL, "get", .path = "/livez/etcd"}, "probes", "exempt"},
                {{"joe", NULL, "get", .path = "/livezx"}, "global-default", "global-default"},
                {{"joe", NULL, "post", .path = "/livez"}, "global-default", "global-default"},
                {{"system:kube-scheduler", NULL, "update", COORDINATION, "leases", .ns = "n"},
                 "system-leader-election",
                 "leader-election"},
                {{"system:kube-scheduler", NULL, "patch", COORDINATION, "leases", .ns = "n"},
                 "kube-scheduler",
                 "workload-high"},
                /* A list in all namespaces has no namespace, and the rule wants one. */
                {{"system:kube-scheduler", NULL, "get", COORDINATION, "leases"},
                 "kube-scheduler",
                 "workload-high"},
                {{"system:serviceaccount:kube-system:x", ACCOUNTS, "get", COORDINATION, "leases",
                  .ns = "n"},
                 "system-leader-election",
                 "leader-election"},
                {{"system:serviceaccount:kube-system:x", ACCOUNTS, "get", "", "secrets"},
                 "kube-system-service-accounts",
                 "workload-high"},
                {{"system:serviceaccount:kube-system2:x", ACCOUNTS, "get", "", "secrets"},
                 "service-accounts",
                 "workload-low"},
                {{"system:serviceaccount:team:x", ACCOUNTS, "update", COORDINATION, "leases",
                  .ns = "team"},
                 "holdfast-leases",
                 "holdfast-leases"},
                {{"joe", NULL, "get", COORDINATION, "leases", .ns = "n"},
                 "holdfast-leases",
                 "holdfast-leases"},
                {{"joe", NULL, "list", COORDINATION, "leases", .ns = "n"},
                 "global-default",
                 "global-default"},
                {{"n1", "system:nodes", "patch", "", "nodes", "status"},
                 "system-node-high",
                 "node-high"},
                {{"n1", "system:nodes", "patch", "", "nodes", "proxy"}, "system-nodes", "system"},
                {{"joe", NULL, "create", "", "pods", .ns = "n"},
                 "global-default",
                 "global-default"},
        };
        struct hfd_flow_index *index = hfd_flow_builder_finish(default_builder(), NULL);

        assert_non_null(index);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                expect(index, &cases[i].request, cases[i].schema, cases[i].level);
        const struct hfd_flow_match *found = match(index, &cases[0].request);
        assert_true(found->is_exempt);
        assert_int_equal(found->n_headers, 2);
        assert_string_equal(found->headers[0].name, "x-kubernetes-pf-flowschema-uid");
        assert_string_equal(found->headers[0].value, "exempt");
        assert_string_equal(found->headers[1].name, "x-kubernetes-pf-prioritylevel-uid");
        hfd_flow_index_unref(index);
}

static void test_nothing_stored_leaves_the_mandatory_schemas(void **state) {
        const struct request admin = {"a", "system:masters", "get", "", "secrets"},
                             joe = {"joe", NULL, "get", "", "secrets"};
        struct hfd_flow_index *index = hfd_flow_builder_finish(hfd_flow_builder_new(), NULL);

        assert_non_null(index);
        expect(index, &admin, "exempt", "exempt");
        expect(index, &joe, "catch-all", "catch-all");
        assert_int_equal(match(index, &joe)->n_headers, 0); /* nothing has a UID */
        assert_false(match(index, &joe)->is_exempt);
        hfd_flow_index_unref(index);
}

/* Another program may write into the store: every request has a level even then. */
static void test_a_stored_catch_all_without_its_level_has_it(void **state) {
        const struct request joe = {"joe", NULL, "get", "", "secrets"};
        struct hfd_flow_builder *builder = hfd_flow_builder_new();

        add_schema(builder, "{\"metadata\":{\"name\":\"catch-all\"},\"spec\":"
                            "{\"priorityLevelConfiguration\":{\"name\":\"none\"}}}");
        struct hfd_flow_index *index = hfd_flow_builder_finish(builder, NULL);
        assert_non_null(index);
        expect(index, &joe, "catch-all", "catch-all");
        hfd_flow_index_unref(index);
}

#define SCHEMA(name, level, precedence)                                                            \
        "{\"metadata\":{\"name\":\"" name "\",\"uid\":\"u-" name                                   \
        "\"},\"spec\":{\"matchingPrecedence\":" precedence                                         \
        ",\"priorityLevelConfiguration\":{\"name\":\"" level                                       \
        "\"},\"rules\":[{\"subjects\":[{\"kind\":\"User\",\"user\":{\"name\":\"joe\"}}],"          \
        "\"resourceRules\":[{\"verbs\":[\"get\",\"list\"],\"apiGroups\":[\"\"],\"resources\":"     \
        "[\"*\"],\"namespaces\":[\"a\",\"b\"]}]}]}}"
#define LEVEL(name)                                                                                \
        "{\"metadata\":{\"name\":\"" name                                                          \
        "\",\"uid\":\"u\"},\"spec\":{\"type\":\"Limited\",\"limited\":{"                           \
        "\"limitResponse\":{\"type\":\"Reject\"}}}}"

static void test_precedence_then_name_decide(void **state) {
        const struct request in_a = {"joe", NULL, "get", "", "secrets", .ns = "a"},
                             in_c = {"joe", NULL, "get", "", "secrets", .ns = "c"},
                             of_all = {"joe", NULL, "list", "", "secrets"};
        struct hfd_flow_builder *builder = default_builder();
        struct hfd_flow_index *index;

        add_level(builder, LEVEL("mine"));
        add_schema(builder, SCHEMA("z", "mine", "50"));
        add_schema(builder, SCHEMA("y", "mine", "60"));
        add_schema(builder, SCHEMA("x", "mine", "60"));
        add_schema(builder, SCHEMA("dangling", "nowhere", "2"));
        index = hfd_flow_builder_finish(builder, NULL);
        expect(index, &in_a, "z", "mine");
        expect(index, &in_c, "global-default", "global-default");
        expect(index, &of_all, "global-default", "global-default");
        hfd_flow_index_unref(index);

        builder = default_builder();
        add_level(builder, LEVEL("mine"));
        add_schema(builder, SCHEMA("y", "mine", "60"));
        add_schema(builder, SCHEMA("x", "mine", "60"));
        index = hfd_flow_builder_finish(builder, NULL);
        expect(index, &in_a, "x", "mine");
        assert_ptr_equal(hfd_flow_index_ref(index), index);
        hfd_flow_index_unref(index);
        hfd_flow_index_unref(index);
}

static void test_malformed_rules_match_nothing(void **state) {
        static const char *const rules[] = {"7", "[7]", "[{\"subjects\":7}]",
                                            "[{\"subjects\":[{\"kind\":\"User\"}]}]",
                                            "[{\"subjects\":[{\"kind\":\"User\",\"user\":{\"name\":"
                                            "\"*\"}}],\"resourceRules\":["
                                            "{\"verbs\":7,\"apiGroups\":{},\"resources\":null}]}]"};
        const struct request joe = {"joe", NULL, "get", "", "secrets", .ns = "a"};

        for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
                struct hfd_flow_builder *builder = default_builder();
                struct hf__json *json = parse(SCHEMA("bad", "exempt", "2"));
                assert_int_equal(hf__json_set(json, "spec.rules", parse(rules[i])), 0);
                assert_int_equal(hfd_flow_builder_add_schema(builder, json), 0);
                hf__json_free(json);
                struct hfd_flow_index *index = hfd_flow_builder_finish(builder, NULL);
                expect(index, &joe, "global-default", "global-default");
                hfd_flow_index_unref(index);
        }
        hfd_flow_builder_free(default_builder());
}

/* Another program may have written such a subject into the store: here it cannot be validated. */
static void test_a_subject_of_an_unknown_kind_matches_nobody(void **state) {
        static const char *const kinds[] = {"ServiceAccount", "Robot"};
        const struct request account =
                {"system:serviceaccount:n:x", NULL, "get", "", "secrets", .ns = "a"};

        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
                char rules[400];
                (void)snprintf(rules, sizeof rules,
                               "[{\"subjects\":[{\"kind\":\"%s\",\"serviceAccount\":{"
                               "\"namespace\":\"n\",\"name\":\"x\"}}],\"resourceRules\":[{"
                               "\"verbs\":[\"*\"],\"apiGroups\":[\"*\"],\"resources\":[\"*\"],"
                               "\"namespaces\":[\"*\"]}]}]",
                               kinds[i]);
                struct hfd_flow_builder *builder = default_builder();
                struct hf__json *json = parse(SCHEMA("accounts", "exempt", "2"));
                assert_int_equal(hf__json_set(json, "spec.rules", parse(rules)), 0);
                assert_int_equal(hfd_flow_builder_add_schema(builder, json), 0);
                hf__json_free(json);
                struct hfd_flow_index *index = hfd_flow_builder_finish(builder, NULL);
                expect(index, &account, i == 0 ? "accounts" : "global-default",
                       i == 0 ? "exempt" : "global-default");
                hfd_flow_index_unref(index);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_requests_have_the_schemas_of_kubernetes),
                cmocka_unit_test(test_nothing_stored_leaves_the_mandatory_schemas),
                cmocka_unit_test(test_a_stored_catch_all_without_its_level_has_it),
                cmocka_unit_test(test_precedence_then_name_decide),
                cmocka_unit_test(test_malformed_rules_match_nothing),
                cmocka_unit_test(test_a_subject_of_an_unknown_kind_matches_nobody),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
