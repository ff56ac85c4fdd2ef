/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Decides which resources are encrypted in the store, and how: the rules of an
 * EncryptionConfiguration.
 *
 * A rule is a list of keys for some resources. The first key encrypts each value that is written;
 * the other keys only decrypt values that they have encrypted before. An encrypted value begins
 * with `k8s:enc:<cipher>:v1:<name>:`, so that its key can be found. The provider identity is a key
 * that changes nothing.
 *
 * The additional data of a value is the name under which the store has it, as in Kubernetes. So
 * with AES-GCM a value that a client copies to another name cannot be decrypted there. These names
 * are the same in each kind of store, so `holdfastd store copy` copies encrypted values as they
 * are.
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
#define HFD_ENCRYPTION_NAME_MAX      128 /* bytes of a key's name, with the NUL */

struct hfd_encryption;
struct hfd_encryption_rule;

/* ---- building, before other threads use the encryption ---- */

/* text: the n bytes that the rules are parsed from; hfd_encryption_is_same compares their digests.
 * NULL: out of memory. The caller owns the reference. */
struct hfd_encryption *hfd_encryption_new(const char *text, size_t n);
/* Appends a rule without resources and keys. *ret_rule is borrowed from the encryption. 0, -ENOMEM,
 * or HF_E_TOO_LARGE: there are too many. */
int hfd_encryption_add_rule(struct hfd_encryption *encryption,
                            struct hfd_encryption_rule **ret_rule);
/* Adds a resource; plural or both may be "*". 0; HF_E_TOO_LARGE; -ENOMEM: the encryption can only
 * be freed now. */
int hfd_encryption_add_resource(struct hfd_encryption_rule *rule, const char *plural,
                                const char *group);
/* Adds a key after those that the rule has. name: not empty, without ':'. 0; -ENOMEM; -EINVAL:
 * n_key is not 16, 24 or 32; HF_E_TOO_LARGE: the rule has too many keys, or the name is too long;
 * HF_E_CONFLICT: the rule has a key with this name and cipher. */
int hfd_encryption_add_key(struct hfd_encryption_rule *rule, enum hfd_cipher_kind kind,
                           const char *name, const void *key, size_t n_key);
/* Adds the provider identity. 0 or HF_E_TOO_LARGE. */
int hfd_encryption_add_identity(struct hfd_encryption_rule *rule);
/* Returns the first entry that covers the resource, among those that were added so far: a text such
 * as "secrets" or "*.apps", which lives as long as the encryption. NULL = there is none. */
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
/* The same for a custom resource, also if the server has no CustomResourceDefinition for it. */
const struct hfd_encryption_rule *hfd_encryption_rule_of(const struct hfd_encryption *encryption,
                                                         const char *plural, const char *group);
/*
 * Encrypts plain with the rule's first key; the rule must have one. nonce: as in cipher.h, so a new
 * one for each call. *ret_stored is the value to store under the name `key`: a new reference, to
 * plain itself if the first provider is identity. 0 or -ENOMEM.
 */
int hfd_encryption_seal(const struct hfd_encryption_rule *rule, const char *key,
                        const uint8_t nonce[HFD_NONCE_MAX], struct hf__buf *plain,
                        struct hf__buf **ret_stored);

struct hfd_opened {
        struct hf__buf *value; /* owned; the decrypted value, or the stored one if `why` is set */
        const char *why;       /* static; why it cannot be decrypted; NULL = `value` is plain */
        bool stale;            /* a write would encrypt the value with another key */
};
/* Decrypts the value that is stored under the name `key`. 0 or -ENOMEM. */
int hfd_encryption_open(const struct hfd_encryption_rule *rule, const char *key,
                        struct hf__buf *stored, struct hfd_opened *ret_opened);
