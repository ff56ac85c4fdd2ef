/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of a write. write.h describes the model.
 *
 * Invariant: a refusal here needs no version of the object. Every other refusal is made by an
 * attempt, which knows whether its version is the newest one.
 */
#include "server/registry/write/steps/start.h"

#include <assert.h>
#include <stdlib.h>

#include "server/registry/write/body.h"
#include "server/registry/write/defer.h"
#include "server/registry/write/fence.h"
#include "server/registry/write/reply.h"
#include "server/registry/write/steps/delete.h"
#include "server/registry/write/steps/update.h"
#include "server/registry/write/write.h"
#include "server/resources/forms/conversion.h"
#include "server/resources/rows/resource_table.h"
#include "server/resources/strategies/strategies.h"

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

static void (*attempt_of(enum hfd_verb verb))(struct hfd_write *w) {
        if (verb == HFD_CREATE)
                return hfd_write_update_create;
        if (verb == HFD_UPDATE || verb == HFD_PATCH)
                return hfd_write_update_attempt;
        assert(verb == HFD_DELETE_OBJECT);
        return hfd_write_delete_attempt;
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
                                .attempt = attempt_of(request->verb),
                                .on_pool = request->on_pool};
        if (refuse_system_object(request, &response))
                hfd_write_reply(w, &response);
        else if (hfd_write_must_defer(w))
                hfd_write_defer(w, begin_write);
        else
                begin_write(w);
}
