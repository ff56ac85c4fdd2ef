/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes tokens (the input begins with 't'), claims (with 'c') and sets of keys (with 'k'). Only
 * the signed examples can be accepted, and none of them once a byte of it is changed. Claims that
 * are accepted are complete. A key that is taken from a set can be published.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "../lib/jwt_examples.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "server/jwt/jwt.h"
#include "server/jwt/key_set.h"
#include "server/service_accounts/claims.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char *const issuers[] = {"https://issuer", NULL};

static struct hfd_jwt_key_set *make_keys(void) {
        struct hfd_jwt_key_set *keys = hfd_jwt_key_set_new();

        assert(keys && hfd_jwt_key_set_add(keys, "es256", JWT_EXAMPLE_ES256_KEY, false, NULL) == 0);
        assert(hfd_jwt_key_set_add(keys, "rs256", JWT_EXAMPLE_RS256_KEY, false, NULL) == 0);
        return keys;
}

static void check_token(char *token) {
        static struct hfd_jwt_key_set *keys; /* for the whole run */
        struct hf__json *claims = NULL;
        size_t n = strlen(token);

        if (!keys)
                keys = make_keys();
        int r = hfd_jwt_verify(keys, token, &claims);
        assert(r == 0 || r == HF_E_UNAUTHORIZED || r == -ENOMEM);
        if (r != 0)
                return;
        assert(strcmp(token, JWT_EXAMPLE_ES256) == 0 || strcmp(token, JWT_EXAMPLE_RS256) == 0);
        assert(hf__json_is_object(claims));
        hf__json_free(claims);
        for (size_t i = 0; i < n; i++) {
                char kept = token[i];
                token[i] = kept == 'A' ? 'B' : 'A';
                assert(hfd_jwt_verify(keys, token, &claims) == HF_E_UNAUTHORIZED);
                token[i] = kept;
        }
}

static void check_claims(const char *text, size_t n) {
        struct hfd_account_claims claims;
        struct hf_status status = {0};
        struct hf__json *json = NULL;

        if (hf__json_parse(text, n, &json, NULL) != 0)
                return;
        int r = hfd_account_claims_read(json, issuers, &claims, &status);
        assert(r == 0 || r == HF_E_UNAUTHORIZED);
        if (r == 0) {
                struct hf__strbuf out = {0};
                struct hf__json *again = NULL;

                assert(*claims.ns && *claims.account && *claims.account_uid && claims.audiences);
                assert(!claims.secret == !claims.secret_uid);
                (void)hfd_account_claims_check_time(json, 1500, &status);
                if (!claims.id)
                        claims.id = "";
                hfd_account_claims_put(&claims, issuers[0], &out);
                assert(out.error == 0 && hf__json_parse(out.data, out.n, &again, NULL) == 0);
                assert(hfd_account_claims_read(again, issuers, &claims, &status) == 0);
                hf__json_free(again);
                hf__strbuf_done(&out);
        }
        hf__json_free(json);
}

static void check_jwks(const char *text, size_t n) {
        struct hf__json *json = NULL, *again = NULL, *claims = NULL;
        struct hf__strbuf out = {0};
        size_t n_keys = 0;

        if (hf__json_parse(text, n, &json, NULL) != 0)
                return;
        struct hfd_jwt_key_set *keys = hfd_jwt_key_set_new();
        assert(keys);
        assert(hfd_jwt_key_set_add_jwks(keys, json, "a", "RS256,ES256", &n_keys) == 0);
        assert(n_keys <= HFD_JWT_KEYS_MAX);
        assert((hfd_jwt_key_set_at(keys, 0) != NULL) == (n_keys > 0));
        assert(!hfd_jwt_key_set_at(keys, n_keys));
        int r = hfd_jwt_verify(keys, JWT_EXAMPLE_ES256, &claims);
        assert(r == 0 || r == HF_E_UNAUTHORIZED);
        hf__json_free(claims);
        hfd_jwt_key_set_put(keys, &out);
        assert(out.error == 0 && hf__json_parse(out.data, out.n, &again, NULL) == 0);
        assert(hf__json_count(hf__json_get(again, "keys")) == n_keys);
        hf__json_free(again);
        hf__strbuf_done(&out);
        hfd_jwt_key_set_unref(keys);
        hf__json_free(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        char *text;

        if (n == 0)
                return 0;
        text = strndup((const char *)data + 1, n - 1);
        assert(text);
        if (data[0] == 't')
                check_token(text);
        else if (data[0] == 'c')
                check_claims(text, strlen(text));
        else if (data[0] == 'k')
                check_jwks(text, strlen(text));
        free(text);
        return 0;
}
