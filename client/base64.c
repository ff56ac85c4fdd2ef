/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes base64. Invariant: what is not base64 in full is refused, never decoded in part. */
#include "client/base64.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include <holdfast/error.h>

/* The value of a base64 digit; -1 = the character is none. */
static int digit_of(char c) {
        if (c >= 'A' && c <= 'Z')
                return c - 'A';
        if (c >= 'a' && c <= 'z')
                return c - 'a' + 26;
        if (c >= '0' && c <= '9')
                return c - '0' + 52;
        if (c == '+')
                return 62;
        return c == '/' ? 63 : -1;
}

int hf__base64_decode(const char *text, size_t n, char **ret_data, size_t *ret_n) {
        char *data = malloc(n / 4 * 3 + 4);
        size_t n_data = 0, n_digits = 0, n_pads = 0;
        uint32_t bits = 0;

        if (!data)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                char c = text[i];
                if (c == '\n' || c == '\r' || c == ' ' || c == '\t')
                        continue;
                /* A pad counts as the digit 0; its bytes are taken off at the end. */
                int digit = digit_of(c);
                if (c == '=')
                        n_pads++;
                else if (digit < 0 || n_pads > 0)
                        goto invalid;
                bits = bits << 6 | (uint32_t)(digit < 0 ? 0 : digit);
                if (++n_digits % 4 == 0)
                        for (int shift = 16; shift >= 0; shift -= 8)
                                data[n_data++] = (char)(bits >> shift & 0xff);
        }
        if (n_digits % 4 != 0 || n_pads > 2)
                goto invalid;
        n_data -= n_pads;
        data[n_data] = '\0';
        *ret_data = data;
        *ret_n = n_data;
        return 0;
invalid:
        free(data);
        return HF_E_INVALID;
}
