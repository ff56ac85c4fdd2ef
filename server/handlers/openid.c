/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two documents of OpenID by which others verify the tokens of service accounts: the
 * configuration and the keys.
 *
 * Invariant: the documents are made for each request, because the keys may change at any time
 * (reload). They are small, and a verifier requests them only once an hour, as Cache-Control
 * allows.
 */
#include "server/handlers/openid.h"

#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "server/filters/status_response.h"
#include "server/handlers/read_endpoint.h"
#include "server/jwt/key_set.h"
#include "server/service_accounts/service_accounts.h"

/* Whether a key has the algorithm. */
static bool has_algorithm(const struct hfd_jwt_key_set *keys, const char *algorithm) {
        const struct hfd_jwt_key *key;

        for (size_t i = 0; (key = hfd_jwt_key_set_at(keys, i)) != NULL; i++)
                if (strcmp(hfd_jwt_key_algorithm(key), algorithm) == 0)
                        return true;
        return false;
}

/* Only algorithms that a key has, so that a verifier expects no others. */
static void put_algorithms(const struct hfd_jwt_key_set *keys, struct hf__strbuf *s) {
        static const char *const all[] = {"ES256", "RS256"};
        const char *comma = "";

        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
                if (has_algorithm(keys, all[i])) {
                        hf__strbuf_printf(s, "%s\"%s\"", comma, all[i]);
                        comma = ",";
                }
}

static void put_configuration(const struct hfd_openid *openid, const struct hfd_jwt_key_set *keys,
                              struct hf__strbuf *s) {
        const char *issuer = hfd_service_accounts_issuer(openid->accounts);

        hf__strbuf_puts(s, "{\"issuer\":");
        hf__strbuf_json(s, issuer, strlen(issuer));
        hf__strbuf_printf(s,
                          ",\"jwks_uri\":\"%s/openid/v1/jwks\",\"response_types_supported\":["
                          "\"id_token\"],\"subject_types_supported\":[\"public\"],"
                          "\"id_token_signing_alg_values_supported\":[",
                          openid->endpoint);
        put_algorithms(keys, s);
        hf__strbuf_puts(s, "]}");
}

static void reply_with_body(struct hfd_http_request *request, const char *type,
                            struct hf__strbuf *body) {
        static const struct hfd_header headers[] = {{"cache-control", "public, max-age=3600"}};
        struct hf__buf *buf = hf__strbuf_to_buf(body);

        if (buf)
                hfd_http_request_reply(request, 200, type, headers, 1, buf);
        else
                hfd_read_endpoint_no_memory(request);
        hf__buf_unref(buf);
}

/* Whether the path is text, perhaps with a slash at its end. */
static bool is_path(const char *path, const char *text) {
        size_t n = strlen(text);

        return strncmp(path, text, n) == 0 && (path[n] == '\0' || strcmp(path + n, "/") == 0);
}

void hfd_openid_handle(void *ctx, struct hfd_http_request *request) {
        const struct hfd_openid *openid = ctx;
        const char *path = hfd_http_request_path(request);
        struct hfd_jwt_key_set *keys = hfd_service_accounts_keys(openid->accounts);
        bool is_jwks = is_path(path, "/openid/v1/jwks");
        bool known = is_jwks || is_path(path, "/.well-known/openid-configuration");
        struct hf__strbuf body = {0};

        if (!known || !keys ||
            strncmp(hfd_service_accounts_issuer(openid->accounts), "https://", 8) != 0) {
                hfd_status_response_text(request, 404, "404 page not found\n", 0, false);
        } else if (hfd_read_endpoint_accepts(request, false)) {
                if (is_jwks)
                        hfd_jwt_key_set_put(keys, &body);
                else
                        put_configuration(openid, keys, &body);
                reply_with_body(request, is_jwks ? "application/jwk-set+json" : "application/json",
                                &body);
        }
        hf__strbuf_done(&body);
        hfd_jwt_key_set_unref(keys);
        hfd_http_request_unref(request);
}
