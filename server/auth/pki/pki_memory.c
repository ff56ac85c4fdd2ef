/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes sets of certificates in memory only; copies and frees any set.
 *
 * The set has the CA's key, which issues certificates that clients request. The serving and the
 * admin certificate are valid for a year, which is enough for tests (--storage=memory): they are
 * not renewed.
 *
 * Invariant: a set is complete or empty. A failure in the middle frees what was made, and every key
 * is overwritten before it is freed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/auth/files.h"
#include "server/auth/pki/pki.h"
#include "server/auth/pki/pki_cert.h"

/* Makes a key and a certificate for it. *ret_key may be set after a failure, too; the caller frees
 * it. */
static int make_leaf(const char *ca, const char *ca_key, const char *name, const char *organisation,
                     const char *const *names, char **ret_cert, char **ret_key) {
        int r = hfd_pki_key_make(ret_key);

        if (r != 0)
                return r;
        struct hfd_pki_leaf wanted = {.ca_cert_pem = ca,
                                      .ca_key_pem = ca_key,
                                      .key_pem = *ret_key,
                                      .common_name = name,
                                      .organisation = organisation,
                                      .names = names};
        return hfd_pki_leaf_make(&wanted, ret_cert);
}

int hfd_pki_make(const char *const *names, struct hfd_pki *ret_pki,
                 struct hf_status *reterr_status) {
        const char *all[HFD_PKI_NAMES_MAX + 1];
        struct hfd_pki pki = {0};
        int r = hfd_pki_names(names, all, reterr_status);

        if (r != 0)
                return r;
        r = hfd_pki_key_make(&pki.ca_key_pem);
        if (r == 0)
                r = hfd_pki_ca_make(pki.ca_key_pem, &pki.ca_pem);
        if (r == 0)
                r = make_leaf(pki.ca_pem, pki.ca_key_pem, "holdfastd", NULL, all,
                              &pki.server_cert_pem, &pki.server_key_pem);
        if (r == 0)
                r = make_leaf(pki.ca_pem, pki.ca_key_pem, "holdfast-admin", "system:masters", NULL,
                              &pki.admin_cert_pem, &pki.admin_key_pem);
        if (r == 0)
                r = hfd_pki_key_make(&pki.account_key_pem);
        if (r != 0) {
                hfd_pki_done(&pki);
                return hf_fail(reterr_status, r, "cannot create the certificates: %s",
                               r == -ENOMEM ? "out of memory" : "OpenSSL failed");
        }
        *ret_pki = pki;
        return 0;
}

int hfd_pki_copy(const struct hfd_pki *pki, struct hfd_pki *ret_copy,
                 struct hf_status *reterr_status) {
        struct hfd_pki copy = {.ca_pem = strdup(pki->ca_pem),
                               .ca_key_pem = pki->ca_key_pem ? strdup(pki->ca_key_pem) : NULL,
                               .server_cert_pem = strdup(pki->server_cert_pem),
                               .server_key_pem = strdup(pki->server_key_pem),
                               .admin_cert_pem = strdup(pki->admin_cert_pem),
                               .admin_key_pem = strdup(pki->admin_key_pem),
                               .account_key_pem = strdup(pki->account_key_pem)};

        /* Only the CA's key may be NULL: then it is read from the directory when it is used. */
        if (!copy.ca_pem || !copy.ca_key_pem != !pki->ca_key_pem || !copy.server_cert_pem ||
            !copy.server_key_pem || !copy.admin_cert_pem || !copy.admin_key_pem ||
            !copy.account_key_pem) {
                hfd_pki_done(&copy);
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        }
        *ret_copy = copy;
        return 0;
}

void hfd_pki_ca_done(struct hfd_pki_ca *ca) {
        free(ca->cert_pem);
        hfd_secret_free(ca->key_pem);
        *ca = (struct hfd_pki_ca){0};
}

void hfd_pki_done(struct hfd_pki *pki) {
        free(pki->ca_pem);
        hfd_secret_free(pki->ca_key_pem);
        free(pki->server_cert_pem);
        hfd_secret_free(pki->server_key_pem);
        free(pki->admin_cert_pem);
        hfd_secret_free(pki->admin_key_pem);
        hfd_secret_free(pki->account_key_pem);
        *pki = (struct hfd_pki){0};
}
