/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The garbage collector. It deletes an object that has lost its last owner. It keeps an owner that
 * is being deleted in the foreground until the dependents with blockOwnerDeletion are gone. If an
 * owner is deleted with the policy Orphan, it removes the references to that owner from the
 * dependents. See https://kubernetes.io/docs/concepts/architecture/garbage-collection/.
 *
 * An event of an informer only enqueues keys. A worker takes a key later, and decides from the
 * state that the informers have by then. The keys of an event:
 *
 *      object added or changed    its own, if it may have owners or a deletionTimestamp;
 *                                 its dependents', when its deletion in the foreground begins
 *      object deleted             its dependents', which have lost an owner;
 *                                 its owners', which may have waited for it
 *
 * The informers are not synchronized, so a worker may miss an object that one of them does not know
 * yet. That does no harm, because the late informer's own event adds the same key again. But two
 * decisions cannot be undone and need more:
 *
 *      an owner is absent             only after a consistent read of the server (gc_owners.c)
 *      an owner has no dependents     only when every informer has reached a revision at which the
 *                                     owner was marked for deletion, and no kind is missing, so
 *                                     that all dependents that were created earlier are known
 *                                     (await_dependents)
 *
 * Invariant: the preconditions of every delete are the uid and resourceVersion of the object that
 * was checked, so an object that is changed in between is not deleted.
 *
 * An owner in another namespace counts as absent, as in Kubernetes: the object is deleted if it has
 * no other owner, and an Event (gc_notice.c) usually tells users the reason. Objects of the kind
 * Event are not in the graph: they are never collected, and deleting one enqueues no dependents.
 *
 * When kinds of CustomResourceDefinitions are added or removed, the loop ends and begins again with
 * another graph (hfd_kinds_run). An owner of a kind that is not in the set of kinds counts as
 * existing. When its kind is added, the new loop checks all objects that have owners.
 *
 * Threads: map_event runs on the informers' threads. Several workers reconcile, one key by one
 * worker at a time. They share the graph, which is immutable, and the list of known absent owners.
 * The informers' threads share the index of waiting objects. That list and that index have a lock
 * each.
 */
#include "server/controllers/garbage/garbage_collector.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/controllers/base/object_client.h"
#include "server/controllers/base/string_list.h"
#include "server/controllers/context/controller_context.h"
#include "server/controllers/context/reconcile_loop.h"
#include "server/controllers/garbage/gc_core.h"
#include "server/controllers/garbage/gc_graph.h"
#include "server/controllers/garbage/gc_owners.h"
#include "server/controllers/garbage/gc_waiting.h"
#include "server/controllers/kinds/gc_filter.h"

#define N_WORKERS 8 /* a worker mostly waits for responses */
/* The delay of the next check while an owner waits for its dependents. The deletion of a dependent
 * enqueues the owner sooner, but a dependent that only clears blockOwnerDeletion does not. */
#define RECHECK_DELAY (2 * HF_NSEC_PER_SEC)

/* The delay of the next check while the graph may lack a kind that has objects, or an informer is
 * late. */
#define KINDS_DELAY (200 * HF_NSEC_PER_MSEC)
/* How long a worker waits for the informers. A kind that is not served would block it for ever. */
#define CATCH_UP_MAX (5 * HF_NSEC_PER_SEC)

struct collector {
        struct hfd_controller_context *context; /* borrowed */
        struct hfd_gc_graph graph;
        struct hfd_gc_owners owners;
        struct hfd_gc_waiting waiting;
};

/* The state of one worker for one key. */
struct job {
        struct collector *collector; /* borrowed */
        struct hf_term *term;        /* borrowed */
        struct hfd_gc_node node;
};

/* ---- writes ---- */

typedef int (*edit_fn)(struct hf__json *object, void *ctx);

/*
 * The result of a write whose object was not found. An object of a built-in kind is gone. One of a
 * custom kind may exist: while this instance does not serve the version in the set, no object of it
 * is found (gc_owners.c says why). So the key is tried again, until the informer does not have the
 * object either, or the loop begins again with another set. If an orphan were skipped instead, it
 * would keep the reference to its owner, and would be deleted after it. An object that has lost its
 * owners might stay for ever, because perhaps no later event enqueues its key.
 */
static int result_of_absence(const struct hfd_kind *kind) {
        return kind->is_custom ? HF_E_CONFLICT : 0;
}

/*
 * Reads an object, applies edit and writes it back. (Most informers keep metadata only, so their
 * copy must not be written.) Writes only if the object still has that uid and, unless revision is
 * NULL, that revision; otherwise returns 0. HF_E_CONFLICT: another client changed it between read
 * and write, or an object of a custom kind was not found (result_of_absence).
 */
static int edit_object(struct hf_term *term, const struct hfd_kind *kind, const char *ns,
                       const char *name, const char *uid, const char *revision, edit_fn edit,
                       void *ctx) {
        struct hf__json *object;
        int r = hfd_object_client_get(term, &kind->row.resource, ns, name, &object);

        if (r != 0)
                return r == HF_E_NOT_FOUND ? result_of_absence(kind) : r;
        const char *found_uid = hf__json_string(object, "metadata.uid"),
                   *found_revision = hf__json_string(object, "metadata.resourceVersion");
        if (found_uid && found_revision && strcmp(found_uid, uid) == 0 &&
            (!revision || strcmp(found_revision, revision) == 0)) {
                r = edit(object, ctx);
                if (r == 0)
                        r = hfd_object_client_update(term, &kind->row.resource, ns, name, NULL,
                                                     object);
        }
        hf__json_free(object);
        /* A conflict is returned, so that the queue tries the key again. The event of the other
         * change is not enough: it may not add the key of the object that waits for this edit. */
        return r == HF_E_NOT_FOUND ? result_of_absence(kind) : r;
}

static int edit_node(struct job *job, const char *revision, edit_fn edit, void *ctx) {
        const struct hfd_gc_node *node = &job->node;
        return edit_object(job->term, node->kind, node->ns, node->name, node->uid, revision, edit,
                           ctx);
}

static int remove_finalizer(struct hf__json *object, void *name) {
        return hfd_string_list_remove(object, "metadata.finalizers", name);
}

static int drop_owners(struct hf__json *object, void *uids) {
        return hfd_gc_drop_owners(object, uids);
}

static int unblock_owners(struct hf__json *object, void *ctx) { return hfd_gc_unblock(object); }

static int delete_node(struct job *job, enum hfd_gc_verdict verdict) {
        const struct hfd_gc_node *node = &job->node;
        struct hfd_object_client_delete_options options = {.uid = node->uid,
                                                           .resource_version =
                                                                   node->resource_version,
                                                           .policy = hfd_gc_policy(verdict)};

        assert(options.policy);
        int r = hfd_object_client_delete(job->term, &node->kind->row.resource, node->ns, node->name,
                                         &options);
        /* The event of another client's change enqueues the key again. */
        return r == HF_E_NOT_FOUND ? result_of_absence(node->kind)
                                   : hfd_object_client_ignore_stale(r);
}

/* ---- an object with owners ---- */

/*
 * Adds the uids of the owners that are not solid (gc_owners.h) to the JSON array `lost`. An object
 * may have two references with the same uid; if one of them refers to a solid owner, both are kept.
 */
static int collect_lost(const struct hfd_gc_references *references, struct hf__json *lost) {
        struct hf__json *solid = hf__json_array();
        struct hf__json_index index = {0};
        int r = solid ? 0 : -ENOMEM;

        for (size_t i = 0; r == 0 && i < references->n; i++) {
                const struct hfd_gc_reference *m = &references->items[i];
                if (m->owner == HFD_GC_OWNER_SOLID && m->uid)
                        r = hf__json_append_string(solid, m->uid);
        }
        if (r == 0)
                r = hf__json_index_init(&index, solid, NULL);
        for (size_t i = 0; r == 0 && i < references->n; i++) {
                const struct hfd_gc_reference *m = &references->items[i];
                if (m->owner != HFD_GC_OWNER_SOLID && !hf__json_index_find(&index, m->uid))
                        r = hf__json_append_string(lost, m->uid);
        }
        hf__json_index_done(&index);
        hf__json_free(solid);
        return r;
}

/*
 * Counts the owners by their state. If only some are solid, the references to the others are to be
 * removed: sets the member "uids" of the JSON object `uids` to the array of their uids. If that
 * array is empty, nothing can be removed, so the others are not counted: the verdict is then to
 * keep the object.
 */
static int classify_owners(struct job *job, struct hfd_gc_view *view, struct hf__json *uids) {
        struct hfd_gc_references references;
        struct hf__json *lost = NULL;
        int r = hfd_gc_owners_find(&job->collector->owners, job->term, &job->node, &references);

        if (r != 0)
                return r;
        for (size_t i = 0; i < references.n; i++) {
                enum hfd_gc_owner owner = references.items[i].owner;
                view->n_solid += owner == HFD_GC_OWNER_SOLID;
                view->n_waiting += owner == HFD_GC_OWNER_WAITING;
                view->n_absent += owner == HFD_GC_OWNER_ABSENT;
        }
        if (view->n_solid > 0 && view->n_solid < references.n) {
                lost = hf__json_array();
                r = lost ? collect_lost(&references, lost) : -ENOMEM;
                if (r == 0 && hf__json_count(lost) == 0)
                        view->n_waiting = view->n_absent = 0;
        }
        hfd_gc_references_done(&references);
        if (r == 0 && lost)
                return hf__json_set(uids, "uids", lost);
        hf__json_free(lost);
        return r;
}

/*
 * Every write here requires the revision whose owners were checked. In a later revision, the
 * reference that kept the object might be missing. Then the object would lose its last references
 * and would never be deleted.
 */
static int apply_verdict(struct job *job, enum hfd_gc_verdict verdict, struct hf__json *uids) {
        const char *revision = job->node.resource_version;

        switch (verdict) {
        case HFD_GC_KEEP: return 0;
        case HFD_GC_DROP_OWNERS: return edit_node(job, revision, drop_owners, uids);
        case HFD_GC_UNBLOCK: return edit_node(job, revision, unblock_owners, NULL);
        case HFD_GC_DELETE_BACKGROUND:
        case HFD_GC_DELETE_FOREGROUND:
        case HFD_GC_DELETE_ORPHAN: break;
        }
        return delete_node(job, verdict);
}

static int process_owned(struct job *job) {
        const struct hf__json *object = job->node.object;
        struct hfd_gc_view view = {.orphan = hfd_string_list_has(object, "metadata.finalizers",
                                                                 HFD_ORPHAN),
                                   .foreground = hfd_string_list_has(object, "metadata.finalizers",
                                                                     HFD_FOREGROUND),
                                   .blocks = hfd_gc_blocks(object)};
        struct hf__json *uids = hf__json_object();
        int r = uids ? classify_owners(job, &view, uids) : -ENOMEM;

        if (r == 0 && view.n_waiting > 0 && view.n_solid == 0) {
                struct hfd_gc_dependents dependents;
                hfd_gc_graph_find_dependents(&job->collector->graph, &job->node, &dependents);
                view.has_dependents = dependents.any;
                view.dependent_waits = dependents.waits;
        }
        if (r == 0)
                r = apply_verdict(job, hfd_gc_decide(&view), uids);
        hf__json_free(uids);
        return r;
}

/* ---- an object that is being deleted and waits for the collector ---- */

/* The keys of all dependents of one owner. */
struct orphans {
        char (*keys)[HFD_GC_KEY_MAX]; /* owned */
        size_t n, space;
        int error;
};

/* Adds the key of one dependent. The edits follow later, because this function runs under an
 * informer's lock and must not block. */
static void collect_orphan(void *ctx, const struct hfd_kind *kind, const char *ns, const char *name,
                           const char *object, size_t n) {
        struct orphans *orphans = ctx;

        if (orphans->n == orphans->space) {
                size_t space = orphans->space ? orphans->space * 2 : 16;
                char(*grown)[HFD_GC_KEY_MAX] = realloc(orphans->keys, space * sizeof *grown);
                if (!grown) {
                        orphans->error = -ENOMEM;
                        return;
                }
                orphans->keys = grown;
                orphans->space = space;
        }
        hfd_gc_graph_key(kind, ns, name, orphans->keys[orphans->n++]);
}

/* Removes the references to the uids from one dependent. */
static int orphan_dependent(struct job *job, const char *key, struct hf__json *uids) {
        char ns[HF_NAME_MAX + 1], name[HF_NAME_MAX + 1], uid[HFD_GC_UID_MAX];
        const char *rest;
        const struct hfd_kind *kind = hfd_gc_graph_kind(&job->collector->graph, key, &rest);
        struct hf__json *dependent;

        assert(kind); /* the key is from collect_orphan */
        int r = hf_key_split(rest, ns, name);
        if (r == 0)
                r = hfd_object_client_get_cached(kind->informer, ns, name, &dependent);
        if (r != 0)
                return r == HF_E_NOT_FOUND ? 0 : r;
        const char *text = hf__json_string(dependent, "metadata.uid");
        (void)snprintf(uid, sizeof uid, "%s", text ? text : "");
        hf__json_free(dependent);
        return edit_object(job->term, kind, ns, name, uid, NULL, drop_owners, uids);
}

static int orphan_dependents(struct job *job) {
        struct orphans orphans = {0};
        struct hf__json *uids = hf__json_object();
        int r = uids ? hf__json_add_element(uids, "uids", job->node.uid) : -ENOMEM;

        hfd_gc_graph_each(&job->collector->graph, job->node.uid, collect_orphan, &orphans);
        if (r == 0)
                r = orphans.error;
        for (size_t i = 0; r == 0 && i < orphans.n; i++)
                r = orphan_dependent(job, orphans.keys[i], uids);
        hf__json_free(uids);
        free(orphans.keys);
        return r;
}

/*
 * Waits until the informers know all dependents that existed when the object was marked for
 * deletion; see the top of this file. *ret_known false: they may not know them yet, because the
 * graph lacks a kind, or an informer is late.
 */
static int await_dependents(struct job *job, bool *ret_known) {
        struct collector *collector = job->collector;
        const struct hfd_gc_graph *graph = &collector->graph;
        const struct hfd_kind *definitions = collector->context->definitions;
        const char *revision = job->node.resource_version;
        const struct hf_clock *clock = hf_host_clock(hf_term_host(job->term));
        struct hf_cancel *token;
        int r = hf_cancel_new(hf_term_abort(job->term), clock, &token);

        if (r != 0)
                return r;
        hf_cancel_set_deadline(token, hf_now(clock) + CATCH_UP_MAX);
        if (definitions)
                r = hf_informer_wait(definitions->informer, revision, token);
        *ret_known = r == 0 && hfd_kinds_is_complete(&collector->context->kinds, graph->set);
        if (*ret_known)
                r = hf_informer_wait_all(graph->informers, graph->n, revision, token);
        if (r == HF_E_CANCELED && !hf_cancel_fired(hf_term_abort(job->term))) {
                *ret_known = false;
                r = 0;
        }
        hf_cancel_unref(token);
        return r;
}

static int process_deleted(struct job *job, hf_nsec *ret_again) {
        const struct hf__json *object = job->node.object;
        const struct hfd_gc_graph *graph = &job->collector->graph;
        bool orphan = hfd_string_list_has(object, "metadata.finalizers", HFD_ORPHAN);
        bool known;

        if (!orphan && !hfd_string_list_has(object, "metadata.finalizers", HFD_FOREGROUND))
                return 0;
        int r = await_dependents(job, &known);
        if (r != 0)
                return r;
        if (!known) {
                *ret_again = KINDS_DELAY;
                return 0;
        }
        /* The edits below require no revision: the finalizer may go, whatever else has changed. */
        if (orphan) {
                r = orphan_dependents(job);
                return r != 0 ? r : edit_node(job, NULL, remove_finalizer, (void *)HFD_ORPHAN);
        }
        if (hfd_gc_graph_is_blocked(graph, &job->node)) {
                *ret_again = RECHECK_DELAY;
                return 0;
        }
        return edit_node(job, NULL, remove_finalizer, (void *)HFD_FOREGROUND);
}

/* ---- the controller ---- */

static int reconcile_object(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again) {
        struct job job = {.collector = ctx, .term = term};
        struct hfd_gc_node *node = &job.node;
        const char *rest;

        node->kind = hfd_gc_graph_kind(&job.collector->graph, key, &rest);
        if (!node->kind)
                return HF_E_INVALID;
        int r = hf_key_split(rest, node->ns, node->name);
        if (r == 0)
                r = hfd_object_client_get_cached(node->kind->informer, node->ns, node->name,
                                                 &node->object);
        if (r != 0)
                return r == HF_E_NOT_FOUND ? 0 : r;
        node->uid = hf__json_string(node->object, "metadata.uid");
        node->resource_version = hf__json_string(node->object, "metadata.resourceVersion");
        if (!node->uid || !node->resource_version)
                r = 0;
        else if (hf__json_string(node->object, "metadata.deletionTimestamp"))
                r = process_deleted(&job, ret_again);
        else
                r = process_owned(&job);
        hf__json_free(node->object);
        return r;
}

/* Whether the dependents of an object are to be enqueued. Remembers whether it waits. */
static bool concerns_dependents(struct collector *collector, enum hf_event_type type,
                                const struct hf__json *object, const char *uid, const char *key) {
        if (type != HF_EVENT_DELETED && hfd_gc_waits(object))
                return hfd_gc_waiting_add(&collector->waiting, key, uid);
        hfd_gc_waiting_remove(&collector->waiting, key);
        return type == HF_EVENT_DELETED;
}

/* Enqueues the keys of an event according to the table at the top of this file. */
static int enqueue_keys(struct collector *collector, struct hf_workqueue *queue,
                        enum hf_event_type type, const char *ns, const struct hf__json *object,
                        const char *uid, const char *key) {
        const struct hfd_gc_graph *graph = &collector->graph;
        int r = type == HF_EVENT_DELETED ? hfd_gc_graph_enqueue_owners(graph, object, ns, queue)
                                         : hf_workqueue_add(queue, key);

        if (r != 0 || !concerns_dependents(collector, type, object, uid, key))
                return r;
        r = hfd_gc_graph_enqueue_dependents(graph, uid, queue);
        if (r != 0)
                /* Some were not enqueued. The same event is mapped again and must add them all. */
                hfd_gc_waiting_remove(&collector->waiting, key);
        return r;
}

static int map_event(void *ctx, struct hf_workqueue *queue, enum hf_event_type type, const char *ns,
                     const char *name, const char *object, size_t n) {
        struct collector *collector = ctx;
        struct hf__json *json;
        char key[HFD_GC_KEY_MAX];

        if (type != HF_EVENT_DELETED && !hfd_gc_filter_may_concern(object, n))
                return 0;
        int r = hf__json_parse(object, n, &json, NULL);
        if (r != 0)
                return r;
        const struct hfd_kind *kind =
                hfd_kind_set_find_by_name(collector->graph.set, hf__json_string(json, "apiVersion"),
                                          hf__json_string(json, "kind"));
        const char *uid = hf__json_string(json, "metadata.uid");
        if (kind && uid) {
                hfd_gc_graph_key(kind, ns, name, key);
                r = enqueue_keys(collector, queue, type, ns, json, uid, key);
        }
        hf__json_free(json);
        return r;
}

static hf_reconciler_map_fn map_of(void *ctx, const struct hfd_kind *kind) {
        const struct collector *collector = ctx;

        return kind == collector->context->events ? NULL : map_event;
}

static int run_with_set(void *ctx, struct hf_term *term, struct hfd_kind_set *set,
                        struct hf_cancel *until) {
        struct hfd_controller_context *context = ctx;
        struct collector *collector = calloc(1, sizeof *collector);

        if (!collector)
                return -ENOMEM;
        collector->context = context;
        const struct hfd_reconcile_loop loop = {
                .name = HFD_GARBAGE_COLLECTOR,
                .n_workers = N_WORKERS,
                .reconcile = reconcile_object,
                .ctx = collector,
        };
        int r = hfd_gc_graph_init(&collector->graph, set, context->events);
        if (r == 0) {
                r = hfd_gc_owners_init(&collector->owners, &collector->graph);
                if (r == 0) {
                        r = hfd_gc_waiting_init(&collector->waiting);
                        if (r == 0) {
                                r = hfd_reconcile_loop_run_set(&loop, term, set, map_of, until);
                                hfd_gc_waiting_done(&collector->waiting);
                        }
                        hfd_gc_owners_done(&collector->owners);
                }
                hfd_gc_graph_done(&collector->graph);
        }
        free(collector);
        return r;
}

int hfd_garbage_collector_run(struct hf_term *term, void *ctx) {
        struct hfd_controller_context *context = ctx;

        return hfd_kinds_run(&context->kinds, term, run_with_set, context);
}
