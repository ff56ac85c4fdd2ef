/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens: signatures of this and another program, and every token that must be refused. */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <holdfast/error.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "jwt_examples.h"
#include "server/jwt/jwt.h"
#include "server/jwt/key_set.h"
#include "server/jwt/verified.h"
#include "x509_identity.h"

#define CLAIMS "{\"sub\":\"me\"}"
/* sha256 of the DER of the key of example A.3 */
#define EXAMPLE_ID "K9G7DESol8MKeqCZHN442AYv5EHeUNoPRoJTRPYC6Cc"

/* Takes ownership of key. The caller frees the text. */
static char *to_pem(EVP_PKEY *key, bool is_private) {
        BIO *bio = BIO_new(BIO_s_mem());
        char *data, *text;

        assert(key && bio);
        if (is_private)
                assert(PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1);
        else
                assert(PEM_write_bio_PUBKEY(bio, key) == 1);
        long n = BIO_get_mem_data(bio, &data);
        text = strndup(data, (size_t)n);
        BIO_free(bio);
        EVP_PKEY_free(key);
        assert(text);
        return text;
}

/* Takes ownership of pem. */
static struct hfd_jwt_key_set *set_of(char *pem, bool signs) {
        struct hfd_jwt_key_set *set = hfd_jwt_key_set_new();

        assert(set && hfd_jwt_key_set_add(set, "test", pem, signs, NULL) == 0);
        free(pem);
        return set;
}

static struct hfd_jwt_key_set *new_set(bool ec) {
        return set_of(to_pem(ec ? EVP_EC_gen("P-256") : EVP_RSA_gen(2048), true), true);
}

static int verify(const struct hfd_jwt_key_set *keys, const char *token) {
        struct hf__json *claims = NULL;
        int r = hfd_jwt_verify(keys, token, &claims);

        hf__json_free(claims);
        return r;
}

static char *sign(const struct hfd_jwt_key_set *keys, const char *claims) {
        struct hf__strbuf out = {0};

        assert_int_equal(hfd_jwt_sign(hfd_jwt_key_set_signer(keys), claims, strlen(claims), &out),
                         0);
        return out.data; /* the caller owns it now */
}

static void test_tokens_of_another_program_are_accepted(void **state) {
        struct hfd_jwt_key_set *ec = set_of(strdup(JWT_EXAMPLE_ES256_KEY), false),
                               *rsa = set_of(strdup(JWT_EXAMPLE_RS256_KEY), false);
        struct hf__json *claims = NULL;

        assert_int_equal(hfd_jwt_verify(ec, JWT_EXAMPLE_ES256, &claims), 0);
        assert_string_equal(hf__json_string(claims, "iss"), "joe");
        hf__json_free(claims);
        assert_int_equal(verify(rsa, JWT_EXAMPLE_RS256), 0);
        assert_int_equal(verify(ec, JWT_EXAMPLE_RS256), HF_E_UNAUTHORIZED);
        assert_int_equal(verify(rsa, JWT_EXAMPLE_ES256), HF_E_UNAUTHORIZED);
        assert_int_equal(hfd_jwt_key_set_add(ec, "rsa", JWT_EXAMPLE_RS256_KEY, false, NULL), 0);
        assert_int_equal(verify(ec, JWT_EXAMPLE_RS256), 0);
        hfd_jwt_key_set_unref(ec);
        hfd_jwt_key_set_unref(rsa);
}

static void test_a_signed_token_is_accepted_by_its_key_only(void **state) {
        for (int ec = 0; ec < 2; ec++) {
                struct hfd_jwt_key_set *keys = new_set(ec), *others = new_set(ec);
                /* Numbers of a signature that are too short are padded. One signature in 128 has
                 * such a number. */
                for (int i = 0; i < (ec ? 400 : 2); i++) {
                        char *token = sign(keys, CLAIMS);
                        assert_int_equal(verify(keys, token), 0);
                        assert_int_equal(verify(others, token), HF_E_UNAUTHORIZED);
                        free(token);
                }
                hfd_jwt_key_set_unref(keys);
                hfd_jwt_key_set_unref(others);
        }
}

static void test_the_signature_of_a_token_is_verified_once(void **state) {
        struct hfd_jwt_key_set *keys = new_set(true), *others = new_set(true);
        struct hfd_jwt_verified *verified = hfd_jwt_key_set_verified(keys);
        char *token = sign(keys, CLAIMS), *other = sign(keys, "{\"sub\":\"you\"}");
        struct hf__json *claims = NULL;

        for (int i = 0; i < 3; i++) {
                assert_int_equal(verify(keys, token), 0);
                assert_int_equal(hfd_jwt_verified_added(verified), 1);
        }
        assert_int_equal(hfd_jwt_verify(keys, other, &claims), 0);
        assert_string_equal(hf__json_string(claims, "sub"), "you");
        hf__json_free(claims);
        assert_int_equal(hfd_jwt_verified_added(verified), 2);
        /* Another set of keys does not know these tokens, and does not remember a refused one. */
        for (int i = 0; i < 2; i++)
                assert_int_equal(verify(others, token), HF_E_UNAUTHORIZED);
        assert_int_equal(hfd_jwt_verified_added(hfd_jwt_key_set_verified(others)), 0);
        free(token);
        free(other);
        hfd_jwt_key_set_unref(keys);
        hfd_jwt_key_set_unref(others);
}

static void test_what_is_remembered_of_tokens_is_bounded(void **state) {
        struct hfd_jwt_verified *verified = hfd_jwt_verified_new();
        struct hfd_jwt_digest digest;
        size_t n = 0;

        assert_non_null(verified);
        for (int i = 0; i < 3 * HFD_JWT_VERIFIED_MAX; i++) {
                assert_true(hfd_jwt_digest((const char *)&i, sizeof i, &digest));
                assert_false(hfd_jwt_verified_has(verified, &digest));
                hfd_jwt_verified_add(verified, &digest);
                assert_true(hfd_jwt_verified_has(verified, &digest));
        }
        for (int i = 0; i < 3 * HFD_JWT_VERIFIED_MAX; i++) {
                assert_true(hfd_jwt_digest((const char *)&i, sizeof i, &digest));
                n += hfd_jwt_verified_has(verified, &digest);
        }
        assert_true(n > HFD_JWT_VERIFIED_MAX / 2 && n <= HFD_JWT_VERIFIED_MAX);
        hfd_jwt_verified_free(verified);
}

static void test_a_changed_token_is_refused(void **state) {
        struct hfd_jwt_key_set *keys = new_set(true);
        char *token = sign(keys, CLAIMS), longer[HFD_JWT_MAX + 2];
        size_t n = strlen(token);

        for (size_t i = 0; i < n; i++) {
                char kept = token[i];
                for (const char *c = "AQ_.=+ \n"; *c; c++) {
                        token[i] = *c;
                        assert_int_equal(verify(keys, token), *c == kept ? 0 : HF_E_UNAUTHORIZED);
                }
                token[i] = '\0';
                assert_int_equal(verify(keys, token), HF_E_UNAUTHORIZED);
                token[i] = kept;
        }
        (void)snprintf(longer, sizeof longer, "%s=", token);
        assert_int_equal(verify(keys, longer), HF_E_UNAUTHORIZED);
        (void)snprintf(longer, sizeof longer, "%s.x", token);
        assert_int_equal(verify(keys, longer), HF_E_UNAUTHORIZED);
        (void)snprintf(longer, sizeof longer, "%s.", token);
        assert_int_equal(verify(keys, longer), HF_E_UNAUTHORIZED);
        memset(longer, 'A', sizeof longer - 1);
        longer[sizeof longer - 1] = '\0';
        memcpy(longer, token, n);
        assert_int_equal(verify(keys, longer), HF_E_UNAUTHORIZED);
        free(token);
        hfd_jwt_key_set_unref(keys);
}

/* A token with this header and these claims; text between the dots is as it is. */
static int verify_signed(const struct hfd_jwt_key_set *keys, const char *header,
                         const char *claims) {
        const struct hfd_jwt_key *key = hfd_jwt_key_set_signer(keys);
        unsigned char signature[HFD_JWT_SIGNATURE_MAX];
        struct hf__strbuf token = {0};
        size_t n;

        hf__base64url_encode(&token, header, strlen(header));
        hf__strbuf_putc(&token, '.');
        hf__base64url_encode(&token, claims, strlen(claims));
        assert_int_equal(hfd_jwt_key_sign(key, token.data, token.n, signature, &n), 0);
        hf__strbuf_putc(&token, '.');
        hf__base64url_encode(&token, signature, n);
        int r = verify(keys, token.data);
        hf__strbuf_done(&token);
        return r;
}

static void expect_refused(const struct hfd_jwt_key_set *keys, const char *header,
                           const char *claims) {
        if (verify_signed(keys, header, claims) != HF_E_UNAUTHORIZED)
                fail_msg("accepted: %s %s", header, claims);
}

static void test_a_header_that_is_not_understood_is_refused(void **state) {
        static const char *const headers[] = {"{\"alg\":\"none\"}",
                                              "{\"alg\":\"HS256\"}",
                                              "{\"alg\":\"RS256\"}",
                                              "{\"alg\":\"es256\"}",
                                              "{\"alg\":1}",
                                              "{}",
                                              "[]",
                                              "\"ES256\"",
                                              "",
                                              "{\"alg\":\"ES256\",\"kid\":\"other\"}",
                                              "{\"alg\":\"ES256\",\"kid\":1}",
                                              "{\"alg\":\"ES256\",\"kid\":null}",
                                              "{\"alg\":\"ES256\",\"crit\":[\"exp\"]}",
                                              "{\"alg\":\"ES256\",\"b64\":false}",
                                              "{\"alg\":\"ES256\",\"alg\":\"ES256\"}",
                                              "{\"alg\":\"none\",\"alg\":\"ES256\"}",
                                              "{\"alg\":\"ES256\"} x"};
        struct hfd_jwt_key_set *keys = new_set(true);
        char large[8192];

        for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
                expect_refused(keys, headers[i], CLAIMS);
        (void)snprintf(large, sizeof large, "{\"alg\":\"ES256\",\"x\":\"%06200d\"}", 0);
        expect_refused(keys, large, CLAIMS);
        hfd_jwt_key_set_unref(keys);
}

/* Some issuers put their chain of certificates into each header. */
static void test_a_header_may_have_certificates(void **state) {
        struct hfd_jwt_key_set *keys = new_set(true);
        char header[8192];

        (void)snprintf(header, sizeof header,
                       "{\"alg\":\"ES256\",\"x5c\":[\"%02500d\",\"%02500d\"]}", 0, 0);
        assert_int_equal(verify_signed(keys, header, CLAIMS), 0);
        hfd_jwt_key_set_unref(keys);
}

static void test_claims_that_are_no_object_are_refused(void **state) {
        static const char *const claims[] =
                {"", "[]", "1", "{", "{\"a\":1,\"a\":2}", "{\"a\":{\"b\":1,\"b\":2}}"};
        struct hfd_jwt_key_set *keys = new_set(true);

        for (size_t i = 0; i < sizeof claims / sizeof claims[0]; i++)
                expect_refused(keys, "{\"alg\":\"ES256\"}", claims[i]);
        hfd_jwt_key_set_unref(keys);
}

static void test_a_token_has_a_limited_length(void **state) {
        struct hfd_jwt_key_set *keys = new_set(true);
        struct hf__strbuf claims = {0}, out = {0};

        hf__strbuf_puts(&claims, "{\"x\":\"");
        for (size_t i = 0; i < HFD_JWT_MAX; i++)
                hf__strbuf_putc(&claims, 'x');
        hf__strbuf_puts(&claims, "\"}");
        assert_int_equal(hfd_jwt_sign(hfd_jwt_key_set_signer(keys), claims.data, claims.n, &out),
                         HF_E_TOO_LARGE);
        assert_int_equal(out.n, 0);
        hf__strbuf_done(&claims);
        hfd_jwt_key_set_unref(keys);
}

static void test_keys_of_other_kinds_are_refused(void **state) {
        struct hf_status status = {0};
        struct hfd_jwt_key_set *set = hfd_jwt_key_set_new();
        char *texts[] =
                {strdup(""),
                 strdup("no key\n"),
                 strdup("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
                 strdup("-----BEGIN PRIVATE KEY-----\nAAAA\n"),
                 strdup("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n"
                        "-----END ENCRYPTED PRIVATE KEY-----\n"),
                 strdup("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"
                        "DEK-Info: AES-128-CBC,00\n\nAAAA\n-----END RSA PRIVATE KEY-----\n"),
                 to_pem(EVP_EC_gen("P-384"), true),
                 to_pem(EVP_RSA_gen(1024), true),
                 to_pem(EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"), true)};

        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
                assert_int_equal(hfd_jwt_key_set_add(set, "some-file", texts[i], false, &status),
                                 HF_E_INVALID);
                assert_non_null(strstr(status.message, "some-file"));
                assert_null(hfd_jwt_key_set_at(set, 0));
                free(texts[i]);
        }
        char *public = to_pem(EVP_EC_gen("P-256"), false);
        assert_int_equal(hfd_jwt_key_set_add(set, "some-file", public, true, &status),
                         HF_E_INVALID);
        free(public);
        hfd_jwt_key_set_unref(set);
}

static void test_a_text_may_have_several_keys(void **state) {
        char *one = to_pem(EVP_EC_gen("P-256"), true), text[8192];
        struct hfd_jwt_key_set *set = hfd_jwt_key_set_new();

        (void)snprintf(text, sizeof text,
                       "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n"
                       "-----END EC PARAMETERS-----\n%s%s%s",
                       JWT_EXAMPLE_ES256_KEY, JWT_EXAMPLE_RS256_KEY, one);
        assert_int_equal(hfd_jwt_key_set_add(set, "test", text, false, NULL), 0);
        assert_int_equal(verify(set, JWT_EXAMPLE_ES256), 0);
        assert_int_equal(verify(set, JWT_EXAMPLE_RS256), 0);
        assert_non_null(hfd_jwt_key_set_at(set, 2));
        /* A private key replaces its own public key in the set, and no other key. */
        assert_int_equal(hfd_jwt_key_set_add(set, "test", one, true, NULL), 0);
        assert_null(hfd_jwt_key_set_at(set, 3));
        char *token = sign(set, CLAIMS);
        assert_int_equal(verify(set, token), 0);
        free(token);
        free(one);
        hfd_jwt_key_set_unref(set);
}

/* Launchers of test control planes name a certificate, because it has the public key. */
static void test_the_key_may_be_that_of_a_certificate(void **state) {
        struct x509_identity identity = x509_identity_make("sa", NULL, NULL, false, 60);
        struct hfd_jwt_key_set *signer = set_of(strdup(identity.key_pem), true),
                               *reader = set_of(strdup(identity.cert_pem), false);
        char *token = sign(signer, CLAIMS);

        assert_false(hfd_jwt_key_is_private(hfd_jwt_key_set_at(reader, 0)));
        assert_int_equal(verify(reader, token), 0);
        free(token);
        hfd_jwt_key_set_unref(signer);
        hfd_jwt_key_set_unref(reader);
        x509_identity_deinit(&identity);
}

static void test_there_may_be_32_keys(void **state) {
        struct hfd_jwt_key_set *set = hfd_jwt_key_set_new();
        struct hf_status status = {0};

        for (size_t i = 0; i <= HFD_JWT_KEYS_MAX; i++) {
                char *pem = to_pem(EVP_EC_gen("P-256"), false);
                int r = hfd_jwt_key_set_add(set, "test", pem, false, &status);
                assert_int_equal(r, i < HFD_JWT_KEYS_MAX ? 0 : HF_E_TOO_LARGE);
                free(pem);
        }
        hfd_jwt_key_set_unref(set);
}

/* The id of the key of example A.3 was computed with
 * openssl pkey -pubin -outform DER | openssl dgst -sha256 -binary | basenc --base64url. */
static void test_public_keys_are_published(void **state) {
        struct hfd_jwt_key_set *set = set_of(strdup(JWT_EXAMPLE_ES256_KEY), false);
        struct hf__strbuf out = {0};

        assert_int_equal(hfd_jwt_key_set_add(set, "rsa", JWT_EXAMPLE_RS256_KEY, false, NULL), 0);
        hfd_jwt_key_set_put(set, &out);
        assert_int_equal(out.error, 0);
        assert_non_null(strstr(out.data, "{\"keys\":[{\"use\":\"sig\",\"kty\":\"EC\",\"kid\":\""));
        assert_non_null(strstr(out.data,
                               "\",\"crv\":\"P-256\",\"alg\":\"ES256\","
                               "\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
                               "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"},{"));
        assert_non_null(strstr(out.data, "\"alg\":\"RS256\",\"n\":\"ofgWCuLjybRlzo0tZWJj"));
        assert_non_null(strstr(out.data, "\"e\":\"AQAB\"}]}"));
        assert_string_equal(hfd_jwt_key_id(hfd_jwt_key_set_at(set, 0)), EXAMPLE_ID);
        hf__strbuf_done(&out);
        hfd_jwt_key_set_unref(set);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_tokens_of_another_program_are_accepted),
                cmocka_unit_test(test_a_signed_token_is_accepted_by_its_key_only),
                cmocka_unit_test(test_the_signature_of_a_token_is_verified_once),
                cmocka_unit_test(test_what_is_remembered_of_tokens_is_bounded),
                cmocka_unit_test(test_a_changed_token_is_refused),
                cmocka_unit_test(test_a_header_that_is_not_understood_is_refused),
                cmocka_unit_test(test_a_header_may_have_certificates),
                cmocka_unit_test(test_claims_that_are_no_object_are_refused),
                cmocka_unit_test(test_a_token_has_a_limited_length),
                cmocka_unit_test(test_keys_of_other_kinds_are_refused),
                cmocka_unit_test(test_a_text_may_have_several_keys),
                cmocka_unit_test(test_the_key_may_be_that_of_a_certificate),
                cmocka_unit_test(test_there_may_be_32_keys),
                cmocka_unit_test(test_public_keys_are_published),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
