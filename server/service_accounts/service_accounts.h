/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Tokens of service accounts: issues them, and authenticates requests by them. Authentication looks
 * up in the cacher whether the account and the Secret that a token is bound to still exist, so it
 * never blocks.
 *
 * Threads: any, except for new, start, stop and free. Lock: one mutex guards the pointer to the
 * keys, which a reload replaces.
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/host.h>

#include "server/auth/auth.h"
#include "server/auth/credential.h"
#include "server/service_accounts/claims.h"

struct hfd_account_watches;
struct hfd_cacher;
struct hfd_jwt_key_set;
struct hfd_resource;
struct hfd_service_accounts;

struct hfd_service_accounts_config {
        struct hfd_cacher *cacher; /* borrowed until stop; no request is authenticated after that */
        /* Both lists are NULL-terminated. issuers is borrowed until free, audiences for the call of
         * new. There is at least one issuer; the first one issues, all are accepted. Without
         * audiences, the issuers are the audiences. */
        const char *const *issuers, *const *audiences;
};

/* host outlives the object. 0 or -errno. */
int hfd_service_accounts_new(const struct hf_host *host,
                             const struct hfd_service_accounts_config *config,
                             struct hfd_service_accounts **ret_accounts);
/* Starts the thread that ends watches (account_watches.h). Accepts NULL. 0 or -errno. */
int hfd_service_accounts_start(struct hfd_service_accounts *accounts);
/* Joins the thread; call it before the cacher is freed. Accepts NULL. Idempotent. */
void hfd_service_accounts_stop(struct hfd_service_accounts *accounts);
/* Stops the thread and frees everything. Requires that no watch is tracked. Accepts NULL, returns
 * NULL. */
struct hfd_service_accounts *hfd_service_accounts_free(struct hfd_service_accounts *accounts);

/* Replaces the keys, and takes a reference. Before the first call no token is accepted, and none
 * can be issued. */
void hfd_service_accounts_set_keys(struct hfd_service_accounts *accounts,
                                   struct hfd_jwt_key_set *keys);
/* A reference to the keys; NULL = none. */
struct hfd_jwt_key_set *hfd_service_accounts_keys(struct hfd_service_accounts *accounts);

/* The authenticator for hfd_auth_use. It is part of accounts. */
const struct hfd_token_authenticator *
hfd_service_accounts_authenticator(const struct hfd_service_accounts *accounts);
/* The audiences that a token may be for: an array of texts. Borrowed. */
const struct hf__json *hfd_service_accounts_audiences(const struct hfd_service_accounts *accounts);
/* The issuer of new tokens. */
const char *hfd_service_accounts_issuer(const struct hfd_service_accounts *accounts);
/* The real time in seconds since 1970, by the clock of the host. */
int64_t hfd_service_accounts_now(const struct hfd_service_accounts *accounts);

/* Appends a token with these claims; the id is chosen here. 0, HF_E_TOO_LARGE, HF_E_UNAVAILABLE
 * (there is no key that signs), -ENOMEM or -EIO. */
int hfd_service_accounts_issue(struct hfd_service_accounts *accounts,
                               const struct hfd_account_claims *claims, struct hf__strbuf *out);

/* The watches of requests by tokens. */
struct hfd_account_watches *hfd_service_accounts_watches(struct hfd_service_accounts *accounts);
/* Whether changes of objects of this resource matter to the watches. */
bool hfd_service_accounts_observes(const struct hfd_resource *resource);
