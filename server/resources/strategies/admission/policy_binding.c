/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The defaults and the validation of ValidatingAdmissionPolicyBindings and
 * MutatingAdmissionPolicyBindings. A binding puts a policy into effect, with params and for a part
 * of the requests.
 *
 * Invariants: a binding may name a policy and params that do not exist yet, because clients apply
 * them in any order. The texts of the causes and their order are those of kube-apiserver, because
 * clients show them and tests compare them.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/causes.h"
#include "server/resources/strategies/admission/match_schema.h"
#include "server/resources/strategies/admission/rule_path.h"
#include "server/resources/strategies/strategies.h"
#include "server/resources/validation/meta_validation.h"

int hfd_admission_binding_prepare(struct hf__json *object, const struct hf__json *old) {
        (void)old;
        return hfd_match_resources_prepare(hf__json_path(object, "spec.matchResources"));
}

/* The params are one object with a name, or all objects that a selector selects. ref NULL: the
 * binding names no params, which is valid. */
static void validate_param_ref(const struct hf__json *ref, struct hfd_causes *causes) {
        static const char exclusive[] = "name and selector are mutually exclusive";
        const struct hf__json *selector = hf__json_get(ref, "selector");
        const char *name = hf__json_string_or_empty(ref, "name");
        const char *action = hf__json_string_or_empty(ref, "parameterNotFoundAction");

        if (!ref)
                return;
        if (name[0])
                hfd_match_name_validate(name, "spec.paramRef.name", causes);
        if (name[0] && selector)
                hfd_cause_forbidden(causes, "spec.paramRef.name", exclusive);
        if (selector)
                hfd_match_selector_validate(selector, "spec.paramRef.selector", causes);
        if (name[0] && selector)
                hfd_cause_forbidden(causes, "spec.paramRef.selector", exclusive);
        if (!name[0] && !selector)
                hfd_cause_required(causes, "spec.paramRef",
                                   "one of name or selector must be specified");
        if (!action[0])
                hfd_cause_required(causes, "spec.paramRef.parameterNotFoundAction", NULL);
        else if (strcmp(action, "Allow") != 0 && strcmp(action, "Deny") != 0)
                hfd_cause_unsupported_text(causes, "spec.paramRef.parameterNotFoundAction", action,
                                           "\"Deny\", \"Allow\"");
}

static void validate_actions(const struct hf__json *list, struct hfd_causes *causes) {
        static const char field[] = "spec.validationActions";
        static const char *const known[] = {"Deny", "Warn", "Audit"};
        bool seen[3] = {false, false, false};
        char path[HFD_RULE_PATH_MAX];
        char value[300];
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m), i++) {
                const char *text = hf__json_is_string(m) ? hf__json_text(m) : "";
                size_t k = 0;

                hfd_rule_path_at(path, field, NULL, i);
                while (k < 3 && strcmp(text, known[k]) != 0)
                        k++;
                if (k == 3)
                        hfd_cause_unsupported_text(causes, path, text,
                                                   "\"Audit\", \"Deny\", \"Warn\"");
                else if (seen[k])
                        hfd_cause_duplicate_text(causes, path, text);
                if (k < 3)
                        seen[k] = true;
        }
        hfd_quote_list(list, value, sizeof value);
        if (seen[0] && seen[1])
                hfd_cause_invalid(causes, field, value,
                                  "must not contain both Deny and Warn (repeating the same "
                                  "validation failure information in the API response and headers "
                                  "serves no purpose)");
        if (!hf__json_first(list))
                hfd_cause_required(causes, field, "at least one validation action is required");
}

static void validate_common(const struct hf__json *spec, struct hfd_causes *causes) {
        const char *name = hf__json_string_or_empty(spec, "policyName");

        if (!name[0])
                hfd_cause_required(causes, "spec.policyName", NULL);
        else
                hfd_subdomain_text_validate(name, strlen(name), "spec.policyName", name, causes);
        validate_param_ref(hf__json_get(spec, "paramRef"), causes);
        hfd_match_resources_validate(hf__json_get(spec, "matchResources"), "spec.matchResources",
                                     causes);
}

void hfd_validating_binding_validate(const struct hf__json *object, const struct hf__json *old,
                                     struct hfd_causes *causes) {
        const struct hf__json *spec = hf__json_get(object, "spec");

        (void)old;
        validate_common(spec, causes);
        validate_actions(hf__json_get(spec, "validationActions"), causes);
}

void hfd_mutating_binding_validate(const struct hf__json *object, const struct hf__json *old,
                                   struct hfd_causes *causes) {
        const struct hf__json *spec = hf__json_get(object, "spec");

        (void)old;
        validate_common(spec, causes);
        hfd_mutating_rules_validate(hf__json_get(spec, "matchResources"),
                                    "spec.matchResources.resourceRules.operations", causes);
}
