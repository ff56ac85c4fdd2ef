/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A message in a worker's mailbox (worker_mailbox.h). It is the first member of the struct that is
 * posted, so that the worker can cast it back by `kind`. Any thread posts it; from then on it
 * belongs to the worker's thread, until that thread has taken it out.
 */
#include "base/mailbox.h"

enum hfd_worker_message_kind {
        /* A struct hfd_http_request: its response has changed, or it continues
         * (hfd_http_request_continue). */
        HFD_WORKER_MESSAGE_REQUEST,
        HFD_WORKER_MESSAGE_SOCKET, /* a new connection's socket, from worker 0 */
        HFD_WORKER_MESSAGE_CALL,   /* a struct hfd_http_call */
};

struct hfd_worker_message {
        struct hf__message message;
        enum hfd_worker_message_kind kind;
};
