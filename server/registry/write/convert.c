/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversions during a write (convert.h). Invariant: while the webhook is called, the write waits
 * as for the store, and only the callback may use it.
 */
#include "server/registry/write/convert.h"

#include <assert.h>
#include <string.h>

#include "base/json.h"
#include "server/registry/convert/convert.h"
#include "server/registry/write/admit.h"
#include "server/registry/write/defer.h"
#include "server/registry/write/reply.h"
#include "server/resources/forms/conversion.h"
#include "server/resources/objects/custom_object.h"

static void on_converted(void *ctx, const struct hfd_response *failure) {
        struct hfd_write *w = ctx;

        assert(w->awaiting);
        w->awaiting = false;
        if (failure)
                hfd_write_reply_copy(w, failure);
        else
                w->resume(w);
}

/* True: *object has the version of row. False: resume follows, or the response was sent. */
static bool convert_object(struct hfd_write *w, const struct hfd_resource *row,
                           struct hfd_object **object, void (*resume)(struct hfd_write *w)) {
        const struct hfd_convert job = {.row = row,
                                        .objects = object,
                                        .n = 1,
                                        .deadline = w->request->deadline,
                                        .owner = w->request->owner,
                                        .done = on_converted,
                                        .ctx = w};
        bool on_pool = w->on_pool;

        w->resume = resume;
        hfd_write_await(w);
        if (!hfd_convert_start(w->registry, &job))
                return false;
        w->awaiting = false;
        w->on_pool = on_pool;
        return true;
}

/* ---- before an attempt ---- */

bool hfd_write_convert_current(struct hfd_write *w) {
        const struct hfd_resource *row = w->request->resource;

        if (!w->current || w->converted || !hfd_conversion_is_pending(row, w->current))
                return true;
        /* A delete changes metadata only. */
        if (w->request->verb == HFD_DELETE_OBJECT && !hfd_write_admit_wants(w))
                return true;
        w->converted = hfd_object_ref(w->current);
        return convert_object(w, row, &w->converted, hfd_write_attempt);
}

bool hfd_write_form_current(struct hfd_write *w) {
        const struct hfd_resource *row = w->request->resource;

        if (!hfd_conversion_is_pending(row, w->current))
                return true;
        /* The object may have the form of an older definition. It keeps its version, so that no
         * webhook is needed. */
        struct hfd_object *formed = hfd_conversion_object(row, w->current);
        if (!formed) {
                hfd_write_reply_no_memory(w);
                return false;
        }
        hfd_object_unref(w->current);
        w->current = formed;
        return true;
}

bool hfd_write_moves_version(const struct hfd_write *w) {
        const struct hfd_resource *stored = hfd_resource_stored(w->request->resource);

        return hfd_conversion_is_pending(stored, w->current);
}

/* ---- before the commit ---- */

/* Whether the update leaves the object as it is in the store. */
static bool is_unchanged(const struct hfd_write *w) {
        const struct hfd_object *current = w->current;

        return current && !current->stale && !current->has_origin && !hfd_write_moves_version(w) &&
               hfd_object_has_bytes(current, w->stored);
}

/* Sets w->stored to the object that the webhook has made, with the defaults of its version. */
static void finish_stored(struct hfd_write *w) {
        const struct hfd_resource *row = hfd_resource_stored(w->request->resource);

        /* A large object must not be parsed on this thread. */
        if (hfd_write_must_defer(w)) {
                hfd_write_defer(w, finish_stored);
                return;
        }
        hf__buf_unref(w->stored);
        w->stored = hfd_custom_object_bytes(row, w->to_store->bytes);
        w->to_store = hfd_object_unref(w->to_store);
        if (!w->stored) {
                hfd_write_reply_no_memory(w);
                return;
        }
        if (is_unchanged(w)) {
                w->unchanged = true;
                w->stored = hf__buf_unref(w->stored);
        }
        w->next(w);
}

void hfd_write_convert_stored(struct hfd_write *w, void (*next)(struct hfd_write *w)) {
        const struct hfd_resource *row = w->request->resource, *stored = hfd_resource_stored(row);

        if (!w->stored || row == stored || !hfd_conversion_is_elsewhere(row)) {
                next(w);
                return;
        }
        assert(!w->to_store);
        w->to_store = hfd_object_new(row, w->path, 0, w->stored);
        if (!w->to_store) {
                hfd_write_reply_no_memory(w);
                return;
        }
        w->next = next;
        if (convert_object(w, stored, &w->to_store, finish_stored))
                finish_stored(w);
}

/* ---- for the response ---- */

void hfd_write_convert_shown(struct hfd_write *w, struct hfd_object *object,
                             void (*next)(struct hfd_write *w)) {
        assert(!w->to_show);
        w->to_show = hfd_object_ref(object);
        if (convert_object(w, w->request->resource, &w->to_show, next))
                next(w);
}
