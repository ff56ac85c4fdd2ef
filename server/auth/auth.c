/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Authentication.
 *
 * The token table is immutable. A reload builds a new table without the lock, and replaces the
 * pointer under the write lock. A look-up holds the read lock while it searches the table, so that
 * a reload cannot free the table meanwhile.
 *
 * Invariants:
 *
 *  - A name or group that does not fit into a struct hfd_user is refused, never truncated, because
 *    a truncated name may be the name of another user.
 *  - An invalid certificate without a token is refused, and so is an unknown token without a
 *    certificate that names a user. Neither makes the request anonymous.
 */
#include "server/auth/auth.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "server/auth/tokens.h"

struct hfd_auth {
        /* Immutable after hfd_auth_new and hfd_auth_use. */
        const struct hfd_token_authenticator *others[HFD_AUTHENTICATORS_MAX]; /* borrowed */
        size_t n_others;
        const struct hf__json *audiences; /* of this server; NULL = none; borrowed */
        const struct hf_host *host;       /* borrowed */
        char *token_file;                 /* owned; NULL = none */
        uint64_t seed;                    /* of the token table's hash */
        /* Guarded by lock. */
        pthread_rwlock_t lock;
        struct hfd_tokens *tokens; /* owned; NULL = none */
};

HF__CLEANUP_DEFINE(auth_cleanup, struct hfd_auth *, hfd_auth_free)

int hfd_auth_new(const struct hf_host *host, const char *token_file, struct hfd_auth **ret_auth,
                 struct hf_status *reterr_status) {
        HF__CLEANUP(hf__free_cleanup) struct hfd_auth *memory = calloc(1, sizeof *memory);
        if (!memory || pthread_rwlock_init(&memory->lock, NULL) != 0)
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        HF__CLEANUP(auth_cleanup) struct hfd_auth *auth = HF__TAKE(memory);
        auth->host = host;
        int r = 0;
        if (getrandom(&auth->seed, sizeof auth->seed, 0) != (ssize_t)sizeof auth->seed)
                r = -EIO;
        if (r == 0 && token_file) {
                auth->token_file = strdup(token_file);
                if (!auth->token_file)
                        r = -ENOMEM;
        }
        if (r != 0)
                return hf_fail(reterr_status, r, "cannot set up authentication: %s",
                               hf_strerror(r));
        r = hfd_auth_reload(auth, reterr_status);
        if (r != 0)
                return r;
        *ret_auth = HF__TAKE(auth);
        return 0;
}

struct hfd_auth *hfd_auth_free(struct hfd_auth *auth) {
        if (!auth)
                return NULL;
        pthread_rwlock_destroy(&auth->lock);
        hfd_tokens_free(auth->tokens);
        free(auth->token_file);
        free(auth);
        return NULL;
}

/* After a failed load the previous table stays, so that a mistake in the file does not lock users
 * out. */
int hfd_auth_reload(struct hfd_auth *auth, struct hf_status *reterr_status) {
        struct hfd_tokens *tokens = NULL;
        if (!auth->token_file)
                return 0;
        int r = hfd_tokens_load(auth->token_file, auth->seed, &tokens, reterr_status);
        if (r != 0)
                return r;
        pthread_rwlock_wrlock(&auth->lock);
        struct hfd_tokens *old = auth->tokens;
        auth->tokens = tokens;
        pthread_rwlock_unlock(&auth->lock);
        hfd_tokens_free(old);
        return 0;
}

static void set_anonymous(struct hfd_user *user) {
        user->n_groups = 0;
        (void)hfd_user_set_name(user, HFD_USER_ANONYMOUS);
        (void)hfd_user_add_group(user, HFD_GROUP_UNAUTHENTICATED);
        assert(user->n_groups == 1); /* without its group it could pass for somebody */
}

/* The common name is the user, and every O of the subject is a group. Adds system:authenticated. */
static int authenticate_cert(const struct hfd_client_cert *peer, struct hfd_user *ret_user) {
        char credential[128];

        (void)snprintf(credential, sizeof credential, "X509SHA256=%s", peer->fingerprint);
        ret_user->n_groups = 0;
        if (!hfd_user_set_name(ret_user, peer->common_name) ||
            !hfd_user_set_uid(ret_user, peer->uid) ||
            !hfd_user_add_extra(ret_user, HFD_USER_CREDENTIAL, credential))
                return HF_E_UNAUTHORIZED;
        for (size_t i = 0; i < peer->n_organisations; i++)
                if (!hfd_user_add_group(ret_user, peer->organisations[i]))
                        return HF_E_UNAUTHORIZED;
        return hfd_user_add_group(ret_user, HFD_GROUP_AUTHENTICATED) ? 0 : HF_E_UNAUTHORIZED;
}

void hfd_auth_use(struct hfd_auth *auth, const struct hfd_token_authenticator *other) {
        assert(auth->n_others < HFD_AUTHENTICATORS_MAX);
        assert(other->authenticate);
        auth->others[auth->n_others++] = other;
        if (!auth->audiences)
                auth->audiences = other->audiences;
}

int hfd_audiences_intersect(const struct hf__json *wanted, const struct hf__json *others,
                            struct hf__json **ret_both) {
        struct hf__json *both = hf__json_array();
        int r = both ? 0 : -ENOMEM;

        for (const struct hf__json *m = hf__json_first(wanted); m && r == 0; m = hf__json_next(m)) {
                const char *text = hf__json_text(m);
                if (text && hf__json_has_element(others, text) && !hf__json_has_element(both, text))
                        r = hf__json_append_string(both, text);
        }
        if (r == 0)
                *ret_both = both;
        else
                hf__json_free(both);
        return r;
}

/* Checks the audiences in *use for a token that has exactly the audiences of this server. 0,
 * HF_E_UNAUTHORIZED or -ENOMEM. */
static int accept_audiences(const struct hfd_auth *auth, const struct hfd_token_use *use) {
        const struct hf__json *own = auth->audiences;
        struct hf__json *both = NULL;

        if (!own || (!use->audiences && !use->ret_audiences))
                return 0;
        int r = hfd_audiences_intersect(use->audiences ? use->audiences : own, own, &both);
        if (r == 0 && !hf__json_first(both))
                r = HF_E_UNAUTHORIZED;
        if (r == 0 && use->ret_audiences)
                *use->ret_audiences = both;
        else
                hf__json_free(both);
        return r;
}

/* Asks the other authenticators in turn, until one gives another result than HF_E_UNAUTHORIZED. One
 * that accepts the token, but not for the audiences in *use, counts as HF_E_UNAUTHORIZED. */
static int ask_others(const struct hfd_auth *auth, const char *token,
                      const struct hfd_token_use *use, struct hfd_user *ret_user) {
        int r = HF_E_UNAUTHORIZED;

        for (size_t i = 0; i < auth->n_others && r == HF_E_UNAUTHORIZED; i++) {
                const struct hfd_token_authenticator *other = auth->others[i];
                /* an earlier one may have found a user whose audience is refused */
                ret_user->uid[0] = '\0';
                ret_user->n_extra = 0;
                r = other->authenticate(other->ctx, token, use, ret_user);
                if (r == 0 && other->any_audience)
                        r = accept_audiences(auth, use);
        }
        return r;
}

/* Copies the user under the lock, because a reload may free the table once the lock is released. */
int hfd_auth_authenticate_token(struct hfd_auth *auth, const char *token,
                                const struct hfd_token_use *use, struct hfd_user *ret_user) {
        ret_user->uid[0] = '\0';
        ret_user->n_extra = 0;
        pthread_rwlock_rdlock(&auth->lock);
        bool known = auth->tokens && hfd_tokens_find(auth->tokens, token, ret_user);
        pthread_rwlock_unlock(&auth->lock);
        int r = known ? accept_audiences(auth, use) : ask_others(auth, token, use, ret_user);
        if (r == 0 && !hfd_user_add_group(ret_user, HFD_GROUP_AUTHENTICATED)) {
                r = HF_E_UNAUTHORIZED;
                if (use->ret_audiences)
                        *use->ret_audiences = hf__json_free(*use->ret_audiences);
        }
        return r;
}

/* The token of an Authorization header, and in *ret_n its length. NULL: there is none. As in
 * Kubernetes, white space around the header does not count, and the token is between the first
 * space and the second one. So two spaces in front of it make an empty token, which counts as no
 * token. */
static const char *bearer_token(const char *header, size_t *ret_n) {
        static const char scheme[] = "Bearer ";
        const char *begin = header + strspn(header, " \t");
        size_t n = strlen(begin);

        while (n > 0 && (begin[n - 1] == ' ' || begin[n - 1] == '\t'))
                n--;
        if (n <= strlen(scheme) || strncasecmp(begin, scheme, strlen(scheme)) != 0)
                return NULL;
        const char *token = begin + strlen(scheme);
        n -= strlen(scheme);
        *ret_n = strcspn(token, " ");
        if (*ret_n > n)
                *ret_n = n;
        return *ret_n > 0 ? token : NULL;
}

/* token has n bytes, and text may follow it. Results as hfd_auth_authenticate_token. */
static int authenticate_bearer(struct hfd_auth *auth, const char *token, size_t n,
                               const struct hfd_token_use *use, struct hfd_user *ret_user) {
        if (token[n] == '\0')
                return hfd_auth_authenticate_token(auth, token, use, ret_user);
        char *copy = strndup(token, n);
        if (!copy)
                return -ENOMEM;
        int r = hfd_auth_authenticate_token(auth, copy, use, ret_user);
        explicit_bzero(copy, n);
        free(copy);
        return r;
}

/* A connection may outlive its certificate, so every request checks the expiry, as in Kubernetes.
 * The certificate is still valid in the second `expires`. */
static bool has_expired(const struct hfd_auth *auth, const struct hfd_client_cert *peer) {
        const struct hf_clock *clock = hf_host_clock(auth->host);

        return clock->real(clock->ctx) / HF_NSEC_PER_SEC > peer->expires;
}

int hfd_auth_authenticate(struct hfd_auth *auth, struct hfd_http_request *request,
                          struct hfd_user *ret_user, struct hfd_credential **ret_credential) {
        const struct hfd_token_use use = {.ret_credential = ret_credential};
        struct hfd_client_cert peer = hfd_http_request_peer(request);

        if (peer.kind == HFD_PEER_VERIFIED && has_expired(auth, &peer))
                peer.kind = HFD_PEER_BAD;
        *ret_credential = NULL;
        ret_user->uid[0] = '\0';
        ret_user->n_extra = 0;
        if (peer.kind == HFD_PEER_VERIFIED && peer.common_name[0])
                return authenticate_cert(&peer, ret_user);
        /* A certificate that is bad or has no common name identifies no user, but a token may. */
        const char *header = hfd_http_request_header(request, "authorization");
        size_t n_token = 0;
        const char *token = header ? bearer_token(header, &n_token) : NULL;
        if (token)
                return authenticate_bearer(auth, token, n_token, &use, ret_user);
        if (peer.kind == HFD_PEER_BAD)
                return HF_E_UNAUTHORIZED;
        set_anonymous(ret_user);
        return 0;
}

bool hfd_auth_is_admin(const struct hfd_user *user) {
        return hfd_user_in_group(user, HFD_GROUP_MASTERS);
}
