/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural schema of Scale, the kind of the body of the subresource .../scale.
 *
 * A table has a row for each field of a Go struct of k8s.io/api/autoscaling/v1: the name in JSON,
 * the schema of the value, the number of the field in protobuf (protobuf_tag), and flags.
 *
 * Invariants: the rows of a table are sorted by name (strcmp), because look-ups bisect it. The
 * number and the type of a field never change: clients that use protobuf find a field by its number
 * alone.
 */
#include "server/resources/workloads/workloads.h"

#include "server/resources/strategies/pod/pod_schema.h"
#include "server/schema/common.h"

static const struct hfd_schema_field scale_spec_fields[] = {
        {"replicas", &hfd_schema_int32, .protobuf_tag = 1},
};
static const struct hfd_schema scale_spec = {
        HFD_STRUCT("io.k8s.api.autoscaling.v1.ScaleSpec", scale_spec_fields)};

static const struct hfd_schema_field scale_status_fields[] = {
        {"replicas", &hfd_schema_int32, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"selector", &hfd_schema_text, .protobuf_tag = 2},
};
static const struct hfd_schema scale_status = {
        HFD_STRUCT("io.k8s.api.autoscaling.v1.ScaleStatus", scale_status_fields)};

static const struct hfd_schema_field scale_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA_AS("Standard object metadata; More info: " HFD_CONVENTIONS "#metadata."),
        {"spec", &scale_spec, .protobuf_tag = 2},
        {"status", &scale_status, .protobuf_tag = 3},
};
const struct hfd_schema hfd_scale_schema = {
        HFD_STRUCT("io.k8s.api.autoscaling.v1.Scale", scale_fields)};
