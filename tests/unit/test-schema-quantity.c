/* SPDX-License-Identifier: Apache-2.0 */
/* Quantities have the values and the canonical texts that Kubernetes gives them. */
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

#include "server/schema/values/quantity.h"

static const char regular_expression[] = "quantities must match the regular expression "
                                         "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

static struct hfd_quantity parse(const char *text) {
        struct hfd_quantity quantity = {0};

        assert_null(hfd_quantity_parse(text, &quantity));
        return quantity;
}

/* Each row: a text, and the canonical text of the quantity that is read from it. */
static void expect_texts(const char *const table[][2], size_t n) {
        for (size_t i = 0; i < n; i++) {
                struct hfd_quantity quantity = parse(table[i][0]), again;
                char text[HFD_QUANTITY_TEXT_MAX], second[HFD_QUANTITY_TEXT_MAX];
                hfd_quantity_format(&quantity, text);
                if (strcmp(text, table[i][1]) != 0)
                        fail_msg("%s: %s, not %s", table[i][0], text, table[i][1]);
                again = parse(text);
                hfd_quantity_format(&again, second);
                assert_string_equal(second, text);
                assert_int_equal(hfd_quantity_compare(&again, &quantity), 0);
        }
}

static void quantities_have_one_canonical_text(void **state) {
        static const char *const table[][2] = {
                {"0", "0"},           {"-0", "0"},          {"0Mi", "0"},
                {"0e999999", "0"},    {"+", "0"},           {"1", "1"},
                {"+1", "1"},          {"-1", "-1"},         {"007", "7"},
                {"10", "10"},         {"1000", "1k"},       {"1500", "1500"},
                {"15e2", "1500"},     {"1e3", "1e3"},       {"1E3", "1e3"},
                {"1E", "1E"},         {"100e-2", "1"},      {"0.5", "500m"},
                {"1.5", "1500m"},     {"1.", "1"},          {".5", "500m"},
                {"0.1e-3", "100e-6"}, {"100m", "100m"},     {"1000m", "1"},
                {"1500000", "1500k"}, {"1.5G", "1500M"},    {"1n", "1n"},
                {"0.1n", "1n"},       {"-0.1n", "-1n"},     {"1.0000000001", "1000000001n"},
                {"1u", "1u"},         {"1024", "1024"},     {"1Ki", "1Ki"},
                {"1024Ki", "1Mi"},    {"1.5Gi", "1536Mi"},  {"0.5Ki", "512"},
                {"1000Ki", "1000Ki"}, {"0.3Ki", "307200m"}, {"1.0005Ki", "1024512m"},
                {"2Ei", "2Ei"},       {"1P", "1P"},         {"12345.678", "12345678m"},
        };

        expect_texts(table, sizeof table / sizeof table[0]);
}

static void quantities_beyond_the_range_become_its_limits(void **state) {
        static const char *const table[][2] = {
                {"8Ei", "9223372036854775807"},
                {"9223372036854775807", "9223372036854775807"},
                {"9223372036854775808", "9223372036854775807"},
                {"-9223372036854775809", "-9223372036854775807"},
                {"1e999999999999999999999999", "9223372036854775807"},
                {"1e-999999999999999999999999", "1e-9"},
        };

        expect_texts(table, sizeof table / sizeof table[0]);
}

static void a_text_that_is_no_quantity_has_the_message_of_kubernetes(void **state) {
        static const char *const wrong[] = {"",      " 1",   "1 ",   "a",    "1a",   "1KiB",
                                            "1.2.3", "1e3x", "1-1-", "0x10", "1Ki ", "{}"};
        static const char *const suffix[] = {"--1", "1mm",  "1K",  "1i",
                                             "1e+", "1Ki3", "1-1", "1ee3"};
        static const char *const number[] = {"Ei", "-Pi", "e-10"};
        struct hfd_quantity quantity;
        char text[HFD_QUANTITY_INPUT_MAX + 2];

        for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
                const char *message = hfd_quantity_parse(wrong[i], &quantity);
                if (!message || strcmp(message, regular_expression) != 0)
                        fail_msg("%s: %s", wrong[i], message ? message : "parsed");
        }
        for (size_t i = 0; i < sizeof suffix / sizeof suffix[0]; i++) {
                const char *message = hfd_quantity_parse(suffix[i], &quantity);
                if (!message || strcmp(message, "unable to parse quantity's suffix") != 0)
                        fail_msg("%s: %s", suffix[i], message ? message : "parsed");
        }
        for (size_t i = 0; i < sizeof number / sizeof number[0]; i++) {
                const char *message = hfd_quantity_parse(number[i], &quantity);
                if (!message || strcmp(message, "unable to parse numeric part of quantity") != 0)
                        fail_msg("%s: %s", number[i], message ? message : "parsed");
        }
        memset(text, '9', sizeof text - 1);
        text[sizeof text - 1] = '\0';
        assert_non_null(hfd_quantity_parse(text, &quantity));
        text[sizeof text - 2] = '\0';
        assert_null(hfd_quantity_parse(text, &quantity));
        /* The longest text with the largest factor fits. */
        memcpy(text + HFD_QUANTITY_INPUT_MAX - 2, "Ei", 3);
        assert_null(hfd_quantity_parse(text, &quantity));
        assert_int_equal(quantity.whole, INT64_MAX);
}

static void quantities_are_ordered_by_value(void **state) {
        static const char *const ascending[] = {"-1k", "-1", "-1m", "0",    "1n",  "999m",
                                                "1",   "1k", "1Ki", "1025", "1Mi", "9E"};

        for (size_t i = 0; i < sizeof ascending / sizeof ascending[0]; i++)
                for (size_t k = 0; k < sizeof ascending / sizeof ascending[0]; k++) {
                        struct hfd_quantity a = parse(ascending[i]), b = parse(ascending[k]);
                        int order = hfd_quantity_compare(&a, &b);
                        assert_int_equal((order > 0) - (order < 0), (i > k) - (i < k));
                }
        struct hfd_quantity a = parse("1000m"), b = parse("1");
        assert_int_equal(hfd_quantity_compare(&a, &b), 0);
}

static void one_more_is_counted_and_the_maximum_stays(void **state) {
        struct hfd_quantity quantity = parse("999");
        char text[HFD_QUANTITY_TEXT_MAX];

        hfd_quantity_increment(&quantity);
        hfd_quantity_format(&quantity, text);
        assert_string_equal(text, "1k");
        quantity = hfd_quantity_of(UINT64_MAX);
        hfd_quantity_increment(&quantity);
        assert_int_equal(quantity.whole, INT64_MAX);
}

static void whole_numbers_are_recognized(void **state) {
        static const char *const whole[] = {"0", "3", "1k", "1000m", "1Ki", "999999999n"},
                                 *const broken[] = {"1m", "1500m", "0.5", "1n", "0.3Ki"};

        for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
                struct hfd_quantity quantity = parse(whole[i]);
                assert_true(hfd_quantity_is_whole(&quantity));
        }
        for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
                struct hfd_quantity quantity = parse(broken[i]);
                assert_false(hfd_quantity_is_whole(&quantity));
        }
        struct hfd_quantity half = parse("-0.5");
        assert_true(hfd_quantity_number(&half) == -0.5);
}

static void amounts_are_rounded_away_from_zero_to_thousandths(void **state) {
        static const char *const cases[][2] = {{"0", "0"},           {"1m", "1m"},
                                               {"1n", "1m"},         {"0.0011", "2m"},
                                               {"-1n", "-1m"},       {"999999999n", "1"},
                                               {"1.9999", "2"},      {"1Gi", "1Gi"},
                                               {"0.1Ki", "102400m"}, {"9223372036854775807", NULL}};

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hfd_quantity quantity = parse(cases[i][0]);
                char text[HFD_QUANTITY_TEXT_MAX];
                hfd_quantity_round_to_thousandths(&quantity);
                hfd_quantity_format(&quantity, text);
                assert_string_equal(text, cases[i][cases[i][1] ? 1 : 0]);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(quantities_have_one_canonical_text),
                cmocka_unit_test(quantities_beyond_the_range_become_its_limits),
                cmocka_unit_test(a_text_that_is_no_quantity_has_the_message_of_kubernetes),
                cmocka_unit_test(quantities_are_ordered_by_value),
                cmocka_unit_test(one_more_is_counted_and_the_maximum_stays),
                cmocka_unit_test(whole_numbers_are_recognized),
                cmocka_unit_test(amounts_are_rounded_away_from_zero_to_thousandths),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
