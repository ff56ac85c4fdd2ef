/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the pieces of a compiled schema, equal ones once. They are found in a balanced tree rather
 * than by a hash, because the pieces come from clients, who could choose them so that their hashes
 * collide.
 *
 * Invariant: pieces never move. Texts and words (arrays and structs) have separate blocks, so that
 * texts need no padding: they are many and short.
 */
#include "server/resources/custom/schema/compile/keep.h"

#include <assert.h>
#include <search.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the blocks that small pieces share. They grow, so that neither small schemas waste much
 * nor large ones have many. */
#define BLOCK_MIN 512
#define BLOCK_MAX 8192

/* A piece that is kept; or, for a search, one that is wanted. */
struct kept {
        size_t n; /* bytes */
        const void *piece;
        bool is_text; /* a text is not aligned, so no other piece may share it */
};

static int compare_pieces(const void *a, const void *b) {
        const struct kept *x = a, *y = b;

        if (x->is_text != y->is_text)
                return x->is_text ? 1 : -1;
        if (x->n != y->n)
                return x->n < y->n ? -1 : 1;
        return memcmp(x->piece, y->piece, x->n);
}

void hfd_keeper_init(struct hfd_keeper *keeper) {
        memset(keeper, 0, sizeof *keeper);
        keeper->next_block = BLOCK_MIN;
        hf__arena_init(&keeper->scratch);
}

void hfd_keeper_done(struct hfd_keeper *keeper) {
        while (keeper->tree)
                (void)tdelete(*(struct kept **)keeper->tree, &keeper->tree, compare_pieces);
        hf__arena_deinit(&keeper->scratch);
}

void hfd_kept_blocks_free(struct hfd_kept_block *blocks) {
        while (blocks) {
                struct hfd_kept_block *next = blocks->next;
                free(blocks);
                blocks = next;
        }
}

static char *add_block(struct hfd_keeper *keeper, size_t n) {
        struct hfd_kept_block *block = malloc(sizeof *block + n);

        assert(n > 0);
        if (!block)
                return NULL;
        block->next = keeper->blocks;
        keeper->blocks = block;
        keeper->memory += sizeof *block + n;
        return block->data;
}

/* n bytes from *rest, the unused part of the current block. If they do not fit there, a new block
 * becomes the current one; but a large piece gets a block of its own, so that the unused part is
 * not wasted. NULL = out of memory. */
static void *take_memory(struct hfd_keeper *keeper, char **rest, size_t *n_rest, size_t n) {
        if (n > BLOCK_MIN / 4 && n > *n_rest)
                return add_block(keeper, n);
        if (n > *n_rest) {
                *rest = add_block(keeper, keeper->next_block);
                *n_rest = *rest ? keeper->next_block : 0;
                if (!*rest)
                        return NULL;
                if (keeper->next_block < BLOCK_MAX)
                        keeper->next_block *= 2;
        }
        void *piece = *rest;
        *rest += n;
        assert(*n_rest >= n);
        *n_rest -= n;
        return piece;
}

static const void *keep_piece(struct hfd_keeper *keeper, const void *piece, size_t n,
                              bool is_text) {
        const struct kept wanted = {n, piece, is_text};
        void *found = tfind(&wanted, &keeper->tree, compare_pieces);

        if (found)
                return (*(struct kept **)found)->piece;
        size_t padded = (n + sizeof(void *) - 1) / sizeof(void *) * sizeof(void *);
        void *copy = is_text ? take_memory(keeper, &keeper->texts, &keeper->n_texts, n)
                             : take_memory(keeper, &keeper->words, &keeper->n_words, padded);
        struct kept *kept = hf__arena_alloc(&keeper->scratch, sizeof *kept);
        if (!copy || !kept)
                return NULL;
        memcpy(copy, piece, n);
        keeper->n_bytes += is_text ? n : padded;
        *kept = (struct kept){n, copy, is_text};
        return tsearch(kept, &keeper->tree, compare_pieces) ? copy : NULL;
}

const void *hfd_keep(struct hfd_keeper *keeper, const void *piece, size_t n) {
        return keep_piece(keeper, piece, n, false);
}

const char *hfd_keep_text(struct hfd_keeper *keeper, const char *text) {
        return text ? keep_piece(keeper, text, strlen(text) + 1, true) : NULL;
}
