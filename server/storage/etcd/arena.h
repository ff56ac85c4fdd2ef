/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Memory of one decoded message: taken piece by piece, given back all at once. The first kilobytes
 * lie in the arena itself, so that a small reply costs no allocation. Behind every block stands a
 * NUL that does not count, which makes C strings of bytes fields. Thread: owner only.
 */
#include <stdbool.h>
#include <stddef.h>

struct hfd_arena_chunk;

struct hfd_arena {
        struct hfd_arena_chunk *chunks; /* owned */
        char *free;
        size_t n_free, next_chunk;
        bool failed; /* out of memory: sticks, so that it can be told from a malformed message */
        _Alignas(max_align_t) char first[2048];
};

void hfd_arena_init(struct hfd_arena *arena);
void hfd_arena_deinit(struct hfd_arena *arena);
void *hfd_arena_alloc(struct hfd_arena *arena, size_t n); /* NULL = out of memory */
