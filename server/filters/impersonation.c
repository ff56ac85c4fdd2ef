/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Impersonation runs between authentication and authorization. So an impersonating request is
 * authorized with the rights of the impersonated user. Those of the user who sent it only decide
 * whether the user may impersonate: as in Kubernetes, the user needs the verb impersonate on the
 * user or service account, on each group, on the uid and on each extra value.
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
 * False: no, and the response was sent. */
static bool check(const struct sender *sender, const char *group, const char *resource,
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

/* Whether the server itself puts users, or the service accounts of ns, into the group. Such a group
 * needs no right. */
static bool is_implied(const struct hfd_user *requested, const char *group, const char *ns) {
        size_t n = strlen("system:serviceaccounts");

        if (strcmp(group, HFD_GROUP_AUTHENTICATED) == 0 ||
            strcmp(group, HFD_GROUP_UNAUTHENTICATED) == 0)
                return true;
        return ns[0] && strncmp(group, "system:serviceaccounts", n) == 0 &&
               (group[n] == '\0' || (group[n] == ':' && strcmp(group + n + 1, ns) == 0));
}

static bool check_all(const struct sender *sender, const struct hfd_user *requested) {
        char ns[HFD_NAMESPACE_MAX] = "";
        const char *name = requested->name;
        bool account = hfd_is_service_account(requested->name, ns, sizeof ns, &name);

        if (!check(sender, "", account ? "serviceaccounts" : "users", "", ns, name))
                return false;
        for (size_t i = 0; i < requested->n_groups; i++)
                if (!is_implied(requested, requested->groups[i], ns) &&
                    !check(sender, "", "groups", "", "", requested->groups[i]))
                        return false;
        for (const char *at = requested->extra; at < requested->extra + requested->n_extra;) {
                const char *key = at, *value = at + strlen(at) + 1;
                at = value + strlen(value) + 1;
                if (!check(sender, IDENTITY_API, "userextras", key, "", value))
                        return false;
        }
        return !requested->uid[0] || check(sender, IDENTITY_API, "uids", "", "", requested->uid);
}

bool hfd_impersonation_filter(struct hfd_request_context *context, struct hfd_user *user) {
        const char *groups[HFD_MAX_GROUPS], *fault = "";
        struct hfd_user requested;
        bool asked = false;

        if (hfd_impersonation_parse(context->request, &requested, &asked, &fault) != 0) {
                hfd_status_response_code(context->request, 400, 0, fault);
                return false;
        }
        const struct sender sender = {.context = context,
                                      .name = user->name,
                                      .subject = hfd_user_subject(user, groups)};
        if (!asked)
                return true;
        if (!check_all(&sender, &requested))
                return false;
        *user = requested;
        hfd_audit_filter_impersonated(context, user);
        return true;
}
