/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets and drops the fields of a Service that depend on each other or on its type, as
 * kube-apiserver does it. Unlike kube-apiserver, this server does not allocate cluster IPs and node
 * ports: it has no network.
 *
 * Invariants: a field is dropped only if the client has left it as it was (drop_same), because a
 * field that the client has set deliberately must be validated, not lost. There are two exceptions,
 * as in kube-apiserver: sessionAffinityConfig goes whenever the affinity is None, and a valid
 * internalTrafficPolicy whenever the type is ExternalName. A Service that has passed once is not
 * changed again, because otherwise an update that changes nothing would make a new version.
 *
 * Kubernetes does all this in the order of hfd_service_set_fields: it allocates first, and drops
 * the fields of the old type last.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/workloads/addresses.h"
#include "server/resources/workloads/presets/presets.h"
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

static bool is_same(const struct hf__json *spec, const struct hf__json *old, const char *key) {
        return hf__json_equal(hf__json_get(spec, key), hf__json_get(old, key));
}

/* Drops the members that the client has left as they were. keys ends with NULL. */
static void drop_same(struct hf__json *spec, const struct hf__json *old, const char *const *keys) {
        for (; *keys; keys++)
                if (is_same(spec, old, *keys))
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

/* Whether a load balancer asks each node at healthCheckNodePort. */
static bool is_checked(const struct hf__json *spec) {
        return is_type(spec, "LoadBalancer") &&
               hf__json_has_text(spec, "externalTrafficPolicy", "Local");
}

/* Drops the members that the old Service needed and the new one must not have. A client that only
 * changes spec.type sends them back, and the validation would refuse them. 0 or -ENOMEM. */
static int drop_of_type(struct hf__json *spec, const struct hf__json *old) {
        static const char *const of_cluster[] = {"ipFamilies", "ipFamilyPolicy", NULL},
                                 *const addresses[] = {"clusterIP", "clusterIPs", NULL},
                                 *const of_outside[] = {"externalTrafficPolicy", NULL},
                                 *const of_check[] = {"healthCheckNodePort", NULL},
                                 *const of_balancer[] = {"allocateLoadBalancerNodePorts",
                                                         "loadBalancerClass", NULL};

        if (is_type(spec, "ExternalName") && !is_type(old, "ExternalName")) {
                if (is_same(spec, old, "clusterIP") && is_same(spec, old, "clusterIPs"))
                        drop_same(spec, old, addresses);
                drop_same(spec, old, of_cluster);
        }
        if (is_checked(old) && !is_checked(spec))
                drop_same(spec, old, of_check);
        if (is_reached_from_outside(old) && !is_reached_from_outside(spec))
                drop_same(spec, old, of_outside);
        if (is_type(old, "LoadBalancer") && !is_type(spec, "LoadBalancer"))
                drop_same(spec, old, of_balancer);
        return has_node_ports(old) && !has_node_ports(spec) ? drop_same_node_ports(spec, old) : 0;
}

/* Kubernetes does not show the policy of an ExternalName service. An unknown one is refused. */
static void drop_internal_policy(struct hf__json *spec) {
        if (is_type(spec, "ExternalName") &&
            (hf__json_has_text(spec, "internalTrafficPolicy", "Cluster") ||
             hf__json_has_text(spec, "internalTrafficPolicy", "Local")))
                hf__json_drop(spec, "internalTrafficPolicy");
}

/* ---- addresses ---- */

/* Copies a member of the old spec to the new one if that has none. An old value of a wrong type,
 * which another program may have stored, is not copied. 0 or -ENOMEM. */
static int keep_field(struct hf__json *spec, const struct hf__json *old, const char *key,
                      bool (*has_type)(const struct hf__json *value)) {
        const struct hf__json *had = hf__json_get(old, key);

        return has_type(had) && !hf__json_get(spec, key)
                       ? hf__json_put(spec, key, hf__json_dup(had))
                       : 0;
}

/* A client that sends a Service again without its addresses keeps them. Empty ones count as left
 * out. 0 or -ENOMEM. */
static int keep_addresses(struct hf__json *spec, const struct hf__json *old) {
        static const char *const texts[] = {"clusterIP", "ipFamilyPolicy"},
                                 *const lists[] = {"clusterIPs", "ipFamilies"};
        int r = 0;

        if (!*hfd_text_of(spec, "clusterIP") && *hfd_text_of(old, "clusterIP"))
                hf__json_drop(spec, "clusterIP");
        if (!hf__json_first(hf__json_get(spec, "clusterIPs")) &&
            hf__json_first(hf__json_get(old, "clusterIPs")))
                hf__json_drop(spec, "clusterIPs");
        for (size_t i = 0; i < sizeof texts / sizeof texts[0] && r == 0; i++)
                r = keep_field(spec, old, texts[i], hf__json_is_string);
        for (size_t i = 0; i < sizeof lists / sizeof lists[0] && r == 0; i++)
                r = keep_field(spec, old, lists[i], hf__json_is_array);
        return r;
}

/*
 * Makes clusterIPs agree with clusterIP, because old clients know only clusterIP: a list that is
 * absent is the old one. If the client has changed clusterIP, a list that is absent, or that it has
 * left as it was, is made anew. A list that the client has changed is left alone. old NULL: a
 * create. 0 or -ENOMEM.
 */
static int set_list(struct hf__json *spec, const struct hf__json *old) {
        const struct hf__json *had = hf__json_get(old, "clusterIPs");
        const char *ip = hfd_text_of(spec, "clusterIP");
        bool same = is_same(spec, old, "clusterIP");

        if (old && !same && is_same(spec, old, "clusterIPs"))
                hf__json_drop(spec, "clusterIPs");
        if (!*ip || hf__json_first(hf__json_get(spec, "clusterIPs")))
                return 0;
        if (same && hf__json_is_array(had) && hf__json_first(had))
                return hf__json_put(spec, "clusterIPs", hf__json_dup(had));
        struct hf__json *list = hf__json_array();
        int r = hf__json_put(spec, "clusterIPs", list);
        return r == 0 ? hf__json_append_string(list, ip) : r;
}

/* ---- families ---- */

static bool is_single(const struct hf__json *spec) {
        return hf__json_has_text(spec, "ipFamilyPolicy", "SingleStack");
}

/* Leaves only the first element of a list that the client has left as it was. */
static void cut_same(struct hf__json *spec, const struct hf__json *old, const char *key) {
        struct hf__json *list = hf__json_get(spec, key), *first = hf__json_first(list);

        if (first && is_same(spec, old, key))
                while (hf__json_next(first))
                        hf__json_free(hf__json_detach(list, hf__json_next(first)));
}

static const char *family_of(const char *ip) { return hfd_address_is_ipv6(ip) ? "IPv6" : "IPv4"; }

/* Adds the family of the second address. A second address of the first family is refused later, and
 * so is an update that takes the second family away. had: the old families. 0 or -ENOMEM. */
static int add_second_family(struct hf__json *families, const struct hf__json *had,
                             const struct hf__json *ips) {
        const struct hf__json *first = hf__json_first(families),
                              *second = hf__json_next(hf__json_first(ips));

        if (!second || hf__json_next(first) || hf__json_count(had) > 1)
                return 0;
        const char *family = family_of(hf__json_text_or_empty(second));
        return strcmp(hf__json_text_or_empty(first), family) == 0
                       ? 0
                       : hf__json_append_string(families, family);
}

/* A headless Service without a selector has both families unless its policy is SingleStack, because
 * its Endpoints may have addresses of both. An update that takes one away is refused later. 0 or
 * -ENOMEM. */
static int add_other_family(struct hf__json *families, const struct hf__json *had) {
        const char *first = hf__json_text_or_empty(hf__json_first(families));

        if (hf__json_next(hf__json_first(families)) || hf__json_count(had) > 1)
                return 0;
        if (strcmp(first, "IPv4") != 0 && strcmp(first, "IPv6") != 0)
                return 0;
        return hf__json_append_string(families, strcmp(first, "IPv4") == 0 ? "IPv6" : "IPv4");
}

/* Without an allocator, families that are absent follow from the addresses; IPv4 if there is none.
 * old NULL: a create. 0 or -ENOMEM. */
static int set_families(struct hf__json *spec, const struct hf__json *old) {
        bool any = hf__json_has_text(spec, "clusterIP", "None") &&
                   !hf__json_first(hf__json_get(spec, "selector"));
        const struct hfd_preset policy = {"", "ipFamilyPolicy",
                                          any ? "\"RequireDualStack\"" : "\"SingleStack\"", NULL};
        int r = hfd_presets_set(spec, &policy, 1);

        /* The client has asked for one family only, so it wants to lose the second one. */
        if (r == 0 && old && is_single(spec) && !is_single(old)) {
                cut_same(spec, old, "clusterIPs");
                cut_same(spec, old, "ipFamilies");
        }
        struct hf__json *families = hf__json_get(spec, "ipFamilies");
        if (r == 0 && !hf__json_first(families)) {
                const struct hf__json *ip = hf__json_first(hf__json_get(spec, "clusterIPs"));
                families = hf__json_array();
                r = hf__json_put(spec, "ipFamilies", families);
                if (r == 0)
                        r = hf__json_append_string(families, family_of(hf__json_text_or_empty(ip)));
        }
        /* Another program may have stored a value that is no list. */
        if (r != 0 || is_single(spec) || !hf__json_is_array(families))
                return r;
        /* old may be spec itself, so its list may be the one that was made above. */
        const struct hf__json *had = hf__json_get(old, "ipFamilies");
        return any ? add_other_family(families, had)
                   : add_second_family(families, had, hf__json_get(spec, "clusterIPs"));
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

/* ---- ports of the nodes ---- */

/* Whether the ports of the nodes stay if the client leaves them out. */
static bool keeps_node_ports(const struct hf__json *spec) {
        const struct hf__json *allocate = hf__json_get(spec, "allocateLoadBalancerNodePorts");

        return is_type(spec, "NodePort") ||
               (is_type(spec, "LoadBalancer") && (!allocate || hf__json_is_true(allocate)));
}

/* The nodePort of the old port with this name; 0: none. A Service with several ports has a name for
 * each. by_name: an index of the old ports. */
static int64_t old_node_port(const struct hf__json *ports, const struct hf__json_index *by_name,
                             const char *name) {
        const struct hf__json_index_entry *entry = hf__json_index_find(by_name, name);
        const struct hf__json *first = hf__json_first(ports);

        if (entry)
                return node_port_of(entry->item);
        return !*name && first && !*hfd_text_of(first, "name") ? node_port_of(first) : 0;
}

/* A client that sends a Service again without its nodePorts keeps those that it does not use for
 * another port. 0 or -ENOMEM. */
static int keep_node_ports(struct hf__json *spec, const struct hf__json *old) {
        const struct hf__json *ports = hf__json_get(old, "ports");
        struct hfd_node_ports used;
        struct hf__json_index by_name;
        int r = hfd_node_ports_init(&used, spec);

        if (r != 0)
                return r;
        r = hf__json_index_init(&by_name, ports, "name");
        for (struct hf__json *m = hf__json_first(hf__json_get(spec, "ports")); m && r == 0;
             m = hf__json_next(m)) {
                int64_t had = node_port_of(m) == 0
                                      ? old_node_port(ports, &by_name, hfd_text_of(m, "name"))
                                      : 0;
                if (had != 0 && !hfd_node_ports_have(&used, had))
                        r = hf__json_set_i64(m, "nodePort", had);
        }
        hf__json_index_done(&by_name);
        hfd_node_ports_done(&used);
        return r;
}

/* The port of the health check stays, too. 0 or -ENOMEM. */
static int keep_health_port(struct hf__json *spec, const struct hf__json *old) {
        static const char key[] = "healthCheckNodePort";
        int64_t number = 0, had = 0;

        (void)hf__json_integer(hf__json_get(spec, key), &number);
        (void)hf__json_integer(hf__json_get(old, key), &had);
        return number == 0 && had != 0 ? hf__json_set_i64(spec, key, had) : 0;
}

/* ---- all fields ---- */

int hfd_service_set_fields(struct hf__json *spec, const struct hf__json *old) {
        bool external = is_type(spec, "ExternalName");

        /* Another program has stored a spec that is no object; a status write keeps it. */
        if (!hf__json_is_object(spec))
                return 0;
        int r = set_affinity(spec);
        if (r == 0 && old && !external && !is_type(old, "ExternalName"))
                r = keep_addresses(spec, old);
        if (r == 0 && old && keeps_node_ports(spec) && keeps_node_ports(old))
                r = keep_node_ports(spec, old);
        if (r == 0 && old && is_checked(spec) && is_checked(old))
                r = keep_health_port(spec, old);
        if (r == 0)
                r = set_list(spec, old);
        if (r == 0 && !external)
                r = set_families(spec, old);
        if (r == 0 && old)
                r = drop_of_type(spec, old);
        drop_internal_policy(spec);
        return r;
}
