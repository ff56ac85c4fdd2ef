/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an update may change the node affinity of a pod that scheduling gates hold back: the pod may
 * only get fewer nodes. So the list of required terms, if it is not empty, keeps its terms. A term
 * that has requirements may get more of them behind these. What the pod only prefers may change in
 * any way.
 *
 * Invariants: the texts of the causes are those of kube-apiserver, because clients show them and
 * tests compare them. Values are compared by their schema, as in Go.
 */
#include "base/json.h"
#include "server/resources/strategies/pod/pod_schema.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/workloads/workloads.h"

static const struct hfd_internal_member of_requirement[] = {{"Key", "key", .is_text = true},
                                                            {"Operator", "operator",
                                                             .is_text = true},
                                                            {"Values", "values"},
                                                            {0}};
static const struct hfd_internal_member of_term[] = {{"MatchExpressions", "matchExpressions",
                                                      of_requirement},
                                                     {"MatchFields", "matchFields", of_requirement},
                                                     {0}};

/* Whether this list of the term (matchExpressions or matchFields) begins with the requirements that
 * it had. term_schema: that of the term. */
static bool only_grows(const struct hfd_schema *term_schema, const struct hf__json *term,
                       const struct hf__json *old, const char *list, struct hfd_causes *causes) {
        const struct hfd_schema *schema = hfd_schema_of_member(term_schema, list)->items;
        const struct hf__json *now = hf__json_first(hf__json_get(term, list));

        for (const struct hf__json *m = hf__json_first(hf__json_get(old, list)); m;
             m = hf__json_next(m), now = hf__json_next(now))
                if (!now || !hfd_causes_equal_by(causes, schema, now, m))
                        return false;
        return true;
}

static bool is_empty(const struct hf__json *term) {
        return !hf__json_first(hf__json_get(term, "matchExpressions")) &&
               !hf__json_first(hf__json_get(term, "matchFields"));
}

void hfd_pod_validate_affinity_update(const struct hf__json *spec, const struct hf__json *old,
                                      struct hfd_causes *causes) {
        static const char path[] = "affinity.nodeAffinity."
                                   "requiredDuringSchedulingIgnoredDuringExecution."
                                   "nodeSelectorTerms";
        const struct hfd_schema *schema =
                hfd_schema_of_member(&hfd_node_selector_schema, "nodeSelectorTerms")->items;
        const struct hf__json *terms = hf__json_path(spec, path),
                              *old_terms = hf__json_path(old, path), *now = hf__json_first(terms);
        char field[HFD_FIELD_PATH_MAX], item[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        hfd_field_path(field, "spec", path);
        if (!hf__json_first(old_terms))
                return;
        if (hf__json_count(terms) != hf__json_count(old_terms)) {
                hfd_internal_refuse(terms, of_term, field,
                                    "no additions/deletions to non-empty NodeSelectorTerms list "
                                    "are allowed",
                                    causes);
                return;
        }
        /* An empty term matches no node, so with a requirement it would match more. */
        for (const struct hf__json *m = hf__json_first(old_terms); m;
             m = hf__json_next(m), now = hf__json_next(now), i++)
                if ((is_empty(m) && !is_empty(now)) ||
                    !only_grows(schema, now, m, "matchExpressions", causes) ||
                    !only_grows(schema, now, m, "matchFields", causes))
                        hfd_internal_refuse(now, of_term, hfd_field_index(item, field, i),
                                            "only additions are allowed (no mutations or "
                                            "deletions)",
                                            causes);
}
