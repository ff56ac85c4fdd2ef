/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and checks the files that flags name, and decides which failures are a user's mistake.
 *
 * Invariants: the text of a file may be a key, so it is wiped wherever the caller does not get it.
 * A message names a flag once, however many functions it passes through.
 */
#include "server/process/flag_files.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/auth/files.h"

bool hfd_flag_is_mistake(int r) {
        switch (r) {
        case HF_E_INVALID:
        case HF_E_NOT_FOUND:
        case HF_E_TOO_LARGE:
        case -ENOENT:
        case -ENOTDIR:
        case -EISDIR:
        case -EACCES:
        case -EPERM:
        case -EROFS:
        case -ELOOP:
        case -ENXIO:   /* a socket */
        case -EBADMSG: /* a damaged file */
        case -ENAMETOOLONG: return true;
        default: return false;
        }
}

int hfd_flag_result(const char *flag, int r, struct hf_status *reterr_status) {
        if (!hfd_flag_is_mistake(r) || !reterr_status ||
            strncmp(reterr_status->message, "flag --", 7) == 0)
                return r;
        struct hf_status why = *reterr_status;
        return hf_fail(reterr_status, r, "flag --%s: %s", flag, why.message);
}

int hfd_flag_read_pem(const struct hfd_flag_pem *file, char **ret_text,
                      struct hf_status *reterr_status) {
        char *text = NULL;

        *ret_text = NULL;
        assert(file->flag && file->path);
        if (!file->path[0])
                return 0;
        int r = hfd_read_file(file->path, &text, reterr_status);
        if (r == 0)
                r = hfd_pem_check(file->kind, file->path, text, reterr_status);
        if (r == 0) {
                *ret_text = text;
                return 0;
        }
        hfd_secret_free(text);
        return hfd_flag_result(file->flag, r, reterr_status);
}

int hfd_flag_check_pair(const struct hfd_flag_pem *cert, const char *cert_pem,
                        const struct hfd_flag_pem *key, const char *key_pem,
                        struct hf_status *reterr_status) {
        assert(cert_pem && key_pem);
        if (hfd_pem_is_pair(cert_pem, key_pem))
                return 0;
        return hf_fail(reterr_status, HF_E_INVALID,
                       "flag --%s: the key %s does not belong to the certificate %s of --%s",
                       key->flag, key->path, cert->path, cert->flag);
}
