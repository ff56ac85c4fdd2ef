/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates or updates an object. An attempt reads the object and merges the caller's body into it.
 * It writes the result if that differs from the object, or creates the object if there is none.
 * After a conflict with another client, the next attempt reads again.
 *
 * Invariants: an update carries the resourceVersion that was read, so a change made after the read
 * is a conflict and is never overwritten. A write whose outcome is unknown (its response was lost)
 * is not repeated: hf_upsert returns its error.
 */
#include <holdfast/upsert.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/sized_struct.h"
#include "base/strbuf.h"

#define MAX_ATTEMPTS 5

struct upsert {
        struct hf_client *client;
        /* a copy of *desired, in which send_request sets verb and body; create_object clears the
         * name for its request */
        struct hf_request request;
        const struct hf_request *desired; /* borrowed; the caller's request */
        const struct hf__json *body;      /* borrowed; desired->body, parsed */
        struct hf_cancel *token;
        enum hf_upsert_result result;
        char *object; /* owned; the object in the latest response; NULL = none */
        struct hf_status *reterr_status;
};

/* Merges `patch` into `object` as JSON Merge Patch (RFC 7396) does: a null removes a member. 0 or
 * -ENOMEM. The recursion is bounded, because the parser limits the depth of `patch`. */
static int merge_object(struct hf__json *object, const struct hf__json *patch) {
        int r = 0;

        for (const struct hf__json *m = hf__json_first(patch); m && r == 0; m = hf__json_next(m)) {
                const char *key = hf__json_key(m);
                struct hf__json *old = hf__json_get(object, key);

                if (hf__json_is_null(m)) {
                        hf__json_drop(object, key);
                } else if (!hf__json_is_object(m)) {
                        r = hf__json_put(object, key, hf__json_dup(m));
                } else {
                        if (!hf__json_is_object(old)) {
                                r = hf__json_put(object, key, hf__json_object());
                                old = hf__json_get(object, key);
                        }
                        if (r == 0)
                                r = merge_object(old, m);
                }
        }
        return r;
}

/* Sends one request and keeps the object of its response. */
static int send_request(struct upsert *upsert, enum hf_verb verb, const char *body, size_t n) {
        upsert->request.verb = verb;
        upsert->request.body = body;
        upsert->request.n_body = n;
        free(upsert->object);
        upsert->object = NULL;
        return hf_client_do(upsert->client, &upsert->request, upsert->token, &upsert->object, NULL,
                            upsert->reterr_status);
}

static int create_object(struct upsert *upsert) {
        upsert->request.name = NULL;
        int r = send_request(upsert, HF_VERB_CREATE, upsert->desired->body,
                             upsert->desired->n_body);
        upsert->request.name = upsert->desired->name;
        upsert->result = HF_UPSERT_CREATED;
        /* Another client has created the object meanwhile. The next attempt merges into that. */
        return r == HF_E_EXISTS ? HF_E_CONFLICT : r;
}

/* A caller may insist on one version or one incarnation of the object, by a resourceVersion or a
 * uid in the body. Returns whether the object fails to match them. object NULL: there is no object.
 */
static bool is_unwanted(const struct upsert *upsert, const struct hf__json *object) {
        static const char *const paths[] = {"metadata.resourceVersion", "metadata.uid"};

        for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
                const char *wanted = hf__json_string(upsert->body, paths[i]);
                const char *found = hf__json_string(object, paths[i]);
                if (wanted && wanted[0] && (!found || strcmp(wanted, found) != 0))
                        return true;
        }
        return false;
}

static int fail_unwanted(struct upsert *upsert) {
        return hf_fail(upsert->reterr_status, HF_E_CONFLICT,
                       "%s: the object and the body differ in uid or resourceVersion",
                       upsert->desired->name);
}

/* Merges the body into the object that was read, and writes the result if it differs. *ret_again:
 * the object was changed or deleted meanwhile, so another attempt must read it again. */
static int update_object(struct upsert *upsert, bool *ret_again) {
        HF__CLEANUP(hf__json_cleanup) struct hf__json *object = NULL;
        HF__CLEANUP(hf__strbuf_done) struct hf__strbuf text = {0};

        int r = hf__json_parse(upsert->object, strlen(upsert->object), &object, NULL);
        if (r != 0)
                return r;
        if (is_unwanted(upsert, object))
                return fail_unwanted(upsert);
        HF__CLEANUP(hf__json_cleanup) struct hf__json *before = hf__json_dup(object);
        r = before ? merge_object(object, upsert->body) : -ENOMEM;
        /* The body may have an empty resourceVersion, or null, and the merge has then overwritten
         * or removed the one that was read. The server would accept that and overwrite changes made
         * since the read. */
        const char *version = hf__json_string(before, "metadata.resourceVersion");
        if (r == 0 && version)
                r = hf__json_set_string(object, "metadata.resourceVersion", version);
        if (r == 0 && hf__json_equal(before, object)) {
                upsert->result = HF_UPSERT_UNCHANGED;
        } else if (r == 0) {
                hf__json_print(object, &text);
                r = text.error;
                if (r == 0)
                        r = send_request(upsert, HF_VERB_UPDATE, text.data, text.n);
                upsert->result = HF_UPSERT_UPDATED;
                *ret_again = r == HF_E_CONFLICT || r == HF_E_NOT_FOUND;
        }
        return r;
}

static int attempt_write(struct upsert *upsert, bool *ret_again) {
        *ret_again = false; /* set when another client was faster */
        int r = send_request(upsert, HF_VERB_GET, NULL, 0);
        if (r == 0)
                return update_object(upsert, ret_again);
        /* A subresource cannot be created: it belongs to an object. */
        if (r != HF_E_NOT_FOUND ||
            (upsert->desired->subresource && upsert->desired->subresource[0]))
                return r;
        /* The version or incarnation that the body names is gone, and a new object would be another
         * one. */
        if (is_unwanted(upsert, NULL))
                return fail_unwanted(upsert);
        r = create_object(upsert);
        *ret_again = r == HF_E_CONFLICT;
        return r;
}

static int run_attempts(struct upsert *upsert) {
        bool again = true;
        int r = 0;

        for (int i = 0; again && i < MAX_ATTEMPTS; i++)
                r = attempt_write(upsert, &again);
        /* In the last attempt the object was deleted between the read and the write. */
        return r == HF_E_NOT_FOUND && again ? HF_E_CONFLICT : r;
}

static const struct hf__sized sized_request = HF__SIZED(struct hf_request, n_body);

int hf_upsert(struct hf_client *client, const struct hf_request *given, struct hf_cancel *token,
              enum hf_upsert_result *ret_result, char **ret_object,
              struct hf_status *reterr_status) {
        struct hf_request desired;
        struct hf_status status = {0};
        struct hf__json *body = NULL;

        int r = hf__sized_copy(&sized_request, &desired, given, reterr_status);
        if (r != 0)
                return r;
        if (!client || !token || !desired.name || !desired.body)
                return hf_fail(reterr_status, -EINVAL, "an upsert needs a name and a body");
        r = hf__json_parse(desired.body, desired.n_body, &body, NULL);
        if (r == 0 && !hf__json_is_object(body))
                r = HF_E_INVALID;
        if (r != 0) {
                hf__json_free(body);
                return hf_fail(reterr_status, r, "%s: the body is not a JSON object: %s",
                               desired.name, hf_strerror(r));
        }
        struct upsert upsert = {.client = client,
                                .request = desired,
                                .desired = &desired,
                                .body = body,
                                .token = token,
                                .reterr_status = &status};
        r = run_attempts(&upsert);
        hf__json_free(body);
        if (r == 0 && ret_result)
                *ret_result = upsert.result;
        if (r == 0 && ret_object) {
                *ret_object = upsert.object;
                upsert.object = NULL;
        }
        free(upsert.object);
        if (r != 0 && reterr_status) {
                *reterr_status = status;
                if (status.error != r)
                        (void)hf_fail(reterr_status, r, "%s: %s", desired.name, hf_strerror(r));
        }
        return r;
}
