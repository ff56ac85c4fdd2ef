/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the small blocks of freed JSON values (json_blocks.h).
 *
 * A block comes from malloc, and its size is malloc's. So any thread may free it with free(), and a
 * block has no header that says where it came from. Each list has blocks of one size, and a block
 * is linked through its own first bytes.
 *
 * Invariants: a list has at most KEPT_MAX blocks, so that a large value leaves no more than a small
 * one. A thread leaves at most MERGE_AT freed blocks of its own heap unmerged (merge_freed_blocks),
 * besides those that hf__json_blocks_end frees.
 *
 * base/blocks.c keeps blocks in the same way, but it is not used here, because its limit is one of
 * bytes. A value of 64 KiB has thousands of nodes. They would fill that limit, lie on as many pages
 * of the heap, and keep malloc_trim from giving these back, on each worker. A limit on the number
 * in base/blocks.c would be wrong for nghttp2, whose blocks stay in use as long as a stream.
 */
#include "base/json_blocks.h"

#include <assert.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/json_item.h"
#include "base/sanitized.h"

/* glibc's blocks have 24, 40, 56, 72 usable bytes and so on. A node of cJSON takes the largest of
 * these four; nearly all keys and texts take the smaller ones. */
#define SIZE_MIN   24
#define SIZE_STEP  16
#define N_SIZES    4
#define SIZE_LIMIT (SIZE_MIN + (N_SIZES - 1) * SIZE_STEP)
#define KEPT_MAX   128
#define MERGE_AT   1024 /* freed blocks; merging so many takes about 0.1 ms */
#define MERGE_SIZE 4096 /* bytes; glibc merges when it allocates 1 KiB or more from a heap */

_Static_assert(sizeof(cJSON) <= SIZE_LIMIT, "a node must fit into a block that is kept");

struct block {
        struct block *next;
};

struct kept {
        struct block *first;
        unsigned n;
};

/* One struct, so that each function looks up the thread's storage only once. */
static _Thread_local struct {
        bool is_active;   /* between begin and end */
        unsigned n_freed; /* blocks given to free() since the last merge */
        struct kept lists[N_SIZES];
} mine;

static void *allocate_block(size_t n) {
        size_t i = n <= SIZE_MIN ? 0 : (n - SIZE_MIN + SIZE_STEP - 1) / SIZE_STEP;

        if (i >= N_SIZES || !mine.lists[i].first)
                return malloc(n);
        struct kept *list = &mine.lists[i];
        struct block *block = list->first;
        list->first = block->next;
        assert(list->n > 0);
        list->n--;
        return block;
}

/*
 * Makes glibc merge the small blocks that were freed. By itself glibc keeps them aside until a
 * thread that shares the heap allocates a large block, and then merges them all under the heap's
 * lock. A large value has 400,000 blocks. A thread of a connection, or the elector, would wait
 * 70 ms for them.
 */
static void merge_freed_blocks(void) {
        void *volatile block = malloc(MERGE_SIZE); /* volatile: or both calls are left out */

        free(block);
        mine.n_freed = 0;
}

static void release_block(void *memory) {
        /* Keep only blocks whose usable size is exactly one of the sizes, so that the lists are
         * also correct with another malloc than glibc's. n is what the size has beyond the
         * smallest. A block with n = 1 is never kept, because 1 is no multiple of SIZE_STEP. */
        size_t n = mine.is_active && memory ? malloc_usable_size(memory) - SIZE_MIN : 1;

        if (n % SIZE_STEP != 0 || n > SIZE_LIMIT - SIZE_MIN ||
            mine.lists[n / SIZE_STEP].n >= KEPT_MAX) {
                free(memory);
                if (++mine.n_freed >= MERGE_AT)
                        merge_freed_blocks();
                return;
        }
        struct kept *list = &mine.lists[n / SIZE_STEP];
        struct block *block = memory;
        block->next = list->first;
        list->first = block;
        list->n++;
}

void hf__json_blocks_init(void) {
        cJSON_Hooks hooks = {.malloc_fn = allocate_block, .free_fn = release_block};

        if (!HF__IS_SANITIZED)
                cJSON_InitHooks(&hooks);
}

void hf__json_blocks_begin(void) { mine.is_active = true; }

void hf__json_blocks_end(void) {
        mine.is_active = false;
        for (size_t i = 0; i < N_SIZES; i++) {
                while (mine.lists[i].first) {
                        struct block *block = mine.lists[i].first;

                        mine.lists[i].first = block->next;
                        free(block);
                }
                mine.lists[i].n = 0;
        }
}
