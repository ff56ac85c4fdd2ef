/* SPDX-License-Identifier: Apache-2.0 */
#include "hand_clock.h"

#include <stdatomic.h>

#include <holdfast/error.h>

#include "patience.h"

#define SLICE (5 * MSEC) /* a wait notices that the clock was moved after this time */

static hf_nsec began;
static _Atomic hf_nsec moved;
static atomic_uint n_waits; /* that have ended */

void hand_clock_reset(void) {
        began = hf_now(hf_clock_system());
        atomic_store(&moved, 0);
}

void hand_clock_move(hf_nsec by) { atomic_fetch_add(&moved, by); }

hf_nsec hand_clock_now(void) { return began + atomic_load(&moved); }

/* The first wait that ends may have begun before the clock was moved. The second one has seen the
 * present time. When the third one ends, the thread has acted on it, or it waits again. */
void hand_clock_await_waiter(void) {
        unsigned from = atomic_load(&n_waits);

        PATIENCE_AWAIT(atomic_load(&n_waits) - from >= 3);
}

static hf_nsec read_boot(void *ctx) { return hand_clock_now(); }
static hf_nsec read_real(void *ctx) { return HAND_CLOCK_REAL * SEC + atomic_load(&moved); }

/* Returns only for a signal or the deadline: a caller that woke up in between would look at the
 * time again, and so would not show that its deadline was too late. */
static int wait_in_slices(void *ctx, pthread_cond_t *cond, pthread_mutex_t *mutex,
                          hf_nsec deadline) {
        const struct hf_clock *clock = hf_clock_system();

        while (hand_clock_now() < deadline) {
                int r = clock->wait(clock->ctx, cond, mutex, hf_now(clock) + SLICE);
                atomic_fetch_add(&n_waits, 1);
                if (r != HF_E_TIMEOUT)
                        return r;
        }
        return HF_E_TIMEOUT;
}

const struct hf_clock hand_clock = {.size = sizeof hand_clock,
                                    .boot = read_boot,
                                    .monotonic = read_boot,
                                    .real = read_real,
                                    .wait = wait_in_slices};
