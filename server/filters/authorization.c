/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list or a watch of one object, by a field selector for metadata.name, is authorized as a
 * request for that object: Kubernetes lets a user with rights for one object watch it.
 */
#include "server/filters/authorization.h"

#include <string.h>

#include "server/filters/query.h"
#include "server/filters/status_response.h"

bool hfd_authorization_filter(struct hfd_request_context *context, struct hfd_auth *auth,
                              const struct hfd_user *user) {
        const struct hfd_request_info *info = &context->info;
        const char *name = info->name;
        char selected_name[HF_NAME_MAX + 1];
        bool many = info->watch || strcmp(info->verb, "list") == 0;

        if (many && !name[0] &&
            hfd_query_selected_name(hfd_http_request_query(context->request), selected_name))
                name = selected_name;
        const struct hfd_attributes attributes = {.verb = info->verb,
                                                  .group = info->group,
                                                  .resource = info->resource,
                                                  .ns = info->ns,
                                                  .name = name,
                                                  .path = hfd_http_request_path(context->request),
                                                  .is_resource = info->is_resource};
        if (hfd_auth_allows(auth, user, &attributes))
                return true;
        hfd_status_response_forbidden(context->request, user, &attributes, info->subresource);
        return false;
}
