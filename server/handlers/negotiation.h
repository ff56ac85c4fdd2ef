/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Content negotiation: what the headers of a request say about the forms of its body and of the
 * response. Codes and texts are Kubernetes'. Pure. Thread: any.
 *
 * content_type and accept are the headers' values; NULL = absent.
 */
#include <stdbool.h>

#include "server/registry/request.h"

/*
 * The form of the response, from Accept: sets request->format and request->table_version. The verb
 * must be set. The first element that can be given counts; quality values are not read. Without
 * the header it is JSON. False: nothing that is accepted can be given, and response is the 406.
 */
bool hfd_negotiate_format(struct hfd_request *request, const char *accept,
                          struct hfd_response *response);
/*
 * The form of a sent object or of DeleteOptions. *ret_protobuf false = JSON, which is also assumed
 * without a Content-Type. False: it is neither, and response is the 415.
 */
bool hfd_negotiate_body(const struct hfd_resource *resource, const char *content_type,
                        bool *ret_protobuf, struct hfd_response *response);
/* The kind of a patch: sets request->patch. False: it is unknown, and response is the 415. */
bool hfd_negotiate_patch(struct hfd_request *request, const char *content_type,
                         struct hfd_response *response);
/*
 * Whether the response is to be indented: as the query's `pretty` says, otherwise for user agents
 * behind which a person reads. agent NULL = unknown.
 */
bool hfd_negotiate_pretty(const char *query, const char *agent);
