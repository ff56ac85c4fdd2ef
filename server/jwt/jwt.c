/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signs JSON Web Tokens, and verifies their signatures.
 *
 * Invariants. When a signature was found right, the set of keys remembers the digest of the whole
 * token. As long as it does, that token's header and signature are not checked again (verified.h).
 * hfd_jwt_verify parses only the header, whose size is limited, until the signature is found right.
 * The algorithm is that of the key; the header must name the same one, so neither "none" nor HMAC
 * with a public key can pass. Base64url is strict: no padding, no other alphabet, no unused bits.
 * So no two texts have the same header, claims and signature. But anybody can change an ECDSA
 * signature into another one that is right, so two texts may have the same claims.
 */
#include "server/jwt/jwt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "server/jwt/key_set.h"
#include "server/jwt/verified.h"

/* Bytes, decoded; a multiple of 3, so that base64url needs a whole number of groups. A header may
 * have the issuer's certificates (x5c). */
#define HEADER_MAX 6144

/* One part of a token, still encoded. */
struct part {
        const char *text;
        size_t n;
};

/* False: there are not exactly three parts, one of them is empty, or the token is too long. */
static bool split_token(const char *token, struct part parts[3]) {
        size_t n = strnlen(token, HFD_JWT_MAX + 1);

        if (n > HFD_JWT_MAX)
                return false;
        for (size_t i = 0; i < 3; i++) {
                parts[i] = (struct part){token, strcspn(token, ".")};
                token += parts[i].n;
                if (*token != (i < 2 ? '.' : '\0'))
                        return false;
                token += i < 2;
        }
        return parts[0].n > 0 && parts[1].n > 0 && parts[2].n > 0;
}

bool hfd_jwt_is_like(const char *token) {
        struct part parts[3];

        return split_token(token, parts);
}

/* Decodes into data, which has room. False: the text is not the one that encoding gives, or memory
 * has run out. */
static bool decode_part(const struct part *part, void *data, size_t *ret_n) {
        struct hf__strbuf again = {0};
        bool ok = hf__base64url_decode(part->text, part->n, data, ret_n);

        if (ok)
                hf__base64url_encode(&again, data, *ret_n);
        ok = ok && again.error == 0 && again.n == part->n &&
             memcmp(again.data, part->text, part->n) == 0;
        hf__strbuf_done(&again);
        return ok;
}

/* Parses a decoded part: an object without duplicate keys. 0, HF_E_UNAUTHORIZED or -ENOMEM. */
static int parse_object(const char *data, size_t n, struct hf__json **ret_object) {
        struct hf__json *object = NULL;
        const char *twice;
        int r = hf__json_parse(data, n, &object, NULL);

        if (r == 0 && hf__json_is_object(object))
                r = hf__json_check_unique(object, &twice);
        else if (r != -ENOMEM)
                r = HF_E_UNAUTHORIZED;
        if (r == 0)
                *ret_object = object;
        else
                hf__json_free(object);
        return r == 0 || r == -ENOMEM ? r : HF_E_UNAUTHORIZED;
}

/* 0, HF_E_UNAUTHORIZED or -ENOMEM. */
static int parse_header(const struct part *part, struct hf__json **ret_header) {
        char data[HF__BASE64URL_DECODED_MAX(HEADER_MAX / 3 * 4)];
        struct hf__json *header = NULL;
        size_t n;

        if (part->n > HEADER_MAX / 3 * 4 || !decode_part(part, data, &n))
                return HF_E_UNAUTHORIZED;
        int r = parse_object(data, n, &header);
        /* crit names extensions that a reader must understand, and b64 is one. This reader knows
         * none. */
        if (r == 0 && (hf__json_get(header, "crit") || hf__json_get(header, "b64"))) {
                hf__json_free(header);
                return HF_E_UNAUTHORIZED;
        }
        if (r == 0)
                *ret_header = header;
        return r;
}

static bool is_signed_by(const struct hfd_jwt_key *key, const struct part parts[3],
                         const unsigned char *signature, size_t n_signature) {
        size_t n = (size_t)(parts[1].text + parts[1].n - parts[0].text);

        return hfd_jwt_key_verify(key, parts[0].text, n, signature, n_signature);
}

/* Whether a key of the set has signed the token. Without a kid each key of the algorithm is tried,
 * at most HFD_JWT_KEYS_MAX. A kid that is not a text is malformed, and not an absent one. Base64url
 * has four digits for three bytes; + 4: for one or two bytes at the end. */
static bool is_signed(const struct hfd_jwt_key_set *keys, const struct hf__json *header,
                      const struct part parts[3]) {
        unsigned char signature[HF__BASE64URL_DECODED_MAX(HFD_JWT_SIGNATURE_MAX / 3 * 4 + 4)];
        const char *algorithm = hf__json_text(hf__json_get(header, "alg")),
                   *id = hf__json_text(hf__json_get(header, "kid"));
        const struct hfd_jwt_key *key;
        size_t n_signature;

        if (!algorithm || (!id && hf__json_get(header, "kid")) ||
            parts[2].n > HFD_JWT_SIGNATURE_MAX / 3 * 4 + 4 ||
            !decode_part(&parts[2], signature, &n_signature))
                return false;
        for (size_t i = 0; (key = hfd_jwt_key_set_at(keys, i)) != NULL; i++)
                if (strcmp(hfd_jwt_key_algorithm(key), algorithm) == 0 &&
                    (!id || strcmp(hfd_jwt_key_id(key), id) == 0) &&
                    is_signed_by(key, parts, signature, n_signature))
                        return true;
        return false;
}

/* Parses the claims, which the caller frees. 0, HF_E_UNAUTHORIZED or -ENOMEM. */
static int parse_claims(const struct part *part, struct hf__json **ret_claims) {
        char *data = malloc(HF__BASE64URL_DECODED_MAX(part->n));
        size_t n;
        int r = HF_E_UNAUTHORIZED;

        if (!data)
                return -ENOMEM;
        if (decode_part(part, data, &n))
                r = parse_object(data, n, ret_claims);
        free(data);
        return r;
}

/* Checks header and signature. 0, HF_E_UNAUTHORIZED or -ENOMEM. */
static int check_signature(const struct hfd_jwt_key_set *keys, const struct part parts[3]) {
        struct hf__json *header = NULL;
        int r = parse_header(&parts[0], &header);

        if (r == 0 && !is_signed(keys, header, parts))
                r = HF_E_UNAUTHORIZED;
        hf__json_free(header);
        return r;
}

int hfd_jwt_peek(const char *token, struct hf__json **ret_claims, char **ret_key_id) {
        HF__CLEANUP(hf__json_cleanup) struct hf__json *header = NULL, *claims = NULL;
        struct part parts[3];

        *ret_key_id = NULL;
        if (!split_token(token, parts))
                return HF_E_UNAUTHORIZED;
        int r = parse_header(&parts[0], &header);
        if (r != 0)
                return r;
        r = parse_claims(&parts[1], &claims);
        if (r != 0)
                return r;
        const char *id = hf__json_string(header, "kid");
        if (id) {
                *ret_key_id = strdup(id);
                if (!*ret_key_id)
                        return -ENOMEM;
        }
        *ret_claims = HF__TAKE(claims);
        return 0;
}

int hfd_jwt_verify(const struct hfd_jwt_key_set *keys, const char *token,
                   struct hf__json **ret_claims) {
        struct hfd_jwt_verified *verified = hfd_jwt_key_set_verified(keys);
        struct hfd_jwt_digest digest;
        struct part parts[3];

        if (!split_token(token, parts))
                return HF_E_UNAUTHORIZED;
        size_t n = (size_t)(parts[2].text + parts[2].n - token);
        bool has_digest = hfd_jwt_digest(token, n, &digest);
        if (!has_digest || !hfd_jwt_verified_has(verified, &digest)) {
                int r = check_signature(keys, parts);
                if (r != 0)
                        return r;
                if (has_digest)
                        hfd_jwt_verified_add(verified, &digest);
        }
        return parse_claims(&parts[1], ret_claims);
}

int hfd_jwt_sign(const struct hfd_jwt_key *key, const char *claims, size_t n,
                 struct hf__strbuf *out) {
        struct hf__strbuf token = {.max = HFD_JWT_MAX, .secret = true}, header = {0};
        unsigned char signature[HFD_JWT_SIGNATURE_MAX];
        size_t n_signature;
        int r = 0;

        /* The id of a private key is base64url, which needs no escapes. */
        hf__strbuf_printf(&header, "{\"alg\":\"%s\",\"kid\":\"%s\"}", hfd_jwt_key_algorithm(key),
                          hfd_jwt_key_id(key));
        if (header.error == 0)
                hf__base64url_encode(&token, header.data, header.n);
        hf__strbuf_putc(&token, '.');
        hf__base64url_encode(&token, claims, n);
        if (header.error == 0 && token.error == 0)
                r = hfd_jwt_key_sign(key, token.data, token.n, signature, &n_signature);
        if (r == 0 && header.error == 0 && token.error == 0) {
                hf__strbuf_putc(&token, '.');
                hf__base64url_encode(&token, signature, n_signature);
        }
        if (r == 0)
                r = header.error != 0 ? header.error : token.error;
        if (r == 0)
                hf__strbuf_add(out, token.data, token.n);
        hf__strbuf_done(&token);
        hf__strbuf_done(&header);
        return r == 0 ? out->error : r;
}
