/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes and deletes the objects whose controller is a given owner.
 *
 * Invariant: a write of an existing object names the uid that was read. So it changes the very
 * object whose controller was compared, or it changes nothing.
 */
#include <holdfast/owned.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/owner.h>

#include "base/json.h"
#include "base/sized_struct.h"
#include "base/strbuf.h"

/* An attempt is a read and a write. The next one follows if another client creates the object in
 * between. */
#define MAX_ATTEMPTS 5

static const struct hf__sized sized_request = HF__SIZED(struct hf_request, n_body);

/* The arguments of one call. Everything but owner_json is borrowed. */
struct owned {
        struct hf_client *client;
        struct hf_request request; /* a copy of the caller's */
        const char *owner;
        size_t n_owner;
        struct hf__json *owner_json; /* owned; `owner`, parsed */
        const char *uid;             /* the owner's, in owner_json */
        struct hf_cancel *token;
        struct hf_status *status;
};

/* The object that exists under the name. */
struct found {
        struct hf__json *object; /* owned; NULL = there is none */
        bool is_ours;            /* the owner is its controller */
};

/* Checks and stores the arguments. The caller frees owned->owner_json, also after a failure. */
static int begin_owned(struct owned *owned, struct hf_client *client,
                       const struct hf_request *given, const char *owner, size_t n_owner,
                       struct hf_cancel *token, struct hf_status *status) {
        *owned = (struct owned){.client = client,
                                .owner = owner,
                                .n_owner = n_owner,
                                .token = token,
                                .status = status};
        int r = hf__sized_copy(&sized_request, &owned->request, given, status);
        if (r != 0)
                return r;
        if (!client || !owner || !token || !owned->request.name)
                return hf_fail(status, -EINVAL, "an owned object needs a name and an owner");
        r = hf__json_parse(owner, n_owner, &owned->owner_json, NULL);
        owned->uid = hf__json_string(owned->owner_json, "metadata.uid");
        if (r < 0 || r == HF_E_TOO_LARGE)
                return hf_fail(status, r, "%s: %s", owned->request.name, hf_strerror(r));
        if (r != 0 || !owned->uid)
                return hf_fail(status, HF_E_INVALID, "%s: the owner has no uid",
                               owned->request.name);
        return 0;
}

/* Reads the object, and compares its controller. An object that does not exist is no failure. */
static int find_owned(const struct owned *owned, struct found *ret_found) {
        struct hf_request read = owned->request;
        char *text = NULL;
        size_t n = 0;

        *ret_found = (struct found){0};
        read.verb = HF_VERB_GET;
        read.body = NULL;
        read.n_body = 0;
        int r = hf_client_do(owned->client, &read, owned->token, &text, &n, owned->status);
        if (r == HF_E_NOT_FOUND)
                return 0;
        if (r == 0)
                r = hf_owner_check(text, n, owned->uid, &ret_found->is_ours);
        if (r == 0)
                r = hf__json_parse(text, n, &ret_found->object, NULL);
        free(text);
        return r;
}

/* Appends the caller's body with the object's name and namespace, and with `value` as the member at
 * `path`. path NULL = no further member. */
static int body_with(const struct owned *owned, const char *path, const char *value,
                     struct hf__strbuf *text) {
        struct hf__json *body = NULL;
        int r = hf__json_parse(owned->request.body, owned->request.n_body, &body, NULL);

        if (r == 0) /* -EINVAL: the body, or its metadata, is not an object */
                r = hf__json_set_string(body, "metadata.name", owned->request.name);
        if (r == 0 && owned->request.ns && owned->request.ns[0])
                r = hf__json_set_string(body, "metadata.namespace", owned->request.ns);
        if (r == 0 && path)
                r = hf__json_set_string(body, path, value);
        if (r == 0) {
                hf__json_print(body, text);
                r = text->error;
        }
        hf__json_free(body);
        return r == -EINVAL ? HF_E_INVALID : r;
}

/* Creates the object with the owner as its controller. */
static int create_owned(const struct owned *owned) {
        struct hf_request request = owned->request;
        struct hf__strbuf text = {0};
        char *body = NULL;

        int r = body_with(owned, NULL, NULL, &text);
        if (r == 0)
                r = hf_owner_set(text.data, text.n, owned->owner, owned->n_owner, &body);
        hf__strbuf_done(&text);
        if (r != 0)
                return hf_fail(owned->status, r, "%s: %s", request.name, hf_strerror(r));
        request.verb = HF_VERB_CREATE;
        request.name = NULL;
        request.body = body;
        request.n_body = strlen(body);
        r = hf_client_do(owned->client, &request, owned->token, NULL, NULL, owned->status);
        free(body);
        return r;
}

/* If the body has owner references, adds the owner to them: they replace those of the object, which
 * would otherwise lose its controller. A body without them leaves those of the object alone. */
static int keep_owner(const struct owned *owned, struct hf__strbuf *text) {
        struct hf__json *body = NULL;
        char *with_owner = NULL;

        int r = hf__json_parse(text->data, text->n, &body, NULL);
        bool has_references = hf__json_path(body, "metadata.ownerReferences");
        hf__json_free(body);
        if (r == 0 && has_references)
                r = hf_owner_set(text->data, text->n, owned->owner, owned->n_owner, &with_owner);
        if (r != 0 || !with_owner)
                return r;
        hf__strbuf_done(text);
        hf__strbuf_puts(text, with_owner);
        free(with_owner);
        return text->error;
}

/* Merges the body into the object. The body names the uid, so another object is not changed. */
static int update_owned(const struct owned *owned, const struct hf__json *object,
                        enum hf_upsert_result *ret_result) {
        struct hf_request request = owned->request;
        struct hf__strbuf text = {0};
        const char *uid = hf__json_string(object, "metadata.uid");

        int r = body_with(owned, "metadata.uid", uid ? uid : "", &text);
        if (r == 0)
                r = keep_owner(owned, &text);
        if (r == 0) {
                request.body = text.data;
                request.n_body = text.n;
                r = hf_upsert(owned->client, &request, owned->token, ret_result, NULL,
                              owned->status);
        } else {
                (void)hf_fail(owned->status, r, "%s: %s", request.name, hf_strerror(r));
        }
        hf__strbuf_done(&text);
        return r;
}

/* Reads the object, then creates it, updates it or refuses. *ret_again: another client has created
 * the object since the read, so the next attempt must read it. (hf_upsert itself repeats an update
 * after a conflict.) */
static int attempt_write(const struct owned *owned, enum hf_upsert_result *ret_result,
                         bool *ret_again) {
        struct found found;

        int r = find_owned(owned, &found);
        if (r == 0 && !found.object) {
                r = create_owned(owned);
                *ret_result = HF_UPSERT_CREATED;
                *ret_again = r == HF_E_EXISTS;
        } else if (r == 0 && !found.is_ours) {
                r = hf_fail(owned->status, HF_E_EXISTS, "%s has another controller",
                            owned->request.name);
        } else if (r == 0) {
                r = update_owned(owned, found.object, ret_result);
        }
        hf__json_free(found.object);
        return r;
}

/* Copies the status to the caller if the operation failed. A failure that a retry has overcome
 * leaves no status. */
static int report_result(int r, const struct owned *owned, const struct hf_status *status,
                         struct hf_status *reterr_status) {
        if (r == 0 || !reterr_status)
                return r;
        *reterr_status = *status;
        if (status->error != r)
                (void)hf_fail(reterr_status, r, "%s: %s",
                              owned->request.name ? owned->request.name : "", hf_strerror(r));
        return r;
}

int hf_owned_upsert(struct hf_client *client, const struct hf_request *desired, const char *owner,
                    size_t n_owner, struct hf_cancel *token, enum hf_upsert_result *ret_result,
                    struct hf_status *reterr_status) {
        enum hf_upsert_result result = HF_UPSERT_UNCHANGED;
        struct hf_status status = {0};
        struct owned owned;
        bool again = true;

        int r = begin_owned(&owned, client, desired, owner, n_owner, token, &status);
        if (r == 0 && !owned.request.body)
                r = hf_fail(&status, -EINVAL, "%s: an owned object needs a body",
                            owned.request.name);
        if (r == 0 && owned.request.subresource && owned.request.subresource[0])
                r = hf_fail(&status, -EINVAL, "%s: an owned object has no subresource",
                            owned.request.name);
        if (r == 0) {
                for (int i = 0; again && i < MAX_ATTEMPTS; i++) {
                        again = false;
                        r = attempt_write(&owned, &result, &again);
                }
        }
        hf__json_free(owned.owner_json);
        if (r == 0 && ret_result)
                *ret_result = result;
        return report_result(r, &owned, &status, reterr_status);
}

/* Deletes the object, if it still has the uid and the resourceVersion that were read. */
static int delete_found(const struct owned *owned, const struct hf__json *object) {
        static const char *const members[][2] = {{"preconditions.uid", "metadata.uid"},
                                                 {"preconditions.resourceVersion",
                                                  "metadata.resourceVersion"}};
        struct hf_request request = owned->request;
        struct hf__json *options = hf__json_object();
        struct hf__strbuf text = {0};
        int r = options ? 0 : -ENOMEM;

        for (size_t i = 0; r == 0 && i < sizeof members / sizeof *members; i++) {
                const char *value = hf__json_string(object, members[i][1]);
                if (value)
                        r = hf__json_set_string(options, members[i][0], value);
        }
        if (r == 0) {
                hf__json_print(options, &text);
                r = text.error;
        }
        hf__json_free(options);
        if (r == 0) {
                request.verb = HF_VERB_DELETE;
                request.body = text.data;
                request.n_body = text.n;
                r = hf_client_do(owned->client, &request, owned->token, NULL, NULL, owned->status);
        }
        hf__strbuf_done(&text);
        return r == HF_E_NOT_FOUND ? 0 : r;
}

int hf_owned_delete(struct hf_client *client, const struct hf_request *request, const char *owner,
                    size_t n_owner, struct hf_cancel *token, struct hf_status *reterr_status) {
        struct found found = {0};
        struct hf_status status = {0};
        struct owned owned;

        int r = begin_owned(&owned, client, request, owner, n_owner, token, &status);
        if (r == 0)
                r = find_owned(&owned, &found);
        if (r == 0 && found.is_ours)
                r = delete_found(&owned, found.object);
        hf__json_free(found.object);
        hf__json_free(owned.owner_json);
        return report_result(r, &owned, &status, reterr_status);
}
