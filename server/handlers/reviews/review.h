/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reviews: objects that a client creates to ask what a user may do or who a user is. The
 * response is the object with a status; nothing is stored. Thread: any. Never blocks.
 */
#include "server/handlers/reviews/review_context.h"

struct hf__json;

/* body: JSON, after admission. Fills response: 201, or a failure. */
void hfd_review(const struct hfd_review_context *context, const void *body, size_t n_body,
                struct hfd_response *response);

/* Parses a body of a kind that is not stored, and brings the object into the form of its schema
 * (decode.h). The caller frees the object. NULL: response is filled. */
struct hf__json *hfd_review_parse(const struct hfd_resource *resource, const void *body,
                                  size_t n_body, struct hfd_response *response);
/* The response: kind and apiVersion first, and always a metadata. NULL: out of memory. */
struct hf__buf *hfd_review_print(const struct hfd_resource *resource,
                                 const struct hf__json *object);
