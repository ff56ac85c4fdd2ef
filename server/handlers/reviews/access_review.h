/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The reviews that say what a user may do. Both functions add the status to the object, which stays
 * the caller's. False: response is filled.
 *
 * Thread: any. Nothing blocks: the authorizer decides by what is in memory.
 */
#include "server/handlers/reviews/review_context.h"

struct hf__json;

/* SubjectAccessReview, LocalSubjectAccessReview, SelfSubjectAccessReview. */
bool hfd_access_review(const struct hfd_review_context *context, struct hf__json *object,
                       struct hfd_response *response);
/* SelfSubjectRulesReview. */
bool hfd_rules_review(const struct hfd_review_context *context, struct hf__json *object,
                      struct hfd_response *response);
