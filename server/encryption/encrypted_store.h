/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A store that encrypts the objects of another store: what its users write and read is plain, and
 * what the inner store has is encrypted. It implements the interface of storage/store.h over any
 * other implementation. It adds no thread and no queue: callbacks run on the inner store's threads.
 *
 * A value that cannot be decrypted is delivered as it is stored, with hfd_kv.sealed. Gets and
 * transactions whose keys no rule covers (Leases, term records) go to the inner store directly.
 *
 * A transaction must not compare the value of a key that a rule covers: -EINVAL. Nothing does: a
 * fenced write compares the values of term records (storage/term_record.h) and of the epoch key
 * (server/cacher/requests/store_identity.h), which are no objects, so no rule covers them.
 */
#include "server/encryption/encryption.h"
#include "server/storage/store.h"

/*
 * Writes random bytes for a nonce. 0 or -EIO. Thread: any.
 */
typedef int (*hfd_random_fn)(uint8_t *ret_bytes, size_t n);
/* OpenSSL's random numbers, an hfd_random_fn. */
int hfd_random_bytes(uint8_t *ret_bytes, size_t n);

/*
 * On success the new store owns inner, and frees it when it is freed itself. prefix: the prefix of
 * all keys; copied. encryption: a reference is taken. 0; after -ENOMEM or another -errno the caller
 * still owns inner.
 */
int hfd_encrypted_store_new(struct hfd_store *inner, const char *prefix,
                            struct hfd_encryption *encryption, hfd_random_fn random,
                            struct hfd_store **ret_store);
/*
 * Replaces the rules; a reference is taken. Earlier values were decrypted by the old rules, so
 * after true the caller must read everything again. False: the rules are the same, and nothing was
 * done. store must come from hfd_encrypted_store_new. Thread: any.
 */
bool hfd_encrypted_store_set(struct hfd_store *store, struct hfd_encryption *encryption);
