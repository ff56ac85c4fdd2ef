/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The one door into a loop that runs on another thread: letters are posted by any thread, taken in
 * order by the owner.
 *
 * Posting never blocks and never allocates: the letter is a member of the poster's own struct and
 * belongs to the mailbox until it is taken. The eventfd is readable while letters wait; it is
 * written only when the box was empty.
 */
#include <pthread.h>

struct hf__message {
        struct hf__message *next; /* the mailbox's while posted */
};

struct hf__mailbox {
        pthread_mutex_t mu;
        struct hf__message *head, **tail; /* guarded by mu */
        int fd;                           /* eventfd, non-blocking, close-on-exec; immutable */
};

int hf__mailbox_init(struct hf__mailbox *box);  /* 0 or -errno */
void hf__mailbox_done(struct hf__mailbox *box); /* the box must be empty */
void hf__mailbox_post(struct hf__mailbox *box, struct hf__message *message); /* Thread: any */
void hf__mailbox_wake(struct hf__mailbox *box); /* wakes the owner without a letter. Thread: any */
/* Takes all letters, oldest first, linked by next (NULL = none), and clears the eventfd. Thread:
 * owner only. */
struct hf__message *hf__mailbox_take(struct hf__mailbox *box);
