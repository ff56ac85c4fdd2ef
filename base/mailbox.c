/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between threads: a list under a mutex, and an eventfd that wakes the owner.
 *
 * Invariant: whenever the mutex is free and the list is not empty, one of these is true, so the
 * owner misses no message:
 *  - the eventfd is readable, or a thread is about to make it readable;
 *  - the owner is inside hf__mailbox_take and about to lock;
 *  - `wake_due` is set, and a thread that delays its wakes has the mailbox in `delayed`.
 *
 * A mailbox that is in `delayed` is not destroyed before its wake, because n_delaying counts the
 * threads that have it there.
 */
#include "base/mailbox.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/thread.h"

#define MAX_DELAYED 4  /* mailboxes, and as many calls; the owners of others are woken at once */
#define MAX_POSTED  16 /* messages; then the owners are woken and work in parallel */

/* The wakes that this thread delays. */
static _Thread_local struct {
        bool on;
        struct hf__mailbox *delayed[MAX_DELAYED];
        size_t n_delayed, n_posted;
        struct {
                void (*wake)(void *ctx);
                void *ctx;
        } calls[MAX_DELAYED];
        size_t n_calls;
} wakes;

int hf__mailbox_init(struct hf__mailbox *mailbox) {
        *mailbox = (struct hf__mailbox){.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
        if (mailbox->fd < 0)
                return -errno;
        mailbox->tail = &mailbox->head;
        int r = hf__mutex_cond_init(&mailbox->mu, &mailbox->forgotten);
        if (r < 0) {
                close(mailbox->fd);
                mailbox->fd = -1;
        }
        return r;
}

void hf__mailbox_wake(struct hf__mailbox *mailbox) {
        assert(mailbox->fd >= 0); /* not done yet */
        uint64_t one = 1;
        ssize_t n = write(mailbox->fd, &one, sizeof one);

        (void)n; /* EAGAIN: the counter is full, so the eventfd is readable */
}

/* True: this thread will wake the owner in wake_owners. The mutex is locked. */
static bool delay_wake(struct hf__mailbox *mailbox) {
        hf__mutex_assert_held(&mailbox->mu);
        if (!wakes.on)
                return false;
        for (size_t i = 0; i < wakes.n_delayed; i++)
                if (wakes.delayed[i] == mailbox)
                        return true;
        if (wakes.n_delayed == MAX_DELAYED)
                return false;
        wakes.delayed[wakes.n_delayed++] = mailbox;
        mailbox->n_delaying++;
        return true;
}

static void post_message(struct hf__mailbox *mailbox, struct hf__message *message, bool may_delay) {
        message->next = NULL;
        pthread_mutex_lock(&mailbox->mu);
        bool must_wake = !mailbox->head || mailbox->wake_due;
        *mailbox->tail = message;
        mailbox->tail = &message->next;
        /* Wakes the owner under the lock: once the owner has taken this message it may destroy the
         * mailbox, and then this thread must not access the eventfd. */
        if (must_wake) {
                mailbox->wake_due = may_delay && delay_wake(mailbox);
                if (!mailbox->wake_due)
                        hf__mailbox_wake(mailbox);
        }
        pthread_mutex_unlock(&mailbox->mu);
}

void hf__mailbox_post(struct hf__mailbox *mailbox, struct hf__message *message) {
        post_message(mailbox, message, false);
}

/* Wakes the owners whose wakes this thread has delayed. */
static void wake_owners(void) {
        assert(wakes.on && wakes.n_delayed <= MAX_DELAYED);
        for (size_t i = 0; i < wakes.n_delayed; i++) {
                struct hf__mailbox *mailbox = wakes.delayed[i];

                pthread_mutex_lock(&mailbox->mu);
                bool is_due = mailbox->wake_due;
                mailbox->wake_due = false;
                pthread_mutex_unlock(&mailbox->mu);
                /* Wake the owner without the lock. Otherwise it would wake only to wait for the
                 * lock. The mailbox still exists, because n_delaying counts this thread. */
                if (is_due)
                        hf__mailbox_wake(mailbox);
                pthread_mutex_lock(&mailbox->mu);
                assert(mailbox->n_delaying > 0);
                if (--mailbox->n_delaying == 0)
                        pthread_cond_signal(&mailbox->forgotten);
                pthread_mutex_unlock(&mailbox->mu);
        }
        wakes.n_delayed = wakes.n_posted = 0;
}

void hf__mailbox_wake_early(void) {
        if (wakes.on)
                wake_owners();
}

static void make_calls(void) {
        while (wakes.n_calls > 0) {
                wakes.n_calls--;
                wakes.calls[wakes.n_calls].wake(wakes.calls[wakes.n_calls].ctx);
        }
}

/* A call may post a message, so the owners are woken after the calls. */
void hf__mailbox_call_early(void) {
        if (!wakes.on)
                return;
        make_calls();
        wake_owners();
}

void hf__mailbox_done(struct hf__mailbox *mailbox) {
        assert(!mailbox->head && mailbox->tail == &mailbox->head);
        hf__mailbox_wake_early();
        pthread_mutex_lock(&mailbox->mu);
        while (mailbox->n_delaying > 0)
                pthread_cond_wait(&mailbox->forgotten, &mailbox->mu);
        pthread_mutex_unlock(&mailbox->mu);
        pthread_cond_destroy(&mailbox->forgotten);
        pthread_mutex_destroy(&mailbox->mu);
        close(mailbox->fd);
        mailbox->fd = -1;
}

void hf__mailbox_post_lazily(struct hf__mailbox *mailbox, struct hf__message *message) {
        post_message(mailbox, message, true);
        /* The calls stay delayed, because the caller may hold a lock that they take. */
        if (wakes.on && ++wakes.n_posted >= MAX_POSTED)
                wake_owners();
}

void hf__mailbox_delay_wakes(void) {
        assert(!wakes.on);
        wakes.on = true;
        wakes.n_delayed = wakes.n_posted = wakes.n_calls = 0;
}

void hf__mailbox_wake_delayed(void) {
        assert(wakes.on);
        hf__mailbox_call_early();
        wakes.on = false;
}

enum hf__delay hf__mailbox_delay_call(void (*wake)(void *ctx), void *ctx) {
        if (!wakes.on)
                return HF__NOT_DELAYED;
        for (size_t i = 0; i < wakes.n_calls; i++)
                if (wakes.calls[i].ctx == ctx)
                        return HF__DELAYED_BEFORE;
        if (wakes.n_calls == MAX_DELAYED)
                return HF__NOT_DELAYED;
        wakes.calls[wakes.n_calls].wake = wake;
        wakes.calls[wakes.n_calls++].ctx = ctx;
        return HF__DELAYED;
}

bool hf__mailbox_is_wake_due(struct hf__mailbox *mailbox) {
        pthread_mutex_lock(&mailbox->mu);
        bool is_due = mailbox->wake_due;
        pthread_mutex_unlock(&mailbox->mu);
        return is_due;
}

static struct hf__message *take_messages(struct hf__mailbox *mailbox) {
        pthread_mutex_lock(&mailbox->mu);
        struct hf__message *messages = mailbox->head;
        mailbox->head = NULL;
        mailbox->tail = &mailbox->head;
        mailbox->wake_due = false;
        pthread_mutex_unlock(&mailbox->mu);
        return messages;
}

struct hf__message *hf__mailbox_take(struct hf__mailbox *mailbox) {
        uint64_t count;
        /* Clear the eventfd before taking the list. The other order would lose the wake of a
         * message that is posted between the two. Do it outside the lock, so that posting never
         * waits for this system call. */
        ssize_t n = read(mailbox->fd, &count, sizeof count);

        (void)n; /* EAGAIN: the eventfd was already clear */
        return take_messages(mailbox);
}

struct hf__message *hf__mailbox_take_early(struct hf__mailbox *mailbox) {
        return take_messages(mailbox);
}
