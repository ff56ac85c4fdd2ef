/* SPDX-License-Identifier: Apache-2.0 */
/* Which rights a user lacks to grant some rules, as a table. */
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
#include "base/strbuf.h"
#include "rbac_fixture.h"
#include "server/rbac/coverage.h"

#define N(array) (sizeof(array) / sizeof(array)[0])

#define BIND(subject, role)                                                                        \
        {                                                                                          \
                HFD_RBAC_CLUSTER_ROLE_BINDING, "", role,                                           \
                        "{'roleRef':{'kind':'ClusterRole','name':'" role "'},"                     \
                        "'subjects':[{'kind':'User','name':'" subject "'}]}"                       \
        }

static const struct rbac_object objects[] = {
        {HFD_RBAC_CLUSTER_ROLE, "", "everything",
         "{'rules':[{'verbs':['*'],'apiGroups':['*'],'resources':['*']},"
         "{'verbs':['*'],'nonResourceURLs':['*']}]}"},
        {HFD_RBAC_CLUSTER_ROLE, "", "resources",
         "{'rules':[{'verbs':['*'],'apiGroups':['*'],'resources':['*']}]}"},
        {HFD_RBAC_CLUSTER_ROLE, "", "two",
         "{'rules':[{'verbs':['get'],'apiGroups':[''],'resources':['configmaps','pods/log']},"
         "{'verbs':['list'],'apiGroups':[''],'resources':['configmaps']},"
         "{'verbs':['update'],'apiGroups':['apps'],'resources':['*/scale']},"
         "{'verbs':['get'],'nonResourceURLs':['/logs/*']}]}"},
        {HFD_RBAC_CLUSTER_ROLE, "", "named",
         "{'rules':[{'verbs':['get'],'apiGroups':[''],'resources':['secrets'],"
         "'resourceNames':['a','b']}]}"},
        BIND("root", "everything"),
        BIND("most", "resources"),
        BIND("alice", "two"),
        BIND("dora", "named"),
};

static const struct {
        const char *user, *rules, *missing; /* missing "" = covered */
} rows[] = {
        {"root", "[{'verbs':['*'],'apiGroups':['*'],'resources':['*']}]", ""},
        {"root", "[{'verbs':['*'],'nonResourceURLs':['*']}]", ""},
        {"most", "[{'verbs':['*'],'nonResourceURLs':['*']}]",
         "{NonResourceURLs:[\"*\"], Verbs:[\"*\"]}"},
        {"alice", "[]", ""},
        {"alice", "[{'verbs':['get','list'],'apiGroups':[''],'resources':['configmaps']}]", ""},
        {"alice", "[{'verbs':['get'],'apiGroups':[''],'resources':['pods/log']}]", ""},
        {"alice", "[{'verbs':['update'],'apiGroups':['apps'],'resources':['deployments/scale']}]",
         ""},
        {"alice",
         "[{'verbs':['get'],'apiGroups':[''],'resources':['configmaps'],"
         "'resourceNames':['x']}]",
         ""},
        {"alice", "[{'verbs':['get'],'nonResourceURLs':['/logs/a','/logs/*']}]", ""},
        {"alice", "[{'verbs':['get'],'nonResourceURLs':['/logs','/lo*']}]",
         "{NonResourceURLs:[\"/lo*\"], Verbs:[\"get\"]}\n"
         "{NonResourceURLs:[\"/logs\"], Verbs:[\"get\"]}"},
        {"alice", "[{'verbs':['*'],'apiGroups':[''],'resources':['configmaps']}]",
         "{APIGroups:[\"\"], Resources:[\"configmaps\"], Verbs:[\"*\"]}"},
        {"alice",
         "[{'verbs':['get','delete','watch'],'apiGroups':[''],'resources':['secrets',"
         "'configmaps']}]",
         "{APIGroups:[\"\"], Resources:[\"configmaps\"], Verbs:[\"delete\" \"watch\"]}\n"
         "{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\" \"delete\" \"watch\"]}"},
        {"alice",
         "[{'verbs':['get'],'apiGroups':[''],'resources':['secrets'],"
         "'resourceNames':['a']}]",
         "{APIGroups:[\"\"], Resources:[\"secrets\"], ResourceNames:[\"a\"], Verbs:[\"get\"]}"},
        {"dora",
         "[{'verbs':['get'],'apiGroups':[''],'resources':['secrets'],"
         "'resourceNames':['a']}]",
         ""},
        {"dora",
         "[{'verbs':['get'],'apiGroups':[''],'resources':['secrets'],"
         "'resourceNames':['a','c']}]",
         "{APIGroups:[\"\"], Resources:[\"secrets\"], ResourceNames:[\"c\"], Verbs:[\"get\"]}"},
        {"dora", "[{'verbs':['get'],'apiGroups':[''],'resources':['secrets']}]",
         "{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}"},
};

static void test_what_a_user_does_not_hold_is_missing(void **state) {
        struct hfd_rbac_index *index = rbac_fixture_index(objects, N(objects));

        for (size_t i = 0; i < N(rows); i++) {
                struct hf__json *rules = rbac_fixture_json(rows[i].rules);
                struct hf__strbuf missing = {0};
                bool covered;
                assert_int_equal(hfd_rbac_covers(index, rbac_fixture_subject(rows[i].user), "",
                                                 rules, &covered, &missing),
                                 0);
                assert_string_equal(missing.data ? missing.data : "", rows[i].missing);
                assert_int_equal(covered, rows[i].missing[0] == '\0');
                hf__strbuf_done(&missing);
                hf__json_free(rules);
        }
        hfd_rbac_index_unref(index);
}

/* Appends n different texts as a list. */
static void put_texts(struct hf__strbuf *out, size_t n) {
        hf__strbuf_putc(out, '[');
        for (size_t i = 0; i < n; i++)
                hf__strbuf_printf(out, "%s't%zu'", i ? "," : "", i);
        hf__strbuf_putc(out, ']');
}

/* A rule with n verbs for n resources and n URLs; without a number, it has none. The caller frees
 * it. */
static struct hf__json *large_rule(size_t n_resources, size_t n_urls) {
        struct hf__strbuf text = {0};

        hf__strbuf_puts(&text, "[{'verbs':");
        put_texts(&text, 2000);
        hf__strbuf_puts(&text, ",'apiGroups':['a'],'resources':");
        put_texts(&text, n_resources);
        hf__strbuf_puts(&text, ",'nonResourceURLs':");
        put_texts(&text, n_urls);
        hf__strbuf_puts(&text, "}]");
        struct hf__json *rules = rbac_fixture_json(text.data);
        hf__strbuf_done(&text);
        return rules;
}

/* "most" has all rights to resources, but not to URLs. */
static void test_of_a_rule_with_very_many_rights_the_missing_part_is_named(void **state) {
        static const char resources[] = "{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}",
                          urls[] = "{NonResourceURLs:[\"*\"], Verbs:[\"*\"]}";
        static const struct {
                const char *user;
                size_t n_resources, n_urls;
                const char *missing;
        } cases[] = {{"most", 1, 2000, urls},
                     {"alice", 0, 2000, urls},
                     {"alice", 2000, 0, resources}};
        struct hfd_rbac_index *index = rbac_fixture_index(objects, N(objects));

        for (size_t i = 0; i < N(cases); i++) {
                struct hf__json *rules = large_rule(cases[i].n_resources, cases[i].n_urls);
                struct hf__strbuf missing = {0};
                bool covered;
                assert_int_equal(hfd_rbac_covers(index, rbac_fixture_subject(cases[i].user), "",
                                                 rules, &covered, &missing),
                                 0);
                assert_false(covered);
                assert_string_equal(missing.data, cases[i].missing);
                hf__strbuf_done(&missing);
                hf__json_free(rules);
        }
        hfd_rbac_index_unref(index);
}

/* 2000 x 2000 x 2000 rights would be checked for hours. */
static void test_a_rule_with_very_many_rights_is_not_taken_apart(void **state) {
        struct hfd_rbac_index *index = rbac_fixture_index(objects, N(objects));
        struct hf__strbuf text = {0}, missing = {0};
        bool covered;

        hf__strbuf_puts(&text, "[{'verbs':");
        put_texts(&text, 2000);
        hf__strbuf_puts(&text, ",'apiGroups':");
        put_texts(&text, 2000);
        hf__strbuf_puts(&text, ",'resources':");
        put_texts(&text, 2000);
        hf__strbuf_puts(&text, "}]");
        struct hf__json *rules = rbac_fixture_json(text.data);
        hf__strbuf_done(&text);
        assert_int_equal(hfd_rbac_covers(index, rbac_fixture_subject("most"), "", rules, &covered,
                                         &missing),
                         0);
        assert_true(covered);
        assert_int_equal(hfd_rbac_covers(index, rbac_fixture_subject("alice"), "", rules, &covered,
                                         &missing),
                         0);
        assert_false(covered);
        hf__strbuf_done(&missing);
        hf__json_free(rules);
        hfd_rbac_index_unref(index);
}

/* Each rule is small, but together they have 50 million rights, and each right has a long verb. */
static void test_very_many_rules_give_a_short_message(void **state) {
        struct hfd_rbac_index *index = rbac_fixture_index(objects, N(objects));
        struct hf__strbuf text = {0}, missing = {0};
        bool covered;

        hf__strbuf_putc(&text, '[');
        for (int i = 0; i < 10000; i++) {
                hf__strbuf_printf(&text, "%s{'verbs':['%0*d'],'apiGroups':", i ? "," : "",
                                  i ? 1 : 1000000, i);
                put_texts(&text, 70);
                hf__strbuf_puts(&text, ",'resources':");
                put_texts(&text, 70);
                hf__strbuf_putc(&text, '}');
        }
        hf__strbuf_putc(&text, ']');
        struct hf__json *rules = rbac_fixture_json(text.data);
        hf__strbuf_done(&text);
        assert_int_equal(hfd_rbac_covers(index, rbac_fixture_subject("alice"), "", rules, &covered,
                                         &missing),
                         0);
        assert_false(covered);
        assert_true(missing.n < 1000000);
        hf__strbuf_done(&missing);
        hf__json_free(rules);
        hfd_rbac_index_unref(index);
}

/* Appends n rules for Secrets with different names, the last one first if they are reversed. */
static void put_named_rules(struct hf__strbuf *out, int n, bool reversed) {
        hf__strbuf_putc(out, '[');
        for (int i = 0; i < n; i++)
                hf__strbuf_printf(out,
                                  "%s{'verbs':['get'],'apiGroups':[''],'resources':['secrets'],"
                                  "'resourceNames':['s%d']}",
                                  i ? "," : "", reversed ? n - 1 - i : i);
        hf__strbuf_putc(out, ']');
}

static bool covers_named_rules(const struct hfd_rbac_index *index, int n, bool reversed) {
        struct hf__strbuf text = {0}, missing = {0};
        bool covered;

        put_named_rules(&text, n, reversed);
        struct hf__json *rules = rbac_fixture_json(text.data);
        hf__strbuf_done(&text);
        assert_int_equal(hfd_rbac_covers(index, rbac_fixture_subject("carol"), "", rules, &covered,
                                         &missing),
                         0);
        hf__strbuf_done(&missing);
        hf__json_free(rules);
        return covered;
}

/* A user with 10,000 rules grants rights that each need a search through half of them, as far as
 * the limit of comparisons reaches. In the same order each right is found at once. */
static void test_very_many_held_rules_are_not_compared_with_each_right(void **state) {
        struct hf__strbuf text = {0};

        hf__strbuf_puts(&text, "{'rules':");
        put_named_rules(&text, 10000, false);
        hf__strbuf_putc(&text, '}');
        const struct rbac_object many[] = {{HFD_RBAC_CLUSTER_ROLE, "", "many", text.data},
                                           BIND("carol", "many")};
        struct hfd_rbac_index *index = rbac_fixture_index(many, N(many));
        assert_true(covers_named_rules(index, 10000, false));
        assert_true(covers_named_rules(index, 400, true));
        assert_false(covers_named_rules(index, 10000, true));
        hfd_rbac_index_unref(index);
        hf__strbuf_done(&text);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_a_user_does_not_hold_is_missing),
                cmocka_unit_test(test_a_rule_with_very_many_rights_is_not_taken_apart),
                cmocka_unit_test(test_of_a_rule_with_very_many_rights_the_missing_part_is_named),
                cmocka_unit_test(test_very_many_rules_give_a_short_message),
                cmocka_unit_test(test_very_many_held_rules_are_not_compared_with_each_right),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
