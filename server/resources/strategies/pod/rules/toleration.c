/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of a toleration, in pods and in RuntimeClasses. A toleration allows a pod to run on a
 * node in spite of a taint.
 *
 * Invariant: the texts of the causes, the values in them and their order are those of
 * kube-apiserver, because clients show them and tests compare them.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/meta_validation.h"
#include "server/resources/validation/names.h"

/* A value that breaks both rules (its length and its form) has one cause that names both. */
void hfd_taint_value_validate(const char *value, const char *field, struct hfd_causes *causes) {
        static const char too_long[] = "must be no more than 63 bytes";
        char why[600];

        if (hfd_is_label_value(value))
                return;
        (void)snprintf(why, sizeof why, "%s%s%s",
                       strlen(value) > HFD_LABEL_VALUE_MAX ? too_long : "",
                       strlen(value) > HFD_LABEL_VALUE_MAX && !hfd_is_name_text(value) ? ";" : "",
                       hfd_is_name_text(value) ? "" : hfd_label_value_rule);
        hfd_cause_invalid_text(causes, field, value, why);
}

/* Lt and Gt, which compare numbers, are refused: in Kubernetes a feature gate allows them, which is
 * off by default. */
static void validate_operator(const struct hf__json *t, const char *field,
                              struct hfd_causes *causes) {
        const char *op = hfd_text_of(t, "operator"), *value = hfd_text_of(t, "value");

        if (strcmp(op, "Exists") == 0) {
                if (*value)
                        hfd_cause_invalid_text(causes, field, value,
                                               "value must be empty when `operator` is 'Exists'");
        } else if (!*op || strcmp(op, "Equal") == 0) {
                hfd_taint_value_validate(value, field, causes);
        } else {
                hfd_cause_unsupported_text(causes, field, op,
                                           strcmp(op, "Lt") == 0 || strcmp(op, "Gt") == 0
                                                   ? "\"Equal\", \"Exists\", \"Lt\", \"Gt\""
                                                   : "\"Equal\", \"Exists\"");
        }
}

void hfd_toleration_validate(const struct hf__json *t, const char *field,
                             struct hfd_causes *causes) {
        static const char *const effects[] = {"NoSchedule", "PreferNoSchedule", "NoExecute", NULL};
        const char *key = hfd_text_of(t, "key"), *op = hfd_text_of(t, "operator"),
                   *effect = hfd_text_of(t, "effect");
        char of_key[HFD_FIELD_PATH_MAX], of_operator[HFD_FIELD_PATH_MAX],
                of_effect[HFD_FIELD_PATH_MAX];

        hfd_field_path(of_key, field, "key");
        hfd_field_path(of_operator, field, "operator");
        hfd_field_path(of_effect, field, "effect");
        if (*key)
                hfd_qualified_name_validate(key, of_key, causes);
        if (!*key && strcmp(op, "Exists") != 0)
                hfd_cause_invalid_text(causes, of_operator, op,
                                       "operator must be Exists when `key` is empty, which means "
                                       "\"match all values and all keys\"");
        if (hf__json_get(t, "tolerationSeconds") && strcmp(effect, "NoExecute") != 0)
                hfd_cause_invalid_text(causes, of_effect, effect,
                                       "effect must be 'NoExecute' when `tolerationSeconds` is "
                                       "set");
        validate_operator(t, of_operator, causes);
        if (*effect)
                hfd_require_one_of(t, field, "effect", effects, causes);
}
