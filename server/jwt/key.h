/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The keys of JSON Web Tokens: RSA (RS256) and ECDSA with P-256 (ES256). The key alone decides the
 * algorithm; a token cannot choose it.
 *
 * A key is immutable. Pure, apart from random numbers. Thread: any. OpenSSL's error queue of the
 * thread is empty afterwards.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/error.h>

struct hf__json;
struct hf__strbuf;
struct hfd_jwt_key;

#define HFD_JWT_KEY_ID_MAX    256  /* bytes, with the NUL */
#define HFD_JWT_SIGNATURE_MAX 1024 /* bytes: that of an RSA key with 8192 bits */

/*
 * Reads the next key of a PEM text: a private key, a public key, or that of a certificate; other
 * parts are skipped. *at: the rest of the text, which is advanced, also after an error. 0;
 * HF_E_NOT_FOUND: there is no further key. HF_E_INVALID: the key is malformed, encrypted or of
 * another kind, as the message says; or OpenSSL has failed, also for lack of memory. -ENOMEM, also
 * for a text of 2 GiB or more. The caller frees the key.
 */
int hfd_jwt_key_read(const char **at, struct hfd_jwt_key **ret_key,
                     struct hf_status *reterr_status);
/*
 * Makes the public key of a JWK (RFC 7517). Its id is the kid of the JWK, "" if that has none. 0;
 * HF_E_INVALID: the JWK is malformed, not for signatures, or of another kind, its kid does not fit
 * into HFD_JWT_KEY_ID_MAX, or OpenSSL has failed, also for lack of memory; or -ENOMEM. The caller
 * frees the key.
 */
int hfd_jwt_key_of_jwk(const struct hf__json *jwk, struct hfd_jwt_key **ret_key);
/* Accepts NULL, returns NULL. */
struct hfd_jwt_key *hfd_jwt_key_free(struct hfd_jwt_key *key);

bool hfd_jwt_key_is_private(const struct hfd_jwt_key *key);
/* "RS256" or "ES256". */
const char *hfd_jwt_key_algorithm(const struct hfd_jwt_key *key);
/* The kid: that of the JWK, or the base64url of the SHA-256 of the public key in DER, as
 * kube-apiserver has it. */
const char *hfd_jwt_key_id(const struct hfd_jwt_key *key);

/* Signs n bytes with a private key. 0, or -EIO: OpenSSL failed. */
int hfd_jwt_key_sign(const struct hfd_jwt_key *key, const void *data, size_t n,
                     unsigned char signature[HFD_JWT_SIGNATURE_MAX], size_t *ret_n_signature);
/* Whether the signature is that of the n bytes of data. False also if OpenSSL fails, for example
 * because memory has run out. */
bool hfd_jwt_key_verify(const struct hfd_jwt_key *key, const void *data, size_t n,
                        const unsigned char *signature, size_t n_signature);
/* Appends the public key as a JWK (RFC 7517). The id is printed as it is: call this only for keys
 * of a PEM text, whose ids need no escapes. An error is kept in out->error. */
void hfd_jwt_key_put_jwk(const struct hfd_jwt_key *key, struct hf__strbuf *out);
