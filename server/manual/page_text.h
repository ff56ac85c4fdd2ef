/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The parts of the manual pages that do not come from the tables of the command line. Immutable;
 * any thread. */
#include <stddef.h>

#include "server/config/config.h"

struct hfd_manual_text {
        enum hfd_command command;
        const char *section; /* its title; entries of one section follow each other */
        const char *term;    /* an item of a list; NULL = a paragraph */
        const char *text;
};
extern const struct hfd_manual_text hfd_manual_texts[];
extern const size_t hfd_manual_n_texts;

/* The commands that make pages and completions. No --help lists them. */
#define HFD_MANUAL_N_HELP_COMMANDS 2
struct hfd_manual_help_command {
        const char *term, *text;
};
extern const struct hfd_manual_help_command hfd_manual_help_commands[HFD_MANUAL_N_HELP_COMMANDS];
