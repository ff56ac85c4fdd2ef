/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The defaults of the workload kinds that are not in the core group. They are those of
 * kube-apiserver. presets.h explains the tables.
 *
 * The functions hfd_..._prepare are strategies of the rows (strategies/strategies.h). old: the
 * stored object; NULL on create.
 *
 * Invariant: an object that has its defaults is not changed again. Otherwise an update that changes
 * nothing would make a new version.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/strategies/pod/pod_defaults.h"
#include "server/resources/validation/names.h"
#include "server/resources/workloads/presets/presets.h"
#include "server/resources/workloads/workloads.h"
#include "server/schema/equal.h"

/* ---- apps ---- */

/*
 * Kubernetes counts the changes of a DaemonSet's template in an annotation. The count starts from
 * the old object, so that what a client writes there has no effect. A count that is not a positive
 * number, or is too large to grow, starts at 1 again. 0; -ENOMEM; or -EINVAL: the annotations in
 * the store are no object.
 */
static int count_templates(struct hf__json *object, const struct hf__json *old) {
        static const char key[] = "deprecated.daemonset.template.generation";
        static const char path[] = "metadata.annotations";
        const char *counted = hf__json_text(hf__json_get(hf__json_path(old, path), key));
        bool changes = old && !hf__json_equal(hf__json_path(object, "spec.template"),
                                              hf__json_path(old, "spec.template"));
        int64_t n = counted ? strtoll(counted, NULL, 10) : 0;
        char text[24];
        int r = 0;

        if (n < 1 || n == INT64_MAX)
                n = 1;
        (void)snprintf(text, sizeof text, "%lld", (long long)n + (changes ? 1 : 0));
        if (!hf__json_path(object, path))
                r = hf__json_set(object, path, hf__json_object());
        return r == 0 ? hf__json_put_string(hf__json_path(object, path), key, text) : r;
}

int hfd_daemon_set_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct hfd_preset presets[] =
                {{"spec", "updateStrategy", "{}", NULL},
                 {"spec.updateStrategy", "type", "\"RollingUpdate\"", NULL, true},
                 {"spec.updateStrategy", "rollingUpdate", "{}", "RollingUpdate"},
                 {"spec.updateStrategy.rollingUpdate", "maxUnavailable", "1", NULL},
                 {"spec.updateStrategy.rollingUpdate", "maxSurge", "0", NULL},
                 {"spec", "revisionHistoryLimit", "10", NULL},
                 {"status", "currentNumberScheduled", "0", NULL},
                 {"status", "desiredNumberScheduled", "0", NULL},
                 {"status", "numberMisscheduled", "0", NULL},
                 {"status", "numberReady", "0", NULL}};

        int r = hfd_presets_set_with_template(object, presets, HFD_N_PRESETS(presets));

        return r == 0 ? count_templates(object, old) : r;
}

int hfd_deployment_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct hfd_preset presets[] =
                {{"spec", "replicas", "1", NULL},
                 {"spec", "strategy", "{}", NULL},
                 {"spec.strategy", "type", "\"RollingUpdate\"", NULL, true},
                 {"spec.strategy", "rollingUpdate", "{}", "RollingUpdate"},
                 {"spec.strategy.rollingUpdate", "maxUnavailable", "\"25%\"", NULL},
                 {"spec.strategy.rollingUpdate", "maxSurge", "\"25%\"", NULL},
                 {"spec", "revisionHistoryLimit", "10", NULL},
                 {"spec", "progressDeadlineSeconds", "600", NULL}};

        return hfd_presets_set_with_template(object, presets, HFD_N_PRESETS(presets));
}

int hfd_replica_set_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct hfd_preset presets[] = {{"spec", "replicas", "1", NULL},
                                                    {"status", "replicas", "0", NULL}};

        return hfd_presets_set_with_template(object, presets, HFD_N_PRESETS(presets));
}

/* Unlike the other kinds, a StatefulSet gets the member rollingUpdate, the last row, only if it
 * names no type. 0 or -ENOMEM. */
static int set_rolling_update(struct hf__json *object) {
        static const struct hfd_preset presets[] = {{"", "spec", "{}", NULL},
                                                    {"spec", "updateStrategy", "{}", NULL},
                                                    {"spec.updateStrategy", "rollingUpdate", "{}",
                                                     NULL}};
        const char *type = hf__json_string(object, "spec.updateStrategy.type");

        return hfd_presets_set(object, presets, type && *type ? 2 : HFD_N_PRESETS(presets));
}

int hfd_stateful_set_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct hfd_preset presets[] =
                {{"spec", "podManagementPolicy", "\"OrderedReady\"", NULL, true},
                 {"spec.updateStrategy", "type", "\"RollingUpdate\"", NULL, true},
                 {"spec", "persistentVolumeClaimRetentionPolicy", "{}", NULL},
                 {"spec.persistentVolumeClaimRetentionPolicy", "whenDeleted", "\"Retain\"", NULL,
                  true},
                 {"spec.persistentVolumeClaimRetentionPolicy", "whenScaled", "\"Retain\"", NULL,
                  true},
                 {"spec", "replicas", "1", NULL},
                 {"spec", "revisionHistoryLimit", "10", NULL},
                 {"spec.volumeClaimTemplates[]", "apiVersion", "\"v1\"", NULL},
                 {"spec.volumeClaimTemplates[]", "kind", "\"PersistentVolumeClaim\"", NULL},
                 {"status", "replicas", "0", NULL},
                 {"status", "availableReplicas", "0", NULL}};
        static const struct hfd_preset rolling[] = {{"spec.updateStrategy.rollingUpdate",
                                                     "partition", "0", NULL},
                                                    {"spec.updateStrategy.rollingUpdate",
                                                     "maxUnavailable", "1", NULL}};
        int r = set_rolling_update(object);

        if (r == 0)
                r = hfd_presets_set_with_template(object, presets, HFD_N_PRESETS(presets));
        if (r == 0 && hf__json_has_text(hf__json_path(object, "spec.updateStrategy"), "type",
                                        "RollingUpdate"))
                r = hfd_presets_set(object, rolling, HFD_N_PRESETS(rolling));
        for (struct hf__json *m =
                     hf__json_first(hf__json_path(object, "spec.volumeClaimTemplates"));
             m && r == 0; m = hf__json_next(m))
                r = hfd_claim_template_prepare(m);
        return r;
}

/* ---- batch ---- */

static int put_if_absent(struct hf__json *labels, const char *key, const char *value) {
        return hf__json_get(labels, key) ? 0 : hf__json_put_string(labels, key, value);
}

/* Gives the template labels with the uid and the name of the Job, and the Job a selector for the
 * uid, so that it finds its own pods only. The labels without a prefix are Kubernetes' older names.
 * A label that the client has set to another value stays, and the rules refuse it
 * (hfd_job_validate). With spec.manualSelector the client has set both. 0 or -ENOMEM. */
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
                r = put_if_absent(labels, keys[i], uid);
                if (r == 0)
                        r = put_if_absent(labels, names[i], name);
        }
        return r == 0 ? put_if_absent(selector, keys[0], uid) : r;
}

/* A condition of pods that a rule of spec.podFailurePolicy names without a status has the status
 * True. spec: that of a Job. 0 or -ENOMEM. */
static int set_failure_policy(struct hf__json *spec) {
        static const struct hfd_preset status = {"onPodConditions[]", "status", "\"True\"", NULL,
                                                 true};
        int r = 0;

        for (struct hf__json *m = hf__json_first(hf__json_path(spec, "podFailurePolicy.rules"));
             m && r == 0; m = hf__json_next(m))
                r = hfd_presets_set(m, &status, 1);
        return r;
}

/* Defaults that depend on other members. With backoffLimitPerIndex each index has a limit of its
 * own for failed pods, so backoffLimit is the largest int32. A podFailurePolicy decides by how a
 * pod has failed, so a pod is replaced only after it has failed. 0 or -ENOMEM. */
static int set_failure_limits(struct hf__json *spec) {
        const struct hfd_preset presets[] =
                {{"", "backoffLimit",
                  hf__json_get(spec, "backoffLimitPerIndex") ? "2147483647" : "6", NULL},
                 {"", "podReplacementPolicy",
                  hf__json_get(spec, "podFailurePolicy") ? "\"Failed\"" : "\"TerminatingOrFailed\"",
                  NULL}};
        int r = hfd_presets_set(spec, presets, HFD_N_PRESETS(presets));

        return r == 0 ? set_failure_policy(spec) : r;
}

int hfd_job_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct hfd_preset presets[] = {{"spec", "parallelism", "1", NULL},
                                                    {"spec", "completionMode", "\"NonIndexed\"",
                                                     NULL},
                                                    {"spec", "suspend", "false", NULL},
                                                    {"spec", "manualSelector", "false", NULL}};
        static const struct hfd_preset completions = {"spec", "completions", "1", NULL};
        /* completions are 1 by default only if both members are absent. With parallelism alone,
         * absent completions mean that the success of any pod ends the Job. */
        bool is_plain = !hf__json_path(object, "spec.completions") &&
                        !hf__json_path(object, "spec.parallelism");
        int r = hfd_presets_set_with_template(object, presets, HFD_N_PRESETS(presets));

        if (r == 0)
                r = set_failure_limits(hf__json_get(object, "spec"));
        if (r == 0 && is_plain)
                r = hfd_presets_set(object, &completions, 1);
        if (r == 0 && !old)
                r = set_job_selector(object);
        /* A Job without labels gets those of its template, also those that set_job_selector has
         * added: Kubernetes sets the default again when it reads the Job. */
        return r == 0 ? hfd_presets_copy_labels(object, "metadata.labels",
                                                hf__json_path(object,
                                                              "spec.template.metadata.labels"))
                      : r;
}

int hfd_cron_job_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct hfd_preset presets[] = {{"", "spec", "{}", NULL},
                                                    {"", "status", "{}", NULL},
                                                    {"spec", "concurrencyPolicy", "\"Allow\"", NULL,
                                                     true},
                                                    {"spec", "suspend", "false", NULL},
                                                    {"spec", "successfulJobsHistoryLimit", "3",
                                                     NULL},
                                                    {"spec", "failedJobsHistoryLimit", "1", NULL},
                                                    {"spec", "jobTemplate", "{}", NULL},
                                                    {"spec.jobTemplate", "spec", "{}", NULL},
                                                    {"spec.jobTemplate", "metadata", "{}", NULL}};
        int r = hfd_presets_set(object, presets, HFD_N_PRESETS(presets));
        struct hf__json *spec = hf__json_path(object, "spec.jobTemplate.spec");

        if (r == 0)
                r = set_failure_policy(spec);
        return r == 0 ? hfd_pod_template_default(spec, "template") : r;
}

/* ---- other groups ---- */

int hfd_horizontal_pod_autoscaler_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct hfd_preset presets[] =
                {{"", "spec", "{}", NULL},
                 {"spec", "minReplicas", "1", NULL},
                 {"spec", "metrics",
                  "[{\"type\":\"Resource\",\"resource\":{\"name\":\"cpu\",\"target\":{\"type\":"
                  "\"Utilization\",\"averageUtilization\":80}}}]",
                  NULL},
                 {"spec.behavior", "scaleUp", "{}", NULL},
                 {"spec.behavior.scaleUp", "stabilizationWindowSeconds", "0", NULL},
                 {"spec.behavior.scaleUp", "selectPolicy", "\"Max\"", NULL},
                 {"spec.behavior.scaleUp", "policies",
                  "[{\"type\":\"Pods\",\"value\":4,\"periodSeconds\":15},"
                  "{\"type\":\"Percent\",\"value\":100,\"periodSeconds\":15}]",
                  NULL},
                 {"spec.behavior", "scaleDown", "{}", NULL},
                 {"spec.behavior.scaleDown", "selectPolicy", "\"Max\"", NULL},
                 {"spec.behavior.scaleDown", "policies",
                  "[{\"type\":\"Percent\",\"value\":100,\"periodSeconds\":15}]", NULL},
                 {"", "status", "{}", NULL},
                 {"status", "desiredReplicas", "0", NULL}};

        return hfd_presets_set(object, presets, HFD_N_PRESETS(presets));
}

/* There is no preset for metrics, which v1 does not have: the conversion to v2 sets the default
 * metric (autoscaler_conversion.c). */
int hfd_autoscaler_v1_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct hfd_preset presets[] = {{"", "spec", "{}", NULL},
                                                    {"spec", "minReplicas", "1", NULL},
                                                    {"", "status", "{}", NULL},
                                                    {"status", "currentReplicas", "0", NULL},
                                                    {"status", "desiredReplicas", "0", NULL}};

        return hfd_presets_set(object, presets, HFD_N_PRESETS(presets));
}

int hfd_ingress_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct hfd_preset presets[] = {{"", "spec", "{}", NULL},
                                                    {"", "status", "{}", NULL},
                                                    {"status", "loadBalancer", "{}", NULL}};

        return hfd_presets_set(object, presets, HFD_N_PRESETS(presets));
}

int hfd_ingress_class_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct hfd_preset presets[] = {{"", "spec", "{}", NULL},
                                                    {"spec.parameters", "scope", "\"Cluster\"",
                                                     NULL}};

        return hfd_presets_set(object, presets, HFD_N_PRESETS(presets));
}

int hfd_pod_disruption_budget_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct hfd_preset presets[] = {{"", "spec", "{}", NULL},
                                                    {"", "status", "{}", NULL},
                                                    {"status", "disruptionsAllowed", "0", NULL},
                                                    {"status", "currentHealthy", "0", NULL},
                                                    {"status", "desiredHealthy", "0", NULL},
                                                    {"status", "expectedPods", "0", NULL}};

        return hfd_presets_set(object, presets, HFD_N_PRESETS(presets));
}

int hfd_network_policy_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct hfd_preset spec = {"", "spec", "{}", NULL},
                                       protocol = {"ports[]", "protocol", "\"TCP\"", NULL};
        static const char *const rules[] = {"spec.ingress", "spec.egress"};
        int r = hfd_presets_set(object, &spec, 1);

        for (size_t i = 0; i < 2; i++)
                for (struct hf__json *m = hf__json_first(hf__json_path(object, rules[i]));
                     m && r == 0; m = hf__json_next(m))
                        r = hfd_presets_set(m, &protocol, 1);
        if (r != 0 || hf__json_path(object, "spec.policyTypes"))
                return r;
        /* By default a policy restricts what its pods receive, and what they send only if it has
         * rules for that. */
        const struct hfd_preset types = {"spec", "policyTypes",
                                         hf__json_path(object, "spec.egress")
                                                 ? "[\"Ingress\",\"Egress\"]"
                                                 : "[\"Ingress\"]",
                                         NULL};
        return hfd_presets_set(object, &types, 1);
}

/* ---- discovery ---- */

static const char topology[] = "deprecatedTopology";

/* The name of the node in the topology of an endpoint; NULL: it has none. */
static const char *node_of(const struct hf__json *endpoint) {
        return hf__json_text(
                hf__json_get(hf__json_get(endpoint, topology), "kubernetes.io/hostname"));
}

static bool has_topology(const struct hf__json *endpoints) {
        const struct hf__json *m = hf__json_first(endpoints);

        while (m && !hf__json_get(m, topology))
                m = hf__json_next(m);
        return m;
}

static int list_nodes(const struct hf__json *endpoints, struct hf__json *nodes) {
        int r = 0;

        for (const struct hf__json *m = hf__json_first(endpoints); m && r == 0;
             m = hf__json_next(m))
                if (node_of(m))
                        r = hf__json_append_string(nodes, node_of(m));
        return r;
}

/* Drops the topology of each endpoint. An endpoint without a nodeName gets the node that its
 * topology names, if the name is valid and a topology of the old endpoints has it too. old_nodes:
 * an index of the nodes in old topologies. 0 or -ENOMEM. */
static int replace_topology(struct hf__json *endpoints, const struct hf__json_index *old_nodes) {
        int r = 0;

        for (struct hf__json *m = hf__json_first(endpoints); m && r == 0; m = hf__json_next(m)) {
                const char *node = node_of(m);
                if (node && !hf__json_get(m, "nodeName") && hfd_is_dns_subdomain(node) &&
                    hf__json_index_find(old_nodes, node))
                        r = hf__json_put_string(m, "nodeName", node);
                if (r == 0)
                        hf__json_drop(m, topology);
        }
        return r;
}

/* The topology of endpoints is a member of v1beta1. As in Kubernetes, a client of v1 cannot write
 * it, but endpoints that were stored with one keep it until an update changes an endpoint. 0 or
 * -ENOMEM. */
static int drop_topology(struct hf__json *object, const struct hf__json *old) {
        HF__CLEANUP(hf__json_cleanup) struct hf__json *nodes = NULL;
        struct hf__json *endpoints = hf__json_get(object, "endpoints");
        struct hf__json_index old_nodes;
        bool is_kept = false;
        int r = 0;

        if (object == old || !has_topology(endpoints))
                return 0;
        if (old)
                r = hfd_schema_are_members_equal(&hfd_endpoint_slice_schema, object, old,
                                                 "endpoints", &is_kept);
        if (r != 0 || is_kept)
                return r;
        nodes = hf__json_array();
        if (!nodes)
                return -ENOMEM;
        r = list_nodes(hf__json_get(old, "endpoints"), nodes);
        if (r == 0)
                r = hf__json_index_init(&old_nodes, nodes, NULL);
        if (r != 0)
                return r;
        r = replace_topology(endpoints, &old_nodes);
        hf__json_index_done(&old_nodes);
        return r;
}

int hfd_endpoint_slice_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct hfd_preset presets[] = {{"ports[]", "name", "\"\"", NULL},
                                                    {"ports[]", "protocol", "\"TCP\"", NULL},
                                                    {"endpoints[]", "conditions", "{}", NULL}};
        int r = hfd_presets_set(object, presets, HFD_N_PRESETS(presets));

        return r == 0 ? drop_topology(object, old) : r;
}

/* ---- storage ---- */

int hfd_storage_class_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct hfd_preset presets[] = {{"", "reclaimPolicy", "\"Delete\"", NULL},
                                                    {"", "volumeBindingMode", "\"Immediate\"",
                                                     NULL}};

        return hfd_presets_set(object, presets, HFD_N_PRESETS(presets));
}

int hfd_csi_driver_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct hfd_preset presets[] = {{"", "spec", "{}", NULL},
                                                    {"spec", "attachRequired", "true", NULL},
                                                    {"spec", "podInfoOnMount", "false", NULL},
                                                    {"spec", "storageCapacity", "false", NULL},
                                                    {"spec", "fsGroupPolicy",
                                                     "\"ReadWriteOnceWithFSType\"", NULL},
                                                    {"spec", "volumeLifecycleModes",
                                                     "[\"Persistent\"]", NULL},
                                                    {"spec", "requiresRepublish", "false", NULL},
                                                    {"spec", "seLinuxMount", "false", NULL}};

        /* The server has given the new object the generation 1. Kubernetes' strategy for CSIDrivers
         * does not do so on create, and only counts changes. */
        if (!old)
                hf__json_remove(object, "metadata.generation");
        return hfd_presets_set(object, presets, HFD_N_PRESETS(presets));
}

int hfd_volume_attachment_prepare(struct hf__json *object, const struct hf__json *old) {
        static const struct hfd_preset presets[] = {{"", "spec", "{}", NULL},
                                                    {"", "status", "{}", NULL},
                                                    {"status", "attached", "false", NULL}};

        return hfd_presets_set(object, presets, HFD_N_PRESETS(presets));
}
