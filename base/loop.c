/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue between the library's threads and the event loop of the host.
 *
 * Invariants: whenever the mutex is free, the eventfd is readable if the queue is not empty, and
 * only then. No lock is held while a task runs, and its struct is not used after its function was
 * called, because the function may free it.
 */
#include "base/loop.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/thread.h"

struct hf_loop {
        int fd; /* immutable */
        pthread_mutex_t mu;
        /* guarded by mu; *tail is the NULL at the end of the list */
        struct hf__loop_task *head, **tail;
        uint64_t n_queued; /* guarded by mu; tasks queued so far, so the number of the last one */
};

/* A task of hf_loop_post; owned by the queue. */
struct posted {
        struct hf__loop_task task;
        void (*fn)(void *ctx);
        void *ctx;
};

int hf_loop_new(struct hf_loop **ret_loop) {
        HF__CLEANUP(hf__free_cleanup) struct hf_loop *loop = calloc(1, sizeof *loop);

        if (!loop)
                return -ENOMEM;
        loop->tail = &loop->head;
        loop->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (loop->fd < 0)
                return -errno;
        int r = hf__mutex_init(&loop->mu);
        if (r < 0) {
                close(loop->fd);
                return r;
        }
        *ret_loop = HF__TAKE(loop);
        return 0;
}

struct hf_loop *hf_loop_free(struct hf_loop *loop) {
        if (!loop)
                return NULL;
        while (hf_loop_dispatch(loop) > 0) /* a call may post another one */
                ;
        pthread_mutex_destroy(&loop->mu);
        close(loop->fd);
        free(loop);
        return NULL;
}

int hf_loop_fd(struct hf_loop *loop) { return loop->fd; }

void hf__loop_queue(struct hf_loop *loop, struct hf__loop_task *task) {
        uint64_t one = 1;

        pthread_mutex_lock(&loop->mu);
        if (!task->queued) {
                bool was_empty = !loop->head;
                task->queued = true;
                task->number = ++loop->n_queued;
                task->next = NULL;
                *loop->tail = task;
                loop->tail = &task->next;
                if (was_empty) {
                        ssize_t n = write(loop->fd, &one, sizeof one);
                        (void)n; /* cannot fail: the counter is 0 while the queue is empty */
                }
        }
        pthread_mutex_unlock(&loop->mu);
}

/* Call it after a task was taken from the queue. */
static void clear_if_empty_locked(struct hf_loop *loop) {
        uint64_t count;

        hf__mutex_assert_held(&loop->mu);
        if (!loop->head) {
                ssize_t n = read(loop->fd, &count, sizeof count);
                (void)n; /* EAGAIN only if the host has read the eventfd, which it must not do */
        }
}

void hf__loop_remove(struct hf_loop *loop, struct hf__loop_task *task) {
        struct hf__loop_task **at;

        pthread_mutex_lock(&loop->mu);
        if (task->queued) {
                for (at = &loop->head; *at != task; at = &(*at)->next)
                        assert(*at);
                *at = task->next;
                if (!*at)
                        loop->tail = at;
                task->queued = false;
                clear_if_empty_locked(loop);
        }
        pthread_mutex_unlock(&loop->mu);
}

/* Removes the first task. False: there is none, or its number is higher than last. */
static bool pop_task(struct hf_loop *loop, uint64_t last, struct hf__loop_task *ret_copy) {
        pthread_mutex_lock(&loop->mu);
        struct hf__loop_task *task = loop->head;
        bool found = task && task->number <= last;
        if (found) {
                *ret_copy = *task;
                loop->head = task->next;
                if (!loop->head)
                        loop->tail = &loop->head;
                task->queued = false;
                clear_if_empty_locked(loop);
        }
        pthread_mutex_unlock(&loop->mu);
        return found;
}

size_t hf_loop_dispatch(struct hf_loop *loop) {
        struct hf__loop_task task;
        size_t n_called = 0;

        /* Read the last number only once. Otherwise a call that posts itself again would keep the
         * host in this loop. */
        pthread_mutex_lock(&loop->mu);
        uint64_t last = loop->n_queued;
        pthread_mutex_unlock(&loop->mu);
        while (pop_task(loop, last, &task)) {
                task.fn(task.ctx);
                n_called++;
        }
        return n_called;
}

static void run_posted(void *ctx) {
        struct posted *posted = ctx;
        void (*fn)(void *ctx) = posted->fn;
        void *fn_ctx = posted->ctx;

        free(posted);
        fn(fn_ctx);
}

int hf_loop_post(struct hf_loop *loop, void (*fn)(void *ctx), void *ctx) {
        struct posted *posted = calloc(1, sizeof *posted);

        if (!posted)
                return -ENOMEM;
        *posted = (struct posted){.task = {.fn = run_posted, .ctx = posted}, .fn = fn, .ctx = ctx};
        hf__loop_queue(loop, &posted->task);
        return 0;
}
