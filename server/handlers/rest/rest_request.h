/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* An HTTP request for a resource, shared by rest.c, rest_list.c and rest_watch.c. */
#include "base/strbuf.h"
#include "server/http/http.h"
#include "server/pool/work_pool.h"
#include "server/registry/registry.h"
#include "server/registry/request.h"

struct hfd_rest_list;

/*
 * A larger body is never indented: parsing and printing it would need many times its memory, and
 * would block a thread that serves other requests. Bytes.
 */
#define HFD_REST_PRETTY_MAX ((size_t)4 << 20)

/*
 * One HTTP request for a resource, until its response was sent or passed to the HTTP server. It
 * belongs to one thread at a time, like the struct hfd_request in it (registry.h). Once a watch has
 * begun, it does not change, and several threads read it.
 */
struct hfd_rest_request {
        struct hfd_request
                request; /* must be first: the done callback casts its pointer to this struct */
        struct hfd_registry *registry;         /* borrowed */
        struct hfd_http_request *http_request; /* owned reference; the HTTP request owns the body */
        struct hf_fence *fence;                /* owned; request.fence; NULL = none */
        struct hf__strbuf translated;          /* owned; the body as JSON, if it was protobuf */
        struct hfd_work_task task;             /* for a large body: decodes and serves it */
        struct hfd_rest_list *list; /* a list; the HTTP request owns it; NULL = another verb */
};
/* Frees rest, and drops its reference to the HTTP request. */
void hfd_rest_free(struct hfd_rest_request *rest);
/*
 * Sends response. unknown_fields: one line for each Warning header, of which the first few are
 * sent; NULL = none. The caller keeps response and its reference to http_request. Thread: any.
 */
void hfd_rest_respond(struct hfd_http_request *http_request, const struct hfd_response *response,
                      const char *unknown_fields);
