/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A string that grows. Errors are sticky: once an append fails (out of memory, over the limit, or
 * a bad format), all later appends do nothing and `error` stays set. So a caller that builds a text
 * checks for errors once, at the end. Thread: owner only.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hf__buf;

/* Zero = empty and without limit. */
struct hf__strbuf {
        char *data;   /* owned; ends with a NUL; NULL until something is appended or reserved */
        size_t n;     /* length without the NUL */
        size_t space; /* allocated bytes */
        size_t max;   /* limit of n; 0 = none */
        int error;    /* 0, -ENOMEM, -EINVAL (a bad format) or HF_E_TOO_LARGE */
        /* Set it before the first append: the text is wiped before its memory is freed. Do not use
         * it with hf__strbuf_reset, which forgets the length of the text. */
        bool secret;
};

#define HF__U64_TEXT_MAX 21 /* the digits of a uint64_t and the NUL */

/* The next two functions write to the caller's array and return the length without the NUL. */
size_t hf__u64_text(uint64_t value, char text[HF__U64_TEXT_MAX]);
/* Concatenates the strings up to a NULL. If they and the NUL need more than max bytes, out is ""
 * and 0 is returned. */
size_t hf__join(char *out, size_t max, ...) __attribute__((sentinel));

void hf__strbuf_done(struct hf__strbuf *s);  /* frees the contents and zeroes the struct */
void hf__strbuf_reset(struct hf__strbuf *s); /* empties it and clears error; keeps the memory */
/* Makes room for n more bytes, so that they are appended without further allocations. */
void hf__strbuf_reserve(struct hf__strbuf *s, size_t n);
void hf__strbuf_add(struct hf__strbuf *s, const void *data, size_t n);
void hf__strbuf_puts(struct hf__strbuf *s, const char *text);
void hf__strbuf_putc(struct hf__strbuf *s, char c);
void hf__strbuf_printf(struct hf__strbuf *s, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
void hf__strbuf_u64(struct hf__strbuf *s, uint64_t value);
/* Appends a JSON string literal with its quotes. Each byte that is not part of a valid UTF-8
 * character becomes U+FFFD; a text that was cut within a character has such bytes. */
void hf__strbuf_json(struct hf__strbuf *s, const char *text, size_t n);
/* Percent-encodes every byte except the unreserved characters of RFC 3986. */
void hf__strbuf_urlencode(struct hf__strbuf *s, const char *text);
/* A copy of the contents. NULL: s->error is set, or out of memory. */
struct hf__buf *hf__strbuf_to_buf(struct hf__strbuf *s);
