/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The namespace lifecycle: a namespace that is marked for deletion is emptied, and let go when
 * nothing is left in it.
 *
 *      marked (the server says Terminating and takes no creations from then on)
 *          -> every namespaced kind: what there is is deleted as a collection
 *          -> something is left (its finalizers hold it, or the deletion failed): the conditions of
 * the status say what; the end of each of its objects brings the key back
 *          -> nothing is left: "kubernetes" is taken out of spec.finalizers, by /finalize
 *
 * All of it is in the objects, so that a new leader goes on from whatever it finds.
 *
 * No creation slips in: the transaction of each compares its namespace's revision
 * (server/registry/write_namespace.c), so all that will ever be in a marked namespace was there
 * before the mark. A list no older than the mark therefore shows all of it, and costs the store
 * nothing; what is still there after a deletion is asked by a consistent read.
 *
 * Nothing of another namespace of that name is touched, however old the cache's word or long the
 * pause in between: the contents are looked at, then the namespace is found to be the marked one
 * still, by a consistent read, then what was looked at is deleted.
 *
 * Leftovers, objects whose namespace does not exist, come about when somebody else finalizes a
 * namespace that is not empty. They are listed, then the namespace is found missing by a consistent
 * read, then they are deleted by uid: so nothing of a namespace that was made anew is touched.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/time_format.h"
#include "client/informer_lookup.h"
#include "server/controllers/controllers.h"
#include "server/controllers/namespace_core.h"
#include "server/controllers/object_client.h"

#define N_WORKERS        8
#define LOOK_AGAIN       (15 * HF_NSEC_PER_SEC) /* while something is left; its events come sooner */
#define COLLECTION_LIMIT (60 * HF_NSEC_PER_SEC) /* for the deletion of one collection */
#define PAGE             "limit=500"
#define GROWN            '+' /* before a key: something is in the namespace, whether that exists or not */

static const struct hf_resource namespaces = {"", "v1", "namespaces"};

/* ---- calls on collections ---- */

/* Lists a page of a kind. *ret_n counts what it has and what is beyond it. query may name a
 * revision, which then is enough. */
static int list(struct hf_term *term, const struct hfd_kind *kind, const char *ns,
                const char *query, struct hf__json **ret_list, size_t *ret_n) {
        struct hf_request request = {.verb = HF_VERB_LIST,
                                     .resource = kind->row.resource,
                                     .ns = ns,
                                     .query = query};
        struct hf_status status;
        char *text = NULL;
        size_t n = 0;
        int64_t beyond = 0;
        int r = hf_client_do(hf_term_client(term), &request, hf_term_abort(term), &text, &n,
                             &status);

        if (r == 0)
                r = hf__json_parse(text, n, ret_list, NULL);
        free(text);
        if (r != 0)
                return r;
        if (!hf__json_i64(*ret_list, "metadata.remainingItemCount", &beyond) || beyond < 0)
                beyond = 0;
        *ret_n = hf__json_count(hf__json_get(*ret_list, "items")) + (size_t)beyond;
        return 0;
}

/* since: what was there at that revision or later, at is it then; NULL = a consistent read. */
static int count(struct hf_term *term, const struct hfd_kind *kind, const char *ns,
                 const char *since, size_t *ret_n, char at[32]) {
        struct hf__json *page;
        char query[128];

        (void)snprintf(query, sizeof query, "limit=1%s%.32s",
                       since ? "&resourceVersionMatch=NotOlderThan&resourceVersion=" : "",
                       since ? since : "");
        int r = list(term, kind, ns, query, &page, ret_n);
        if (r != 0)
                return r;
        const char *revision = hf__json_string(page, "metadata.resourceVersion");
        (void)snprintf(at, 32, "%.31s", revision ? revision : "");
        hf__json_free(page);
        return *at ? 0 : HF_E_INVALID;
}

/* What there was at that revision, and no other objects of those names. */
static int delete_collection(struct hf_term *term, const struct hfd_kind *kind, const char *ns,
                             const char *at, struct hf_status *reterr_status) {
        char query[128];
        struct hf_request request = {.verb = HF_VERB_DELETE_COLLECTION,
                                     .resource = kind->row.resource,
                                     .ns = ns,
                                     .query = query,
                                     .deadline = hf_now(hf_host_clock(hf_term_host(term))) +
                                                 COLLECTION_LIMIT};

        (void)snprintf(query, sizeof query, "resourceVersionMatch=Exact&resourceVersion=%s", at);
        return hf_client_do(hf_term_client(term), &request, hf_term_abort(term), NULL, NULL,
                            reterr_status);
}

/* ---- a terminating namespace ---- */

struct held {
        const char *ns;
        struct hfd_ns_report *report;
};

static void report_held(void *ctx, const char *ns, const char *name, const char *object, size_t n) {
        struct held *held = ctx;
        struct hf__json *json;

        if (strcmp(ns, held->ns) != 0 || hf__json_parse(object, n, &json, NULL))
                return;
        hfd_ns_report_finalizers(held->report, json);
        hf__json_free(json);
}

/* Still the incarnation that is marked? HF_E_CONFLICT: not any more. */
static int check_same(struct hf_term *term, const char *name, const char *uid) {
        struct hf__json *ns;
        int r = hfd_object_read(term, &namespaces, NULL, name, &ns);

        if (r != 0)
                return r == HF_E_NOT_FOUND ? HF_E_CONFLICT : r;
        const char *found = hf__json_string(ns, "metadata.uid");
        r = found && strcmp(found, uid) == 0 ? 0 : HF_E_CONFLICT;
        hf__json_free(ns);
        return r;
}

/* Deletes what there is of one kind; reports what is left. An error ends the round: the term ends,
 * or nothing can be known. */
static int empty_kind(struct hf_term *term, const struct hfd_kind *kind,
                      const struct hf__json *object, struct hfd_ns_report *report) {
        const char *ns = hf__json_string(object, "metadata.name"),
                   *uid = hf__json_string(object, "metadata.uid");
        const char *since =
                hf__json_string(object, "metadata.resourceVersion"); /* at the mark, or later */
        struct hf_status status = {0};
        struct held held = {ns, report};
        char at[32];
        size_t n;
        int r = ns && uid ? count(term, kind, ns, since, &n, at) : HF_E_INVALID;

        if (r != 0 || n == 0)
                return r;
        r = check_same(term, ns, uid);
        if (r != 0)
                return r;
        r = delete_collection(term, kind, ns, at, &status);
        if (r == HF_E_CANCELED || r == HF_E_NOT_LEADER || r == HF_E_STALE_TERM)
                return r;
        if (r != 0) {
                char words[600];
                (void)snprintf(words, sizeof words, "%s: %s", kind->row.resource.plural,
                               *status.message ? status.message : hf_strerror(r));
                hfd_ns_report_failure(report, words);
        }
        r = count(term, kind, ns, NULL, &n, at);
        if (r != 0 || n == 0)
                return r;
        hfd_ns_report_remaining(report, kind->row.resource.plural, kind->row.resource.group, n);
        /* What holds them is read off the cache: for the words it is new enough, and its next event
         * brings better ones. */
        (void)hf_informer_by_index(kind->informer, HFD_HELD_INDEX, ns, report_held, &held);
        return 0;
}

static int settle(int r) { return r == HF_E_CONFLICT || r == HF_E_NOT_FOUND ? 0 : r; }

static int finalize(struct hf_term *term, struct hf__json *ns, const char *name) {
        int r = hfd_list_drop(ns, "spec.finalizers", HFD_NS_FINALIZER);

        return r != 0 ? r
                      : settle(hfd_object_update(term, &namespaces, NULL, name, "finalize", ns));
}

static int say_what_is_left(struct hf_term *term, struct hf__json *ns, const char *name,
                            const struct hfd_ns_report *report) {
        const struct hf_clock *clock = hf_host_clock(hf_term_host(term));
        char now[HF__MICROTIME_MAX];
        bool changed;

        hf__time_format(clock->real(clock->ctx) / HF_NSEC_PER_SEC, now);
        int r = hfd_ns_set_conditions(ns, report, now, &changed);
        return r != 0 || !changed
                       ? r
                       : settle(hfd_object_update(term, &namespaces, NULL, name, "status", ns));
}

static int empty(struct hfd_controllers *controllers, struct hf_term *term, struct hf__json *ns,
                 const char *name, hf_nsec *ret_again) {
        struct hfd_ns_report report = {0};
        int r = 0;

        for (size_t i = 0; r == 0 && i < controllers->kinds.n; i++)
                if (controllers->kinds.kinds[i].row.namespaced)
                        r = empty_kind(term, &controllers->kinds.kinds[i], ns, &report);
        if (r == 0 && hfd_ns_report_clean(&report)) {
                r = finalize(term, ns, name);
        } else if (r == 0) {
                r = say_what_is_left(term, ns, name, &report);
                if (r == 0 && report.n_failures)
                        r = HF_E_UNAVAILABLE; /* tried again with the queue's growing delay */
                *ret_again = LOOK_AGAIN;
        }
        hfd_ns_report_done(&report);
        return r;
}

/* ---- leftovers of a namespace that is gone ---- */

static int delete_leftovers(struct hf_term *term, const struct hfd_kind *kind, const char *ns,
                            const struct hf__json *page) {
        int r = 0;

        for (const struct hf__json *m = hf__json_first(hf__json_get(page, "items")); r == 0 && m;
             m = hf__json_next(m)) {
                struct hfd_delete what = {.uid = hf__json_string(m, "metadata.uid")};
                const char *name = hf__json_string(m, "metadata.name");
                if (name && what.uid && !hf__json_string(m, "metadata.deletionTimestamp"))
                        r = settle(hfd_object_delete(term, &kind->row.resource, ns, name, &what));
        }
        return r;
}

static bool is_missing(struct hf_term *term, const char *name, int *ret_error) {
        struct hf__json *ns;

        *ret_error = hfd_object_read(term, &namespaces, NULL, name, &ns);
        if (*ret_error == 0)
                hf__json_free(ns);
        bool missing = *ret_error == HF_E_NOT_FOUND;
        if (missing)
                *ret_error = 0;
        return missing;
}

static int sweep(struct hfd_controllers *controllers, struct hf_term *term, const char *ns,
                 hf_nsec *ret_again) {
        int r = 0;

        if (!is_missing(term, ns, &r))
                return r;
        for (size_t i = 0; r == 0 && i < controllers->kinds.n; i++) {
                const struct hfd_kind *kind = &controllers->kinds.kinds[i];
                struct hf__json *page;
                size_t n;
                if (!kind->row.namespaced)
                        continue;
                r = list(term, kind, ns, PAGE, &page, &n);
                if (r != 0)
                        return r;
                if (n > 0 && is_missing(term, ns, &r) && r == 0) {
                        hf_log(&hf_term_host(term)->log, HF_LOG_NOTICE, HFD_NAMESPACE_LIFECYCLE,
                               "%zu %s are left of namespace %s, which is gone", n,
                               kind->row.resource.plural, ns);
                        r = delete_leftovers(term, kind, ns, page);
                        *ret_again = LOOK_AGAIN;
                }
                hf__json_free(page);
        }
        return r;
}

/* ---- the controller ---- */

/* Made by the host at its start, which does not wait for them with its first Leases. */
static bool is_system(const char *name) {
        return strcmp(name, "default") == 0 || strcmp(name, HFD_SYSTEM_NAMESPACE) == 0 ||
               strcmp(name, "kube-public") == 0 || strcmp(name, "kube-node-lease") == 0;
}

static int reconcile(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again) {
        struct hfd_controllers *controllers = ctx;
        bool grown = *key == GROWN;
        const char *name = key + grown;
        struct hf__json *ns;
        int r = hfd_object_cached(controllers->namespaces->informer, NULL, name, &ns);

        if (r == HF_E_NOT_FOUND)
                return grown && !is_system(name) ? sweep(controllers, term, name, ret_again) : 0;
        if (r != 0)
                return r;
        if (hfd_ns_wants_finalizing(ns))
                r = empty(controllers, term, ns, name, ret_again);
        hf__json_free(ns);
        return r;
}

static void map_content(void *ctx, struct hf_workqueue *queue, enum hf_event_type type,
                        const char *ns, const char *name, const char *object, size_t n) {
        char key[HF_NAME_MAX + 2];

        if (!ns || !*ns || type == HF_EVENT_MODIFIED)
                return;
        (void)snprintf(key, sizeof key, "%c%s", GROWN, ns);
        (void)hf_workqueue_add(queue, type == HF_EVENT_DELETED ? ns : key);
}

/* What is left of one that is gone: known by now, or its own coming will tell. */
static void map_gone(struct hfd_controllers *controllers, struct hf_workqueue *queue,
                     const char *name) {
        char key[HF_NAME_MAX + 2];
        bool left = false;

        for (size_t i = 0; !left && i < controllers->kinds.n; i++)
                left = controllers->kinds.kinds[i].row.namespaced &&
                       hf__informer_has_in(controllers->kinds.kinds[i].informer, name);
        (void)snprintf(key, sizeof key, "%c%s", GROWN, name);
        if (left)
                (void)hf_workqueue_add(queue, key);
}

static void map_namespace(void *ctx, struct hf_workqueue *queue, enum hf_event_type type,
                          const char *ns, const char *name, const char *object, size_t n) {
        static const char mark[] = "\"deletionTimestamp\"";

        if (type == HF_EVENT_DELETED)
                map_gone(ctx, queue, name);
        else if (memmem(object, n, mark, sizeof mark - 1))
                (void)hf_workqueue_add(queue, name);
}

int hfd_run_namespace_lifecycle(struct hf_term *term, void *ctx) {
        struct hfd_controllers *controllers = ctx;
        struct hf_reconciler_source sources[HFD_KINDS_MAX];
        size_t n = 0;

        for (size_t i = 0; i < controllers->kinds.n; i++) {
                const struct hfd_kind *kind = &controllers->kinds.kinds[i];
                if (kind->row.namespaced)
                        sources[n++] = (struct hf_reconciler_source){.informer = kind->informer,
                                                                     .map = map_content};
                else if (kind == controllers->namespaces)
                        sources[n++] = (struct hf_reconciler_source){.informer = kind->informer,
                                                                     .map = map_namespace};
        }
        const struct hf_reconciler reconciler = {
                .size = sizeof reconciler,
                .name = HFD_NAMESPACE_LIFECYCLE,
                .sources = sources,
                .n_sources = n,
                .n_workers = N_WORKERS,
                .reconcile = reconcile,
                .ctx = controllers,
        };

        return hf_reconciler_run(&reconciler, term);
}
