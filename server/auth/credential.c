/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies credentials.
 *
 * Invariant: a credential is one block with all its texts, which one call of free releases. A watch
 * keeps a credential for hours, so the block has no more room than the texts need.
 */
#include "server/auth/credential.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static size_t text_size(const char *text) { return text ? strlen(text) + 1 : 0; }

struct hfd_credential *hfd_credential_new(const struct hfd_credential *from) {
        size_t n = text_size(from->ns) + text_size(from->account) + text_size(from->account_uid) +
                   text_size(from->secret) + text_size(from->secret_uid);
        struct hfd_credential *credential = malloc(sizeof *credential + n);

        if (!credential)
                return NULL;
        char *at = credential->text;
        credential->expires = from->expires;
        credential->of_secret = from->of_secret;
        memcpy(credential->digest, from->digest, sizeof credential->digest);
        credential->ns = hf__text_copy(&at, from->ns);
        credential->account = hf__text_copy(&at, from->account);
        credential->account_uid = hf__text_copy(&at, from->account_uid);
        credential->secret = hf__text_copy(&at, from->secret);
        credential->secret_uid = hf__text_copy(&at, from->secret_uid);
        assert(at == credential->text + n);
        return credential;
}
