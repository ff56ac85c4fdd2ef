/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Impersonation runs between authentication and authorization, so that a request is authorized with
 * the rights of the impersonated user, and never with those of the sender.
 */
#include "server/filters/impersonation.h"

#include "server/filters/status_response.h"

bool hfd_impersonation_filter(struct hfd_request_context *context, struct hfd_user *user) {
        struct hfd_user asked;
        int r = hfd_auth_impersonate(context->request, user, &asked);

        if (r == 0)
                return true;
        if (r != HF_E_FORBIDDEN) {
                hfd_status_response_code(context->request, 400, 0,
                                         "the headers of the impersonation name no user, or too "
                                         "many groups");
                return false;
        }
        const struct hfd_attributes users = {.verb = "impersonate",
                                             .group = "",
                                             .resource = "users",
                                             .ns = "",
                                             .name = asked.name,
                                             .is_resource = true};
        hfd_status_response_forbidden(context->request, user, &users, "");
        return false;
}
