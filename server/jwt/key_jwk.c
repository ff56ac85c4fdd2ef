/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes public keys of JWKs (RFC 7517), as the issuers of tokens publish them.
 *
 * Invariants: OpenSSL's error queue is empty afterwards, so that no old error is taken for that of
 * the next operation. Every number has a limit, because an issuer could otherwise make each check
 * of a signature slow.
 */
#include <errno.h>
#include <string.h>

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/param_build.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "server/jwt/key_private.h"

#define NUMBER_MAX 1024 /* bytes of a modulus: a key of 8192 bits */
#define P256_BYTES 32   /* bytes of a coordinate */

static void bn_cleanup(BIGNUM **number) { BN_free(*number); }
static void build_cleanup(OSSL_PARAM_BLD **build) { OSSL_PARAM_BLD_free(*build); }
static void params_cleanup(OSSL_PARAM **params) { OSSL_PARAM_free(*params); }
static void context_cleanup(EVP_PKEY_CTX **context) { EVP_PKEY_CTX_free(*context); }

/* Decodes a member. False: it is missing, too long or no base64url. + 4: the digits of the last
 * byte of NUMBER_MAX, which fills no group of three bytes. */
static bool read_bytes(const struct hf__json *jwk, const char *name,
                       unsigned char bytes[HF__BASE64URL_DECODED_MAX(NUMBER_MAX / 3 * 4 + 4)],
                       size_t *ret_n) {
        const char *text = hf__json_string(jwk, name);
        size_t n = text ? strlen(text) : 0;

        return n > 0 && n <= NUMBER_MAX / 3 * 4 + 4 && hf__base64url_decode(text, n, bytes, ret_n);
}

/* type: "RSA" or "EC". The caller owns the key. NULL: the parameters are not a key, or memory ran
 * out. */
static EVP_PKEY *make_pkey(const char *type, OSSL_PARAM_BLD *build) {
        HF__CLEANUP(params_cleanup) OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(build);
        HF__CLEANUP(context_cleanup)
        EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
        EVP_PKEY *pkey = NULL;

        if (params && context && EVP_PKEY_fromdata_init(context) == 1)
                (void)EVP_PKEY_fromdata(context, &pkey, EVP_PKEY_PUBLIC_KEY, params);
        return pkey;
}

/* n is the modulus, e the public exponent, both as unsigned numbers with the highest byte first. An
 * exponent of more than 8 bytes, which nobody uses, would make each check slow. */
static EVP_PKEY *read_rsa(const struct hf__json *jwk) {
        unsigned char n_bytes[HF__BASE64URL_DECODED_MAX(NUMBER_MAX / 3 * 4 + 4)],
                e_bytes[HF__BASE64URL_DECODED_MAX(NUMBER_MAX / 3 * 4 + 4)];
        HF__CLEANUP(build_cleanup) OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
        size_t n_n, n_e;

        if (!build || !read_bytes(jwk, "n", n_bytes, &n_n) ||
            !read_bytes(jwk, "e", e_bytes, &n_e) || n_e > 8)
                return NULL;
        HF__CLEANUP(bn_cleanup) BIGNUM *n = BN_bin2bn(n_bytes, (int)n_n, NULL);
        HF__CLEANUP(bn_cleanup) BIGNUM *e = BN_bin2bn(e_bytes, (int)n_e, NULL);
        if (!n || !e || OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_N, n) != 1 ||
            OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_E, e) != 1)
                return NULL;
        return make_pkey("RSA", build);
}

/* x and y are the coordinates of a point. OpenSSL takes it as 04, x, y (the form without
 * compression), and checks that it is on the curve. */
static EVP_PKEY *read_ec(const struct hf__json *jwk) {
        unsigned char x[HF__BASE64URL_DECODED_MAX(NUMBER_MAX / 3 * 4 + 4)],
                y[HF__BASE64URL_DECODED_MAX(NUMBER_MAX / 3 * 4 + 4)], point[1 + 2 * P256_BYTES];
        HF__CLEANUP(build_cleanup) OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
        size_t n_x, n_y;

        if (!build || !hf__json_has_text(jwk, "crv", "P-256") || !read_bytes(jwk, "x", x, &n_x) ||
            !read_bytes(jwk, "y", y, &n_y) || n_x != P256_BYTES || n_y != P256_BYTES)
                return NULL;
        point[0] = 4;
        memcpy(point + 1, x, P256_BYTES);
        memcpy(point + 1 + P256_BYTES, y, P256_BYTES);
        if (OSSL_PARAM_BLD_push_utf8_string(build, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) !=
                    1 ||
            OSSL_PARAM_BLD_push_octet_string(build, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof point) !=
                    1)
                return NULL;
        return make_pkey("EC", build);
}

/* Whether the JWK is for signatures with this algorithm. */
static bool is_for_signatures(const struct hf__json *jwk, const char *algorithm) {
        const char *use = hf__json_string(jwk, "use"), *alg = hf__json_string(jwk, "alg");

        return (!use || strcmp(use, "sig") == 0) && (!alg || strcmp(alg, algorithm) == 0);
}

int hfd_jwt_key_of_jwk(const struct hf__json *jwk, struct hfd_jwt_key **ret_key) {
        const char *id = hf__json_string(jwk, "kid");
        bool is_ec = hf__json_has_text(jwk, "kty", "EC");
        EVP_PKEY *pkey = NULL;
        struct hf_status why;

        if (!is_for_signatures(jwk, is_ec ? "ES256" : "RS256") ||
            (id && strlen(id) >= HFD_JWT_KEY_ID_MAX))
                return HF_E_INVALID;
        if (is_ec)
                pkey = read_ec(jwk);
        else if (hf__json_has_text(jwk, "kty", "RSA"))
                pkey = read_rsa(jwk);
        ERR_clear_error();
        if (!pkey)
                return HF_E_INVALID;
        int r = hfd_jwt_key_make(pkey, false, ret_key, &why);
        ERR_clear_error();
        if (r == 0)
                (void)strcpy((*ret_key)->id, id ? id : "");
        return r;
}
