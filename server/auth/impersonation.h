/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Kubernetes' impersonation: the headers Impersonate-User, -Group, -Uid and -Extra-KEY name the
 * user for whom the request is made. Thread: owner of the request.
 */
#include "server/auth/user.h"
#include "server/http/http.h"

/*
 * *ret_asked: whether the request has such headers. 0: if so, *ret_user is the user that they name,
 * with the groups that Kubernetes adds. HF_E_INVALID: the headers name no user, the key of an
 * extra value is malformed, or something does not fit into a struct hfd_user; *ret_fault is the
 * message, which is static. A group or an extra value is never dropped because it does not fit. The
 * headers name the first *ret_n_groups groups of the user; Kubernetes adds the others.
 */
int hfd_impersonation_parse(struct hfd_http_request *request, struct hfd_user *ret_user,
                            bool *ret_asked, size_t *ret_n_groups, const char **ret_fault);
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
/* Whether name is the user name of a ServiceAccount. If so, copies the namespace to ret_ns, which
 * has n bytes, and sets *ret_name to the rest of name. False also if the namespace does not fit. */
bool hfd_is_service_account(const char *name, char *ret_ns, size_t n, const char **ret_name);
