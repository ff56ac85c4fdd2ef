/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Small blocks of memory that JSON values leave when they are freed, kept by a thread for the next
 * values. For threads that parse a value, use it and free it, request after request.
 *
 * A value consists of one block for each node and each text. The C library keeps fewer free blocks
 * for a thread, and takes further ones under a lock. What a thread keeps here is at most 28 KiB.
 */

/*
 * Makes cJSON allocate through this file. That is for the whole process, so only programs call it,
 * not the library; without it begin and end do nothing. Call it before other threads run, and
 * before the first value. Does nothing in builds with a sanitizer, which checks each block.
 */
void hf__json_blocks_init(void);

/* From begin to end the calling thread keeps blocks. end frees them; a thread must not exit before
 * it. A value may be freed on another thread than the one that made it. */
void hf__json_blocks_begin(void);
void hf__json_blocks_end(void);
