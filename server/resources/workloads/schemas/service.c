/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural schemas of Service and Endpoints.
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

static const char *const by_port_and_protocol[] = {"port", "protocol", NULL};
static const char *const by_type[] = {"type", NULL};
static const struct hfd_schema protocol_text = {.type = HFD_SCHEMA_TEXT,
                                                .definition = HFD_CORE "Protocol"};
static const struct hfd_schema service_type_text = {.type = HFD_SCHEMA_TEXT,
                                                    .definition = HFD_CORE "ServiceType"};
static const struct hfd_schema service_affinity_text = {.type = HFD_SCHEMA_TEXT,
                                                        .definition = HFD_CORE "ServiceAffinity"};
static const struct hfd_schema service_external_traffic_policy_text =
        {.type = HFD_SCHEMA_TEXT, .definition = HFD_CORE "ServiceExternalTrafficPolicy"};
static const struct hfd_schema ip_family_text = {.type = HFD_SCHEMA_TEXT,
                                                 .definition = HFD_CORE "IPFamily"};
static const struct hfd_schema ip_family_policy_text = {.type = HFD_SCHEMA_TEXT,
                                                        .definition = HFD_CORE "IPFamilyPolicy"};
static const struct hfd_schema service_internal_traffic_policy_text =
        {.type = HFD_SCHEMA_TEXT, .definition = HFD_CORE "ServiceInternalTrafficPolicy"};
static const struct hfd_schema load_balancer_ip_mode_text = {.type = HFD_SCHEMA_TEXT,
                                                             .definition =
                                                                     HFD_CORE "LoadBalancerIPMode"};

/* Apply tells ports apart by port and protocol, a strategic merge patch by the port alone.
 * key_default is the protocol of a port that names none. */
static const struct hfd_schema_field service_port_fields[] = {
        {"appProtocol", &hfd_schema_text, .protobuf_tag = 6, .flags = HFD_FIELD_POINTER},
        {"name", &hfd_schema_text, .protobuf_tag = 1},
        {"nodePort", &hfd_schema_int32, .protobuf_tag = 5},
        {"port", &hfd_schema_int32, .protobuf_tag = 3, .flags = HFD_FIELD_REQUIRED},
        {"protocol", &protocol_text, .protobuf_tag = 2, .key_default = "TCP"},
        {"targetPort", &hfd_schema_int_or_string, .protobuf_tag = 4},
};
static const struct hfd_schema service_port = {
        HFD_STRUCT(HFD_CORE "ServicePort", service_port_fields)};

static const struct hfd_schema_field client_ip_config_fields[] = {
        {"timeoutSeconds", &hfd_schema_int32, .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema client_ip_config = {
        HFD_STRUCT(HFD_CORE "ClientIPConfig", client_ip_config_fields)};

static const struct hfd_schema_field session_affinity_config_fields[] = {
        {"clientIP", &client_ip_config, .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema session_affinity_config = {
        HFD_STRUCT(HFD_CORE "SessionAffinityConfig", session_affinity_config_fields)};

static const struct hfd_schema_field service_spec_fields[] = {
        {"allocateLoadBalancerNodePorts", &hfd_schema_boolean, .protobuf_tag = 20,
         .flags = HFD_FIELD_POINTER},
        {"clusterIP", &hfd_schema_text, .protobuf_tag = 3},
        {"clusterIPs", &hfd_schema_list_of_texts, .protobuf_tag = 18},
        {"externalIPs", &hfd_schema_list_of_texts, .protobuf_tag = 5},
        {"externalName", &hfd_schema_text, .protobuf_tag = 10},
        {"externalTrafficPolicy", &service_external_traffic_policy_text, .protobuf_tag = 11},
        {"healthCheckNodePort", &hfd_schema_int32, .protobuf_tag = 12},
        {"internalTrafficPolicy", &service_internal_traffic_policy_text, .protobuf_tag = 22,
         .flags = HFD_FIELD_POINTER},
        {"ipFamilies", HFD_LIST_OF(&ip_family_text), .protobuf_tag = 19},
        {"ipFamilyPolicy", &ip_family_policy_text, .protobuf_tag = 17, .flags = HFD_FIELD_POINTER},
        {"loadBalancerClass", &hfd_schema_text, .protobuf_tag = 21, .flags = HFD_FIELD_POINTER},
        {"loadBalancerIP", &hfd_schema_text, .protobuf_tag = 8},
        {"loadBalancerSourceRanges", &hfd_schema_list_of_texts, .protobuf_tag = 9},
        {"ports",
         HFD_LIST_OF(&service_port, .list_type = HFD_LIST_MAP, .list_keys = by_port_and_protocol),
         .merge_key = "port", .protobuf_tag = 1, .flags = HFD_FIELD_MERGE},
        {"publishNotReadyAddresses", &hfd_schema_boolean, .protobuf_tag = 13},
        {"selector", &hfd_schema_atomic_map_of_texts, .protobuf_tag = 2},
        {"sessionAffinity", &service_affinity_text, .protobuf_tag = 7},
        {"sessionAffinityConfig", &session_affinity_config, .protobuf_tag = 14,
         .flags = HFD_FIELD_POINTER},
        {"trafficDistribution", &hfd_schema_text, .protobuf_tag = 23, .flags = HFD_FIELD_POINTER},
        {"type", &service_type_text, .protobuf_tag = 4},
};
static const struct hfd_schema service_spec = {
        HFD_STRUCT(HFD_CORE "ServiceSpec", service_spec_fields)};

static const struct hfd_schema_field port_status_fields[] = {
        {"error", &hfd_schema_text, .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
        {"port", &hfd_schema_int32, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"protocol", &protocol_text, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema port_status = {
        HFD_STRUCT(HFD_CORE "PortStatus", port_status_fields)};

static const struct hfd_schema_field load_balancer_ingress_fields[] = {
        {"hostname", &hfd_schema_text, .protobuf_tag = 2},
        {"ip", &hfd_schema_text, .protobuf_tag = 1},
        {"ipMode", &load_balancer_ip_mode_text, .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
        {"ports", HFD_LIST_OF(&port_status), .protobuf_tag = 4},
};
static const struct hfd_schema load_balancer_ingress = {
        HFD_STRUCT(HFD_CORE "LoadBalancerIngress", load_balancer_ingress_fields)};

static const struct hfd_schema_field load_balancer_status_fields[] = {
        {"ingress", HFD_LIST_OF(&load_balancer_ingress), .protobuf_tag = 1},
};
static const struct hfd_schema load_balancer_status = {
        HFD_STRUCT(HFD_CORE "LoadBalancerStatus", load_balancer_status_fields)};

static const struct hfd_schema_field service_status_fields[] = {
        {"conditions",
         HFD_LIST_OF(&hfd_schema_condition, .list_type = HFD_LIST_MAP, .list_keys = by_type),
         .merge_key = "type", .protobuf_tag = 2, .flags = HFD_FIELD_MERGE},
        {"loadBalancer", &load_balancer_status, .protobuf_tag = 1},
};
static const struct hfd_schema service_status = {
        HFD_STRUCT(HFD_CORE "ServiceStatus", service_status_fields)};

static const struct hfd_schema_field service_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
        {"spec", &service_spec, .protobuf_tag = 2},
        {"status", &service_status, .protobuf_tag = 3},
};
const struct hfd_schema hfd_service_schema = {HFD_STRUCT(HFD_CORE "Service", service_fields)};

static const struct hfd_schema_field endpoint_address_fields[] = {
        {"hostname", &hfd_schema_text, .protobuf_tag = 3},
        {"ip", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"nodeName", &hfd_schema_text, .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
        {"targetRef", &hfd_schema_object_reference, .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema endpoint_address = {HFD_STRUCT(HFD_CORE "EndpointAddress",
                                                              endpoint_address_fields),
                                                   .atomic = true};

static const struct hfd_schema_field endpoint_port_fields[] = {
        {"appProtocol", &hfd_schema_text, .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
        {"name", &hfd_schema_text, .protobuf_tag = 1},
        {"port", &hfd_schema_int32, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"protocol", &protocol_text, .protobuf_tag = 3},
};
static const struct hfd_schema endpoint_port = {HFD_STRUCT(HFD_CORE "EndpointPort",
                                                           endpoint_port_fields),
                                                .atomic = true};

static const struct hfd_schema_field endpoint_subset_fields[] = {
        {"addresses", HFD_LIST_OF(&endpoint_address), .protobuf_tag = 1},
        {"notReadyAddresses", HFD_LIST_OF(&endpoint_address), .protobuf_tag = 2},
        {"ports", HFD_LIST_OF(&endpoint_port), .protobuf_tag = 3},
};
static const struct hfd_schema endpoint_subset = {
        HFD_STRUCT(HFD_CORE "EndpointSubset", endpoint_subset_fields)};

static const struct hfd_schema_field endpoints_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
        {"subsets", HFD_LIST_OF(&endpoint_subset), .protobuf_tag = 2},
};
const struct hfd_schema hfd_endpoints_schema = {HFD_STRUCT(HFD_CORE "Endpoints", endpoints_fields)};
