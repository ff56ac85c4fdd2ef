/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deletecollection: one list of what is selected, then a delete of each, as if it had been asked
 * for by itself: with the same options, fenced as the call is, by the optimistic loop of
 * write/write.c. Only what was listed is deleted: one that was made anew under its name meanwhile
 * stays. WIDTH of them are under way at a time. What is gone by then is passed over; the first
 * failure ends it, and is the answer; what was deleted before stays deleted. The answer lists what
 * was deleted, and has to hold it, which the cache no longer does. Where more than ANSWER_MAX_BYTES
 * are selected each object is let go once it is deleted, and the answer is a Status, which is what
 * the field's OpenAPI says, and what its clients take as well.
 *
 *      list -> pump: start deletes while there is room <-- each delete's answer -> the last one:
 * answer
 *
 * Whoever finds nobody pumping pumps, in a loop and not by recursion, for a delete may be answered
 * before its start returns. The sweep is freed by the one who pumps and finds nothing left and
 * nothing under way.
 */
#include "server/registry/delete_collection.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/thread.h"
#include "client/json_span.h"
#include "server/cacher/store_identity.h"
#include "server/cacher/store_request.h"
#include "server/registry/delete_options.h"
#include "server/registry/list.h"
#include "server/registry/read.h"
#include "server/registry/write/body.h"
#include "server/storage/term_record.h"

#define WIDTH            16
#define ANSWER_MAX_BYTES ((size_t)8 << 20)

struct sweep;

/* One delete under way. */
struct slot {
        struct hfd_request request; /* first: done is given this */
        struct sweep *sweep;        /* borrowed: contains this */
        struct slot *next;          /* the sweep's while free */
        size_t index;               /* of the object */
};

struct sweep {
        struct hfd_request list; /* first: take is given this */
        struct hfd_registry *registry;
        struct hfd_request *request; /* the adapter's until done */
        struct hfd_object **objects; /* owned, with its references; one that the answer is without
                                        becomes NULL */
        size_t n;
        bool lists;        /* the answer has what was deleted */
        uint64_t revision; /* of the list */
        struct hfd_fence_compares fence;

        pthread_mutex_t mu;
        /* guarded by mu */
        size_t next, n_running;
        bool pumping, failed, compared;
        struct hfd_response failure; /* owned; the first */
        struct slot slots[WIDTH], *free;
};

static void answer_and_free(struct sweep *sweep, struct hfd_response *response) {
        struct hfd_request *request = sweep->request;

        for (size_t i = 0; i < sweep->n; i++)
                hfd_object_unref(sweep->objects[i]);
        free(sweep->objects);
        hfd_response_done(&sweep->failure);
        pthread_mutex_destroy(&sweep->mu);
        free(sweep);
        request->done(request, response);
        hfd_response_done(response);
}

static void succeed(struct sweep *sweep) {
        struct hfd_response response = {.fence_compared = sweep->compared};
        char meta[64];
        size_t n = 0;

        if (!sweep->lists) {
                hfd_response_deleted(&response, sweep->request->resource, NULL, NULL);
                answer_and_free(sweep, &response);
                return;
        }
        for (size_t i = 0; i < sweep->n; i++)
                if (sweep->objects[i])
                        sweep->objects[n++] = sweep->objects[i];
        sweep->n = n;
        (void)snprintf(meta, sizeof meta, "\"resourceVersion\":\"%" PRIu64 "\"", sweep->revision);
        hfd_response_ok(&response, 200,
                        hfd_list_render(sweep->registry, sweep->request, sweep->objects, n, meta));
        answer_and_free(sweep, &response);
}

static void fail(struct sweep *sweep) {
        struct hfd_response response = sweep->failure;

        sweep->failure.body = NULL; /* consumed */
        response.fence_compared |= sweep->compared;
        answer_and_free(sweep, &response);
}

/* ---- a fenced call that deleted nothing: the fence is compared all the same ---- */

static void on_fence(void *ctx, const struct hfd_store_reply *reply) {
        struct sweep *sweep = ctx;

        sweep->compared = !reply->error || reply->error == HF_E_CONFLICT;
        if (!reply->error) {
                succeed(sweep);
                return;
        }
        if (reply->error == HF_E_CONFLICT)
                hfd_response_stale_term(&sweep->failure, sweep->request->resource, "");
        else /* it only compares: nothing was written, whatever became of it */
                hfd_response_store_error(&sweep->failure,
                                         reply->error == HF_E_TIMEOUT ? HF_E_UNAVAILABLE
                                                                      : reply->error,
                                         &reply->status);
        fail(sweep);
}

static void compare_fence(struct sweep *sweep) {
        const struct hfd_txn txn = {.compares = sweep->fence.compares,
                                    .n_compares = 2 * sweep->fence.n_leases};
        int r = 0;

        if (hfd_store_identity_settling(
                    sweep->registry->cacher)) { /* as a delete would have been told */
                sweep->compared = true;
                hfd_response_stale_term(&sweep->failure, sweep->request->resource, "");
                fail(sweep);
                return;
        }
        r = hfd_store_request_txn(sweep->registry->cacher, &txn, sweep->request->deadline, on_fence,
                                  sweep);
        if (r != 0) {
                hfd_response_store_error(&sweep->failure, r, NULL);
                fail(sweep);
        }
}

/* ---- the deletes ---- */

static void finish(struct sweep *sweep) {
        if (sweep->failed)
                fail(sweep);
        else if (sweep->request->fence && !sweep->compared)
                compare_fence(sweep);
        else
                succeed(sweep);
}

static void copy_uid(const struct hfd_object *object, char uid[64]) {
        struct hf__span text = {object->bytes->data, object->bytes->n};

        *uid = '\0';
        if (hf__span_member(text, "metadata", &text) && hf__span_member(text, "uid", &text) &&
            text.n > 2 && text.n - 2 < 64)
                (void)snprintf(uid, 64, "%.*s", (int)(text.n - 2), text.data + 1);
}

/* The next delete, filled in; NULL: no room, nothing left, or no more wanted. */
static struct slot *next_locked(struct sweep *sweep) {
        struct slot *slot = sweep->free;
        const struct hfd_options *o = &sweep->request->options;

        if (!sweep->failed && sweep->next < sweep->n &&
            hfd_registry_now(sweep->registry) >= sweep->request->deadline) {
                sweep->failed = true;
                hfd_response_status(&sweep->failure, HF_E_TIMEOUT, 504, "Timeout",
                                    "Timeout: request did not complete within the allotted time: "
                                    "not "
                                    "all of the collection is deleted",
                                    NULL);
        }
        if (!slot || sweep->failed || sweep->next == sweep->n)
                return NULL;
        sweep->free = slot->next;
        sweep->n_running++;
        slot->index = sweep->next++;
        struct hfd_object *object = sweep->objects[slot->index];
        slot->request.options = (struct hfd_options){.dry_run = o->dry_run,
                                                     .propagation = o->propagation,
                                                     .has_orphan = o->has_orphan,
                                                     .orphan = o->orphan};
        (void)snprintf(slot->request.ns, sizeof slot->request.ns, "%.*s", (int)object->n_ns,
                       object->path);
        (void)snprintf(slot->request.name, sizeof slot->request.name, "%s", object->name);
        copy_uid(object, slot->request.only_uid);
        return slot;
}

/* Called with mu held, returns without it, and perhaps without the sweep. */
static void pump_unlock(struct sweep *sweep) {
        struct slot *slot;

        if (sweep->pumping) {
                pthread_mutex_unlock(&sweep->mu);
                return;
        }
        sweep->pumping = true;
        while ((slot = next_locked(sweep))) {
                pthread_mutex_unlock(&sweep->mu);
                hfd_write_start(sweep->registry, &slot->request);
                pthread_mutex_lock(&sweep->mu);
        }
        sweep->pumping = false;
        bool over = !sweep->n_running && (sweep->failed || sweep->next == sweep->n);
        pthread_mutex_unlock(&sweep->mu);
        if (over)
                finish(sweep);
}

static void on_deleted(struct hfd_request *request, const struct hfd_response *response) {
        struct slot *slot = (struct slot *)request;
        struct sweep *sweep = slot->sweep;

        pthread_mutex_lock(&sweep->mu);
        sweep->compared |= response->fence_compared;
        if (response->status.error || !sweep->lists)
                sweep->objects[slot->index] = hfd_object_unref(sweep->objects[slot->index]);
        if (response->status.error && response->status.error != HF_E_NOT_FOUND && !sweep->failed) {
                sweep->failed = true;
                sweep->failure = *response;
                if (response->body)
                        hf__buf_ref(response->body);
        }
        slot->next = sweep->free;
        sweep->free = slot;
        sweep->n_running--;
        pump_unlock(sweep);
}

static void on_selected(struct hfd_request *list, struct hfd_object **objects, size_t n,
                        uint64_t revision) {
        struct sweep *sweep = (struct sweep *)list;
        size_t n_bytes = 0;

        for (size_t i = 0; i < n && n_bytes <= ANSWER_MAX_BYTES; i++)
                n_bytes += objects[i]->bytes->n + 1;
        pthread_mutex_lock(&sweep->mu);
        sweep->lists = n_bytes <= ANSWER_MAX_BYTES;
        sweep->objects = objects;
        sweep->n = n;
        sweep->revision = revision;
        pump_unlock(sweep);
}

static void on_list_failed(struct hfd_request *list, const struct hfd_response *response) {
        struct sweep *sweep = (struct sweep *)list;

        sweep->failure = *response;
        if (response->body)
                hf__buf_ref(response->body);
        fail(sweep);
}

/* ---- start ---- */

/* False: answer is filled. */
static bool check(struct hfd_request *request, struct hfd_response *response) {
        struct hf__json *sent = NULL;

        if (request->resource->no_delete_collection ||
            (request->resource->namespaced && !*request->ns)) {
                hfd_response_not_allowed(response);
                return false;
        }
        bool good = (!request->n_body ||
                     hfd_write_body_parse(request, "DeleteOptions", &sent, response)) &&
                    hfd_delete_options_read(&request->options, sent, response);
        hf__json_free(sent);
        return good;
}

static struct sweep *sweep_new(struct hfd_registry *registry, struct hfd_request *request) {
        struct sweep *sweep = calloc(1, sizeof *sweep);

        if (!sweep || hf__mutex_init(&sweep->mu)) {
                free(sweep);
                return NULL;
        }
        sweep->registry = registry;
        sweep->request = request;
        sweep->list = (struct hfd_request){.verb = HFD_LIST,
                                           .resource = request->resource,
                                           .deadline = request->deadline,
                                           .done = on_list_failed};
        sweep->list.options = request->options; /* borrowed: the list does not free them */
        memcpy(sweep->list.ns, request->ns, sizeof request->ns);
        for (size_t i = 0; i < WIDTH; i++) {
                struct slot *slot = &sweep->slots[i];
                slot->request = (struct hfd_request){.verb = HFD_DELETE_ONE,
                                                     .resource = request->resource,
                                                     .body = request->body,
                                                     .n_body = request->n_body,
                                                     .fence = request->fence,
                                                     .deadline = request->deadline,
                                                     .done = on_deleted};
                slot->sweep = sweep;
                slot->next = sweep->free;
                sweep->free = slot;
        }
        return sweep;
}

void hfd_delete_collection(struct hfd_registry *registry, struct hfd_request *request) {
        struct hfd_response response = {0};
        struct sweep *sweep = NULL;
        int r = 0;

        if (check(request, &response)) {
                sweep = sweep_new(registry, request);
                if (!sweep)
                        hfd_response_no_memory(&response);
                else if (request->fence &&
                         (r = hfd_fence_compares(&sweep->fence, registry->prefix, request->fence)))
                        hfd_response_store_error(&response, r, NULL);
        }
        if (sweep && r == 0) {
                hfd_list_for(registry, &sweep->list, on_selected);
                return;
        }
        if (sweep)
                pthread_mutex_destroy(&sweep->mu);
        free(sweep);
        request->done(request, &response);
        hfd_response_done(&response);
}
