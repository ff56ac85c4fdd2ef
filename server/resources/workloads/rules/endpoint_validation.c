/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of Endpoints and EndpointSlices.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. The elements of a list of endpoints or ports that is too long
 * are not checked any more. A part that an update does not change is not checked: it may have been
 * stored before the rules existed.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/meta_validation.h"
#include "server/resources/validation/names.h"
#include "server/resources/workloads/addresses.h"
#include "server/resources/workloads/workloads.h"

/* Kubernetes' limits for one EndpointSlice. */
#define ENDPOINTS_MAX 1000
#define ADDRESSES_MAX 100 /* of one endpoint */
#define PORTS_MAX     20000
#define HINTS_MAX     8 /* zones of one endpoint; and as many nodes */

/* ---- endpoints of slices ---- */

/* A domain of two labels or more, and perhaps a dot at its end. */
static void validate_domain(const char *text, const char *field, struct hfd_causes *causes) {
        char name[HFD_DNS_SUBDOMAIN_MAX + 2], *rest; /* the cause shows a longer one cut */
        size_t n = strlen(text);

        if (n == 0) {
                hfd_cause_required(causes, field, "");
                return;
        }
        if (text[n - 1] == '.')
                n--;
        (void)snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name), text);
        if (!hfd_is_dns_subdomain(name)) {
                hfd_subdomain_text_validate_once(text, n, field, name, causes);
                return;
        }
        if (!strchr(name, '.')) {
                hfd_cause_invalid_text(causes, field, name,
                                       "should be a domain with at least two segments separated by "
                                       "dots");
                return;
        }
        for (char *label = strtok_r(name, ".", &rest); label; label = strtok_r(NULL, ".", &rest))
                if (strlen(label) > HFD_DNS_LABEL_MAX) {
                        hfd_cause_invalid_text(causes, field, label, hfd_dns_label_length_rule);
                        return;
                }
}

/* type: the addressType of the slice. An unknown one has a cause of its own, and then nothing is
 * known about its addresses. list: the path of the list. i: the index in it. As in Kubernetes, the
 * cause of an address of the other family has the path of the list. */
static void validate_address(const char *address, const char *type, const char *list, size_t i,
                             struct hfd_causes *causes) {
        bool is_ipv6 = strcmp(type, "IPv6") == 0;
        char path[HFD_FIELD_PATH_MAX];
        size_t n = causes->n;

        hfd_field_index(path, list, i);
        if (strcmp(type, "FQDN") == 0)
                validate_domain(address, path, causes);
        if (!is_ipv6 && strcmp(type, "IPv4") != 0)
                return;
        if (is_ipv6)
                hfd_address_validate_canonical(address, path, causes);
        else
                hfd_address_validate(address, path, causes);
        if (causes->n > n)
                return;
        if (is_ipv6 != (strchr(address, ':') != NULL))
                hfd_cause_invalid_text(causes, list, address,
                                       is_ipv6 ? "must be an IPv6 address"
                                               : "must be an IPv4 address");
        hfd_address_refuse_special(address, path, causes);
}

static void validate_zone(const char *name, const char *field, struct hfd_causes *causes) {
        if (strlen(name) > HFD_LABEL_VALUE_MAX)
                hfd_cause_invalid_text(causes, field, name, "must be no more than 63 bytes");
        if (*name && !hfd_is_name_text(name))
                hfd_cause_invalid_text(causes, field, name, hfd_label_value_rule);
}

/* An absent name counts as "". */
static bool is_repeated(const struct hf__json *first, const struct hf__json *hint) {
        while (first != hint && strcmp(hfd_text_of(first, "name"), hfd_text_of(hint, "name")) != 0)
                first = hf__json_next(first);
        return first != hint;
}

/* The zones or the nodes that should use an endpoint. validate: checks a name. Returns false if
 * there are too many. */
static bool validate_hint_list(const struct hf__json *hints, const char *field, const char *list,
                               void (*validate)(const char *name, const char *field,
                                                struct hfd_causes *causes),
                               struct hfd_causes *causes) {
        const struct hf__json *first = hf__json_first(hf__json_get(hints, list));
        size_t n = hf__json_count(hf__json_get(hints, list)), i = 0;
        char path[HFD_FIELD_PATH_MAX], element[HFD_FIELD_PATH_MAX], member[HFD_FIELD_PATH_MAX];

        hfd_field_path(path, field, list);
        if (n > HINTS_MAX) {
                hfd_cause_too_many(causes, path, n, HINTS_MAX);
                return false;
        }
        for (const struct hf__json *m = first; m; m = hf__json_next(m)) {
                hfd_field_path(member, hfd_field_index(element, path, i++), "name");
                if (is_repeated(first, m))
                        hfd_cause_duplicate_text(causes, member, hfd_text_of(m, "name"));
                validate(hfd_text_of(m, "name"), member, causes);
        }
        return true;
}

static void validate_endpoint(const struct hf__json *endpoint, const char *type, const char *field,
                              struct hfd_causes *causes) {
        const struct hf__json *addresses = hf__json_get(endpoint, "addresses"),
                              *hints = hf__json_get(endpoint, "hints");
        size_t n = hf__json_count(addresses), i = 0;
        char path[HFD_FIELD_PATH_MAX];

        hfd_field_path(path, field, "addresses");
        if (n == 0)
                hfd_cause_required(causes, path, "must contain at least 1 address");
        else if (n > ADDRESSES_MAX)
                hfd_cause_too_many(causes, path, n, ADDRESSES_MAX);
        for (const struct hf__json *m = hf__json_first(addresses); m; m = hf__json_next(m))
                validate_address(hf__json_text_or_empty(m), type, path, i++, causes);
        if (hf__json_get(endpoint, "nodeName"))
                hfd_subdomain_validate(hfd_text_of(endpoint, "nodeName"),
                                       hfd_field_path(path, field, "nodeName"), causes);
        if (hf__json_get(endpoint, "hostname"))
                hfd_dns_label_validate(hfd_text_of(endpoint, "hostname"),
                                       hfd_field_path(path, field, "hostname"), causes);
        hfd_field_path(path, field, "hints");
        /* As in Kubernetes, with too many zones the nodes are not checked. */
        if (validate_hint_list(hints, path, "forZones", validate_zone, causes))
                (void)validate_hint_list(hints, path, "forNodes", hfd_subdomain_validate, causes);
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

/* ---- ports ---- */

static const char *const protocols[] = {"SCTP", "TCP", "UDP", NULL};

/* field: the path of the port. */
static void validate_app_protocol(const struct hf__json *port, const char *field,
                                  struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];

        if (hf__json_get(port, "appProtocol"))
                hfd_qualified_name_validate(hfd_text_of(port, "appProtocol"),
                                            hfd_field_path(path, field, "appProtocol"), causes);
}

/* names: an index of the names of all ports. The names are unique; "" is a name, too, so at most
 * one port has no name. */
static void validate_port(const struct hf__json *port, const struct hf__json_index *names,
                          size_t position, struct hfd_causes *causes) {
        const char *name = hfd_text_of(port, "name");
        char path[HFD_FIELD_PATH_MAX], member[HFD_FIELD_PATH_MAX];

        hfd_field_path(member, hfd_field_index(path, "ports", position), "name");
        if (*name)
                hfd_dns_label_validate(name, member, causes);
        if (hfd_is_repeated(names, name, position))
                hfd_cause_duplicate_text(causes, member, name);
        hfd_field_path(member, path, "protocol");
        if (hf__json_get(port, "protocol"))
                hfd_refuse_others(hfd_text_of(port, "protocol"), member, protocols, causes);
        else
                hfd_cause_required(causes, member, "");
        validate_app_protocol(port, path, causes);
}

/* The ports of a slice. */
static void validate_ports(const struct hf__json *ports, struct hfd_causes *causes) {
        size_t n = hf__json_count(ports), i = 0;
        struct hf__json_index names;

        if (n > PORTS_MAX) {
                hfd_cause_too_many(causes, "ports", n, PORTS_MAX);
                return;
        }
        if (hfd_causes_check(causes, hf__json_index_init(&names, ports, "name")))
                for (const struct hf__json *m = hf__json_first(ports); m; m = hf__json_next(m))
                        validate_port(m, &names, i++, causes);
        hf__json_index_done(&names);
}

/* ---- EndpointSlices ---- */

static void validate_address_type(const char *type, struct hfd_causes *causes) {
        static const char field[] = "addressType";

        if (!*type)
                hfd_cause_required(causes, field, "");
        else if (strcmp(type, "IPv4") != 0 && strcmp(type, "IPv6") != 0 &&
                 strcmp(type, "FQDN") != 0)
                hfd_cause_unsupported_text(causes, field, type, "\"FQDN\", \"IPv4\", \"IPv6\"");
}

/* Whether an update leaves the member as it is. */
static bool is_kept(const struct hfd_schema *schema, const struct hf__json *object,
                    const struct hf__json *old, const char *member, struct hfd_causes *causes) {
        return old && hfd_causes_equal_member(causes, schema, object, old, member);
}

void hfd_endpoint_slice_validate(const struct hf__json *object, const struct hf__json *old,
                                 struct hfd_causes *causes) {
        static const char field[] = "addressType";
        static const struct hfd_schema *const schema = &hfd_endpoint_slice_schema;
        const char *type = hfd_text_of(object, field);
        bool same_type = is_kept(schema, object, old, field, causes);

        if (!same_type)
                validate_address_type(type, causes);
        if (!is_kept(schema, object, old, "ports", causes))
                validate_ports(hf__json_get(object, "ports"), causes);
        if (!is_kept(schema, object, old, "endpoints", causes))
                validate_endpoints(hf__json_get(object, "endpoints"), type, causes);
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
                hfd_address_validate(ip, hfd_field_path(member, path, "ip"), causes);
                if (*hfd_text_of(m, "hostname"))
                        hfd_label_name_validate(m, path, "hostname", causes);
                if (hf__json_get(m, "nodeName"))
                        hfd_subdomain_validate(hfd_text_of(m, "nodeName"),
                                               hfd_field_path(member, path, "nodeName"), causes);
                hfd_address_refuse_special(ip, hfd_field_path(member, path, "ip"), causes);
        }
}

/* Ports need names if there are several, so that clients can tell them apart. */
static void validate_subset_ports(const struct hf__json *ports, const char *field,
                                  struct hfd_causes *causes) {
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
                validate_app_protocol(m, path, causes);
        }
}

void hfd_endpoints_validate(const struct hf__json *object, const struct hf__json *old,
                            struct hfd_causes *causes) {
        const struct hf__json *subsets = hf__json_get(object, "subsets");
        char path[HFD_FIELD_PATH_MAX], ports[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        if (is_kept(&hfd_endpoints_schema, object, old, "subsets", causes))
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
