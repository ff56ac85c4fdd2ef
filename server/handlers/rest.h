/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * HTTP requests for resources become requests of the registry, and its responses become HTTP
 * responses. Nothing else is decided here: the filters have parsed and authorized the request.
 */
#include "base/strbuf.h"
#include "server/http/http.h"
#include "server/registry/registry.h"
#include "server/registry/request.h"

/*
 * The handler of /api, /api/..., /apis, /apis/... and /openapi/..., as in http.h; ctx is the struct
 * hfd_registry. Paths that are not of a resource go to discovery.h. Thread: worker. Never blocks.
 */
void hfd_rest_handle(void *ctx, struct hfd_http_request *http_request);

/*
 * One HTTP request for a resource, while the registry has it. It belongs to one thread at a time,
 * as its request does (registry.h).
 */
struct hfd_rest_request {
        struct hfd_request request;            /* first: its done is given a pointer to it */
        struct hfd_registry *registry;         /* borrowed */
        struct hfd_http_request *http_request; /* a reference; it owns the body */
        struct hf_fence *fence;                /* owned; request.fence; NULL = none */
        struct hf__strbuf translated;          /* the body as JSON, if it was sent as protobuf */
};
/* Frees rest, and drops its reference to the HTTP request. */
void hfd_rest_free(struct hfd_rest_request *rest);
/* Sends response. Takes neither the response nor a reference. */
void hfd_rest_respond(struct hfd_http_request *http_request, const struct hfd_response *response);
