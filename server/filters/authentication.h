/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The filter that determines the user of a request (auth/auth.h). It is the first filter: the
 * context of the request is created after it, with the user's name.
 *
 * Thread: the request's worker. Nothing blocks.
 */
#include "server/auth/auth.h"

/* Calls hfd_auth_authenticate and returns the result. The caller frees *ret_credential. On an error
 * ret_user->name is "". */
int hfd_authentication_filter(struct hfd_http_request *request, struct hfd_auth *auth,
                              struct hfd_user *ret_user, struct hfd_credential **ret_credential);
/* Sends the response to a request whose authentication failed with this error: 401, or 503. */
void hfd_authentication_refuse(struct hfd_http_request *request, int error);
/* Whether the user is that of requests without credentials. Call it before impersonation, which may
 * choose any groups. */
bool hfd_authentication_is_anonymous(const struct hfd_user *user);
