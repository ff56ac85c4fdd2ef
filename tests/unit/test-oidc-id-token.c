/* SPDX-License-Identifier: Apache-2.0 */
/* ID tokens: which claims are accepted, and which user they name. And the keys of a JWK Set. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/jwt/jwt.h"
#include "server/jwt/key_set.h"
#include "server/oidc/id_token.h"
#include "text_asserts.h"
#include "x509_identity.h"

#define ISSUER "https://issuer.example"
#define NOW    1000000
#define CLAIMS(more)                                                                               \
        "{\"iss\":\"" ISSUER "\",\"aud\":\"me\",\"sub\":\"jane\",\"exp\":1000001" more "}"

static const char *const none[] = {NULL};
static const struct hfd_id_token_rules defaults = {.issuer = ISSUER,
                                                   .client_id = "me",
                                                   .username_claim = "sub",
                                                   .username_prefix = "",
                                                   .groups_claim = "",
                                                   .groups_prefix = "",
                                                   .required = none};
static struct hfd_user user;

static int accept(const struct hfd_id_token_rules *rules, const char *claims,
                  struct hf_status *status) {
        struct hf__json *json;

        *status = (struct hf_status){0};
        user = (struct hfd_user){0};
        assert_int_equal(hf__json_parse(claims, strlen(claims), &json, NULL), 0);
        int r = hfd_id_token_accept(rules, json, NOW, &user, status);
        hf__json_free(json);
        return r;
}

static void expect(const struct hfd_id_token_rules *rules, const char *claims, const char *name) {
        struct hf_status status;

        if (accept(rules, claims, &status) != 0)
                fail_msg("%s: %s", claims, status.message);
        assert_string_equal(user.name, name);
}

static void refuse(const struct hfd_id_token_rules *rules, const char *claims, const char *why) {
        struct hf_status status;

        assert_int_equal(accept(rules, claims, &status), HF_E_UNAUTHORIZED);
        assert_in(status.message, why);
}

static void test_the_user_is_a_claim_with_a_prefix(void **state) {
        struct hfd_id_token_rules rules = defaults;

        expect(&rules, CLAIMS(""), ISSUER "#jane");
        assert_int_equal(user.n_groups, 0);
        rules.username_prefix = "-";
        expect(&rules, CLAIMS(""), "jane");
        rules.username_prefix = "oidc:";
        expect(&rules, CLAIMS(""), "oidc:jane");
        rules = defaults;
        rules.username_claim = "email";
        expect(&rules, CLAIMS(",\"email\":\"j@x\""), "j@x");
        expect(&rules, CLAIMS(",\"email\":\"j@x\",\"email_verified\":true"), "j@x");
        refuse(&rules, CLAIMS(",\"email\":\"j@x\",\"email_verified\":false"),
               "oidc: email not verified");
        refuse(&rules, CLAIMS(",\"email\":\"j@x\",\"email_verified\":\"true\""),
               "oidc: email not verified");
        refuse(&rules, CLAIMS(""), "oidc: parse username claims \"email\": claim not present");
        rules.username_claim = "https://x.example/name.of";
        expect(&rules, CLAIMS(",\"https://x.example/name.of\":\"a\""), ISSUER "#a");
        refuse(&rules, CLAIMS(",\"https://x.example/name.of\":1"), "it is not a string");
        refuse(&rules, CLAIMS(",\"https://x.example/name.of\":\"\""), "it is not a string");
}

static void test_groups_are_a_text_or_a_list(void **state) {
        struct hfd_id_token_rules rules = defaults;
        struct hf__strbuf many = {0};

        rules.groups_claim = "groups";
        rules.groups_prefix = "g:";
        expect(&rules, CLAIMS(""), ISSUER "#jane");
        assert_int_equal(user.n_groups, 0);
        expect(&rules, CLAIMS(",\"groups\":null"), ISSUER "#jane");
        assert_int_equal(user.n_groups, 0);
        expect(&rules, CLAIMS(",\"groups\":\"a\""), ISSUER "#jane");
        assert_string_equal(user.groups[0], "g:a");
        expect(&rules, CLAIMS(",\"groups\":[\"a\",\"b\"]"), ISSUER "#jane");
        assert_int_equal(user.n_groups, 2);
        assert_string_equal(user.groups[1], "g:b");
        expect(&rules, CLAIMS(",\"groups\":[\"\",\"a\"]"), ISSUER "#jane");
        assert_string_equal(user.groups[0], "g:");
        rules.groups_prefix = "";
        expect(&rules, CLAIMS(",\"groups\":[\"\",\"a\",null]"), ISSUER "#jane");
        assert_int_equal(user.n_groups, 3);
        assert_string_equal(user.groups[0], "");
        assert_string_equal(user.groups[1], "a");
        assert_string_equal(user.groups[2], "");
        expect(&rules, CLAIMS(",\"groups\":\"\""), ISSUER "#jane");
        assert_int_equal(user.n_groups, 1);
        refuse(&rules, CLAIMS(",\"groups\":[\"a\",1]"), "oidc: parse groups claim \"groups\"");
        refuse(&rules, CLAIMS(",\"groups\":{}"), "oidc: parse groups claim \"groups\"");
        hf__strbuf_puts(&many, "{\"iss\":\"" ISSUER
                               "\",\"aud\":\"me\",\"sub\":\"j\",\"exp\":1000001,\"groups\":[\"0\"");
        for (int i = 1; i < HFD_MAX_GROUPS; i++)
                hf__strbuf_printf(&many, ",\"%d\"", i);
        hf__strbuf_puts(&many, "]}");
        refuse(&rules, many.data, "more than 15 groups");
        hf__strbuf_done(&many);
}

static void test_the_token_must_be_for_this_client_and_now(void **state) {
        struct hf_status status;

        expect(&defaults,
               "{\"iss\":\"" ISSUER
               "\",\"aud\":[\"x\",\"me\"],\"sub\":\"j\",\"exp\":1000001,\"nbf\":1000299}",
               ISSUER "#j");
        refuse(&defaults, "{\"iss\":\"" ISSUER "\",\"aud\":[\"x\"],\"sub\":\"j\",\"exp\":1000001}",
               "oidc: verify token: oidc: expected audience in [\"me\"]");
        refuse(&defaults, "{\"iss\":\"" ISSUER "\",\"sub\":\"j\",\"exp\":1000001}",
               "expected audience");
        refuse(&defaults, "{\"iss\":\"" ISSUER "\",\"aud\":\"me\",\"sub\":\"j\",\"exp\":1000000}",
               "oidc: verify token: oidc: token is expired (Token Expiry: 1970-01-12T13:46:40Z)");
        refuse(&defaults, "{\"iss\":\"" ISSUER "\",\"aud\":\"me\",\"sub\":\"j\"}", "no expiry");
        /* a fraction of a second is dropped */
        expect(&defaults,
               "{\"iss\":\"" ISSUER
               "\",\"aud\":\"me\",\"sub\":\"j\",\"exp\":1000001.5,\"nbf\":1000300.9}",
               ISSUER "#j");
        refuse(&defaults, "{\"iss\":\"" ISSUER "\",\"aud\":\"me\",\"sub\":\"j\",\"exp\":1000000.9}",
               "token is expired");
        refuse(&defaults, "{\"iss\":\"" ISSUER "\",\"aud\":\"me\",\"sub\":\"j\",\"exp\":1e300}",
               "no expiry");
        refuse(&defaults,
               "{\"iss\":\"" ISSUER
               "\",\"aud\":\"me\",\"sub\":\"j\",\"exp\":1000001,\"nbf\":1000301}",
               "before the nbf");
        /* as Go reads them: null is no nbf, and a list of texts has no numbers */
        expect(&defaults,
               "{\"iss\":\"" ISSUER
               "\",\"aud\":[null,\"me\"],\"sub\":\"j\",\"exp\":1000001,\"nbf\":null}",
               ISSUER "#j");
        refuse(&defaults,
               "{\"iss\":\"" ISSUER "\",\"aud\":[\"me\",5],\"sub\":\"j\",\"exp\":1000001}",
               "expected audience");
        /* a token of another issuer is for another authenticator, so no reason is given */
        assert_int_equal(accept(&defaults,
                                "{\"iss\":\"https://"
                                "x\",\"aud\":\"me\",\"sub\":\"j\",\"exp\":1000001}",
                                &status),
                         HF_E_UNAUTHORIZED);
        assert_string_equal(status.message, "");
}

static void test_required_claims_must_be_there(void **state) {
        static const char *const required[] = {"a=1", "b.c=x=y", NULL};
        struct hfd_id_token_rules rules = defaults;

        rules.required = required;
        expect(&rules, CLAIMS(",\"a\":\"1\",\"b.c\":\"x=y\""), ISSUER "#jane");
        refuse(&rules, CLAIMS(",\"a\":\"1\""), "oidc: required claim b.c not present in ID token");
        refuse(&rules, CLAIMS(",\"a\":\"2\",\"b.c\":\"x=y\""),
               "oidc: required claim a value does not match. Got = 2, want = 1");
        refuse(&rules, CLAIMS(",\"a\":1,\"b.c\":\"x=y\""), "oidc: parse claim a");
}

/* ---- keys ---- */

/* A set with the key of the identity, which signs. */
static struct hfd_jwt_key_set *signer_of(const struct x509_identity *identity) {
        struct hfd_jwt_key_set *set = hfd_jwt_key_set_new();
        struct hf_status status;

        assert_int_equal(hfd_jwt_key_set_add(set, "key", identity->key_pem, true, &status), 0);
        return set;
}

static void test_a_published_key_verifies_what_it_has_signed(void **state) {
        struct x509_identity identity = x509_identity_make("a", "a", NULL, true, 3600);
        struct hfd_jwt_key_set *signer = signer_of(&identity), *keys = hfd_jwt_key_set_new();
        struct hf__strbuf published = {0}, token = {0};
        struct hf__json *jwks, *claims = NULL;
        char *key_id = NULL;
        size_t n;

        hfd_jwt_key_set_put(signer, &published);
        assert_int_equal(hf__json_parse(published.data, published.n, &jwks, NULL), 0);
        assert_int_equal(hfd_jwt_sign(hfd_jwt_key_set_signer(signer), "{\"iss\":\"i\"}", 11,
                                      &token),
                         0);
        const char *id = hfd_jwt_key_id(hfd_jwt_key_set_signer(signer));
        const char *algorithm = hfd_jwt_key_algorithm(hfd_jwt_key_set_signer(signer));
        assert_int_equal(hfd_jwt_peek(token.data, &claims, &key_id), 0);
        assert_true(hf__json_has_text(claims, "iss", "i"));
        assert_string_equal(key_id, id);
        claims = hf__json_free(claims);
        free(key_id);
        /* the set has only keys of another algorithm, so none is added */
        assert_int_equal(hfd_jwt_key_set_add_jwks(keys, jwks, NULL,
                                                  algorithm[0] == 'R' ? "ES256" : "RS256", &n),
                         0);
        assert_int_equal(n, 0);
        assert_int_equal(hfd_jwt_verify(keys, token.data, &claims), HF_E_UNAUTHORIZED);
        assert_false(hfd_jwt_key_set_has(keys, id));
        assert_int_equal(hfd_jwt_key_set_add_jwks(keys, jwks, NULL, "RS256,ES256", &n), 0);
        assert_int_equal(n, 1);
        assert_true(hfd_jwt_key_set_has(keys, id));
        assert_int_equal(hfd_jwt_verify(keys, token.data, &claims), 0);
        hf__json_free(claims);
        hf__json_free(jwks);
        hf__strbuf_done(&published);
        hf__strbuf_done(&token);
        hfd_jwt_key_set_unref(keys);
        hfd_jwt_key_set_unref(signer);
        x509_identity_deinit(&identity);
}

static void test_keys_that_cannot_be_used_are_left_out(void **state) {
        static const char *const sets[] = {
                "{}",
                "{\"keys\":{}}",
                "{\"keys\":[1,null,{}]}",
                "{\"keys\":[{\"kty\":\"oct\",\"k\":\"AAAA\"}]}",
                "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"}]}",
                "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"!\",\"e\":\"AQAB\"}]}",
                "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-384\",\"x\":\"AA\",\"y\":\"AA\"}]}",
                /* 32 bytes of zeros, which are no point of the curve */
                "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":"
                "\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\","
                "\"y\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}]}",
        };

        for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
                struct hfd_jwt_key_set *keys = hfd_jwt_key_set_new();
                struct hf__json *json;
                size_t n = 1;
                assert_int_equal(hf__json_parse(sets[i], strlen(sets[i]), &json, NULL), 0);
                assert_int_equal(hfd_jwt_key_set_add_jwks(keys, json, NULL, "RS256,ES256", &n), 0);
                assert_int_equal(n, 0);
                assert_null(hfd_jwt_key_set_at(keys, 0));
                hf__json_free(json);
                hfd_jwt_key_set_unref(keys);
        }
}

/* A set may have any number of members. The one that is wanted is found among them, the others are
 * tried up to a limit. */
static void test_the_key_that_is_wanted_comes_first(void **state) {
        struct x509_identity identity = x509_identity_make("a", "a", NULL, true, 3600);
        struct hfd_jwt_key_set *signer = signer_of(&identity);
        const char *id = hfd_jwt_key_id(hfd_jwt_key_set_signer(signer));
        struct hf__strbuf text = {0};
        struct hf__json *jwks;

        hfd_jwt_key_set_put(signer, &text);
        assert_int_equal(text.error, 0);
        struct hf__strbuf many = {0};
        hf__strbuf_puts(&many, "{\"keys\":[");
        for (int i = 0; i < HFD_JWT_TRIED_MAX; i++)
                hf__strbuf_puts(&many, "{\"kty\":\"oct\"},");
        hf__strbuf_puts(&many, text.data + strlen("{\"keys\":["));
        assert_int_equal(hf__json_parse(many.data, many.n, &jwks, NULL), 0);
        for (int wanted = 0; wanted < 2; wanted++) {
                struct hfd_jwt_key_set *keys = hfd_jwt_key_set_new();
                size_t n;
                assert_int_equal(hfd_jwt_key_set_add_jwks(keys, jwks, wanted ? id : "other",
                                                          "RS256,ES256", &n),
                                 0);
                assert_int_equal(n, wanted);
                assert_int_equal(hfd_jwt_key_set_has(keys, id), wanted);
                hfd_jwt_key_set_unref(keys);
        }
        hf__json_free(jwks);
        hf__strbuf_done(&many);
        hf__strbuf_done(&text);
        hfd_jwt_key_set_unref(signer);
        x509_identity_deinit(&identity);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_user_is_a_claim_with_a_prefix),
                cmocka_unit_test(test_groups_are_a_text_or_a_list),
                cmocka_unit_test(test_the_token_must_be_for_this_client_and_now),
                cmocka_unit_test(test_required_claims_must_be_there),
                cmocka_unit_test(test_a_published_key_verifies_what_it_has_signed),
                cmocka_unit_test(test_keys_that_cannot_be_used_are_left_out),
                cmocka_unit_test(test_the_key_that_is_wanted_comes_first),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
