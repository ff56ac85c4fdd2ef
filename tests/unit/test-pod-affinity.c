/* SPDX-License-Identifier: Apache-2.0 */
/* Gates let the affinity of a pod to nodes only become narrower. */
#undef NDEBUG
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
                cmocka_unit_test(test_a_gated_pod_gets_only_fewer_nodes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
