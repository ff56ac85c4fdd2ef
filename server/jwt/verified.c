/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of digests. A digest belongs to one row, by its first byte, and a new one replaces the
 * oldest of its row. The rows are allocated when the first digest comes, because the clients of
 * many servers have no tokens.
 *
 * Invariant: a digest is added only after the signature of its token was verified with the set of
 * keys that owns the table. Each set has a table of its own, and its keys do not change while it is
 * in use, so a digest in the table stays right.
 */
#include "server/jwt/verified.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/evp.h>

#include "base/thread.h"

#define N_ROWS 256
#define N_WAYS (HFD_JWT_VERIFIED_MAX / N_ROWS)

/* All-zero = empty: no known text has that digest. */
struct rows {
        struct hfd_jwt_digest of[N_ROWS][N_WAYS];
};

struct hfd_jwt_verified {
        pthread_mutex_t mu;
        /* Guarded by mu. */
        struct rows *rows; /* owned; NULL until the first digest is added */
        uint64_t n_added;
};

struct hfd_jwt_verified *hfd_jwt_verified_new(void) {
        struct hfd_jwt_verified *verified = calloc(1, sizeof *verified);

        if (verified && hf__mutex_init(&verified->mu) != 0) {
                free(verified);
                return NULL;
        }
        return verified;
}

struct hfd_jwt_verified *hfd_jwt_verified_free(struct hfd_jwt_verified *verified) {
        if (!verified)
                return NULL;
        pthread_mutex_destroy(&verified->mu);
        free(verified->rows);
        free(verified);
        return NULL;
}

bool hfd_jwt_digest(const char *token, size_t n, struct hfd_jwt_digest *ret_digest) {
        bool ok = EVP_Digest(token, n, ret_digest->bytes, NULL, EVP_sha256(), NULL) == 1;

        if (!ok)
                ERR_clear_error();
        return ok;
}

bool hfd_jwt_verified_has(struct hfd_jwt_verified *verified, const struct hfd_jwt_digest *digest) {
        bool has = false;

        pthread_mutex_lock(&verified->mu);
        const struct rows *rows = verified->rows;
        for (size_t i = 0; rows && i < N_WAYS && !has; i++)
                has = memcmp(&rows->of[digest->bytes[0]][i], digest, sizeof *digest) == 0;
        pthread_mutex_unlock(&verified->mu);
        return has;
}

void hfd_jwt_verified_add(struct hfd_jwt_verified *verified, const struct hfd_jwt_digest *digest) {
        pthread_mutex_lock(&verified->mu);
        if (!verified->rows)
                verified->rows = calloc(1, sizeof *verified->rows);
        if (verified->rows) { /* else the token is verified again when it comes again */
                struct hfd_jwt_digest *row = verified->rows->of[digest->bytes[0]];
                memmove(row + 1, row, (N_WAYS - 1) * sizeof *row);
                row[0] = *digest;
                verified->n_added++;
        }
        pthread_mutex_unlock(&verified->mu);
}

uint64_t hfd_jwt_verified_added(struct hfd_jwt_verified *verified) {
        pthread_mutex_lock(&verified->mu);
        uint64_t n = verified->n_added;
        pthread_mutex_unlock(&verified->mu);
        return n;
}
