/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The elector loop: one thread that runs the cores of all electors of a process. */
#include "base/mailbox.h"
#include "leader/electors.h"

/* A message to the loop: an event for one elector. Allocated with malloc; the loop frees it. */
struct hf__elector_message {
        struct hf__message message; /* first */
        struct hf_elector *elector;
        bool is_reply; /* a reply of the lock: the loop sets event.type, which depends on op_id */
        struct hf__core_event event;
        struct hf_status status; /* if is_reply and the operation failed */
};

/* The thread's function; ctx is the struct hf_electors. */
void *hf__elector_loop_run(void *ctx);
/* The lock's callbacks; ctx is the struct hf_elector. They only post a message to the loop. Thread:
 * any. */
void hf__elector_loop_on_reply(void *ctx, uint32_t op_id, const struct hf__lock_reply *reply);
void hf__elector_loop_on_record(void *ctx, const struct hf__record *record);
