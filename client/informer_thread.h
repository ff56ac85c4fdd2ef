/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The thread that runs the reflectors of one informer or of several. informer_thread.c describes
 * how they take turns.
 *
 * Lock: `mu` guards the members marked below, and the hf__informer_turn of each informer. It may be
 * taken while an informer's lock is held, never the other way round. No callback runs under it.
 */
#include <pthread.h>
#include <stdbool.h>

#include <holdfast/informer.h>

/* The thread's record of one of its informers. Guarded by the thread's mu. */
struct hf__informer_turn {
        struct hf_informer *next;       /* in the thread's list of informers */
        struct hf_informer *next_ready; /* in its queue */
        bool is_attached;               /* it is in the list */
        bool is_ready;                  /* it is in the queue */
        hf_nsec until;                  /* boot time of its next turn, if nobody wakes it before */
};

struct hf_informer_thread {
        /* immutable after start */
        const struct hf_host *host;   /* borrowed */
        const struct hf_clock *clock; /* borrowed */
        pthread_t thread;
        pthread_mutex_t mu;
        pthread_cond_t wake;  /* signals the thread: an informer is ready, or stop */
        pthread_cond_t ended; /* signals other threads: an informer is detached, n_delaying is 0 */

        /* guarded by mu */
        struct hf_informer *informers;                  /* those that have started; borrowed */
        struct hf_informer *first_ready, **ready_place; /* the queue, and where its next one goes */
        hf_nsec due_at;      /* no informer that waits outside the queue has an earlier `until` */
        bool sleeps;         /* the thread waits, and nobody has woken it yet */
        unsigned n_delaying; /* threads that delay a wake of this one (base/mailbox.h) */
        bool stop;
};

/* ---- for the informer; thread: its owner's ---- */

/* Initialises the caller's struct; starts nothing. 0 or -errno. */
int hf__informer_thread_init(struct hf_informer_thread *thread, const struct hf_host *host);
/* Frees what init made. No informer is attached, and the thread was not started or was joined. */
void hf__informer_thread_done(struct hf_informer_thread *thread);
/* 0 or -errno. */
int hf__informer_thread_start(struct hf_informer_thread *thread);
/* Tells the thread to return once no informer is attached, and joins it. Then waits until no other
 * thread delays a wake of it. Each does so at most for one iteration of its own loop. */
void hf__informer_thread_join(struct hf_informer_thread *thread);

/* Gives the informer turns from now on. */
void hf__informer_thread_attach(struct hf_informer *informer);
/* Undoes the attach of an informer whose thread could not be started. */
void hf__informer_thread_detach(struct hf_informer *informer);
/* Waits until the thread has detached the informer, which must have been told to stop. The thread
 * does not use the informer afterwards. */
void hf__informer_thread_await_end(struct hf_informer *informer);

/* ---- thread: any, with the informer's lock or without ---- */

/* Gives the informer a turn soon. Does nothing while the informer is not attached. Neither the
 * informer nor its thread may be freed before this function returns. So the caller holds the
 * informer's lock, or is the informer's owner, or has yet to deliver the last message of a list or
 * watch, for which hf_informer_free waits. */
void hf__informer_thread_wake(struct hf_informer *informer);
