/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural schema of PodDisruptionBudget.
 *
 * A table has a row for each field of a Go struct of k8s.io/api/policy/v1: the name in JSON, the
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
static const struct hfd_schema unhealthy_pod_eviction_policy_type_text =
        {.type = HFD_SCHEMA_TEXT,
         .definition = "io.k8s.api.policy.v1.UnhealthyPodEvictionPolicyType"};

static const struct hfd_schema_field pod_disruption_budget_spec_fields[] = {
        {"maxUnavailable", &hfd_schema_int_or_string, .protobuf_tag = 3,
         .flags = HFD_FIELD_POINTER},
        {"minAvailable", &hfd_schema_int_or_string, .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
        {"selector", &hfd_schema_label_selector, .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER | HFD_FIELD_REPLACE},
        {"unhealthyPodEvictionPolicy", &unhealthy_pod_eviction_policy_type_text, .protobuf_tag = 4,
         .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema pod_disruption_budget_spec = {
        HFD_STRUCT("io.k8s.api.policy.v1.PodDisruptionBudgetSpec",
                   pod_disruption_budget_spec_fields)};

static const struct hfd_schema_field pod_disruption_budget_status_fields[] = {
        {"conditions",
         HFD_LIST_OF(&hfd_schema_condition, .list_type = HFD_LIST_MAP, .list_keys = by_type),
         .merge_key = "type", .protobuf_tag = 7, .flags = HFD_FIELD_MERGE},
        {"currentHealthy", &hfd_schema_int32, .protobuf_tag = 4},
        {"desiredHealthy", &hfd_schema_int32, .protobuf_tag = 5},
        /* Without a number the field is left out of protobuf: the decoder has no maps of times
         * (put_map_value in handlers/protobuf_body.c). Kubernetes sets disruptedPods when it evicts
         * a pod that a budget covers; Holdfast's evictions ignore budgets. */
        {"disruptedPods",
         (&(const struct hfd_schema){.type = HFD_SCHEMA_MAP, .items = &hfd_schema_time})},
        {"disruptionsAllowed", &hfd_schema_int32, .protobuf_tag = 3},
        {"expectedPods", &hfd_schema_int32, .protobuf_tag = 6},
        {"observedGeneration", &hfd_schema_int64, .protobuf_tag = 1},
};
static const struct hfd_schema pod_disruption_budget_status = {
        HFD_STRUCT("io.k8s.api.policy.v1.PodDisruptionBudgetStatus",
                   pod_disruption_budget_status_fields)};

static const struct hfd_schema_field pod_disruption_budget_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
        {"spec", &pod_disruption_budget_spec, .protobuf_tag = 2},
        {"status", &pod_disruption_budget_status, .protobuf_tag = 3},
};
const struct hfd_schema hfd_pod_disruption_budget_schema = {
        HFD_STRUCT("io.k8s.api.policy.v1.PodDisruptionBudget", pod_disruption_budget_fields)};
