/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Small blocks of memory that a thread keeps when they are freed, for what it allocates next. For
 * threads that allocate and free the same sizes for each request.
 *
 * A block comes from malloc, and its size is malloc's. So free() may free a block of
 * hf__blocks_get, and hf__blocks_put accepts a block of malloc. Builds with a sanitizer keep
 * nothing, so that it checks each block.
 */
#include <stddef.h>

/* From begin to end the calling thread keeps blocks: 512 KiB at most. end frees them; a thread must
 * not exit before it. */
void hf__blocks_begin(void);
void hf__blocks_end(void);
/* Like malloc and free, on any thread. A thread that keeps no blocks uses those. */
void *hf__blocks_get(size_t n);
void hf__blocks_put(void *memory);
