/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The context of a review's request, for the files of this folder. Thread: that of the request. */
#include "server/auth/auth.h"
#include "server/authorization/authorizer.h"
#include "server/resources/response.h"

/* The client, and the components that decide about it. Everything is borrowed. */
struct hfd_review_context {
        struct hfd_authorizer *authorizer; /* NULL = only the fixed rules (auth/fixed_rules.h) */
        struct hfd_auth *auth;
        const struct hfd_requester *requester;
        const struct hfd_resource *resource; /* a row with is_review */
        const char *ns;                      /* of the request; "" = none */
};
