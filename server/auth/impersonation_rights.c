/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the rights that the sender of an impersonation needs. The filter asks for them when the
 * request arrives, and the authorizer again while a watch is open.
 *
 * Invariant: every part of the user that the headers can name needs a right: the name, each group,
 * each extra value, and the uid.
 */
#include "server/auth/impersonation_rights.h"

#include <string.h>

#include "server/resources/validation/names.h"

#define ACCOUNT_PREFIX "system:serviceaccount:"
#define IDENTITY_API   "authentication.k8s.io" /* the group of uids and extra values */

bool hfd_is_service_account(const char *name, char ret_ns[HFD_NAMESPACE_MAX],
                            const char **ret_name) {
        const char *ns = name + strlen(ACCOUNT_PREFIX);
        const char *colon =
                strncmp(name, ACCOUNT_PREFIX, strlen(ACCOUNT_PREFIX)) == 0 ? strchr(ns, ':') : NULL;

        if (!colon || (size_t)(colon - ns) >= HFD_NAMESPACE_MAX)
                return false;
        memcpy(ret_ns, ns, (size_t)(colon - ns));
        ret_ns[colon - ns] = '\0';
        *ret_name = colon + 1;
        return hfd_is_dns_label(ret_ns) && hfd_is_dns_subdomain(*ret_name);
}

/* The right to impersonate the object `name` of the resource: a user, a group, and so on. */
static struct hfd_attributes right_to(const char *group, const char *resource,
                                      const char *subresource, const char *ns, const char *name) {
        return (struct hfd_attributes){.verb = "impersonate",
                                       .group = group,
                                       .resource = resource,
                                       .subresource = subresource,
                                       .ns = ns,
                                       .name = name,
                                       .path = "",
                                       .is_resource = true};
}

/* The groups after the first n_groups follow from the name of the user, and need no right. */
bool hfd_impersonation_allowed(const struct hfd_requester *requested, size_t n_groups,
                               bool (*has)(void *ctx, const struct hfd_attributes *right),
                               void *ctx, char ns[HFD_NAMESPACE_MAX],
                               struct hfd_attributes *ret_missing) {
        const struct hfd_subject *subject = &requested->subject;
        const char *name, *end = requested->extra + requested->n_extra;

        bool account = hfd_is_service_account(subject->name, ns, &name);
        *ret_missing = right_to("", account ? "serviceaccounts" : "users", "", account ? ns : "",
                                account ? name : subject->name);
        if (!has(ctx, ret_missing))
                return false;
        if (requested->uid[0]) {
                *ret_missing = right_to(IDENTITY_API, "uids", "", "", requested->uid);
                if (!has(ctx, ret_missing))
                        return false;
        }
        for (size_t i = 0; i < n_groups; i++) {
                *ret_missing = right_to("", "groups", "", "", subject->groups[i]);
                if (!has(ctx, ret_missing))
                        return false;
        }
        for (const char *at = requested->extra; at < end;) {
                const char *key = at, *value = at + strlen(at) + 1;
                at = value + strlen(value) + 1;
                *ret_missing = right_to(IDENTITY_API, "userextras", key, "", value);
                if (!has(ctx, ret_missing))
                        return false;
        }
        return true;
}
