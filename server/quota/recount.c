/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status of a quota after a recount.
 *
 * Invariant: objects are visited only where their number is not enough: for the amounts that pods,
 * claims and services use, and for the objects that scopes select. All other objects are only
 * counted, because a visit parses each of them.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "server/quota/quota.h"
#include "server/quota/scopes.h"

/* One name of spec.hard. */
struct total {
        const char *name;         /* borrowed from the quota */
        enum hfd_quota_kind kind; /* the kind whose objects use it */
        bool absent;              /* status.used does not have it */
        struct hfd_quantity used;
};

struct recount {
        const struct hf__json *quota;
        const struct hfd_quota_source *source;
        struct total *totals; /* owned; in the order of spec.hard */
        size_t n;
        enum hfd_quota_kind visiting;
};

static enum hfd_quota_kind kind_that_uses(const char *name) {
        for (unsigned kind = HFD_QUOTA_PODS; kind <= HFD_QUOTA_SERVICES; kind++)
                if (hfd_quota_kind_tracks((enum hfd_quota_kind)kind, name))
                        return (enum hfd_quota_kind)kind;
        return HFD_QUOTA_OBJECTS;
}

static int init_totals(struct recount *recount) {
        const struct hf__json *hard = hf__json_path(recount->quota, "spec.hard");
        size_t n = hf__json_count(hard);

        recount->totals = calloc(n > 0 ? n : 1, sizeof *recount->totals);
        if (!recount->totals)
                return -ENOMEM;
        for (const struct hf__json *m = hf__json_first(hard); m; m = hf__json_next(m)) {
                const char *name = hf__json_key(m);
                recount->totals[recount->n++] = (struct total){.name = name,
                                                               .kind = kind_that_uses(name),
                                                               .used = hfd_quantity_of(0)};
        }
        return 0;
}

/* ---- objects that are visited ---- */

static int add_object(void *ctx, const struct hf__json *object) {
        struct recount *recount = ctx;
        struct hfd_usage usage;

        if (!hfd_quota_selects(recount->quota, recount->visiting, object))
                return 0;
        int r = hfd_usage_init(&usage, recount->visiting, object, recount->source->now_s);
        for (size_t i = 0; i < recount->n && r == 0; i++) {
                struct total *total = &recount->totals[i];
                struct hfd_quantity used;
                if (total->kind == recount->visiting && hfd_usage_get(&usage, total->name, &used))
                        hfd_quantity_add(&total->used, &used);
        }
        hfd_usage_done(&usage);
        return r;
}

/* Whether objects of the kind must be visited, because their number is not enough for each of the
 * names. A pod that has ended is still an object, but does not count in "pods". */
static bool needs_visit(const struct recount *recount, enum hfd_quota_kind kind) {
        bool scoped = hfd_quota_has_scopes(recount->quota);

        for (size_t i = 0; i < recount->n; i++) {
                const char *name = recount->totals[i].name;
                bool counted =
                        strncmp(name, "count/", 6) == 0 ||
                        (kind != HFD_QUOTA_PODS && strcmp(name, hfd_quota_kind_plural(kind)) == 0);
                if (recount->totals[i].kind == kind && (scoped || !counted))
                        return true;
        }
        return false;
}

/* Visits the objects of a kind. A quota with scopes counts no services. If the kind is not served,
 * names with "count/" get no entry, as in count_total. 0, or the error of the visit. */
static int visit_kind(struct recount *recount, enum hfd_quota_kind kind) {
        bool served = true;
        int r = 0;

        recount->visiting = kind;
        if (kind != HFD_QUOTA_SERVICES || !hfd_quota_has_scopes(recount->quota))
                r = recount->source->visit(recount->source->ctx, hfd_quota_kind_plural(kind),
                                           add_object, recount, &served);
        for (size_t i = 0; i < recount->n && r == 0 && !served; i++)
                if (recount->totals[i].kind == kind)
                        recount->totals[i].absent =
                                strncmp(recount->totals[i].name, "count/", 6) == 0;
        return r;
}

/* ---- objects that are counted ---- */

/*
 * Sets the entry of one name. A name that nothing uses gets 0. In a quota with scopes the number is
 * always 0, because objects that are only counted have no scopes. If the kind is not served, a
 * plain name such as "configmaps" also gets 0, because there are no such objects; a name with
 * "count/" gets no entry, because nothing is known about the kind. Events get no entry. 0, or the
 * error of the count.
 */
static int count_total(const struct recount *recount, struct total *total) {
        char group[HFD_QUOTA_NAME_MAX], plural[HFD_QUOTA_NAME_MAX];
        const struct hfd_quota_source *source = recount->source;
        bool served = true;
        uint64_t n = 0;

        if (!hfd_quota_name_kind(total->name, group, plural))
                return 0;
        if (hfd_quota_ignores(group, plural)) {
                total->absent = true;
                return 0;
        }
        int r = source->count(source->ctx, group, plural, &n, &served);
        total->absent = !served && strchr(total->name, '/');
        total->used = hfd_quantity_of(hfd_quota_has_scopes(recount->quota) ? 0 : n);
        return r;
}

static int count_usage(struct recount *recount) {
        bool visited[HFD_QUOTA_SERVICES + 1] = {false};
        int r = 0;

        for (unsigned kind = HFD_QUOTA_PODS; kind <= HFD_QUOTA_SERVICES && r == 0; kind++) {
                visited[kind] = needs_visit(recount, (enum hfd_quota_kind)kind);
                if (visited[kind])
                        r = visit_kind(recount, (enum hfd_quota_kind)kind);
        }
        for (size_t i = 0; i < recount->n && r == 0; i++)
                if (!visited[recount->totals[i].kind])
                        r = count_total(recount, &recount->totals[i]);
        return r;
}

/* ---- the status ---- */

/* NULL: memory ran out. */
static struct hf__json *make_status(const struct recount *recount) {
        const struct hf__json *hard = hf__json_path(recount->quota, "spec.hard");
        HF__CLEANUP(hf__json_cleanup)
        struct hf__json *used = hf__json_object(), *status = hf__json_object();
        int r = used && status ? 0 : -ENOMEM;

        for (size_t i = 0; i < recount->n && r == 0; i++) {
                char text[HFD_QUANTITY_TEXT_MAX];
                if (recount->totals[i].absent)
                        continue;
                hfd_quantity_format(&recount->totals[i].used, text);
                r = hf__json_add_string(used, recount->totals[i].name, text);
        }
        if (r == 0 && hard)
                r = hf__json_add(status, "hard", hf__json_dup(hard));
        if (r == 0)
                r = hf__json_add(status, "used", HF__TAKE(used));
        return r == 0 ? HF__TAKE(status) : NULL;
}

int hfd_quota_recount(struct hf__json *quota, const struct hfd_quota_source *source,
                      bool *ret_changed) {
        assert(source->count && source->visit && ret_changed);
        struct recount recount = {.quota = quota, .source = source};
        struct hf__json *status;
        int r = init_totals(&recount);

        if (r == 0)
                r = count_usage(&recount);
        status = r == 0 ? make_status(&recount) : NULL;
        free(recount.totals);
        if (r != 0 || !status)
                return r != 0 ? r : -ENOMEM;
        *ret_changed = !hf__json_equal(hf__json_get(quota, "status"), status);
        if (*ret_changed)
                return hf__json_set(quota, "status", status);
        hf__json_free(status);
        return 0;
}
