/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of aggregated roles, and which rules are added to the server's own roles, as tables. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "rbac_fixture.h"
#include "server/controllers/base/defaults_pause.h"
#include "server/controllers/base/object_client.h"
#include "server/controllers/context/controller_context.h"
#include "server/controllers/context/reconcile_loop.h"
#include "server/controllers/roles/role_aggregation.h"
#include "server/controllers/roles/role_controller.h"
#include "server/controllers/roles/role_defaults.h"

#define N(array) (sizeof(array) / sizeof(array)[0])

static void expect_json(const struct hf__json *json, const char *wanted) {
        struct hf__json *expected = rbac_fixture_json(wanted);
        struct hf__strbuf out = {0};

        hf__json_print(json, &out);
        if (!hf__json_equal(json, expected))
                fail_msg("%s instead of %s", out.data, wanted);
        hf__strbuf_done(&out);
        hf__json_free(expected);
}

static void test_an_aggregated_role_has_the_rules_of_the_roles_it_selects(void **state) {
        static const char all[] =
                "[{'metadata':{'name':'a','labels':{'x':'1','y':'1'}},'rules':[1,2]},"
                "{'metadata':{'name':'b','labels':{'x':'2'}},'rules':[2,3]},"
                "{'metadata':{'name':'c'},'rules':[4]},"
                "{'metadata':{'name':'self','labels':{'x':'1'}},'rules':[5]}]";
        static const struct {
                const char *selectors, *rules;
        } rows[] = {
                {"[]", "[]"},
                {"null", "[]"},
                {"[{'matchLabels':{'x':'1'}}]", "[1,2]"},
                {"[{'matchLabels':{'x':'1'}},{'matchLabels':{'x':'2'}}]", "[1,2,3]"},
                {"[{'matchLabels':{'x':'1','y':'2'}}]", "[]"},
                {"[{}]", "[1,2,3,4]"},
                {"[7,null,{'matchExpressions':[{'key':'x','operator':'Near'}]}]", "[]"},
                {"[{'matchExpressions':[{'operator':'NotIn','values':['1']}]}]", "[]"},
                {"[{'matchExpressions':[{'key':'x','operator':'In','values':['2','3']}]}]",
                 "[2,3]"},
                {"[{'matchExpressions':[{'key':'x','operator':'NotIn','values':['1']}]}]",
                 "[2,3,4]"},
                {"[{'matchExpressions':[{'key':'y','operator':'Exists'}]}]", "[1,2]"},
                {"[{'matchExpressions':[{'key':'x','operator':'DoesNotExist'}]}]", "[4]"},
                {"[{'matchExpressions':[{'key':'z','operator':'NotIn'}]}]", "[]"},
                {"[{'matchExpressions':[{'key':'z','operator':'NotIn','values':[]}]}]", "[]"},
                {"[{'matchExpressions':[{'key':'z','operator':'NotIn','values':[7]}]}]", "[]"},
                {"[{'matchExpressions':[{'key':'y','operator':'Exists','values':['1']}]}]", "[]"},
                {"[{'matchExpressions':[{'key':'z','operator':'DoesNotExist','values':['1']}]}]",
                 "[]"},
                {"[{'matchExpressions':[{'key':'y','operator':'Exists','values':[]}]}]", "[1,2]"},
                {"[{'matchLabels':7},{'matchExpressions':{}}]", "[]"},
                {"[{'matchLabels':null,'matchExpressions':null}]", "[1,2,3,4]"},
        };
        struct hf__json *roles = rbac_fixture_json(all), *rules = NULL;
        char text[300];

        for (size_t i = 0; i < N(rows); i++) {
                snprintf(text, sizeof text,
                         "{'metadata':{'name':'self'},"
                         "'aggregationRule':{'clusterRoleSelectors':%s}}",
                         rows[i].selectors);
                struct hf__json *role = rbac_fixture_json(text);
                assert_int_equal(hfd_role_aggregation_rules(role, roles, &rules), 0);
                expect_json(rules, rows[i].rules);
                hf__json_free(rules);
                hf__json_free(role);
        }
        hf__json_free(roles);
}

#define GET_PODS "{'verbs':['get'],'apiGroups':[''],'resources':['pods']}"
#define ALL_PODS "{'verbs':['*'],'apiGroups':[''],'resources':['pods']}"

static void test_what_a_default_has_is_added_and_nothing_is_removed(void **state) {
        static const struct {
                const char *object, *wanted, *merged; /* merged NULL = unchanged */
        } rows[] = {
                {"{'rules':[" GET_PODS "]}", "{'rules':[" GET_PODS "]}", NULL},
                {"{'rules':[" ALL_PODS "]}", "{'rules':[" GET_PODS "]}", NULL},
                {"{'rules':[" GET_PODS "]}", "{'rules':[" ALL_PODS "]}",
                 "{'rules':[" GET_PODS "," ALL_PODS "]}"},
                {"{'rules':null}", "{'rules':[" GET_PODS "]}", "{'rules':[" GET_PODS "]}"},
                {"{'metadata':{'labels':{'a':'b'}}}", "{'metadata':{'labels':{'a':'c','d':'e'}}}",
                 "{'metadata':{'labels':{'a':'b','d':'e'}}}"},
                {"{'metadata':{}}", "{'metadata':{'labels':{'a':'c'}}}",
                 "{'metadata':{'labels':{'a':'c'}}}"},
                {"{'subjects':[{'kind':'User','name':'u'}]}",
                 "{'subjects':[{'kind':'Group','name':'u'}]}",
                 "{'subjects':[{'kind':'User','name':'u'},{'kind':'Group','name':'u'}]}"},
                {"{'subjects':[{'kind':'Group','name':'u','apiGroup':'x'}]}",
                 "{'subjects':[{'kind':'Group','name':'u'}]}", NULL},
                {"{}", "{'aggregationRule':{'clusterRoleSelectors':[]}}",
                 "{'aggregationRule':{'clusterRoleSelectors':[]}}"},
                {"{'aggregationRule':{'clusterRoleSelectors':[{}]}}",
                 "{'aggregationRule':{'clusterRoleSelectors':[]}}", NULL},
        };

        for (size_t i = 0; i < N(rows); i++) {
                struct hf__json *object = rbac_fixture_json(rows[i].object),
                                *wanted = rbac_fixture_json(rows[i].wanted);
                bool changed = false;
                assert_int_equal(hfd_role_defaults_merge(object, wanted, &changed), 0);
                expect_json(object, rows[i].merged ? rows[i].merged : rows[i].object);
                assert_int_equal(changed, rows[i].merged != NULL);
                hf__json_free(object);
                hf__json_free(wanted);
        }
}

/* ---- the controller: the test replaces its informer, its loop and its writes ---- */

/* The stored roles. The aggregated one has its rules already. */
static const char *const stored[] = {
        ("{'metadata':{'name':'all'},'aggregationRule':{'clusterRoleSelectors':[{'matchLabels':{"
         "'x':'1'}}]},'rules':[{'verbs':['get']},{'verbs':['list']}]}"),
        "{'metadata':{'name':'b','labels':{'x':'1'}},'rules':[{'verbs':['get']}]}",
        "{'metadata':{'name':'c','labels':{'x':'1'}},'rules':[{'verbs':['list']}]}",
};
static int failing_parse = -1; /* which one fails for lack of memory; -1 = none */
static unsigned n_updates;

int __real_hf__json_parse(const char *data, size_t n, struct hf__json **ret_json,
                          size_t *reterr_offset);
int __wrap_hf__json_parse(const char *data, size_t n, struct hf__json **ret_json,
                          size_t *reterr_offset);
int __wrap_hf__json_parse(const char *data, size_t n, struct hf__json **ret_json,
                          size_t *reterr_offset) {
        if (failing_parse >= 0 && failing_parse-- == 0)
                return -ENOMEM;
        return __real_hf__json_parse(data, n, ret_json, reterr_offset);
}

size_t __wrap_hf_informer_count(struct hf_informer *informer);
size_t __wrap_hf_informer_count(struct hf_informer *informer) { return N(stored); }

typedef void (*each_fn)(void *ctx, const char *ns, const char *name, const char *object, size_t n);
void __wrap_hf_informer_each(struct hf_informer *informer, each_fn each, void *ctx);
void __wrap_hf_informer_each(struct hf_informer *informer, each_fn each, void *ctx) {
        for (size_t i = 0; i < N(stored); i++) {
                char text[300];
                size_t n = strlen(stored[i]);
                assert_true(n <= sizeof text);
                for (size_t k = 0; k < n; k++)
                        text[k] = (char)(stored[i][k] == '\'' ? '"' : stored[i][k]);
                each(ctx, "", "", text, n);
        }
}

int __wrap_hfd_object_client_update(struct hf_term *term, const struct hf_resource *resource,
                                    const char *ns, const char *name, const char *subresource,
                                    const struct hf__json *object);
int __wrap_hfd_object_client_update(struct hf_term *term, const struct hf_resource *resource,
                                    const char *ns, const char *name, const char *subresource,
                                    const struct hf__json *object) {
        n_updates++;
        return 0;
}

void __wrap_hfd_defaults_pause(struct hf_term *term, struct hf_informer *informer);
void __wrap_hfd_defaults_pause(struct hf_term *term, struct hf_informer *informer) {}

int __wrap_hfd_reconcile_loop_run(const struct hfd_reconcile_loop *loop, struct hf_term *term);
int __wrap_hfd_reconcile_loop_run(const struct hfd_reconcile_loop *loop, struct hf_term *term) {
        hf_nsec again = 0;

        return loop->reconcile(loop->ctx, term, "all", &again);
}

static void test_no_role_loses_rules_because_memory_is_missing(void **state) {
        static struct hfd_kind kind;
        static struct hfd_controller_context context = {.cluster_roles = &kind};

        for (int i = 0; i < (int)N(stored); i++) {
                failing_parse = i;
                assert_int_equal(hfd_role_controller_run(NULL, &context), -ENOMEM);
                assert_int_equal(n_updates, 0);
        }
        assert_int_equal(hfd_role_controller_run(NULL, &context), 0);
        assert_int_equal(n_updates, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_an_aggregated_role_has_the_rules_of_the_roles_it_selects),
                cmocka_unit_test(test_what_a_default_has_is_added_and_nothing_is_removed),
                cmocka_unit_test(test_no_role_loses_rules_because_memory_is_missing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
