/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The filter for the Impersonate- headers: the request is made for another user (auth/auth.h). */
#include "server/filters/request_context.h"

/* Replaces *user by the impersonated user, if there is one. False: it has sent the response (403,
 * 400). */
bool hfd_impersonation_filter(struct hfd_request_context *context, struct hfd_user *user);
