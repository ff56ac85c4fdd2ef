/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural schemas of CSIDriver, CSINode and VolumeAttachment, which describe the drivers of
 * volumes (CSI) and the volumes that they attach to nodes.
 *
 * A table has a row for each field of a Go struct of k8s.io/api/storage/v1: the name in JSON, the
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

static const char *const by_name[] = {"name", NULL};
static const struct hfd_schema volume_lifecycle_mode_text =
        {.type = HFD_SCHEMA_TEXT, .definition = "io.k8s.api.storage.v1.VolumeLifecycleMode"};
static const struct hfd_schema fs_group_policy_text =
        {.type = HFD_SCHEMA_TEXT, .definition = "io.k8s.api.storage.v1.FSGroupPolicy"};

static const struct hfd_schema_field token_request_fields[] = {
        {"audience", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"expirationSeconds", &hfd_schema_int64, .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema token_request = {
        HFD_STRUCT("io.k8s.api.storage.v1.TokenRequest", token_request_fields)};

static const struct hfd_schema_field csi_driver_spec_fields[] = {
        {"attachRequired", &hfd_schema_boolean, .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
        {"fsGroupPolicy", &fs_group_policy_text, .protobuf_tag = 5, .flags = HFD_FIELD_POINTER},
        {"nodeAllocatableUpdatePeriodSeconds", &hfd_schema_int64, .protobuf_tag = 9,
         .flags = HFD_FIELD_POINTER},
        {"podInfoOnMount", &hfd_schema_boolean, .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
        {"preventPodSchedulingIfMissing", &hfd_schema_boolean, .protobuf_tag = 11,
         .flags = HFD_FIELD_POINTER},
        {"requiresRepublish", &hfd_schema_boolean, .protobuf_tag = 7, .flags = HFD_FIELD_POINTER},
        {"seLinuxMount", &hfd_schema_boolean, .protobuf_tag = 8, .flags = HFD_FIELD_POINTER},
        {"serviceAccountTokenInSecrets", &hfd_schema_boolean, .protobuf_tag = 10,
         .flags = HFD_FIELD_POINTER},
        {"storageCapacity", &hfd_schema_boolean, .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
        {"tokenRequests", HFD_LIST_OF(&token_request), .protobuf_tag = 6},
        {"volumeLifecycleModes",
         HFD_LIST_OF(&volume_lifecycle_mode_text, .list_type = HFD_LIST_SET), .protobuf_tag = 3},
};
static const struct hfd_schema csi_driver_spec = {
        HFD_STRUCT("io.k8s.api.storage.v1.CSIDriverSpec", csi_driver_spec_fields)};

static const struct hfd_schema_field csi_driver_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA_AS(
                "Standard object metadata. metadata.Name indicates the name of the CSI driver that "
                "this object refers to; it MUST be the same name returned by the CSI "
                "GetPluginName() call for that driver. The driver name must be 63 characters or "
                "less, beginning and ending with an alphanumeric character ([a-z0-9A-Z]) with "
                "dashes (-), dots (.), and alphanumerics between. More info: " HFD_CONVENTIONS
                "#metadata"),
        {"spec", &csi_driver_spec, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
};
const struct hfd_schema hfd_csi_driver_schema = {
        HFD_STRUCT("io.k8s.api.storage.v1.CSIDriver", csi_driver_fields)};

static const struct hfd_schema_field volume_node_resources_fields[] = {
        {"count", &hfd_schema_int32, .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema volume_node_resources = {
        HFD_STRUCT("io.k8s.api.storage.v1.VolumeNodeResources", volume_node_resources_fields)};

static const struct hfd_schema_field csi_node_driver_fields[] = {
        {"allocatable", &volume_node_resources, .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
        {"name", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"nodeID", &hfd_schema_text, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"topologyKeys", &hfd_schema_list_of_texts, .protobuf_tag = 3,
         .flags = HFD_FIELD_KEEPS_EMPTY},
};
static const struct hfd_schema csi_node_driver = {
        HFD_STRUCT("io.k8s.api.storage.v1.CSINodeDriver", csi_node_driver_fields)};

static const struct hfd_schema_field csi_node_spec_fields[] = {
        {"drivers", HFD_LIST_OF(&csi_node_driver, .list_type = HFD_LIST_MAP, .list_keys = by_name),
         .merge_key = "name", .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED | HFD_FIELD_MERGE},
};
static const struct hfd_schema csi_node_spec = {
        HFD_STRUCT("io.k8s.api.storage.v1.CSINodeSpec", csi_node_spec_fields)};

static const struct hfd_schema_field csi_node_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA_AS(
                "Standard object's metadata. metadata.name must be the Kubernetes node name."),
        {"spec", &csi_node_spec, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
};
const struct hfd_schema hfd_csi_node_schema = {
        HFD_STRUCT("io.k8s.api.storage.v1.CSINode", csi_node_fields)};

static const struct hfd_schema_field volume_attachment_source_fields[] = {
        {"inlineVolumeSpec", &hfd_persistent_volume_spec_schema, .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"persistentVolumeName", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema volume_attachment_source = {
        HFD_STRUCT("io.k8s.api.storage.v1.VolumeAttachmentSource",
                   volume_attachment_source_fields)};

static const struct hfd_schema_field volume_attachment_spec_fields[] = {
        {"attacher", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"nodeName", &hfd_schema_text, .protobuf_tag = 3, .flags = HFD_FIELD_REQUIRED},
        {"source", &volume_attachment_source, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema volume_attachment_spec = {
        HFD_STRUCT("io.k8s.api.storage.v1.VolumeAttachmentSpec", volume_attachment_spec_fields)};

static const struct hfd_schema_field volume_error_fields[] = {
        {"errorCode", &hfd_schema_int32, .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
        {"message", &hfd_schema_text, .protobuf_tag = 2},
        {"time", &hfd_schema_time, .protobuf_tag = 1},
};
static const struct hfd_schema volume_error = {
        HFD_STRUCT("io.k8s.api.storage.v1.VolumeError", volume_error_fields)};

static const struct hfd_schema_field volume_attachment_status_fields[] = {
        {"attachError", &volume_error, .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
        {"attached", &hfd_schema_boolean, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"attachmentMetadata", &hfd_schema_map_of_texts, .protobuf_tag = 2},
        {"detachError", &volume_error, .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema volume_attachment_status = {
        HFD_STRUCT("io.k8s.api.storage.v1.VolumeAttachmentStatus",
                   volume_attachment_status_fields)};

static const struct hfd_schema_field volume_attachment_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA_AS("Standard object metadata. More info: " HFD_CONVENTIONS "#metadata"),
        {"spec", &volume_attachment_spec, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"status", &volume_attachment_status, .protobuf_tag = 3},
};
const struct hfd_schema hfd_volume_attachment_schema = {
        HFD_STRUCT("io.k8s.api.storage.v1.VolumeAttachment", volume_attachment_fields)};
