/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The filter that decides whether the user may make the request (authorization/authorizer.h).
 *
 * Thread: the request's worker. Nothing blocks: the authorizer decides by what is in memory.
 */
#include "server/filters/request_context.h"

/* False: the filter has sent the response: 403, or 503 if memory ran out. */
bool hfd_authorization_filter(struct hfd_request_context *context, const struct hfd_user *user);
/* Sets context->selected_name from the query, if it is not set yet. Call it before
 * hfd_request_attributes, which uses the name. The authorization filter calls it, too. False: out
 * of memory. */
bool hfd_authorization_select_name(struct hfd_request_context *context);
/* The right that the request needs, borrowed from context. */
struct hfd_attributes hfd_request_attributes(const struct hfd_request_context *context);
