/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resources/base64.h"

#include <stdint.h>
#include <string.h>

#include "base/strbuf.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void hfd_base64_put(struct hf__strbuf *out, const void *data, size_t n) {
        const unsigned char *p = data;

        for (; n; p += n < 3 ? n : 3, n -= n < 3 ? n : 3) {
                uint32_t v = (uint32_t)p[0] << 16 | (n > 1 ? (uint32_t)p[1] << 8 : 0) |
                             (n > 2 ? p[2] : 0);
                hf__strbuf_putc(out, digits[v >> 18]);
                hf__strbuf_putc(out, digits[v >> 12 & 63]);
                hf__strbuf_putc(out, n > 1 ? digits[v >> 6 & 63] : '=');
                hf__strbuf_putc(out, n > 2 ? digits[v & 63] : '=');
        }
}

bool hfd_base64_check(const char *text, size_t *ret_n) {
        size_t n_digits = 0, n_padding = 0, i;

        for (i = 0; text[i]; i++) {
                if (text[i] == '\n' || text[i] == '\r')
                        continue;
                if (text[i] == '=' && n_digits % 4 >= 2 && n_digits % 4 + n_padding < 4)
                        n_padding++;
                else if (!n_padding && strchr(digits, text[i]))
                        n_digits++;
                else
                        break;
        }
        bool good = !text[i] && (n_digits + n_padding) % 4 == 0;
        *ret_n = good ? n_digits * 3 / 4 : i;
        return good;
}
