/* SPDX-License-Identifier: Apache-2.0 */
/* Percent-decoding. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/percent.h"

static int decode(const char *text, bool plus, char *ret_text, size_t max) {
        return hf__percent_decode(text, strlen(text), plus, ret_text, max);
}

static void test_escapes_are_decoded(void **state) {
        static const struct {
                const char *text;
                bool plus;
                const char *decoded;
        } cases[] = {
                {"", false, ""},
                {"", true, ""},
                {"plain", false, "plain"},
                {"plain", true, "plain"},
                {"a+b", false, "a+b"},
                {"a+b", true, "a b"},
                {"a%2Bb+", true, "a+b "},
                {"%41%6a%6A", false, "Ajj"},
                {"metadata.name%3Dx%2Cy", true, "metadata.name=x,y"},
                {"%2525", false, "%25"},
                {"%C3%a9", true, "\xc3\xa9"},
                {"\xc3\xa9", false, "\xc3\xa9"},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                char out[64];
                int n = decode(cases[i].text, cases[i].plus, out, sizeof out);
                assert_int_equal(n, strlen(cases[i].decoded));
                assert_string_equal(out, cases[i].decoded);
        }
}

/* The decoder reads texts eight bytes at a time. */
static void test_a_character_is_decoded_at_every_place(void **state) {
        for (int n = 1; n < 20; n++)
                for (int at = 0; at < n; at++) {
                        char text[32], expected[32], out[32];

                        memset(expected, 'a', (size_t)n);
                        expected[n] = '\0';
                        memcpy(text, expected, (size_t)at);
                        memcpy(text + at, "%61", 3);
                        memcpy(text + at + 3, expected + at + 1, (size_t)(n - at));
                        assert_int_equal(decode(text, false, out, sizeof out), n);
                        assert_string_equal(out, expected);
                        expected[at] = '\xff'; /* is not UTF-8 */
                        assert_int_equal(decode(expected, false, out, sizeof out), -1);
                        expected[at] = '\0';
                        int r = hf__percent_decode(expected, (size_t)n, false, out, sizeof out);
                        assert_int_equal(r, -1);
                }
}

static void test_refuses_bad_encodings(void **state) {
        static const char *const bad[] = {
                "%",     "a%",  "%4",    "%g1",       "%1g",    "%%41",
                "a%00b", "%C3", "a\xff", "%ED%A0%80", "%C0%AF", "%fF",
        };
        char out[64];

        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
                assert_int_equal(decode(bad[i], false, out, sizeof out), -1);
                assert_int_equal(decode(bad[i], true, out, sizeof out), -1);
        }
        /* Only the given bytes count, so an escape must not continue behind them. */
        assert_int_equal(hf__percent_decode("%41", 2, false, out, sizeof out), -1);
        assert_int_equal(hf__percent_decode("a\0b", 3, false, out, sizeof out), -1);
        assert_int_equal(hf__percent_decode("a\0b", 3, true, out, sizeof out), -1);
}

static void test_refuses_what_does_not_fit(void **state) {
        char out[4];

        for (int plus = 0; plus <= 1; plus++) {
                assert_int_equal(decode("abc", plus, out, 4), 3);
                assert_string_equal(out, "abc");
                assert_int_equal(decode("%61%62%63", plus, out, 4), 3);
                assert_string_equal(out, "abc");
                assert_int_equal(decode("abcd", plus, out, 4), -1);
                assert_int_equal(decode("%61bcd", plus, out, 4), -1);
                assert_int_equal(decode("", plus, out, 1), 0);
                assert_int_equal(decode("a", plus, out, 1), -1);
        }
}

/* Every text of up to six characters gives the same result in place as in another buffer. */
static void test_decodes_in_place(void **state) {
        static const char alphabet[] = "%04+a\xc3\xa9";
        const unsigned base = sizeof alphabet - 1;
        unsigned n_texts = 1, n_decoded = 0;

        for (size_t n = 0; n <= 6; n++, n_texts *= base)
                for (unsigned number = 0; number < 2 * n_texts; number++) {
                        char text[8] = "", out[8];
                        bool plus = number % 2;
                        unsigned rest = number / 2;
                        for (size_t i = 0; i < n; i++, rest /= base)
                                text[i] = alphabet[rest % base];
                        int length = hf__percent_decode(text, n, plus, out, n + 1);
                        assert_int_equal(hf__percent_decode(text, n, plus, text, n + 1), length);
                        if (length < 0)
                                continue;
                        assert_string_equal(text, out);
                        n_decoded++;
                }
        assert_true(n_decoded > 10000);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_escapes_are_decoded),
                cmocka_unit_test(test_a_character_is_decoded_at_every_place),
                cmocka_unit_test(test_refuses_bad_encodings),
                cmocka_unit_test(test_refuses_what_does_not_fit),
                cmocka_unit_test(test_decodes_in_place),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
