/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The table of commands, for flags.c and flags_parse.c. Immutable. Thread: any.
 *
 * The first line of an intro is "holdfastd release [flags]: what it does". If the command has
 * sub-commands, the intro has a line for each of them instead, "holdfastd release [flags]  what it
 * does". The manual (server/manual) depends on this form.
 */
#include "server/config/config.h"

struct hfd_command_info {
        const char *suffix;       /* as written after "holdfastd" */
        const char *arguments[3]; /* names of its arguments that are not flags; NULL-terminated */
        const char *intro;        /* how its --help begins; NULL: it has no --help of its own */
};
extern const struct hfd_command_info hfd_commands[HFD_COMMAND_VERSION + 1];
