/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The mailbox of a worker (worker_loop.c), and the test for the worker's thread. Requests and
 * connections need only this part of a worker to give it work.
 *
 * Threads: each function says which; init and done: those that create and free the worker. The
 * mailbox has a lock of its own (base/mailbox.h).
 */
#include <stdbool.h>

#include "base/mailbox.h"
#include "server/http/request/worker_message.h"

struct hfd_worker_mailbox {
        struct hf__mailbox shared; /* every thread may post */
        /* List of messages that the worker's thread has posted to itself. That thread only. */
        struct hf__message *local, **local_tail;
};

int hfd_worker_mailbox_init(struct hfd_worker_mailbox *mailbox); /* 0 or -errno */
/* The mailbox must be empty. */
void hfd_worker_mailbox_done(struct hfd_worker_mailbox *mailbox);

/* From now on, the calling thread is the worker of this mailbox. NULL: it is no worker any more. */
void hfd_worker_mailbox_set_current(const struct hfd_worker_mailbox *mailbox);
/* Whether the caller runs on this worker's thread. Thread: any. */
bool hfd_worker_mailbox_is_current(const struct hfd_worker_mailbox *mailbox);

/*
 * Sends the message to the worker thread, which handles it soon. The worker takes over the memory
 * of a socket's message, and the caller's reference to a request. It frees or drops them later, at
 * the latest in hfd_worker_loop_stop, which also makes the calls that are left. Posting from the
 * worker's own thread needs neither a lock nor a system call. Thread: any.
 */
void hfd_worker_mailbox_post(struct hfd_worker_mailbox *mailbox,
                             struct hfd_worker_message *message);
/* Takes the messages that the worker's thread has posted to itself, oldest first (NULL = none).
 * Thread: worker. */
struct hf__message *hfd_worker_mailbox_take_local(struct hfd_worker_mailbox *mailbox);
