/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Encrypts and decrypts one value with one key. The bytes are those of Kubernetes' providers:
 *
 *      AES-GCM  nonce (12 bytes), ciphertext, tag (16); the additional data is authenticated
 *      AES-CBC  nonce (16 bytes), ciphertext with padding (PKCS #7); nothing is authenticated
 *
 * Pure: the caller supplies the nonce. A nonce must not be used twice with the same key; for
 * AES-CBC it must also be unpredictable. Thread: any; several threads may use one cipher at the
 * same time.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum hfd_cipher_kind { HFD_AES_GCM, HFD_AES_CBC };

#define HFD_CIPHER_KEY_MAX 32 /* bytes of the longest key */
#define HFD_NONCE_MAX      16 /* bytes that a nonce has at most; AES-GCM uses the first 12 */

struct hfd_cipher;

/* Copies the key. n_key: 16, 24 or 32. 0, -EINVAL (another length) or -ENOMEM, also if OpenSSL
 * does not provide the cipher. */
int hfd_cipher_new(enum hfd_cipher_kind kind, const void *key, size_t n_key,
                   struct hfd_cipher **ret_cipher);
/* Overwrites the key. Accepts NULL, returns NULL. */
struct hfd_cipher *hfd_cipher_free(struct hfd_cipher *cipher);

/*
 * Encrypts plain. *ret_sealed is the n_prefix bytes of prefix and then the bytes that are described
 * above; the caller owns the reference. additional: the additional data, NUL-terminated; AES-CBC
 * ignores it. 0, or -ENOMEM, also if OpenSSL fails, or plain has 2 GiB or nearly as much.
 */
int hfd_cipher_seal(const struct hfd_cipher *cipher, const uint8_t nonce[HFD_NONCE_MAX],
                    const char *additional, const struct hf__buf *plain, const char *prefix,
                    size_t n_prefix, struct hf__buf **ret_sealed);
/*
 * Decrypts the n bytes that follow the prefix. 0: the caller owns the reference *ret_plain.
 * -ENOMEM. HF_E_INVALID: the bytes are damaged, or were encrypted with another key or with other
 * additional data, or OpenSSL itself has no memory; *ret_why is the reason, a static text. (It has
 * no meaning after other results.) AES-CBC authenticates nothing, so it may also return wrong
 * bytes.
 */
int hfd_cipher_open(const struct hfd_cipher *cipher, const char *additional, const char *data,
                    size_t n, struct hf__buf **ret_plain, const char **ret_why);
