/* SPDX-License-Identifier: Apache-2.0 */
/* What Kubernetes refuses in Services is refused, with its words and in its order; and the fields
 * of a Service that depend on others are set, kept and dropped as in Kubernetes. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/causes.h"
#include "server/resources/workloads/workloads.h"

#include "rule_cases.h"

#define CHECK(cases) check_rule_cases(cases, sizeof cases / sizeof cases[0])
#define RULES        hfd_service_validate

#define TCP        "{'port':1,'protocol':'TCP','targetPort':1}"
#define IN(type)   "'type':'" type "','sessionAffinity':'None','ports':[" TCP "]"
#define SPEC(more) "{'spec':{" IN("ClusterIP") more "}}"
#define BALANCED   "'externalTrafficPolicy':'Cluster'," IN("LoadBalancer")

#define NO_ADDRESS   "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)\n"
#define NO_RANGE     "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)\n"
#define LOOPBACK     "may not be in the loopback range (127.0.0.0/8, ::1/128)\n"
#define LEADING_ZERO "must not have leading 0s\n"
#define OTHER_TYPE   "Forbidden: may only be used when `type` is 'LoadBalancer'\n"
#define OUTSIDE                                                                                    \
        "spec.externalTrafficPolicy: Invalid value: \"Local\": may only be set for "               \
        "externally-accessible services\n"
#define UNCHANGED "may not change once set\n"

/* ---- addresses outside the cluster ---- */

static void test_external_addresses_are_those_of_other_hosts(void **state) {
#define EXTERNAL(list)       SPEC(",'externalIPs':[" list "]")
#define NO_EXTERNAL(i, text) "spec.externalIPs[" #i "]: Invalid value: \"" text "\": "
        static const struct rule_case cases[] = {
                {RULES, EXTERNAL("'192.0.2.1','2001:DB8:0::1'"), NULL, NULL},
                {RULES, EXTERNAL("'192.0.2.1','x',''"), NULL,
                 NO_EXTERNAL(1, "x") NO_ADDRESS NO_EXTERNAL(2, "") NO_ADDRESS},
                {RULES, EXTERNAL("'127.0.0.1'"), NULL, NO_EXTERNAL(0, "127.0.0.1") LOOPBACK},
                {RULES, EXTERNAL("'0.0.0.0'"), NULL,
                 NO_EXTERNAL(0, "0.0.0.0") "may not be unspecified (0.0.0.0)\n"},
                {RULES, EXTERNAL("'fe80::1'"), NULL,
                 NO_EXTERNAL(0, "fe80::1") "may not be in the link-local range (169.254.0.0/16, "
                                           "fe80::/10)\n"},
                /* The form alone is refused. */
                {RULES, EXTERNAL("'127.0.0.01'"), NULL, NO_EXTERNAL(0, "127.0.0.01") LEADING_ZERO},
                {RULES, EXTERNAL("'192.0.2.01','192.0.2.02'"), EXTERNAL("'192.0.2.01'"),
                 NO_EXTERNAL(1, "192.0.2.02") LEADING_ZERO},
                {RULES, EXTERNAL("'127.0.0.1','192.0.2.2'"), EXTERNAL("'127.0.0.1'"), NULL},
        };

        CHECK(cases);
}

/* ---- addresses in the cluster ---- */

#define CLUSTER(ip, list, more) SPEC(",'clusterIP':'" ip "','clusterIPs':[" list "]" more)
#define NO_IP(i, text)          "spec.clusterIPs[" #i "]: Invalid value: \"" text "\": "
#define V4                      "'10.0.0.1'"
#define V6                      "'2001:db8::1'"
#define TAILED                  "64:ff9b::192.0.2.1"
#define DUAL                    ",'ipFamilyPolicy':'RequireDualStack'"
#define PREFER                  ",'ipFamilyPolicy':'PreferDualStack'"
#define SINGLE                  ",'ipFamilyPolicy':'SingleStack'"
#define FAMILIES(list)          ",'ipFamilies':[" list "]"
#define MORE                    ",'publishNotReadyAddresses':true"

static void test_cluster_addresses_have_their_form(void **state) {
        static const struct rule_case cases[] = {
                {RULES, CLUSTER("10.0.0.1", V4, ""), NULL, NULL},
                {RULES, CLUSTER("None", "'None'", ""), NULL, NULL},
                {RULES, CLUSTER("10.0.0.1", V4 "," V6, DUAL), NULL, NULL},
                {RULES, CLUSTER("x", "'x'", ""), NULL, NO_IP(0, "x") NO_ADDRESS},
                {RULES, CLUSTER("", "''", ""), NULL,
                 "spec.clusterIPs: Invalid value: [\"\"]: must be empty when `clusterIP` is not "
                 "specified\n" NO_IP(0, "") NO_ADDRESS},
                {RULES, CLUSTER("10.0.0.01", "'10.0.0.01'", ""), NULL,
                 NO_IP(0, "10.0.0.01") LEADING_ZERO},
                {RULES, CLUSTER("10.0.0.1", V4 ",'None'", ""), NULL, NO_IP(1, "None") NO_ADDRESS},
                {RULES, CLUSTER("None", "'None','x'", ""), NULL,
                 "spec.clusterIPs: Invalid value: [\"None\",\"x\"]: 'None' must be the first and "
                 "only value\n" NO_IP(1, "x") NO_ADDRESS},
                {RULES, CLUSTER("10.0.0.1", V4 "," V6 ",'10.0.0.2'", DUAL), NULL,
                 "spec.clusterIPs: Invalid value: [\"10.0.0.1\",\"2001:db8::1\",\"10.0.0.2\"]: may "
                 "only hold up to 2 values\n"},
                {RULES, CLUSTER("10.0.0.1", V4 ",'10.0.0.2'", DUAL), NULL,
                 "spec.clusterIPs: Invalid value: [\"10.0.0.1\",\"10.0.0.2\"]: may specify no more "
                 "than one IP for each IP family\n"},
                {RULES, SPEC(",'clusterIP':'10.0.0.1'"), NULL, "spec.clusterIPs: Required value\n"},
                {RULES, CLUSTER("10.0.0.2", V4, ""), NULL,
                 "spec.clusterIPs: Invalid value: [\"10.0.0.1\"]: first value must match "
                 "`clusterIP`\n"},
                /* One that the old Service had is accepted. */
                {RULES, CLUSTER("10.0.0.01", "'10.0.0.01'", ",'publishNotReadyAddresses':true"),
                 CLUSTER("10.0.0.01", "'10.0.0.01'", ""), NULL},
                {RULES, CLUSTER("x", "'x'", ",'publishNotReadyAddresses':true"),
                 CLUSTER("x", "'x'", ""), NULL},
        };

        CHECK(cases);
}

static void test_families_are_those_of_the_addresses(void **state) {
        static const struct rule_case cases[] = {
                {RULES, SPEC(FAMILIES("'IPv6','IPv4'") DUAL), NULL, NULL},
                {RULES, SPEC(FAMILIES("'IPv5','','IPv4','IPv4'") DUAL), NULL,
                 "spec.ipFamilies[0]: Unsupported value: \"IPv5\": supported values: \"IPv4\", "
                 "\"IPv6\"\n"
                 "spec.ipFamilies[1]: Unsupported value: \"\": supported values: \"IPv4\", "
                 "\"IPv6\"\n"
                 "spec.ipFamilies[3]: Duplicate value: \"IPv4\"\n"},
                {RULES, SPEC(",'ipFamilyPolicy':'X'"), NULL,
                 "spec.ipFamilyPolicy: Unsupported value: \"X\": supported values: "
                 "\"PreferDualStack\", \"RequireDualStack\", \"SingleStack\"\n"},
                {RULES, CLUSTER("10.0.0.1", V4 "," V6, DUAL FAMILIES("'IPv6','IPv4'")), NULL,
                 NO_IP(0, "10.0.0.1") "expected an IPv6 value as indicated by "
                                      "`ipFamilies[0]`\n" NO_IP(
                                              1, "2001:db8::1") "expected an IPv4 value as "
                                                                "indicated by "
                                                                "`ipFamilies[1]`\n"},
                {RULES, CLUSTER("None", "'None'", FAMILIES("'IPv6'")), NULL, NULL},
                /* Stored before there was this rule. They cannot change. */
                {RULES, SPEC(FAMILIES("'IPv5','IPv5'") DUAL MORE), SPEC(FAMILIES("'IPv5','IPv5'")),
                 NULL},
                {RULES, CLUSTER("10.0.0.1", V4, FAMILIES("'IPv6'") MORE),
                 CLUSTER("10.0.0.1", V4, FAMILIES("'IPv6'")), NULL},
                {RULES, CLUSTER("10.0.0.1", V4, FAMILIES("'IPv6'")), SPEC(FAMILIES("'IPv6'")),
                 NO_IP(0, "10.0.0.1") "expected an IPv6 value as indicated by `ipFamilies[0]`\n"},
                /* An IPv4 address at the end does not make it one. */
                {RULES, CLUSTER(TAILED, "'" TAILED "'", FAMILIES("'IPv6'")), NULL, NULL},
                {RULES, CLUSTER(TAILED, "'" TAILED "'", FAMILIES("'IPv4'")), NULL,
                 NO_IP(0, TAILED) "expected an IPv4 value as indicated by `ipFamilies[0]`\n"},
                {RULES, CLUSTER("10.0.0.1", V4 ",'" TAILED "'", DUAL), NULL, NULL},
                {RULES, CLUSTER(TAILED, "'" TAILED "'," V6, DUAL), NULL,
                 "spec.clusterIPs: Invalid value: [\"" TAILED "\",\"2001:db8::1\"]: may specify no "
                 "more than one IP for each IP family\n"},
        };

        CHECK(cases);
}

static void test_a_single_stack_has_one_of_each(void **state) {
#define MULTIPLE(what)                                                                             \
        "spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or "      \
        "'PreferDualStack' when multiple " what " are specified\n"
#define RELEASE(policy, what)                                                                      \
        "spec.ipFamilyPolicy: Invalid value: " policy ": must be 'SingleStack' to release the "    \
        "secondary " what "\n"
        static const char both[] = CLUSTER("10.0.0.1", V4 "," V6, DUAL FAMILIES("'IPv4','IPv6'"));
        static const struct rule_case cases[] = {
                {RULES, CLUSTER("10.0.0.1", V4 "," V6, SINGLE FAMILIES("'IPv4','IPv6'")), NULL,
                 MULTIPLE("cluster IPs") MULTIPLE("IP families")},
                {RULES, CLUSTER("10.0.0.1", V4, DUAL FAMILIES("'IPv4'")), both,
                 RELEASE("\"RequireDualStack\"", "cluster IP")
                         RELEASE("\"RequireDualStack\"", "IP family")},
                {RULES, CLUSTER("10.0.0.1", V4, ""), both, RELEASE("null", "cluster IP")},
                {RULES, CLUSTER("10.0.0.1", V4, SINGLE FAMILIES("'IPv4'")), both, NULL},
                /* Stored before there was this rule. */
                {RULES, CLUSTER("10.0.0.1", V4 "," V6, SINGLE ",'publishNotReadyAddresses':true"),
                 CLUSTER("10.0.0.1", V4 "," V6, SINGLE), NULL},
        };

        CHECK(cases);
}

static void test_addresses_that_are_set_stay(void **state) {
#define CHANGED(field, list) field ": Invalid value: " list ": " UNCHANGED
        static const char both[] = CLUSTER("10.0.0.1", V4 "," V6, DUAL FAMILIES("'IPv4','IPv6'"));
        static const struct rule_case cases[] = {
                {RULES, CLUSTER("10.0.0.1", V4 ",'2001:db8::2'", DUAL FAMILIES("'IPv4','IPv6'")),
                 both, CHANGED("spec.clusterIPs[1]", "[\"10.0.0.1\",\"2001:db8::2\"]")},
                {RULES, CLUSTER("10.0.0.2", "'10.0.0.2'", SINGLE FAMILIES("'IPv4'")), both,
                 CHANGED("spec.clusterIPs[0]", "[\"10.0.0.2\"]")},
                {RULES, SPEC(SINGLE FAMILIES("'IPv4'")), CLUSTER("10.0.0.1", V4, SINGLE),
                 "spec.clusterIPs[0]: Invalid value: null: primary clusterIP can not be unset\n"},
                {RULES, CLUSTER("10.0.0.2", "'10.0.0.2'," V6, DUAL), CLUSTER("10.0.0.1", V4, ""),
                 CHANGED("spec.clusterIPs[0]", "[\"10.0.0.2\",\"2001:db8::1\"]")},
                {RULES, both, CLUSTER("10.0.0.1", V4, SINGLE FAMILIES("'IPv4'")), NULL},
                {RULES, SPEC(FAMILIES("'IPv6'")), SPEC(FAMILIES("'IPv4'")),
                 CHANGED("spec.ipFamilies[0]", "[\"IPv6\"]")},
                {RULES, SPEC(DUAL FAMILIES("'IPv6','IPv4'")), SPEC(FAMILIES("'IPv4'")),
                 CHANGED("spec.ipFamilies[0]", "null")},
                /* A headless Service may change its families. */
                {RULES, CLUSTER("None", "'None'", FAMILIES("'IPv6'")),
                 CLUSTER("None", "'None'", FAMILIES("'IPv4'")), NULL},
                {RULES, CLUSTER("None", "'None'", FAMILIES("'IPv6'")), SPEC(FAMILIES("'IPv4'")),
                 NULL},
                /* What another program has stored in their place counts as no list. */
                {RULES, CLUSTER("10.0.0.1", V4, FAMILIES("'IPv4'")),
                 SPEC(",'clusterIPs':{'a':'10.0.0.2'},'ipFamilies':{'a':'IPv6'}"), NULL},
                /* Nothing is decided anew, and all rules are reported together. */
                {RULES,
                 CLUSTER("10.0.0.1", V4 ",'10.0.0.2'", PREFER ",'internalTrafficPolicy':'X'"),
                 CLUSTER("10.0.0.1", V4 ",'10.0.0.2'", PREFER),
                 "spec.clusterIPs: Invalid value: [\"10.0.0.1\",\"10.0.0.2\"]: may specify no more "
                 "than one IP for each IP family\n"
                 "spec.internalTrafficPolicy: Unsupported value: \"X\": supported values: "
                 "\"Cluster\", \"Local\"\n"},
                /* A mistake in the addresses is the only one that is reported. */
                {RULES, CLUSTER("x", "'x'", ",'internalTrafficPolicy':'X'"), NULL,
                 NO_IP(0, "x") NO_ADDRESS},
        };

        CHECK(cases);
}

/* ---- types ---- */

static void test_an_external_name_has_no_addresses(void **state) {
#define NAMED(name, more) "{'spec':{" IN("ExternalName") ",'externalName':'" name "'" more "}}"
        static const struct rule_case cases[] = {
                {RULES, NAMED("a.example.", ""), NULL, NULL},
                /* Typed clients send empty lists. */
                {RULES, NAMED("a", ",'clusterIPs':[],'ipFamilies':[]"), NULL, NULL},
                {RULES, NAMED("a", FAMILIES("'IPv4'")), NULL,
                 "spec.ipFamilies: Forbidden: may not be set for ExternalName services\n"},
                {RULES, NAMED(".", ""), NULL, "spec.externalName: Required value\n"},
                {RULES, NAMED("a", ",'externalIPs':['192.0.2.1'],'externalTrafficPolicy':'Local'"),
                 NULL, OUTSIDE},
        };

        CHECK(cases);
}

static void test_a_time_of_affinity_is_up_to_a_day(void **state) {
#define AFFINE(config)                                                                             \
        "{'spec':{'type':'ClusterIP','sessionAffinity':'ClientIP','ports':[" TCP "]" config "}}"
#define TIMEOUT(n) AFFINE(",'sessionAffinityConfig':{'clientIP':{'timeoutSeconds':" n "}}")
#define NO_TIMEOUT(n)                                                                              \
        "spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: " n                    \
        ": must be greater than 0 and less than 86400\n"
#define MISSING(path)                                                                              \
        "spec.sessionAffinityConfig" path                                                          \
        ": Required value: when session affinity type is ClientIP\n"
        static const struct rule_case cases[] = {
                {RULES, TIMEOUT("1"), NULL, NULL},
                {RULES, TIMEOUT("86400"), NULL, NULL},
                {RULES, TIMEOUT("0"), NULL, NO_TIMEOUT("0")},
                {RULES, TIMEOUT("86401"), NULL, NO_TIMEOUT("86401")},
                {RULES, AFFINE(""), NULL, MISSING("")},
                {RULES, AFFINE(",'sessionAffinityConfig':{}"), NULL, MISSING(".clientIP")},
                {RULES, AFFINE(",'sessionAffinityConfig':{'clientIP':{}}"), NULL,
                 MISSING(".clientIP.timeoutSeconds")},
        };

        CHECK(cases);
}

/* ---- ports ---- */

static void test_a_port_is_repeated_whatever_it_is(void **state) {
#define PORT(name, port, protocol, node)                                                           \
        "{'name':'" name "','port':" port ",'protocol':'" protocol                                 \
        "','targetPort':1,'nodePort':" node "}"
#define PORTS(list) "{'spec':{'type':'NodePort','sessionAffinity':'None','ports':[" list "]}}"
#define SHOWN(i, protocol, port)                                                                   \
        "spec.ports[" #i "]: Duplicate value: {\"Name\":\"\",\"Protocol\":\"" protocol             \
        "\",\"AppProtocol\":null,\"Port\":" port ",\"TargetPort\":0,\"NodePort\":0}\n"
#define OUT_OF_RANGE(i, member, n)                                                                 \
        "spec.ports[" #i "]." member ": Invalid value: " n                                         \
        ": must be between 1 and 65535, inclusive\n"
#define NO_PROTOCOL(i)                                                                             \
        "spec.ports[" #i "].protocol: Unsupported value: \"Other\": supported values: \"SCTP\", "  \
        "\"TCP\", \"UDP\"\n"
        static const struct rule_case cases[] = {
                {RULES,
                 PORTS(PORT("a", "1", "TCP",
                            "30001") "," PORT("b", "1", "UDP",
                                              "30001") "," PORT("c", "2", "TCP",
                                                                "0") "," PORT("d", "3", "TCP",
                                                                              "0")),
                 NULL, NULL},
                {RULES,
                 PORTS(PORT("a", "2", "TCP", "7") "," PORT("b", "1", "TCP",
                                                           "6") "," PORT("c", "1", "TCP",
                                                                         "7") "," PORT("d", "2",
                                                                                       "TCP", "7")),
                 NULL,
                 "spec.ports[2].nodePort: Duplicate value: 7\n"
                 "spec.ports[3].nodePort: Duplicate value: 7\n" SHOWN(2, "TCP", "1")
                         SHOWN(3, "TCP", "2")},
                {RULES,
                 PORTS(PORT("a", "2", "TCP",
                            "0") "," PORT("b", "2", "UDP",
                                          "0") "," PORT("c", "2", "TCP",
                                                        "0") "," PORT("d", "1", "TCP",
                                                                      "0") "," PORT("e", "1", "TCP",
                                                                                    "0")),
                 NULL, SHOWN(2, "TCP", "2") SHOWN(4, "TCP", "1")},
                {RULES, PORTS(PORT("a", "0", "TCP", "0") "," PORT("b", "0", "TCP", "0")), NULL,
                 OUT_OF_RANGE(0, "port", "0") OUT_OF_RANGE(1, "port", "0") SHOWN(1, "TCP", "0")},
                {RULES, PORTS(PORT("a", "1", "Other", "0") "," PORT("b", "1", "Other", "0")), NULL,
                 NO_PROTOCOL(0) NO_PROTOCOL(1) SHOWN(1, "Other", "1")},
                {RULES, PORTS(PORT("a", "1", "TCP", "-1") "," PORT("b", "2", "TCP", "-1")), NULL,
                 OUT_OF_RANGE(0, "nodePort", "-1")
                         OUT_OF_RANGE(1, "nodePort",
                                      "-1") "spec.ports[1].nodePort: Duplicate value: -1\n"},
        };

        CHECK(cases);
}

/* ---- load balancers ---- */

#define OF_BALANCER(more) "{'spec':{" BALANCED more "}}"
#define RANGES(list)      OF_BALANCER(",'loadBalancerSourceRanges':[" list "]")

static void test_ranges_of_clients_are_ranges(void **state) {
#define RANGE(i, text) "spec.LoadBalancerSourceRanges[" #i "]: Invalid value: \"" text "\": "
        static const struct rule_case cases[] = {
                {RULES, RANGES("'10.0.0.0/8',' 2001:db8::/64\\n'"), NULL, NULL},
                {RULES, RANGES("'10.0.0.0/8',' x ',''"), NULL,
                 RANGE(1, "x") NO_RANGE RANGE(2, "") NO_RANGE},
                {RULES, RANGES("'10.0.0.1/8'"), NULL,
                 RANGE(0, "10.0.0.1/8") "must not have bits set beyond the prefix length\n"},
                {RULES, SPEC(",'loadBalancerSourceRanges':['10.0.0.0/8']"), NULL,
                 "spec.LoadBalancerSourceRanges: " OTHER_TYPE},
                /* One that the old Service had is accepted, with other white space too. */
                {RULES, RANGES("'10.0.0.1/8 ','10.0.0.2/8'"), RANGES("' 10.0.0.1/8'"),
                 RANGE(1, "10.0.0.2/8") "must not have bits set beyond the prefix length\n"},
        };

        CHECK(cases);
}

static void test_annotations_agree_with_the_spec(void **state) {
#define ANNOTATED(annotations, spec)                                                               \
        "{'metadata':{'annotations':{" annotations "}},'spec':{" spec "}}"
#define OLD_RANGES(text) "'service.beta.kubernetes.io/load-balancer-source-ranges':'" text "'"
#define OLD_FIELD                                                                                  \
        "metadata.annotations[service.beta.kubernetes.io/"                                         \
        "load-balancer-source-ranges]: "
#define TOPOLOGY(hints, mode)                                                                      \
        "'service.kubernetes.io/topology-aware-hints':'" hints                                     \
        "','service.kubernetes.io/topology-mode':'" mode "'"
        static const char mismatch[] =
                "metadata.annotations[service.kubernetes.io/topology-mode]: Invalid value: "
                "\"Auto\": must match annotations[service.kubernetes.io/topology-aware-hints] when "
                "both are specified\n";
        const struct rule_case cases[] = {
                {RULES, ANNOTATED(OLD_RANGES(" 10.0.0.0/8 , ::/0 "), BALANCED), NULL, NULL},
                {RULES, ANNOTATED(OLD_RANGES(" "), BALANCED), NULL, NULL},
                {RULES, ANNOTATED(OLD_RANGES("10.0.0.0/8,,x"), BALANCED), NULL,
                 OLD_FIELD "Invalid value: \"\": " NO_RANGE OLD_FIELD
                           "Invalid value: \"x\": " NO_RANGE},
                {RULES, ANNOTATED(OLD_RANGES(""), IN("ClusterIP")), NULL, OLD_FIELD OTHER_TYPE},
                /* The field goes before it. */
                {RULES, ANNOTATED(OLD_RANGES("x"), BALANCED ",'loadBalancerSourceRanges':['::/0']"),
                 NULL, NULL},
                /* An update is checked if it changes the annotation, though not the spec. */
                {RULES, ANNOTATED(OLD_RANGES("x"), BALANCED), ANNOTATED("", BALANCED),
                 OLD_FIELD "Invalid value: \"x\": " NO_RANGE},
                {RULES, ANNOTATED(OLD_RANGES("x") ",'a':'b'", BALANCED),
                 ANNOTATED(OLD_RANGES("x"), BALANCED), NULL},
                {RULES, ANNOTATED(OLD_RANGES("x"), BALANCED ",'loadBalancerIP':'1.2.3.4'"),
                 ANNOTATED(OLD_RANGES("x"), BALANCED), NULL},
                {RULES, ANNOTATED(TOPOLOGY("Auto", "Auto"), IN("ClusterIP")), NULL, NULL},
                {RULES, ANNOTATED(TOPOLOGY("auto", "Auto"), IN("ClusterIP")), NULL, mismatch},
                {RULES, ANNOTATED(TOPOLOGY("auto", "Auto"), IN("ClusterIP")),
                 ANNOTATED(TOPOLOGY("auto", "auto"), IN("ClusterIP")), mismatch},
                {RULES, ANNOTATED(TOPOLOGY("auto", "Auto") ",'a':'b'", IN("ClusterIP")),
                 ANNOTATED(TOPOLOGY("auto", "Auto"), IN("ClusterIP")), NULL},
        };

        CHECK(cases);
}

static void test_the_class_of_a_balancer_stays(void **state) {
#define CLASS(name) OF_BALANCER(",'loadBalancerClass':'" name "'")
#define NO_CLASS    "spec.loadBalancerClass: Invalid value: "
        static const char no_name[] =
                NO_CLASS "\"-\": name part must consist of alphanumeric characters, '-', '_' or "
                         "'.', and must start and end with an alphanumeric character (e.g. "
                         "'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
                         "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')\n";
        const struct rule_case cases[] = {
                {RULES, CLASS("example.com/a"), NULL, NULL},
                {RULES, CLASS("-"), NULL, no_name},
                {RULES, SPEC(",'loadBalancerClass':'a'"), NULL,
                 "spec.loadBalancerClass: " OTHER_TYPE},
                {RULES, CLASS("b"), CLASS("a"), NO_CLASS "\"b\": " UNCHANGED},
                {RULES, CLASS("b"), OF_BALANCER(""), NO_CLASS "\"b\": " UNCHANGED},
                {RULES, OF_BALANCER(""), CLASS("a"), NO_CLASS "null: " UNCHANGED},
                {RULES, CLASS("a"), SPEC(""), NULL},
                {RULES, CLASS("-"), SPEC(""), no_name},
                /* Stored before there was this rule. */
                {RULES, OF_BALANCER(",'loadBalancerClass':'-'" MORE), CLASS("-"), NULL},
        };

        CHECK(cases);
}

static void test_the_port_of_a_health_check_is_for_local_traffic(void **state) {
#define HEALTH(policy, port)                                                                       \
        "{'spec':{" IN("LoadBalancer") ",'externalTrafficPolicy':'" policy                         \
                                       "','healthCheckNodePort':" port "}}"
#define NO_HEALTH                                                                                  \
        "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'\n"
#define PORT_FIELD "spec.healthCheckNodePort: "
        static const struct rule_case cases[] = {
                {RULES, HEALTH("Local", "30000"), NULL, NULL},
                {RULES, HEALTH("Local", "0"), NULL, NULL}, /* nothing here allocates one */
                {RULES, HEALTH("Cluster", "0"), NULL, NULL},
                {RULES, HEALTH("Local", "65536"), NULL,
                 PORT_FIELD "Invalid value: 65536: must be between 1 and 65535, inclusive\n"},
                {RULES, HEALTH("Cluster", "30000"), NULL,
                 PORT_FIELD "Invalid value: 30000: " NO_HEALTH},
                {RULES, HEALTH("Local", "30001"), HEALTH("Local", "30000"),
                 PORT_FIELD "Forbidden: field is immutable\n"},
                {RULES, HEALTH("Local", "30001"), HEALTH("Local", "0"), NULL},
                {RULES, HEALTH("Local", "30001"), HEALTH("Cluster", "30000"), NULL},
                /* Stored before there was this rule. */
                {RULES, HEALTH("Local", "65536" MORE), HEALTH("Local", "65536"), NULL},
                {RULES, HEALTH("Local", "65536"), HEALTH("Cluster", "65536"),
                 PORT_FIELD "Invalid value: 65536: must be between 1 and 65535, inclusive\n"},
        };

        CHECK(cases);
}

/* ---- traffic ---- */

static void test_policies_of_traffic_are_known(void **state) {
        static const struct rule_case cases[] = {
                {RULES, SPEC(",'internalTrafficPolicy':'Local'"), NULL, NULL},
                {RULES, SPEC(",'internalTrafficPolicy':''"), NULL,
                 "spec.internalTrafficPolicy: Unsupported value: \"\": supported values: "
                 "\"Cluster\", \"Local\"\n"},
                {RULES, SPEC(",'trafficDistribution':'PreferSameNode'"), NULL, NULL},
                {RULES, SPEC(",'trafficDistribution':'PreferClose'"), NULL, NULL},
                {RULES, SPEC(",'trafficDistribution':'X'"), NULL,
                 "spec.trafficDistribution: Unsupported value: \"X\": supported values: "
                 "\"PreferClose\", \"PreferSameZone\", \"PreferSameNode\"\n"},
                {RULES, SPEC(",'externalTrafficPolicy':'Local'"), NULL, OUTSIDE},
                {RULES, SPEC(",'externalTrafficPolicy':'Local','externalIPs':['192.0.2.1']"), NULL,
                 NULL},
                {RULES, SPEC(",'allocateLoadBalancerNodePorts':true"), NULL,
                 "spec.allocateLoadBalancerNodePorts: " OTHER_TYPE},
        };

        CHECK(cases);
}

/* ---- what is set, kept and dropped ---- */

struct setting {
        const char *old, *sent; /* specs; old NULL = a create */
        const char *members;    /* what the result has of the members of this object */
        bool is_refused;        /* later, by the rules */
};

static void try_settings(const struct setting *settings, size_t n) {
        for (size_t i = 0; i < n; i++) {
                struct hf__json *old = settings[i].old ? parse_quoted_json(settings[i].old) : NULL,
                                *spec = parse_quoted_json(settings[i].sent),
                                *members = parse_quoted_json(settings[i].members);
                assert_int_equal(hfd_service_set_fields(spec, old), 0);
                for (const struct hf__json *m = hf__json_first(members); m; m = hf__json_next(m)) {
                        const struct hf__json *found = hf__json_get(spec, hf__json_key(m));
                        if (!hf__json_is_null(m) ? hf__json_equal(m, found) : !found)
                                continue;
                        struct hf__strbuf out = {0};
                        hf__json_print(spec, &out);
                        fail_msg("setting %zu, %s: %s", i, hf__json_key(m), out.data);
                }
                /* A second time changes nothing. */
                struct hf__json *again = hf__json_dup(spec);
                assert_int_equal(hfd_service_set_fields(again, spec), 0);
                assert_true(settings[i].is_refused || hf__json_equal(again, spec));
                hf__json_free(again);
                hf__json_free(old);
                hf__json_free(spec);
                hf__json_free(members);
        }
}

#define TRY(settings) try_settings(settings, sizeof settings / sizeof settings[0])

static void test_families_follow_from_addresses_and_the_policy(void **state) {
#define BOTH "'clusterIP':'10.0.0.1','clusterIPs':[" V4 "," V6 "],'ipFamilies':['IPv4','IPv6']"
#define ONE  "'clusterIP':'10.0.0.1','clusterIPs':[" V4 "],'ipFamilies':['IPv4']"
        static const struct setting settings[] = {
                {NULL, "{'clusterIP':'2001:db8::1'}",
                 "{'ipFamilies':['IPv6'],'ipFamilyPolicy':'SingleStack','clusterIPs':[" V6 "]}"},
                {NULL, "{'clusterIP':'" TAILED "'}", "{'ipFamilies':['IPv6']}"},
                /* Such a list is refused for itself, and not for its families. */
                {NULL, "{'clusterIPs':[" V6 "]}", "{'ipFamilies':['IPv6']}"},
                {NULL, "{'clusterIP':'10.0.0.1','clusterIPs':[" V6 "]}", "{'ipFamilies':['IPv6']}"},
                {NULL,
                 "{'clusterIP':'10.0.0.1','clusterIPs':[" V4 "," V6
                 "],'ipFamilyPolicy':'RequireDualStack'}",
                 "{'ipFamilies':['IPv4','IPv6']}"},
                {NULL,
                 "{'clusterIP':'10.0.0.1','clusterIPs':[" V4 "," V6
                 "],'ipFamilyPolicy':'PreferDualStack','ipFamilies':['IPv4']}",
                 "{'ipFamilies':['IPv4','IPv6']}"},
                {NULL,
                 "{'clusterIP':'10.0.0.1','clusterIPs':[" V4 ",'10.0.0.2'],'ipFamilyPolicy':"
                 "'PreferDualStack'}",
                 "{'ipFamilies':['IPv4']}"},
                {NULL, "{'clusterIP':'10.0.0.1','clusterIPs':[" V4 "," V6 "]}",
                 "{'ipFamilies':['IPv4'],'ipFamilyPolicy':'SingleStack'}"},
                {NULL, "{'clusterIP':'None'}",
                 "{'ipFamilies':['IPv4','IPv6'],'ipFamilyPolicy':'RequireDualStack'}"},
                {NULL, "{'clusterIP':'None','ipFamilies':['IPv6']}",
                 "{'ipFamilies':['IPv6','IPv4'],'ipFamilyPolicy':'RequireDualStack'}"},
                {NULL, "{'clusterIP':'None','ipFamilyPolicy':'SingleStack'}",
                 "{'ipFamilies':['IPv4']}"},
                {NULL, "{'clusterIP':'None','selector':{'a':'b'}}",
                 "{'ipFamilies':['IPv4'],'ipFamilyPolicy':'SingleStack'}"},
                /* One stack of two: the second one goes. */
                {"{" BOTH ",'ipFamilyPolicy':'RequireDualStack'}",
                 "{" BOTH ",'ipFamilyPolicy':'SingleStack'}", "{" ONE "}"},
                {"{" BOTH ",'ipFamilyPolicy':'SingleStack'}",
                 "{" BOTH ",'ipFamilyPolicy':'SingleStack'}", "{" BOTH "}"},
                /* With another policy that is refused. */
                {"{" BOTH ",'ipFamilyPolicy':'RequireDualStack'}",
                 "{'clusterIP':'10.0.0.1','clusterIPs':[" V4 "," V6
                 "],'ipFamilies':['IPv4'],'ipFamilyPolicy':'RequireDualStack'}",
                 "{'ipFamilies':['IPv4']}", .is_refused = true},
                {"{'clusterIP':'None','clusterIPs':['None'],'ipFamilies':['IPv4','IPv6'],"
                 "'ipFamilyPolicy':'RequireDualStack'}",
                 "{'clusterIP':'None','clusterIPs':['None'],'ipFamilies':['IPv4'],"
                 "'ipFamilyPolicy':'RequireDualStack'}",
                 "{'ipFamilies':['IPv4']}", .is_refused = true},
        };

        TRY(settings);
}

static void test_what_is_left_out_is_kept(void **state) {
#define HAS "'type':'ClusterIP','clusterIP':'10.0.0.1','clusterIPs':[" V4 "]"
#define NODES                                                                                      \
        "'type':'NodePort','ports':[{'name':'a','nodePort':30001},{'name':'b','nodePort':30002}]"
#define LOCAL "'type':'LoadBalancer','externalTrafficPolicy':'Local'"
        static const struct setting settings[] = {
                {"{" HAS "}", "{'type':'ClusterIP','clusterIP':'','clusterIPs':[" V4 "]}",
                 "{" HAS "}"},
                {"{" HAS "}", "{'type':'ClusterIP','clusterIP':'','clusterIPs':[]}", "{" HAS "}"},
                /* An update that changes nothing makes no new version. */
                {"{'type':'ClusterIP','clusterIP':'','clusterIPs':[]}",
                 "{'type':'ClusterIP','clusterIP':'','clusterIPs':[]}",
                 "{'clusterIP':'','clusterIPs':[]}"},
                {"{" HAS "}", "{'type':'ClusterIP','clusterIPs':['10.0.0.2']}",
                 "{'clusterIP':'10.0.0.1','clusterIPs':['10.0.0.2']}"},
                {"{" HAS "}", "{'type':'ClusterIP','clusterIP':'10.0.0.2','clusterIPs':[" V4 "]}",
                 "{'clusterIP':'10.0.0.2','clusterIPs':['10.0.0.2']}"},
                {"{" NODES "}",
                 "{'type':'NodePort','ports':[{'name':'b'},{'name':'c'},{'name':'a','nodePort':0}]"
                 "}",
                 "{'ports':[{'name':'b','nodePort':30002},{'name':'c'},{'name':'a','nodePort':"
                 "30001}]}"},
                /* Another port uses it. */
                {"{" NODES "}",
                 "{'type':'NodePort','ports':[{'name':'b'},{'name':'c','nodePort':30002}]}",
                 "{'ports':[{'name':'b'},{'name':'c','nodePort':30002}]}"},
                {"{'type':'NodePort','ports':[{'nodePort':30001}]}",
                 "{'type':'LoadBalancer','ports':[{'name':''}]}",
                 "{'ports':[{'name':'','nodePort':30001}]}"},
                {"{" NODES "}",
                 "{'type':'LoadBalancer','allocateLoadBalancerNodePorts':false,'ports':[{'name':"
                 "'a'}]}",
                 "{'ports':[{'name':'a'}]}"},
                {"{" NODES "}", "{'type':'ClusterIP','ports':[{'name':'a'}]}",
                 "{'ports':[{'name':'a'}]}"},
                {"{" LOCAL ",'healthCheckNodePort':30009}", "{" LOCAL "}",
                 "{'healthCheckNodePort':30009}"},
                {"{" LOCAL ",'healthCheckNodePort':30009}",
                 "{'type':'LoadBalancer','externalTrafficPolicy':'Cluster'}",
                 "{'healthCheckNodePort':null}"},
        };

        TRY(settings);
}

/* Another program may have stored any value. */
static void test_a_value_of_another_type_is_not_kept(void **state) {
        static const struct setting settings[] = {
                {"{'type':'ClusterIP','clusterIP':5,'clusterIPs':{'a':'10.0.0.1'},'ipFamilies':"
                 "{'a':'IPv6'},'ipFamilyPolicy':[]}",
                 "{'type':'ClusterIP'}",
                 "{'clusterIP':null,'clusterIPs':null,'ipFamilies':['IPv4'],'ipFamilyPolicy':"
                 "'SingleStack'}"},
                {"{'type':'ClusterIP','clusterIP':'10.0.0.1','clusterIPs':{'a':'10.0.0.2'}}",
                 "{'type':'ClusterIP'}", "{'clusterIP':'10.0.0.1','clusterIPs':[" V4 "]}"},
        };

        TRY(settings);
}

/* A write of one part copies the other part from the store, and gets the defaults, too. */
static void test_a_part_that_is_no_object_stays(void **state) {
        static const struct {
                const char *old, *object, *part;
        } cases[] = {{"{'spec':'x'}", "{'spec':'x','status':{}}", "spec"},
                     {"{'spec':5}", "{'spec':5,'status':{}}", "spec"},
                     {"{'spec':[{}]}", "{'spec':[{}],'status':{}}", "spec"},
                     {"{'spec':{'type':'LoadBalancer'},'status':'x'}",
                      "{'spec':{'type':'ClusterIP'},'status':'x'}", "status"}};

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__json *old = parse_quoted_json(cases[i].old),
                                *object = parse_quoted_json(cases[i].object);
                assert_int_equal(hfd_service_prepare(object, old), 0);
                assert_true(hf__json_equal(hf__json_get(object, cases[i].part),
                                           hf__json_get(old, cases[i].part)));
                hf__json_free(object);
                hf__json_free(old);
        }
}

static void test_what_only_the_old_type_needed_is_dropped(void **state) {
        static const struct setting settings[] = {
                {"{" LOCAL ",'healthCheckNodePort':30009}",
                 "{'type':'LoadBalancer','externalTrafficPolicy':'Cluster','healthCheckNodePort':"
                 "30009}",
                 "{'healthCheckNodePort':null}"},
                {"{" LOCAL ",'healthCheckNodePort':30009}",
                 "{'type':'LoadBalancer','externalTrafficPolicy':'Cluster','healthCheckNodePort':"
                 "30008}",
                 "{'healthCheckNodePort':30008}"},
                {"{" HAS "}",
                 "{'type':'ExternalName','clusterIP':'10.0.0.1','clusterIPs':[" V4 "]}",
                 "{'clusterIP':null,'clusterIPs':null}"},
                /* The client does not know clusterIPs. */
                {"{'type':'ClusterIP'," BOTH "}", "{'type':'ExternalName','clusterIP':'10.0.0.1'}",
                 "{'clusterIP':null,'clusterIPs':null}"},
                {"{" HAS "}",
                 "{'type':'ExternalName','clusterIP':'10.0.0.1','clusterIPs':['10.0.0.2']}",
                 "{'clusterIP':'10.0.0.1','clusterIPs':['10.0.0.2']}"},
                {NULL, "{'type':'ExternalName','internalTrafficPolicy':'Local'}",
                 "{'internalTrafficPolicy':null}"},
                {NULL, "{'type':'ExternalName','internalTrafficPolicy':'X'}",
                 "{'internalTrafficPolicy':'X'}"},
        };

        TRY(settings);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_external_addresses_are_those_of_other_hosts),
                cmocka_unit_test(test_cluster_addresses_have_their_form),
                cmocka_unit_test(test_families_are_those_of_the_addresses),
                cmocka_unit_test(test_a_single_stack_has_one_of_each),
                cmocka_unit_test(test_addresses_that_are_set_stay),
                cmocka_unit_test(test_an_external_name_has_no_addresses),
                cmocka_unit_test(test_a_time_of_affinity_is_up_to_a_day),
                cmocka_unit_test(test_a_port_is_repeated_whatever_it_is),
                cmocka_unit_test(test_ranges_of_clients_are_ranges),
                cmocka_unit_test(test_annotations_agree_with_the_spec),
                cmocka_unit_test(test_the_class_of_a_balancer_stays),
                cmocka_unit_test(test_the_port_of_a_health_check_is_for_local_traffic),
                cmocka_unit_test(test_policies_of_traffic_are_known),
                cmocka_unit_test(test_families_follow_from_addresses_and_the_policy),
                cmocka_unit_test(test_what_is_left_out_is_kept),
                cmocka_unit_test(test_a_value_of_another_type_is_not_kept),
                cmocka_unit_test(test_a_part_that_is_no_object_stays),
                cmocka_unit_test(test_what_only_the_old_type_needed_is_dropped),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
