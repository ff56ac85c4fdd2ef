/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The rights that an impersonation needs. Pure. Thread: any. */
#include <stdbool.h>
#include <stddef.h>

#include "server/auth/user.h"

/*
 * Whether the sender has all rights that an impersonation needs: `has` tells whether it has one. It
 * needs the verb impersonate on the user or service account, on each of the n_groups groups that
 * the headers name, on each extra value and on the uid. If not, *ret_missing is the right that is
 * missing, which borrows from requested and from ns.
 */
bool hfd_impersonation_allowed(const struct hfd_requester *requested, size_t n_groups,
                               bool (*has)(void *ctx, const struct hfd_attributes *right),
                               void *ctx, char ns[HFD_NAMESPACE_MAX],
                               struct hfd_attributes *ret_missing);
/* Whether name is the user name of a ServiceAccount, whose namespace and name could be those of
 * objects. If so, ret_ns is the namespace and *ret_name the rest of name. Otherwise their contents
 * have no meaning. */
bool hfd_is_service_account(const char *name, char ret_ns[HFD_NAMESPACE_MAX],
                            const char **ret_name);
