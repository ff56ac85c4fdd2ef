/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of a toleration, in pods and in RuntimeClasses. A toleration allows a pod to run on a
 * node in spite of a taint.
 *
 * Invariant: the texts of the causes, the values in them and their order are those of
 * kube-apiserver, because clients show them and tests compare them.
 */
#include <stdint.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/names.h"

/* The cause shows the whole toleration as JSON. Its names begin with capital letters, because
 * kube-apiserver prints its internal Go type, which has no JSON names. */
static void refuse_value_of_exists(const struct hf__json *t, const char *field,
                                   struct hfd_causes *causes) {
        static const char *const names[][2] = {{"Key", "key"},
                                               {"Operator", "operator"},
                                               {"Value", "value"},
                                               {"Effect", "effect"}};
        struct hf__strbuf value = {0};
        int64_t seconds;

        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
                const char *text = hfd_text_of(t, names[i][1]);
                hf__strbuf_printf(&value, "%s\"%s\":", i == 0 ? "{" : ",", names[i][0]);
                hf__strbuf_json(&value, text, strlen(text));
        }
        if (hf__json_i64(t, "tolerationSeconds", &seconds))
                hf__strbuf_printf(&value, ",\"TolerationSeconds\":%lld}", (long long)seconds);
        else
                hf__strbuf_puts(&value, ",\"TolerationSeconds\":null}");
        hfd_cause_invalid(causes, field, hfd_causes_check(causes, value.error) ? value.data : "",
                          "value must be empty when `operator` is 'Exists'");
        hf__strbuf_done(&value);
}

/* field: the path of the operator, which the causes for the value have too. No operator means
 * Equal. */
static void validate_operator(const struct hf__json *t, const char *field,
                              struct hfd_causes *causes) {
        const char *op = hfd_text_of(t, "operator"), *value = hfd_text_of(t, "value");

        if (strcmp(op, "Exists") == 0) {
                if (*value)
                        refuse_value_of_exists(t, field, causes);
        } else if (*op && strcmp(op, "Equal") != 0) {
                hfd_cause_unsupported_text(causes, field, op, "\"Equal\", \"Exists\"");
        } else if (strlen(value) > HFD_LABEL_VALUE_MAX) {
                hfd_cause_invalid_text(causes, field, value, "must be no more than 63 bytes");
        } else if (!hfd_is_label_value(value)) {
                hfd_cause_invalid_text(causes, field, value, hfd_label_value_rule);
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
        if (*key && !hfd_is_qualified_name(key))
                hfd_cause_invalid_text(causes, of_key, key, hfd_qualified_name_rule);
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
