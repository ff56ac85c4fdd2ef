/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Authenticates requests by the ID tokens of an issuer (OpenID Connect, --oidc-issuer-url).
 *
 * The issuer's discovery document and its keys are fetched through server/outbound, when the server
 * starts and when a token needs it; nothing here waits. While they are being fetched for a token,
 * its request gets 503 with Retry-After, which clients repeat: a 401 would make them throw away a
 * token that may be good. Fetches are at least HFD_OIDC_INTERVAL apart, whatever tokens come.
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
        struct hfd_id_token_rules rules; /* its strings are borrowed */
        const char *algorithms;          /* borrowed; comma separated: RS256, ES256 */
        const char *ca_pem;              /* copied; NULL = the system's CAs */
};

/* host and outbound outlive it; outbound is joined before free. 0 or -errno. */
int hfd_oidc_new(const struct hf_host *host, struct hfd_outbound *outbound,
                 const struct hfd_oidc_config *config, struct hfd_oidc **ret_oidc);
/* Begins the first fetch. Accepts NULL. */
void hfd_oidc_start(struct hfd_oidc *oidc);
/* Accepts NULL, returns NULL. */
struct hfd_oidc *hfd_oidc_free(struct hfd_oidc *oidc);

/* For hfd_auth_use. It is part of oidc. HF_E_UNAVAILABLE: see above. */
const struct hfd_token_authenticator *hfd_oidc_authenticator(const struct hfd_oidc *oidc);
