/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The command line: holdfastd [serve flags], holdfastd release, holdfastd status, holdfastd
 * version, each with --help.
 *
 * `--flag value` and `--flag=value`; a boolean is `--flag` or `--flag=true|false`. Parsing prints
 * nothing and exits nowhere: main prints the message on one line and exits with status 2.
 */
#include "server/config/config.h"

struct hf__strbuf;

/*
 * Parses, completes and checks; for version and help only the command is set. HF_E_INVALID: a flag
 * that is unknown, given twice, without its value, out of range, of another command; or a broken
 * rule of hfd_config_check. ret_config is the caller's to hfd_config_done on success only.
 */
int hfd_flags_parse(int argc, char *const argv[], struct hfd_config *ret_config,
                    struct hf_status *reterr_status);

/* The text of --help for a command: each flag, its default, what it is for. */
void hfd_flags_help(enum hfd_command command, struct hf__strbuf *out);
