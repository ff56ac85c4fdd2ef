/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A pool of a few threads for work that would otherwise make other requests wait, such as large
 * lists, initial events of watches, large writes and conversions. Threads that serve connections or
 * deliver the store's replies only submit such work.
 *
 * Work is done in steps. A step should take about a millisecond; a task that has more to do returns
 * HFD_WORK_MORE and waits for its next turn. Turns are fair: owners (users) take turns, and the
 * tasks of one owner take turns. So the only task of an owner waits for about one step of each
 * other owner, however large the other tasks are.
 *
 * Some work cannot be divided: to decode a large body, to apply a patch to it, or to evaluate the
 * expressions of policies for it. Such a task has a long step, and says so. Long steps run on the
 * first thread only, one after the other. So the other threads still make progress, and long steps
 * occupy one processor at most, however many wait.
 *
 * A task is a member of the caller's struct. It may be submitted again at any time, by any thread:
 *
 *      idle --submit--> queued --a thread is free--> running --MORE--> queued
 *                                                    running --IDLE--> idle (queued again, if it
 *                                                                      was submitted meanwhile)
 *                                                    running --DONE--> over: a submit has no effect
 *
 * Invariants: the steps of one task never overlap. After an accepted submit a task gets at least
 * one more step, even if it is cancelled or the pool stops, unless it is over or its running step
 * ends it (DONE). So a step can always send the response.
 *
 * Lock: one mutex guards the queues and the state of every task. No step runs under it. Thread:
 * any, for every function that does not say otherwise.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/host.h>

struct hfd_work_pool;

enum hfd_work_result {
        HFD_WORK_MORE, /* there is more to do: queue the task again */
        HFD_WORK_IDLE, /* nothing to do until the next submit */
        HFD_WORK_DONE  /* the step may have freed the task; the pool does not touch it again */
};

/* Begins as {.step, .owner, .long_step}, zero otherwise. Must not move until it is done or idle. */
struct hfd_work_task {
        /* Runs on a thread of the pool, with no lock held. Must not wait. */
        enum hfd_work_result (*step)(struct hfd_work_task *task);
        uint64_t owner; /* hfd_work_owner of the user's name; decides whose turn a step uses */
        bool long_step; /* a step may take much longer than a millisecond; constant */

        /* For the pool only. */
        struct hfd_work_task *next;
        unsigned char state;
        bool again; /* submitted while it was running */
        atomic_bool cancelled;
};

/*
 * Starts n_threads threads (1 to 16) with the nice value `nice` (0 to 19), so that the threads of
 * connections get more processor time when it is scarce. host is borrowed. 0 or -errno.
 */
int hfd_work_pool_new(const struct hf_host *host, unsigned n_threads, int nice,
                      struct hfd_work_pool **ret_pool);
/*
 * Makes hfd_work_is_cancelled true for every task, lets every task that is queued or running
 * finish, and joins the threads. From now on the submit of an idle task returns false. Blocks until
 * all tasks are done or idle: a step that sees the cancellation must not return HFD_WORK_MORE.
 * Idempotent; one thread only.
 */
void hfd_work_pool_stop(struct hfd_work_pool *pool);
/* Stops the pool, and frees it. Accepts NULL; returns NULL. */
struct hfd_work_pool *hfd_work_pool_free(struct hfd_work_pool *pool);

/*
 * Queues the task, unless it is queued already; a running one is queued again after its step,
 * unless that returns HFD_WORK_DONE. False: the pool is stopping, and no step follows. Never calls
 * step itself. Blocks at most on the mutex. The caller must know that the task still exists, as for
 * hfd_work_cancel.
 */
bool hfd_work_submit(struct hfd_work_pool *pool, struct hfd_work_task *task);
/*
 * Asks the task to end early: its steps see hfd_work_is_cancelled. It does not submit the task, and
 * needs no lock. The caller must know that the task still exists.
 */
void hfd_work_cancel(struct hfd_work_task *task);
/* For steps: whether hfd_work_cancel was called for the task, or the pool is stopping. */
bool hfd_work_is_cancelled(const struct hfd_work_pool *pool, const struct hfd_work_task *task);

/* The owner for a user's name; NULL = the server itself. Different names may have the same owner:
 * then they share their turns, which does no other harm. */
uint64_t hfd_work_owner(const char *name);
/* The number of tasks that are queued or running. */
size_t hfd_work_pending(struct hfd_work_pool *pool);
