/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural schema of HorizontalPodAutoscaler in version v2, the version that is stored.
 * autoscaling_v1.c has the older one; autoscaler_conversion.c converts between the two.
 *
 * A table has a row for each field of a Go struct of k8s.io/api/autoscaling/v2: the name in JSON,
 * the schema of the value, the number of the field in protobuf (protobuf_tag), and flags.
 * HFD_FIELD_POINTER stands for a Go pointer, HFD_FIELD_MERGE and merge_key for the struct tags
 * patchStrategy and patchMergeKey, list_type and list_keys for the markers +listType and
 * +listMapKey, and HFD_FIELD_KEEPS_EMPTY for a tag without omitempty (except for "policies"). A
 * schema named *_text (not hfd_schema_text) is a Go string type with a name of its own; error
 * messages show this name.
 *
 * Invariants: the rows of a table are sorted by name (strcmp), because look-ups bisect it. The
 * number and the type of a field never change: clients that use protobuf find a field by its number
 * alone.
 */
#include "server/resources/workloads/workloads.h"

#include "server/resources/strategies/pod/pod_schema.h"
#include "server/schema/common.h"

static const char *const by_type[] = {"type", NULL};
static const struct hfd_schema metric_source_type_text =
        {.type = HFD_SCHEMA_TEXT, .definition = "io.k8s.api.autoscaling.v2.MetricSourceType"};
static const struct hfd_schema metric_target_type_text =
        {.type = HFD_SCHEMA_TEXT, .definition = "io.k8s.api.autoscaling.v2.MetricTargetType"};
static const struct hfd_schema resource_name_text = {.type = HFD_SCHEMA_TEXT,
                                                     .definition = HFD_CORE "ResourceName"};
static const struct hfd_schema scaling_policy_select_text =
        {.type = HFD_SCHEMA_TEXT, .definition = "io.k8s.api.autoscaling.v2.ScalingPolicySelect"};
static const struct hfd_schema hpa_scaling_policy_type_text =
        {.type = HFD_SCHEMA_TEXT, .definition = "io.k8s.api.autoscaling.v2.HPAScalingPolicyType"};
static const struct hfd_schema horizontal_pod_autoscaler_condition_type_text =
        {.type = HFD_SCHEMA_TEXT,
         .definition = "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerConditionType"};
static const struct hfd_schema condition_status_text = {.type = HFD_SCHEMA_TEXT,
                                                        .definition = HFD_CORE "ConditionStatus"};

static const struct hfd_schema_field cross_version_object_reference_fields[] = {
        {"apiVersion", &hfd_schema_text, .protobuf_tag = 3},
        {"kind", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"name", &hfd_schema_text, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema cross_version_object_reference = {
        HFD_STRUCT("io.k8s.api.autoscaling.v2.CrossVersionObjectReference",
                   cross_version_object_reference_fields)};

/* `type` says which of the other three is set. They are pointers, because a target of 0 differs
 * from none. */
static const struct hfd_schema_field metric_target_fields[] = {
        {"averageUtilization", &hfd_schema_int32, .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
        {"averageValue", &hfd_schema_quantity, .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
        {"type", &metric_target_type_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"value", &hfd_schema_quantity, .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema metric_target = {
        HFD_STRUCT("io.k8s.api.autoscaling.v2.MetricTarget", metric_target_fields)};

static const struct hfd_schema_field metric_identifier_fields[] = {
        {"name", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"selector", &hfd_schema_label_selector, .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema metric_identifier = {
        HFD_STRUCT("io.k8s.api.autoscaling.v2.MetricIdentifier", metric_identifier_fields)};

static const struct hfd_schema_field object_metric_source_fields[] = {
        {"describedObject", &cross_version_object_reference, .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"metric", &metric_identifier, .protobuf_tag = 3, .flags = HFD_FIELD_REQUIRED},
        {"target", &metric_target, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema object_metric_source = {
        HFD_STRUCT("io.k8s.api.autoscaling.v2.ObjectMetricSource", object_metric_source_fields)};

static const struct hfd_schema_field pods_metric_source_fields[] = {
        {"metric", &metric_identifier, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"target", &metric_target, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema pods_metric_source = {
        HFD_STRUCT("io.k8s.api.autoscaling.v2.PodsMetricSource", pods_metric_source_fields)};

static const struct hfd_schema_field resource_metric_source_fields[] = {
        {"name", &resource_name_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"target", &metric_target, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema resource_metric_source = {
        HFD_STRUCT("io.k8s.api.autoscaling.v2.ResourceMetricSource",
                   resource_metric_source_fields)};

static const struct hfd_schema_field container_resource_metric_source_fields[] = {
        {"container", &hfd_schema_text, .protobuf_tag = 3, .flags = HFD_FIELD_REQUIRED},
        {"name", &resource_name_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"target", &metric_target, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema container_resource_metric_source = {
        HFD_STRUCT("io.k8s.api.autoscaling.v2.ContainerResourceMetricSource",
                   container_resource_metric_source_fields)};

static const struct hfd_schema_field external_metric_source_fields[] = {
        {"metric", &metric_identifier, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"target", &metric_target, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema external_metric_source = {
        HFD_STRUCT("io.k8s.api.autoscaling.v2.ExternalMetricSource",
                   external_metric_source_fields)};

/* `type` says which of the five sources is set. The list of these structs is atomic: two metrics
 * may have the same type, and even the same name with other selectors. */
static const struct hfd_schema_field metric_spec_fields[] = {
        {"containerResource", &container_resource_metric_source, .protobuf_tag = 7,
         .flags = HFD_FIELD_POINTER},
        {"external", &external_metric_source, .protobuf_tag = 5, .flags = HFD_FIELD_POINTER},
        {"object", &object_metric_source, .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
        {"pods", &pods_metric_source, .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
        {"resource", &resource_metric_source, .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
        {"type", &metric_source_type_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema metric_spec = {
        HFD_STRUCT("io.k8s.api.autoscaling.v2.MetricSpec", metric_spec_fields)};

static const struct hfd_schema_field hpa_scaling_policy_fields[] = {
        {"periodSeconds", &hfd_schema_int32, .protobuf_tag = 3, .flags = HFD_FIELD_REQUIRED},
        {"type", &hpa_scaling_policy_type_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"value", &hfd_schema_int32, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema hpa_scaling_policy = {
        HFD_STRUCT("io.k8s.api.autoscaling.v2.HPAScalingPolicy", hpa_scaling_policy_fields)};

/* stabilizationWindowSeconds is a pointer, because 0 switches it off and an absent one has a
 * default. For scaleDown that is a flag of kube-controller-manager, unknown to this server. */
static const struct hfd_schema_field hpa_scaling_rules_fields[] = {
        /* Go's tag has omitempty, but an empty list must stay until it is validated: it is refused,
         * and only an absent one gets the default. */
        {"policies", HFD_LIST_OF(&hpa_scaling_policy), .protobuf_tag = 2,
         .flags = HFD_FIELD_KEEPS_EMPTY},
        {"selectPolicy", &scaling_policy_select_text, .protobuf_tag = 1,
         .flags = HFD_FIELD_POINTER},
        {"stabilizationWindowSeconds", &hfd_schema_int32, .protobuf_tag = 3,
         .flags = HFD_FIELD_POINTER},
        {"tolerance", &hfd_schema_quantity, .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema hpa_scaling_rules = {
        HFD_STRUCT("io.k8s.api.autoscaling.v2.HPAScalingRules", hpa_scaling_rules_fields)};

static const struct hfd_schema_field horizontal_pod_autoscaler_behavior_fields[] = {
        {"scaleDown", &hpa_scaling_rules, .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
        {"scaleUp", &hpa_scaling_rules, .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema horizontal_pod_autoscaler_behavior = {
        HFD_STRUCT("io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerBehavior",
                   horizontal_pod_autoscaler_behavior_fields)};

static const struct hfd_schema_field horizontal_pod_autoscaler_spec_fields[] = {
        {"behavior", &horizontal_pod_autoscaler_behavior, .protobuf_tag = 5,
         .flags = HFD_FIELD_POINTER},
        {"maxReplicas", &hfd_schema_int32, .protobuf_tag = 3, .flags = HFD_FIELD_REQUIRED},
        {"metrics", HFD_LIST_OF(&metric_spec), .protobuf_tag = 4},
        {"minReplicas", &hfd_schema_int32, .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
        {"scaleTargetRef", &cross_version_object_reference, .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema horizontal_pod_autoscaler_spec = {
        HFD_STRUCT("io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerSpec",
                   horizontal_pod_autoscaler_spec_fields)};

/* Unlike a target, what was measured has no type: the members that are set tell it. */
static const struct hfd_schema_field metric_value_status_fields[] = {
        {"averageUtilization", &hfd_schema_int32, .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
        {"averageValue", &hfd_schema_quantity, .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
        {"value", &hfd_schema_quantity, .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema metric_value_status = {
        HFD_STRUCT("io.k8s.api.autoscaling.v2.MetricValueStatus", metric_value_status_fields)};

static const struct hfd_schema_field object_metric_status_fields[] = {
        {"current", &metric_value_status, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"describedObject", &cross_version_object_reference, .protobuf_tag = 3,
         .flags = HFD_FIELD_REQUIRED},
        {"metric", &metric_identifier, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema object_metric_status = {
        HFD_STRUCT("io.k8s.api.autoscaling.v2.ObjectMetricStatus", object_metric_status_fields)};

static const struct hfd_schema_field pods_metric_status_fields[] = {
        {"current", &metric_value_status, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"metric", &metric_identifier, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema pods_metric_status = {
        HFD_STRUCT("io.k8s.api.autoscaling.v2.PodsMetricStatus", pods_metric_status_fields)};

static const struct hfd_schema_field resource_metric_status_fields[] = {
        {"current", &metric_value_status, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"name", &resource_name_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema resource_metric_status = {
        HFD_STRUCT("io.k8s.api.autoscaling.v2.ResourceMetricStatus",
                   resource_metric_status_fields)};

static const struct hfd_schema_field container_resource_metric_status_fields[] = {
        {"container", &hfd_schema_text, .protobuf_tag = 3, .flags = HFD_FIELD_REQUIRED},
        {"current", &metric_value_status, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"name", &resource_name_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema container_resource_metric_status = {
        HFD_STRUCT("io.k8s.api.autoscaling.v2.ContainerResourceMetricStatus",
                   container_resource_metric_status_fields)};

static const struct hfd_schema_field external_metric_status_fields[] = {
        {"current", &metric_value_status, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"metric", &metric_identifier, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema external_metric_status = {
        HFD_STRUCT("io.k8s.api.autoscaling.v2.ExternalMetricStatus",
                   external_metric_status_fields)};

/* An element of status.currentMetrics. The controller writes one for each element of spec.metrics,
 * in the same order. */
static const struct hfd_schema_field metric_status_fields[] = {
        {"containerResource", &container_resource_metric_status, .protobuf_tag = 7,
         .flags = HFD_FIELD_POINTER},
        {"external", &external_metric_status, .protobuf_tag = 5, .flags = HFD_FIELD_POINTER},
        {"object", &object_metric_status, .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
        {"pods", &pods_metric_status, .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
        {"resource", &resource_metric_status, .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
        {"type", &metric_source_type_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema metric_status = {
        HFD_STRUCT("io.k8s.api.autoscaling.v2.MetricStatus", metric_status_fields)};

static const struct hfd_schema_field horizontal_pod_autoscaler_condition_fields[] = {
        {"lastTransitionTime", &hfd_schema_time, .protobuf_tag = 3},
        {"message", &hfd_schema_text, .protobuf_tag = 5},
        {"reason", &hfd_schema_text, .protobuf_tag = 4},
        {"status", &condition_status_text, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"type", &horizontal_pod_autoscaler_condition_type_text, .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema horizontal_pod_autoscaler_condition = {
        HFD_STRUCT("io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerCondition",
                   horizontal_pod_autoscaler_condition_fields)};

/* Go has no omitempty for currentMetrics, so an empty list is shown. */
static const struct hfd_schema_field horizontal_pod_autoscaler_status_fields[] = {
        {"conditions",
         HFD_LIST_OF(&horizontal_pod_autoscaler_condition, .list_type = HFD_LIST_MAP,
                     .list_keys = by_type),
         .merge_key = "type", .protobuf_tag = 6, .flags = HFD_FIELD_MERGE},
        {"currentMetrics", HFD_LIST_OF(&metric_status), .protobuf_tag = 5,
         .flags = HFD_FIELD_KEEPS_EMPTY},
        {"currentReplicas", &hfd_schema_int32, .protobuf_tag = 3},
        {"desiredReplicas", &hfd_schema_int32, .protobuf_tag = 4, .flags = HFD_FIELD_REQUIRED},
        {"lastScaleTime", &hfd_schema_time, .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
        {"observedGeneration", &hfd_schema_int64, .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema horizontal_pod_autoscaler_status = {
        HFD_STRUCT("io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerStatus",
                   horizontal_pod_autoscaler_status_fields)};

static const struct hfd_schema_field horizontal_pod_autoscaler_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA_AS(
                "metadata is the standard object metadata. More info: " HFD_CONVENTIONS
                "#metadata"),
        {"spec", &horizontal_pod_autoscaler_spec, .protobuf_tag = 2},
        {"status", &horizontal_pod_autoscaler_status, .protobuf_tag = 3},
};
const struct hfd_schema hfd_horizontal_pod_autoscaler_schema = {
        HFD_STRUCT("io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler",
                   horizontal_pod_autoscaler_fields)};
