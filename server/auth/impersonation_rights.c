/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the rights that the sender of an impersonation needs. The filter asks for them when the
 * request arrives, and the authorizer again while a watch is open.
 *
 * Invariant: every part of the user that the headers can name needs a right: the name, each group,
 * each extra value, and the uid. In a mode for nodes or accounts the headers name nothing but the
 * user.
 */
#include "server/auth/impersonation_rights.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "server/resources/validation/names.h"

#define ACCOUNT_PREFIX "system:serviceaccount:"
#define NODE_PREFIX    "system:node:"
/* The API group of uids and extra values and, in all modes but the legacy one, of users, groups,
 * service accounts and nodes, too. */
#define IDENTITY_API "authentication.k8s.io"
/* With this number of groups or extra values or more, the right to all groups or all extra values
 * is tried first, except in the legacy mode. */
#define MANY 4

/* The names of the modes, as parts of verbs. The last one has no name. */
static const char *const mode_names[HFD_N_IMPERSONATION_MODES] = {"arbitrary-node",
                                                                  "serviceaccount", "user-info"};
static const char *const mode_verbs[HFD_N_IMPERSONATION_MODES] = {"impersonate:arbitrary-node",
                                                                  "impersonate:serviceaccount",
                                                                  "impersonate:user-info",
                                                                  "impersonate"};

/* One mode, tried for one impersonation. */
struct trial {
        const struct hfd_impersonation *asked;
        enum hfd_impersonation_mode mode;
        hfd_has_right *has;
        void *ctx;
        struct hfd_missing_right *missing;
};

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

/* The name of the node to which the user name belongs; NULL = it belongs to none. */
static const char *node_of(const char *name) {
        const char *node = name + strlen(NODE_PREFIX);

        return strncmp(name, NODE_PREFIX, strlen(NODE_PREFIX)) == 0 && hfd_is_dns_subdomain(node)
                       ? node
                       : NULL;
}

const char *hfd_impersonation_constraint(enum hfd_impersonation_mode mode) {
        return mode == HFD_IMPERSONATE_LEGACY ? "" : mode_verbs[mode];
}

static bool is_for_user(const struct hfd_impersonation *asked, enum hfd_impersonation_mode mode) {
        const struct hfd_requester *user = asked->requested;
        bool only_name = asked->n_groups == 0 && !user->uid[0] && user->n_extra == 0;
        bool is_node = node_of(user->subject.name) != NULL;
        char ns[HFD_NAMESPACE_MAX];
        const char *name;
        bool is_account = hfd_is_service_account(user->subject.name, ns, &name);

        switch (mode) {
        case HFD_IMPERSONATE_NODE: return is_node && only_name;
        case HFD_IMPERSONATE_ACCOUNT: return is_account && only_name;
        case HFD_IMPERSONATE_USER_INFO: return !is_node && !is_account;
        case HFD_IMPERSONATE_LEGACY: return true;
        case HFD_N_IMPERSONATION_MODES: break;
        }
        return false;
}

/* Whether the sender has the right to impersonate the object `name` of the resource: a user, a
 * group, and so on. */
static bool has_right(const struct trial *t, const char *group, const char *resource,
                      const char *subresource, const char *ns, const char *name) {
        t->missing->why = NULL;
        t->missing->right = (struct hfd_attributes){.verb = mode_verbs[t->mode],
                                                    .group = group,
                                                    .resource = resource,
                                                    .subresource = subresource,
                                                    .ns = ns,
                                                    .name = name,
                                                    .path = "",
                                                    .is_resource = true};
        return t->has(t->ctx, &t->missing->right);
}

/* Whether the sender may make this request as another user. */
static bool may_request(const struct trial *t) {
        struct hfd_missing_right *missing = t->missing;
        const struct hfd_attributes *attributes = t->asked->attributes;

        if (t->mode == HFD_IMPERSONATE_LEGACY)
                return true;
        int n = snprintf(missing->verb, sizeof missing->verb, "impersonate-on:%s:%s",
                         mode_names[t->mode], attributes->verb);
        assert(n > 0 && (size_t)n < sizeof missing->verb); /* the server's own words */
        missing->why = NULL;
        missing->right = *attributes;
        missing->right.verb = missing->verb;
        return t->has(t->ctx, &missing->right);
}

static bool may_be_named(const struct trial *t) {
        const char *name = t->asked->requested->subject.name, *part = name,
                   *group = t->mode == HFD_IMPERSONATE_LEGACY ? "" : IDENTITY_API;

        if (t->mode == HFD_IMPERSONATE_NODE)
                return has_right(t, group, "nodes", "", "", node_of(name));
        if (hfd_is_service_account(name, t->missing->ns, &part))
                return has_right(t, group, "serviceaccounts", "", t->missing->ns, part);
        return has_right(t, group, "users", "", "", name);
}

/* Refuses what no right of this mode allows: *t->missing is about the resource. */
static bool refuse(const struct trial *t, const char *resource, const char *name, const char *why) {
        (void)has_right(t, IDENTITY_API, resource, "", "", name);
        t->missing->why = why;
        return false;
}

/* Whether the headers name the group. */
static bool names_group(const struct hfd_impersonation *asked, const char *group) {
        for (size_t i = 0; i < asked->n_groups; i++)
                if (strcmp(asked->requested->subject.groups[i], group) == 0)
                        return true;
        return false;
}

static bool may_have_groups(const struct trial *t) {
        const struct hfd_impersonation *asked = t->asked;
        const char *const *groups = asked->requested->subject.groups;
        bool is_legacy = t->mode == HFD_IMPERSONATE_LEGACY;
        const char *api = is_legacy ? "" : IDENTITY_API;

        if (!is_legacy && names_group(asked, ""))
                return refuse(t, "groups", "",
                              "impersonating the empty string group is not allowed");
        if (!is_legacy && names_group(asked, HFD_GROUP_MASTERS))
                return refuse(t, "groups", HFD_GROUP_MASTERS,
                              "impersonating the system:masters group is not allowed");
        if (!is_legacy && asked->n_groups >= MANY && has_right(t, api, "groups", "", "", "*"))
                return true;
        for (size_t i = 0; i < asked->n_groups; i++)
                if (!has_right(t, api, "groups", "", "", groups[i]))
                        return false;
        return true;
}

/* Whether a key is a domain, a slash and a path, without capitals. */
static bool is_good_key(const char *key) {
        static const char characters[] = "abcdefghijklmnopqrstuvwxyz0123456789/-._~%!$&'()*+,;=:";
        const char *slash = strchr(key, '/');
        char domain[HFD_DNS_SUBDOMAIN_MAX + 1];

        if (!slash || !slash[1] || (size_t)(slash - key) >= sizeof domain)
                return false;
        memcpy(domain, key, (size_t)(slash - key));
        domain[slash - key] = '\0';
        return hfd_is_dns_subdomain(domain) && slash[1 + strspn(slash + 1, characters)] == '\0';
}

/* Why no right allows the extra values in a mode other than the legacy one; NULL = no reason.
 * *ret_n: the number of extra values, if the result is NULL. */
static const char *extra_fault(const struct hfd_requester *user, size_t *ret_n) {
        const char *fault = NULL;

        *ret_n = 0;
        for (const char *at = user->extra; at < user->extra + user->n_extra && !fault;) {
                const char *key = at, *value = at + strlen(at) + 1;
                at = value + strlen(value) + 1;
                (*ret_n)++;
                if (!is_good_key(key))
                        fault = "impersonating an invalid key in extra is not allowed";
                else if (!*value)
                        fault = "impersonating the empty string value in extra is not allowed";
        }
        return fault;
}

static bool may_have_extra(const struct trial *t) {
        const struct hfd_requester *user = t->asked->requested;
        size_t n = 0;
        const char *fault = t->mode == HFD_IMPERSONATE_LEGACY ? NULL : extra_fault(user, &n);

        if (fault)
                return refuse(t, "userextras", "", fault);
        if (n >= MANY && has_right(t, IDENTITY_API, "userextras", "*", "", "*"))
                return true;
        for (const char *at = user->extra; at < user->extra + user->n_extra;) {
                const char *key = at, *value = at + strlen(at) + 1;
                at = value + strlen(value) + 1;
                if (!has_right(t, IDENTITY_API, "userextras", key, "", value))
                        return false;
        }
        return true;
}

bool hfd_impersonation_allowed(const struct hfd_impersonation *asked,
                               enum hfd_impersonation_mode mode, hfd_has_right *has, void *ctx,
                               struct hfd_missing_right *ret_missing) {
        const struct trial t = {asked, mode, has, ctx, ret_missing};
        const char *uid = asked->requested->uid;

        return is_for_user(asked, mode) && may_request(&t) && may_be_named(&t) &&
               (!uid[0] || has_right(&t, IDENTITY_API, "uids", "", "", uid)) &&
               may_have_groups(&t) && may_have_extra(&t);
}

bool hfd_impersonation_find(const struct hfd_impersonation *asked, hfd_has_right *has, void *ctx,
                            enum hfd_impersonation_mode *ret_mode,
                            struct hfd_missing_right *ret_missing) {
        struct hfd_missing_right other, *missing = ret_missing;

        for (int i = 0; i < HFD_N_IMPERSONATION_MODES; i++) {
                enum hfd_impersonation_mode mode = (enum hfd_impersonation_mode)i;
                if (!is_for_user(asked, mode))
                        continue;
                *ret_mode = mode;
                if (hfd_impersonation_allowed(asked, mode, has, ctx, missing))
                        return true;
                missing = &other; /* the first refusal is the one that is shown */
        }
        return false;
}
