/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of keys: those of service accounts, of which one signs, and those of an issuer of OpenID
 * Connect, which only verify.
 *
 * Invariants: no two keys of a set have the same id, unless they come from a JWK Set, whose maker
 * chooses the ids. The keys do not change once the set is in use, so any thread reads them without
 * a lock.
 */
#include "server/jwt/key_set.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/jwt/verified.h"

struct hfd_jwt_key_set {
        atomic_int refs;
        struct hfd_jwt_key *keys[HFD_JWT_KEYS_MAX]; /* owned */
        size_t n;
        const struct hfd_jwt_key *signer;  /* one of keys; NULL = none */
        struct hfd_jwt_verified *verified; /* owned */
};

struct hfd_jwt_key_set *hfd_jwt_key_set_new(void) {
        struct hfd_jwt_key_set *set = calloc(1, sizeof *set);

        if (!set)
                return NULL;
        atomic_init(&set->refs, 1);
        set->verified = hfd_jwt_verified_new();
        return set->verified ? set : hfd_jwt_key_set_unref(set);
}

struct hfd_jwt_key_set *hfd_jwt_key_set_ref(struct hfd_jwt_key_set *set) {
        assert(atomic_load_explicit(&set->refs, memory_order_relaxed) > 0);
        atomic_fetch_add(&set->refs, 1);
        return set;
}

struct hfd_jwt_key_set *hfd_jwt_key_set_unref(struct hfd_jwt_key_set *set) {
        assert(!set || atomic_load_explicit(&set->refs, memory_order_relaxed) > 0);
        if (!set || atomic_fetch_sub(&set->refs, 1) != 1)
                return NULL;
        for (size_t i = 0; i < set->n; i++)
                hfd_jwt_key_free(set->keys[i]);
        hfd_jwt_verified_free(set->verified);
        free(set);
        return NULL;
}

/* The position of the key with this id; n = there is none. */
static size_t find_key(const struct hfd_jwt_key_set *set, const char *id) {
        size_t i = 0;

        while (i < set->n && strcmp(hfd_jwt_key_id(set->keys[i]), id) != 0)
                i++;
        return i;
}

/*
 * Takes ownership of key, also if it fails. A key that the set has is not added again. But the
 * private key that signs replaces its public key, so that the file with the public key may be added
 * first. 0, HF_E_INVALID or HF_E_TOO_LARGE.
 */
static int add_key(struct hfd_jwt_key_set *set, struct hfd_jwt_key *key, bool signs,
                   const char *name, struct hf_status *reterr_status) {
        size_t i = find_key(set, hfd_jwt_key_id(key));
        int r = 0;

        if (signs && !hfd_jwt_key_is_private(key))
                r = hf_fail(reterr_status, HF_E_INVALID,
                            "%.400s: the key is a public one, and a private key is needed to sign",
                            name);
        else if (i == HFD_JWT_KEYS_MAX)
                r = hf_fail(reterr_status, HF_E_TOO_LARGE, "%.400s: there are more than %d keys",
                            name, HFD_JWT_KEYS_MAX);
        if (r != 0 || (i < set->n && !signs)) {
                hfd_jwt_key_free(key);
                return r;
        }
        if (i < set->n)
                hfd_jwt_key_free(set->keys[i]);
        else
                set->n++;
        set->keys[i] = key;
        if (signs)
                set->signer = key;
        return 0;
}

/* Of a file that signs, only the first key signs; the others of that file verify old tokens. */
int hfd_jwt_key_set_add(struct hfd_jwt_key_set *set, const char *name, const char *pem, bool signs,
                        struct hf_status *reterr_status) {
        struct hf_status why = {0};
        struct hfd_jwt_key *key;
        size_t n = 0;
        int r;

        assert(!signs || !set->signer);
        assert(atomic_load_explicit(&set->refs, memory_order_relaxed) == 1); /* not in use yet */
        while ((r = hfd_jwt_key_read(&pem, &key, &why)) == 0) {
                r = add_key(set, key, signs && n == 0, name, reterr_status);
                if (r != 0)
                        return r;
                n++;
        }
        if (r == HF_E_NOT_FOUND && n > 0)
                return 0;
        if (r == HF_E_NOT_FOUND)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "%.400s has no usable key: it must be a PEM file with an "
                               "unencrypted "
                               "RSA key or an ECDSA key of the curve P-256",
                               name);
        return hf_fail(reterr_status, r, "%.400s has no usable key: %.200s", name, why.message);
}

/* Adds a key of a JWK Set, if it can be used, and counts it in *n. 0 or -ENOMEM. */
static int add_jwk(struct hfd_jwt_key_set *set, const struct hf__json *jwk, const char *algorithms,
                   size_t *n) {
        struct hfd_jwt_key *key = NULL;
        int r = hfd_jwt_key_of_jwk(jwk, &key);

        if (r != 0)
                return r == -ENOMEM ? r : 0;
        if (!strstr(algorithms, hfd_jwt_key_algorithm(key))) {
                hfd_jwt_key_free(key);
                return 0;
        }
        assert(set->n < HFD_JWT_KEYS_MAX);
        set->keys[set->n++] = key;
        (*n)++;
        return 0;
}

int hfd_jwt_key_set_add_jwks(struct hfd_jwt_key_set *set, const struct hf__json *jwks,
                             const char *first, const char *algorithms, size_t *ret_n) {
        const struct hf__json *keys = hf__json_get(jwks, "keys"), *found = NULL;
        size_t n_tried = 0;
        int r = 0;

        assert(atomic_load_explicit(&set->refs, memory_order_relaxed) == 1); /* not in use yet */
        *ret_n = 0;
        if (!hf__json_is_array(keys))
                return 0;
        for (const struct hf__json *m = hf__json_first(keys); first && m && !found;
             m = hf__json_next(m))
                if (hf__json_has_text(m, "kid", first))
                        found = m;
        if (found && set->n < HFD_JWT_KEYS_MAX)
                r = add_jwk(set, found, algorithms, ret_n);
        for (const struct hf__json *m = hf__json_first(keys);
             r == 0 && m && set->n < HFD_JWT_KEYS_MAX && n_tried < HFD_JWT_TRIED_MAX;
             m = hf__json_next(m)) {
                n_tried++;
                if (m != found)
                        r = add_jwk(set, m, algorithms, ret_n);
        }
        return r;
}

bool hfd_jwt_key_set_has(const struct hfd_jwt_key_set *set, const char *id) {
        return find_key(set, id) < set->n;
}

const struct hfd_jwt_key *hfd_jwt_key_set_signer(const struct hfd_jwt_key_set *set) {
        return set->signer;
}

const struct hfd_jwt_key *hfd_jwt_key_set_at(const struct hfd_jwt_key_set *set, size_t i) {
        return i < set->n ? set->keys[i] : NULL;
}

struct hfd_jwt_verified *hfd_jwt_key_set_verified(const struct hfd_jwt_key_set *set) {
        return set->verified;
}

void hfd_jwt_key_set_put(const struct hfd_jwt_key_set *set, struct hf__strbuf *out) {
        hf__strbuf_puts(out, "{\"keys\":[");
        for (size_t i = 0; i < set->n; i++) {
                if (i > 0)
                        hf__strbuf_putc(out, ',');
                hfd_jwt_key_put_jwk(set->keys[i], out);
        }
        hf__strbuf_puts(out, "]}");
}
