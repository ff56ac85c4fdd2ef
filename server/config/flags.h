/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The command line: holdfastd [flags], holdfastd release, holdfastd status, holdfastd version, each
 * with --help.
 *
 * The syntax is `--flag value` or `--flag=value`; a boolean is `--flag` or `--flag=true|false`.
 * Parsing prints nothing and does not exit: the program prints the message and exits.
 * Thread: main, at start.
 */
#include "server/config/config.h"

struct hf__strbuf;

/*
 * Parses the command line, completes the configuration and checks it. For version and help only
 * the command is set, and nothing else is checked. HF_E_INVALID: a flag is unknown, is given twice,
 * has no value, is out of range or belongs to another command, or hfd_config_check fails. The
 * message names the flag. Or -errno. On success the caller frees ret_config with hfd_config_done.
 */
int hfd_flags_parse(int argc, char *const argv[], struct hfd_config *ret_config,
                    struct hf_status *reterr_status);

/* Appends the output of --help for a command: each flag with its purpose and its default. */
void hfd_flags_help(enum hfd_command command, struct hf__strbuf *out);
