/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Commands of other threads to the engine's thread. A command is a message in the engine's mailbox
 * and a member of a longer-lived struct, so that sending one allocates nothing.
 */
#include "base/mailbox.h"

enum hf__http_command_kind {
        HF__HTTP_SUBMIT, /* member of the exchange to start */
        HF__HTTP_CANCEL, /* member of the exchange to cancel */
        HF__HTTP_TIMER,  /* member of the timer to set (engine.c) */
        HF__HTTP_STOP    /* member of the engine */
};

struct hf__http_command {
        struct hf__message message;
        enum hf__http_command_kind kind;
};
