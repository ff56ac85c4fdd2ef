/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hides passwords (redact.h).
 *
 * Invariant: a password may contain any character, because the texts that are repeated are often
 * the malformed ones. So a password ends at the last '@' and not at the next '/' or ','.
 */
#include "base/redact.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* How many bytes at the beginning are a scheme with its "://"; a password may contain "://", too.
 */
static size_t scheme_bytes(const char *text) {
        size_t n =
                strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");

        return n > 0 && strncmp(text + n, "://", 3) == 0 ? n + 3 : 0;
}

const char *hf__redact(const char *text, char *shown, size_t max) {
        const char *at = strrchr(text, '@');

        assert(max > 0);
        if (!at || !memchr(text, ':', (size_t)(at - text))) {
                (void)snprintf(shown, max, "%s", text);
                return shown;
        }
        size_t n_kept = scheme_bytes(text); /* at is behind it: no scheme contains an '@' */
        (void)snprintf(shown, max, "%.*s***%s", (int)n_kept, text, at);
        return shown;
}
