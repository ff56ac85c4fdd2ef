/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The filter that determines the user of a request (auth/auth.h). It is the first one: the context
 * of the request is created after it, with the user's name. */
#include "server/auth/auth.h"

/* Fills *ret_user; its name is "" if the user is not authenticated. False: it has sent the response
 * (401). */
bool hfd_authentication_filter(struct hfd_http_request *request, struct hfd_auth *auth,
                               struct hfd_user *ret_user);
/* Whether the user is that of requests without credentials. Call it before impersonation, which may
 * choose any groups. */
bool hfd_authentication_is_anonymous(const struct hfd_user *user);
