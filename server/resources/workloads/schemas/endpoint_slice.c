/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural schema of EndpointSlice.
 *
 * A table has a row for each field of a Go struct of k8s.io/api/discovery/v1: the name in JSON, the
 * schema of the value, the number of the field in protobuf (protobuf_tag), and flags.
 * HFD_FIELD_POINTER stands for a Go pointer and HFD_FIELD_KEEPS_EMPTY for a tag without omitempty.
 * A schema of this file named *_text is a Go string type with a name of its own; error messages
 * show this name.
 *
 * Invariants: the rows of a table are sorted by name (strcmp), because look-ups bisect it. The
 * number and the type of a field never change: clients that use protobuf find a field by its number
 * alone.
 */
#include "server/resources/workloads/workloads.h"

#include "server/resources/strategies/pod/pod_schema.h"
#include "server/schema/common.h"

static const struct hfd_schema address_type_text = {.type = HFD_SCHEMA_TEXT,
                                                    .definition =
                                                            "io.k8s.api.discovery.v1.AddressType"};
static const struct hfd_schema protocol_text = {.type = HFD_SCHEMA_TEXT,
                                                .definition = HFD_CORE "Protocol"};

static const struct hfd_schema_field endpoint_conditions_fields[] = {
        {"ready", &hfd_schema_boolean, .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
        {"serving", &hfd_schema_boolean, .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
        {"terminating", &hfd_schema_boolean, .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema endpoint_conditions = {
        HFD_STRUCT("io.k8s.api.discovery.v1.EndpointConditions", endpoint_conditions_fields)};

static const struct hfd_schema_field for_zone_fields[] = {
        {"name", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema for_zone = {
        HFD_STRUCT("io.k8s.api.discovery.v1.ForZone", for_zone_fields)};

static const struct hfd_schema_field for_node_fields[] = {
        {"name", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema for_node = {
        HFD_STRUCT("io.k8s.api.discovery.v1.ForNode", for_node_fields)};

static const struct hfd_schema_field endpoint_hints_fields[] = {
        {"forNodes", HFD_LIST_OF(&for_node), .protobuf_tag = 2},
        {"forZones", HFD_LIST_OF(&for_zone), .protobuf_tag = 1},
};
static const struct hfd_schema endpoint_hints = {
        HFD_STRUCT("io.k8s.api.discovery.v1.EndpointHints", endpoint_hints_fields)};

static const struct hfd_schema_field endpoint_fields[] = {
        {"addresses", &hfd_schema_set_of_texts, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"conditions", &endpoint_conditions, .protobuf_tag = 2},
        {"deprecatedTopology", &hfd_schema_map_of_texts, .protobuf_tag = 5},
        {"hints", &endpoint_hints, .protobuf_tag = 8, .flags = HFD_FIELD_POINTER},
        {"hostname", &hfd_schema_text, .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
        {"nodeName", &hfd_schema_text, .protobuf_tag = 6, .flags = HFD_FIELD_POINTER},
        {"targetRef", &hfd_schema_object_reference, .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
        {"zone", &hfd_schema_text, .protobuf_tag = 7, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema endpoint = {
        HFD_STRUCT("io.k8s.api.discovery.v1.Endpoint", endpoint_fields)};

static const struct hfd_schema_field endpoint_port_fields[] = {
        {"appProtocol", &hfd_schema_text, .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
        {"name", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
        {"port", &hfd_schema_int32, .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
        {"protocol", &protocol_text, .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema endpoint_port = {HFD_STRUCT("io.k8s.api.discovery.v1.EndpointPort",
                                                           endpoint_port_fields),
                                                .atomic = true};

static const struct hfd_schema_field endpoint_slice_fields[] = {
        {"addressType", &address_type_text, .protobuf_tag = 4, .flags = HFD_FIELD_REQUIRED},
        HFD_FIELD_API_VERSION,
        {"endpoints", HFD_LIST_OF(&endpoint), .protobuf_tag = 2, .flags = HFD_FIELD_KEEPS_EMPTY},
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA_AS("Standard object's metadata."),
        {"ports", HFD_LIST_OF(&endpoint_port), .protobuf_tag = 3, .flags = HFD_FIELD_KEEPS_EMPTY},
};
const struct hfd_schema hfd_endpoint_slice_schema = {
        HFD_STRUCT("io.k8s.api.discovery.v1.EndpointSlice", endpoint_slice_fields)};
