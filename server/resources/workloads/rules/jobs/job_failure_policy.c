/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of spec.podFailurePolicy of a Job, and of spec.podReplacementPolicy, which depends on
 * it.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. A list that is too long is refused, and only as many elements
 * as it may have are looked at: the arrays for exit codes have room for these. Repeated elements
 * are found by sorting, never by comparing all elements with each other.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/meta_validation.h"
#include "server/resources/workloads/workloads.h"

#define RULES_MAX      20
#define PATTERNS_MAX   20
#define EXIT_CODES_MAX 255

/* ---- lists and choices ---- */

/* "Too many" if the list is longer than max. */
static void validate_length(const struct hf__json *list, const char *field, size_t max,
                            struct hfd_causes *causes) {
        size_t n = hf__json_count(list);

        if (n > max)
                hfd_cause_too_many(causes, field, n, (int64_t)max);
}

/* "Unsupported value" unless the member is one of the values, which end with NULL. required: what
 * "Required value" says if it is "". */
static void validate_choice(const struct hf__json *object, const char *field, const char *member,
                            const char *const *values, const char *required,
                            struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];

        if (*hfd_text_of(object, member))
                hfd_require_one_of(object, field, member, values, causes);
        else
                hfd_cause_required(causes, hfd_field_path(path, field, member), required);
}

/* ---- exit codes ---- */

struct exit_code {
        int64_t code;
        size_t position; /* in the list */
};

/* For qsort: by code, and by position where codes are equal. */
static int compare_codes(const void *a, const void *b) {
        const struct exit_code *x = a, *y = b;

        if (x->code != y->code)
                return x->code < y->code ? -1 : 1;
        return x->position < y->position ? -1 : 1;
}

/* Sets repeated[i] if element i has the code of an earlier one. The others stay false. */
static void find_repeated(const struct hf__json *values, bool repeated[EXIT_CODES_MAX]) {
        struct exit_code sorted[EXIT_CODES_MAX];
        size_t n = 0;

        for (const struct hf__json *m = hf__json_first(values); m && n < EXIT_CODES_MAX;
             m = hf__json_next(m), n++) {
                sorted[n] = (struct exit_code){0, n};
                (void)hf__json_integer(m, &sorted[n].code);
        }
        qsort(sorted, n, sizeof sorted[0], compare_codes);
        for (size_t i = 1; i < n; i++)
                repeated[sorted[i].position] = sorted[i].code == sorted[i - 1].code;
}

/* The value of the cause is the list; a long one is cut. */
static void refuse_values(const struct hf__json *values, const char *field, const char *why,
                          struct hfd_causes *causes) {
        struct hf__strbuf shown = {0};

        hf__json_print(values, &shown);
        bool is_shown = hfd_causes_check(causes, shown.error) && shown.data;
        hfd_cause_invalid(causes, field, is_shown ? shown.data : "null", why);
        hf__strbuf_done(&shown);
}

/* refuses_zero: 0 means that the container has not failed, so the operator In cannot look for it.
 */
static void validate_values(const struct hf__json *values, const char *field, bool refuses_zero,
                            struct hfd_causes *causes) {
        const struct hf__json *first = hf__json_first(values);
        char path[HFD_FIELD_PATH_MAX], shown[24];
        bool repeated[EXIT_CODES_MAX] = {false}, is_ordered = true;
        int64_t code = 0, before = INT64_MIN;
        size_t i = 0;

        find_repeated(values, repeated);
        if (!first)
                refuse_values(values, field, "at least one value is required", causes);
        validate_length(values, field, EXIT_CODES_MAX, causes);
        for (const struct hf__json *m = first; m && i < EXIT_CODES_MAX; m = hf__json_next(m), i++) {
                (void)hf__json_integer(m, &code);
                (void)snprintf(shown, sizeof shown, "%" PRId64, code);
                hfd_field_index(path, field, i);
                if (refuses_zero && code == 0)
                        hfd_cause_invalid(causes, path, shown, "must not be 0 for the In operator");
                if (repeated[i])
                        hfd_cause_duplicate(causes, path, shown);
                is_ordered = is_ordered && code >= before;
                before = code;
        }
        if (!is_ordered)
                refuse_values(values, field, "must be ordered", causes);
}

/* Whether the template has a container of this name in one of two lists. A policy has few rules, so
 * each walks the lists, without an index. */
static bool has_container(const struct hf__json *job_spec, const char *name) {
        static const char *const lists[] = {"template.spec.containers",
                                            "template.spec.initContainers"};

        for (size_t i = 0; i < 2; i++)
                if (hf__json_element_with(hf__json_path(job_spec, lists[i]), "name", name))
                        return true;
        return false;
}

static void validate_exit_codes(const struct hf__json *job_spec, const struct hf__json *codes,
                                const char *field, struct hfd_causes *causes) {
        static const char *const operators[] = {"In", "NotIn", NULL};
        const char *container = hf__json_string(codes, "containerName");
        char path[HFD_FIELD_PATH_MAX];

        validate_choice(codes, field, "operator", operators, "valid values: [\"In\" \"NotIn\"]",
                        causes);
        if (container && !has_container(job_spec, container))
                hfd_cause_invalid_text(causes, hfd_field_path(path, field, "containerName"),
                                       container,
                                       "must be one of the container or initContainer names in the "
                                       "pod template");
        validate_values(hf__json_get(codes, "values"), hfd_field_path(path, field, "values"),
                        strcmp(hfd_text_of(codes, "operator"), "In") == 0, causes);
}

/* ---- spec.podFailurePolicy ---- */

static void validate_conditions(const struct hf__json *patterns, const char *field,
                                struct hfd_causes *causes) {
        static const char *const states[] = {"False", "True", "Unknown", NULL};
        char path[HFD_FIELD_PATH_MAX], member[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        validate_length(patterns, field, PATTERNS_MAX, causes);
        for (const struct hf__json *m = hf__json_first(patterns); m && i < PATTERNS_MAX;
             m = hf__json_next(m)) {
                hfd_field_index(path, field, i++);
                hfd_qualified_name_validate(hfd_text_of(m, "type"),
                                            hfd_field_path(member, path, "type"), causes);
                hfd_require_one_of(m, path, "status", states, causes);
        }
}

static void validate_failure_rule(const struct hf__json *job_spec, const struct hf__json *rule,
                                  const char *field, struct hfd_causes *causes) {
        static const char *const actions[] = {"Count", "FailIndex", "FailJob", "Ignore", NULL};
        const struct hf__json *codes = hf__json_get(rule, "onExitCodes"),
                              *conditions = hf__json_get(rule, "onPodConditions");
        char path[HFD_FIELD_PATH_MAX];

        validate_choice(rule, field, "action", actions,
                        "valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]", causes);
        if (strcmp(hfd_text_of(rule, "action"), "FailIndex") == 0 &&
            !hf__json_get(job_spec, "backoffLimitPerIndex"))
                hfd_cause_invalid_text(causes, hfd_field_path(path, field, "action"), "FailIndex",
                                       "requires the backoffLimitPerIndex to be set");
        if (codes)
                validate_exit_codes(job_spec, codes, hfd_field_path(path, field, "onExitCodes"),
                                    causes);
        validate_conditions(conditions, hfd_field_path(path, field, "onPodConditions"), causes);
        if (codes && hf__json_first(conditions))
                hfd_cause_add(causes, "FieldValueInvalid", field,
                              "Invalid value: specifying both OnExitCodes and OnPodConditions is "
                              "not supported");
        if (!codes && !hf__json_first(conditions))
                hfd_cause_add(causes, "FieldValueInvalid", field,
                              "Invalid value: specifying one of OnExitCodes and OnPodConditions is "
                              "required");
}

void hfd_job_failure_policy_validate(const struct hf__json *spec, const char *field,
                                     struct hfd_causes *causes) {
        const struct hf__json *rules = hf__json_path(spec, "podFailurePolicy.rules");
        char policy[HFD_FIELD_PATH_MAX], list[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        hfd_field_path(policy, field, "podFailurePolicy");
        hfd_field_path(list, policy, "rules");
        validate_length(rules, list, RULES_MAX, causes);
        for (const struct hf__json *m = hf__json_first(rules); m && i < RULES_MAX;
             m = hf__json_next(m))
                validate_failure_rule(spec, m, hfd_field_index(path, list, i++), causes);
}

/* A policy of failures looks at pods that have failed, not at pods that are about to fail. */
void hfd_job_replacement_policy_validate(const struct hf__json *spec, const char *field,
                                         struct hfd_causes *causes) {
        const char *policy = hf__json_string(spec, "podReplacementPolicy");
        bool has_failures = hf__json_get(spec, "podFailurePolicy");
        char path[HFD_FIELD_PATH_MAX];

        if (policy && strcmp(policy, "Failed") != 0 &&
            (has_failures || strcmp(policy, "TerminatingOrFailed") != 0))
                hfd_cause_unsupported_text(causes,
                                           hfd_field_path(path, field, "podReplacementPolicy"),
                                           policy,
                                           has_failures ? "\"Failed\""
                                                        : "\"Failed\", \"TerminatingOrFailed\"");
}
