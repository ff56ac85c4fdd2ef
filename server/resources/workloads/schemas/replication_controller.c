/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural schema of ReplicationController.
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
static const struct hfd_schema replication_controller_condition_type_text =
        {.type = HFD_SCHEMA_TEXT, .definition = HFD_CORE "ReplicationControllerConditionType"};
static const struct hfd_schema condition_status_text = {.type = HFD_SCHEMA_TEXT,
                                                        .definition = HFD_CORE "ConditionStatus"};

static const struct hfd_schema_field replication_controller_spec_fields[] = {
        {"minReadySeconds", &hfd_schema_int32, .protobuf_tag = 4},
        {"replicas", &hfd_schema_int32, .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
        {"selector", &hfd_schema_atomic_map_of_texts, .protobuf_tag = 2},
        {"template", &hfd_pod_template_spec_schema, .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema replication_controller_spec = {
        HFD_STRUCT(HFD_CORE "ReplicationControllerSpec", replication_controller_spec_fields)};

static const struct hfd_schema_field replication_controller_condition_fields[] = {
        {"lastTransitionTime", &hfd_schema_time, .protobuf_tag = 3},
        {"message", &hfd_schema_text, .protobuf_tag = 5},
        {"reason", &hfd_schema_text, .protobuf_tag = 4},
        {"status", &condition_status_text, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"type", &replication_controller_condition_type_text, .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema replication_controller_condition = {
        HFD_STRUCT(HFD_CORE "ReplicationControllerCondition",
                   replication_controller_condition_fields)};

static const struct hfd_schema_field replication_controller_status_fields[] = {
        {"availableReplicas", &hfd_schema_int32, .protobuf_tag = 5},
        {"conditions",
         HFD_LIST_OF(&replication_controller_condition, .list_type = HFD_LIST_MAP,
                     .list_keys = by_type),
         .merge_key = "type", .protobuf_tag = 6, .flags = HFD_FIELD_MERGE},
        {"fullyLabeledReplicas", &hfd_schema_int32, .protobuf_tag = 2},
        {"observedGeneration", &hfd_schema_int64, .protobuf_tag = 3},
        {"readyReplicas", &hfd_schema_int32, .protobuf_tag = 4},
        {"replicas", &hfd_schema_int32, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema replication_controller_status = {
        HFD_STRUCT(HFD_CORE "ReplicationControllerStatus", replication_controller_status_fields)};

static const struct hfd_schema_field replication_controller_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA_AS(
                "If the Labels of a ReplicationController are empty, they are defaulted to be the "
                "same as the Pod(s) that the replication controller manages. Standard object's "
                "metadata. More info: " HFD_CONVENTIONS "#metadata"),
        {"spec", &replication_controller_spec, .protobuf_tag = 2},
        {"status", &replication_controller_status, .protobuf_tag = 3},
};
const struct hfd_schema hfd_replication_controller_schema = {
        HFD_STRUCT(HFD_CORE "ReplicationController", replication_controller_fields)};
