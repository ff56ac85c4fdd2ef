/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of this folder know about the request of a review. */
#include "server/auth/auth.h"
#include "server/authorization/authorizer.h"
#include "server/resources/response.h"

/* The client, and whom to ask. Everything is borrowed. */
struct hfd_review_context {
        struct hfd_authorizer *authorizer; /* NULL = only the fixed rules */
        struct hfd_auth *auth;
        const struct hfd_requester *requester;
        const struct hfd_resource *resource; /* a row with is_review */
        const char *ns;                      /* of the request; "" = none */
};
