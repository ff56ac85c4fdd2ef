/* SPDX-License-Identifier: Apache-2.0 */
/* Base64: the test vectors of RFC 4648, and what each decoder accepts. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/base64.h"
#include "base/strbuf.h"

/* RFC 4648, section 10. */
static const char *const vectors[][2] = {{"", ""},
                                         {"f", "Zg=="},
                                         {"fo", "Zm8="},
                                         {"foo", "Zm9v"},
                                         {"foob", "Zm9vYg=="},
                                         {"fooba", "Zm9vYmE="},
                                         {"foobar", "Zm9vYmFy"}};
#define N_VECTORS (sizeof vectors / sizeof vectors[0])

static void test_encodes_the_rfc_examples(void **state) {
        static const unsigned char high[] = {0xfb, 0xff, 0xfe};

        for (size_t i = 0; i < N_VECTORS; i++) {
                struct hf__strbuf padded = {0}, url = {0};
                hf__base64_encode(&padded, vectors[i][0], strlen(vectors[i][0]));
                assert_string_equal(padded.data ? padded.data : "", vectors[i][1]);
                hf__base64url_encode(&url, vectors[i][0], strlen(vectors[i][0]));
                assert_int_equal(url.n, strcspn(vectors[i][1], "="));
                assert_memory_equal(url.data ? url.data : "", vectors[i][1], url.n);
                hf__strbuf_done(&padded);
                hf__strbuf_done(&url);
        }
        struct hf__strbuf padded = {0}, url = {0}, limited = {.max = 3};
        hf__base64_encode(&padded, high, sizeof high);
        assert_string_equal(padded.data, "+//+");
        hf__base64url_encode(&url, high, sizeof high);
        assert_string_equal(url.data, "-__-");
        hf__base64_encode(&limited, high, sizeof high);
        assert_int_equal(limited.error, HF_E_TOO_LARGE);
        hf__strbuf_done(&padded);
        hf__strbuf_done(&url);
        hf__strbuf_done(&limited);
}

static void check_decode(const char *text, size_t n, const char *expected) {
        char *data = NULL;
        size_t n_data = 0;
        int r = hf__base64_decode(text, n, &data, &n_data);

        assert_int_equal(r, expected ? 0 : HF_E_INVALID);
        if (expected) {
                assert_string_equal(data, expected);
                assert_int_equal(n_data, strlen(expected));
        } else {
                assert_null(data);
        }
        free(data);
}

static void test_decodes_valid_text_only(void **state) {
        static const char *const bad[] = {"Z",     "Zg",       "Zg=",      "Zg===", "=",
                                          "====",  "Z===",     "Zm=v",     "Zm9v=", "Zm9vZ===",
                                          "Z-9v",  "Zg==Zg==", "Zm9v!",    "Zg==Z", "Zg= =v",
                                          "Zm9v_", "Zm9v\v",   "Zm9v\xff", "Zg=a"};

        for (size_t i = 0; i < N_VECTORS; i++)
                check_decode(vectors[i][1], strlen(vectors[i][1]), vectors[i][0]);
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
                check_decode(bad[i], strlen(bad[i]), NULL);
        check_decode("Zm9v\nYmE=\n", 10, "fooba");
        check_decode(" Zm\t9v\r\n Zg = = ", 15, "foof");
        check_decode("Zm9v\0", 5, NULL);
        check_decode("Zm9vZm", 4, "foo");
        check_decode("Zh==", 4, "f"); /* unused bits of the last digit are ignored */
}

/* The offsets are those of Go's base64.StdEncoding. */
static void test_reports_the_offset_of_go(void **state) {
        static const struct {
                const char *text;
                size_t at;
        } bad[] = {
                /* a byte does not fit */
                {"=", 0},
                {"====", 0},
                {" ", 0},
                {"\n=", 1},
                {"Z===", 1},
                {"Z\n=", 2},
                {"Z-9v", 1},
                {"Zm 9v", 2},
                {"Zm\t9v", 2},
                {"Zm9v!", 4},
                {"Zm9v_", 4},
                {"Zm9v\xff", 4},
                {"Zm9v=", 4},
                {"Zm9v\n=", 5},
                {"Zm9vZ===", 5},
                /* it follows the padding */
                {"Zg===", 4},
                {"Zg==Zg==", 4},
                {"Zg==\n=", 5},
                {"Zm8=a", 4},
                {"Zm8=\r\n=", 6},
                /* it stands where a second "=" belongs */
                {"Zm=v", 2},
                {"Zg=\na", 3},
                {"Zg=\r\n\n!", 5},
                {"Zg= =", 2},
                {"Zm9vYm=yZm9v", 6},
                /* the text ends there */
                {"Zg=", 3},
                {"Zg=\n\n", 5},
                /* it ends elsewhere in a group */
                {"Z", 0},
                {"Zg", 0},
                {"abc", 0},
                {"admin", 4},
                {"Zm9vYmFyZm9vYmF", 12},
                {"Zm9v\nZg", 5},
                {"Z\ng", 1},
                {"Zg\n\n", 2},
        };
        size_t n;

        for (size_t i = 0; i < N_VECTORS; i++) {
                assert_true(hf__base64_check(vectors[i][1], &n));
                assert_int_equal(n, strlen(vectors[i][0]));
        }
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
                assert_false(hf__base64_check(bad[i].text, &n));
                assert_int_equal(n, bad[i].at);
        }
        assert_true(hf__base64_check("Zm9v\nYmFy\r\n", &n));
        assert_int_equal(n, 6);
        assert_true(hf__base64_check("Zg\n=\r=\n", &n));
        assert_int_equal(n, 1);
        assert_true(hf__base64_check("Zh==", &n));
}

static void test_decodes_the_url_alphabet(void **state) {
        static const char *const bad[] = {"Zg==", "Zm9v\n", "Zm 9v", "Zm9+", "Zm9/", "\xff"};
        char data[HF__BASE64URL_DECODED_MAX(8)];
        size_t n;

        for (size_t i = 0; i < N_VECTORS; i++) {
                size_t n_digits = strcspn(vectors[i][1], "=");
                assert_true(hf__base64url_decode(vectors[i][1], n_digits, data, &n));
                assert_int_equal(n, strlen(vectors[i][0]));
                assert_memory_equal(data, vectors[i][0], n);
        }
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
                assert_false(hf__base64url_decode(bad[i], strlen(bad[i]), data, &n));
        assert_false(hf__base64url_decode("Zm9v\0", 5, data, &n));
        assert_true(hf__base64url_decode("-__-", 4, data, &n));
        assert_int_equal(n, 3);
        assert_memory_equal(data, "\xfb\xff\xfe", 3);
        assert_true(hf__base64url_decode("Zm9vZ", 5, data, &n));
        assert_int_equal(n, 3);
}

/* Encoded bytes decode to the same bytes, for every length of the last group. */
static void test_every_length_survives_the_round_trip(void **state) {
        unsigned char bytes[256];

        for (size_t i = 0; i < sizeof bytes; i++)
                bytes[i] = (unsigned char)(i * 167 + 13);
        for (size_t n = 0; n <= sizeof bytes; n++) {
                struct hf__strbuf padded = {0}, url = {0};
                char *decoded = NULL, url_decoded[HF__BASE64URL_DECODED_MAX(342)];
                size_t n_decoded, n_checked;

                hf__base64_encode(&padded, bytes, n);
                hf__base64url_encode(&url, bytes, n);
                assert_int_equal(padded.n, (n + 2) / 3 * 4);
                assert_int_equal(hf__base64_decode(padded.data, padded.n, &decoded, &n_decoded), 0);
                assert_int_equal(n_decoded, n);
                assert_memory_equal(decoded, bytes, n);
                assert_true(hf__base64_check(padded.data ? padded.data : "", &n_checked));
                assert_int_equal(n_checked, n);
                assert_true(hf__base64url_decode(url.data, url.n, url_decoded, &n_decoded));
                assert_int_equal(n_decoded, n);
                assert_memory_equal(url_decoded, bytes, n);
                free(decoded);
                hf__strbuf_done(&padded);
                hf__strbuf_done(&url);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_encodes_the_rfc_examples),
                cmocka_unit_test(test_decodes_valid_text_only),
                cmocka_unit_test(test_reports_the_offset_of_go),
                cmocka_unit_test(test_decodes_the_url_alphabet),
                cmocka_unit_test(test_every_length_survives_the_round_trip),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
