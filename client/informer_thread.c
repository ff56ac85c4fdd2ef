/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread gives its informers turns, in the order of a queue. In a turn the reflector of an
 * informer does one step (reflector.c). If more is due, the informer goes to the end of the queue,
 * so that a busy one does not keep the others waiting. Otherwise the reflector says when its next
 * step is due, and the informer waits outside the queue for that time, or until it is woken.
 *
 * Invariants:
 *  - an informer leaves the queue before its turn begins. So if it is woken during the turn, it
 *    gets another turn, in which it sees what it was woken for;
 *  - informers whose time has come enter the queue even while others are always ready;
 *  - whenever the lock is free and the queue is not empty, the thread is awake or will be signaled.
 *    A thread that signals later (do_delayed_wake) is counted in n_delaying until it has done so;
 *  - the thread does not use an informer after detaching it, because the informer's owner then
 *    frees it.
 */
#include "client/informer_thread.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/host.h"
#include "base/mailbox.h"
#include "base/thread.h"
#include "client/informer_private.h"

/* ---- the queue ---- */

static void enqueue_locked(struct hf_informer_thread *thread, struct hf_informer *informer) {
        hf__mutex_assert_held(&thread->mu);
        if (informer->turn.is_ready)
                return;
        informer->turn.is_ready = true;
        informer->turn.next_ready = NULL;
        *thread->ready_place = informer;
        thread->ready_place = &informer->turn.next_ready;
}

static struct hf_informer *dequeue_locked(struct hf_informer_thread *thread) {
        struct hf_informer *informer = thread->first_ready;

        hf__mutex_assert_held(&thread->mu);
        if (!informer)
                return NULL;
        thread->first_ready = informer->turn.next_ready;
        if (!thread->first_ready)
                thread->ready_place = &thread->first_ready;
        informer->turn.is_ready = false;
        return informer;
}

/* Puts the informers whose time has come into the queue. */
static void enqueue_due_locked(struct hf_informer_thread *thread, hf_nsec now) {
        hf__mutex_assert_held(&thread->mu);
        thread->due_at = HF_NSEC_NEVER;
        for (struct hf_informer *i = thread->informers; i; i = i->turn.next) {
                if (i->turn.until <= now) { /* its turn sets another time */
                        enqueue_locked(thread, i);
                } else if (i->turn.until < thread->due_at) {
                        thread->due_at = i->turn.until;
                }
        }
}

/* Takes an informer out of the queue and the list. */
static void remove_locked(struct hf_informer_thread *thread, struct hf_informer *informer) {
        struct hf_informer **place;

        hf__mutex_assert_held(&thread->mu);
        if (informer->turn.is_ready) {
                for (place = &thread->first_ready; *place != informer;
                     place = &(*place)->turn.next_ready)
                        assert(*place);
                *place = informer->turn.next_ready;
                if (!*place)
                        thread->ready_place = place;
                informer->turn.is_ready = false;
        }
        for (place = &thread->informers; *place != informer; place = &(*place)->turn.next)
                assert(*place);
        *place = informer->turn.next;
        informer->turn.is_attached = false;
}

/* ---- the thread ---- */

/* NULL: no informer is ready before due_at. */
static struct hf_informer *next_locked(struct hf_informer_thread *thread) {
        hf_nsec now = hf_now(thread->clock);

        hf__mutex_assert_held(&thread->mu);
        if (!thread->first_ready || thread->due_at <= now)
                enqueue_due_locked(thread, now);
        return dequeue_locked(thread);
}

static void sleep_locked(struct hf_informer_thread *thread) {
        hf__mutex_assert_held(&thread->mu);
        thread->sleeps = true;
        (void)thread->clock->wait(thread->clock->ctx, &thread->wake, &thread->mu, thread->due_at);
        thread->sleeps = false;
}

static void end_turn_locked(struct hf_informer_thread *thread, struct hf_informer *informer,
                            enum hf__reflector_next next, hf_nsec until) {
        hf__mutex_assert_held(&thread->mu);
        switch (next) {
        case HF__REFLECTOR_AGAIN: enqueue_locked(thread, informer); break;
        case HF__REFLECTOR_LATER:
                informer->turn.until = until;
                if (until < thread->due_at)
                        thread->due_at = until;
                break;
        case HF__REFLECTOR_ENDED:
                remove_locked(thread, informer);
                (void)pthread_cond_broadcast(&thread->ended);
                break;
        }
}

static void *run_thread(void *ctx) {
        struct hf_informer_thread *thread = ctx;

        (void)pthread_mutex_lock(&thread->mu);
        while (!thread->stop || thread->informers) {
                struct hf_informer *informer = next_locked(thread);
                hf_nsec until = HF_NSEC_NEVER;

                if (!informer) {
                        sleep_locked(thread);
                        continue;
                }
                (void)pthread_mutex_unlock(&thread->mu);
                enum hf__reflector_next next = hf__reflector_step(informer, &until);
                (void)pthread_mutex_lock(&thread->mu);
                end_turn_locked(thread, informer, next, until);
        }
        (void)pthread_mutex_unlock(&thread->mu);
        return NULL;
}

/* Does the wake that a thread has delayed. Signals without the lock, so that the informers' thread
 * does not wake only to wait for the lock. The struct still exists then, because n_delaying counts
 * the calling thread. */
static void do_delayed_wake(void *ctx) {
        struct hf_informer_thread *thread = ctx;

        (void)pthread_mutex_lock(&thread->mu);
        bool wakes = thread->sleeps && thread->first_ready;
        if (wakes)
                thread->sleeps = false;
        (void)pthread_mutex_unlock(&thread->mu);
        if (wakes)
                (void)pthread_cond_signal(&thread->wake);
        (void)pthread_mutex_lock(&thread->mu);
        assert(thread->n_delaying > 0);
        if (--thread->n_delaying == 0)
                (void)pthread_cond_broadcast(&thread->ended);
        (void)pthread_mutex_unlock(&thread->mu);
}

/* Whether the caller must signal the thread now. A caller that handles many events in a row delays
 * the signal until it has handled all of them, so that they cost one wake. */
static bool must_signal_locked(struct hf_informer_thread *thread) {
        hf__mutex_assert_held(&thread->mu);
        if (!thread->sleeps)
                return false;
        enum hf__delay delay = hf__mailbox_delay_call(do_delayed_wake, thread);
        if (delay == HF__DELAYED)
                thread->n_delaying++;
        if (delay == HF__NOT_DELAYED)
                thread->sleeps = false;
        return delay == HF__NOT_DELAYED;
}

/* Signals without the lock, so that the thread does not wake only to wait for it. */
void hf__informer_thread_wake(struct hf_informer *informer) {
        struct hf_informer_thread *thread = informer->thread;
        bool wakes = false;

        (void)pthread_mutex_lock(&thread->mu);
        if (informer->turn.is_attached) {
                enqueue_locked(thread, informer);
                wakes = must_signal_locked(thread);
        }
        (void)pthread_mutex_unlock(&thread->mu);
        if (wakes)
                (void)pthread_cond_signal(&thread->wake);
}

/* ---- for the informer ---- */

void hf__informer_thread_attach(struct hf_informer *informer) {
        struct hf_informer_thread *thread = informer->thread;

        (void)pthread_mutex_lock(&thread->mu);
        assert(!thread->stop);
        informer->turn.until = HF_NSEC_NEVER;
        informer->turn.next = thread->informers;
        informer->turn.is_attached = true;
        thread->informers = informer;
        (void)pthread_mutex_unlock(&thread->mu);
        hf__informer_thread_wake(informer);
}

void hf__informer_thread_detach(struct hf_informer *informer) {
        (void)pthread_mutex_lock(&informer->thread->mu);
        remove_locked(informer->thread, informer);
        (void)pthread_mutex_unlock(&informer->thread->mu);
}

void hf__informer_thread_await_end(struct hf_informer *informer) {
        struct hf_informer_thread *thread = informer->thread;

        assert(!pthread_equal(thread->thread, pthread_self())); /* it would wait for itself */
        hf__mailbox_call_early(); /* the caller may have delayed a wake of `thread` */
        (void)pthread_mutex_lock(&thread->mu);
        while (informer->turn.is_attached)
                (void)thread->clock->wait(thread->clock->ctx, &thread->ended, &thread->mu,
                                          HF_NSEC_NEVER);
        (void)pthread_mutex_unlock(&thread->mu);
}

int hf__informer_thread_start(struct hf_informer_thread *thread) {
        return hf__thread_start(thread->host, "hf-informer", run_thread, thread, &thread->thread);
}

void hf__informer_thread_join(struct hf_informer_thread *thread) {
        hf__mailbox_call_early(); /* or this thread would wait below for its own delayed wake */
        (void)pthread_mutex_lock(&thread->mu);
        thread->stop = true;
        (void)pthread_cond_signal(&thread->wake);
        (void)pthread_mutex_unlock(&thread->mu);
        (void)hf__thread_join(thread->thread);
        (void)pthread_mutex_lock(&thread->mu);
        while (thread->n_delaying > 0)
                (void)thread->clock->wait(thread->clock->ctx, &thread->ended, &thread->mu,
                                          HF_NSEC_NEVER);
        (void)pthread_mutex_unlock(&thread->mu);
}

/* ---- life ---- */

int hf__informer_thread_init(struct hf_informer_thread *thread, const struct hf_host *host) {
        *thread = (struct hf_informer_thread){.host = host,
                                              .clock = hf_host_clock(host),
                                              .due_at = HF_NSEC_NEVER};
        thread->ready_place = &thread->first_ready;
        int r = hf__mutex_cond_init(&thread->mu, &thread->wake);
        if (r < 0)
                return r;
        r = hf_cond_init(&thread->ended);
        if (r < 0) {
                (void)pthread_cond_destroy(&thread->wake);
                (void)pthread_mutex_destroy(&thread->mu);
        }
        return r;
}

void hf__informer_thread_done(struct hf_informer_thread *thread) {
        assert(!thread->informers && !thread->first_ready);
        (void)pthread_cond_destroy(&thread->ended);
        (void)pthread_cond_destroy(&thread->wake);
        (void)pthread_mutex_destroy(&thread->mu);
}

int hf_informer_thread_new(const struct hf_host *host, struct hf_informer_thread **ret_thread) {
        if (!ret_thread || hf__host_check(host, NULL) != 0)
                return -EINVAL;
        HF__CLEANUP(hf__free_cleanup) struct hf_informer_thread *thread = malloc(sizeof *thread);
        if (!thread)
                return -ENOMEM;
        int r = hf__informer_thread_init(thread, host);
        if (r < 0)
                return r;
        r = hf__informer_thread_start(thread);
        if (r < 0) {
                hf__informer_thread_done(thread);
                return r;
        }
        *ret_thread = HF__TAKE(thread);
        return 0;
}

struct hf_informer_thread *hf_informer_thread_free(struct hf_informer_thread *thread) {
        if (!thread)
                return NULL;
        hf__informer_thread_join(thread);
        hf__informer_thread_done(thread);
        free(thread);
        return NULL;
}
