/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The elector loop: one thread that runs the cores of all electors of a set. */
#include "base/mailbox.h"
#include "leader/electors.h"

/*
 * A message to the loop: an event for one elector, as in struct hf__core_event. It is much smaller
 * than the event, because it has its texts at their own length: thousands of messages may wait.
 * Allocated with malloc; the loop frees it, or hf_electors_free if it comes after the loop's end.
 */
struct hf__elector_message {
        struct hf__message message; /* first */
        struct hf_elector *elector;
        bool is_reply; /* a reply of the lock: the loop finds the type, which depends on op_id */
        enum hf__core_event_type type; /* if it is no reply */
        uint32_t op_id;
        int result;
        hf_nsec retry_after, hold_back;
        /* These texts may be NULL. In a message that is posted they are in `texts`. */
        struct hf__core_seen record; /* record.holder NULL = there is none */
        uint64_t term;               /* of the record */
        const char *successor;
        const char *why; /* if is_reply and the operation failed */
        char texts[];
};

/* Posts a copy of the message and of its texts. 0 or -ENOMEM. Thread: any; never blocks. */
int hf__elector_loop_post(struct hf_elector *elector, const struct hf__elector_message *message);
/* The thread's function; ctx is the struct hf_electors. */
void *hf__elector_loop_run(void *ctx);
/* The lock's callbacks; ctx is the struct hf_elector. They only post a message to the loop. Thread:
 * any. */
void hf__elector_loop_on_reply(void *ctx, uint32_t op_id, const struct hf__lock_reply *reply);
void hf__elector_loop_on_record(void *ctx, const struct hf__record *record);
