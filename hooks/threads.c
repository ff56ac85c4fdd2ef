/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts and joins the threads that hooks spawn.
 *
 * Invariant: a thread is joined only after it has set `done`, which is its last access to the
 * registry. So a join waits only for the thread to exit and never for its work.
 *
 * A thread that is done but not joined keeps its stack. Therefore each spawn also joins those
 * threads of its hook that are done.
 */
#include "hooks/threads.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/thread.h"
#include "hooks/hook_registry.h"

static void *spawned_main(void *ctx) {
        struct hf__hook_thread *thread = ctx;
        struct hf_hooks *hooks = thread->hook->hooks;

        thread->fn(thread->ctx, thread->hook->token);
        pthread_mutex_lock(&hooks->mu);
        thread->done = true;
        pthread_cond_broadcast(&hooks->changed);
        pthread_mutex_unlock(&hooks->mu);
        return NULL;
}

/* Removes the threads that are done from the hook's list and returns them. */
static struct hf__hook_thread *remove_done_locked(struct hf_hook_context *hook) {
        struct hf__hook_thread *done = NULL, **link = &hook->threads;

        hf__mutex_assert_held(&hook->hooks->mu);
        while (*link) {
                struct hf__hook_thread *thread = *link;
                if (!thread->done) {
                        link = &thread->next;
                        continue;
                }
                *link = thread->next;
                thread->next = done;
                done = thread;
        }
        return done;
}

/* Creates the thread under the lock, so that a stop sees either no thread or one that it can join.
 * Creating a thread does not block for long. */
static int create_thread_locked(struct hf__hook_thread *thread, const char *name) {
        struct hf_hook_context *hook = thread->hook;
        struct hf_hooks *hooks = hook->hooks;

        hf__mutex_assert_held(&hooks->mu);
        if (hooks->shutdown) /* set before any stop begins */
                return HF_E_CLOSED;
        int r = hf__thread_start(hooks->host, name, spawned_main, thread, &thread->thread);
        if (r != 0)
                return r;
        thread->next = hook->threads;
        hook->threads = thread;
        return 0;
}

int hf_hook_spawn(struct hf_hook_context *context, const char *thread_name,
                  void (*fn)(void *ctx, struct hf_cancel *token), void *ctx) {
        assert(fn);
        struct hf__hook_thread *thread = calloc(1, sizeof *thread);
        if (!thread)
                return -ENOMEM;
        *thread = (struct hf__hook_thread){.hook = context, .fn = fn, .ctx = ctx};
        pthread_mutex_lock(&context->hooks->mu);
        struct hf__hook_thread *done = remove_done_locked(context);
        int r = create_thread_locked(thread, thread_name);
        pthread_mutex_unlock(&context->hooks->mu);
        hf__hook_threads_join(done);
        if (r != 0)
                free(thread);
        return r;
}

bool hf__hook_threads_are_done_locked(const struct hf_hook_context *hook) {
        hf__mutex_assert_held(&hook->hooks->mu);
        for (const struct hf__hook_thread *thread = hook->threads; thread; thread = thread->next)
                if (!thread->done)
                        return false;
        return true;
}

void hf__hook_threads_join(struct hf__hook_thread *threads) {
        while (threads) {
                struct hf__hook_thread *thread = threads;
                threads = thread->next;
                (void)hf__thread_join(thread->thread);
                free(thread);
        }
}
