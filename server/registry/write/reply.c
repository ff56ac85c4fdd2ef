/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The response of a write, and its end: everything that the write owns is freed before the request
 * is answered, because the caller may free the request at once.
 */
#include "server/registry/write/reply.h"

#include <assert.h>
#include <stdlib.h>

#include "base/json.h"

void hfd_write_reply(struct hfd_write *w, struct hfd_response *response) {
        struct hfd_request *request = w->request;

        response->fence_compared = w->fence_compared;
        hf__json_free(w->sent);
        hf__json_free(w->object);
        hfd_object_unref(w->current);
        hf__buf_unref(w->stored);
        hf__buf_unref(w->epoch);
        hf__buf_unref(w->last);
        free(w->key);
        free(w->fence);
        free(w);
        request->done(request, response);
        hfd_response_done(response);
}

void hfd_write_reply_no_memory(struct hfd_write *w) {
        struct hfd_response response = {0};

        hfd_response_no_memory(&response);
        hfd_write_reply(w, &response);
}

void hfd_write_reply_store_error(struct hfd_write *w, int error, const struct hf_status *status) {
        struct hfd_response response = {0};

        hfd_response_store_error(&response, error, status);
        hfd_write_reply(w, &response);
}

/* object is borrowed. */
static void reply_object(struct hfd_write *w, int code, struct hfd_object *object) {
        struct hfd_response response = {0};

        hfd_response_ok(&response, code, object ? hf__buf_ref(object->bytes) : NULL);
        hfd_write_reply(w, &response);
}

void hfd_write_reply_stale_term(struct hfd_write *w) {
        struct hfd_response response = {0};

        hfd_response_stale_term(&response, w->request->resource, hfd_write_name(w));
        hfd_write_reply(w, &response);
}

static int success_code(const struct hfd_write *w) {
        /* Who asked for the dependents' deletion in the older words is told that more is to come.
         */
        if (w->request->verb == HFD_DELETE_ONE && w->request->options.has_orphan &&
            !w->request->options.orphan)
                return 202;
        return w->created ? 201 : 200;
}

void hfd_write_reply_committed(struct hfd_write *w, uint64_t revision) {
        struct hfd_response response = {0};
        struct hfd_object *object;

        if (w->unchanged) {
                reply_object(w, success_code(w), w->current);
                return;
        }
        if (!w->stored && !w->last) {
                struct hf__json *old = hfd_object_parse(w->current);
                hfd_response_deleted(&response, w->request->resource, w->request->name,
                                     hf__json_string(old, "metadata.uid"));
                hf__json_free(old);
                hfd_write_reply(w, &response);
                return;
        }
        object = hfd_object_new(w->request->resource, w->path, revision,
                                w->stored ? w->stored : w->last);
        if (object && w->stored && !w->request->options.dry_run)
                hfd_cacher_note_write(w->registry->cacher, object);
        reply_object(w, success_code(w), object);
        hfd_object_unref(object);
}
