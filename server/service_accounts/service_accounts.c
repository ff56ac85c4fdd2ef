/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Issues and accepts the tokens of service accounts.
 *
 * Invariants. A token without a right signature is refused without a reason, because nothing that
 * it says is known to be true; and so is one of another issuer, because another authenticator may
 * know it. Every other token is accepted only after all of these: an audience of it is wanted, it
 * is valid now, its account exists with the same uid, and so does the Secret that it is bound to. A
 * token that a Secret holds never expires, but it is accepted only while the Secret has this very
 * token.
 */
#include "server/service_accounts/service_accounts.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include "server/cacher/cacher.h"
#include "server/jwt/jwt.h"
#include "server/jwt/key_set.h"
#include "server/resources/causes.h"
#include "server/resources/meta.h"
#include "server/resources/rows/resource_table.h"
#include "server/service_accounts/account_watches.h"
#include "server/service_accounts/lookup.h"

struct hfd_service_accounts {
        /* Immutable. */
        const struct hf_host *host;
        struct hfd_cacher *cacher;
        const char *const *issuers;
        struct hf__json *audiences; /* owned */
        struct hfd_token_authenticator authenticator;
        struct hfd_account_watches *watches; /* owned */
        /* Guarded by mu. */
        pthread_mutex_t mu;
        struct hfd_jwt_key_set *keys; /* owned reference; NULL = none */
};

/* ---- life cycle ---- */

/* The audiences that this server accepts: those of --api-audiences, or the issuers. */
static int copy_audiences(const struct hfd_service_accounts_config *config,
                          struct hf__json **ret_audiences) {
        const char *const *texts = config->audiences[0] ? config->audiences : config->issuers;
        int r = 0;

        *ret_audiences = hf__json_array();
        if (!*ret_audiences)
                return -ENOMEM;
        for (; *texts && r == 0; texts++)
                r = hf__json_append_string(*ret_audiences, *texts);
        return r;
}

static int authenticate_token(void *ctx, const char *token, const struct hfd_token_use *use,
                              struct hfd_user *ret_user);

HF__CLEANUP_DEFINE(accounts_cleanup, struct hfd_service_accounts *, hfd_service_accounts_free)

int hfd_service_accounts_new(const struct hf_host *host,
                             const struct hfd_service_accounts_config *config,
                             struct hfd_service_accounts **ret_accounts) {
        HF__CLEANUP(hf__free_cleanup)
        struct hfd_service_accounts *memory = calloc(1, sizeof *memory);

        if (!memory)
                return -ENOMEM;
        assert(config->issuers[0]);
        int r = hf__mutex_init(&memory->mu);
        if (r != 0)
                return r;
        /* Only now that the mutex exists can hfd_service_accounts_free free the object. */
        HF__CLEANUP(accounts_cleanup) struct hfd_service_accounts *accounts = HF__TAKE(memory);
        accounts->host = host;
        accounts->cacher = config->cacher;
        accounts->issuers = config->issuers;
        r = copy_audiences(config, &accounts->audiences);
        if (r != 0)
                return r;
        r = hfd_account_watches_new(host, config->cacher, &accounts->watches);
        if (r != 0)
                return r;
        accounts->authenticator =
                (struct hfd_token_authenticator){.authenticate = authenticate_token,
                                                 .ctx = accounts,
                                                 .audiences = accounts->audiences};
        *ret_accounts = HF__TAKE(accounts);
        return 0;
}

int hfd_service_accounts_start(struct hfd_service_accounts *accounts) {
        return accounts ? hfd_account_watches_start(accounts->watches) : 0;
}

void hfd_service_accounts_stop(struct hfd_service_accounts *accounts) {
        if (accounts)
                hfd_account_watches_stop(accounts->watches);
}

struct hfd_service_accounts *hfd_service_accounts_free(struct hfd_service_accounts *accounts) {
        if (!accounts)
                return NULL;
        hfd_account_watches_free(accounts->watches);
        hfd_jwt_key_set_unref(accounts->keys);
        hf__json_free(accounts->audiences);
        pthread_mutex_destroy(&accounts->mu);
        free(accounts);
        return NULL;
}

/* ---- the parts of the object ---- */

void hfd_service_accounts_set_keys(struct hfd_service_accounts *accounts,
                                   struct hfd_jwt_key_set *keys) {
        assert(accounts && keys);
        pthread_mutex_lock(&accounts->mu);
        struct hfd_jwt_key_set *old = accounts->keys;
        accounts->keys = hfd_jwt_key_set_ref(keys);
        pthread_mutex_unlock(&accounts->mu);
        hfd_jwt_key_set_unref(old);
}

struct hfd_jwt_key_set *hfd_service_accounts_keys(struct hfd_service_accounts *accounts) {
        pthread_mutex_lock(&accounts->mu);
        struct hfd_jwt_key_set *keys = accounts->keys ? hfd_jwt_key_set_ref(accounts->keys) : NULL;
        pthread_mutex_unlock(&accounts->mu);
        return keys;
}

const struct hfd_token_authenticator *
hfd_service_accounts_authenticator(const struct hfd_service_accounts *accounts) {
        return &accounts->authenticator;
}

const struct hf__json *hfd_service_accounts_audiences(const struct hfd_service_accounts *accounts) {
        return accounts->audiences;
}

const char *hfd_service_accounts_issuer(const struct hfd_service_accounts *accounts) {
        return accounts->issuers[0];
}

struct hfd_account_watches *hfd_service_accounts_watches(struct hfd_service_accounts *accounts) {
        return accounts->watches;
}

int64_t hfd_service_accounts_now(const struct hfd_service_accounts *accounts) {
        const struct hf_clock *clock = hf_host_clock(accounts->host);

        return clock->real(clock->ctx) / HF_NSEC_PER_SEC;
}

/* Resources are compared by their address: each has one row in the table. */
bool hfd_service_accounts_observes(const struct hfd_resource *resource) {
        return resource == hfd_resource_find("", "v1", "serviceaccounts") ||
               resource == hfd_resource_find("", "v1", "secrets");
}

/* ---- authentication ---- */

/* Finds the wanted audiences that the token is for. If there are none, refuses the token. */
static int match_audiences(const struct hfd_service_accounts *accounts,
                           const struct hfd_token_use *use, const struct hf__json *audiences,
                           struct hf__json **ret_both) {
        const struct hf__json *wanted = use->audiences ? use->audiences : accounts->audiences;
        char has[200], wants[200];
        int r = hfd_audiences_intersect(wanted, audiences, ret_both);

        if (r != 0 || hf__json_first(*ret_both))
                return r;
        *ret_both = hf__json_free(*ret_both);
        if (!use->reterr_status)
                return HF_E_UNAUTHORIZED;
        hfd_quote_list(audiences, has, sizeof has);
        hfd_quote_list(wanted, wants, sizeof wants);
        return hf_fail(use->reterr_status, HF_E_UNAUTHORIZED,
                       "token audiences %s is invalid for the target audiences %s", has, wants);
}

/* Fills in the name, the uid and the groups that kube-apiserver gives to an account. False: a text
 * does not fit. */
static bool fill_user(const struct hfd_account_claims *claims, struct hfd_user *user) {
        char name[sizeof user->name], group[sizeof user->groups[0]], id[128];
        int n = snprintf(name, sizeof name, "system:serviceaccount:%s:%s", claims->ns,
                         claims->account),
            n_id = snprintf(id, sizeof id, "JTI=%s", claims->id ? claims->id : "");

        user->n_groups = 0;
        (void)snprintf(group, sizeof group, "system:serviceaccounts:%s", claims->ns);
        if (n < 0 || (size_t)n >= sizeof name || n_id < 0 || (size_t)n_id >= sizeof id ||
            strlen(claims->account_uid) >= sizeof user->uid || !hfd_user_set_name(user, name) ||
            !hfd_user_add_group(user, "system:serviceaccounts") || !hfd_user_add_group(user, group))
                return false;
        (void)strcpy(user->uid, claims->account_uid);
        return !claims->id || hfd_user_add_extra(user, HFD_USER_CREDENTIAL, id);
}

/* Checks all claims of a token whose signature is right, and fills in the user. */
static int accept_token(const struct hfd_service_accounts *accounts, const char *token,
                        const struct hf__json *json, const struct hfd_token_use *use,
                        struct hfd_user *ret_user) {
        struct hfd_account_claims claims = {0};
        struct hf__json *audiences = NULL;
        int64_t now = hfd_service_accounts_now(accounts);
        int r = hfd_account_claims_read(json, accounts->issuers, &claims, use->reterr_status);

        if (r == 0)
                r = match_audiences(accounts, use,
                                    claims.of_secret ? accounts->audiences : claims.audiences,
                                    &audiences);
        if (r == 0 && !claims.of_secret)
                r = hfd_account_claims_check_time(json, now, use->reterr_status);
        struct hfd_credential credential = {.expires = claims.expires,
                                            .ns = claims.ns,
                                            .account = claims.account,
                                            .account_uid = claims.account_uid,
                                            .secret = claims.secret,
                                            .secret_uid = claims.secret_uid,
                                            .of_secret = claims.of_secret};
        if (claims.of_secret)
                hf__sha256(token, strlen(token), credential.digest);
        if (r == 0)
                r = hfd_account_lookup(accounts->cacher, &credential, now, use->reterr_status);
        if (r == 0 && !fill_user(&claims, ret_user))
                r = HF_E_UNAUTHORIZED;
        if (r == 0 && use->ret_credential) {
                *use->ret_credential = hfd_credential_new(&credential);
                r = *use->ret_credential ? 0 : -ENOMEM;
        }
        if (r == 0 && use->ret_audiences)
                *use->ret_audiences = audiences;
        else
                hf__json_free(audiences);
        return r;
}

/* authenticate of struct hfd_token_authenticator. Thread: any. */
static int authenticate_token(void *ctx, const char *token, const struct hfd_token_use *use,
                              struct hfd_user *ret_user) {
        struct hfd_service_accounts *accounts = ctx;
        struct hf__json *json = NULL;

        if (!hfd_jwt_is_like(token))
                return HF_E_UNAUTHORIZED;
        struct hfd_jwt_key_set *keys = hfd_service_accounts_keys(accounts);
        int r = keys ? hfd_jwt_verify(keys, token, &json) : HF_E_UNAUTHORIZED;
        hfd_jwt_key_set_unref(keys);
        if (r == 0)
                r = accept_token(accounts, token, json, use, ret_user);
        hf__json_free(json);
        return r == 0 || r == -ENOMEM ? r : HF_E_UNAUTHORIZED;
}

/* ---- issuing ---- */

/* The reference to the keys keeps the signer alive if a reload replaces the keys meanwhile. */
int hfd_service_accounts_issue(struct hfd_service_accounts *accounts,
                               const struct hfd_account_claims *claims, struct hf__strbuf *out) {
        struct hfd_account_claims full = *claims;
        struct hf__strbuf json = {.max = HFD_JWT_MAX};
        char id[HFD_UID_MAX];
        struct hfd_jwt_key_set *keys = hfd_service_accounts_keys(accounts);
        const struct hfd_jwt_key *key = keys ? hfd_jwt_key_set_signer(keys) : NULL;
        int r = key ? hfd_meta_make_uid(id) : HF_E_UNAVAILABLE;

        assert(claims->ns && claims->account);
        full.id = id;
        if (r == 0)
                hfd_account_claims_put(&full, accounts->issuers[0], &json);
        if (r == 0)
                r = json.error;
        if (r == 0)
                r = hfd_jwt_sign(key, json.data, json.n, out);
        hf__strbuf_done(&json);
        hfd_jwt_key_set_unref(keys);
        return r;
}
