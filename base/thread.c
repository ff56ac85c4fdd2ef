/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#define DEFAULT_STACK ((size_t)256 * 1024)
#define MIN_STACK     ((size_t)64 * 1024)

int hf__thread_start(const struct hf_host *host, const char *name, void *(*fn)(void *ctx), void *ctx, pthread_t *ret_thread) {
        size_t stack = host->thread_stack_bytes ? host->thread_stack_bytes : DEFAULT_STACK;
        pthread_attr_t attr;
        sigset_t all, before;
        pthread_t thread;

        if (stack < MIN_STACK)
                return -EINVAL;
        int error = pthread_attr_init(&attr);
        if (error)
                return -error;
        error = pthread_attr_setstacksize(&attr, stack);
        if (!error) {
                /* The mask is inherited, so that the new thread never runs with a signal open. */
                sigfillset(&all);
                pthread_sigmask(SIG_SETMASK, &all, &before);
                error = pthread_create(&thread, &attr, fn, ctx);
                pthread_sigmask(SIG_SETMASK, &before, NULL);
        }
        pthread_attr_destroy(&attr);
        if (error)
                return -error;
        (void)pthread_setname_np(thread, name); /* for the debugger only */
        *ret_thread = thread;
        return 0;
}

int hf__mutex_init(pthread_mutex_t *mutex) {
        pthread_mutexattr_t attr;
        int error = pthread_mutexattr_init(&attr);
        if (error)
                return -error;
#ifndef NDEBUG
        error = pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
#endif
        if (!error)
                error = pthread_mutex_init(mutex, &attr);
        pthread_mutexattr_destroy(&attr);
        return -error;
}
