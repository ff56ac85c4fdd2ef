/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the token of a service account depends on. While a watch lasts, the token may expire, and
 * its account or the object that it is bound to may be deleted; then the watch must end. Immutable,
 * and one allocation: the owner frees it with free. Pure. Thread: any.
 */
#include <stdbool.h>
#include <stdint.h>

struct hfd_credential {
        int64_t expires; /* seconds since 1970 */
        const char *ns, *account, *account_uid;
        const char *secret, *secret_uid; /* NULL = not bound to a Secret */
        /* The Secret must have this very token (SHA-256), instead of a uid. */
        bool of_secret;
        unsigned char digest[32];
        char text[];
};

/* Copies the texts of from. NULL: out of memory. */
struct hfd_credential *hfd_credential_new(const struct hfd_credential *from);
