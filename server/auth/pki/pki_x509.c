/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps that are the same for several kinds of certificates.
 *
 * Invariant: serial numbers are random, because instances that share a CA have no common counter.
 */
#include "server/auth/pki/pki_x509.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#define SERIAL_BITS 159 /* positive in 20 bytes, as RFC 5280 requires */

int hfd_pki_x509_text(BIO *bio, char **ret_text) {
        char *data = NULL;
        long n = BIO_get_mem_data(bio, &data);
        char *text = n > 0 ? malloc((size_t)n + 1) : NULL;
        if (!text)
                return -ENOMEM;
        memcpy(text, data, (size_t)n);
        text[n] = '\0';
        *ret_text = text;
        return 0;
}

bool hfd_pki_x509_set_serial(X509 *cert) {
        BIGNUM *number = BN_new();
        bool ok = number &&
                  BN_rand(number, SERIAL_BITS, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
                  BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert));
        BN_free(number);
        return ok;
}

bool hfd_pki_x509_extend(X509 *cert, X509 *issuer, int nid, const char *value) {
        X509V3_CTX ctx;
        X509V3_set_ctx_nodb(&ctx);
        X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
        X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
        bool ok = extension && X509_add_ext(cert, extension, -1) == 1;
        X509_EXTENSION_free(extension);
        return ok;
}

bool hfd_pki_x509_limit(X509 *cert, X509 *ca) {
        const ASN1_TIME *limit = X509_get0_notAfter(ca);
        return ASN1_TIME_compare(X509_get0_notAfter(cert), limit) <= 0 ||
               X509_set1_notAfter(cert, limit) == 1;
}

int hfd_pki_x509_sign(X509 *cert, EVP_PKEY *signer, char **ret_cert_pem) {
        BIO *bio = BIO_new(BIO_s_mem());
        bool ok = bio && X509_sign(cert, signer, EVP_sha256()) > 0 &&
                  PEM_write_bio_X509(bio, cert) == 1;
        int r = ok ? hfd_pki_x509_text(bio, ret_cert_pem) : -EIO;
        BIO_free(bio);
        ERR_clear_error();
        return r;
}
