/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The filter that determines the user of a request (auth/auth.h). */
#include "server/filters/request_context.h"

/* Fills *ret_user. False: the credentials are not valid, and the filter has sent a 401. */
bool hfd_authentication_filter(struct hfd_request_context *context, struct hfd_auth *auth,
                               struct hfd_user *ret_user);
