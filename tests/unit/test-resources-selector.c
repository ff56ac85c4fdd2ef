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
        expect_refused(" , a", false, "unable to parse requirement");
        expect_refused("a,", false, "unable to parse requirement");
        expect_refused("a\vin (b)", false, "unable to parse requirement");
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
                cmocka_unit_test(test_bounds_are_numbers_without_a_sign),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
