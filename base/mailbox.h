/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A mailbox passes messages to an event loop on another thread. Any thread posts messages, and the
 * thread that owns the mailbox takes them in the order in which they were posted.
 *
 * Posting waits at most for the short mutex, never until the owner takes a message. It never
 * allocates: a message is a member of a struct of the sender. The message belongs to the mailbox
 * until the owner takes it. The owner polls the eventfd, which becomes readable when a message is
 * posted to an empty mailbox.
 */
#include <pthread.h>
#include <stdbool.h>

struct hf__message {
        struct hf__message *next; /* used by the mailbox while the message is posted */
};

struct hf__mailbox {
        pthread_mutex_t mu;
        /* guarded by mu; *tail is the NULL at the end of the list */
        struct hf__message *head, **tail;
        bool wake_due;            /* a thread has delayed the owner's wake and will still make it */
        unsigned n_delaying;      /* threads that may still use the mailbox for a delayed wake */
        pthread_cond_t forgotten; /* n_delaying has become 0 */
        /* immutable */
        int fd; /* eventfd, non-blocking, close-on-exec */
};

/* 0 or -errno. */
int hf__mailbox_init(struct hf__mailbox *mailbox);
/* Destroys the mailbox, which must be empty. Waits for other threads that delay a wake of this
 * mailbox, each for at most an iteration of that thread's loop. Makes the wakes that the calling
 * thread has delayed. */
void hf__mailbox_done(struct hf__mailbox *mailbox);
/* Appends message. Thread: any. */
void hf__mailbox_post(struct hf__mailbox *mailbox, struct hf__message *message);
/*
 * Waking an owner costs several system calls. An owner that is woken for each message also takes
 * the messages one at a time. A thread that posts many messages in one go can delay its wakes until
 * it has posted them: between hf__mailbox_delay_wakes and hf__mailbox_wake_delayed,
 * hf__mailbox_post_lazily wakes owners only after every 16th message. It wakes an owner at once if
 * the thread delays the wakes of 4 other mailboxes already. A thread that posts without a delay
 * wakes the owner at once, also for the messages of others.
 *
 * Calls of hf__mailbox_delay_wakes are not nested. Until hf__mailbox_wake_delayed a thread must not
 * wait for another one, unless it first makes the wakes that it has delayed so far.
 * hf__mailbox_wake_early wakes the owners of mailboxes. hf__mailbox_call_early makes the calls of
 * hf__mailbox_delay_call too, so its caller holds no lock that these calls may take. On a thread
 * that delays no wakes, hf__mailbox_post_lazily is the same as hf__mailbox_post. Thread: any.
 */
void hf__mailbox_delay_wakes(void);
void hf__mailbox_post_lazily(struct hf__mailbox *mailbox, struct hf__message *message);
void hf__mailbox_wake_early(void);
void hf__mailbox_call_early(void);
void hf__mailbox_wake_delayed(void);
/*
 * Delays a call of wake(ctx) until hf__mailbox_wake_delayed: for owners that are woken in another
 * way than by a mailbox, and for work that is done once for many posted messages. Results:
 *  - HF__DELAYED: hf__mailbox_wake_delayed or hf__mailbox_call_early will make the call on this
 *    thread. Nothing else does, because the caller may hold a lock that wake takes. Until then ctx
 *    must exist.
 *  - HF__DELAYED_BEFORE: the same; an earlier call with this ctx has already delayed it. Only ctx
 *    is compared, so each ctx has one function.
 *  - HF__NOT_DELAYED: this thread delays no wakes, or delays 4 calls already. The caller must wake
 *    the owner itself.
 * wake may post lazily: the owners of those messages are woken after all calls at the latest.
 * Thread: any.
 */
enum hf__delay { HF__NOT_DELAYED, HF__DELAYED, HF__DELAYED_BEFORE };
enum hf__delay hf__mailbox_delay_call(void (*wake)(void *ctx), void *ctx);
/* Whether the mailbox has messages for which the wake is delayed. Thread: owner only. */
bool hf__mailbox_is_wake_due(struct hf__mailbox *mailbox);
/* Makes the eventfd readable without a message. Thread: any. */
void hf__mailbox_wake(struct hf__mailbox *mailbox);
/* Takes all messages, oldest first, linked by next (NULL = none), and clears the eventfd. Thread:
 * owner only. */
struct hf__message *hf__mailbox_take(struct hf__mailbox *mailbox);
/* The same without clearing the eventfd, for an owner that was not woken: it saves a system
 * call. */
struct hf__message *hf__mailbox_take_early(struct hf__mailbox *mailbox);
