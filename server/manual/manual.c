/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the --help of the commands, and prints a page or a completion.
 *
 * Invariant: the description of a command in a page is cut out of the text of --help, whose form
 * server/config/commands.h describes. So the page and --help cannot differ, but find_line must be
 * changed together with the form.
 */
#include "server/manual/manual.h"

#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "server/config/flags.h"

/* Finds the line of text that begins with "holdfastd" and the command, and divides it at the
 * separator. False: there is none. */
static bool find_line(const char *text, const char *command, const char *separator,
                      struct hfd_manual_line *ret_line) {
        size_t n_command = strlen(command);

        for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
                size_t n = strcspn(line, "\n");
                const char *rest = line + strlen("holdfastd");
                if (strncmp(line, "holdfastd", strlen("holdfastd")) != 0 ||
                    strncmp(rest, command, n_command) != 0 || rest[n_command] != ' ')
                        continue;
                const char *gap = strstr(line, separator);
                if (!gap || gap >= line + n)
                        continue;
                *ret_line = (struct hfd_manual_line){.synopsis = line,
                                                     .n_synopsis = (size_t)(gap - line),
                                                     .summary = gap + strlen(separator)};
                ret_line->summary += strspn(ret_line->summary, " ");
                ret_line->n_summary = (size_t)(line + n - ret_line->summary);
                return true;
        }
        return false;
}

struct hfd_manual_line hfd_manual_line(enum hfd_command command) {
        struct hfd_manual_line line = {.synopsis = "", .summary = ""};
        const char *intro = hfd_flags_intro(command), *name = hfd_flags_command(command);

        /* A command with sub-commands has no line with ": " in its own --help, and `version` has no
         * --help. The --help of holdfastd has a line for each of these commands. */
        if (!intro || !find_line(intro, name, ": ", &line))
                (void)find_line(hfd_flags_intro(HFD_COMMAND_SERVE), name, "  ", &line);
        return line;
}

bool hfd_manual_is_below(enum hfd_command command, enum hfd_command parent) {
        const char *name = hfd_flags_command(command), *above = hfd_flags_command(parent);
        size_t n = strlen(above);

        return strncmp(name, above, n) == 0 && name[n] == ' ' && !strchr(name + n + 1, ' ');
}

bool hfd_manual_has_arguments(enum hfd_command command) {
        struct hfd_manual_line line = hfd_manual_line(command);
        size_t n = strlen("holdfastd") + strlen(hfd_flags_command(command)) + 1;

        for (int i = 0; i < HFD_COMMAND_VERSION; i++)
                if (hfd_manual_is_below((enum hfd_command)i, command))
                        return false; /* the name of a sub-command follows */
        return n < line.n_synopsis && line.synopsis[n] != '-' && line.synopsis[n] != '[';
}

/* The command of at most one word with that name. HFD_COMMAND_VERSION: there is none. */
static enum hfd_command find_page(const char *name) {
        for (int i = 0; i < HFD_COMMAND_VERSION; i++)
                if (!strchr(name, ' ') &&
                    strcmp(hfd_flags_command((enum hfd_command)i) + (i > 0), name) == 0)
                        return (enum hfd_command)i;
        return HFD_COMMAND_VERSION;
}

int hfd_manual_main(int n, char *const arguments[]) {
        struct hf__strbuf text = {0};
        const char *name = n > 1 ? arguments[1] : "";
        bool is_man = strcmp(arguments[0], "--man") == 0 && n <= 2;
        bool is_completion = strcmp(arguments[0], "--completion") == 0 && n == 2;
        enum hfd_command command = find_page(name);

        if (is_man && command != HFD_COMMAND_VERSION)
                hfd_manual_man_page(command, &text);
        else if (is_completion && strcmp(name, "bash") == 0)
                hfd_manual_bash(&text);
        else if (is_completion && strcmp(name, "zsh") == 0)
                hfd_manual_zsh(&text);
        else {
                (void)fputs("holdfastd help: the arguments are --man [COMMAND], where COMMAND is "
                            "one word, or --completion bash|zsh\n",
                            stderr);
                return 2;
        }
        bool good = text.error == 0 && fputs(text.data, stdout) != EOF && fflush(stdout) == 0;
        hf__strbuf_done(&text);
        return good ? 0 : 1;
}
