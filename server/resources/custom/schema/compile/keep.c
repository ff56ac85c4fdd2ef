/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps equal pieces once. They are found in a balanced tree rather than by a hash, because the
 * pieces come from clients, who could choose them so that their hashes collide.
 *
 * Invariant: pieces never move. Texts and words have separate blocks, so that texts need no
 * padding: most of a schema is names and descriptions.
 */
#include "server/resources/custom/schema/compile/keep.h"

#include <search.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define BLOCK 2048 /* bytes of a block that small pieces share */

struct kept {
        size_t n;
        const void *piece;
        bool is_text; /* a text is not aligned, so no other piece may share it */
};

static int compare(const void *a, const void *b) {
        const struct kept *x = a, *y = b;

        if (x->is_text != y->is_text)
                return x->is_text ? 1 : -1;
        if (x->n != y->n)
                return x->n < y->n ? -1 : 1;
        return memcmp(x->piece, y->piece, x->n);
}

void hfd_keeper_init(struct hfd_keeper *keeper, struct hf__arena *arena) {
        memset(keeper, 0, sizeof *keeper);
        keeper->arena = arena;
        hf__arena_init(&keeper->scratch);
}

void hfd_keeper_done(struct hfd_keeper *keeper) {
        while (keeper->tree)
                (void)tdelete(*(struct kept **)keeper->tree, &keeper->tree, compare);
        hf__arena_deinit(&keeper->scratch);
}

/* n bytes from the block *free, which is replaced when it is used up. */
static void *take(struct hfd_keeper *keeper, char **free, size_t *n_free, size_t n) {
        if (n > BLOCK / 4) {
                keeper->memory += n;
                return hf__arena_alloc(keeper->arena, n);
        }
        if (n > *n_free) {
                *free = hf__arena_alloc(keeper->arena, BLOCK);
                *n_free = *free ? BLOCK : 0;
                keeper->memory += *n_free;
                if (!*free)
                        return NULL;
        }
        void *piece = *free;
        *free += n;
        *n_free -= n;
        return piece;
}

static const void *keep(struct hfd_keeper *keeper, const void *piece, size_t n, bool is_text) {
        const struct kept wanted = {n, piece, is_text};
        void *found = tfind(&wanted, &keeper->tree, compare);

        if (found)
                return (*(struct kept **)found)->piece;
        size_t padded = (n + sizeof(void *) - 1) / sizeof(void *) * sizeof(void *);
        void *copy = is_text ? take(keeper, &keeper->texts, &keeper->n_texts, n)
                             : take(keeper, &keeper->words, &keeper->n_words, padded);
        struct kept *kept = hf__arena_alloc(&keeper->scratch, sizeof *kept);
        if (!copy || !kept)
                return NULL;
        memcpy(copy, piece, n);
        *kept = (struct kept){n, copy, is_text};
        return tsearch(kept, &keeper->tree, compare) ? copy : NULL;
}

const void *hfd_keep(struct hfd_keeper *keeper, const void *piece, size_t n) {
        return keep(keeper, piece, n, false);
}

const char *hfd_keep_text(struct hfd_keeper *keeper, const char *text) {
        return text ? keep(keeper, text, strlen(text) + 1, true) : NULL;
}
