/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The documents that describe the API, over HTTP: the list of paths at /, which is always JSON, and
 * discovery below /api and /apis, in the form that the client accepts. Aggregated discovery has an
 * ETag, because clients keep it. OpenAPI has a handler of its own (openapi/openapi_handler.h).
 * Thread: any.
 */
#include "server/http/http.h"

struct hfd_custom_table;

/* Responds to a GET of a document of discovery, and to a HEAD of one that takes it (discovery.h);
 * to the rest with 405. Consumes the caller's reference. table NULL = without custom resources.
 * Never blocks. */
void hfd_documents_handle(struct hfd_custom_table *table, struct hfd_http_request *http_request);
/* A handler of http.h for "/": responds to a GET or HEAD with the list of paths, to the rest with
 * 405. ctx: the struct hfd_custom_table. */
void hfd_documents_handle_root(void *ctx, struct hfd_http_request *http_request);
