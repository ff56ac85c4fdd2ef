/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The table of the commands, for flags.c. Immutable; any thread.
 *
 * The first line of an intro is "holdfastd release [flags]: what it does". If the command has
 * commands below it, there is a line for each instead, "holdfastd release [flags]  what it does".
 * The manual (server/manual) depends on that.
 */
#include "server/config/config.h"

struct hfd_command_info {
        const char *suffix;       /* as written after "holdfastd" */
        const char *arguments[3]; /* what its words without a flag are; NULL-terminated */
        const char *intro;        /* of its --help; NULL: it has none of its own */
};
extern const struct hfd_command_info hfd_commands[HFD_COMMAND_VERSION + 1];
