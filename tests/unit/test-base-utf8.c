/* SPDX-License-Identifier: Apache-2.0 */
/* Which text is UTF-8, and how many and how long its characters are; the functions of text.h. */
#undef NDEBUG
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/text.h"
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
        /* Eight bytes of ASCII are counted at once, wherever they are. */
        for (size_t at = 0; at <= 20; at++) {
                char text[24];

                memset(text, 'a', sizeof text);
                memcpy(text + at, "\xe2\x82\xac", 3);
                for (size_t n = at + 3; n <= sizeof text; n++)
                        assert_int_equal(hf__utf8_count(text, n), n - 2);
        }
}

/* The first and the last character of each length, both ways. */
static void test_characters_are_written_as_they_are_read(void **state) {
        static const uint32_t characters[] = {0,      0x7f,   0x80,   0x7ff,   0x800,
                                              0xd7ff, 0xe000, 0xffff, 0x10000, 0x10ffff};

        for (size_t i = 0; i < sizeof characters / sizeof characters[0]; i++) {
                char text[HF__UTF8_MAX];
                uint32_t read = 1;
                size_t n = hf__utf8_encode(characters[i], text);

                assert_int_equal(hf__utf8_decode(text, n, &read), n);
                assert_int_equal(read, characters[i]);
        }
}

static void test_the_next_character_is_found(void **state) {
        static const char text[] = "a\xe2\x82\xac\xf0\x9f\x98\x80";

        assert_int_equal(hf__utf8_next(text, 8, 0), 1);
        assert_int_equal(hf__utf8_next(text, 8, 1), 4);
        assert_int_equal(hf__utf8_next(text, 8, 4), 8);
}

/* ---- text.h ---- */

static void test_hexadecimal_digits_have_a_value(void **state) {
        const char *digits = "0123456789abcdef0123456789ABCDEF";

        for (int c = CHAR_MIN; c <= CHAR_MAX; c++) {
                const char *found = c != 0 ? strchr(digits, c) : NULL;

                assert_int_equal(hf__hex_digit((char)c), found ? (found - digits) % 16 : -1);
                assert_int_equal(hf__is_digit((char)c), found && hf__hex_digit((char)c) < 10);
        }
}

static void test_texts_are_found_in_lists(void **state) {
        const char *const list[] = {"b", "bc", NULL};

        assert_true(hf__text_is_one_of("b", list) && hf__text_is_one_of("bc", list));
        assert_false(hf__text_is_one_of("", list) || hf__text_is_one_of("bcd", list));
        assert_true(hf__text_begins_with("bcd", "bc") && hf__text_begins_with("b", ""));
        assert_false(hf__text_begins_with("b", "bc"));
        assert_true(hf__text_compare(&list[0], &list[1]) < 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_valid_and_invalid_text_is_told_apart),
                cmocka_unit_test(test_errors_are_found_at_every_offset),
                cmocka_unit_test(test_the_length_of_a_character_is_known),
                cmocka_unit_test(test_characters_are_counted),
                cmocka_unit_test(test_characters_are_written_as_they_are_read),
                cmocka_unit_test(test_the_next_character_is_found),
                cmocka_unit_test(test_hexadecimal_digits_have_a_value),
                cmocka_unit_test(test_texts_are_found_in_lists),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
