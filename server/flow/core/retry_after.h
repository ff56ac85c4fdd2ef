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
        /* A ring: the refusals in each of the last seconds. The second s is at the index s modulo
         * the length. The length is the longest `after`, plus one for the running second. */
        uint32_t refused[HFD_RETRY_AFTER_MAX + 1];
        int64_t second;  /* of the latest refusal */
        int64_t doubled; /* the second in which `after` was last doubled */
        unsigned after;  /* seconds, the Retry-After; 0 counts as 1 */
};

/* Counts a refusal in this second. Returns the Retry-After for it. */
unsigned hfd_retry_after_refuse(struct hfd_retry_after *retry, int64_t second);
