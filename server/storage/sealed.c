/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognizes encrypted values (sealed.h).
 *
 * Invariant: the prefix alone decides. All providers of Kubernetes that encrypt write it, and no
 * stored object begins with it, so a value that this server has no key for is recognized as well.
 */
#include "server/storage/sealed.h"

#include <string.h>

bool hfd_is_sealed(const struct hf__buf *value) {
        static const char prefix[] = HFD_SEALED_PREFIX;

        return value->n >= sizeof prefix - 1 && memcmp(value->data, prefix, sizeof prefix - 1) == 0;
}

const char *hfd_kv_sealed(const struct hfd_kv *kv) {
        if (kv->sealed)
                return kv->sealed;
        return kv->value && hfd_is_sealed(kv->value)
                       ? "identity transformer tried to read encrypted data"
                       : NULL;
}
