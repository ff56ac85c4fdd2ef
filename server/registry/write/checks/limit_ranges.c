/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies the LimitRanges of the namespace, in the order of their names. server/quota/ has the
 * rules for one LimitRange.
 *
 * Invariant: the work for one write is bounded (HFD_LIMIT_RANGE_PAIRS_MAX for each LimitRange, of
 * which there may be RANGES_MAX).
 */
#include "server/registry/write/checks/limit_ranges.h"

#include <errno.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/cacher/cacher.h"
#include "server/quota/limit_range.h"
#include "server/registry/write/reply.h"
#include "server/resources/rows/resource_table.h"

#define RANGES_MAX 16

/* Called for each LimitRange. 0, -ENOMEM, or HF_E_FORBIDDEN with the message in why. */
typedef int (*range_fn)(struct hfd_write *w, const struct hf__json *range, struct hf__strbuf *why);

static enum hfd_quota_kind kind_of(const struct hfd_write *w) {
        return hfd_quota_kind(w->request->resource->group, w->request->resource->plural);
}

static bool is_too_much(const struct hfd_write *w, const struct hf__json *range,
                        struct hf__strbuf *why) {
        if (kind_of(w) != HFD_QUOTA_PODS || !hfd_limit_range_is_too_much(range, w->object))
                return false;
        hf__strbuf_puts(why, "it has too many containers for the LimitRanges of the namespace");
        return true;
}

static int default_pod(struct hfd_write *w, const struct hf__json *range, struct hf__strbuf *why) {
        if (is_too_much(w, range, why))
                return HF_E_FORBIDDEN;
        int r = hfd_limit_range_default_pod(range, w->object);
        /* The QoS class of the pod depends on its requests and limits. */
        return r == 0 ? w->request->resource->prepare(w->object, NULL) : r;
}

/* The number of containers is checked again, because admission may have added some. */
static int check_bounds(struct hfd_write *w, const struct hf__json *range, struct hf__strbuf *why) {
        if (is_too_much(w, range, why))
                return HF_E_FORBIDDEN;
        int r = hfd_limit_range_check(range, kind_of(w), w->object, why);

        return r == 0 && why->n > 0 ? HF_E_FORBIDDEN : r;
}

/* Calls fn for each LimitRange until one fails, and drops all references. 0, -ENOMEM, or the error
 * of fn. */
static int visit_ranges(struct hfd_write *w, struct hfd_object **objects, size_t n, range_fn fn,
                        struct hf__strbuf *why) {
        int r = 0;

        for (size_t i = 0; i < n; i++) {
                struct hf__json *range = r == 0 ? hfd_object_parse(objects[i]) : NULL;
                if (r == 0)
                        r = range ? fn(w, range, why) : -ENOMEM;
                hf__json_free(range);
                hfd_object_unref(objects[i]);
        }
        return r;
}

/* Calls fn for each LimitRange of the namespace. 0, -ENOMEM, the error of fn, HF_E_FORBIDDEN if
 * there are too many, or HF_E_UNAVAILABLE if the cache is not filled yet. */
static int apply_ranges(struct hfd_write *w, range_fn fn, struct hf__strbuf *why) {
        struct hfd_object *objects[RANGES_MAX];
        const struct hfd_resource *resource = hfd_resource_find("", "v1", "limitranges");
        bool synced;
        size_t n = hfd_cacher_newest_in(w->registry->cacher, resource, w->request->ns, objects,
                                        RANGES_MAX, &synced);
        int r = visit_ranges(w, objects, n < RANGES_MAX ? n : RANGES_MAX, fn, why);

        if (!synced)
                return HF_E_UNAVAILABLE;
        if (r == 0 && n > RANGES_MAX) {
                hf__strbuf_puts(why, "the namespace has more than 16 LimitRanges");
                r = HF_E_FORBIDDEN;
        }
        return r;
}

/* Responds, or reads the object again, according to the result of apply_ranges. True: go on. */
static bool act_on_result(struct hfd_write *w, const struct hf__json *old, int r,
                          const struct hf__strbuf *why) {
        if (r == 0)
                return true;
        if (r == HF_E_FORBIDDEN && old && !w->fresh) {
                hfd_write_refetch(w);
                return false;
        }
        if (r != HF_E_FORBIDDEN) {
                hfd_write_reply_store_error(w, r, NULL);
                return false;
        }
        hfd_write_reply_forbidden(w, why->data ? why->data : "");
        return false;
}

bool hfd_write_limit_ranges_default(struct hfd_write *w) {
        struct hf__strbuf why = {0};

        if (!w->created || w->request->subresource != HFD_SUB_NONE || kind_of(w) != HFD_QUOTA_PODS)
                return true;
        bool go_on = act_on_result(w, NULL, apply_ranges(w, default_pod, &why), &why);
        hf__strbuf_done(&why);
        return go_on;
}

bool hfd_write_limit_ranges_allow(struct hfd_write *w, const struct hf__json *old) {
        enum hfd_quota_kind kind = kind_of(w);
        struct hf__strbuf why = {0};
        bool resizes = w->request->subresource == HFD_SUB_RESIZE;

        if ((w->request->subresource != HFD_SUB_NONE && !resizes) ||
            (kind != HFD_QUOTA_CLAIMS && (kind != HFD_QUOTA_PODS || (old && !resizes))) ||
            (old && hf__json_string(old, "metadata.deletionTimestamp")))
                return true;
        bool go_on = act_on_result(w, old, apply_ranges(w, check_bounds, &why), &why);
        hf__strbuf_done(&why);
        return go_on;
}
