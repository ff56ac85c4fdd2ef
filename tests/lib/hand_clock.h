/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A clock that stands still until the test moves it. So a test can show that something needs no
 * time to pass, and the times that are measured are exactly those by which it has moved the clock.
 *
 * Boot and monotonic time begin at the system's boot time, because fixtures make the deadlines of
 * requests from that. Real time begins at HAND_CLOCK_REAL. A wait ends after its signal, or soon
 * after the test has moved the clock to its deadline.
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
/* Returns when a thread waits for a time that is `least` to `most` from now. */
void hand_clock_await_deadline(hf_nsec least, hf_nsec most);
/* Returns when a waiting thread has seen the present time. For a test with one such thread. */
void hand_clock_await_waiter(void);
