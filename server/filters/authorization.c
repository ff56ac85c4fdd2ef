/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filter that asks the authorizer whether the user may make the request, and refuses it if not.
 *
 * Invariants, as in Kubernetes: a list or a watch of one object, by a field selector for
 * metadata.name, is authorized as a request for that object, so that a user with rights for one
 * object can watch it. A request for a Namespace is authorized as a request in that namespace.
 */
#include "server/filters/authorization.h"

#include <assert.h>
#include <string.h>

#include "base/strbuf.h"
#include "server/filters/audit.h"
#include "server/filters/request/query.h"
#include "server/filters/status_response.h"

struct hfd_attributes hfd_request_attributes(const struct hfd_request_context *context) {
        const struct hfd_request_info *info = &context->info;
        const char *name = context->selected_name ? context->selected_name : info->name;
        bool is_namespace = !info->ns[0] && strcmp(info->resource, "namespaces") == 0;

        return (struct hfd_attributes){.verb = info->verb,
                                       .group = info->group,
                                       .resource = info->resource,
                                       .subresource = info->subresource,
                                       .ns = is_namespace ? info->name : info->ns,
                                       .name = name,
                                       .path = hfd_http_request_path(context->request),
                                       .is_resource = info->is_resource};
}

bool hfd_authorization_select_name(struct hfd_request_context *context) {
        const struct hfd_request_info *info = &context->info;
        char name[HF_NAME_MAX + 1];
        bool many = info->watch || strcmp(info->verb, "list") == 0;

        if (context->selected_name || !many || info->name[0] ||
            !hfd_query_selected_name(hfd_http_request_query(context->request), name))
                return true;
        assert(name[0]);
        context->selected_name = strdup(name);
        return context->selected_name != NULL;
}

bool hfd_authorization_filter(struct hfd_request_context *context, const struct hfd_user *user) {
        const char *groups[HFD_MAX_GROUPS];
        const struct hfd_subject subject = hfd_user_subject(user, groups);
        struct hf__strbuf reason = {.max = HFD_REASON_MAX};

        if (!hfd_authorization_select_name(context)) {
                hfd_status_response_code(context->request, 503, 1, "out of memory");
                return false;
        }
        const struct hfd_attributes attributes = hfd_request_attributes(context);
        bool allowed = hfd_authorizer_allows(context->authorizer, &subject, &attributes, NULL);
        /* The reason takes time to compose, and most requests do not need it. If rights change
         * between the two calls, the first decision counts. */
        if (!allowed || context->audited)
                (void)hfd_authorizer_allows(context->authorizer, &subject, &attributes, &reason);
        const char *why = reason.error == 0 ? reason.data : NULL;
        hfd_audit_filter_decided(context, allowed, why);
        if (!allowed)
                hfd_status_response_forbidden(context->request, user->name, &attributes, why);
        hf__strbuf_done(&reason);
        return allowed;
}
