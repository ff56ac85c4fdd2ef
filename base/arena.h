/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Memory that is allocated piece by piece and freed all at once, for example for a decoded
 * message, a compiled CEL expression or one operation on sets of fields. The first 2 KiB are part
 * of the arena itself, so that a small message needs no allocation. Every block is followed by an
 * extra NUL, so that the bytes of a protobuf field can be used as a C string.
 *
 * Thread: the owner's only.
 */
#include <stdbool.h>
#include <stddef.h>

struct hf__arena_chunk;

/* Must not be copied or moved: blocks, and `free`, point into `first`. */
struct hf__arena {
        struct hf__arena_chunk *chunks; /* owned */
        char *free;                     /* start of the n_free unused bytes of the current chunk */
        size_t n_free;
        size_t next_chunk_size;
        /* Set when an allocation fails. All later ones then fail too, so a caller may check once,
         * at the end. protobuf-c reports every failure to unpack in the same way; this flag
         * distinguishes lack of memory from a malformed message. hf__arena_rewind does not clear
         * the flag. */
        bool failed;
        _Alignas(max_align_t) char first[2048];
};

/* A state of an arena, to which hf__arena_rewind returns. */
struct hf__arena_mark {
        struct hf__arena_chunk *chunks;
        char *free;
        size_t n_free, next_chunk_size;
};

/* Makes an empty arena. Allocates nothing. */
void hf__arena_init(struct hf__arena *arena);
/* Frees all blocks and leaves an empty arena. */
void hf__arena_deinit(struct hf__arena *arena);
struct hf__arena_mark hf__arena_mark(const struct hf__arena *arena);
/* Frees the blocks that were made after the mark. Earlier ones must not have been freed. */
void hf__arena_rewind(struct hf__arena *arena, struct hf__arena_mark mark);
/* n uninitialised bytes, aligned for any type, and a NUL. NULL = out of memory. */
void *hf__arena_alloc(struct hf__arena *arena, size_t n);
/* A copy of n bytes and a NUL. NULL = out of memory. */
char *hf__arena_text(struct hf__arena *arena, const char *text, size_t n);
