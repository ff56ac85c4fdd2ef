/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The targets of HorizontalPodAutoscalers, as kube-apiserver shows them.
 *
 * Invariant: a metric of the spec is shown with the metric of the status at the same position, as
 * in Kubernetes. The status may have fewer: the controller has not measured the others yet.
 */
#include "server/registry/list/cells/target_cells.h"

#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"

#define SHOWN_MAX 2 /* metrics */

/* Appends a number in percent, or `otherwise` if there is none. */
static void put_percent(struct hf__strbuf *out, const struct hf__json *source, const char *path,
                        const char *otherwise) {
        int64_t percent;

        if (hf__json_i64(source, path, &percent))
                hf__strbuf_printf(out, "%" PRId64 "%%", percent);
        else
                hf__strbuf_puts(out, otherwise);
}

/* Appends "CURRENT/TARGET" of two quantities. */
static void put_quantities(struct hf__strbuf *out, const struct hf__json *now, const char *current,
                           const struct hf__json *wanted, const char *target) {
        const char *value = hf__json_string(now, current), *goal = hf__json_string(wanted, target);

        hf__strbuf_printf(out, "%s/%s", value ? value : "<unknown>", goal ? goal : "<nil>");
}

static void put_metric(struct hf__strbuf *out, const struct hf__json *metric,
                       const struct hf__json *status) {
        static const char *const sources[][2] = {{"Resource", "resource"},
                                                 {"ContainerResource", "containerResource"},
                                                 {"Pods", "pods"},
                                                 {"Object", "object"},
                                                 {"External", "external"}};
        size_t i = 0, n = sizeof sources / sizeof sources[0];

        while (i < n && !hf__json_has_text(metric, "type", sources[i][0]))
                i++;
        if (i == n) {
                hf__strbuf_puts(out, "<unknown type>");
                return;
        }
        const struct hf__json *wanted = hf__json_get(metric, sources[i][1]),
                              *now = hf__json_get(status, sources[i][1]);
        bool has_average = hf__json_path(wanted, "target.averageValue") != NULL;
        /* Of `sources`, the first two, Resource and ContainerResource, show the name of a resource.
         */
        if (i < 2) {
                const char *name = hf__json_string(wanted, "name");
                hf__strbuf_printf(out, "%s: ", name ? name : "");
                if (has_average) {
                        put_quantities(out, now, "current.averageValue", wanted,
                                       "target.averageValue");
                        return;
                }
                put_percent(out, now, "current.averageUtilization", "<unknown>");
                hf__strbuf_putc(out, '/');
                put_percent(out, wanted, "target.averageUtilization", "<auto>");
        } else if (has_average) {
                put_quantities(out, now, "current.averageValue", wanted, "target.averageValue");
                hf__strbuf_puts(out, i > 2 ? " (avg)" : ""); /* Pods (2) has averages only */
        } else {
                put_quantities(out, now, "current.value", wanted, "target.value");
        }
}

void hfd_target_put_cell(struct hf__strbuf *out, const struct hf__json *autoscaler) {
        const struct hf__json *metrics = hf__json_path(autoscaler, "spec.metrics"),
                              *status = hf__json_first(
                                      hf__json_path(autoscaler, "status.currentMetrics"));
        size_t n = hf__json_count(metrics), i = 0;

        for (const struct hf__json *m = hf__json_first(metrics); m && i < SHOWN_MAX;
             m = hf__json_next(m), i++) {
                hf__strbuf_puts(out, i > 0 ? ", " : "");
                put_metric(out, m, status);
                status = status ? hf__json_next(status) : NULL;
        }
        if (n > SHOWN_MAX)
                hf__strbuf_printf(out, " + %zu more...", n - SHOWN_MAX);
        if (n == 0)
                hf__strbuf_puts(out, "<none>");
}
