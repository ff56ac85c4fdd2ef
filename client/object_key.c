/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds and splits object keys: "namespace/name", or "name" without a namespace. Pure.
 *
 * A name contains no slash, so a key has one meaning only: the text before the first slash is the
 * namespace.
 */
#include <holdfast/workqueue.h>

#include <errno.h>
#include <string.h>

int hf_key_make(char key[HF_KEY_MAX], const char *ns, const char *name) {
        size_t n_ns = ns ? strlen(ns) : 0, n_name = strlen(name);

        if (n_ns > HF_NAME_MAX || n_name > HF_NAME_MAX)
                return -EINVAL;
        if (n_ns > 0) {
                key = mempcpy(key, ns, n_ns);
                *key++ = '/';
        }
        memcpy(key, name, n_name + 1);
        return 0;
}

int hf_key_split(const char *key, char ns[HF_NAME_MAX + 1], char name[HF_NAME_MAX + 1]) {
        const char *slash = strchr(key, '/'), *rest = slash ? slash + 1 : key;
        size_t n_ns = slash ? (size_t)(slash - key) : 0, n_name = strlen(rest);

        if (n_ns > HF_NAME_MAX || n_name > HF_NAME_MAX || n_name == 0)
                return -EINVAL;
        memcpy(ns, key, n_ns);
        ns[n_ns] = '\0';
        memcpy(name, rest, n_name + 1);
        return 0;
}
