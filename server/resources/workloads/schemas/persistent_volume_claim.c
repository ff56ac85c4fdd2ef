/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural schema of PersistentVolumeClaim. Its spec is in strategies/pod/volumes.c, because
 * a pod can contain the template of a claim.
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
static const struct hfd_schema persistent_volume_claim_phase_text = {.type = HFD_SCHEMA_TEXT,
                                                                     .definition = HFD_CORE
                                                                     "PersistentVolumeClaimPhase"};
static const struct hfd_schema persistent_volume_access_mode_text = {.type = HFD_SCHEMA_TEXT,
                                                                     .definition = HFD_CORE
                                                                     "PersistentVolumeAccessMode"};
static const struct hfd_schema persistent_volume_claim_condition_type_text =
        {.type = HFD_SCHEMA_TEXT, .definition = HFD_CORE "PersistentVolumeClaimConditionType"};
static const struct hfd_schema condition_status_text = {.type = HFD_SCHEMA_TEXT,
                                                        .definition = HFD_CORE "ConditionStatus"};
static const struct hfd_schema claim_resource_status_text = {.type = HFD_SCHEMA_TEXT,
                                                             .definition = HFD_CORE
                                                             "ClaimResourceStatus"};
static const struct hfd_schema persistent_volume_claim_modify_volume_status_text =
        {.type = HFD_SCHEMA_TEXT, .definition = HFD_CORE "PersistentVolumeClaimModifyVolumeStatus"};

static const struct hfd_schema_field persistent_volume_claim_condition_fields[] = {
        {"lastProbeTime", &hfd_schema_time, .protobuf_tag = 3},
        {"lastTransitionTime", &hfd_schema_time, .protobuf_tag = 4},
        {"message", &hfd_schema_text, .protobuf_tag = 6},
        {"reason", &hfd_schema_text, .protobuf_tag = 5},
        {"status", &condition_status_text, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"type", &persistent_volume_claim_condition_type_text, .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema persistent_volume_claim_condition = {
        HFD_STRUCT(HFD_CORE "PersistentVolumeClaimCondition",
                   persistent_volume_claim_condition_fields)};

static const struct hfd_schema_field modify_volume_status_fields[] = {
        {"status", &persistent_volume_claim_modify_volume_status_text, .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED},
        {"targetVolumeAttributesClassName", &hfd_schema_text, .protobuf_tag = 1},
};
static const struct hfd_schema modify_volume_status = {
        HFD_STRUCT(HFD_CORE "ModifyVolumeStatus", modify_volume_status_fields)};

static const struct hfd_schema_field persistent_volume_claim_status_fields[] = {
        {"accessModes", HFD_LIST_OF(&persistent_volume_access_mode_text), .protobuf_tag = 2},
        {"allocatedResourceStatuses",
         (&(const struct hfd_schema){.type = HFD_SCHEMA_MAP,
                                     .items = &claim_resource_status_text,
                                     .definition = "map[v1.ResourceName]v1.ClaimResourceStatus"}),
         .protobuf_tag = 7},
        {"allocatedResources", &hfd_schema_resource_list, .protobuf_tag = 5},
        {"capacity", &hfd_schema_resource_list, .protobuf_tag = 3},
        {"conditions",
         HFD_LIST_OF(&persistent_volume_claim_condition, .list_type = HFD_LIST_MAP,
                     .list_keys = by_type),
         .merge_key = "type", .protobuf_tag = 4, .flags = HFD_FIELD_MERGE},
        {"currentVolumeAttributesClassName", &hfd_schema_text, .protobuf_tag = 8,
         .flags = HFD_FIELD_POINTER},
        {"modifyVolumeStatus", &modify_volume_status, .protobuf_tag = 9,
         .flags = HFD_FIELD_POINTER},
        {"phase", &persistent_volume_claim_phase_text, .protobuf_tag = 1},
};
static const struct hfd_schema persistent_volume_claim_status = {
        HFD_STRUCT(HFD_CORE "PersistentVolumeClaimStatus", persistent_volume_claim_status_fields)};

static const struct hfd_schema_field persistent_volume_claim_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
        {"spec", &hfd_persistent_volume_claim_spec_schema, .protobuf_tag = 2},
        {"status", &persistent_volume_claim_status, .protobuf_tag = 3},
};
const struct hfd_schema hfd_persistent_volume_claim_schema = {
        HFD_STRUCT(HFD_CORE "PersistentVolumeClaim", persistent_volume_claim_fields)};
