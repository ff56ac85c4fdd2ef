/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Authentication runs before all filters that need the user. A request without credentials is not
 * refused here: it gets the anonymous user, whose rights authorization checks.
 */
#include "server/filters/authentication.h"

#include "server/filters/status_response.h"

bool hfd_authentication_filter(struct hfd_request_context *context, struct hfd_auth *auth,
                               struct hfd_user *ret_user) {
        ret_user->name[0] = '\0';
        if (hfd_auth_authenticate(auth, context->request, ret_user) == 0)
                return true;
        hfd_status_response_code(context->request, 401, 0, "Unauthorized");
        return false;
}
