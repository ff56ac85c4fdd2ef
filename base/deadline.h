/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A deadline for work of this process. It begins anew if it passes while the process does not run,
 * because the process was stopped or the machine was suspended: then the work had no time either.
 *
 * A waiting thread detects a pause by its own lateness: it reads the clock 2 s or more after the
 * deadline. On a busy machine a thread is seldom woken so late. On a machine that always wakes
 * threads so late, work that never ends must be noticed, too. So a deadline begins anew
 * HF__DEADLINE_ANEW_MAX times at most; after that it is over as soon as it passes.
 *
 * Only for a thread that waits from the beginning of the deadline, and wakes up when the deadline
 * passes. Any other reason to come late would look like a pause. Pure. Thread: the owner's.
 */
#include <stdbool.h>

#include "base/host.h"

#define HF__DEADLINE_ANEW_MAX 3

struct hf__deadline {
        hf_nsec at;      /* boot time */
        unsigned n_anew; /* how often it has begun anew */
};

/* The deadline that ends `duration` after now. Neither argument may be negative. */
static inline struct hf__deadline hf__deadline_after(hf_nsec now, hf_nsec duration) {
        return (struct hf__deadline){.at = hf__nsec_after(now, duration)};
}

/* Whether the deadline is over. If not, it is in the future, perhaps because it has begun anew;
 * then it ends `duration` after now. */
static inline bool hf__deadline_is_over(struct hf__deadline *deadline, hf_nsec duration,
                                        hf_nsec now) {
        if (now - deadline->at >= 2 * HF_NSEC_PER_SEC && deadline->n_anew < HF__DEADLINE_ANEW_MAX) {
                deadline->at = hf__nsec_after(now, duration);
                deadline->n_anew++;
        }
        return now >= deadline->at;
}
