/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Impersonation runs between authentication and authorization. So an impersonating request is
 * authorized with the rights of the impersonated user. Those of the user who sent it only decide
 * whether the user may impersonate.
 */
#include "server/filters/impersonation.h"

#include "server/filters/status_response.h"

bool hfd_impersonation_filter(struct hfd_request_context *context, struct hfd_user *user) {
        struct hfd_user impersonated;
        const char *fault = "";
        int r = hfd_auth_impersonate(context->request, user, &impersonated, &fault);

        if (r == 0)
                return true;
        if (r != HF_E_FORBIDDEN) {
                hfd_status_response_code(context->request, 400, 0, fault);
                return false;
        }
        const struct hfd_attributes attributes = {.verb = "impersonate",
                                                  .group = "",
                                                  .resource = "users",
                                                  .ns = "",
                                                  .name = impersonated.name,
                                                  .is_resource = true};
        hfd_status_response_forbidden(context->request, user, &attributes, "");
        return false;
}
