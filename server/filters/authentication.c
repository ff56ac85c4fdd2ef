/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filter that finds out who sends a request.
 *
 * Invariants: it runs before all filters that need the user. A request without credentials is not
 * refused here: it gets the anonymous user, whose rights authorization checks. After a failure the
 * user has no name.
 */
#include "server/filters/authentication.h"

#include "server/filters/status_response.h"

int hfd_authentication_filter(struct hfd_http_request *request, struct hfd_auth *auth,
                              struct hfd_user *ret_user, struct hfd_credential **ret_credential) {
        int r = hfd_auth_authenticate(auth, request, ret_user, ret_credential);

        if (r != 0)
                ret_user->name[0] = '\0';
        return r;
}

void hfd_authentication_refuse(struct hfd_http_request *request, int error) {
        /* An error other than HF_E_UNAUTHORIZED is the server's, such as memory that has run out.
         * It gets 503, because a client throws its credentials away after a 401. */
        if (error == HF_E_UNAUTHORIZED)
                hfd_status_response_code(request, 401, 0, "Unauthorized");
        else
                hfd_status_response_code(request, 503, 1, hf_strerror(error));
}

bool hfd_authentication_is_anonymous(const struct hfd_user *user) {
        return hfd_user_in_group(user, HFD_GROUP_UNAUTHENTICATED);
}
