/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The OpenAPI documents over HTTP. A document is made when a client asks for it or for the index,
 * and then kept (document_cache.h). It has an ETag, and is compressed for clients that accept gzip.
 * The index names each document of v3 by a URL with its hash. A response to that URL says that it
 * never changes, so clients ask no more. Documents are made on the registry's pool of threads.
 * Thread: any.
 */
#include "server/http/http.h"

struct hfd_openapi_handler;
struct hfd_registry;

/* registry is borrowed. 0 or -errno. */
int hfd_openapi_handler_new(struct hfd_registry *registry,
                            struct hfd_openapi_handler **ret_handler);
/* The registry must have been freed, because its pool uses the handler. Accepts NULL; returns NULL.
 */
struct hfd_openapi_handler *hfd_openapi_handler_free(struct hfd_openapi_handler *handler);

/* The handler of /openapi/..., as in http.h; ctx: the struct hfd_openapi_handler. Never blocks. */
void hfd_openapi_handle(void *ctx, struct hfd_http_request *http_request);
