/* SPDX-License-Identifier: Apache-2.0 */
/* The claims of a service account's token: the written ones, and those that must be refused. */
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

#include "base/json.h"
#include "base/strbuf.h"
#include "server/service_accounts/claims.h"

static const char *const issuers[] = {"https://issuer", "https://old", NULL};

static const char text[] =
        "{\"aud\":[\"api\",\"vault\"],\"exp\":2000,\"iat\":1000,\"iss\":\"https://issuer\","
        "\"jti\":\"id\",\"kubernetes.io\":{\"namespace\":\"ns\",\"secret\":{\"name\":\"s\","
        "\"uid\":\"u2\"},\"serviceaccount\":{\"name\":\"sa\",\"uid\":\"u1\"}},\"nbf\":1000,"
        "\"sub\":\"system:serviceaccount:ns:sa\"}";

static struct hf__json *parse(const char *json) {
        struct hf__json *object = NULL;

        assert(hf__json_parse(json, strlen(json), &object, NULL) == 0);
        return object;
}

static void test_claims_are_those_of_kubernetes(void **state) {
        struct hf__json *audiences = parse("[\"api\",\"vault\"]"), *json;
        const struct hfd_account_claims claims = {.ns = "ns",
                                                  .account = "sa",
                                                  .account_uid = "u1",
                                                  .secret = "s",
                                                  .secret_uid = "u2",
                                                  .id = "id",
                                                  .issued = 1000,
                                                  .expires = 2000,
                                                  .audiences = audiences};
        struct hfd_account_claims found;
        struct hf__strbuf out = {0};

        hfd_account_claims_put(&claims, issuers[0], &out);
        assert_string_equal(out.data, text);
        json = parse(out.data);
        assert_int_equal(hfd_account_claims_read(json, issuers, &found, NULL), 0);
        assert_string_equal(found.ns, "ns");
        assert_string_equal(found.account, "sa");
        assert_string_equal(found.account_uid, "u1");
        assert_string_equal(found.secret, "s");
        assert_string_equal(found.secret_uid, "u2");
        assert_string_equal(found.id, "id");
        assert_int_equal(found.expires, 2000);
        assert_true(hf__json_equal(found.audiences, audiences));
        hf__json_free(json);
        hf__json_free(audiences);
        hf__strbuf_done(&out);
}

static const char of_secret[] = "{\"iss\":\"kubernetes/serviceaccount\",\"jti\":\"id\","
                                "\"kubernetes.io/serviceaccount/namespace\":\"ns\","
                                "\"kubernetes.io/serviceaccount/secret.name\":\"s\","
                                "\"kubernetes.io/serviceaccount/service-account.name\":\"sa\","
                                "\"kubernetes.io/serviceaccount/service-account.uid\":\"u1\","
                                "\"sub\":\"system:serviceaccount:ns:sa\"}";

static void refused_of_secret(const char *key, const char *value, const char *why) {
        struct hf__json *json = parse(of_secret);
        struct hfd_account_claims claims;
        struct hf_status status = {0};

        assert(hf__json_put_string(json, key, value) == 0);
        assert_int_equal(hfd_account_claims_read(json, issuers, &claims, &status),
                         HF_E_UNAUTHORIZED);
        assert_string_equal(status.message, why);
        hf__json_free(json);
}

static void test_tokens_in_secrets_have_the_claims_of_kubernetes(void **state) {
        const struct hfd_account_claims claims = {.ns = "ns",
                                                  .account = "sa",
                                                  .account_uid = "u1",
                                                  .secret = "s",
                                                  .id = "id",
                                                  .of_secret = true};
        struct hfd_account_claims found;
        struct hf__strbuf out = {0};

        hfd_account_claims_put(&claims, issuers[0], &out);
        assert_string_equal(out.data, of_secret);
        struct hf__json *json = parse(out.data);
        assert_int_equal(hfd_account_claims_read(json, issuers, &found, NULL), 0);
        assert_true(found.of_secret);
        assert_string_equal(found.secret, "s");
        assert_string_equal(found.account_uid, "u1");
        assert_true(found.expires == INT64_MAX);
        hf__json_free(json);
        hf__strbuf_done(&out);
        refused_of_secret("sub", "system:serviceaccount:ns:other", "sub claim is invalid");
        refused_of_secret("kubernetes.io/serviceaccount/namespace", "",
                          "namespace claim is missing");
        refused_of_secret("kubernetes.io/serviceaccount/secret.name", "",
                          "secretName claim is missing");
        refused_of_secret("kubernetes.io/serviceaccount/service-account.name", "",
                          "serviceAccountName claim is missing");
        refused_of_secret("kubernetes.io/serviceaccount/service-account.uid", "",
                          "serviceAccountUID claim is missing");
}

static void test_names_are_utf8(void **state) {
        static const char subject[] = "system:serviceaccount:ns:\xfe";
        static const char name[] = "kubernetes.io/serviceaccount/service-account.name";
        const char *const forms[] = {text, of_secret};

        for (size_t i = 0; i < 2; i++) {
                struct hf__json *json = parse(forms[i]);
                struct hf__json *own = hf__json_get(json, "kubernetes.io");
                struct hfd_account_claims claims;
                struct hf_status status = {0};

                assert(hf__json_put_string(json, "sub", subject) == 0);
                assert(i == 0 ? hf__json_put_string(hf__json_get(own, "serviceaccount"), "name",
                                                    "\xfe") == 0
                              : hf__json_put_string(json, name, "\xfe") == 0);
                assert_int_equal(hfd_account_claims_read(json, issuers, &claims, &status),
                                 HF_E_UNAUTHORIZED);
                hf__json_free(json);
        }
}

/* The result of the claims with a member set to a value; value NULL = without the member. */
static int read_with(const char *object, const char *key, const char *value,
                     struct hf_status *status) {
        struct hf__json *json = parse(text), *at = *object ? hf__json_get(json, object) : json;
        struct hfd_account_claims claims;

        if (value)
                assert(hf__json_put(at, key, parse(value)) == 0);
        else
                hf__json_drop(at, key);
        *status = (struct hf_status){0};
        int r = hfd_account_claims_read(json, issuers, &claims, status);
        hf__json_free(json);
        return r;
}

static void test_incomplete_claims_are_refused(void **state) {
        static const struct {
                const char *object, *key, *value;
        } cases[] = {{"", "sub", NULL},
                     {"", "sub", "\"system:serviceaccount:ns:other\""},
                     {"", "sub", "\"system:serviceaccount:ns:sa:x\""},
                     {"", "sub", "\"system:serviceaccount:n:sa\""},
                     {"", "sub", "\"root\""},
                     {"", "sub", "1"},
                     {"", "exp", NULL},
                     {"", "exp", "\"2000\""},
                     {"", "exp", "1.5"},
                     {"", "exp", "1e300"},
                     {"", "iat", NULL},
                     {"", "aud", NULL},
                     {"", "aud", "\"api\""},
                     {"", "aud", "[1]"},
                     {"", "aud", "{}"},
                     {"", "kubernetes.io", NULL},
                     {"", "kubernetes.io", "[]"},
                     {"kubernetes.io", "namespace", NULL},
                     {"kubernetes.io", "namespace", "\"\""},
                     {"kubernetes.io", "namespace", "\"other\""},
                     {"kubernetes.io", "serviceaccount", NULL},
                     {"kubernetes.io", "serviceaccount", "{\"name\":\"sa\"}"},
                     {"kubernetes.io", "serviceaccount", "{\"name\":\"sa\",\"uid\":\"\"}"},
                     {"kubernetes.io", "serviceaccount", "{\"uid\":\"u1\"}"},
                     {"kubernetes.io", "secret", "{}"},
                     {"kubernetes.io", "secret", "null"},
                     {"kubernetes.io", "secret", "{\"name\":\"s\",\"uid\":\"\"}"},
                     {"kubernetes.io", "pod", "{\"name\":\"p\",\"uid\":\"u3\"}"},
                     {"kubernetes.io", "node", "{\"name\":\"n\",\"uid\":\"u3\"}"}};
        struct hf_status status;

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                int r = read_with(cases[i].object, cases[i].key, cases[i].value, &status);
                if (r != HF_E_UNAUTHORIZED || !*status.message)
                        fail_msg("%s %s: %d %s", cases[i].key, cases[i].value, r, status.message);
        }
        assert_int_equal(read_with("kubernetes.io", "secret", NULL, &status), 0);
        assert_int_equal(read_with("", "jti", NULL, &status), 0);
}

static void test_only_known_issuers_are_accepted(void **state) {
        struct hf_status status;

        assert_int_equal(read_with("", "iss", "\"https://old\"", &status), 0);
        assert_int_equal(read_with("", "iss", "\"https://other\"", &status), HF_E_UNAUTHORIZED);
        assert_string_equal(status.message, "");
        assert_int_equal(read_with("", "iss", "\"https://issuer/\"", &status), HF_E_UNAUTHORIZED);
        assert_int_equal(read_with("", "iss", NULL, &status), HF_E_UNAUTHORIZED);
        assert_int_equal(read_with("", "iss", "[\"https://issuer\"]", &status), HF_E_UNAUTHORIZED);
}

static void expect_time(const char *json, int64_t now, const char *why) {
        struct hf__json *object = parse(json);
        struct hf_status status = {0};
        int r = hfd_account_claims_check_time(object, now, &status);

        assert_int_equal(r, why ? HF_E_UNAUTHORIZED : 0);
        assert_string_equal(status.message, why ? why : "");
        hf__json_free(object);
}

static void test_a_token_is_valid_until_its_expiry(void **state) {
        expect_time(text, 1000, NULL);
        expect_time(text, 940, NULL); /* the issuer's clock may be a minute ahead */
        expect_time(text, 939, "service account token is not valid yet");
        expect_time(text, 1999, NULL);
        expect_time(text, 2000, "service account token has expired");
        expect_time(text, INT64_MAX - 100, "service account token has expired");
        expect_time("{\"exp\":2000,\"iat\":1500}", 1000,
                    "service account token is issued in the future");
        expect_time("{\"exp\":2000,\"iat\":1000}", 1000, NULL);
        expect_time("{\"exp\":2000,\"iat\":1000,\"nbf\":\"x\"}", 1000,
                    "service account token is not valid yet");
        expect_time("{\"iat\":1000}", 1000, "service account token has expired");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_claims_are_those_of_kubernetes),
                cmocka_unit_test(test_tokens_in_secrets_have_the_claims_of_kubernetes),
                cmocka_unit_test(test_names_are_utf8),
                cmocka_unit_test(test_incomplete_claims_are_refused),
                cmocka_unit_test(test_only_known_issuers_are_accepted),
                cmocka_unit_test(test_a_token_is_valid_until_its_expiry),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
