/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deletes the objects of a definition that is being deleted, and then removes its finalizer.
 *
 *      1. A client deletes the definition: the server marks it with a deletionTimestamp, the
 *         finalizer and the condition Terminating (strategies/definition), and creates no more
 *         objects of it.
 *      2. The controller writes into the condition that the objects are being deleted. It deletes
 *         them as collections, one for each namespace.
 *      3. While objects remain, because they have finalizers, the controller deletes and counts
 *         again: after the deletion of one of them, and after a delay.
 *      4. When none remains, one write removes the finalizer and says so in the condition.
 *
 * All state is in the objects, so a new leader continues where the previous one stopped.
 *
 * The controller deletes the objects through the API, in the version in which they are stored.
 * Clients inside the server may use that version even if it is not served. A definition that was
 * never Established has no objects. If a definition has the names of a built-in resource, the
 * built-in objects stay.
 *
 * Invariant: apart from these two cases, the finalizer is removed only after a consistent list
 * without objects, at the resourceVersion of a definition that is marked. If it were removed
 * earlier, objects would remain in the store, and would appear again under a later definition of
 * the same name.
 */
#include "server/controllers/definitions/definition_cleanup.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/time_format.h"
#include "server/controllers/base/object_client.h"
#include "server/controllers/base/string_list.h"
#include "server/controllers/context/controller_context.h"
#include "server/controllers/context/reconcile_loop.h"
#include "server/controllers/definitions/definition_status.h"
#include "server/controllers/kinds/definition_core.h"
#include "server/controllers/kinds/definition_row.h"

#define N_WORKERS          4                      /* a worker mostly waits for responses */
#define COLLECTION_TIMEOUT (60 * HF_NSEC_PER_SEC) /* deadline for deleting one collection */
/* How long a check is delayed after the deletion of an object, so that one check covers many. */
#define GATHER_DELAY (50 * HF_NSEC_PER_MSEC)
/* The time between two checks without an event; an event usually comes sooner. */
#define CHECK_DELAY (5 * HF_NSEC_PER_SEC)
/* The time between the checks of the first FIRST_TIME seconds: this instance may not serve the
 * objects yet, and most definitions have few objects, which are gone soon. */
#define FIRST_DELAY (200 * HF_NSEC_PER_MSEC)
#define FIRST_TIME  5 /* seconds */
/* Seconds after which the condition says that objects remain. */
#define REPORT_AFTER 60

/* ---- the objects ---- */

/* Lists the objects in all namespaces. */
static int list_objects(struct hf_term *term, const struct hfd_kind_row *row, const char *query,
                        struct hf__json **ret_list, struct hf_status *reterr_status) {
        const struct hf_request request = {.size = sizeof request,
                                           .verb = HF_VERB_LIST,
                                           .resource = row->resource,
                                           .query = query};
        char *text = NULL;
        size_t n = 0;
        int r = hf_client_do(hf_term_client(term), &request, hf_term_abort(term), &text, &n,
                             reterr_status);

        if (r == 0)
                r = hf__json_parse(text, n, ret_list, NULL);
        free(text);
        return r;
}

static int delete_in_namespace(struct hf_term *term, const struct hfd_kind_row *row, const char *ns,
                               struct hf_status *reterr_status) {
        const struct hf_request request = {.size = sizeof request,
                                           .verb = HF_VERB_DELETE_COLLECTION,
                                           .resource = row->resource,
                                           .ns = ns,
                                           .deadline = hf_now(hf_host_clock(hf_term_host(term))) +
                                                       COLLECTION_TIMEOUT};

        return hf_client_do(hf_term_client(term), &request, hf_term_abort(term), NULL, NULL,
                            reterr_status);
}

/* Deletes the collections of all namespaces on a page. ns: the last namespace whose collection was
 * deleted, on this page or an earlier one. Skips objects that are marked for deletion already. */
static int delete_page(struct hf_term *term, const struct hfd_kind_row *row,
                       const struct hf__json *page, char ns[HF_NAME_MAX + 1],
                       struct hf_status *reterr_status) {
        int r = 0;

        for (const struct hf__json *m = hf__json_first(hf__json_get(page, "items")); r == 0 && m;
             m = hf__json_next(m)) {
                const char *found = hf__json_string(m, "metadata.namespace");
                if (hf__json_string(m, "metadata.deletionTimestamp") ||
                    (found && strcmp(found, ns) == 0))
                        continue;
                (void)snprintf(ns, HF_NAME_MAX + 1, "%s", found ? found : "");
                r = delete_in_namespace(term, row, ns, reterr_status);
                if (!found)
                        return r; /* the kind has no namespaces */
        }
        return r;
}

/* The result of one attempt to delete the objects. */
struct objects {
        size_t n; /* the objects that remain */
        bool failed_delete, failed_list;
        struct hf_status status; /* of the failure */
};

/* Deletes all objects, page by page. The pages are in the order of namespaces, so ns is enough to
 * delete each collection once. (The collection of a kind without namespaces is deleted once for
 * each page.) All objects of a page are in memory together, so a page has only 500 objects, as many
 * as kubectl asks for. */
static int delete_objects(struct hf_term *term, const struct hfd_kind_row *row,
                          struct objects *objects) {
        char ns[HF_NAME_MAX + 1] = "";
        struct hf__strbuf query = {0};
        bool more = true;
        int r = 0;

        hf__strbuf_puts(&query, "limit=500");
        while (r == 0 && more) {
                struct hf__json *page = NULL;
                r = query.error != 0 ? -ENOMEM
                                     : list_objects(term, row, query.data, &page, &objects->status);
                objects->failed_list = r != 0;
                if (r != 0)
                        break;
                r = delete_page(term, row, page, ns, &objects->status);
                objects->failed_delete = r != 0;
                const char *next = hf__json_string(page, "metadata.continue");
                more = next && *next;
                hf__strbuf_reset(&query);
                hf__strbuf_puts(&query, "limit=500&continue=");
                hf__strbuf_urlencode(&query, more ? next : "");
                hf__json_free(page);
        }
        hf__strbuf_done(&query);
        return r;
}

/* Counts the objects that remain. Without a resourceVersion the list is a consistent read, which
 * the invariant of this file requires. The server counts the objects beyond the first one. */
static int count_objects(struct hf_term *term, const struct hfd_kind_row *row,
                         struct objects *objects) {
        struct hf__json *page = NULL;
        int64_t n_beyond = 0;
        int r = list_objects(term, row, "limit=1", &page, &objects->status);

        objects->failed_list = r != 0;
        if (r != 0)
                return r;
        if (!hf__json_i64(page, "metadata.remainingItemCount", &n_beyond) || n_beyond < 0)
                n_beyond = 0;
        objects->n = hf__json_count(hf__json_get(page, "items")) + (size_t)n_beyond;
        hf__json_free(page);
        return 0;
}

/* ---- the definition ---- */

/* The seconds since the definition was marked. */
static int64_t marked_for(struct hf_term *term, const struct hf__json *definition) {
        const struct hf_clock *clock = hf_host_clock(hf_term_host(term));
        const char *since = hf__json_string(definition, "metadata.deletionTimestamp");
        int64_t sec;

        if (!since || hf__time_parse(since, &sec) != 0)
                return 0;
        return clock->real(clock->ctx) / HF_NSEC_PER_SEC - sec;
}

/* Writes the condition Terminating, if it is different. After the write the caller's copy of the
 * definition is outdated. */
static int write_condition(struct hf_term *term, struct hf__json *definition,
                           enum hfd_definition_ending ending, const char *why, bool *ret_written) {
        char now[HF__MICROTIME_MAX];
        bool changed;

        hfd_definition_now(term, now);
        int r = hfd_definition_set_terminating(definition, ending, why, now, &changed);
        *ret_written = r == 0 && changed;
        return r == 0 && changed ? hfd_definition_write_status(term, definition, NULL) : r;
}

/* Removes the finalizer, and says in the condition why nothing keeps the definition any more. */
static int remove_finalizer(struct hf_term *term, struct hf__json *definition,
                            enum hfd_definition_ending ending) {
        char now[HF__MICROTIME_MAX];
        bool changed;

        hfd_definition_now(term, now);
        int r = hfd_definition_set_terminating(definition, ending, NULL, now, &changed);
        if (r == 0)
                r = hfd_string_list_remove(definition, "metadata.finalizers",
                                           HFD_DEFINITION_FINALIZER);
        /* Write an empty list: hfd_definition_write_status leaves out a list that is absent, and
         * the finalizer would stay in the store. */
        if (r == 0 && !hf__json_path(definition, "metadata.finalizers"))
                r = hf__json_set(definition, "metadata.finalizers", hf__json_array());
        return r == 0 ? hfd_definition_write_status(term, definition, NULL) : r;
}

/* Whether the condition says that the objects are being deleted. InstanceDeletionPending only says
 * that they will be. */
static bool has_begun(const struct hf__json *definition) {
        const struct hf__json *m = hf__json_first(hf__json_path(definition, "status.conditions"));

        while (m && !hf__json_has_text(m, "type", "Terminating"))
                m = hf__json_next(m);
        const char *reason = hf__json_string(m, "reason");
        return reason && strncmp(reason, "InstanceDeletion", strlen("InstanceDeletion")) == 0 &&
               strcmp(reason, "InstanceDeletionPending") != 0;
}

/* Deletes the objects, and removes the finalizer if none remains. */
static int clean_up_definition(struct hf_term *term, struct hf__json *definition,
                               const struct hfd_kind_row *row, hf_nsec *ret_again) {
        struct objects objects = {0};
        int64_t seconds = marked_for(term, definition);
        bool written;
        int r = delete_objects(term, row, &objects);

        if (r == 0)
                r = count_objects(term, row, &objects);
        if ((r == HF_E_CANCELED && hf_cancel_fired(hf_term_abort(term))) || r == HF_E_NOT_LEADER ||
            r == HF_E_STALE_TERM || r == -ENOMEM)
                return r;
        if (r == 0 && objects.n == 0)
                return remove_finalizer(term, definition, HFD_DEFINITION_DELETED);
        *ret_again = seconds < FIRST_TIME ? FIRST_DELAY : CHECK_DELAY;
        if (r != 0) {
                /* At first this instance may not serve the kind yet, if another instance has set
                 * the condition Established. */
                const char *why = *objects.status.message ? objects.status.message : hf_strerror(r);
                if (seconds < FIRST_TIME)
                        return 0;
                return write_condition(term, definition,
                                       objects.failed_list ? HFD_DEFINITION_LIST_FAILED
                                                           : HFD_DEFINITION_DELETE_FAILED,
                                       why, &written);
        }
        return seconds < REPORT_AFTER ? 0
                                      : write_condition(term, definition, HFD_DEFINITION_WAITS,
                                                        "context deadline exceeded", &written);
}

/* Does the next step for a definition that is being deleted. */
static int do_next_step(const struct hfd_controller_context *context, struct hf_term *term,
                        struct hf__json *definition, hf_nsec *ret_again) {
        struct hfd_kind_row row;
        const char *group = hf__json_string(definition, "spec.group"),
                   *plural = hf__json_string(definition, "spec.names.plural");
        bool written;

        if (group && plural && hfd_kinds_find(&context->kinds, group, plural))
                return remove_finalizer(term, definition, HFD_DEFINITION_OVERLAPS);
        if (!hfd_definition_row(definition, &row))
                return remove_finalizer(term, definition, HFD_DEFINITION_NEVER_ESTABLISHED);
        /* The event of this write leads to the next step. */
        if (!has_begun(definition))
                return write_condition(term, definition, HFD_DEFINITION_DELETES, NULL, &written);
        return clean_up_definition(term, definition, &row, ret_again);
}

/* ---- the controller ---- */

/* The controller with one set of kinds. */
struct cleanup {
        const struct hfd_controller_context *context; /* borrowed */
        const struct hfd_kind_set *set;               /* borrowed */
};

static int reconcile_definition(void *ctx, struct hf_term *term, const char *key,
                                hf_nsec *ret_again) {
        const struct hfd_controller_context *context = ((const struct cleanup *)ctx)->context;
        struct hf__json *definition;
        int r = hfd_object_client_get_cached(context->definitions->informer, NULL, key,
                                             &definition);

        if (r != 0)
                return r == HF_E_NOT_FOUND ? 0 : r;
        if (hfd_definition_is_due(definition))
                r = hfd_object_client_ignore_stale(
                        do_next_step(context, term, definition, ret_again));
        hf__json_free(definition);
        return r;
}

static bool is_marked(const char *definition, size_t n) {
        static const char mark[] = "\"deletionTimestamp\"";

        return memmem(definition, n, mark, sizeof mark - 1) != NULL;
}

static int map_definition(void *ctx, struct hf_workqueue *queue, enum hf_event_type type,
                          const char *ns, const char *name, const char *object, size_t n) {
        return type != HF_EVENT_DELETED && is_marked(object, n) ? hf_workqueue_add(queue, name) : 0;
}

/* Enqueues the definition of a deleted object, if the definition is being deleted too. The name of
 * a definition is "PLURAL.GROUP". */
static int enqueue_definition(const struct cleanup *cleanup, const struct hf__json *object,
                              struct hf_workqueue *queue) {
        const struct hfd_kind *kind =
                hfd_kind_set_find_by_name(cleanup->set, hf__json_string(object, "apiVersion"),
                                          hf__json_string(object, "kind"));
        char name[HF_NAME_MAX + 1], *definition;
        size_t n;

        if (!kind || !hf__join(name, sizeof name, kind->row.resource.plural, ".",
                               kind->row.resource.group, NULL))
                return 0;
        int r = hf_informer_get(cleanup->context->definitions->informer, NULL, name, &definition,
                                &n);
        if (r != 0)
                return r == -ENOMEM ? r : 0;
        r = is_marked(definition, n) ? hf_workqueue_add_after(queue, name, GATHER_DELAY) : 0;
        free(definition);
        return r;
}

static int map_object(void *ctx, struct hf_workqueue *queue, enum hf_event_type type,
                      const char *ns, const char *name, const char *object, size_t n) {
        const struct cleanup *cleanup = ctx;
        struct hf__json *json;

        if (type != HF_EVENT_DELETED)
                return 0;
        int r = hf__json_parse(object, n, &json, NULL);
        if (r != 0)
                return r;
        r = enqueue_definition(cleanup, json, queue);
        hf__json_free(json);
        return r;
}

static hf_reconciler_map_fn map_of(void *ctx, const struct hfd_kind *kind) {
        const struct cleanup *cleanup = ctx;

        if (kind == cleanup->context->definitions)
                return map_definition;
        return kind->is_custom ? map_object : NULL;
}

static int run_with_set(void *ctx, struct hf_term *term, struct hfd_kind_set *set,
                        struct hf_cancel *until) {
        struct cleanup cleanup = {.context = ctx, .set = set};
        const struct hfd_reconcile_loop loop = {
                .name = HFD_DEFINITION_CLEANUP,
                .n_workers = N_WORKERS,
                .reconcile = reconcile_definition,
                .ctx = &cleanup,
        };

        return hfd_reconcile_loop_run_set(&loop, term, set, map_of, until);
}

int hfd_definition_cleanup_run(struct hf_term *term, void *ctx) {
        struct hfd_controller_context *context = ctx;

        assert(context->definitions); /* controllers.c has created it */
        return hfd_kinds_run(&context->kinds, term, run_with_set, context);
}
