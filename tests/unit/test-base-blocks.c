/* SPDX-License-Identifier: Apache-2.0 */
/* Freed blocks of memory that a thread keeps for its next allocations. */
#undef NDEBUG
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/blocks.h"

#define N_BLOCKS 400

/* Fills blocks of many sizes, each with its own byte. */
static void get_blocks(unsigned char *blocks[N_BLOCKS], size_t step) {
        for (size_t i = 0; i < N_BLOCKS; i++) {
                blocks[i] = hf__blocks_get(1 + i * step);
                assert_non_null(blocks[i]);
                memset(blocks[i], (int)(i % 251), 1 + i * step);
        }
}

static void put_blocks(unsigned char *blocks[N_BLOCKS], size_t step) {
        for (size_t i = 0; i < N_BLOCKS; i++) {
                for (size_t at = 0; at < 1 + i * step; at++)
                        assert_int_equal(blocks[i][at], i % 251);
                hf__blocks_put(blocks[i]);
        }
}

static void test_blocks_do_not_overlap(void **state) {
        unsigned char *first[N_BLOCKS], *second[N_BLOCKS];

        hf__blocks_begin();
        for (size_t round = 0; round < 4; round++) {
                get_blocks(first, 1 + round * 3);
                get_blocks(second, 7);
                put_blocks(first, 1 + round * 3);
                get_blocks(first, 2);
                put_blocks(second, 7);
                put_blocks(first, 2);
        }
        hf__blocks_end();
}

static void test_a_thread_without_blocks_uses_malloc(void **state) {
        unsigned char *blocks[N_BLOCKS];

        get_blocks(blocks, 3);
        hf__blocks_begin();
        put_blocks(blocks, 3);
        get_blocks(blocks, 5);
        hf__blocks_end();
        put_blocks(blocks, 5);
        hf__blocks_put(NULL);
}

static void *put_and_get(void *ctx) {
        hf__blocks_begin();
        put_blocks(ctx, 4);
        get_blocks(ctx, 6);
        hf__blocks_end();
        return NULL;
}

static void test_a_block_is_freed_on_another_thread(void **state) {
        unsigned char *blocks[N_BLOCKS];

        hf__blocks_begin();
        for (size_t round = 0; round < 4; round++) {
                pthread_t thread;

                get_blocks(blocks, 4);
                assert_int_equal(pthread_create(&thread, NULL, put_and_get, blocks), 0);
                assert_int_equal(pthread_join(thread, NULL), 0);
                put_blocks(blocks, 6);
        }
        hf__blocks_end();
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_blocks_do_not_overlap),
                cmocka_unit_test(test_a_thread_without_blocks_uses_malloc),
                cmocka_unit_test(test_a_block_is_freed_on_another_thread),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
