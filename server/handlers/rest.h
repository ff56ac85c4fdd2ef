/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * HTTP requests for resources become requests of the registry, and its responses become HTTP
 * responses. Nothing else is decided here: the filters have parsed and authorized the request.
 *
 * The ctx of hfd_rest_handle is the registry. It serves /api, /api/..., /apis, /apis/... and
 * /openapi/...
 */
#include "base/strbuf.h"
#include "server/http/http.h"
#include "server/registry/registry.h"
#include "server/registry/request.h"

void hfd_rest_handle(void *registry, struct hfd_http_request *http_request);

/* One HTTP request for a resource, while the registry has it. */
struct hfd_rest_request {
        struct hfd_request request; /* first: its done is given this */
        struct hfd_registry *registry;
        struct hfd_http_request *http_request; /* a reference; it owns the body */
        struct hf_fence *fence;                /* owned; the request's; NULL = none */
        struct hf__strbuf translated;          /* the body as JSON, when it was sent as protobuf */
};
/* Frees rest, and drops its reference to the HTTP request. */
void hfd_rest_free(struct hfd_rest_request *rest);
void hfd_rest_respond(struct hfd_http_request *http_request, const struct hfd_response *response);
