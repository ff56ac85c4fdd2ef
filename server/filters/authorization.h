/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The filter that decides whether the user may make the request (authorization/authorizer.h).
 *
 * Thread: the request's worker. Nothing blocks: the authorizer decides by what is in memory.
 */
#include "server/filters/request_context.h"

/* False: the user may not, and the filter has sent the response (403). */
bool hfd_authorization_filter(struct hfd_request_context *context, const struct hfd_user *user);
/* Sets context->selected_name, which is part of what the request wants; the filter does so too, if
 * it was not done. False: out of memory. */
bool hfd_authorization_select_name(struct hfd_request_context *context);
/* What the request wants to do, borrowed from context. */
struct hfd_attributes hfd_request_attributes(const struct hfd_request_context *context);
