/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Computes when a refused client should try again: the Retry-After of a level, in seconds. It
 * doubles while many requests are refused, and falls by one second at a time when few are, as in
 * Kubernetes. Pure: the caller passes the time. Thread: owner only.
 */
#include <stdint.h>

#define HFD_RETRY_AFTER_MAX 32 /* seconds; as in Kubernetes */

/* Zero = nothing was refused yet. */
struct hfd_retry_after {
        uint32_t refused[HFD_RETRY_AFTER_MAX + 1]; /* by second, modulo their number */
        int64_t second;                            /* of the latest refusal */
        int64_t doubled;                           /* the second in which `after` was doubled */
        unsigned after;                            /* 0 = 1 */
};

/* Counts a refusal in this second. Returns the Retry-After for it. */
unsigned hfd_retry_after_refuse(struct hfd_retry_after *retry, int64_t second);
