/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Responses to requests that never reach the registry, from filters and health endpoints: a
 * Kubernetes Status, or a line of text. No function takes the caller's reference of the request.
 * When memory runs out, the client gets the status code without a body. Thread: any.
 */
#include <holdfast/error.h>

#include "server/auth/auth.h"
#include "server/http/http.h"

/* Sends the Status of a failure. status->http_code must be set. Without a reason the reason of the
 * code is used. */
void hfd_status_response(struct hfd_http_request *request, const struct hf_status *status);
/* The same, from its parts. retry_after_s 0 = no such header. */
void hfd_status_response_code(struct hfd_http_request *request, int code, uint32_t retry_after_s,
                              const char *message);
/*
 * Sends a 403 with Kubernetes' message, which describes the request that the user must not make.
 * subresource "" = none.
 */
void hfd_status_response_forbidden(struct hfd_http_request *request, const struct hfd_user *user,
                                   const struct hfd_attributes *attributes,
                                   const char *subresource);
/* Sends text/plain. close: the connection is closed after the response. */
void hfd_status_response_text(struct hfd_http_request *request, int code, const char *text,
                              unsigned retry_after_s, bool close);
