/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of a response's headers.
 *
 * Nearly every header is good, so the loops have no exit; the compiler then checks many characters
 * at once.
 */
#include "server/http/response_header.h"

#include <string.h>

static bool is_token(const char *text, size_t n) {
        unsigned bad = 0;

        for (size_t i = 0; i < n; i++)
                bad |= ((unsigned char)text[i] <= ' ') | (text[i] == ':') |
                       ((unsigned char)text[i] >= 0x7f);
        return n > 0 && bad == 0;
}

static bool is_value(const char *text, size_t n) {
        unsigned bad = 0;

        for (size_t i = 0; i < n; i++)
                bad |= (((unsigned char)text[i] < ' ') & (text[i] != '\t')) | (text[i] == 0x7f);
        return bad == 0;
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
