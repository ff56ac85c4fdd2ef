/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural schema of Node.
 *
 * A table has a row for each field of a Go struct of k8s.io/api/core/v1: the name in JSON, the
 * schema of the value, the number of the field in protobuf (protobuf_tag), and flags.
 * HFD_FIELD_POINTER stands for a Go pointer, HFD_FIELD_MERGE and merge_key for the struct tags
 * patchStrategy and patchMergeKey, list_type and list_keys for the markers +listType and
 * +listMapKey, and HFD_FIELD_KEEPS_EMPTY for a tag without omitempty. A schema named *_text (not
 * hfd_schema_text) is a Go string type with a name of its own; error messages show this name.
 *
 * Invariants: the rows of a table are sorted by name (strcmp), because look-ups bisect it. The
 * number and the type of a field never change: clients that use protobuf find a field by its number
 * alone.
 */
#include "server/resources/workloads/workloads.h"

#include "server/resources/strategies/pod/pod_schema.h"
#include "server/schema/common.h"

static const char *const by_type[] = {"type", NULL};
static const struct hfd_schema taint_effect_text = {.type = HFD_SCHEMA_TEXT,
                                                    .definition = HFD_CORE "TaintEffect"};
static const struct hfd_schema node_phase_text = {.type = HFD_SCHEMA_TEXT,
                                                  .definition = HFD_CORE "NodePhase"};
static const struct hfd_schema node_condition_type_text = {.type = HFD_SCHEMA_TEXT,
                                                           .definition =
                                                                   HFD_CORE "NodeConditionType"};
static const struct hfd_schema condition_status_text = {.type = HFD_SCHEMA_TEXT,
                                                        .definition = HFD_CORE "ConditionStatus"};
static const struct hfd_schema node_address_type_text = {.type = HFD_SCHEMA_TEXT,
                                                         .definition = HFD_CORE "NodeAddressType"};
static const struct hfd_schema unique_volume_name_text = {.type = HFD_SCHEMA_TEXT,
                                                          .definition =
                                                                  HFD_CORE "UniqueVolumeName"};

static const struct hfd_schema_field taint_fields[] = {
        {"effect", &taint_effect_text, .protobuf_tag = 3, .flags = HFD_FIELD_REQUIRED},
        {"key", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"timeAdded", &hfd_schema_time, .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
        {"value", &hfd_schema_text, .protobuf_tag = 2},
};
static const struct hfd_schema taint = {HFD_STRUCT(HFD_CORE "Taint", taint_fields)};

static const struct hfd_schema_field config_map_node_config_source_fields[] = {
        {"kubeletConfigKey", &hfd_schema_text, .protobuf_tag = 5, .flags = HFD_FIELD_REQUIRED},
        {"name", &hfd_schema_text, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"namespace", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"resourceVersion", &hfd_schema_text, .protobuf_tag = 4},
        {"uid", HFD_NAMED_TEXT("io.k8s.apimachinery.pkg.types.UID"), .protobuf_tag = 3},
};
static const struct hfd_schema config_map_node_config_source = {
        HFD_STRUCT(HFD_CORE "ConfigMapNodeConfigSource", config_map_node_config_source_fields)};

static const struct hfd_schema_field node_config_source_fields[] = {
        {"configMap", &config_map_node_config_source, .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema node_config_source = {
        HFD_STRUCT(HFD_CORE "NodeConfigSource", node_config_source_fields)};

/* configSource and externalID have no use any more, but old Nodes have them. podCIDR is the first
 * element of podCIDRs. */
static const struct hfd_schema_field node_spec_fields[] = {
        {"configSource", &node_config_source, .protobuf_tag = 6, .flags = HFD_FIELD_POINTER},
        {"externalID", &hfd_schema_text, .protobuf_tag = 2},
        {"podCIDR", &hfd_schema_text, .protobuf_tag = 1},
        {"podCIDRs", &hfd_schema_set_of_texts, .protobuf_tag = 7, .flags = HFD_FIELD_MERGE},
        {"providerID", &hfd_schema_text, .protobuf_tag = 3},
        {"taints", HFD_LIST_OF(&taint), .protobuf_tag = 5},
        {"unschedulable", &hfd_schema_boolean, .protobuf_tag = 4},
};
static const struct hfd_schema node_spec = {HFD_STRUCT(HFD_CORE "NodeSpec", node_spec_fields)};

static const struct hfd_schema_field node_condition_fields[] = {
        {"lastHeartbeatTime", &hfd_schema_time, .protobuf_tag = 3},
        {"lastTransitionTime", &hfd_schema_time, .protobuf_tag = 4},
        {"message", &hfd_schema_text, .protobuf_tag = 6},
        {"reason", &hfd_schema_text, .protobuf_tag = 5},
        {"status", &condition_status_text, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"type", &node_condition_type_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema node_condition = {
        HFD_STRUCT(HFD_CORE "NodeCondition", node_condition_fields)};

static const struct hfd_schema_field node_address_fields[] = {
        {"address", &hfd_schema_text, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"type", &node_address_type_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema node_address = {
        HFD_STRUCT(HFD_CORE "NodeAddress", node_address_fields)};

/* "Port" has a capital letter in Kubernetes, too. */
static const struct hfd_schema_field daemon_endpoint_fields[] = {
        {"Port", &hfd_schema_int32, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema daemon_endpoint = {
        HFD_STRUCT(HFD_CORE "DaemonEndpoint", daemon_endpoint_fields)};

static const struct hfd_schema_field node_daemon_endpoints_fields[] = {
        {"kubeletEndpoint", &daemon_endpoint, .protobuf_tag = 1},
};
static const struct hfd_schema node_daemon_endpoints = {
        HFD_STRUCT(HFD_CORE "NodeDaemonEndpoints", node_daemon_endpoints_fields)};

static const struct hfd_schema_field node_swap_status_fields[] = {
        {"capacity", &hfd_schema_int64, .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema node_swap_status = {
        HFD_STRUCT(HFD_CORE "NodeSwapStatus", node_swap_status_fields)};

static const struct hfd_schema_field node_system_info_fields[] = {
        {"architecture", &hfd_schema_text, .protobuf_tag = 10, .flags = HFD_FIELD_REQUIRED},
        {"bootID", &hfd_schema_text, .protobuf_tag = 3, .flags = HFD_FIELD_REQUIRED},
        {"containerRuntimeVersion", &hfd_schema_text, .protobuf_tag = 6,
         .flags = HFD_FIELD_REQUIRED},
        {"kernelVersion", &hfd_schema_text, .protobuf_tag = 4, .flags = HFD_FIELD_REQUIRED},
        {"kubeProxyVersion", &hfd_schema_text, .protobuf_tag = 8, .flags = HFD_FIELD_REQUIRED},
        {"kubeletVersion", &hfd_schema_text, .protobuf_tag = 7, .flags = HFD_FIELD_REQUIRED},
        {"machineID", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"operatingSystem", &hfd_schema_text, .protobuf_tag = 9, .flags = HFD_FIELD_REQUIRED},
        {"osImage", &hfd_schema_text, .protobuf_tag = 5, .flags = HFD_FIELD_REQUIRED},
        {"swap", &node_swap_status, .protobuf_tag = 11, .flags = HFD_FIELD_POINTER},
        {"systemUUID", &hfd_schema_text, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema node_system_info = {
        HFD_STRUCT(HFD_CORE "NodeSystemInfo", node_system_info_fields)};

static const struct hfd_schema_field container_image_fields[] = {
        {"names", &hfd_schema_list_of_texts, .protobuf_tag = 1, .flags = HFD_FIELD_KEEPS_EMPTY},
        {"sizeBytes", &hfd_schema_int64, .protobuf_tag = 2},
};
static const struct hfd_schema container_image = {
        HFD_STRUCT(HFD_CORE "ContainerImage", container_image_fields)};

static const struct hfd_schema_field attached_volume_fields[] = {
        {"devicePath", &hfd_schema_text, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"name", &unique_volume_name_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema attached_volume = {
        HFD_STRUCT(HFD_CORE "AttachedVolume", attached_volume_fields)};

static const struct hfd_schema_field node_config_status_fields[] = {
        {"active", &node_config_source, .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
        {"assigned", &node_config_source, .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
        {"error", &hfd_schema_text, .protobuf_tag = 4},
        {"lastKnownGood", &node_config_source, .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema node_config_status = {
        HFD_STRUCT(HFD_CORE "NodeConfigStatus", node_config_status_fields)};

static const struct hfd_schema_field node_runtime_handler_features_fields[] = {
        {"recursiveReadOnlyMounts", &hfd_schema_boolean, .protobuf_tag = 1,
         .flags = HFD_FIELD_POINTER},
        {"userNamespaces", &hfd_schema_boolean, .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema node_runtime_handler_features = {
        HFD_STRUCT(HFD_CORE "NodeRuntimeHandlerFeatures", node_runtime_handler_features_fields)};

static const struct hfd_schema_field node_runtime_handler_fields[] = {
        {"features", &node_runtime_handler_features, .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
        {"name", &hfd_schema_text, .protobuf_tag = 1},
};
static const struct hfd_schema node_runtime_handler = {
        HFD_STRUCT(HFD_CORE "NodeRuntimeHandler", node_runtime_handler_fields)};

static const struct hfd_schema_field node_features_fields[] = {
        {"supplementalGroupsPolicy", &hfd_schema_boolean, .protobuf_tag = 1,
         .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema node_features = {
        HFD_STRUCT(HFD_CORE "NodeFeatures", node_features_fields)};

/* A strategic merge patch merges addresses by their type, although a node may have several of one
 * type. Kubernetes knows of the mistake, and tells clients to replace the list. */
static const struct hfd_schema_field node_status_fields[] = {
        {"addresses", HFD_LIST_OF(&node_address, .list_type = HFD_LIST_MAP, .list_keys = by_type),
         .merge_key = "type", .protobuf_tag = 5, .flags = HFD_FIELD_MERGE},
        {"allocatable", &hfd_schema_resource_list, .protobuf_tag = 2},
        {"capacity", &hfd_schema_resource_list, .protobuf_tag = 1},
        {"conditions",
         HFD_LIST_OF(&node_condition, .list_type = HFD_LIST_MAP, .list_keys = by_type),
         .merge_key = "type", .protobuf_tag = 4, .flags = HFD_FIELD_MERGE},
        {"config", &node_config_status, .protobuf_tag = 11, .flags = HFD_FIELD_POINTER},
        {"daemonEndpoints", &node_daemon_endpoints, .protobuf_tag = 6},
        {"declaredFeatures", &hfd_schema_list_of_texts, .protobuf_tag = 14},
        {"features", &node_features, .protobuf_tag = 13, .flags = HFD_FIELD_POINTER},
        {"images", HFD_LIST_OF(&container_image), .protobuf_tag = 8},
        {"nodeInfo", &node_system_info, .protobuf_tag = 7},
        {"phase", &node_phase_text, .protobuf_tag = 3},
        {"runtimeHandlers", HFD_LIST_OF(&node_runtime_handler), .protobuf_tag = 12},
        {"volumesAttached", HFD_LIST_OF(&attached_volume), .protobuf_tag = 10},
        {"volumesInUse", HFD_LIST_OF(&unique_volume_name_text), .protobuf_tag = 9},
};
static const struct hfd_schema node_status = {
        HFD_STRUCT(HFD_CORE "NodeStatus", node_status_fields)};

static const struct hfd_schema_field node_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
        {"spec", &node_spec, .protobuf_tag = 2},
        {"status", &node_status, .protobuf_tag = 3},
};
const struct hfd_schema hfd_node_schema = {HFD_STRUCT(HFD_CORE "Node", node_fields)};
