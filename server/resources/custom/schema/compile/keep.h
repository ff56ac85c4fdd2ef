/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Keeps the pieces of a compiled schema, each one once: texts, arrays and nodes with the same bytes
 * share their memory. Defaults and enums are no pieces (node.h). A piece is made elsewhere, from
 * pieces that are already kept, so equal pieces have equal bytes; a struct must be zeroed before it
 * is filled.
 *
 * Ownership: what is kept is in blocks, which the keeper's user takes over from `blocks`; the
 * keeper itself is needed only while the schema is made. Thread: owner only.
 */
#include <stddef.h>

#include "base/arena.h"

struct hfd_kept_block {
        struct hfd_kept_block *next;
        char data[];
};

struct hfd_keeper {
        struct hfd_kept_block *blocks; /* the user's */
        struct hf__arena scratch;      /* temporary memory, also for the keeper's user */
        void *tree;                    /* of <search.h> */
        char *words, *texts;           /* the unused parts of the current blocks */
        size_t n_words, n_texts;       /* bytes of these parts */
        size_t next_block;             /* bytes */
        size_t memory;                 /* bytes of all blocks */
        size_t n_bytes;                /* of all pieces, with their padding */
};

void hfd_keeper_init(struct hfd_keeper *keeper);
/* Frees all but the blocks. Call it before the blocks are freed, because the tree compares the
 * pieces in them. */
void hfd_keeper_done(struct hfd_keeper *keeper);
/* Frees blocks; accepts NULL. */
void hfd_kept_blocks_free(struct hfd_kept_block *blocks);
/* The kept piece with these n bytes, aligned for a pointer. NULL = out of memory. */
const void *hfd_keep(struct hfd_keeper *keeper, const void *piece, size_t n);
/* The same for a text. text may be NULL: then NULL is returned. */
const char *hfd_keep_text(struct hfd_keeper *keeper, const char *text);
