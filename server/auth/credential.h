/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A credential names the objects and the expiry that the token of a service account depends on.
 * While a watch lasts, its token may expire, and the account or the Secret of the token may be
 * deleted. Then the watch must end. A credential is immutable, and one block of memory, which the
 * owner frees with free. Pure. Thread: any.
 */
#include <stdbool.h>
#include <stdint.h>

struct hfd_credential {
        int64_t expires; /* seconds since 1970; INT64_MAX = never, for a token of a Secret */
        const char *ns, *account, *account_uid;
        const char *secret, *secret_uid; /* NULL = not bound to a Secret */
        /* True: the Secret must contain the token itself, whose SHA-256 is digest, and the uid of
         * the Secret is not compared. */
        bool of_secret;
        unsigned char digest[32];
        char text[]; /* the texts that the pointers above refer to */
};

/* A copy of *from, and of the texts that its pointers refer to; the member `text` of *from is not
 * read. NULL: out of memory. */
struct hfd_credential *hfd_credential_new(const struct hfd_credential *from);
