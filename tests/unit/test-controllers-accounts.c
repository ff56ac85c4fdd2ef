/* SPDX-License-Identifier: Apache-2.0 */
/* The decisions of the token controller about a Secret, and the fields that it writes. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "server/controllers/accounts/token_secret_core.h"

#define NAME "\"kubernetes.io/service-account.name\":\"sa\""
#define UID  "\"kubernetes.io/service-account.uid\":\"u\""

static struct hf__json *parsed(const char *text) {
        struct hf__json *json = NULL;

        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        return json;
}

static const char *data_of(const struct hf__json *secret, const char *key) {
        return hf__json_text(hf__json_get(hf__json_get(secret, "data"), key));
}

static void test_a_secret_is_of_the_account_that_it_names(void **state) {
        struct hf__json *by_name = parsed("{\"metadata\":{\"annotations\":{" NAME "}}}"),
                        *by_uid = parsed("{\"metadata\":{\"annotations\":{" NAME "," UID "}}}"),
                        *none = parsed("{\"metadata\":{}}");

        assert_string_equal(hfd_token_secret_account(by_name), "sa");
        assert_null(hfd_token_secret_account(none));
        assert_true(hfd_token_secret_is_of(by_name, "u"));
        assert_true(hfd_token_secret_is_of(by_uid, "u"));
        assert_false(hfd_token_secret_is_of(by_uid, "v"));
        hf__json_free(by_name);
        hf__json_free(by_uid);
        hf__json_free(none);
}

static void test_a_filled_secret_lacks_nothing(void **state) {
        struct hf__json *secret = parsed("{\"metadata\":{\"annotations\":{" NAME "}}}");

        assert_int_equal(hfd_token_secret_lacks(secret, "pem"),
                         HFD_LACKS_TOKEN | HFD_LACKS_CA | HFD_LACKS_NAMESPACE | HFD_LACKS_UID);
        assert_int_equal(hfd_token_secret_fill(secret, "t", "pem", "ns", "u"), 0);
        assert_int_equal(hfd_token_secret_lacks(secret, "pem"), 0);
        assert_string_equal(data_of(secret, "token"), "dA==");
        assert_string_equal(data_of(secret, "ca.crt"), "cGVt");
        assert_string_equal(data_of(secret, "namespace"), "bnM=");
        assert_true(hfd_token_secret_is_of(secret, "u"));
        assert_false(hfd_token_secret_is_of(secret, "v"));
        /* Another CA replaces the old one; the token and the namespace stay. */
        assert_int_equal(hfd_token_secret_lacks(secret, "other"), HFD_LACKS_CA);
        assert_int_equal(hfd_token_secret_fill(secret, NULL, "other", "x", "u"), 0);
        assert_int_equal(hfd_token_secret_lacks(secret, "other"), 0);
        assert_string_equal(data_of(secret, "token"), "dA==");
        assert_string_equal(data_of(secret, "namespace"), "bnM=");
        hf__json_free(secret);
}

/* Without a signing key there can be no token, but the other fields are filled in. */
static void test_a_secret_without_a_token_still_lacks_it(void **state) {
        struct hf__json *secret = parsed("{\"metadata\":{\"annotations\":{" NAME "}},\"data\":{"
                                         "\"x\":\"eA==\"}}");

        assert_int_equal(hfd_token_secret_fill(secret, NULL, "pem", "ns", "u"), 0);
        assert_int_equal(hfd_token_secret_lacks(secret, "pem"), HFD_LACKS_TOKEN);
        assert_string_equal(data_of(secret, "x"), "eA==");
        hf__json_free(secret);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_secret_is_of_the_account_that_it_names),
                cmocka_unit_test(test_a_filled_secret_lacks_nothing),
                cmocka_unit_test(test_a_secret_without_a_token_still_lacks_it),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
