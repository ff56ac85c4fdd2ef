/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Authentication of requests. A user is authenticated by a client certificate (CN = user, O =
 * groups) or by a bearer token. A token is in the token file, or another authenticator knows it
 * (server/service_accounts/, server/oidc/). server/authorization/ decides what a user may do.
 *
 * Threads: any; but new, use and free run while no other function does. An internal lock guards the
 * token table, which a reload replaces as a whole. Only hfd_auth_new and hfd_auth_reload block;
 * they read a file.
 */
#include <stdbool.h>

#include <holdfast/error.h>

#include "server/auth/user.h"
#include "server/http/http.h"

struct hf__json;
struct hfd_auth;
struct hfd_credential;

/* The facts about a token that a caller wants besides its user, and where they are stored. {0} =
 * none. The ret_ members are set on success only. */
struct hfd_token_use {
        /* The token must be for one of these audiences: an array of texts, borrowed. NULL = for an
         * audience of this server. Not checked if no authenticator has audiences. */
        const struct hf__json *audiences;
        /* Which of the audiences above the token is for; the caller frees the array.
         * *ret_audiences is NULL before, and stays NULL if no authenticator has audiences, or if
         * the token is not accepted. ret_audiences NULL = unwanted. */
        struct hf__json **ret_audiences;
        /* The objects and the expiry that the token of a service account depends on; the caller
         * frees it. Stays as it is for all other tokens. NULL = unwanted. */
        struct hfd_credential **ret_credential;
        /* Why a token is not accepted, if there is more to say than that. NULL = unwanted. */
        struct hf_status *reterr_status;
};

/* Another authenticator of tokens. */
struct hfd_token_authenticator {
        /*
         * 0: *ret_user is filled, without the group system:authenticated, for which there is room.
         * HF_E_UNAUTHORIZED: the token is not accepted; HF_E_UNAVAILABLE: it cannot tell yet, and
         * the client should try again; or -ENOMEM. On entry the uid and the extra values of
         * *ret_user are empty, and its name and groups undefined. Thread: any; must not block.
         */
        int (*authenticate)(void *ctx, const char *token, const struct hfd_token_use *use,
                            struct hfd_user *ret_user);
        void *ctx;
        /* An array of texts, borrowed; NULL = none. The audiences of this server are those of the
         * first authenticator that has some. */
        const struct hf__json *audiences;
        /* Its tokens have exactly the audiences of this server, like those of the token file. */
        bool any_audience;
};

/* token_file: the path of Kubernetes' static token file (tokens.h), which is copied; NULL = none.
 * host is borrowed. 0, -errno or an error of hfd_tokens_load. */
int hfd_auth_new(const struct hf_host *host, const char *token_file, struct hfd_auth **ret_auth,
                 struct hf_status *reterr_status);
struct hfd_auth *hfd_auth_free(struct hfd_auth *auth); /* accepts NULL, returns NULL */
#define HFD_AUTHENTICATORS_MAX 2
/* Lets another authenticator look up the tokens that are not in the file, after those that were
 * added before. It is borrowed. Call this HFD_AUTHENTICATORS_MAX times at most, before the first
 * request. */
void hfd_auth_use(struct hfd_auth *auth, const struct hfd_token_authenticator *other);
/* Reads the token file again, if there is one. Errors as hfd_auth_new. After an error the previous
 * table stays. */
int hfd_auth_reload(struct hfd_auth *auth, struct hf_status *reterr_status);

/*
 * Finds the user of a request by its certificate or, if it has no valid one with a common name, by
 * its token. A request without credentials succeeds as system:anonymous. An Authorization header of
 * another scheme than Bearer does not count as credentials, and neither does a valid certificate
 * without a common name. 0; -ENOMEM; HF_E_UNAVAILABLE: an authenticator cannot tell yet whether it
 * accepts the token; or HF_E_UNAUTHORIZED: a bad certificate and no token, a token that is not
 * accepted, or a name, groups or a uid that do not fit into a struct hfd_user (but see
 * hfd_tokens_find for a uid).
 * *ret_credential: what the token depends on, which the caller frees with free; NULL = nothing.
 */
int hfd_auth_authenticate(struct hfd_auth *auth, struct hfd_http_request *request,
                          struct hfd_user *ret_user, struct hfd_credential **ret_credential);

/* The same for a token alone: a token that is not accepted is never anonymous. use must not be
 * NULL. */
int hfd_auth_authenticate_token(struct hfd_auth *auth, const char *token,
                                const struct hfd_token_use *use, struct hfd_user *ret_user);
/* The texts that are in both arrays, each once, in the order of the first array, as a new array
 * that the caller frees. Takes time in proportion to the product of the lengths. 0 or -ENOMEM. */
int hfd_audiences_intersect(const struct hf__json *wanted, const struct hf__json *others,
                            struct hf__json **ret_both);

/* Whether the user is in system:masters. Pure. */
bool hfd_auth_is_admin(const struct hfd_user *user);
