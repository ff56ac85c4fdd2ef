/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The reviews that say who a user is. Both functions add the status to the object, which stays the
 * caller's. False: response is filled.
 *
 * Thread: any. Nothing blocks.
 */
#include "server/handlers/reviews/review_context.h"

struct hf__json;

/* SelfSubjectReview. */
bool hfd_self_review(const struct hfd_review_context *context, struct hf__json *object,
                     struct hfd_response *response);
/* TokenReview. */
bool hfd_token_review(const struct hfd_review_context *context, struct hf__json *object,
                      struct hfd_response *response);
