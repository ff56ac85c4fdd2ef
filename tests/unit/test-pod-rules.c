/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of a pod's spec, which pods and all kinds with a template of pods share.
 * test-pod-security.c has those of security, and test-pod-volumes.c those of volumes. */
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
#include "pod_spec_fixture.h"
#include "server/resources/resource.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/strategies/strategies.h"
#include "server/resources/workloads/workloads.h"

/* ---- names ---- */

static void test_dns_is_validated(void **state) {
        static const struct spec_case cases[] = {
                {"'dnsPolicy':'None','dnsConfig':{'nameservers':['10.0.0.1','2001:db8::1',"
                 "'FE80:0:0:0:0:0:0:0abc'],'searches':['.','a.b.','_tcp.x_y.z','a'],'options':["
                 "{'name':'ndots','value':'2'},{'name':'rotate'}]}",
                 ""},
                {"'dnsConfig':{}", ""},
                {"'dnsConfig':null", ""},
                {"'dnsPolicy':'None'", "spec.dnsConfig: Required value: must provide `dnsConfig` "
                                       "when `dnsPolicy` is None\n"},
                /* Nothing else of the settings is checked then. */
                {"'dnsPolicy':'None','dnsConfig':{'options':[{}]}",
                 "spec.dnsConfig.nameservers: Required value: must provide at least one DNS "
                 "nameserver when `dnsPolicy` is None\n"},
                {"'dnsConfig':{'nameservers':['1.1.1.1','1.1.1.2','1.1.1.3','1.1.1.4']}",
                 "spec.dnsConfig.nameservers: Invalid value: [\"1.1.1.1\",\"1.1.1.2\",\"1.1.1.3\","
                 "\"1.1.1.4\"]: must not have more than 3 nameservers\n"},
                {"'dnsConfig':{'nameservers':['a','1.1.1.01','::ffff:1.1.1.1']}",
                 "spec.dnsConfig.nameservers[0]: Invalid value: \"a\": " ADDRESS
                 "spec.dnsConfig.nameservers[1]: Invalid value: \"1.1.1.01\": must not have "
                 "leading 0s\n"
                 "spec.dnsConfig.nameservers[2]: Invalid value: \"::ffff:1.1.1.1\": must not be an "
                 "IPv4-mapped IPv6 address\n"},
                {"'dnsConfig':{'options':[{'name':'a'},{'value':'b'}]}",
                 "spec.dnsConfig.options[1]: Required value: must not be empty\n"},
        };

        EXPECT_ALL(cases);
}

#define SEARCH_RULE                                                                                \
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', " \
        "'-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "  \
        "regex used for validation is "                                                            \
        "'_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')\n"

static void test_search_domains_have_a_syntax(void **state) {
        static const char *const wrong[] = {"",   "..",  ".a", "a..b", "A",  "-a",
                                            "a-", "__a", "a_", "_",    "a b"};
        char members[400], causes[600];

        for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
                const char *shown = strcmp(wrong[i], "..") == 0 ? "." : wrong[i];
                (void)snprintf(members, sizeof members, "'dnsConfig':{'searches':['%s']}",
                               wrong[i]);
                (void)snprintf(causes, sizeof causes,
                               "spec.dnsConfig.searches[0]: Invalid value: \"%s\": " SEARCH_RULE,
                               shown);
                pod_spec_expect(members, causes);
        }
}

/* Makes n elements of a list: each one is the text. The caller frees them. */
static char *repeat(const char *text, size_t n) {
        struct hf__strbuf s = {0};

        for (size_t i = 0; i < n; i++)
                hf__strbuf_printf(&s, "%s%s", i == 0 ? "" : ",", text);
        assert_int_equal(s.error, 0);
        return s.data;
}

/* Asserts that the list has one cause, whose text ends with `end`, or none if end is NULL. */
static void expect_end(const char *element, size_t n, const char *end) {
        struct hf__strbuf members = {0};
        char *list = repeat(element, n);

        hf__strbuf_printf(&members, "'dnsConfig':{'searches':[%s]}", list);
        assert_int_equal(members.error, 0);
        const struct hfd_causes causes = pod_spec_causes(members.data);
        assert_int_equal(causes.n, end ? 1 : 0);
        if (end) {
                size_t n_text = strlen(causes.items[0].text), n_end = strlen(end);
                assert_true(n_text > n_end);
                assert_string_equal(causes.items[0].text + n_text - n_end, end);
        }
        hf__strbuf_done(&members);
        free(list);
}

static void test_lists_of_search_domains_have_limits(void **state) {
        char element[70], longest[300];

        expect_end("'a'", 32, NULL);
        expect_end("'a'", 33, "must not have more than 32 search paths");
        /* 32 domains of 63 bytes, and 31 spaces, have 2047 bytes; one of 65 bytes is too much. */
        (void)snprintf(element, sizeof element, "'%063d'", 0);
        expect_end(element, 32, NULL);
        (void)snprintf(element, sizeof element, "'%064d'", 0);
        expect_end(element, 32,
                   "must not have more than 2048 characters (including spaces) in the search list");
        /* The dot at the end does not count. */
        (void)snprintf(longest, sizeof longest, "'%0253d.'", 0);
        expect_end(longest, 1, NULL);
        (void)snprintf(longest, sizeof longest, "'%0254d'", 0);
        expect_end(longest, 1, "must be no more than 253 characters");
}

static void test_names_of_the_pod_are_validated(void **state) {
        static const struct spec_case cases[] = {
                {"'hostAliases':[{'ip':'10.0.0.1','hostnames':['a.b','c']},{'ip':'::1'}]", ""},
                {"'hostAliases':[{'ip':'10.0.0.1','hostnames':['a','B']},{'hostnames':['c']}]",
                 "spec.hostAliases[0].hostnames[1]: Invalid value: \"B\": " SUBDOMAIN
                 "spec.hostAliases[1].ip: Invalid value: \"\": " ADDRESS},
                {"'hostnameOverride':'a.b'", ""},
                {"'hostnameOverride':'a','setHostnameAsFQDN':false,'hostNetwork':false", ""},
                {"'hostnameOverride':'A','setHostnameAsFQDN':true,'hostNetwork':true",
                 "spec.hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is "
                 "true\n"
                 "spec.hostnameOverride: Forbidden: may not be specified when hostNetwork is true\n"
                 "spec.hostnameOverride: Invalid value: \"A\": " SUBDOMAIN},
                {"'hostnameOverride':"
                 "'a012345678901234567890123456789012345678901234567890123456789012'",
                 ""},
                {"'hostnameOverride':"
                 "'a0123456789012345678901234567890123456789012345678901234567890123'",
                 "spec.hostnameOverride: Too long: may not be more than 64 bytes\n"},
        };

        EXPECT_ALL(cases);
}

/* ---- gates ---- */

static void test_gates_are_validated(void **state) {
        static const struct spec_case cases[] = {
                {"'schedulingGates':[{'name':'a'},{'name':'example.com/a'}],'readinessGates':["
                 "{'conditionType':'example.com/A'},{'conditionType':'example.com/A'}]",
                 ""},
                {"'schedulingGates':[{'name':'a'},{'name':'b c'},{'name':'a'}],'readinessGates':["
                 "{'conditionType':'a b'}]",
                 "spec.readinessGates[0].conditionType: Invalid value: \"a b\": " QUALIFIED
                 "spec.schedulingGates[1]: Invalid value: \"b c\": " QUALIFIED
                 "spec.schedulingGates[2]: Duplicate value: \"a\"\n"},
                {"'schedulingGates':[{},{'name':''}]",
                 "spec.schedulingGates[0]: Invalid value: \"\": name part must be non-empty\n"
                 "spec.schedulingGates[0]: Invalid value: \"\": " QUALIFIED
                 "spec.schedulingGates[1]: Invalid value: \"\": name part must be non-empty\n"
                 "spec.schedulingGates[1]: Invalid value: \"\": " QUALIFIED
                 "spec.schedulingGates[1]: Duplicate value: \"\"\n"},
        };

        EXPECT_ALL(cases);
}

/* ---- scheduling ---- */

#define SPREAD(more)                                                                               \
        "'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'zone','whenUnsatisfiable':"      \
        "'DoNotSchedule'" more "}]"
#define ONE "spec.topologySpreadConstraints[0]"

static void test_spread_constraints_are_validated(void **state) {
        static const struct spec_case cases[] = {
                {SPREAD(",'minDomains':1,'nodeAffinityPolicy':'Honor','nodeTaintsPolicy':'Ignore',"
                        "'labelSelector':{'matchLabels':{'a':'b'}}},{'maxSkew':2,'topologyKey':"
                        "'zone','whenUnsatisfiable':'ScheduleAnyway'"),
                 ""},
                {"'topologySpreadConstraints':[{}]",
                 ONE ".maxSkew: Invalid value: 0: must be greater than zero\n" ONE
                     ".topologyKey: Required value: can not be empty\n" ONE
                     ".whenUnsatisfiable: Unsupported value: \"\": supported values: "
                     "\"DoNotSchedule\", \"ScheduleAnyway\"\n"},
                {"'topologySpreadConstraints':[{'maxSkew':-1,'topologyKey':'a b',"
                 "'whenUnsatisfiable':'x','minDomains':0,'nodeAffinityPolicy':'','nodeTaintsPolicy'"
                 ":'y','labelSelector':{'matchExpressions':[{'key':'k','operator':'z'}]}}]",
                 ONE ".maxSkew: Invalid value: -1: must be greater than zero\n" ONE
                     ".whenUnsatisfiable: Unsupported value: \"x\": supported values: "
                     "\"DoNotSchedule\", \"ScheduleAnyway\"\n" ONE
                     ".minDomains: Invalid value: 0: must be greater than zero\n" ONE
                     ".minDomains: Invalid value: 0: can only use minDomains if "
                     "whenUnsatisfiable=DoNotSchedule, not x\n" ONE
                     ".nodeAffinityPolicy: Unsupported value: \"\": supported values: \"Honor\", "
                     "\"Ignore\"\n" ONE
                     ".nodeTaintsPolicy: Unsupported value: \"y\": supported values: \"Honor\", "
                     "\"Ignore\"\n" ONE
                     ".labelSelector.matchExpressions[0].operator: Invalid value: \"z\": not a "
                     "valid selector operator\n"},
                /* Each one is refused that has another one of its kind behind it. */
                {SPREAD("},{'maxSkew':1,'topologyKey':'host','whenUnsatisfiable':'DoNotSchedule'},"
                        "{'maxSkew':2,'topologyKey':'zone','whenUnsatisfiable':'DoNotSchedule'},"
                        "{'maxSkew':3,'topologyKey':'zone','whenUnsatisfiable':'DoNotSchedule'"),
                 ONE
                 ".{topologyKey, whenUnsatisfiable}: Duplicate value: \"{zone, "
                 "DoNotSchedule}\"\n"
                 "spec.topologySpreadConstraints[2].{topologyKey, whenUnsatisfiable}: Duplicate "
                 "value: \"{zone, DoNotSchedule}\"\n"},
        };

        EXPECT_ALL(cases);
}

static void test_keys_of_labels_are_validated(void **state) {
        static const struct spec_case cases[] = {
                {SPREAD(",'matchLabelKeys':['a','b/c'],'labelSelector':{}"), ""},
                {SPREAD(",'matchLabelKeys':[]"), ""},
                /* As in kube-apiserver, a label beside the key is no mistake, unless a term of the
                 * selector has it, too. */
                {SPREAD(",'matchLabelKeys':['a'],'labelSelector':{'matchLabels':{'a':'v'}}"), ""},
                {SPREAD(",'matchLabelKeys':['a'],'labelSelector':{'matchExpressions':[{'key':'a',"
                        "'operator':'Exists'}]}"),
                 ""},
                {SPREAD(",'matchLabelKeys':['a']"),
                 ONE ".matchLabelKeys: Forbidden: must not be specified when labelSelector is not "
                     "set\n"},
                {SPREAD(",'matchLabelKeys':['a','b c'],'labelSelector':{}"),
                 ONE ".matchLabelKeys[1]: Invalid value: \"b c\": " QUALIFIED},
                {SPREAD(",'matchLabelKeys':['b','a'],'labelSelector':{'matchLabels':{'a':'v'},"
                        "'matchExpressions':[{'key':'a','operator':'Exists'},{'key':'c','operator':"
                        "'Exists'},{'key':'c','operator':'Exists'}]}"),
                 ONE "[1]: Invalid value: \"a\": exists in both matchLabelKeys and "
                     "labelSelector\n"},
                {SPREAD(",'matchLabelKeys':['a','a'],'labelSelector':{'matchExpressions':[{'key':"
                        "'a','operator':'Exists'},{'key':'a','operator':'Exists'}]}"),
                 ONE "[1]: Invalid value: \"a\": exists in both matchLabelKeys and "
                     "labelSelector\n"},
        };

        EXPECT_ALL(cases);
}

#define NODES(terms)                                                                               \
        "'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"           \
        "'nodeSelectorTerms':[" terms "]}}}"
#define TERMS                                                                                      \
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."               \
        "nodeSelectorTerms"
#define WEIGHTS "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution"

static void test_affinities_to_nodes_are_validated(void **state) {
        static const struct spec_case cases[] = {
                {"'affinity':{}", ""},
                {"'affinity':{'nodeAffinity':{}}", ""},
                {NODES("{},{'matchExpressions':[{'key':'a','operator':'In','values':['b','']},"
                       "{'key':'a','operator':'NotIn','values':['b']},{'key':'x/y','operator':"
                       "'Exists'},{'key':'a','operator':'DoesNotExist'},{'key':'a','operator':'Gt',"
                       "'values':['x']},{'key':'a','operator':'Lt','values':['1']}],'matchFields':["
                       "{'key':'metadata.name','operator':'In','values':['n.o']},{'key':"
                       "'metadata.name','operator':'NotIn','values':['p']}]}"),
                 ""},
                {NODES(""), TERMS ": Required value: must have at least one node selector term\n"},
                {NODES("{'matchExpressions':[{'key':'a','operator':'In'},{'key':'a','operator':"
                       "'NotIn','values':[]},{'key':'a','operator':'Exists','values':['b']},{'key':"
                       "'a','operator':'DoesNotExist','values':['b']}]}"),
                 TERMS "[0].matchExpressions[0].values: Required value: must be specified when "
                       "`operator` is 'In' or 'NotIn'\n" TERMS
                       "[0].matchExpressions[1].values: Required value: must be specified when "
                       "`operator` is 'In' or 'NotIn'\n" TERMS
                       "[0].matchExpressions[2].values: Forbidden: may not be specified when "
                       "`operator` is 'Exists' or 'DoesNotExist'\n" TERMS
                       "[0].matchExpressions[3].values: Forbidden: may not be specified when "
                       "`operator` is 'Exists' or 'DoesNotExist'\n"},
                {NODES("{},{'matchExpressions':[{'key':'a','operator':'Gt','values':['1','2']},"
                       "{'key':'a','operator':'Lt'},{'key':'a b','operator':'x','values':['c d']}]"
                       "}"),
                 TERMS "[1].matchExpressions[0].values: Required value: must be specified single "
                       "value when `operator` is 'Lt' or 'Gt'\n" TERMS
                       "[1].matchExpressions[1].values: Required value: must be specified single "
                       "value when `operator` is 'Lt' or 'Gt'\n" TERMS
                       "[1].matchExpressions[2].operator: Invalid value: \"x\": not a valid "
                       "selector operator\n" TERMS
                       "[1].matchExpressions[2].key: Invalid value: \"a b\": " QUALIFIED TERMS
                       "[1].matchExpressions[2].values[0]: Invalid value: \"c d\": " LABEL_VALUE},
                {NODES("{'matchExpressions':[{'key':'a','operator':'In','values':["
                       "'a12345678901234567890123456789012345678901234567890123456789012']}]},"
                       "{'matchExpressions':[{'key':'a','operator':'In','values':["
                       "'a123456789012345678901234567890123456789012345678901234567890123']}]}"),
                 TERMS "[1].matchExpressions[0].values[0]: Invalid value: "
                       "\"a123456789012345678901234567890123456789012345678901234567890123\": must "
                       "be no more than 63 bytes\n"},
                {NODES("{'matchFields':[{'key':'metadata.name','operator':'In','values':['a','B']},"
                       "{'key':'metadata.name','operator':'Exists'},{'key':'spec.x','operator':"
                       "'NotIn'}]}"),
                 TERMS "[0].matchFields[0].values: Required value: must be only one value when "
                       "`operator` is 'In' or 'NotIn' for node field selector\n" TERMS
                       "[0].matchFields[0].values[1]: Invalid value: \"B\": " SUBDOMAIN TERMS
                       "[0].matchFields[1].operator: Invalid value: \"Exists\": not a valid "
                       "selector operator\n" TERMS
                       "[0].matchFields[2].values: Required value: must be only one value when "
                       "`operator` is 'In' or 'NotIn' for node field selector\n" TERMS
                       "[0].matchFields[2].key: Invalid value: \"spec.x\": not a valid field "
                       "selector key\n"},
                /* A preference may have values that no label can have. */
                {"'affinity':{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':["
                 "{'weight':1,'preference':{'matchExpressions':[{'key':'a','operator':'In','values'"
                 ":['b c']}]}},{'weight':100,'preference':{}},{'preference':{'matchFields':[{'key':"
                 "'a','operator':'In','values':['b']}]}},{'weight':101,'preference':{}}]}}",
                 WEIGHTS "[2].weight: Invalid value: 0: must be in the range 1-100\n" WEIGHTS
                         "[2].preference.matchFields[0].key: Invalid value: \"a\": not a valid "
                         "field selector key\n" WEIGHTS
                         "[3].weight: Invalid value: 101: must be in the range 1-100\n"},
        };

        EXPECT_ALL(cases);
}

#define PODS(terms)                                                                                \
        "'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[" terms "]}" \
        "}"
#define NEAR "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
#define FAR  "spec.affinity.podAntiAffinity."

static void test_affinities_to_pods_are_validated(void **state) {
        static const struct spec_case cases[] = {
                {PODS("{'topologyKey':'zone','namespaces':['a'],'namespaceSelector':{},"
                      "'labelSelector':{'matchLabels':{'a':'b'}},'matchLabelKeys':['c'],"
                      "'mismatchLabelKeys':['a','d']}"),
                 ""},
                {PODS("{'namespaces':['a','b.c',''],'labelSelector':{'matchLabels':{'a b':'c'}},"
                      "'namespaceSelector':{'matchExpressions':[{'key':'k','operator':'In'}]}}"),
                 NEAR ".labelSelector.matchLabels: Invalid value: \"a b\": " QUALIFIED NEAR
                      ".namespaceSelector.matchExpressions[0].values: Required value: must be "
                      "specified when `operator` is 'In' or 'NotIn'\n" NEAR
                      ".namespace: Invalid value: \"b.c\": must not contain dots\n" NEAR
                      ".namespace: Invalid value: \"\": " LABEL NEAR
                      ".topologyKey: Required value: can not be empty\n" NEAR
                      ".topologyKey: Invalid value: \"\": name part must be non-empty\n" NEAR
                      ".topologyKey: Invalid value: \"\": " QUALIFIED},
                {PODS("{'topologyKey':'a b','mismatchLabelKeys':['c']}"),
                 NEAR ".mismatchLabelKeys: Forbidden: must not be specified when labelSelector is "
                      "not set\n" NEAR ".topologyKey: Invalid value: \"a b\": " QUALIFIED},
                {PODS("{'topologyKey':'a','labelSelector':{},'matchLabelKeys':['a','b'],"
                      "'mismatchLabelKeys':['b','c d']}"),
                 NEAR ".mismatchLabelKeys[1]: Invalid value: \"c d\": " QUALIFIED NEAR
                      ".matchLabelKeys[1]: Invalid value: \"b\": exists in both matchLabelKeys "
                      "and mismatchLabelKeys\n"},
                {"'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':"
                 "[{'topologyKey':'-'}],'preferredDuringSchedulingIgnoredDuringExecution':[{"
                 "'weight':100,'podAffinityTerm':{'topologyKey':'a'}},{'weight':-1,"
                 "'podAffinityTerm':{'topologyKey':'+'}}]}}",
                 FAR "requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Invalid "
                     "value: \"-\": " QUALIFIED FAR
                     "preferredDuringSchedulingIgnoredDuringExecution[1].weight: Invalid value: "
                     "-1: must be in the range 1-100\n" FAR
                     "preferredDuringSchedulingIgnoredDuringExecution[1].podAffinityTerm."
                     "topologyKey: Invalid value: \"+\": " QUALIFIED},
        };

        EXPECT_ALL(cases);
}

/* ---- resources and devices ---- */

#define CLAIMS(uses)                                                                               \
        "'resourceClaims':[{'name':'b','resourceClaimName':'x.y'},{'name':'a',"                    \
        "'resourceClaimTemplateName':'t'}],'containers':[" CONTAINER("c", ",'resources':{'claims'" \
                                                                          ":[" uses "]}") "]"
#define USES "spec.containers[0].resources.claims"

static void test_claims_for_devices_are_validated(void **state) {
        static const struct spec_case cases[] = {
                {CLAIMS("{'name':'a'},{'name':'b','request':'r'},{'name':'b','request':'s'}"), ""},
                {"'resourceClaims':[{},{'name':'a','resourceClaimName':'x',"
                 "'resourceClaimTemplateName':'y'},{'name':'a','resourceClaimName':'Z'},{'name':"
                 "'B','resourceClaimTemplateName':''}]",
                 "spec.resourceClaims[0].name: Required value\n"
                 "spec.resourceClaims[0]: Invalid value: {\"Name\":\"\","
                 "\"ResourceClaimName\":null,\"ResourceClaimTemplateName\":null}: must specify one "
                 "of: `resourceClaimName`, `resourceClaimTemplateName`\n"
                 "spec.resourceClaims[1]: Invalid value: {\"Name\":\"a\","
                 "\"ResourceClaimName\":\"x\",\"ResourceClaimTemplateName\":\"y\"}: at most one of "
                 "`resourceClaimName` or `resourceClaimTemplateName` may be specified\n"
                 "spec.resourceClaims[2].name: Duplicate value: \"a\"\n"
                 "spec.resourceClaims[2].resourceClaimName: Invalid value: \"Z\": " SUBDOMAIN
                 "spec.resourceClaims[3].name: Invalid value: \"B\": " LABEL
                 "spec.resourceClaims[3].resourceClaimTemplateName: Invalid value: "
                 "\"\": " SUBDOMAIN},
                {CLAIMS("{},{'name':'a'},{'name':'a','request':'r'},{'name':'a'}"),
                 USES "[0]: Required value\n" USES "[2]: Duplicate value: \"a\"\n" USES
                      "[3]: Duplicate value: \"a\"\n"},
                {CLAIMS("{'name':'a','request':'r'},{'name':'a','request':'r'},{'name':'a'},"
                        "{'name':'b','request':'R'}"),
                 USES "[1]: Duplicate value: \"a/r\"\n" USES "[2]: Duplicate value: \"a\"\n" USES
                      "[3].request: Invalid value: \"R\": " LABEL},
                {CLAIMS("{'name':'c'}"), USES "[0]: Not found: \"c\": must be one of the names in "
                                              "pod.spec.resourceClaims: a, b\n"},
                {"'containers':[" CONTAINER("c", ",'resources':{'claims':[{'name':'c'}]}") "]",
                 USES "[0]: Not found: \"c\": must be one of the names in pod.spec.resourceClaims "
                      "which is empty\n"},
                /* Init containers use claims, too. */
                {"'initContainers':[" CONTAINER("i", ",'resources':{'claims':[{'name':'c'}]}") "]",
                 "spec.initContainers[0].resources.claims[0]: Not found: \"c\": must be one of the "
                 "names in pod.spec.resourceClaims which is empty\n"},
        };

        EXPECT_ALL(cases);
}

static void test_resources_are_validated(void **state) {
        static const struct spec_case cases[] = {
                {"'overhead':{'cpu':'1','hugepages-2Mi':'2Mi'}", ""},
                {"'overhead':{}", ""},
                {"'overhead':{'hugepages-2Mi':'2Mi'}",
                 "spec.overhead: Forbidden: HugePages require cpu or memory\n"},
                {"'overhead':{'memory':'-1','example.com/a':'1','a':'1'}",
                 "spec.overhead.limits[memory]: Invalid value: \"-1\": must be greater than or "
                 "equal to 0\n"
                 "spec.overhead.limits[a]: Invalid value: \"a\": must be a standard resource type "
                 "or fully qualified\n"
                 "spec.overhead.limits[a]: Invalid value: \"a\": must be a standard resource for "
                 "containers\n"},
                {"'containers':[" CONTAINER("c", ",'resources':{'limits':{'hugepages-2Mi':'2Mi'},"
                                                 "'requests':{'memory':'1'}}") "]",
                 ""},
                {"'containers':[" CONTAINER("c",
                                            ",'resources':{'limits':{'hugepages-2Mi':'2Mi'}}") "]",
                 "spec.containers[0].resources: Forbidden: HugePages require cpu or memory\n"},
                {"'overhead':{'cpu':'1','hugepages-2Mi':'3Mi'}",
                 "spec.overhead.limits[hugepages-2Mi]: Invalid value: \"3Mi\": 3Mi is not positive "
                 "integer multiple of hugepages-2Mi\n"},
                {"'containers':[" CONTAINER("c",
                                            ",'resources':{'limits':{'cpu':'1','hugepages-2Mi':"
                                            "'4Mi'},'requests':{'hugepages-2Mi':'1Mi'}}") "]",
                 "spec.containers[0].resources.requests: Invalid value: \"1Mi\": must be equal to "
                 "hugepages-2Mi limit of 4Mi\n"
                 "spec.containers[0].resources.requests[hugepages-2Mi]: Invalid value: \"1Mi\": "
                 "1Mi "
                 "is not positive integer multiple of hugepages-2Mi\n"},
                /* The size of the page must be a positive whole number. */
                {"'overhead':{'cpu':'1','hugepages-1500m':'3','hugepages-0':'0','hugepages-x':'0',"
                 "'hugepages-1k':'0'}",
                 "spec.overhead.limits[hugepages-1500m]: Invalid value: \"3\": 3 is not positive "
                 "integer multiple of hugepages-1500m\n"
                 "spec.overhead.limits[hugepages-0]: Invalid value: \"0\": 0 is not positive "
                 "integer multiple of hugepages-0\n"
                 "spec.overhead.limits[hugepages-x]: Invalid value: \"0\": 0 is not positive "
                 "integer multiple of hugepages-x\n"},
                /* A name has a cause for each of its parts. */
                {"'overhead':{'/':'1','a/b/c':'1'}",
                 "spec.overhead.limits[/]: Invalid value: \"/\": prefix part must be non-empty\n"
                 "spec.overhead.limits[/]: Invalid value: \"/\": name part must be non-empty\n"
                 "spec.overhead.limits[/]: Invalid value: \"/\": " QUALIFIED
                 "spec.overhead.limits[/]: Invalid value: \"/\": doesn't follow extended resource "
                 "name standard\n"
                 "spec.overhead.limits[a/b/c]: Invalid value: \"a/b/c\": a valid label key must "
                 "consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
                 "an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex "
                 "used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an "
                 "optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')\n"
                 "spec.overhead.limits[a/b/c]: Invalid value: \"a/b/c\": doesn't follow extended "
                 "resource name standard\n"},
                {"'containers':[" CONTAINER("c", ",'resizePolicy':[{'restartPolicy':'NotRequired'},"
                                                 "{'restartPolicy':'NotRequired'}]") "]",
                 "spec.containers[0].resizePolicy: Required value\n"
                 "spec.containers[0].resizePolicy[1]: Duplicate value: \"\"\n"
                 "spec.containers[0].resizePolicy: Required value\n"},
        };

        EXPECT_ALL(cases);
}

#define RESTART                                                                                    \
        ",'resizePolicy':[{'resourceName':'cpu','restartPolicy':'NotRequired'},{"                  \
        "'resourceName':'memory','restartPolicy':'RestartContainer'}]"

static void test_a_resize_restarts_no_init_container(void **state) {
        static const struct spec_case cases[] = {
                {"'containers':[" CONTAINER("c", RESTART) "],'initContainers':[" CONTAINER(
                         "i", RESTART ",'restartPolicy':'Always'") "]",
                 ""},
                {"'initContainers':[" CONTAINER("i", RESTART) "]",
                 "spec.initContainers[0].resizePolicy[1].restartPolicy: Invalid value: "
                 "\"RestartContainer\": must not be set to 'RestartContainer' for non-sidecar "
                 "initContainers\n"},
        };

        EXPECT_ALL(cases);
}

#define NAMELESS                                                                                   \
        "{'image':'i','imagePullPolicy':'Always','terminationMessagePolicy':'File'},"              \
        "{'image':'i','imagePullPolicy':'Always','terminationMessagePolicy':'File'}"
#define NO_NAME(list, i)   "spec." list "[" #i "].name: Required value\n"
#define SAME_NAME(list, i) NO_NAME(list, i) "spec." list "[" #i "].name: Duplicate value: \"\"\n"

/* Among init containers alone, the names that are missing are no duplicates. */
static void test_containers_without_names_have_the_same_one(void **state) {
        static const struct spec_case cases[] = {
                {"'containers':[" NAMELESS "]",
                 NO_NAME("containers", 0) SAME_NAME("containers", 1)},
                {"'initContainers':[" NAMELESS "]",
                 NO_NAME("initContainers", 0) NO_NAME("initContainers", 1)},
                {"'initContainers':[" CONTAINER("", "") "],'ephemeralContainers':[" NAMELESS "]",
                 NO_NAME("initContainers", 0) SAME_NAME("ephemeralContainers", 0)
                         SAME_NAME("ephemeralContainers", 1)},
                {"'ephemeralContainers':[" NAMELESS "]",
                 NO_NAME("ephemeralContainers", 0) SAME_NAME("ephemeralContainers", 1)},
                {"'containers':[" NAMELESS "],'initContainers':[" NAMELESS "]",
                 NO_NAME("containers", 0) SAME_NAME("containers", 1) SAME_NAME("initContainers", 0)
                         SAME_NAME("initContainers", 1)},
        };

        EXPECT_ALL(cases);
}

#define PORT                                                                                       \
        ",'ports':[{'containerPort':1,'protocol':'TCP'},{'containerPort':2,'hostPort':3,"          \
        "'protocol':'TCP'},{'containerPort':4,'hostPort':4,'protocol':'TCP'}]"

static void test_ports_of_the_network_of_the_host_agree(void **state) {
        static const struct spec_case cases[] = {
                {"'containers':[" CONTAINER("c", PORT) "]", ""},
                {"'hostNetwork':true,'initContainers':[" CONTAINER("i", PORT) "]", ""},
                {"'hostNetwork':true,'containers':[" CONTAINER("c", PORT) "]",
                 "spec.containers[0].ports[1].hostPort: Invalid value: 3: must match "
                 "`containerPort` when `hostNetwork` is true\n"},
        };

        EXPECT_ALL(cases);
}

/* ---- images ---- */

/* U+00A0 and U+3000; U+200B is no white space. */
static void test_white_space_of_unicode_pads_a_text(void **state) {
        assert_true(hfd_is_padded(" i"));
        assert_true(hfd_is_padded("i\n"));
        assert_true(hfd_is_padded("i\xc2\xa0"));
        assert_true(hfd_is_padded("\xe3\x80\x80i"));
        assert_false(hfd_is_padded(""));
        assert_false(hfd_is_padded("i j"));
        assert_false(hfd_is_padded("i\xe2\x80\x8b"));
}

/* ---- tolerations ---- */

#define LABEL_VALUE                                                                                \
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' "   \
        "or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "      \
        "'my_value',  or '12345', regex used for validation is "                                   \
        "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')\n"

static void test_tolerations_are_validated(void **state) {
        static const struct spec_case cases[] = {
                {"'tolerations':[{'operator':'Exists'},{'key':'a.example/b','value':'c','effect':"
                 "'NoExecute','tolerationSeconds':1}]",
                 ""},
                {"'tolerations':[{'key':'a','operator':'Exists','value':'b'}]",
                 "spec.tolerations[0].operator: Invalid value: \"b\": value must be empty when "
                 "`operator` is 'Exists'\n"},
                {"'tolerations':[{'key':'a','operator':'Gt','value':'1'},{'key':'a','operator':"
                 "'x'}]",
                 "spec.tolerations[0].operator: Unsupported value: \"Gt\": supported values: "
                 "\"Equal\", \"Exists\", \"Lt\", \"Gt\"\n"
                 "spec.tolerations[1].operator: Unsupported value: \"x\": supported values: "
                 "\"Equal\", \"Exists\"\n"},
                {"'tolerations':[{'key':'a/','value':'-'}]",
                 "spec.tolerations[0].key: Invalid value: \"a/\": name part must be non-empty\n"
                 "spec.tolerations[0].key: Invalid value: \"a/\": name part must consist of "
                 "alphanumeric characters, '-', '_' or '.', and must start and end with an "
                 "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used "
                 "for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')\n"
                 "spec.tolerations[0].operator: Invalid value: \"-\": " LABEL_VALUE},
                {"'tolerations':[{'key':'a','value':"
                 "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-'}]",
                 "spec.tolerations[0].operator: Invalid value: "
                 "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-\": must be no "
                 "more than 63 bytes;" LABEL_VALUE},
        };

        pod_spec_expect_all(cases, sizeof cases / sizeof cases[0]);
}

/* ---- specs that are older than a rule ---- */

#define REST                                                                                       \
        "'restartPolicy':'Always','dnsPolicy':'Default',"                                          \
        "'terminationGracePeriodSeconds':30"

#define IMAGE(image, more)                                                                         \
        "'containers':[{'name':'c','image':'" image "','imagePullPolicy':'Always',"                \
        "'terminationMessagePolicy':'File'" more "}],"
#define SAME         IMAGE("i", "")
#define LIMIT(cpu)   IMAGE("i", ",'resources':{'limits':{'cpu':'" cpu "'}}")
#define ALIAS        "'hostAliases':[{'ip':'a'}],"
#define GATE         "'schedulingGates':[{'name':'g'}],"
#define GATES(it)    "'schedulingGates':[" it "],"
#define TOLERATE(it) "'tolerations':[" it "],"
#define WRONG        "{'key':'a b','operator':'Exists'}"
#define DEBUG(it)    "'ephemeralContainers':[" it "],"

static const struct {
        enum hfd_subresource part;
        const char *old, *object, *field; /* field: of the only cause; NULL = there is none */
} old_specs[] = {
        {HFD_SUB_NONE, ALIAS SAME, ALIAS IMAGE("j", ""), NULL},
        {HFD_SUB_NONE, ALIAS SAME GATE, ALIAS SAME, NULL},
        {HFD_SUB_NONE, SAME TOLERATE(WRONG),
         SAME TOLERATE(WRONG ",{'key':'k','operator':'Exists'}"), NULL},
        {HFD_SUB_EPHEMERAL_CONTAINERS, ALIAS SAME, ALIAS SAME DEBUG(CONTAINER("d", "")), NULL},
        {HFD_SUB_RESIZE, ALIAS LIMIT("1"), ALIAS LIMIT("2"), NULL},
        /* The mistake may move. */
        {HFD_SUB_NONE, SAME GATES("{'name':'a'},{'name':'B C'}"), SAME GATES("{'name':'B C'}"),
         NULL},
        {HFD_SUB_NONE, SAME TOLERATE(WRONG),
         SAME TOLERATE("{'key':'k','operator':'Exists'}," WRONG), NULL},
        /* What the write itself brings is checked. */
        {HFD_SUB_NONE, ALIAS SAME, ALIAS IMAGE(" j", ""), "spec.containers[0].image"},
        {HFD_SUB_NONE, SAME TOLERATE(WRONG), SAME TOLERATE(WRONG "," WRONG),
         "spec.tolerations[1].key"},
        {HFD_SUB_EPHEMERAL_CONTAINERS, ALIAS SAME, ALIAS SAME DEBUG(CONTAINER("D", "")),
         "spec.ephemeralContainers[0].name"},
        {HFD_SUB_EPHEMERAL_CONTAINERS, SAME DEBUG(CONTAINER("D", "")),
         SAME DEBUG(CONTAINER("D", "") "," CONTAINER("E", "")), "spec.ephemeralContainers[1].name"},
        {HFD_SUB_RESIZE, ALIAS LIMIT("2"),
         ALIAS IMAGE("i", ",'resources':{'limits':{'cpu':'2'},'requests':{'cpu':'3'}}"),
         "spec.containers[0].resources.requests"},
};

static void test_a_mistake_that_was_stored_refuses_no_other_change(void **state) {
        for (size_t i = 0; i < sizeof old_specs / sizeof old_specs[0]; i++) {
                struct hf__json *old = pod_spec_parse("{'spec':{", old_specs[i].old, REST "}}"),
                                *object =
                                        pod_spec_parse("{'spec':{", old_specs[i].object, REST "}}");
                struct hfd_causes causes;
                hfd_causes_init(&causes);
                if (old_specs[i].part == HFD_SUB_NONE)
                        hfd_pod_validate(object, old, &causes);
                else
                        hfd_pod_part_rules.validate(old_specs[i].part, object, old, &causes);
                assert_int_equal(causes.error, 0);
                if (causes.n != (old_specs[i].field != NULL) ||
                    (causes.n > 0 && strcmp(causes.items[0].field, old_specs[i].field) != 0))
                        fail_msg("%zu: %zu causes, %s: %s", i, causes.n,
                                 causes.n > 0 ? causes.items[0].field : "",
                                 causes.n > 0 ? causes.items[0].text : "");
                hf__json_free(old);
                hf__json_free(object);
        }
}

/* Another program may have stored such specs, which excuse nothing. */
static void test_a_stored_spec_may_have_any_form(void **state) {
        static const enum hfd_subresource parts[] = {HFD_SUB_NONE, HFD_SUB_EPHEMERAL_CONTAINERS,
                                                     HFD_SUB_RESIZE};
        static const char *const olds[] =
                {"{'spec':{'nodeSelector':{'a':1}," SAME REST "}}",
                 "{'spec':{'volumes':[{'name':'v','ephemeral':{'volumeClaimTemplate':{'spec':{"
                 "'resources':{'requests':{'storage':0}}}}}}]," SAME REST "}}",
                 "{'spec':[1]}", "{'spec':'a'}"};

        for (size_t i = 0; i < sizeof olds / sizeof olds[0]; i++)
                for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++) {
                        struct hf__json *old = pod_spec_parse("", olds[i], ""),
                                        *object = pod_spec_parse("{'spec':{", IMAGE(" j", ""),
                                                                 REST "}}");
                        struct hfd_causes causes;
                        hfd_causes_init(&causes);
                        if (parts[k] == HFD_SUB_NONE)
                                hfd_pod_validate(object, old, &causes);
                        else
                                hfd_pod_part_rules.validate(parts[k], object, old, &causes);
                        assert_int_equal(causes.error, 0);
                        assert_true(causes.n > 0);
                        assert_string_equal(causes.items[0].field, "spec.containers[0].image");
                        hf__json_free(old);
                        hf__json_free(object);
                }
}

/* The spec of a write to a subresource is the stored one, apart from its part. */
static void test_a_part_needs_a_spec_with_the_form_of_one(void **state) {
        static const enum hfd_subresource parts[] = {HFD_SUB_EPHEMERAL_CONTAINERS, HFD_SUB_RESIZE};
        struct hf__json *pod =
                pod_spec_parse("{'spec':{", "'nodeSelector':{'a':1}," SAME REST, "}}");
        struct hfd_causes causes;

        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
                hfd_causes_init(&causes);
                hfd_pod_part_rules.validate(parts[i], pod, pod, &causes);
                assert_int_equal(causes.error, 0);
                assert_int_equal(causes.n, 1);
                assert_string_equal(causes.items[0].field, "spec");
                assert_non_null(strstr(causes.items[0].text, "cannot unmarshal number into"));
        }
        hf__json_free(pod);
}

/* Go's decoder reads such a quantity, so the spec has the form of one; the rules need a text. */
static void test_the_rules_of_a_part_see_the_decoded_spec(void **state) {
        static const enum hfd_subresource parts[] = {HFD_SUB_EPHEMERAL_CONTAINERS, HFD_SUB_RESIZE};
        static const char *const sizes[] = {"0", "null"};

        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
                struct hf__json *pod = pod_spec_parse(
                        "{'spec':{'volumes':[{'name':'v','ephemeral':{'volumeClaimTemplate':{"
                        "'spec':{'accessModes':['ReadWriteOnce'],'resources':{'requests':{"
                        "'storage':",
                        sizes[k], "}}}}}}]," SAME REST "}}");
                for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
                        struct hfd_causes causes;
                        hfd_causes_init(&causes);
                        hfd_pod_part_rules.validate(parts[i], pod, pod, &causes);
                        assert_int_equal(causes.error, 0);
                        assert_int_equal(causes.n, 0);
                }
                hf__json_free(pod);
        }
}

/* ---- kinds ---- */

typedef void (*validate)(const struct hf__json *object, const struct hf__json *old,
                         struct hfd_causes *causes);

/* The rule is one that only this file tests. */
static void test_all_kinds_with_a_template_have_the_rules(void **state) {
        static const struct {
                validate rules;
                const char *begin, *end, *field;
        } cases[] = {
                {hfd_pod_validate, "{'spec':{", "}}", "spec.dnsConfig"},
                {hfd_pod_template_validate, "{'template':{'spec':{", "}}}",
                 "template.spec.dnsConfig"},
                {hfd_deployment_validate, "{'spec':{'template':{'spec':{", "}}}}",
                 "spec.template.spec.dnsConfig"},
                {hfd_replica_set_validate, "{'spec':{'template':{'spec':{", "}}}}",
                 "spec.template.spec.dnsConfig"},
                {hfd_daemon_set_validate, "{'spec':{'template':{'spec':{", "}}}}",
                 "spec.template.spec.dnsConfig"},
                {hfd_stateful_set_validate, "{'spec':{'template':{'spec':{", "}}}}",
                 "spec.template.spec.dnsConfig"},
                {hfd_replication_controller_validate, "{'spec':{'template':{'spec':{", "}}}}",
                 "spec.template.spec.dnsConfig"},
                {hfd_job_validate, "{'spec':{'template':{'spec':{", "}}}}",
                 "spec.template.spec.dnsConfig"},
                {hfd_cron_job_validate, "{'spec':{'jobTemplate':{'spec':{'template':{'spec':{",
                 "}}}}}}", "spec.jobTemplate.spec.template.spec.dnsConfig"},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__json *object =
                        pod_spec_parse(cases[i].begin, "'dnsPolicy':'None'," VALID, cases[i].end);
                struct hfd_causes causes;
                size_t n = 0;
                hfd_causes_init(&causes);
                cases[i].rules(object, NULL, &causes);
                for (size_t k = 0; k < causes.n; k++)
                        n += strcmp(causes.items[k].field, cases[i].field) == 0;
                assert_int_equal(n, 1);
                hf__json_free(object);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_dns_is_validated),
                cmocka_unit_test(test_search_domains_have_a_syntax),
                cmocka_unit_test(test_lists_of_search_domains_have_limits),
                cmocka_unit_test(test_names_of_the_pod_are_validated),
                cmocka_unit_test(test_gates_are_validated),
                cmocka_unit_test(test_spread_constraints_are_validated),
                cmocka_unit_test(test_keys_of_labels_are_validated),
                cmocka_unit_test(test_affinities_to_nodes_are_validated),
                cmocka_unit_test(test_affinities_to_pods_are_validated),
                cmocka_unit_test(test_claims_for_devices_are_validated),
                cmocka_unit_test(test_resources_are_validated),
                cmocka_unit_test(test_a_resize_restarts_no_init_container),
                cmocka_unit_test(test_containers_without_names_have_the_same_one),
                cmocka_unit_test(test_ports_of_the_network_of_the_host_agree),
                cmocka_unit_test(test_white_space_of_unicode_pads_a_text),
                cmocka_unit_test(test_tolerations_are_validated),
                cmocka_unit_test(test_a_mistake_that_was_stored_refuses_no_other_change),
                cmocka_unit_test(test_a_stored_spec_may_have_any_form),
                cmocka_unit_test(test_a_part_needs_a_spec_with_the_form_of_one),
                cmocka_unit_test(test_the_rules_of_a_part_see_the_decoded_spec),
                cmocka_unit_test(test_all_kinds_with_a_template_have_the_rules),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
