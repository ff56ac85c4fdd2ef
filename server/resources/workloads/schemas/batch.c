/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural schemas of Job and CronJob.
 *
 * A table has a row for each field of a Go struct of k8s.io/api/batch/v1: the name in JSON, the
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

static const struct hfd_schema pod_failure_policy_action_text =
        {.type = HFD_SCHEMA_TEXT, .definition = "io.k8s.api.batch.v1.PodFailurePolicyAction"};
static const struct hfd_schema pod_failure_policy_on_exit_codes_operator_text =
        {.type = HFD_SCHEMA_TEXT,
         .definition = "io.k8s.api.batch.v1.PodFailurePolicyOnExitCodesOperator"};
static const struct hfd_schema pod_condition_type_text = {.type = HFD_SCHEMA_TEXT,
                                                          .definition =
                                                                  HFD_CORE "PodConditionType"};
static const struct hfd_schema condition_status_text = {.type = HFD_SCHEMA_TEXT,
                                                        .definition = HFD_CORE "ConditionStatus"};
static const struct hfd_schema completion_mode_text =
        {.type = HFD_SCHEMA_TEXT, .definition = "io.k8s.api.batch.v1.CompletionMode"};
static const struct hfd_schema pod_replacement_policy_text =
        {.type = HFD_SCHEMA_TEXT, .definition = "io.k8s.api.batch.v1.PodReplacementPolicy"};
static const struct hfd_schema job_condition_type_text =
        {.type = HFD_SCHEMA_TEXT, .definition = "io.k8s.api.batch.v1.JobConditionType"};
static const struct hfd_schema concurrency_policy_text =
        {.type = HFD_SCHEMA_TEXT, .definition = "io.k8s.api.batch.v1.ConcurrencyPolicy"};

static const struct hfd_schema_field pod_failure_policy_on_exit_codes_requirement_fields[] = {
        {"containerName", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
        {"operator", &pod_failure_policy_on_exit_codes_operator_text, .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED},
        {"values", HFD_LIST_OF(&hfd_schema_int32, .list_type = HFD_LIST_SET), .protobuf_tag = 3,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema pod_failure_policy_on_exit_codes_requirement = {
        HFD_STRUCT("io.k8s.api.batch.v1.PodFailurePolicyOnExitCodesRequirement",
                   pod_failure_policy_on_exit_codes_requirement_fields)};

static const struct hfd_schema_field pod_failure_policy_on_pod_conditions_pattern_fields[] = {
        {"status", &condition_status_text, .protobuf_tag = 2},
        {"type", &pod_condition_type_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema pod_failure_policy_on_pod_conditions_pattern = {
        HFD_STRUCT("io.k8s.api.batch.v1.PodFailurePolicyOnPodConditionsPattern",
                   pod_failure_policy_on_pod_conditions_pattern_fields)};

/* The first rule that matches counts, so the list of rules is atomic: their order matters. */
static const struct hfd_schema_field pod_failure_policy_rule_fields[] = {
        {"action", &pod_failure_policy_action_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"onExitCodes", &pod_failure_policy_on_exit_codes_requirement, .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"onPodConditions", HFD_LIST_OF(&pod_failure_policy_on_pod_conditions_pattern),
         .protobuf_tag = 3},
};
static const struct hfd_schema pod_failure_policy_rule = {
        HFD_STRUCT("io.k8s.api.batch.v1.PodFailurePolicyRule", pod_failure_policy_rule_fields)};

static const struct hfd_schema_field pod_failure_policy_fields[] = {
        {"rules", HFD_LIST_OF(&pod_failure_policy_rule), .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema pod_failure_policy = {
        HFD_STRUCT("io.k8s.api.batch.v1.PodFailurePolicy", pod_failure_policy_fields)};

static const struct hfd_schema_field success_policy_rule_fields[] = {
        {"succeededCount", &hfd_schema_int32, .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
        {"succeededIndexes", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema success_policy_rule = {
        HFD_STRUCT("io.k8s.api.batch.v1.SuccessPolicyRule", success_policy_rule_fields)};

static const struct hfd_schema_field success_policy_fields[] = {
        {"rules", HFD_LIST_OF(&success_policy_rule), .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema success_policy = {
        HFD_STRUCT("io.k8s.api.batch.v1.SuccessPolicy", success_policy_fields)};

/* With manualSelector a user chooses the selector, and must choose one that no other Job has.
 * Numbers are pointers, because absent ones have meanings: without completions, one pod that
 * succeeds is enough. */
static const struct hfd_schema_field job_spec_fields[] = {
        {"activeDeadlineSeconds", &hfd_schema_int64, .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
        {"backoffLimit", &hfd_schema_int32, .protobuf_tag = 7, .flags = HFD_FIELD_POINTER},
        {"backoffLimitPerIndex", &hfd_schema_int32, .protobuf_tag = 12, .flags = HFD_FIELD_POINTER},
        {"completionMode", &completion_mode_text, .protobuf_tag = 9, .flags = HFD_FIELD_POINTER},
        {"completions", &hfd_schema_int32, .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
        {"managedBy", &hfd_schema_text, .protobuf_tag = 15, .flags = HFD_FIELD_POINTER},
        {"manualSelector", &hfd_schema_boolean, .protobuf_tag = 5, .flags = HFD_FIELD_POINTER},
        {"maxFailedIndexes", &hfd_schema_int32, .protobuf_tag = 13, .flags = HFD_FIELD_POINTER},
        {"parallelism", &hfd_schema_int32, .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
        {"podFailurePolicy", &pod_failure_policy, .protobuf_tag = 11, .flags = HFD_FIELD_POINTER},
        {"podReplacementPolicy", &pod_replacement_policy_text, .protobuf_tag = 14,
         .flags = HFD_FIELD_POINTER},
        {"selector", &hfd_schema_label_selector, .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
        {"successPolicy", &success_policy, .protobuf_tag = 16, .flags = HFD_FIELD_POINTER},
        {"suspend", &hfd_schema_boolean, .protobuf_tag = 10, .flags = HFD_FIELD_POINTER},
        {"template", &hfd_pod_template_spec_schema, .protobuf_tag = 6, .flags = HFD_FIELD_REQUIRED},
        {"ttlSecondsAfterFinished", &hfd_schema_int32, .protobuf_tag = 8,
         .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema job_spec = {
        HFD_STRUCT("io.k8s.api.batch.v1.JobSpec", job_spec_fields)};

static const struct hfd_schema_field job_condition_fields[] = {
        {"lastProbeTime", &hfd_schema_time, .protobuf_tag = 3},
        {"lastTransitionTime", &hfd_schema_time, .protobuf_tag = 4},
        {"message", &hfd_schema_text, .protobuf_tag = 6},
        {"reason", &hfd_schema_text, .protobuf_tag = 5},
        {"status", &condition_status_text, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"type", &job_condition_type_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema job_condition = {
        HFD_STRUCT("io.k8s.api.batch.v1.JobCondition", job_condition_fields)};

static const struct hfd_schema_field uncounted_terminated_pods_fields[] = {
        {"failed",
         HFD_LIST_OF(HFD_NAMED_TEXT("io.k8s.apimachinery.pkg.types.UID"),
                     .list_type = HFD_LIST_SET),
         .protobuf_tag = 2},
        {"succeeded",
         HFD_LIST_OF(HFD_NAMED_TEXT("io.k8s.apimachinery.pkg.types.UID"),
                     .list_type = HFD_LIST_SET),
         .protobuf_tag = 1},
};
static const struct hfd_schema uncounted_terminated_pods = {
        HFD_STRUCT("io.k8s.api.batch.v1.UncountedTerminatedPods",
                   uncounted_terminated_pods_fields)};

/* As in Kubernetes, a strategic merge patch merges conditions by type, but apply does not: the
 * marker is +listType=atomic. */
static const struct hfd_schema_field job_status_fields[] = {
        {"active", &hfd_schema_int32, .protobuf_tag = 4},
        {"completedIndexes", &hfd_schema_text, .protobuf_tag = 7},
        {"completionTime", &hfd_schema_time, .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
        {"conditions", HFD_LIST_OF(&job_condition), .merge_key = "type", .protobuf_tag = 1,
         .flags = HFD_FIELD_MERGE},
        {"failed", &hfd_schema_int32, .protobuf_tag = 6},
        {"failedIndexes", &hfd_schema_text, .protobuf_tag = 10, .flags = HFD_FIELD_POINTER},
        {"ready", &hfd_schema_int32, .protobuf_tag = 9, .flags = HFD_FIELD_POINTER},
        {"startTime", &hfd_schema_time, .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
        {"succeeded", &hfd_schema_int32, .protobuf_tag = 5},
        {"terminating", &hfd_schema_int32, .protobuf_tag = 11, .flags = HFD_FIELD_POINTER},
        {"uncountedTerminatedPods", &uncounted_terminated_pods, .protobuf_tag = 8,
         .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema job_status = {
        HFD_STRUCT("io.k8s.api.batch.v1.JobStatus", job_status_fields)};

static const struct hfd_schema_field job_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
        {"spec", &job_spec, .protobuf_tag = 2},
        {"status", &job_status, .protobuf_tag = 3},
};
const struct hfd_schema hfd_job_schema = {HFD_STRUCT("io.k8s.api.batch.v1.Job", job_fields)};

static const struct hfd_schema_field job_template_spec_fields[] = {
        {"metadata", &hfd_schema_object_meta, .protobuf_tag = 1},
        {"spec", &job_spec, .protobuf_tag = 2},
};
static const struct hfd_schema job_template_spec = {
        HFD_STRUCT("io.k8s.api.batch.v1.JobTemplateSpec", job_template_spec_fields)};

static const struct hfd_schema_field cron_job_spec_fields[] = {
        {"concurrencyPolicy", &concurrency_policy_text, .protobuf_tag = 3},
        {"failedJobsHistoryLimit", &hfd_schema_int32, .protobuf_tag = 7,
         .flags = HFD_FIELD_POINTER},
        {"jobTemplate", &job_template_spec, .protobuf_tag = 5, .flags = HFD_FIELD_REQUIRED},
        {"schedule", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"startingDeadlineSeconds", &hfd_schema_int64, .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"successfulJobsHistoryLimit", &hfd_schema_int32, .protobuf_tag = 6,
         .flags = HFD_FIELD_POINTER},
        {"suspend", &hfd_schema_boolean, .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
        {"timeZone", &hfd_schema_text, .protobuf_tag = 8, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema cron_job_spec = {
        HFD_STRUCT("io.k8s.api.batch.v1.CronJobSpec", cron_job_spec_fields)};

static const struct hfd_schema_field cron_job_status_fields[] = {
        {"active", HFD_LIST_OF(&hfd_schema_object_reference), .protobuf_tag = 1},
        {"lastScheduleTime", &hfd_schema_time, .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
        {"lastSuccessfulTime", &hfd_schema_time, .protobuf_tag = 5, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema cron_job_status = {
        HFD_STRUCT("io.k8s.api.batch.v1.CronJobStatus", cron_job_status_fields)};

static const struct hfd_schema_field cron_job_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
        {"spec", &cron_job_spec, .protobuf_tag = 2},
        {"status", &cron_job_status, .protobuf_tag = 3},
};
const struct hfd_schema hfd_cron_job_schema = {
        HFD_STRUCT("io.k8s.api.batch.v1.CronJob", cron_job_fields)};
