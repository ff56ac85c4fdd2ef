/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Encrypted values as the store has them. Code that cannot decrypt such a value must recognize it:
 * it is not a damaged object, and the object under its key exists. Pure. Thread: any.
 */
#include <stdbool.h>

#include "server/storage/store.h"

/* How each encrypted value begins, as in Kubernetes. */
#define HFD_SEALED_PREFIX "k8s:enc:"

bool hfd_is_sealed(const struct hf__buf *value);
/*
 * Why the value is not decrypted: what the store says (hfd_kv.sealed), or, if it is encrypted but
 * the store does not decrypt, the text that Kubernetes has for that. Static. NULL: it is not
 * encrypted, or was decrypted, or kv has no value.
 */
const char *hfd_kv_sealed(const struct hfd_kv *kv);
