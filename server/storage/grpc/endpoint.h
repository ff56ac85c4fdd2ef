/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The address of a gRPC server. Immutable after hfd_grpc_endpoint_parse, and not to be copied,
 * because it points into itself. Thread: any.
 */
#include <stdbool.h>

#include <holdfast/error.h>

#define HFD_GRPC_ENDPOINT_MAX 512

struct hfd_grpc_endpoint {
        char url[HFD_GRPC_ENDPOINT_MAX];  /* "https://etcd-1:2379" */
        char host[HFD_GRPC_ENDPOINT_MAX]; /* a name or an address, without brackets */
        char port[6];
        const char *authority; /* points into url */
        bool tls;
};

/* Reads "scheme://host:port"; one slash may follow. The scheme is http or https, and the default
 * port 80 or 443. 0 or HF_E_INVALID: the message names the endpoint. */
int hfd_grpc_endpoint_parse(const char *url, struct hfd_grpc_endpoint *ret_endpoint,
                            struct hf_status *reterr_status);
