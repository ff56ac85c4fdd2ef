/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural schemas of StorageClass, VolumeAttributesClass and CSIStorageCapacity.
 *
 * A table has a row for each field of a Go struct of k8s.io/api/storage/v1, or of core/v1 if its
 * name begins with HFD_CORE: the name in JSON, the schema of the value, the number of the field in
 * protobuf (protobuf_tag), and flags. HFD_FIELD_POINTER stands for a Go pointer. A schema named
 * *_text (not hfd_schema_text) is a Go string type with a name of its own; error messages show this
 * name.
 *
 * Invariants: the rows of a table are sorted by name (strcmp), because look-ups bisect it. The
 * number and the type of a field never change: clients that use protobuf find a field by its number
 * alone.
 */
#include "server/resources/workloads/workloads.h"

#include "server/resources/strategies/pod/pod_schema.h"
#include "server/schema/common.h"

static const struct hfd_schema persistent_volume_reclaim_policy_text =
        {.type = HFD_SCHEMA_TEXT, .definition = HFD_CORE "PersistentVolumeReclaimPolicy"};
static const struct hfd_schema volume_binding_mode_text =
        {.type = HFD_SCHEMA_TEXT, .definition = "io.k8s.api.storage.v1.VolumeBindingMode"};

static const struct hfd_schema_field topology_selector_label_requirement_fields[] = {
        {"key", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"values", &hfd_schema_list_of_texts, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema topology_selector_label_requirement = {
        HFD_STRUCT(HFD_CORE "TopologySelectorLabelRequirement",
                   topology_selector_label_requirement_fields)};

static const struct hfd_schema_field topology_selector_term_fields[] = {
        {"matchLabelExpressions", HFD_LIST_OF(&topology_selector_label_requirement),
         .protobuf_tag = 1},
};
static const struct hfd_schema topology_selector_term = {HFD_STRUCT(HFD_CORE "TopologySelectorTerm",
                                                                    topology_selector_term_fields),
                                                         .atomic = true};

static const struct hfd_schema_field storage_class_fields[] = {
        {"allowVolumeExpansion", &hfd_schema_boolean, .protobuf_tag = 6,
         .flags = HFD_FIELD_POINTER},
        {"allowedTopologies", HFD_LIST_OF(&topology_selector_term), .protobuf_tag = 8},
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
        {"mountOptions", &hfd_schema_list_of_texts, .protobuf_tag = 5},
        {"parameters", &hfd_schema_map_of_texts, .protobuf_tag = 3},
        {"provisioner", &hfd_schema_text, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"reclaimPolicy", &persistent_volume_reclaim_policy_text, .protobuf_tag = 4,
         .flags = HFD_FIELD_POINTER},
        {"volumeBindingMode", &volume_binding_mode_text, .protobuf_tag = 7,
         .flags = HFD_FIELD_POINTER},
};
const struct hfd_schema hfd_storage_class_schema = {
        HFD_STRUCT("io.k8s.api.storage.v1.StorageClass", storage_class_fields)};

static const struct hfd_schema_field volume_attributes_class_fields[] = {
        HFD_FIELD_API_VERSION,
        {"driverName", &hfd_schema_text, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
        {"parameters", &hfd_schema_map_of_texts, .protobuf_tag = 3},
};
const struct hfd_schema hfd_volume_attributes_class_schema = {
        HFD_STRUCT("io.k8s.api.storage.v1.VolumeAttributesClass", volume_attributes_class_fields)};

static const struct hfd_schema_field csi_storage_capacity_fields[] = {
        HFD_FIELD_API_VERSION,
        {"capacity", &hfd_schema_quantity, .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
        HFD_FIELD_KIND,
        {"maximumVolumeSize", &hfd_schema_quantity, .protobuf_tag = 5, .flags = HFD_FIELD_POINTER},
        HFD_FIELD_METADATA_AS(
                "Standard object's metadata. The name has no particular meaning. It must be a DNS "
                "subdomain (dots allowed, 253 characters). To ensure that there are no conflicts "
                "with other CSI drivers on the cluster, the recommendation is to use csisc-<uuid>, "
                "a generated name, or a reverse-domain name which ends with the unique CSI driver "
                "name.\n\nObjects are namespaced.\n\nMore info: " HFD_CONVENTIONS "#metadata"),
        {"nodeTopology", &hfd_schema_label_selector, .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
        {"storageClassName", &hfd_schema_text, .protobuf_tag = 3, .flags = HFD_FIELD_REQUIRED},
};
const struct hfd_schema hfd_csi_storage_capacity_schema = {
        HFD_STRUCT("io.k8s.api.storage.v1.CSIStorageCapacity", csi_storage_capacity_fields)};
