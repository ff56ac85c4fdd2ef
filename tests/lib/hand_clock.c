/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See hand_clock.h. A waiting thread waits without a time limit, and whoever moves the clock wakes
 * it. (A time limit would lose signals: one that comes while the wait times out wakes nobody.)
 *
 * Invariant: the time changes under mu, and a thread is on the list before it waits. So it has seen
 * the new time before, or the thread that moves the clock sees it on the list. It is woken again
 * and again until it has left the list, because it may not wait yet.
 */
#include "hand_clock.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/error.h>

#include "patience.h"

#define WAITERS_MAX 128
#define LOOK_PAUSE  (4 * MSEC)
#define N_LOOKS     3
#define WAKES_MAX   1000 /* of one move */

static hf_nsec began;
static _Atomic hf_nsec moved; /* changed under mu */
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
/* guarded by mu */
static struct {
        pthread_cond_t *cond; /* NULL = nobody */
        hf_nsec deadline;
} waiters[WAITERS_MAX];

void hand_clock_reset(void) {
        began = hf_now(hf_clock_system());
        atomic_store(&moved, 0);
}

hf_nsec hand_clock_now(void) { return began + atomic_load(&moved); }

static void pause_for(hf_nsec time) {
        const struct timespec pause = {.tv_nsec = (long)time};

        (void)nanosleep(&pause, NULL);
}

/* Wakes the waiting threads whose time has come. Returns whether there are any. *ret_n: how many
 * wait in all. */
static bool wake_due(size_t *ret_n) {
        bool is_due = false;

        *ret_n = 0;
        pthread_mutex_lock(&mu);
        for (size_t i = 0; i < WAITERS_MAX; i++) {
                if (!waiters[i].cond)
                        continue;
                ++*ret_n;
                if (waiters[i].deadline > hand_clock_now())
                        continue;
                is_due = true;
                pthread_cond_broadcast(waiters[i].cond);
        }
        pthread_mutex_unlock(&mu);
        return is_due;
}

void hand_clock_move(hf_nsec by) {
        size_t n;

        pthread_mutex_lock(&mu);
        atomic_fetch_add(&moved, by);
        pthread_mutex_unlock(&mu);
        for (int i = 0; wake_due(&n) && i < WAKES_MAX; i++)
                pause_for(MSEC / 10);
}

static bool has_deadline(hf_nsec least, hf_nsec most) {
        bool has = false;

        pthread_mutex_lock(&mu);
        for (size_t i = 0; i < WAITERS_MAX && !has; i++)
                has = waiters[i].cond && waiters[i].deadline >= hand_clock_now() + least &&
                      waiters[i].deadline <= hand_clock_now() + most;
        pthread_mutex_unlock(&mu);
        return has;
}

void hand_clock_await_deadline(hf_nsec least, hf_nsec most) {
        PATIENCE_AWAIT(has_deadline(least, most));
}

/* A thread may have been signalled, and need some time to act on it. */
void hand_clock_await_waiter(void) {
        const hf_nsec until = in_msec(PATIENCE_MSEC);

        for (int n_looks = 0; n_looks < N_LOOKS;) {
                size_t n;
                pause_for(LOOK_PAUSE);
                bool is_due = wake_due(&n);
                n_looks = !is_due && n > 0 ? n_looks + 1 : 0;
                patience_check(until, __FILE__, __LINE__, "a thread that waits");
        }
}

static hf_nsec read_boot(void *ctx) { return hand_clock_now(); }
static hf_nsec read_real(void *ctx) { return HAND_CLOCK_REAL * SEC + atomic_load(&moved); }

/* Returns the place on the list; WAITERS_MAX: the deadline has passed. */
static size_t enter(pthread_cond_t *cond, hf_nsec deadline) {
        size_t i = WAITERS_MAX;

        pthread_mutex_lock(&mu);
        if (hand_clock_now() < deadline) {
                for (i = 0; waiters[i].cond; i++)
                        assert(i + 1 < WAITERS_MAX);
                waiters[i].cond = cond;
                waiters[i].deadline = deadline;
        }
        pthread_mutex_unlock(&mu);
        return i;
}

/* Returns only for a signal or the deadline: a caller that woke up in between would look at the
 * time again, and so would not show that its deadline was too late. */
static int wait_for_signal(void *ctx, pthread_cond_t *cond, pthread_mutex_t *mutex,
                           hf_nsec deadline) {
        size_t i = enter(cond, deadline);

        if (i == WAITERS_MAX)
                return HF_E_TIMEOUT;
        pthread_cond_wait(cond, mutex);
        pthread_mutex_lock(&mu);
        waiters[i].cond = NULL;
        pthread_mutex_unlock(&mu);
        return hand_clock_now() < deadline ? 0 : HF_E_TIMEOUT;
}

const struct hf_clock hand_clock = {.size = sizeof hand_clock,
                                    .boot = read_boot,
                                    .monotonic = read_boot,
                                    .real = read_real,
                                    .wait = wait_for_signal};
