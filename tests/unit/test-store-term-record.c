/* SPDX-License-Identifier: Apache-2.0 */
/* The values of term records, and the compares of fences, without a store. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "failing_memory.h"
#include "server/storage/keys.h"
#include "server/storage/term_record.h"

static void expect_record(const char *holder, const char *acquired, const char *expected) {
        struct hf__buf *value = hfd_term_record_value(holder, acquired);

        assert_non_null(value);
        assert_int_equal(value->n, strlen(expected));
        assert_memory_equal(value->data, expected, value->n);
        hf__buf_unref(value);
}

static void test_a_value_has_one_newline(void **state) {
        expect_record("node-1", "2026-11-21T02:36:00.000000Z",
                      "node-1\n2026-11-21T02:36:00.000000Z");
        expect_record("", "now", "\nnow");
        expect_record(NULL, "now", "\nnow");
        expect_record("a", "", "a\n-");
        expect_record("a", NULL, "a\n-");
        expect_record(NULL, NULL, "\n-");
        expect_record("a\nb\n", "c\nd", "a b \nc d");
}

static void value_life(int n) {
        failing_memory_arm(n);
        struct hf__buf *value = hfd_term_record_value("a", "now");
        failing_memory_disarm();
        assert_int_equal(value == NULL, failing_memory_hit());
        hf__buf_unref(value);
}

static void test_a_value_without_memory_is_none(void **state) {
        failing_memory_try_all(value_life, 0);
}

static void expect_compares(const struct hfd_fence_compares *compares, size_t lease,
                            const char *key, uint64_t term, const char *value) {
        const struct hfd_compare *mod = &compares->compares[2 * lease], *begins = mod + 1;

        assert_int_equal(mod->kind, HFD_MOD_EQUALS);
        assert_string_equal(mod->key, key);
        assert_int_equal(mod->revision, term);
        assert_int_equal(begins->kind, HFD_VALUE_BEGINS);
        assert_string_equal(begins->key, key);
        assert_int_equal(begins->n_value, strlen(value));
        assert_memory_equal(begins->value, value, begins->n_value);
}

static void test_a_fence_compares_each_of_its_leases(void **state) {
        struct hf_fence fence = {.ns = "ns", .name = "lease", .identity = "node-1", .term = 7};
        struct hfd_fence_compares compares;

        memset(&compares, 'x', sizeof compares);
        assert_int_equal(hfd_fence_compares(&compares, "/registry", &fence), 0);
        assert_int_equal(compares.n_leases, 1);
        expect_compares(&compares, 0, "/registry.holdfast/terms/ns/lease", 7, "node-1\n");
        strcpy(fence.also_ns, "other");
        strcpy(fence.also_name, "second");
        fence.also_term = 9;
        assert_int_equal(hfd_fence_compares(&compares, "/registry", &fence), 0);
        assert_int_equal(compares.n_leases, 2);
        expect_compares(&compares, 0, "/registry.holdfast/terms/ns/lease", 7, "node-1\n");
        expect_compares(&compares, 1, "/registry.holdfast/terms/other/second", 9, "node-1\n");
        memset(fence.identity, 'i', sizeof fence.identity - 1);
        fence.identity[sizeof fence.identity - 1] = '\0';
        assert_int_equal(hfd_fence_compares(&compares, "/registry", &fence), 0);
        assert_int_equal(compares.compares[1].n_value, sizeof fence.identity);
}

static void test_a_fence_whose_key_is_too_long_is_refused(void **state) {
        struct hf_fence fence = {.ns = "ns", .name = "lease", .identity = "a", .term = 7};
        struct hfd_fence_compares compares;
        char prefix[HFD_KEY_MAX];
        size_t longest = HFD_KEY_MAX - sizeof ".holdfast/terms/ns/lease";

        memset(prefix, 'p', sizeof prefix);
        prefix[longest] = '\0';
        assert_int_equal(hfd_fence_compares(&compares, prefix, &fence), 0);
        strcpy(fence.also_ns, "ns");
        strcpy(fence.also_name, "longer");
        fence.also_term = 9;
        assert_int_equal(hfd_fence_compares(&compares, prefix, &fence), HF_E_TOO_LARGE);
        fence.also_term = 0;
        prefix[longest] = 'p';
        prefix[longest + 1] = '\0';
        assert_int_equal(hfd_fence_compares(&compares, prefix, &fence), HF_E_TOO_LARGE);
        fence.also_term = 9; /* the second would fit */
        strcpy(fence.also_name, "x");
        assert_int_equal(hfd_fence_compares(&compares, prefix, &fence), HF_E_TOO_LARGE);
}

int main(void) {
        const struct CMUnitTest cases[] = {
                cmocka_unit_test(test_a_value_has_one_newline),
                cmocka_unit_test(test_a_value_without_memory_is_none),
                cmocka_unit_test(test_a_fence_compares_each_of_its_leases),
                cmocka_unit_test(test_a_fence_whose_key_is_too_long_is_refused),
        };

        return cmocka_run_group_tests(cases, NULL, NULL);
}
