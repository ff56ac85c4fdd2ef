/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completions for bash and zsh: the names of commands and flags, and the values of flags: files,
 * directories, the words of a choice, true and false.
 *
 * Invariants: names of commands and flags consist of letters, digits, '-' and, between the words of
 * a command, spaces. So do the words of a choice and the names of values. Therefore the scripts
 * contain them without escapes. add_quoted escapes all other texts, which only the script of zsh
 * has. A flag with a letter is a choice: the code for the other kinds expects no letter.
 */
#include <string.h>

#include "base/strbuf.h"
#include "server/config/flags.h"
#include "server/manual/manual.h"

/* The command without its leading space. */
static const char *name_of(enum hfd_command command) {
        const char *name = hfd_flags_command(command);

        return name + (name[0] == ' ');
}

/* Appends the shell pattern that matches each sub-command, also those of two words, but not
 * `version`, after which nothing can be completed. */
static void add_names(struct hf__strbuf *out) {
        for (int i = 1; i < HFD_COMMAND_VERSION; i++)
                hf__strbuf_printf(out, "%s'%s'", i > 1 ? "|" : "", name_of((enum hfd_command)i));
}

/* ---- bash ---- */

/* Appends the names of the commands below parent, separated by spaces. */
static void add_bash_commands(struct hf__strbuf *out, enum hfd_command parent) {
        for (int i = 0; i <= HFD_COMMAND_VERSION; i++)
                if (hfd_manual_is_below((enum hfd_command)i, parent))
                        hf__strbuf_printf(out, " %s",
                                          strrchr(hfd_flags_command((enum hfd_command)i), ' ') + 1);
        if (parent == HFD_COMMAND_SERVE)
                hf__strbuf_puts(out, " help");
}

/* Appends a case for each command except `version`: its sub-commands, its flags, and whether it
 * takes arguments. */
static void add_bash_cases(struct hf__strbuf *out) {
        struct hfd_flag_info flag;

        for (int i = 0; i < HFD_COMMAND_VERSION; i++) {
                enum hfd_command command = (enum hfd_command)i;
                hf__strbuf_printf(out, "                '%s')\n                        commands='",
                                  name_of(command));
                add_bash_commands(out, command);
                hf__strbuf_puts(out, "'\n                        flags='--help");
                for (size_t at = 0; hfd_flags_next(command, &at, &flag);) {
                        hf__strbuf_printf(out, " --%s", flag.name);
                        if (flag.letter)
                                hf__strbuf_printf(out, " -%c", flag.letter);
                }
                hf__strbuf_printf(out, "'\n                        arguments=%s ;;\n",
                                  hfd_manual_has_arguments(command) ? "yes" : "");
        }
}

/* Whether a command before this one has a flag of that name. */
static bool is_repeated(enum hfd_command command, const char *name) {
        struct hfd_flag_info flag;

        for (int i = 0; i < (int)command; i++)
                for (size_t at = 0; hfd_flags_next((enum hfd_command)i, &at, &flag);)
                        if (strcmp(flag.name, name) == 0)
                                return true;
        return false;
}

/* Sets flag to the next one of any command. A flag that several commands have comes once. False:
 * there are no more. *command and *at begin with 0. */
static bool next_flag(int *command, size_t *at, struct hfd_flag_info *flag) {
        for (; *command < HFD_COMMAND_VERSION; ++*command, *at = 0)
                while (hfd_flags_next((enum hfd_command) * command, at, flag))
                        if (!is_repeated((enum hfd_command) * command, flag->name))
                                return true;
        return false;
}

/* Appends the case of the flags whose kind is one of the bits `kinds` (1 << hfd_flag_kind). Appends
 * nothing if no flag has such a kind. */
static void add_bash_values(struct hf__strbuf *out, unsigned kinds, const char *action) {
        struct hfd_flag_info flag;
        bool any = false;
        size_t at = 0;

        for (int command = 0; next_flag(&command, &at, &flag);) {
                if (!(kinds & 1u << flag.kind))
                        continue;
                hf__strbuf_printf(out, "%s--%s", any ? "|" : "                ", flag.name);
                any = true;
        }
        if (any)
                hf__strbuf_printf(out, ")\n                        %s ;;\n", action);
}

/* Appends words that '|' separates, with spaces between them. */
static void add_words(struct hf__strbuf *out, const char *words) {
        for (; *words; words++)
                hf__strbuf_putc(out, *words == '|' ? ' ' : *words);
}

/* Appends the case of each flag with fixed words as values. */
static void add_bash_choices(struct hf__strbuf *out) {
        struct hfd_flag_info flag;
        size_t at = 0;

        for (int command = 0; next_flag(&command, &at, &flag);) {
                if (flag.kind != HFD_FLAG_CHOICE)
                        continue;
                hf__strbuf_puts(out, "                ");
                if (flag.letter)
                        hf__strbuf_printf(out, "-%c|", flag.letter);
                hf__strbuf_printf(out,
                                  "--%s)\n                        mapfile -t COMPREPLY < "
                                  "<(compgen -W '",
                                  flag.name);
                add_words(out, flag.value);
                hf__strbuf_puts(out, "' -- \"$word\")\n                        return ;;\n");
        }
}

/* Appends the cases of the flags that take a value. */
static void add_bash_flags(struct hf__strbuf *out) {
        add_bash_values(out, 1u << HFD_FLAG_FILE,
                        "compopt -o filenames 2>/dev/null\n"
                        "                        mapfile -t COMPREPLY < <(compgen -f -- "
                        "\"$word\")\n"
                        "                        return");
        add_bash_values(out, 1u << HFD_FLAG_DIRECTORY,
                        "compopt -o filenames 2>/dev/null\n"
                        "                        mapfile -t COMPREPLY < <(compgen -d -- "
                        "\"$word\")\n"
                        "                        return");
        add_bash_choices(out);
        add_bash_values(out, 1u << HFD_FLAG_BOOL,
                        "if [[ -n $joined ]]; then\n"
                        "                                mapfile -t COMPREPLY < <(compgen -W 'true "
                        "false' -- \"$word\")\n"
                        "                                return\n"
                        "                        fi");
        add_bash_values(out, 1u << HFD_FLAG_TEXT | 1u << HFD_FLAG_NUMBER | 1u << HFD_FLAG_DURATION,
                        "return");
}

void hfd_manual_bash(struct hf__strbuf *out) {
        hf__strbuf_puts(out, "# bash completion for holdfastd. Made by `holdfastd help "
                             "--completion bash`.\n"
                             "_holdfastd() {\n"
                             "        local word=${COMP_WORDS[COMP_CWORD]} "
                             "before=${COMP_WORDS[COMP_CWORD - 1]}\n"
                             "        local command= commands= flags= arguments= joined= i\n"
                             "        COMPREPLY=()\n"
                             "        # Readline divides --flag=value at the '='.\n"
                             "        if [[ $word == = ]]; then\n"
                             "                word= joined=yes\n"
                             "        elif [[ $before == = ]]; then\n"
                             "                before=${COMP_WORDS[COMP_CWORD - 2]} joined=yes\n"
                             "        fi\n"
                             "        for ((i = 1; i < COMP_CWORD; i++)); do\n"
                             "                case \"$command${command:+ }${COMP_WORDS[i]}\" in\n"
                             "                ");
        add_names(out);
        hf__strbuf_puts(out, ")\n"
                             "                        command+=${command:+ }${COMP_WORDS[i]} ;;\n"
                             "                *)\n"
                             "                        break ;;\n"
                             "                esac\n"
                             "        done\n"
                             "        case $command in\n");
        add_bash_cases(out);
        hf__strbuf_puts(out, "        esac\n"
                             "        case $before in\n");
        add_bash_flags(out);
        hf__strbuf_puts(
                out,
                "        esac\n"
                "        if [[ $word == -* ]]; then\n"
                "                mapfile -t COMPREPLY < <(compgen -W \"$flags\" -- \"$word\")\n"
                "        elif [[ -n $arguments ]]; then\n"
                "                compopt -o filenames 2>/dev/null\n"
                "                mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
                "        elif ((i == COMP_CWORD)) && [[ -n $commands ]]; then\n"
                "                mapfile -t COMPREPLY < <(compgen -W \"$commands\" -- \"$word\")\n"
                "        else\n"
                "                mapfile -t COMPREPLY < <(compgen -W \"$flags\" -- \"$word\")\n"
                "        fi\n"
                "}\n"
                "complete -F _holdfastd holdfastd\n");
}

/* ---- zsh ---- */

/* Appends n bytes of text. Escapes the single quote, which would end the word, and the characters
 * with a meaning of their own for _arguments and _describe. */
static void add_quoted(struct hf__strbuf *out, const char *text, size_t n) {
        for (size_t i = 0; i < n; i++) {
                if (text[i] == '\'')
                        hf__strbuf_puts(out, "'\\''");
                else if (strchr("[]:\\", text[i]))
                        hf__strbuf_printf(out, "\\%c", text[i]);
                else
                        hf__strbuf_putc(out, text[i]);
        }
}

/* Appends the specification of a flag for _arguments. A boolean has "=-" and an optional value: the
 * value may follow a '=', but is never the next word. */
static void add_zsh_flag(struct hf__strbuf *out, const struct hfd_flag_info *flag) {
        const char *action = "";

        /* "+": the value of a letter follows in the same word or in the next one. */
        hf__strbuf_puts(out, "                        ");
        if (flag->letter)
                hf__strbuf_printf(out, "'(-%c --%s)'{-%c+,--%s=}", flag->letter, flag->name,
                                  flag->letter, flag->name);
        hf__strbuf_puts(out, "'");
        if (!flag->letter)
                hf__strbuf_printf(out, "--%s=%s", flag->name,
                                  flag->kind == HFD_FLAG_BOOL ? "-" : "");
        if (flag->kind == HFD_FLAG_FILE)
                action = "_files";
        else if (flag->kind == HFD_FLAG_DIRECTORY)
                action = "_files -/";
        hf__strbuf_putc(out, '[');
        add_quoted(out, flag->help, strlen(flag->help));
        if (flag->kind == HFD_FLAG_BOOL) {
                hf__strbuf_puts(out, "]::value:(true false)'\n");
        } else if (flag->kind == HFD_FLAG_CHOICE) {
                hf__strbuf_puts(out, "]:value:(");
                add_words(out, flag->value);
                hf__strbuf_puts(out, ")'\n");
        } else
                hf__strbuf_printf(out, "]:%s:%s'\n", flag->value, action);
}

/* Appends 'name:summary' of each command below parent. */
static void add_zsh_commands(struct hf__strbuf *out, enum hfd_command parent) {
        for (int i = 0; i <= HFD_COMMAND_VERSION; i++) {
                enum hfd_command command = (enum hfd_command)i;
                if (!hfd_manual_is_below(command, parent))
                        continue;
                struct hfd_manual_line line = hfd_manual_line(command);
                hf__strbuf_printf(out, " '%s:", strrchr(hfd_flags_command(command), ' ') + 1);
                add_quoted(out, line.summary, line.n_summary);
                hf__strbuf_putc(out, '\'');
        }
        if (parent == HFD_COMMAND_SERVE)
                hf__strbuf_puts(out, " 'help:shows all flags'");
}

static void add_zsh_cases(struct hf__strbuf *out) {
        struct hfd_flag_info flag;

        for (int i = 0; i < HFD_COMMAND_VERSION; i++) {
                enum hfd_command command = (enum hfd_command)i;
                hf__strbuf_printf(out, "        ('%s')\n                commands=(",
                                  name_of(command));
                add_zsh_commands(out, command);
                hf__strbuf_puts(out, " )\n                flags=(\n");
                for (size_t at = 0; hfd_flags_next(command, &at, &flag);)
                        add_zsh_flag(out, &flag);
                hf__strbuf_puts(out, "                        '(- *)'{-h,--help}'[print all "
                                     "flags]'\n");
                if (hfd_manual_has_arguments(command))
                        hf__strbuf_puts(out, "                        '*:file:_files'\n");
                hf__strbuf_puts(out, "                ) ;;\n");
        }
}

void hfd_manual_zsh(struct hf__strbuf *out) {
        hf__strbuf_puts(out, "#compdef holdfastd\n"
                             "# zsh completion for holdfastd. Made by `holdfastd help --completion "
                             "zsh`.\n"
                             "_holdfastd() {\n"
                             "        local command= i\n"
                             "        local -a commands flags\n"
                             "        for ((i = 2; i < CURRENT; i++)); do\n"
                             "                case \"$command${command:+ }$words[i]\" in\n"
                             "                (");
        add_names(out);
        hf__strbuf_puts(out, ") command+=\"${command:+ }$words[i]\" ;;\n"
                             "                (*) break ;;\n"
                             "                esac\n"
                             "        done\n"
                             "        case $command in\n");
        add_zsh_cases(out);
        hf__strbuf_puts(out,
                        "        esac\n"
                        "        if ((i == CURRENT && $#commands)) && [[ $words[i] != -* ]]; then\n"
                        "                _describe command commands\n"
                        "                return\n"
                        "        fi\n"
                        "        # _arguments sees only what follows the command.\n"
                        "        words=(holdfastd \"${(@)words[i,-1]}\")\n"
                        "        ((CURRENT -= i - 2))\n"
                        "        _arguments $flags\n"
                        "}\n"
                        "_holdfastd \"$@\"\n");
}
