/* SPDX-License-Identifier: Apache-2.0 */
/* A new pod's labels become terms of its selectors, and gates let a node affinity only become
 * narrower. */
#undef NDEBUG
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
#include "server/resources/causes.h"
#include "server/resources/workloads/workloads.h"

/* In the text, ' stands for ". */
static struct hf__json *parse(const char *text) {
        char *copy = strdup(text);
        struct hf__json *json = NULL;

        for (char *c = copy; *c; c++)
                if (*c == '\'')
                        *c = '"';
        assert_int_equal(hf__json_parse(copy, strlen(copy), &json, NULL), 0);
        free(copy);
        return json;
}

/* ---- selectors ---- */

/* The labels are a=1 and b=2, and two that are not valid. */
static void expect_spec(const char *spec, const char *wanted) {
        struct hf__json *pod = parse(
                                "{'metadata':{'labels':{'a':'1','b':'2','d':'x y','e e':'3'}}}"),
                        *expected = parse(wanted);
        struct hf__strbuf shown = {0};

        assert_int_equal(hf__json_put(pod, "spec", parse(spec)), 0);
        assert_int_equal(hfd_pod_complete(pod), 0);
        hf__json_print(hf__json_get(pod, "spec"), &shown);
        if (!hf__json_equal(hf__json_get(pod, "spec"), expected))
                fail_msg("%s: %s", spec, shown.data);
        hf__strbuf_done(&shown);
        hf__json_free(pod);
        hf__json_free(expected);
}

#define SPREAD(members) "{'topologySpreadConstraints':[{" members "}]}"
#define A_IS_1          "{'key':'a','operator':'In','values':['1']}"
#define B_IS_NOT_2      "{'key':'b','operator':'NotIn','values':['2']}"

static void test_labels_become_terms_of_selectors(void **state) {
        static const char *const cases[][2] = {
                {SPREAD("'matchLabelKeys':['a','c'],'labelSelector':{}"),
                 SPREAD("'matchLabelKeys':['a','c'],'labelSelector':{'matchExpressions':[" A_IS_1
                        "]}")},
                /* Behind the terms of the client. */
                {SPREAD("'matchLabelKeys':['b','a'],'labelSelector':{'matchExpressions':[{'key':"
                        "'b','operator':'NotIn','values':['2']},{'key':'a','operator':'In',"
                        "'values':['1','2']}]}"),
                 SPREAD("'matchLabelKeys':['b','a'],'labelSelector':{'matchExpressions':[{'key':"
                        "'b','operator':'NotIn','values':['2']},{'key':'a','operator':'In',"
                        "'values':['1','2']},{'key':'b','operator':'In','values':['2']}," A_IS_1
                        "]}")},
                /* Nothing to add. */
                {SPREAD("'matchLabelKeys':['c'],'labelSelector':{}"),
                 SPREAD("'matchLabelKeys':['c'],'labelSelector':{}")},
                {SPREAD("'matchLabelKeys':['a']"), SPREAD("'matchLabelKeys':['a']")},
                {SPREAD("'labelSelector':{'matchLabels':{'a':'1'}}"),
                 SPREAD("'labelSelector':{'matchLabels':{'a':'1'}}")},
                {"{'nodeName':'n'}", "{'nodeName':'n'}"},
                /* The validation refuses the labels, or the repeated key. */
                {SPREAD("'matchLabelKeys':['d','e e'],'mismatchLabelKeys':['d','e e'],"
                        "'labelSelector':{}"),
                 SPREAD("'matchLabelKeys':['d','e e'],'mismatchLabelKeys':['d','e e'],"
                        "'labelSelector':{}")},
                {SPREAD("'matchLabelKeys':['a','c','a','a'],'mismatchLabelKeys':['b','b','b','b'],"
                        "'labelSelector':{}"),
                 SPREAD("'matchLabelKeys':['a','c','a','a'],'mismatchLabelKeys':['b','b','b','b'],"
                        "'labelSelector':{'matchExpressions':[" A_IS_1 "," A_IS_1 "," B_IS_NOT_2
                        "," B_IS_NOT_2 "]}")},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                expect_spec(cases[i][0], cases[i][1]);
}

/* A pod whose spread constraints each name all of its labels. member: that of the last one. */
static struct hf__json *make_pod(int n_constraints, int n_labels, const char *value,
                                 const char *member) {
        struct hf__json *pod = parse("{'metadata':{'labels':{}},'spec':{}}");
        struct hf__json *constraints = hf__json_array();
        char name[16];

        for (int i = 0; i < n_labels; i++) {
                (void)snprintf(name, sizeof name, "label-%02d", i);
                assert_int_equal(hf__json_add_string(hf__json_path(pod, "metadata.labels"), name,
                                                     value),
                                 0);
        }
        for (int i = 0; i < n_constraints; i++) {
                struct hf__json *constraint = parse("{'labelSelector':{}}");
                struct hf__json *keys = hf__json_array();
                for (int k = 0; k < n_labels; k++) {
                        (void)snprintf(name, sizeof name, "label-%02d", k);
                        assert_int_equal(hf__json_append_string(keys, name), 0);
                }
                assert_int_equal(hf__json_put(constraint,
                                              i + 1 < n_constraints ? "matchLabelKeys" : member,
                                              keys),
                                 0);
                assert_int_equal(hf__json_append(constraints, constraint), 0);
        }
        assert_int_equal(hf__json_put(hf__json_get(pod, "spec"), "topologySpreadConstraints",
                                      constraints),
                         0);
        return pod;
}

/* Many lists name the same labels. The terms may not take many times the bytes of the body. */
static void test_the_terms_of_a_pod_have_a_limit(void **state) {
        struct hf__json *pod = make_pod(2000, 50, "value", "matchLabelKeys");
        struct hf__strbuf shown = {0};

        assert_int_equal(hfd_pod_complete(pod), HF_E_TOO_LARGE);
        hf__json_print(pod, &shown);
        assert_true(shown.n < (size_t)6
                                      << 20); /* the body has 1.3 MB, all terms would take 5.4 MB */
        hf__strbuf_done(&shown);
        hf__json_free(pod);
}

/* Each of 1,024 * 32 terms takes 96 bytes, 3 MiB together. NotIn takes more than In. */
static void test_the_limit_of_the_terms_is_exact(void **state) {
        const char *const value = "12345678901234567890123456789012345678901234567";
        struct hf__json *pod = make_pod(1024, 32, value, "matchLabelKeys");

        assert_int_equal(hfd_pod_complete(pod), 0);
        hf__json_free(pod);
        pod = make_pod(1024, 32, value, "mismatchLabelKeys");
        assert_int_equal(hfd_pod_complete(pod), HF_E_TOO_LARGE);
        hf__json_free(pod);
}

/* All lists of terms of an affinity. */
static void test_affinities_get_terms(void **state) {
        static const char *const kinds[] = {"podAffinity", "podAntiAffinity"};
        static const char *const lists[][3] = {
                {"requiredDuringSchedulingIgnoredDuringExecution", "", ""},
                {"preferredDuringSchedulingIgnoredDuringExecution",
                 "'weight':1,'podAffinityTerm':{", "}"},
        };
        char spec[500], wanted[600];

        for (size_t i = 0; i < 4; i++) {
                static const char form[] = "{'affinity':{'%s':{'%s':[{%s'matchLabelKeys':['a'],"
                                           "'mismatchLabelKeys':['b'],'labelSelector':{%s}%s}]}}}";
                const char *const *list = lists[i % 2];
                (void)snprintf(spec, sizeof spec, form, kinds[i / 2], list[0], list[1], "",
                               list[2]);
                (void)snprintf(wanted, sizeof wanted, form, kinds[i / 2], list[0], list[1],
                               "'matchExpressions':[" A_IS_1 "," B_IS_NOT_2 "]", list[2]);
                expect_spec(spec, wanted);
        }
}

/* ---- gates ---- */

#define GATED(affinity)                                                                            \
        "{'spec':{'schedulingGates':[{'name':'g'}],'containers':[{'name':'c','image':'i',"         \
        "'imagePullPolicy':'Always','terminationMessagePolicy':'File'}],'restartPolicy':'Always'," \
        "'dnsPolicy':'Default','terminationGracePeriodSeconds':30,'affinity':{" affinity "}}}"
#define TERMS(terms)                                                                               \
        GATED("'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"                 \
              "'nodeSelectorTerms':[" terms "]}}")
#define A      "{'key':'a','operator':'Exists'}"
#define B      "{'key':'b','operator':'In','values':['v']}"
#define N      "{'key':'metadata.name','operator':'In','values':['n']}"
#define M      "{'key':'metadata.name','operator':'In','values':['m']}"
#define PREFER "'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':1,'preference':{}}]"
#define FIELD                                                                                      \
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."               \
        "nodeSelectorTerms"
#define GROWS "only additions are allowed (no mutations or deletions)\n"

static void test_a_gated_pod_gets_only_fewer_nodes(void **state) {
        static const struct {
                const char *old, *object, *causes;
        } cases[] = {
                {GATED(""), TERMS("{'matchExpressions':[" A "]}"), ""},
                {GATED("'nodeAffinity':{}"), TERMS("{'matchExpressions':[" A "]}"), ""},
                {GATED("'nodeAffinity':{" PREFER "}"), GATED("'nodeAffinity':{}"), ""},
                {TERMS("{'matchExpressions':[" A "]},{'matchFields':[" N "]}"),
                 TERMS("{'matchExpressions':[" A "," B "],'matchFields':[" N "]},{'matchFields':["
                       "" N "," M "],'matchExpressions':[" B "]}"),
                 ""},
                /* What is zero may be left out. */
                {TERMS("{'matchExpressions':[{'key':'a','operator':'Exists','values':[]}]}"),
                 TERMS("{'matchExpressions':[" A "," B "],'matchFields':[]}"), ""},
                {TERMS("{'matchExpressions':[" A "]}"), GATED("'nodeAffinity':{" PREFER "}"),
                 FIELD ": Invalid value: null: no additions/deletions to non-empty "
                       "NodeSelectorTerms list are allowed\n"},
                {TERMS("{'matchExpressions':[" B "]}"),
                 TERMS("{'matchExpressions':[" B "]},{'matchFields':[" N "]}"),
                 FIELD ": Invalid value: [{\"MatchExpressions\":[{\"Key\":\"b\",\"Operator\":"
                       "\"In\",\"Values\":[\"v\"]}],\"MatchFields\":null},{\"MatchExpressions\":"
                       "null,\"MatchFields\":[{\"Key\":\"metadata.name\",\"Operator\":\"In\","
                       "\"Values\":[\"n\"]}]}]: no additions/deletions to non-empty "
                       "NodeSelectorTerms list are allowed\n"},
                {TERMS("{'matchExpressions':[" A "," B "]}"), TERMS("{'matchExpressions':[" A "]}"),
                 FIELD "[0]: Invalid value: {\"MatchExpressions\":[{\"Key\":\"a\",\"Operator\":"
                       "\"Exists\",\"Values\":null}],\"MatchFields\":null}: " GROWS},
                {TERMS("{'matchExpressions':[" A "]},{'matchExpressions':[" A "]}"),
                 TERMS("{'matchExpressions':[" A "]},{'matchExpressions':[" B "," A "]}"),
                 FIELD "[1]: Invalid value: {\"MatchExpressions\":[{\"Key\":\"b\",\"Operator\":"
                       "\"In\",\"Values\":[\"v\"]},{\"Key\":\"a\",\"Operator\":\"Exists\","
                       "\"Values\":null}],\"MatchFields\":null}: " GROWS},
                {TERMS("{'matchFields':[" N "]}"), TERMS("{'matchFields':[" M "]}"),
                 FIELD "[0]: Invalid value: {\"MatchExpressions\":null,\"MatchFields\":[{\"Key\":"
                       "\"metadata.name\",\"Operator\":\"In\",\"Values\":[\"m\"]}]}: " GROWS},
                /* An empty term selects no node. */
                {TERMS("{}"), TERMS("{'matchFields':[" N "]}"),
                 FIELD "[0]: Invalid value: {\"MatchExpressions\":null,\"MatchFields\":[{\"Key\":"
                       "\"metadata.name\",\"Operator\":\"In\",\"Values\":[\"n\"]}]}: " GROWS},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__json *old = parse(cases[i].old), *object = parse(cases[i].object);
                struct hf__strbuf found = {0};
                struct hfd_causes causes;
                hfd_causes_init(&causes);
                hfd_pod_validate(object, old, &causes);
                assert_int_equal(causes.error, 0);
                for (size_t k = 0; k < causes.n; k++)
                        hf__strbuf_printf(&found, "%s: %s\n", causes.items[k].field,
                                          causes.items[k].text);
                assert_string_equal(found.data ? found.data : "", cases[i].causes);
                hf__strbuf_done(&found);
                hf__json_free(old);
                hf__json_free(object);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_labels_become_terms_of_selectors),
                cmocka_unit_test(test_the_terms_of_a_pod_have_a_limit),
                cmocka_unit_test(test_the_limit_of_the_terms_is_exact),
                cmocka_unit_test(test_affinities_get_terms),
                cmocka_unit_test(test_a_gated_pod_gets_only_fewer_nodes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
