/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds and recognizes keys; keys.h documents their layout.
 *
 * Invariant: the layout is an on-disk format. Instances of different versions share a store, so the
 * layout must not change.
 */
#include "server/storage/keys.h"

#include <string.h>

#include <holdfast/error.h>

#include "base/strbuf.h"

#define TERMS ".holdfast/terms/" /* follows the prefix */

int hfd_key_term_record(char *key, const char *prefix, const char *ns, const char *name) {
        return hf__join(key, HFD_KEY_MAX, prefix, TERMS, ns, "/", name, NULL) ? 0 : HF_E_TOO_LARGE;
}

int hfd_key_own(char *key, const char *prefix, const char *name) {
        return hf__join(key, HFD_KEY_MAX, prefix, ".holdfast/", name, NULL) ? 0 : HF_E_TOO_LARGE;
}

bool hfd_key_is_term_record(const char *key, const char *prefix) {
        size_t n = strlen(prefix);

        return strncmp(key, prefix, n) == 0 && strncmp(key + n, TERMS, sizeof TERMS - 1) == 0;
}

/* Turns the n bytes of key into the first key after all that begin with them; "" = no such key. */
static void increment_last(char *key, size_t n) {
        /* A trailing 0xff cannot be incremented: drop it and increment the byte before it. */
        while (n > 0 && (unsigned char)key[n - 1] == 0xff)
                n--;
        key[n] = 0;
        if (n > 0)
                key[n - 1] = (char)((unsigned char)key[n - 1] + 1);
}

int hfd_key_prefix_end(char *end, const char *prefix) {
        size_t n = strlen(prefix);

        if (n >= HFD_KEY_MAX)
                return HF_E_TOO_LARGE;
        memcpy(end, prefix, n);
        increment_last(end, n);
        return 0;
}

void hfd_key_after(char *next, const char *key) {
        size_t n = strnlen(key, HFD_KEY_MAX - 1);

        memmove(next, key, n);
        if (n < HFD_KEY_MAX - 1) {
                /* The lowest possible key after this one, because no key contains a NUL. */
                next[n] = 1;
                next[n + 1] = 0;
                return;
        }
        /* No key that fits is longer. */
        increment_last(next, n);
}
