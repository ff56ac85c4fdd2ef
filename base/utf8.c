/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks, counts, reads and writes UTF-8.
 *
 * Invariant: hf__utf8_length alone decides which bytes above 0x7f are a character, so that the
 * functions agree about every byte. (hf__utf8_next gets only valid text. It skips the continuation
 * bytes, so it needs no such decision.) hf__utf8_valid checks whole request bodies, and size() of a
 * CEL expression calls hf__utf8_count. To be fast, both take eight bytes of ASCII at a time without
 * hf__utf8_length.
 */
#include "base/utf8.h"

#include <assert.h>
#include <string.h>

/* The length of a character, derived from its first byte; 0 = no character begins with this
 * byte. */
static size_t announced_length(unsigned char first) {
        if (first < 0x80)
                return 1;
        if (first < 0xc2) /* a continuation byte, or an overlong form of ASCII */
                return 0;
        if (first < 0xe0)
                return 2;
        if (first < 0xf0)
                return 3;
        return first < 0xf5 ? 4 : 0; /* 0xf5 and higher would be above U+10FFFF */
}

size_t hf__utf8_length(const char *text, size_t n) {
        const unsigned char *p = (const unsigned char *)text;
        unsigned char low = 0x80, high = 0xbf;

        assert(n > 0);
        size_t length = announced_length(p[0]);
        if (length < 2)
                return length;
        /* Limit the second byte, so that overlong forms, surrogates and characters above U+10FFFF
         * are refused. */
        switch (p[0]) {
        case 0xe0: low = 0xa0; break;
        case 0xed: high = 0x9f; break;
        case 0xf0: low = 0x90; break;
        case 0xf4: high = 0x8f; break;
        default: break;
        }
        if (length > n || p[1] < low || p[1] > high)
                return 0;
        for (size_t i = 2; i < length; i++)
                if ((p[i] & 0xc0) != 0x80)
                        return 0;
        return length;
}

size_t hf__utf8_decode(const char *text, size_t n, uint32_t *ret_character) {
        static const unsigned char first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
        const unsigned char *p = (const unsigned char *)text;
        size_t length = hf__utf8_length(text, n);

        if (length == 0)
                return 0;
        *ret_character = p[0] & first_bits[length];
        for (size_t i = 1; i < length; i++)
                *ret_character = *ret_character << 6 | (p[i] & 0x3f);
        return length;
}

static bool are_eight_ascii(const char *p) {
        uint64_t eight;

        memcpy(&eight, p, sizeof eight);
        return (eight & UINT64_C(0x8080808080808080)) == 0;
}

size_t hf__utf8_count(const char *text, size_t n) {
        size_t count = 0;

        for (size_t i = 0; i < n; count++) {
                for (; n - i >= 8 && are_eight_ascii(text + i); count += 8)
                        i += 8;
                if (i == n)
                        break;
                size_t length = hf__utf8_length(text + i, n - i);

                i += length > 0 ? length : 1;
        }
        return count;
}

size_t hf__utf8_encode(uint32_t character, char out[HF__UTF8_MAX]) {
        assert(character <= 0x10ffff);
        if (character < 0x80) {
                out[0] = (char)character;
                return 1;
        }
        if (character < 0x800) {
                out[0] = (char)(0xc0 | character >> 6);
                out[1] = (char)(0x80 | (character & 0x3f));
                return 2;
        }
        if (character < 0x10000) {
                out[0] = (char)(0xe0 | character >> 12);
                out[1] = (char)(0x80 | (character >> 6 & 0x3f));
                out[2] = (char)(0x80 | (character & 0x3f));
                return 3;
        }
        out[0] = (char)(0xf0 | character >> 18);
        out[1] = (char)(0x80 | (character >> 12 & 0x3f));
        out[2] = (char)(0x80 | (character >> 6 & 0x3f));
        out[3] = (char)(0x80 | (character & 0x3f));
        return 4;
}

size_t hf__utf8_next(const char *text, size_t n, size_t at) {
        assert(at < n);
        for (at++; at < n && ((unsigned char)text[at] & 0xc0) == 0x80;)
                at++;
        return at;
}

bool hf__utf8_valid(const char *data, size_t n) {
        size_t i = 0;

        while (i < n) {
                if (n - i >= 8 && are_eight_ascii(data + i)) {
                        i += 8;
                        continue;
                }
                if ((unsigned char)data[i] < 0x80) {
                        i++;
                        continue;
                }
                size_t length = hf__utf8_length(data + i, n - i);
                if (length == 0)
                        return false;
                i += length;
        }
        return true;
}
