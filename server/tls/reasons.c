/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the texts of OpenSSL's errors when one is needed (reasons.h).
 *
 * OpenSSL's own initialization loads the texts once or, after hfd_tls_reasons_defer, never. What is
 * left is one function for each part of OpenSSL (ASN1, EVP, SSL and so on). They are deprecated,
 * because OpenSSL normally loads the texts itself.
 *
 * Invariant: load_texts names each part whose errors are reported. An error of another part is
 * reported without a text.
 */
#define OPENSSL_SUPPRESS_DEPRECATED

#include "server/tls/reasons.h"

#include <pthread.h>
#include <stddef.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

void hfd_tls_reasons_defer(void) {
        (void)OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CRYPTO_STRINGS |
                                       OPENSSL_INIT_NO_LOAD_SSL_STRINGS,
                               NULL);
}

static void load_texts(void) {
        (void)ERR_load_ERR_strings(); /* the names of the parts, and the texts that all share */
        (void)ERR_load_ASN1_strings();
        (void)ERR_load_BIO_strings();
        (void)ERR_load_BN_strings();
        (void)ERR_load_EC_strings();
        (void)ERR_load_EVP_strings();
        (void)ERR_load_PEM_strings();
        (void)ERR_load_PKCS12_strings();
        (void)ERR_load_RSA_strings();
        (void)ERR_load_SSL_strings();
        (void)ERR_load_X509_strings();
        (void)ERR_load_X509V3_strings();
}

void hfd_tls_reasons_load(void) {
        static pthread_once_t once = PTHREAD_ONCE_INIT;

        (void)pthread_once(&once, load_texts);
}

const char *hfd_tls_reason(unsigned long code) {
        if (code == 0)
                return NULL;
        /* This finds the text if the texts were not deferred, or are loaded already. */
        const char *reason = ERR_reason_error_string(code);
        if (reason)
                return reason;
        hfd_tls_reasons_load();
        return ERR_reason_error_string(code);
}
