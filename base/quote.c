/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quotes texts as Go's strconv.Quote does.
 *
 * Invariant: the result ends with a quote, however small the buffer is.
 */
#include "base/quote.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

#define ESCAPE_MAX 11 /* "\\U0010ffff" and the NUL */

bool hf__is_printable(uint32_t character) {
        static const uint32_t ranges[][2] = {{0x00, 0x1f},     {0x7f, 0xa0},
                                             {0xad, 0xad},     {0x600, 0x605},
                                             {0x61c, 0x61c},   {0x6dd, 0x6dd},
                                             {0x70f, 0x70f},   {0x1680, 0x1680},
                                             {0x180e, 0x180e}, {0x2000, 0x200f},
                                             {0x2028, 0x202f}, {0x205f, 0x206f},
                                             {0x3000, 0x3000}, {0xd800, 0xf8ff},
                                             {0xfeff, 0xfeff}, {0xfff0, 0xfffb},
                                             {0xfffe, 0xffff}, {0xe0000, 0x10ffff}};

        for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
                if (character >= ranges[i][0] && character <= ranges[i][1])
                        return false;
        return true;
}

/* The escape of a character, or "" if it needs none. */
static void format_escape(uint32_t character, char escape[ESCAPE_MAX]) {
        static const char letters[] = "abtnvfr"; /* of the characters from 7 on */

        escape[0] = '\0';
        if (character == '"' || character == '\\')
                (void)snprintf(escape, ESCAPE_MAX, "\\%c", (char)character);
        else if (hf__is_printable(character))
                return;
        else if (character >= 7 && character <= 13)
                (void)snprintf(escape, ESCAPE_MAX, "\\%c", letters[character - 7]);
        else if (character < 0x80)
                (void)snprintf(escape, ESCAPE_MAX, "\\x%02x", (unsigned)character);
        else
                (void)snprintf(escape, ESCAPE_MAX, character < 0x10000 ? "\\u%04x" : "\\U%08x",
                               (unsigned)character);
}

void hf__quote_bytes(const char *text, size_t n, char *out, size_t max_out) {
        size_t at = 0;

        assert(max_out >= 3);
        out[at++] = '"';
        for (size_t i = 0, length; i < n; i += length) {
                char escape[ESCAPE_MAX];
                uint32_t character = 0;

                length = hf__utf8_decode(text + i, n - i, &character);
                if (length > 0) {
                        format_escape(character, escape);
                } else {
                        length = 1; /* not UTF-8 */
                        (void)snprintf(escape, sizeof escape, "\\x%02x", (unsigned char)text[i]);
                }
                size_t n_put = *escape ? strlen(escape) : length;
                if (at + n_put + 2 > max_out) /* 2: the quote at the end, and the NUL */
                        break;
                memcpy(out + at, *escape ? escape : text + i, n_put);
                at += n_put;
        }
        out[at++] = '"';
        out[at] = '\0';
}
