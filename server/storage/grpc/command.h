/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Commands to the channel's thread. Any thread sends them, through the channel's mailbox. A command
 * is a member of the struct that it concerns, so that sending it allocates nothing.
 */
#include "base/mailbox.h"

enum hfd_grpc_command_kind {
        HFD_GRPC_START,    /* begin the stream that contains the command */
        HFD_GRPC_CANCEL,   /* cancel the stream that contains it */
        HFD_GRPC_RESOLVED, /* the resolver that contains it has finished */
        HFD_GRPC_STOP      /* stop the channel that contains it */
};

struct hfd_grpc_command {
        struct hf__message message;
        enum hfd_grpc_command_kind kind;
};
