/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Manual pages. NAME, SYNOPSIS, COMMANDS, OPTIONS, SEE ALSO and the beginning of DESCRIPTION come
 * from the tables of the command line. page_text.c has the rest: more of DESCRIPTION, the commands
 * that make pages and completions, files, signals, the environment, exit statuses.
 *
 * Invariant: every text passes add_text, which escapes what roff would interpret. Exceptions are
 * the letters of flags, the titles of sections, and the name of a page in its title and in NAME.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "server/config/flags.h"
#include "server/manual/manual.h"
#include "server/manual/page_text.h"

/* Appends n bytes of text. A '.' or "'" at the start of a line would be a request of roff. A plain
 * '-' may be shown as a hyphen, which does not work in a command that a user copies. */
static void add_text(struct hf__strbuf *out, const char *text, size_t n) {
        for (size_t i = 0; i < n; i++) {
                bool first = i == 0 || text[i - 1] == '\n';
                if (first && (text[i] == '.' || text[i] == '\''))
                        hf__strbuf_puts(out, "\\&");
                if (text[i] == '\\')
                        hf__strbuf_puts(out, "\\e");
                else if (text[i] == '-')
                        hf__strbuf_puts(out, "\\-");
                else
                        hf__strbuf_putc(out, text[i]);
        }
}

static void append_text(struct hf__strbuf *out, const char *text) {
        add_text(out, text, strlen(text));
}

/* Appends text in a font, 'B' or 'I'. */
static void add_font(struct hf__strbuf *out, char font, const char *text, size_t n) {
        hf__strbuf_printf(out, "\\f%c", font);
        add_text(out, text, n);
        hf__strbuf_puts(out, "\\fR");
}

/* The name of the page of a command: "holdfastd", "holdfastd-release". */
static void page_name(enum hfd_command command, char name[64]) {
        const char *suffix = hfd_flags_command(command);

        (void)snprintf(name, 64, "holdfastd%s%s", suffix[0] ? "-" : "",
                       suffix[0] ? suffix + 1 : "");
}

/* Appends a synopsis: the words of the command are bold, the others as they are. */
static void add_synopsis(struct hf__strbuf *out, enum hfd_command command) {
        struct hfd_manual_line line = hfd_manual_line(command);
        size_t n = strlen("holdfastd") + strlen(hfd_flags_command(command));

        add_font(out, 'B', line.synopsis, n);
        add_text(out, line.synopsis + n, line.n_synopsis - n);
}

/* One paragraph with a tag (TP) for each flag: the flag is the tag. A flag without a name for its
 * value is a boolean, whose value may be left out. --help is in no table, so it is added here. */
static void add_options(struct hf__strbuf *out, enum hfd_command command) {
        struct hfd_flag_info flag;

        for (size_t at = 0; hfd_flags_next(command, &at, &flag);) {
                char option[80];
                int n = snprintf(option, sizeof option, "--%s", flag.name);
                hf__strbuf_puts(out, ".TP\n");
                if (flag.letter)
                        hf__strbuf_printf(out, "\\fB\\-%c\\fR, ", flag.letter);
                add_font(out, 'B', option, (size_t)n);
                if (flag.value) {
                        hf__strbuf_putc(out, ' ');
                        add_font(out, 'I', flag.value, strlen(flag.value));
                } else {
                        hf__strbuf_puts(out, "[=\\fBtrue\\fR|\\fBfalse\\fR]");
                }
                hf__strbuf_putc(out, '\n');
                append_text(out, flag.help);
                hf__strbuf_puts(out, " (default: ");
                append_text(out, flag.default_value);
                hf__strbuf_puts(out, ")\n");
        }
        hf__strbuf_puts(out, ".TP\n\\fB\\-\\-help\\fR, \\fB\\-h\\fR\nprints all flags and exits\n");
}

/* Appends the description in the command's --help: all its lines except those that begin with
 * "holdfastd", which are the synopsis or the list of commands. before: text to put in front of the
 * first line. */
static void add_description(struct hf__strbuf *out, enum hfd_command command, const char *before) {
        const char *intro = hfd_flags_intro(command);

        for (const char *line = intro; *line; line += strcspn(line, "\n"), line += *line == '\n')
                if (strncmp(line, "holdfastd", strlen("holdfastd")) != 0) {
                        hf__strbuf_puts(out, before);
                        before = "";
                        add_text(out, line, strcspn(line, "\n"));
                        hf__strbuf_putc(out, '\n');
                }
}

static bool has_commands(enum hfd_command command) {
        for (int i = 0; i <= HFD_COMMAND_VERSION; i++)
                if (hfd_manual_is_below((enum hfd_command)i, command))
                        return true;
        return false;
}

/* Appends the commands below parent. Those of holdfastd itself, except `version`, have pages of
 * their own. The others are described here. */
static void add_commands(struct hf__strbuf *out, enum hfd_command parent) {
        hf__strbuf_puts(out, ".SH COMMANDS\n");
        for (int i = 0; i <= HFD_COMMAND_VERSION; i++) {
                enum hfd_command command = (enum hfd_command)i;
                if (!hfd_manual_is_below(command, parent))
                        continue;
                struct hfd_manual_line line = hfd_manual_line(command);
                hf__strbuf_puts(out, parent == HFD_COMMAND_SERVE ? ".TP\n" : ".SS ");
                add_synopsis(out, command);
                hf__strbuf_putc(out, '\n');
                add_text(out, line.summary, line.n_summary);
                hf__strbuf_putc(out, '\n');
                if (parent != HFD_COMMAND_SERVE) {
                        add_description(out, command, ".PP\n");
                        add_options(out, command);
                }
        }
        if (parent == HFD_COMMAND_SERVE)
                for (size_t i = 0; i < HFD_MANUAL_N_HELP_COMMANDS; i++) {
                        hf__strbuf_puts(out, ".TP\n");
                        add_font(out, 'B', hfd_manual_help_commands[i].term,
                                 strlen(hfd_manual_help_commands[i].term));
                        hf__strbuf_putc(out, '\n');
                        append_text(out, hfd_manual_help_commands[i].text);
                        hf__strbuf_putc(out, '\n');
                }
}

/* The entries of page_text.c: either those of DESCRIPTION, or the sections after the options. A
 * section begins where its title differs from the previous one. */
static void add_entries(struct hf__strbuf *out, enum hfd_command command, bool description) {
        const char *title = "DESCRIPTION";
        /* Whether DESCRIPTION has a paragraph already: hfd_manual_man_page has added one, but not
         * for HFD_COMMAND_SERVE. */
        bool begun = command != HFD_COMMAND_SERVE;

        for (size_t i = 0; i < hfd_manual_n_texts; i++) {
                const struct hfd_manual_text *text = &hfd_manual_texts[i];
                if (text->command != command ||
                    (strcmp(text->section, "DESCRIPTION") == 0) != description)
                        continue;
                if (strcmp(title, text->section) != 0)
                        hf__strbuf_printf(out, ".SH %s\n", text->section);
                else if (!text->term && begun)
                        hf__strbuf_puts(out, ".PP\n");
                begun = true;
                title = text->section;
                if (text->term) {
                        hf__strbuf_puts(out, ".TP\n");
                        add_font(out, 'B', text->term, strlen(text->term));
                        hf__strbuf_putc(out, '\n');
                }
                append_text(out, text->text);
                hf__strbuf_putc(out, '\n');
        }
}

/* Refers to the other pages. A command of two words has no page of its own, nor has `version`. */
static void add_see_also(struct hf__strbuf *out, enum hfd_command command) {
        char name[64];
        bool first = true;

        hf__strbuf_puts(out, ".SH SEE ALSO\n");
        for (int i = 0; i < HFD_COMMAND_VERSION; i++) {
                const char *suffix = hfd_flags_command((enum hfd_command)i);
                if (i == (int)command || (suffix[0] && strchr(suffix + 1, ' ')))
                        continue;
                page_name((enum hfd_command)i, name);
                hf__strbuf_puts(out, first ? "" : ",\n");
                add_font(out, 'B', name, strlen(name));
                hf__strbuf_puts(out, "(8)");
                first = false;
        }
        hf__strbuf_puts(out, "\n");
}

void hfd_manual_man_page(enum hfd_command command, struct hf__strbuf *out) {
        struct hfd_manual_line line = hfd_manual_line(command);
        char name[64];

        page_name(command, name);
        hf__strbuf_puts(out, ".\\\" Made by `holdfastd help --man`.\n.TH ");
        for (const char *c = name; *c; c++)
                hf__strbuf_putc(out, (char)toupper((unsigned char)*c));
        hf__strbuf_puts(out, " 8 \"\" \"Holdfast " HFD_VERSION "\" \"Holdfast\"\n.SH NAME\n");
        hf__strbuf_puts(out, name); /* the name itself, so that mandb finds it */
        hf__strbuf_puts(out, " \\- ");
        add_text(out, line.summary, line.n_summary);
        hf__strbuf_puts(out, "\n.SH SYNOPSIS\n");
        add_synopsis(out, command);
        for (int i = 0; i <= HFD_COMMAND_VERSION; i++)
                if (hfd_manual_is_below((enum hfd_command)i, command)) {
                        hf__strbuf_puts(out, "\n.br\n");
                        add_synopsis(out, (enum hfd_command)i);
                }
        hf__strbuf_puts(out, "\n.SH DESCRIPTION\n");
        if (command != HFD_COMMAND_SERVE) {
                add_font(out, 'B', line.synopsis,
                         strlen("holdfastd") + strlen(hfd_flags_command(command)));
                hf__strbuf_putc(out, ' ');
                add_text(out, line.summary, line.n_summary);
                hf__strbuf_puts(out, ".\n");
        }
        add_description(out, command, "");
        add_entries(out, command, true);
        if (has_commands(command))
                add_commands(out, command);
        hf__strbuf_puts(out, ".SH OPTIONS\n");
        add_options(out, command);
        add_entries(out, command, false);
        add_see_also(out, command);
}
