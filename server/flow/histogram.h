/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A histogram with the bounds of its metric. It has no lock: its owner holds one anyway. Pure.
 * Thread: owner only. */
#include <stddef.h>
#include <stdint.h>

#define HFD_HISTOGRAM_BOUNDS_MAX 13 /* of the metric with the most */

struct hfd_histogram_bounds {
        size_t n;
        int64_t at[HFD_HISTOGRAM_BOUNDS_MAX]; /* ascending */
        double unit;                          /* what a value is divided by when it is shown */
};

/* Zero = empty. */
struct hfd_histogram {
        uint64_t counts[HFD_HISTOGRAM_BOUNDS_MAX + 1]; /* [bounds->n]: beyond all bounds */
        int64_t sum;
};

static inline void hfd_histogram_observe(struct hfd_histogram *histogram,
                                         const struct hfd_histogram_bounds *bounds, int64_t value) {
        size_t i = 0;

        while (i < bounds->n && value > bounds->at[i])
                i++;
        histogram->counts[i]++;
        histogram->sum += value;
}
