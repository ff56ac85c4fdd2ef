/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Conventions of the public headers.
 *
 * The headers are C11 and C++11. Every list that a caller passes is a pointer and a count with the
 * prefix n_ (`after`, `n_after`); no list ends with NULL.
 *
 * Structs. A program that was built against an older header runs with a newer library. So each
 * public struct is of one of two sorts:
 *
 *  - It begins with `size`. The program sets `size` to the sizeof of the struct, and every member
 *    that it does not use to zero. New members come at the end. The library neither reads nor
 *    writes what lies beyond `size`; it counts as zero. With -EINVAL the library refuses a size
 *    below that of the first release or above 4096, and a member that is set although the library
 *    does not know it. A function with a reterr_status names the struct in its message. All
 *    elements of an array have the same size, which is also the distance between two. If the
 *    library fills the struct (ret_info), the program sets `size` before the call. A program that
 *    copies a struct from a callback sets `size` to the sizeof of its copy.
 *  - Its comment says "Frozen", and why: it never gets another member.
 */

/*
 * The caller must look at the result: it may be an error. gcc warns even if the result is cast to
 * void. A program that ignores results in this way defines HF_MUST_CHECK as nothing.
 */
#ifndef HF_MUST_CHECK
#define HF_MUST_CHECK __attribute__((warn_unused_result))
#endif
/* The function formats like printf. at: the position of the format among its parameters, from 1 on.
 * from: the position of the first value. */
#define HF_PRINTF(at, from) __attribute__((format(printf, at, from)))
