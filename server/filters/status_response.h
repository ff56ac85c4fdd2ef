/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Responses to requests that never reach the registry, from filters and from the handlers of other
 * endpoints, such as /healthz: a Kubernetes Status, or text. The caller keeps its reference to the
 * request. When memory runs out, the client gets the status code without a body. Thread: any.
 */
#include <holdfast/error.h>

#include "server/auth/auth.h"
#include "server/http/http.h"

/*
 * Sends the Status of a failure. status->http_code must be 400 to 599. If status has no reason, the
 * usual reason for that code is sent.
 */
void hfd_status_response(struct hfd_http_request *request, const struct hf_status *status);
/* The same, from its parts. retry_after_s: in seconds; 0 = no Retry-After header. */
void hfd_status_response_code(struct hfd_http_request *request, int code, uint32_t retry_after_s,
                              const char *message);
/*
 * Sends a 403. Its message is Kubernetes' text about the right that the user lacks (attributes), or
 * "forbidden" if this text is too long. reason: why, if there is more to say; NULL or "" = nothing.
 */
#define HFD_REASON_MAX 4096 /* bytes of a reason */
void hfd_status_response_forbidden(struct hfd_http_request *request, const char *user,
                                   const struct hfd_attributes *attributes, const char *reason);
/* Sends text/plain. retry_after_s: as above. close: an HTTP/1 connection is closed after the
 * response; with HTTP/2 it has no effect. */
void hfd_status_response_text(struct hfd_http_request *request, int code, const char *text,
                              unsigned retry_after_s, bool close);
