/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The thread that stops the electors of a host with an event loop. */
#include <pthread.h>
#include <stdbool.h>

#include <holdfast/leader.h>

#include "base/loop.h"

/* A member of struct hf_electors; zero at first. electors->mu guards `begun` and `over`. They are
 * read without it only while no other thread can write them: before the thread starts, and in
 * hf__stop_thread_join, beside which no other call may run. The thread sets result and status
 * before it sets `over`, so a caller that has seen `over` may read both. */
struct hf__stop_thread {
        bool begun, over;
        pthread_t thread;
        /* set after `begun` and before the thread starts; immutable from then on */
        struct hf_loop *loop; /* borrowed; NULL = done is called on the thread */
        void (*done)(void *ctx, int result, const struct hf_status *status);
        void *ctx;
        /* set before `over` */
        int result;
        struct hf_status status;
        struct hf__loop_task task; /* calls done in the loop */
};

/* Joins the thread if there is one, and removes the call of `done` from the loop if it is still
 * queued there. Blocks until the stop has ended. Thread: the one that frees the electors; if `done`
 * runs in a loop, the loop's. */
void hf__stop_thread_join(struct hf_electors *electors);
