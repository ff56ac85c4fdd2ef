/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mailbox of a worker. A handler that responds on the worker's thread posts its message to the
 * list `local`, which needs neither a lock nor a system call.
 *
 * Invariant: only the worker's thread touches `local` while it runs.
 */
#include "server/http/request/worker_mailbox.h"

#include <assert.h>
#include <stddef.h>

static _Thread_local const struct hfd_worker_mailbox *current;

int hfd_worker_mailbox_init(struct hfd_worker_mailbox *mailbox) {
        mailbox->local = NULL;
        mailbox->local_tail = &mailbox->local;
        return hf__mailbox_init(&mailbox->shared);
}

void hfd_worker_mailbox_done(struct hfd_worker_mailbox *mailbox) {
        assert(!mailbox->local);
        hf__mailbox_done(&mailbox->shared);
}

void hfd_worker_mailbox_set_current(const struct hfd_worker_mailbox *mailbox) {
        assert(!mailbox || !current);
        current = mailbox;
}

bool hfd_worker_mailbox_is_current(const struct hfd_worker_mailbox *mailbox) {
        return mailbox == current;
}

void hfd_worker_mailbox_post(struct hfd_worker_mailbox *mailbox,
                             struct hfd_worker_message *message) {
        assert(mailbox && message);
        if (mailbox != current) {
                /* Lazily: a thread of the store passes on many replies in one go. */
                hf__mailbox_post_lazily(&mailbox->shared, &message->message);
                return;
        }
        message->message.next = NULL;
        *mailbox->local_tail = &message->message;
        mailbox->local_tail = &message->message.next;
}

struct hf__message *hfd_worker_mailbox_take_local(struct hfd_worker_mailbox *mailbox) {
        struct hf__message *messages = mailbox->local;

        mailbox->local = NULL;
        mailbox->local_tail = &mailbox->local;
        return messages;
}
