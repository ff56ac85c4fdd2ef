/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `holdfastd help`: the manual pages and the completions of shells, made from the table of flags
 * and the --help of the commands (server/config/flags.h), so that they need no change when a flag
 * or a command is added. The build runs it and installs what it prints.
 *
 * Thread: main, at start.
 */
#include <stdbool.h>
#include <stddef.h>

#include "server/config/config.h"

struct hf__strbuf;

/*
 * Runs "help --man [COMMAND]" or "help --completion bash|zsh": prints to stdout. arguments: those
 * after "help", n of them, at least one. Returns the exit status: 2, with one line to stderr, if
 * there is no such page or shell, or one argument too many; 1 if memory runs out or the output
 * cannot be written.
 */
int hfd_manual_main(int n, char *const arguments[]);

/* ---- private to server/manual ---- */

/* The line of --help about a command. Not NUL-terminated; static. */
struct hfd_manual_line {
        const char *synopsis; /* "holdfastd release [flags]" */
        size_t n_synopsis;
        const char *summary; /* "releases the lease of this instance after it has died" */
        size_t n_summary;
};
struct hfd_manual_line hfd_manual_line(enum hfd_command command);
/* Whether the command is one of those below parent: " store copy" is below " store", and each
 * command of one word is below "". */
bool hfd_manual_is_below(enum hfd_command command, enum hfd_command parent);
/* Whether the command is followed by arguments that are not flags. */
bool hfd_manual_has_arguments(enum hfd_command command);

/* Appends the manual page of a command of at most one word, in the macros of man(7). An error is
 * recorded in out->error, also by the next two. */
void hfd_manual_man_page(enum hfd_command command, struct hf__strbuf *out);
/* Appends the completion script of a shell. */
void hfd_manual_bash(struct hf__strbuf *out);
void hfd_manual_zsh(struct hf__strbuf *out);
