/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural schemas of the kinds of the group apps: DaemonSet, Deployment, ReplicaSet,
 * StatefulSet and ControllerRevision.
 *
 * A table has a row for each field of a Go struct of k8s.io/api/apps/v1: the name in JSON, the
 * schema of the value, the number of the field in protobuf (protobuf_tag), and flags.
 * HFD_FIELD_POINTER stands for a Go pointer, HFD_FIELD_MERGE and merge_key for the struct tags
 * patchStrategy and patchMergeKey, and list_type and list_keys for the markers +listType and
 * +listMapKey. A schema of this file named *_text is a Go string type with a name of its own; error
 * messages show this name.
 *
 * Invariants: the rows of a table are sorted by name (strcmp), because look-ups bisect the table.
 * The number and the type of a field never change: clients that use protobuf find a field by its
 * number alone.
 */
#include "server/resources/workloads/workloads.h"

#include "server/resources/strategies/pod/pod_schema.h"
#include "server/schema/common.h"

static const char *const by_type[] = {"type", NULL};
static const struct hfd_schema daemon_set_update_strategy_type_text =
        {.type = HFD_SCHEMA_TEXT, .definition = "io.k8s.api.apps.v1.DaemonSetUpdateStrategyType"};
static const struct hfd_schema daemon_set_condition_type_text =
        {.type = HFD_SCHEMA_TEXT, .definition = "io.k8s.api.apps.v1.DaemonSetConditionType"};
static const struct hfd_schema condition_status_text = {.type = HFD_SCHEMA_TEXT,
                                                        .definition = HFD_CORE "ConditionStatus"};
static const struct hfd_schema deployment_strategy_type_text =
        {.type = HFD_SCHEMA_TEXT, .definition = "io.k8s.api.apps.v1.DeploymentStrategyType"};
static const struct hfd_schema deployment_condition_type_text =
        {.type = HFD_SCHEMA_TEXT, .definition = "io.k8s.api.apps.v1.DeploymentConditionType"};
static const struct hfd_schema replica_set_condition_type_text =
        {.type = HFD_SCHEMA_TEXT, .definition = "io.k8s.api.apps.v1.ReplicaSetConditionType"};
static const struct hfd_schema pod_management_policy_type_text =
        {.type = HFD_SCHEMA_TEXT, .definition = "io.k8s.api.apps.v1.PodManagementPolicyType"};
static const struct hfd_schema stateful_set_update_strategy_type_text =
        {.type = HFD_SCHEMA_TEXT, .definition = "io.k8s.api.apps.v1.StatefulSetUpdateStrategyType"};
static const struct hfd_schema persistent_volume_claim_retention_policy_type_text =
        {.type = HFD_SCHEMA_TEXT,
         .definition = "io.k8s.api.apps.v1.PersistentVolumeClaimRetentionPolicyType"};
static const struct hfd_schema stateful_set_condition_type_text =
        {.type = HFD_SCHEMA_TEXT, .definition = "io.k8s.api.apps.v1.StatefulSetConditionType"};

/* `data` may be any JSON value (Go's RawExtension): the controllers of DaemonSets and StatefulSets
 * decide what is in it. */
static const struct hfd_schema_field controller_revision_fields[] = {
        HFD_FIELD_API_VERSION,
        {"data", &hfd_schema_any, .protobuf_tag = 2},
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
        {"revision", &hfd_schema_int64, .protobuf_tag = 3, .flags = HFD_FIELD_REQUIRED},
};
const struct hfd_schema hfd_controller_revision_schema = {
        HFD_STRUCT("io.k8s.api.apps.v1.ControllerRevision", controller_revision_fields)};

/* Each field is a number of pods, or a percentage of them: "25%". */
static const struct hfd_schema_field rolling_update_daemon_set_fields[] = {
        {"maxSurge", &hfd_schema_int_or_string, .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
        {"maxUnavailable", &hfd_schema_int_or_string, .protobuf_tag = 1,
         .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema rolling_update_daemon_set = {
        HFD_STRUCT("io.k8s.api.apps.v1.RollingUpdateDaemonSet", rolling_update_daemon_set_fields)};

/* rollingUpdate goes with the type RollingUpdate. Go has a struct of its own for each kind, because
 * the defaults and some members differ. */
static const struct hfd_schema_field daemon_set_update_strategy_fields[] = {
        {"rollingUpdate", &rolling_update_daemon_set, .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"type", &daemon_set_update_strategy_type_text, .protobuf_tag = 1},
};
static const struct hfd_schema daemon_set_update_strategy = {
        HFD_STRUCT("io.k8s.api.apps.v1.DaemonSetUpdateStrategy",
                   daemon_set_update_strategy_fields)};

/* The selector is required, and has no default. In extensions/v1beta1 it was made from the labels
 * of the template, so a change of the labels could orphan the pods. */
static const struct hfd_schema_field daemon_set_spec_fields[] = {
        {"minReadySeconds", &hfd_schema_int32, .protobuf_tag = 4},
        {"revisionHistoryLimit", &hfd_schema_int32, .protobuf_tag = 6, .flags = HFD_FIELD_POINTER},
        {"selector", &hfd_schema_label_selector, .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED | HFD_FIELD_POINTER},
        {"template", &hfd_pod_template_spec_schema, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"updateStrategy", &daemon_set_update_strategy, .protobuf_tag = 3},
};
static const struct hfd_schema daemon_set_spec = {
        HFD_STRUCT("io.k8s.api.apps.v1.DaemonSetSpec", daemon_set_spec_fields)};

/* Each kind of the group that has conditions has its own type for them, older than
 * metav1.Condition. */
static const struct hfd_schema_field daemon_set_condition_fields[] = {
        {"lastTransitionTime", &hfd_schema_time, .protobuf_tag = 3},
        {"message", &hfd_schema_text, .protobuf_tag = 5},
        {"reason", &hfd_schema_text, .protobuf_tag = 4},
        {"status", &condition_status_text, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"type", &daemon_set_condition_type_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema daemon_set_condition = {
        HFD_STRUCT("io.k8s.api.apps.v1.DaemonSetCondition", daemon_set_condition_fields)};

/* collisionCount makes the names of revisions unique if the hashes of two templates are equal. */
static const struct hfd_schema_field daemon_set_status_fields[] = {
        {"collisionCount", &hfd_schema_int32, .protobuf_tag = 9, .flags = HFD_FIELD_POINTER},
        {"conditions",
         HFD_LIST_OF(&daemon_set_condition, .list_type = HFD_LIST_MAP, .list_keys = by_type),
         .merge_key = "type", .protobuf_tag = 10, .flags = HFD_FIELD_MERGE},
        {"currentNumberScheduled", &hfd_schema_int32, .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"desiredNumberScheduled", &hfd_schema_int32, .protobuf_tag = 3,
         .flags = HFD_FIELD_REQUIRED},
        {"numberAvailable", &hfd_schema_int32, .protobuf_tag = 7},
        {"numberMisscheduled", &hfd_schema_int32, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"numberReady", &hfd_schema_int32, .protobuf_tag = 4, .flags = HFD_FIELD_REQUIRED},
        {"numberUnavailable", &hfd_schema_int32, .protobuf_tag = 8},
        {"observedGeneration", &hfd_schema_int64, .protobuf_tag = 5},
        {"updatedNumberScheduled", &hfd_schema_int32, .protobuf_tag = 6},
};
static const struct hfd_schema daemon_set_status = {
        HFD_STRUCT("io.k8s.api.apps.v1.DaemonSetStatus", daemon_set_status_fields)};

static const struct hfd_schema_field daemon_set_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
        {"spec", &daemon_set_spec, .protobuf_tag = 2},
        {"status", &daemon_set_status, .protobuf_tag = 3},
};
const struct hfd_schema hfd_daemon_set_schema = {
        HFD_STRUCT("io.k8s.api.apps.v1.DaemonSet", daemon_set_fields)};

static const struct hfd_schema_field rolling_update_deployment_fields[] = {
        {"maxSurge", &hfd_schema_int_or_string, .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
        {"maxUnavailable", &hfd_schema_int_or_string, .protobuf_tag = 1,
         .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema rolling_update_deployment = {
        HFD_STRUCT("io.k8s.api.apps.v1.RollingUpdateDeployment", rolling_update_deployment_fields)};

static const struct hfd_schema_field deployment_strategy_fields[] = {
        {"rollingUpdate", &rolling_update_deployment, .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"type", &deployment_strategy_type_text, .protobuf_tag = 1},
};
static const struct hfd_schema deployment_strategy = {
        HFD_STRUCT("io.k8s.api.apps.v1.DeploymentStrategy", deployment_strategy_fields)};

/* replicas is a pointer, because 0 is a decision and an absent value stands for 1. The strategy has
 * RETAIN_KEYS: the type Recreate excludes rollingUpdate, so a strategic merge patch that changes
 * the type names the members that stay, in $retainKeys. */
static const struct hfd_schema_field deployment_spec_fields[] = {
        {"minReadySeconds", &hfd_schema_int32, .protobuf_tag = 5},
        {"paused", &hfd_schema_boolean, .protobuf_tag = 7},
        {"progressDeadlineSeconds", &hfd_schema_int32, .protobuf_tag = 9,
         .flags = HFD_FIELD_POINTER},
        {"replicas", &hfd_schema_int32, .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
        {"revisionHistoryLimit", &hfd_schema_int32, .protobuf_tag = 6, .flags = HFD_FIELD_POINTER},
        {"selector", &hfd_schema_label_selector, .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED | HFD_FIELD_POINTER},
        {"strategy", &deployment_strategy, .protobuf_tag = 4, .flags = HFD_FIELD_RETAIN_KEYS},
        {"template", &hfd_pod_template_spec_schema, .protobuf_tag = 3, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema deployment_spec = {
        HFD_STRUCT("io.k8s.api.apps.v1.DeploymentSpec", deployment_spec_fields)};

static const struct hfd_schema_field deployment_condition_fields[] = {
        {"lastTransitionTime", &hfd_schema_time, .protobuf_tag = 7},
        {"lastUpdateTime", &hfd_schema_time, .protobuf_tag = 6},
        {"message", &hfd_schema_text, .protobuf_tag = 5},
        {"reason", &hfd_schema_text, .protobuf_tag = 4},
        {"status", &condition_status_text, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"type", &deployment_condition_type_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema deployment_condition = {
        HFD_STRUCT("io.k8s.api.apps.v1.DeploymentCondition", deployment_condition_fields)};

static const struct hfd_schema_field deployment_status_fields[] = {
        {"availableReplicas", &hfd_schema_int32, .protobuf_tag = 4},
        {"collisionCount", &hfd_schema_int32, .protobuf_tag = 8, .flags = HFD_FIELD_POINTER},
        {"conditions",
         HFD_LIST_OF(&deployment_condition, .list_type = HFD_LIST_MAP, .list_keys = by_type),
         .merge_key = "type", .protobuf_tag = 6, .flags = HFD_FIELD_MERGE},
        {"observedGeneration", &hfd_schema_int64, .protobuf_tag = 1},
        {"readyReplicas", &hfd_schema_int32, .protobuf_tag = 7},
        {"replicas", &hfd_schema_int32, .protobuf_tag = 2},
        {"terminatingReplicas", &hfd_schema_int32, .protobuf_tag = 9, .flags = HFD_FIELD_POINTER},
        {"unavailableReplicas", &hfd_schema_int32, .protobuf_tag = 5},
        {"updatedReplicas", &hfd_schema_int32, .protobuf_tag = 3},
};
static const struct hfd_schema deployment_status = {
        HFD_STRUCT("io.k8s.api.apps.v1.DeploymentStatus", deployment_status_fields)};

static const struct hfd_schema_field deployment_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
        {"spec", &deployment_spec, .protobuf_tag = 2},
        {"status", &deployment_status, .protobuf_tag = 3},
};
const struct hfd_schema hfd_deployment_schema = {
        HFD_STRUCT("io.k8s.api.apps.v1.Deployment", deployment_fields)};

/* Go's struct does not require the template, unlike those of the other kinds. The validation does:
 * rules/apps_validation.c. */
static const struct hfd_schema_field replica_set_spec_fields[] = {
        {"minReadySeconds", &hfd_schema_int32, .protobuf_tag = 4},
        {"replicas", &hfd_schema_int32, .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
        {"selector", &hfd_schema_label_selector, .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED | HFD_FIELD_POINTER},
        {"template", &hfd_pod_template_spec_schema, .protobuf_tag = 3},
};
static const struct hfd_schema replica_set_spec = {
        HFD_STRUCT("io.k8s.api.apps.v1.ReplicaSetSpec", replica_set_spec_fields)};

static const struct hfd_schema_field replica_set_condition_fields[] = {
        {"lastTransitionTime", &hfd_schema_time, .protobuf_tag = 3},
        {"message", &hfd_schema_text, .protobuf_tag = 5},
        {"reason", &hfd_schema_text, .protobuf_tag = 4},
        {"status", &condition_status_text, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"type", &replica_set_condition_type_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema replica_set_condition = {
        HFD_STRUCT("io.k8s.api.apps.v1.ReplicaSetCondition", replica_set_condition_fields)};

static const struct hfd_schema_field replica_set_status_fields[] = {
        {"availableReplicas", &hfd_schema_int32, .protobuf_tag = 5},
        {"conditions",
         HFD_LIST_OF(&replica_set_condition, .list_type = HFD_LIST_MAP, .list_keys = by_type),
         .merge_key = "type", .protobuf_tag = 6, .flags = HFD_FIELD_MERGE},
        {"fullyLabeledReplicas", &hfd_schema_int32, .protobuf_tag = 2},
        {"observedGeneration", &hfd_schema_int64, .protobuf_tag = 3},
        {"readyReplicas", &hfd_schema_int32, .protobuf_tag = 4},
        {"replicas", &hfd_schema_int32, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"terminatingReplicas", &hfd_schema_int32, .protobuf_tag = 7, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema replica_set_status = {
        HFD_STRUCT("io.k8s.api.apps.v1.ReplicaSetStatus", replica_set_status_fields)};

static const struct hfd_schema_field replica_set_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA_AS("If the Labels of a ReplicaSet are empty, they are defaulted to be "
                              "the same as the Pod(s) that the ReplicaSet manages. Standard "
                              "object's metadata. More info: " HFD_CONVENTIONS "#metadata"),
        {"spec", &replica_set_spec, .protobuf_tag = 2},
        {"status", &replica_set_status, .protobuf_tag = 3},
};
const struct hfd_schema hfd_replica_set_schema = {
        HFD_STRUCT("io.k8s.api.apps.v1.ReplicaSet", replica_set_fields)};

/* Pods with an ordinal below `partition` keep their revision: so a rollout can begin with a few. */
static const struct hfd_schema_field rolling_update_stateful_set_strategy_fields[] = {
        {"maxUnavailable", &hfd_schema_int_or_string, .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"partition", &hfd_schema_int32, .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema rolling_update_stateful_set_strategy = {
        HFD_STRUCT("io.k8s.api.apps.v1.RollingUpdateStatefulSetStrategy",
                   rolling_update_stateful_set_strategy_fields)};

static const struct hfd_schema_field stateful_set_update_strategy_fields[] = {
        {"rollingUpdate", &rolling_update_stateful_set_strategy, .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"type", &stateful_set_update_strategy_type_text, .protobuf_tag = 1},
};
static const struct hfd_schema stateful_set_update_strategy = {
        HFD_STRUCT("io.k8s.api.apps.v1.StatefulSetUpdateStrategy",
                   stateful_set_update_strategy_fields)};

static const struct hfd_schema_field
        stateful_set_persistent_volume_claim_retention_policy_fields[] = {
                {"whenDeleted", &persistent_volume_claim_retention_policy_type_text,
                 .protobuf_tag = 1},
                {"whenScaled", &persistent_volume_claim_retention_policy_type_text,
                 .protobuf_tag = 2},
};
static const struct hfd_schema stateful_set_persistent_volume_claim_retention_policy = {
        HFD_STRUCT("io.k8s.api.apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy",
                   stateful_set_persistent_volume_claim_retention_policy_fields)};

static const struct hfd_schema_field stateful_set_ordinals_fields[] = {
        {"start", &hfd_schema_int32, .protobuf_tag = 1},
};
static const struct hfd_schema stateful_set_ordinals = {
        HFD_STRUCT("io.k8s.api.apps.v1.StatefulSetOrdinals", stateful_set_ordinals_fields)};

/* A StatefulSet keeps the claims of its pods by default. So the retention policy is a pointer: an
 * absent one stands for Retain, both when the StatefulSet is deleted and when it is scaled down. */
static const struct hfd_schema_field stateful_set_spec_fields[] = {
        {"minReadySeconds", &hfd_schema_int32, .protobuf_tag = 9},
        {"ordinals", &stateful_set_ordinals, .protobuf_tag = 11, .flags = HFD_FIELD_POINTER},
        {"persistentVolumeClaimRetentionPolicy",
         &stateful_set_persistent_volume_claim_retention_policy, .protobuf_tag = 10,
         .flags = HFD_FIELD_POINTER},
        {"podManagementPolicy", &pod_management_policy_type_text, .protobuf_tag = 6},
        {"replicas", &hfd_schema_int32, .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
        {"revisionHistoryLimit", &hfd_schema_int32, .protobuf_tag = 8, .flags = HFD_FIELD_POINTER},
        {"selector", &hfd_schema_label_selector, .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED | HFD_FIELD_POINTER},
        {"serviceName", &hfd_schema_text, .protobuf_tag = 5},
        {"template", &hfd_pod_template_spec_schema, .protobuf_tag = 3, .flags = HFD_FIELD_REQUIRED},
        {"updateStrategy", &stateful_set_update_strategy, .protobuf_tag = 7},
        {"volumeClaimTemplates", HFD_LIST_OF(&hfd_persistent_volume_claim_schema),
         .protobuf_tag = 4},
};
static const struct hfd_schema stateful_set_spec = {
        HFD_STRUCT("io.k8s.api.apps.v1.StatefulSetSpec", stateful_set_spec_fields)};

static const struct hfd_schema_field stateful_set_condition_fields[] = {
        {"lastTransitionTime", &hfd_schema_time, .protobuf_tag = 3},
        {"message", &hfd_schema_text, .protobuf_tag = 5},
        {"reason", &hfd_schema_text, .protobuf_tag = 4},
        {"status", &condition_status_text, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"type", &stateful_set_condition_type_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema stateful_set_condition = {
        HFD_STRUCT("io.k8s.api.apps.v1.StatefulSetCondition", stateful_set_condition_fields)};

/* Two revisions are in progress during a rollout: current is the old one, update the new one. */
static const struct hfd_schema_field stateful_set_status_fields[] = {
        {"availableReplicas", &hfd_schema_int32, .protobuf_tag = 11},
        {"collisionCount", &hfd_schema_int32, .protobuf_tag = 9, .flags = HFD_FIELD_POINTER},
        {"conditions",
         HFD_LIST_OF(&stateful_set_condition, .list_type = HFD_LIST_MAP, .list_keys = by_type),
         .merge_key = "type", .protobuf_tag = 10, .flags = HFD_FIELD_MERGE},
        {"currentReplicas", &hfd_schema_int32, .protobuf_tag = 4},
        {"currentRevision", &hfd_schema_text, .protobuf_tag = 6},
        {"observedGeneration", &hfd_schema_int64, .protobuf_tag = 1},
        {"readyReplicas", &hfd_schema_int32, .protobuf_tag = 3},
        {"replicas", &hfd_schema_int32, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"updateRevision", &hfd_schema_text, .protobuf_tag = 7},
        {"updatedReplicas", &hfd_schema_int32, .protobuf_tag = 5},
};
static const struct hfd_schema stateful_set_status = {
        HFD_STRUCT("io.k8s.api.apps.v1.StatefulSetStatus", stateful_set_status_fields)};

static const struct hfd_schema_field stateful_set_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
        {"spec", &stateful_set_spec, .protobuf_tag = 2},
        {"status", &stateful_set_status, .protobuf_tag = 3},
};
const struct hfd_schema hfd_stateful_set_schema = {
        HFD_STRUCT("io.k8s.api.apps.v1.StatefulSet", stateful_set_fields)};
