/* SPDX-License-Identifier: Apache-2.0 */
/* Values are equal by their schema as the Go values are that they stand for. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "server/schema/equal.h"

static const struct hfd_schema_field inner_fields[] = {
        {"flag", &hfd_schema_boolean, .protobuf_tag = 1},
};
static const struct hfd_schema inner = {HFD_STRUCT("test.Inner", inner_fields)};
static const struct hfd_schema list = {.type = HFD_SCHEMA_LIST, .items = &inner};
static const struct hfd_schema map = {.type = HFD_SCHEMA_MAP, .items = &inner};
static const struct hfd_schema_field outer_fields[] = {
        {"amount", &hfd_schema_quantity, .protobuf_tag = 1},
        {"any", &hfd_schema_any, .protobuf_tag = 2},
        {"bytes", &hfd_schema_bytes, .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
        {"inner", &inner, .protobuf_tag = 4},
        {"limits", &hfd_schema_resource_list, .protobuf_tag = 5},
        {"list", &list, .protobuf_tag = 6},
        {"map", &map, .protobuf_tag = 7},
        {"number", &hfd_schema_int32, .protobuf_tag = 8},
        {"pointer", &hfd_schema_boolean, .protobuf_tag = 9, .flags = HFD_FIELD_POINTER},
        {"port", &hfd_schema_int_or_string, .protobuf_tag = 10},
        {"reference", &inner, .protobuf_tag = 11, .flags = HFD_FIELD_POINTER},
        {"text", &hfd_schema_text, .protobuf_tag = 12},
};
static const struct hfd_schema outer = {HFD_STRUCT("test.Outer", outer_fields)};

static struct hf__json *parse(const char *text) {
        struct hf__json *json = NULL;

        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        return json;
}

/* Compares in both directions. */
static void expect(const char *a, const char *b, bool expected) {
        struct hf__json *x = parse(a), *y = parse(b);
        bool equal, reverse;

        assert_int_equal(hfd_schema_are_equal(&outer, x, y, &equal), 0);
        assert_int_equal(hfd_schema_are_equal(&outer, y, x, &reverse), 0);
        if (equal != expected || reverse != expected)
                fail_msg("%s and %s: %d, %d", a, b, equal, reverse);
        hf__json_free(x);
        hf__json_free(y);
}

static void test_zeros_equal_absent_members(void **state) {
        static const char *const zeros[] = {"{\"amount\":\"0\"}",
                                            "{\"any\":null}",
                                            "{\"bytes\":null}",
                                            "{\"inner\":{}}",
                                            "{\"limits\":{}}",
                                            "{\"inner\":{\"flag\":false}}",
                                            "{\"list\":[]}",
                                            "{\"map\":{}}",
                                            "{\"number\":0}",
                                            "{\"port\":0}",
                                            "{\"text\":\"\"}",
                                            "{\"pointer\":null}",
                                            "{\"number\":0,\"text\":\"\"}"};
        static const char *const others[] = {"{\"amount\":\"1n\"}",         "{\"any\":{}}",
                                             "{\"inner\":{\"flag\":true}}", "{\"number\":1}",
                                             "{\"pointer\":false}",         "{\"port\":80}",
                                             "{\"reference\":{}}",          "{\"text\":\"a\"}",
                                             "{\"map\":{\"a\":{}}}",        "{\"list\":[{}]}",
                                             "{\"limits\":{\"a\":\"0\"}}",  "{\"bytes\":\"YQ==\"}"};

        for (size_t i = 0; i < sizeof zeros / sizeof zeros[0]; i++)
                expect(zeros[i], "{}", true);
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
                expect(others[i], "{}", false);
                expect(others[i], others[i], true);
        }
}

static void test_members_are_compared_in_any_order(void **state) {
        expect("{\"number\":1,\"text\":\"a\"}", "{\"text\":\"a\",\"number\":1}", true);
        expect("{\"number\":1,\"text\":\"a\"}", "{\"text\":\"b\",\"number\":1}", false);
        expect("{\"number\":1,\"text\":\"a\"}", "{\"text\":\"a\",\"port\":1}", false);
        expect("{\"port\":0,\"text\":\"a\"}", "{\"text\":\"a\",\"number\":0}", true);
        expect("{\"map\":{\"a\":{},\"b\":{\"flag\":true}}}",
               "{\"map\":{\"b\":{\"flag\":true},\"a\":{\"flag\":false}}}", true);
        expect("{\"map\":{\"a\":{},\"b\":{}}}", "{\"map\":{\"a\":{},\"c\":{}}}", false);
        expect("{\"list\":[{},{\"flag\":true}]}", "{\"list\":[{\"flag\":false},{\"flag\":true}]}",
               true);
        expect("{\"list\":[{},{\"flag\":true}]}", "{\"list\":[{\"flag\":true},{}]}", false);
        expect("{\"any\":{\"a\":1,\"b\":2}}", "{\"any\":{\"b\":2,\"a\":1}}", true);
}

static void test_quantities_are_compared_by_amount(void **state) {
        expect("{\"amount\":\"1Gi\"}", "{\"amount\":\"1073741824\"}", true);
        expect("{\"amount\":\"1Gi\"}", "{\"amount\":\"1G\"}", false);
        expect("{\"limits\":{\"a\":\"1\"}}", "{\"limits\":{\"a\":\"1000m\"}}", true);
        expect("{\"limits\":{\"a\":\"1\"}}", "{\"limits\":{\"a\":\"1001m\"}}", false);
        expect("{\"limits\":{\"a\":\"1000u\"}}", "{\"limits\":{\"a\":\"100u\"}}", true);
        expect("{\"limits\":{\"a\":\"1m\"}}", "{\"limits\":{\"a\":\"1001u\"}}", false);
        expect("{\"amount\":\"1m\"}", "{\"amount\":\"100u\"}", false);
        expect("{\"amount\":\"x\"}", "{\"amount\":\"0\"}", false);
}

/* Another program may have stored such values. */
static void test_what_has_no_members_equals_nothing(void **state) {
        static const char *const wrong[] = {"{\"inner\":[1]}",   "{\"inner\":[true]}",
                                            "{\"inner\":\"a\"}", "{\"map\":[{}]}",
                                            "{\"map\":[\"a\"]}", "{\"map\":1}"},
                                 *const others[] = {"{}", "{\"inner\":{\"flag\":true}}",
                                                    "{\"map\":{\"a\":{}}}"};

        for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
                for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++)
                        expect(wrong[i], wrong[k], false);
                for (size_t k = 0; k < sizeof others / sizeof others[0]; k++)
                        expect(wrong[i], others[k], false);
        }
        expect("[1]", "[1]", false);
}

static void test_a_member_has_the_flags_of_its_field(void **state) {
        struct hf__json *a = parse("{\"number\":0,\"pointer\":false,\"unknown\":1}"),
                        *b = parse("{\"unknown\":2}");
        bool equal;

        assert_int_equal(hfd_schema_are_members_equal(&outer, a, b, "number", &equal), 0);
        assert_true(equal);
        assert_int_equal(hfd_schema_are_members_equal(&outer, a, b, "pointer", &equal), 0);
        assert_false(equal);
        assert_int_equal(hfd_schema_are_members_equal(&outer, a, b, "unknown", &equal), 0);
        assert_false(equal);
        hf__json_free(a);
        hf__json_free(b);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_zeros_equal_absent_members),
                cmocka_unit_test(test_members_are_compared_in_any_order),
                cmocka_unit_test(test_quantities_are_compared_by_amount),
                cmocka_unit_test(test_what_has_no_members_equals_nothing),
                cmocka_unit_test(test_a_member_has_the_flags_of_its_field),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
