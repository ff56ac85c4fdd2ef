/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of a write, and its loop. write.h describes the model.
 *
 * Invariants: A write is refused only because of a version that the store has returned, not
 * because of the cacher's version, which may be old (a create in a dry run is the exception). The
 * loop stops at the request's deadline, because on a busy object other writes may win every time.
 *
 * An update that changes nothing still sends a transaction, with compares only, unless it is a dry
 * run: it writes nothing, and its success proves that the version in the response is the current
 * one.
 */
#include "server/registry/write/write.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/cacher/requests/store_request.h"
#include "server/registry/write/admit.h"
#include "server/registry/write/body.h"
#include "server/registry/write/convert.h"
#include "server/registry/write/defer.h"
#include "server/registry/write/delete.h"
#include "server/registry/write/fence.h"
#include "server/registry/write/reply.h"
#include "server/registry/write/update.h"
#include "server/resources/forms/conversion.h"
#include "server/resources/objects/stored_object.h"
#include "server/resources/rows/resource_table.h"
#include "server/resources/strategies/strategies.h"

/* ---- start ---- */

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

/* The system's namespaces and priority classes can never be deleted. True: response is filled. */
static bool refuse_system_object(const struct hfd_request *request, struct hfd_response *response) {
        const struct hfd_resource *resource = request->resource;
        const char *why = NULL;

        if (request->verb != HFD_DELETE_OBJECT)
                return false;
        if (resource == hfd_resource_namespaces() && hfd_is_system_namespace(request->name))
                why = "this namespace may not be deleted";
        else if (resource->validate == hfd_priority_class_validate &&
                 hfd_is_system_priority_class(request->name))
                why = "this is a system priority class and cannot be deleted";
        if (why)
                hfd_response_forbidden(response, resource, request->name, why, NULL);
        return why != NULL;
}

/*
 * Sets path, key and current. Not for a create, whose name is not known yet. 0, -ENOMEM or
 * HF_E_TOO_LARGE.
 */
static int load_current(struct hfd_write *w) {
        const struct hfd_request *request = w->request;
        bool synced; /* unused: if the object is not cached, the attempt reads the store */
        int r;

        hfd_object_path(request->resource, request->ns, request->name, w->path);
        r = hfd_write_make_key(w);
        if (r == 0)
                w->current =
                        hfd_cacher_newest(w->registry->cacher,
                                          hfd_resource_stored(request->resource), w->path, &synced);
        return r;
}

/* Reads the body, and makes the first attempt. */
static void begin_write(struct hfd_write *w) {
        const struct hfd_request *request = w->request;
        struct hfd_response response = {0};
        int r = 0;

        if (!hfd_write_body_read(w, &response)) {
                hfd_write_reply(w, &response);
                return;
        }
        if (request->fence)
                r = hfd_write_fence_init(w);
        if (r == 0 && request->verb != HFD_CREATE)
                r = load_current(w);
        if (r != 0)
                hfd_write_reply_store_error(w, r, NULL);
        else
                hfd_write_attempt(w);
}

void hfd_write_start(struct hfd_registry *registry, struct hfd_request *request) {
        struct hfd_write *w = malloc(sizeof *w);
        struct hfd_response response = {0};

        assert(request->resource && request->done);
        if (!w) {
                hfd_response_no_memory(&response);
                request->done(request, &response);
                hfd_response_done(&response);
                return;
        }
        *w = (struct hfd_write){.registry = registry,
                                .request = request,
                                .on_pool = request->on_pool};
        if (refuse_system_object(request, &response))
                hfd_write_reply(w, &response);
        else if (hfd_write_must_defer(w))
                hfd_write_defer(w, begin_write);
        else
                begin_write(w);
}

/* ---- the loop ---- */

const char *hfd_write_name(const struct hfd_write *w) {
        const char *name = hf__json_string(w->object, "metadata.name");
        const char *slash = strrchr(w->path, '/');

        if (*w->request->name)
                return w->request->name;
        if (name)
                return name;
        return slash ? slash + 1 : w->path;
}

void hfd_write_attempt(struct hfd_write *w) {
        struct hfd_response response = {0};

        assert(!w->awaiting_store);
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
        if (w->request->verb == HFD_CREATE)
                hfd_write_update_create(w);
        else if (w->request->verb == HFD_UPDATE || w->request->verb == HFD_PATCH)
                hfd_write_update_attempt(w);
        else
                hfd_write_delete_attempt(w);
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

        assert(w->awaiting_store);
        w->awaiting_store = false;
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

        assert(w->key && !w->fresh && !w->awaiting_store);
        hfd_write_await_store(w);
        r = hfd_store_request_get(w->registry->cacher, w->key, w->request->resource->term_record,
                                  w->request->deadline, on_refetched, w);
        if (r != 0) { /* on_refetched is not called */
                w->awaiting_store = false;
                hfd_write_reply_store_error(w, r, NULL);
        }
}

void hfd_write_precondition_failed(struct hfd_write *w, const char *wanted, const char *found) {
        struct hfd_response response = {0};
        char why[1500];

        if (!w->fresh) {
                hfd_write_refetch(w);
                return;
        }
        (void)snprintf(why, sizeof why,
                       "StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, "
                       "AdditionalErrorMsg: Precondition failed: UID in precondition: %.100s, UID "
                       "in object meta: %.100s",
                       w->key, wanted, found);
        hfd_response_conflict(&response, w->request->resource, w->request->name, why);
        hfd_write_reply(w, &response);
}
