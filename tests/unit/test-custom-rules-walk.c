/* SPDX-License-Identifier: Apache-2.0 */
/* What it takes to evaluate the rules of a large object: how often its parts are compared, and how
 * much memory their values need. */
#undef NDEBUG
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/causes.h"
#include "server/resources/custom/rules/custom_rules.h"

#define RULE(text) "\"x-kubernetes-validations\":[{\"rule\":\"" text "\"}]"

/* The linker redirects the functions. */
static size_t n_compared;
int __real_hf__json_are_equal(const struct hf__json *a, const struct hf__json *b, bool *ret_equal);
int __wrap_hf__json_are_equal(const struct hf__json *a, const struct hf__json *b, bool *ret_equal);
int __wrap_hf__json_are_equal(const struct hf__json *a, const struct hf__json *b, bool *ret_equal) {
        n_compared++;
        return __real_hf__json_are_equal(a, b, ret_equal);
}

/* Bytes of malloc that are in use while a test counts them, and the most that were. */
static bool counts;
static long n_live, n_most;

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_malloc(size_t n) {
        void *block = __real_malloc(n);

        if (counts) {
                n_live += (long)malloc_usable_size(block);
                n_most = n_live > n_most ? n_live : n_most;
        }
        return block;
}
void __real_free(void *block);
void __wrap_free(void *block);
void __wrap_free(void *block) {
        if (counts)
                n_live -= (long)malloc_usable_size(block);
        __real_free(block);
}

static struct hf__json *parse(const char *text) {
        struct hf__json *json = NULL;
        size_t at = 0;

        if (hf__json_parse(text, strlen(text), &json, &at) != 0)
                fail_msg("not JSON from byte %zu on: %s", at, text);
        return json;
}

/* Checks an update that changes nothing, by the rules of a stored schema. */
static void check_unchanged(const char *schema, const char *object, struct hfd_causes *causes) {
        struct hf__json *props = parse(schema), *json = parse(object), *old = parse(object);
        struct hfd_custom_rules *rules = NULL;

        hfd_causes_init(causes);
        assert_int_equal(hfd_custom_rules_new(props, "", NULL, NULL, &rules), 0);
        assert_non_null(rules);
        n_compared = 0;
        n_live = n_most = 0;
        counts = true;
        int r = hfd_custom_rules_check(rules, json, old, causes);
        counts = false;
        assert_int_equal(r, 0);
        hfd_custom_rules_free(rules);
        hf__json_free(props);
        hf__json_free(json);
        hf__json_free(old);
}

static void test_an_unchanged_object_is_compared_once(void **state) {
        enum { LEVELS = 40 };
        struct hf__strbuf schema = {0}, object = {0};
        struct hfd_causes causes;

        for (int i = 0; i < LEVELS; i++) {
                hf__strbuf_puts(&schema,
                                "{\"type\":\"object\"," RULE("false") ",\"properties\":{\"f\":");
                hf__strbuf_puts(&object, "{\"f\":");
        }
        hf__strbuf_puts(&schema,
                        "{\"type\":\"array\",\"items\":{\"type\":\"integer\"," RULE("false") "}}");
        hf__strbuf_puts(&object, "[1,2]");
        for (int i = 0; i < LEVELS; i++) {
                hf__strbuf_puts(&schema, "}}");
                hf__strbuf_puts(&object, "}");
        }
        check_unchanged(schema.data, object.data, &causes);
        assert_int_equal(causes.n, 0);
        assert_int_equal(n_compared, 1);
        hf__strbuf_done(&schema);
        hf__strbuf_done(&object);
}

/* Of two elements with the same keys, both replace the first one. So the second one is not as it
 * was, although the list is. */
static void test_an_element_with_the_keys_of_another_is_compared(void **state) {
        struct hfd_causes causes;

        check_unchanged("{\"type\":\"array\",\"x-kubernetes-list-type\":\"map\","
                        "\"x-kubernetes-list-map-keys\":[\"k\"]," RULE(
                                "false") ",\"items\":{\"type\":\"object\",\"properties\":{"
                                         "\"k\":{\"type\":\"string\"},"
                                         "\"v\":{\"type\":\"integer\"}}," RULE("false") "}}",
                        "[{\"k\":\"a\",\"v\":1},{\"k\":\"a\",\"v\":2}]", &causes);
        assert_int_equal(causes.n, 1);
        assert_string_equal(causes.items[0].field, "[1]");
}

/* Each branch of an allOf needs the old form of the list. */
static void test_the_values_of_branches_do_not_pile_up(void **state) {
        enum { BRANCHES = 64, N = 2000, VALUE = 16 * N };
        struct hf__strbuf schema = {0}, object = {0};
        struct hfd_causes causes;

        hf__strbuf_puts(&schema,
                        "{\"type\":\"object\"," RULE(
                                "self.l.size() > 0") ","
                                                     "\"properties\":{\"l\":{\"type\":\"array\","
                                                     "\"items\":{"
                                                     "\"type\":\"integer\"}}},\"allOf\":[");
        for (int i = 0; i < BRANCHES; i++)
                hf__strbuf_printf(&schema,
                                  "%s{\"properties\":{\"l\":{" RULE("self.size() == "
                                                                    "oldSelf.size()") "}}}",
                                  i > 0 ? "," : "");
        hf__strbuf_puts(&schema, "]}");
        hf__strbuf_puts(&object, "{\"l\":[");
        for (int i = 0; i < N; i++)
                hf__strbuf_printf(&object, "%s%d", i > 0 ? "," : "", i);
        hf__strbuf_puts(&object, "]}");
        check_unchanged(schema.data, object.data, &causes);
        assert_int_equal(causes.n, 0);
        assert_in_range(n_most, 2 * VALUE, 8 * VALUE);
        hf__strbuf_done(&schema);
        hf__strbuf_done(&object);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_an_unchanged_object_is_compared_once),
                cmocka_unit_test(test_an_element_with_the_keys_of_another_is_compared),
                cmocka_unit_test(test_the_values_of_branches_do_not_pile_up),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
