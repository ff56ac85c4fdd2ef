/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The responses of requests that a webhook has refused, or that have failed because of one. Texts
 * are Kubernetes', apart from that of hfd_refusal_busy. Thread: owner of the response. */

#include "server/resources/response.h"

struct hf__json;
struct hf__strbuf;

/* `admission webhook "x" denied the request: ...`. status: the webhook's; NULL = none. */
void hfd_refusal_denied(struct hfd_response *response, const char *webhook,
                        const struct hf__json *status);
/* 500 `Internal error occurred: failed calling webhook "x": ...`. */
void hfd_refusal_failed(struct hfd_response *response, const char *webhook, const char *why);
/* 500 `Internal error occurred: ...`. */
void hfd_refusal_internal(struct hfd_response *response, const char *why);
/* The object cannot be converted to the version that a rule names, or back. failure: why the
 * conversion webhook of the kind has not converted it. The response is 500 with the message of
 * `failure`; or `failure` itself, if its code is another one, such as 429. failure NULL: 500 with
 * `why`. */
void hfd_refusal_conversion(struct hfd_response *response, const struct hfd_response *failure,
                            const char *why);
/* 400 `admission webhook "x" does not support dry run`. */
void hfd_refusal_dry_run(struct hfd_response *response, const char *webhook);
/* 429: too many requests wait for the webhook. */
void hfd_refusal_busy(struct hfd_response *response, const char *webhook);
/* 504: the deadline of the request has passed. */
void hfd_refusal_timeout(struct hfd_response *response);
