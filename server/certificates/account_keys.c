/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the keys of tokens.
 *
 * Invariant: the key that signs is always accepted too, so that a server accepts its own tokens. To
 * change keys, the new one signs, and the old one stays among those that are accepted until its
 * tokens have expired.
 */
#include "server/certificates/account_keys.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "server/auth/files.h"
#include "server/config/config.h"
#include "server/jwt/key_set.h"
#include "server/process/flag_files.h"

#define SIGNING_FLAG "service-account-signing-key-file"
#define KEYS_FLAG    "service-account-key-file"

static int add_file(struct hfd_jwt_key_set *keys, const char *flag, const char *path, bool signs,
                    struct hf_status *reterr_status) {
        assert(keys && path[0]);
        char *pem = NULL;
        int r = hfd_read_file(path, &pem, reterr_status);

        if (r == 0)
                r = hfd_jwt_key_set_add(keys, path, pem, signs, reterr_status);
        hfd_secret_free(pem);
        return hfd_flag_result(flag, r, reterr_status);
}

int hfd_account_keys_read(const struct hfd_config *config, const char *generated,
                          struct hfd_jwt_key_set **ret_keys, struct hf_status *reterr_status) {
        struct hfd_jwt_key_set *keys = hfd_jwt_key_set_new();
        int r = keys ? 0 : hf_fail(reterr_status, -ENOMEM, "out of memory");

        if (r == 0 && config->signing_key_file[0])
                r = add_file(keys, SIGNING_FLAG, config->signing_key_file, true, reterr_status);
        else if (r == 0 && generated)
                r = hfd_flag_result("cert-dir",
                                    hfd_jwt_key_set_add(keys, "the generated key sa.key", generated,
                                                        true, reterr_status),
                                    reterr_status);
        for (size_t i = 0; r == 0 && i < config->n_account_key_files; i++)
                r = add_file(keys, KEYS_FLAG, config->account_key_files[i], false, reterr_status);
        if (r == 0)
                *ret_keys = keys;
        else
                hfd_jwt_key_set_unref(keys);
        return r;
}
