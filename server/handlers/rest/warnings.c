/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the Warning headers of a response, except the one of a deprecated version
 * (hfd_rest_deprecation_header).
 *
 * Invariant: a character is never cut in two, because a client that decodes headers as UTF-8 could
 * refuse the whole response.
 */
#include "server/handlers/rest/warnings.h"

#include <string.h>

/* Both as in kube-apiserver. A client or a proxy may refuse a response with a larger head. */
#define TOTAL_MAX 4096 /* characters of all warnings; if there are more, each is cut */
#define ITEM_MAX  256  /* characters of one that is cut */

static bool begins_character(char c) { return ((unsigned char)c & 0xc0) != 0x80; }

static size_t count_characters(const char *text, size_t n) {
        size_t count = 0;

        for (size_t i = 0; i < n; i++)
                count += begins_character(text[i]);
        return count;
}

/* Appends the value of a header with the first n_max characters of a line of n bytes. 299 is a
 * persistent warning of any kind, and the hyphen stands for a server that is not named (RFC 7234).
 */
static void print_warning(struct hf__strbuf *out, const char *line, size_t n, size_t n_max) {
        size_t count = 0;

        hf__strbuf_puts(out, "299 - \"");
        for (size_t i = 0; i < n; i++) {
                count += begins_character(line[i]);
                if (count > n_max)
                        break;
                if (line[i] == '"' || line[i] == '\\')
                        hf__strbuf_putc(out, '\\');
                hf__strbuf_putc(out, line[i]);
        }
        hf__strbuf_putc(out, '"');
}

static const char *skip_line(const char *line, size_t *ret_n) {
        *ret_n = strcspn(line, "\n");
        return line + *ret_n + (line[*ret_n] == '\n');
}

size_t hfd_rest_warnings(const char *mistakes, const char *admission, struct hf__strbuf *text,
                         struct hfd_header headers[HFD_REST_WARNINGS_MAX]) {
        const char *const texts[] = {mistakes ? mistakes : "", admission ? admission : ""};
        size_t begins[HFD_REST_WARNINGS_MAX], n = 0, total = 0, sent = 0, n_line;

        for (size_t t = 0; t < 2; t++)
                for (const char *at = texts[t], *next; *at; at = next) {
                        next = skip_line(at, &n_line);
                        total += count_characters(at, n_line);
                }
        size_t item_max = total > TOTAL_MAX ? ITEM_MAX : TOTAL_MAX;
        for (size_t t = 0; t < 2; t++)
                for (const char *at = texts[t], *next;
                     *at && n < HFD_REST_WARNINGS_MAX && sent < TOTAL_MAX; at = next) {
                        next = skip_line(at, &n_line);
                        size_t count = count_characters(at, n_line);
                        begins[n++] = text->n; /* not a pointer: text moves when it grows */
                        print_warning(text, at, n_line, item_max);
                        hf__strbuf_putc(text, '\0');
                        sent += count < item_max ? count : item_max;
                }
        if (text->error != 0)
                return 0; /* the response is right without its warnings, too */
        for (size_t i = 0; i < n; i++)
                headers[i] = (struct hfd_header){"warning", text->data + begins[i]};
        return n;
}
