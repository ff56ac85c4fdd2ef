/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which resources are encrypted in the store, and how: the rules of an EncryptionConfiguration.
 *
 * A rule is a list of keys for some resources. The first key encrypts what is written; each one
 * decrypts what it has encrypted. An encrypted value begins with `k8s:enc:<cipher>:v1:<name>:`,
 * which is how its key is found. The provider identity is a key that changes nothing.
 *
 * The additional data of a value is its key in the store, as in Kubernetes. So with AES-GCM a value
 * that somebody copies to another key cannot be decrypted there. It does not depend on the kind of
 * store: `holdfastd store copy` copies encrypted values as they are.
 *
 * A Lease is never encrypted: it has no secret, is renewed all the time, and `holdfastd release`
 * reads it without any key. Term records are not objects, so fences never meet an encrypted value.
 *
 * Pure, apart from the reference count; immutable once it is complete. Thread: any.
 */
#include <stdbool.h>

#include "server/encryption/cipher.h"
#include "server/resources/resource.h"

#define HFD_ENCRYPTION_RULES_MAX     64
#define HFD_ENCRYPTION_KEYS_MAX      64  /* of one rule, all providers together */
#define HFD_ENCRYPTION_RESOURCES_MAX 128 /* of one rule */
#define HFD_ENCRYPTION_NAME_MAX      128 /* bytes of a key's name */

struct hfd_encryption;
struct hfd_encryption_rule;

/* ---- building, before other threads know it ---- */

/* text: what it is made from, n bytes; only for hfd_encryption_is_same. NULL: out of memory. The
 * caller owns the reference. */
struct hfd_encryption *hfd_encryption_new(const char *text, size_t n);
/* Appends a rule without resources and keys. *ret_rule is borrowed until the next call. 0, -ENOMEM,
 * or HF_E_TOO_LARGE: there are too many. */
int hfd_encryption_add_rule(struct hfd_encryption *encryption,
                            struct hfd_encryption_rule **ret_rule);
/* Adds a resource; plural or both may be "*". 0, -ENOMEM or HF_E_TOO_LARGE. */
int hfd_encryption_add_resource(struct hfd_encryption_rule *rule, const char *plural,
                                const char *group);
/* Adds a key, after those that the rule has. 0; -ENOMEM; -EINVAL: the length of the key;
 * HF_E_TOO_LARGE: too many keys, or the name; HF_E_CONFLICT: it has a key of this name. */
int hfd_encryption_add_key(struct hfd_encryption_rule *rule, enum hfd_cipher_kind kind,
                           const char *name, const void *key, size_t n_key);
/* Adds the provider identity. 0 or HF_E_TOO_LARGE. */
int hfd_encryption_add_identity(struct hfd_encryption_rule *rule);
/* The first entry of the rules so far that covers the resource, as it was written; NULL = none. It
 * lives as long as the encryption. */
const char *hfd_encryption_find_entry(const struct hfd_encryption *encryption, const char *plural,
                                      const char *group);

struct hfd_encryption *hfd_encryption_ref(struct hfd_encryption *encryption);
/* The last reference overwrites the keys. Accepts NULL, returns NULL. */
struct hfd_encryption *hfd_encryption_unref(struct hfd_encryption *encryption);

/* ---- using ---- */

/* Whether both were made from the same text. */
bool hfd_encryption_is_same(const struct hfd_encryption *a, const struct hfd_encryption *b);

/* The rule for a resource, borrowed. NULL: it is stored as it is. */
const struct hfd_encryption_rule *hfd_encryption_rule(const struct hfd_encryption *encryption,
                                                      const struct hfd_resource *resource);
/*
 * The value to store for plain under the key: a new reference, to plain itself if the first
 * provider is identity. 0 or -ENOMEM.
 */
int hfd_encryption_seal(const struct hfd_encryption_rule *rule, const char *key,
                        const uint8_t nonce[HFD_NONCE_MAX], struct hf__buf *plain,
                        struct hf__buf **ret_stored);

struct hfd_opened {
        struct hf__buf *value; /* owned; what was encrypted, or the stored value if `why` is set */
        const char *why;       /* static; why it cannot be decrypted; NULL = it was */
        bool stale;            /* a write would encrypt it with another key */
};
/* 0 or -ENOMEM. */
int hfd_encryption_open(const struct hfd_encryption_rule *rule, const char *key,
                        struct hf__buf *stored, struct hfd_opened *ret_opened);
