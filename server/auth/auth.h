/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Authentication of requests. A user is authenticated by a client certificate (CN = user, O =
 * groups) or a bearer token: one of the token file, or one that another authenticator knows
 * (server/service_accounts/). server/authorization/ decides what a user may do.
 *
 * Threads: any, except for new, use and free. An internal lock guards the token table, which a
 * reload replaces as a whole. Only hfd_auth_new and hfd_auth_reload block; they read a file.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/error.h>

#include "server/auth/user.h"
#include "server/http/http.h"

struct hf__json;
struct hfd_auth;
struct hfd_credential;

/* What is asked about a token, besides whose it is, and where the answers go; zero = nothing. */
struct hfd_token_use {
        const struct hf__json *audiences; /* an array of texts, borrowed; NULL = this server's */
        struct hf__json **ret_audiences;  /* those of them that the token is for; NULL = unwanted */
        /* What the token depends on; the caller frees it. Stays as it is for other tokens. NULL =
         * unwanted. */
        struct hfd_credential **ret_credential;
        struct hf_status *reterr_status; /* why it is not accepted, if there is more to say */
};

/* Another authenticator of tokens. */
struct hfd_token_authenticator {
        /* 0: *ret_user is filled, without the group system:authenticated. HF_E_UNAUTHORIZED: the
         * token is not accepted; or -ENOMEM. Thread: any; must not block. */
        int (*authenticate)(void *ctx, const char *token, const struct hfd_token_use *use,
                            struct hfd_user *ret_user);
        void *ctx;
        const struct hf__json *audiences; /* an array: the audiences of this server */
};

/* token_file: Kubernetes' static token file (tokens.h); NULL = none. It is copied; host is
 * borrowed. 0, -errno or an error of hfd_tokens_load. */
int hfd_auth_new(const struct hf_host *host, const char *token_file, struct hfd_auth **ret_auth,
                 struct hf_status *reterr_status);
struct hfd_auth *hfd_auth_free(struct hfd_auth *auth); /* accepts NULL, returns NULL */
/* Tokens are also looked up by another authenticator, which is borrowed. Call it before the first
 * request. */
void hfd_auth_use(struct hfd_auth *auth, const struct hfd_token_authenticator *other);
/* Reads the token file again, if there is one. Errors as hfd_auth_new; then the previous table
 * stays. */
int hfd_auth_reload(struct hfd_auth *auth, struct hf_status *reterr_status);

/* 0, or HF_E_UNAUTHORIZED: a bad certificate, an unknown token, or a name or groups that do not fit
 * into a struct hfd_user; or -ENOMEM. A request without credentials succeeds as system:anonymous.
 * *ret_credential: what the token depends on; the caller frees it; NULL = nothing. */
int hfd_auth_authenticate(struct hfd_auth *auth, struct hfd_http_request *request,
                          struct hfd_user *ret_user, struct hfd_credential **ret_credential);

/* The same for a token alone. It has no effect on a request. */
int hfd_auth_authenticate_token(struct hfd_auth *auth, const char *token,
                                const struct hfd_token_use *use, struct hfd_user *ret_user);
/* The texts that are in both arrays, in the order of the first, as a new array. 0 or -ENOMEM. */
int hfd_audiences_intersect(const struct hf__json *wanted, const struct hf__json *others,
                            struct hf__json **ret_both);

/* Whether the user is in system:masters. Pure. */
bool hfd_auth_is_admin(const struct hfd_user *user);
