/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests roles and bindings allow, and the reasons, as tables. */
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

#include <holdfast/error.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "rbac_fixture.h"
#include "server/rbac/decision.h"
#include "server/rbac/index_private.h"
#include "server/rbac/rule_list.h"

#define N(array) (sizeof(array) / sizeof(array)[0])

static const struct rbac_object objects[] = {
        {HFD_RBAC_CLUSTER_ROLE, "", "everything",
         "{'rules':[{'verbs':['*'],'apiGroups':['*'],'resources':['*']},"
         "{'verbs':['*'],'nonResourceURLs':['*']}]}"},
        {HFD_RBAC_CLUSTER_ROLE, "", "reader",
         "{'rules':[{'verbs':['get','list'],'apiGroups':[''],'resources':['configmaps']}]}"},
        {HFD_RBAC_CLUSTER_ROLE, "", "logs",
         "{'rules':[{'verbs':['get'],'apiGroups':[''],'resources':['pods/log']},"
         "{'verbs':['update'],'apiGroups':['*'],'resources':['*/scale']}]}"},
        {HFD_RBAC_CLUSTER_ROLE, "", "one",
         "{'rules':[{'verbs':['get','watch','create'],'apiGroups':[''],"
         "'resources':['secrets'],'resourceNames':['a','b']}]}"},
        {HFD_RBAC_CLUSTER_ROLE, "", "paths",
         "{'rules':[{'verbs':['get'],'nonResourceURLs':['/metrics','/logs/*','/x*']}]}"},
        {HFD_RBAC_CLUSTER_ROLE, "", "broken",
         "{'rules':[{'verbs':'get','apiGroups':[''],'resources':['*']},"
         "{'verbs':['get'],'apiGroups':[''],'resources':['*'],'resourceNames':[1]},7,null,"
         "{'verbs':['get'],'apiGroups':[''],'resources':['events'],'resourceNames':null}]}"},
        {HFD_RBAC_CLUSTER_ROLE, "", "none", "{'rules':null}"},
        {HFD_RBAC_ROLE, "ns1", "writer",
         "{'rules':[{'verbs':['update'],'apiGroups':['','apps'],'resources':['configmaps']}]}"},
        {HFD_RBAC_CLUSTER_ROLE_BINDING, "", "roots",
         "{'roleRef':{'kind':'ClusterRole','name':'everything'},"
         "'subjects':[{'kind':'Group','name':'roots'}]}"},
        {HFD_RBAC_CLUSTER_ROLE_BINDING, "", "readers",
         "{'roleRef':{'kind':'ClusterRole','name':'reader'},"
         "'subjects':[{'kind':'User','name':'alice'},{'kind':'Group','name':'alice'}]}"},
        {HFD_RBAC_CLUSTER_ROLE_BINDING, "", "readers-again",
         "{'roleRef':{'kind':'ClusterRole','name':'reader'},"
         "'subjects':[{'kind':'User','name':'alice'}]}"},
        {HFD_RBAC_ROLE_BINDING, "ns1", "reader-here",
         "{'roleRef':{'kind':'ClusterRole','name':'reader'},"
         "'subjects':[{'kind':'User','name':'bob'},"
         "{'kind':'ServiceAccount','name':'robot','namespace':'ns2'},"
         "{'kind':'ServiceAccount','name':'local'}]}"},
        {HFD_RBAC_ROLE_BINDING, "ns1", "writers",
         "{'roleRef':{'kind':'Role','name':'writer'},'subjects':[{'kind':'Group','name':'devs'}]}"},
        {HFD_RBAC_ROLE_BINDING, "ns2", "writers-elsewhere",
         "{'roleRef':{'kind':'Role','name':'writer'},'subjects':[{'kind':'Group','name':'devs'}]}"},
        {HFD_RBAC_CLUSTER_ROLE_BINDING, "", "role-everywhere",
         "{'roleRef':{'kind':'Role','name':'writer'},'subjects':[{'kind':'User','name':'erin'}]}"},
        {HFD_RBAC_CLUSTER_ROLE_BINDING, "", "logs",
         "{'roleRef':{'kind':'ClusterRole','name':'logs'},'subjects':[{'kind':'User','name':'carl'}"
         "]}"},
        {HFD_RBAC_CLUSTER_ROLE, "", "nameless",
         "{'rules':[{'verbs':['list','create'],'apiGroups':[''],'resources':['secrets'],"
         "'resourceNames':['','a']}]}"},
        {HFD_RBAC_CLUSTER_ROLE_BINDING, "", "nameless",
         "{'roleRef':{'kind':'ClusterRole','name':'nameless'},"
         "'subjects':[{'kind':'User','name':'kim'}]}"},
        {HFD_RBAC_CLUSTER_ROLE_BINDING, "", "one",
         "{'roleRef':{'kind':'ClusterRole','name':'one'},'subjects':[{'kind':'User','name':'dora'}]"
         "}"},
        {HFD_RBAC_CLUSTER_ROLE_BINDING, "", "paths",
         "{'roleRef':{'kind':'ClusterRole','name':'paths'},'subjects':[{'kind':'User','name':'fred'"
         "}]}"},
        {HFD_RBAC_CLUSTER_ROLE_BINDING, "", "broken",
         "{'roleRef':{'kind':'ClusterRole','name':'broken'},'subjects':[{'kind':'User','name':'"
         "gina'},"
         "7,null,{'kind':'Robot','name':'hal'},{'kind':'ServiceAccount','name':'nowhere'}]}"},
        {HFD_RBAC_ROLE_BINDING, "ns1", "paths-here",
         "{'roleRef':{'kind':'ClusterRole','name':'paths'},'subjects':[{'kind':'User','name':'ivan'"
         "}]}"},
        {HFD_RBAC_CLUSTER_ROLE_BINDING, "", "without-role",
         "{'roleRef':{'kind':'ClusterRole','name':'gone'},'subjects':[{'kind':'User','name':'jane'}"
         "]}"},
        {HFD_RBAC_ROLE_BINDING, "ns1", "without-role",
         "{'roleRef':{'kind':'Role','name':'gone'},'subjects':[{'kind':'User','name':'jane'}]}"},
        {HFD_RBAC_CLUSTER_ROLE_BINDING, "", "empty", "{}"},
};

struct question {
        const char *user, *verb, *group, *resource, *subresource, *ns, *name;
        bool allowed;
};

static const struct question questions[] = {
        /* users, groups, and a group that is called like a user */
        {"alice", "get", "", "configmaps", "", "ns1", "x", true},
        {"alice", "list", "", "configmaps", "", "", "", true},
        {"alice", "watch", "", "configmaps", "", "", "", false},
        {"alice", "get", "apps", "configmaps", "", "ns1", "x", false},
        {"alice", "get", "", "secrets", "", "ns1", "x", false},
        {"alice", "get", "", "configmaps", "status", "ns1", "x", false},
        {"zed,alice", "get", "", "configmaps", "", "ns1", "x", true},
        {"zed", "get", "", "configmaps", "", "ns1", "x", false},
        {"Alice", "get", "", "configmaps", "", "ns1", "x", false},
        {"", "get", "", "configmaps", "", "ns1", "x", false},
        /* a ClusterRole bound in one namespace */
        {"bob", "get", "", "configmaps", "", "ns1", "x", true},
        {"bob", "get", "", "configmaps", "", "ns2", "x", false},
        {"bob", "list", "", "configmaps", "", "", "", false},
        {"system:serviceaccount:ns2:robot", "get", "", "configmaps", "", "ns1", "x", true},
        {"system:serviceaccount:ns1:robot", "get", "", "configmaps", "", "ns1", "x", false},
        {"system:serviceaccount:ns1:local", "get", "", "configmaps", "", "ns1", "x", true},
        {"robot", "get", "", "configmaps", "", "ns1", "x", false},
        /* a Role, which exists in one namespace */
        {"zed,devs", "update", "", "configmaps", "", "ns1", "x", true},
        {"zed,devs", "update", "apps", "configmaps", "", "ns1", "x", true},
        {"zed,devs", "update", "", "configmaps", "", "ns2", "x", false},
        {"erin", "update", "", "configmaps", "", "ns1", "x", false},
        {"erin", "update", "", "configmaps", "", "", "x", false},
        /* subresources */
        {"carl", "get", "", "pods", "log", "ns1", "x", true},
        {"carl", "get", "", "pods", "", "ns1", "x", false},
        {"carl", "get", "", "pods", "exec", "ns1", "x", false},
        {"carl", "update", "apps", "deployments", "scale", "ns1", "x", true},
        {"carl", "update", "apps", "deployments", "", "ns1", "x", false},
        /* names */
        {"kim", "list", "", "secrets", "", "ns1", "", true},
        {"kim", "create", "", "secrets", "", "ns1", "", true},
        {"kim", "list", "", "secrets", "", "ns1", "a", true},
        {"kim", "list", "", "secrets", "", "ns1", "b", false},
        {"dora", "list", "", "secrets", "", "ns1", "", false},
        {"dora", "get", "", "secrets", "", "ns1", "a", true},
        {"dora", "watch", "", "secrets", "", "ns1", "b", true},
        {"dora", "get", "", "secrets", "", "ns1", "c", false},
        {"dora", "create", "", "secrets", "", "ns1", "", false},
        {"dora", "watch", "", "secrets", "", "ns1", "", false},
        /* everything */
        {"zed,x,roots", "frobnicate", "any.group", "things", "part", "ns", "x", true},
        /* a malformed role or binding grants nothing */
        {"gina", "get", "", "configmaps", "", "ns1", "x", false},
        {"gina", "get", "", "events", "", "ns1", "x", true},
        {"hal", "get", "", "events", "", "ns1", "x", false},
        {"system:serviceaccount::nowhere", "get", "", "events", "", "ns1", "x", false},
};

static bool ask(const struct hfd_rbac_index *index, const struct question *q,
                struct hf__strbuf *reason) {
        const struct hfd_attributes attributes = {.verb = q->verb,
                                                  .group = q->group,
                                                  .resource = q->resource,
                                                  .subresource = q->subresource,
                                                  .ns = q->ns,
                                                  .name = q->name,
                                                  .path = "",
                                                  .is_resource = true};

        return hfd_rbac_allows(index, rbac_fixture_subject(q->user), &attributes, reason);
}

static void test_a_request_is_allowed_by_a_rule_that_names_it(void **state) {
        struct hfd_rbac_index *index = rbac_fixture_index(objects, N(objects));

        for (size_t i = 0; i < N(questions); i++) {
                if (ask(index, &questions[i], NULL) == questions[i].allowed)
                        continue;
                fail_msg("%s %s %s/%s/%s ns=%s name=%s: expected %d", questions[i].user,
                         questions[i].verb, questions[i].group, questions[i].resource,
                         questions[i].subresource, questions[i].ns, questions[i].name,
                         questions[i].allowed);
        }
        hfd_rbac_index_unref(index);
}

static void test_a_path_is_allowed_by_a_rule_for_urls_that_is_bound_everywhere(void **state) {
        static const struct {
                const char *user, *verb, *path;
                bool allowed;
        } paths[] = {
                {"fred", "get", "/metrics", true},   {"fred", "post", "/metrics", false},
                {"fred", "get", "/metrics/", false}, {"fred", "get", "/logs/", true},
                {"fred", "get", "/logs/a/b", true},  {"fred", "get", "/logs", false},
                {"fred", "get", "/xyz", true},       {"fred", "get", "/", false},
                {"ivan", "get", "/metrics", false},  {"alice", "get", "/metrics", false},
                {"zed,roots", "put", "/any/", true},
        };
        struct hfd_rbac_index *index = rbac_fixture_index(objects, N(objects));

        for (size_t i = 0; i < N(paths); i++) {
                const struct hfd_attributes attributes = {.verb = paths[i].verb,
                                                          .group = "",
                                                          .resource = "",
                                                          .subresource = "",
                                                          .ns = "",
                                                          .name = "",
                                                          .path = paths[i].path};
                if (hfd_rbac_allows(index, rbac_fixture_subject(paths[i].user), &attributes,
                                    NULL) != paths[i].allowed)
                        fail_msg("%s %s %s: expected %d", paths[i].user, paths[i].verb,
                                 paths[i].path, paths[i].allowed);
        }
        hfd_rbac_index_unref(index);
}

static void test_a_decision_says_which_binding_or_which_missing_role(void **state) {
        static const struct {
                struct question question;
                const char *reason;
        } rows[] = {
                {{"alice", "get", "", "configmaps", "", "ns1", "x", true},
                 "RBAC: allowed by ClusterRoleBinding \"readers\" of ClusterRole \"reader\" to "
                 "User "
                 "\"alice\""},
                {{"zed,devs", "update", "", "configmaps", "", "ns1", "x", true},
                 "RBAC: allowed by RoleBinding \"writers/ns1\" of Role \"writer\" to Group "
                 "\"devs\""},
                {{"system:serviceaccount:ns2:robot", "get", "", "configmaps", "", "ns1", "x", true},
                 "RBAC: allowed by RoleBinding \"reader-here/ns1\" of ClusterRole \"reader\" to "
                 "ServiceAccount \"robot/ns2\""},
                {{"zed", "get", "", "configmaps", "", "ns1", "x", false}, ""},
                {{"jane", "get", "", "configmaps", "", "", "x", false},
                 "RBAC: clusterrole.rbac.authorization.k8s.io \"gone\" not found"},
                {{"jane", "get", "", "configmaps", "", "ns1", "x", false},
                 "RBAC: [clusterrole.rbac.authorization.k8s.io \"gone\" not found, "
                 "role.rbac.authorization.k8s.io \"gone\" not found]"},
        };
        struct hfd_rbac_index *index = rbac_fixture_index(objects, N(objects));

        for (size_t i = 0; i < N(rows); i++) {
                struct hf__strbuf reason = {0};
                assert_int_equal(ask(index, &rows[i].question, &reason), rows[i].question.allowed);
                assert_string_equal(reason.data ? reason.data : "", rows[i].reason);
                hf__strbuf_done(&reason);
        }
        hfd_rbac_index_unref(index);
}

/* One binding of a role may have thousands of equal subjects, each of which would take time in
 * every request of the user. */
static void test_equal_subjects_of_a_binding_are_one_grant(void **state) {
        static const struct rbac_object repeated[] = {
                {HFD_RBAC_CLUSTER_ROLE, "", "reader", "{'rules':[]}"},
                {HFD_RBAC_ROLE_BINDING, "ns1", "known",
                 "{'roleRef':{'kind':'ClusterRole','name':'reader'},'subjects':["
                 "{'kind':'User','name':'jane'},{'kind':'User','name':'jane'}]}"},
                {HFD_RBAC_ROLE_BINDING, "ns1", "missing",
                 "{'roleRef':{'kind':'Role','name':'gone'},'subjects':["
                 "{'kind':'User','name':'jane'},{'kind':'Group','name':'devs'},"
                 "{'kind':'User','name':'jane'},{'kind':'User','name':'jane'}]}"},
                {HFD_RBAC_ROLE_BINDING, "ns1", "other",
                 "{'roleRef':{'kind':'Role','name':'lost'},'subjects':["
                 "{'kind':'User','name':'jane'},{'kind':'User','name':'jane'}]}"},
        };
        static const struct question question = {"jane", "get", "",  "configmaps",
                                                 "",     "ns1", "x", false};
        struct hfd_rbac_index *index = rbac_fixture_index(repeated, N(repeated));
        struct hf__strbuf reason = {0};

        assert_int_equal(index->n_grants, 4); /* jane by three bindings, devs by one */
        assert_false(ask(index, &question, &reason));
        assert_string_equal(reason.data,
                            "RBAC: [role.rbac.authorization.k8s.io \"gone\" not found, "
                            "role.rbac.authorization.k8s.io \"lost\" not found]");
        hf__strbuf_done(&reason);
        hfd_rbac_index_unref(index);
}

static void test_an_empty_index_allows_nothing(void **state) {
        struct hfd_rbac_index *index = rbac_fixture_index(NULL, 0);

        for (size_t i = 0; i < N(questions); i++)
                assert_false(ask(index, &questions[i], NULL));
        hfd_rbac_index_unref(index);
}

/* Prints a list of rules with ' in place of ". */
static const char *print(const struct hf__json *rules) {
        static char text[1024];
        struct hf__strbuf out = {0};

        hf__json_print(rules, &out);
        assert(out.error == 0 && out.n < sizeof text);
        strcpy(text, out.data);
        for (char *at = text; *at; at++)
                if (*at == '"')
                        *at = '\'';
        hf__strbuf_done(&out);
        return text;
}

static void test_the_rules_of_a_user_are_those_of_all_bindings(void **state) {
        struct hfd_rbac_index *index = rbac_fixture_index(objects, N(objects));
        struct hf__json *rules = NULL;
        char *missing = NULL;

        assert_int_equal(hfd_rbac_index_rules_of(index, rbac_fixture_subject("alice,devs"), "ns1",
                                                 &rules, &missing),
                         0);
        assert_string_equal(print(rules),
                            "[{'verbs':['get','list'],'apiGroups':[''],'resources':['configmaps']},"
                            "{'verbs':['update'],'apiGroups':['','apps'],'resources':"
                            "['configmaps']}]");
        assert_null(missing);
        hf__json_free(rules);
        assert_int_equal(hfd_rbac_index_rules_of(index, rbac_fixture_subject("jane"), "", &rules,
                                                 &missing),
                         0);
        assert_string_equal(print(rules), "[]");
        assert_string_equal(missing, "clusterrole.rbac.authorization.k8s.io \"gone\" not found");
        free(missing);
        hf__json_free(rules);
        hfd_rbac_index_unref(index);
}

static void test_the_rules_of_a_role_are_those_that_it_was_built_from(void **state) {
        struct hfd_rbac_index *index = rbac_fixture_index(objects, N(objects));
        struct hf__json *rules = NULL;

        assert_int_equal(hfd_rbac_index_role_rules(index, "ClusterRole", "", "one", &rules), 0);
        assert_string_equal(print(rules), "[{'verbs':['get','watch','create'],'apiGroups':[''],"
                                          "'resources':['secrets'],'resourceNames':['a','b']}]");
        hf__json_free(rules);
        assert_int_equal(hfd_rbac_index_role_rules(index, "Role", "ns1", "writer", &rules), 0);
        hf__json_free(rules);
        assert_int_equal(hfd_rbac_index_role_rules(index, "Role", "ns2", "writer", &rules),
                         HF_E_NOT_FOUND);
        assert_int_equal(hfd_rbac_index_role_rules(index, "Role", "ns1", "one", &rules),
                         HF_E_NOT_FOUND);
        assert_int_equal(hfd_rbac_index_role_rules(index, "ClusterRole", "", "writer", &rules),
                         HF_E_NOT_FOUND);
        hfd_rbac_index_unref(index);
}

static void test_a_thousand_bindings_each_count_for_their_subject(void **state) {
        struct hfd_rbac_builder *builder = hfd_rbac_builder_new();
        char text[300], user[32];

        for (int i = 0; i < 1000; i++) {
                snprintf(text, sizeof text,
                         "{'rules':[{'verbs':['get'],'apiGroups':[''],'resources':['r%d']}]}", i);
                struct hf__json *role = rbac_fixture_json(text);
                snprintf(text, sizeof text,
                         "{'roleRef':{'kind':'ClusterRole','name':'r%d'},'subjects':[{'kind':"
                         "'User','name':'u%d'}]}",
                         i, i);
                struct hf__json *binding = rbac_fixture_json(text);
                snprintf(user, sizeof user, "r%d", i);
                assert(hfd_rbac_builder_add(builder, HFD_RBAC_CLUSTER_ROLE, "", user, role) == 0);
                assert(hfd_rbac_builder_add(builder, HFD_RBAC_CLUSTER_ROLE_BINDING, "", user,
                                            binding) == 0);
                hf__json_free(role);
                hf__json_free(binding);
        }
        struct hfd_rbac_index *index = hfd_rbac_builder_finish(builder);
        assert_int_equal(hfd_rbac_index_bindings(index), 1000);
        for (int i = 0; i < 1000; i++) {
                snprintf(user, sizeof user, "u%d", i);
                snprintf(text, sizeof text, "r%d", i);
                struct question q = {user, "get", "", text, "", "ns", "x", true};
                assert_true(ask(index, &q, NULL));
                snprintf(text, sizeof text, "r%d", (i + 1) % 1000);
                assert_false(ask(index, &q, NULL));
        }
        hfd_rbac_index_unref(index);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_request_is_allowed_by_a_rule_that_names_it),
                cmocka_unit_test(
                        test_a_path_is_allowed_by_a_rule_for_urls_that_is_bound_everywhere),
                cmocka_unit_test(test_a_decision_says_which_binding_or_which_missing_role),
                cmocka_unit_test(test_equal_subjects_of_a_binding_are_one_grant),
                cmocka_unit_test(test_an_empty_index_allows_nothing),
                cmocka_unit_test(test_the_rules_of_a_user_are_those_of_all_bindings),
                cmocka_unit_test(test_the_rules_of_a_role_are_those_that_it_was_built_from),
                cmocka_unit_test(test_a_thousand_bindings_each_count_for_their_subject),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
