/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Impersonation runs between authentication and authorization. So an impersonating request is
 * authorized with the rights of the impersonated user. The sender's own rights only decide whether
 * the sender may impersonate that user: as in Kubernetes, the sender needs the verb impersonate on
 * the user or service account, on each group, on the uid and on each extra value.
 *
 * Invariant: the user is replaced once every right has been checked, and not before. So later
 * filters see either the sender or a user for whom the sender may act.
 */
#include "server/filters/impersonation.h"

#include <string.h>

#include "server/auth/impersonation.h"
#include "server/filters/audit.h"
#include "server/filters/status_response.h"

#define IDENTITY_API "authentication.k8s.io" /* the group of uids and extra values */

/* The user who sent the request. */
struct sender {
        struct hfd_request_context *context;
        const char *name;
        struct hfd_subject subject;
};

/* Whether the sender may impersonate the object `name` of the resource: a user, a group, and so on.
 * If not, it sends the response. */
static bool check_right(const struct sender *sender, const char *group, const char *resource,
                        const char *subresource, const char *ns, const char *name) {
        const struct hfd_attributes attributes = {.verb = "impersonate",
                                                  .group = group,
                                                  .resource = resource,
                                                  .subresource = subresource,
                                                  .ns = ns,
                                                  .name = name,
                                                  .path = "",
                                                  .is_resource = true};

        if (hfd_authorizer_allows(sender->context->authorizer, &sender->subject, &attributes, NULL))
                return true;
        hfd_status_response_forbidden(sender->context->request, sender->name, &attributes, NULL);
        return false;
}

/* Whether the sender may impersonate all that is in `requested`. The first n_groups groups are
 * those that the request names. The other groups follow from the name of the user, and need no
 * right. */
static bool check_rights(const struct sender *sender, const struct hfd_user *requested,
                         size_t n_groups) {
        char ns[HFD_NAMESPACE_MAX] = "";
        const char *name = requested->name;
        bool account = hfd_is_service_account(requested->name, ns, sizeof ns, &name);

        if (!check_right(sender, "", account ? "serviceaccounts" : "users", "", ns, name))
                return false;
        for (size_t i = 0; i < n_groups; i++)
                if (!check_right(sender, "", "groups", "", "", requested->groups[i]))
                        return false;
        for (const char *at = requested->extra; at < requested->extra + requested->n_extra;) {
                const char *key = at, *value = at + strlen(at) + 1;
                at = value + strlen(value) + 1;
                if (!check_right(sender, IDENTITY_API, "userextras", key, "", value))
                        return false;
        }
        return !requested->uid[0] ||
               check_right(sender, IDENTITY_API, "uids", "", "", requested->uid);
}

bool hfd_impersonation_filter(struct hfd_request_context *context, struct hfd_user *user) {
        const char *groups[HFD_MAX_GROUPS], *fault = "";
        struct hfd_user requested;
        size_t n_groups = 0;
        bool asked = false;

        if (hfd_impersonation_parse(context->request, &requested, &asked, &n_groups, &fault) != 0) {
                hfd_status_response_code(context->request, 400, 0, fault);
                return false;
        }
        const struct sender sender = {.context = context,
                                      .name = user->name,
                                      .subject = hfd_user_subject(user, groups)};
        if (!asked)
                return true;
        if (!check_rights(&sender, &requested, n_groups))
                return false;
        *user = requested;
        hfd_audit_filter_impersonated(context, user);
        return true;
}
