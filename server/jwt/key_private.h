/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The struct of a key, for the files that make one. Private to server/jwt. A key is immutable once
 * it is made, so any thread may read it. */
#include <openssl/evp.h>

#include "server/jwt/key.h"

struct hfd_jwt_key {
        EVP_PKEY *pkey; /* owned */
        bool is_ec, is_private;
        char id[HFD_JWT_KEY_ID_MAX]; /* the "kid"; "" = a JWK without one */
};

/* Takes ownership of pkey, also if it fails, and derives the id. The caller owns the key, and
 * empties OpenSSL's error queue. 0; -ENOMEM, also if OpenSSL fails; or HF_E_INVALID, with a
 * message: the key is not usable. */
int hfd_jwt_key_make(EVP_PKEY *pkey, bool is_private, struct hfd_jwt_key **ret_key,
                     struct hf_status *reterr_status);
