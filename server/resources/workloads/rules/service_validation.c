/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of Services.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. An update that does not change the spec is not checked
 * (hfd_spec_is_kept). Repeated ports are found with a set of bits and repeated names with an index,
 * never by comparing all ports with each other: clients choose how many a Service has.
 *
 * Addresses and ranges (clusterIPs, externalIPs, loadBalancerSourceRanges) are not parsed: nothing
 * here allocates them or routes to them.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/meta_validation.h"
#include "server/resources/validation/names.h"
#include "server/resources/workloads/workloads.h"

#define PORTS 65536 /* numbers of ports, with 0 */

static const char *const protocols[] = {"SCTP", "TCP", "UDP", NULL};

static bool is_type(const struct hf__json *spec, const char *type) {
        return hf__json_has_text(spec, "type", type);
}

/* Whether the Service has no address of its own: its only clusterIP is "None". */
static bool is_headless(const struct hf__json *spec) {
        const struct hf__json *list = hf__json_get(spec, "clusterIPs"),
                              *first = hf__json_first(list);

        return first && !hf__json_next(first) && hf__json_is_string(first) &&
               strcmp(hf__json_text(first), "None") == 0;
}

/* ---- ports ---- */

/* requires_name: the Service has several ports, so that clients tell them apart by name. names: an
 * index of the names of all ports; position: the index of this port, to find an earlier one. */
static void validate_port(const struct hf__json *port, const char *field, bool requires_name,
                          const struct hf__json_index *names, size_t position,
                          struct hfd_causes *causes) {
        const char *name = hfd_text_of(port, "name");
        char path[HFD_FIELD_PATH_MAX];

        if (*name || requires_name)
                hfd_label_name_validate(port, field, "name", causes);
        const struct hf__json_index_entry *first = hf__json_index_find(names, name);
        if (*name && first && first->position < position)
                hfd_cause_duplicate_text(causes, hfd_field_path(path, field, "name"), name);
        hfd_port_validate(hf__json_get(port, "port"), hfd_field_path(path, field, "port"), causes);
        hfd_require_one_of(port, field, "protocol", protocols, causes);
        hfd_port_validate(hf__json_get(port, "targetPort"),
                          hfd_field_path(path, field, "targetPort"), causes);
        if (hf__json_get(port, "appProtocol"))
                hfd_qualified_name_validate(hfd_text_of(port, "appProtocol"),
                                            hfd_field_path(path, field, "appProtocol"), causes);
}

/*
 * Whether an earlier port has the same protocol and number, and notes this one. member: "port" or
 * "nodePort". seen: PORTS bits for each of the three protocols. What has no number in the range of
 * ports, such as a port without a nodePort, or an unknown protocol, does not count as repeated.
 */
static bool is_repeated(unsigned char *seen, const struct hf__json *port, const char *member) {
        const char *protocol = hfd_text_of(port, "protocol");
        int64_t number = 0;
        size_t i = 0;

        (void)hf__json_integer(hf__json_get(port, member), &number);
        while (protocols[i] && strcmp(protocols[i], protocol) != 0)
                i++;
        if (!protocols[i] || number < 1 || number >= PORTS)
                return false;
        size_t bit = i * PORTS + (size_t)number;
        bool repeated = seen[bit / 8] & (1U << (bit % 8));
        seen[bit / 8] |= (unsigned char)(1U << (bit % 8));
        return repeated;
}

/* "Duplicate value" for each port that repeats an earlier one. Kubernetes shows a repeated nodePort
 * as its number, and a repeated port as its internal Go type with the compared members only. */
static void refuse_repeated(const struct hf__json *ports, const char *member,
                            struct hfd_causes *causes) {
        unsigned char *seen = calloc(3 * PORTS / 8, 1);
        char path[HFD_FIELD_PATH_MAX], field[HFD_FIELD_PATH_MAX], shown[200];
        bool of_node = strcmp(member, "nodePort") == 0;
        size_t i = 0;

        if (!seen)
                hfd_causes_no_memory(causes);
        for (const struct hf__json *m = hf__json_first(ports); m && seen; m = hf__json_next(m)) {
                int64_t number = 0;
                hfd_field_index(path, "spec.ports", i++);
                if (!is_repeated(seen, m, member))
                        continue;
                (void)hf__json_integer(hf__json_get(m, member), &number);
                if (of_node)
                        (void)snprintf(shown, sizeof shown, "%" PRId64, number);
                else
                        (void)snprintf(shown, sizeof shown,
                                       "{\"Name\":\"\",\"Protocol\":\"%.4s\",\"AppProtocol\":null,"
                                       "\"Port\":%" PRId64 ",\"TargetPort\":0,\"NodePort\":0}",
                                       hfd_text_of(m, "protocol"), number);
                hfd_cause_duplicate(causes,
                                    of_node ? hfd_field_path(field, path, "nodePort") : path,
                                    shown);
        }
        free(seen);
}

static void validate_ports(const struct hf__json *spec, struct hfd_causes *causes) {
        const struct hf__json *ports = hf__json_get(spec, "ports");
        bool requires_name = hf__json_first(ports) && hf__json_next(hf__json_first(ports));
        struct hf__json_index names;
        char path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        if (hfd_causes_check(causes, hf__json_index_init(&names, ports, "name")))
                for (const struct hf__json *m = hf__json_first(ports); m; m = hf__json_next(m)) {
                        hfd_field_index(path, "spec.ports", i);
                        validate_port(m, path, requires_name, &names, i++, causes);
                }
        hf__json_index_done(&names);
}

/* A Service of type ClusterIP cannot be reached at ports of the nodes. Kubernetes gives the other
 * types one of a configured range, and ignores a nodePort of an ExternalName service. Here each
 * port of a node is in the range. As in Kubernetes, a number that the Service had before is not
 * compared with the range. old: the old spec; NULL = none. */
static void validate_node_ports(const struct hf__json *spec, const struct hf__json *old,
                                struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX], field[HFD_FIELD_PATH_MAX];
        struct hfd_node_ports had;
        size_t i = 0;
        int64_t number;

        if (!hfd_causes_check(causes, hfd_node_ports_init(&had, old)))
                return;
        for (const struct hf__json *m = hf__json_first(hf__json_get(spec, "ports")); m;
             m = hf__json_next(m)) {
                hfd_field_index(path, "spec.ports", i++);
                hfd_field_path(field, path, "nodePort");
                if (!hf__json_i64(m, "nodePort", &number) || number == 0)
                        continue;
                if (is_type(spec, "ClusterIP"))
                        hfd_cause_forbidden(causes, field,
                                            "may not be used when `type` is 'ClusterIP'");
                else if ((is_type(spec, "NodePort") || is_type(spec, "LoadBalancer")) &&
                         !hfd_node_ports_have(&had, number))
                        hfd_port_validate(hf__json_get(m, "nodePort"), field, causes);
        }
        hfd_node_ports_done(&had);
}

/* ---- the type ---- */

/* An ExternalName service is a CNAME in the DNS: it has a name, which may end with a dot, and no
 * addresses. */
static void validate_external_name(const struct hf__json *spec, struct hfd_causes *causes) {
        static const char *const forbidden[] = {"clusterIPs", "ipFamilies", "ipFamilyPolicy"};
        const char *name = hfd_text_of(spec, "externalName");
        char path[HFD_FIELD_PATH_MAX], cname[HFD_DNS_SUBDOMAIN_MAX + 2];
        size_t n = strlen(name);

        for (size_t i = 0; i < sizeof forbidden / sizeof forbidden[0]; i++)
                if (hf__json_get(spec, forbidden[i]))
                        hfd_cause_forbidden(causes, hfd_field_path(path, "spec", forbidden[i]),
                                            "may not be set for ExternalName services");
        if (n > 0 && name[n - 1] == '.')
                n--;
        if (n >= sizeof cname)
                n = sizeof cname - 1; /* still longer than a subdomain may be, so it is refused */
        memcpy(cname, name, n);
        cname[n] = '\0';
        if (n == 0)
                hfd_cause_required(causes, "spec.externalName", "");
        else
                hfd_subdomain_validate(cname, "spec.externalName", causes);
}

static void validate_type(const struct hf__json *spec, struct hfd_causes *causes) {
        bool headless = is_headless(spec);

        if (!hf__json_first(hf__json_get(spec, "ports")) && !headless &&
            !is_type(spec, "ExternalName"))
                hfd_cause_required(causes, "spec.ports", "");
        if (is_type(spec, "ExternalName"))
                validate_external_name(spec, causes);
        else if (headless && is_type(spec, "LoadBalancer"))
                hfd_cause_invalid_text(causes, "spec.clusterIPs[0]", "None",
                                       "may not be set to 'None' for LoadBalancer services");
        else if (headless && is_type(spec, "NodePort"))
                hfd_cause_invalid_text(causes, "spec.clusterIPs[0]", "None",
                                       "may not be set to 'None' for NodePort services");
}

static void validate_affinity(const struct hf__json *spec, struct hfd_causes *causes) {
        static const char *const affinities[] = {"ClientIP", "None", NULL};

        hfd_require_one_of(spec, "spec", "sessionAffinity", affinities, causes);
        if (hf__json_has_text(spec, "sessionAffinity", "None") &&
            hf__json_get(spec, "sessionAffinityConfig"))
                hfd_cause_forbidden(causes, "spec.sessionAffinityConfig",
                                    "must not be set when session affinity is None");
}

/* ---- addresses ---- */

/* clusterIP and clusterIPs must agree. If the client sent only clusterIP, hfd_service_set_fields
 * has set clusterIPs. A list without clusterIP is refused. */
static void validate_addresses(const struct hf__json *spec, struct hfd_causes *causes) {
        static const char field[] = "spec.clusterIPs";
        const struct hf__json *list = hf__json_get(spec, "clusterIPs");
        const char *ip = hfd_text_of(spec, "clusterIP");
        char shown[250];

        if (is_type(spec, "ExternalName"))
                return;
        if (*ip && !hf__json_first(list)) {
                hfd_cause_required(causes, field, "");
                return;
        }
        if (!hf__json_first(list))
                return;
        hfd_quote_list(list, shown, sizeof shown);
        const char *first = hf__json_text(hf__json_first(list));
        if (!*ip)
                hfd_cause_invalid(causes, field, shown,
                                  "must be empty when `clusterIP` is not specified");
        else if (!first || strcmp(first, ip) != 0)
                hfd_cause_invalid(causes, field, shown, "first value must match `clusterIP`");
        if (first && strcmp(first, "None") == 0 && hf__json_next(hf__json_first(list)))
                hfd_cause_invalid(causes, field, shown, "'None' must be the first and only value");
        if (hf__json_count(list) > 2)
                hfd_cause_invalid(causes, field, shown, "may only hold up to 2 values");
}

/* The first address of a Service cannot change, because programs remember it. A change of the type
 * from or to ExternalName, which has no address, is the exception. old: the old spec. */
static void validate_kept_address(const struct hf__json *spec, const struct hf__json *old,
                                  struct hfd_causes *causes) {
        const struct hf__json *list = hf__json_get(spec, "clusterIPs"),
                              *had = hf__json_get(old, "clusterIPs");
        char shown[250] = "null";

        if (is_type(spec, "ExternalName") || is_type(old, "ExternalName") || !hf__json_first(had))
                return;
        if (hf__json_first(list))
                hfd_quote_list(list, shown, sizeof shown);
        if (!hf__json_first(list))
                hfd_cause_invalid(causes, "spec.clusterIPs[0]", shown,
                                  "primary clusterIP can not be unset");
        else if (!hfd_causes_equal(causes, hf__json_first(list), hf__json_first(had)))
                hfd_cause_invalid(causes, "spec.clusterIPs[0]", shown, "may not change once set");
}

/* ---- traffic ---- */

/* The policies for traffic from outside need a Service that can be reached from outside. */
static void validate_traffic(const struct hf__json *spec, struct hfd_causes *causes) {
        static const char *const policies[] = {"Cluster", "Local", NULL};
        bool outside = is_type(spec, "NodePort") || is_type(spec, "LoadBalancer") ||
                       hf__json_first(hf__json_get(spec, "externalIPs"));
        const char *external = hfd_text_of(spec, "externalTrafficPolicy");

        if (hf__json_get(spec, "allocateLoadBalancerNodePorts") && !is_type(spec, "LoadBalancer"))
                hfd_cause_forbidden(causes, "spec.allocateLoadBalancerNodePorts",
                                    "may only be used when `type` is 'LoadBalancer'");
        if (*external && !outside)
                hfd_cause_invalid_text(causes, "spec.externalTrafficPolicy", external,
                                       "may only be set for externally-accessible services");
        else if (*external)
                hfd_require_one_of(spec, "spec", "externalTrafficPolicy", policies, causes);
        if (hf__json_get(spec, "internalTrafficPolicy"))
                hfd_require_one_of(spec, "spec", "internalTrafficPolicy", policies, causes);
}

void hfd_service_validate(const struct hf__json *object, const struct hf__json *old,
                          struct hfd_causes *causes) {
        static const char *const types[] = {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort",
                                            NULL};
        const struct hf__json *spec = hf__json_get(object, "spec");

        if (hfd_spec_is_kept(&hfd_service_schema, object, old, causes))
                return;
        if (old)
                validate_kept_address(spec, hf__json_get(old, "spec"), causes);
        validate_type(spec, causes);
        validate_ports(spec, causes);
        hfd_labels_validate(hf__json_get(spec, "selector"), "spec.selector", causes);
        validate_affinity(spec, causes);
        validate_addresses(spec, causes);
        hfd_require_one_of(spec, "spec", "type", types, causes);
        validate_node_ports(spec, hf__json_get(old, "spec"), causes);
        refuse_repeated(hf__json_get(spec, "ports"), "nodePort", causes);
        refuse_repeated(hf__json_get(spec, "ports"), "port", causes);
        validate_traffic(spec, causes);
}
