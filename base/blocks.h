/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Allocates small blocks of memory. A thread that allocates and frees the same sizes for each
 * request keeps the blocks that it frees, and uses them again.
 *
 * A block comes from malloc, and its size is malloc's. So free() may free a block of
 * hf__blocks_get, and hf__blocks_put accepts a block of malloc. Builds with a sanitizer keep
 * nothing, so that it checks each block.
 */
#include <stddef.h>

/* Between begin and end the calling thread keeps blocks, at most 512 KiB. `end` frees them. A
 * thread must not exit between the two. If begin has no memory for its lists, the thread keeps
 * nothing. */
void hf__blocks_begin(void);
void hf__blocks_end(void);
/* Like malloc and free, on any thread. On a thread that keeps no blocks they call malloc and free.
 */
void *hf__blocks_get(size_t n);
void hf__blocks_put(void *memory);
