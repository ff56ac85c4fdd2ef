/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The memory of one decoded message: allocated piece by piece, freed all at once. The first 2 KiB
 * are part of the arena itself, so that for a small response it allocates nothing. Every block is
 * followed by an extra NUL, so that the bytes of a protobuf field can be used as a C string.
 *
 * Thread: the owner's only.
 */
#include <stdbool.h>
#include <stddef.h>

struct hfd_arena_chunk;

struct hfd_arena {
        struct hfd_arena_chunk *chunks; /* owned */
        char *free;                     /* start of the n_free unused bytes of the current chunk */
        size_t n_free;
        size_t next_chunk_size;
        /* An allocation has failed. protobuf-c reports every failure to unpack in the same way, so
         * this distinguishes lack of memory from a malformed message. */
        bool failed;
        _Alignas(max_align_t) char first[2048];
};

void hfd_arena_init(struct hfd_arena *arena);
/* Frees all blocks and leaves an empty arena. */
void hfd_arena_deinit(struct hfd_arena *arena);
/* n uninitialised bytes, aligned for any type, and a NUL. NULL = out of memory. */
void *hfd_arena_alloc(struct hfd_arena *arena, size_t n);
