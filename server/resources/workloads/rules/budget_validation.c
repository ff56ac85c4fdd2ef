/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of PodDisruptionBudgets and of HorizontalPodAutoscalers.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. An update that does not change the spec is not checked
 * (hfd_spec_is_kept).
 *
 * spec.metrics and spec.behavior of an autoscaler are not checked: only a controller that scales
 * reads them, and Holdfast has none.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/strategies/admission/match_schema.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/workloads/workloads.h"

/* ---- budgets ---- */

/* minAvailable and maxUnavailable exclude each other. The cause shows the spec as Kubernetes' Go
 * type: in the order of its members, with the absent ones as null. */
static void refuse_both_members(const struct hf__json *spec, struct hfd_causes *causes) {
        static const char *const members[][2] = {{"{\"MinAvailable\":", "minAvailable"},
                                                 {",\"Selector\":", "selector"},
                                                 {",\"MaxUnavailable\":", "maxUnavailable"},
                                                 {",\"UnhealthyPodEvictionPolicy\":",
                                                  "unhealthyPodEvictionPolicy"}};
        struct hf__strbuf shown = {0};

        for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
                const struct hf__json *value = hf__json_get(spec, members[i][1]);
                hf__strbuf_puts(&shown, members[i][0]);
                if (value)
                        hf__json_print(value, &shown);
                else
                        hf__strbuf_puts(&shown, "null");
        }
        hf__strbuf_puts(&shown, "}");
        hfd_cause_invalid(causes, "spec", hfd_causes_check(causes, shown.error) ? shown.data : "{}",
                          "minAvailable and maxUnavailable cannot be both set");
        hf__strbuf_done(&shown);
}

void hfd_budget_validate(const struct hf__json *object, const struct hf__json *old,
                         struct hfd_causes *causes) {
        static const char *const policies[] = {"AlwaysAllow", "IfHealthyBudget", NULL},
                                 *const shares[] = {"minAvailable", "maxUnavailable"};
        const struct hf__json *spec = hf__json_get(object, "spec");
        char path[HFD_FIELD_PATH_MAX];

        if (hfd_spec_is_kept(object, old, causes))
                return;
        if (hf__json_get(spec, "minAvailable") && hf__json_get(spec, "maxUnavailable"))
                refuse_both_members(spec, causes);
        for (size_t i = 0; i < 2; i++) {
                const struct hf__json *share = hf__json_get(spec, shares[i]);
                hfd_field_path(path, "spec", shares[i]);
                hfd_share_validate(share, path, causes);
                hfd_share_validate_most(share, path, causes);
        }
        if (hf__json_get(spec, "selector"))
                hfd_match_selector_validate(hf__json_get(spec, "selector"), "spec.selector",
                                            causes);
        if (hf__json_get(spec, "unhealthyPodEvictionPolicy"))
                hfd_require_one_of(spec, "spec", "unhealthyPodEvictionPolicy", policies, causes);
}

/* ---- autoscalers ---- */

/* The target needs a group in its apiVersion, because all kinds that can be scaled have one except
 * ReplicationControllers, and without it the autoscaler does not find the kind. A target that an
 * update does not change may have any apiVersion. old: the old object, or NULL. */
static void validate_target(const struct hf__json *target, const struct hf__json *old,
                            struct hfd_causes *causes) {
        const char *version = hfd_text_of(target, "apiVersion");

        (void)hfd_require_text(target, "spec.scaleTargetRef", "kind", causes);
        (void)hfd_require_text(target, "spec.scaleTargetRef", "name", causes);
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

        if (hfd_spec_is_kept(object, old, causes))
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
        if (has_least && least == 0 && !has_outer_metric(spec))
                hfd_cause_forbidden(causes, "spec.metrics",
                                    "must specify at least one Object or External metric to "
                                    "support scaling to zero replicas");
}
