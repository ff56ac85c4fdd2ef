/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of affinities: on which nodes a pod may run or should run, and next to which other
 * pods.
 *
 * Invariant: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. So is what is not checked: a preferred term may have values
 * that no label can have, because in Kubernetes it did no harm.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/strategies/admission/match_schema.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/meta_validation.h"
#include "server/resources/validation/names.h"

static const char required[] = "requiredDuringSchedulingIgnoredDuringExecution",
                  preferred[] = "preferredDuringSchedulingIgnoredDuringExecution";

static void validate_weight(const struct hf__json *term, const char *field,
                            struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX], shown[24];
        int64_t weight = 0;

        (void)hf__json_integer(hf__json_get(term, "weight"), &weight);
        if (weight >= 1 && weight <= 100)
                return;
        (void)snprintf(shown, sizeof shown, "%lld", (long long)weight);
        hfd_cause_invalid(causes, hfd_field_path(path, field, "weight"), shown,
                          "must be in the range 1-100");
}

/* ---- nodes ---- */

static void validate_label_values(const struct hf__json *values, const char *field,
                                  struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(values); m; m = hf__json_next(m)) {
                const char *value = hf__json_text_or_empty(m);
                hfd_field_index(path, field, i++);
                if (strlen(value) > HFD_LABEL_VALUE_MAX)
                        hfd_cause_invalid_text(causes, path, value,
                                               "must be no more than 63 bytes");
                if (*value && !hfd_is_name_text(value))
                        hfd_cause_invalid_text(causes, path, value, hfd_label_value_rule);
        }
}

static bool is_either(const char *text, const char *a, const char *b) {
        return strcmp(text, a) == 0 || strcmp(text, b) == 0;
}

/* A requirement of the labels of a node. The numbers for Gt and Lt are not checked. */
static void validate_expression(const struct hf__json *requirement, bool any_value,
                                const char *field, struct hfd_causes *causes) {
        const char *operator= hfd_text_of(requirement, "operator");
        const struct hf__json *values = hf__json_get(requirement, "values");
        size_t n = hf__json_count(values);
        char of_values[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];

        hfd_field_path(of_values, field, "values");
        if (is_either(operator, "In", "NotIn")) {
                if (n == 0)
                        hfd_cause_required(causes, of_values,
                                           "must be specified when `operator` is 'In' or 'NotIn'");
        } else if (is_either(operator, "Exists", "DoesNotExist")) {
                if (n > 0)
                        hfd_cause_forbidden(causes, of_values,
                                            "may not be specified when `operator` is 'Exists' or "
                                            "'DoesNotExist'");
        } else if (is_either(operator, "Gt", "Lt")) {
                if (n != 1)
                        hfd_cause_required(causes, of_values,
                                           "must be specified single value when `operator` is 'Lt' "
                                           "or 'Gt'");
        } else {
                hfd_cause_invalid_text(causes, hfd_field_path(path, field, "operator"), operator,
                                       "not a valid selector operator");
        }
        hfd_qualified_name_validate(hfd_text_of(requirement, "key"),
                                    hfd_field_path(path, field, "key"), causes);
        if (!any_value)
                validate_label_values(values, of_values, causes);
}

/* A requirement of a field of a node, which can only be its name. */
static void validate_field(const struct hf__json *requirement, const char *field,
                           struct hfd_causes *causes) {
        const char *operator= hfd_text_of(requirement, "operator"),
                   *key = hfd_text_of(requirement, "key");
        const struct hf__json *values = hf__json_get(requirement, "values");
        char of_values[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        hfd_field_path(of_values, field, "values");
        if (!is_either(operator, "In", "NotIn"))
                hfd_cause_invalid_text(causes, hfd_field_path(path, field, "operator"), operator,
                                       "not a valid selector operator");
        else if (hf__json_count(values) != 1)
                hfd_cause_required(causes, of_values,
                                   "must be only one value when `operator` is 'In' or 'NotIn' for "
                                   "node field selector");
        if (strcmp(key, "metadata.name") != 0) {
                hfd_cause_invalid_text(causes, hfd_field_path(path, field, "key"), key,
                                       "not a valid field selector key");
                return;
        }
        for (const struct hf__json *m = hf__json_first(values); m; m = hf__json_next(m))
                hfd_subdomain_validate(hf__json_text_or_empty(m),
                                       hfd_field_index(path, of_values, i++), causes);
}

/* any_value: labels may have any value, also one that no label can have. */
static void validate_node_term(const struct hf__json *term, bool any_value, const char *field,
                               struct hfd_causes *causes) {
        char list[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        hfd_field_path(list, field, "matchExpressions");
        for (const struct hf__json *m = hf__json_first(hf__json_get(term, "matchExpressions")); m;
             m = hf__json_next(m))
                validate_expression(m, any_value, hfd_field_index(path, list, i++), causes);
        i = 0;
        hfd_field_path(list, field, "matchFields");
        for (const struct hf__json *m = hf__json_first(hf__json_get(term, "matchFields")); m;
             m = hf__json_next(m))
                validate_field(m, hfd_field_index(path, list, i++), causes);
}

/* selector: it is there. */
static void validate_node_selector(const struct hf__json *selector, const char *field,
                                   struct hfd_causes *causes) {
        const struct hf__json *terms = hf__json_get(selector, "nodeSelectorTerms");
        char list[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        hfd_field_path(list, field, "nodeSelectorTerms");
        if (!hf__json_first(terms))
                hfd_cause_required(causes, list, "must have at least one node selector term");
        for (const struct hf__json *m = hf__json_first(terms); m; m = hf__json_next(m))
                validate_node_term(m, false, hfd_field_index(path, list, i++), causes);
}

static void validate_node_affinity(const struct hf__json *affinity, const char *field,
                                   struct hfd_causes *causes) {
        const struct hf__json *selector = hf__json_get(affinity, required);
        char list[HFD_FIELD_PATH_MAX], item[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        if (selector)
                validate_node_selector(selector, hfd_field_path(path, field, required), causes);
        hfd_field_path(list, field, preferred);
        for (const struct hf__json *m = hf__json_first(hf__json_get(affinity, preferred)); m;
             m = hf__json_next(m)) {
                validate_weight(m, hfd_field_index(item, list, i++), causes);
                validate_node_term(hf__json_get(m, "preference"), true,
                                   hfd_field_path(path, item, "preference"), causes);
        }
}

/* ---- pods ---- */

/* As in kube-apiserver, the path of the namespaces is "namespace", without an index. */
static void validate_pod_term(const struct hf__json *term, const char *field,
                              struct hfd_causes *causes) {
        const char *key = hfd_text_of(term, "topologyKey");
        char path[HFD_FIELD_PATH_MAX];

        hfd_match_selector_validate(hf__json_get(term, "labelSelector"),
                                    hfd_field_path(path, field, "labelSelector"), causes);
        hfd_match_selector_validate(hf__json_get(term, "namespaceSelector"),
                                    hfd_field_path(path, field, "namespaceSelector"), causes);
        hfd_field_path(path, field, "namespace");
        for (const struct hf__json *m = hf__json_first(hf__json_get(term, "namespaces")); m;
             m = hf__json_next(m))
                hfd_dns_label_validate(hf__json_text_or_empty(m), path, causes);
        hfd_label_keys_validate(term, field, causes);
        hfd_field_path(path, field, "topologyKey");
        if (!*key)
                hfd_cause_required(causes, path, "can not be empty");
        hfd_qualified_name_validate(key, path, causes);
}

/* Of podAffinity or podAntiAffinity. */
static void validate_pod_affinity(const struct hf__json *affinity, const char *field,
                                  struct hfd_causes *causes) {
        char list[HFD_FIELD_PATH_MAX], item[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        hfd_field_path(list, field, required);
        for (const struct hf__json *m = hf__json_first(hf__json_get(affinity, required)); m;
             m = hf__json_next(m))
                validate_pod_term(m, hfd_field_index(item, list, i++), causes);
        i = 0;
        hfd_field_path(list, field, preferred);
        for (const struct hf__json *m = hf__json_first(hf__json_get(affinity, preferred)); m;
             m = hf__json_next(m)) {
                validate_weight(m, hfd_field_index(item, list, i++), causes);
                validate_pod_term(hf__json_get(m, "podAffinityTerm"),
                                  hfd_field_path(path, item, "podAffinityTerm"), causes);
        }
}

void hfd_affinity_validate(const struct hf__json *affinity, const char *field,
                           struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];

        validate_node_affinity(hf__json_get(affinity, "nodeAffinity"),
                               hfd_field_path(path, field, "nodeAffinity"), causes);
        validate_pod_affinity(hf__json_get(affinity, "podAffinity"),
                              hfd_field_path(path, field, "podAffinity"), causes);
        validate_pod_affinity(hf__json_get(affinity, "podAntiAffinity"),
                              hfd_field_path(path, field, "podAntiAffinity"), causes);
}
