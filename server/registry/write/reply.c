/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The response to a write, which ends it.
 *
 * Invariant: everything that the write owns is freed before request->done is called, because done
 * may free the request, from which the write borrows.
 */
#include "server/registry/write/reply.h"

#include <assert.h>
#include <stdlib.h>

#include "base/json.h"
#include "server/cacher/sync/slot_forms.h"
#include "server/registry/write/admit.h"
#include "server/registry/write/convert.h"
#include "server/registry/write/quota_turn.h"
#include "server/resources/forms/conversion.h"
#include "server/resources/objects/custom_object.h"
#include "server/resources/packed.h"
#include "server/storage/sealed.h"

void hfd_write_reply(struct hfd_write *w, struct hfd_response *response) {
        struct hfd_request *request = w->request;

        assert(!w->awaiting);
        assert(response->code != 0);
        response->fence_compared = w->fence_compared;
        struct hfd_write *next = hfd_write_quota_turn_done(w);
        hf__json_free(w->body);
        hf__json_free(w->object);
        hf__json_free(w->old);
        hfd_write_admit_done(w);
        hfd_write_admit_forget(w);
        hfd_object_unref(w->current);
        hfd_object_unref(w->converted);
        hfd_object_unref(w->to_store);
        hfd_object_unref(w->to_show);
        hf__buf_unref(w->stored);
        hf__buf_unref(w->epoch);
        hf__buf_unref(w->last);
        free(w->key);
        free(w->fence);
        free(w);
        request->done(request, response);
        hfd_response_done(response);
        /* Last, because it may carry out other writes. */
        hfd_write_quota_turn_resume(next);
}

void hfd_write_reply_copy(struct hfd_write *w, const struct hfd_response *response) {
        struct hfd_response copy = *response;

        hf__buf_ref(copy.body);
        hfd_write_reply(w, &copy);
}

/* ---- failures ---- */

void hfd_write_reply_no_memory(struct hfd_write *w) {
        struct hfd_response response = {0};

        hfd_response_no_memory(&response);
        hfd_write_reply(w, &response);
}

/* value: not packed (packed.h). */
static void reply_unreadable(struct hfd_write *w, const char *key, const struct hf__buf *value) {
        struct hfd_response response = {0};

        if (hfd_object_check(hfd_resource_stored(w->request->resource), value) == HF_E_INVALID)
                hfd_response_unreadable(&response, key);
        else
                hfd_response_no_memory(&response);
        hfd_write_reply(w, &response);
}

void hfd_write_reply_unreadable_kv(struct hfd_write *w, const struct hfd_kv *kv) {
        struct hfd_response response = {0};
        const char *why = hfd_kv_sealed(kv);

        if (!why) {
                reply_unreadable(w, kv->key, kv->value);
                return;
        }
        hfd_response_sealed(&response, kv->key, why);
        hfd_write_reply(w, &response);
}

void hfd_write_reply_unreadable_current(struct hfd_write *w) {
        struct hf__buf *bytes = hfd_unpack(w->current->bytes);

        if (bytes)
                reply_unreadable(w, w->key, bytes);
        else
                hfd_write_reply_no_memory(w);
        hf__buf_unref(bytes);
}

void hfd_write_reply_store_error(struct hfd_write *w, int error, const struct hf_status *status) {
        struct hfd_response response = {0};

        assert(error != 0);
        hfd_response_store_error(&response, error, status);
        hfd_write_reply(w, &response);
}

void hfd_write_reply_forbidden(struct hfd_write *w, const char *why) {
        struct hfd_response response = {0};

        hfd_response_forbidden(&response, w->request->resource, hfd_write_name(w), why, NULL);
        hfd_write_reply(w, &response);
}

void hfd_write_reply_stale_term(struct hfd_write *w) {
        struct hfd_response response = {0};

        assert(w->fence);
        hfd_response_stale_term(&response, w->request->resource, hfd_write_name(w));
        hfd_write_reply(w, &response);
}

/* ---- success ---- */

static int success_code(const struct hfd_write *w) {
        const struct hfd_options *o = &w->request->options;

        /* As in Kubernetes, 202 if orphanDependents=false and the object still exists, because it
         * has finalizers. For an object that was removed at once, reply_deleted sends 200. */
        if (w->request->verb == HFD_DELETE_OBJECT && o->has_orphan && !o->orphan)
                return 202;
        return w->created ? 201 : 200;
}

/* The object was deleted; the response is a Status. */
static void reply_deleted(struct hfd_write *w) {
        struct hfd_response response = {0};
        struct hf__json *old = hfd_object_parse(w->current);

        hfd_response_deleted(&response, w->request->resource, w->request->name,
                             hf__json_string(old, "metadata.uid"));
        hf__json_free(old);
        hfd_write_reply(w, &response);
}

/* object is borrowed, and has the version of the request if a webhook converts the kind; NULL: out
 * of memory. */
static void show_object(struct hfd_write *w, struct hfd_object *object) {
        struct hfd_object *converted = hfd_conversion_object(w->request->resource, object);
        struct hfd_response response = {0};

        hfd_response_ok(&response, success_code(w),
                        converted ? hf__buf_ref(converted->bytes) : NULL);
        hfd_object_unref(converted);
        hfd_write_reply(w, &response);
}

/* The webhook has converted the object of the response. */
static void show_converted(struct hfd_write *w) { show_object(w, w->to_show); }

/* The write is one of the deletes of a deletecollection, which needs no object in the response. So
 * no webhook is asked to convert one: its failure would make the delete look failed. */
static void reply_done(struct hfd_write *w) {
        struct hfd_response response = {0};

        hfd_response_deleted(&response, w->request->resource, NULL, NULL);
        hfd_write_reply(w, &response);
}

/* object is borrowed; NULL: out of memory. */
static void reply_object(struct hfd_write *w, struct hfd_object *object) {
        if (w->request->of_collection)
                reply_done(w);
        else if (object && hfd_conversion_is_pending(w->request->resource, object))
                hfd_write_convert_shown(w, object, show_converted);
        else
                show_object(w, object);
}

/* A dry run of a create: an object that is not stored has no resourceVersion. */
static void reply_not_stored(struct hfd_write *w) {
        const struct hfd_resource *resource = w->request->resource;
        struct hfd_response response = {0};

        hfd_response_ok(&response, success_code(w),
                        hfd_resource_stored(resource) != resource
                                ? hfd_object_encode(resource, w->object)
                                : hf__buf_ref(w->stored));
        hfd_write_reply(w, &response);
}

/* The object as it was written or, after a delete, as it was last. NULL = out of memory. */
static struct hfd_object *make_written(struct hfd_write *w, uint64_t revision) {
        const struct hfd_resource *stored = hfd_resource_stored(w->request->resource);
        struct hf__buf *bytes = w->stored ? w->stored : w->last;

        const struct hfd_resource *form = hfd_slot_form_of(w->registry->cacher, stored);
        /* If a webhook converts the kind, the version is read from the bytes. */
        struct hfd_object *object = hfd_conversion_is_elsewhere(form)
                                            ? hfd_custom_object_new(form, w->path, revision, bytes)
                                            : hfd_object_new(form, w->path, revision, bytes);
        hfd_resource_unref(form);
        return object;
}

void hfd_write_reply_committed(struct hfd_write *w, uint64_t revision) {
        struct hfd_object *object;

        if (w->unchanged) {
                reply_object(w, w->converted ? w->converted : w->current);
                return;
        }
        if (!w->stored && !w->last) {
                reply_deleted(w);
                return;
        }
        if (w->created && w->request->options.dry_run) {
                reply_not_stored(w);
                return;
        }
        object = make_written(w, revision);
        /*
         * The next write of this instance can then use the new version of a changed object before
         * the store's watch delivers it, which avoids a conflict.
         */
        if (object && w->stored && !w->request->options.dry_run)
                hfd_cacher_record_write(w->registry->cacher, object);
        reply_object(w, object);
        hfd_object_unref(object);
}
