/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Authentication, impersonation, and the one rule of authorization (auth.h).
 *
 * The token table is immutable. A reload builds a new table without the lock and replaces the
 * pointer under the write lock. A look-up holds the read lock while it searches the table, so that
 * a reload cannot free it.
 *
 * Invariants. A name or group that does not fit into a struct hfd_user is refused, never truncated:
 * a truncated name may be the name of another user. And an invalid certificate or an unknown token
 * is refused; it never makes the request anonymous.
 */
#include "server/auth/auth.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "server/auth/tokens.h"

#define USER_ANONYMOUS      "system:anonymous"
#define GROUP_MASTERS       "system:masters"
#define GROUP_AUTHENTICATED "system:authenticated"

struct hfd_auth {
        /* Immutable after new. */
        const struct hf_host *host; /* borrowed */
        char *token_file;           /* owned; NULL = none */
        uint64_t seed;
        /* Guarded by lock. */
        pthread_rwlock_t lock;
        struct hfd_tokens *tokens; /* owned; NULL = none */
};

int hfd_auth_new(const struct hf_host *host, const char *token_file, struct hfd_auth **ret_auth,
                 struct hf_status *reterr_status) {
        struct hfd_auth *auth = calloc(1, sizeof *auth);
        if (!auth)
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        if (pthread_rwlock_init(&auth->lock, NULL) != 0) {
                free(auth);
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        }
        auth->host = host;
        int r = 0;
        if (getrandom(&auth->seed, sizeof auth->seed, 0) != (ssize_t)sizeof auth->seed)
                r = -EIO;
        if (r == 0 && token_file) {
                auth->token_file = strdup(token_file);
                if (!auth->token_file)
                        r = -ENOMEM;
        }
        r = r == 0 ? hfd_auth_reload(auth, reterr_status)
                   : hf_fail(reterr_status, r, "cannot set up authentication: %s", hf_strerror(r));
        if (r != 0) {
                hfd_auth_free(auth);
                return r;
        }
        *ret_auth = auth;
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

/* False: the text does not fit, and is not copied. */
static bool copy_text(char *to, size_t max, const char *from) {
        size_t n = strlen(from);
        if (n >= max)
                return false;
        memcpy(to, from, n + 1);
        return true;
}

/* False: there are too many groups, or this one is too long. */
static bool add_group(struct hfd_user *user, const char *group) {
        assert(user->n_groups <= HFD_MAX_GROUPS);
        if (user->n_groups == HFD_MAX_GROUPS ||
            !copy_text(user->groups[user->n_groups], sizeof user->groups[0], group))
                return false;
        user->n_groups++;
        return true;
}

static void set_anonymous(struct hfd_user *user) {
        user->n_groups = 0;
        (void)copy_text(user->name, sizeof user->name, USER_ANONYMOUS);
        (void)add_group(user, HFD_GROUP_UNAUTHENTICATED);
}

/* Every O of the subject is a group, and system:authenticated is added. */
static int authenticate_cert(const char *common_name, const char *const *organisations, size_t n,
                             struct hfd_user *ret_user) {
        ret_user->n_groups = 0;
        if (!copy_text(ret_user->name, sizeof ret_user->name, common_name))
                return HF_E_UNAUTHORIZED;
        for (size_t i = 0; i < n; i++)
                if (!add_group(ret_user, organisations[i]))
                        return HF_E_UNAUTHORIZED;
        return add_group(ret_user, GROUP_AUTHENTICATED) ? 0 : HF_E_UNAUTHORIZED;
}

/* Copies the user under the lock, because a reload may free the table as soon as it is released. */
static int authenticate_token(struct hfd_auth *auth, const char *token, struct hfd_user *ret_user) {
        pthread_rwlock_rdlock(&auth->lock);
        bool known = auth->tokens && hfd_tokens_find(auth->tokens, token, ret_user);
        pthread_rwlock_unlock(&auth->lock);
        return known && add_group(ret_user, GROUP_AUTHENTICATED) ? 0 : HF_E_UNAUTHORIZED;
}

/* The token of an Authorization header; NULL when its scheme is not Bearer. "" is possible, but the
 * token file cannot contain an empty token. */
static const char *bearer_token(const char *header) {
        if (strncasecmp(header, "Bearer", 6) != 0 || (header[6] != ' ' && header[6] != '\0'))
                return NULL;
        return header + 6 + strspn(header + 6, " ");
}

int hfd_auth_authenticate(struct hfd_auth *auth, struct hfd_http_request *request,
                          struct hfd_user *ret_user) {
        const char *common_name = NULL, *const *organisations = NULL;
        size_t n_organisations = 0;
        enum hfd_peer_cert peer =
                hfd_http_request_peer(request, &common_name, &organisations, &n_organisations);
        if (peer == HFD_PEER_BAD)
                return HF_E_UNAUTHORIZED;
        if (peer == HFD_PEER_VERIFIED && common_name && common_name[0])
                return authenticate_cert(common_name, organisations, n_organisations, ret_user);
        /* A verified certificate without a common name identifies no user, but a token may. */
        const char *header = hfd_http_request_header(request, "authorization");
        const char *token = header ? bearer_token(header) : NULL;
        if (token)
                return authenticate_token(auth, token, ret_user);
        set_anonymous(ret_user);
        return 0;
}

bool hfd_auth_is_admin(const struct hfd_user *user) {
        return hfd_user_in_group(user, GROUP_MASTERS);
}

/* Adds the groups of Impersonate-Group. The client repeats the header for each group, and the HTTP
 * server joins repeated headers with commas. False: there are too many, or one is too long. */
static bool add_groups(struct hfd_user *user, const char *list) {
        char group[sizeof user->groups[0]];
        for (const char *at = list; *at;) {
                at += strspn(at, ", ");
                size_t n = strcspn(at, ",");
                if (n >= sizeof group)
                        return false;
                memcpy(group, at, n);
                group[n] = '\0';
                if (n > 0 && !hfd_user_in_group(user, group) && !add_group(user, group))
                        return false;
                at += n;
        }
        return true;
}

int hfd_auth_impersonate(struct hfd_http_request *request, struct hfd_user *user,
                         struct hfd_user *ret_requested, const char **ret_fault) {
        const char *name = hfd_http_request_header(request, "impersonate-user");
        const char *groups = hfd_http_request_header(request, "impersonate-group");
        bool others = hfd_http_request_header(request, "impersonate-uid") ||
                      hfd_http_request_has_header_prefix(request, "impersonate-extra-");
        struct hfd_user requested = {0};
        if (!name && !groups && !others)
                return 0;
        *ret_fault = "the headers of the impersonation name no user, too many groups, or a name "
                     "that is too long";
        if (!name || !name[0] || !copy_text(requested.name, sizeof requested.name, name) ||
            !add_groups(&requested, groups ? groups : ""))
                return HF_E_INVALID;
        /* Like kube-apiserver: every user is in one of these two groups. */
        const char *implied_group =
                strcmp(name, USER_ANONYMOUS) != 0 ? GROUP_AUTHENTICATED : HFD_GROUP_UNAUTHENTICATED;
        if (!hfd_user_in_group(&requested, implied_group) && !add_group(&requested, implied_group))
                return HF_E_INVALID;
        if (!hfd_auth_is_admin(user)) {
                *ret_requested = requested;
                return HF_E_FORBIDDEN;
        }
        *ret_fault = "Impersonate-Uid and Impersonate-Extra-* are not supported: users have a name "
                     "and groups only";
        if (others)
                return HF_E_INVALID;
        *user = requested;
        return 0;
}

/* Health and version, which everybody may read: probes have no credentials. */
static bool is_public_path(const char *path) {
        static const char *const roots[] = {"/healthz", "/livez", "/readyz"};
        for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++) {
                size_t n = strlen(roots[i]);
                if (strncmp(path, roots[i], n) == 0 && (path[n] == '\0' || path[n] == '/'))
                        return true;
        }
        return strcmp(path, "/version") == 0 || strcmp(path, "/version/") == 0;
}

bool hfd_auth_allows(struct hfd_auth *auth, const struct hfd_user *user,
                     const struct hfd_attributes *attributes) {
        assert(attributes->verb && attributes->path);
        if (hfd_auth_is_admin(user))
                return true;
        bool reads = strcmp(attributes->verb, "get") == 0 || strcmp(attributes->verb, "head") == 0;
        return !attributes->is_resource && reads && is_public_path(attributes->path);
}
