/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A growing string. Errors stick: after one failed append (memory, or the limit) all further ones
 * do nothing and `error` is set, so that a builder checks once, at the end. Thread: owner only.
 */
#include <stddef.h>
#include <stdint.h>

struct hf__buf;

struct hf__strbuf {
        char *data;   /* owned; NUL-terminated once anything was appended, else NULL */
        size_t n;     /* without the NUL */
        size_t space; /* allocated */
        size_t max;   /* limit on n; 0 = SIZE_MAX */
        int error;    /* 0, -ENOMEM or HF_E_TOO_LARGE */
};

#define HF__U64_TEXT_MAX 21 /* the digits of a uint64_t, and the NUL */

/* Without a struct, into the caller's array. Both return the length without the NUL. */
size_t hf__u64_text(uint64_t value, char text[HF__U64_TEXT_MAX]);
/* One string behind the other, up to a NULL. What does not fit in max bytes is 0 and "". */
size_t hf__join(char *out, size_t max, ...) __attribute__((sentinel));

void hf__strbuf_done(struct hf__strbuf *s);  /* frees the contents, zeroes the struct */
void hf__strbuf_reset(struct hf__strbuf *s); /* empties it, keeps the memory, clears error */
void hf__strbuf_add(struct hf__strbuf *s, const void *data, size_t n);
void hf__strbuf_puts(struct hf__strbuf *s, const char *text);
void hf__strbuf_putc(struct hf__strbuf *s, char c);
void hf__strbuf_printf(struct hf__strbuf *s, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
void hf__strbuf_u64(struct hf__strbuf *s, uint64_t value);
/* A JSON string literal with its quotes. What is no UTF-8 in it (a text that was cut in the middle
 * of a character) becomes U+FFFD. */
void hf__strbuf_json(struct hf__strbuf *s, const char *text, size_t n);
void hf__strbuf_urlencode(struct hf__strbuf *s,
                          const char *text);             /* everything but unreserved characters */
struct hf__buf *hf__strbuf_to_buf(struct hf__strbuf *s); /* copies; NULL on error or no memory */
