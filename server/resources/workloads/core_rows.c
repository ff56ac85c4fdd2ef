/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of the workload kinds of the core group. resource.h explains each member of a row. A
 * column is {name, type, format, where the cell comes from, only with -o wide}; the cell comes from
 * a JSON path, or from a form that registry/list/table.c knows, such as "@age".
 *
 * Invariants: rows are sorted by plural. The storage segments are part of the on-disk format and
 * never change; some are old names of kube-apiserver ("minions" for Nodes). Columns and flags are
 * those of kube-apiserver, so that kubectl shows the usual tables.
 */
#include "server/resources/resource.h"
#include "server/resources/workloads/workloads.h"

/* Where a ReplicationController has the members that its Scale shows. */
static const struct hfd_scale_paths rc_scale_paths = {.replicas = "spec.replicas",
                                                      .current_replicas = "status.replicas",
                                                      .selector = "spec.selector",
                                                      .selector_is_labels = true};

static const struct hfd_resource rows[] = {
        {
                .group = "",
                .version = "v1",
                .plural = "endpoints",
                .singular = "endpoints",
                .kind = "Endpoints",
                .short_name = "ep",
                .deprecation = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 "
                               "EndpointSlice",
                /* In the store endpoints and services ("services/specs") have a common prefix. It
                 * is that of the first versions of Kubernetes, and it never changes. */
                .storage = "services/endpoints",
                .namespaced = true,
                .create_on_update = true,
                .unconditional_update = true,
                .columns = HFD_COLUMNS({"Name", "string", "name", "metadata.name"},
                                       {"Endpoints", "string", "", "@endpoints"},
                                       {"Age", "string", "", "@age"}),
                .schema = &hfd_endpoints_schema,
                .prepare = hfd_endpoints_prepare,
                .validate = hfd_endpoints_validate,
        },
        {
                .group = "",
                .version = "v1",
                .plural = "nodes",
                .singular = "node",
                .kind = "Node",
                .short_name = "no",
                .storage = "minions",
                .unconditional_update = true,
                /* A kubelet registers its node with addresses and capacity, by one create. So a
                 * create keeps the status, although later writes of it need .../status. */
                .subresources = HFD_SUB_STATUS,
                .created_with_status = true,
                .subresources_write_meta = true,
                .columns = HFD_COLUMNS({"Name", "string", "name", "metadata.name"},
                                       {"Status", "string", "", "@node:status"},
                                       {"Roles", "string", "", "@node:roles"},
                                       {"Age", "string", "", "@age"},
                                       {"Version", "string", "", "status.nodeInfo.kubeletVersion"},
                                       {"Internal-IP", "string", "", "@node:InternalIP", true},
                                       {"External-IP", "string", "", "@node:ExternalIP", true},
                                       {"OS-Image", "string", "", "@known:status.nodeInfo.osImage",
                                        true},
                                       {"Kernel-Version", "string", "",
                                        "@known:status.nodeInfo.kernelVersion", true},
                                       {"Container-Runtime", "string", "",
                                        "@known:status.nodeInfo.containerRuntimeVersion", true}),
                .schema = &hfd_node_schema,
                .prepare = hfd_node_prepare,
                .validate = hfd_node_validate,
                .validate_status = hfd_node_validate_status,
        },
        {
                .group = "",
                .version = "v1",
                .plural = "persistentvolumeclaims",
                .singular = "persistentvolumeclaim",
                .kind = "PersistentVolumeClaim",
                .short_name = "pvc",
                .storage = "persistentvolumeclaims",
                .namespaced = true,
                .unconditional_update = true,
                .subresources = HFD_SUB_STATUS,
                .subresources_write_meta = true,
                /* The capacity is that of the volume that was bound, from the status: it may be
                 * more than the claim has asked for. */
                .columns =
                        HFD_COLUMNS({"Name", "string", "name", "metadata.name"},
                                    {"Status", "string", "", "status.phase"},
                                    {"Volume", "string", "", "spec.volumeName"},
                                    {"Capacity", "string", "", "status.capacity.storage"},
                                    {"Access Modes", "string", "", "@modes:status.accessModes"},
                                    {"StorageClass", "string", "", "spec.storageClassName"},
                                    {"VolumeAttributesClass", "string", "",
                                     "@unset:spec.volumeAttributesClassName"},
                                    {"Age", "string", "", "@age"},
                                    {"VolumeMode", "string", "", "@unset:spec.volumeMode", true}),
                .schema = &hfd_persistent_volume_claim_schema,
                .prepare = hfd_persistent_volume_claim_prepare,
                .validate = hfd_claim_validate,
                .validate_status = hfd_claim_validate_status,
        },
        {
                .group = "",
                .version = "v1",
                /* A volume belongs to the cluster, and a claim to a namespace: so a namespace can
                 * be deleted, and the volume with its data stays. */
                .plural = "persistentvolumes",
                .singular = "persistentvolume",
                .kind = "PersistentVolume",
                .short_name = "pv",
                .storage = "persistentvolumes",
                .unconditional_update = true,
                .subresources = HFD_SUB_STATUS,
                .subresources_write_meta = true,
                .columns =
                        HFD_COLUMNS({"Name", "string", "name", "metadata.name"},
                                    {"Capacity", "string", "", "spec.capacity.storage"},
                                    {"Access Modes", "string", "", "@modes:spec.accessModes"},
                                    {"Reclaim Policy", "string", "",
                                     "spec.persistentVolumeReclaimPolicy"},
                                    {"Status", "string", "", "status.phase"},
                                    {"Claim", "string", "", "@claim"},
                                    {"StorageClass", "string", "", "spec.storageClassName"},
                                    {"VolumeAttributesClass", "string", "",
                                     "@unset:spec.volumeAttributesClassName"},
                                    {"Reason", "string", "", "status.reason"},
                                    {"Age", "string", "", "@age"},
                                    {"VolumeMode", "string", "", "@unset:spec.volumeMode", true}),
                .schema = &hfd_persistent_volume_schema,
                .prepare = hfd_persistent_volume_prepare,
                .validate = hfd_persistent_volume_validate,
        },
        {
                .group = "",
                .version = "v1",
                .plural = "pods",
                .singular = "pod",
                .kind = "Pod",
                .short_name = "po",
                .category = "all",
                .storage = "pods",
                .namespaced = true,
                .unconditional_update = true,
                .has_generation = true,
                /* A scheduler assigns a pod to a node by .../binding alone: an update cannot set
                 * nodeName. Clients that want to respect PodDisruptionBudgets delete by
                 * .../eviction; here budgets have no effect (registry/parts/pod_parts.c). */
                .subresources = HFD_SUB_STATUS | HFD_SUB_BINDING | HFD_SUB_EVICTION |
                                HFD_SUB_EPHEMERAL_CONTAINERS | HFD_SUB_RESIZE,
                .subresources_write_meta = true,
                .parts = &hfd_pod_part_rules,
                .columns = HFD_COLUMNS({"Name", "string", "name", "metadata.name"},
                                       {"Ready", "string", "", "@pod:ready"},
                                       {"Status", "string", "", "@pod:status"},
                                       {"Restarts", "string", "", "@pod:restarts"},
                                       {"Age", "string", "", "@age"},
                                       {"IP", "string", "", "@none:status.podIP", true},
                                       {"Node", "string", "", "@none:spec.nodeName", true},
                                       {"Nominated Node", "string", "",
                                        "@none:status.nominatedNodeName", true},
                                       {"Readiness Gates", "string", "", "@pod:gates", true}),
                .schema = &hfd_pod_schema,
                .prepare = hfd_pod_prepare,
                .complete = hfd_pod_complete,
                .validate = hfd_pod_validate,
                .validate_status = hfd_pod_validate_status,
        },
        {
                .group = "",
                .version = "v1",
                .plural = "replicationcontrollers",
                .singular = "replicationcontroller",
                .kind = "ReplicationController",
                .short_name = "rc",
                .category = "all",
                .storage = "controllers",
                .namespaced = true,
                .unconditional_update = true,
                .has_generation = true,
                .subresources = HFD_SUB_STATUS | HFD_SUB_SCALE,
                .subresources_write_meta = true,
                /* Its selector is a map of labels, not a LabelSelector: the kind is older than
                 * LabelSelectors. */
                .scale = &rc_scale_paths,
                .columns = HFD_COLUMNS({"Name", "string", "name", "metadata.name"},
                                       {"Desired", "integer", "", "@integer:spec.replicas"},
                                       {"Current", "integer", "", "@integer:status.replicas"},
                                       {"Ready", "integer", "", "@integer:status.readyReplicas"},
                                       {"Age", "string", "", "@age"},
                                       {"Containers", "string", "", "@containers:name", true},
                                       {"Images", "string", "", "@containers:image", true},
                                       {"Selector", "string", "", "@labels:spec.selector", true}),
                .schema = &hfd_replication_controller_schema,
                .prepare = hfd_replication_controller_prepare,
                .validate = hfd_replication_controller_validate,
                .validate_status = hfd_replica_set_validate_status,
        },
        {
                .group = "",
                .version = "v1",
                .plural = "services",
                .singular = "service",
                .kind = "Service",
                .short_name = "svc",
                .category = "all",
                .storage = "services/specs",
                .namespaced = true,
                /* The name is a label of DNS, because the cluster's DNS has a name for each
                 * service. */
                .name_is_label = true,
                .create_on_update = true,
                .unconditional_update = true,
                .subresources = HFD_SUB_STATUS,
                .subresources_write_meta = true,
                .columns = HFD_COLUMNS({"Name", "string", "name", "metadata.name"},
                                       {"Type", "string", "", "spec.type"},
                                       {"Cluster-IP", "string", "", "@none:spec.clusterIP"},
                                       {"External-IP", "string", "", "@service:external"},
                                       {"Port(s)", "string", "", "@service:ports"},
                                       {"Age", "string", "", "@age"},
                                       {"Selector", "string", "", "@labels:spec.selector", true}),
                .schema = &hfd_service_schema,
                .prepare = hfd_service_prepare,
                .validate = hfd_service_validate,
                .validate_status = hfd_service_validate_status,
        },
};

const struct hfd_resource *hfd_core_workload_rows(size_t *ret_n) {
        *ret_n = sizeof rows / sizeof rows[0];
        return rows;
}
