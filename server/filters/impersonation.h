/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The filter for the Impersonate-* headers: the request runs as another user
 * (auth/impersonation.h).
 *
 * Thread: the request's worker. Nothing blocks.
 */
#include "server/filters/request_context.h"

/*
 * If the request impersonates a user, replaces *user by that user. False: the filter has sent the
 * response (400, 403, or 503 if memory ran out).
 */
bool hfd_impersonation_filter(struct hfd_request_context *context, struct hfd_user *user);
