/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * HTTP requests for resources become requests of the registry, and its responses become HTTP
 * responses. The filters have already parsed and authorized the request.
 */
#include "server/http/http.h"

/*
 * The handler of /api, /api/..., /apis, /apis/... and /openapi/..., as in http.h; ctx is the struct
 * hfd_registry. Other paths than those of resources are passed to hfd_discovery_handle. Thread:
 * worker. Never blocks.
 */
void hfd_rest_handle(void *ctx, struct hfd_http_request *http_request);
