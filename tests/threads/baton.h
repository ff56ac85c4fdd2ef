/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A deterministic scheduler of threads, for tests. The code under test is the real one and its
 * threads are real, but only one of them runs at a time. The linker replaces the functions by which
 * threads wait, wake each other, begin and end, and those that read the time (wrap_pthread.c,
 * wrap_system.c). At each of them, and at each atomic operation (atomics.h), a seed decides which
 * thread runs next. So a schedule is one interleaving, and its seed repeats it exactly.
 *
 * Time is virtual. It passes when no thread can run: then it is the next time that a thread waits
 * for. In some schedules it also passes while threads could run, as on a machine that is so slow
 * that deadlines pass between any two operations.
 *
 * The seed also chooses how to choose. In some schedules each choice is random; in others threads
 * have random priorities, which change at a few random steps (PCT: Burckhardt et al., "A randomized
 * scheduler with probabilistic guarantees of finding bugs", 2010). In some schedules condition
 * variables wake up without a signal.
 *
 * Under this scheduler all threads see atomic operations in one order. So it does not find mistakes
 * that show only in a weaker memory model, nor unsynchronised accesses to plain memory. The thread
 * sanitizer finds these.
 *
 * A schedule fails when no thread can ever run again, when threads run without end, when a mutex or
 * condition variable is used wrongly, when a thread or a descriptor is left over, when an assertion
 * fails, and by BATON_CHECK. Then the scheduler prints the seed and where each thread is, and the
 * process exits with status 1.
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/clock.h>

/* What a schedule did. The hash is that of its choices, so equal interleavings have equal hashes.
 */
struct baton_result {
        uint64_t n_steps, n_switches, hash;
};

/* Runs fn() as the first thread of a schedule, and returns when it has returned. `command` repeats
 * the schedule, for the report of a failure. trace: print each switch, too. */
void baton_run(uint64_t seed, bool trace, const char *command, void (*fn)(void),
               struct baton_result *ret_result);

/* ---- for the code of a schedule; thread: any of the schedule ---- */

/* Returns a number from 0 to n - 1, which the seed decides. */
uint64_t baton_random(uint64_t n);
/* Whether time passes in this schedule while threads could run. Then a deadline may pass at any
 * moment, so only promises without deadlines can be checked. */
bool baton_is_slow(void);
/* From now on time passes only when no thread can run. For the end of a scenario. */
void baton_be_quick(void);
/* The number of threads that have begun and were not yet joined, the first one included. */
unsigned baton_n_threads(void);
/* A point where another thread may run, for work that a test pretends to do. */
void baton_point(void);
/* Fails the schedule. */
_Noreturn void baton_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define BATON_CHECK(condition)                                                                     \
        ((condition) ? (void)0 : baton_fail("%s:%d: %s", __FILE__, __LINE__, #condition))
