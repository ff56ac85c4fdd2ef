/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contents of a Secret with a token.
 *
 * Invariants: hfd_token_secret_lacks finds nothing in a Secret that hfd_token_secret_fill has
 * filled, apart from a token that could not be made. Otherwise the controller would write for ever.
 * An existing token is never replaced, because programs use it: the caller passes a token only for
 * a Secret that lacks one.
 */
#include "server/controllers/accounts/token_secret_core.h"

#include <errno.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/strbuf.h"

#define NAME_ANNOTATION "kubernetes.io/service-account.name"
#define UID_ANNOTATION  "kubernetes.io/service-account.uid"

/* "" for an absent annotation. */
static const char *annotation(const struct hf__json *secret, const char *key) {
        const char *text =
                hf__json_text(hf__json_get(hf__json_path(secret, "metadata.annotations"), key));

        return text ? text : "";
}

const char *hfd_token_secret_account(const struct hf__json *secret) {
        const char *name = annotation(secret, NAME_ANNOTATION);

        return *name ? name : NULL;
}

bool hfd_token_secret_is_of(const struct hf__json *secret, const char *uid) {
        const char *named = annotation(secret, UID_ANNOTATION);

        return !*named || strcmp(named, uid) == 0;
}

/* "" for an absent value. */
static const char *value_of(const struct hf__json *secret, const char *key) {
        const char *text = hf__json_text(hf__json_get(hf__json_get(secret, "data"), key));

        return text ? text : "";
}

static bool has_value(const struct hf__json *secret, const char *key, const char *text) {
        struct hf__strbuf encoded = {0};

        hf__base64_encode(&encoded, text, strlen(text));
        bool same = encoded.error == 0 &&
                    strcmp(value_of(secret, key), encoded.data ? encoded.data : "") == 0;
        hf__strbuf_done(&encoded);
        return same;
}

unsigned hfd_token_secret_lacks(const struct hf__json *secret, const char *ca) {
        unsigned lacks = 0;

        if (!*value_of(secret, "token"))
                lacks |= HFD_LACKS_TOKEN;
        if (!has_value(secret, "ca.crt", ca))
                lacks |= HFD_LACKS_CA;
        if (!*value_of(secret, "namespace"))
                lacks |= HFD_LACKS_NAMESPACE;
        if (!*annotation(secret, UID_ANNOTATION))
                lacks |= HFD_LACKS_UID;
        return lacks;
}

/* The member of the Secret at path, an object, which is created if it is missing. NULL: out of
 * memory. */
static struct hf__json *member_of(struct hf__json *secret, const char *path) {
        if (!hf__json_is_object(hf__json_path(secret, path)) &&
            hf__json_set(secret, path, hf__json_object()) != 0)
                return NULL;
        return hf__json_path(secret, path);
}

static int put_value(struct hf__json *data, const char *key, const char *text) {
        struct hf__strbuf encoded = {.secret = true};
        int r;

        hf__base64_encode(&encoded, text, strlen(text));
        r = encoded.error;
        if (r == 0)
                r = hf__json_put_string(data, key, encoded.data ? encoded.data : "");
        hf__strbuf_done(&encoded);
        return r;
}

int hfd_token_secret_fill(struct hf__json *secret, const char *token, const char *ca,
                          const char *ns, const char *account_uid) {
        struct hf__json *data = member_of(secret, "data"),
                        *annotations = member_of(secret, "metadata.annotations");
        int r = data && annotations ? 0 : -ENOMEM;

        if (r == 0)
                r = hf__json_put_string(annotations, UID_ANNOTATION, account_uid);
        if (r == 0 && token)
                r = put_value(data, "token", token);
        if (r == 0)
                r = put_value(data, "ca.crt", ca);
        if (r == 0 && !*value_of(secret, "namespace"))
                r = put_value(data, "namespace", ns);
        return r;
}
