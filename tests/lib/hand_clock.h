/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A clock that stands still until the test moves it on. What happens under it needs no time to
 * pass, and what it measures is exactly what the test has let pass.
 *
 * Boot and monotonic time begin at the system's boot time, because fixtures compare the deadlines
 * of requests with that. Real time begins at HAND_CLOCK_REAL. Waits end after their signal, or when
 * the clock has been moved to their deadline; they look at it every few milliseconds.
 *
 * One clock for the program. Thread: any.
 */
#include <holdfast/clock.h>

#define HAND_CLOCK_REAL   INT64_C(1767225600) /* seconds since 1970 */
#define HAND_CLOCK_REAL_Z "2026-01-01T00:00:00.000000Z"

extern const struct hf_clock hand_clock;

void hand_clock_reset(void); /* to the beginning; while nothing uses it */
void hand_clock_move(hf_nsec by);
hf_nsec hand_clock_now(void); /* boot time */
/* Returns when a thread that waits has seen the present time. For a test with one such thread. */
void hand_clock_await_waiter(void);
