/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The filter that decides whether the user may make the request (auth/auth.h). */
#include "server/filters/request_context.h"

/* False: the user may not, and the filter has sent the response (403). */
bool hfd_authorization_filter(struct hfd_request_context *context, struct hfd_auth *auth,
                              const struct hfd_user *user);
