/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets and drops the fields of a Service that depend on each other or on its type, as
 * kube-apiserver does it. Unlike kube-apiserver, this server does not allocate cluster IPs and node
 * ports: it has no network.
 *
 * Invariants: a field is dropped only if the client has left it as it was (drop_same), because a
 * field that the client has set deliberately must be validated, not lost. The exception, as in
 * kube-apiserver, is sessionAffinityConfig, which goes whenever the affinity is None. A Service
 * that has passed once is not changed again, because otherwise an update that changes nothing would
 * make a new version.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/workloads/presets.h"
#include "server/resources/workloads/workloads.h"

static bool is_type(const struct hf__json *spec, const char *type) {
        return hf__json_has_text(spec, "type", type);
}

static bool is_reached_from_outside(const struct hf__json *spec) {
        return is_type(spec, "NodePort") || is_type(spec, "LoadBalancer") ||
               (is_type(spec, "ClusterIP") && hf__json_first(hf__json_get(spec, "externalIPs")));
}

static bool has_node_ports(const struct hf__json *spec) {
        return is_type(spec, "NodePort") || is_type(spec, "LoadBalancer");
}

/* ---- a change of the type ---- */

/* Drops the members that the client has left as they were. keys ends with NULL. */
static void drop_same(struct hf__json *spec, const struct hf__json *old, const char *const *keys) {
        for (; *keys; keys++)
                if (hf__json_equal(hf__json_get(spec, *keys), hf__json_get(old, *keys)))
                        hf__json_drop(spec, *keys);
}

/* The nodePort of a port; 0 if it has none. */
static int64_t node_port_of(const struct hf__json *port) {
        int64_t number = 0;

        (void)hf__json_integer(hf__json_get(port, "nodePort"), &number);
        return number;
}

static int compare_numbers(const void *a, const void *b) {
        int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

        return (x > y) - (x < y);
}

int hfd_node_ports_init(struct hfd_node_ports *numbers, const struct hf__json *spec) {
        const struct hf__json *ports = hf__json_get(spec, "ports");

        numbers->n = 0;
        numbers->sorted = calloc(hf__json_count(ports) + 1, sizeof numbers->sorted[0]);
        if (!numbers->sorted)
                return -ENOMEM;
        for (const struct hf__json *m = hf__json_first(ports); m; m = hf__json_next(m))
                numbers->sorted[numbers->n++] = node_port_of(m);
        qsort(numbers->sorted, numbers->n, sizeof numbers->sorted[0], compare_numbers);
        return 0;
}

bool hfd_node_ports_have(const struct hfd_node_ports *numbers, int64_t number) {
        return bsearch(&number, numbers->sorted, numbers->n, sizeof number, compare_numbers) !=
               NULL;
}

void hfd_node_ports_done(struct hfd_node_ports *numbers) { free(numbers->sorted); }

/* Drops the nodePort of all ports if the old Service had all of these numbers, at whatever port. If
 * the client has added one, all remain. 0 or -ENOMEM. */
static int drop_same_node_ports(struct hf__json *spec, const struct hf__json *old) {
        struct hf__json *ports = hf__json_get(spec, "ports");
        struct hfd_node_ports had;
        bool same = true;
        int r = hfd_node_ports_init(&had, old);

        if (r != 0)
                return r;
        for (const struct hf__json *m = hf__json_first(ports); m && same; m = hf__json_next(m)) {
                int64_t number = node_port_of(m);
                same = number == 0 || hfd_node_ports_have(&had, number);
        }
        for (struct hf__json *m = hf__json_first(ports); m && same; m = hf__json_next(m))
                hf__json_drop(m, "nodePort");
        hfd_node_ports_done(&had);
        return 0;
}

/* Drops the members that the old Service needed and the new one must not have. A client that only
 * changes spec.type sends them back, and the validation would refuse them. 0 or -ENOMEM. */
static int drop_of_type(struct hf__json *spec, const struct hf__json *old) {
        static const char *const of_cluster[] = {"clusterIP",
                                                 "clusterIPs",
                                                 "ipFamilies",
                                                 "ipFamilyPolicy",
                                                 "internalTrafficPolicy",
                                                 NULL},
                                 *const of_outside[] = {"externalTrafficPolicy", NULL},
                                 *const of_balancer[] = {"allocateLoadBalancerNodePorts",
                                                         "loadBalancerClass", "healthCheckNodePort",
                                                         NULL};

        if (is_type(spec, "ExternalName") && !is_type(old, "ExternalName"))
                drop_same(spec, old, of_cluster);
        if (is_reached_from_outside(old) && !is_reached_from_outside(spec))
                drop_same(spec, old, of_outside);
        if (is_type(old, "LoadBalancer") && !is_type(spec, "LoadBalancer"))
                drop_same(spec, old, of_balancer);
        return has_node_ports(old) && !has_node_ports(spec) ? drop_same_node_ports(spec, old) : 0;
}

/* ---- addresses ---- */

/* Copies a member from the old spec if the new one does not have it. 0 or -ENOMEM. */
static int keep_field(struct hf__json *spec, const struct hf__json *old, const char *key) {
        const struct hf__json *had = hf__json_get(old, key);

        return had && !hf__json_get(spec, key) ? hf__json_put(spec, key, hf__json_dup(had)) : 0;
}

/*
 * Makes clusterIPs agree with clusterIP, because old clients know only clusterIP. If a client has
 * not changed clusterIP, an absent list is that of the old spec. If it has, a list that is absent,
 * or that it has left as it was, is made anew from clusterIP. A list that the client has changed is
 * left alone. old NULL: a create. 0 or -ENOMEM.
 */
static int set_list(struct hf__json *spec, const struct hf__json *old) {
        const char *ip = hf__json_string(spec, "clusterIP");
        bool same = old &&
                    hf__json_equal(hf__json_get(spec, "clusterIP"), hf__json_get(old, "clusterIP"));
        bool is_old_list = old && hf__json_equal(hf__json_get(spec, "clusterIPs"),
                                                 hf__json_get(old, "clusterIPs"));

        if (same && ip && hf__json_get(old, "clusterIPs"))
                return keep_field(spec, old, "clusterIPs");
        if (old && !same && is_old_list)
                hf__json_drop(spec, "clusterIPs");
        if (!ip || !*ip || hf__json_get(spec, "clusterIPs"))
                return 0;
        struct hf__json *list = hf__json_array();
        int r = hf__json_put(spec, "clusterIPs", list);
        return r == 0 ? hf__json_append_string(list, ip) : r;
}

/* Without an allocator, the families follow from the first address; IPv4 if there is none. A
 * headless Service without a selector gets both families, because its Endpoints may have addresses
 * of both. 0 or -ENOMEM. */
static int set_families(struct hf__json *spec) {
        const char *ip = hf__json_string(spec, "clusterIP"), *families = "[\"IPv4\"]";
        bool any = ip && strcmp(ip, "None") == 0 && !hf__json_first(hf__json_get(spec, "selector"));

        if (any)
                families = "[\"IPv4\",\"IPv6\"]";
        else if (ip && strchr(ip, ':'))
                families = "[\"IPv6\"]";
        const struct hfd_preset presets[] = {{"", "ipFamilies", families, NULL},
                                             {"", "ipFamilyPolicy",
                                              any ? "\"RequireDualStack\"" : "\"SingleStack\"",
                                              NULL}};
        return hfd_presets_set(spec, presets, HFD_N_PRESETS(presets));
}

/* ---- affinity ---- */

/* The default time is three hours. 0 or -ENOMEM. */
static int set_affinity(struct hf__json *spec) {
        static const struct hfd_preset presets[] = {{"", "sessionAffinityConfig", "{}", NULL},
                                                    {"sessionAffinityConfig", "clientIP", "{}",
                                                     NULL},
                                                    {"sessionAffinityConfig.clientIP",
                                                     "timeoutSeconds", "10800", NULL}};

        if (hf__json_has_text(spec, "sessionAffinity", "None"))
                hf__json_drop(spec, "sessionAffinityConfig");
        return hf__json_has_text(spec, "sessionAffinity", "ClientIP")
                       ? hfd_presets_set(spec, presets, HFD_N_PRESETS(presets))
                       : 0;
}

int hfd_service_set_fields(struct hf__json *spec, const struct hf__json *old) {
        static const char *const kept[] = {"ipFamilies", "ipFamilyPolicy", "clusterIP",
                                           "clusterIPs"};
        bool had_address = old && !is_type(old, "ExternalName");
        int r = old ? drop_of_type(spec, old) : 0;

        if (r == 0)
                r = set_affinity(spec);
        if (r == 0)
                r = set_list(spec, old);
        if (r != 0 || is_type(spec, "ExternalName"))
                return r;
        /* An update that leaves the addresses and families out does not change them. If it has an
         * address, only the families (the first two) are kept. */
        bool addressed = hf__json_get(spec, "clusterIP") || hf__json_get(spec, "clusterIPs");
        for (size_t i = 0; i < (addressed ? 2 : 4) && had_address && r == 0; i++)
                r = keep_field(spec, old, kept[i]);
        return r == 0 ? set_families(spec) : r;
}
