/* SPDX-License-Identifier: Apache-2.0 */
/* The index of items by key: contents and order, and that the work grows in proportion to the
 * items. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/key_index.h"
#include "counted_key_index.h"

struct item {
        struct hf__keyed keyed;
        char key[16];
        bool in_index;
};

static struct item *make_items(unsigned n) {
        struct item *items = calloc(n, sizeof *items);

        assert_non_null(items);
        for (unsigned i = 0; i < n; i++) {
                (void)snprintf(items[i].key, sizeof items[i].key, "%08u", i);
                items[i].keyed.key = items[i].key;
        }
        return items;
}

static void check_contents(const struct hf__key_index *index, struct item *items, unsigned n) {
        struct hf__key_iter iter;

        hf__key_iter_init(&iter, index);
        for (unsigned i = 0; i < n; i++) {
                assert_ptr_equal(hf__key_index_find(index, items[i].key),
                                 items[i].in_index ? &items[i] : NULL);
                if (items[i].in_index)
                        assert_ptr_equal(hf__key_iter_next(&iter), &items[i]);
        }
        assert_null(hf__key_iter_next(&iter));
        for (unsigned i = 0; i + 1 < n; i += 17) {
                unsigned at = i, after = i + 1;
                while (at < n && !items[at].in_index)
                        at++;
                while (after < n && !items[after].in_index)
                        after++;
                assert_ptr_equal(hf__key_index_lower_bound(index, items[i].key),
                                 at < n ? &items[at] : NULL);
                assert_ptr_equal(hf__key_index_after(index, items[i].key),
                                 after < n ? &items[after] : NULL);
        }
}

static void test_items_stay_in_order(void **state) {
        enum { N = 2000 };
        struct hf__key_index index = {0};
        struct item *items = make_items(N);
        unsigned random = 1;
        size_t n = 0;

        for (unsigned step = 1; step <= 30000; step++) {
                random = random * 1664525u + 1013904223u;
                struct item *item = &items[(random >> 8) % N];
                if (item->in_index)
                        hf__key_index_remove(&index, item->key);
                else
                        assert_int_equal(hf__key_index_insert(&index, &item->keyed), 0);
                item->in_index = !item->in_index;
                n += item->in_index ? 1 : (size_t)-1;
                assert_int_equal(index.n, n);
                if (step % 3000 == 0)
                        check_contents(&index, items, N);
        }
        hf__key_index_remove(&index, "none");
        hf__key_index_done(&index);
        free(items);
}

/* Twice the items cost about twice the comparisons, in any order; and sorted ones cost one each. */
static void test_work_grows_as_the_items_do(void **state) {
        uint64_t last = 0;

        for (unsigned n = 4000; n <= 32000; n *= 2) {
                struct item *items = make_items(n);
                struct hf__key_index index = {0};
                uint64_t before = counted_key_index_comparisons();

                for (unsigned i = 0; i < n; i++)
                        assert_int_equal(hf__key_index_insert(&index, &items[i].keyed), 0);
                assert_true(counted_key_index_comparisons() - before <= n);
                before = counted_key_index_comparisons();
                for (unsigned i = 0; i < n; i++)
                        hf__key_index_remove(&index, items[n - 1 - i].key);
                for (unsigned i = 0; i < n; i++) /* backwards: each one before all others */
                        assert_int_equal(hf__key_index_insert(&index, &items[n - 1 - i].keyed), 0);
                for (unsigned i = 0; i < n; i++)
                        hf__key_index_remove(&index, items[i * 7919u % n].key);
                uint64_t work = counted_key_index_comparisons() - before;
                if (last > 0)
                        assert_true(work * 2 <= last * 5);
                last = work;
                hf__key_index_done(&index);
                free(items);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_items_stay_in_order),
                cmocka_unit_test(test_work_grows_as_the_items_do),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
