/* SPDX-License-Identifier: Apache-2.0 */
/*
 * create, update, delete: the optimistic loop of apiserver.md 4, one transaction in the normal
 * case.
 *
 *      start -> attempt [-> namespace?] -> commit -> done
 *                                       ^  |        |
 *                               refetch +--+        +-- conflict: adopt what the transaction read,
 * attempt again
 *
 * An attempt works on w->current: the newest version the cache knows (not fresh: a refusal that
 * rests on it is checked against the store first), or what the store said (fresh). A transaction
 * compares the object's mod revision, and for a fenced call the term record (design 6); with a
 * Lease it writes the term record whenever holder or acquireTime change. An update that changes
 * nothing is a transaction with compares only: it writes nothing and is known to be still true.
 *
 * A write belongs to the thread that drives it; the store hands it from one to the next. Trees are
 * freed by the thread that made them, before the transaction is sent; an attempt after the first,
 * which is rare, parses the body once more.
 */
#include "server/registry/write/write.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/time_format.h"
#include "server/cacher/store_request.h"
#include "server/registry/write/body.h"
#include "server/registry/write/delete.h"
#include "server/registry/write/fence.h"
#include "server/registry/write/reply.h"
#include "server/registry/write/update.h"

/* ---- start ---- */

int hfd_write_make_key(struct hfd_write *w) {
        char key[HFD_KEY_MAX];
        int r = hfd_object_key(w->registry->prefix, w->request->resource, w->path, key);

        free(w->key);
        w->key = r != 0 ? NULL : strdup(key);
        return r != 0 || w->key ? r : -ENOMEM;
}

/* Whatever its state, it is not deleted. True: answer is filled. */
static bool is_immortal(const struct hfd_request *request, struct hfd_response *response) {
        if (request->verb != HFD_DELETE_ONE || request->resource != hfd_resource_namespaces() ||
            !hfd_is_system_namespace(request->name))
                return false;
        hfd_response_forbidden(response, request->resource, request->name,
                               "this namespace may not be deleted", NULL);
        return true;
}

void hfd_write_start(struct hfd_registry *registry, struct hfd_request *request) {
        struct hfd_write *w = malloc(sizeof *w);
        struct hfd_response response = {0};
        int r = 0;

        if (!w) {
                hfd_response_no_memory(&response);
                request->done(request, &response);
                hfd_response_done(&response);
                return;
        }
        *w = (struct hfd_write){.registry = registry, .request = request};
        if (is_immortal(request, &response) || !hfd_write_body_take(w, &response)) {
                hfd_write_reply(w, &response);
                return;
        }
        if (request->fence)
                r = hfd_write_fence_make(w);
        if (r == 0 && request->verb != HFD_CREATE) {
                bool synced;
                hfd_object_path(request->resource, request->ns, request->name, w->path);
                r = hfd_write_make_key(w);
                if (r == 0)
                        w->current = hfd_cacher_newest(registry->cacher, request->resource, w->path,
                                                       &synced);
        }
        if (r != 0)
                hfd_write_reply_store_error(w, r, NULL);
        else
                hfd_write_attempt(w);
}

/* ---- the loop ---- */

const char *hfd_write_name(const struct hfd_write *w) {
        const char *name = hf__json_string(w->object, "metadata.name"),
                   *slash = strrchr(w->path, '/');

        if (*w->request->name || (!name && !*w->path))
                return w->request->name;
        return name ? name : slash ? slash + 1 : w->path;
}

void hfd_write_attempt(struct hfd_write *w) {
        struct hfd_response response = {0};

        /* Others may win many times over on a busy object; what ends the loop is the call's own
         * deadline. Nothing was written. */
        if (w->tries++ && hfd_registry_now(w->registry) >= w->request->deadline) {
                hfd_response_conflict(&response, w->request->resource, hfd_write_name(w), NULL);
                hfd_write_reply(w, &response);
        } else if (!w->sent && !hfd_write_body_take(w, &response)) {
                hfd_write_reply(w, &response);
        } else if (w->request->verb == HFD_CREATE) {
                hfd_write_update_create(w);
        } else if (w->request->verb == HFD_UPDATE || w->request->verb == HFD_PATCH) {
                hfd_write_update_attempt(w);
        } else {
                hfd_write_delete_attempt(w);
        }
}

/* ---- what the store says now ---- */

void hfd_write_adopt(struct hfd_write *w, struct hfd_object *current) {
        hfd_object_unref(w->current);
        w->current = current;
        w->fresh = true;
}

static void on_refetched(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_write *w = ctx;
        struct hfd_object *object = NULL;

        if (reply->error) { /* a read: nothing was written, whatever became of it */
                hfd_write_reply_store_error(w,
                                            reply->error == HF_E_TIMEOUT ? HF_E_UNAVAILABLE
                                                                         : reply->error,
                                            &reply->status);
                return;
        }
        if (reply->n_kvs) {
                object = hfd_object_new(w->request->resource, w->path, reply->kvs[0].mod_revision,
                                        reply->kvs[0].value);
                if (!object) {
                        hfd_write_reply_no_memory(w);
                        return;
                }
        }
        hfd_write_adopt(w, object);
        hfd_write_attempt(w);
}

void hfd_write_refetch(struct hfd_write *w) {
        int r = hfd_store_request_get(w->registry->cacher, w->key, w->request->deadline,
                                      on_refetched, w);

        if (r != 0)
                hfd_write_reply_store_error(w, r, NULL);
}

void hfd_write_precondition_failed(struct hfd_write *w, const char *what, const char *wanted,
                                   const char *found) {
        struct hfd_response response = {0};
        char why[1500];

        if (!w->fresh) {
                hfd_write_refetch(w);
                return;
        }
        (void)snprintf(why, sizeof why,
                       "StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, "
                       "AdditionalErrorMsg: Precondition failed: %s in "
                       "precondition: %.100s, %s in object meta: %.100s",
                       w->key, what, wanted, what, found);
        hfd_response_conflict(&response, w->request->resource, w->request->name, why);
        hfd_write_reply(w, &response);
}
