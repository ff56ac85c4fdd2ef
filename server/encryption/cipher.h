/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Encrypts and decrypts one value with one key. The bytes are those of Kubernetes' providers:
 *
 *      AES-GCM  nonce (12 bytes), ciphertext, tag (16); the additional data is authenticated
 *      AES-CBC  nonce (16 bytes), ciphertext with padding (PKCS #7); nothing is authenticated
 *
 * Pure: the caller supplies the nonce, which must never repeat with the same key. Thread: any, also
 * several with one cipher.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum hfd_cipher_kind { HFD_AES_GCM, HFD_AES_CBC };

#define HFD_CIPHER_KEY_MAX 32 /* bytes of the longest key */
#define HFD_NONCE_MAX      16 /* bytes that a nonce has at most; AES-GCM uses the first 12 */

struct hfd_cipher;

/* Copies the key. n_key: 16, 24 or 32. 0, -EINVAL (another length) or -ENOMEM. */
int hfd_cipher_new(enum hfd_cipher_kind kind, const void *key, size_t n_key,
                   struct hfd_cipher **ret_cipher);
/* Overwrites the key. Accepts NULL, returns NULL. */
struct hfd_cipher *hfd_cipher_free(struct hfd_cipher *cipher);

/*
 * Encrypts plain. *ret_sealed begins with the n_prefix bytes of prefix, followed by the bytes that
 * are described above; the caller drops its reference. additional: a text. 0 or -ENOMEM.
 */
int hfd_cipher_seal(const struct hfd_cipher *cipher, const uint8_t nonce[HFD_NONCE_MAX],
                    const char *additional, const struct hf__buf *plain, const char *prefix,
                    size_t n_prefix, struct hf__buf **ret_sealed);
/*
 * Decrypts n bytes, without the prefix. 0; -ENOMEM; or HF_E_INVALID: they were not encrypted with
 * this key, or not with this additional data, and *ret_why is a static text.
 */
int hfd_cipher_open(const struct hfd_cipher *cipher, const char *additional, const char *data,
                    size_t n, struct hf__buf **ret_plain, const char **ret_why);
