/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes and reads the claims of a service account's token.
 *
 * Invariants. A required claim that is missing or has another type makes the token invalid: no
 * value is assumed for it. And a token that is bound to an object is never taken for one that is
 * not: it would stay valid when the object is gone.
 */
#include "server/service_accounts/claims.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/utf8.h"

#define PRIVATE_KEY    "kubernetes.io"
#define SUBJECT_PREFIX "system:serviceaccount:"
/* The claims of a token that a Secret holds are older than the others, and have other names. */
#define SECRET_ISSUER "kubernetes/serviceaccount"
#define NAMESPACE_KEY "kubernetes.io/serviceaccount/namespace"
#define SECRET_KEY    "kubernetes.io/serviceaccount/secret.name"
#define ACCOUNT_KEY   "kubernetes.io/serviceaccount/service-account.name"
#define UID_KEY       "kubernetes.io/serviceaccount/service-account.uid"
/* Seconds. The clock of the instance that has issued a token may be ahead of this one's. An expiry
 * has no such leeway. */
#define LEEWAY 60

/* ---- writing ---- */

static void put_text(struct hf__strbuf *out, const char *key, const char *text) {
        hf__strbuf_printf(out, "\"%s\":", key);
        hf__strbuf_json(out, text, strlen(text));
}

static void put_reference(struct hf__strbuf *out, const char *key, const char *name,
                          const char *uid) {
        hf__strbuf_printf(out, ",\"%s\":{", key);
        put_text(out, "name", name);
        hf__strbuf_putc(out, ',');
        put_text(out, "uid", uid);
        hf__strbuf_putc(out, '}');
}

/* Writes the claims of a token that a Secret holds. The id makes the token differ from the token of
 * an earlier Secret with the same name. Otherwise whoever has the earlier token could use it
 * again. */
static void put_of_secret(const struct hfd_account_claims *claims, struct hf__strbuf *out) {
        const char *const members[][2] = {{"iss", SECRET_ISSUER},
                                          {"jti", claims->id},
                                          {NAMESPACE_KEY, claims->ns},
                                          {SECRET_KEY, claims->secret},
                                          {ACCOUNT_KEY, claims->account},
                                          {UID_KEY, claims->account_uid}};

        for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
                hf__strbuf_putc(out, i == 0 ? '{' : ',');
                put_text(out, members[i][0], members[i][1]);
        }
        hf__strbuf_printf(out, ",\"sub\":\"" SUBJECT_PREFIX "%s:%s\"}", claims->ns,
                          claims->account);
}

void hfd_account_claims_put(const struct hfd_account_claims *claims, const char *issuer,
                            struct hf__strbuf *out) {
        if (claims->of_secret) {
                put_of_secret(claims, out);
                return;
        }
        assert(issuer && issuer[0] && claims->ns);
        hf__strbuf_puts(out, "{\"aud\":");
        hf__json_print(claims->audiences, out);
        hf__strbuf_printf(out, ",\"exp\":%lld,\"iat\":%lld,", (long long)claims->expires,
                          (long long)claims->issued);
        put_text(out, "iss", issuer);
        hf__strbuf_putc(out, ',');
        put_text(out, "jti", claims->id);
        hf__strbuf_puts(out, ",\"" PRIVATE_KEY "\":{");
        put_text(out, "namespace", claims->ns);
        if (claims->secret)
                put_reference(out, "secret", claims->secret, claims->secret_uid);
        put_reference(out, "serviceaccount", claims->account, claims->account_uid);
        hf__strbuf_printf(out, "},\"nbf\":%lld,\"sub\":\"" SUBJECT_PREFIX "%s:%s\"}",
                          (long long)claims->issued, claims->ns, claims->account);
}

/* ---- reading ---- */

static int refuse_claims(struct hf_status *reterr_status, const char *why) {
        return hf_fail(reterr_status, HF_E_UNAUTHORIZED, "%s", why);
}

static bool is_issuer(const char *text, const char *const *issuers) {
        for (; text && *issuers; issuers++)
                if (strcmp(text, *issuers) == 0)
                        return true;
        return false;
}

/* Whether the array has only texts. */
static bool is_texts(const struct hf__json *array) {
        for (const struct hf__json *m = hf__json_first(array); m; m = hf__json_next(m))
                if (!hf__json_is_string(m))
                        return false;
        return hf__json_is_array(array);
}

/* False: the reference lacks a part. */
static bool read_reference(const struct hf__json *reference, const char **ret_name,
                           const char **ret_uid) {
        *ret_name = hf__json_text(hf__json_get(reference, "name"));
        *ret_uid = hf__json_text(hf__json_get(reference, "uid"));
        return *ret_name && **ret_name && *ret_uid && **ret_uid;
}

/* Whether the token's subject is the account. No account has a name that is not UTF-8, and such a
 * name would be another one when the claims are written again. */
static bool is_subject(const char *subject, const struct hfd_account_claims *claims) {
        size_t n_prefix = strlen(SUBJECT_PREFIX), n_ns = strlen(claims->ns);

        return subject && hf__utf8_valid(subject, strlen(subject)) &&
               strncmp(subject, SUBJECT_PREFIX, n_prefix) == 0 &&
               strncmp(subject + n_prefix, claims->ns, n_ns) == 0 &&
               subject[n_prefix + n_ns] == ':' &&
               strcmp(subject + n_prefix + n_ns + 1, claims->account) == 0;
}

/* As in Kubernetes, the message names the first claim that is missing. But a missing sub is called
 * invalid. */
static int read_of_secret(const struct hf__json *json, struct hfd_account_claims *ret_claims,
                          struct hf_status *reterr_status) {
        struct hfd_account_claims claims = {.of_secret = true, .expires = INT64_MAX};
        const struct {
                const char *key, **text, *why;
        } parts[] = {{NAMESPACE_KEY, &claims.ns, "namespace claim is missing"},
                     {SECRET_KEY, &claims.secret, "secretName claim is missing"},
                     {ACCOUNT_KEY, &claims.account, "serviceAccountName claim is missing"},
                     {UID_KEY, &claims.account_uid, "serviceAccountUID claim is missing"}};

        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
                *parts[i].text = hf__json_text(hf__json_get(json, parts[i].key));
                if (!*parts[i].text || !**parts[i].text)
                        return refuse_claims(reterr_status, parts[i].why);
        }
        if (strlen(claims.ns) > 63 || /* the name of a namespace is a label */
            !is_subject(hf__json_text(hf__json_get(json, "sub")), &claims))
                return refuse_claims(reterr_status, "sub claim is invalid");
        *ret_claims = claims;
        return 0;
}

int hfd_account_claims_read(const struct hf__json *json, const char *const *issuers,
                            struct hfd_account_claims *ret_claims,
                            struct hf_status *reterr_status) {
        const struct hf__json *own = hf__json_get(json, PRIVATE_KEY),
                              *secret = hf__json_get(own, "secret");
        struct hfd_account_claims claims = {.ns = hf__json_text(hf__json_get(own, "namespace")),
                                            .id = hf__json_text(hf__json_get(json, "jti")),
                                            .audiences = hf__json_get(json, "aud")};

        if (hf__json_has_text(json, "iss", SECRET_ISSUER))
                return read_of_secret(json, ret_claims, reterr_status);
        if (!is_issuer(hf__json_text(hf__json_get(json, "iss")), issuers))
                return HF_E_UNAUTHORIZED;
        if (!claims.ns || !claims.ns[0] || strlen(claims.ns) > 63 ||
            !read_reference(hf__json_get(own, "serviceaccount"), &claims.account,
                            &claims.account_uid) ||
            !is_subject(hf__json_text(hf__json_get(json, "sub")), &claims) ||
            (secret && !read_reference(secret, &claims.secret, &claims.secret_uid)) ||
            !is_texts(claims.audiences) || !hf__json_i64(json, "exp", &claims.expires) ||
            !hf__json_i64(json, "iat", &claims.issued))
                return refuse_claims(reterr_status,
                                     "service account token claims could not be validated");
        /* This server issues no such tokens, and lookup.c would not notice that the pod or the node
         * is gone. */
        if (hf__json_get(own, "pod") || hf__json_get(own, "node"))
                return refuse_claims(reterr_status, "service account token has been invalidated");
        *ret_claims = claims;
        return 0;
}

int hfd_account_claims_check_time(const struct hf__json *json, int64_t now,
                                  struct hf_status *reterr_status) {
        int64_t expires, issued, not_before;

        if (!hf__json_i64(json, "exp", &expires) || now >= expires)
                return refuse_claims(reterr_status, "service account token has expired");
        if (hf__json_get(json, "nbf") &&
            (!hf__json_i64(json, "nbf", &not_before) || now + LEEWAY < not_before))
                return refuse_claims(reterr_status, "service account token is not valid yet");
        if (!hf__json_i64(json, "iat", &issued) || now + LEEWAY < issued)
                return refuse_claims(reterr_status,
                                     "service account token is issued in the future");
        return 0;
}
