/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes and decodes base64 for the whole project. OpenSSL's functions cannot be used: libholdfast
 * does not link OpenSSL, and EVP_DecodeUpdate neither reports the position of an error nor accepts
 * all that Go's decoder accepts.
 *
 * Invariant: hf__base64_decode accepts every text that hf__base64_check accepts, so that a text
 * that has passed the validation of an object can also be decoded. Therefore both use scan_padded.
 */
#include "base/base64.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/strbuf.h"

static const char standard_alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char url_safe_alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* Encodes each group of 3 bytes as 4 digits. The last group may have fewer of both. */
static void encode_groups(struct hf__strbuf *out, const char alphabet[64], bool padded,
                          const void *data, size_t n) {
        const unsigned char *bytes = data;

        assert(data || n == 0);
        for (size_t i = 0; i < n; i += 3) {
                size_t n_left = n - i < 3 ? n - i : 3;
                uint32_t bits = 0;
                char digits[4];

                for (size_t k = 0; k < 3; k++)
                        bits = bits << 8 | (k < n_left ? bytes[i + k] : 0);
                for (size_t k = 0; k < 4; k++)
                        digits[k] = k <= n_left ? alphabet[bits >> (18 - 6 * k) & 63] : '=';
                hf__strbuf_add(out, digits, padded ? 4 : n_left + 1);
        }
}

void hf__base64_encode(struct hf__strbuf *out, const void *data, size_t n) {
        encode_groups(out, standard_alphabet, true, data, n);
}

void hf__base64url_encode(struct hf__strbuf *out, const void *data, size_t n) {
        encode_groups(out, url_safe_alphabet, false, data, n);
}

/* The value of a digit, given the last two digits of the alphabet; -1 when c is not a digit. */
static int digit_value(char c, char digit_62, char digit_63) {
        if (c >= 'A' && c <= 'Z')
                return c - 'A';
        if (c >= 'a' && c <= 'z')
                return c - 'a' + 26;
        if (c >= '0' && c <= '9')
                return c - '0' + 52;
        if (c == digit_62)
                return 62;
        return c == digit_63 ? 63 : -1;
}

static bool is_line_break(char c) { return c == '\n' || c == '\r'; }
static bool is_blank(char c) { return is_line_break(c) || c == ' ' || c == '\t'; }

/*
 * Reads n bytes of padded standard base64 and skips the bytes for which is_skipped is true. Writes
 * the decoded bytes to data, unless data is NULL. On success *ret_n is the number of decoded bytes,
 * on failure the offset that Go's decoder reports (base64.h).
 */
static bool scan_padded(const char *text, size_t n, bool (*is_skipped)(char c), char *data,
                        size_t *ret_n) {
        size_t n_digits = 0, n_padding = 0, i, at = 0;
        uint32_t bits = 0;

        for (i = 0; i < n; i++) {
                int value = digit_value(text[i], '+', '/');
                if (value >= 0 && n_padding == 0) {
                        bits = bits << 6 | (uint32_t)value;
                        /* The first digit of a group completes no byte; each further digit
                         * completes one. */
                        if (n_digits % 4 != 0 && data)
                                data[at++] = (char)(bits >> (6 - 2 * (n_digits % 4)) & 0xff);
                        n_digits++;
                } else if (text[i] == '=' && n_digits % 4 >= 2 && n_digits % 4 + n_padding < 4) {
                        n_padding++;
                } else if (!is_skipped(text[i])) {
                        break;
                }
        }
        bool needs_padding = n_digits % 4 == 2 && n_padding == 1;
        if (i < n) {
                *ret_n = needs_padding ? i - 1 : i;
                return false;
        }
        if ((n_digits + n_padding) % 4 != 0) {
                *ret_n = needs_padding ? n : n - n_digits % 4;
                return false;
        }
        *ret_n = n_digits * 3 / 4;
        return true;
}

int hf__base64_decode(const char *text, size_t n, char **ret_data, size_t *ret_n) {
        /* 3 for a last group that is incomplete, which n / 4 leaves out; 1 for the NUL */
        size_t space = n / 4 * 3 + 4, n_data;
        char *data = malloc(space);

        assert(text || n == 0);
        if (!data)
                return -ENOMEM;
        if (!scan_padded(text, n, is_blank, data, &n_data)) {
                explicit_bzero(data, space); /* it may be most of a key */
                free(data);
                return HF_E_INVALID;
        }
        data[n_data] = '\0';
        *ret_data = data;
        *ret_n = n_data;
        return 0;
}

bool hf__base64_check(const char *text, size_t *ret_n) {
        return scan_padded(text, strlen(text), is_line_break, NULL, ret_n);
}

bool hf__base64url_decode(const char *text, size_t n, void *data, size_t *ret_n) {
        unsigned char *bytes = data;
        size_t n_data = 0;
        uint32_t bits = 0;

        for (size_t i = 0; i < n; i++) {
                int value = digit_value(text[i], '-', '_');
                if (value < 0)
                        return false;
                bits = bits << 6 | (uint32_t)value;
                if (i % 4 != 0)
                        bytes[n_data++] = (unsigned char)(bits >> (6 - 2 * (i % 4)));
        }
        assert(n_data <= HF__BASE64URL_DECODED_MAX(n));
        *ret_n = n_data;
        return true;
}
