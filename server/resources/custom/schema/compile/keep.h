/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Keeps what a compiled schema consists of, each piece once: texts, arrays and nodes with the same
 * bytes share their memory. A piece is made elsewhere, from pieces that are already kept, so equal
 * pieces have equal bytes; a struct must be zeroed before it is filled.
 *
 * Ownership: what is kept belongs to the schema's arena; the keeper is needed only while the schema
 * is made. Thread: owner only.
 */
#include <stddef.h>

#include "base/arena.h"

struct hfd_keeper {
        struct hf__arena *arena;  /* borrowed */
        struct hf__arena scratch; /* of the entries of the tree */
        void *tree;               /* of <search.h> */
        char *words, *texts;      /* the unused parts of the current blocks */
        size_t n_words, n_texts;
        size_t memory; /* bytes that were allocated from arena */
};

void hfd_keeper_init(struct hfd_keeper *keeper, struct hf__arena *arena);
void hfd_keeper_done(struct hfd_keeper *keeper);
/* The kept piece with these n bytes, aligned for a pointer. NULL = out of memory. */
const void *hfd_keep(struct hfd_keeper *keeper, const void *piece, size_t n);
/* The same for a text. text may be NULL: then NULL is returned. */
const char *hfd_keep_text(struct hfd_keeper *keeper, const char *text);
