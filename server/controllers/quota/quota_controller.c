/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The quota controller: recounts the quotas of a namespace after objects were created or deleted in
 * it, after a pod, a PersistentVolumeClaim ("claim") or a service has changed, and after a quota
 * has changed. The server itself adds to status.used what a create or an update needs
 * (server/registry/write/quota/quota.h), but subtracts nothing after a delete, or after an update
 * that lowers the use. This controller does that.
 *
 *      1. The quotas of the namespace are listed, by a consistent read.
 *      2. The objects of each kind that a quota names are counted, at the revision of that list or
 *         a later one. Pods, claims and services are read, page by page, if a count is not enough,
 *         for example for requests.cpu.
 *      3. The status is written if it is different, and if the quota still has the version of the
 *         list.
 *
 * Invariant: the order of these steps. A create, or an update that raises the use, writes the quota
 * in the same transaction. If that happens between 1 and 3, a write in 3 fails, and the recount
 * is repeated. If the objects were counted before the list, a create between the two would be
 * missing in the count, but charged in the listed status.used, and step 3 would remove its charge.
 *
 * A new leader gets the keys of all objects, so it also corrects what its predecessor has left. The
 * same happens when kinds are added or removed (hfd_kinds_run): then quotas that name these kinds
 * are recounted.
 */
#include "server/controllers/quota/quota_controller.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "client/informer_lookup.h"
#include "server/controllers/base/object_client.h"
#include "server/controllers/context/controller_context.h"
#include "server/controllers/context/reconcile_loop.h"
#include "server/quota/quota.h"

#define N_WORKERS 4 /* a worker mostly waits for responses */
/* How long a recount is delayed after a change in the namespace, so that one recount covers many.
 */
#define GATHER_DELAY (100 * HF_NSEC_PER_MSEC)
/* The same after a change of an object's use of resources. Longer, because pods change often and a
 * recount reads all of them. */
#define CHANGE_DELAY (500 * HF_NSEC_PER_MSEC)
#define PAGE_SIZE    100u /* objects in memory at a time */
/* How long to wait after a conflict: more creates are likely to follow those that caused it. */
#define CONFLICT_DELAY (50 * HF_NSEC_PER_MSEC)

static const struct hf_resource quotas = {"", "v1", "resourcequotas"};

/* ---- counting ---- */

/* The controller with one set of kinds. */
struct controller {
        struct hfd_controller_context *context; /* borrowed */
        const struct hfd_kind_set *set;         /* borrowed */
};

struct counting {
        const struct hfd_kind_set *set;
        struct hf_term *term;
        const char *ns;
        const char *since; /* the revision that the counts must include */
        int64_t now_s;     /* seconds since 1970 */
};

/* The query for the first page. */
static void first_query(const struct counting *counting, unsigned limit, struct hf__strbuf *query) {
        hf__strbuf_printf(query, "limit=%u&resourceVersionMatch=NotOlderThan&resourceVersion=%.32s",
                          limit, counting->since);
}

/* Counts objects for hfd_quota_recount. The server counts those beyond the first page, in
 * logarithmic time. */
static int count_objects(void *ctx, const char *group, const char *plural, uint64_t *ret_n,
                         bool *ret_served) {
        const struct counting *counting = ctx;
        const struct hfd_kind *kind = hfd_kind_set_find(counting->set, group, plural);
        struct hf__strbuf query = {0};
        struct hf__json *page;
        int64_t n_beyond = 0;

        *ret_served = kind && kind->row.namespaced;
        *ret_n = 0;
        if (!*ret_served)
                return 0;
        first_query(counting, 1, &query);
        int r = query.error ? -ENOMEM
                            : hfd_object_client_list(counting->term, &kind->row.resource,
                                                     counting->ns, query.data, &page);
        hf__strbuf_done(&query);
        if (r != 0)
                return r;
        if (!hf__json_i64(page, "metadata.remainingItemCount", &n_beyond) || n_beyond < 0)
                n_beyond = 0;
        *ret_n = hf__json_count(hf__json_get(page, "items")) + (uint64_t)n_beyond;
        hf__json_free(page);
        return 0;
}

/* Passes the objects of a page on. 0, or an error. Replaces `next` by the query for the next page;
 * empty = this was the last. The token is made of characters that a query may contain. */
static int pass_page(const struct hf__json *page, hfd_quota_each_fn each, void *each_ctx,
                     struct hf__strbuf *next) {
        const char *token = hf__json_string(page, "metadata.continue");
        int r = 0;

        for (const struct hf__json *m = hf__json_first(hf__json_get(page, "items")); m && r == 0;
             m = hf__json_next(m))
                r = each(each_ctx, m);
        hf__strbuf_reset(next);
        if (r == 0 && token && *token)
                hf__strbuf_printf(next, "limit=%u&continue=%s", PAGE_SIZE, token);
        return r == 0 && next->error ? -ENOMEM : r;
}

/* Visits objects for hfd_quota_recount. One page is in memory at a time. All pages show the
 * revision of the first. */
static int visit_objects(void *ctx, const char *plural, hfd_quota_each_fn each, void *each_ctx,
                         bool *ret_served) {
        const struct counting *counting = ctx;
        const struct hfd_kind *kind = hfd_kind_set_find(counting->set, "", plural);
        struct hf__strbuf query = {0};
        struct hf__json *page;
        int r = 0;

        *ret_served = kind && kind->row.namespaced;
        if (!*ret_served)
                return 0;
        first_query(counting, PAGE_SIZE, &query);
        if (query.error)
                r = -ENOMEM;
        while (r == 0 && query.n > 0) {
                r = hfd_object_client_list(counting->term, &kind->row.resource, counting->ns,
                                           query.data, &page);
                if (r != 0)
                        break;
                r = pass_page(page, each, each_ctx, &query);
                hf__json_free(page);
        }
        hf__strbuf_done(&query);
        return r;
}

/* ---- reconciling ---- */

/* Recounts one quota. HF_E_CONFLICT: the quota has changed since it was listed. */
static int recount_quota(struct counting *counting, struct hf__json *quota) {
        const char *name = hf__json_string(quota, "metadata.name");
        const struct hfd_quota_source source = {.count = count_objects,
                                                .visit = visit_objects,
                                                .ctx = counting,
                                                .now_s = counting->now_s};
        bool changed = false;
        int r = name ? hfd_quota_recount(quota, &source, &changed) : HF_E_INVALID;

        if (r == 0 && changed)
                r = hfd_object_client_update(counting->term, &quotas, counting->ns, name, "status",
                                             quota);
        return r == HF_E_NOT_FOUND ? 0 : r;
}

/* key is the name of a namespace. */
static int reconcile_quota(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again) {
        const struct controller *controller = ctx;
        const struct hf_clock *clock = hf_host_clock(controller->context->host);
        struct counting counting = {.set = controller->set,
                                    .term = term,
                                    .ns = key,
                                    .now_s = clock->real(clock->ctx) / HF_NSEC_PER_SEC};
        struct hf__json *all;

        if (!hf__informer_has_in(controller->context->quotas->informer, key))
                return 0;
        int r = hfd_object_client_list(term, &quotas, key, NULL, &all);
        if (r != 0)
                return r;
        counting.since = hf__json_string(all, "metadata.resourceVersion");
        if (!counting.since)
                r = HF_E_INVALID;
        for (struct hf__json *m = hf__json_first(hf__json_get(all, "items")); m && r == 0;
             m = hf__json_next(m)) {
                r = recount_quota(&counting, m);
                if (r == HF_E_CONFLICT) {
                        *ret_again = CONFLICT_DELAY;
                        r = 0;
                }
        }
        hf__json_free(all);
        return r;
}

/* ---- events ---- */

/* Enqueues the namespace of an object that was created or deleted. For most kinds only the number
 * of objects matters. */
static int map_object(void *ctx, struct hf_workqueue *queue, enum hf_event_type type,
                      const char *ns, const char *name, const char *object, size_t n) {
        const struct hfd_controller_context *context = ((const struct controller *)ctx)->context;

        if (type == HF_EVENT_MODIFIED || !ns || !*ns ||
            !hf__informer_has_in(context->quotas->informer, ns))
                return 0;
        return hf_workqueue_add_after(queue, ns, GATHER_DELAY);
}

/* For pods, claims and services: a change also matters, because it may change what they use. */
static int map_measured(void *ctx, struct hf_workqueue *queue, enum hf_event_type type,
                        const char *ns, const char *name, const char *object, size_t n) {
        const struct hfd_controller_context *context = ((const struct controller *)ctx)->context;

        if (type != HF_EVENT_MODIFIED)
                return map_object(ctx, queue, type, ns, name, object, n);
        if (!ns || !*ns || !hf__informer_has_in(context->quotas->informer, ns))
                return 0;
        return hf_workqueue_add_after(queue, ns, CHANGE_DELAY);
}

/* Recounts a new quota at once, because it limits nothing until its first recount. A change often
 * only adds the use of a create, so its recount is delayed. */
static int map_quota(void *ctx, struct hf_workqueue *queue, enum hf_event_type type, const char *ns,
                     const char *name, const char *object, size_t n) {
        if (!ns || !*ns)
                return 0;
        if (type == HF_EVENT_ADDED)
                return hf_workqueue_add(queue, ns);
        return hf_workqueue_add_after(queue, ns, GATHER_DELAY);
}

static hf_reconciler_map_fn map_of(void *ctx, const struct hfd_kind *kind) {
        const struct controller *controller = ctx;

        if (!kind->row.namespaced)
                return NULL;
        if (kind == controller->context->quotas)
                return map_quota;
        return hfd_quota_kind(kind->row.resource.group, kind->row.resource.plural) ==
                               HFD_QUOTA_OBJECTS
                       ? map_object
                       : map_measured;
}

static int run_with_set(void *ctx, struct hf_term *term, struct hfd_kind_set *set,
                        struct hf_cancel *until) {
        struct controller controller = {.context = ctx, .set = set};
        const struct hfd_reconcile_loop loop = {
                .name = HFD_RESOURCE_QUOTA,
                .n_workers = N_WORKERS,
                .reconcile = reconcile_quota,
                .ctx = &controller,
        };

        return hfd_reconcile_loop_run_set(&loop, term, set, map_of, until);
}

int hfd_quota_controller_run(struct hf_term *term, void *ctx) {
        struct hfd_controller_context *context = ctx;

        assert(context->quotas); /* controllers.c has created it */
        return hfd_kinds_run(&context->kinds, term, run_with_set, context);
}
