/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Compresses responses with gzip, because a list of many objects is mostly repetition. As in
 * kube-apiserver, a response with objects is compressed if it has HFD_GZIP_MIN bytes or more and
 * the client accepts gzip. A response of one piece also has an upper limit, HFD_REST_PRETTY_MAX
 * (rest/rest_request.h). OpenAPI documents are compressed at any size, because their cache keeps
 * them so. Thread: owner only.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "server/http/http.h"

#define HFD_GZIP_MIN ((size_t)128 << 10)

struct hfd_gzip;

/* The headers that say that a response is compressed, and that it depends on the request. */
#define HFD_GZIP_HEADERS                                                                           \
        {"content-encoding", "gzip"}, { "vary", "Accept-Encoding" }

/* Whether the client accepts gzip. As in Kubernetes, only the word itself counts: an element with a
 * quality value, such as "gzip;q=1", is ignored. */
bool hfd_gzip_is_accepted(struct hfd_http_request *http_request);
/* The whole text, compressed. NULL = out of memory, or the text has 4 GiB or more. */
struct hf__buf *hfd_gzip_pack(const struct hf__buf *text);

/* The text of n bytes that hfd_gzip_pack has compressed. NULL = out of memory. */
struct hf__buf *hfd_gzip_unpack(const struct hf__buf *packed, size_t n);

/* ---- a response in pieces ---- */

/* About 130 KiB of memory. 0 or -ENOMEM. */
int hfd_gzip_new(struct hfd_gzip **ret_gzip);
/* Adds n bytes, fewer than 4 GiB. last: no bytes follow them. *ret_piece (owned by the caller):
 * what can be sent; NULL = nothing yet. 0, or -ENOMEM: bytes are lost, so the response must be cut.
 */
int hfd_gzip_add(struct hfd_gzip *gzip, const void *data, size_t n, bool last,
                 struct hf__buf **ret_piece);
/* Accepts NULL, returns NULL. */
struct hfd_gzip *hfd_gzip_free(struct hfd_gzip *gzip);
