/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The defaults of the workload kinds: tables of members that are set if they are absent. They are
 * those of kube-apiserver, except those that its allocators choose (addresses and ports of
 * services).
 *
 * Invariant: an object that has its defaults is not changed again. Otherwise an update that changes
 * nothing would make a new version.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/strategies/pod/pod_defaults.h"
#include "server/resources/workloads/workloads.h"

/* One member that is set if it is absent. Its parent must exist. */
struct preset {
        const char *parent; /* path of an object; with "[]" at the end: of a list of objects */
        const char *key;
        const char *value; /* JSON */
        /* Only if the parent's member `type` or `policy` has this value; NULL = always. */
        const char *only_type;
};

#define N_PRESETS(table) (sizeof(table) / sizeof(table)[0])

static int set_preset(struct hf__json *parent, const struct preset *preset) {
        struct hf__json *value;

        if (!hf__json_is_object(parent) || hf__json_get(parent, preset->key))
                return 0;
        if (preset->only_type && !hf__json_has_text(parent, "type", preset->only_type))
                return 0;
        int r = hf__json_parse(preset->value, strlen(preset->value), &value, NULL);
        return r == 0 ? hf__json_put(parent, preset->key, value) : r;
}

static int set_presets(struct hf__json *object, const struct preset *presets, size_t n) {
        char path[80];
        int r = 0;

        for (size_t i = 0; i < n && r == 0; i++) {
                size_t n_path = strcspn(presets[i].parent, "[");
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

/* Sets the presets of an object, and the defaults of the template of pods in its spec. Kubernetes
 * shows the status of such kinds even if it is empty. */
static int set_with_template(struct hf__json *object, const struct preset *presets, size_t n) {
        static const struct preset parts[] = {{"", "spec", "{}", NULL}, {"", "status", "{}", NULL}};
        int r = set_presets(object, parts, N_PRESETS(parts));

        if (r == 0)
                r = hfd_pod_template_default(hf__json_get(object, "spec"), "template");
        return r == 0 ? set_presets(object, presets, n) : r;
}

/* Copies a map of labels to `path` if nothing is there. labels may be NULL. */
static int copy_labels(struct hf__json *object, const char *path, const struct hf__json *labels) {
        if (!labels || hf__json_path(object, path))
                return 0;
        return hf__json_set(object, path, hf__json_dup(labels));
}

/* ---- core ---- */

/* A resource that has a limit and no request is requested as far as the limit. */
static int set_requests(struct hf__json *containers) {
        int r = 0;

        for (struct hf__json *m = hf__json_first(containers); m && r == 0; m = hf__json_next(m)) {
                const struct hf__json *limits = hf__json_path(m, "resources.limits");
                if (limits && !hf__json_path(m, "resources.requests"))
                        r = hf__json_set(m, "resources.requests", hf__json_object());
                struct hf__json *requests = hf__json_path(m, "resources.requests");
                for (const struct hf__json *limit = hf__json_first(limits); limit && r == 0;
                     limit = hf__json_next(limit))
                        if (!hf__json_get(requests, hf__json_key(limit)))
                                r = hf__json_put(requests, hf__json_key(limit),
                                                 hf__json_dup(limit));
        }
        return r;
}

/* Copies a member from the old version if the update leaves it out. */
static int keep(struct hf__json *object, const struct hf__json *old, const char *path) {
        const struct hf__json *had = hf__json_path(old, path);

        return had && !hf__json_path(object, path) ? hf__json_set(object, path, hf__json_dup(had))
                                                   : 0;
}

/* A new pod that gates hold back says so. */
static int set_gated(struct hf__json *object) {
        static const char gated[] = "[{\"type\":\"PodScheduled\",\"status\":\"False\","
                                    "\"reason\":\"SchedulingGated\",\"message\":\"Scheduling is "
                                    "blocked due to non-empty scheduling gates\"}]";
        struct hf__json *conditions = NULL;

        if (!hf__json_first(hf__json_path(object, "spec.schedulingGates")))
                return 0;
        (void)hf__json_parse(gated, sizeof gated - 1, &conditions, NULL); /* NULL = no memory */
        return hf__json_set(object, "status.conditions", conditions);
}

/* In the host's network a port of a container is one of the host. */
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

int hfd_pod_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct preset presets[] = {{"", "spec", "{}", NULL},
                                                {"", "status", "{}", NULL},
                                                {"spec", "enableServiceLinks", "true", NULL},
                                                {"status", "phase", "\"Pending\"", NULL}};
        static const char *const kept[] = {"spec.priority", "spec.preemptionPolicy"};
        int r = 0;

        if (!old)
                hf__json_remove(object, "status"); /* clients write it by .../status only */
        r = set_presets(object, presets, N_PRESETS(presets));
        struct hf__json *spec = hf__json_get(object, "spec");
        if (r == 0)
                r = hfd_pod_spec_default(spec);
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
        for (size_t i = 0; i < 2 && r == 0; i++)
                r = keep(object, old, kept[i]);
        if (r == 0 && !hf__json_string(object, "status.qosClass"))
                r = hf__json_set_string(object, "status.qosClass", hfd_pod_qos_class(spec));
        return r;
}

int hfd_node_prepare(struct hf__json *object, const struct hf__json *old) {
        static const char *const texts[] = {"machineID",       "systemUUID",
                                            "bootID",          "kernelVersion",
                                            "osImage",         "containerRuntimeVersion",
                                            "kubeletVersion",  "kubeProxyVersion",
                                            "operatingSystem", "architecture"};
        static const struct preset presets[] = {{"", "spec", "{}", NULL},
                                                {"", "status", "{}", NULL},
                                                {"status", "daemonEndpoints",
                                                 "{\"kubeletEndpoint\":{\"Port\":0}}", NULL},
                                                {"status", "nodeInfo", "{}", NULL}};
        int r = set_presets(object, presets, N_PRESETS(presets));

        for (size_t i = 0; i < sizeof texts / sizeof texts[0] && r == 0; i++) {
                const struct preset text = {"status.nodeInfo", texts[i], "\"\"", NULL};
                r = set_presets(object, &text, 1);
        }
        return r;
}

/* Kubernetes shows the status of these kinds even if it is empty. */
int hfd_workload_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct preset presets[] = {{"", "spec", "{}", NULL},
                                                {"", "status", "{}", NULL}};

        return set_presets(object, presets, N_PRESETS(presets));
}

int hfd_service_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct preset presets[] =
                {{"", "spec", "{}", NULL},
                 {"", "status", "{\"loadBalancer\":{}}", NULL},
                 {"spec", "sessionAffinity", "\"None\"", NULL},
                 {"spec", "type", "\"ClusterIP\"", NULL},
                 {"spec", "internalTrafficPolicy", "\"Cluster\"", "ClusterIP"},
                 {"spec", "internalTrafficPolicy", "\"Cluster\"", "NodePort"},
                 {"spec", "internalTrafficPolicy", "\"Cluster\"", "LoadBalancer"},
                 {"spec", "externalTrafficPolicy", "\"Cluster\"", "NodePort"},
                 {"spec", "externalTrafficPolicy", "\"Cluster\"", "LoadBalancer"},
                 {"spec", "allocateLoadBalancerNodePorts", "true", "LoadBalancer"},
                 {"spec.ports[]", "protocol", "\"TCP\"", NULL}};
        int r = set_presets(object, presets, N_PRESETS(presets));

        for (struct hf__json *m = hf__json_first(hf__json_path(object, "spec.ports")); m && r == 0;
             m = hf__json_next(m)) {
                const struct hf__json *port = hf__json_get(m, "port");
                if (port && !hf__json_get(m, "targetPort"))
                        r = hf__json_put(m, "targetPort", hf__json_dup(port));
        }
        return r;
}

int hfd_endpoints_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct preset protocol = {"ports[]", "protocol", "\"TCP\"", NULL};
        int r = 0;

        for (struct hf__json *m = hf__json_first(hf__json_get(object, "subsets")); m && r == 0;
             m = hf__json_next(m))
                r = set_presets(m, &protocol, 1);
        return r;
}

int hfd_persistent_volume_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct preset presets[] = {{"", "spec", "{}", NULL},
                                                {"", "status", "{}", NULL},
                                                {"status", "phase", "\"Pending\"", NULL},
                                                {"spec", "persistentVolumeReclaimPolicy",
                                                 "\"Retain\"", NULL},
                                                {"spec", "volumeMode", "\"Filesystem\"", NULL},
                                                {"spec.hostPath", "type", "\"\"", NULL}};

        return set_presets(object, presets, N_PRESETS(presets));
}

int hfd_persistent_volume_claim_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct preset presets[] = {{"", "spec", "{}", NULL},
                                                {"", "status", "{}", NULL},
                                                {"status", "phase", "\"Pending\"", NULL},
                                                {"spec", "volumeMode", "\"Filesystem\"", NULL}};

        return set_presets(object, presets, N_PRESETS(presets));
}

int hfd_replication_controller_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct preset presets[] = {{"spec", "replicas", "1", NULL}};
        int r = set_with_template(object, presets, N_PRESETS(presets));
        const struct hf__json *labels = hf__json_path(object, "spec.template.metadata.labels");

        if (r == 0)
                r = copy_labels(object, "spec.selector", labels);
        return r == 0 ? copy_labels(object, "metadata.labels", labels) : r;
}

/* ---- apps ---- */

int hfd_daemon_set_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct preset presets[] =
                {{"spec", "updateStrategy", "{}", NULL},
                 {"spec.updateStrategy", "type", "\"RollingUpdate\"", NULL},
                 {"spec.updateStrategy", "rollingUpdate", "{}", "RollingUpdate"},
                 {"spec.updateStrategy.rollingUpdate", "maxUnavailable", "1", NULL},
                 {"spec.updateStrategy.rollingUpdate", "maxSurge", "0", NULL},
                 {"spec", "revisionHistoryLimit", "10", NULL}};

        return set_with_template(object, presets, N_PRESETS(presets));
}

int hfd_deployment_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct preset presets[] =
                {{"spec", "replicas", "1", NULL},
                 {"spec", "strategy", "{}", NULL},
                 {"spec.strategy", "type", "\"RollingUpdate\"", NULL},
                 {"spec.strategy", "rollingUpdate", "{}", "RollingUpdate"},
                 {"spec.strategy.rollingUpdate", "maxUnavailable", "\"25%\"", NULL},
                 {"spec.strategy.rollingUpdate", "maxSurge", "\"25%\"", NULL},
                 {"spec", "revisionHistoryLimit", "10", NULL},
                 {"spec", "progressDeadlineSeconds", "600", NULL}};

        return set_with_template(object, presets, N_PRESETS(presets));
}

int hfd_replica_set_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct preset presets[] = {{"spec", "replicas", "1", NULL}};

        return set_with_template(object, presets, N_PRESETS(presets));
}

int hfd_stateful_set_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct preset presets[] =
                {{"spec", "podManagementPolicy", "\"OrderedReady\"", NULL},
                 {"spec", "updateStrategy", "{}", NULL},
                 {"spec.updateStrategy", "type", "\"RollingUpdate\"", NULL},
                 {"spec.updateStrategy", "rollingUpdate", "{}", "RollingUpdate"},
                 {"spec.updateStrategy.rollingUpdate", "partition", "0", NULL},
                 {"spec", "persistentVolumeClaimRetentionPolicy", "{}", NULL},
                 {"spec.persistentVolumeClaimRetentionPolicy", "whenDeleted", "\"Retain\"", NULL},
                 {"spec.persistentVolumeClaimRetentionPolicy", "whenScaled", "\"Retain\"", NULL},
                 {"spec", "replicas", "1", NULL},
                 {"spec", "revisionHistoryLimit", "10", NULL},
                 {"spec.volumeClaimTemplates[]", "apiVersion", "\"v1\"", NULL},
                 {"spec.volumeClaimTemplates[]", "kind", "\"PersistentVolumeClaim\"", NULL}};
        int r = set_with_template(object, presets, N_PRESETS(presets));

        for (struct hf__json *m =
                     hf__json_first(hf__json_path(object, "spec.volumeClaimTemplates"));
             m && r == 0; m = hf__json_next(m))
                r = hfd_persistent_volume_claim_prepare(m, old);
        return r;
}

/* ---- batch ---- */

/* The label by which a Job finds its pods is its uid. */
static int set_job_selector(struct hf__json *object) {
        static const char *const keys[] = {"batch.kubernetes.io/controller-uid", "controller-uid"},
                                 *const names[] = {"batch.kubernetes.io/job-name", "job-name"};
        const char *uid = hf__json_string(object, "metadata.uid"),
                   *name = hf__json_string(object, "metadata.name");
        int r = 0;

        if (hf__json_bool(object, "spec.manualSelector", false) || !uid || !name)
                return 0;
        if (!hf__json_path(object, "spec.template.metadata.labels"))
                r = hf__json_set(object, "spec.template.metadata.labels", hf__json_object());
        if (r == 0 && !hf__json_path(object, "spec.selector.matchLabels"))
                r = hf__json_set(object, "spec.selector.matchLabels", hf__json_object());
        struct hf__json *labels = hf__json_path(object, "spec.template.metadata.labels"),
                        *selector = hf__json_path(object, "spec.selector.matchLabels");
        for (size_t i = 0; i < 2 && r == 0; i++) {
                r = hf__json_put_string(labels, keys[i], uid);
                if (r == 0)
                        r = hf__json_put_string(labels, names[i], name);
        }
        return r == 0 ? hf__json_put_string(selector, keys[0], uid) : r;
}

int hfd_job_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct preset presets[] = {{"spec", "parallelism", "1", NULL},
                                                {"spec", "backoffLimit", "6", NULL},
                                                {"spec", "completionMode", "\"NonIndexed\"", NULL},
                                                {"spec", "suspend", "false", NULL},
                                                {"spec", "podReplacementPolicy",
                                                 "\"TerminatingOrFailed\"", NULL}};
        static const struct preset completions = {"spec", "completions", "1", NULL};
        bool is_plain = !hf__json_path(object, "spec.completions") &&
                        !hf__json_path(object, "spec.parallelism");
        int r = set_with_template(object, presets, N_PRESETS(presets));

        if (r == 0 && is_plain)
                r = set_presets(object, &completions, 1);
        return r == 0 && !old ? set_job_selector(object) : r;
}

int hfd_cron_job_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct preset presets[] = {{"", "spec", "{}", NULL},
                                                {"", "status", "{}", NULL},
                                                {"spec", "concurrencyPolicy", "\"Allow\"", NULL},
                                                {"spec", "suspend", "false", NULL},
                                                {"spec", "successfulJobsHistoryLimit", "3", NULL},
                                                {"spec", "failedJobsHistoryLimit", "1", NULL},
                                                {"spec", "jobTemplate", "{}", NULL},
                                                {"spec.jobTemplate", "spec", "{}", NULL}};
        int r = set_presets(object, presets, N_PRESETS(presets));

        if (r != 0)
                return r;
        return hfd_pod_template_default(hf__json_path(object, "spec.jobTemplate.spec"), "template");
}

/* ---- other groups ---- */

int hfd_horizontal_pod_autoscaler_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct preset presets[] =
                {{"", "spec", "{}", NULL},
                 {"spec", "minReplicas", "1", NULL},
                 {"spec", "metrics",
                  "[{\"type\":\"Resource\",\"resource\":{\"name\":\"cpu\",\"target\":{\"type\":"
                  "\"Utilization\",\"averageUtilization\":80}}}]",
                  NULL}};

        return set_presets(object, presets, N_PRESETS(presets));
}

/* The default metric is set when the object is converted. */
int hfd_autoscaler_v1_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct preset presets[] = {{"", "spec", "{}", NULL},
                                                {"spec", "minReplicas", "1", NULL}};

        return set_presets(object, presets, N_PRESETS(presets));
}

int hfd_network_policy_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct preset spec = {"", "spec", "{}", NULL},
                                   protocol = {"ports[]", "protocol", "\"TCP\"", NULL};
        static const char *const rules[] = {"spec.ingress", "spec.egress"};
        int r = set_presets(object, &spec, 1);

        for (size_t i = 0; i < 2; i++)
                for (struct hf__json *m = hf__json_first(hf__json_path(object, rules[i]));
                     m && r == 0; m = hf__json_next(m))
                        r = set_presets(m, &protocol, 1);
        if (r != 0 || hf__json_path(object, "spec.policyTypes"))
                return r;
        const struct preset types = {"spec", "policyTypes",
                                     hf__json_path(object, "spec.egress")
                                             ? "[\"Ingress\",\"Egress\"]"
                                             : "[\"Ingress\"]",
                                     NULL};
        return set_presets(object, &types, 1);
}

int hfd_endpoint_slice_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct preset presets[] = {{"ports[]", "name", "\"\"", NULL},
                                                {"ports[]", "protocol", "\"TCP\"", NULL}};

        return set_presets(object, presets, N_PRESETS(presets));
}

int hfd_storage_class_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct preset presets[] = {{"", "reclaimPolicy", "\"Delete\"", NULL},
                                                {"", "volumeBindingMode", "\"Immediate\"", NULL}};

        return set_presets(object, presets, N_PRESETS(presets));
}

int hfd_csi_driver_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct preset presets[] = {{"", "spec", "{}", NULL},
                                                {"spec", "attachRequired", "true", NULL},
                                                {"spec", "podInfoOnMount", "false", NULL},
                                                {"spec", "storageCapacity", "false", NULL},
                                                {"spec", "fsGroupPolicy",
                                                 "\"ReadWriteOnceWithFSType\"", NULL},
                                                {"spec", "volumeLifecycleModes", "[\"Persistent\"]",
                                                 NULL},
                                                {"spec", "requiresRepublish", "false", NULL},
                                                {"spec", "seLinuxMount", "false", NULL}};

        return set_presets(object, presets, N_PRESETS(presets));
}
