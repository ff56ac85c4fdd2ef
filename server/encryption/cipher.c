/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AES-GCM and AES-CBC by OpenSSL.
 *
 * Invariants. With AES-GCM, no decrypted byte leaves hfd_cipher_open before the tag was compared.
 * This file keeps one copy of a key, and overwrites it before it frees the memory. Each function
 * leaves OpenSSL's queue of errors empty, because the queue belongs to the thread, and TLS reads
 * it.
 */
#include "server/encryption/cipher.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/evp.h>

#include <holdfast/error.h>

#include "base/cleanup.h"

#define GCM_NONCE 12
#define GCM_TAG   16
#define BLOCK     16 /* bytes of a block of AES, of CBC's nonce, and of CBC's longest padding */

struct hfd_cipher {
        enum hfd_cipher_kind kind;
        EVP_CIPHER *algorithm; /* owned; fetched once: a fetch takes longer than an encryption */
        uint8_t key[HFD_CIPHER_KEY_MAX];
};

static size_t nonce_size(const struct hfd_cipher *cipher) {
        return cipher->kind == HFD_AES_GCM ? GCM_NONCE : BLOCK;
}

int hfd_cipher_new(enum hfd_cipher_kind kind, const void *key, size_t n_key,
                   struct hfd_cipher **ret_cipher) {
        static const char *const names[][3] = {[HFD_AES_GCM] = {"AES-128-GCM", "AES-192-GCM",
                                                                "AES-256-GCM"},
                                               [HFD_AES_CBC] = {"AES-128-CBC", "AES-192-CBC",
                                                                "AES-256-CBC"}};

        assert(kind == HFD_AES_GCM || kind == HFD_AES_CBC);
        if (n_key != 16 && n_key != 24 && n_key != 32)
                return -EINVAL;
        struct hfd_cipher *cipher = calloc(1, sizeof *cipher);
        if (!cipher)
                return -ENOMEM;
        cipher->kind = kind;
        cipher->algorithm = EVP_CIPHER_fetch(NULL, names[kind][n_key / 8 - 2], NULL);
        memcpy(cipher->key, key, n_key);
        ERR_clear_error();
        if (!cipher->algorithm) {
                (void)hfd_cipher_free(cipher);
                return -ENOMEM;
        }
        *ret_cipher = cipher;
        return 0;
}

struct hfd_cipher *hfd_cipher_free(struct hfd_cipher *cipher) {
        if (!cipher)
                return NULL;
        EVP_CIPHER_free(cipher->algorithm);
        explicit_bzero(cipher->key, sizeof cipher->key);
        free(cipher);
        return NULL;
}

/* Passes the additional data to GCM; CBC takes none. False: OpenSSL has failed. */
static bool add_text(const struct hfd_cipher *cipher, EVP_CIPHER_CTX *ctx, const char *text) {
        size_t n = strlen(text);
        int n_done;

        if (cipher->kind != HFD_AES_GCM || n == 0)
                return true;
        return n <= INT_MAX &&
               EVP_CipherUpdate(ctx, NULL, &n_done, (const uint8_t *)text, (int)n) == 1;
}

/* ---- encrypting ---- */

/* Encrypts plain into out, which must have room for BLOCK more bytes than plain has. Returns the
 * number of bytes written; -1 = OpenSSL has failed. */
static int encrypt_value(const struct hfd_cipher *cipher, EVP_CIPHER_CTX *ctx, const uint8_t *nonce,
                         const char *additional, const struct hf__buf *plain, uint8_t *out) {
        int n = 0, n_last = 0;

        if (EVP_EncryptInit_ex2(ctx, cipher->algorithm, cipher->key, nonce, NULL) != 1 ||
            !add_text(cipher, ctx, additional) ||
            EVP_EncryptUpdate(ctx, out, &n, (const uint8_t *)plain->data, (int)plain->n) != 1 ||
            EVP_EncryptFinal_ex(ctx, out + n, &n_last) != 1)
                return -1;
        n += n_last;
        if (cipher->kind != HFD_AES_GCM)
                return n;
        if (EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, GCM_TAG, out + n) != 1)
                return -1;
        return n + GCM_TAG;
}

HF__CLEANUP_DEFINE(context_cleanup, EVP_CIPHER_CTX *, EVP_CIPHER_CTX_free)

int hfd_cipher_seal(const struct hfd_cipher *cipher, const uint8_t nonce[HFD_NONCE_MAX],
                    const char *additional, const struct hf__buf *plain, const char *prefix,
                    size_t n_prefix, struct hf__buf **ret_sealed) {
        size_t n_head = n_prefix + nonce_size(cipher);

        if (plain->n > (size_t)INT_MAX - BLOCK)
                return -ENOMEM;
        /* The tag of GCM is as long as the longest padding of CBC. */
        HF__CLEANUP(hf__buf_cleanup)
        struct hf__buf *sealed = hf__buf_new(n_head + plain->n + BLOCK);
        HF__CLEANUP(context_cleanup) EVP_CIPHER_CTX *ctx = sealed ? EVP_CIPHER_CTX_new() : NULL;
        int n = -1;

        if (ctx) {
                memcpy(sealed->data, prefix, n_prefix);
                memcpy(sealed->data + n_prefix, nonce, nonce_size(cipher));
                n = encrypt_value(cipher, ctx, nonce, additional, plain,
                                  (uint8_t *)sealed->data + n_head);
        }
        ERR_clear_error();
        if (n < 0)
                return -ENOMEM;
        assert(n_head + (size_t)n <= sealed->n);
        sealed->n = n_head + (size_t)n;
        sealed->data[sealed->n] = '\0';
        *ret_sealed = HF__TAKE(sealed);
        return 0;
}

/* ---- decrypting ---- */

/*
 * Decrypts the n_in bytes of in; GCM's tag follows them. Returns the number of bytes in out. -1:
 * the bytes, the key or the additional data is wrong, or OpenSSL has no memory; out may then have
 * bytes that must not be used.
 */
static int decrypt_value(const struct hfd_cipher *cipher, EVP_CIPHER_CTX *ctx, const uint8_t *nonce,
                         const char *additional, const uint8_t *in, size_t n_in, uint8_t *out) {
        int n = 0, n_last = 0;

        if (EVP_DecryptInit_ex2(ctx, cipher->algorithm, cipher->key, nonce, NULL) != 1 ||
            !add_text(cipher, ctx, additional) ||
            EVP_DecryptUpdate(ctx, out, &n, in, (int)n_in) != 1)
                return -1;
        /* The tag follows the bytes. OpenSSL does not change it, but takes no const pointer. */
        if (cipher->kind == HFD_AES_GCM && EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, GCM_TAG,
                                                               (void *)(uintptr_t)(in + n_in)) != 1)
                return -1;
        return EVP_DecryptFinal_ex(ctx, out + n, &n_last) == 1 ? n + n_last : -1;
}

/* Whether n bytes can be a value that this cipher has encrypted. If not, *ret_why is the reason. */
static bool has_size(const struct hfd_cipher *cipher, size_t n, const char **ret_why) {
        size_t n_least = nonce_size(cipher) + (cipher->kind == HFD_AES_GCM ? GCM_TAG : BLOCK);

        *ret_why = "the stored data was shorter than the required size";
        if (n < n_least || n > INT_MAX)
                return false;
        *ret_why = "invalid block size";
        return cipher->kind == HFD_AES_GCM || n % BLOCK == 0;
}

int hfd_cipher_open(const struct hfd_cipher *cipher, const char *additional, const char *data,
                    size_t n, struct hf__buf **ret_plain, const char **ret_why) {
        const uint8_t *nonce = (const uint8_t *)data, *in = nonce + nonce_size(cipher);

        assert(cipher->algorithm && ret_plain && ret_why);
        if (!has_size(cipher, n, ret_why))
                return HF_E_INVALID;
        size_t n_in = n - nonce_size(cipher) - (cipher->kind == HFD_AES_GCM ? GCM_TAG : 0);
        /* OpenSSL may write a block more than it returns. */
        HF__CLEANUP(hf__buf_cleanup) struct hf__buf *plain = hf__buf_new(n_in + BLOCK);
        HF__CLEANUP(context_cleanup) EVP_CIPHER_CTX *ctx = plain ? EVP_CIPHER_CTX_new() : NULL;
        if (!ctx) {
                ERR_clear_error();
                return -ENOMEM;
        }
        int n_out = decrypt_value(cipher, ctx, nonce, additional, in, n_in, (uint8_t *)plain->data);
        ERR_clear_error();
        if (n_out < 0) {
                *ret_why = cipher->kind == HFD_AES_GCM ? "cipher: message authentication failed"
                                                       : "invalid padding on input";
                return HF_E_INVALID;
        }
        plain->n = (size_t)n_out;
        plain->data[plain->n] = '\0';
        *ret_plain = HF__TAKE(plain);
        return 0;
}
