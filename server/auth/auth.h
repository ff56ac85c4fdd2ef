/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Authentication and authorization of requests. A user is authenticated by a client certificate (CN
 * = user, O = groups) or a bearer token. There is one rule of authorization: the group
 * system:masters may do everything, and everybody else may read health and version.
 *
 * Threads: any, except for new and free. An internal lock guards the token table, which a reload
 * replaces as a whole. Only hfd_auth_new and hfd_auth_reload block; they read a file.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/error.h>

#include "server/auth/user.h"
#include "server/http/http.h"

struct hfd_auth;

/* token_file: Kubernetes' static token file (tokens.h); NULL = none. It is copied; host is
 * borrowed. 0, -errno or an error of hfd_tokens_load. */
int hfd_auth_new(const struct hf_host *host, const char *token_file, struct hfd_auth **ret_auth,
                 struct hf_status *reterr_status);
struct hfd_auth *hfd_auth_free(struct hfd_auth *auth); /* accepts NULL, returns NULL */
/* Reads the token file again, if there is one. Errors as hfd_auth_new; then the previous table
 * stays. */
int hfd_auth_reload(struct hfd_auth *auth, struct hf_status *reterr_status);

/* 0, or HF_E_UNAUTHORIZED: a bad certificate, an unknown token, or a name or groups that do not fit
 * into a struct hfd_user. A request without credentials succeeds as system:anonymous. */
int hfd_auth_authenticate(struct hfd_auth *auth, struct hfd_http_request *request,
                          struct hfd_user *ret_user);

/*
 * Kubernetes' impersonation: the headers Impersonate-User and Impersonate-Group name the user that
 * the request is made for. Only system:masters may impersonate. 0: *user is the user to authorize
 * from now on; it is unchanged if the request has no such header. HF_E_FORBIDDEN: *user may not act
 * as *ret_requested. HF_E_INVALID, and *ret_fault says why: a header without Impersonate-User, a
 * name or group that does not fit into a struct hfd_user, or Impersonate-Uid and
 * Impersonate-Extra-*, which no user here has: they are refused and never ignored.
 */
int hfd_auth_impersonate(struct hfd_http_request *request, struct hfd_user *user,
                         struct hfd_user *ret_requested, const char **ret_fault);

/* What a request wants to do, as Kubernetes' authorizers see it. Strings are borrowed, never NULL,
 * and "" where they do not apply. */
struct hfd_attributes {
        const char *verb; /* "get", "list", "watch", "create", "update", "patch", "delete",
                             "deletecollection"; for other paths the method in lower case */
        const char *group, *resource, *ns, *name;
        const char *path; /* the URL path; it decides if the request is not for a resource */
        bool is_resource;
};
/* Whether the user is in system:masters. Pure. */
bool hfd_auth_is_admin(const struct hfd_user *user);
/* Whether the rule at the top of this file allows the request. Pure. */
bool hfd_auth_allows(struct hfd_auth *auth, const struct hfd_user *user,
                     const struct hfd_attributes *attributes);
