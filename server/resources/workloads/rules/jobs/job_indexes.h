/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Texts that name indexes of an indexed Job: "1,3-5,7". The numbers increase from left to right,
 * and each is below the Job's number of completions. Texts of causes are those of kube-apiserver.
 * A text is read once, however many indexes its intervals stand for. Pure. Thread: any.
 */
#include <stdbool.h>
#include <stdint.h>

#define HFD_JOB_INDEXES_WHY_MAX 300 /* bytes of what is wrong with a text, with the NUL */

/* Counts the indexes of a text; "" has none. False: why says what is wrong, and *ret_n is 0. */
bool hfd_job_indexes_count(const char *text, int64_t completions, int64_t *ret_n,
                           char why[HFD_JOB_INDEXES_WHY_MAX]);
/* Whether two texts have an index in common. *ret_index: the first one, only if the result is
 * true. Intervals that are not valid are skipped, and if the intervals of a text do not increase, a
 * common index may be missed: hfd_job_indexes_count reports both. */
bool hfd_job_indexes_overlap(const char *a, const char *b, int64_t completions, int64_t *ret_index);
