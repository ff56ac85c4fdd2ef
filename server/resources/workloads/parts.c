/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds of the bodies of .../scale, .../binding and .../eviction. They are not stored and have
 * no path of their own, so the table of resources does not have their rows; a request to the
 * subresource uses them (hfd_resource_of_part).
 *
 * A table has a row for each field of a Go struct of k8s.io/api: the name in JSON, the schema of
 * the value, the number of the field in protobuf (protobuf_tag), and flags (schema.h).
 *
 * Invariants: the rows of a table are sorted by name (strcmp), because look-ups bisect it. The
 * number and the type of a field never change: clients that use protobuf find a field by its number
 * alone.
 */
#include "server/resources/resource.h"
#include "server/resources/workloads/workloads.h"
#include "server/schema/common.h"

static const struct hfd_schema_field binding_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
        {"target", &hfd_schema_object_reference, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema binding = {HFD_STRUCT(HFD_CORE "Binding", binding_fields)};

static const struct hfd_schema_field eviction_fields[] = {
        HFD_FIELD_API_VERSION,
        {"deleteOptions", &hfd_schema_delete_options, .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA_AS("ObjectMeta describes the pod that is being evicted."),
};
static const struct hfd_schema eviction = {
        HFD_STRUCT("io.k8s.api.policy.v1.Eviction", eviction_fields)};

/* No path has these plurals; only error messages show them. */
static const struct hfd_resource scale_row = {.group = "autoscaling",
                                              .version = "v1",
                                              .plural = "scales",
                                              .singular = "scale",
                                              .kind = "Scale",
                                              .namespaced = true,
                                              .unconditional_update = true,
                                              .columns = HFD_COLUMNS({"Name", "string", "",
                                                                      "metadata.name"},
                                                                     {"Desired", "integer", "",
                                                                      "@integer:spec.replicas"},
                                                                     {"Available", "integer", "",
                                                                      "@integer:status.replicas"},
                                                                     {"Age", "string", "", "@age"}),
                                              .schema = &hfd_scale_schema},
                                 binding_row = {.group = "",
                                                .version = "v1",
                                                .plural = "bindings",
                                                .singular = "binding",
                                                .kind = "Binding",
                                                .namespaced = true,
                                                .schema = &binding},
                                 eviction_row = {.group = "policy",
                                                 .version = "v1",
                                                 .plural = "evictions",
                                                 .singular = "eviction",
                                                 .kind = "Eviction",
                                                 .namespaced = true,
                                                 .schema = &eviction};

const struct hfd_resource *hfd_resource_scale(void) { return &scale_row; }

const struct hfd_resource *hfd_resource_binding(void) { return &binding_row; }

const struct hfd_resource *hfd_resource_eviction(void) { return &eviction_row; }
