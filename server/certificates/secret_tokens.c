/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Issues the tokens that Secrets hold.
 *
 * Invariant: the claims name the Secret. Such a token does not expire: it ends with its Secret,
 * which the server finds by this name, or with its account.
 */
#include "server/certificates/secret_tokens.h"

#include <errno.h>
#include <string.h>

#include "base/strbuf.h"
#include "server/service_accounts/service_accounts.h"

static int issue_token(void *ctx, const struct hfd_secret_token *token, char **ret_text) {
        const struct hfd_account_claims claims = {.ns = token->ns,
                                                  .account = token->account,
                                                  .account_uid = token->account_uid,
                                                  .secret = token->secret,
                                                  .of_secret = true};
        struct hf__strbuf text = {.secret = true};
        int r = hfd_service_accounts_issue(ctx, &claims, &text);

        *ret_text = NULL;
        if (r == 0)
                *ret_text = strdup(text.data);
        hf__strbuf_done(&text);
        return r == 0 && !*ret_text ? -ENOMEM : r;
}

struct hfd_account_token_functions
hfd_secret_token_functions(struct hfd_service_accounts *accounts) {
        return (struct hfd_account_token_functions){.issue = issue_token, .ctx = accounts};
}
