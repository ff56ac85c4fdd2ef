/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural schema of HorizontalPodAutoscaler in version v1. Only clients read and write this
 * version: what is stored has version v2 (autoscaling.c), and autoscaler_conversion.c converts
 * between the two.
 *
 * A table has a row for each field of a Go struct of k8s.io/api/autoscaling/v1: the name in JSON,
 * the schema of the value, the number of the field in protobuf (protobuf_tag), and flags.
 * HFD_FIELD_POINTER stands for a Go pointer.
 *
 * Invariants: the rows of a table are sorted by name (strcmp), because look-ups bisect it. The
 * number and the type of a field never change: clients that use protobuf find a field by its number
 * alone.
 */
#include "server/resources/workloads/workloads.h"

#include "server/schema/common.h"

#define AUTOSCALING "io.k8s.api.autoscaling.v1."

static const struct hfd_schema_field reference_fields[] = {
        {"apiVersion", &hfd_schema_text, .protobuf_tag = 3},
        {"kind", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"name", &hfd_schema_text, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema reference = {HFD_STRUCT(AUTOSCALING "CrossVersionObjectReference",
                                                       reference_fields),
                                            .atomic = true};

static const struct hfd_schema_field spec_fields[] = {
        {"maxReplicas", &hfd_schema_int32, .protobuf_tag = 3, .flags = HFD_FIELD_REQUIRED},
        {"minReplicas", &hfd_schema_int32, .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
        {"scaleTargetRef", &reference, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"targetCPUUtilizationPercentage", &hfd_schema_int32, .protobuf_tag = 4,
         .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema spec = {
        HFD_STRUCT(AUTOSCALING "HorizontalPodAutoscalerSpec", spec_fields)};

static const struct hfd_schema_field status_fields[] = {
        {"currentCPUUtilizationPercentage", &hfd_schema_int32, .protobuf_tag = 5,
         .flags = HFD_FIELD_POINTER},
        {"currentReplicas", &hfd_schema_int32, .protobuf_tag = 3, .flags = HFD_FIELD_REQUIRED},
        {"desiredReplicas", &hfd_schema_int32, .protobuf_tag = 4, .flags = HFD_FIELD_REQUIRED},
        {"lastScaleTime", &hfd_schema_time, .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
        {"observedGeneration", &hfd_schema_int64, .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema status = {
        HFD_STRUCT(AUTOSCALING "HorizontalPodAutoscalerStatus", status_fields)};

static const struct hfd_schema_field fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA_AS("Standard object metadata. More info: " HFD_CONVENTIONS "#metadata"),
        {"spec", &spec, .protobuf_tag = 2},
        {"status", &status, .protobuf_tag = 3},
};
const struct hfd_schema hfd_autoscaler_v1_schema = {
        HFD_STRUCT(AUTOSCALING "HorizontalPodAutoscaler", fields)};
