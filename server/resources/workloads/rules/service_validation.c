/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of Services.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. An update that does not change the spec (hfd_spec_is_kept) has
 * only its annotations checked, and only if it changes one of them (are_annotations_kept). An
 * address that the old Service had is accepted. Repeated ports are found by sorting and repeated
 * names with an index, never by comparing all ports with each other: clients choose how many a
 * Service has.
 *
 * In Kubernetes these rules run after the allocation of addresses and ports. Nothing here allocates
 * any, so what is absent for that reason is not required.
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
#include "server/resources/workloads/addresses.h"
#include "server/resources/workloads/workloads.h"

#define HINTS_ANNOTATION "service.kubernetes.io/topology-aware-hints"
#define MODE_ANNOTATION  "service.kubernetes.io/topology-mode"

static const char *const protocols[] = {"SCTP", "TCP", "UDP", NULL};

static bool is_type(const struct hf__json *spec, const char *type) {
        return hf__json_has_text(spec, "type", type);
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

/* What a port may not share with another one of the Service. */
struct taken {
        const char *protocol; /* borrowed */
        int64_t number;
        size_t position;
};

static int compare_positions(const void *a, const void *b) {
        const struct taken *x = a, *y = b;

        return (x->position > y->position) - (x->position < y->position);
}

static bool is_same(const struct taken *x, const struct taken *y) {
        return x->number == y->number && strcmp(x->protocol, y->protocol) == 0;
}

static int compare_taken(const void *a, const void *b) {
        const struct taken *x = a, *y = b;
        int r = (x->number > y->number) - (x->number < y->number);

        if (r == 0)
                r = strcmp(x->protocol, y->protocol);
        return r == 0 ? compare_positions(a, b) : r;
}

/* Kubernetes shows a repeated nodePort as its number, and a repeated port as its internal Go type,
 * in which only the compared members are set. */
static void refuse_port(const struct taken *port, bool of_node, struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX], field[HFD_FIELD_PATH_MAX], shown[300], protocol[160];

        hfd_field_index(path, "spec.ports", port->position);
        hfd_quote(port->protocol, protocol, sizeof protocol);
        if (of_node)
                (void)snprintf(shown, sizeof shown, "%" PRId64, port->number);
        else
                (void)snprintf(shown, sizeof shown,
                               "{\"Name\":\"\",\"Protocol\":%s,\"AppProtocol\":null,"
                               "\"Port\":%" PRId64 ",\"TargetPort\":0,\"NodePort\":0}",
                               protocol, port->number);
        hfd_cause_duplicate(causes, of_node ? hfd_field_path(field, path, "nodePort") : path,
                            shown);
}

/* "Duplicate value" for each port that has the protocol and the number of an earlier one. member:
 * "port", or "nodePort", which a port may be without. */
static void refuse_repeated(const struct hf__json *ports, const char *member,
                            struct hfd_causes *causes) {
        bool of_node = strcmp(member, "nodePort") == 0;
        struct taken *all = calloc(hf__json_count(ports) + 1, sizeof all[0]);
        size_t n = 0, n_repeated = 0, position = 0;

        if (!all) {
                hfd_causes_no_memory(causes);
                return;
        }
        for (const struct hf__json *m = hf__json_first(ports); m; m = hf__json_next(m)) {
                all[n] = (struct taken){hfd_text_of(m, "protocol"), 0, position++};
                (void)hf__json_integer(hf__json_get(m, member), &all[n].number);
                n += !of_node || all[n].number != 0;
        }
        qsort(all, n, sizeof all[0], compare_taken);
        /* The repeated ones move to the beginning. */
        struct taken first = {0};
        for (size_t i = 0; i < n; i++) {
                if (i > 0 && is_same(&all[i], &first))
                        all[n_repeated++] = all[i];
                else
                        first = all[i];
        }
        qsort(all, n_repeated, sizeof all[0], compare_positions);
        for (size_t i = 0; i < n_repeated; i++)
                refuse_port(&all[i], of_node, causes);
        free(all);
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

/* A Service of type ClusterIP cannot be reached at ports of the nodes. For NodePort and
 * LoadBalancer Services, Kubernetes takes ports of a configured range; here the range has all valid
 * ports. A nodePort of an ExternalName Service is ignored. As in Kubernetes, a number that the
 * Service had before is not compared with the range. old: the old spec; NULL = none. */
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
        static const char why[] = "may not be set for ExternalName services";
        const char *name = hfd_text_of(spec, "externalName");
        char cname[HFD_DNS_SUBDOMAIN_MAX + 2];
        size_t n = strlen(name);

        if (hf__json_first(hf__json_get(spec, "clusterIPs")))
                hfd_cause_forbidden(causes, "spec.clusterIPs", why);
        if (hf__json_first(hf__json_get(spec, "ipFamilies")))
                hfd_cause_forbidden(causes, "spec.ipFamilies", why);
        if (hf__json_get(spec, "ipFamilyPolicy"))
                hfd_cause_forbidden(causes, "spec.ipFamilyPolicy", why);
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
        bool headless = hfd_service_is_headless(spec);

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

/* For how long a client is sent to the same pod. */
static void validate_affinity_time(const struct hf__json *spec, struct hfd_causes *causes) {
        static const char why[] = "when session affinity type is ClientIP";
        const struct hf__json *config = hf__json_get(spec, "sessionAffinityConfig"),
                              *client = hf__json_get(config, "clientIP");

        if (!config)
                hfd_cause_required(causes, "spec.sessionAffinityConfig", why);
        else if (!client)
                hfd_cause_required(causes, "spec.sessionAffinityConfig.clientIP", why);
        else if (!hf__json_get(client, "timeoutSeconds"))
                hfd_cause_required(causes, "spec.sessionAffinityConfig.clientIP.timeoutSeconds",
                                   why);
        else
                hfd_require_range(client, "spec.sessionAffinityConfig.clientIP", "timeoutSeconds",
                                  1, 86400, "must be greater than 0 and less than 86400", causes);
}

static void validate_affinity(const struct hf__json *spec, struct hfd_causes *causes) {
        static const char *const affinities[] = {"ClientIP", "None", NULL};

        hfd_require_one_of(spec, "spec", "sessionAffinity", affinities, causes);
        if (hf__json_has_text(spec, "sessionAffinity", "ClientIP"))
                validate_affinity_time(spec, causes);
        else if (hf__json_has_text(spec, "sessionAffinity", "None") &&
                 hf__json_get(spec, "sessionAffinityConfig"))
                hfd_cause_forbidden(causes, "spec.sessionAffinityConfig",
                                    "must not be set when session affinity is None");
}

/* ---- addresses outside the cluster ---- */

/* As in Kubernetes, externalIPs follow the rules for addresses of endpoints. old: the old spec. */
static void validate_external_ips(const struct hf__json *spec, const struct hf__json *old,
                                  struct hfd_causes *causes) {
        static const char member[] = "externalIPs";
        struct hf__json_index known;
        char path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        if (hfd_causes_check(causes, hf__json_index_init(&known, hf__json_get(old, member), NULL)))
                for (const struct hf__json *m = hf__json_first(hf__json_get(spec, member)); m;
                     m = hf__json_next(m)) {
                        const char *ip = hf__json_text_or_empty(m);
                        size_t n = causes->n;
                        hfd_field_index(path, "spec.externalIPs", i++);
                        if (hf__json_index_find(&known, ip))
                                continue;
                        hfd_address_validate(ip, path, causes);
                        if (causes->n == n)
                                hfd_address_refuse_special(ip, path, causes);
                }
        hf__json_index_done(&known);
}

/* ---- traffic ---- */

/* The policies for traffic from outside need a Service that can be reached from outside. old: the
 * old spec. */
static void validate_external_traffic(const struct hf__json *spec, const struct hf__json *old,
                                      struct hfd_causes *causes) {
        static const char *const policies[] = {"Cluster", "Local", NULL};
        bool outside =
                is_type(spec, "NodePort") || is_type(spec, "LoadBalancer") ||
                (is_type(spec, "ClusterIP") && hf__json_first(hf__json_get(spec, "externalIPs")));
        const char *external = hfd_text_of(spec, "externalTrafficPolicy");

        if (*external && !outside)
                hfd_cause_invalid_text(causes, "spec.externalTrafficPolicy", external,
                                       "may only be set for externally-accessible services");
        else if (*external)
                hfd_refuse_others(external, "spec.externalTrafficPolicy", policies, causes);
        hfd_balancer_health_port_validate(spec, old, causes);
}

static void validate_traffic(const struct hf__json *spec, const struct hf__json *old,
                             struct hfd_causes *causes) {
        static const char *const policies[] = {"Cluster", "Local", NULL},
                                 *const distributions[] = {"PreferClose", "PreferSameZone",
                                                           "PreferSameNode", NULL};

        validate_external_traffic(spec, old, causes);
        if (hf__json_get(spec, "internalTrafficPolicy"))
                hfd_refuse_others(hfd_text_of(spec, "internalTrafficPolicy"),
                                  "spec.internalTrafficPolicy", policies, causes);
        if (hf__json_get(spec, "trafficDistribution"))
                hfd_refuse_others(hfd_text_of(spec, "trafficDistribution"),
                                  "spec.trafficDistribution", distributions, causes);
}

/* ---- annotations ---- */

/* HINTS_ANNOTATION is the old name of MODE_ANNOTATION. */
static void validate_topology(const struct hf__json *object, struct hfd_causes *causes) {
        const struct hf__json *mode = hfd_service_annotation(object, MODE_ANNOTATION),
                              *hints = hfd_service_annotation(object, HINTS_ANNOTATION);

        if (mode && hints &&
            strcmp(hf__json_text_or_empty(mode), hf__json_text_or_empty(hints)) != 0)
                hfd_cause_invalid_text(causes, "metadata.annotations[" MODE_ANNOTATION "]",
                                       hf__json_text_or_empty(mode),
                                       "must match annotations[" HINTS_ANNOTATION
                                       "] when both are specified");
}

static bool are_annotations_kept(const struct hf__json *object, const struct hf__json *old) {
        static const char *const keys[] = {HINTS_ANNOTATION, MODE_ANNOTATION,
                                           HFD_RANGES_ANNOTATION};
        size_t n = 0;

        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
                n += hf__json_equal(hfd_service_annotation(object, keys[i]),
                                    hfd_service_annotation(old, keys[i]));
        return n == sizeof keys / sizeof keys[0];
}

/* ---- a Service ---- */

static void validate_spec(const struct hf__json *object, const struct hf__json *old,
                          struct hfd_causes *causes) {
        static const char *const types[] = {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort",
                                            NULL};
        const struct hf__json *spec = hf__json_get(object, "spec"),
                              *was = hf__json_get(old, "spec");

        validate_topology(object, causes);
        validate_type(spec, causes);
        validate_ports(spec, causes);
        hfd_labels_validate(hf__json_get(spec, "selector"), "spec.selector", causes);
        validate_affinity(spec, causes);
        hfd_cluster_addresses_validate(spec, was, causes);
        validate_external_ips(spec, was, causes);
        hfd_require_one_of(spec, "spec", "type", types, causes);
        validate_node_ports(spec, was, causes);
        refuse_repeated(hf__json_get(spec, "ports"), "nodePort", causes);
        refuse_repeated(hf__json_get(spec, "ports"), "port", causes);
        hfd_balancer_ranges_validate(object, old, causes);
        if (hf__json_get(spec, "allocateLoadBalancerNodePorts") && !is_type(spec, "LoadBalancer"))
                hfd_cause_forbidden(causes, "spec.allocateLoadBalancerNodePorts",
                                    "may only be used when `type` is 'LoadBalancer'");
        if (!old)
                hfd_balancer_class_validate(spec, NULL, causes);
        validate_traffic(spec, was, causes);
}

void hfd_service_validate(const struct hf__json *object, const struct hf__json *old,
                          struct hfd_causes *causes) {
        const struct hf__json *spec = hf__json_get(object, "spec"),
                              *was = hf__json_get(old, "spec");

        if (old && hfd_spec_is_kept(&hfd_service_schema, object, old, causes)) {
                if (!are_annotations_kept(object, old)) {
                        validate_topology(object, causes);
                        hfd_balancer_ranges_validate(object, old, causes);
                }
                return;
        }
        /* As in Kubernetes, which allocates before it validates, mistakes here are the only ones
         * that are reported. */
        if (!hfd_cluster_addresses_validate_first(spec, was, causes))
                return;
        if (old) {
                hfd_cluster_addresses_validate_update(spec, was, causes);
                hfd_balancer_class_validate(spec, was, causes);
                hfd_balancer_health_port_validate_update(spec, was, causes);
        }
        validate_spec(object, old, causes);
}
