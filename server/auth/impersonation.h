/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Kubernetes' impersonation: the headers Impersonate-User, -Group, -Uid and -Extra-KEY name the
 * user for whom the request is made. Thread: owner of the request.
 */
#include "server/auth/user.h"
#include "server/http/http.h"

/*
 * *ret_asked: whether the request has such headers; an empty name or uid counts as no header. 0: if
 * *ret_asked, *ret_user is the user that they name, with the groups that Kubernetes adds.
 * HF_E_INVALID: the headers name no user, the key of an extra value is empty, or something does not
 * fit into a struct hfd_user; *ret_fault is the message, which is static. A group or an extra value
 * is never dropped because it does not fit. The headers name the first *ret_n_groups groups of the
 * user; Kubernetes adds the others.
 */
int hfd_impersonation_parse(struct hfd_http_request *request, struct hfd_user *ret_user,
                            bool *ret_asked, size_t *ret_n_groups, const char **ret_fault);
