/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Authenticates requests by the ID tokens of an issuer (OpenID Connect, --oidc-issuer-url).
 *
 * The issuer's discovery document and its keys are fetched through server/outbound, when the server
 * starts and when a token needs them; nothing here waits. While the keys are being fetched for a
 * token, its request gets 503 with Retry-After, and clients repeat it; after a 401 they would
 * discard a token that may be valid. A fetch begins at least HFD_OIDC_INTERVAL after the previous
 * one began, however many tokens name unknown keys.
 *
 * Threads: any, except for new and free. Lock: one mutex guards the keys and the state of the
 * fetch; it is not held while something is sent or verified.
 */
#include <holdfast/host.h>

#include "server/auth/auth.h"
#include "server/oidc/id_token.h"

#define HFD_OIDC_INTERVAL (2 * HF_NSEC_PER_SEC)

struct hfd_oidc;
struct hfd_outbound;

struct hfd_oidc_config {
        struct hfd_id_token_rules rules; /* copied; its strings are borrowed until free */
        const char *algorithms;          /* borrowed until free; comma separated: RS256, ES256 */
        const char *ca_pem;              /* copied; NULL = the system's CAs */
};

/* host and outbound outlive it; outbound is joined before free. 0 or -errno. */
int hfd_oidc_new(const struct hf_host *host, struct hfd_outbound *outbound,
                 const struct hfd_oidc_config *config, struct hfd_oidc **ret_oidc);
/* Begins the first fetch. Accepts NULL. */
void hfd_oidc_start(struct hfd_oidc *oidc);
/* Accepts NULL, returns NULL. */
struct hfd_oidc *hfd_oidc_free(struct hfd_oidc *oidc);

/* For hfd_auth_use; it lives as long as oidc. It returns HF_E_UNAVAILABLE while keys are being
 * fetched for the token. */
const struct hfd_token_authenticator *hfd_oidc_authenticator(const struct hfd_oidc *oidc);
