/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up in the cacher whether the objects still exist to which a token is bound: its service
 * account, and perhaps a Secret.
 *
 * Invariant: the text of an object is read once, not once per request: an account or a Secret may
 * have a megabyte, and each request with its token comes here. The few members that matter are
 * searched for in the JSON text, and the object keeps what was found.
 */
#include "server/service_accounts/lookup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/sha256.h"
#include "base/time_format.h"
#include "client/json_span.h"
#include "server/cacher/cacher.h"
#include "server/resources/objects/object_key.h"
#include "server/resources/rows/resource_table.h"

/* Seconds. As in Kubernetes, an object that is being deleted counts as existing for a minute:
 * programs that finish the deletion may need the account. Tokens that Secrets hold have no such
 * grace. */
#define DELETED_GRACE 60
#define INVALID_SINCE "kubernetes.io/legacy-token-invalid-since" /* a label of Secrets */

/* Copies a text as it is in the JSON: the texts that are read here have no escapes. False: it is
 * absent, is no text, or does not fit. */
static bool copy_text(struct hf__span object, const char *key, char *text, size_t max) {
        struct hf__span value;

        if (!hf__span_member(object, key, &value) || value.n < 2 || value.data[0] != '"' ||
            value.n - 2 >= max)
                return false;
        memcpy(text, value.data + 1, value.n - 2);
        text[value.n - 2] = '\0';
        return true;
}

/* What the checks read of an account or a Secret. */
struct facts {
        char uid[64];    /* "" = it has none */
        int64_t deleted; /* seconds since 1970: when the deletion began; INT64_MAX = it did not */
        bool has_metadata, is_being_deleted, is_marked_invalid, has_token;
        unsigned char token[32]; /* the SHA-256 of the token in a Secret */
};

/* Reads the label that says that the token of a Secret is no longer valid. */
static bool is_marked_invalid(struct hf__span metadata) {
        struct hf__span labels, since;

        return hf__span_member(metadata, "labels", &labels) &&
               hf__span_member(labels, INVALID_SINCE, &since) && since.n > 2 &&
               since.data[0] == '"';
}

static void read_metadata(struct hf__span metadata, struct facts *facts) {
        char text[HF__MICROTIME_MAX];
        struct hf__span value;

        facts->has_metadata = true;
        if (!copy_text(metadata, "uid", facts->uid, sizeof facts->uid))
                facts->uid[0] = '\0';
        facts->is_being_deleted = hf__span_member(metadata, "deletionTimestamp", &value);
        if (facts->is_being_deleted &&
            copy_text(metadata, "deletionTimestamp", text, sizeof text) &&
            hf__time_parse(text, &facts->deleted) != 0)
                facts->deleted = INT64_MIN;
        facts->is_marked_invalid = is_marked_invalid(metadata);
}

/* 0 or -ENOMEM. */
static int read_token(struct hf__span whole, struct facts *facts) {
        struct hf__span data, text;
        char *token = NULL;
        size_t n = 0;

        if (!hf__span_member(whole, "data", &data) || !hf__span_member(data, "token", &text) ||
            text.n < 2 || text.data[0] != '"')
                return 0;
        int r = hf__base64_decode(text.data + 1, text.n - 2, &token, &n);
        if (r != 0)
                return r == -ENOMEM ? r : 0;
        hf__sha256(token, n, facts->token);
        facts->has_token = true;
        explicit_bzero(token, n);
        free(token);
        return 0;
}

/* The facts of an object. NULL has none: no metadata, no uid and no token. If memory is short, the
 * object does not keep the facts, and a Secret may seem to have no token. */
static struct facts facts_of(struct hfd_object *object) {
        struct facts facts = {.deleted = INT64_MAX};
        struct hf__span metadata;

        if (!object)
                return facts;
        const struct facts *extract = hfd_object_extract(object);
        if (extract)
                return *extract;
        const struct hf__span whole = {object->bytes->data, object->bytes->n};
        if (hf__span_member(whole, "metadata", &metadata))
                read_metadata(metadata, &facts);
        struct facts *kept = read_token(whole, &facts) == 0 ? malloc(sizeof *kept) : NULL;
        if (kept) {
                *kept = facts;
                (void)hfd_object_keep_extract(object, kept);
        }
        return facts;
}

/* STATE_RIGHT: the object has the uid. STATE_DELETED: it has the uid, but its deletion began more
 * than DELETED_GRACE ago. STATE_OTHER: it has another uid, because it was made anew, or none. */
enum state { STATE_RIGHT, STATE_ABSENT, STATE_DELETED, STATE_OTHER };

/* A reference to an object; NULL = there is none. */
static struct hfd_object *get_object(struct hfd_cacher *cacher, const char *plural, const char *ns,
                                     const char *name) {
        const struct hfd_resource *resource = hfd_resource_find("", "v1", plural);
        char path[HFD_PATH_MAX];

        if (strlen(ns) > HF_NAME_MAX || strlen(name) > HF_NAME_MAX)
                return NULL;
        hfd_object_path(resource, ns, name, path);
        return hfd_cacher_get(cacher, resource, path);
}

static struct facts look_up_facts(struct hfd_cacher *cacher, const char *plural, const char *ns,
                                  const char *name) {
        struct hfd_object *object = get_object(cacher, plural, ns, name);
        const struct facts facts = facts_of(object);

        hfd_object_unref(object);
        return facts;
}

/* Looks an object up. found: its uid, if the state is STATE_OTHER. */
static enum state look_up_object(struct hfd_cacher *cacher, const char *plural, const char *ns,
                                 const char *name, const char *uid, int64_t now, char found[64]) {
        const struct facts facts = look_up_facts(cacher, plural, ns, name);

        (void)strcpy(found, facts.uid);
        if (!facts.has_metadata)
                return STATE_ABSENT;
        if (!facts.uid[0] || strcmp(facts.uid, uid) != 0)
                return STATE_OTHER;
        return facts.deleted < now - DELETED_GRACE ? STATE_DELETED : STATE_RIGHT;
}

/* ---- tokens that Secrets hold ---- */

/* As in Kubernetes, these tokens have no minute of grace, and the Secret is checked before its
 * account. Only the label of the Secret is checked last. */
static int check_token_of_secret(struct hfd_cacher *cacher, const struct hfd_credential *c,
                                 struct hf_status *reterr_status) {
        const struct facts secret = look_up_facts(cacher, "secrets", c->ns, c->secret);

        if (!secret.has_metadata || secret.is_being_deleted)
                return hf_fail(reterr_status, HF_E_UNAUTHORIZED, "Token has been invalidated");
        if (!secret.has_token || memcmp(secret.token, c->digest, sizeof secret.token) != 0)
                return hf_fail(reterr_status, HF_E_UNAUTHORIZED,
                               "Token does not match server's copy");
        const struct facts account = look_up_facts(cacher, "serviceaccounts", c->ns, c->account);
        if (!account.has_metadata)
                return hf_fail(reterr_status, HF_E_UNAUTHORIZED,
                               "serviceaccounts \"%.253s\" not found", c->account);
        if (account.is_being_deleted)
                return hf_fail(reterr_status, HF_E_UNAUTHORIZED,
                               "ServiceAccount %.63s/%.253s has been deleted", c->ns, c->account);
        if (!account.uid[0] || strcmp(account.uid, c->account_uid) != 0)
                return hf_fail(reterr_status, HF_E_UNAUTHORIZED,
                               "ServiceAccount UID (%s) does not match claim (%.64s)", account.uid,
                               c->account_uid);
        if (secret.is_marked_invalid)
                return hf_fail(reterr_status, HF_E_UNAUTHORIZED,
                               "the token in secret %s/%s for service account %s/%s has been "
                               "marked "
                               "invalid. Use tokens from the TokenRequest API or manually created "
                               "secret-based tokens, or remove the '" INVALID_SINCE
                               "' label from the secret to temporarily allow use of this token",
                               c->ns, c->secret, c->ns, c->account);
        return 0;
}

/* ---- all tokens ---- */

int hfd_account_lookup(struct hfd_cacher *cacher, const struct hfd_credential *credential,
                       int64_t now, struct hf_status *reterr_status) {
        const struct hfd_credential *c = credential;
        char found[64];

        if (c->of_secret)
                return check_token_of_secret(cacher, c, reterr_status);
        if (now >= c->expires)
                return hf_fail(reterr_status, HF_E_UNAUTHORIZED,
                               "service account token has expired");
        switch (look_up_object(cacher, "serviceaccounts", c->ns, c->account, c->account_uid, now,
                               found)) {
        case STATE_RIGHT: break;
        case STATE_ABSENT:
                return hf_fail(reterr_status, HF_E_UNAUTHORIZED,
                               "serviceaccounts \"%.253s\" not found", c->account);
        case STATE_DELETED:
                return hf_fail(reterr_status, HF_E_UNAUTHORIZED,
                               "service account %.63s/%.253s has been deleted", c->ns, c->account);
        case STATE_OTHER:
                return hf_fail(reterr_status, HF_E_UNAUTHORIZED,
                               "service account UID (%s) does not match claim (%.64s)", found,
                               c->account_uid);
        }
        if (!c->secret)
                return 0;
        switch (look_up_object(cacher, "secrets", c->ns, c->secret, c->secret_uid, now, found)) {
        case STATE_RIGHT: return 0;
        case STATE_ABSENT:
        case STATE_DELETED: break;
        case STATE_OTHER:
                return hf_fail(reterr_status, HF_E_UNAUTHORIZED,
                               "secret UID (%s) does not match service account secret ref claim "
                               "(%.64s)",
                               found, c->secret_uid);
        }
        return hf_fail(reterr_status, HF_E_UNAUTHORIZED,
                       "service account token has been invalidated");
}
