/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who asks, and may they? Authentication by client certificate (CN = user, O = groups) or bearer
 * token; until RBAC exists only the group system:masters is let in, and anonymous reaches health
 * and version.
 *
 * Thread: any; the token table is replaced as a whole on reload.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/error.h>

#include "server/http/http.h"

#define HFD_MAX_GROUPS 16

struct hfd_user {
        char name[256]; /* "system:anonymous" when nobody said who they are */
        char groups[HFD_MAX_GROUPS][128];
        size_t n_groups;
};

struct hfd_auth;

/* token_file: the field's CSV `token,user,uid,"group1,group2"`; NULL = none. A bad line:
 * HF_E_INVALID naming file and line. */
int hfd_auth_new(const struct hf_host *host, const char *token_file, struct hfd_auth **ret_auth,
                 struct hf_status *reterr_status);
struct hfd_auth *hfd_auth_free(struct hfd_auth *auth);
int hfd_auth_reload(struct hfd_auth *auth,
                    struct hf_status *reterr_status); /* the old table stays on failure */

/* 0, or HF_E_UNAUTHORIZED: a bad certificate or an unknown token. No credentials at all is
 * anonymous, and 0. */
int hfd_auth_authenticate(struct hfd_auth *auth, struct hfd_http_request *request,
                          struct hfd_user *ret_user);

/*
 * Impersonation, as the field has it: the headers Impersonate-User and Impersonate-Group name whom
 * the request is made for, and only system:masters may. 0: *user is who counts from here on
 * (unchanged without such headers). HF_E_FORBIDDEN: *user may not be *ret_asked. HF_E_INVALID:
 * groups or a uid without a user, or more or longer ones than there may be.
 */
int hfd_auth_impersonate(struct hfd_http_request *request, struct hfd_user *user,
                         struct hfd_user *ret_asked);

/* What is asked for; strings may be "" where they do not apply. */
struct hfd_attributes {
        const char *verb; /* "get", "list", "watch", "create", "update", "patch", "delete",
                             "deletecollection" */
        const char *group, *resource, *ns, *name;
        const char *path; /* non-resource requests */
        bool is_resource;
};
bool hfd_auth_allows(struct hfd_auth *auth, const struct hfd_user *user,
                     const struct hfd_attributes *attributes);
bool hfd_user_in_group(const struct hfd_user *user, const char *group);
