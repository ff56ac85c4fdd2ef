/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural schema of NetworkPolicy.
 *
 * A table has a row for each field of a Go struct of k8s.io/api/networking/v1: the name in JSON,
 * the schema of the value, the number of the field in protobuf (protobuf_tag), and flags.
 * HFD_FIELD_POINTER stands for a Go pointer. A schema named *_text (not hfd_schema_text) is a Go
 * string type with a name of its own; error messages show this name.
 *
 * Invariants: the rows of a table are sorted by name (strcmp), because look-ups bisect it. The
 * number and the type of a field never change: clients that use protobuf find a field by its number
 * alone.
 */
#include "server/resources/workloads/workloads.h"

#include "server/resources/strategies/pod/pod_schema.h"
#include "server/schema/common.h"

static const struct hfd_schema protocol_text = {.type = HFD_SCHEMA_TEXT,
                                                .definition = HFD_CORE "Protocol"};
static const struct hfd_schema policy_type_text = {.type = HFD_SCHEMA_TEXT,
                                                   .definition =
                                                           "io.k8s.api.networking.v1.PolicyType"};

static const struct hfd_schema_field network_policy_port_fields[] = {
        {"endPort", &hfd_schema_int32, .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
        {"port", &hfd_schema_int_or_string, .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
        {"protocol", &protocol_text, .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema network_policy_port = {
        HFD_STRUCT("io.k8s.api.networking.v1.NetworkPolicyPort", network_policy_port_fields)};

static const struct hfd_schema_field ip_block_fields[] = {
        {"cidr", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"except", &hfd_schema_list_of_texts, .protobuf_tag = 2},
};
static const struct hfd_schema ip_block = {
        HFD_STRUCT("io.k8s.api.networking.v1.IPBlock", ip_block_fields)};

static const struct hfd_schema_field network_policy_peer_fields[] = {
        {"ipBlock", &ip_block, .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
        {"namespaceSelector", &hfd_schema_label_selector, .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"podSelector", &hfd_schema_label_selector, .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema network_policy_peer = {
        HFD_STRUCT("io.k8s.api.networking.v1.NetworkPolicyPeer", network_policy_peer_fields)};

static const struct hfd_schema_field network_policy_ingress_rule_fields[] = {
        {"from", HFD_LIST_OF(&network_policy_peer), .protobuf_tag = 2},
        {"ports", HFD_LIST_OF(&network_policy_port), .protobuf_tag = 1},
};
static const struct hfd_schema network_policy_ingress_rule = {
        HFD_STRUCT("io.k8s.api.networking.v1.NetworkPolicyIngressRule",
                   network_policy_ingress_rule_fields)};

static const struct hfd_schema_field network_policy_egress_rule_fields[] = {
        {"ports", HFD_LIST_OF(&network_policy_port), .protobuf_tag = 1},
        {"to", HFD_LIST_OF(&network_policy_peer), .protobuf_tag = 2},
};
static const struct hfd_schema network_policy_egress_rule = {
        HFD_STRUCT("io.k8s.api.networking.v1.NetworkPolicyEgressRule",
                   network_policy_egress_rule_fields)};

static const struct hfd_schema_field network_policy_spec_fields[] = {
        {"egress", HFD_LIST_OF(&network_policy_egress_rule), .protobuf_tag = 3},
        {"ingress", HFD_LIST_OF(&network_policy_ingress_rule), .protobuf_tag = 2},
        {"podSelector", &hfd_schema_label_selector, .protobuf_tag = 1},
        {"policyTypes", HFD_LIST_OF(&policy_type_text), .protobuf_tag = 4},
};
static const struct hfd_schema network_policy_spec = {
        HFD_STRUCT("io.k8s.api.networking.v1.NetworkPolicySpec", network_policy_spec_fields)};

static const struct hfd_schema_field network_policy_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
        {"spec", &network_policy_spec, .protobuf_tag = 2},
};
const struct hfd_schema hfd_network_policy_schema = {
        HFD_STRUCT("io.k8s.api.networking.v1.NetworkPolicy", network_policy_fields)};
