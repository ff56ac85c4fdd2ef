/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of node selectors: which nodes a pod or a volume may be on, by their labels and names.
 * Terms are alternatives; the requirements of a term must all be true.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them.
 */
#include <string.h>

#include "base/json.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/meta_validation.h"
#include "server/resources/validation/names.h"

static bool is_one_of(const char *text, const char *a, const char *b) {
        return strcmp(text, a) == 0 || strcmp(text, b) == 0;
}

/* Checks that the operator is known, and that it has as many values as it takes. Whether the value
 * of Gt or Lt is a number is not checked. */
static void validate_operator(const struct hf__json *requirement, const char *field,
                              struct hfd_causes *causes) {
        const char *operator= hfd_text_of(requirement, "operator");
        size_t n = hf__json_count(hf__json_get(requirement, "values"));
        char path[HFD_FIELD_PATH_MAX];

        hfd_field_path(path, field, "values");
        if (is_one_of(operator, "In", "NotIn")) {
                if (n == 0)
                        hfd_cause_required(causes, path,
                                           "must be specified when `operator` is 'In' or 'NotIn'");
        } else if (is_one_of(operator, "Exists", "DoesNotExist")) {
                if (n > 0)
                        hfd_cause_forbidden(causes, path,
                                            "may not be specified when `operator` is 'Exists' or "
                                            "'DoesNotExist'");
        } else if (is_one_of(operator, "Gt", "Lt")) {
                if (n != 1)
                        hfd_cause_required(causes, path,
                                           "must be specified single value when `operator` is 'Lt' "
                                           "or 'Gt'");
        } else {
                hfd_cause_invalid_text(causes, hfd_field_path(path, field, "operator"), operator,
                                       "not a valid selector operator");
        }
}

/* A requirement for a label. */
static void validate_expression(const struct hf__json *requirement, const char *field,
                                bool any_value, struct hfd_causes *causes) {
        char list[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        validate_operator(requirement, field, causes);
        hfd_qualified_name_validate(hfd_text_of(requirement, "key"),
                                    hfd_field_path(path, field, "key"), causes);
        if (any_value)
                return;
        hfd_field_path(list, field, "values");
        for (const struct hf__json *m = hf__json_first(hf__json_get(requirement, "values")); m;
             m = hf__json_next(m)) {
                const char *value = hf__json_text_or_empty(m);
                hfd_field_index(path, list, i++);
                if (strlen(value) > HFD_LABEL_VALUE_MAX)
                        hfd_cause_invalid_text(causes, path, value,
                                               "must be no more than 63 bytes");
                if (*value && !hfd_is_name_text(value))
                        hfd_cause_invalid_text(causes, path, value, hfd_label_value_rule);
        }
}

/* A requirement for a field. There is only one: the name of the node. */
static void validate_field(const struct hf__json *requirement, const char *field,
                           struct hfd_causes *causes) {
        const struct hf__json *values = hf__json_get(requirement, "values");
        const char *operator= hfd_text_of(requirement, "operator"),
                   *key = hfd_text_of(requirement, "key");
        char list[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        hfd_field_path(list, field, "values");
        if (!is_one_of(operator, "In", "NotIn"))
                hfd_cause_invalid_text(causes, hfd_field_path(path, field, "operator"), operator,
                                       "not a valid selector operator");
        else if (hf__json_count(values) != 1)
                hfd_cause_required(causes, list,
                                   "must be only one value when `operator` is 'In' or 'NotIn' for "
                                   "node field selector");
        if (strcmp(key, "metadata.name") != 0) {
                hfd_cause_invalid_text(causes, hfd_field_path(path, field, "key"), key,
                                       "not a valid field selector key");
                return;
        }
        for (const struct hf__json *m = hf__json_first(values); m; m = hf__json_next(m))
                hfd_subdomain_validate(hf__json_text_or_empty(m), hfd_field_index(path, list, i++),
                                       causes);
}

void hfd_node_selector_term_validate(const struct hf__json *term, const char *field, bool any_value,
                                     struct hfd_causes *causes) {
        char list[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        hfd_field_path(list, field, "matchExpressions");
        for (const struct hf__json *m = hf__json_first(hf__json_get(term, "matchExpressions")); m;
             m = hf__json_next(m))
                validate_expression(m, hfd_field_index(path, list, i++), any_value, causes);
        i = 0;
        hfd_field_path(list, field, "matchFields");
        for (const struct hf__json *m = hf__json_first(hf__json_get(term, "matchFields")); m;
             m = hf__json_next(m))
                validate_field(m, hfd_field_index(path, list, i++), causes);
}

void hfd_node_selector_validate(const struct hf__json *selector, const char *field, bool any_value,
                                struct hfd_causes *causes) {
        const struct hf__json *terms = hf__json_get(selector, "nodeSelectorTerms");
        char list[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        hfd_field_path(list, field, "nodeSelectorTerms");
        if (!hf__json_first(terms))
                hfd_cause_required(causes, list, "must have at least one node selector term");
        for (const struct hf__json *m = hf__json_first(terms); m; m = hf__json_next(m))
                hfd_node_selector_term_validate(m, hfd_field_index(path, list, i++), any_value,
                                                causes);
}

bool hfd_node_selector_has_bad_values(const struct hf__json *selector) {
        const struct hf__json *terms = hf__json_get(selector, "nodeSelectorTerms");

        for (const struct hf__json *t = hf__json_first(terms); t; t = hf__json_next(t))
                for (const struct hf__json *m = hf__json_first(hf__json_get(t, "matchExpressions"));
                     m; m = hf__json_next(m))
                        for (const struct hf__json *v = hf__json_first(hf__json_get(m, "values"));
                             v; v = hf__json_next(v))
                                if (!hfd_is_label_value(hf__json_text_or_empty(v)))
                                        return true;
        return false;
}
