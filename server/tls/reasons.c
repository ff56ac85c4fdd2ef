/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the texts of OpenSSL's errors when one is needed (reasons.h).
 *
 * OpenSSL loads them once or never. Afterwards only the functions of its parts load them, which are
 * deprecated because nobody else needs them. The parts are those whose errors end an operation that
 * is done here; the last error of the queue is reported, not its causes in other parts.
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

static void load(void) {
        (void)ERR_load_ERR_strings(); /* the system's, and those that all parts share */
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

        (void)pthread_once(&once, load);
}

const char *hfd_tls_reason(unsigned long code) {
        if (code == 0)
                return NULL;
        const char *reason = ERR_reason_error_string(code);
        if (reason)
                return reason;
        hfd_tls_reasons_load();
        return ERR_reason_error_string(code);
}
