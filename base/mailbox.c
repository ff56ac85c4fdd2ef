/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between threads: a list under a mutex, and an eventfd that wakes the owner.
 *
 * Invariant: whenever the mutex is free and the list is not empty, either the eventfd is readable
 * or the owner is inside hf__mailbox_take and about to lock. So the owner misses no message.
 */
#include "base/mailbox.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/thread.h"

int hf__mailbox_init(struct hf__mailbox *mailbox) {
        *mailbox = (struct hf__mailbox){.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
        if (mailbox->fd < 0)
                return -errno;
        mailbox->tail = &mailbox->head;
        int r = hf__mutex_init(&mailbox->mu);
        if (r < 0) {
                close(mailbox->fd);
                mailbox->fd = -1;
        }
        return r;
}

void hf__mailbox_done(struct hf__mailbox *mailbox) {
        assert(!mailbox->head && mailbox->tail == &mailbox->head);
        pthread_mutex_destroy(&mailbox->mu);
        close(mailbox->fd);
        mailbox->fd = -1;
}

void hf__mailbox_wake(struct hf__mailbox *mailbox) {
        uint64_t one = 1;
        ssize_t n = write(mailbox->fd, &one, sizeof one);

        (void)n; /* EAGAIN: the counter is full, so the eventfd is readable */
}

void hf__mailbox_post(struct hf__mailbox *mailbox, struct hf__message *message) {
        message->next = NULL;
        pthread_mutex_lock(&mailbox->mu);
        bool was_empty = !mailbox->head;
        *mailbox->tail = message;
        mailbox->tail = &message->next;
        /* Wakes the owner under the lock: once the owner has taken this message it may destroy the
         * mailbox, and then this thread must not access the eventfd. */
        if (was_empty)
                hf__mailbox_wake(mailbox);
        pthread_mutex_unlock(&mailbox->mu);
}

struct hf__message *hf__mailbox_take(struct hf__mailbox *mailbox) {
        uint64_t count;
        /* Clear the eventfd before taking the list: a message that is posted after that finds the
         * list empty and wakes the owner again. Do it outside the lock, so that posting never waits
         * for this system call. */
        ssize_t n = read(mailbox->fd, &count, sizeof count);

        (void)n; /* EAGAIN: the eventfd was already clear */
        pthread_mutex_lock(&mailbox->mu);
        struct hf__message *messages = mailbox->head;
        mailbox->head = NULL;
        mailbox->tail = &mailbox->head;
        pthread_mutex_unlock(&mailbox->mu);
        return messages;
}
