/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies in YAML: how many anchors they may have, how long values may be, and what remains. */
#undef NDEBUG
#include <dlfcn.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/error.h>

#include "base/strbuf.h"
#include "client/yaml.h"
#include "client/yaml_body.h"
#include "client/yaml_duplicates.h"

#define MAX ((size_t)1 << 20)

static int convert(const char *yaml, struct hf__strbuf *out, struct hf_status *status) {
        *out = (struct hf__strbuf){.max = MAX};
        *status = (struct hf_status){0};
        return hf__yaml_body_to_json(yaml, strlen(yaml), out, status);
}

/* An anchor name that is used again does not count a second time. */
static void test_there_are_200_anchors_at_most(void **state) {
        struct hf__strbuf yaml = {0}, out;
        struct hf_status status;

        for (int i = 0; i < 201; i++) {
                hf__strbuf_printf(&yaml, "- &a%d x\n", i);
                if (i == 199)
                        hf__strbuf_puts(&yaml, "- &a7 z\n- *a199\n- *a7\n");
                if (i < 198)
                        continue;
                int r = convert(yaml.data, &out, &status);
                if (i < 200)
                        assert_int_equal(r, 0);
                else
                        assert_int_equal(r, HF_E_INVALID);
                if (i == 199)
                        assert_non_null(strstr(out.data, "\"z\",\"x\",\"z\"]"));
                hf__strbuf_done(&out);
        }
        assert_string_equal(status.message, "line 204: there are too many anchors");
        hf__strbuf_done(&yaml);
}

/* Converts n values within depth lists. */
static int convert_deep(size_t depth, size_t n) {
        struct hf__strbuf yaml = {0}, out;
        struct hf_status status;

        for (size_t i = 0; i < depth; i++)
                hf__strbuf_putc(&yaml, '[');
        for (size_t i = 0; i < n; i++)
                hf__strbuf_puts(&yaml, "a,");
        for (size_t i = 0; i < depth; i++)
                hf__strbuf_putc(&yaml, ']');
        int r = convert(yaml.data, &out, &status);
        if (r != 0)
                assert_string_equal(status.message, "the text has too many values");
        hf__strbuf_done(&out);
        hf__strbuf_done(&yaml);
        return r;
}

/* libyaml needs time for each value in proportion to the brackets around it. */
static void test_values_in_many_brackets_are_fewer_than_others(void **state) {
        assert_int_equal(convert_deep(990, 19000), 0);
        assert_int_equal(convert_deep(990, 20500), HF_E_INVALID);
        assert_int_equal(convert_deep(10, 200000), 0);
}

/* Block style has no brackets. */
static void test_block_style_has_no_such_limit(void **state) {
        struct hf__strbuf yaml = {0}, out;
        struct hf_status status;

        for (size_t i = 0; i < 30; i++) {
                for (size_t k = 0; k < 990; k++)
                        hf__strbuf_puts(&yaml, "- ");
                hf__strbuf_puts(&yaml, "a\n");
        }
        assert_int_equal(convert(yaml.data, &out, &status), 0);
        hf__strbuf_done(&out);
        hf__strbuf_done(&yaml);
}

/* The output is copied piece by piece, and moves meanwhile. */
static void test_an_alias_repeats_a_value_of_any_size(void **state) {
        static const size_t sizes[] = {509, 510, 511, 1021, 1022, 1023, 5000};
        char text[5001], yaml[5100];

        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
                struct hf__strbuf out;
                struct hf_status status;
                for (size_t k = 0; k < sizes[i]; k++)
                        text[k] = (char)('a' + k % 23);
                text[sizes[i]] = '\0';
                (void)snprintf(yaml, sizeof yaml, "- &x %s\n- *x\n", text);
                assert_int_equal(convert(yaml, &out, &status), 0);
                assert_int_equal(out.n, 2 * (sizes[i] + 2) + 3);
                assert_memory_equal(out.data + 2, text, sizes[i]);
                assert_memory_equal(out.data + sizes[i] + 5, text, sizes[i]);
                hf__strbuf_done(&out);
        }
}

/* After a conversion, libyaml's memory is freed and the library is unloaded, even if the text was
 * bad. */
static void test_a_conversion_leaves_nothing(void **state) {
        static const char *const texts[] = {"a: &x [1, {b: c}]\nd: *x\nd: 2\n",
                                            "a: b\nc: d\ne: [",
                                            "a: 'b",
                                            "",
                                            "a: *x",
                                            "a: !!x y\nb: c\n"};
        size_t before = 0;

        for (int round = 0; round < 20; round++) {
                if (round == 1) /* the first conversion allocates memory that stays */
                        before = mallinfo2().uordblks;
                for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
                        struct hf__strbuf out, plain = {0}, duplicates = {0};
                        struct hf_status status;
                        (void)convert(texts[i], &out, &status);
                        (void)hf__yaml_to_json(texts[i], strlen(texts[i]), &plain, NULL);
                        (void)hf__yaml_duplicates(texts[i], strlen(texts[i]), 3, &duplicates);
                        hf__strbuf_done(&out);
                        hf__strbuf_done(&plain);
                        hf__strbuf_done(&duplicates);
                        assert_null(dlopen("libyaml-0.so.2", RTLD_NOW | RTLD_NOLOAD));
                }
        }
        assert_int_equal(mallinfo2().uordblks, before);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_there_are_200_anchors_at_most),
                cmocka_unit_test(test_values_in_many_brackets_are_fewer_than_others),
                cmocka_unit_test(test_block_style_has_no_such_limit),
                cmocka_unit_test(test_an_alias_repeats_a_value_of_any_size),
                cmocka_unit_test(test_a_conversion_leaves_nothing),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
