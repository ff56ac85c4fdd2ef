/* SPDX-License-Identifier: Apache-2.0 */
#include "server/storage/keys.h"

#include <string.h>

#include <holdfast/error.h>

#include "base/strbuf.h"

int hfd_key_terms(char *key, const char *prefix, const char *ns, const char *name) {
        return hf__join(key, HFD_KEY_MAX, prefix, ".holdfast/terms/", ns, "/", name, NULL)
                       ? 0
                       : HF_E_TOO_LARGE;
}

bool hfd_key_is_of_terms(const char *key, const char *prefix) {
        static const char terms[] = ".holdfast/terms/";
        size_t n = strlen(prefix);

        return strncmp(key, prefix, n) == 0 && strncmp(key + n, terms, sizeof terms - 1) == 0;
}

int hfd_key_prefix_end(char *end, const char *prefix) {
        size_t n = strlen(prefix);

        if (n >= HFD_KEY_MAX)
                return HF_E_TOO_LARGE;
        memcpy(end, prefix, n + 1);
        /* A trailing 0xff has no successor of its length: the byte before it counts up. */
        while (n && (unsigned char)end[n - 1] == 0xff)
                n--;
        end[n] = 0;
        if (n)
                end[n - 1] = (char)((unsigned char)end[n - 1] + 1);
        return 0;
}
