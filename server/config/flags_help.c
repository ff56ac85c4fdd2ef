/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the output of --help from the tables of flags and commands.
 *
 * Invariant: apart from --help, this file has no text about a single flag, so that the output and
 * the manual cannot differ.
 */
#include "base/strbuf.h"
#include "server/config/flags.h"

void hfd_flags_help(enum hfd_command command, struct hf__strbuf *out) {
        struct hfd_flag_info flag;

        if (command >= HFD_COMMAND_VERSION)
                command = HFD_COMMAND_SERVE;
        hf__strbuf_puts(out, hfd_flags_intro(command));
        hf__strbuf_puts(out, "\nFlags (--flag VALUE or --flag=VALUE; a boolean is --flag or "
                             "--flag=false):\n");
        for (size_t at = 0; hfd_flags_next(command, &at, &flag);) {
                hf__strbuf_printf(out, "  --%s%s%s", flag.name, flag.value ? " " : "",
                                  flag.value ? flag.value : "");
                if (flag.letter)
                        hf__strbuf_printf(out, ", -%c %s", flag.letter, flag.value);
                hf__strbuf_printf(out, "\n        %s (default: %s)\n", flag.help,
                                  flag.default_value);
        }
        hf__strbuf_puts(out, "  --help, -h\n");
}
