/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Lets a thread keep the small blocks of memory of freed JSON values and use them for the next
 * values. For threads that parse a value, use it and free it, request after request.
 *
 * A value consists of one block for each node and each text. The C library keeps fewer free blocks
 * for a thread, and takes a lock to get more. A thread keeps at most 28 KiB here.
 */

/*
 * Makes cJSON allocate through this file, in the whole process. So only programs call this
 * function, not the library. Without this call, begin and end do nothing. Call it before other
 * threads run and before the first value is made. Does nothing in builds with a sanitizer, because
 * the sanitizer checks each block.
 */
void hf__json_blocks_init(void);

/* Between begin and end the calling thread keeps blocks. `end` frees them. A thread must not exit
 * between the two. A value may be freed on another thread than the one that made it. */
void hf__json_blocks_begin(void);
void hf__json_blocks_end(void);
