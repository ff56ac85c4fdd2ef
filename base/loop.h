/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Tasks of a loop that need no allocation: each is a member of its sender's struct. */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/loop.h>

struct hf__loop_task {
        void (*fn)(void *ctx);
        void *ctx;
        /* guarded by the loop's mutex */
        struct hf__loop_task *next;
        uint64_t number; /* in the order in which tasks were queued */
        bool queued;
};

/* Queues a task whose fn and ctx are set. Does nothing if it is queued already. Thread: any. */
void hf__loop_queue(struct hf_loop *loop, struct hf__loop_task *task);
/* Removes a task from the queue, if it is there. After the last task is removed, the descriptor of
 * the loop (hf_loop_fd) is no longer readable. Thread: any. If the caller is not on the loop's
 * thread, the loop may still be running the task when this function returns. */
void hf__loop_remove(struct hf_loop *loop, struct hf__loop_task *task);
