/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Short names for the time units of tests: 3 * SEC, 20 * MSEC. */
#include <stdint.h>

#include <holdfast/clock.h>

#define SEC  HF_NSEC_PER_SEC
#define MSEC HF_NSEC_PER_MSEC

/* How long fixtures wait before they fail. Less than the time limit of a test (120 s). */
#define PATIENCE_MSEC 100000

/* The boot-clock time in ms milliseconds. */
static inline hf_nsec in_msec(int64_t ms) { return hf_now(hf_clock_system()) + ms * MSEC; }
