/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Checks the claims of an ID token (OpenID Connect), and reads the user that they name. The rules
 * are those of kube-apiserver's flags --oidc-*. Pure. Thread: any. */
#include <stdint.h>

#include <holdfast/error.h>

#include "server/auth/user.h"

struct hf__json;

/* All strings are borrowed and not NULL; "" = none. */
struct hfd_id_token_rules {
        const char *issuer, *client_id;
        const char *username_claim;
        const char *username_prefix; /* "-" = none; "" = the issuer and "#", but none for email */
        const char *groups_claim, *groups_prefix;
        const char *const *required; /* "claim=value"; NULL-terminated */
};

/*
 * Checks the claims of a token whose signature is right, at the time `now` (seconds since 1970),
 * and fills the name and the groups of the user. 0, or HF_E_UNAUTHORIZED: the token is not
 * accepted, or the name or the groups do not fit into a struct hfd_user, which may then have a part
 * of them. The message says why; there is none if the token is of another issuer.
 */
int hfd_id_token_accept(const struct hfd_id_token_rules *rules, const struct hf__json *claims,
                        int64_t now, struct hfd_user *ret_user, struct hf_status *reterr_status);
