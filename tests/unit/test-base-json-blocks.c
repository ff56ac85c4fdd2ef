/* SPDX-License-Identifier: Apache-2.0 */
/* Values in memory blocks that a thread has kept, and values that another thread frees. */
#undef NDEBUG
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <malloc.h>

#include "base/json.h"
#include "base/json_blocks.h"
#include "base/strbuf.h"

/* Texts of all sizes, also larger ones than the kept blocks. */
static struct hf__json *make_value(size_t n_members) {
        struct hf__json *object = hf__json_object();
        char key[32], text[200];

        for (size_t i = 0; i < n_members; i++) {
                (void)snprintf(key, sizeof key, "k%zu", i);
                memset(text, 'a' + (int)(i % 26), sizeof text);
                text[i % sizeof text] = '\0';
                assert_int_equal(hf__json_add_string(object, key, text), 0);
        }
        return object;
}

/* Frees the value that make_value has made, after a check of its text. */
static void check_and_free(struct hf__json *object, size_t n_members) {
        char key[32];

        assert_int_equal(hf__json_count(object), n_members);
        for (size_t i = 0; i < n_members; i++) {
                (void)snprintf(key, sizeof key, "k%zu", i);
                const char *text = hf__json_string(object, key);
                assert_int_equal(strlen(text), i % 200);
                for (size_t c = 0; c < strlen(text); c++)
                        assert_int_equal(text[c], 'a' + (int)(i % 26));
        }
        hf__json_free(object);
}

static void test_values_are_made_of_kept_blocks(void **state) {
        hf__json_blocks_begin();
        for (size_t round = 0; round < 3; round++)
                for (size_t n = 1; n <= 1000; n *= 10) {
                        struct hf__json *first = make_value(n), *second = make_value(n / 2);
                        check_and_free(first, n);
                        check_and_free(second, n / 2);
                }
        hf__json_blocks_end();
}

static void test_a_value_outlives_begin_and_end(void **state) {
        struct hf__json *before = make_value(50);

        hf__json_blocks_begin();
        struct hf__json *during = make_value(50);
        check_and_free(before, 50);
        struct hf__json *copy = hf__json_dup(during);
        hf__json_blocks_end();
        check_and_free(during, 50);
        check_and_free(copy, 50);
}

static void *free_and_make(void *ctx) {
        hf__json_blocks_begin();
        check_and_free(ctx, 300);
        struct hf__json *made = make_value(200);
        hf__json_blocks_end();
        return made;
}

static void test_a_value_is_freed_on_another_thread(void **state) {
        hf__json_blocks_begin();
        for (size_t i = 0; i < 10; i++) {
                pthread_t thread;
                void *made;
                struct hf__json *here = make_value(300);

                assert_int_equal(pthread_create(&thread, NULL, free_and_make, here), 0);
                check_and_free(make_value(100), 100);
                assert_int_equal(pthread_join(thread, &made), 0);
                check_and_free(made, 200);
        }
        hf__json_blocks_end();
}

/* glibc keeps small freed blocks aside. A thread that allocates a large block merges them all,
 * under the heap's lock. So a large value must not leave many. */
static void test_a_large_value_leaves_few_unmerged_blocks(void **state) {
        struct hf__json *value = make_value(100000), *rest = make_value(100);

        hf__json_free(value);
        assert_true(mallinfo2().fsmblks <= (size_t)2 * 1024 * 128);
        hf__json_free(rest);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_values_are_made_of_kept_blocks),
                cmocka_unit_test(test_a_value_outlives_begin_and_end),
                cmocka_unit_test(test_a_value_is_freed_on_another_thread),
                cmocka_unit_test(test_a_large_value_leaves_few_unmerged_blocks),
        };

        hf__json_blocks_init();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
