/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks a pod or a volume claim against the bounds of a LimitRange. A bound is for each container,
 * for a pod as a whole, or for claims.
 *
 * Invariant: messages are those of kube-apiserver. A single message is shown as it is, several are
 * shown in brackets.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/quota/limit_range.h"

/* Collects messages. */
struct findings {
        struct hf__strbuf text;
        size_t n;
};

/* A bound of one resource, and the request and the limit that are compared with it. */
struct bound {
        const char *name, *type; /* borrowed */
        struct hfd_quantity enforced, request, limit;
        bool has_request, has_limit;      /* false: request or limit is not set */
        char text[HFD_QUANTITY_TEXT_MAX]; /* `enforced` as text */
};

static void begin_findings(struct findings *findings) {
        if (findings->n++ > 0)
                hf__strbuf_puts(&findings->text, ", ");
}

/* "minimum cpu usage per Pod is 1, but request is 500m" */
static void put_usage(struct findings *findings, const struct bound *bound, const char *most,
                      const char *what, const struct hfd_quantity *value) {
        char text[HFD_QUANTITY_TEXT_MAX];

        assert(bound->name && bound->type);
        begin_findings(findings);
        hf__strbuf_printf(&findings->text, "%s %s usage per %s is %s", most, bound->name,
                          bound->type, bound->text);
        if (!value) {
                hf__strbuf_printf(&findings->text, ".  No %s is specified", what);
                return;
        }
        hfd_quantity_format(value, text);
        hf__strbuf_printf(&findings->text, ", but %s is %s", what, text);
}

/* A lower bound requires a request, because a container without one could use less than the bound.
 */
static void check_min(struct findings *findings, const struct bound *bound) {
        if (!bound->has_request)
                put_usage(findings, bound, "minimum", "request", NULL);
        else if (hfd_quantity_compare(&bound->request, &bound->enforced) < 0)
                put_usage(findings, bound, "minimum", "request", &bound->request);
        else if (bound->has_limit && hfd_quantity_compare(&bound->limit, &bound->enforced) < 0)
                put_usage(findings, bound, "minimum", "limit", &bound->limit);
}

/* An upper bound requires a limit, because a container without one could use more. */
static void check_max(struct findings *findings, const struct bound *bound) {
        if (!bound->has_limit)
                put_usage(findings, bound, "maximum", "limit", NULL);
        else if (hfd_quantity_compare(&bound->limit, &bound->enforced) > 0)
                put_usage(findings, bound, "maximum", "limit", &bound->limit);
        else if (bound->has_request && hfd_quantity_compare(&bound->request, &bound->enforced) > 0)
                put_usage(findings, bound, "maximum", "request", &bound->request);
}

/* Of a claim only the request is compared. */
static void check_max_request(struct findings *findings, const struct bound *bound) {
        if (!bound->has_request)
                put_usage(findings, bound, "maximum", "request", NULL);
        else if (hfd_quantity_compare(&bound->request, &bound->enforced) > 0)
                put_usage(findings, bound, "maximum", "request", &bound->request);
}

/* maxLimitRequestRatio: the limit may be at most so many times the request. */
static void check_ratio(struct findings *findings, const struct bound *bound) {
        bool no_request = !bound->has_request || hfd_quantity_is_zero(&bound->request),
             no_limit = !bound->has_limit || hfd_quantity_is_zero(&bound->limit);
        double ratio = 0;

        if (!no_request && !no_limit) {
                ratio = hfd_quantity_number(&bound->limit) / hfd_quantity_number(&bound->request);
                if (!(ratio > hfd_quantity_number(&bound->enforced)))
                        return;
        }
        begin_findings(findings);
        hf__strbuf_printf(&findings->text, "%s max limit to request ratio per %s is %s, but ",
                          bound->name, bound->type, bound->text);
        if (no_request)
                hf__strbuf_puts(&findings->text, "no request is specified or request is 0");
        else if (no_limit)
                hf__strbuf_puts(&findings->text, "no limit is specified or limit is 0");
        else
                hf__strbuf_printf(&findings->text, "provided ratio is %f", ratio);
}

/* ---- where the bounds apply ---- */

typedef void (*check_fn)(struct findings *findings, const struct bound *bound);

static bool find_sum(const struct hfd_pod_sums *sums, const char *name,
                     struct hfd_quantity *ret_value) {
        const struct hfd_pod_sum *sum = hfd_pod_sums_find(sums, name);

        if (sum)
                *ret_value = sum->total;
        return sum != NULL;
}

/* Checks each bound in a map of the item, such as "min". A bound that is not a quantity is skipped:
 * validation refuses it when the LimitRange is written. */
static void check_map(const struct hf__json *item, const char *map,
                      const struct hfd_pod_sums *requests, const struct hfd_pod_sums *limits,
                      check_fn check, struct findings *findings) {
        for (const struct hf__json *m = hf__json_first(hf__json_get(item, map)); m;
             m = hf__json_next(m)) {
                struct bound bound = {.name = hf__json_key(m),
                                      .type = hf__json_string(item, "type")};
                const char *text = hf__json_text(m);
                if (!text || hfd_quantity_parse(text, &bound.enforced) != NULL)
                        continue;
                hfd_quantity_format(&bound.enforced, bound.text);
                bound.has_request = find_sum(requests, bound.name, &bound.request);
                bound.has_limit = find_sum(limits, bound.name, &bound.limit);
                check(findings, &bound);
        }
}

/* Checks the bounds of one element of the LimitRange. parts: a pod, one container, or a claim. 0 or
 * -ENOMEM. */
static int check_resources(const struct hf__json *item, const struct hfd_pod_parts *parts,
                           struct findings *findings) {
        struct hfd_pod_sums requests, limits = {0};
        bool claim = hf__json_has_text(item, "type", "PersistentVolumeClaim");
        int r = hfd_pod_sums_of(&requests, parts, "requests");

        if (r == 0 && !claim)
                r = hfd_pod_sums_of(&limits, parts, "limits");
        if (r == 0) {
                check_map(item, "min", &requests, &limits, check_min, findings);
                check_map(item, "max", &requests, &limits, claim ? check_max_request : check_max,
                          findings);
                if (!claim)
                        check_map(item, "maxLimitRequestRatio", &requests, &limits, check_ratio,
                                  findings);
        }
        hfd_pod_sums_done(&requests);
        hfd_pod_sums_done(&limits);
        return r;
}

static int check_containers(const struct hf__json *item, const struct hf__json *containers,
                            struct findings *findings) {
        int r = 0;

        for (const struct hf__json *m = hf__json_first(containers); m && r == 0;
             m = hf__json_next(m))
                r = check_resources(item, &(struct hfd_pod_parts){.itself = m}, findings);
        return r;
}

static int check_item(const struct hf__json *item, enum hfd_quota_kind kind,
                      const struct hf__json *object, struct findings *findings) {
        const struct hf__json *spec = hf__json_get(object, "spec");
        const struct hfd_pod_parts all = {.containers = hf__json_get(spec, "containers"),
                                          .init_containers = hf__json_get(spec, "initContainers"),
                                          .itself = spec};
        int r;

        if (kind == HFD_QUOTA_CLAIMS)
                return hf__json_has_text(item, "type", "PersistentVolumeClaim")
                               ? check_resources(item, &(struct hfd_pod_parts){.itself = spec},
                                                 findings)
                               : 0;
        if (hf__json_has_text(item, "type", "Pod"))
                return check_resources(item, &all, findings);
        if (!hf__json_has_text(item, "type", "Container"))
                return 0;
        r = check_containers(item, all.containers, findings);
        return r == 0 ? check_containers(item, all.init_containers, findings) : r;
}

int hfd_limit_range_check(const struct hf__json *range, enum hfd_quota_kind kind,
                          const struct hf__json *object, struct hf__strbuf *why) {
        struct findings findings = {0};
        int r = 0;

        for (const struct hf__json *m = hf__json_first(hf__json_path(range, "spec.limits"));
             m && r == 0; m = hf__json_next(m))
                r = check_item(m, kind, object, &findings);
        if (r == 0 && findings.n == 1)
                hf__strbuf_puts(why, findings.text.data ? findings.text.data : "");
        else if (r == 0 && findings.n > 1)
                hf__strbuf_printf(why, "[%s]", findings.text.data ? findings.text.data : "");
        if (r == 0 && (findings.text.error || why->error))
                r = -ENOMEM;
        hf__strbuf_done(&findings.text);
        return r;
}
