/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The keys of an issuer: all whose signatures are accepted, of which at most one signs. One thread
 * makes a set and adds its keys. From then on the keys do not change, and any thread that has a
 * reference may use the set.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/error.h>

#include "server/jwt/key.h"

struct hf__json;
struct hf__strbuf;
struct hfd_jwt_key_set;
struct hfd_jwt_verified;

#define HFD_JWT_KEYS_MAX  32  /* of a set; for a token without a kid, each may be tried */
#define HFD_JWT_TRIED_MAX 128 /* members of a JWK Set that are tried */

/* An empty set with one reference. NULL: out of memory. */
struct hfd_jwt_key_set *hfd_jwt_key_set_new(void);
/* Returns set. The caller has a reference, or the lock of an object that has one. */
struct hfd_jwt_key_set *hfd_jwt_key_set_ref(struct hfd_jwt_key_set *set);
/* Accepts NULL, returns NULL. */
struct hfd_jwt_key_set *hfd_jwt_key_set_unref(struct hfd_jwt_key_set *set);

/*
 * Adds all keys of a PEM text; one that the set has already is left out. signs: the first key of
 * the text is the one that signs; it must be private, and replaces its public key if the set has
 * that. Only one call for a set may have signs. 0; HF_E_INVALID: the text has no key, or one that
 * is unusable; HF_E_TOO_LARGE: there are more than HFD_JWT_KEYS_MAX; or -ENOMEM. The message begins
 * with `name`, which says where the text is from. On an error the set may have some of the keys.
 */
int hfd_jwt_key_set_add(struct hfd_jwt_key_set *set, const char *name, const char *pem, bool signs,
                        struct hf_status *reterr_status);

/*
 * Adds the keys of a JWK Set that can be used, up to HFD_JWT_KEYS_MAX. first: the id of the key
 * that is wanted, which is added before the others, wherever it is; NULL = any. Apart from that
 * key, only the first HFD_JWT_TRIED_MAX members are tried, because each costs a computation.
 * algorithms: those that are accepted, comma separated ("RS256,ES256"). *ret_n: how many were
 * added; 0 also if jwks is not a JWK Set. Returns 0 or -ENOMEM.
 */
int hfd_jwt_key_set_add_jwks(struct hfd_jwt_key_set *set, const struct hf__json *jwks,
                             const char *first, const char *algorithms, size_t *ret_n);
/* Whether a key has this id. */
bool hfd_jwt_key_set_has(const struct hfd_jwt_key_set *set, const char *id);

/* The key that signs; NULL = none. Borrowed. */
const struct hfd_jwt_key *hfd_jwt_key_set_signer(const struct hfd_jwt_key_set *set);
/* The keys in the order in which they were added; NULL after the last one. Borrowed. */
const struct hfd_jwt_key *hfd_jwt_key_set_at(const struct hfd_jwt_key_set *set, size_t i);
/* The table of the tokens that the keys of this set have verified. It is empty in a new set.
 * Borrowed. */
struct hfd_jwt_verified *hfd_jwt_key_set_verified(const struct hfd_jwt_key_set *set);
/* Appends the JWK Set (RFC 7517) with the public key of each key. Only for keys of PEM texts, as
 * hfd_jwt_key_put_jwk. An error is kept in out->error. */
void hfd_jwt_key_set_put(const struct hfd_jwt_key_set *set, struct hf__strbuf *out);
