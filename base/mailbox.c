/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mailbox.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/thread.h"

int hf__mailbox_init(struct hf__mailbox *box) {
        *box = (struct hf__mailbox){.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
        if (box->fd < 0)
                return -errno;
        box->tail = &box->head;
        int r = hf__mutex_init(&box->mu);
        if (r < 0) {
                close(box->fd);
                box->fd = -1;
        }
        return r;
}

void hf__mailbox_done(struct hf__mailbox *box) {
        assert(!box->head);
        pthread_mutex_destroy(&box->mu);
        close(box->fd);
        box->fd = -1;
}

void hf__mailbox_wake(struct hf__mailbox *box) {
        uint64_t one = 1;
        ssize_t n = write(box->fd, &one,
                          sizeof one); /* EAGAIN: the counter is full, so it is readable */
        (void)n;
}

void hf__mailbox_post(struct hf__mailbox *box, struct hf__message *message) {
        message->next = NULL;
        pthread_mutex_lock(&box->mu);
        bool was_empty = !box->head;
        *box->tail = message;
        box->tail = &message->next;
        /* Under the lock, so that a box whose owner has taken the letter may be destroyed: the poke
         * is over by then. */
        if (was_empty)
                hf__mailbox_wake(box);
        pthread_mutex_unlock(&box->mu);
}

struct hf__message *hf__mailbox_take(struct hf__mailbox *box) {
        uint64_t count;

        /* Before the lock, so that nobody waits for it: whoever finds the box empty from then on
         * pokes anew. */
        ssize_t n = read(box->fd, &count, sizeof count); /* EAGAIN: nothing to clear */
        (void)n;
        pthread_mutex_lock(&box->mu);
        struct hf__message *messages = box->head;
        box->head = NULL;
        box->tail = &box->head;
        pthread_mutex_unlock(&box->mu);
        return messages;
}
