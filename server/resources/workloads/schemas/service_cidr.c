/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural schemas of IPAddress and ServiceCIDR.
 *
 * A table has a row for each field of a Go struct of k8s.io/api/networking/v1: the name in JSON,
 * the schema of the value, the number of the field in protobuf (protobuf_tag), and flags.
 * HFD_FIELD_POINTER stands for a Go pointer, HFD_FIELD_MERGE and merge_key for the struct tags
 * patchStrategy and patchMergeKey, and list_type and list_keys for the markers +listType and
 * +listMapKey.
 *
 * Invariants: the rows of a table are sorted by name (strcmp), because look-ups bisect it. The
 * number and the type of a field never change: clients that use protobuf find a field by its number
 * alone.
 */
#include "server/resources/workloads/workloads.h"

#include "server/resources/strategies/pod/pod_schema.h"
#include "server/schema/common.h"

static const char *const by_type[] = {"type", NULL};

static const struct hfd_schema_field parent_reference_fields[] = {
        {"group", &hfd_schema_text, .protobuf_tag = 1},
        {"name", &hfd_schema_text, .protobuf_tag = 4},
        {"namespace", &hfd_schema_text, .protobuf_tag = 3},
        {"resource", &hfd_schema_text, .protobuf_tag = 2},
};
static const struct hfd_schema parent_reference = {
        HFD_STRUCT("io.k8s.api.networking.v1.ParentReference", parent_reference_fields)};

static const struct hfd_schema_field ip_address_spec_fields[] = {
        {"parentRef", &parent_reference, .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema ip_address_spec = {
        HFD_STRUCT("io.k8s.api.networking.v1.IPAddressSpec", ip_address_spec_fields)};

static const struct hfd_schema_field ip_address_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
        {"spec", &ip_address_spec, .protobuf_tag = 2},
};
const struct hfd_schema hfd_ip_address_schema = {
        HFD_STRUCT("io.k8s.api.networking.v1.IPAddress", ip_address_fields)};

static const struct hfd_schema_field service_cidr_spec_fields[] = {
        {"cidrs", &hfd_schema_list_of_texts, .protobuf_tag = 1},
};
static const struct hfd_schema service_cidr_spec = {
        HFD_STRUCT("io.k8s.api.networking.v1.ServiceCIDRSpec", service_cidr_spec_fields)};

static const struct hfd_schema_field service_cidr_status_fields[] = {
        {"conditions",
         HFD_LIST_OF(&hfd_schema_condition, .list_type = HFD_LIST_MAP, .list_keys = by_type),
         .merge_key = "type", .protobuf_tag = 1, .flags = HFD_FIELD_MERGE},
};
static const struct hfd_schema service_cidr_status = {
        HFD_STRUCT("io.k8s.api.networking.v1.ServiceCIDRStatus", service_cidr_status_fields)};

static const struct hfd_schema_field service_cidr_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
        {"spec", &service_cidr_spec, .protobuf_tag = 2},
        {"status", &service_cidr_status, .protobuf_tag = 3},
};
const struct hfd_schema hfd_service_cidr_schema = {
        HFD_STRUCT("io.k8s.api.networking.v1.ServiceCIDR", service_cidr_fields)};
