/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hides passwords (redact.h).
 *
 * Invariant: a password may contain any character, because the texts that are repeated are often
 * the malformed ones. So the end is the last '@' and not the next '/' or ','.
 */
#include "base/redact.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

const char *hf__redact(const char *text, char *shown, size_t max) {
        const char *at = strrchr(text, '@'), *scheme = strstr(text, "://");

        assert(max > 0);
        if (!at || !memchr(text, ':', (size_t)(at - text))) {
                (void)snprintf(shown, max, "%s", text);
                return shown;
        }
        int n_kept = scheme && scheme < at ? (int)(scheme - text) + 3 : 0;
        (void)snprintf(shown, max, "%.*s***%s", n_kept, text, at);
        return shown;
}
