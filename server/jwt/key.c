/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys that sign and verify tokens (RS256 and ES256), with OpenSSL's EVP interface.
 *
 * Invariants. No function of key.h leaves an entry in OpenSSL's error queue, which the TLS code of
 * the same thread would take for its own. And a passphrase is never asked for, because that would
 * block on a terminal: an encrypted key is recognized by the name or the headers of its PEM part,
 * and refused.
 */
#include "server/jwt/key.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/sha256.h"
#include "base/strbuf.h"
#include "server/jwt/key_private.h"

#define RSA_BITS_MIN 2048 /* what RFC 7518 requires */
#define RSA_BITS_MAX 8192 /* a longer key would make each check of a signature slow */
#define P256_BYTES   32   /* of a coordinate, and of each half of a signature */

static void bn_cleanup(BIGNUM **number) { BN_free(*number); }
static void context_cleanup(EVP_MD_CTX **context) { EVP_MD_CTX_free(*context); }
static void signature_cleanup(ECDSA_SIG **signature) { ECDSA_SIG_free(*signature); }

/* ---- reading ---- */

/* Why the key cannot be used for tokens; NULL = it can. */
static const char *find_fault(EVP_PKEY *pkey, bool *ret_is_ec) {
        char curve[32] = "";
        size_t n;

        *ret_is_ec = EVP_PKEY_is_a(pkey, "EC") == 1;
        if (*ret_is_ec) {
                bool known = EVP_PKEY_get_group_name(pkey, curve, sizeof curve, &n) == 1;
                return known && strcmp(curve, "prime256v1") == 0
                               ? NULL
                               : "an ECDSA key must have the curve P-256";
        }
        if (EVP_PKEY_is_a(pkey, "RSA") != 1)
                return "the key is neither an RSA nor an ECDSA key";
        int bits = EVP_PKEY_get_bits(pkey);
        return bits >= RSA_BITS_MIN && bits <= RSA_BITS_MAX
                       ? NULL
                       : "an RSA key must have 2048 to 8192 bits";
}

/* The id is that of kube-apiserver: the SHA-256 of the public key, as base64url. False: OpenSSL
 * failed, or memory has run out. */
static bool set_id(struct hfd_jwt_key *key) {
        struct hf__strbuf text = {0};
        unsigned char *der = NULL;
        uint8_t digest[32];
        int n = i2d_PUBKEY(key->pkey, &der);

        if (n <= 0)
                return false;
        hf__sha256(der, (size_t)n, digest);
        OPENSSL_free(der);
        hf__base64url_encode(&text, digest, sizeof digest);
        bool ok = text.error == 0 && text.n < sizeof key->id;
        if (ok)
                memcpy(key->id, text.data, text.n + 1);
        hf__strbuf_done(&text);
        return ok;
}

/* As in kube-apiserver, a certificate stands for its public key; nothing else in it is checked. */
static EVP_PKEY *read_certificate(const unsigned char *der, long n) {
        X509 *cert = d2i_X509(NULL, &der, n);
        EVP_PKEY *pkey = cert ? X509_get_pubkey(cert) : NULL;

        X509_free(cert);
        return pkey;
}

/* Reads a private key in PKCS #8, the form that holdfastd writes. d2i_AutoPrivateKey could read it,
 * too, but tries all types and forms, which takes a millisecond; this form names the type. */
static EVP_PKEY *read_pkcs8(const unsigned char *der, long n) {
        PKCS8_PRIV_KEY_INFO *info = d2i_PKCS8_PRIV_KEY_INFO(NULL, &der, n);
        EVP_PKEY *pkey = info ? EVP_PKCS82PKEY(info) : NULL;

        PKCS8_PRIV_KEY_INFO_free(info);
        return pkey;
}

/* Whether the name of a part of a PEM text is that of a private key. */
static bool is_private_name(const char *name) {
        return strcmp(name, "PRIVATE KEY") == 0 || strcmp(name, "RSA PRIVATE KEY") == 0 ||
               strcmp(name, "EC PRIVATE KEY") == 0;
}

/* Reads one part of a PEM text. NULL with *ret_skip: it is not a key, so the next part is read;
 * NULL without it: it is a malformed key, or a private key of a form that is not known. */
static EVP_PKEY *read_part(const char *name, const unsigned char *der, long n, bool *ret_skip) {
        *ret_skip = false;
        if (strcmp(name, "PRIVATE KEY") == 0)
                return read_pkcs8(der, n);
        if (is_private_name(name))
                return d2i_AutoPrivateKey(NULL, &der, n);
        if (strcmp(name, "PUBLIC KEY") == 0)
                return d2i_PUBKEY(NULL, &der, n);
        if (strcmp(name, "RSA PUBLIC KEY") == 0)
                return d2i_PublicKey(EVP_PKEY_RSA, NULL, &der, n);
        if (strcmp(name, "CERTIFICATE") == 0)
                return read_certificate(der, n);
        *ret_skip = strstr(name, "PRIVATE KEY") == NULL; /* such as EC PARAMETERS */
        return NULL;
}

HF__CLEANUP_DEFINE(key_cleanup, struct hfd_jwt_key *, hfd_jwt_key_free)

int hfd_jwt_key_make(EVP_PKEY *pkey, bool is_private, struct hfd_jwt_key **ret_key,
                     struct hf_status *reterr_status) {
        HF__CLEANUP(key_cleanup) struct hfd_jwt_key *key = calloc(1, sizeof *key);
        bool is_ec = false;

        assert(pkey);
        const char *fault = find_fault(pkey, &is_ec);
        if (!key) {
                EVP_PKEY_free(pkey);
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        }
        *key = (struct hfd_jwt_key){.pkey = pkey, .is_ec = is_ec, .is_private = is_private};
        if (fault)
                return hf_fail(reterr_status, HF_E_INVALID, "%s", fault);
        if (!set_id(key))
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        *ret_key = HF__TAKE(key);
        return 0;
}

/* Reads one part of the text. HF_E_EXISTS: it is not a key; call this again for the next part.
 * HF_E_NOT_FOUND: there is no further part. Other errors as hfd_jwt_key_read. */
static int read_next_part(BIO *bio, struct hfd_jwt_key **ret_key, struct hf_status *reterr_status) {
        char *name = NULL, *header = NULL;
        unsigned char *der = NULL;
        long n = 0;
        bool skip = false;

        if (PEM_read_bio(bio, &name, &header, &der, &n) != 1)
                return ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE
                               ? HF_E_NOT_FOUND
                               : hf_fail(reterr_status, HF_E_INVALID, "a part is malformed");
        /* The older form of an encrypted key says so in PEM headers, which no other key has. */
        bool encrypted = header[0] || strcmp(name, "ENCRYPTED PRIVATE KEY") == 0;
        EVP_PKEY *pkey = encrypted ? NULL : read_part(name, der, n, &skip);
        bool is_private = is_private_name(name);
        OPENSSL_free(name);
        OPENSSL_free(header);
        OPENSSL_clear_free(der, (size_t)n); /* it may be a private key */
        if (pkey)
                return hfd_jwt_key_make(pkey, is_private, ret_key, reterr_status);
        if (skip)
                return HF_E_EXISTS;
        return hf_fail(reterr_status, HF_E_INVALID,
                       encrypted ? "the key is encrypted" : "a key is malformed");
}

int hfd_jwt_key_read(const char **at, struct hfd_jwt_key **ret_key,
                     struct hf_status *reterr_status) {
        size_t n_text = strlen(*at);
        BIO *bio = n_text < INT32_MAX ? BIO_new_mem_buf(*at, (int)n_text) : NULL;
        int r = bio ? HF_E_EXISTS : -ENOMEM;

        ERR_clear_error();
        while (r == HF_E_EXISTS)
                r = read_next_part(bio, ret_key, reterr_status);
        /* The BIO has read the parts up to this key; what it has left is the rest of the text. */
        *at += n_text - (bio ? BIO_pending(bio) : 0);
        BIO_free(bio);
        ERR_clear_error();
        return r;
}

struct hfd_jwt_key *hfd_jwt_key_free(struct hfd_jwt_key *key) {
        if (key)
                EVP_PKEY_free(key->pkey);
        free(key);
        return NULL;
}

bool hfd_jwt_key_is_private(const struct hfd_jwt_key *key) { return key->is_private; }

const char *hfd_jwt_key_algorithm(const struct hfd_jwt_key *key) {
        return key->is_ec ? "ES256" : "RS256";
}

const char *hfd_jwt_key_id(const struct hfd_jwt_key *key) { return key->id; }

/* ---- signatures ---- */

/* OpenSSL's form of an ECDSA signature is DER; that of a JWT is the two numbers, 32 bytes each. */
static bool shorten_signature(unsigned char *signature, size_t *n) {
        const unsigned char *der = signature;
        HF__CLEANUP(signature_cleanup) ECDSA_SIG *parsed = d2i_ECDSA_SIG(NULL, &der, (long)*n);

        *n = 2 * P256_BYTES;
        return parsed &&
               BN_bn2binpad(ECDSA_SIG_get0_r(parsed), signature, P256_BYTES) == P256_BYTES &&
               BN_bn2binpad(ECDSA_SIG_get0_s(parsed), signature + P256_BYTES, P256_BYTES) ==
                       P256_BYTES;
}

int hfd_jwt_key_sign(const struct hfd_jwt_key *key, const void *data, size_t n,
                     unsigned char signature[HFD_JWT_SIGNATURE_MAX], size_t *ret_n_signature) {
        HF__CLEANUP(context_cleanup) EVP_MD_CTX *context = EVP_MD_CTX_new();

        assert(key->is_private); /* hfd_jwt_key_set_add lets no other key sign */
        *ret_n_signature = HFD_JWT_SIGNATURE_MAX;
        bool ok = context &&
                  EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key->pkey) == 1 &&
                  EVP_DigestSign(context, signature, ret_n_signature, data, n) == 1 &&
                  (!key->is_ec || shorten_signature(signature, ret_n_signature));
        ERR_clear_error();
        return ok ? 0 : -EIO;
}

/* Converts the two numbers to DER. False: the signature has not the length of two numbers, or
 * memory has run out. */
static bool lengthen_signature(const unsigned char *signature, size_t n,
                               unsigned char der[HFD_JWT_SIGNATURE_MAX], size_t *ret_n) {
        HF__CLEANUP(signature_cleanup) ECDSA_SIG *parsed = ECDSA_SIG_new();

        if (n != 2 * P256_BYTES || !parsed)
                return false;
        BIGNUM *r = BN_bin2bn(signature, P256_BYTES, NULL),
               *s = BN_bin2bn(signature + P256_BYTES, P256_BYTES, NULL);
        if (!r || !s || ECDSA_SIG_set0(parsed, r, s) != 1) {
                BN_free(r);
                BN_free(s);
                return false;
        }
        int n_der = i2d_ECDSA_SIG(parsed, &der); /* two short numbers: it fits */
        *ret_n = n_der > 0 ? (size_t)n_der : 0;
        return n_der > 0;
}

bool hfd_jwt_key_verify(const struct hfd_jwt_key *key, const void *data, size_t n,
                        const unsigned char *signature, size_t n_signature) {
        HF__CLEANUP(context_cleanup) EVP_MD_CTX *context = EVP_MD_CTX_new();
        unsigned char der[HFD_JWT_SIGNATURE_MAX];

        assert(key->pkey);
        if (key->is_ec) {
                if (!lengthen_signature(signature, n_signature, der, &n_signature))
                        n_signature = 0;
                signature = der;
        }
        bool ok = context && n_signature > 0 &&
                  EVP_DigestVerifyInit(context, NULL, EVP_sha256(), NULL, key->pkey) == 1 &&
                  EVP_DigestVerify(context, signature, n_signature, data, n) == 1;
        ERR_clear_error();
        return ok;
}

/* ---- the public key for others ---- */

/* Appends `,"name":"..."`: the number in n_bytes bytes; 0 = as many as it needs. */
static void put_number(const struct hfd_jwt_key *key, const char *parameter, const char *name,
                       int n_bytes, struct hf__strbuf *out) {
        HF__CLEANUP(bn_cleanup) BIGNUM *number = NULL;
        unsigned char bytes[RSA_BITS_MAX / 8];
        bool ok = EVP_PKEY_get_bn_param(key->pkey, parameter, &number) == 1;
        int n = ok && n_bytes == 0 ? BN_num_bytes(number) : n_bytes;

        ok = ok && n <= (int)sizeof bytes && BN_bn2binpad(number, bytes, n) == n;
        ERR_clear_error();
        if (!ok) {
                out->error = out->error != 0 ? out->error : -ENOMEM;
                return;
        }
        hf__strbuf_printf(out, ",\"%s\":\"", name);
        hf__base64url_encode(out, bytes, (size_t)n);
        hf__strbuf_putc(out, '"');
}

void hfd_jwt_key_put_jwk(const struct hfd_jwt_key *key, struct hf__strbuf *out) {
        hf__strbuf_printf(out, "{\"use\":\"sig\",\"kty\":\"%s\",\"kid\":\"%s\"",
                          key->is_ec ? "EC" : "RSA", key->id);
        if (key->is_ec)
                hf__strbuf_puts(out, ",\"crv\":\"P-256\"");
        hf__strbuf_printf(out, ",\"alg\":\"%s\"", hfd_jwt_key_algorithm(key));
        if (key->is_ec) {
                put_number(key, OSSL_PKEY_PARAM_EC_PUB_X, "x", P256_BYTES, out);
                put_number(key, OSSL_PKEY_PARAM_EC_PUB_Y, "y", P256_BYTES, out);
        } else {
                put_number(key, OSSL_PKEY_PARAM_RSA_N, "n", 0, out);
                put_number(key, OSSL_PKEY_PARAM_RSA_E, "e", 0, out);
        }
        hf__strbuf_putc(out, '}');
}
