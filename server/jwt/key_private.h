/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The struct of a key, for the files that make one. Private to server/jwt. */
#include <openssl/evp.h>

#include "server/jwt/key.h"

struct hfd_jwt_key {
        EVP_PKEY *pkey; /* owned */
        bool is_ec, is_private;
        char id[HFD_JWT_KEY_ID_MAX];
};

/* Takes ownership of pkey, and derives the id. HF_E_INVALID: the key is not usable (message); or
 * -ENOMEM. */
int hfd_jwt_key_make(EVP_PKEY *pkey, bool is_private, struct hfd_jwt_key **ret_key,
                     struct hf_status *reterr_status);
