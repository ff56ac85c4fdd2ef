/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of HorizontalPodAutoscalers, in both versions. An object of v1 is brought into the form
 * of v2 first, because its annotations and its CPU target become metrics and a behavior there.
 * Holdfast does not scale anything itself. The objects are checked for the controllers that do,
 * which rely on what kube-apiserver refuses.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. An update that does not change the spec is not checked
 * (hfd_spec_is_kept).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/resource.h"
#include "server/resources/strategies/admission/match_schema.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/resource_names.h"
#include "server/resources/workloads/workloads.h"

#define WINDOW_MAX 3600 /* seconds that an autoscaler looks back */
#define PERIOD_MAX 1800 /* seconds of a scaling policy */

/* ---- the parts of a metric ---- */

/* A name that is a segment of a URL: at such URLs an autoscaler asks for a metric, or changes the
 * scale of its target. required: the detail of the cause if there is no name. */
static void validate_segment(const struct hf__json *object, const char *field, const char *member,
                             const char *required, struct hfd_causes *causes) {
        const char *name = hfd_text_of(object, member);
        char path[HFD_FIELD_PATH_MAX];

        hfd_field_path(path, field, member);
        if (!*name)
                hfd_cause_required(causes, path, required);
        else
                hfd_match_name_validate(name, path, causes);
}

static bool is_positive(const struct hf__json *value) {
        const struct hfd_quantity quantity = hfd_quantity_of_json(value);

        return !quantity.negative && !hfd_quantity_is_zero(&quantity);
}

/* An autoscaler divides what it has measured by the target, so a target of 0 is refused. field: the
 * path of the target. */
static void validate_amounts(const struct hf__json *target, const char *field,
                             struct hfd_causes *causes) {
        static const char *const members[] = {"value", "averageValue"};
        char path[HFD_FIELD_PATH_MAX];

        for (size_t i = 0; i < 2; i++) {
                const struct hf__json *value = hf__json_get(target, members[i]);
                const struct hfd_quantity quantity = hfd_quantity_of_json(value);
                if (value && !is_positive(value))
                        hfd_cause_invalid_quantity(causes, hfd_field_path(path, field, members[i]),
                                                   &quantity, "must be positive");
        }
        hfd_require_range(target, field, "averageUtilization", 1, INT32_MAX,
                          "must be greater than 0", causes);
}

static void validate_metric_target(const struct hf__json *target, const char *field,
                                   struct hfd_causes *causes) {
        static const char *const types[] = {"Utilization", "Value", "AverageValue"};
        const char *type = hfd_text_of(target, "type");
        char path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        hfd_field_path(path, field, "type");
        if (!*type)
                hfd_cause_required(causes, path, "must specify a metric target type");
        while (i < 3 && strcmp(types[i], type) != 0)
                i++;
        if (i == 3)
                hfd_cause_invalid_text(causes, path, type,
                                       "must be either Utilization, Value, or AverageValue");
        validate_amounts(target, field, causes);
}

/* ---- the sources of metrics ---- */

/* Which amounts the target of a source may have. ANY_VALUE and ONE_VALUE differ in that the latter
 * refuses a value together with an averageValue; RAW_OR_SHARE is for resources, whose share is a
 * percentage of what the pods request. */
enum amounts { ANY_VALUE, ONE_VALUE, AVERAGE, RAW_OR_SHARE };

static void validate_target_of(const struct hf__json *target, const char *field,
                               enum amounts amounts, struct hfd_causes *causes) {
        const struct hf__json *value = hf__json_get(target, "value"),
                              *average = hf__json_get(target, "averageValue"),
                              *share = hf__json_get(target, "averageUtilization");
        char path[HFD_FIELD_PATH_MAX], average_path[HFD_FIELD_PATH_MAX];

        validate_metric_target(target, field, causes);
        hfd_field_path(average_path, field, "averageValue");
        switch (amounts) {
        case ANY_VALUE:
                if (!value && !average)
                        hfd_cause_required(causes, average_path,
                                           "must set either a target value or averageValue");
                break;
        case ONE_VALUE:
                if (!value && !average)
                        hfd_cause_required(causes, average_path,
                                           "must set either a target value for metric or a "
                                           "per-pod target");
                if (value && average)
                        hfd_cause_forbidden(causes, hfd_field_path(path, field, "value"),
                                            "may not set both a target value for metric and a "
                                            "per-pod target");
                break;
        case AVERAGE:
                if (!average || !is_positive(average))
                        hfd_cause_required(causes, average_path,
                                           "must specify a positive target averageValue");
                break;
        case RAW_OR_SHARE:
                if (!share && !average)
                        hfd_cause_required(causes,
                                           hfd_field_path(path, field, "averageUtilization"),
                                           "must set either a target raw value or a target "
                                           "utilization");
                if (share && average)
                        hfd_cause_forbidden(causes, average_path,
                                            "may not set both a target raw value and a target "
                                            "utilization");
                break;
        }
}

/* A type of metrics. The table has the order in which Kubernetes looks for sources. */
static const struct source {
        const char *type, *member;
        enum amounts amounts;
        bool names_object, names_resource, names_container;
} sources[] = {
        {"Object", "object", ANY_VALUE, .names_object = true},
        {"External", "external", ONE_VALUE},
        {"Pods", "pods", AVERAGE},
        {"Resource", "resource", RAW_OR_SHARE, .names_resource = true},
        {"ContainerResource", "containerResource", RAW_OR_SHARE, .names_resource = true,
         .names_container = true},
};
#define N_SOURCES (sizeof sources / sizeof sources[0])

static void validate_source(const struct source *of, const struct hf__json *source,
                            const char *field, struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];

        if (of->names_object) {
                const struct hf__json *object = hf__json_get(source, "describedObject");
                hfd_field_path(path, field, "describedObject");
                validate_segment(object, path, "kind", "", causes);
                validate_segment(object, path, "name", "", causes);
        }
        if (of->names_resource && !*hfd_text_of(source, "name"))
                hfd_cause_required(causes, hfd_field_path(path, field, "name"),
                                   "must specify a resource name");
        if (of->names_container && !*hfd_text_of(source, "container"))
                hfd_cause_required(causes, hfd_field_path(path, field, "container"),
                                   "must specify a container");
        if (!of->names_resource)
                validate_segment(hf__json_get(source, "metric"),
                                 hfd_field_path(path, field, "metric"), "name",
                                 "must specify a metric name", causes);
        validate_target_of(hf__json_get(source, "target"), hfd_field_path(path, field, "target"),
                           of->amounts, causes);
}

/* NULL: there is no such type. */
static const struct source *find_source(const char *type) {
        for (size_t i = 0; i < N_SOURCES; i++)
                if (strcmp(sources[i].type, type) == 0)
                        return &sources[i];
        return NULL;
}

/* A metric has the source of its type and no other. Only the first one that it has is checked. */
static void validate_sources(const struct hf__json *metric, const char *field,
                             const struct source *own, struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];
        size_t n = 0;

        for (size_t i = 0; i < N_SOURCES; i++) {
                const struct hf__json *source = hf__json_get(metric, sources[i].member);
                if (source && n++ == 0)
                        validate_source(&sources[i], source,
                                        hfd_field_path(path, field, sources[i].member), causes);
        }
        if (own && !hf__json_get(metric, own->member))
                hfd_cause_required(causes, hfd_field_path(path, field, own->member),
                                   "must populate information for the given metric source");
        for (size_t i = 0; i < N_SOURCES && n > 1; i++)
                if (&sources[i] != own && hf__json_get(metric, sources[i].member))
                        hfd_cause_forbidden(causes, hfd_field_path(path, field, sources[i].member),
                                            "must populate the given metric source only");
}

static void validate_metrics(const struct hf__json *metrics, struct hfd_causes *causes) {
        static const char types[] = "\"ContainerResource\", \"External\", \"Object\", "
                                    "\"Pods\", \"Resource\"";
        char path[HFD_FIELD_PATH_MAX], type_path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(metrics); m; m = hf__json_next(m)) {
                const char *type = hfd_text_of(m, "type");
                const struct source *own = find_source(type);
                hfd_field_path(type_path, hfd_field_index(path, "spec.metrics", i++), "type");
                if (!*type)
                        hfd_cause_required(causes, type_path, "must specify a metric source type");
                if (!own)
                        hfd_cause_unsupported_text(causes, type_path, type, types);
                validate_sources(m, path, own, causes);
        }
}

/* ---- the behavior ---- */

static void validate_policy(const struct hf__json *policy, const char *field,
                            struct hfd_causes *causes) {
        static const char *const types[] = {"Percent", "Pods"};
        static const char *const numbers[] = {"value", "periodSeconds"};
        const char *type = hfd_text_of(policy, "type");
        char path[HFD_FIELD_PATH_MAX];
        int64_t period = 0;

        if (strcmp(type, types[0]) != 0 && strcmp(type, types[1]) != 0)
                hfd_cause_unsupported_text(causes, hfd_field_path(path, field, "type"), type,
                                           "\"Percent\", \"Pods\"");
        for (size_t i = 0; i < 2; i++) {
                int64_t number = 0;
                (void)hf__json_i64(policy, numbers[i], &number);
                if (number <= 0) {
                        char shown[24];
                        (void)snprintf(shown, sizeof shown, "%" PRId64, number);
                        hfd_cause_invalid(causes, hfd_field_path(path, field, numbers[i]), shown,
                                          "must be greater than zero");
                }
        }
        /* The loop has refused a period below 1, so only the upper limit is left. */
        (void)hf__json_i64(policy, "periodSeconds", &period);
        if (period > PERIOD_MAX)
                hfd_require_range(policy, field, "periodSeconds", 1, PERIOD_MAX,
                                  "must be less than or equal to 1800", causes);
}

/* rules NULL: they are absent. The window has two checks, because each limit has its own text. */
static void validate_scaling_rules(const struct hf__json *rules, const char *field,
                                   struct hfd_causes *causes) {
        static const char *const selects[] = {"Disabled", "Max", "Min", NULL};
        char path[HFD_FIELD_PATH_MAX], policies[HFD_FIELD_PATH_MAX];
        const struct hf__json *tolerance = hf__json_get(rules, "tolerance");
        const struct hfd_quantity quantity = hfd_quantity_of_json(tolerance);
        size_t i = 0;

        if (!rules)
                return;
        hfd_require_range(rules, field, "stabilizationWindowSeconds", 0, INT32_MAX,
                          "must be greater than or equal to zero", causes);
        hfd_require_range(rules, field, "stabilizationWindowSeconds", INT32_MIN, WINDOW_MAX,
                          "must be less than or equal to 3600", causes);
        if (hf__json_get(rules, "selectPolicy"))
                hfd_refuse_others(hfd_text_of(rules, "selectPolicy"),
                                  hfd_field_path(path, field, "selectPolicy"), selects, causes);
        hfd_field_path(policies, field, "policies");
        if (!hf__json_first(hf__json_get(rules, "policies")))
                hfd_cause_required(causes, policies, "must specify at least one Policy");
        for (const struct hf__json *m = hf__json_first(hf__json_get(rules, "policies")); m;
             m = hf__json_next(m))
                validate_policy(m, hfd_field_index(path, policies, i++), causes);
        if (tolerance && quantity.negative)
                hfd_cause_invalid_quantity(causes, hfd_field_path(path, field, "tolerance"),
                                           &quantity, "must be greater than or equal to 0");
}

/* ---- the spec ---- */

/* The target needs a group in its apiVersion, because all kinds that can be scaled have one except
 * ReplicationControllers, and without it the autoscaler does not find the kind. A target that an
 * update does not change may have any apiVersion. old: the old object, or NULL. */
static void validate_target(const struct hf__json *target, const struct hf__json *old,
                            struct hfd_causes *causes) {
        const char *version = hfd_text_of(target, "apiVersion");

        validate_segment(target, "spec.scaleTargetRef", "kind", "", causes);
        validate_segment(target, "spec.scaleTargetRef", "name", "", causes);
        if (strchr(version, '/') || hf__json_has_text(target, "kind", "ReplicationController") ||
            (old && hfd_causes_equal(causes, target, hf__json_path(old, "spec.scaleTargetRef"))))
                return;
        hfd_cause_invalid_text(causes, "spec.scaleTargetRef.apiVersion", version,
                               "apiVersion must specify API group");
}

/* Whether the autoscaler has a metric that does not come from the target's pods. Without such a
 * metric, a target that was scaled to no pods could not be scaled up again. */
static bool has_outer_metric(const struct hf__json *spec) {
        for (const struct hf__json *m = hf__json_first(hf__json_get(spec, "metrics")); m;
             m = hf__json_next(m))
                if (hf__json_has_text(m, "type", "Object") ||
                    hf__json_has_text(m, "type", "External"))
                        return true;
        return false;
}

void hfd_autoscaler_validate(const struct hf__json *object, const struct hf__json *old,
                             struct hfd_causes *causes) {
        const struct hf__json *spec = hf__json_get(object, "spec");
        int64_t least = 0, most = 0;
        bool has_least = hf__json_i64(spec, "minReplicas", &least);
        char shown[24];

        if (hfd_spec_is_kept(&hfd_horizontal_pod_autoscaler_schema, object, old, causes))
                return;
        (void)hf__json_i64(spec, "maxReplicas", &most);
        (void)snprintf(shown, sizeof shown, "%" PRId64, most);
        hfd_require_range(spec, "spec", "minReplicas", 1, INT32_MAX,
                          "must be greater than or equal to 1", causes);
        if (most == 0)
                hfd_cause_required(causes, "spec.maxReplicas", "must be set and greater than 0");
        else if (most < 0)
                hfd_cause_invalid(causes, "spec.maxReplicas", shown,
                                  "must be greater than or equal to 1");
        if (has_least && most < least)
                hfd_cause_invalid(causes, "spec.maxReplicas", shown,
                                  "must be greater than or equal to `minReplicas`");
        validate_target(hf__json_get(spec, "scaleTargetRef"), old, causes);
        validate_metrics(hf__json_get(spec, "metrics"), causes);
        if (has_least && least == 0 && !has_outer_metric(spec))
                hfd_cause_forbidden(causes, "spec.metrics",
                                    "must specify at least one Object or External metric to "
                                    "support scaling to zero replicas");
        const struct hf__json *behavior = hf__json_get(spec, "behavior");
        validate_scaling_rules(hf__json_get(behavior, "scaleUp"), "spec.behavior.scaleUp", causes);
        validate_scaling_rules(hf__json_get(behavior, "scaleDown"), "spec.behavior.scaleDown",
                               causes);
}

/* ---- v1 ---- */

void hfd_autoscaler_v1_validate(const struct hf__json *object, const struct hf__json *old,
                                struct hfd_causes *causes) {
        struct hf__json *now = hf__json_dup(object), *before = old ? hf__json_dup(old) : NULL;
        int r = !now || (old && !before) ? -ENOMEM : 0;

        if (r == 0)
                r = hfd_autoscaler_v1_conversion.to_stored(now);
        if (r == 0 && before)
                r = hfd_autoscaler_v1_conversion.to_stored(before);
        if (hfd_causes_check(causes, r))
                hfd_autoscaler_validate(now, before, causes);
        hf__json_free(now);
        hf__json_free(before);
}
