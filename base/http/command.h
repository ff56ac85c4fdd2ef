/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Commands to the engine's thread. Any thread sends them, through the engine's mailbox. A command
 * is a member of the struct that it concerns, so that sending it allocates nothing.
 */
#include "base/mailbox.h"

enum hf__http_command_kind {
        HF__HTTP_SUBMIT,   /* start the exchange that contains the command */
        HF__HTTP_CANCEL,   /* cancel the exchange that contains it */
        HF__HTTP_SCHEDULE, /* schedule the struct scheduled_call (engine.c) that contains it */
        HF__HTTP_STOP      /* stop the engine that contains it */
};

struct hf__http_command {
        struct hf__message message;
        enum hf__http_command_kind kind;
};
