/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop of a write. write.h describes the model.
 *
 * Invariants: A write is refused only because of a version that the store has returned, not because
 * of the cacher's version, which may be old (in a dry run, the name of a create and the quotas are
 * exceptions). The loop stops at the request's deadline, because on a busy object other writes may
 * win every time.
 *
 * An update that changes nothing, and is no dry run, still sends a transaction, with compares only.
 * The transaction writes nothing, and its success proves that the version in the response is the
 * current one.
 */
#include "server/registry/write/write.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/cacher/requests/store_request.h"
#include "server/registry/write/admit.h"
#include "server/registry/write/body.h"
#include "server/registry/write/convert.h"
#include "server/registry/write/defer.h"
#include "server/registry/write/reply.h"
#include "server/resources/forms/conversion.h"
#include "server/resources/objects/stored_object.h"

/* ---- the loop ---- */

int hfd_write_make_key(struct hfd_write *w) {
        char key[HFD_KEY_MAX];
        int r = hfd_object_key(w->registry->prefix, w->request->resource, w->path, key);

        assert(*w->path);
        free(w->key);
        w->key = r != 0 ? NULL : strdup(key);
        if (r != 0)
                return r;
        return w->key ? 0 : -ENOMEM;
}

const char *hfd_write_name(const struct hfd_write *w) {
        const char *name, *slash = strrchr(w->path, '/');

        if (*w->request->name)
                return w->request->name;
        name = hf__json_string(w->object, "metadata.name");
        if (name)
                return name;
        return slash ? slash + 1 : w->path;
}

void hfd_write_attempt(struct hfd_write *w) {
        struct hfd_response response = {0};

        assert(!w->awaiting);
        assert(!w->stored && !w->last && !w->unchanged && !w->same_term);
        hfd_write_admit_done(w);
        w->old = hf__json_free(w->old);
        w->created = false;
        if (!hfd_write_convert_current(w))
                return;
        if (hfd_write_must_defer(w)) {
                hfd_write_defer(w, hfd_write_attempt);
                return;
        }
        /* Nothing was written so far, so this is a conflict and not a timeout. */
        if (w->n_attempts++ > 0 && hfd_registry_now(w->registry) >= w->request->deadline) {
                hfd_response_conflict(&response, w->request->resource, hfd_write_name(w), NULL);
                hfd_write_reply(w, &response);
                return;
        }
        /* The previous attempt has consumed the parsed body. Conflicts are rare, so parse again. */
        if (!w->body && !hfd_write_body_read(w, &response)) {
                hfd_write_reply(w, &response);
                return;
        }
        w->attempt(w);
}

/* ---- reading the newest version from the store ---- */

void hfd_write_set_current(struct hfd_write *w, struct hfd_object *current) {
        assert(!current || current != w->current);
        w->converted = hfd_object_unref(w->converted);
        hfd_object_unref(w->current);
        w->current = current;
        w->fresh = true;
}

static void on_refetched(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_write *w = ctx;
        struct hfd_object *object = NULL;

        assert(w->awaiting);
        w->awaiting = false;
        if (reply->error) {
                /* A read that timed out has written nothing, so the client may repeat the write. */
                int error = reply->error == HF_E_TIMEOUT ? HF_E_UNAVAILABLE : reply->error;
                hfd_write_reply_store_error(w, error, &reply->status);
                return;
        }
        if (reply->n_kvs) {
                object = hfd_stored_object_new(hfd_resource_stored(w->request->resource), w->path,
                                               &reply->kvs[0]);
                if (!object) {
                        hfd_write_reply_unreadable_kv(w, &reply->kvs[0]);
                        return;
                }
        }
        hfd_write_set_current(w, object);
        if (!hfd_write_admit_refused(w, object))
                hfd_write_attempt(w);
}

void hfd_write_refetch(struct hfd_write *w) {
        int r;

        assert(w->key && !w->fresh && !w->awaiting);
        hfd_write_await(w);
        r = hfd_store_request_get(w->registry->cacher, w->key, w->request->resource->term_record,
                                  w->request->deadline, on_refetched, w);
        if (r != 0) { /* on_refetched is not called */
                w->awaiting = false;
                hfd_write_reply_store_error(w, r, NULL);
        }
}
