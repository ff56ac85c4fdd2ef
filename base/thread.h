/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Threads and mutexes of the library.
 *
 * Every thread has a name, blocks all signals and has at least the stack that the host has set. No
 * thread is ever detached: the code that starts a thread joins it, unless the thread is stuck when
 * the process ends.
 *
 * Every mutex of the library is initialised by hf__mutex_init. In builds with costly assertions
 * (base/assert_costly.h) it is error-checking: locking it twice or unlocking another thread's lock
 * ends the process, and hf__mutex_assert_held can check which thread holds it. Every file that
 * locks or unlocks a mutex includes this header. Thread: any, for every function here.
 */
#include <pthread.h>
#include <stdbool.h>

#include <holdfast/host.h>

#include "base/assert_costly.h"

/*
 * Starts a thread that runs fn(ctx). name has up to 15 characters ("hf-elector"); the rest is cut.
 * 0 or -errno: -EINVAL if the host has set a stack size below 64 KiB. The caller joins *ret_thread
 * with hf__thread_join.
 */
int hf__thread_start(const struct hf_host *host, const char *name, void *(*fn)(void *ctx),
                     void *ctx, pthread_t *ret_thread);
/* Waits until the thread has returned, frees its stack, and returns its result. Call it once for
 * each thread, and only for those of hf__thread_start. */
void *hf__thread_join(pthread_t thread);
/*
 * Calls fn(ctx) on a new thread, waits for it, and returns its result. For rare work on a thread
 * that otherwise only waits. The new thread's stack, and the free blocks that the C library keeps
 * for it, are given back when it ends; on the calling thread they would stay in memory. Starting a
 * thread takes some 50 us. If none can be started, fn is called on the calling thread.
 */
int hf__thread_run(const struct hf_host *host, const char *name, int (*fn)(void *ctx), void *ctx);

/* Initialises a mutex, which is error-checking in builds with costly assertions. 0 or -errno. The
 * caller destroys it (pthread_mutex_destroy). */
int hf__mutex_init(pthread_mutex_t *mutex);
/*
 * Initialises a mutex, and a condition variable (hf_cond_init) to wait with it. 0; -errno: neither
 * of them is initialised. The caller destroys both.
 */
int hf__mutex_cond_init(pthread_mutex_t *mutex, pthread_cond_t *cond);

/*
 * Asserts that the calling thread holds mutex. Write it at the top of a function whose name ends in
 * _locked. The mutex must come from hf__mutex_init (not from PTHREAD_MUTEX_INITIALIZER). The
 * assertion costs a function call but no system call if it holds, and nothing in a release build.
 */
#define hf__mutex_assert_held(mutex) hf__assert_costly(hf__mutex_is_held(mutex))

/*
 * In builds with costly assertions, pthread_mutex_lock and pthread_mutex_unlock check their own
 * result, because callers ignore it and a lock that fails guards nothing. The macros have the names
 * of the functions, so that no call can bypass the check. In other builds there are no macros.
 */
#if HF__COSTLY_ASSERTS
static inline int hf__mutex_assert_done(int error) {
        assert(error == 0);
        return error;
}
#define pthread_mutex_lock(mutex)   hf__mutex_assert_done(pthread_mutex_lock(mutex))
#define pthread_mutex_unlock(mutex) hf__mutex_assert_done(pthread_mutex_unlock(mutex))
#endif

/* For hf__mutex_assert_held only. Without costly assertions it cannot know the owner and always
 * returns true. */
bool hf__mutex_is_held(const pthread_mutex_t *mutex);
