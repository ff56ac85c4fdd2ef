/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Retry-After of a level. As in Kubernetes, it is doubled when many requests are refused, and
 * reduced by one second at a time: clients back off quickly, and come back slowly.
 *
 * Invariant: `refused` has the counts of the last seconds up to `second`; those of seconds without
 * a refusal are 0.
 */
#include "server/flow/core/retry_after.h"

#include <stdbool.h>
#include <string.h>

#define N_SECONDS (HFD_RETRY_AFTER_MAX + 1)

static uint32_t *count_of(struct hfd_retry_after *retry, int64_t second) {
        return &retry->refused[(uint64_t)second % N_SECONDS];
}

/* Refusals in the `after` seconds before `second`. */
static uint64_t refused_before(struct hfd_retry_after *retry, int64_t second) {
        uint64_t n = 0;

        for (int64_t i = 1; i <= retry->after && i < N_SECONDS; i++)
                n += *count_of(retry, second - i);
        return n;
}

/* Clears the count of the new second, and those of the seconds before it in which nothing was
 * refused. Their places in the ring still have counts of the previous round. */
static void begin_second(struct hfd_retry_after *retry, int64_t second) {
        int64_t skipped = second - retry->second;

        if (skipped >= N_SECONDS)
                memset(retry->refused, 0, sizeof retry->refused);
        for (int64_t i = 1; i <= skipped && i < N_SECONDS; i++)
                *count_of(retry, retry->second + i) = 0;
        retry->second = second;
}

unsigned hfd_retry_after_refuse(struct hfd_retry_after *retry, int64_t second) {
        if (retry->after == 0)
                retry->after = 1;
        if (second > retry->second) {
                begin_second(retry, second);
                uint64_t n = refused_before(retry, second);
                /* Most levels refuse only what their queues cannot hold. So three refusals in a
                 * second are many. One spike doubles the time only once: the last doubling must be
                 * so long ago that the refusals before it are no longer counted. */
                bool settled = second - retry->doubled >= retry->after;
                if (settled && n >= 3 * (uint64_t)retry->after) {
                        retry->after *= 2;
                        if (retry->after > HFD_RETRY_AFTER_MAX)
                                retry->after = HFD_RETRY_AFTER_MAX;
                        retry->doubled = second;
                } else if (n < retry->after && retry->after > 1) {
                        retry->after--;
                }
        }
        (*count_of(retry, retry->second))++;
        return retry->after;
}
