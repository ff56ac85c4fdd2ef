/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A key and a certificate that are made on the spot, for tests of TLS. */
#include <stdbool.h>

#include <openssl/x509v3.h>

struct x509_identity {
        EVP_PKEY *key;
        X509 *cert;
        char *cert_pem, *key_pem;
};

/* issuer NULL = signs itself. seconds: how long it is valid; negative = expired since then. */
struct x509_identity x509_identity_make(const char *common_name, const char *organisation,
                                        const struct x509_identity *issuer, bool is_ca,
                                        long seconds);
void x509_identity_deinit(struct x509_identity *identity);
