/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See x509_identity.h. A certificate is valid from two hours ago, so that the test can make an
 * expired one.
 */
#include "x509_identity.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/pem.h>

static char *take_text(BIO *bio) {
        char *data, *text;
        long n = BIO_get_mem_data(bio, &data);

        text = strndup(data, (size_t)n);
        assert(text);
        BIO_free(bio);
        return text;
}

static void add_name(X509_NAME *name, const char *field, const char *value) {
        int r = X509_NAME_add_entry_by_txt(name, field, MBSTRING_ASC, (const unsigned char *)value,
                                           -1, -1, 0);
        assert(r == 1);
}

static void add_extension(X509 *cert, int nid, const char *value) {
        X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

        assert(extension);
        X509_add_ext(cert, extension, -1);
        X509_EXTENSION_free(extension);
}

static void sign(struct x509_identity *identity, const struct x509_identity *issuer) {
        int r = X509_sign(identity->cert, issuer ? issuer->key : identity->key, EVP_sha256());
        assert(r > 0);

        BIO *bio = BIO_new(BIO_s_mem());
        free(identity->cert_pem);
        PEM_write_bio_X509(bio, identity->cert);
        identity->cert_pem = take_text(bio);
        free(identity->key_pem);
        bio = BIO_new(BIO_s_mem());
        PEM_write_bio_PrivateKey(bio, identity->key, NULL, NULL, 0, NULL, NULL);
        identity->key_pem = take_text(bio);
}

struct x509_identity x509_identity_make(const char *common_name, const char *organisation,
                                        const struct x509_identity *issuer, bool is_ca,
                                        long seconds) {
        static int serial;
        struct x509_identity identity = {.key = EVP_EC_gen("P-256"), .cert = X509_new()};
        X509_NAME *name = X509_get_subject_name(identity.cert);

        X509_set_version(identity.cert, 2);
        ASN1_INTEGER_set(X509_get_serialNumber(identity.cert), ++serial);
        X509_gmtime_adj(X509_getm_notBefore(identity.cert), -7200);
        X509_gmtime_adj(X509_getm_notAfter(identity.cert), seconds);
        if (common_name)
                add_name(name, "CN", common_name);
        if (organisation)
                add_name(name, "O", organisation);
        X509_set_issuer_name(identity.cert, issuer ? X509_get_subject_name(issuer->cert) : name);
        X509_set_pubkey(identity.cert, identity.key);
        add_extension(identity.cert, NID_basic_constraints,
                      is_ca ? "critical,CA:TRUE" : "CA:FALSE");
        sign(&identity, issuer);
        return identity;
}

void x509_identity_add_name(struct x509_identity *identity, const char *field, const char *value,
                            const struct x509_identity *issuer) {
        add_name(X509_get_subject_name(identity->cert), field, value);
        sign(identity, issuer);
}

void x509_identity_add_extension(struct x509_identity *identity, int nid, const char *value,
                                 const struct x509_identity *issuer) {
        add_extension(identity->cert, nid, value);
        sign(identity, issuer);
}

void x509_identity_deinit(struct x509_identity *identity) {
        EVP_PKEY_free(identity->key);
        X509_free(identity->cert);
        free(identity->cert_pem);
        free(identity->key_pem);
}
