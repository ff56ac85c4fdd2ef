/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks that a thread keeps (blocks.h), in one list for each size. A block has no header that
 * says where it came from, and is linked through its own first bytes.
 *
 * Invariant: `bytes` is the sum of the blocks in all lists, and at most KEPT_MAX.
 */
#include "base/blocks.h"

#include <assert.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>

/* glibc's blocks have 24, 40, 56, 72 usable bytes and so on. */
#define SIZE_MIN  24
#define SIZE_STEP 16
#define N_SIZES   136 /* up to 2184 bytes; nghttp2 needs 2096 for each response */
#define KEPT_MAX  ((size_t)512 << 10)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
        __has_feature(memory_sanitizer)
#define IS_SANITIZED true
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED false
#endif

struct block {
        struct block *next;
};

/* One struct, so that each function looks up the thread's storage only once. */
static _Thread_local struct {
        bool is_active; /* between begin and end */
        size_t bytes;
        struct block *lists[N_SIZES];
} mine;

static size_t size_of(size_t i) { return SIZE_MIN + i * SIZE_STEP; }

void hf__blocks_begin(void) {
        assert(!mine.is_active && mine.bytes == 0);
        mine.is_active = !IS_SANITIZED;
}

void hf__blocks_end(void) {
        mine.is_active = false;
        for (size_t i = 0; i < N_SIZES; i++)
                while (mine.lists[i]) {
                        struct block *block = mine.lists[i];

                        mine.lists[i] = block->next;
                        mine.bytes -= size_of(i);
                        free(block);
                }
        assert(mine.bytes == 0);
}

void *hf__blocks_get(size_t n) {
        size_t i = n <= SIZE_MIN ? 0 : (n - SIZE_MIN + SIZE_STEP - 1) / SIZE_STEP;

        if (i >= N_SIZES || !mine.lists[i])
                return malloc(n);
        struct block *block = mine.lists[i];
        mine.lists[i] = block->next;
        mine.bytes -= size_of(i);
        return block;
}

void hf__blocks_put(void *memory) {
        if (!mine.is_active || !memory) {
                free(memory);
                return;
        }
        /* Only exact sizes, so that this is also right for another malloc than glibc's. */
        size_t n = malloc_usable_size(memory), i = (n - SIZE_MIN) / SIZE_STEP;
        if (n < SIZE_MIN || i >= N_SIZES || size_of(i) != n || mine.bytes + n > KEPT_MAX) {
                free(memory);
                return;
        }
        struct block *block = memory;
        block->next = mine.lists[i];
        mine.lists[i] = block;
        mine.bytes += n;
}
