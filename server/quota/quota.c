/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decision of a ResourceQuota about a create or an update.
 *
 * Invariants: messages are those of kube-apiserver, as clients show them. A quota whose status.used
 * is unknown refuses the change: its limit must not be exceeded because a recount is late. The work
 * is in proportion to n log n of the quota and of the object.
 */
#include "server/quota/quota.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "server/quota/must_specify.h"
#include "server/quota/quota_names.h"
#include "server/quota/scopes.h"

/* ---- a change ---- */

/* Whether the change can raise the usage of the object. Kubernetes measures a pod again only if it
 * is resized, or gets or loses spec.activeDeadlineSeconds: no other update of a pod can raise what
 * a quota counts. */
static bool is_measured(enum hfd_quota_kind kind, const struct hf__json *object,
                        const struct hf__json *old, enum hfd_quota_write what) {
        if (!old || kind == HFD_QUOTA_CLAIMS)
                return true;
        if (kind == HFD_QUOTA_PODS && what == HFD_QUOTA_OF_RESIZE)
                return true;
        if (kind == HFD_QUOTA_PODS)
                return what == HFD_QUOTA_OF_OBJECT &&
                       hfd_pod_is_terminating(object) != hfd_pod_is_terminating(old);
        return kind == HFD_QUOTA_SERVICES && what == HFD_QUOTA_OF_OBJECT;
}

bool hfd_quota_change_init(struct hfd_quota_change *change, const char *group, const char *plural,
                           const struct hf__json *object, const struct hf__json *old,
                           enum hfd_quota_write what, int64_t now_s, int *ret_error) {
        enum hfd_quota_kind kind = hfd_quota_kind(group, plural);

        *ret_error = 0;
        *change = (struct hfd_quota_change){.kind = kind,
                                            .object = object,
                                            .old = old,
                                            .unlimited = what == HFD_QUOTA_OF_STATUS};
        if (!hfd_quota_names(group, plural, &change->names) ||
            !is_measured(kind, object, old, what))
                return false;
        if (kind == HFD_QUOTA_OBJECTS)
                return true;
        *ret_error = hfd_usage_init(&change->usage, kind, object, now_s);
        if (*ret_error == 0 && old)
                *ret_error = hfd_usage_init(&change->old_usage, kind, old, now_s);
        return true;
}

void hfd_quota_change_done(struct hfd_quota_change *change) {
        hfd_usage_done(&change->usage);
        hfd_usage_done(&change->old_usage);
}

/* Whether the change may use the resource with this name. Objects that are only counted have one or
 * two names; if there is one, the second is "". */
static bool tracks_resource(const struct hfd_quota_change *change, const char *name) {
        if (change->kind != HFD_QUOTA_OBJECTS)
                return hfd_quota_kind_tracks(change->kind, name);
        return *name &&
               (strcmp(name, change->names.of[0]) == 0 || strcmp(name, change->names.of[1]) == 0);
}

/* How much more of the resource is used after the change. was_selected: the quota counted the old
 * version as well. */
static struct hfd_quantity rise_of(const struct hfd_quota_change *change, const char *name,
                                   bool was_selected) {
        struct hfd_quantity rise = hfd_quantity_of(0), before;

        if (change->kind == HFD_QUOTA_OBJECTS)
                return hfd_quantity_of(1); /* is_measured lets only creates pass */
        /* An update that lowers the use rises by zero (hfd_quantity_subtract), so it exceeds no
         * limit. The recount lowers status.used later. */
        if (!hfd_usage_get(&change->usage, name, &rise))
                return hfd_quantity_of(0);
        if (was_selected && hfd_usage_get(&change->old_usage, name, &before))
                hfd_quantity_subtract(&rise, &before);
        return rise;
}

/* ---- the limits ---- */

/* A resource that the quota limits, and that objects of the kind use. */
struct limit {
        const char *name; /* borrowed from the quota */
        struct hfd_quantity hard, used, rise;
        struct hf__json *entry; /* in status.used; borrowed */
        bool known;             /* status.used has a quantity of it, which is not negative */
        bool rises;             /* the change needs more of it */
        bool exceeded;          /* with the change, there would be more of it than `hard` */
};

struct limits {
        struct limit *of; /* owned; sorted by name */
        size_t n;
};

/* False: the value is not a quantity. */
static bool read_quantity(const struct hf__json *value, struct hfd_quantity *ret_quantity) {
        const char *text = hf__json_text(value);

        return text && hfd_quantity_parse(text, ret_quantity) == NULL;
}

static int compare_limits(const void *a, const void *b) {
        return strcmp(((const struct limit *)a)->name, ((const struct limit *)b)->name);
}

static void fill_limit(struct limit *limit, const struct hfd_quota_change *change,
                       const struct hf__json_index *used, bool was_selected) {
        struct hf__json_index_entry *entry = hf__json_index_find(used, limit->name);

        limit->entry = entry ? entry->item : NULL;
        limit->known = read_quantity(limit->entry, &limit->used) && !limit->used.negative;
        limit->rise = rise_of(change, limit->name, was_selected);
        limit->rises = !hfd_quantity_is_zero(&limit->rise);
        if (!limit->known)
                return;
        struct hfd_quantity next = limit->used;
        hfd_quantity_add(&next, &limit->rise);
        limit->exceeded = limit->rises && hfd_quantity_compare(&next, &limit->hard) > 0;
}

/* Finds the limits of status.hard that concern the change. A limit that is no quantity is skipped:
 * validation lets none be stored. 0 or -ENOMEM; the caller frees limits->of in any case. */
static int find_limits(const struct hf__json *quota, const struct hfd_quota_change *change,
                       bool was_selected, struct limits *limits) {
        const struct hf__json *hard = hf__json_path(quota, "status.hard");
        struct hf__json_index used;
        size_t max = 0;

        for (const struct hf__json *m = hf__json_first(hard); m; m = hf__json_next(m))
                max += tracks_resource(change, hf__json_key(m));
        if (max == 0)
                return 0;
        limits->of = calloc(max, sizeof *limits->of);
        int r = limits->of ? hf__json_index_init(&used, hf__json_path(quota, "status.used"), NULL)
                           : -ENOMEM;
        if (!limits->of)
                return r;
        for (const struct hf__json *m = hf__json_first(hard); m && r == 0; m = hf__json_next(m)) {
                struct limit *limit = &limits->of[limits->n];
                if (!tracks_resource(change, hf__json_key(m)) || !read_quantity(m, &limit->hard))
                        continue;
                limit->name = hf__json_key(m);
                fill_limit(limit, change, &used, was_selected);
                limits->n++;
        }
        hf__json_index_done(&used);
        qsort(limits->of, limits->n, sizeof *limits->of, compare_limits);
        return r;
}

/* Whether the change needs more of a resource that spec.hard has, but status.hard does not have
 * yet. *ret_error: 0 or -ENOMEM. */
static bool will_count(const struct hf__json *quota, const struct hfd_quota_change *change,
                       bool was_selected, int *ret_error) {
        struct hf__json_index counted;
        bool found = false;

        *ret_error = hf__json_index_init(&counted, hf__json_path(quota, "status.hard"), NULL);
        for (const struct hf__json *m = hf__json_first(hf__json_path(quota, "spec.hard"));
             m && !found && *ret_error == 0; m = hf__json_next(m)) {
                const char *name = hf__json_key(m);
                if (!tracks_resource(change, name) || hf__json_index_find(&counted, name))
                        continue;
                const struct hfd_quantity rise = rise_of(change, name, was_selected);
                found = !hfd_quantity_is_zero(&rise);
        }
        hf__json_index_done(&counted);
        return found;
}

/* ---- refusals ---- */

static const char *name_of(const struct hf__json *quota) {
        const char *name = hf__json_string(quota, "metadata.name");

        return name ? name : "";
}

static bool put_negative(const struct hfd_quota_change *change, const struct limits *limits,
                         struct hf__strbuf *why) {
        const char *comma = "quota usage is negative for resource(s): ";
        bool any = false;

        for (size_t i = 0; change->kind != HFD_QUOTA_OBJECTS && i < limits->n; i++) {
                if (!hfd_usage_is_negative(&change->usage, limits->of[i].name))
                        continue;
                hf__strbuf_printf(why, "%s%s", comma, limits->of[i].name);
                comma = ",";
                any = true;
        }
        return any;
}

static bool put_unknown(const struct hf__json *quota, const struct limits *limits,
                        struct hf__strbuf *why) {
        bool known = true;

        for (size_t i = 0; i < limits->n; i++)
                known = known && limits->of[i].known;
        if (known)
                return false;
        hf__strbuf_printf(why, "status unknown for quota: %s, resources: ", name_of(quota));
        for (size_t i = 0; i < limits->n; i++)
                hf__strbuf_printf(why, "%s%s", i ? "," : "", limits->of[i].name);
        return true;
}

/* The parts of the message about exceeded limits. */
enum part { REQUESTED, USED, LIMITED };

static void put_part(const struct limits *limits, enum part part, struct hf__strbuf *why) {
        static const char *const words[] = {", requested: ", ", used: ", ", limited: "};
        const char *comma = "";

        hf__strbuf_puts(why, words[part]);
        for (size_t i = 0; i < limits->n; i++) {
                const struct limit *limit = &limits->of[i];
                const struct hfd_quantity *values[] = {&limit->rise, &limit->used, &limit->hard};
                char text[HFD_QUANTITY_TEXT_MAX];
                if (!limit->exceeded)
                        continue;
                hfd_quantity_format(values[part], text);
                hf__strbuf_printf(why, "%s%s=%s", comma, limit->name, text);
                comma = ",";
        }
}

static bool put_exceeded(const struct hf__json *quota, const struct limits *limits,
                         struct hf__strbuf *why) {
        bool exceeded = false;

        for (size_t i = 0; i < limits->n; i++)
                exceeded = exceeded || limits->of[i].exceeded;
        if (!exceeded)
                return false;
        hf__strbuf_printf(why, "exceeded quota: %s", name_of(quota));
        put_part(limits, REQUESTED, why);
        put_part(limits, USED, why);
        put_part(limits, LIMITED, why);
        return true;
}

static bool put_unspecified(const struct hf__json *quota, const struct hfd_quota_change *change,
                            const struct limits *limits, struct hf__strbuf *why) {
        struct hfd_must_specify missing = {.pod = change->object};

        for (size_t i = 0; change->kind == HFD_QUOTA_PODS && i < limits->n; i++)
                hfd_must_specify_check(&missing, limits->of[i].name);
        if (!missing.any)
                return false;
        hf__strbuf_printf(why, "failed quota: %s: ", name_of(quota));
        hfd_must_specify_print(&missing, why);
        return true;
}

/* ---- the decision ---- */

/* Adds the rises to status.used. *ret_any: whether there was one. 0 or -ENOMEM. */
static int write_used(struct limits *limits, bool *ret_any) {
        int r = 0;

        *ret_any = false;
        for (size_t i = 0; i < limits->n && r == 0; i++) {
                struct limit *limit = &limits->of[i];
                char text[HFD_QUANTITY_TEXT_MAX];
                if (!limit->rises)
                        continue;
                *ret_any = true;
                hfd_quantity_add(&limit->used, &limit->rise);
                hfd_quantity_format(&limit->used, text);
                r = hf__json_set_text(limit->entry, text);
        }
        return r;
}

/* The refusals are checked in the order of kube-apiserver, so that a write with several faults gets
 * the same message. Limits come last: they can be compared only if status.used is known, and if the
 * object asks for no negative amount. 0 or -ENOMEM. */
static int decide_quota(const struct hf__json *quota, const struct hfd_quota_change *change,
                        struct limits *limits, bool was_selected,
                        enum hfd_quota_verdict *ret_verdict, struct hf__strbuf *why) {
        bool any = false, later;
        int r;

        if (put_unspecified(quota, change, limits, why) || put_unknown(quota, limits, why) ||
            put_negative(change, limits, why) ||
            (!change->unlimited && put_exceeded(quota, limits, why))) {
                *ret_verdict = HFD_QUOTA_REFUSED;
                return why->error != 0 ? -ENOMEM : 0;
        }
        r = write_used(limits, &any);
        if (r != 0 || any) {
                *ret_verdict = HFD_QUOTA_CHARGED;
                return r;
        }
        later = will_count(quota, change, was_selected, &r);
        if (later)
                *ret_verdict = HFD_QUOTA_PENDING;
        return r;
}

int hfd_quota_charge(struct hf__json *quota, const struct hfd_quota_change *change,
                     enum hfd_quota_verdict *ret_verdict, struct hf__strbuf *why) {
        struct limits limits = {0};

        *ret_verdict = HFD_QUOTA_UNCOUNTED;
        if (!hfd_quota_selects(quota, change->kind, change->object))
                return 0;
        bool was_selected = change->old && hfd_quota_selects(quota, change->kind, change->old);
        int r = find_limits(quota, change, was_selected, &limits);
        if (r == 0)
                r = decide_quota(quota, change, &limits, was_selected, ret_verdict, why);
        free(limits.of);
        return r;
}
