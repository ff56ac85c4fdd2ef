/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Kubernetes' impersonation: the headers Impersonate-User, -Group, -Uid and -Extra-KEY name the
 * user that the request is made for. Thread: any, like the request.
 */
#include "server/auth/user.h"
#include "server/http/http.h"

/*
 * 0: *ret_user is the user that the headers name, or *ret_asked is false. HF_E_INVALID, and
 * *ret_fault says why: they name no user, or something that does not fit into a struct hfd_user.
 * Nothing of an impersonation is ever ignored. The headers name the first *ret_n_groups groups of
 * the user; the others come with the name.
 */
int hfd_impersonation_parse(struct hfd_http_request *request, struct hfd_user *ret_user,
                            bool *ret_asked, size_t *ret_n_groups, const char **ret_fault);
/* Whether name is that of a ServiceAccount. If so, copies its namespace to ret_ns, which has n
 * bytes, and sets *ret_name, which is borrowed from name. */
bool hfd_is_service_account(const char *name, char *ret_ns, size_t n, const char **ret_name);
