/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of the issuer, and tokens.
 *
 *      discovery document -> URL of the keys -> keys
 *
 * The document is fetched until one has named the URL of the keys. Later only the keys are fetched
 * again, when a token names a key that is unknown, or names none and is not signed by a known one.
 * Once this has failed, the next fetch begins with the document: the keys may have moved.
 *
 * Invariants. At most one fetch is under way at a time. A set of keys never changes; a fetch that
 * succeeds replaces it, one that fails leaves it. A token of another issuer never causes a fetch,
 * and before a token's signature is verified, only its issuer and the id of its key are used.
 */
#include "server/oidc/oidc.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include "server/jwt/jwt.h"
#include "server/jwt/key.h"
#include "server/jwt/key_set.h"
#include "server/outbound/outbound.h"
#include "server/outbound/status_text.h"

#define FETCH_TIMEOUT (30 * HF_NSEC_PER_SEC)
#define RESPONSE_MAX  ((size_t)1 << 20)
#define DISCOVERY     "/.well-known/openid-configuration"

struct hfd_oidc {
        /* immutable */
        const struct hf_host *host;
        struct hfd_outbound *outbound;
        struct hfd_oidc_config config;
        char *ca_pem; /* owned; NULL = the system's CAs */
        struct hfd_token_authenticator authenticator;

        pthread_mutex_t mu;
        /* guarded by mu */
        struct hfd_jwt_key_set *keys; /* owned reference; NULL = none yet */
        bool fetching;
        hf_nsec next_fetch; /* boot time */

        /* For fetches. Only the thread that has set `fetching`, and then the callbacks of that
         * fetch, use these members, so they need no lock. Whoever sets or clears `fetching` holds
         * mu, so the next fetch sees what this one has written. */
        char *keys_url;                  /* owned; kept for later fetches; NULL = not known yet */
        char wanted[HFD_JWT_KEY_ID_MAX]; /* the id of the key that the fetch is for; "" = any */
};

/* ---- fetching ---- */

static void end_fetch(struct hfd_oidc *oidc) {
        pthread_mutex_lock(&oidc->mu);
        assert(oidc->fetching);
        oidc->fetching = false;
        pthread_mutex_unlock(&oidc->mu);
}

/* Logs why the fetch has failed, and ends it. Forgets the URL of the keys. */
static void fail_fetch(struct hfd_oidc *oidc, const char *why) {
        free(oidc->keys_url);
        oidc->keys_url = NULL;
        hf_log(&oidc->host->log, HF_LOG_WARNING, "oidc",
               "cannot fetch the keys of the issuer %s: %s", oidc->config.rules.issuer, why);
        end_fetch(oidc);
}

/* The response as a JSON object, which the caller frees. NULL: there is none, and the fetch has
 * ended. */
static struct hf__json *parse_response(struct hfd_oidc *oidc,
                                       const struct hfd_outbound_result *result) {
        struct hf__strbuf why = {0};
        struct hf__json *json = NULL;

        if (result->end != HFD_OUTBOUND_ANSWERED)
                hf__strbuf_puts(&why, result->text);
        else if (result->code != 200)
                hfd_outbound_status_text(result->code, result->body, result->n_body, &why);
        else if (hf__json_parse(result->body, result->n_body, &json, NULL) != 0 ||
                 !hf__json_is_object(json))
                hf__strbuf_puts(&why, "the response is not a JSON object");
        if (why.n == 0 && json)
                return json;
        hf__json_free(json);
        if (result->end != HFD_OUTBOUND_CANCELED)
                fail_fetch(oidc, why.data ? why.data : "out of memory");
        else
                end_fetch(oidc);
        hf__strbuf_done(&why);
        return NULL;
}

/* Sends a GET request, at whose end `done` is called. If it cannot be sent, ends the fetch, and
 * `done` is not called. */
static void send_get(struct hfd_oidc *oidc, const char *url, hfd_outbound_done *done) {
        static const char *const headers[] = {"Accept: application/json"};
        const struct hfd_outbound_request request = {.method = "GET",
                                                     .url = url,
                                                     .ca_pem = oidc->ca_pem,
                                                     .headers = headers,
                                                     .n_headers = 1,
                                                     .deadline = hf_now(hf_host_clock(oidc->host)) +
                                                                 FETCH_TIMEOUT,
                                                     .max_response = RESPONSE_MAX,
                                                     .may_repeat = true,
                                                     .done = done,
                                                     .ctx = oidc};
        int r = hfd_outbound_send(oidc->outbound, &request, NULL);

        if (r == HF_E_INVALID)
                fail_fetch(oidc, "the issuer names a URL that is not https");
        else if (r != 0)
                fail_fetch(oidc, hf_strerror(r));
}

static void on_keys(void *ctx, const struct hfd_outbound_result *result) {
        struct hfd_oidc *oidc = ctx;
        struct hf__json *json = parse_response(oidc, result);
        size_t n = 0;

        if (!json)
                return;
        struct hfd_jwt_key_set *keys = hfd_jwt_key_set_new();
        const char *wanted = *oidc->wanted ? oidc->wanted : NULL;
        int r = keys ? hfd_jwt_key_set_add_jwks(keys, json, wanted, oidc->config.algorithms, &n)
                     : -ENOMEM;
        hf__json_free(json);
        if (r != 0 || n == 0) {
                hfd_jwt_key_set_unref(keys);
                fail_fetch(oidc, r != 0 ? hf_strerror(r)
                                        : "none of its keys is of an accepted algorithm");
                return;
        }
        pthread_mutex_lock(&oidc->mu);
        struct hfd_jwt_key_set *old = oidc->keys;
        oidc->keys = keys;
        oidc->fetching = false;
        pthread_mutex_unlock(&oidc->mu);
        if (!old)
                hf_log(&oidc->host->log, HF_LOG_NOTICE, "oidc",
                       "tokens of the issuer %s are accepted", oidc->config.rules.issuer);
        hfd_jwt_key_set_unref(old);
}

static void on_document(void *ctx, const struct hfd_outbound_result *result) {
        struct hfd_oidc *oidc = ctx;
        struct hf__json *json = parse_response(oidc, result);

        if (!json)
                return;
        const char *issuer = hf__json_string(json, "issuer"),
                   *url = hf__json_string(json, "jwks_uri");
        bool same = issuer && strcmp(issuer, oidc->config.rules.issuer) == 0, named = url != NULL;
        if (same && named)
                oidc->keys_url = strdup(url);
        hf__json_free(json);
        if (!same)
                fail_fetch(oidc, "its discovery document is that of another issuer");
        else if (!named)
                fail_fetch(oidc, "its discovery document has no jwks_uri");
        else if (!oidc->keys_url)
                fail_fetch(oidc, "out of memory");
        else
                send_get(oidc, oidc->keys_url, on_keys);
}

/* As in Kubernetes, an issuer may end with a slash, which does not become two in the URL. */
static void get_document(struct hfd_oidc *oidc) {
        const char *issuer = oidc->config.rules.issuer;
        struct hf__strbuf url = {0};
        size_t n = strlen(issuer);

        while (n > 0 && issuer[n - 1] == '/')
                n--;
        hf__strbuf_add(&url, issuer, n);
        hf__strbuf_puts(&url, DISCOVERY);
        if (url.error)
                fail_fetch(oidc, "out of memory");
        else
                send_get(oidc, url.data, on_document);
        hf__strbuf_done(&url);
}

/* Starts to fetch the keys, unless a fetch is under way, or the last one began less than
 * HFD_OIDC_INTERVAL ago. Returns whether a fetch was under way or was started. */
static bool fetch_key(struct hfd_oidc *oidc, const char *key_id) {
        hf_nsec now = hf_now(hf_host_clock(oidc->host));

        pthread_mutex_lock(&oidc->mu);
        bool starts = !oidc->fetching && now >= oidc->next_fetch, under_way = oidc->fetching;
        if (starts) {
                oidc->fetching = true;
                oidc->next_fetch = now + HFD_OIDC_INTERVAL;
        }
        pthread_mutex_unlock(&oidc->mu);
        if (!starts)
                return under_way;
        /* An id that is cut here is that of no key, because hfd_jwt_key_of_jwk refuses it. */
        (void)snprintf(oidc->wanted, sizeof oidc->wanted, "%s", key_id ? key_id : "");
        if (oidc->keys_url)
                send_get(oidc, oidc->keys_url, on_keys);
        else
                get_document(oidc);
        return true;
}

/* ---- tokens ---- */

/* Verifies the signature. Starts a fetch if a key that is not known yet may be the right one. 0,
 * HF_E_UNAUTHORIZED, HF_E_UNAVAILABLE (a fetch is under way) or -ENOMEM. */
static int verify_token(struct hfd_oidc *oidc, const char *token, const char *key_id,
                        struct hf__json **ret_claims, struct hf_status *reterr_status) {
        pthread_mutex_lock(&oidc->mu);
        struct hfd_jwt_key_set *keys = oidc->keys ? hfd_jwt_key_set_ref(oidc->keys) : NULL;
        pthread_mutex_unlock(&oidc->mu);
        int r = keys ? hfd_jwt_verify(keys, token, ret_claims) : HF_E_UNAUTHORIZED;
        bool known = keys && key_id && hfd_jwt_key_set_has(keys, key_id), has_keys = keys != NULL;

        hfd_jwt_key_set_unref(keys);
        if (r != HF_E_UNAUTHORIZED || known)
                return r == HF_E_UNAUTHORIZED
                               ? hf_fail(reterr_status, r,
                                         "oidc: verify token: failed to verify signature: failed "
                                         "to verify id token signature")
                               : r;
        if (fetch_key(oidc, key_id))
                return hf_fail(reterr_status, HF_E_UNAVAILABLE,
                               "oidc: the keys of the issuer are being fetched");
        return hf_fail(reterr_status, HF_E_UNAUTHORIZED, "%s",
                       has_keys ? "oidc: verify token: failed to verify signature: failed to "
                                  "verify id token signature"
                                : "oidc: authenticator not initialized");
}

static int authenticate_token(void *ctx, const char *token, const struct hfd_token_use *use,
                              struct hfd_user *ret_user) {
        struct hfd_oidc *oidc = ctx;
        const struct hf_clock *clock = hf_host_clock(oidc->host);
        struct hf__json *unverified = NULL, *claims = NULL;
        struct hf_status why = {0};
        char *key_id = NULL;

        if (!hfd_jwt_is_like(token))
                return HF_E_UNAUTHORIZED;
        int r = hfd_jwt_peek(token, &unverified, &key_id);
        if (r == 0 && !hf__json_has_text(unverified, "iss", oidc->config.rules.issuer))
                r = HF_E_UNAUTHORIZED;
        if (r == 0)
                r = verify_token(oidc, token, key_id, &claims, &why);
        if (r == 0)
                r = hfd_id_token_accept(&oidc->config.rules, claims,
                                        clock->real(clock->ctx) / HF_NSEC_PER_SEC, ret_user, &why);
        if (r > 0 && why.message[0] && use->reterr_status)
                *use->reterr_status = why;
        hf__json_free(unverified);
        hf__json_free(claims);
        free(key_id);
        return r;
}

/* ---- life cycle ---- */

HF__CLEANUP_DEFINE(oidc_cleanup, struct hfd_oidc *, hfd_oidc_free)

int hfd_oidc_new(const struct hf_host *host, struct hfd_outbound *outbound,
                 const struct hfd_oidc_config *config, struct hfd_oidc **ret_oidc) {
        HF__CLEANUP(hf__free_cleanup) struct hfd_oidc *memory = calloc(1, sizeof *memory);

        if (!memory)
                return -ENOMEM;
        int r = hf__mutex_init(&memory->mu);
        if (r != 0)
                return r;
        /* Only now that the mutex exists can hfd_oidc_free free the object. */
        HF__CLEANUP(oidc_cleanup) struct hfd_oidc *oidc = HF__TAKE(memory);
        oidc->host = host;
        oidc->outbound = outbound;
        oidc->config = *config;
        oidc->authenticator = (struct hfd_token_authenticator){.authenticate = authenticate_token,
                                                               .ctx = oidc,
                                                               .any_audience = true};
        if (config->ca_pem) {
                oidc->ca_pem = strdup(config->ca_pem);
                if (!oidc->ca_pem)
                        return -ENOMEM;
        }
        *ret_oidc = HF__TAKE(oidc);
        return 0;
}

void hfd_oidc_start(struct hfd_oidc *oidc) {
        if (oidc)
                (void)fetch_key(oidc, NULL);
}

struct hfd_oidc *hfd_oidc_free(struct hfd_oidc *oidc) {
        if (!oidc)
                return NULL;
        assert(!oidc->fetching); /* outbound was joined, so each callback has ended its fetch */
        hfd_jwt_key_set_unref(oidc->keys);
        pthread_mutex_destroy(&oidc->mu);
        free(oidc->keys_url);
        free(oidc->ca_pem);
        free(oidc);
        return NULL;
}

const struct hfd_token_authenticator *hfd_oidc_authenticator(const struct hfd_oidc *oidc) {
        return &oidc->authenticator;
}
