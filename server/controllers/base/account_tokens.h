/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Tokens of service accounts for controllers. The server implements these functions
 * (server/certificates/secret_tokens.h), because controllers are clients of the API and know
 * nothing of keys. Thread: any. Signing takes some milliseconds.
 */
#include <holdfast/error.h>

/* Whose token it is, and the Secret that will hold it. All texts are borrowed. */
struct hfd_secret_token {
        const char *ns, *account, *account_uid, *secret;
};

struct hfd_account_token_functions {
        /* *ret_text: the token, which the caller frees. HF_E_UNAVAILABLE: this server has no key
         * that signs. HF_E_TOO_LARGE: the claims are too long. -errno. issue NULL: there are no
         * tokens. */
        int (*issue)(void *ctx, const struct hfd_secret_token *token, char **ret_text);
        void *ctx;
};
