/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up in the cacher whether the objects still exist to which a token is bound: its service
 * account, and perhaps a Secret.
 *
 * Invariant: the objects are not parsed, because a Secret may have a megabyte, and each request
 * with a token that is bound to it comes here. Instead the few members that matter are searched for
 * in the JSON text.
 */
#include "server/service_accounts/lookup.h"

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
 * programs that finish the deletion may need the account. */
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

/* Whether the object's deletion began more than DELETED_GRACE ago. */
static bool is_deleted(struct hf__span metadata, int64_t now) {
        char text[HF__MICROTIME_MAX];
        int64_t deleted;

        return copy_text(metadata, "deletionTimestamp", text, sizeof text) &&
               (hf__time_parse(text, &deleted) != 0 || deleted < now - DELETED_GRACE);
}

/* STATE_RIGHT: the object has the uid. STATE_DELETED: it has the uid, but its deletion began more
 * than DELETED_GRACE ago. STATE_OTHER: it has another uid, so it was made anew. */
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

/* Looks an object up. found: its uid, if the state is STATE_OTHER. */
static enum state look_up_object(struct hfd_cacher *cacher, const char *plural, const char *ns,
                                 const char *name, const char *uid, int64_t now, char found[64]) {
        enum state state = STATE_ABSENT;
        struct hf__span metadata;

        found[0] = '\0';
        struct hfd_object *object = get_object(cacher, plural, ns, name);
        if (object && hf__span_member((struct hf__span){object->bytes->data, object->bytes->n},
                                      "metadata", &metadata)) {
                state = STATE_OTHER;
                if (copy_text(metadata, "uid", found, 64) && strcmp(found, uid) == 0)
                        state = is_deleted(metadata, now) ? STATE_DELETED : STATE_RIGHT;
        }
        hfd_object_unref(object);
        return state;
}

/* ---- tokens that Secrets hold ---- */

/* As in Kubernetes, these have no minute of grace. */
static bool is_being_deleted(struct hf__span metadata) {
        struct hf__span value;

        return hf__span_member(metadata, "deletionTimestamp", &value);
}

/* Whether the base64 text, with its quotes, is that of the token with this digest. */
static bool is_token(struct hf__span text, const unsigned char digest[32]) {
        unsigned char found[32] = {0};
        char *token = NULL;
        size_t n = 0;

        if (text.n < 2 || text.data[0] != '"' ||
            hf__base64_decode(text.data + 1, text.n - 2, &token, &n) != 0)
                return false;
        hf__sha256(token, n, found);
        explicit_bzero(token, n);
        free(token);
        return memcmp(found, digest, sizeof found) == 0;
}

/* Whether the Secret has a label that says that its token is no longer valid. */
static bool is_marked_invalid(struct hf__span metadata) {
        struct hf__span labels, since;

        return hf__span_member(metadata, "labels", &labels) &&
               hf__span_member(labels, INVALID_SINCE, &since) && since.n > 2 &&
               since.data[0] == '"';
}

/* 0 or HF_E_UNAUTHORIZED. *ret_marked: the token has been marked as invalid. */
static int check_secret(struct hfd_cacher *cacher, const struct hfd_credential *c, bool *ret_marked,
                        struct hf_status *reterr_status) {
        struct hfd_object *object = get_object(cacher, "secrets", c->ns, c->secret);
        struct hf__span text = {0}, metadata, data, token;
        int r = 0;

        if (object)
                text = (struct hf__span){object->bytes->data, object->bytes->n};
        if (!object || !hf__span_member(text, "metadata", &metadata) || is_being_deleted(metadata))
                r = hf_fail(reterr_status, HF_E_UNAUTHORIZED, "Token has been invalidated");
        else if (!hf__span_member(text, "data", &data) || !hf__span_member(data, "token", &token) ||
                 !is_token(token, c->digest))
                r = hf_fail(reterr_status, HF_E_UNAUTHORIZED, "Token does not match server's copy");
        else
                *ret_marked = is_marked_invalid(metadata);
        hfd_object_unref(object);
        return r;
}

static int check_account(struct hfd_cacher *cacher, const struct hfd_credential *c,
                         struct hf_status *reterr_status) {
        struct hfd_object *object = get_object(cacher, "serviceaccounts", c->ns, c->account);
        struct hf__span metadata = {0};
        char uid[64] = "";
        int r = 0;

        if (!object || !hf__span_member((struct hf__span){object->bytes->data, object->bytes->n},
                                        "metadata", &metadata))
                r = hf_fail(reterr_status, HF_E_UNAUTHORIZED,
                            "serviceaccounts \"%.253s\" not found", c->account);
        else if (is_being_deleted(metadata))
                r = hf_fail(reterr_status, HF_E_UNAUTHORIZED,
                            "ServiceAccount %.63s/%.253s has been deleted", c->ns, c->account);
        else if (!copy_text(metadata, "uid", uid, sizeof uid) || strcmp(uid, c->account_uid) != 0)
                r = hf_fail(reterr_status, HF_E_UNAUTHORIZED,
                            "ServiceAccount UID (%s) does not match claim (%.64s)", uid,
                            c->account_uid);
        hfd_object_unref(object);
        return r;
}

static int check_token_of_secret(struct hfd_cacher *cacher, const struct hfd_credential *c,
                                 struct hf_status *reterr_status) {
        bool is_marked = false;
        int r = check_secret(cacher, c, &is_marked, reterr_status);

        if (r == 0)
                r = check_account(cacher, c, reterr_status);
        if (r == 0 && is_marked)
                r = hf_fail(reterr_status, HF_E_UNAUTHORIZED,
                            "the token in secret %s/%s for service account %s/%s "
                            "has been marked invalid. Use tokens from the TokenRequest API or "
                            "manually "
                            "created secret-based tokens, or remove the '" INVALID_SINCE
                            "' label from the secret to temporarily allow use of this token",
                            c->ns, c->secret, c->ns, c->account);
        return r;
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
