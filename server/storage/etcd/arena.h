/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The memory of one decoded message: allocated piece by piece, freed all at once. The first
 * kilobytes are part of the arena itself, so that a small response costs no allocation. Every block
 * is followed by an extra NUL, so that the bytes of a protobuf field are a C string.
 *
 * Threads: the owner's only.
 */
#include <stdbool.h>
#include <stddef.h>

struct hfd_arena_chunk;

struct hfd_arena {
        struct hfd_arena_chunk *chunks; /* owned */
        char *free;                     /* the next block, n_free bytes are left */
        size_t n_free;
        size_t next_chunk; /* size of the next chunk */
        /* An allocation has failed. So a message that could not be unpacked need not be
         * malformed. */
        bool failed;
        _Alignas(max_align_t) char first[2048];
};

void hfd_arena_init(struct hfd_arena *arena);
/* Frees all blocks and leaves an empty arena. */
void hfd_arena_deinit(struct hfd_arena *arena);
/* n uninitialised bytes, aligned for any type, and a NUL. NULL = out of memory. */
void *hfd_arena_alloc(struct hfd_arena *arena, size_t n);
