/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_STACK ((size_t)256 * 1024)
#define MIN_STACK     ((size_t)64 * 1024)

/* What the new thread takes over. */
struct begin {
        void *(*fn)(void *ctx);
        void *ctx;
        char name[16];
};

/* The thread names itself: that is a system call, where naming another thread opens a file under
 * /proc. */
static void *thread_main(void *ctx) {
        struct begin begin = *(struct begin *)ctx;

        free(ctx);
        (void)pthread_setname_np(pthread_self(), begin.name); /* for the debugger only */
        return begin.fn(begin.ctx);
}

int hf__thread_start(const struct hf_host *host, const char *name, void *(*fn)(void *ctx),
                     void *ctx, pthread_t *ret_thread) {
        size_t stack = host->thread_stack_bytes ? host->thread_stack_bytes : DEFAULT_STACK;
        pthread_attr_t attr;
        sigset_t all, before;
        pthread_t thread;

        if (stack < MIN_STACK)
                return -EINVAL;
        struct begin *begin = malloc(sizeof *begin);
        if (!begin)
                return -ENOMEM;
        *begin = (struct begin){.fn = fn, .ctx = ctx};
        (void)snprintf(begin->name, sizeof begin->name, "%s", name);
        int error = pthread_attr_init(&attr);
        if (error) {
                free(begin);
                return -error;
        }
        error = pthread_attr_setstacksize(&attr, stack);
        if (!error) {
                /* The mask is inherited, so that the new thread never runs with a signal open. */
                sigfillset(&all);
                pthread_sigmask(SIG_SETMASK, &all, &before);
                error = pthread_create(&thread, &attr, thread_main, begin);
                pthread_sigmask(SIG_SETMASK, &before, NULL);
        }
        pthread_attr_destroy(&attr);
        if (error) {
                free(begin);
                return -error;
        }
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
