/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growing strings.
 *
 * Invariant: data is NULL, or has room for n bytes and a NUL, and data[n] is that NUL. This holds
 * after an error, too; the text is then incomplete.
 */
#include "base/strbuf.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/buf.h"
#include "base/utf8.h"

/* Not printf, which is slower: requests format many numbers, for keys, JSON and HTTP headers. */
size_t hf__u64_text(uint64_t value, char text[HF__U64_TEXT_MAX]) {
        char backwards[HF__U64_TEXT_MAX - 1]; /* the digits in reverse order */
        size_t n = 0;

        do
                backwards[n++] = (char)('0' + value % 10);
        while ((value /= 10) != 0);
        for (size_t i = 0; i < n; i++)
                text[i] = backwards[n - 1 - i];
        text[n] = '\0';
        return n;
}

/* Returns an empty text rather than a cut one, because a cut path or key would name something
 * else. */
size_t hf__join(char *out, size_t max, ...) {
        size_t n = 0;
        va_list parts;
        const char *part;

        assert(max > 0);
        va_start(parts, max);
        while ((part = va_arg(parts, const char *)) != NULL) {
                size_t n_part = strlen(part);
                if (n_part >= max - n) { /* no room for this part and the NUL */
                        n = 0;
                        break;
                }
                memcpy(out + n, part, n_part);
                n += n_part;
        }
        va_end(parts);
        out[n] = '\0';
        return n;
}

/* realloc, but the old memory is wiped: realloc would leave a copy of the text there. */
static char *grow_and_wipe(struct hf__strbuf *s, size_t space) {
        char *data = malloc(space);

        if (data && s->data) {
                memcpy(data, s->data, s->n + 1);
                explicit_bzero(s->data, s->n);
                free(s->data);
        }
        return data;
}

/* The slow path of make_room: looks at the error and the limit, and allocates if it must. */
static bool grow_text(struct hf__strbuf *s, size_t n) {
        size_t max = s->max ? s->max : SIZE_MAX / 2; /* so that no sum below overflows */

        assert(s->data ? s->n < s->space : s->n == 0);
        if (s->error != 0)
                return false;
        if (s->n > max || n > max - s->n) {
                s->error = HF_E_TOO_LARGE;
                return false;
        }
        size_t need = s->n + n + 1;
        if (need <= s->space)
                return true;
        /* Grows by half, so that appending n bytes one by one takes linear time. */
        size_t space = s->space < 256 ? 256 : s->space + s->space / 2;
        if (space < need)
                space = need;
        char *data = s->secret ? grow_and_wipe(s, space) : realloc(s->data, space);
        if (!data) {
                s->error = -ENOMEM;
                return false;
        }
        s->data = data;
        s->data[s->n] = '\0';
        s->space = space;
        return true;
}

/* Ensures space for n more bytes and the NUL. false: s->error is set, now or since an earlier
 * failure. */
static inline bool make_room(struct hf__strbuf *s, size_t n) {
        if (n < s->space - s->n && s->max == 0 && s->error == 0) /* as nearly always */
                return true;
        return grow_text(s, n);
}

void hf__strbuf_reserve(struct hf__strbuf *s, size_t n) { (void)make_room(s, n); }

void hf__strbuf_done(struct hf__strbuf *s) {
        if (s->secret && s->data)
                explicit_bzero(s->data, s->n);
        free(s->data);
        *s = (struct hf__strbuf){0};
}

/* Keeps the memory, so that a buffer that is reused in a loop seldom allocates. */
void hf__strbuf_reset(struct hf__strbuf *s) {
        s->n = 0;
        s->error = 0;
        if (s->data)
                s->data[0] = '\0';
}

void hf__strbuf_add(struct hf__strbuf *s, const void *data, size_t n) {
        if (!make_room(s, n))
                return;
        if (n > 0)
                memcpy(s->data + s->n, data, n);
        s->n += n;
        s->data[s->n] = '\0';
}

void hf__strbuf_puts(struct hf__strbuf *s, const char *text) {
        hf__strbuf_add(s, text, strlen(text));
}

void hf__strbuf_putc(struct hf__strbuf *s, char c) {
        if (!make_room(s, 1))
                return;
        s->data[s->n++] = c;
        s->data[s->n] = '\0';
}

void hf__strbuf_printf(struct hf__strbuf *s, const char *format, ...) {
        va_list args;

        /* Formats twice: first for the length, then for the text. */
        va_start(args, format);
        int n = vsnprintf(NULL, 0, format, args);
        va_end(args);
        if (n < 0) {
                if (s->error == 0)
                        s->error = -EINVAL;
                return;
        }
        if (!make_room(s, (size_t)n))
                return;
        va_start(args, format);
        (void)vsnprintf(s->data + s->n, (size_t)n + 1, format, args);
        va_end(args);
        s->n += (size_t)n;
}

void hf__strbuf_u64(struct hf__strbuf *s, uint64_t value) {
        char text[HF__U64_TEXT_MAX];

        hf__strbuf_add(s, text, hf__u64_text(value, text));
}

/* Appends the JSON escape of one byte. is_ascii: c is an ASCII character. Otherwise it is a byte
 * that is not valid UTF-8, and the replacement character is appended. */
static void put_escape(struct hf__strbuf *s, unsigned char c, bool is_ascii) {
        static const char hex[] = "0123456789abcdef";
        char escape[6] = {'\\', (char)c};
        size_t n = 2;

        switch (c) {
        case '"':
        case '\\': break;
        case '\n': escape[1] = 'n'; break;
        case '\r': escape[1] = 'r'; break;
        case '\t': escape[1] = 't'; break;
        case '\b': escape[1] = 'b'; break;
        case '\f': escape[1] = 'f'; break;
        default:
                n = sizeof escape;
                memcpy(escape, is_ascii ? "\\u0000" : "\\ufffd", n);
                if (is_ascii) {
                        escape[4] = hex[c >> 4];
                        escape[5] = hex[c & 15];
                }
        }
        hf__strbuf_add(s, escape, n);
}

/* Whether the character is a single byte that is written without an escape. JSON allows 0x7f (DEL)
 * unescaped, but DEL is a control character, and a terminal may show this text. */
static bool is_plain(unsigned char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; }

/* Eight copies of a byte. */
#define EACH(byte) (0x0101010101010101u * (uint64_t)(byte))

/* Not 0 if a byte of word is zero: the high bit of the lowest zero byte is set. */
static uint64_t find_zero(uint64_t word) { return (word - EACH(1)) & ~word & EACH(0x80); }

/* Whether all of the eight bytes at text are plain. */
static bool is_plain_word(const char *text) {
        uint64_t word;

        memcpy(&word, text, sizeof word);
        /* A byte above 0x7f has its high bit set. The subtraction sets the high bit of a byte below
         * 0x20. */
        return ((word | (word - EACH(0x20))) & EACH(0x80)) == 0 &&
               (find_zero(word ^ EACH('"')) | find_zero(word ^ EACH('\\')) |
                find_zero(word ^ EACH(0x7f))) == 0;
}

static bool is_plain_text(const char *text, size_t n) {
        if (n < 8) {
                for (size_t i = 0; i < n; i++)
                        if (!is_plain((unsigned char)text[i]))
                                return false;
                return true;
        }
        for (size_t i = 0; i + 8 < n; i += 8)
                if (!is_plain_word(text + i))
                        return false;
        return is_plain_word(text + n - 8); /* may overlap the word before */
}

/* Appends a text as a JSON string if all its characters are plain, as in most texts. False: nothing
 * was appended, because a character is not plain or s->error is set. */
static bool put_plain(struct hf__strbuf *s, const char *text, size_t n) {
        if (!is_plain_text(text, n) || !make_room(s, n + 2))
                return false;
        char *at = s->data + s->n;
        *at++ = '"';
        if (n > 0)
                memcpy(at, text, n);
        at[n] = '"';
        at[n + 1] = '\0';
        s->n += n + 2;
        return true;
}

void hf__strbuf_json(struct hf__strbuf *s, const char *text, size_t n) {
        size_t n_done = 0; /* bytes of text that have been appended already */

        assert(text || n == 0);
        if (put_plain(s, text, n))
                return;
        hf__strbuf_putc(s, '"');
        /* Bytes that need no escape are appended in runs. That is faster than one by one. Nothing
         * here checks s->error, because after an error the appends do nothing. */
        for (size_t i = 0; i < n; i++) {
                unsigned char c = (unsigned char)text[i];
                size_t n_character = c < 0x80 ? 1 : hf__utf8_length(text + i, n - i);
                if (is_plain(c) || (c >= 0x80 && n_character > 0)) {
                        i += n_character - 1;
                        continue;
                }
                hf__strbuf_add(s, text + n_done, i - n_done);
                put_escape(s, c, n_character > 0);
                n_done = i + 1;
        }
        hf__strbuf_add(s, text + n_done, n - n_done);
        hf__strbuf_putc(s, '"');
}

static bool is_unreserved(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '.' || c == '_' || c == '~';
}

void hf__strbuf_urlencode(struct hf__strbuf *s, const char *text) {
        static const char hex[] = "0123456789ABCDEF";

        for (; *text != '\0'; text++) {
                unsigned char c = (unsigned char)*text;
                if (is_unreserved(*text))
                        hf__strbuf_putc(s, *text);
                else
                        hf__strbuf_add(s, (char[]){'%', hex[c >> 4], hex[c & 15]}, 3);
        }
}

struct hf__buf *hf__strbuf_to_buf(struct hf__strbuf *s) {
        return s->error != 0 ? NULL : hf__buf_copy(s->data, s->n);
}
