/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural schemas of the probes and the lifecycle hooks of containers.
 *
 * A table has a row for each field of a Go struct of k8s.io/api/core/v1: the name in JSON, the
 * schema of the value, a description for `kubectl explain`, the number of the field in protobuf
 * (protobuf_tag), and flags. HFD_FIELD_POINTER stands for a Go pointer and embedded_tag for the
 * number of an embedded struct, which is an inner message in protobuf. A schema named *_text (not
 * hfd_schema_text) is a Go string type with a name of its own; error messages show this name.
 *
 * Invariants: the rows of a table are sorted by name (strcmp), because look-ups bisect it. The
 * number and the type of a field never change: clients that use protobuf find a field by its number
 * alone.
 */
#include "server/resources/strategies/pod/pod_schema.h"

#include "server/schema/common.h"

static const struct hfd_schema uri_scheme_text = {.type = HFD_SCHEMA_TEXT,
                                                  .definition = HFD_CORE "URIScheme"};
static const struct hfd_schema signal_text = {.type = HFD_SCHEMA_TEXT,
                                              .definition = HFD_CORE "Signal"};

static const struct hfd_schema_field exec_action_fields[] = {
        {"command", &hfd_schema_list_of_texts,
         "The command and its arguments. No shell runs it; status 0 is success.",
         .protobuf_tag = 1},
};
static const struct hfd_schema exec_action = {
        HFD_STRUCT(HFD_CORE "ExecAction", exec_action_fields)};

static const struct hfd_schema_field http_header_fields[] = {
        {"name", &hfd_schema_text, "The name.", .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"value", &hfd_schema_text, "The value.", .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema http_header = {
        HFD_STRUCT(HFD_CORE "HTTPHeader", http_header_fields)};

static const struct hfd_schema_field http_get_action_fields[] = {
        {"host", &hfd_schema_text, "The host. Empty: the address of the pod.", .protobuf_tag = 3},
        {"httpHeaders", HFD_LIST_OF(&http_header),
         "Headers of the request. A name may occur more than once.", .protobuf_tag = 5},
        {"path", &hfd_schema_text, "The path of the request.", .protobuf_tag = 1},
        {"port", &hfd_schema_int_or_string, "The number or the name of the port.",
         .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"scheme", &uri_scheme_text, "HTTP or HTTPS.", .protobuf_tag = 4},
};
static const struct hfd_schema http_get_action = {
        HFD_STRUCT(HFD_CORE "HTTPGetAction", http_get_action_fields)};

static const struct hfd_schema_field tcp_socket_action_fields[] = {
        {"host", &hfd_schema_text, "The host. Empty: the address of the pod.", .protobuf_tag = 2},
        {"port", &hfd_schema_int_or_string, "The number or the name of the port.",
         .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema tcp_socket_action = {
        HFD_STRUCT(HFD_CORE "TCPSocketAction", tcp_socket_action_fields)};

static const struct hfd_schema_field grpc_action_fields[] = {
        {"port", &hfd_schema_int32, "The number of the port.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"service", &hfd_schema_text, "The service that is asked for.", .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema grpc_action = {
        HFD_STRUCT(HFD_CORE "GRPCAction", grpc_action_fields)};

static const struct hfd_schema_field probe_fields[] = {
        {"exec", &exec_action, "A command that runs in the container.", .protobuf_tag = 1,
         .embedded_tag = 1, .flags = HFD_FIELD_POINTER},
        {"failureThreshold", &hfd_schema_int32,
         "Failures in a row after which the probe counts as failed.", .protobuf_tag = 6},
        {"grpc", &grpc_action, "A gRPC health check.", .protobuf_tag = 4, .embedded_tag = 1,
         .flags = HFD_FIELD_POINTER},
        {"httpGet", &http_get_action, "A GET request over HTTP.", .protobuf_tag = 2,
         .embedded_tag = 1, .flags = HFD_FIELD_POINTER},
        {"initialDelaySeconds", &hfd_schema_int32,
         "Seconds from the container's start to the first probe.", .protobuf_tag = 2},
        {"periodSeconds", &hfd_schema_int32, "Seconds from one probe to the next.",
         .protobuf_tag = 4},
        {"successThreshold", &hfd_schema_int32,
         "Successes in a row after which the probe counts as successful.", .protobuf_tag = 5},
        {"tcpSocket", &tcp_socket_action, "A connection that is opened.", .protobuf_tag = 3,
         .embedded_tag = 1, .flags = HFD_FIELD_POINTER},
        {"terminationGracePeriodSeconds", &hfd_schema_int64,
         "Seconds that the processes get to end by themselves.", .protobuf_tag = 7,
         .flags = HFD_FIELD_POINTER},
        {"timeoutSeconds", &hfd_schema_int32, "Seconds until a probe fails that has no answer.",
         .protobuf_tag = 3},
};
const struct hfd_schema hfd_probe_schema = {HFD_STRUCT(HFD_CORE "Probe", probe_fields),
                                            .embedded = "ProbeHandler",
                                            .description =
                                                    "How the state of a container is found out."};

static const struct hfd_schema_field sleep_action_fields[] = {
        {"seconds", &hfd_schema_int64, "How long.", .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema sleep_action = {
        HFD_STRUCT(HFD_CORE "SleepAction", sleep_action_fields)};

static const struct hfd_schema_field lifecycle_handler_fields[] = {
        {"exec", &exec_action, "A command that runs in the container.", .protobuf_tag = 1,
         .flags = HFD_FIELD_POINTER},
        {"httpGet", &http_get_action, "A GET request over HTTP.", .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"sleep", &sleep_action, "A pause.", .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
        {"tcpSocket", &tcp_socket_action, "A connection that is opened.", .protobuf_tag = 3,
         .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema lifecycle_handler = {
        HFD_STRUCT(HFD_CORE "LifecycleHandler", lifecycle_handler_fields)};

static const struct hfd_schema_field lifecycle_fields[] = {
        {"postStart", &lifecycle_handler, "What is done right after the container has started.",
         .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
        {"preStop", &lifecycle_handler, "What is done before the container is stopped.",
         .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
        {"stopSignal", &signal_text, "The signal that stops the container.", .protobuf_tag = 3,
         .flags = HFD_FIELD_POINTER},
};
const struct hfd_schema hfd_lifecycle_schema =
        {HFD_STRUCT(HFD_CORE "Lifecycle", lifecycle_fields),
         .description = "What is done at the start and the stop of a container."};
