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

#include "base/sanitized.h"

/* glibc's blocks have 24, 40, 56, 72 usable bytes and so on. */
#define SIZE_MIN  24
#define SIZE_STEP 16
#define N_SIZES   136 /* up to 2184 bytes; nghttp2 needs 2096 for each response */
#define KEPT_MAX  ((size_t)512 << 10)

struct block {
        struct block *next;
};

struct kept {
        size_t bytes;
        struct block *lists[N_SIZES];
};

/* Owned; NULL = the thread keeps nothing. It is a pointer because the C library puts thread-local
 * variables on the stack of every thread, and few threads keep blocks. */
static _Thread_local struct kept *mine;

static size_t size_of(size_t i) { return SIZE_MIN + i * SIZE_STEP; }

void hf__blocks_begin(void) {
        assert(!mine);
        mine = HF__IS_SANITIZED ? NULL : calloc(1, sizeof *mine);
}

void hf__blocks_end(void) {
        struct kept *kept = mine;

        mine = NULL;
        for (size_t i = 0; kept && i < N_SIZES; i++)
                while (kept->lists[i]) {
                        struct block *block = kept->lists[i];

                        kept->lists[i] = block->next;
                        assert(kept->bytes >= size_of(i));
                        kept->bytes -= size_of(i);
                        free(block);
                }
        assert(!kept || kept->bytes == 0);
        free(kept);
}

void *hf__blocks_get(size_t n) {
        size_t i = n <= SIZE_MIN ? 0 : (n - SIZE_MIN + SIZE_STEP - 1) / SIZE_STEP;
        struct kept *kept = mine;

        if (!kept || i >= N_SIZES || !kept->lists[i])
                return malloc(n);
        struct block *block = kept->lists[i];
        kept->lists[i] = block->next;
        assert(kept->bytes >= size_of(i));
        kept->bytes -= size_of(i);
        return block;
}

void hf__blocks_put(void *memory) {
        struct kept *kept = mine;

        if (!kept || !memory) {
                free(memory);
                return;
        }
        /* Keep only blocks whose usable size is exactly one of the sizes, so that the lists are
         * also correct with another malloc than glibc's. */
        size_t n = malloc_usable_size(memory), i = (n - SIZE_MIN) / SIZE_STEP;
        if (n < SIZE_MIN || i >= N_SIZES || size_of(i) != n || kept->bytes + n > KEPT_MAX) {
                free(memory);
                return;
        }
        struct block *block = memory;
        block->next = kept->lists[i];
        kept->lists[i] = block;
        kept->bytes += n;
}
