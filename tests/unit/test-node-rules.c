/* SPDX-License-Identifier: Apache-2.0 */
/* What Kubernetes refuses in Nodes, IPAddresses and ServiceCIDRs is refused, with its words. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/json.h"
#include "server/resources/causes.h"
#include "server/resources/workloads/workloads.h"

#include "rule_cases.h"

#define CHECK(cases) check_rule_cases(cases, sizeof cases / sizeof cases[0])
#define X16          "xxxxxxxxxxxxxxxx"
#define X64          X16 X16 X16 X16

static const char label_value[] =
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
        "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
        "'my_value',  or '12345', regex used for validation is "
        "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/* ---- nodes ---- */

#define TAINTED(taints) "{'spec':{'taints':[" taints "]}}"
#define RANGED(cidrs)   "{'spec':{'podCIDRs':[" cidrs "]}}"
#define SPEC(members)   "{'spec':{" members "}}"

static void test_a_node_is_refused(void **state) {
        static const struct rule_case cases[] = {
                {hfd_node_validate, "{}", NULL, NULL},
                {hfd_node_validate,
                 TAINTED("{'key':'a','effect':'NoSchedule'},{'key':'a','value':'b.c',"
                         "'effect':'NoExecute'},{'key':'example.com/b','effect':"
                         "'PreferNoSchedule'}"),
                 NULL, NULL},
                {hfd_node_validate, TAINTED("{'key':'','effect':'NoSchedule'}"), NULL,
                 "metadata.taints[0].key: Invalid value: \"\": name part must be non-empty\n"
                 "metadata.taints[0].key: Invalid value: \"\": name part must consist of "
                 "alphanumeric characters, '-', '_' or '.', and must start and end with an "
                 "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used "
                 "for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')\n"},
                {hfd_node_validate, TAINTED("{'key':'a'}"), NULL,
                 "metadata.taints[0].effect: Required value\n"},
                {hfd_node_validate, TAINTED("{'key':'a','effect':'X'}"), NULL,
                 "metadata.taints[0].effect: Unsupported value: \"X\": supported values: "
                 "\"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"\n"},
                {hfd_node_validate, TAINTED("{'key':'a','value':'" X64 "','effect':'NoExecute'}"),
                 NULL,
                 "metadata.taints[0].value: Invalid value: \"" X64
                 "\": must be no more than 63 bytes\n"},
                {hfd_node_validate,
                 TAINTED("{'key':'a','effect':'NoExecute'},{'key':'aNoExecute','effect':"
                         "'NoSchedule'},{'key':'a','value':'b','effect':'NoExecute'}"),
                 NULL,
                 "metadata.taints[2]: Duplicate value: {\"Key\":\"a\",\"Value\":\"b\","
                 "\"Effect\":\"NoExecute\",\"TimeAdded\":null}: taints must be unique by key and "
                 "effect pair\n"},
                {hfd_node_validate, RANGED("'10.0.0.0/24','2001:db8::/64'"), NULL, NULL},
                {hfd_node_validate, RANGED("'2001:DB8::/64'"), NULL, NULL},
                {hfd_node_validate, RANGED("'10.0.0.1/24'"), NULL,
                 "spec.podCIDRs[0]: Invalid value: \"10.0.0.1/24\": must not have bits set beyond "
                 "the prefix length\n"},
                {hfd_node_validate, RANGED("'10.0.0.0/24','10.1.0.0/24'"), NULL,
                 "spec.podCIDRs: Invalid value: [\"10.0.0.0/24\",\"10.1.0.0/24\"]: may specify no "
                 "more than one CIDR for each IP family\n"},
                {hfd_node_validate, RANGED("'10.0.0.0/24','2001:db8::/64','2001:db9::/64'"), NULL,
                 "spec.podCIDRs: Invalid value: [\"10.0.0.0/24\",\"2001:db8::/64\","
                 "\"2001:db9::/64\"]: may specify no more than one CIDR for each IP family\n"},
                {hfd_node_validate, RANGED("'10.0.0.0/24','x:'"), NULL,
                 "spec.podCIDRs[1]: Invalid value: \"x:\": must be a valid CIDR value, (e.g. "
                 "10.9.8.0/24 or 2001:db8::/64)\n"
                 "spec.podCIDRs: Internal error: invalid PodCIDRs. failed to check with dual stack "
                 "with error:invalid CIDR[1]: <nil> (invalid CIDR address: x:)\n"
                 "spec.podCIDRs: Invalid value: [\"10.0.0.0/24\",\"x:\"]: may specify no more than "
                 "one CIDR for each IP family\n"},
                {hfd_node_validate,
                 "{'status':{'capacity':{'cpu':'-1'},'allocatable':{'pods':"
                 "'1500m'},'nodeInfo':{'swap':{'capacity':0}},"
                 "'declaredFeatures':['x']}}",
                 NULL,
                 "status.capacity.cpu: Invalid value: \"-1\": must be greater than or equal to 0\n"
                 "status.allocatable.pods: Invalid value: \"1500m\": must be an integer\n"
                 "metadata.nodeSwapStatus.capacity: Invalid value: 0: must be greater than zero\n"
                 "status.declaredFeatures[0]: Invalid value: \"x\": invalid feature name \"x\": "
                 "must start with an UpperCamelCase segment, with subsequent segments separated by "
                 "'/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric "
                 "characters and slashes\n"},
                {hfd_node_validate,
                 "{'status':{'capacity':{'cpu':'1500m','example.com/gpu':'2'},"
                 "'nodeInfo':{'swap':{'capacity':1}},"
                 "'declaredFeatures':['A1','B/c/D']}}",
                 NULL, NULL},
        };

        CHECK(cases);
}

/* A value that is too long and ends with a dot breaks two rules, which are in one cause. */
static void test_a_taint_has_one_cause_for_its_value(void **state) {
        struct hf__json *node =
                parse_quoted_json(TAINTED("{'key':'a','value':'" X64 ".','effect':'NoExecute'}"));
        struct hfd_causes causes;
        char wanted[700];

        hfd_causes_init(&causes);
        hfd_node_validate(node, NULL, &causes);
        assert_int_equal(causes.n, 1);
        (void)snprintf(wanted, sizeof wanted,
                       "Invalid value: \"" X64 ".\": must be no more than 63 bytes;%s",
                       label_value);
        assert_string_equal(causes.items[0].text, wanted);
        hf__json_free(node);
}

#define BAD_TAINT "'taints':[{'key':'a'}]"

static void test_what_a_node_may_change(void **state) {
        static const struct rule_case cases[] = {
                {hfd_node_validate, SPEC("'podCIDRs':['10.0.0.0/24']"), SPEC(""), NULL},
                {hfd_node_validate, SPEC(""), SPEC("'podCIDRs':['10.0.0.0/24']"),
                 "spec.podCIDRs: Forbidden: node updates may not change podCIDR except from \"\" "
                 "to valid\n"},
                {hfd_node_validate, SPEC("'providerID':'p'"), SPEC(""), NULL},
                {hfd_node_validate, SPEC("'providerID':'q'"), SPEC("'providerID':'p'"),
                 "spec.providerID: Forbidden: node updates may not change providerID except from "
                 "\"\" to valid\n"},
                {hfd_node_validate, SPEC("'externalID':'a'"), SPEC(""),
                 "spec.externalID: Forbidden: may not be updated\n"},
                {hfd_node_validate, SPEC("'unschedulable':true"), SPEC(""), NULL},
                /* What was stored before there were rules may stay. */
                {hfd_node_validate, SPEC(BAD_TAINT ",'podCIDRs':['x'],'unschedulable':true"),
                 SPEC(BAD_TAINT ",'podCIDRs':['x']"), NULL},
                {hfd_node_validate, SPEC("'taints':[{'key':'b'}]"), SPEC(BAD_TAINT),
                 "metadata.taints[0].effect: Required value\n"},
        };

        CHECK(cases);
}

#define STATUS(members) "{'status':{" members "}}"
#define BAD_STATUS                                                                                 \
        "'capacity':{'pods':'-2'},'allocatable':{'pods':'-2'},'declaredFeatures':['B','A'],"       \
        "'addresses':[{'type':'a','address':'b'},{'type':'a','address':'b'}]"

static void test_the_status_of_a_node_is_refused(void **state) {
        static const struct rule_case cases[] = {
                {hfd_node_validate_status, STATUS("'capacity':{'pods':'110'}"), STATUS(""), NULL},
                {hfd_node_validate_status, STATUS("'capacity':{'pods':'-2'}"), STATUS(""),
                 "status.capacity.pods: Invalid value: \"-2\": must be greater than or equal to "
                 "0\n"},
                {hfd_node_validate_status, STATUS("'capacity':{'pods':'-2'}"),
                 STATUS("'capacity':{'pods':'-2'}"), NULL},
                {hfd_node_validate_status, STATUS("'allocatable':{'example.com/a':'1500m'}"),
                 STATUS(""),
                 "status.allocatable.example.com/a: Invalid value: \"1500m\": must be an "
                 "integer\n"},
                {hfd_node_validate_status, STATUS("'declaredFeatures':['A','B','B','A']"),
                 STATUS(""),
                 "status.declaredFeatures[2]: Duplicate value: \"B\"\n"
                 "status.declaredFeatures[3]: Invalid value: \"A\": list must be sorted "
                 "alphabetically\n"},
                {hfd_node_validate_status,
                 STATUS("'addresses':[{'type':'InternalIP','address':'10.0.0.1'},{'type':"
                        "'InternalIP','address':'10.0.0.2'},{'type':'ExternalIP','address':"
                        "'10.0.0.1'}]"),
                 STATUS(""), NULL},
                {hfd_node_validate_status,
                 STATUS("'addresses':[{'type':'a','address':'bc'},{'type':'ab','address':'c'}]"),
                 STATUS(""), NULL},
                {hfd_node_validate_status,
                 STATUS("'addresses':[{'type':'Hostname','address':'a'},{'type':'Hostname',"
                        "'address':'a'}]"),
                 STATUS(""),
                 "status.addresses[1]: Duplicate value: {\"Type\":\"Hostname\",\"Address\":"
                 "\"a\"}\n"},
                /* What was stored before there were rules may stay beside what changes. */
                {hfd_node_validate_status, STATUS(BAD_STATUS ",'phase':'Running'"),
                 STATUS(BAD_STATUS), NULL},
                {hfd_node_validate_status,
                 STATUS("'capacity':{'pods':'-2'},'allocatable':{'pods':'-3'}"),
                 STATUS("'capacity':{'pods':'-2'},'allocatable':{'pods':'-2'}"),
                 "status.allocatable.pods: Invalid value: \"-3\": must be greater than or equal to "
                 "0\n"},
        };

        CHECK(cases);
}

/* Each name of a feature that is refused would be the first one of a list. */
static void test_names_of_features(void **state) {
        static const char *const good[] = {"A", "AbC1", "A/b", "A/b1/C"},
                                 *const bad[] = {"", "a", "1A", "A-b", "A/", "A//b", "A/1", "/A"};
        struct hfd_causes causes;

        for (size_t i = 0; i < sizeof good / sizeof good[0] + sizeof bad / sizeof bad[0]; i++) {
                bool is_good = i < sizeof good / sizeof good[0];
                const char *name = is_good ? good[i] : bad[i - sizeof good / sizeof good[0]];
                struct hf__json *node = parse_quoted_json("{'status':{'declaredFeatures':['']}}"),
                                *list = hf__json_path(node, "status.declaredFeatures");
                assert_int_equal(hf__json_set_text(hf__json_first(list), name), 0);
                hfd_causes_init(&causes);
                hfd_node_validate(node, NULL, &causes);
                if ((causes.n == 0) != is_good)
                        fail_msg("%s", name);
                hf__json_free(node);
        }
}

/* podCIDR is the older form of podCIDRs, and counts if they differ. */
static void test_both_forms_of_the_ranges_of_a_node_agree(void **state) {
        static const struct {
                const char *sent, *stored;
        } cases[] = {
                {SPEC("'podCIDR':'10.0.0.0/24'"),
                 SPEC("'podCIDR':'10.0.0.0/24','podCIDRs':['10.0.0.0/24']")},
                {SPEC("'podCIDRs':['10.0.0.0/24','2001:db8::/64']"),
                 SPEC("'podCIDRs':['10.0.0.0/24','2001:db8::/64'],'podCIDR':'10.0.0.0/24'")},
                {SPEC("'podCIDR':'10.1.0.0/24','podCIDRs':['10.0.0.0/24','2001:db8::/64']"),
                 SPEC("'podCIDR':'10.1.0.0/24','podCIDRs':['10.1.0.0/24']")},
                {SPEC("'podCIDR':'10.0.0.0/24','podCIDRs':['10.0.0.0/24','2001:db8::/64']"),
                 SPEC("'podCIDR':'10.0.0.0/24','podCIDRs':['10.0.0.0/24','2001:db8::/64']")},
                {SPEC("'configSource':{'configMap':{'name':'a'}}"), SPEC("")},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__json *node = parse_quoted_json(cases[i].sent),
                                *wanted = parse_quoted_json(cases[i].stored);
                assert_int_equal(hfd_node_prepare(node, NULL), 0);
                if (!hf__json_equal(hf__json_get(node, "spec"), hf__json_get(wanted, "spec")))
                        fail_msg("%s", cases[i].sent);
                hf__json_free(node);
                hf__json_free(wanted);
        }
}

/* ---- addresses ---- */

#define PARENT         "'resource':'services','namespace':'default','name':'s'"
#define TAKEN(name, p) "{'metadata':{'name':'" name "'},'spec':{'parentRef':{" p "}}}"

static void test_an_address_is_refused(void **state) {
        static const struct rule_case cases[] = {
                {hfd_ip_address_validate, TAKEN("10.0.0.9", PARENT), NULL, NULL},
                {hfd_ip_address_validate,
                 TAKEN("2001:db8::1", "'group':'example.com',"
                                      "'resource':'Gs','name':'g'"),
                 NULL, NULL},
                {hfd_ip_address_validate, TAKEN("x", PARENT), NULL,
                 "metadata.name: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 "
                 "or 2001:db8::ffff)\n"},
                {hfd_ip_address_validate, TAKEN("10.0.0.09", PARENT), NULL,
                 "metadata.name: Invalid value: \"10.0.0.09\": must not have leading 0s\n"},
                {hfd_ip_address_validate, TAKEN("::ffff:10.0.0.9", PARENT), NULL,
                 "metadata.name: Invalid value: \"::ffff:10.0.0.9\": must not be an IPv4-mapped "
                 "IPv6 address\n"},
                {hfd_ip_address_validate, "{'metadata':{'name':'10.0.0.9'}}", NULL,
                 "spec.parentRef: Required value\n"},
                {hfd_ip_address_validate, TAKEN("10.0.0.9", "'group':'-'"), NULL,
                 "spec.parentRef.group: Invalid value: \"-\": a lowercase RFC 1123 subdomain must "
                 "consist of lower case alphanumeric characters, '-' or '.', and must start and "
                 "end with an alphanumeric character (e.g. 'example.com', regex used for "
                 "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?"
                 ")*')\n"
                 "spec.parentRef.resource: Required value\n"
                 "spec.parentRef.name: Required value\n"},
                {hfd_ip_address_validate,
                 TAKEN("10.0.0.9", "'resource':'a/b','name':'..','namespace':'%'"), NULL,
                 "spec.parentRef.resource: Invalid value: \"a/b\": may not contain '/'\n"
                 "spec.parentRef.name: Invalid value: \"..\": may not be '..'\n"
                 "spec.parentRef.namespace: Invalid value: \"%\": may not contain '%'\n"},
                {hfd_ip_address_validate, TAKEN("10.0.0.9", PARENT), TAKEN("10.0.0.9", PARENT),
                 NULL},
                {hfd_ip_address_validate, TAKEN("10.0.0.9", "'resource':'a','name':'b'"),
                 TAKEN("10.0.0.9", PARENT),
                 "spec.parentRef: Invalid value: {\"Group\":\"\",\"Resource\":\"a\",\"Namespace\":"
                 "\"\",\"Name\":\"b\"}: field is immutable\n"},
                /* An address that was stored in another form may stay. */
                {hfd_ip_address_validate, TAKEN("X", PARENT), TAKEN("X", PARENT), NULL},
        };

        CHECK(cases);
}

/* The form of an IPv6 address is that of Go: inet_ntop writes some in another one. */
static void test_an_address_has_one_form(void **state) {
        static const struct {
                const char *text, *canonical;
        } cases[] = {{"2001:DB8::1", "2001:db8::1"},
                     {"2001:0db8::1", "2001:db8::1"},
                     {"2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"},
                     {"1:0:0:2:0:0:0:3", "1:0:0:2::3"},
                     {"1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"},
                     {"::1.2.3.4", "::102:304"},
                     {"0:0:0:0:0:0:0:0", "::"},
                     {"1:0:0:0:0:0:0:0", "1::"},
                     {"64:ff9b::10.0.0.1", "64:ff9b::a00:1"}};
        static const char *const good[] = {"::",
                                           "::1",
                                           "1::",
                                           "::102:304",
                                           "1:0:2::",
                                           "fe80::1",
                                           "1:2:3:4:5:6:7:0",
                                           "0:2:3:4:5:6:7:8"};
        struct hf__json *address = parse_quoted_json(TAKEN("", PARENT));
        struct hfd_causes causes;
        char wanted[200];

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                hfd_causes_init(&causes);
                assert_int_equal(hf__json_set_string(address, "metadata.name", cases[i].text), 0);
                hfd_ip_address_validate(address, NULL, &causes);
                (void)snprintf(wanted, sizeof wanted,
                               "Invalid value: \"%s\": must be in canonical form (\"%s\")",
                               cases[i].text, cases[i].canonical);
                assert_int_equal(causes.n, 1);
                assert_string_equal(causes.items[0].text, wanted);
        }
        for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
                hfd_causes_init(&causes);
                assert_int_equal(hf__json_set_string(address, "metadata.name", good[i]), 0);
                hfd_ip_address_validate(address, NULL, &causes);
                if (causes.n > 0)
                        fail_msg("%s: %s", good[i], causes.items[0].text);
        }
        hf__json_free(address);
}

#define CIDRS(list) "{'spec':{'cidrs':[" list "]}}"

static void test_a_range_of_services_is_refused(void **state) {
        static const struct rule_case cases[] = {
                {hfd_service_cidr_validate, CIDRS("'10.9.0.0/24'"), NULL, NULL},
                {hfd_service_cidr_validate, CIDRS("'2001:db8::/64','10.9.0.0/24'"), NULL, NULL},
                {hfd_service_cidr_validate, "{'spec':{}}", NULL,
                 "spec.cidrs: Required value: at least one CIDR required\n"},
                {hfd_service_cidr_validate, CIDRS("'a','b','c'"), NULL,
                 "spec.cidrs: Invalid value: {\"CIDRs\":[\"a\",\"b\",\"c\"]}: may only hold up to "
                 "2 values\n"},
                {hfd_service_cidr_validate, CIDRS("'10.9.0.0'"), NULL,
                 "spec.cidrs[0]: Invalid value: \"10.9.0.0\": must be a valid CIDR value, (e.g. "
                 "10.9.8.0/24 or 2001:db8::/64)\n"},
                {hfd_service_cidr_validate, CIDRS("'010.9.0.0/24','::ffff:10.0.0.0/104'"), NULL,
                 "spec.cidrs[0]: Invalid value: \"010.9.0.0/24\": must not have leading 0s in IP "
                 "or prefix length\n"
                 "spec.cidrs[1]: Invalid value: \"::ffff:10.0.0.0/104\": must not have an "
                 "IPv4-mapped IPv6 address\n"},
                {hfd_service_cidr_validate, CIDRS("'10.9.0.1/24'"), NULL,
                 "spec.cidrs[0]: Invalid value: \"10.9.0.1/24\": must not have bits set beyond the "
                 "prefix length\n"},
                {hfd_service_cidr_validate, CIDRS("'2001:DB8::/64'"), NULL,
                 "spec.cidrs[0]: Invalid value: \"2001:DB8::/64\": must be in canonical form "
                 "(\"2001:db8::/64\")\n"},
                {hfd_service_cidr_validate, CIDRS("'10.9.0.0/24','10.8.0.0/24'"), NULL,
                 "spec.cidrs: Invalid value: [\"10.9.0.0/24\",\"10.8.0.0/24\"]: may specify no "
                 "more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64\n"},
                {hfd_service_cidr_validate, CIDRS("'10.9.0.0/24'"), CIDRS("'10.9.0.0/24'"), NULL},
                {hfd_service_cidr_validate, CIDRS("'x'"), CIDRS("'x'"), NULL},
                {hfd_service_cidr_validate, CIDRS("'10.8.0.0/24'"), CIDRS("'10.9.0.0/24'"),
                 "spec.cidrs[0]: Invalid value: \"10.8.0.0/24\": field is immutable\n"},
                {hfd_service_cidr_validate, CIDRS("'10.9.0.0/24','2001:db8::/64'"),
                 CIDRS("'10.9.0.0/24'"), NULL},
                {hfd_service_cidr_validate, CIDRS("'10.8.0.0/24','10.7.0.0/24'"),
                 CIDRS("'10.9.0.0/24'"),
                 "spec.cidrs[0]: Invalid value: \"10.8.0.0/24\": field is immutable\n"
                 "spec.cidrs: Invalid value: [\"10.8.0.0/24\",\"10.7.0.0/24\"]: may specify no "
                 "more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64\n"},
                {hfd_service_cidr_validate, CIDRS("'10.9.0.0/24','2001:db8::/64','x'"),
                 CIDRS("'10.9.0.0/24'"),
                 "spec.cidrs: Invalid value: [\"10.9.0.0/24\",\"2001:db8::/64\",\"x\"]: field is "
                 "immutable\n"},
                {hfd_service_cidr_validate, CIDRS("'10.9.0.0/24'"),
                 CIDRS("'10.9.0.0/24','2001:db8::/64'"),
                 "spec.cidrs: Invalid value: [\"10.9.0.0/24\"]: field is immutable\n"},
        };

        CHECK(cases);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_node_is_refused),
                cmocka_unit_test(test_a_taint_has_one_cause_for_its_value),
                cmocka_unit_test(test_what_a_node_may_change),
                cmocka_unit_test(test_the_status_of_a_node_is_refused),
                cmocka_unit_test(test_names_of_features),
                cmocka_unit_test(test_both_forms_of_the_ranges_of_a_node_agree),
                cmocka_unit_test(test_an_address_is_refused),
                cmocka_unit_test(test_an_address_has_one_form),
                cmocka_unit_test(test_a_range_of_services_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
