/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects and prints issues.
 *
 * Invariant: the list is sorted by place; issues of one place stay in the order of their arrival.
 */
#include "cel/values/issues.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "base/utf8.h"

/* The first two are limits of cel-go: more issues are only counted, and a longer line is not shown.
 * A longer message is cut. */
#define ISSUES_MAX  100
#define SNIPPET_MAX 16384
#define MESSAGE_MAX 1024 /* bytes, with the NUL; room for two types (type_issues.c) */

struct hf__cel_issue {
        struct hf__cel_issue *next;
        uint32_t at;
        char message[];
};

void hf__cel_issues_add(struct hf__cel_issues *issues, uint32_t at, const char *format, ...) {
        struct hf__cel_issue **place = &issues->first;
        struct hf__cel_issue *issue;
        char message[MESSAGE_MAX];
        va_list args;

        assert(at == HF__CEL_NO_PLACE || at <= issues->n_text);
        if (issues->n++ >= ISSUES_MAX)
                return;
        va_start(args, format);
        vsnprintf(message, sizeof message, format, args);
        va_end(args);
        issue = hf__arena_alloc(issues->arena, sizeof *issue + strlen(message) + 1);
        if (!issue)
                return; /* the compilation fails anyway, because the arena has failed */
        issue->at = at;
        memcpy(issue->message, message, strlen(message) + 1);
        /* Issues without a place come first: HF__CEL_NO_PLACE + 1 is 0. */
        while (*place && (*place)->at + 1 <= at + 1)
                place = &(*place)->next;
        issue->next = *place;
        *place = issue;
}

static size_t character_length(const char *text, size_t n) {
        size_t length = hf__utf8_length(text, n);

        return length > 0 ? length : 1;
}

/* Prints the line, and below it the mark at byte `at`. As in cel-go, a character of several bytes
 * gets a dot of double width, so that the mark stands below its place in most terminals. */
static void print_snippet(struct hf__strbuf *out, const char *line, size_t n, size_t at) {
        size_t i = 0;

        hf__strbuf_puts(out, "\n | ");
        for (size_t k = 0; k < n; k++)
                hf__strbuf_putc(out, line[k] == '\t' ? ' ' : line[k]);
        hf__strbuf_puts(out, "\n | ");
        while (i < at) {
                size_t length = character_length(line + i, n - i);

                hf__strbuf_puts(out, length > 1 ? "\xef\xbc\x8e" : ".");
                i += length;
        }
        hf__strbuf_puts(out, i < n && character_length(line + i, n - i) > 1 ? "\xef\xbc\xbe" : "^");
}

static void print_issue(const struct hf__cel_issues *issues, const struct hf__cel_issue *issue,
                        struct hf__strbuf *out) {
        const char *line = issues->text;
        const char *end = issues->text + issues->n_text;
        const char *at = issues->text + issue->at;
        unsigned number = 1;
        unsigned column = 1;
        const char *line_end;

        if (issue->at == HF__CEL_NO_PLACE) {
                hf__strbuf_printf(out, "ERROR: <input>:-1:0: %s", issue->message);
                return;
        }
        for (const char *c = issues->text; c < at; c++)
                if (*c == '\n') {
                        number++;
                        line = c + 1;
                }
        for (const char *c = line; c < at; c += character_length(c, (size_t)(end - c)))
                column++;
        hf__strbuf_printf(out, "ERROR: <input>:%u:%u: %s", number, column, issue->message);
        line_end = memchr(line, '\n', (size_t)(end - line));
        if (!line_end)
                line_end = end;
        if (line_end - line <= SNIPPET_MAX)
                print_snippet(out, line, (size_t)(line_end - line), (size_t)(at - line));
}

void hf__cel_issues_print(const struct hf__cel_issues *issues, struct hf__strbuf *out) {
        for (const struct hf__cel_issue *i = issues->first; i; i = i->next) {
                if (i != issues->first)
                        hf__strbuf_putc(out, '\n');
                print_issue(issues, i, out);
        }
        if (issues->n > ISSUES_MAX)
                hf__strbuf_printf(out, "\n%u more errors were truncated", issues->n - ISSUES_MAX);
}
