/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PEM texts (pem.h).
 *
 * Invariant: OpenSSL never asks for a passphrase, because it would prompt on the terminal and wait.
 * So every read has no_passphrase as its callback.
 */
#include "server/tls/pem.h"

#include <string.h>

#include <openssl/decoder.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

/* Provides no passphrase, so that an encrypted key is an error. */
static int no_passphrase(char *buf, int size, int rwflag, void *ctx) { return -1; }

static BIO *open_text(const char *pem) { return pem ? BIO_new_mem_buf(pem, -1) : NULL; }

static X509 *read_next_cert(BIO *bio) {
        return bio ? PEM_read_bio_X509(bio, NULL, no_passphrase, NULL) : NULL;
}

/* Whether the latest read failed because no further certificate follows, and not because the next
 * one is malformed. Without this test, the certificates after a damage would silently be lost. */
static bool is_at_end(void) { return ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE; }

/* Empties the error queue if ok. OpenSSL reports the end of a text as an error. */
static bool finish_pem(bool ok) {
        if (ok)
                ERR_clear_error();
        return ok;
}

X509 *hfd_pem_read_cert(const char *pem) {
        BIO *bio = open_text(pem);
        X509 *cert = read_next_cert(bio);

        BIO_free(bio);
        (void)finish_pem(cert != NULL);
        return cert;
}

/* Reads an EC key in the form that holdfastd writes. NULL: it is another text, or memory has run
 * out. Trying all types and forms takes OpenSSL four times as long, and a start reads six keys. */
static EVP_PKEY *read_ec_key(const char *pem) {
        static const char begin[] = "-----BEGIN PRIVATE KEY-----";

        if (!pem || strncmp(pem, begin, sizeof begin - 1) != 0)
                return NULL;
        const unsigned char *at = (const unsigned char *)pem;
        size_t n = strlen(pem);
        EVP_PKEY *key = NULL;
        OSSL_DECODER_CTX *decoder =
                OSSL_DECODER_CTX_new_for_pkey(&key, "PEM", "PrivateKeyInfo", "EC", EVP_PKEY_KEYPAIR,
                                              NULL, NULL);
        if (decoder && OSSL_DECODER_CTX_set_pem_password_cb(decoder, no_passphrase, NULL) == 1)
                (void)OSSL_DECODER_from_data(decoder, &at, &n);
        OSSL_DECODER_CTX_free(decoder);
        ERR_clear_error(); /* a message must be about the read that accepts every key */
        return key;
}

EVP_PKEY *hfd_pem_read_key(const char *pem) {
        EVP_PKEY *key = read_ec_key(pem);
        BIO *bio = key ? NULL : open_text(pem);

        if (bio)
                key = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL);
        BIO_free(bio);
        (void)finish_pem(key != NULL);
        return key;
}

bool hfd_pem_write_certs(const char *pem, BIO *out) {
        BIO *bio = open_text(pem);
        X509 *cert;
        size_t n = 0;
        bool ok = true;

        while (ok && (cert = read_next_cert(bio)) != NULL) {
                ok = PEM_write_bio_X509(out, cert) == 1;
                X509_free(cert);
                n++;
        }
        ok = ok && n > 0 && ERR_GET_REASON(ERR_peek_last_error()) != ERR_R_MALLOC_FAILURE;
        BIO_free(bio);
        return finish_pem(ok);
}

bool hfd_pem_use_chain(SSL_CTX *ctx, const char *pem) {
        BIO *bio = open_text(pem);
        X509 *cert = read_next_cert(bio);
        bool ok = cert && SSL_CTX_use_certificate(ctx, cert) == 1;

        X509_free(cert);
        while (ok && (cert = read_next_cert(bio)) != NULL) {
                ok = SSL_CTX_add0_chain_cert(ctx, cert) == 1;
                if (!ok)
                        X509_free(cert);
        }
        ok = ok && is_at_end();
        BIO_free(bio);
        return finish_pem(ok);
}

bool hfd_pem_use_key(SSL_CTX *ctx, const char *pem) {
        EVP_PKEY *key = hfd_pem_read_key(pem);
        bool ok = key && SSL_CTX_use_PrivateKey(ctx, key) == 1;

        EVP_PKEY_free(key);
        return finish_pem(ok);
}

bool hfd_pem_trust(SSL_CTX *ctx, const char *pem, bool announce) {
        BIO *bio = open_text(pem);
        X509_STORE *store = SSL_CTX_get_cert_store(ctx);
        X509 *cert;
        size_t n = 0;
        bool ok = X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN) == 1;

        while (ok && (cert = read_next_cert(bio)) != NULL) {
                ok = X509_STORE_add_cert(store, cert) == 1 &&
                     (!announce || SSL_CTX_add_client_CA(ctx, cert) == 1);
                X509_free(cert);
                n++;
        }
        ok = ok && n > 0 && is_at_end();
        BIO_free(bio);
        return finish_pem(ok);
}
