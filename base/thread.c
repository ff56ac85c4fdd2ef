/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts and joins threads, and initialises mutexes.
 *
 * Invariants: a new thread never runs with a signal unblocked, not even for its first instruction,
 * because signals belong to the host. hf__mutex_is_held relies on the mutex type that
 * hf__mutex_init sets, so both stay in this file and see the same HF__COSTLY_ASSERTS.
 *
 * Each thread gets a stack of its own, which is unmapped when the thread is joined. glibc would
 * keep the stacks of threads that have ended, with some of their pages, and many threads work for a
 * moment only, for example when a term begins. A stack is larger than what was asked for, by
 * what the deepest JSON value needs (base/json.h). A stack takes memory only for the pages that the
 * thread has used. With huge pages the first use would take far more, so stacks have none.
 */
#include "base/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/host.h"
#include "base/json.h"

#define DEFAULT_STACK ((size_t)256 * 1024)
#define MIN_STACK     ((size_t)64 * 1024)

/* The thread sanitizer needs 2 MiB of each stack. It enlarges only the stacks that the C library
 * allocates, not those of map_stack. The address sanitizer surrounds variables with memory that
 * must not be used, so a level of a deep value takes several times HF__JSON_LEVEL_STACK. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZER_STACK ((size_t)8 << 20)
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZER_STACK ((size_t)8 << 20)
#endif
#endif
#ifndef SANITIZER_STACK
#define SANITIZER_STACK ((size_t)0)
#endif

/*
 * The arguments of a thread, and the result of its fn. The struct lies above the stack in the same
 * mapping, so a thread that is never joined, because it is stuck, holds no memory of the heap.
 * thread_main returns the struct, so that hf__thread_join can read the result and unmap the
 * mapping.
 */
struct started {
        void *(*fn)(void *ctx);
        void *ctx, *result;
        char *mapping; /* a guard page, then the stack, then this struct */
        size_t n_mapping;
        char name[16];
};

/* The thread names itself, because naming another thread opens a file under /proc. */
static void *thread_main(void *ctx) {
        struct started *started = ctx;

        (void)pthread_setname_np(pthread_self(), started->name); /* only debuggers and ps read it */
        started->result = started->fn(started->ctx);
        return started;
}

/* Maps the stack, with an unusable page below it, so that an overflow ends the process, and with
 * the struct above it. The struct, and with it the top of the stack, begins at a cache line. */
static int map_stack(size_t stack, pthread_attr_t *attr, struct started **ret_started) {
        const size_t page = (size_t)sysconf(_SC_PAGESIZE), alignment = 64;
        const size_t top = (sizeof(struct started) + alignment - 1) / alignment * alignment;
        size_t n = (stack + top + page - 1) / page * page;
        char *mapping =
                mmap(NULL, page + n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
        int r = 0;

        if (mapping == MAP_FAILED)
                return -errno;
        (void)madvise(mapping, page + n, MADV_NOHUGEPAGE); /* fails without huge pages */
        if (mprotect(mapping + page, n, PROT_READ | PROT_WRITE) != 0)
                r = -errno;
        if (r == 0)
                r = -pthread_attr_setstack(attr, mapping + page, n - top);
        if (r != 0) {
                (void)munmap(mapping, page + n);
                return r;
        }
        *ret_started = (struct started *)(void *)(mapping + page + n - top);
        **ret_started = (struct started){.mapping = mapping, .n_mapping = page + n};
        return 0;
}

static void unmap_stack(struct started *started) {
        (void)munmap(started->mapping, started->n_mapping);
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
        struct started *started = NULL;
        int r = -pthread_attr_init(&attr);
        if (r != 0)
                return r;
        r = map_stack(stack + HF__JSON_STACK + SANITIZER_STACK, &attr, &started);
        if (r == 0) {
                started->fn = fn;
                started->ctx = ctx;
                (void)snprintf(started->name, sizeof started->name, "%s", name);
                /* Block all signals here, because the new thread inherits the mask of this
                 * thread. */
                sigfillset(&all);
                pthread_sigmask(SIG_SETMASK, &all, &previous);
                r = -pthread_create(&thread, &attr, thread_main, started);
                pthread_sigmask(SIG_SETMASK, &previous, NULL);
                if (r != 0)
                        unmap_stack(started);
        }
        pthread_attr_destroy(&attr);
        if (r != 0)
                return r;
        *ret_thread = thread;
        return 0;
}

void *hf__thread_join(pthread_t thread) {
        void *returned = NULL;
        int error = pthread_join(thread, &returned);
        struct started *started = returned;

        assert(error == 0 && started); /* a thread of hf__thread_start that was not joined before */
        (void)error;
        void *result = started->result;
        unmap_stack(started);
        return result;
}

struct work {
        int (*fn)(void *ctx);
        void *ctx;
        int result;
};

static void *work_main(void *ctx) {
        struct work *work = ctx;

        work->result = work->fn(work->ctx);
        return NULL;
}

int hf__thread_run(const struct hf_host *host, const char *name, int (*fn)(void *ctx), void *ctx) {
        struct work work = {.fn = fn, .ctx = ctx};
        pthread_t thread;

        if (hf__thread_start(host, name, work_main, &work, &thread) != 0)
                return fn(ctx);
        (void)hf__thread_join(thread);
        return work.result;
}

int hf__mutex_init(pthread_mutex_t *mutex) {
        pthread_mutexattr_t attr;
        int error = pthread_mutexattr_init(&attr);
        if (error != 0)
                return -error;
#if HF__COSTLY_ASSERTS
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
bool hf__mutex_is_held(const pthread_mutex_t *mutex) {
#if HF__COSTLY_ASSERTS
        const struct timespec past = {0};
        pthread_mutex_t *checked = (pthread_mutex_t *)mutex; /* unchanged if it is held */
        int error = pthread_mutex_timedlock(checked, &past);

        if (error == 0)
                pthread_mutex_unlock(checked);
        return error == EDEADLK;
#else
        return true;
#endif
}
