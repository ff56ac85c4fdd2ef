/* SPDX-License-Identifier: Apache-2.0 */
/* The index of the children of small and large containers. Equal texts are found in their order. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/json_index.h"

static struct hf__json *parse(const char *text) {
        struct hf__json *json = NULL;

        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        return json;
}

static void expect_position(const struct hf__json_index *index, const char *text, size_t position) {
        const struct hf__json_index_entry *entry = hf__json_index_find(index, text);

        assert_non_null(entry);
        assert_string_equal(entry->text, text);
        assert_int_equal(entry->position, position);
}

static void test_members_are_found_by_key(void **state) {
        static const size_t sizes[] = {0, 1, HF__JSON_INDEX_FEW, HF__JSON_INDEX_FEW + 1, 1000};

        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
                struct hf__json *object = hf__json_object();
                struct hf__json_index index;
                char key[32];
                for (size_t i = 0; i < sizes[s]; i++) {
                        (void)snprintf(key, sizeof key, "k%zu", i * 7919 % 1000);
                        assert_int_equal(hf__json_add_string(object, key, "v"), 0);
                }
                assert_int_equal(hf__json_index_init(&index, object, NULL), 0);
                assert_int_equal(index.n, sizes[s]);
                for (size_t i = 0; i < sizes[s]; i++) {
                        (void)snprintf(key, sizeof key, "k%zu", i * 7919 % 1000);
                        expect_position(&index, key, i);
                        assert_ptr_equal(hf__json_index_find(&index, key)->item,
                                         hf__json_get(object, key));
                }
                assert_null(hf__json_index_find(&index, "k1000"));
                assert_null(hf__json_index_find(&index, ""));
                hf__json_index_done(&index);
                hf__json_free(object);
        }
}

/* Elements without a text have no entry, but keep their position. */
static void test_elements_are_found_by_text_in_order(void **state) {
        struct hf__json *strings = parse("[\"b\",1,\"a\",null,\"b\",{}]");
        struct hf__json *objects = parse("[{\"n\":1},{\"n\":\"x\"},\"x\",{\"n\":\"x\"},{}]");
        struct hf__json_index index;

        assert_int_equal(hf__json_index_init(&index, strings, NULL), 0);
        assert_int_equal(index.n, 3);
        expect_position(&index, "a", 2);
        expect_position(&index, "b", 0);
        assert_int_equal(hf__json_index_find(&index, "b")[1].position, 4);
        hf__json_index_done(&index);
        assert_int_equal(hf__json_index_init(&index, objects, "n"), 0);
        assert_int_equal(index.n, 2);
        expect_position(&index, "x", 1);
        hf__json_index_done(&index);
        /* Those without a text may have the empty one. */
        assert_int_equal(hf__json_index_init_texts(&index, objects, "n"), 0);
        assert_int_equal(index.n, 5);
        expect_position(&index, "", 0);
        expect_position(&index, "x", 1);
        hf__json_index_done(&index);
        hf__json_free(strings);
        hf__json_free(objects);
}

static void test_a_scalar_has_no_children(void **state) {
        struct hf__json *number = parse("5");
        struct hf__json_index index;

        assert_int_equal(hf__json_index_init(&index, NULL, NULL), 0);
        assert_null(hf__json_index_find(&index, "a"));
        hf__json_index_done(&index);
        assert_int_equal(hf__json_index_init(&index, number, "a"), 0);
        assert_null(hf__json_index_find(&index, "a"));
        hf__json_index_done(&index);
        hf__json_free(number);
}

static void test_members_are_added_and_replaced(void **state) {
        static const struct {
                bool replace;
                const char *result;
        } cases[] = {{false, "{\"a\":1,\"b\":2,\"c\":4}"}, {true, "{\"a\":1,\"b\":3,\"c\":4}"}};

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__json *into = parse("{\"a\":1,\"b\":2}"),
                                *from = parse("{\"b\":3,\"c\":4}"),
                                *wanted = parse(cases[i].result);
                assert_int_equal(hf__json_add_members(into, from, cases[i].replace), 0);
                assert_true(hf__json_equal(into, wanted));
                assert_int_equal(hf__json_add_members(into, NULL, true), 0);
                assert_true(hf__json_equal(into, wanted));
                hf__json_free(into);
                hf__json_free(from);
                hf__json_free(wanted);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_members_are_found_by_key),
                cmocka_unit_test(test_elements_are_found_by_text_in_order),
                cmocka_unit_test(test_a_scalar_has_no_children),
                cmocka_unit_test(test_members_are_added_and_replaced),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
