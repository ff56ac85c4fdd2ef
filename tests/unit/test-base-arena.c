/* SPDX-License-Identifier: Apache-2.0 */
/* When the arena of a decoded message allocates (base/arena.h), and what happens when an allocation
 * fails. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"

#define ALIGN     _Alignof(max_align_t)
#define KIB       1024
#define FIRST     (2 * KIB)  /* bytes of the arena itself */
#define CHUNK_MIN (16 * KIB) /* the first chunk; each is twice as large as the one before */
#define CHUNK_MAX (1024 * KIB)

/* The linker redirects the allocations of the program here. A test counts those of the arena. */
static bool counts, fails;
static unsigned n_allocations, n_live;
static size_t last_size;

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_malloc(size_t n) {
        if (!counts)
                return __real_malloc(n);
        last_size = n;
        void *block = fails ? NULL : __real_malloc(n);
        if (block) {
                memset(block, 'x', n);
                n_allocations++;
                n_live++;
        }
        return block;
}
void __real_free(void *block);
void __wrap_free(void *block);
void __wrap_free(void *block) {
        if (counts && block)
                n_live--;
        __real_free(block);
}

static void begin(struct hf__arena *arena) {
        memset(arena, 'x', sizeof *arena);
        n_allocations = n_live = 0;
        fails = false;
        hf__arena_init(arena);
        assert_false(arena->failed);
}

/* Takes a block that needs this many bytes with its NUL, and writes all over it. */
static void *take(struct hf__arena *arena, size_t padded) {
        counts = true;
        char *block = hf__arena_alloc(arena, padded - 1);
        counts = false;
        if (block) {
                assert_int_equal((uintptr_t)block % ALIGN, 0);
                assert_int_equal(block[padded - 1], 0);
                memset(block, 'y', padded - 1);
        }
        return block;
}

static void end(struct hf__arena *arena) {
        counts = true;
        hf__arena_deinit(arena);
        counts = false;
        assert_int_equal(n_live, 0);
}

static void expect_chunk(const struct hf__arena *arena, unsigned n, size_t size) {
        assert_int_equal(n_allocations, n);
        assert_true(last_size >= size && last_size < size + 2 * ALIGN);
}

static void test_small_messages_allocate_nothing(void **state) {
        struct hf__arena arena;

        begin(&arena);
        for (size_t i = 0; i < FIRST / ALIGN; i++)
                assert_non_null(take(&arena, ALIGN));
        assert_int_equal(n_allocations, 0);
        assert_non_null(take(&arena, ALIGN));
        expect_chunk(&arena, 1, CHUNK_MIN);
        end(&arena);
        /* An arena that has ended can begin again, and is empty. */
        begin(&arena);
        assert_non_null(take(&arena, FIRST));
        assert_int_equal(n_allocations, 0);
        end(&arena);
}

static void test_chunks_double_up_to_a_limit(void **state) {
        struct hf__arena arena;
        unsigned n = 0;

        begin(&arena);
        assert_non_null(take(&arena, FIRST));
        for (size_t size = CHUNK_MIN; n < 9; size = size < CHUNK_MAX ? 2 * size : size) {
                for (size_t used = 0; used < size; used += CHUNK_MIN / 2) {
                        assert_non_null(take(&arena, CHUNK_MIN / 2));
                        expect_chunk(&arena, n + 1, size);
                }
                n++;
        }
        assert_int_equal(n_live, 9);
        end(&arena);
}

/* The current chunk stays current, and small blocks use the rest of it. */
static void test_a_large_block_has_a_chunk_of_its_own(void **state) {
        struct hf__arena arena;

        begin(&arena);
        assert_non_null(take(&arena, CHUNK_MIN / 2 + ALIGN));
        expect_chunk(&arena, 1, CHUNK_MIN / 2 + ALIGN);
        assert_non_null(take(&arena, FIRST));
        assert_int_equal(n_allocations, 1);
        assert_non_null(take(&arena, CHUNK_MIN / 2));
        expect_chunk(&arena, 2, CHUNK_MIN);
        assert_non_null(take(&arena, CHUNK_MIN / 2));
        /* A large block that fits into the rest to the last byte needs no chunk of its own. */
        assert_non_null(take(&arena, CHUNK_MIN / 2));
        expect_chunk(&arena, 3, 2 * CHUNK_MIN);
        assert_non_null(take(&arena, 3 * CHUNK_MIN / 2));
        assert_int_equal(n_allocations, 3);
        end(&arena);
}

static void test_a_failed_allocation_is_remembered(void **state) {
        static const size_t sizes[] = {ALIGN, CHUNK_MIN / 2, CHUNK_MIN};
        struct hf__arena arena;

        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
                begin(&arena);
                assert_non_null(take(&arena, FIRST));
                fails = true;
                assert_null(take(&arena, sizes[i]));
                assert_true(arena.failed);
                fails = false;
                assert_null(take(&arena, sizes[i]));
                assert_true(arena.failed);
                end(&arena);
                assert_false(arena.failed);
                assert_non_null(take(&arena, FIRST)); /* it can be used again */
                end(&arena);
        }
        begin(&arena);
        last_size = 0;
        /* volatile: the compiler must not know that no such block exists. */
        volatile size_t too_much = SIZE_MAX / 2 + 2;
        assert_null(take(&arena, too_much));
        assert_true(arena.failed);
        assert_int_equal(last_size, 0);
        end(&arena);
}

static void test_an_arena_returns_to_a_mark(void **state) {
        struct hf__arena arena;

        begin(&arena);
        assert_non_null(take(&arena, ALIGN));
        for (int round = 0; round < 2; round++) { /* in the arena itself, then in a chunk */
                const struct hf__arena_mark mark = hf__arena_mark(&arena);
                const unsigned n = n_live;
                const void *next = take(&arena, ALIGN);
                for (int i = 0; i < 6; i++)
                        assert_non_null(take(&arena, CHUNK_MIN));
                assert_true(n_live > n);
                counts = true;
                hf__arena_rewind(&arena, mark);
                counts = false;
                assert_int_equal(n_live, n);
                assert_ptr_equal(take(&arena, ALIGN), next);
                assert_non_null(take(&arena, FIRST));
        }
        end(&arena);
}

/* A caller who rewinds after each step must not get the largest chunk for a little in each. */
static void test_chunks_after_a_return_are_as_small_as_before(void **state) {
        struct hf__arena arena;

        begin(&arena);
        assert_non_null(take(&arena, FIRST));
        const struct hf__arena_mark mark = hf__arena_mark(&arena);
        for (int i = 0; i < 14; i++) /* three chunks: room for 2, 4 and 8 blocks */
                assert_non_null(take(&arena, CHUNK_MIN / 2));
        expect_chunk(&arena, 3, 4 * CHUNK_MIN);
        counts = true;
        hf__arena_rewind(&arena, mark);
        counts = false;
        assert_int_equal(n_live, 0);
        assert_non_null(take(&arena, ALIGN));
        expect_chunk(&arena, 4, CHUNK_MIN);
        end(&arena);
}

int main(void) {
        const struct CMUnitTest cases[] = {
                cmocka_unit_test(test_small_messages_allocate_nothing),
                cmocka_unit_test(test_chunks_double_up_to_a_limit),
                cmocka_unit_test(test_a_large_block_has_a_chunk_of_its_own),
                cmocka_unit_test(test_a_failed_allocation_is_remembered),
                cmocka_unit_test(test_an_arena_returns_to_a_mark),
                cmocka_unit_test(test_chunks_after_a_return_are_as_small_as_before),
        };

        return cmocka_run_group_tests(cases, NULL, NULL);
}
