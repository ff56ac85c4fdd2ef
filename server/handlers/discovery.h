/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Discovery: describes which groups, versions and resources are served
 * (https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api). The documents are
 * generated from the table of resources, and those of OpenAPI also from the tables of fields.
 * Thread: any.
 */
#include "base/buf.h"
#include "server/http/http.h"

/*
 * Returns the JSON document at path: /api, /api/v1, /apis, /apis/GROUP, /apis/GROUP/VERSION or
 * /openapi/v3... A slash at the end is ignored. *ret_code is 200. NULL: *ret_code is 404 (there is
 * no document at path) or 500 (out of memory). Pure.
 */
struct hf__buf *hfd_discovery(const char *path, int *ret_code);

/* Responds to a GET or HEAD of a document, also of /openapi/v2; to other methods with 405. Consumes
 * the caller's reference. Never blocks. */
void hfd_discovery_handle(struct hfd_http_request *http_request);
