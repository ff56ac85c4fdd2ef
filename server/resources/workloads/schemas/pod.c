/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural schema of Pod, with the status. Its spec is that of a pod template
 * (strategies/pod/pod_schema.c).
 *
 * A table has a row for each field of a Go struct of k8s.io/api/core/v1: the name in JSON, the
 * schema of the value, the number of the field in protobuf (protobuf_tag), and flags.
 * HFD_FIELD_POINTER stands for a Go pointer, HFD_FIELD_MERGE and merge_key for the struct tags
 * patchStrategy and patchMergeKey, and list_type and list_keys for the markers +listType and
 * +listMapKey. A schema named *_text (not hfd_schema_text) is a Go string type with a name of its
 * own; error messages show this name.
 *
 * Invariants: the rows of a table are sorted by name (strcmp), because look-ups bisect it. The
 * number and the type of a field never change: clients that use protobuf find a field by its number
 * alone.
 */
#include "server/resources/workloads/workloads.h"

#include "server/resources/strategies/pod/pod_schema.h"
#include "server/schema/common.h"

static const char *const by_type[] = {"type", NULL};
static const char *const by_ip[] = {"ip", NULL};
static const char *const by_mount_path[] = {"mountPath", NULL};
static const char *const by_resource_id[] = {"resourceID", NULL};
static const char *const by_name[] = {"name", NULL};
static const struct hfd_schema pod_phase_text = {.type = HFD_SCHEMA_TEXT,
                                                 .definition = HFD_CORE "PodPhase"};
static const struct hfd_schema pod_condition_type_text = {.type = HFD_SCHEMA_TEXT,
                                                          .definition =
                                                                  HFD_CORE "PodConditionType"};
static const struct hfd_schema condition_status_text = {.type = HFD_SCHEMA_TEXT,
                                                        .definition = HFD_CORE "ConditionStatus"};
static const struct hfd_schema recursive_read_only_mode_text = {.type = HFD_SCHEMA_TEXT,
                                                                .definition = HFD_CORE
                                                                "RecursiveReadOnlyMode"};
static const struct hfd_schema resource_name_text = {.type = HFD_SCHEMA_TEXT,
                                                     .definition = HFD_CORE "ResourceName"};
static const struct hfd_schema resource_id_text = {.type = HFD_SCHEMA_TEXT,
                                                   .definition = HFD_CORE "ResourceID"};
static const struct hfd_schema resource_health_status_text = {.type = HFD_SCHEMA_TEXT,
                                                              .definition = HFD_CORE
                                                              "ResourceHealthStatus"};
static const struct hfd_schema signal_text = {.type = HFD_SCHEMA_TEXT,
                                              .definition = HFD_CORE "Signal"};
static const struct hfd_schema pod_qos_class_text = {.type = HFD_SCHEMA_TEXT,
                                                     .definition = HFD_CORE "PodQOSClass"};
static const struct hfd_schema pod_resize_status_text = {.type = HFD_SCHEMA_TEXT,
                                                         .definition = HFD_CORE "PodResizeStatus"};

/* Besides the kubelet, other programs add conditions, such as those that the readinessGates of the
 * spec name. So the type is any text. */
static const struct hfd_schema_field pod_condition_fields[] = {
        {"lastProbeTime", &hfd_schema_time, .protobuf_tag = 3},
        {"lastTransitionTime", &hfd_schema_time, .protobuf_tag = 4},
        {"message", &hfd_schema_text, .protobuf_tag = 6},
        {"observedGeneration", &hfd_schema_int64, .protobuf_tag = 7},
        {"reason", &hfd_schema_text, .protobuf_tag = 5},
        {"status", &condition_status_text, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"type", &pod_condition_type_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema pod_condition = {
        HFD_STRUCT(HFD_CORE "PodCondition", pod_condition_fields)};

static const struct hfd_schema_field host_ip_fields[] = {
        {"ip", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema host_ip = {HFD_STRUCT(HFD_CORE "HostIP", host_ip_fields)};

static const struct hfd_schema_field pod_ip_fields[] = {
        {"ip", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema pod_ip = {HFD_STRUCT(HFD_CORE "PodIP", pod_ip_fields)};

static const struct hfd_schema_field container_state_waiting_fields[] = {
        {"message", &hfd_schema_text, .protobuf_tag = 2},
        {"reason", &hfd_schema_text, .protobuf_tag = 1},
};
static const struct hfd_schema container_state_waiting = {
        HFD_STRUCT(HFD_CORE "ContainerStateWaiting", container_state_waiting_fields)};

static const struct hfd_schema_field container_state_running_fields[] = {
        {"startedAt", &hfd_schema_time, .protobuf_tag = 1},
};
static const struct hfd_schema container_state_running = {
        HFD_STRUCT(HFD_CORE "ContainerStateRunning", container_state_running_fields)};

static const struct hfd_schema_field container_state_terminated_fields[] = {
        {"containerID", &hfd_schema_text, .protobuf_tag = 7},
        {"exitCode", &hfd_schema_int32, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"finishedAt", &hfd_schema_time, .protobuf_tag = 6},
        {"message", &hfd_schema_text, .protobuf_tag = 4},
        {"reason", &hfd_schema_text, .protobuf_tag = 3},
        {"signal", &hfd_schema_int32, .protobuf_tag = 2},
        {"startedAt", &hfd_schema_time, .protobuf_tag = 5},
};
static const struct hfd_schema container_state_terminated = {
        HFD_STRUCT(HFD_CORE "ContainerStateTerminated", container_state_terminated_fields)};

/* At most one of the three is set. If none is set, the container is waiting. */
static const struct hfd_schema_field container_state_fields[] = {
        {"running", &container_state_running, .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
        {"terminated", &container_state_terminated, .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
        {"waiting", &container_state_waiting, .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema container_state = {
        HFD_STRUCT(HFD_CORE "ContainerState", container_state_fields)};

static const struct hfd_schema_field image_volume_status_fields[] = {
        {"imageRef", &hfd_schema_text, .protobuf_tag = 1},
};
static const struct hfd_schema image_volume_status = {
        HFD_STRUCT(HFD_CORE "ImageVolumeStatus", image_volume_status_fields)};

static const struct hfd_schema_field volume_status_fields[] = {
        {"image", &image_volume_status, .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema volume_status = {
        HFD_STRUCT(HFD_CORE "VolumeStatus", volume_status_fields)};

static const struct hfd_schema_field volume_mount_status_fields[] = {
        {"mountPath", &hfd_schema_text, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"name", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"readOnly", &hfd_schema_boolean, .protobuf_tag = 3},
        {"recursiveReadOnly", &recursive_read_only_mode_text, .protobuf_tag = 4,
         .flags = HFD_FIELD_POINTER},
        {"volumeStatus", &volume_status, .protobuf_tag = 5, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema volume_mount_status = {
        HFD_STRUCT(HFD_CORE "VolumeMountStatus", volume_mount_status_fields)};

/* What the first process of the container has at its start, after the image and both security
 * contexts were applied. */
static const struct hfd_schema_field linux_container_user_fields[] = {
        {"gid", &hfd_schema_int64, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"supplementalGroups", HFD_LIST_OF(&hfd_schema_int64), .protobuf_tag = 3},
        {"uid", &hfd_schema_int64, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema linux_container_user = {
        HFD_STRUCT(HFD_CORE "LinuxContainerUser", linux_container_user_fields)};

static const struct hfd_schema_field container_user_fields[] = {
        {"linux", &linux_container_user, .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema container_user = {
        HFD_STRUCT(HFD_CORE "ContainerUser", container_user_fields)};

static const struct hfd_schema_field resource_health_fields[] = {
        {"health", &resource_health_status_text, .protobuf_tag = 2},
        {"message", &hfd_schema_text, .protobuf_tag = 6, .flags = HFD_FIELD_POINTER},
        {"resourceID", &resource_id_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema resource_health = {
        HFD_STRUCT(HFD_CORE "ResourceHealth", resource_health_fields)};

static const struct hfd_schema_field resource_status_fields[] = {
        {"name", &resource_name_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"resources",
         HFD_LIST_OF(&resource_health, .list_type = HFD_LIST_MAP, .list_keys = by_resource_id),
         .protobuf_tag = 2},
};
static const struct hfd_schema resource_status = {
        HFD_STRUCT(HFD_CORE "ResourceStatus", resource_status_fields)};

/* The lists of these structs are atomic: one kubelet writes all of them. `started` is a pointer
 * in Go; clients treat an absent one like false. */
static const struct hfd_schema_field container_status_fields[] = {
        {"allocatedResources", &hfd_schema_resource_list, .protobuf_tag = 10},
        {"allocatedResourcesStatus",
         HFD_LIST_OF(&resource_status, .list_type = HFD_LIST_MAP, .list_keys = by_name),
         .merge_key = "name", .protobuf_tag = 14, .flags = HFD_FIELD_MERGE},
        {"containerID", &hfd_schema_text, .protobuf_tag = 8},
        {"image", &hfd_schema_text, .protobuf_tag = 6, .flags = HFD_FIELD_REQUIRED},
        {"imageID", &hfd_schema_text, .protobuf_tag = 7, .flags = HFD_FIELD_REQUIRED},
        {"lastState", &container_state, .protobuf_tag = 3},
        {"name", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"ready", &hfd_schema_boolean, .protobuf_tag = 4, .flags = HFD_FIELD_REQUIRED},
        {"resources", &hfd_resource_requirements_schema, .protobuf_tag = 11,
         .flags = HFD_FIELD_POINTER},
        {"restartCount", &hfd_schema_int32, .protobuf_tag = 5, .flags = HFD_FIELD_REQUIRED},
        {"started", &hfd_schema_boolean, .protobuf_tag = 9, .flags = HFD_FIELD_POINTER},
        {"state", &container_state, .protobuf_tag = 2},
        {"stopSignal", &signal_text, .protobuf_tag = 15, .flags = HFD_FIELD_POINTER},
        {"user", &container_user, .protobuf_tag = 13, .flags = HFD_FIELD_POINTER},
        {"volumeMounts",
         HFD_LIST_OF(&volume_mount_status, .list_type = HFD_LIST_MAP, .list_keys = by_mount_path),
         .merge_key = "mountPath", .protobuf_tag = 12, .flags = HFD_FIELD_MERGE},
};
static const struct hfd_schema container_status = {
        HFD_STRUCT(HFD_CORE "ContainerStatus", container_status_fields)};

static const struct hfd_schema_field pod_resource_claim_status_fields[] = {
        {"name", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"resourceClaimName", &hfd_schema_text, .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema pod_resource_claim_status = {
        HFD_STRUCT(HFD_CORE "PodResourceClaimStatus", pod_resource_claim_status_fields)};

static const struct hfd_schema_field container_extended_resource_request_fields[] = {
        {"containerName", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"requestName", &hfd_schema_text, .protobuf_tag = 3, .flags = HFD_FIELD_REQUIRED},
        {"resourceName", &hfd_schema_text, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema container_extended_resource_request = {
        HFD_STRUCT(HFD_CORE "ContainerExtendedResourceRequest",
                   container_extended_resource_request_fields)};

static const struct hfd_schema_field pod_extended_resource_claim_status_fields[] = {
        {"requestMappings", HFD_LIST_OF(&container_extended_resource_request), .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"resourceClaimName", &hfd_schema_text, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema pod_extended_resource_claim_status = {
        HFD_STRUCT(HFD_CORE "PodExtendedResourceClaimStatus",
                   pod_extended_resource_claim_status_fields)};

static const struct hfd_schema_field node_allocatable_resource_claim_status_fields[] = {
        {"containers", &hfd_schema_set_of_texts, .protobuf_tag = 2},
        {"resourceClaimName", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"resources",
         (&(const struct hfd_schema){.type = HFD_SCHEMA_MAP,
                                     .items = &hfd_schema_quantity,
                                     .definition = "map[v1.ResourceName]resource.Quantity"}),
         .protobuf_tag = 3, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema node_allocatable_resource_claim_status = {
        HFD_STRUCT(HFD_CORE "NodeAllocatableResourceClaimStatus",
                   node_allocatable_resource_claim_status_fields)};

/* hostIP and podIP are the first elements of hostIPs and podIPs, for clients that are older than
 * pods with two addresses. As in Kubernetes, a strategic merge patch merges both lists, but apply
 * merges podIPs alone: hostIPs has the marker +listType=atomic. */
static const struct hfd_schema_field pod_status_fields[] = {
        {"allocatedResources", &hfd_schema_resource_list, .protobuf_tag = 19},
        {"conditions", HFD_LIST_OF(&pod_condition, .list_type = HFD_LIST_MAP, .list_keys = by_type),
         .merge_key = "type", .protobuf_tag = 2, .flags = HFD_FIELD_MERGE},
        {"containerStatuses", HFD_LIST_OF(&container_status), .protobuf_tag = 8},
        {"ephemeralContainerStatuses", HFD_LIST_OF(&container_status), .protobuf_tag = 13},
        {"extendedResourceClaimStatus", &pod_extended_resource_claim_status, .protobuf_tag = 18,
         .flags = HFD_FIELD_POINTER},
        {"hostIP", &hfd_schema_text, .protobuf_tag = 5},
        {"hostIPs", HFD_LIST_OF(&host_ip), .merge_key = "ip", .protobuf_tag = 16,
         .flags = HFD_FIELD_MERGE},
        {"initContainerStatuses", HFD_LIST_OF(&container_status), .protobuf_tag = 10},
        {"message", &hfd_schema_text, .protobuf_tag = 3},
        {"nodeAllocatableResourceClaimStatuses",
         HFD_LIST_OF(&node_allocatable_resource_claim_status), .protobuf_tag = 21},
        {"nominatedNodeName", &hfd_schema_text, .protobuf_tag = 11},
        {"observedGeneration", &hfd_schema_int64, .protobuf_tag = 17},
        {"phase", &pod_phase_text, .protobuf_tag = 1},
        {"podIP", &hfd_schema_text, .protobuf_tag = 6},
        {"podIPs", HFD_LIST_OF(&pod_ip, .list_type = HFD_LIST_MAP, .list_keys = by_ip),
         .merge_key = "ip", .protobuf_tag = 12, .flags = HFD_FIELD_MERGE},
        {"qosClass", &pod_qos_class_text, .protobuf_tag = 9},
        {"reason", &hfd_schema_text, .protobuf_tag = 4},
        {"resize", &pod_resize_status_text, .protobuf_tag = 14},
        {"resourceClaimStatuses",
         HFD_LIST_OF(&pod_resource_claim_status, .list_type = HFD_LIST_MAP, .list_keys = by_name),
         .merge_key = "name", .protobuf_tag = 15, .flags = HFD_FIELD_MERGE | HFD_FIELD_RETAIN_KEYS},
        {"resources", &hfd_resource_requirements_schema, .protobuf_tag = 20,
         .flags = HFD_FIELD_POINTER},
        {"startTime", &hfd_schema_time, .protobuf_tag = 7, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema pod_status = {HFD_STRUCT(HFD_CORE "PodStatus", pod_status_fields)};

static const struct hfd_schema_field pod_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
        {"spec", &hfd_pod_spec_schema, .protobuf_tag = 2},
        {"status", &pod_status, .protobuf_tag = 3},
};
const struct hfd_schema hfd_pod_schema = {HFD_STRUCT(HFD_CORE "Pod", pod_fields)};
