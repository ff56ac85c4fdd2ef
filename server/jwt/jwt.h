/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * JSON Web Tokens (RFC 7519) as signed texts, header.claims.signature (RFC 7515). What the claims
 * mean is for the caller. Pure, apart from random numbers of signatures, and from the tokens that a
 * set of keys remembers (verified.h). Where the decoder or OpenSSL lacks memory, the result is that
 * of other failures: -EIO from hfd_jwt_sign, HF_E_UNAUTHORIZED from the others. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

struct hf__json;
struct hf__strbuf;
struct hfd_jwt_key;
struct hfd_jwt_key_set;

#define HFD_JWT_MAX 8192 /* bytes of a token */

/* Whether the text has the form of a token: three parts with dots between them, and HFD_JWT_MAX
 * bytes at most. It may be invalid in any other way. */
bool hfd_jwt_is_like(const char *token);
/* Appends a token with these claims, which are n bytes of JSON. 0, HF_E_TOO_LARGE (it would have
 * more than HFD_JWT_MAX bytes), -ENOMEM or -EIO. key must be private. */
int hfd_jwt_sign(const struct hfd_jwt_key *key, const char *claims, size_t n,
                 struct hf__strbuf *out);
/*
 * Reads the claims and the kid of a token without verifying it; use them only to choose a key. The
 * caller frees both; *ret_key_id is NULL if there is no kid, or one that is not a text. 0;
 * HF_E_UNAUTHORIZED: the token is malformed or too long; or -ENOMEM.
 */
int hfd_jwt_peek(const char *token, struct hf__json **ret_claims, char **ret_key_id);
/*
 * Checks the signature, and parses the claims, an object that the caller frees. A token without a
 * kid may be signed by any key. 0; HF_E_UNAUTHORIZED: the token is not signed by a key of the set,
 * or is malformed, too long, or not in the one form in which its bytes can be encoded; or -ENOMEM.
 * A signature that was found right is not verified again while the set remembers the token
 * (verified.h).
 */
int hfd_jwt_verify(const struct hfd_jwt_key_set *keys, const char *token,
                   struct hf__json **ret_claims);
