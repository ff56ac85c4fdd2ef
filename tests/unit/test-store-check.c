/* SPDX-License-Identifier: Apache-2.0 */
/* Which transactions every store accepts (hfd_txn_check). */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/storage/keys.h"
#include "server/storage/store.h"

static struct hf__buf *value;
static char longest[HFD_KEY_MAX], too_long[HFD_KEY_MAX + 1];

static int setup(void **state) {
        value = hf__buf_copy("v", 1);
        assert_non_null(value);
        memset(longest, 'k', sizeof longest - 1);
        memset(too_long, 'k', sizeof too_long - 1);
        return 0;
}
static int teardown(void **state) {
        hf__buf_unref(value);
        return 0;
}

static int check_compare(struct hfd_compare compare) {
        return hfd_txn_check(&(struct hfd_txn){.compares = &compare, .n_compares = 1});
}
static int check_op(enum hfd_op_kind kind, const char *key, struct hf__buf *with) {
        const struct hfd_op op = {.kind = kind, .key = key, .value = with};

        return hfd_txn_check(&(struct hfd_txn){.ops = &op, .n_ops = 1});
}
static int check_get(const char *key) {
        return hfd_txn_check(&(struct hfd_txn){.get_on_failure = &key, .n_get_on_failure = 1});
}

static void test_a_key_is_neither_missing_nor_empty_nor_too_long(void **state) {
        static const struct {
                const char *key;
                int r;
        } cases[] = {{NULL, -EINVAL},
                     {"", -EINVAL},
                     {"k", 0},
                     {longest, 0},
                     {too_long, HF_E_TOO_LARGE}};

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                assert_int_equal(check_compare((struct hfd_compare){.key = cases[i].key}),
                                 cases[i].r);
                assert_int_equal(check_op(HFD_DELETE, cases[i].key, NULL), cases[i].r);
                assert_int_equal(check_get(cases[i].key), cases[i].r);
        }
}

/* One bad part is found wherever it stands. */
static void test_each_part_is_checked(void **state) {
        const struct hfd_compare compares[] = {{.key = "a"}, {.key = ""}, {.key = "b"}};
        const struct hfd_op ops[] = {{.kind = HFD_DELETE, .key = "a"},
                                     {.kind = HFD_DELETE, .key = ""},
                                     {.kind = HFD_DELETE, .key = "b"}};
        const char *const gets[] = {"a", "", "b"};

        for (size_t n = 0; n <= 3; n++) {
                const struct hfd_txn txns[] = {{.compares = compares, .n_compares = n},
                                               {.ops = ops, .n_ops = n},
                                               {.get_on_failure = gets, .n_get_on_failure = n},
                                               {.compares = compares,
                                                .n_compares = 1,
                                                .get_on_failure = gets,
                                                .n_get_on_failure = n}};
                for (size_t i = 0; i < 4; i++)
                        assert_int_equal(hfd_txn_check(&txns[i]), n < 2 ? 0 : -EINVAL);
        }
}

static void test_a_transaction_has_up_to_16_of_each(void **state) {
        struct hfd_compare compares[HFD_TXN_MAX + 1];
        struct hfd_op ops[HFD_TXN_MAX + 1];
        const char *gets[HFD_TXN_MAX + 1];

        for (size_t i = 0; i <= HFD_TXN_MAX; i++) {
                compares[i] = (struct hfd_compare){.key = "k"};
                ops[i] = (struct hfd_op){.kind = HFD_DELETE, .key = "k"};
                gets[i] = "k";
        }
        for (size_t n = HFD_TXN_MAX; n <= HFD_TXN_MAX + 1; n++) {
                const struct hfd_txn txns[] = {{.compares = compares, .n_compares = n},
                                               {.ops = ops, .n_ops = n},
                                               {.get_on_failure = gets, .n_get_on_failure = n}};
                for (size_t i = 0; i < 3; i++)
                        assert_int_equal(hfd_txn_check(&txns[i]),
                                         n == HFD_TXN_MAX ? 0 : HF_E_TOO_LARGE);
        }
        assert_int_equal(hfd_txn_check(&(struct hfd_txn){.compares = compares,
                                                         .n_compares = HFD_TXN_MAX,
                                                         .ops = ops,
                                                         .n_ops = HFD_TXN_MAX,
                                                         .get_on_failure = gets,
                                                         .n_get_on_failure = HFD_TXN_MAX}),
                         0);
}

static void test_only_a_put_needs_a_value(void **state) {
        assert_int_equal(check_op(HFD_PUT, "k", value), 0);
        assert_int_equal(check_op(HFD_PUT, "k", NULL), -EINVAL);
        assert_int_equal(check_op(HFD_DELETE, "k", NULL), 0);
        assert_int_equal(check_op((enum hfd_op_kind)7, "k", value), -EINVAL);
}

static void test_a_compared_value_may_be_empty(void **state) {
        static const struct {
                enum hfd_compare_kind kind;
                const void *value;
                size_t n;
                int r;
        } cases[] = {{HFD_VALUE_EQUALS, "v", 1, 0},        {HFD_VALUE_BEGINS, "v", 1, 0},
                     {HFD_VALUE_EQUALS, NULL, 0, 0},       {HFD_VALUE_BEGINS, NULL, 0, 0},
                     {HFD_VALUE_EQUALS, NULL, 1, -EINVAL}, {HFD_VALUE_BEGINS, NULL, 1, -EINVAL},
                     {HFD_MOD_EQUALS, NULL, 1, 0}}; /* it compares no value */

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                assert_int_equal(check_compare((struct hfd_compare){.kind = cases[i].kind,
                                                                    .key = "k",
                                                                    .value = cases[i].value,
                                                                    .n_value = cases[i].n}),
                                 cases[i].r);
}

static void test_a_key_is_not_put_and_written_again(void **state) {
        static const struct {
                enum hfd_op_kind first, second;
                int r;
        } cases[] = {{HFD_PUT, HFD_PUT, -EINVAL},
                     {HFD_PUT, HFD_DELETE, -EINVAL},
                     {HFD_DELETE, HFD_PUT, -EINVAL},
                     {HFD_DELETE, HFD_DELETE, 0}};

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                for (int other = 0; other < 2; other++) {
                        const struct hfd_op ops[] =
                                {{.kind = cases[i].first, .key = "k", .value = value},
                                 {.kind = HFD_PUT, .key = "between", .value = value},
                                 {.kind = cases[i].second,
                                  .key = other ? "other" : "k",
                                  .value = value}};
                        assert_int_equal(hfd_txn_check(&(struct hfd_txn){.ops = ops, .n_ops = 3}),
                                         other ? 0 : cases[i].r);
                }
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest cases[] = {
                CASE(test_a_key_is_neither_missing_nor_empty_nor_too_long),
                CASE(test_each_part_is_checked),
                CASE(test_a_transaction_has_up_to_16_of_each),
                CASE(test_only_a_put_needs_a_value),
                CASE(test_a_compared_value_may_be_empty),
                CASE(test_a_key_is_not_put_and_written_again),
        };

        return cmocka_run_group_tests(cases, NULL, NULL);
}
