/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool's queues and threads.
 *
 * Each owner is mapped to one of N_QUEUES queues by its hash, so fairness needs no memory that
 * grows with the number of users; owners in the same queue share its turns. A thread runs the first
 * task of the next queue that is not empty, round robin. A task with more to do goes to the end of
 * its queue.
 *
 * There are two lanes with such queues: for tasks with short steps, and for those with long ones.
 * The first thread takes from both in turn, the others only short steps. So a large value is made
 * and freed on one thread, and its freed blocks are in the heap of that thread, where
 * base/json_blocks.c merges them piece by piece.
 *
 * Invariants: a task is in a queue exactly if its state is QUEUED. `pending` counts the tasks that
 * are queued or running; the threads end when the pool is stopping and it is 0, so every submitted
 * task gets its last step.
 */
#include "server/pool/work_pool.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/thread.h"

#define N_QUEUES    64 /* in a lane; more users than that seldom have large work at a time */
#define MAX_THREADS 16
#define SLICE       100000 /* nanoseconds, the least that Linux allows */

/* The state of a task, which begins as 0, IDLE. One that is over (HFD_WORK_DONE) stays RUNNING,
 * because the pool must not touch it any more; so a late submit only sets `again`. */
enum { IDLE, QUEUED, RUNNING };

struct queue {
        struct hfd_work_task *head, **tail;
};

struct lane {
        struct queue queues[N_QUEUES];
        unsigned next_queue; /* the queue whose turn is next */
        size_t n_queued;     /* tasks in all queues */
};

/* A thread, and what it needs to know about itself. */
struct worker {
        struct hfd_work_pool *pool;
        pthread_t thread;
        bool takes_long_steps;
};

struct hfd_work_pool {
        /* immutable after new */
        const struct hf_host *host; /* borrowed */
        unsigned n_threads;
        int nice;

        atomic_bool stopping; /* set under mu; read without it by hfd_work_is_cancelled */

        /* guarded by mu */
        pthread_mutex_t mu;
        /* signalled for a queued task with short steps; broadcast for one with long steps, and when
         * the threads may end */
        pthread_cond_t cond;
        struct lane short_steps, long_steps;
        bool long_is_next; /* for the first thread: it is the turn of long_steps */
        size_t pending;

        /* only for the thread that creates and stops the pool; a worker also reads its own entry */
        struct worker workers[MAX_THREADS];
        bool joined;
};

static void enqueue_locked(struct hfd_work_pool *pool, struct hfd_work_task *task) {
        struct lane *lane = task->long_step ? &pool->long_steps : &pool->short_steps;
        struct queue *queue = &lane->queues[task->owner % N_QUEUES];

        hf__mutex_assert_held(&pool->mu);
        assert(task->state != QUEUED);
        task->state = QUEUED;
        task->again = false;
        task->next = NULL;
        *queue->tail = task;
        queue->tail = &task->next;
        lane->n_queued++;
        if (task->long_step)
                pthread_cond_broadcast(&pool->cond); /* a signal might wake only another thread */
        else
                pthread_cond_signal(&pool->cond);
}

/* The lane from which the thread takes its next task; NULL = there is no task for it. */
static struct lane *next_lane_locked(struct hfd_work_pool *pool, bool takes_long_steps) {
        hf__mutex_assert_held(&pool->mu);
        bool may_long = takes_long_steps && pool->long_steps.n_queued > 0;

        if (may_long && (pool->long_is_next || pool->short_steps.n_queued == 0))
                return &pool->long_steps;
        return pool->short_steps.n_queued > 0 ? &pool->short_steps : NULL;
}

/* Removes the next task of the lane, round robin. At least one must be queued. */
static struct hfd_work_task *dequeue_locked(struct hfd_work_pool *pool, struct lane *lane,
                                            bool takes_long_steps) {
        hf__mutex_assert_held(&pool->mu);
        assert(lane->n_queued > 0);
        while (!lane->queues[lane->next_queue].head)
                lane->next_queue = (lane->next_queue + 1) % N_QUEUES;
        struct queue *queue = &lane->queues[lane->next_queue];
        struct hfd_work_task *task = queue->head;
        queue->head = task->next;
        if (!queue->head)
                queue->tail = &queue->head;
        lane->next_queue = (lane->next_queue + 1) % N_QUEUES;
        lane->n_queued--;
        if (takes_long_steps)
                pool->long_is_next = lane == &pool->short_steps;
        task->state = RUNNING;
        return task;
}

/* Updates the pool after a step. If result is DONE, the step may have freed task. */
static void finish_step_locked(struct hfd_work_pool *pool, struct hfd_work_task *task,
                               enum hfd_work_result result) {
        hf__mutex_assert_held(&pool->mu);
        if (result == HFD_WORK_MORE || (result == HFD_WORK_IDLE && task->again)) {
                enqueue_locked(pool, task);
                return;
        }
        if (result == HFD_WORK_IDLE)
                task->state = IDLE;
        assert(pool->pending > 0);
        pool->pending--;
        if (pool->pending == 0 && atomic_load_explicit(&pool->stopping, memory_order_relaxed))
                pthread_cond_broadcast(&pool->cond);
}

/* struct sched_attr of sched_setattr(2) in its first version. The headers of glibc 2.36 lack it,
 * and those of Linux cannot be included beside glibc's <sched.h>. */
struct scheduling {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period; /* nanoseconds */
};

/*
 * Lets the calling thread give way to those that serve connections. The nice value is about the
 * share of a processor. But since Linux 6.6 a thread that wakes may still have to wait until the
 * running one has used up its slice, 3 ms, whatever the nice values are. So the slice is made short
 * too; Linux before 6.12 ignores that. Linux keeps a nice value and a slice for each thread. Where
 * they cannot be set, the pool works anyway.
 */
static void give_way(int nice) {
        const struct scheduling scheduling = {.size = sizeof scheduling,
                                              .policy = SCHED_OTHER,
                                              .nice = nice,
                                              .runtime = SLICE};

        (void)setpriority(PRIO_PROCESS, 0, nice);
        /* An administrator may have chosen another policy, such as SCHED_BATCH. */
        if (sched_getscheduler(0) == SCHED_OTHER)
                (void)syscall(SYS_sched_setattr, 0, &scheduling, 0);
}

static void *run_thread(void *ctx) {
        const struct worker *worker = ctx;
        struct hfd_work_pool *pool = worker->pool;

        if (pool->nice > 0)
                give_way(pool->nice);
        pthread_mutex_lock(&pool->mu);
        for (;;) {
                bool stopping = atomic_load_explicit(&pool->stopping, memory_order_relaxed);
                struct lane *lane = next_lane_locked(pool, worker->takes_long_steps);
                if (lane) {
                        struct hfd_work_task *task =
                                dequeue_locked(pool, lane, worker->takes_long_steps);
                        pthread_mutex_unlock(&pool->mu);
                        enum hfd_work_result result = task->step(task);
                        pthread_mutex_lock(&pool->mu);
                        finish_step_locked(pool, task, result);
                } else if (stopping && pool->pending == 0) {
                        break;
                } else {
                        pthread_cond_wait(&pool->cond, &pool->mu);
                }
        }
        pthread_mutex_unlock(&pool->mu);
        return NULL;
}

/* ---- the pool ---- */

HF__CLEANUP_DEFINE(pool_cleanup, struct hfd_work_pool *, hfd_work_pool_free)

static void init_lane(struct lane *lane) {
        for (unsigned i = 0; i < N_QUEUES; i++)
                lane->queues[i].tail = &lane->queues[i].head;
}

int hfd_work_pool_new(const struct hf_host *host, unsigned n_threads, int nice,
                      struct hfd_work_pool **ret_pool) {
        assert(n_threads >= 1 && n_threads <= MAX_THREADS && nice >= 0 && nice <= 19);
        HF__CLEANUP(hf__free_cleanup) struct hfd_work_pool *memory = calloc(1, sizeof *memory);
        if (!memory)
                return -ENOMEM;
        int r = hf__mutex_cond_init(&memory->mu, &memory->cond);
        if (r != 0)
                return r;
        HF__CLEANUP(pool_cleanup) struct hfd_work_pool *pool = HF__TAKE(memory);
        pool->host = host;
        pool->nice = nice;
        init_lane(&pool->short_steps);
        init_lane(&pool->long_steps);
        for (; pool->n_threads < n_threads; pool->n_threads++) {
                struct worker *worker = &pool->workers[pool->n_threads];
                char name[24];
                worker->pool = pool;
                worker->takes_long_steps = pool->n_threads == 0;
                (void)snprintf(name, sizeof name, "hfd-work-%u", pool->n_threads);
                r = hf__thread_start(host, name, run_thread, worker, &worker->thread);
                if (r != 0)
                        return r;
        }
        *ret_pool = HF__TAKE(pool);
        return 0;
}

void hfd_work_pool_stop(struct hfd_work_pool *pool) {
        if (pool->joined)
                return;
        pthread_mutex_lock(&pool->mu);
        atomic_store_explicit(&pool->stopping, true, memory_order_relaxed);
        pthread_cond_broadcast(&pool->cond);
        pthread_mutex_unlock(&pool->mu);
        for (unsigned i = 0; i < pool->n_threads; i++)
                (void)hf__thread_join(pool->workers[i].thread);
        assert(pool->short_steps.n_queued == 0 && pool->long_steps.n_queued == 0);
        assert(pool->pending == 0);
        pool->joined = true;
}

struct hfd_work_pool *hfd_work_pool_free(struct hfd_work_pool *pool) {
        if (!pool)
                return NULL;
        hfd_work_pool_stop(pool);
        pthread_cond_destroy(&pool->cond);
        pthread_mutex_destroy(&pool->mu);
        free(pool);
        return NULL;
}

/* ---- tasks ---- */

bool hfd_work_submit(struct hfd_work_pool *pool, struct hfd_work_task *task) {
        assert(task->step);
        pthread_mutex_lock(&pool->mu);
        bool accepted =
                !atomic_load_explicit(&pool->stopping, memory_order_relaxed) || task->state != IDLE;
        if (task->state == RUNNING) {
                task->again = true;
        } else if (task->state == IDLE && accepted) {
                pool->pending++;
                enqueue_locked(pool, task);
        }
        pthread_mutex_unlock(&pool->mu);
        return accepted;
}

/* Relaxed: a step only asks whether the flag is set, and no other memory depends on it. */
void hfd_work_cancel(struct hfd_work_task *task) {
        atomic_store_explicit(&task->cancelled, true, memory_order_relaxed);
}

bool hfd_work_is_cancelled(const struct hfd_work_pool *pool, const struct hfd_work_task *task) {
        return atomic_load_explicit(&task->cancelled, memory_order_relaxed) ||
               atomic_load_explicit(&pool->stopping, memory_order_relaxed);
}

/* FNV-1a. */
uint64_t hfd_work_owner(const char *name) {
        uint64_t hash = UINT64_C(14695981039346656037);

        for (const char *c = name ? name : ""; *c; c++)
                hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
        return hash ^ (hash >> 32); /* the queue is chosen by the low bits */
}

size_t hfd_work_pending(struct hfd_work_pool *pool) {
        pthread_mutex_lock(&pool->mu);
        size_t n = pool->pending;
        pthread_mutex_unlock(&pool->mu);
        return n;
}
