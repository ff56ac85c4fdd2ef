/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The threads that a hook has spawned. hf_hook_spawn is in holdfast/hooks.h. */
#include <pthread.h>
#include <stdbool.h>

struct hf_cancel;
struct hf_hook_context;

struct hf__hook_thread {
        /* immutable */
        struct hf_hook_context *hook;
        void (*fn)(void *ctx, struct hf_cancel *token);
        void *ctx;
        pthread_t thread;
        /* guarded by hooks->mu */
        struct hf__hook_thread *next; /* in hook->threads */
        bool done; /* fn has returned, and the thread will not access the registry again */
};

/* Whether all spawned threads of hook are done. The caller holds hooks->mu. */
bool hf__hook_threads_are_done_locked(const struct hf_hook_context *hook);
/* Joins and frees a list of threads. All must be done, so that the joins do not wait for any fn.
 * The caller must not hold hooks->mu. */
void hf__hook_threads_join(struct hf__hook_thread *threads);
