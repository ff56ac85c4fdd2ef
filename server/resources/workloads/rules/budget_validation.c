/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of PodDisruptionBudgets.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. An update that does not change the spec is not checked
 * (hfd_spec_is_kept).
 */
#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/strategies/admission/match_schema.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/workloads/workloads.h"

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

        if (hfd_spec_is_kept(&hfd_pod_disruption_budget_schema, object, old, causes))
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
                hfd_refuse_others(hfd_text_of(spec, "unhealthyPodEvictionPolicy"),
                                  "spec.unhealthyPodEvictionPolicy", policies, causes);
}
