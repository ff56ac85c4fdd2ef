/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Content negotiation: reads the formats of the body and of the response from the headers of a
 * request. Codes and texts are those of Kubernetes, but a text names only the types that this
 * server supports: no response is YAML. Pure. Thread: any.
 *
 * content_type and accept are the headers' values; NULL = absent.
 */
#include <stdbool.h>

#include "server/registry/base/request.h"

/*
 * Chooses the format of the response by the header Accept: sets request->format, request->protobuf
 * and request->table_version. The caller has set verb and resource, and has left these three zero.
 * Of the first HFD_ACCEPT_TYPES elements, in the order in which the client prefers them
 * (media_type.h), the first supported one is used. Without the header, or if it has 2 KiB or more,
 * the format is JSON. False: none of the elements is supported, and response is a 406.
 */
bool hfd_negotiate_format(struct hfd_request *request, const char *accept,
                          struct hfd_response *response);
/* The format of a received object or DeleteOptions. */
enum hfd_body_format { HFD_BODY_JSON, HFD_BODY_YAML, HFD_BODY_PROTOBUF };
/*
 * Determines the format of a body. Without a Content-Type it is JSON. False: the format is not
 * supported, and response is a 415.
 */
bool hfd_negotiate_body(const struct hfd_resource *resource, const char *content_type,
                        enum hfd_body_format *ret_format, struct hfd_response *response);
/* Sets request->patch, the kind of a patch, by the Content-Type. The verb is HFD_PATCH. False: the
 * header is absent, names no kind of patch, or names the strategic merge patch for a resource that
 * does not have it. Then response is a 415. */
bool hfd_negotiate_patch(struct hfd_request *request, const char *content_type,
                         struct hfd_response *response);
/*
 * Whether to indent the response. The parameter `pretty` of the query decides. Without it, or if it
 * cannot be decoded or has 8 bytes or more, only responses to interactive user agents such as curl
 * are indented. agent NULL = unknown.
 */
bool hfd_negotiate_pretty(const char *query, const char *agent);
