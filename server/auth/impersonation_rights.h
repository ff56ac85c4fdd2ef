/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The rights that an impersonation needs. Kubernetes knows several ways to get them (modes). For
 * all but the last one the sender needs two kinds of rights: to impersonate the user, and to make
 * this request as another user. Pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

#include "server/auth/user.h"

/* In the order in which they are tried. Kubernetes has one more, for service accounts whose token
 * is bound to the node that they impersonate. Here no token is bound to a node. */
enum hfd_impersonation_mode {
        HFD_IMPERSONATE_NODE,      /* a node: "impersonate:arbitrary-node" */
        HFD_IMPERSONATE_ACCOUNT,   /* a service account: "impersonate:serviceaccount" */
        HFD_IMPERSONATE_USER_INFO, /* any other user: "impersonate:user-info" */
        HFD_IMPERSONATE_LEGACY,    /* anybody, and for all requests: "impersonate" */
        HFD_N_IMPERSONATION_MODES
};

/* What the sender wants. All is borrowed. */
struct hfd_impersonation {
        const struct hfd_requester *requested;
        size_t n_groups; /* those that the headers name; the user's other groups need no right */
        const struct hfd_attributes *attributes; /* of the request */
};

/* Why an impersonation is refused. It must not be copied, and the impersonation must outlive it. */
struct hfd_missing_right {
        struct hfd_attributes right;
        const char *why; /* no right would help, and this is the reason; NULL = the right is missing
                          */
        char verb[64], ns[HFD_NAMESPACE_MAX]; /* which right may refer to */
};

/* Whether the sender has a right. */
typedef bool hfd_has_right(void *ctx, const struct hfd_attributes *right);

/* Whether a mode allows the impersonation. False: *ret_missing is the first right that is missing,
 * or the mode is not for this user, and *ret_missing is unchanged. */
bool hfd_impersonation_allowed(const struct hfd_impersonation *asked,
                               enum hfd_impersonation_mode mode, hfd_has_right *has, void *ctx,
                               struct hfd_missing_right *ret_missing);
/* The first mode that allows the impersonation. False: none does, and *ret_missing is the right
 * that is missing in the first mode that is for this user. */
bool hfd_impersonation_find(const struct hfd_impersonation *asked, hfd_has_right *has, void *ctx,
                            enum hfd_impersonation_mode *ret_mode,
                            struct hfd_missing_right *ret_missing);
/* The verb of a mode in audit events; "" = it has none. Static. */
const char *hfd_impersonation_constraint(enum hfd_impersonation_mode mode);

/* Whether name is the user name of a ServiceAccount, whose namespace and name could be those of
 * objects. If so, ret_ns is the namespace and *ret_name the rest of name. Otherwise their contents
 * have no meaning. */
bool hfd_is_service_account(const char *name, char ret_ns[HFD_NAMESPACE_MAX],
                            const char **ret_name);
