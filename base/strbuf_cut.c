/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts texts.
 *
 * Invariant: valid UTF-8 stays valid, because a cut is never within a character.
 */
#include "base/strbuf_cut.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/utf8.h"

#define MARK "..."

/* The bytes that follow the first one of a character. */
static bool is_inner(char c) { return ((unsigned char)c & 0xc0) == 0x80; }

void hf__strbuf_add_cut(struct hf__strbuf *s, const char *text, size_t n, size_t max) {
        size_t room = s->max > 0 ? s->max - s->n : SIZE_MAX;

        assert(s->max == 0 || s->n <= s->max);
        if (room > max)
                room = max;
        if (n > room) {
                size_t n_mark = room < strlen(MARK) ? room : strlen(MARK);

                n = room - n_mark;
                for (int i = 1; i < HF__UTF8_MAX && n > 0 && is_inner(text[n]); i++)
                        n--;
                if (n > 0)
                        hf__strbuf_add(s, text, n);
                hf__strbuf_add(s, MARK, n_mark);
        } else if (n > 0) {
                hf__strbuf_add(s, text, n);
        }
}

void hf__strbuf_puts_cut(struct hf__strbuf *s, const char *text) {
        hf__strbuf_add_cut(s, text, strlen(text), SIZE_MAX);
}
