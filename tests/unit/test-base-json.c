/* SPDX-License-Identifier: Apache-2.0 */
/* JSON: parsing, numbers, members, changes, comparison and printing. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/json_number.h"
#include "base/json_plain.h"
#include "base/strbuf.h"

static struct hf__json *parse(const char *text) {
        struct hf__json *json = NULL;
        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        return json;
}

static void assert_prints(const struct hf__json *json, const char *expected) {
        struct hf__strbuf out = {0};
        hf__json_print(json, &out);
        assert_int_equal(out.error, 0);
        assert_string_equal(out.data, expected);
        hf__strbuf_done(&out);
}

static void test_values_survive_the_round_trip(void **state) {
        static const char *const texts[] = {
                "{}",
                "[]",
                "[1,-2,0.5,1.25e-07,null,true,false]",
                "{\"a\":{\"b\":[{\"c\":\"\\\"\\\\\\n\\u0001\"}]}}",
                "[2147483648,9007199254740991,-9007199254740991,1000000000000000000]",
                "\"\xc3\xa4\"",
                "[0.1,3.141592653589793]",
        };
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
                struct hf__json *json = parse(texts[i]);
                assert_prints(json, texts[i]);
                struct hf__json *copy = hf__json_dup(json);
                assert_true(hf__json_equal(json, copy));
                assert_prints(copy, texts[i]);
                hf__json_free(copy);
                hf__json_free(json);
        }
}

static void assert_refused(const char *text, size_t n) {
        struct hf__json *json = NULL;
        size_t offset = 12345;
        assert_int_equal(hf__json_parse(text, n, &json, &offset), HF_E_INVALID);
        assert_true(offset <= n);
        assert_null(json);
}

static void test_invalid_text_is_refused(void **state) {
        static const char *const texts[] =
                {"",        " ",   "{",   "{}x",        "{} {}",         "[1,]",
                 "{\"a\"}", "nul", "\"a", "{\"a\":1,}", "\"a\\u0000b\"", "\"\\\\\\u0000\""};
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
                assert_refused(texts[i], strlen(texts[i]));
        assert_refused("\"a\0b\"", 5);
        assert_refused("{}\0", 3);
        char deep[4000];
        memset(deep, '[', sizeof deep);
        assert_refused(deep, sizeof deep);
        struct hf__json *fine = parse("\"\\\\u0000\""); /* a backslash, then u0000 */
        assert_string_equal(hf__json_text(fine), "\\u0000");
        hf__json_free(fine);
        fine = parse(" {} \n");
        hf__json_free(fine);
}

/* cJSON itself accepts whatever strtod accepts. */
static void test_control_characters_are_refused(void **state) {
        static const char *const refused[] = {"\"a\nb\"",   "\"a\tb\"",      "\"a\\\\\tb\"",
                                              "\"\x01\"",   "{\f}",          "\v1",
                                              "[1,\x1f 2]", "\xef\xbb\xbf{}"};

        for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
                assert_refused(refused[i], strlen(refused[i]));
        struct hf__json *json = parse("{\n\t\"a\\n\" :\r\n\"\\\"\\t\x7f\"\n}\n");
        assert_string_equal(hf__json_string(json, "a\n"), "\"\t\x7f");
        hf__json_free(json);
}

/* Go reads them so. */
static void test_lone_surrogates_become_the_replacement_character(void **state) {
        static const char *const cases[][2] = {
                {"\"\\ud800\"", "\xef\xbf\xbd"},
                {"\"\\uDC00x\"", "\xef\xbf\xbdx"},
                {"\"\\ud83d\\ude00\\ud83d\"", "\xf0\x9f\x98\x80\xef\xbf\xbd"},
                {"\"\\ud83d\\ud83d\\ude00\"", "\xef\xbf\xbd\xf0\x9f\x98\x80"},
                {"\"\\ud83d\\\\ude00\"", "\xef\xbf\xbd\\ude00"},
                {"\"\\\\ud800\"", "\\ud800"},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__json *json = parse(cases[i][0]);
                assert_string_equal(hf__json_text(json), cases[i][1]);
                hf__json_free(json);
        }
        assert_refused("\"\\ud800", 7);
        assert_refused("\"\\ud8\"", 6);
        assert_refused("\"\\ud8zz\"", 8);
        assert_refused("\\ud800", 6);
}

static void test_numbers_have_the_grammar_of_json(void **state) {
        static const char *const bad[] =
                {"[01]",      "[-01]", "[00]", "[1.]", "[-.5]", "[1.e5]", "[0.5, \"a\\\"1\", 007]",
                 "{\"a\":-}", "[1e]",  "[1e+]"};
        static const char *const good[] = {"[0]",
                                           "[-0]",
                                           "[0.5]",
                                           "[1e5]",
                                           "[1.25E-3]",
                                           "[10]",
                                           "[\"01\", \"\\\\\", 1]",
                                           "{\"01\":1e+2}"};
        struct hf__json *json;

        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
                assert_int_equal(hf__json_parse(bad[i], strlen(bad[i]), &json, NULL), HF_E_INVALID);
        for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
                assert_int_equal(hf__json_parse(good[i], strlen(good[i]), &json, NULL), 0);
                hf__json_free(json);
        }
}

static void test_whole_numbers_are_exact_up_to_64_bits(void **state) {
        static const char *const texts[] = {
                "[9007199254740991,9007199254740992,9007199254740993,-9007199254740993]",
                "{\"a\":{\"1234567890123456789\":\"\\\"-9007199254740993\"}}",
                "[true,9223372036854775807,{\"c\":-9223372036854775808,\"d\":12},0.5]",
                "9007199254740993",
        };
        int64_t value = 0;
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
                struct hf__json *json = parse(texts[i]), *copy = hf__json_dup(json);
                assert_prints(json, texts[i]);
                assert_prints(copy, texts[i]);
                assert_true(hf__json_equal(json, copy));
                hf__json_free(json);
                hf__json_free(copy);
        }
        struct hf__json *a = parse("{\"n\":9007199254740993}"),
                        *b = parse("{\"n\":9007199254740992}");
        assert_false(hf__json_equal(a, b));
        assert_true(hf__json_i64(a, "n", &value) && value == 9007199254740993);
        assert_int_equal(hf__json_set_i64(b, "n", INT64_MIN + 1), 0);
        assert_prints(b, "{\"n\":-9223372036854775807}");
        assert_true(hf__json_i64(b, "n", &value) && value == INT64_MIN + 1);
        hf__json_free(a);
        hf__json_free(b);
        /* Beyond 64 bits a number is a double, as in Kubernetes. */
        a = parse("[9223372036854775808,-9223372036854775809,1e20,9007199254740993.0]");
        assert_prints(a, "[9223372036854775808,-9223372036854775808,100000000000000000000,"
                         "9007199254740992]");
        assert_false(hf__json_integer(hf__json_first(a), &value));
        assert_false(hf__json_integer(hf__json_next(hf__json_first(a)), &value));
        hf__json_free(a);
}

static void test_numbers_that_no_type_holds_are_refused(void **state) {
        char digits[500], text[600];
        const char *const numbers[] = {"1e999", "-1e999", "1e400", digits};
        memset(digits, '9', 400);
        digits[400] = '\0';
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
                struct hf__json *json = NULL;
                size_t offset = 0;
                snprintf(text, sizeof text, "{\"1e999\":[1,\"-2\",{\"a\":%s}]}", numbers[i]);
                assert_int_equal(hf__json_parse(text, strlen(text), &json, &offset),
                                 HF_E_TOO_LARGE);
                assert_int_equal(offset, strstr(text, "a\":") + 3 - text);
                assert_int_equal(hf__json_parse(numbers[i], strlen(numbers[i]), &json, &offset),
                                 HF_E_TOO_LARGE);
                assert_int_equal(offset, 0);
        }
        struct hf__json *tiny = parse("1e-999"); /* is zero */
        hf__json_free(tiny);
}

/* If the installed cJSON reads a longer number, our own check refuses it. */
static void test_a_number_has_at_most_63_bytes(void **state) {
        char text[80] = "[[-1,\"12\"],";
        const size_t begin = strlen(text);
        struct hf__json *json = NULL;

        for (size_t n = 62; n <= 65; n++) {
                size_t offset = 0;
                memset(text + begin, '1', n);
                memcpy(text + begin, "0.", 2);
                memcpy(text + begin + n, "]", 2);
                int expected = n <= 63 ? 0 : HF_E_TOO_LARGE;
                assert_int_equal(hf__json_parse(text, begin + n + 1, &json, &offset), expected);
                if (expected == 0)
                        hf__json_free(json);
                else
                        assert_int_equal(offset, begin);
                assert_int_equal(hf__json_number_check(text, begin + n + 1, &offset), expected);
                assert_int_equal(offset, begin);
        }
}

/* What is printed equals what was parsed, also for a large number that is not written as an
 * integer. */
static void test_a_large_number_equals_what_is_printed(void **state) {
        static const char *const texts[] = {"20031111111111401.6", "1e17", "-9007199254740994.0",
                                            "1e300"};

        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
                struct hf__strbuf s = {0};
                struct hf__json *json = parse(texts[i]);
                hf__json_print(json, &s);
                struct hf__json *again = parse(s.data);
                assert_true(hf__json_equal(json, again) && hf__json_equal(again, json));
                hf__json_free(again);
                hf__json_free(json);
                hf__strbuf_done(&s);
        }
        struct hf__json *a = parse("20031111111111401.6"), *b = parse("20031111111111401");
        assert_false(hf__json_equal(a, b));
        hf__json_free(a);
        hf__json_free(b);
}

/* The digits before the error are part of a string, and must not be checked as a number. */
static void test_digits_of_a_string_are_no_number(void **state) {
        static const char text[] =
                "{\"a\":\"0123456789012345678901234567890123456789012345678901234567"
                "890123456789\\q\"}";
        struct hf__json *json = NULL;
        size_t offset = 0;

        assert_int_equal(hf__json_parse(text, sizeof text - 1, &json, &offset), HF_E_INVALID);
        assert_int_equal(offset, strchr(text, '\\') - text);
}

/* Only texts that are not plain get the careful checks. So a plain text must not contain anything
 * that needs them. */
static void test_plain_texts_need_no_careful_checks(void **state) {
        static const char *const plain[] = {"{}",
                                            "[1,-2,0,-0,999999999999999]",
                                            "{\"a\": [true, false, null]}\r\n\t",
                                            "\"\"",
                                            "\"12345678\"",
                                            "\"\xc3\xa4 and more than eight\"",
                                            "\"1e5\"",
                                            "truefalse" /* cJSON refuses it */};
        static const char *const others[] = {"01",
                                             "-",
                                             "-01",
                                             "1.0",
                                             "1e5",
                                             "1E5",
                                             "1-2",
                                             "+1",
                                             ".5",
                                             "1.",
                                             "NaN",
                                             "Infinity",
                                             "'a'",
                                             "\xef\xbb\xbf{}",
                                             "\"",
                                             "\"abc",
                                             "\"abc\\",
                                             "\xc3\xa4",
                                             "1000000000000000"};
        char text[24] = "\"aaaaaaaaaaaaaaaaaaaa\"";

        for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
                assert_true(hf__json_is_plain(plain[i], strlen(plain[i]), 2));
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
                assert_false(hf__json_is_plain(others[i], strlen(others[i]), 2));
        for (size_t at = 1; at <= 20; at++)
                for (int c = 0; c < 256; c++) {
                        text[at] = (char)c;
                        assert_int_equal(hf__json_is_plain(text, 22, 0),
                                         c >= ' ' && c != '"' && c != '\\');
                        text[at] = 'a';
                }
        for (size_t depth = 1; depth <= HF__JSON_DEPTH_MAX + 1; depth++) {
                char nested[2 * HF__JSON_DEPTH_MAX + 2];
                memset(nested, '[', depth);
                memset(nested + depth, ']', depth);
                assert_int_equal(hf__json_is_plain(nested, 2 * depth, HF__JSON_DEPTH_MAX),
                                 depth <= HF__JSON_DEPTH_MAX);
        }
}

static void test_values_of_plain_strings_are_skipped(void **state) {
        static const char *const values[] = {"\"\"", "[]", "{}", "[\"a\",[],{}]",
                                             "{\"a\":{},\"b\":[{\"c\":\"d\"},\"\xc3\xa4\"]}"};
        static const char *const others[] = {"",
                                             "1",
                                             "null",
                                             "[",
                                             "{",
                                             "\"a",
                                             "[1]",
                                             "[\"a\"",
                                             "[\"a\",]",
                                             "[,]",
                                             "[\"a\" ]",
                                             "[\"a\\n\"]",
                                             "[}",
                                             "{]",
                                             "{\"a\"}",
                                             "{\"a\":}",
                                             "{\"a\":{},}",
                                             "{\"a\" :{}}",
                                             "{{}}",
                                             "[{]}",
                                             "[[}]",
                                             "{\"a\":[}",
                                             "{\"a\":{}\"b\":{}}",
                                             " {}",
                                             "[\"\n\"]"};
        char nested[2 * 65 + 1] = "";

        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
                size_t n = strlen(values[i]);
                struct hf__json *json = parse(values[i]);
                hf__json_free(json);
                assert_ptr_equal(hf__json_skip_plain_value(values[i], values[i] + n),
                                 values[i] + n);
                for (size_t cut = 0; cut < n; cut++)
                        assert_null(hf__json_skip_plain_value(values[i], values[i] + cut));
        }
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
                assert_null(hf__json_skip_plain_value(others[i], others[i] + strlen(others[i])));
        for (size_t depth = 64; depth <= 65; depth++) {
                memset(nested, '[', depth);
                memset(nested + depth, ']', depth);
                assert_int_equal(hf__json_skip_plain_value(nested, nested + 2 * depth) != NULL,
                                 depth == 64);
        }
}

static void test_raw_values_are_printed_as_they_are(void **state) {
        static const char text[] = "[{\"b\":\"x\"},\"y\"]";
        struct hf__json *json = parse("{\"a\":{\"raw\":null,\"other\":\"z\"}}"), *copy;
        struct hf__json *raw = hf__json_path(json, "a.raw");
        struct hf__strbuf out = {0};

        assert_null(hf__json_raw(raw));
        assert_int_equal(hf__json_set_raw(raw, "[1]", 3), 0);
        assert_int_equal(hf__json_set_raw(raw, text, sizeof text - 1), 0);
        assert_string_equal(hf__json_raw(raw), text);
        assert_false(hf__json_is_array(raw) || hf__json_is_string(raw) || hf__json_is_null(raw));
        assert_null(hf__json_first(raw));
        copy = hf__json_dup(json);
        assert_true(hf__json_equal(json, copy));
        assert_int_equal(hf__json_expand(copy, "a.raw"), 0);
        assert_int_equal(hf__json_expand(copy, "a.raw"), 0); /* it is none any more */
        assert_int_equal(hf__json_expand(copy, "a.none"), 0);
        assert_int_equal(hf__json_expand(NULL, "a.raw"), 0);
        assert_false(hf__json_equal(json, copy));
        assert_int_equal(hf__json_count(hf__json_path(copy, "a.raw")), 2);
        hf__json_print(json, &out);
        assert_string_equal(out.data, "{\"a\":{\"raw\":[{\"b\":\"x\"},\"y\"],\"other\":\"z\"}}");
        hf__strbuf_reset(&out);
        hf__json_print(copy, &out);
        assert_string_equal(out.data, "{\"a\":{\"raw\":[{\"b\":\"x\"},\"y\"],\"other\":\"z\"}}");
        hf__strbuf_done(&out);
        assert_int_equal(hf__json_set_raw(raw, "[", 1), 0);
        assert_int_equal(hf__json_expand(json, "a.raw"), HF_E_INVALID);
        hf__json_free(json);
        hf__json_free(copy);
}

static void test_only_the_given_bytes_are_read(void **state) {
        struct hf__json *json = NULL;
        const char data[] = {'1', '2', '3', '4'};
        assert_int_equal(hf__json_parse(data, 2, &json, NULL), 0);
        assert_true(hf__json_number(json) == 12);
        hf__json_free(json);
}

static void test_getters_find_members_by_path(void **state) {
        struct hf__json *json = parse("{\"a\":{\"b\":\"x\",\"B\":\"y\",\"n\":7,\"f\":1.5,\"t\":"
                                      "true,\"z\":null},\"l\":[1,2,3],\"a\":9}");
        int64_t n = 42;

        assert_string_equal(hf__json_string(json, "a.b"), "x");
        assert_string_equal(hf__json_string(json, "a.B"), "y");
        assert_null(hf__json_string(json, "a.n"));
        assert_null(hf__json_string(json, "a.b.c"));
        assert_null(hf__json_string(json, "A.b"));
        assert_null(hf__json_string(NULL, "a"));
        assert_true(hf__json_i64(json, "a.n", &n));
        assert_int_equal(n, 7);
        assert_false(hf__json_i64(json, "a.f", &n));
        assert_false(hf__json_i64(json, "a.b", &n));
        assert_int_equal(n, 7);
        assert_true(hf__json_bool(json, "a.t", false));
        assert_true(hf__json_bool(json, "a.nothing", true));
        assert_true(hf__json_is_null(hf__json_path(json, "a.z")));
        assert_int_equal(hf__json_count(hf__json_get(json, "l")), 3);
        int sum = 0;
        for (struct hf__json *m = hf__json_first(hf__json_get(json, "l")); m; m = hf__json_next(m))
                sum += (int)hf__json_number(m);
        assert_int_equal(sum, 6);
        assert_string_equal(hf__json_key(hf__json_first(json)), "a");
        assert_null(hf__json_first(hf__json_path(json, "a.b")));
        assert_null(hf__json_get(hf__json_get(json, "l"), "0"));
        hf__json_free(json);
}

static void test_values_are_built_in_order(void **state) {
        struct hf__json *json = hf__json_object(), *list = hf__json_array();

        assert_int_equal(hf__json_set_string(json, "metadata.name", "x"), 0);
        assert_int_equal(hf__json_set_i64(json, "spec.n", INT64_C(9007199254740991)), 0);
        assert_int_equal(hf__json_set_string(json, "metadata.name", "yy"),
                         0); /* replaces the value in its position */
        assert_int_equal(hf__json_set_bool(json, "spec.on", true), 0);
        assert_int_equal(hf__json_append_string(list, "one"), 0);
        assert_int_equal(hf__json_append(list, hf__json_object()), 0);
        assert_int_equal(hf__json_set(json, "spec.list", list), 0);
        assert_int_equal(hf__json_put_string(json, "a.b/c", "dotted"), 0);
        assert_prints(json, "{\"metadata\":{\"name\":\"yy\"},\"spec\":{\"n\":9007199254740991,"
                            "\"on\":true,\"list\":[\"one\",{}]},\"a.b/"
                            "c\":\"dotted\"}");
        assert_true(hf__json_set_string(json, "metadata.name.x", "z") < 0);
        hf__json_remove(json, "spec.n");
        hf__json_remove(json, "spec.absent");
        hf__json_remove(json, "no.such");
        hf__json_drop(json, "a.b/c");
        assert_int_equal(hf__json_put_string(hf__json_get(json, "spec"), "on", "off"), 0);
        assert_prints(json, "{\"metadata\":{\"name\":\"yy\"},\"spec\":{\"on\":\"off\",\"list\":["
                            "\"one\",{}]}}");
        assert_true(hf__json_append(json, hf__json_object()) < 0);
        hf__json_free(json);
}

static void test_first_and_last_members_are_replaced(void **state) {
        struct hf__json *json = parse("{\"a\":1,\"b\":2,\"c\":3}");

        assert_int_equal(hf__json_set_i64(json, "c", 33), 0);
        assert_int_equal(hf__json_set_i64(json, "a", 11), 0);
        assert_int_equal(hf__json_set_i64(json, "d", 44), 0);
        assert_prints(json, "{\"a\":11,\"b\":2,\"c\":33,\"d\":44}");
        hf__json_free(json);
}

/* Members are moved by position. Order and keys stay intact at either end. */
static void test_an_element_is_found_by_a_member_or_appended(void **state) {
        static const char *const wrong[] = {"[]", "{\"s\":1}", "{\"s\":null}", "{\"s\":{\"l\":{}}}",
                                            "{\"s\":{\"l\":\"\"}}"};
        struct hf__json *json = parse("{\"s\":{\"l\":[null,1,{\"k\":2},{\"k\":\"b\",\"n\":1},"
                                      "{\"k\":\"b\"}]}}");
        struct hf__json *element = NULL;

        assert_int_equal(hf__json_find_or_append(json, "s.l", "k", "b", &element), 0);
        assert_prints(element, "{\"k\":\"b\",\"n\":1}");
        assert_int_equal(hf__json_find_or_append(json, "s.l", "k", "a", &element), 0);
        assert_prints(element, "{}");
        assert_int_equal(hf__json_put_string(element, "k", "a"), 0);
        assert_prints(json, "{\"s\":{\"l\":[null,1,{\"k\":2},{\"k\":\"b\",\"n\":1},{\"k\":\"b\"},"
                            "{\"k\":\"a\"}]}}");
        hf__json_free(json);
        for (int i = 0; i < 2; i++) {
                json = parse(i == 0 ? "{}" : "{\"s\":{\"l\":null}}");
                assert_int_equal(hf__json_find_or_append(json, "s.l", "k", "a", &element), 0);
                assert_prints(json, "{\"s\":{\"l\":[{}]}}");
                hf__json_free(json);
        }
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
                json = parse(wrong[i]);
                assert_int_equal(hf__json_find_or_append(json, "s.l", "k", "a", &element), -EINVAL);
                assert_prints(json, wrong[i]);
                hf__json_free(json);
        }
}

static void test_members_are_moved_and_replaced_by_position(void **state) {
        struct hf__strbuf s = {0};
        struct hf__json *json = NULL;

        static const char text[] = "{\"a\":[1,2,3],\"b\":true,\"c\":null}";
        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        struct hf__json *array = hf__json_get(json, "a");
        struct hf__json *first = hf__json_detach(array, hf__json_first(array)); /* 2 3 */
        assert_int_equal(hf__json_insert(array, NULL, first), 0);               /* 2 3 1 */
        assert_int_equal(hf__json_insert(array, hf__json_first(array), hf__json_dup(first)), 0);
        assert_int_equal(hf__json_insert(array, hf__json_next(hf__json_first(array)),
                                         hf__json_object()),
                         0);
        struct hf__json *end = hf__json_detach(array, first);
        assert_int_equal(hf__json_replace(array, hf__json_first(array), end), 0); /* 1 {} 2 3 */
        assert_int_equal(hf__json_append(array, hf__json_array()), 0);
        assert_int_equal(hf__json_replace(json, hf__json_get(json, "c"), hf__json_object()), 0);
        assert_int_equal(hf__json_replace(json, array,
                                          hf__json_detach(json, hf__json_get(json, "b"))),
                         0);
        assert_int_equal(hf__json_add(json, "d", hf__json_array()), 0);
        hf__json_print(json, &s);
        assert_string_equal(s.data, "{\"a\":true,\"c\":{},\"d\":[]}");
        hf__strbuf_done(&s);
        hf__json_free(json);

        array = hf__json_array();
        for (int i = 0; i < 3; i++) /* before the first of zero, one and two members */
                assert_int_equal(hf__json_insert(array, hf__json_first(array), hf__json_array()),
                                 0);
        while (hf__json_count(array))
                hf__json_free(hf__json_detach(array, hf__json_first(array)));
        assert_int_equal(hf__json_append_string(array, "x"), 0);
        assert_int_equal(hf__json_count(array), 1);
        assert_int_equal(hf__json_insert(array, NULL, NULL), -ENOMEM);
        assert_int_equal(hf__json_replace(array, hf__json_first(array), NULL), -ENOMEM);
        hf__json_free(array);
}

static void test_equality_ignores_the_order_of_members(void **state) {
        static const struct {
                const char *a, *b;
                int equal;
        } cases[] = {
                {"{\"a\":1,\"b\":[1,2]}", "{\"b\":[1,2],\"a\":1}", 1},
                {"[1,2]", "[2,1]", 0},
                {"{\"a\":1}", "{\"a\":1,\"b\":1}", 0},
                {"{\"a\":1}", "{\"A\":1}", 0},
                {"9007199254740991", "9007199254740990", 0},
                {"\"x\"", "\"y\"", 0},
                {"true", "false", 0},
                {"null", "0", 0},
        };
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__json *a = parse(cases[i].a), *b = parse(cases[i].b);
                assert_int_equal(hf__json_equal(a, b), cases[i].equal);
                hf__json_free(a);
                hf__json_free(b);
        }
        assert_true(hf__json_equal(NULL, NULL));
}

static void test_pretty_printing_indents(void **state) {
        struct hf__json *json = parse("{\"a\":[1,{}],\"b\":[]}");
        struct hf__strbuf out = {0};
        hf__json_print_pretty(json, &out);
        assert_string_equal(out.data, "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}");
        hf__strbuf_done(&out);
        hf__json_free(json);
}

/* Too deep text must be refused before any function recurses into it. */
static void test_too_deep_text_is_refused(void **state) {
        char text[2 * HF__JSON_DEPTH_MAX + 8];
        struct hf__json *json = NULL;
        size_t n = HF__JSON_DEPTH_MAX, offset = 0;

        memset(text, '[', n);
        memset(text + n, ']', n);
        assert_int_equal(hf__json_parse(text, 2 * n, &json, NULL), 0);
        json = hf__json_free(json);
        memset(text, '[', n + 1);
        memset(text + n + 1, ']', n + 1);
        assert_int_equal(hf__json_parse(text, 2 * n + 2, &json, &offset), HF_E_INVALID);
        assert_int_equal(offset, n);
        memset(text, '[', sizeof text);
        text[0] = text[sizeof text - 1] = '"'; /* brackets within a string do not count */
        assert_int_equal(hf__json_parse(text, sizeof text, &json, NULL), 0);
        hf__json_free(json);
}

static void test_duplicate_keys_are_found(void **state) {
        static const struct {
                const char *text;
                int r;
        } cases[] = {
                {"{\"a\":1,\"b\":{\"a\":1}}", 0},
                {"{\"a\":1,\"b\":2,\"a\":3}", HF_E_INVALID},
                {"[{\"x\":{\"a\":1,\"\\u0061\":1}}]", HF_E_INVALID},
                {"{\"a\":1,\"A\":1}", 0},
                {"[1,1]", 0},
                {"{\"a\":0,\"b\":0,\"c\":0,\"d\":0,\"e\":0,\"f\":0,\"g\":0,\"h\":0,\"i\":0,\"j\":0,"
                 "\"k\":0,\"l\":0,\"m\":0,\"n\":0,"
                 "\"o\":0,\"p\":0,\"q\":0,\"r\":0}",
                 0},
                {"{\"a\":0,\"b\":0,\"c\":0,\"d\":0,\"e\":0,\"f\":0,\"g\":0,\"h\":0,\"i\":0,\"j\":0,"
                 "\"k\":0,\"l\":0,\"m\":0,\"n\":0,"
                 "\"o\":0,\"p\":0,\"q\":0,\"b\":0}",
                 HF_E_INVALID},
        };
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__json *json = parse(cases[i].text);
                assert_int_equal(hf__json_check_unique(json, NULL), cases[i].r);
                hf__json_free(json);
        }
}

static bool equal_texts(const char *a, const char *b) {
        struct hf__json *x = parse(a), *y = parse(b);
        bool same = hf__json_equal(x, y);

        hf__json_free(x);
        hf__json_free(y);
        return same;
}

/*
 * The order of members does not matter, the order of items does. A duplicate key must not hide a
 * missing one.
 */
static void test_equality_with_duplicate_keys_is_exact(void **state) {
        assert_true(equal_texts("{\"a\":1,\"b\":{\"c\":[1,2],\"d\":null}}",
                                "{\"b\":{\"d\":null,\"c\":[1,2]},\"a\":1}"));
        assert_false(equal_texts("{\"a\":[1,2]}", "{\"a\":[2,1]}"));
        assert_false(equal_texts("{\"a\":1,\"b\":2}", "{\"b\":2,\"c\":1}"));
        assert_false(equal_texts("{\"a\":\"1\",\"a\":\"1\"}", "{\"a\":\"1\",\"y\":\"2\"}"));
        assert_false(equal_texts("{\"a\":1}", "{\"a\":\"1\"}"));
}

static struct hf__json *many_members(int n, bool backwards) {
        struct hf__strbuf s = {0};

        for (int i = 0; i < n; i++)
                hf__strbuf_printf(&s, "%s\"k%06d\":\"\"", i ? "," : "{", backwards ? n - 1 - i : i);
        hf__strbuf_puts(&s, "}");
        struct hf__json *json = parse(s.data);
        hf__strbuf_done(&s);
        return json;
}

/* With members in the opposite order, a search for each member would take minutes. */
static void test_comparing_many_members_is_fast(void **state) {
        struct hf__json *up = many_members(250000, false), *down = many_members(250000, true);

        assert_true(hf__json_equal(up, down));
        hf__json_free(up);
        hf__json_free(down);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_values_survive_the_round_trip),
                cmocka_unit_test(test_invalid_text_is_refused),
                cmocka_unit_test(test_control_characters_are_refused),
                cmocka_unit_test(test_lone_surrogates_become_the_replacement_character),
                cmocka_unit_test(test_numbers_have_the_grammar_of_json),
                cmocka_unit_test(test_whole_numbers_are_exact_up_to_64_bits),
                cmocka_unit_test(test_numbers_that_no_type_holds_are_refused),
                cmocka_unit_test(test_a_number_has_at_most_63_bytes),
                cmocka_unit_test(test_a_large_number_equals_what_is_printed),
                cmocka_unit_test(test_digits_of_a_string_are_no_number),
                cmocka_unit_test(test_plain_texts_need_no_careful_checks),
                cmocka_unit_test(test_values_of_plain_strings_are_skipped),
                cmocka_unit_test(test_raw_values_are_printed_as_they_are),
                cmocka_unit_test(test_only_the_given_bytes_are_read),
                cmocka_unit_test(test_getters_find_members_by_path),
                cmocka_unit_test(test_values_are_built_in_order),
                cmocka_unit_test(test_first_and_last_members_are_replaced),
                cmocka_unit_test(test_an_element_is_found_by_a_member_or_appended),
                cmocka_unit_test(test_members_are_moved_and_replaced_by_position),
                cmocka_unit_test(test_equality_ignores_the_order_of_members),
                cmocka_unit_test(test_pretty_printing_indents),
                cmocka_unit_test(test_equality_with_duplicate_keys_is_exact),
                cmocka_unit_test(test_comparing_many_members_is_fast),
                cmocka_unit_test(test_too_deep_text_is_refused),
                cmocka_unit_test(test_duplicate_keys_are_found),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
