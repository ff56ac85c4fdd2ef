/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Translates HTTP requests for resources to requests of the registry, and the registry's responses
 * to HTTP responses. The filters have already parsed and authorized the request.
 */
#include "server/http/http.h"

/*
 * The handler of /api, /api/..., /apis and /apis/..., as in http.h; ctx is the struct hfd_registry.
 * Paths that do not belong to a resource are passed to hfd_documents_handle, unless their group
 * version gets 503 (remote_group.h). Thread: worker. Never blocks.
 */
void hfd_rest_handle(void *ctx, struct hfd_http_request *http_request);
