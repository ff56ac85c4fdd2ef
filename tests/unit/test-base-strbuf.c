/* SPDX-License-Identifier: Apache-2.0 */
/* Text that grows, and text in arrays of a fixed size. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/error.h>

#include "base/buf.h"
#include "base/strbuf.h"
#include "base/strbuf_cut.h"

static void test_text_is_appended(void **state) {
        struct hf__strbuf s = {0};
        hf__strbuf_puts(&s, "a");
        hf__strbuf_putc(&s, 'b');
        hf__strbuf_printf(&s, "%d-%s", 7, "x");
        hf__strbuf_u64(&s, UINT64_MAX);
        hf__strbuf_u64(&s, 0);
        assert_string_equal(s.data, "ab7-x184467440737095516150");
        hf__strbuf_reset(&s);
        assert_string_equal(s.data, "");
        hf__strbuf_json(&s, "q\"\\\n\x01", 5);
        assert_string_equal(s.data, "\"q\\\"\\\\\\n\\u0001\"");
        hf__strbuf_reset(&s);
        hf__strbuf_json(&s, "\xc3\xa9\xf0\x9f\x98\x80 \xff \xc3", 10); /* the last one is cut off */
        assert_string_equal(s.data, "\"\xc3\xa9\xf0\x9f\x98\x80 \\ufffd \\ufffd\"");
        hf__strbuf_reset(&s);
        hf__strbuf_urlencode(&s, "a/b c~\xc3");
        assert_string_equal(s.data, "a%2Fb%20c~%C3");
        struct hf__buf *buf = hf__strbuf_to_buf(&s);
        assert_int_equal(buf->n, s.n);
        assert_string_equal(buf->data, s.data);
        hf__buf_unref(hf__buf_ref(buf));
        hf__buf_unref(buf);
        hf__strbuf_done(&s);
}

/* The encoder reads texts eight bytes at a time. */
static void test_a_byte_is_escaped_at_every_place(void **state) {
        for (size_t n = 1; n < 20; n++)
                for (size_t at = 0; at < n; at++)
                        for (int c = 0; c < 256; c++) {
                                char text[20], expected[22];
                                struct hf__strbuf s = {0};
                                bool plain = c >= 0x20 && c < 0x7f && c != '"' && c != '\\';

                                memset(text, '~', n);
                                text[at] = (char)c;
                                expected[0] = '"';
                                memcpy(expected + 1, text, n);
                                expected[n + 1] = '"';
                                hf__strbuf_json(&s, text, n);
                                assert_memory_equal(s.data, expected, at + 1);
                                assert_int_equal(s.n == n + 2, plain);
                                if (plain)
                                        assert_memory_equal(s.data, expected, n + 2);
                                else
                                        assert_int_equal(s.data[at + 1], '\\');
                                hf__strbuf_done(&s);
                        }
}

static void test_numbers_and_joined_text_fit_their_arrays(void **state) {
        char digits[HF__U64_TEXT_MAX], text[8];
        assert_int_equal(hf__u64_text(UINT64_MAX, digits), 20);
        assert_string_equal(digits, "18446744073709551615");
        assert_int_equal(hf__u64_text(0, digits), 1);
        assert_string_equal(digits, "0");
        assert_int_equal(hf__join(text, sizeof text, "abc", "", "/", "def", NULL), 7);
        assert_string_equal(text, "abc/def");
        assert_int_equal(hf__join(text, sizeof text, "abc", "/", "defg", NULL), 0);
        assert_string_equal(text, "");
        assert_int_equal(hf__join(text, sizeof text, NULL), 0);
        assert_string_equal(text, "");
}

static void test_a_reached_limit_refuses_further_text(void **state) {
        struct hf__strbuf s = {.max = 4};
        hf__strbuf_puts(&s, "1234");
        assert_int_equal(s.error, 0);
        hf__strbuf_putc(&s, '5');
        assert_int_equal(s.error, HF_E_TOO_LARGE);
        hf__strbuf_puts(&s, "");
        assert_string_equal(s.data, "1234");
        assert_null(hf__strbuf_to_buf(&s));
        hf__strbuf_done(&s);
}

static void test_a_text_is_cut_to_the_room_there_is(void **state) {
        static const struct {
                size_t max;
                const char *text;
        } cases[] = {
                {0, "> a\xc3\xa9\xf0\x9f\x98\x80z"},
                {10, "> a\xc3\xa9\xf0\x9f\x98\x80z"},
                {9, "> a\xc3\xa9..."},
                {8, "> a\xc3\xa9..."},
                {7, "> a..."},
                {6, "> a..."},
                {5, "> ..."},
                {4, "> .."},
                {2, "> "},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__strbuf s = {.max = cases[i].max}, t = {0};
                hf__strbuf_puts(&s, "> ");
                hf__strbuf_puts_cut(&s, "a\xc3\xa9\xf0\x9f\x98\x80z");
                assert_string_equal(s.data, cases[i].text);
                assert_int_equal(s.error, 0);
                hf__strbuf_done(&s);
                hf__strbuf_add_cut(&t, cases[0].text, strlen(cases[0].text),
                                   cases[i].max > 0 ? cases[i].max : SIZE_MAX);
                assert_true(cases[i].max == 0 || t.n <= cases[i].max);
                assert_int_equal(t.error, 0);
                hf__strbuf_done(&t);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_text_is_appended),
                cmocka_unit_test(test_a_byte_is_escaped_at_every_place),
                cmocka_unit_test(test_numbers_and_joined_text_fit_their_arrays),
                cmocka_unit_test(test_a_reached_limit_refuses_further_text),
                cmocka_unit_test(test_a_text_is_cut_to_the_room_there_is),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
