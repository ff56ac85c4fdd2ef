/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the headers of a response, eight bytes at a time. Nearly every header is good, so is_range
 * does not end early.
 *
 * Invariant: no name or value that is accepted contains a line break or another control character,
 * except tabs in values. Otherwise text that a client chose could begin a header of its own.
 */
#include "server/http/request/response_header.h"

#include <stdint.h>
#include <string.h>

#define ONES UINT64_C(0x0101010101010101)
#define HIGH (0x80 * ONES)

/*
 * Sets the high bit of a byte of the result if that byte of word is less than low, more than 0x7e,
 * or equal to except. 0: there is no such byte. The carry of a subtraction or an addition may also
 * set bits in the bytes above a bad byte. That does no harm, because the result is not 0 by then.
 */
static uint64_t bad_bytes(uint64_t word, unsigned char low, unsigned char except) {
        uint64_t same = word ^ (except * ONES);

        return (word | (word - low * ONES) | (word + ONES) | ((same - ONES) & ~same)) & HIGH;
}

/* Whether all bytes are from low to 0x7e and none is `except`. */
static bool is_range(const char *text, size_t n, unsigned char low, unsigned char except) {
        uint64_t bad = 0, word;
        size_t i = 0;

        for (; i + sizeof word <= n; i += sizeof word) {
                memcpy(&word, text + i, sizeof word);
                bad |= bad_bytes(word, low, except);
        }
        for (; i < n; i++)
                bad |= bad_bytes((unsigned char)text[i] * ONES, low, except);
        return bad == 0;
}

/* The name of a header. HTTP forbids more characters, but only those that are refused here could do
 * harm. */
static bool is_token(const char *text, size_t n) { return n > 0 && is_range(text, n, '!', ':'); }

static bool is_value(const char *text, size_t n) {
        if (is_range(text, n, ' ', 0))
                return true;
        /* Tabs and bytes that are not ASCII are allowed, too. */
        for (size_t i = 0; i < n; i++)
                if (((unsigned char)text[i] < ' ' && text[i] != '\t') || text[i] == 0x7f)
                        return false;
        return true;
}

/* Whether the server itself decides about this header. */
static bool is_framing(const char *name, size_t n) {
        return (n == 14 && memcmp(name, "content-length", n) == 0) ||
               (n == 10 && memcmp(name, "connection", n) == 0) ||
               (n == 17 && memcmp(name, "transfer-encoding", n) == 0);
}

bool hfd_header_check(const char *name, const char *value, struct hfd_checked_header *ret_header) {
        const struct hfd_checked_header header = {.name = name,
                                                  .value = value,
                                                  .n_name = strlen(name),
                                                  .n_value = strlen(value)};

        if (!is_token(name, header.n_name) || !is_value(value, header.n_value) ||
            is_framing(name, header.n_name))
                return false;
        *ret_header = header;
        return true;
}
