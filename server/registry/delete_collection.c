/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deletecollection: lists the selected objects, then deletes each of them. A `sweep` is the state
 * of one such request.
 *
 *      list -> start deletes while a slot is free -> the last delete has ended: send the response
 *                ^                              |
 *                +----- a delete has ended -----+
 *
 * Each delete is a write like any other (write/), with the options and the fence of the request. At
 * most PARALLEL_MAX deletes run at a time, each in a slot. Objects that no longer exist are
 * skipped. The first failure stops the sweep and becomes its response, and the sweep stops when its
 * client leaves. Earlier deletes are not undone.
 *
 * The response lists the deleted objects. The cacher may no longer have them, so the sweep keeps
 * them. If the selected objects have more than LIST_MAX_BYTES, or a webhook would have to convert
 * them, each one is dropped once it is deleted, and the response is a Status. So the response never
 * depends on a conversion webhook. A delete depends on one only if admission must see its object.
 * Kubernetes' OpenAPI declares a Status, and its clients accept both.
 *
 * Invariants: only listed objects are deleted. If another client has replaced an object by a new
 * one of the same name, the new object has another uid and is kept. (An object that another program
 * has stored without a uid, or with one that is too long, is deleted by its name.) Only one thread
 * at a time starts deletes, in a loop: a delete may end before hfd_write_start returns, and a
 * recursion would then be as deep as the list is long. In a dry run all deletes may end in this
 * way. So after STEP_DELETES of them the loop goes on in the pool of threads. The thread that
 * leaves the loop ends the sweep if no delete is running then and none will start: either no object
 * remains, or the sweep has failed.
 */
#include "server/registry/delete_collection.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include "client/json_span.h"
#include "server/cacher/requests/store_identity.h"
#include "server/cacher/requests/store_request.h"
#include "server/pool/work_pool.h"
#include "server/registry/base/delete_options.h"
#include "server/registry/list/list.h"
#include "server/registry/list/read.h"
#include "server/registry/write/body.h"
#include "server/registry/write/steps/start.h"
#include "server/resources/forms/conversion.h"
#include "server/resources/packed.h"
#include "server/schema/strict.h"
#include "server/storage/term_record.h"

#define PARALLEL_MAX   16
#define LIST_MAX_BYTES ((size_t)8 << 20)
/* Deletes that are started without a pause: about a millisecond. */
#define STEP_DELETES 32

struct sweep;

/* One of the deletes that run in parallel. */
struct slot {
        struct hfd_request request; /* first member: done casts it back to the slot */
        struct sweep *sweep;        /* borrowed: contains this */
        struct slot *next;          /* in sweep->free_slots, while no delete uses the slot */
        size_t index;               /* of the object in sweep->objects */
};

struct sweep {
        struct hfd_request list; /* first member: on_selected casts it back to the sweep */

        /* Immutable after on_selected, until the sweep ends. */
        struct hfd_registry *registry;
        struct hfd_request *request; /* borrowed until done */
        /* The body of each delete: the members of the request's body that it needs; empty = none.
         */
        struct hf__strbuf body;
        struct hfd_fence_compares fence;
        size_t n;           /* objects */
        bool keeps_objects; /* the response will list them */
        uint64_t revision;  /* of the list */

        pthread_mutex_t mu;

        /* Guarded by mu, as are the notes of `request`, until the sweep ends. */
        struct hfd_object **objects; /* owned, with their references; NULL = not in the response */
        size_t next;                 /* the first object whose delete has not begun */
        size_t n_running;            /* running deletes */
        bool starting_deletes;       /* a thread is in the loop that starts deletes, or `task` is */
        bool failed;
        bool may_have_written; /* a delete ended in another way than not found or unavailable */
        /* A transaction has compared the fence, with either result, or a replacement of the store
         * is pending (compare_fence). */
        bool fence_compared;
        struct hfd_response failure; /* owned; the first failure, if failed */
        struct slot slots[PARALLEL_MAX], *free_slots;

        struct hfd_work_task task; /* goes on with the loop, in the pool */
};

/* ---- the response ---- */

static void respond_and_free(struct sweep *sweep, struct hfd_response *response) {
        struct hfd_request *request = sweep->request;

        assert(sweep->n_running == 0 && response->code != 0);
        for (size_t i = 0; i < sweep->n; i++)
                hfd_object_unref(sweep->objects[i]);
        free(sweep->objects);
        hfd_response_done(&sweep->failure);
        hf__strbuf_done(&sweep->body);
        pthread_mutex_destroy(&sweep->mu);
        free(sweep); /* before done, which may free the request that the sweep borrows */
        request->done(request, response);
        hfd_response_done(response);
}

static void respond_success(struct sweep *sweep) {
        struct hfd_response response = {.fence_compared = sweep->fence_compared};
        char meta[64];
        size_t n = 0;

        if (!sweep->keeps_objects) {
                hfd_response_deleted(&response, sweep->request->resource, NULL, NULL);
                respond_and_free(sweep, &response);
                return;
        }
        for (size_t i = 0; i < sweep->n; i++)
                if (sweep->objects[i])
                        sweep->objects[n++] = sweep->objects[i];
        sweep->n = n;
        (void)snprintf(meta, sizeof meta, "\"resourceVersion\":\"%" PRIu64 "\"", sweep->revision);
        hfd_response_ok(&response, 200,
                        hfd_list_render(sweep->registry, sweep->request, sweep->objects, n, meta));
        respond_and_free(sweep, &response);
}

/* Changes a failure so that it no longer says that nothing was written. Clients in this process
 * read that from HF_E_UNAVAILABLE, so they get HF_E_TIMEOUT, as clients over HTTP do
 * (client/status.c). Of the bodies only that of a 503 says it, with the cause NotApplied. */
static void remove_claim(struct hfd_response *failure) {
        const struct hf_status status = failure->status;
        const struct hfd_details details = {.retry_after_s = status.retry_after_s};
        char message[sizeof status.message + 64];

        failure->status.error = HF_E_TIMEOUT;
        if (failure->code != 503)
                return;
        (void)snprintf(message, sizeof message, "%s: not all of the collection is deleted",
                       status.message);
        hfd_response_done(failure);
        hfd_response_status(failure, HF_E_TIMEOUT, 503, status.reason, message, &details);
}

/* Responds with sweep->failure. If its error says that nothing was written, which is true of one
 * delete, it must be true of all of them: otherwise the outcome is unknown. */
static void respond_failure(struct sweep *sweep) {
        struct hfd_response response;

        if (sweep->may_have_written && sweep->failure.status.error == HF_E_UNAVAILABLE)
                remove_claim(&sweep->failure);
        response = sweep->failure;
        sweep->failure.body = NULL; /* consumed */
        response.fence_compared |= sweep->fence_compared;
        respond_and_free(sweep, &response);
}

/*
 * If the sweep has not failed, and no delete has compared the fence of the request, a separate
 * transaction compares it: a deposed leader must get an error even if there is nothing to delete.
 */

static void on_fence_compared(void *ctx, const struct hfd_store_reply *reply) {
        struct sweep *sweep = ctx;

        sweep->fence_compared = !reply->error || reply->error == HF_E_CONFLICT;
        if (!reply->error) {
                respond_success(sweep);
                return;
        }
        if (reply->error == HF_E_CONFLICT)
                hfd_response_stale_term(&sweep->failure, sweep->request->resource, "");
        else
                hfd_response_store_error(&sweep->failure, reply->error, &reply->status);
        respond_failure(sweep);
}

static void compare_fence(struct sweep *sweep) {
        const struct hfd_txn txn = {.compares = sweep->fence.compares,
                                    .n_compares = 2 * sweep->fence.n_leases}; /* revision, value */
        int r;

        assert(sweep->fence.n_leases > 0);
        if (hfd_store_identity_replacement_pending(
                    sweep->registry->cacher)) { /* as in write/steps/commit.c */
                sweep->fence_compared = true;
                hfd_response_stale_term(&sweep->failure, sweep->request->resource, "");
                respond_failure(sweep);
                return;
        }
        r = hfd_store_request_txn(sweep->registry->cacher, &txn, sweep->request->deadline,
                                  on_fence_compared, sweep);
        if (r != 0) {
                hfd_response_store_error(&sweep->failure, r, NULL);
                respond_failure(sweep);
        }
}

/* Ends the sweep. Called when no delete is running and none will start. */
static void finish_sweep(struct sweep *sweep) {
        if (sweep->failed)
                respond_failure(sweep);
        else if (sweep->request->fence && !sweep->fence_compared)
                compare_fence(sweep);
        else
                respond_success(sweep);
}

/* ---- the deletes ---- */

/* Copies the object's uid. If it has none, or one that is too long, uid is "", and the delete
 * checks only the name. False: out of memory. */
static bool copy_uid(const struct hfd_object *object, char uid[64]) {
        struct hf__buf *bytes = hfd_unpack(object->bytes);

        if (!bytes)
                return false;
        struct hf__span text = {bytes->data, bytes->n};
        *uid = '\0';
        if (hf__span_member(text, "metadata", &text) && hf__span_member(text, "uid", &text) &&
            text.n > 2 && text.n - 2 < 64) /* without its quotes */
                (void)snprintf(uid, 64, "%.*s", (int)(text.n - 2), text.data + 1);
        hf__buf_unref(bytes);
        return true;
}

/* The client has left, or the server stops. If no object remains, the sweep only waits for the
 * deletes that are running. */
static void cancel_locked(struct sweep *sweep) {
        hf__mutex_assert_held(&sweep->mu);
        if (sweep->failed || sweep->next == sweep->n)
                return;
        sweep->failed = true;
        hfd_response_store_error(&sweep->failure, HF_E_UNAVAILABLE, NULL);
}

/* Fails the sweep if its deadline has passed, or its client has left, while there are objects to
 * delete. */
static void fail_if_late_locked(struct sweep *sweep) {
        const atomic_bool *abandoned = sweep->request->abandoned;

        hf__mutex_assert_held(&sweep->mu);
        if (sweep->failed || sweep->next == sweep->n)
                return;
        if (abandoned && atomic_load_explicit(abandoned, memory_order_relaxed)) {
                cancel_locked(sweep);
                return;
        }
        if (hfd_registry_now(sweep->registry) < sweep->request->deadline)
                return;
        sweep->failed = true;
        hfd_response_status(&sweep->failure, HF_E_TIMEOUT, 504, "Timeout",
                            "Timeout: request did not complete within the allotted time: not "
                            "all of the collection is deleted",
                            NULL);
}

/*
 * Fills a free slot with the next delete and returns it. NULL: no slot is free, no object remains,
 * or the sweep has failed.
 */
static struct slot *next_slot_locked(struct sweep *sweep) {
        const struct hfd_options *o = &sweep->request->options;
        struct slot *slot = sweep->free_slots;
        const struct hfd_object *object;
        struct hfd_request *request;

        hf__mutex_assert_held(&sweep->mu);
        assert(sweep->starting_deletes && sweep->next <= sweep->n);
        fail_if_late_locked(sweep);
        if (!slot || sweep->failed || sweep->next == sweep->n)
                return NULL;
        object = sweep->objects[sweep->next];
        request = &slot->request;
        if (!copy_uid(object, request->only_uid)) {
                /* A delete that checks only the name might delete an object that was not listed. */
                sweep->failed = true;
                hfd_response_no_memory(&sweep->failure);
                return NULL;
        }
        sweep->free_slots = slot->next;
        sweep->n_running++;
        slot->index = sweep->next++;
        /* Duplicate and unknown fields were removed from the body when the collection's request was
         * read (read_body), so there are none to report. */
        request->options = (struct hfd_options){.field_validation = HFD_FIELDS_IGNORE,
                                                .dry_run = o->dry_run,
                                                .propagation = o->propagation,
                                                .has_orphan = o->has_orphan,
                                                .has_grace_period = o->has_grace_period,
                                                .grace_period_s = o->grace_period_s,
                                                .orphan = o->orphan};
        (void)snprintf(request->ns, sizeof request->ns, "%.*s", (int)object->n_ns, object->path);
        (void)snprintf(request->name, sizeof request->name, "%s", hfd_object_name(object));
        return slot;
}

/*
 * Starts up to STEP_DELETES deletes while a slot is free. Called with mu held and starting_deletes
 * set, by the only thread in the loop; releases mu. True: starting_deletes is still set, and the
 * caller must see to it that this is called again. False: the sweep may have been freed.
 */
static bool start_some_unlock(struct sweep *sweep) {
        struct slot *slot = NULL;

        for (size_t i = 0; i < STEP_DELETES && (slot = next_slot_locked(sweep)); i++) {
                pthread_mutex_unlock(&sweep->mu);
                hfd_write_start(sweep->registry, &slot->request);
                pthread_mutex_lock(&sweep->mu);
        }
        sweep->starting_deletes = slot != NULL;
        bool finished = !slot && !sweep->n_running && (sweep->failed || sweep->next == sweep->n);
        pthread_mutex_unlock(&sweep->mu);
        if (finished)
                finish_sweep(sweep);
        return slot != NULL;
}

static enum hfd_work_result start_step(struct hfd_work_task *task) {
        struct sweep *sweep = (struct sweep *)((char *)task - offsetof(struct sweep, task));

        pthread_mutex_lock(&sweep->mu);
        if (hfd_work_is_cancelled(sweep->registry->work, task))
                cancel_locked(sweep);
        return start_some_unlock(sweep) ? HFD_WORK_MORE : HFD_WORK_DONE;
}

/*
 * Starts deletes while a slot is free, unless another thread is already in this loop. Called with
 * mu held; releases it. The sweep may have been freed when this returns.
 */
static void start_deletes_unlock(struct sweep *sweep) {
        hf__mutex_assert_held(&sweep->mu);
        if (sweep->starting_deletes) {
                pthread_mutex_unlock(&sweep->mu);
                return;
        }
        sweep->starting_deletes = true;
        if (!start_some_unlock(sweep))
                return;
        /* The last step of this task may not have returned yet. The task can be filled anew all the
         * same, because the pool does not touch a task whose step returns DONE. */
        sweep->task = (struct hfd_work_task){.step = start_step, .owner = sweep->request->owner};
        if (hfd_work_submit(sweep->registry->work, &sweep->task))
                return;
        pthread_mutex_lock(&sweep->mu);
        cancel_locked(sweep);
        (void)start_some_unlock(sweep); /* starts none, but ends the sweep if none runs */
}

static void on_deleted(struct hfd_request *request, const struct hfd_response *response) {
        struct slot *slot = (struct slot *)request;
        struct sweep *sweep = slot->sweep;

        pthread_mutex_lock(&sweep->mu);
        assert(sweep->n_running > 0);
        sweep->fence_compared |= response->fence_compared;
        sweep->may_have_written |= response->status.error != HF_E_NOT_FOUND &&
                                   response->status.error != HF_E_UNAVAILABLE;
        hfd_admission_notes_merge(&sweep->request->notes, &slot->request.notes);
        hfd_admission_notes_done(&slot->request.notes);
        if (response->status.error || !sweep->keeps_objects)
                sweep->objects[slot->index] = hfd_object_unref(sweep->objects[slot->index]);
        if (response->status.error && response->status.error != HF_E_NOT_FOUND && !sweep->failed) {
                sweep->failed = true;
                sweep->failure = *response;
                if (response->body)
                        hf__buf_ref(response->body);
        }
        slot->next = sweep->free_slots;
        sweep->free_slots = slot;
        assert(sweep->n_running > 0);
        sweep->n_running--;
        start_deletes_unlock(sweep);
}

/* ---- the list ---- */

/* Whether a webhook might have to convert objects for the response. */
static bool need_webhook(const struct sweep *sweep, struct hfd_object *const *objects, size_t n) {
        const struct hfd_request *request = sweep->request;

        if (hfd_read_needs_version(request))
                for (size_t i = 0; i < n; i++)
                        if (hfd_conversion_is_pending(request->resource, objects[i]))
                                return true;
        return false;
}

static void on_selected(struct hfd_request *list, struct hfd_object **objects, size_t n,
                        uint64_t revision) {
        struct sweep *sweep = (struct sweep *)list;
        size_t n_bytes = 0;

        for (size_t i = 0; i < n && n_bytes <= LIST_MAX_BYTES; i++)
                /* + 1: a comma. A packed object counts with its unpacked bytes. */
                n_bytes += hfd_object_size(objects[i]) + 1;
        pthread_mutex_lock(&sweep->mu);
        sweep->keeps_objects = n_bytes <= LIST_MAX_BYTES && !need_webhook(sweep, objects, n);
        sweep->objects = objects;
        sweep->n = n;
        sweep->revision = revision;
        start_deletes_unlock(sweep);
}

static void on_list_failed(struct hfd_request *list, const struct hfd_response *response) {
        struct sweep *sweep = (struct sweep *)list;

        sweep->failure = *response;
        if (response->body)
                hf__buf_ref(response->body);
        respond_failure(sweep);
}

/* ---- start ---- */

/* Reads the body, into request->options and text. False: response is filled. */
static bool read_body(struct hfd_request *request, struct hf__strbuf *text,
                      struct hfd_response *response) {
        struct hf__json *body = NULL;
        char reason[500];

        if (!request->n_body)
                return hfd_delete_options_read(&request->options, NULL, response);
        if (!hfd_write_body_parse(request, "DeleteOptions", &body, response)) {
                hf__json_free(body);
                return false;
        }
        int r = hfd_strict_drop_duplicates(body, NULL, NULL);
        if (r == 0 && !hfd_delete_options_read(&request->options, body, response)) {
                hf__json_free(body);
                return false;
        }
        if (r == 0)
                r = hfd_delete_options_print(body, text, reason, sizeof reason);
        hf__json_free(body);
        if (r == HF_E_INVALID)
                hfd_response_bad_request(response, "%s", reason);
        else if (r != 0)
                hfd_response_no_memory(response);
        return r == 0;
}

/* False: response is filled. */
static bool check_request(struct hfd_request *request, struct hf__strbuf *body,
                          struct hfd_response *response) {
        if (!request->resource->no_delete_collection &&
            (!request->resource->namespaced || *request->ns))
                return read_body(request, body, response);
        hfd_response_not_allowed(response);
        return false;
}

/* Takes over body, and frees it on failure. NULL: out of memory, or the mutex cannot be
 * initialized. */
static struct sweep *sweep_new(struct hfd_registry *registry, struct hfd_request *request,
                               struct hf__strbuf *body) {
        struct sweep *sweep = calloc(1, sizeof *sweep);

        if (!sweep || hf__mutex_init(&sweep->mu) != 0) {
                free(sweep);
                hf__strbuf_done(body);
                return NULL;
        }
        sweep->body = *body;
        sweep->registry = registry;
        sweep->request = request;
        sweep->list = (struct hfd_request){.verb = HFD_LIST,
                                           .resource = request->resource,
                                           .deadline = request->deadline,
                                           .owner = request->owner,
                                           .abandoned = request->abandoned,
                                           .done = on_list_failed};
        sweep->list.options = request->options; /* borrowed: the list does not free them */
        memcpy(sweep->list.ns, request->ns, sizeof request->ns);
        for (size_t i = 0; i < PARALLEL_MAX; i++) {
                struct slot *slot = &sweep->slots[i];
                slot->request = (struct hfd_request){.verb = HFD_DELETE_OBJECT,
                                                     .resource = request->resource,
                                                     .body = body->data,
                                                     .n_body = body->n,
                                                     .fence = request->fence,
                                                     .authorizer = request->authorizer,
                                                     .requester = request->requester,
                                                     .in_process = request->in_process,
                                                     .skips_admission = request->skips_admission,
                                                     .of_collection = true,
                                                     .deadline = request->deadline,
                                                     .longest_deadline = request->longest_deadline,
                                                     .owner = request->owner,
                                                     .abandoned = request->abandoned,
                                                     .departure = request->departure,
                                                     .done = on_deleted};
                slot->sweep = sweep;
                slot->next = sweep->free_slots;
                sweep->free_slots = slot;
        }
        return sweep;
}

static void refuse_request(struct hfd_request *request, struct hfd_response *response) {
        request->done(request, response);
        hfd_response_done(response);
}

void hfd_delete_collection(struct hfd_registry *registry, struct hfd_request *request) {
        struct hfd_response response = {0};
        struct hf__strbuf body = {0};
        struct sweep *sweep;
        int r = 0;

        assert(request->verb == HFD_DELETE_COLLECTION);
        if (!check_request(request, &body, &response)) {
                hf__strbuf_done(&body);
                refuse_request(request, &response);
                return;
        }
        sweep = sweep_new(registry, request, &body);
        if (!sweep) {
                hfd_response_no_memory(&response);
                refuse_request(request, &response);
                return;
        }
        if (request->fence)
                r = hfd_fence_compares(&sweep->fence, registry->prefix, request->fence);
        if (r != 0) {
                hfd_response_store_error(&sweep->failure, r, NULL);
                respond_failure(sweep);
                return;
        }
        hfd_list_objects(registry, &sweep->list, on_selected);
}
