/* SPDX-License-Identifier: Apache-2.0 */
/* Checks text that becomes part of a request's head. Invariant: no line break passes, because it
 * would begin another header. */
#include "base/http/head_text.h"

#include <string.h>

bool hf__http_is_head_text(const char *text, size_t max) {
        size_t n = strnlen(text, max + 1);

        if (n == 0 || n > max)
                return false;
        for (size_t i = 0; i < n; i++)
                if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
                        return false;
        return true;
}
