/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The command line: holdfastd [flags], holdfastd release, holdfastd status, holdfastd pki COMMAND,
 * holdfastd store COMMAND, holdfastd version, each with --help; and holdfastd help [COMMAND].
 *
 * The syntax is `--flag value` or `--flag=value`; a boolean is `--flag` or `--flag=true|false`,
 * also in the other spellings that Kubernetes accepts. A flag with a letter is also `-o value`,
 * `-o=value` or `-ovalue`. A message repeats no password. Parsing prints nothing and does not exit:
 * the program prints the message and exits. Thread: main, at start.
 */
#include "server/config/config.h"
#include "server/config/flag_table.h"

struct hf__strbuf;

/*
 * Parses the command line, completes the configuration and checks it. For the commands version and
 * help, only `command` and help_command are set, and the flags are not checked. On success the
 * caller frees ret_config with hfd_config_done. -errno, or HF_E_INVALID with a message that names
 * the flag or the argument:
 *  - a flag is unknown, is given twice (unless it is a list that may be repeated), belongs to
 *    another command, or has no value, a malformed one or one that is out of range;
 *  - an argument or a sub-command is missing, there is an argument too many, or one is a URL in
 *    place of a file;
 *  - hfd_config_complete or hfd_config_check fails.
 */
int hfd_flags_parse(int argc, char *const argv[], struct hfd_config *ret_config,
                    struct hf_status *reterr_status);

/* ---- the table of flags, for what documents the command line (server/manual) ---- */

/* All strings are static. */
struct hfd_flag_info {
        const char *name; /* without "--" */
        enum hfd_flag_kind kind;
        char letter; /* -o is short for the flag with the letter 'o'; 0 = none */
        /* what stands for the value, "FILE", or the words of a choice, "a|b"; NULL: a boolean,
         * which needs no value */
        const char *value;
        const char *help;
        const char *default_value;
};

/* The flags of a command, in the order of --help: begin with *at = 0. False: there are no more. */
bool hfd_flags_next(enum hfd_command command, size_t *at, struct hfd_flag_info *ret_flag);
/* The command as it is written after "holdfastd": "", " release". Static. Not for HFD_COMMAND_HELP,
 * which has no row in the table of commands. */
const char *hfd_flags_command(enum hfd_command command);
/*
 * How --help of a command begins; static; NULL: the command has no --help of its own. The first
 * line is "holdfastd release [flags]: what it does". If the command has sub-commands, the text has
 * a line for each of them instead, "holdfastd release [flags]  what it does". Not for
 * HFD_COMMAND_HELP.
 */
const char *hfd_flags_intro(enum hfd_command command);

/* Appends the output of --help for a command: each flag with its purpose and its default. The
 * commands version and help have no --help of their own, and get that of HFD_COMMAND_SERVE. */
void hfd_flags_help(enum hfd_command command, struct hf__strbuf *out);
