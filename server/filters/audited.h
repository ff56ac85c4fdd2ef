/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Functions by which the code that serves a request adds to its record in the audit log (audit.h).
 * Each function returns at once if the request is not recorded. The caller owns a reference to the
 * request. Thread: any.
 */
#include <stddef.h>

struct hf__buf;
struct hfd_http_request;

/* The body of a write, as JSON; it is copied. */
void hfd_audited_request(struct hfd_http_request *request, const char *body, size_t n);
/* Annotations of the event: keys, each followed by a value, all with their NULs; they are copied.
 */
void hfd_audited_annotations(struct hfd_http_request *request, const char *texts, size_t n);
/* The next piece of the response's body, as JSON that is not compressed. NULL: the body has another
 * form, and is left out of the record. */
void hfd_audited_response(struct hfd_http_request *request, struct hf__buf *piece);
/* The response to a watch begins. */
void hfd_audited_watch(struct hfd_http_request *request);
