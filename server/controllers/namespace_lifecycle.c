/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The namespace lifecycle: empties a namespace that is marked for deletion, and removes its
 * finalizer when nothing is left in it.
 *
 *      1. A client deletes the namespace: the server marks it with a deletionTimestamp, and from
 *         then on creates nothing in it.
 *      2. For every namespaced kind, all objects in the namespace are deleted as a collection: pods
 *         first. While pods remain, nothing else is deleted, because pods use the other objects,
 *         and NetworkPolicies still have to hold for the pods.
 *      3. If objects remain, because they have finalizers or their deletion failed, the conditions
 *         of the namespace describe them. Each deletion of such an object enqueues the namespace
 *         again.
 *      4. If nothing remains, "kubernetes" is removed from spec.finalizers by /finalize, and the
 *         server deletes the namespace, unless it has other finalizers.
 *
 * All state is in the objects, so a new leader continues where the previous one stopped.
 *
 * Invariants:
 *
 * Completeness. The transaction of every create compares the revision of the namespace
 * (server/registry/write/checks/namespace.c), so a marked namespace gets no further objects. (The
 * system's namespaces are not compared, but they cannot be deleted either.) A list that is not
 * older than the mark therefore shows all objects of the namespace, and the server can respond from
 * its cache. After the objects are deleted, a consistent read shows what remains.
 *
 * Kinds. The list of kinds is that of one set (kinds/kinds.h). The set is enough for a namespace if
 * it has all kinds whose definition was Established when the namespace was marked, because then the
 * namespace can contain nothing else. (A kind that cannot be listed for a minute does not count,
 * see hfd_kinds_is_complete.) Otherwise the namespace is not finalized but checked again, usually
 * by the loop that begins with the next set.
 *
 * Identity. If the namespace is deleted and created again, the new one must not lose objects, even
 * if the informers are outdated or this process was paused. So the contents are listed first. Then
 * a consistent read confirms that the namespace still has the same uid. Then only the objects that
 * existed at the revision of the list are deleted.
 *
 * Orphaned content. If another client finalizes a namespace that is not empty, objects remain whose
 * namespace does not exist. They are listed. Then a consistent read confirms that the namespace
 * does not exist. Then they are deleted by uid. So a namespace that was created again loses no
 * object.
 */
#include "server/controllers/namespace_lifecycle.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/time_format.h"
#include "client/informer_lookup.h"
#include "server/controllers/base/object_client.h"
#include "server/controllers/base/string_list.h"
#include "server/controllers/context/controller_context.h"
#include "server/controllers/context/reconcile_loop.h"
#include "server/controllers/namespace_report.h"

#define N_WORKERS 8 /* a worker mostly waits for responses */
/* The delay of the next check while objects remain; usually an event triggers a check sooner. */
#define RECHECK_DELAY      (15 * HF_NSEC_PER_SEC)
#define COLLECTION_TIMEOUT (60 * HF_NSEC_PER_SEC) /* deadline for deleting one collection */
/* All objects of a page are in memory together. kubectl asks for pages of this size, too. */
#define PAGE_QUERY "limit=500"
/* There are two kinds of keys. The name of a namespace: check whether it must be emptied. This
 * character and a name: also check whether the namespace exists, because it has content. */
#define CONTENT_KEY '+'

/* The delay of the next check while the loop's set may lack a kind that has objects, or the
 * informer of definitions is late. */
#define KINDS_DELAY (200 * HF_NSEC_PER_MSEC)
/* How long a worker waits for the informer of definitions. */
#define CATCH_UP_MAX (5 * HF_NSEC_PER_SEC)

static const struct hf_resource namespaces = {"", "v1", "namespaces"};

/* The controller with one set of kinds. */
struct lifecycle {
        struct hfd_controller_context *context; /* borrowed */
        const struct hfd_kind_set *set;         /* borrowed */
};

/* ---- requests for collections ---- */

/* Lists one page of a kind. *ret_n: the number of objects on this page and all following ones. */
static int list_objects(struct hf_term *term, const struct hfd_kind *kind, const char *ns,
                        const char *query, struct hf__json **ret_list, size_t *ret_n) {
        struct hf_request request = {.size = sizeof request,
                                     .verb = HF_VERB_LIST,
                                     .resource = kind->row.resource,
                                     .ns = ns,
                                     .query = query};
        struct hf_status status;
        char *text = NULL;
        size_t n = 0;
        int64_t n_beyond = 0;
        int r = hf_client_do(hf_term_client(term), &request, hf_term_abort(term), &text, &n,
                             &status);

        if (r == 0)
                r = hf__json_parse(text, n, ret_list, NULL);
        free(text);
        if (r != 0)
                return r;
        if (!hf__json_i64(*ret_list, "metadata.remainingItemCount", &n_beyond) || n_beyond < 0)
                n_beyond = 0;
        *ret_n = hf__json_count(hf__json_get(*ret_list, "items")) + (size_t)n_beyond;
        return 0;
}

/*
 * Counts the objects of a kind in ns. since: the list must be at this revision or a later one; NULL
 * = a consistent read. Stores the revision of the list in `at`.
 */
static int count_objects(struct hf_term *term, const struct hfd_kind *kind, const char *ns,
                         const char *since, size_t *ret_n, char at[32]) {
        struct hf__json *page;
        char query[128];

        (void)snprintf(query, sizeof query, "limit=1%s%.32s",
                       since ? "&resourceVersionMatch=NotOlderThan&resourceVersion=" : "",
                       since ? since : "");
        int r = list_objects(term, kind, ns, query, &page, ret_n);
        if (r != 0)
                return r;
        const char *revision = hf__json_string(page, "metadata.resourceVersion");
        (void)snprintf(at, 32, "%.31s", revision ? revision : "");
        hf__json_free(page);
        return *at ? 0 : HF_E_INVALID;
}

/* Deletes the objects of a kind that were in ns at the revision `at`. An object created later is
 * not touched, even if an object of the same name existed then. */
static int delete_collection(struct hf_term *term, const struct hfd_kind *kind, const char *ns,
                             const char *at, struct hf_status *reterr_status) {
        char query[128];
        struct hf_request request = {.size = sizeof request,
                                     .verb = HF_VERB_DELETE_COLLECTION,
                                     .resource = kind->row.resource,
                                     .ns = ns,
                                     .query = query,
                                     .deadline = hf_now(hf_host_clock(hf_term_host(term))) +
                                                 COLLECTION_TIMEOUT};

        (void)snprintf(query, sizeof query, "resourceVersionMatch=Exact&resourceVersion=%s", at);
        return hf_client_do(hf_term_client(term), &request, hf_term_abort(term), NULL, NULL,
                            reterr_status);
}

/* ---- a terminating namespace ---- */

struct finalizer_search {
        const char *ns;
        struct hfd_namespace_report *report;
};

static void report_finalizers(void *ctx, const char *ns, const char *name, const char *object,
                              size_t n) {
        struct finalizer_search *search = ctx;
        struct hf__json *json;

        if (strcmp(ns, search->ns) != 0 || hf__json_parse(object, n, &json, NULL) != 0)
                return;
        hfd_namespace_report_finalizers(search->report, json);
        hf__json_free(json);
}

/* Checks that the namespace still has that uid. HF_E_CONFLICT: it is deleted, or created again. */
static int check_namespace(struct hf_term *term, const char *name, const char *uid) {
        struct hf__json *ns;
        int r = hfd_object_client_get(term, &namespaces, NULL, name, &ns);

        if (r != 0)
                return r == HF_E_NOT_FOUND ? HF_E_CONFLICT : r;
        const char *found = hf__json_string(ns, "metadata.uid");
        r = found && strcmp(found, uid) == 0 ? 0 : HF_E_CONFLICT;
        hf__json_free(ns);
        return r;
}

/*
 * Deletes the objects of one kind in the namespace `object`, and reports those that remain. A
 * deletion that fails is only reported. After an error the namespace must not be finalized: the
 * term is ending, it is unknown what remains, or the namespace has been replaced or is gone
 * (HF_E_CONFLICT).
 */
static int empty_kind(struct hf_term *term, const struct hfd_kind *kind,
                      const struct hf__json *object, struct hfd_namespace_report *report) {
        const char *ns = hf__json_string(object, "metadata.name"),
                   *uid = hf__json_string(object, "metadata.uid");
        /* This version of the namespace has the mark, so its revision is not older than the
         * mark. */
        const char *since = hf__json_string(object, "metadata.resourceVersion");
        struct hf_status status = {0};
        struct finalizer_search search = {ns, report};
        char at[32];
        size_t n;
        int r = ns && uid ? count_objects(term, kind, ns, since, &n, at) : HF_E_INVALID;

        if (r != 0 || n == 0)
                return r;
        r = check_namespace(term, ns, uid);
        if (r != 0)
                return r;
        r = delete_collection(term, kind, ns, at, &status);
        if ((r == HF_E_CANCELED && hf_cancel_fired(hf_term_abort(term))) || r == HF_E_NOT_LEADER ||
            r == HF_E_STALE_TERM)
                return r;
        if (r != 0) {
                char text[600];
                (void)snprintf(text, sizeof text, "%s: %s", kind->row.resource.plural,
                               *status.message ? status.message : hf_strerror(r));
                hfd_namespace_report_failure(report, text);
        }
        r = count_objects(term, kind, ns, NULL, &n, at);
        if (r != 0 || n == 0)
                return r;
        hfd_namespace_report_remaining(report, kind->row.resource.plural, kind->row.resource.group,
                                       n);
        /* The finalizers come from the informer, which may be outdated. That is good enough for a
         * message, which the next event corrects. */
        (void)hf_informer_by_index(kind->informer, HFD_FINALIZER_INDEX, ns, report_finalizers,
                                   &search);
        return 0;
}

/* If another client has changed the namespace, does nothing: the event of that change enqueues the
 * namespace again. */
static int write_namespace(struct hf_term *term, const char *name, const char *subresource,
                           const struct hf__json *ns) {
        return hfd_object_client_ignore_stale(
                hfd_object_client_update(term, &namespaces, NULL, name, subresource, ns));
}

static int finalize_namespace(struct hf_term *term, struct hf__json *ns, const char *name) {
        int r = hfd_string_list_remove(ns, "spec.finalizers", HFD_NAMESPACE_FINALIZER);
        return r != 0 ? r : write_namespace(term, name, "finalize", ns);
}

static int write_conditions(struct hf_term *term, struct hf__json *ns, const char *name,
                            const struct hfd_namespace_report *report) {
        const struct hf_clock *clock = hf_host_clock(hf_term_host(term));
        char now[HF__MICROTIME_MAX];
        bool changed;

        hf__time_format(clock->real(clock->ctx) / HF_NSEC_PER_SEC, now);
        int r = hfd_namespace_report_set_conditions(report, ns, now, &changed);
        return r != 0 || !changed ? r : write_namespace(term, name, "status", ns);
}

/*
 * Whether the loop has all kinds that may have objects in the namespace: those whose definition was
 * Established when the namespace was marked. Waits until that is known, but for CATCH_UP_MAX at
 * most. If it is not known by then, *ret_complete is false.
 */
static int check_kinds(const struct lifecycle *lifecycle, struct hf_term *term,
                       const struct hf__json *ns, bool *ret_complete) {
        const struct hfd_kind *definitions = lifecycle->context->definitions;
        const char *since = hf__json_string(ns, "metadata.resourceVersion");
        const struct hf_clock *clock = hf_host_clock(hf_term_host(term));
        struct hf_cancel *token;
        int r = definitions ? hf_cancel_new(hf_term_abort(term), clock, &token) : 0;

        *ret_complete = true;
        if (!definitions || r != 0)
                return r;
        hf_cancel_set_deadline(token, hf_now(clock) + CATCH_UP_MAX);
        r = hf_informer_wait(definitions->informer, since, token);
        *ret_complete = r == 0 && hfd_kinds_is_complete(&lifecycle->context->kinds, lifecycle->set);
        if (r == HF_E_CANCELED && !hf_cancel_fired(hf_term_abort(term)))
                r = 0; /* the informer is late */
        hf_cancel_unref(token);
        return r;
}

static bool is_pods(const struct hfd_kind *kind) {
        return !*kind->row.resource.group && strcmp(kind->row.resource.plural, "pods") == 0;
}

/* Does step 2 (top of this file) for the pods and then, if none remain, for the other kinds. */
static int empty_kinds(const struct hfd_kind_set *set, struct hf_term *term, struct hf__json *ns,
                       struct hfd_namespace_report *report) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < set->n; i++)
                if (is_pods(set->kinds[i]))
                        r = empty_kind(term, set->kinds[i], ns, report);
        if (r != 0 || report->n_remaining > 0)
                return r;
        for (size_t i = 0; r == 0 && i < set->n; i++)
                if (set->kinds[i]->row.namespaced && !is_pods(set->kinds[i]))
                        r = empty_kind(term, set->kinds[i], ns, report);
        return r;
}

/* Does steps 2 to 4 (top of this file). */
static int empty_namespace(const struct lifecycle *lifecycle, struct hf_term *term,
                           struct hf__json *ns, const char *name, hf_nsec *ret_again) {
        struct hfd_namespace_report report = {0};
        bool complete;
        int r = check_kinds(lifecycle, term, ns, &complete);

        if (r == 0)
                r = empty_kinds(lifecycle->set, term, ns, &report);
        bool clean = hfd_namespace_report_is_clean(&report);
        if (r == 0 && clean && complete) {
                r = finalize_namespace(term, ns, name);
        } else if (r == 0) {
                if (!clean)
                        r = write_conditions(term, ns, name, &report);
                if (r == 0 && report.n_failures)
                        r = HF_E_UNAVAILABLE; /* the queue tries again, with a growing delay */
                *ret_again = complete ? RECHECK_DELAY : KINDS_DELAY;
        }
        hfd_namespace_report_done(&report);
        return r;
}

/* ---- objects whose namespace does not exist ---- */

/* Deletes the objects of one page, by uid. An object that is already being deleted is skipped. */
static int delete_page(struct hf_term *term, const struct hfd_kind *kind, const char *ns,
                       const struct hf__json *page) {
        int r = 0;

        for (const struct hf__json *m = hf__json_first(hf__json_get(page, "items")); r == 0 && m;
             m = hf__json_next(m)) {
                struct hfd_object_client_delete_options options = {
                        .uid = hf__json_string(m, "metadata.uid")};
                const char *name = hf__json_string(m, "metadata.name");
                if (name && options.uid && !hf__json_string(m, "metadata.deletionTimestamp"))
                        r = hfd_object_client_ignore_stale(
                                hfd_object_client_delete(term, &kind->row.resource, ns, name,
                                                         &options));
        }
        return r;
}

static bool is_namespace_missing(struct hf_term *term, const char *name, int *ret_error) {
        struct hf__json *ns;

        *ret_error = hfd_object_client_get(term, &namespaces, NULL, name, &ns);
        if (*ret_error == 0)
                hf__json_free(ns);
        bool missing = *ret_error == HF_E_NOT_FOUND;
        if (missing)
                *ret_error = 0;
        return missing;
}

/*
 * Deletes the objects in a namespace that does not exist, one page per kind. *ret_again repeats the
 * call until no page has objects.
 */
static int delete_orphaned_content(const struct hfd_kind_set *set, struct hf_term *term,
                                   const char *ns, hf_nsec *ret_again) {
        int r = 0;

        if (!is_namespace_missing(term, ns, &r))
                return r;
        for (size_t i = 0; r == 0 && i < set->n; i++) {
                const struct hfd_kind *kind = set->kinds[i];
                struct hf__json *page;
                size_t n;
                if (!kind->row.namespaced)
                        continue;
                r = list_objects(term, kind, ns, PAGE_QUERY, &page, &n);
                if (r != 0)
                        return r;
                if (n > 0 && is_namespace_missing(term, ns, &r) && r == 0) {
                        hf_log(&hf_term_host(term)->log, HF_LOG_NOTICE, HFD_NAMESPACE_LIFECYCLE,
                               "deleting %zu %s of the namespace %s, which does not exist", n,
                               kind->row.resource.plural, ns);
                        r = delete_page(term, kind, ns, page);
                        *ret_again = RECHECK_DELAY;
                }
                hf__json_free(page);
        }
        return r;
}

/* ---- the controller ---- */

/* The server creates these namespaces while it starts. Its first Leases may exist in kube-system
 * before that namespace does, and must not be deleted as orphaned content. */
static bool is_system_namespace(const char *name) {
        return strcmp(name, "default") == 0 || strcmp(name, HFD_SYSTEM_NAMESPACE) == 0 ||
               strcmp(name, "kube-public") == 0 || strcmp(name, "kube-node-lease") == 0;
}

static int reconcile_namespace(void *ctx, struct hf_term *term, const char *key,
                               hf_nsec *ret_again) {
        const struct lifecycle *lifecycle = ctx;
        bool content = *key == CONTENT_KEY;
        const char *name = key + content;
        struct hf__json *ns;
        int r = hfd_object_client_get_cached(lifecycle->context->namespaces->informer, NULL, name,
                                             &ns);

        if (r == HF_E_NOT_FOUND)
                return content && !is_system_namespace(name)
                               ? delete_orphaned_content(lifecycle->set, term, name, ret_again)
                               : 0;
        if (r != 0)
                return r;
        if (hfd_namespace_report_is_due(ns))
                r = empty_namespace(lifecycle, term, ns, name, ret_again);
        hf__json_free(ns);
        return r;
}

/* Ignores modified objects: they neither add to the content of a namespace nor remove from it. */
static int map_content(void *ctx, struct hf_workqueue *queue, enum hf_event_type type,
                       const char *ns, const char *name, const char *object, size_t n) {
        char key[HF_NAME_MAX + 2];

        if (!ns || !*ns || type == HF_EVENT_MODIFIED)
                return 0;
        (void)snprintf(key, sizeof key, "%c%s", CONTENT_KEY, ns);
        return hf_workqueue_add(queue, type == HF_EVENT_DELETED ? ns : key);
}

/* If an informer has an object of a namespace that was deleted, a worker must check that namespace.
 * An object that no informer has received yet enqueues the key by its own event. */
static int map_deleted_namespace(const struct hfd_kind_set *set, struct hf_workqueue *queue,
                                 const char *name) {
        char key[HF_NAME_MAX + 2];
        bool has_content = false;

        for (size_t i = 0; !has_content && i < set->n; i++)
                has_content = set->kinds[i]->row.namespaced &&
                              hf__informer_has_in(set->kinds[i]->informer, name);
        (void)snprintf(key, sizeof key, "%c%s", CONTENT_KEY, name);
        return has_content ? hf_workqueue_add(queue, key) : 0;
}

static int map_namespace(void *ctx, struct hf_workqueue *queue, enum hf_event_type type,
                         const char *ns, const char *name, const char *object, size_t n) {
        static const char mark[] = "\"deletionTimestamp\"";

        if (type == HF_EVENT_DELETED)
                return map_deleted_namespace(((const struct lifecycle *)ctx)->set, queue, name);
        if (memmem(object, n, mark, sizeof mark - 1))
                return hf_workqueue_add(queue, name);
        return 0;
}

static hf_reconciler_map_fn map_of(void *ctx, const struct hfd_kind *kind) {
        const struct lifecycle *lifecycle = ctx;

        if (kind->row.namespaced)
                return map_content;
        return kind == lifecycle->context->namespaces ? map_namespace : NULL;
}

static int run_with_set(void *ctx, struct hf_term *term, struct hfd_kind_set *set,
                        struct hf_cancel *until) {
        struct lifecycle lifecycle = {.context = ctx, .set = set};
        const struct hfd_reconcile_loop loop = {
                .name = HFD_NAMESPACE_LIFECYCLE,
                .n_workers = N_WORKERS,
                .reconcile = reconcile_namespace,
                .ctx = &lifecycle,
        };

        return hfd_reconcile_loop_run_set(&loop, term, set, map_of, until);
}

int hfd_namespace_lifecycle_run(struct hf_term *term, void *ctx) {
        struct hfd_controller_context *context = ctx;

        assert(context->namespaces); /* controllers.c has created it */
        return hfd_kinds_run(&context->kinds, term, run_with_set, context);
}
