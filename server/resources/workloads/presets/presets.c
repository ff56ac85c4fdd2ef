/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The defaults of the workload kinds of the core group, and the functions that set presets
 * (presets.h), which group_presets.c uses too. The defaults are those of kube-apiserver, except the
 * addresses and ports of Services, which its allocators choose.
 *
 * The functions hfd_..._prepare, except hfd_claim_template_prepare, are strategies of the rows
 * (strategies/strategies.h). old: the stored object; NULL on create.
 *
 * Invariant: an object that has its defaults is not changed again. Otherwise an update that changes
 * nothing would make a new version.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/strategies/pod/pod_defaults.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/workloads/presets/presets.h"
#include "server/resources/workloads/workloads.h"

/* parent may be NULL or of any type, because the path of a preset may lead to no object. */
static int set_preset(struct hf__json *parent, const struct hfd_preset *preset) {
        const struct hf__json *had = hf__json_get(parent, preset->key);
        struct hf__json *value;
        bool is_empty = preset->empty_is_absent && hf__json_is_string(had) && !*hf__json_text(had);

        if (!hf__json_is_object(parent) || (had && !is_empty))
                return 0;
        if (preset->only_type && !hf__json_has_text(parent, "type", preset->only_type))
                return 0;
        int r = hf__json_parse(preset->value, strlen(preset->value), &value, NULL);
        return r == 0 ? hf__json_put(parent, preset->key, value) : r;
}

int hfd_presets_set(struct hf__json *object, const struct hfd_preset *presets, size_t n) {
        char path[80];
        int r = 0;

        for (size_t i = 0; i < n && r == 0; i++) {
                size_t n_path = strcspn(presets[i].parent, "[");
                assert(n_path < sizeof path); /* tables are ours, and no client chooses paths */
                memcpy(path, presets[i].parent, n_path);
                path[n_path] = '\0';
                struct hf__json *parent = n_path > 0 ? hf__json_path(object, path) : object;
                if (presets[i].parent[n_path] == '\0') {
                        r = set_preset(parent, &presets[i]);
                        continue;
                }
                for (struct hf__json *m = hf__json_first(parent); m && r == 0; m = hf__json_next(m))
                        r = set_preset(m, &presets[i]);
        }
        return r;
}

int hfd_presets_set_with_template(struct hf__json *object, const struct hfd_preset *presets,
                                  size_t n) {
        static const struct hfd_preset parts[] = {{"", "spec", "{}", NULL},
                                                  {"", "status", "{}", NULL}};
        int r = hfd_presets_set(object, parts, HFD_N_PRESETS(parts));

        if (r == 0)
                r = hfd_pod_template_default(hf__json_get(object, "spec"), "template");
        return r == 0 ? hfd_presets_set(object, presets, n) : r;
}

int hfd_presets_copy_labels(struct hf__json *object, const char *path,
                            const struct hf__json *labels) {
        if (!labels || hf__json_path(object, path))
                return 0;
        return hf__json_set(object, path, hf__json_dup(labels));
}

/* ---- core ---- */

/* A container without a request for a resource requests as much as its limit. 0 or -ENOMEM. */
static int set_requests(struct hf__json *containers) {
        int r = 0;

        for (struct hf__json *m = hf__json_first(containers); m && r == 0; m = hf__json_next(m)) {
                const struct hf__json *limits = hf__json_path(m, "resources.limits");
                if (!hf__json_is_object(limits)) /* absent; in the store maybe a wrong type */
                        continue;
                if (!hf__json_path(m, "resources.requests"))
                        r = hf__json_set(m, "resources.requests", hf__json_object());
                struct hf__json *requests = hf__json_path(m, "resources.requests");
                if (r == 0 && hf__json_is_object(requests))
                        r = hf__json_add_members(requests, limits, false);
        }
        return r;
}

/* Copies the member at `path` from the old object if the update leaves it out. old NULL: a create.
 * 0 or -ENOMEM. */
static int keep_preset(struct hf__json *object, const struct hf__json *old, const char *path) {
        const struct hf__json *had = hf__json_path(old, path);

        return had && !hf__json_path(object, path) ? hf__json_set(object, path, hf__json_dup(had))
                                                   : 0;
}

/* Sets the condition of a new pod that scheduling gates hold back, so that `kubectl get` shows why
 * it does not run. 0 or -ENOMEM. */
static int set_gated(struct hf__json *object) {
        static const char gated[] = "[{\"type\":\"PodScheduled\",\"status\":\"False\","
                                    "\"reason\":\"SchedulingGated\",\"message\":\"Scheduling is "
                                    "blocked due to non-empty scheduling gates\"}]";
        struct hf__json *conditions = NULL;

        if (!hf__json_first(hf__json_path(object, "spec.schedulingGates")))
                return 0;
        /* The text is valid, so conditions is NULL only if memory runs out, and hf__json_set then
         * returns -ENOMEM. */
        (void)hf__json_parse(gated, sizeof gated - 1, &conditions, NULL);
        return hf__json_set(object, "status.conditions", conditions);
}

/* A pod with hostNetwork uses the network of its node, where a container's port is a port of the
 * node. So a hostPort that is absent or 0 becomes equal to containerPort. list: "containers" or
 * "initContainers". 0 or -ENOMEM. */
static int set_host_ports(struct hf__json *spec, const char *list) {
        int r = 0;
        int64_t number;

        for (struct hf__json *c = hf__json_first(hf__json_get(spec, list)); c && r == 0;
             c = hf__json_next(c))
                for (struct hf__json *m = hf__json_first(hf__json_get(c, "ports")); m && r == 0;
                     m = hf__json_next(m))
                        if ((!hf__json_i64(m, "hostPort", &number) || number == 0) &&
                            hf__json_i64(m, "containerPort", &number))
                                r = hf__json_set_i64(m, "hostPort", number);
        return r;
}

/* As in Kubernetes, a pod whose terminationGracePeriodSeconds is negative gets one second. In a
 * template the number stays. 0 or -ENOMEM. */
static int mend_grace(struct hf__json *spec) {
        static const char key[] = "terminationGracePeriodSeconds";
        int64_t seconds;

        return hf__json_i64(spec, key, &seconds) && seconds < 0 ? hf__json_set_i64(spec, key, 1)
                                                                : 0;
}

/* The order counts: requests come from limits before the QoS class is computed from both. A create
 * begins without status, so a second call for the same new pod computes the class anew: a
 * LimitRange may have added requests (registry/write/checks/limit_ranges.c). The two kept members
 * are set by admission on create and cannot be changed, so an update that leaves them out must not
 * look like a change. */
int hfd_pod_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct hfd_preset presets[] = {{"", "spec", "{}", NULL},
                                                    {"", "status", "{}", NULL},
                                                    {"spec", "enableServiceLinks", "true", NULL},
                                                    {"status", "phase", "\"Pending\"", NULL, true}};
        static const char *const kept[] = {"spec.priority", "spec.preemptionPolicy"};
        int r = 0;

        if (!old)
                hf__json_remove(object, "status"); /* clients write it only with .../status */
        r = hfd_presets_set(object, presets, HFD_N_PRESETS(presets));
        struct hf__json *spec = hf__json_get(object, "spec");
        if (r == 0)
                r = hfd_pod_spec_default(spec);
        if (r == 0)
                r = mend_grace(spec);
        if (r == 0)
                r = set_requests(hf__json_get(spec, "containers"));
        if (r == 0)
                r = set_requests(hf__json_get(spec, "initContainers"));
        if (r == 0 && hf__json_bool(spec, "hostNetwork", false)) {
                r = set_host_ports(spec, "containers");
                if (r == 0)
                        r = set_host_ports(spec, "initContainers");
        }
        if (r == 0 && !old)
                r = set_gated(object);
        if (r == 0 && !old)
                r = hfd_pod_copy_app_armor(object);
        for (size_t i = 0; i < 2 && r == 0; i++)
                r = keep_preset(object, old, kept[i]);
        /* The class never changes, and old kubelets leave it out. */
        const char *class = hf__json_string(object, "status.qosClass"),
                   *was = hf__json_string(old, "status.qosClass");
        if (r == 0 && (!class || !*class))
                r = hf__json_set_string(object, "status.qosClass",
                                        was && *was ? was : hfd_pod_qos_class(spec));
        return r == 0 ? hfd_pod_set_addresses(object) : r;
}

/* Go writes all texts of status.nodeInfo, because none of them has omitempty, so typed clients
 * expect them. */
int hfd_node_prepare(struct hf__json *object, const struct hf__json *old) {
        static const char *const texts[] = {"machineID",       "systemUUID",
                                            "bootID",          "kernelVersion",
                                            "osImage",         "containerRuntimeVersion",
                                            "kubeletVersion",  "kubeProxyVersion",
                                            "operatingSystem", "architecture"};
        static const struct hfd_preset presets[] = {{"", "spec", "{}", NULL},
                                                    {"", "status", "{}", NULL},
                                                    {"status", "daemonEndpoints",
                                                     "{\"kubeletEndpoint\":{\"Port\":0}}", NULL},
                                                    {"status", "nodeInfo", "{}", NULL}};
        int r = hfd_presets_set(object, presets, HFD_N_PRESETS(presets));

        for (size_t i = 0; i < sizeof texts / sizeof texts[0] && r == 0; i++) {
                const struct hfd_preset text = {"status.nodeInfo", texts[i], "\"\"", NULL};
                r = hfd_presets_set(object, &text, 1);
        }
        const struct hf__json *capacity = hf__json_path(object, "status.capacity");
        if (r == 0 && capacity && !hf__json_path(object, "status.allocatable"))
                r = hf__json_set(object, "status.allocatable", hf__json_dup(capacity));
        /* Kubelets do not read their configuration from the API any more. */
        if (!hf__json_path(old, "spec.configSource"))
                hf__json_remove(object, "spec.configSource");
        if (!hf__json_path(old, "status.config"))
                hf__json_remove(object, "status.config");
        return r == 0 ? hfd_node_set_cidrs(object) : r;
}

/* For ServiceCIDRs. Kubernetes shows their spec and their status even if these are empty. */
int hfd_workload_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct hfd_preset presets[] = {{"", "spec", "{}", NULL},
                                                    {"", "status", "{}", NULL}};

        return hfd_presets_set(object, presets, HFD_N_PRESETS(presets));
}

/* Whether a targetPort is set: neither absent nor 0 nor "". */
static bool names_port(const struct hf__json *port) {
        int64_t number = 0;

        return hf__json_is_string(port) ? *hf__json_text(port)
                                        : hf__json_integer(port, &number) && number != 0;
}

int hfd_service_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct hfd_preset presets[] =
                {{"", "spec", "{}", NULL},
                 {"", "status", "{\"loadBalancer\":{}}", NULL},
                 {"spec", "sessionAffinity", "\"None\"", NULL, true},
                 {"spec", "type", "\"ClusterIP\"", NULL, true},
                 {"spec", "internalTrafficPolicy", "\"Cluster\"", "ClusterIP"},
                 {"spec", "internalTrafficPolicy", "\"Cluster\"", "NodePort"},
                 {"spec", "internalTrafficPolicy", "\"Cluster\"", "LoadBalancer"},
                 {"spec", "externalTrafficPolicy", "\"Cluster\"", "NodePort", true},
                 {"spec", "externalTrafficPolicy", "\"Cluster\"", "LoadBalancer", true},
                 {"spec", "allocateLoadBalancerNodePorts", "true", "LoadBalancer"},
                 {"spec.ports[]", "protocol", "\"TCP\"", NULL, true}};
        static const struct hfd_preset external = {"spec", "externalTrafficPolicy", "\"Cluster\"",
                                                   "ClusterIP", true};
        /* The nodes themselves answer at the address of a load balancer, unless the status says
         * that a proxy does. */
        static const struct hfd_preset mode = {"", "ipMode", "\"VIP\"", NULL};
        int r = hfd_presets_set(object, presets, HFD_N_PRESETS(presets));

        if (r == 0 && hf__json_first(hf__json_path(object, "spec.externalIPs")))
                r = hfd_presets_set(object, &external, 1);
        /* Without a targetPort, the pods listen on the port of the Service. */
        for (struct hf__json *m = hf__json_first(hf__json_path(object, "spec.ports")); m && r == 0;
             m = hf__json_next(m)) {
                const struct hf__json *port = hf__json_get(m, "port");
                if (port && !names_port(hf__json_get(m, "targetPort")))
                        r = hf__json_put(m, "targetPort", hf__json_dup(port));
        }
        for (struct hf__json *m =
                     hf__json_first(hf__json_path(object, "status.loadBalancer.ingress"));
             m && r == 0; m = hf__json_next(m))
                if (hf__json_has_text(object, "spec.type", "LoadBalancer") && *hfd_text_of(m, "ip"))
                        r = hfd_presets_set(m, &mode, 1);
        /* A Service that is no LoadBalancer any more has no addresses of one. */
        if (r == 0 && hf__json_has_text(old, "spec.type", "LoadBalancer") &&
            !hf__json_has_text(object, "spec.type", "LoadBalancer") &&
            hf__json_is_object(hf__json_get(object, "status")))
                r = hf__json_set(object, "status.loadBalancer", hf__json_object());
        return r == 0 ? hfd_service_set_fields(hf__json_get(object, "spec"),
                                               hf__json_get(old, "spec"))
                      : r;
}

int hfd_endpoints_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct hfd_preset protocol = {"ports[]", "protocol", "\"TCP\"", NULL, true};
        int r = 0;

        for (struct hf__json *m = hf__json_first(hf__json_get(object, "subsets")); m && r == 0;
             m = hf__json_next(m))
                r = hfd_presets_set(m, &protocol, 1);
        return r;
}

int hfd_persistent_volume_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct hfd_preset presets[] = {{"", "spec", "{}", NULL},
                                                    {"", "status", "{}", NULL},
                                                    {"status", "phase", "\"Pending\"", NULL, true},
                                                    {"spec", "persistentVolumeReclaimPolicy",
                                                     "\"Retain\"", NULL, true},
                                                    {"spec", "volumeMode", "\"Filesystem\"", NULL}};
        int r = hfd_presets_set(object, presets, HFD_N_PRESETS(presets));

        return r == 0 ? hfd_volume_source_default(hf__json_get(object, "spec")) : r;
}

int hfd_claim_template_prepare(struct hf__json *claim) {
        static const struct hfd_preset presets[] = {{"", "spec", "{}", NULL},
                                                    {"", "status", "{}", NULL},
                                                    {"status", "phase", "\"Pending\"", NULL, true},
                                                    {"spec", "volumeMode", "\"Filesystem\"", NULL}};

        return hfd_presets_set(claim, presets, HFD_N_PRESETS(presets));
}

static bool is_claim_or_snapshot(const struct hf__json *source) {
        const char *group = hf__json_string(source, "apiGroup"),
                   *kind = hf__json_string(source, "kind");

        group = group ? group : "";
        kind = kind ? kind : "";
        return (strcmp(kind, "PersistentVolumeClaim") == 0 && !*group) ||
               (strcmp(kind, "VolumeSnapshot") == 0 &&
                strcmp(group, "snapshot.storage.k8s.io") == 0);
}

/* For a claim that had no source before. As in Kubernetes, a dataSourceRef that names a namespace
 * is dropped. A dataSource, which is the older form, is dropped if there is no dataSourceRef,
 * unless it is a claim or a snapshot. */
static void drop_sources(struct hf__json *spec) {
        const struct hf__json *reference = hf__json_get(spec, "dataSourceRef"),
                              *namespace = hf__json_get(reference, "namespace");

        if (hf__json_is_string(namespace) && *hf__json_text(namespace)) {
                hf__json_remove(spec, "dataSourceRef");
                reference = NULL;
        }
        if (!reference && !is_claim_or_snapshot(hf__json_get(spec, "dataSource")))
                hf__json_remove(spec, "dataSource");
}

/* dataSource is the older form of dataSourceRef. If only one of the two is there, it is copied to
 * the other, so that clients of both forms see the source. dataSource has no namespace: a
 * dataSourceRef that names one is not copied, and the namespace "" is left out of a copy. */
int hfd_persistent_volume_claim_prepare(struct hf__json *object, const struct hf__json *old) {
        int r = hfd_claim_template_prepare(object);
        struct hf__json *spec = hf__json_get(object, "spec");
        if (r == 0 && !hf__json_path(old, "spec.dataSource") &&
            !hf__json_path(old, "spec.dataSourceRef"))
                drop_sources(spec);
        const struct hf__json *source = hf__json_get(spec, "dataSource"),
                              *reference = hf__json_get(spec, "dataSourceRef"),
                              *namespace = hf__json_get(reference, "namespace");

        if (r == 0 && source && !reference)
                return hf__json_put(spec, "dataSourceRef", hf__json_dup(source));
        if (r != 0 || !reference || source ||
            (hf__json_is_string(namespace) && *hf__json_text(namespace)))
                return r;
        r = hf__json_put(spec, "dataSource", hf__json_dup(reference));
        hf__json_remove(spec, "dataSource.namespace");
        return r;
}

/* A ReplicationController without a selector or labels gets those of its template. */
int hfd_replication_controller_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct hfd_preset presets[] = {{"spec", "replicas", "1", NULL},
                                                    {"status", "replicas", "0", NULL}};
        int r = hfd_presets_set_with_template(object, presets, HFD_N_PRESETS(presets));
        const struct hf__json *labels = hf__json_path(object, "spec.template.metadata.labels");

        if (r == 0)
                r = hfd_presets_copy_labels(object, "spec.selector", labels);
        return r == 0 ? hfd_presets_copy_labels(object, "metadata.labels", labels) : r;
}
