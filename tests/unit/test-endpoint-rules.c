/* SPDX-License-Identifier: Apache-2.0 */
/* What Kubernetes refuses in Endpoints and EndpointSlices is refused, with its words and in its
 * order. */
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
#define X256         X64 X64 X64 X64

#define NOT_IP       "must be a valid IP address\n"
#define NO_ADDRESS   "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)\n"
#define LOOPBACK     "may not be in the loopback range (127.0.0.0/8, ::1/128)\n"
#define LINK_LOCAL   "may not be in the link-local range (169.254.0.0/16, fe80::/10)\n"
#define MULTICAST    "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)\n"
#define LEADING_ZERO "must not have leading 0s\n"
#define MAPPED       "must not be an IPv4-mapped IPv6 address\n"
#define LABEL                                                                                      \
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "   \
        "and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', "   \
        "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')\n"
#define SUBDOMAIN                                                                                  \
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' "  \
        "or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "      \
        "regex used for validation is "                                                            \
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')\n"

/* ---- addresses ---- */

#define SUBSET(ip) "{'subsets':[{'addresses':[{'ip':'" ip "'}]}]}"
#define IP(text)   "subsets[0].addresses[0].ip: Invalid value: \"" text "\": "
#define SLICE(type, address)                                                                       \
        "{'addressType':'" type "','endpoints':[{'addresses':['" address "']}]}"
#define ADDRESS(text) "endpoints[0].addresses[0]: Invalid value: \"" text "\": "
#define LIST(text)    "endpoints[0].addresses: Invalid value: \"" text "\": "

/* Also in a form that Kubernetes refuses by itself. */
static void test_an_address_of_a_special_range_is_refused(void **state) {
        static const struct rule_case cases[] = {
                {hfd_endpoints_validate, SUBSET("10.0.0.1"), NULL, NULL},
                {hfd_endpoints_validate, SUBSET("2001:DB8:0::1"), NULL, NULL},
                {hfd_endpoints_validate, SUBSET("128.0.0.1"), NULL, NULL},
                {hfd_endpoints_validate, SUBSET("224.0.1.1"), NULL, NULL},
                {hfd_endpoints_validate, SUBSET("ff05::2"), NULL, NULL},
                {hfd_endpoints_validate, SUBSET("fec0::1"), NULL, NULL},
                {hfd_endpoints_validate, SUBSET("::2"), NULL, NULL},
                {hfd_endpoints_validate, SUBSET("127.9.9.9"), NULL, IP("127.9.9.9") LOOPBACK},
                {hfd_endpoints_validate, SUBSET("::1"), NULL, IP("::1") LOOPBACK},
                {hfd_endpoints_validate, SUBSET("169.254.169.254"), NULL,
                 IP("169.254.169.254") LINK_LOCAL},
                {hfd_endpoints_validate, SUBSET("febf::1"), NULL, IP("febf::1") LINK_LOCAL},
                {hfd_endpoints_validate, SUBSET("224.0.0.1"), NULL, IP("224.0.0.1") MULTICAST},
                {hfd_endpoints_validate, SUBSET("ff02::1"), NULL, IP("ff02::1") MULTICAST},
                {hfd_endpoints_validate, SUBSET("ff12::1"), NULL, IP("ff12::1") MULTICAST},
                {hfd_endpoints_validate, SUBSET("0.0.0.0"), NULL,
                 IP("0.0.0.0") "may not be unspecified (0.0.0.0)\n"},
                {hfd_endpoints_validate, SUBSET("0::"), NULL,
                 IP("0::") "may not be unspecified (0::)\n"},
                {hfd_endpoints_validate, SUBSET("127.0.0.01"), NULL,
                 IP("127.0.0.01") LEADING_ZERO IP("127.0.0.01") LOOPBACK},
                {hfd_endpoints_validate, SUBSET("169.254.169.0254"), NULL,
                 IP("169.254.169.0254") LEADING_ZERO IP("169.254.169.0254") LINK_LOCAL},
                {hfd_endpoints_validate, SUBSET("00.0.0.0"), NULL,
                 IP("00.0.0.0") LEADING_ZERO IP("00.0.0.0") "may not be unspecified (00.0.0.0)\n"},
                {hfd_endpoints_validate, SUBSET("010.0.0.1"), NULL, IP("010.0.0.1") LEADING_ZERO},
                {hfd_endpoints_validate, SUBSET("::ffff:127.0.0.1"), NULL,
                 IP("::ffff:127.0.0.1") MAPPED IP("::ffff:127.0.0.1") LOOPBACK},
                {hfd_endpoints_validate, SUBSET("::ffff:a9fe:1"), NULL,
                 IP("::ffff:a9fe:1") MAPPED IP("::ffff:a9fe:1") LINK_LOCAL},
                {hfd_endpoints_validate, SUBSET("::ffff:0:0"), NULL,
                 IP("::ffff:0:0") MAPPED IP("::ffff:0:0") "may not be unspecified (::ffff:0:0)\n"},
                {hfd_endpoints_validate, SUBSET("x"), NULL, IP("x") NO_ADDRESS IP("x") NOT_IP},
                {hfd_endpoints_validate, SUBSET("::1%lo"), NULL,
                 IP("::1%lo") NO_ADDRESS IP("::1%lo") NOT_IP},
                {hfd_endpoints_validate, SUBSET(""), NULL, IP("") NO_ADDRESS IP("") NOT_IP},
        };

        CHECK(cases);
}

static void test_a_slice_has_addresses_of_its_type(void **state) {
        static const struct rule_case cases[] = {
                {hfd_endpoint_slice_validate, SLICE("IPv4", "10.0.0.1"), NULL, NULL},
                {hfd_endpoint_slice_validate, SLICE("IPv4", "x"), NULL, ADDRESS("x") NO_ADDRESS},
                {hfd_endpoint_slice_validate, SLICE("IPv4", "2001:DB8::1"), NULL,
                 LIST("2001:DB8::1") "must be an IPv4 address\n"},
                {hfd_endpoint_slice_validate, SLICE("IPv4", "::1"), NULL,
                 LIST("::1") "must be an IPv4 address\n" ADDRESS("::1") LOOPBACK},
                {hfd_endpoint_slice_validate, SLICE("IPv4", "64:ff9b::10.0.0.1"), NULL,
                 LIST("64:ff9b::10.0.0.1") "must be an IPv4 address\n"},
                {hfd_endpoint_slice_validate, SLICE("IPv4", "127.0.0.1"), NULL,
                 ADDRESS("127.0.0.1") LOOPBACK},
                /* Of a form that is refused the range does not matter here. */
                {hfd_endpoint_slice_validate, SLICE("IPv4", "127.0.0.01"), NULL,
                 ADDRESS("127.0.0.01") LEADING_ZERO},
                {hfd_endpoint_slice_validate, SLICE("IPv4", "::ffff:a00:1"), NULL,
                 ADDRESS("::ffff:a00:1") MAPPED},
                {hfd_endpoint_slice_validate, SLICE("IPv6", "2001:db8::1"), NULL, NULL},
                {hfd_endpoint_slice_validate, SLICE("IPv6", "x"), NULL, ADDRESS("x") NO_ADDRESS},
                {hfd_endpoint_slice_validate, SLICE("IPv6", "2001:DB8::1"), NULL,
                 ADDRESS("2001:DB8::1") "must be in canonical form (\"2001:db8::1\")\n"},
                {hfd_endpoint_slice_validate, SLICE("IPv6", "64:ff9b::10.0.0.1"), NULL,
                 ADDRESS("64:ff9b::10.0.0.1") "must be in canonical form (\"64:ff9b::a00:1\")\n"},
                {hfd_endpoint_slice_validate, SLICE("IPv6", "::ffff:127.0.0.1"), NULL,
                 ADDRESS("::ffff:127.0.0.1") MAPPED},
                {hfd_endpoint_slice_validate, SLICE("IPv6", "10.0.0.1"), NULL,
                 LIST("10.0.0.1") "must be an IPv6 address\n"},
                {hfd_endpoint_slice_validate, SLICE("IPv6", "169.254.0.1"), NULL,
                 LIST("169.254.0.1") "must be an IPv6 address\n" ADDRESS("169.254.0.1") LINK_LOCAL},
                {hfd_endpoint_slice_validate, SLICE("IPv6", "010.0.0.1"), NULL,
                 ADDRESS("010.0.0.1") LEADING_ZERO},
                {hfd_endpoint_slice_validate, SLICE("IPv6", "ff32::1"), NULL,
                 ADDRESS("ff32::1") MULTICAST},
                /* Nothing is known about the addresses of an unknown type. */
                {hfd_endpoint_slice_validate, SLICE("X", "127.0.0.1"), NULL,
                 "addressType: Unsupported value: \"X\": supported values: \"FQDN\", \"IPv4\", "
                 "\"IPv6\"\n"},
                {hfd_endpoint_slice_validate, SLICE("", "127.0.0.1"), NULL,
                 "addressType: Required value\n"},
        };

        CHECK(cases);
}

static void test_a_slice_of_domains_has_full_ones(void **state) {
#define L50  X16 X16 X16 "xx"
#define L250 L50 "." L50 "." L50 "." L50 ".xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
        static const struct rule_case cases[] = {
                {hfd_endpoint_slice_validate, SLICE("FQDN", "a.example"), NULL, NULL},
                {hfd_endpoint_slice_validate, SLICE("FQDN", "a.example."), NULL, NULL},
                {hfd_endpoint_slice_validate, SLICE("FQDN", "127.0.0.1"), NULL, NULL},
                {hfd_endpoint_slice_validate, SLICE("FQDN", L250 ".xx."), NULL, NULL},
                {hfd_endpoint_slice_validate, SLICE("FQDN", ""), NULL,
                 "endpoints[0].addresses[0]: Required value\n"},
                {hfd_endpoint_slice_validate, SLICE("FQDN", "."), NULL, ADDRESS("") SUBDOMAIN},
                {hfd_endpoint_slice_validate, SLICE("FQDN", "::1"), NULL, ADDRESS("::1") SUBDOMAIN},
                {hfd_endpoint_slice_validate, SLICE("FQDN", "a.b.."), NULL,
                 ADDRESS("a.b.") SUBDOMAIN},
                {hfd_endpoint_slice_validate, SLICE("FQDN", "example."), NULL,
                 ADDRESS("example") "should be a domain with at least two segments separated by "
                                    "dots\n"},
                {hfd_endpoint_slice_validate, SLICE("FQDN", "a." X64 ".b." X64 "y"), NULL,
                 ADDRESS(X64) "must be no more than 63 characters\n"},
                {hfd_endpoint_slice_validate, SLICE("FQDN", L250 ".xxx"), NULL,
                 ADDRESS(L250) "must be no more than 253 characters\n"},
                {hfd_endpoint_slice_validate, SLICE("FQDN", L250 ".xxx" X256), NULL,
                 ADDRESS(L250) "must be no more than 253 characters\n"},
                {hfd_endpoint_slice_validate, SLICE("FQDN", L250 ".xx-.-"), NULL,
                 ADDRESS(L250) "must be no more than 253 characters," SUBDOMAIN},
        };

        CHECK(cases);
}

/* ---- hints and ports ---- */

#define NO_NAME                                                                                    \
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and "  \
        "end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex "  \
        "used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')\n"
#define NO_VALUE                                                                                   \
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' "   \
        "or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "      \
        "'my_value',  or '12345', regex used for validation is "                                   \
        "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')\n"

static void test_an_endpoint_has_hints(void **state) {
#define HINTED(zones, nodes)                                                                       \
        "{'addressType':'IPv4','endpoints':[{'addresses':['10.0.0.1'],'hints':{'forZones':[" zones \
        "],'forNodes':[" nodes "]}}]}"
#define HINT(name)   "{'name':'" name "'}"
#define FOUR(prefix) HINT(prefix "1") "," HINT(prefix "2") "," HINT(prefix "3") "," HINT(prefix "4")
#define ZONE         "endpoints[0].hints.forZones"
#define NODE         "endpoints[0].hints.forNodes"
        static const struct rule_case cases[] = {
                {hfd_endpoint_slice_validate, HINTED(FOUR("A_") "," FOUR("b."), FOUR("a")), NULL,
                 NULL},
                {hfd_endpoint_slice_validate, HINTED(HINT(""), ""), NULL, NULL},
                {hfd_endpoint_slice_validate, HINTED(HINT("-") "," HINT("-"), HINT("n-")), NULL,
                 ZONE "[0].name: Invalid value: \"-\": " NO_VALUE ZONE
                      "[1].name: Duplicate value: \"-\"\n" ZONE
                      "[1].name: Invalid value: \"-\": " NO_VALUE NODE
                      "[0].name: Invalid value: \"n-\": " SUBDOMAIN},
                {hfd_endpoint_slice_validate, HINTED(HINT(X64 "-"), ""), NULL,
                 ZONE "[0].name: Invalid value: \"" X64 "-\": must be no more than 63 bytes\n" ZONE
                      "[0].name: Invalid value: \"" X64 "-\": " NO_VALUE},
                {hfd_endpoint_slice_validate,
                 HINTED("", HINT("a") "," HINT("b") "," HINT("a") "," HINT("b")), NULL,
                 NODE "[2].name: Duplicate value: \"a\"\n" NODE
                      "[3].name: Duplicate value: \"b\"\n"},
                {hfd_endpoint_slice_validate, HINTED("{},{}", "{}"), NULL,
                 ZONE "[1].name: Duplicate value: \"\"\n" NODE
                      "[0].name: Invalid value: \"\": " SUBDOMAIN},
                /* With too many zones no name is checked, nor are the nodes. */
                {hfd_endpoint_slice_validate,
                 HINTED(FOUR("-") "," FOUR("a") "," HINT("b"), HINT("-")), NULL,
                 ZONE ": Too many: 9: must have at most 8 items\n"},
                {hfd_endpoint_slice_validate,
                 HINTED(HINT("-"), FOUR("-") "," FOUR("a") "," HINT("b")), NULL,
                 ZONE "[0].name: Invalid value: \"-\": " NO_VALUE NODE
                      ": Too many: 9: must have at most 8 items\n"},
        };

        CHECK(cases);
}

static void test_a_port_has_a_protocol(void **state) {
#define PORTS(members)  "{'addressType':'IPv4','ports':[{" members "}]}"
#define SUBSET_PORTS(p) "{'subsets':[{'addresses':[{'ip':'10.0.0.1'}],'ports':[" p "]}]}"
        static const struct rule_case cases[] = {
                {hfd_endpoint_slice_validate,
                 PORTS("'name':'a','protocol':'UDP','appProtocol':'example.com/A_b'"), NULL, NULL},
                {hfd_endpoint_slice_validate, PORTS("'protocol':''"), NULL,
                 "ports[0].protocol: Unsupported value: \"\": supported values: \"SCTP\", "
                 "\"TCP\", \"UDP\"\n"},
                {hfd_endpoint_slice_validate, PORTS("'protocol':'TCP','appProtocol':''"), NULL,
                 "ports[0].appProtocol: Invalid value: \"\": name part must be non-empty\n"
                 "ports[0].appProtocol: Invalid value: \"\": " NO_NAME},
                {hfd_endpoint_slice_validate, PORTS("'protocol':'X','appProtocol':'/a'"), NULL,
                 "ports[0].protocol: Unsupported value: \"X\": supported values: \"SCTP\", "
                 "\"TCP\", \"UDP\"\n"
                 "ports[0].appProtocol: Invalid value: \"/a\": prefix part must be non-empty\n"},
                {hfd_endpoint_slice_validate, PORTS("'name':'a.b','protocol':'TCP'"), NULL,
                 "ports[0].name: Invalid value: \"a.b\": must not contain dots\n"},
                {hfd_endpoint_slice_validate, PORTS("'name':'.b','protocol':'TCP'"), NULL,
                 "ports[0].name: Invalid value: \".b\": " LABEL},
                {hfd_endpoint_slice_validate, PORTS("'name':'" X64 "','protocol':'TCP'"), NULL,
                 "ports[0].name: Invalid value: \"" X64 "\": must be no more than 63 characters\n"},
                {hfd_endpoints_validate,
                 SUBSET_PORTS("{'port':1,'protocol':'TCP','appProtocol':'kubernetes.io/h2c'}"),
                 NULL, NULL},
                {hfd_endpoints_validate, SUBSET_PORTS("{'port':1,'protocol':'','appProtocol':'-'}"),
                 NULL,
                 "subsets[0].ports[0].protocol: Required value\n"
                 "subsets[0].ports[0].appProtocol: Invalid value: \"-\": " NO_NAME},
                {hfd_service_validate,
                 "{'spec':{'type':'ClusterIP','sessionAffinity':'None','ports':[{'port':1,"
                 "'targetPort':1,'protocol':'TCP','appProtocol':''}]}}",
                 NULL,
                 "spec.ports[0].appProtocol: Invalid value: \"\": name part must be non-empty\n"
                 "spec.ports[0].appProtocol: Invalid value: \"\": " NO_NAME},
        };

        CHECK(cases);
}

/* ---- order, and what an update keeps ---- */

static void test_causes_have_the_order_of_kubernetes(void **state) {
        static const struct rule_case cases[] = {
                {hfd_endpoints_validate,
                 "{'subsets':[{'addresses':[{'ip':'127.0.0.01','hostname':'A','nodeName':'-'}],"
                 "'notReadyAddresses':[{'ip':'::1','nodeName':'n'}],'ports':[{'port':0}]}]}",
                 NULL,
                 IP("127.0.0.01") LEADING_ZERO
                 "subsets[0].addresses[0].hostname: Invalid value: \"A\": " LABEL
                 "subsets[0].addresses[0].nodeName: Invalid value: \"-\": " SUBDOMAIN IP(
                         "127.0.0.01") LOOPBACK
                 "subsets[0].notReadyAddresses[0].ip: Invalid value: \"::1\": " LOOPBACK
                 "subsets[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, "
                 "inclusive\n"
                 "subsets[0].ports[0].protocol: Required value\n"},
                {hfd_endpoint_slice_validate,
                 "{'addressType':'IPv4','endpoints':[{'addresses':[],'nodeName':'-','hostname':"
                 "'A'}],'ports':[{'name':'A','protocol':'TCP'}]}",
                 SLICE("IPv6", "::1"),
                 "ports[0].name: Invalid value: \"A\": " LABEL
                 "endpoints[0].addresses: Required value: must contain at least 1 address\n"
                 "endpoints[0].nodeName: Invalid value: \"-\": " SUBDOMAIN
                 "endpoints[0].hostname: Invalid value: \"A\": " LABEL
                 "addressType: Invalid value: \"IPv4\": field is immutable\n"},
        };

        CHECK(cases);
}

static void test_endpoints_that_are_kept_are_not_refused(void **state) {
#define OLD(more) "{'addressType':'IPv4','endpoints':[{'addresses':['127.0.0.1']" more "}]}"
        static const struct rule_case cases[] = {
                {hfd_endpoint_slice_validate, OLD(""), OLD(""), NULL},
                /* A typed client leaves out what is zero. */
                {hfd_endpoint_slice_validate, OLD(",'targetRef':{}"),
                 OLD(",'targetRef':{'kind':''}"), NULL},
                {hfd_endpoint_slice_validate, OLD(",'zone':'z'"), OLD(""),
                 ADDRESS("127.0.0.1") LOOPBACK},
                {hfd_endpoint_slice_validate, SLICE("IPv6", "127.0.0.1"), OLD(""),
                 "addressType: Invalid value: \"IPv6\": field is immutable\n"},
                {hfd_endpoints_validate, SUBSET("127.0.0.1"), SUBSET("127.0.0.1"), NULL},
                {hfd_endpoints_validate,
                 "{'subsets':[{'addresses':[{'ip':'127.0.0.1','hostname':''}]}]}",
                 SUBSET("127.0.0.1"), NULL},
                {hfd_endpoints_validate, SUBSET("127.0.0.1"), SUBSET("127.0.0.2"),
                 IP("127.0.0.1") LOOPBACK},
        };

        CHECK(cases);
}

/* ---- what was stored in v1beta1 ---- */

static void test_clients_do_not_write_the_topology(void **state) {
#define ENDPOINT(more) "{'addresses':['10.0.0.1'],'conditions':{}" more "}"
#define ON(node)       ",'deprecatedTopology':{'kubernetes.io/hostname':'" node "','zone':'z'}"
        static const struct {
                const char *old, *sent, *kept; /* lists of endpoints; old NULL: a create */
        } cases[] = {
                {NULL, ENDPOINT(",'zone':'a'"), ENDPOINT(",'zone':'a'")},
                {NULL, ENDPOINT(ON("n")) "," ENDPOINT(""), ENDPOINT("") "," ENDPOINT("")},
                {ENDPOINT(""), ENDPOINT(ON("n")), ENDPOINT("")},
                {ENDPOINT(ON("n")), ENDPOINT(ON("n")), ENDPOINT(ON("n"))},
                {ENDPOINT(ON("n")), ENDPOINT(""), ENDPOINT("")},
                /* An endpoint changes, and the others keep their nodes. */
                {ENDPOINT(ON("n")), ENDPOINT(ON("n")) "," ENDPOINT(ON("m")),
                 ENDPOINT(",'nodeName':'n'") "," ENDPOINT("")},
                {ENDPOINT(ON("n")), ENDPOINT(ON("n") ",'nodeName':'m'"),
                 ENDPOINT(",'nodeName':'m'")},
                {ENDPOINT(ON("-")), ENDPOINT(ON("-")) "," ENDPOINT(""),
                 ENDPOINT("") "," ENDPOINT("")},
        };
        char text[600];

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__json *old = NULL, *sent, *kept;
                (void)snprintf(text, sizeof text, "{'endpoints':[%s]}",
                               cases[i].old ? cases[i].old : "");
                if (cases[i].old)
                        old = parse_quoted_json(text);
                (void)snprintf(text, sizeof text, "{'endpoints':[%s]}", cases[i].sent);
                sent = parse_quoted_json(text);
                (void)snprintf(text, sizeof text, "{'endpoints':[%s]}", cases[i].kept);
                kept = parse_quoted_json(text);
                for (int k = 0; k < 2; k++) {
                        assert_int_equal(hfd_endpoint_slice_prepare(sent, old), 0);
                        if (!hf__json_equal(sent, kept))
                                fail_msg("%s", cases[i].sent);
                }
                hf__json_free(old);
                hf__json_free(sent);
                hf__json_free(kept);
        }
}

static void test_a_stored_topology_stays(void **state) {
        struct hf__json *stored = parse_quoted_json("{'endpoints':[" ENDPOINT(ON("n")) "]}"),
                        *was = hf__json_dup(stored);

        assert_int_equal(hfd_endpoint_slice_prepare(stored, stored), 0);
        assert_true(hf__json_equal(stored, was));
        hf__json_free(stored);
        hf__json_free(was);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_an_address_of_a_special_range_is_refused),
                cmocka_unit_test(test_a_slice_has_addresses_of_its_type),
                cmocka_unit_test(test_a_slice_of_domains_has_full_ones),
                cmocka_unit_test(test_an_endpoint_has_hints),
                cmocka_unit_test(test_a_port_has_a_protocol),
                cmocka_unit_test(test_causes_have_the_order_of_kubernetes),
                cmocka_unit_test(test_endpoints_that_are_kept_are_not_refused),
                cmocka_unit_test(test_clients_do_not_write_the_topology),
                cmocka_unit_test(test_a_stored_topology_stays),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
