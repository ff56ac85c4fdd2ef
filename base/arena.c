/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arena first hands out the space inside its struct, then chunks of increasing size, up to
 * CHUNK_MAX. A large block that does not fit gets a separate chunk.
 *
 * Invariant: blocks never move, because decoded messages contain many pointers into the arena. For
 * the same reason an arena must not be copied.
 */
#include "base/arena.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_MIN (16 * 1024)
#define CHUNK_MAX (1024 * 1024)

struct hf__arena_chunk {
        struct hf__arena_chunk *next;
        _Alignas(max_align_t) char data[];
};

void hf__arena_init(struct hf__arena *arena) {
        arena->chunks = NULL;
        arena->free = arena->first;
        arena->n_free = sizeof arena->first;
        arena->next_chunk_size = CHUNK_MIN;
        arena->failed = false;
}

/* Frees the chunks that were added after `last`. */
static void free_chunks(struct hf__arena *arena, const struct hf__arena_chunk *last) {
        while (arena->chunks != last) {
                struct hf__arena_chunk *chunk = arena->chunks;

                assert(chunk);
                arena->chunks = chunk->next;
                free(chunk);
        }
}

void hf__arena_deinit(struct hf__arena *arena) {
        free_chunks(arena, NULL);
        hf__arena_init(arena);
}

struct hf__arena_mark hf__arena_mark(const struct hf__arena *arena) {
        return (struct hf__arena_mark){arena->chunks, arena->free, arena->n_free,
                                       arena->next_chunk_size};
}

/* Restores next_chunk_size, too. Otherwise a caller who rewinds often would soon allocate the
 * largest chunk each time, even if each time it needs little memory. */
void hf__arena_rewind(struct hf__arena *arena, struct hf__arena_mark mark) {
        free_chunks(arena, mark.chunks);
        arena->free = mark.free;
        arena->n_free = mark.n_free;
        arena->next_chunk_size = mark.next_chunk_size;
}

static struct hf__arena_chunk *add_chunk(struct hf__arena *arena, size_t n) {
        struct hf__arena_chunk *chunk =
                n <= SIZE_MAX - sizeof *chunk ? malloc(sizeof *chunk + n) : NULL;

        if (!chunk) {
                arena->failed = true;
                return NULL;
        }
        chunk->next = arena->chunks;
        arena->chunks = chunk;
        return chunk;
}

/* Continues with a new chunk, for small blocks. Returns false when out of memory. */
static bool start_chunk(struct hf__arena *arena) {
        struct hf__arena_chunk *chunk = add_chunk(arena, arena->next_chunk_size);

        if (!chunk)
                return false;
        arena->free = chunk->data;
        arena->n_free = arena->next_chunk_size;
        if (arena->next_chunk_size < CHUNK_MAX)
                arena->next_chunk_size *= 2;
        return true;
}

void *hf__arena_alloc(struct hf__arena *arena, size_t n) {
        const size_t align = _Alignof(max_align_t);
        char *block;
        size_t padded;

        assert(arena->free);
        if (arena->failed || n > SIZE_MAX / 2) {
                arena->failed = true;
                return NULL;
        }
        padded = (n + 1 + align - 1) / align * align; /* with the NUL after the block */
        /* A block of up to CHUNK_MIN / 2 fits into any new chunk, and leaves half of it or more. */
        if (padded > arena->n_free && padded > CHUNK_MIN / 2) {
                /* Later small blocks still use the rest of the current chunk. */
                struct hf__arena_chunk *chunk = add_chunk(arena, padded);

                if (!chunk)
                        return NULL;
                chunk->data[n] = 0;
                return chunk->data;
        }
        if (padded > arena->n_free && !start_chunk(arena))
                return NULL;
        block = arena->free;
        arena->free += padded;
        assert(arena->n_free >= padded);
        arena->n_free -= padded;
        block[n] = 0;
        return block;
}

char *hf__arena_text(struct hf__arena *arena, const char *text, size_t n) {
        char *copy = hf__arena_alloc(arena, n);

        if (copy)
                memcpy(copy, text, n);
        return copy;
}
