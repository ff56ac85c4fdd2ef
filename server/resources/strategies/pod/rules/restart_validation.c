/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of a container's own restartPolicy and of its restartPolicyRules.
 *
 * Invariant: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. Its feature gates for these fields are on by default.
 */
#include "base/json.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"

#define RULES_MAX      20
#define EXIT_CODES_MAX 255

/* field: the path of exitCodes. */
static void validate_exit_codes(const struct hf__json *codes, const char *field,
                                struct hfd_causes *causes) {
        static const char *const operators[] = {"In", "NotIn", NULL};
        size_t n = hf__json_count(hf__json_get(codes, "values"));
        char path[HFD_FIELD_PATH_MAX];

        hfd_refuse_others(hfd_text_of(codes, "operator"), hfd_field_path(path, field, "operator"),
                          operators, causes);
        if (n > EXIT_CODES_MAX)
                hfd_cause_too_many(causes, hfd_field_path(path, field, "values"), n,
                                   EXIT_CODES_MAX);
}

/* field: the path of the rule. */
static void validate_rule(const struct hf__json *rule, const char *field,
                          struct hfd_causes *causes) {
        static const char *const actions[] = {"Restart", "RestartAllContainers", NULL};
        const struct hf__json *codes = hf__json_get(rule, "exitCodes");
        char path[HFD_FIELD_PATH_MAX];

        hfd_refuse_others(hfd_text_of(rule, "action"), hfd_field_path(path, field, "action"),
                          actions, causes);
        hfd_field_path(path, field, "exitCodes");
        if (codes)
                validate_exit_codes(codes, path, causes);
        else
                hfd_cause_required(causes, path, "must be specified");
}

void hfd_container_restart_validate(const struct hf__json *container, const char *field, bool init,
                                    struct hfd_causes *causes) {
        static const char *const policies[] = {"Always", "Never", "OnFailure", NULL};
        const struct hf__json *policy = hf__json_get(container, "restartPolicy");
        const struct hf__json *rules = hf__json_get(container, "restartPolicyRules");
        size_t n = hf__json_count(rules), i = 0;
        char list[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];

        hfd_field_path(path, field, "restartPolicy");
        if (policy)
                hfd_refuse_others(hf__json_text_or_empty(policy), path, policies, causes);
        else if (n > 0)
                hfd_cause_required(causes, path,
                                   "must specify restartPolicy when restart rules are used");
        if (init && !policy)
                return; /* as in kube-apiserver */
        hfd_field_path(list, field, "restartPolicyRules");
        if (n > RULES_MAX)
                hfd_cause_too_many(causes, list, n, RULES_MAX);
        for (const struct hf__json *m = hf__json_first(rules); m; m = hf__json_next(m))
                validate_rule(m, hfd_field_index(path, list, i++), causes);
}
