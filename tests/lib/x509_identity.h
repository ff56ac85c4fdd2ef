/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A newly generated key and certificate, for tests of TLS. */
#include <stdbool.h>

#include <openssl/x509v3.h>

struct x509_identity {
        EVP_PKEY *key;
        X509 *cert;
        char *cert_pem, *key_pem;
};

/* The names may be NULL. issuer NULL = self-signed. seconds: how long it is valid; negative =
 * expired for that long, at most two hours. The caller deinitializes it. */
struct x509_identity x509_identity_make(const char *common_name, const char *organisation,
                                        const struct x509_identity *issuer, bool is_ca,
                                        long seconds);
/* Adds a name to the end of the subject, and signs the certificate again. field: as for
 * X509_NAME_add_entry_by_txt. issuer: as before. */
void x509_identity_add_name(struct x509_identity *identity, const char *field, const char *value,
                            const struct x509_identity *issuer);
/* The same for an extension. nid and value: as for X509V3_EXT_conf_nid. */
void x509_identity_add_extension(struct x509_identity *identity, int nid, const char *value,
                                 const struct x509_identity *issuer);
void x509_identity_deinit(struct x509_identity *identity);
