/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts and joins threads, and initialises mutexes.
 *
 * Invariants: a new thread never runs with a signal unblocked, not even for its first instruction,
 * because signals belong to the host. hf__mutex_is_held relies on the mutex type that
 * hf__mutex_init sets, so both stay in this file and see the same NDEBUG.
 */
#include "base/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/host.h"

#define DEFAULT_STACK ((size_t)256 * 1024)
#define MIN_STACK     ((size_t)64 * 1024)

/* The arguments of a new thread. The new thread frees them. */
struct start_args {
        void *(*fn)(void *ctx);
        void *ctx;
        char name[16];
};

/* The thread names itself, because naming another thread opens a file under /proc. */
static void *thread_main(void *ctx) {
        struct start_args args = *(struct start_args *)ctx;

        free(ctx);
        (void)pthread_setname_np(pthread_self(), args.name); /* only debuggers and ps read it */
        return args.fn(args.ctx);
}

int hf__thread_start(const struct hf_host *host, const char *name, void *(*fn)(void *ctx),
                     void *ctx, pthread_t *ret_thread) {
        size_t wanted = hf__host_stack_bytes(host), stack = wanted ? wanted : DEFAULT_STACK;
        pthread_attr_t attr;
        sigset_t all, previous;
        pthread_t thread;

        assert(fn);
        if (stack < MIN_STACK)
                return -EINVAL;
        struct start_args *args = malloc(sizeof *args);
        if (!args)
                return -ENOMEM;
        *args = (struct start_args){.fn = fn, .ctx = ctx};
        (void)snprintf(args->name, sizeof args->name, "%s", name);
        int error = pthread_attr_init(&attr);
        if (error != 0) {
                free(args);
                return -error;
        }
        error = pthread_attr_setstacksize(&attr, stack);
        if (error == 0) {
                /* Block all signals here, because the new thread inherits the mask of this
                 * thread. */
                sigfillset(&all);
                pthread_sigmask(SIG_SETMASK, &all, &previous);
                error = pthread_create(&thread, &attr, thread_main, args);
                pthread_sigmask(SIG_SETMASK, &previous, NULL);
        }
        pthread_attr_destroy(&attr);
        if (error != 0) {
                free(args);
                return -error;
        }
        *ret_thread = thread;
        return 0;
}

void *hf__thread_join(pthread_t thread) {
        void *result = NULL;
        int error = pthread_join(thread, &result);

        assert(error == 0); /* a thread of hf__thread_start, which nobody has joined */
        (void)error;
        return result;
}

int hf__mutex_init(pthread_mutex_t *mutex) {
        pthread_mutexattr_t attr;
        int error = pthread_mutexattr_init(&attr);
        if (error != 0)
                return -error;
#ifndef NDEBUG
        error = pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
#endif
        if (error == 0)
                error = pthread_mutex_init(mutex, &attr);
        pthread_mutexattr_destroy(&attr);
        return -error;
}

int hf__mutex_cond_init(pthread_mutex_t *mutex, pthread_cond_t *cond) {
        int r = hf__mutex_init(mutex);

        if (r != 0)
                return r;
        r = hf_cond_init(cond);
        if (r != 0)
                pthread_mutex_destroy(mutex);
        return r;
}

/*
 * If the calling thread owns an error-checking mutex, pthread_mutex_timedlock returns EDEADLK
 * before it checks the time limit. If another thread owns the mutex, the call does not wait,
 * because the limit has passed. If no thread owns the mutex, it is locked for a moment. That is
 * harmless, because the caller's assertion fails then.
 */
bool hf__mutex_is_held(pthread_mutex_t *mutex) {
#ifdef NDEBUG
        return true;
#else
        const struct timespec past = {0};
        int error = pthread_mutex_timedlock(mutex, &past);

        if (error == 0)
                pthread_mutex_unlock(mutex);
        return error == EDEADLK;
#endif
}
