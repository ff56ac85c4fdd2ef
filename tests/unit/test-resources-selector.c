/* SPDX-License-Identifier: Apache-2.0 */
/* The syntax of selectors: field selectors and label selectors have different rules. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/error.h>

#include "server/resources/rows/resource_table.h"
#include "server/resources/selection/selector.h"

static int parse(const char *text, bool fields, struct hfd_selector *selector, char reason[320]) {
        const struct hfd_resource *resource = hfd_resource_find("", "v1", "configmaps");

        reason[0] = '\0';
        return hfd_selector_parse(text, fields, resource, selector, reason, 320);
}

/* value NULL: the selector selects everything. */
static void expect_one(const char *text, bool fields, const char *key, enum hfd_selector_op op,
                       const char *value) {
        struct hfd_selector selector = {0};
        char reason[320];

        if (parse(text, fields, &selector, reason) != 0)
                fail_msg("%s: %s", text, reason);
        assert_int_equal(selector.n, value ? 1 : 0);
        if (value) {
                assert_string_equal(selector.requirements[0].key, key);
                assert_int_equal(selector.requirements[0].op, op);
                assert_string_equal(selector.requirements[0].values[0], value);
        }
        hfd_selector_done(&selector);
}

static void expect_refused(const char *text, bool fields, const char *part) {
        struct hfd_selector selector = {0};
        char reason[320];

        if (parse(text, fields, &selector, reason) != HF_E_INVALID)
                fail_msg("%s is accepted", text);
        if (!strstr(reason, part))
                fail_msg("\"%s\" is not in: %s", part, reason);
}

static void test_empty_terms_of_a_field_selector_mean_nothing(void **state) {
        (void)state;
        expect_one("metadata.name=a,", true, "metadata.name", HFD_EQUALS, "a");
        expect_one(",metadata.name!=a", true, "metadata.name", HFD_NOT_EQUALS, "a");
        expect_one(",,metadata.name==a,,", true, "metadata.name", HFD_EQUALS, "a");
        expect_one(",", true, NULL, HFD_EQUALS, NULL);
}

static void test_values_of_fields_are_escaped(void **state) {
        (void)state;
        expect_one("metadata.name=a\\,b", true, "metadata.name", HFD_EQUALS, "a,b");
        expect_one("metadata.name=a\\=\\\\b", true, "metadata.name", HFD_EQUALS, "a=\\b");
        expect_refused("metadata.name=a\\b", true,
                       "invalid field selector: invalid escape sequence: \\b");
        expect_refused("metadata.name=a\\", true,
                       "invalid field selector: invalid escape sequence: \\");
        expect_refused("metadata.name=a\\\xc3\xa4z", true, "sequence: \\\xc3\xa4");
        expect_refused("metadata.name===a", true,
                       "invalid field selector: unescaped character in value: 61");
}

static void test_parentheses_and_spaces_are_parts_of_fields(void **state) {
        (void)state;
        expect_one("metadata.name=(a", true, "metadata.name", HFD_EQUALS, "(a");
        expect_one("metadata.name= a ", true, "metadata.name", HFD_EQUALS, " a ");
        /* The first operator counts. */
        expect_one("metadata.name!=a!", true, "metadata.name", HFD_NOT_EQUALS, "a!");
}

static void test_what_no_field_selector_can_be_is_refused(void **state) {
        (void)state;
        expect_refused("metadata.name=(a,b)", true,
                       "invalid selector: 'metadata.name=(a,b)'; can't understand 'b)'");
        expect_refused(" metadata.name=a", true, "\" metadata.name\" is not a known field");
        expect_refused("=a", true, "\"\" is not a known field");
        expect_refused(" ", true, "invalid selector: ' '; can't understand ' '");
        expect_refused("metadata.name", true, "can't understand 'metadata.name'");
        expect_refused("metadata!name", true, "can't understand 'metadata!name'");
}

static void test_white_space_separates_in_label_selectors(void **state) {
        (void)state;
        expect_one(" \t", false, NULL, HFD_EQUALS, NULL);
        expect_one("a\tin\n(b)", false, "a", HFD_IN, "b");
        expect_one("a\r\nnotin (b)", false, "a", HFD_NOT_IN, "b");
        expect_one(" a = b\n", false, "a", HFD_EQUALS, "b");
        expect_refused(" , a", false, "found ',', expected: !, identifier, or 'end of string'");
        expect_refused("a,", false, "found '', expected: identifier after ','");
        expect_refused("a\vin (b)", false,
                       "unable to parse requirement: <nil>: Invalid value: \"a\\vin\"");
}

#define REQUIREMENT "unable to parse requirement: "
#define OPERATORS   ", expected: in, notin, =, ==, !=, gt, lt"
#define LONG        "a234567890123456789012345678901234567890123456789012345678901234"

/* The messages are those of labels.Parse of Kubernetes. */
static void test_a_wrong_label_selector_has_the_message_of_kubernetes(void **state) {
        static const char *const cases[][2] = {
                {"=b", "found '=', expected: !, identifier, or 'end of string'"},
                {"a=b c", "found 'c', expected: ',' or 'end of string'"},
                {"a=b,=c", "found '=', expected: identifier after ','"},
                {"!", REQUIREMENT "found '', expected: identifier"},
                {"!a=b", "found '=', expected: ',' or 'end of string'"},
                {"a b", REQUIREMENT "found 'b'" OPERATORS},
                {"a!b", REQUIREMENT "found '!'" OPERATORS},
                {"a in x", REQUIREMENT "found 'x' expected: '('"},
                {"a in (x", REQUIREMENT "found '', expected: ',' or ')'"},
                {"a in (x y)", REQUIREMENT "found 'y', expected: ',' or ')'"},
                {"a in ((", REQUIREMENT "found '(', expected: ',', ')' or identifier"},
                {"a in (x,=)", REQUIREMENT "found '=', expected: ',', or identifier"},
                {"a==,b>=5", REQUIREMENT "found '=', expected: identifier"},
                {"k>abc",
                 REQUIREMENT "values[0]: Invalid value: \"abc\": for 'Gt', 'Lt' operators, the "
                             "value must be an integer"},
                {"/a=b", REQUIREMENT "<nil>: Invalid value: \"/a\": prefix part must be non-empty"},
                {"a in (b," LONG ")", REQUIREMENT "values[0][a]: Invalid value: \"" LONG
                                                  "\": must be no more than 63 bytes"},
                {"a in (" LONG "," LONG "a)", REQUIREMENT
                 "[values[0][a]: Invalid value: \"" LONG
                 "\": must be no more than 63 bytes, values[1][a]: Invalid value: \"" LONG
                 "a\": must be no more than 63 bytes]"},
        };

        (void)state;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hfd_selector selector = {0};
                char reason[900];

                assert_int_equal(hfd_selector_parse(cases[i][0], false,
                                                    hfd_resource_find("", "v1", "configmaps"),
                                                    &selector, reason, sizeof reason),
                                 HF_E_INVALID);
                assert_string_equal(reason, cases[i][1]);
        }
}

static void test_the_values_of_a_set_are_sorted(void **state) {
        struct hfd_selector selector = {0};
        char reason[320];

        (void)state;
        assert_int_equal(parse("a in (c,,b,c),!b,c notin ()", false, &selector, reason), 0);
        assert_int_equal(selector.n, 3);
        assert_int_equal(selector.requirements[0].n_values, 3);
        assert_string_equal(selector.requirements[0].values[0], "");
        assert_string_equal(selector.requirements[0].values[1], "b");
        assert_string_equal(selector.requirements[0].values[2], "c");
        assert_int_equal(selector.requirements[1].op, HFD_NOT_EXISTS);
        assert_int_equal(selector.requirements[2].n_values, 1);
        assert_string_equal(selector.requirements[2].values[0], "");
        hfd_selector_done(&selector);
}

/* Kubernetes sorts the terms, so the first mistake is not always that of the first term. */
static void test_a_wrong_field_selector_has_the_message_of_kubernetes(void **state) {
        (void)state;
        expect_refused("b,a", true, "invalid selector: 'b,a'; can't understand 'a'");
        expect_refused("nothing=a,metadata.name=a\\x", true,
                       "invalid field selector: invalid escape sequence: \\x");
        expect_refused("met\\a=b", true, "\"met\\\\a\" is not a known field selector");
        expect_one("=", true, NULL, HFD_EQUALS, NULL);
        expect_one("!=,metadata.name=a", true, "metadata.name", HFD_EQUALS, "a");
}

/* As in Kubernetes, a bound must also be possible as the value of a label. */
static void test_bounds_are_numbers_without_a_sign(void **state) {
        (void)state;
        expect_one("a>5", false, "a", HFD_GREATER, "5");
        expect_refused("a>-5", false, "unable to parse requirement");
        expect_refused("a<+5", false, "unable to parse requirement");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_empty_terms_of_a_field_selector_mean_nothing),
                cmocka_unit_test(test_values_of_fields_are_escaped),
                cmocka_unit_test(test_parentheses_and_spaces_are_parts_of_fields),
                cmocka_unit_test(test_what_no_field_selector_can_be_is_refused),
                cmocka_unit_test(test_white_space_separates_in_label_selectors),
                cmocka_unit_test(test_a_wrong_label_selector_has_the_message_of_kubernetes),
                cmocka_unit_test(test_the_values_of_a_set_are_sorted),
                cmocka_unit_test(test_a_wrong_field_selector_has_the_message_of_kubernetes),
                cmocka_unit_test(test_bounds_are_numbers_without_a_sign),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
