/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts HorizontalPodAutoscalers between autoscaling/v2, in which they are stored, and
 * autoscaling/v1. v1 knows one metric only, the use of the CPU. As in kube-apiserver, v1 has
 * the rest in annotations, except further targets for the utilization of the CPU:
 *
 *      autoscaling.alpha.kubernetes.io/metrics           spec.metrics, with the names of v1
 *      autoscaling.alpha.kubernetes.io/behavior          spec.behavior, names begin with capitals
 *      autoscaling.alpha.kubernetes.io/current-metrics   status.currentMetrics, with names of v1
 *      autoscaling.alpha.kubernetes.io/conditions        status.conditions
 *
 * Invariant: clients can write any text into these annotations. A value that the schema of v2 does
 * not allow is ignored, so that a stored object always has the form of its schema. A write stores
 * none of the annotations, whatever its version (hfd_autoscaler_normalize), and a read through v1
 * shows only those that are made from the stored object.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "server/resources/resource.h"
#include "server/resources/workloads/workloads.h"
#include "server/schema/decode.h"

#define PREFIX     "autoscaling.alpha.kubernetes.io/"
#define METRICS    PREFIX "metrics"
#define BEHAVIOR   PREFIX "behavior"
#define CURRENT    PREFIX "current-metrics"
#define CONDITIONS PREFIX "conditions"

#define CPU_TARGET  "targetCPUUtilizationPercentage"
#define CPU_CURRENT "currentCPUUtilizationPercentage"
#define CPU_DEFAULT 80 /* percent of the request; Kubernetes' default */

/* ---- metrics ---- */

/* The names that a member of a metric's source has in both versions. A metric has a type, and a
 * source: the object in the member that name_source names after the type. */
struct member {
        const char *type; /* of the metric; NULL ends a table */
        const char *v1;   /* a name in the source */
        const char *v2;   /* a path in the source */
        /* An absent member becomes "0" in the other version: in v1 its Go type is no pointer. */
        bool has_zero;
};
/* The members of a type are in the order in which v1 writes them, because the annotation is text
 * that clients may compare. */
static const struct member of_spec[] = {
        {"Object", "target", "describedObject", false},
        {"Object", "metricName", "metric.name", false},
        {"Object", "targetValue", "target.value", true},
        {"Object", "selector", "metric.selector", false},
        {"Object", "averageValue", "target.averageValue", false},
        {"Pods", "metricName", "metric.name", false},
        {"Pods", "targetAverageValue", "target.averageValue", true},
        {"Pods", "selector", "metric.selector", false},
        {"Resource", "name", "name", false},
        {"Resource", "targetAverageUtilization", "target.averageUtilization", false},
        {"Resource", "targetAverageValue", "target.averageValue", false},
        {"ContainerResource", "name", "name", false},
        {"ContainerResource", "targetAverageUtilization", "target.averageUtilization", false},
        {"ContainerResource", "targetAverageValue", "target.averageValue", false},
        {"ContainerResource", "container", "container", false},
        {"External", "metricName", "metric.name", false},
        {"External", "metricSelector", "metric.selector", false},
        {"External", "targetValue", "target.value", false},
        {"External", "targetAverageValue", "target.averageValue", false},
        {0},
};
static const struct member of_status[] = {
        {"Object", "target", "describedObject", false},
        {"Object", "metricName", "metric.name", false},
        {"Object", "currentValue", "current.value", true},
        {"Object", "selector", "metric.selector", false},
        {"Object", "averageValue", "current.averageValue", false},
        {"Pods", "metricName", "metric.name", false},
        {"Pods", "currentAverageValue", "current.averageValue", true},
        {"Pods", "selector", "metric.selector", false},
        {"Resource", "name", "name", false},
        {"Resource", "currentAverageUtilization", "current.averageUtilization", false},
        {"Resource", "currentAverageValue", "current.averageValue", true},
        {"ContainerResource", "name", "name", false},
        {"ContainerResource", "currentAverageUtilization", "current.averageUtilization", false},
        {"ContainerResource", "currentAverageValue", "current.averageValue", true},
        {"ContainerResource", "container", "container", false},
        {"External", "metricName", "metric.name", false},
        {"External", "metricSelector", "metric.selector", false},
        {"External", "currentValue", "current.value", true},
        {"External", "currentAverageValue", "current.averageValue", false},
        {0},
};

/* The name of the member that has the source of a metric: "containerResource" for the type
 * "ContainerResource". The type has fewer than 32 bytes. */
static void name_source(const char *type, char name[32]) {
        (void)hf__join(name, 32, type, NULL);
        name[0] = (char)tolower((unsigned char)name[0]);
}

/* Sets target.type, which v1 does not have: it follows from the members that are there. type: that
 * of the metric. 0 or -ENOMEM. */
static int set_target_type(struct hf__json *source, const char *type) {
        const struct hf__json *target = hf__json_get(source, "target");
        const char *kind = "AverageValue";

        if (hf__json_get(target, "averageUtilization"))
                kind = "Utilization";
        else if (strcmp(type, "External") == 0 && hf__json_get(target, "value"))
                kind = "Value";
        else if (strcmp(type, "Object") == 0 && !hf__json_get(target, "averageValue"))
                kind = "Value";
        else if (strcmp(type, "Object") == 0 && hf__json_has_text(target, "value", "0"))
                hf__json_remove(source, "target.value"); /* 0 stands for an absent value in v1 */
        return hf__json_set_string(source, "target.type", kind);
}

/* Converts the source of a metric to v2 or from it, into `out`. members: of_spec or of_status. 0 or
 * -ENOMEM. */
static int convert_source(const struct hf__json *source, const char *type,
                          const struct member *members, bool to_v2, struct hf__json *out) {
        int r = 0;

        for (const struct member *m = members; m->type && r == 0; m++) {
                if (strcmp(m->type, type) != 0)
                        continue;
                const struct hf__json *value =
                        to_v2 ? hf__json_get(source, m->v1) : hf__json_path(source, m->v2);
                if (value)
                        r = hf__json_set(out, to_v2 ? m->v2 : m->v1, hf__json_dup(value));
                else if (m->has_zero)
                        r = hf__json_set_string(out, to_v2 ? m->v2 : m->v1, "0");
        }
        return r == 0 && to_v2 && members == of_spec ? set_target_type(out, type) : r;
}

/* Appends the metric in the other version. A metric with an unknown type keeps the type, and loses
 * what is in its source. 0 or -ENOMEM. */
static int append_metric(struct hf__json *list, const struct hf__json *metric,
                         const struct member *members, bool to_v2) {
        const char *type = hf__json_string(metric, "type");
        struct hf__json *out = hf__json_object(), *source = NULL;
        char name[32];
        int r = hf__json_add_string(out, "type", type ? type : "");

        if (r == 0 && type && strlen(type) < sizeof name) {
                name_source(type, name);
                if (hf__json_is_object(hf__json_get(metric, name))) {
                        r = hf__json_add(out, name, hf__json_object());
                        source = hf__json_get(out, name);
                }
        }
        if (r == 0 && source)
                r = convert_source(hf__json_get(metric, name), type, members, to_v2, source);
        if (r == 0)
                return hf__json_append(list, out);
        hf__json_free(out);
        return r;
}

/* The target, or the current use, of the CPU in a metric; NULL = the metric is another one, or does
 * not have it. path: in the source. */
static const struct hf__json *cpu_of(const struct hf__json *metric, const char *path) {
        const struct hf__json *resource = hf__json_get(metric, "resource");

        return hf__json_has_text(metric, "type", "Resource") &&
                               hf__json_has_text(resource, "name", "cpu")
                       ? hf__json_path(resource, path)
                       : NULL;
}

/* ---- the case of names ---- */

/* Of members with the same name, only the last one stays: names that differ only in the case of the
 * first letter become equal in change_case. The index is sorted by name and then by position. 0 or
 * -ENOMEM. */
static int drop_repeated(struct hf__json *object) {
        struct hf__json_index names;
        int r = hf__json_index_init(&names, object, NULL);

        for (size_t i = 1; i < names.n && r == 0; i++)
                if (strcmp(names.entries[i - 1].text, names.entries[i].text) == 0)
                        hf__json_free(hf__json_detach(object, names.entries[i - 1].item));
        hf__json_index_done(&names);
        return r;
}

/* A copy of spec.behavior whose names begin with a capital letter, as in the annotation, or with a
 * small one. Members that are null are left out, and so are those whose name is empty or has 64
 * bytes or more, because no field has such a name. The function calls itself for members; the
 * parser has limited the depth. NULL = out of memory. */
static struct hf__json *change_case(const struct hf__json *value, bool capital) {
        struct hf__json *out;
        char key[64];
        int r = 0;

        if (!hf__json_is_object(value) && !hf__json_is_array(value))
                return hf__json_dup(value);
        out = hf__json_is_object(value) ? hf__json_object() : hf__json_array();
        if (!out)
                return NULL;
        for (const struct hf__json *m = hf__json_first(value); m && r == 0; m = hf__json_next(m)) {
                if (hf__json_is_array(value)) {
                        r = hf__json_append(out, change_case(m, capital));
                        continue;
                }
                if (hf__json_is_null(m) || hf__join(key, sizeof key, hf__json_key(m), NULL) == 0)
                        continue;
                key[0] = (char)(capital ? toupper((unsigned char)key[0])
                                        : tolower((unsigned char)key[0]));
                r = hf__json_add(out, key, change_case(m, capital));
        }
        if (r == 0 && hf__json_is_object(out))
                r = drop_repeated(out);
        return r == 0 ? out : hf__json_free(out);
}

/* ---- annotations ---- */

static struct hf__json *annotations_of(const struct hf__json *object) {
        return hf__json_path(object, "metadata.annotations");
}

/* Writes an annotation, and frees the value in any case. value NULL counts as out of memory. 0 or
 * -ENOMEM. */
static int annotate_object(struct hf__json *object, const char *name, struct hf__json *value) {
        struct hf__strbuf text = {0};
        int r = 0;

        if (!value)
                return -ENOMEM;
        if (!hf__json_is_object(annotations_of(object)))
                r = hf__json_set(object, "metadata.annotations", hf__json_object());
        hf__json_print(value, &text);
        hf__json_free(value);
        if (r == 0)
                r = text.error;
        if (r == 0)
                r = hf__json_put_string(annotations_of(object), name, text.data ? text.data : "");
        hf__strbuf_done(&text);
        return r;
}

/* Drops the annotations that kube-apiserver drops in a conversion. Like kube-apiserver, this file
 * reads nothing from the last two: v1 has the tolerances in the annotation for spec.behavior. */
static void drop_annotations(struct hf__json *object) {
        static const char *const names[] = {METRICS,
                                            BEHAVIOR,
                                            CURRENT,
                                            CONDITIONS,
                                            PREFIX "scale-down-tolerance",
                                            PREFIX "scale-up-tolerance"};
        struct hf__json *annotations = annotations_of(object);

        if (!hf__json_is_object(annotations))
                return;
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
                hf__json_drop(annotations, names[i]);
        if (!hf__json_first(annotations))
                hf__json_remove(object, "metadata.annotations");
}

/* Reads an annotation. *ret_json, which is NULL before the call, belongs to the caller. It stays
 * NULL if there is no such annotation, its text is not JSON, or a key occurs twice in it. 0 or
 * -ENOMEM. */
static int read_annotation(const struct hf__json *object, const char *name,
                           struct hf__json **ret_json) {
        const char *text = hf__json_text(hf__json_get(annotations_of(object), name)), *twice;
        int r = text ? hf__json_parse(text, strlen(text), ret_json, NULL) : HF_E_NOT_FOUND;

        if (r == 0) {
                r = hf__json_check_unique(*ret_json, &twice);
                if (r != 0)
                        *ret_json = hf__json_free(*ret_json);
        }
        return r == -ENOMEM ? r : 0;
}

/* ---- from v2 to v1 ---- */

/* Writes the first target for the utilization of the CPU to the member of v1, and all metrics
 * without such a target to the annotation. As in Kubernetes, v1 shows no further such target. 0 or
 * -ENOMEM. */
static int show_metrics(struct hf__json *object, struct hf__json *metrics) {
        struct hf__json *others = hf__json_array();
        bool found = false;
        int r = others ? 0 : -ENOMEM;

        for (const struct hf__json *m = hf__json_first(metrics); m && r == 0;
             m = hf__json_next(m)) {
                const struct hf__json *cpu = cpu_of(m, "target.averageUtilization");
                if (!cpu)
                        r = append_metric(others, m, of_spec, false);
                else if (!found)
                        r = hf__json_set(object, "spec." CPU_TARGET, hf__json_dup(cpu));
                found = found || cpu;
        }
        if (r == 0 && hf__json_first(others))
                return annotate_object(object, METRICS, others);
        hf__json_free(others);
        return r;
}

/* Unlike the annotation of show_metrics, this one has the utilization of the CPU as well. If there
 * are several, v1 shows the last one, as in Kubernetes. 0 or -ENOMEM. */
static int show_current(struct hf__json *object, struct hf__json *metrics) {
        struct hf__json *current = hf__json_array();
        int r = current ? 0 : -ENOMEM;

        for (const struct hf__json *m = hf__json_first(metrics); m && r == 0;
             m = hf__json_next(m)) {
                const struct hf__json *cpu = cpu_of(m, "current.averageUtilization");
                r = append_metric(current, m, of_status, false);
                if (r == 0 && cpu)
                        r = hf__json_set(object, "status." CPU_CURRENT, hf__json_dup(cpu));
        }
        if (r == 0 && hf__json_first(current))
                return annotate_object(object, CURRENT, current);
        hf__json_free(current);
        return r;
}

/* hfd_conversion.from_stored. The annotations of the stored object do not count: an old server may
 * have stored them. */
static int from_stored(struct hf__json *object) {
        struct hf__json *spec = hf__json_get(object, "spec"),
                        *status = hf__json_get(object, "status"),
                        *behavior = hf__json_get(spec, "behavior"),
                        *conditions = hf__json_get(status, "conditions");
        int r;

        drop_annotations(object);
        r = show_metrics(object, hf__json_get(spec, "metrics"));
        if (r == 0)
                r = show_current(object, hf__json_get(status, "currentMetrics"));
        if (r == 0 && behavior)
                r = annotate_object(object, BEHAVIOR, change_case(behavior, true));
        if (r == 0 && hf__json_first(conditions))
                r = annotate_object(object, CONDITIONS, hf__json_dup(conditions));
        hf__json_remove(object, "spec.metrics");
        hf__json_remove(object, "spec.behavior");
        hf__json_remove(object, "status.currentMetrics");
        hf__json_remove(object, "status.conditions");
        if (r == 0 && status && !hf__json_get(status, "currentReplicas"))
                r = hf__json_set_i64(status, "currentReplicas", 0);
        return r;
}

/* ---- v2 ---- */

int hfd_autoscaler_normalize(struct hf__json *object) {
        drop_annotations(object);
        return 0;
}

/* ---- from v1 to v2 ---- */

/* Sets a member of the object to what the schema of v2 keeps of the value. A value of a wrong type
 * is ignored. Frees the value in any case. 0 or -ENOMEM. */
static int set_allowed(struct hf__json *object, const char *path, struct hf__json *value) {
        struct hf__json *alone = hf__json_object();
        char reason[200];
        int r = hf__json_set(alone, path, value); /* -EINVAL if `alone` is NULL */

        if (!alone)
                r = -ENOMEM;
        if (r == 0)
                r = hfd_schema_decode(&hfd_horizontal_pod_autoscaler_schema, alone, NULL, reason,
                                      sizeof reason);
        if (r == 0 && hf__json_path(alone, path))
                r = hf__json_set(object, path, hf__json_dup(hf__json_path(alone, path)));
        hf__json_free(alone);
        return r == -ENOMEM ? r : 0;
}

/* Whether the parts of a metric have the types of Go's structs. Otherwise Kubernetes ignores the
 * whole annotation. (The schema of v2 checks the other members, see set_allowed.) */
static bool is_metric(const struct hf__json *metric) {
        const struct hf__json *type = hf__json_get(metric, "type");
        char name[32];

        if (!hf__json_is_object(metric) || (type && !hf__json_is_string(type)))
                return false;
        if (!type || strlen(hf__json_text(type)) >= sizeof name)
                return true;
        name_source(hf__json_text(type), name);
        const struct hf__json *source = hf__json_get(metric, name);
        return !source || hf__json_is_object(source);
}

/* Sets the metrics at `path` from an annotation. 0 or -ENOMEM. */
static int store_metrics(struct hf__json *object, const char *annotation, const char *path,
                         const struct member *members) {
        HF__CLEANUP(hf__json_cleanup) struct hf__json *metrics = NULL, *out = NULL;
        int r = read_annotation(object, annotation, &metrics);

        if (r != 0 || !hf__json_is_array(metrics))
                return r;
        for (const struct hf__json *m = hf__json_first(metrics); m; m = hf__json_next(m))
                if (!is_metric(m))
                        return 0;
        out = hf__json_array();
        r = out ? 0 : -ENOMEM;
        for (const struct hf__json *m = hf__json_first(metrics); m && r == 0; m = hf__json_next(m))
                r = append_metric(out, m, members, true);
        return r == 0 ? set_allowed(object, path, HF__TAKE(out)) : r;
}

/* Appends the metric for the CPU: with the target that the client has set, or, if the object has no
 * metric at all, with the default target. 0 or -ENOMEM. */
static int store_cpu(struct hf__json *object) {
        int64_t percent = CPU_DEFAULT;
        bool wanted = hf__json_i64(object, "spec." CPU_TARGET, &percent);
        struct hf__json *metrics = hf__json_path(object, "spec.metrics"), *metric;
        int r = 0;

        hf__json_remove(object, "spec." CPU_TARGET);
        if (!wanted && hf__json_first(metrics))
                return 0;
        if (!metrics)
                r = hf__json_set(object, "spec.metrics", hf__json_array());
        metric = hf__json_object();
        if (r == 0)
                r = hf__json_add_string(metric, "type", "Resource");
        if (r == 0)
                r = hf__json_set_string(metric, "resource.name", "cpu");
        if (r == 0)
                r = hf__json_set_string(metric, "resource.target.type", "Utilization");
        if (r == 0)
                r = hf__json_set_i64(metric, "resource.target.averageUtilization", percent);
        if (r == 0)
                return hf__json_append(hf__json_path(object, "spec.metrics"), metric);
        hf__json_free(metric);
        return r;
}

/* Stores the current use of the CPU as the only current metric, unless the annotation has set
 * status.currentMetrics: as in Kubernetes, it says more. 0 or -ENOMEM. */
static int store_current_cpu(struct hf__json *object) {
        int64_t percent;
        bool known = hf__json_i64(object, "status." CPU_CURRENT, &percent);
        struct hf__json *metric;
        int r;

        hf__json_remove(object, "status." CPU_CURRENT);
        if (!known || hf__json_path(object, "status.currentMetrics"))
                return 0;
        r = hf__json_set(object, "status.currentMetrics", hf__json_array());
        metric = hf__json_object();
        if (r == 0)
                r = hf__json_add_string(metric, "type", "Resource");
        if (r == 0)
                r = hf__json_set_string(metric, "resource.name", "cpu");
        if (r == 0)
                r = hf__json_set_i64(metric, "resource.current.averageUtilization", percent);
        if (r == 0)
                return hf__json_append(hf__json_path(object, "status.currentMetrics"), metric);
        hf__json_free(metric);
        return r;
}

/* hfd_conversion.to_stored. spec.metrics must be set from the annotation before store_cpu, which
 * appends to it. */
static int to_stored(struct hf__json *object) {
        struct hf__json *behavior = NULL, *conditions = NULL;
        int64_t replicas;

        if (hf__json_i64(object, "status.currentReplicas", &replicas) && replicas == 0)
                hf__json_remove(object, "status.currentReplicas"); /* v2 omits a 0 */
        int r = read_annotation(object, BEHAVIOR, &behavior);

        if (r == 0)
                r = read_annotation(object, CONDITIONS, &conditions);
        if (r == 0)
                r = store_metrics(object, METRICS, "spec.metrics", of_spec);
        if (r == 0)
                r = store_cpu(object);
        if (r == 0 && hf__json_is_object(behavior) && hf__json_first(behavior))
                r = set_allowed(object, "spec.behavior", change_case(behavior, false));
        if (r == 0)
                r = store_metrics(object, CURRENT, "status.currentMetrics", of_status);
        if (r == 0)
                r = store_current_cpu(object);
        if (r == 0 && hf__json_is_array(conditions))
                r = set_allowed(object, "status.conditions", hf__json_dup(conditions));
        hf__json_free(behavior);
        hf__json_free(conditions);
        drop_annotations(object);
        return r;
}

static const struct hfd_renamed spec_fields[] = {{CPU_TARGET, "metrics"}},
                                status_fields[] = {{CPU_CURRENT, "currentMetrics"}};
const struct hfd_conversion hfd_autoscaler_v1_conversion = {.group = "autoscaling",
                                                            .version = "v2",
                                                            .from_stored = from_stored,
                                                            .to_stored = to_stored,
                                                            .spec_fields = spec_fields,
                                                            .n_spec_fields = 1,
                                                            .status_fields = status_fields,
                                                            .n_status_fields = 1};
