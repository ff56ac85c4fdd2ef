/* SPDX-License-Identifier: Apache-2.0 */
/* JSON values in an envelope: the result is that of a parser without a limit of the depth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/error.h>

#include "base/json_envelope.h"
#include "base/strbuf.h"

/* The envelope does not matter to a text that the parser of all texts takes. */
static void test_other_texts_are_parsed_as_everywhere(void **state) {
        static const char *const texts[] = {
                "1",
                "\"a\"",
                "[]",
                " { } ",
                "[[[[]]]]",
                "[[[[1,[2]]],[[3]],4]]",
                "[[[[1]],[[2],[3]]]]",
                "{\"a\":{\"b\":[{\"c\":{\"d\":[1]}},2,{},[],[{\"e\":null}]],\"b\":[{\"f\":1}]}}",
                "{\"a\":{\"b\":[{\"]\":\"[\\\"{\"},\"{\",{\"a\":1,\"a\":2}]},\"c\":[[[[]]]]}",
                "{\"a\" : { \"b\" : [ { \"c\" : 123456789012345678 } , \"\\ud800\" ] } }",
                "",
                "{",
                "]",
                "[[[[",
                "[[[[]",
                "[[[[}]]]",
                "[[[[1 2]]]]",
                "[[[[1]],x]]",
                "[[[[1]] [2]]]",
                "[[[[1e999]]]]",
                "[[[[\"a]]]]",
                "[[[[\"\\u0000\"]]]]",
                "[[[[]]]]]",
                "[[[]]]]",
                "[[[[]]]] x",
        };
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
                for (size_t levels = 1; levels <= HF__JSON_ENVELOPE_MAX; levels++) {
                        struct hf__json *expected = NULL, *found = NULL;
                        size_t n = strlen(texts[i]), offset = 0;
                        int r = hf__json_parse(texts[i], n, &expected, NULL);

                        assert_int_equal(hf__json_parse_envelope(texts[i], n, levels, &found,
                                                                 &offset),
                                         r);
                        assert_in_range(offset, 0, n);
                        assert_true(hf__json_equal(found, expected));
                        hf__json_free(found);
                        hf__json_free(expected);
                }
}

/* Duplicate members, and members that follow a part, keep their places. */
static void test_parts_are_put_in_their_places(void **state) {
        static const char text[] = "{\"a\":{\"b\":[{\"c\":[1]},2,{\"d\":3}],\"b\":[[4]]},\"e\":5}";
        struct hf__strbuf out = {0};
        struct hf__json *json;

        for (size_t levels = 1; levels <= HF__JSON_ENVELOPE_MAX; levels++) {
                assert_int_equal(hf__json_parse_envelope(text, sizeof text - 1, levels, &json,
                                                         NULL),
                                 0);
                hf__json_print(json, &out);
                assert_string_equal(out.data, text);
                hf__strbuf_reset(&out);
                hf__json_free(json);
        }
        hf__strbuf_done(&out);
}

/* In a part, after one, and before one. */
static void test_the_offset_of_an_error_is_that_in_the_text(void **state) {
        static const struct {
                const char *text;
                size_t offset;
        } cases[] = {{"[[[[1,x]]]]", 6}, {"[[[[1,2],[3]],x]]", 14}, {"[x,[[[1]]]]", 1}};

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                for (size_t levels = 1; levels <= HF__JSON_ENVELOPE_MAX; levels++) {
                        struct hf__json *json = NULL;
                        size_t offset = 0;
                        assert_int_equal(hf__json_parse_envelope(cases[i].text,
                                                                 strlen(cases[i].text), levels,
                                                                 &json, &offset),
                                         HF_E_INVALID);
                        assert_int_equal(offset, cases[i].offset);
                }
}

static int parse_arrays(size_t n, size_t levels, size_t *ret_offset) {
        char text[2 * (HF__JSON_DEPTH_MAX + HF__JSON_ENVELOPE_MAX + 1)];
        struct hf__json *json = NULL;

        memset(text, '[', n);
        memset(text + n, ']', n);
        int r = hf__json_parse_envelope(text, 2 * n, levels, &json, ret_offset);
        hf__json_free(json);
        return r;
}

static void test_the_levels_of_the_envelope_do_not_count(void **state) {
        for (size_t levels = 1; levels <= HF__JSON_ENVELOPE_MAX; levels++) {
                size_t offset = 0;
                assert_int_equal(parse_arrays(HF__JSON_DEPTH_MAX + levels, levels, NULL), 0);
                assert_int_equal(parse_arrays(HF__JSON_DEPTH_MAX + levels + 1, levels, &offset),
                                 HF_E_INVALID);
                assert_int_equal(offset, HF__JSON_DEPTH_MAX + levels);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_other_texts_are_parsed_as_everywhere),
                cmocka_unit_test(test_parts_are_put_in_their_places),
                cmocka_unit_test(test_the_offset_of_an_error_is_that_in_the_text),
                cmocka_unit_test(test_the_levels_of_the_envelope_do_not_count),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
