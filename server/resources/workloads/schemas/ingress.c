/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural schemas of Ingress and IngressClass.
 *
 * A table has a row for each field of a Go struct of k8s.io/api/networking/v1: the name in JSON,
 * the schema of the value, the number of the field in protobuf (protobuf_tag), and flags.
 * HFD_FIELD_POINTER stands for a Go pointer and embedded_tag for the number of an embedded struct,
 * which is an inner message in protobuf. A schema named *_text (not hfd_schema_text) is a Go string
 * type with a name of its own; error messages show this name.
 *
 * Invariants: the rows of a table are sorted by name (strcmp), because look-ups bisect it. The
 * number and the type of a field never change: clients that use protobuf find a field by its number
 * alone.
 */
#include "server/resources/workloads/workloads.h"

#include "server/resources/strategies/pod/pod_schema.h"
#include "server/schema/common.h"

static const struct hfd_schema path_type_text = {.type = HFD_SCHEMA_TEXT,
                                                 .definition = "io.k8s.api.networking.v1.PathType"};
static const struct hfd_schema protocol_text = {.type = HFD_SCHEMA_TEXT,
                                                .definition = HFD_CORE "Protocol"};

static const struct hfd_schema_field service_backend_port_fields[] = {
        {"name", &hfd_schema_text, .protobuf_tag = 1},
        {"number", &hfd_schema_int32, .protobuf_tag = 2},
};
static const struct hfd_schema service_backend_port =
        {HFD_STRUCT("io.k8s.api.networking.v1.ServiceBackendPort", service_backend_port_fields),
         .atomic = true};

static const struct hfd_schema_field ingress_service_backend_fields[] = {
        {"name", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"port", &service_backend_port, .protobuf_tag = 2},
};
static const struct hfd_schema ingress_service_backend = {
        HFD_STRUCT("io.k8s.api.networking.v1.IngressServiceBackend",
                   ingress_service_backend_fields)};

static const struct hfd_schema_field ingress_backend_fields[] = {
        {"resource", &hfd_typed_local_object_reference_schema, .protobuf_tag = 3,
         .flags = HFD_FIELD_POINTER},
        {"service", &ingress_service_backend, .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema ingress_backend = {
        HFD_STRUCT("io.k8s.api.networking.v1.IngressBackend", ingress_backend_fields)};

static const struct hfd_schema_field ingress_tls_fields[] = {
        {"hosts", &hfd_schema_list_of_texts, .protobuf_tag = 1},
        {"secretName", &hfd_schema_text, .protobuf_tag = 2},
};
static const struct hfd_schema ingress_tls = {
        HFD_STRUCT("io.k8s.api.networking.v1.IngressTLS", ingress_tls_fields)};

static const struct hfd_schema_field http_ingress_path_fields[] = {
        {"backend", &ingress_backend, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"path", &hfd_schema_text, .protobuf_tag = 1},
        {"pathType", &path_type_text, .protobuf_tag = 3,
         .flags = HFD_FIELD_REQUIRED | HFD_FIELD_POINTER},
};
static const struct hfd_schema http_ingress_path = {
        HFD_STRUCT("io.k8s.api.networking.v1.HTTPIngressPath", http_ingress_path_fields)};

static const struct hfd_schema_field http_ingress_rule_value_fields[] = {
        {"paths", HFD_LIST_OF(&http_ingress_path), .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema http_ingress_rule_value = {
        HFD_STRUCT("io.k8s.api.networking.v1.HTTPIngressRuleValue",
                   http_ingress_rule_value_fields)};

static const struct hfd_schema_field ingress_rule_fields[] = {
        {"host", &hfd_schema_text, .protobuf_tag = 1},
        {"http", &http_ingress_rule_value, .protobuf_tag = 1, .embedded_tag = 2,
         .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema ingress_rule = {HFD_STRUCT("io.k8s.api.networking.v1.IngressRule",
                                                          ingress_rule_fields),
                                               .embedded = "IngressRuleValue"};

static const struct hfd_schema_field ingress_spec_fields[] = {
        {"defaultBackend", &ingress_backend, .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
        {"ingressClassName", &hfd_schema_text, .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
        {"rules", HFD_LIST_OF(&ingress_rule), .protobuf_tag = 3},
        {"tls", HFD_LIST_OF(&ingress_tls), .protobuf_tag = 2},
};
static const struct hfd_schema ingress_spec = {
        HFD_STRUCT("io.k8s.api.networking.v1.IngressSpec", ingress_spec_fields)};

static const struct hfd_schema_field ingress_port_status_fields[] = {
        {"error", &hfd_schema_text, .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
        {"port", &hfd_schema_int32, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"protocol", &protocol_text, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema ingress_port_status = {
        HFD_STRUCT("io.k8s.api.networking.v1.IngressPortStatus", ingress_port_status_fields)};

static const struct hfd_schema_field ingress_load_balancer_ingress_fields[] = {
        {"hostname", &hfd_schema_text, .protobuf_tag = 2},
        {"ip", &hfd_schema_text, .protobuf_tag = 1},
        {"ports", HFD_LIST_OF(&ingress_port_status), .protobuf_tag = 4},
};
static const struct hfd_schema ingress_load_balancer_ingress = {
        HFD_STRUCT("io.k8s.api.networking.v1.IngressLoadBalancerIngress",
                   ingress_load_balancer_ingress_fields)};

static const struct hfd_schema_field ingress_load_balancer_status_fields[] = {
        {"ingress", HFD_LIST_OF(&ingress_load_balancer_ingress), .protobuf_tag = 1},
};
static const struct hfd_schema ingress_load_balancer_status = {
        HFD_STRUCT("io.k8s.api.networking.v1.IngressLoadBalancerStatus",
                   ingress_load_balancer_status_fields)};

static const struct hfd_schema_field ingress_status_fields[] = {
        {"loadBalancer", &ingress_load_balancer_status, .protobuf_tag = 1},
};
static const struct hfd_schema ingress_status = {
        HFD_STRUCT("io.k8s.api.networking.v1.IngressStatus", ingress_status_fields)};

static const struct hfd_schema_field ingress_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
        {"spec", &ingress_spec, .protobuf_tag = 2},
        {"status", &ingress_status, .protobuf_tag = 3},
};
const struct hfd_schema hfd_ingress_schema = {
        HFD_STRUCT("io.k8s.api.networking.v1.Ingress", ingress_fields)};

static const struct hfd_schema_field ingress_class_parameters_reference_fields[] = {
        {"apiGroup", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
        {"kind", &hfd_schema_text, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"name", &hfd_schema_text, .protobuf_tag = 3, .flags = HFD_FIELD_REQUIRED},
        {"namespace", &hfd_schema_text, .protobuf_tag = 5, .flags = HFD_FIELD_POINTER},
        {"scope", &hfd_schema_text, .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema ingress_class_parameters_reference = {
        HFD_STRUCT("io.k8s.api.networking.v1.IngressClassParametersReference",
                   ingress_class_parameters_reference_fields)};

static const struct hfd_schema_field ingress_class_spec_fields[] = {
        {"controller", &hfd_schema_text, .protobuf_tag = 1},
        {"parameters", &ingress_class_parameters_reference, .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema ingress_class_spec = {
        HFD_STRUCT("io.k8s.api.networking.v1.IngressClassSpec", ingress_class_spec_fields)};

static const struct hfd_schema_field ingress_class_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
        {"spec", &ingress_class_spec, .protobuf_tag = 2},
};
const struct hfd_schema hfd_ingress_class_schema = {
        HFD_STRUCT("io.k8s.api.networking.v1.IngressClass", ingress_class_fields)};
