/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Conventions of the public headers.
 *
 * The headers are C11 and C++11. Every list that a caller passes is a pointer and a count with the
 * prefix n_ (`after`, `n_after`); no list ends with NULL.
 */

/*
 * The caller must look at the result: it may be an error. gcc warns even if the result is cast to
 * void. A program that ignores results in this way defines HF_MUST_CHECK as nothing.
 */
#ifndef HF_MUST_CHECK
#define HF_MUST_CHECK __attribute__((warn_unused_result))
#endif
/* The function formats like printf: the numbers of the format and of the first value. */
#define HF_PRINTF(at, from) __attribute__((format(printf, at, from)))
