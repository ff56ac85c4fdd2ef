/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The Warning headers of a response (RFC 7234), except the one of a deprecated version, which
 * rest_request.c makes. Pure. Thread: owner only. */
#include <stddef.h>

#include "base/strbuf.h"
#include "server/http/http.h"

#define HFD_REST_WARNINGS_MAX 32 /* headers; a response has room for 64, also for the others */

/*
 * Makes a header for each of the first HFD_REST_WARNINGS_MAX lines of the two texts, which may be
 * NULL. As in Kubernetes, if all lines together have more than 4096 characters, each is cut to 256
 * characters, and no warning begins after the first 4096 characters. The values are in *text, which
 * is empty before and which the caller frees after it has sent them. Returns the number of headers;
 * if memory runs out, 0.
 */
size_t hfd_rest_warnings(const char *mistakes, const char *admission, struct hf__strbuf *text,
                         struct hfd_header headers[HFD_REST_WARNINGS_MAX]);
