/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of Endpoints and EndpointSlices.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. The elements of a list of endpoints or ports that is too long
 * are not checked any more. A part that an update does not change is not checked: it may have been
 * stored before the rules existed.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/custom/schema/formats/formats.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/names.h"
#include "server/resources/workloads/workloads.h"

/* Kubernetes' limits for one EndpointSlice. */
#define ENDPOINTS_MAX 1000
#define ADDRESSES_MAX 100 /* of one endpoint */
#define PORTS_MAX     20000

/* ---- addresses ---- */

/* Ranges of addresses that endpoints must not have: traffic to them would stay on the node or on
 * its link, or go to a whole group of hosts. The prefixes of ::1/128 and 224.0.0.0/24 are longer
 * than two bytes, so refuse_special checks these ranges itself. */
static const struct {
        int family;
        unsigned bits; /* length of the prefix: 8 to 16 */
        unsigned char begin[2];
        const char *why;
} special[] = {{AF_INET, 8, {127}, "may not be in the loopback range (127.0.0.0/8, ::1/128)"},
               {AF_INET,
                16,
                {169, 254},
                "may not be in the link-local range (169.254.0.0/16, fe80::/10)"},
               {AF_INET6,
                10,
                {0xfe, 0x80},
                "may not be in the link-local range (169.254.0.0/16, fe80::/10)"},
               {AF_INET6,
                16,
                {0xff, 0x02},
                "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"}};

/* Whether the first `bits` bits (8 to 16) of both are equal. */
static bool is_in(const unsigned char *address, const unsigned char *begin, unsigned bits) {
        unsigned char mask = (unsigned char)(0xff << (16 - bits) % 8);

        return bits == 8 ? address[0] == begin[0]
                         : address[0] == begin[0] && ((address[1] ^ begin[1]) & mask) == 0;
}

/* Refuses an address that no endpoint can have. text: an IPv4 or IPv6 address. One that inet_pton
 * does not parse is skipped: an IPv4 address may have leading zeros in old objects. */
static void refuse_special(const char *text, const char *field, struct hfd_causes *causes) {
        static const unsigned char none[16], loopback[16] = {[15] = 1};
        unsigned char address[16] = {0};
        int family = strchr(text, ':') ? AF_INET6 : AF_INET;
        char why[80];

        if (inet_pton(family, text, address) != 1)
                return;
        if (memcmp(address, none, sizeof none) == 0) {
                (void)snprintf(why, sizeof why, "may not be unspecified (%s)", text);
                hfd_cause_invalid_text(causes, field, text, why);
        }
        if (family == AF_INET6 && memcmp(address, loopback, sizeof loopback) == 0)
                hfd_cause_invalid_text(causes, field, text, special[0].why);
        if (family == AF_INET && address[0] == 224 && address[1] == 0 && address[2] == 0)
                hfd_cause_invalid_text(causes, field, text, special[3].why);
        for (size_t i = 0; i < sizeof special / sizeof special[0]; i++)
                if (special[i].family == family &&
                    is_in(address, special[i].begin, special[i].bits))
                        hfd_cause_invalid_text(causes, field, text, special[i].why);
}

/* ---- endpoints of slices ---- */

/* type: the addressType of the slice. An unknown type has got a cause of its own. */
static void validate_address(const char *address, const char *type, const char *field,
                             struct hfd_causes *causes) {
        if (strcmp(type, "IPv4") == 0 && !hfd_is_ipv4(address))
                hfd_cause_invalid_text(causes, field, address, "must be a valid IPv4 address");
        else if (strcmp(type, "IPv6") == 0 && !hfd_is_ipv6(address))
                hfd_cause_invalid_text(causes, field, address, "must be a valid IPv6 address");
        else if (strcmp(type, "FQDN") != 0)
                refuse_special(address, field, causes);
}

static void validate_endpoint(const struct hf__json *endpoint, const char *type, const char *field,
                              struct hfd_causes *causes) {
        const struct hf__json *addresses = hf__json_get(endpoint, "addresses");
        size_t n = hf__json_count(addresses), i = 0;
        char path[HFD_FIELD_PATH_MAX], element[HFD_FIELD_PATH_MAX];

        hfd_field_path(path, field, "addresses");
        if (n == 0)
                hfd_cause_required(causes, path, "must contain at least 1 address");
        else if (n > ADDRESSES_MAX)
                hfd_cause_too_many(causes, path, n, ADDRESSES_MAX);
        for (const struct hf__json *m = hf__json_first(addresses); m; m = hf__json_next(m))
                validate_address(hf__json_is_string(m) ? hf__json_text(m) : "", type,
                                 hfd_field_index(element, path, i++), causes);
        if (hf__json_get(endpoint, "nodeName"))
                hfd_subdomain_validate(hfd_text_of(endpoint, "nodeName"),
                                       hfd_field_path(path, field, "nodeName"), causes);
        if (hf__json_get(endpoint, "hostname") &&
            !hfd_is_dns_label(hfd_text_of(endpoint, "hostname")))
                hfd_cause_invalid_text(causes, hfd_field_path(path, field, "hostname"),
                                       hfd_text_of(endpoint, "hostname"), hfd_dns_label_rule);
}

static void validate_endpoints(const struct hf__json *endpoints, const char *type,
                               struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];
        size_t n = hf__json_count(endpoints), i = 0;

        if (n > ENDPOINTS_MAX) {
                hfd_cause_too_many(causes, "endpoints", n, ENDPOINTS_MAX);
                return;
        }
        for (const struct hf__json *m = hf__json_first(endpoints); m; m = hf__json_next(m))
                validate_endpoint(m, type, hfd_field_index(path, "endpoints", i++), causes);
}

/* ---- ports of slices ---- */

/* The names of ports are unique; "" is a name, too, so at most one port has no name. */
static void validate_ports(const struct hf__json *ports, struct hfd_causes *causes) {
        static const char *const protocols[] = {"SCTP", "TCP", "UDP", NULL};
        char path[HFD_FIELD_PATH_MAX], member[HFD_FIELD_PATH_MAX];
        size_t n = hf__json_count(ports), i = 0;
        struct hf__json_index names;

        if (n > PORTS_MAX) {
                hfd_cause_too_many(causes, "ports", n, PORTS_MAX);
                return;
        }
        if (hfd_causes_check(causes, hf__json_index_init(&names, ports, "name")))
                for (const struct hf__json *m = hf__json_first(ports); m; m = hf__json_next(m)) {
                        const char *name = hfd_text_of(m, "name");
                        const struct hf__json_index_entry *first =
                                hf__json_index_find(&names, name);
                        hfd_field_index(path, "ports", i);
                        if (*name && !hfd_is_dns_label(name))
                                hfd_cause_invalid_text(causes, hfd_field_path(member, path, "name"),
                                                       name, hfd_dns_label_rule);
                        if (first && first->position < i)
                                hfd_cause_duplicate_text(causes,
                                                         hfd_field_path(member, path, "name"),
                                                         name);
                        hfd_require_one_of(m, path, "protocol", protocols, causes);
                        i++;
                }
        hf__json_index_done(&names);
}

static void validate_address_type(const char *type, struct hfd_causes *causes) {
        static const char field[] = "addressType";

        if (!*type)
                hfd_cause_required(causes, field, "");
        else if (strcmp(type, "IPv4") != 0 && strcmp(type, "IPv6") != 0 &&
                 strcmp(type, "FQDN") != 0)
                hfd_cause_unsupported_text(causes, field, type, "\"FQDN\", \"IPv4\", \"IPv6\"");
}

/* Whether an update leaves the member as it is. */
static bool is_kept(const struct hf__json *object, const struct hf__json *old, const char *member,
                    struct hfd_causes *causes) {
        return old &&
               hfd_causes_equal(causes, hf__json_get(object, member), hf__json_get(old, member));
}

/* If the addressType changes, the endpoints are checked again, because their rules depend on it. */
void hfd_endpoint_slice_validate(const struct hf__json *object, const struct hf__json *old,
                                 struct hfd_causes *causes) {
        static const char field[] = "addressType";
        const char *type = hfd_text_of(object, field);
        bool same_type = is_kept(object, old, field, causes);

        if (!same_type)
                validate_address_type(type, causes);
        if (!same_type || !is_kept(object, old, "endpoints", causes))
                validate_endpoints(hf__json_get(object, "endpoints"), type, causes);
        if (!is_kept(object, old, "ports", causes))
                validate_ports(hf__json_get(object, "ports"), causes);
        if (old && !same_type)
                hfd_cause_invalid_text(causes, field, type, "field is immutable");
}

/* ---- Endpoints ---- */

/* list: "addresses" or "notReadyAddresses". field: the path of the subset. */
static void validate_addresses(const struct hf__json *subset, const char *field, const char *list,
                               struct hfd_causes *causes) {
        char addresses[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX], member[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        hfd_field_path(addresses, field, list);
        for (const struct hf__json *m = hf__json_first(hf__json_get(subset, list)); m;
             m = hf__json_next(m)) {
                const char *ip = hfd_text_of(m, "ip");
                hfd_field_index(path, addresses, i++);
                hfd_field_path(member, path, "ip");
                if (!hfd_is_ipv4(ip) && !hfd_is_ipv6(ip))
                        hfd_cause_invalid_text(causes, member, ip,
                                               "must be a valid IP address, (e.g. 10.9.8.7 or "
                                               "2001:db8::ffff)");
                else
                        refuse_special(ip, member, causes);
                if (*hfd_text_of(m, "hostname"))
                        hfd_label_name_validate(m, path, "hostname", causes);
                if (hf__json_get(m, "nodeName"))
                        hfd_subdomain_validate(hfd_text_of(m, "nodeName"),
                                               hfd_field_path(member, path, "nodeName"), causes);
        }
}

/* Ports need names if there are several, so that clients can tell them apart. */
static void validate_subset_ports(const struct hf__json *ports, const char *field,
                                  struct hfd_causes *causes) {
        static const char *const protocols[] = {"SCTP", "TCP", "UDP", NULL};
        char path[HFD_FIELD_PATH_MAX], member[HFD_FIELD_PATH_MAX];
        bool several = hf__json_first(ports) && hf__json_next(hf__json_first(ports));
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(ports); m; m = hf__json_next(m)) {
                hfd_field_index(path, field, i++);
                if (several || *hfd_text_of(m, "name"))
                        hfd_label_name_validate(m, path, "name", causes);
                hfd_port_validate(hf__json_get(m, "port"), hfd_field_path(member, path, "port"),
                                  causes);
                hfd_require_one_of(m, path, "protocol", protocols, causes);
        }
}

void hfd_endpoints_validate(const struct hf__json *object, const struct hf__json *old,
                            struct hfd_causes *causes) {
        const struct hf__json *subsets = hf__json_get(object, "subsets");
        char path[HFD_FIELD_PATH_MAX], ports[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        if (old && hfd_causes_equal(causes, subsets, hf__json_get(old, "subsets")))
                return;
        for (const struct hf__json *m = hf__json_first(subsets); m; m = hf__json_next(m)) {
                hfd_field_index(path, "subsets", i++);
                if (!hf__json_first(hf__json_get(m, "addresses")) &&
                    !hf__json_first(hf__json_get(m, "notReadyAddresses")))
                        hfd_cause_required(causes, path,
                                           "must specify `addresses` or `notReadyAddresses`");
                validate_addresses(m, path, "addresses", causes);
                validate_addresses(m, path, "notReadyAddresses", causes);
                validate_subset_ports(hf__json_get(m, "ports"),
                                      hfd_field_path(ports, path, "ports"), causes);
        }
}
