/* SPDX-License-Identifier: Apache-2.0 */
/* Which text is UTF-8, and how many and how long its characters are. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/utf8.h"

static void test_valid_and_invalid_text_is_told_apart(void **state) {
        static const char *const good[] = {"",
                                           "plain",
                                           "\xc3\xa9\xe2\x98\x83",
                                           "\xf0\x9f\x98\x80",
                                           "\xf4\x8f\xbf\xbf",
                                           "\xed\x9f\xbf",
                                           "\xee\x80\x80"};
        static const char *const bad[] = {"\x80",
                                          "\xc3",
                                          "a\xc3(",
                                          "\xc0\xaf",
                                          "\xe0\x80\xaf",
                                          "\xed\xa0\x80",
                                          "\xf4\x90\x80\x80",
                                          "\xff",
                                          "\xe2\x98",
                                          "\xf0\x8f\xbf\xbf"};

        for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
                assert_true(hf__utf8_valid(good[i], strlen(good[i])));
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
                assert_false(hf__utf8_valid(bad[i], strlen(bad[i])));
}

/* ASCII text is checked eight bytes at a time, so errors are tried at every offset. */
static void test_errors_are_found_at_every_offset(void **state) {
        char text[64];

        for (size_t at = 0; at < sizeof text; at++) {
                memset(text, 'a', sizeof text);
                assert_true(hf__utf8_valid(text, sizeof text));
                text[at] = (char)0xff;
                assert_false(hf__utf8_valid(text, sizeof text));
                text[at] = (char)0xc3;
                assert_false(hf__utf8_valid(text, sizeof text));
                if (at + 1 < sizeof text) {
                        text[at + 1] = (char)0xa9;
                        assert_true(hf__utf8_valid(text, sizeof text));
                        assert_false(hf__utf8_valid(text, at + 1)); /* cut within a character */
                }
        }
}

static void test_the_length_of_a_character_is_known(void **state) {
        assert_int_equal(hf__utf8_length("a", 1), 1);
        assert_int_equal(hf__utf8_length("\xc3\xa9z", 3), 2);
        assert_int_equal(hf__utf8_length("\xe2\x82\xac", 3), 3);
        assert_int_equal(hf__utf8_length("\xe2\x82\xac", 2), 0);
        assert_int_equal(hf__utf8_length("\xf0\x9f\x98\x80", 4), 4);
        assert_int_equal(hf__utf8_length("\x80", 1), 0);
        assert_int_equal(hf__utf8_length("\0", 1), 1);
}

static void test_characters_are_counted(void **state) {
        assert_int_equal(hf__utf8_count("", 0), 0);
        assert_int_equal(hf__utf8_count("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 10), 4);
        assert_int_equal(hf__utf8_count("\0\0", 2), 2);
        assert_int_equal(hf__utf8_count("\x80\x80\x80", 3), 3);
        assert_int_equal(hf__utf8_count("a\xe2\x82", 3), 3); /* cut within a character */
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_valid_and_invalid_text_is_told_apart),
                cmocka_unit_test(test_errors_are_found_at_every_offset),
                cmocka_unit_test(test_the_length_of_a_character_is_known),
                cmocka_unit_test(test_characters_are_counted),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
