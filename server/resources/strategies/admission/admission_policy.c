/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The defaults and the validation of ValidatingAdmissionPolicies and MutatingAdmissionPolicies.
 * Their expressions (CEL) are compiled here only to find mistakes; server/admission/policy/
 * compiles them again when it loads a stored policy.
 *
 * Invariants: whatever an expression may use here, it may use there, so one that is accepted here
 * also compiles later. (One exception: a vertical tab in front of a valueExpression, which is no
 * white space in CEL, is cut off only here.) The texts of the causes and their order are those of
 * kube-apiserver, because clients show them and tests compare them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/causes.h"
#include "server/resources/expressions/expressions.h"
#include "server/resources/strategies/admission/match_schema.h"
#include "server/resources/strategies/admission/rule_path.h"
#include "server/resources/strategies/strategies.h"
#include "server/resources/validation/names.h"

#define PATH_MAX_BYTES       HFD_RULE_PATH_MAX
#define ANNOTATIONS_MAX      20   /* of a policy; Kubernetes' limit */
#define VALUE_EXPRESSION_MAX 5120 /* bytes */

static const char spaces[] = " \t\n\v\f\r";

static bool is_blank(const char *text) { return text[strspn(text, spaces)] == 0; }

/* ---- defaults ---- */

int hfd_admission_policy_prepare(struct hf__json *object, const struct hf__json *old) {
        struct hf__json *spec = hf__json_get(object, "spec");

        if (!hf__json_is_object(spec))
                return 0;
        if (!hf__json_get(spec, "failurePolicy") &&
            hf__json_set_string(spec, "failurePolicy", "Fail") != 0)
                return -ENOMEM;
        return hfd_match_resources_prepare(hf__json_get(spec, "matchConstraints"));
}

/* ---- parts of both kinds ---- */

/* One policy while it is validated. */
struct validation {
        const struct hf__json *object, *spec; /* borrowed */
        struct hfd_causes *causes;            /* borrowed */
        struct hfd_expressions *set;          /* owned; the compiled expressions */
        bool has_params;                      /* the policy has a paramKind */
        uint64_t work;   /* of compiling the match conditions, which have a set of their own */
        bool is_changed; /* the spec is new or changed, so that compiling it has a limit */
        bool is_full;    /* the limit is exceeded: no more expressions are compiled */
        /* HFD_EXPRESSION_VARIABLES, or 0: as in Kubernetes, the expressions of a
         * ValidatingAdmissionPolicy without variables cannot name `variables`. */
        unsigned variables;
};

/* Whether another expression may be compiled. If it may not, a cause says so once. */
static bool may_compile(struct validation *v, const char *field) {
        if (!v->is_changed || v->is_full ||
            v->work + hfd_expressions_work(v->set) <= HFD_EXPRESSIONS_COMPILE_MAX)
                return !v->is_full;
        v->is_full = true;
        hfd_cause_forbidden(v->causes, field, HFD_EXPRESSIONS_COMPILE_TEXT);
        return false;
}

/* Compiles an expression, and adds a cause if it is wrong. shown: the expression as the cause shows
 * it. features: HFD_EXPRESSION_..., in addition to those of the whole policy. */
static void check_expression(struct validation *v, const char *text, const char *shown,
                             unsigned features, enum hfd_expression_result result,
                             const char *field) {
        const struct hfd_expression *expression;

        if (!may_compile(v, field))
                return;
        features |= v->variables | (v->has_params ? HFD_EXPRESSION_PARAMS : 0);
        if (hfd_expressions_compile(v->set, text, features, result, &expression) != 0)
                hfd_causes_no_memory(v->causes);
        else if (expression->error)
                hfd_cause_invalid_text(v->causes, field, shown, expression->error);
}

/* spec.paramKind.apiVersion: "VERSION" or "GROUP/VERSION". A long group is cut to a length that is
 * still too long for a subdomain; of such a group only the length is looked at. */
static void validate_api_version(struct validation *v, const char *text) {
        static const char field[] = "spec.paramKind.apiVersion";
        const char *slash = strchr(text, '/');
        const char *version = slash ? slash + 1 : text;
        char group[HFD_DNS_SUBDOMAIN_MAX + 2];
        const char *faults[HFD_LABEL_FAULTS_MAX];
        char detail[300];

        if (!text[0]) {
                hfd_cause_required(v->causes, field, NULL);
        } else if (strcmp(text, "/") == 0 || (slash && !version[0])) {
                hfd_cause_invalid_text(v->causes, field, text, "version must be specified");
        } else if (slash && strchr(version, '/')) {
                snprintf(detail, sizeof detail, "unexpected GroupVersion string: %.200s", text);
                hfd_cause_invalid_text(v->causes, field, text, detail);
        } else {
                snprintf(group, sizeof group, "%.*s", slash ? (int)(slash - text) : 0, text);
                if (strlen(group) > HFD_DNS_SUBDOMAIN_MAX)
                        hfd_cause_invalid_text(v->causes, field, group,
                                               "must be no more than 253 characters");
                else if (group[0] && !hfd_is_dns_subdomain(group))
                        hfd_cause_invalid_text(v->causes, field, group, hfd_dns_subdomain_rule);
                hfd_cause_invalid_joined(v->causes, field, version, "", faults,
                                         hfd_dns1035_label_faults(version, faults));
        }
}

/* Also sets v->has_params, so it runs before any expression is compiled. A kind is a DNS label in
 * CamelCase, so it is checked in lower case. */
static void validate_param_kind(struct validation *v) {
        const struct hf__json *json = hf__json_get(v->spec, "paramKind");
        const char *kind = hf__json_string_or_empty(json, "kind");
        const char *faults[HFD_LABEL_FAULTS_MAX];

        v->has_params = json != NULL;
        if (!json)
                return;
        validate_api_version(v, hf__json_string_or_empty(json, "apiVersion"));
        if (!kind[0]) {
                hfd_cause_required(v->causes, "spec.paramKind.kind", NULL);
                return;
        }
        char *lower = strdup(kind);
        if (!lower) {
                hfd_causes_no_memory(v->causes);
                return;
        }
        for (char *c = lower; *c; c++)
                if (*c >= 'A' && *c <= 'Z')
                        *c = (char)(*c | 0x20);
        hfd_cause_invalid_joined(v->causes, "spec.paramKind.kind", kind,
                                 "may have mixed case, but should otherwise match: ", faults,
                                 hfd_dns1035_label_faults(lower, faults));
        free(lower);
}

/* Adds the causes that come first in kube-apiserver's order: those of failurePolicy, paramKind and
 * matchConstraints. */
static void validate_common(struct validation *v) {
        const char *policy = hf__json_string(v->spec, "failurePolicy");
        const struct hf__json *constraints = hf__json_get(v->spec, "matchConstraints");

        if (!policy)
                hfd_cause_required(v->causes, "spec.failurePolicy", NULL);
        else if (strcmp(policy, "Fail") != 0 && strcmp(policy, "Ignore") != 0)
                hfd_cause_unsupported_text(v->causes, "spec.failurePolicy", policy,
                                           "\"Fail\", \"Ignore\"");
        validate_param_kind(v);
        hfd_match_resources_validate(constraints, "spec.matchConstraints", v->causes);
        if (!constraints)
                hfd_cause_required(v->causes, "spec.matchConstraints", NULL);
        else if (!hf__json_first(hf__json_get(constraints, "resourceRules")))
                hfd_cause_required(v->causes, "spec.matchConstraints.resourceRules", NULL);
}

/* Whether the text is an identifier of CEL, and not a word that CEL reserves. */
static bool is_identifier(const char *text) {
        static const char *const reserved[] = {"true",      "false",  "null",     "in",   "as",
                                               "break",     "const",  "continue", "else", "for",
                                               "if",        "import", "let",      "loop", "package",
                                               "namespace", "var",    "function", "void", "while",
                                               "return"};
        size_t n = 0;

        for (; text[n]; n++)
                if (text[n] != '_' && !(text[n] >= 'a' && text[n] <= 'z') &&
                    !(text[n] >= 'A' && text[n] <= 'Z') &&
                    !(n > 0 && text[n] >= '0' && text[n] <= '9'))
                        return false;
        for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++)
                if (strcmp(text, reserved[i]) == 0)
                        return false;
        return n > 0;
}

/* Adds the variable to the set, so that later expressions can use it. */
static void validate_variable(struct validation *v, const struct hf__json *variable,
                              const char *field) {
        const char *name = hf__json_string_or_empty(variable, "name");
        const char *text = hf__json_string_or_empty(variable, "expression");
        const struct hfd_expression *expression;
        char path[PATH_MAX_BYTES];
        int r;

        hfd_rule_path(path, field, "name");
        if (is_blank(name))
                hfd_cause_required(v->causes, path, "name is not specified");
        else if (!is_identifier(name))
                hfd_cause_invalid_text(v->causes, path, name, "must be a valid CEL identifier");
        hfd_rule_path(path, field, "expression");
        if (is_blank(text)) {
                hfd_cause_required(v->causes, path, "expression is not specified");
                return;
        }
        if (!may_compile(v, path))
                return;
        r = hfd_expressions_add_variable(v->set, name, text, &expression);
        if (r == HF_E_TOO_LARGE)
                hfd_cause_forbidden(v->causes, path, "there are too many variables");
        else if (hfd_causes_check(v->causes, r) && expression->error)
                hfd_cause_invalid_text(v->causes, path, text, expression->error);
}

static void validate_variables(struct validation *v) {
        char path[PATH_MAX_BYTES];
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(hf__json_get(v->spec, "variables")); m;
             m = hf__json_next(m), i++)
                validate_variable(v, m, hfd_rule_path_at(path, "spec.variables", NULL, i));
}

/* Validates the common parts, and makes an empty set of expressions. features: HFD_EXPRESSION_PATCH
 * for a MutatingAdmissionPolicy. False: memory ran out, which the causes say; there is no set to
 * free then. */
static bool begin_validation(struct validation *v, const struct hf__json *object,
                             const struct hf__json *old, struct hfd_causes *causes,
                             unsigned features) {
        *v = (struct validation){.object = object,
                                 .spec = hf__json_get(object, "spec"),
                                 .causes = causes};
        v->is_changed = !old || !hfd_causes_equal(causes, v->spec, hf__json_get(old, "spec"));
        validate_common(v);
        if ((features & HFD_EXPRESSION_PATCH) != 0 ||
            hf__json_first(hf__json_get(v->spec, "variables")))
                v->variables = HFD_EXPRESSION_VARIABLES;
        features |= HFD_EXPRESSION_VARIABLES | HFD_EXPRESSION_AUTHORIZER |
                    (v->has_params ? HFD_EXPRESSION_PARAMS : 0);
        if (hfd_expressions_new(features, NULL, NULL, &v->set) == 0)
                return true;
        hfd_causes_no_memory(causes);
        return false;
}

/* Whether the match conditions are new or changed. Unchanged ones are not checked again: a later
 * server may refuse what an older one has accepted. */
static bool conditions_changed(const struct validation *v, const struct hf__json *old) {
        return !old ||
               !hfd_causes_equal(v->causes, hf__json_path(v->object, "spec.matchConditions"),
                                 hf__json_path(old, "spec.matchConditions"));
}

static void validate_conditions(struct validation *v, const struct hf__json *old) {
        if (conditions_changed(v, old))
                hfd_match_conditions_validate(hf__json_get(v->spec, "matchConditions"),
                                              v->has_params, "spec.matchConditions", &v->work,
                                              v->causes);
}

/* ---- ValidatingAdmissionPolicy ---- */

/* The message of a validation, and the expression that makes it; a validation may have both. */
static void validate_message(struct validation *v, const struct hf__json *json, const char *field) {
        const char *expression = hf__json_string_or_empty(json, "messageExpression");
        const char *message = hf__json_string_or_empty(json, "message");
        const char *start = message + strspn(message, spaces);
        size_t n = strlen(start);
        char path[PATH_MAX_BYTES];

        hfd_rule_path(path, field, "messageExpression");
        if (expression[0] && is_blank(expression))
                hfd_cause_invalid_text(v->causes, path, expression,
                                       "must be non-empty if specified");
        else if (expression[0])
                check_expression(v, expression, expression, 0, HFD_RESULT_STRING, path);
        hfd_rule_path(path, field, "message");
        while (n > 0 && strchr(spaces, start[n - 1]))
                n--;
        if (message[0] && n == 0)
                hfd_cause_invalid_text(v->causes, path, message, "must be non-empty if specified");
        else if (memchr(start, '\n', n) || memchr(start, '\r', n))
                hfd_cause_invalid_text(v->causes, path, message, "must not contain line breaks");
}

/* As in kube-apiserver, the expression may use the authorizer; the expression that makes its
 * message (validate_message) may not. */
static void validate_validation(struct validation *v, const struct hf__json *json,
                                const char *field) {
        const char *expression = hf__json_string_or_empty(json, "expression");
        const char *reason = hf__json_string(json, "reason");
        char path[PATH_MAX_BYTES];

        hfd_rule_path(path, field, "expression");
        if (is_blank(expression))
                hfd_cause_required(v->causes, path, "expression is not specified");
        else
                check_expression(v, expression, expression, HFD_EXPRESSION_AUTHORIZER,
                                 HFD_RESULT_BOOL, path);
        validate_message(v, json, field);
        if (reason && strcmp(reason, "Forbidden") != 0 && strcmp(reason, "Invalid") != 0 &&
            strcmp(reason, "RequestEntityTooLarge") != 0)
                hfd_cause_unsupported_text(v->causes, hfd_rule_path(path, field, "reason"), reason,
                                           "\"Forbidden\", \"Invalid\", "
                                           "\"RequestEntityTooLarge\"");
}

/* An audit annotation. Its key in the audit log is "NAME OF THE POLICY/key", which must be a
 * qualified name. A name that is too long is cut, but stays too long and so invalid. As in
 * kube-apiserver, a value that is too long has the cause "Required value". */
static void validate_annotation(struct validation *v, const struct hf__json *json,
                                const char *field) {
        const char *name = hf__json_string_or_empty(hf__json_get(v->object, "metadata"), "name");
        const char *text = hf__json_string_or_empty(json, "valueExpression");
        const char *start = text + strspn(text, spaces);
        size_t n = strlen(start); /* without the spaces around it, as Kubernetes measures it */
        const char *key = hf__json_string_or_empty(json, "key");
        char qualified[600];
        char path[PATH_MAX_BYTES];

        hfd_rule_path(path, field, "key");
        snprintf(qualified, sizeof qualified, "%.255s/%.300s", name, key);
        if (!name[0])
                hfd_cause_invalid_text(v->causes, path, key, "requires metadata.name be non-empty");
        else if (!hfd_is_qualified_name(qualified))
                hfd_cause_invalid_text(v->causes, path, qualified, hfd_qualified_name_rule);
        hfd_rule_path(path, field, "valueExpression");
        while (n > 0 && strchr(spaces, start[n - 1]))
                n--;
        if (n == 0)
                hfd_cause_required(v->causes, path, "valueExpression is not specified");
        else if (n > VALUE_EXPRESSION_MAX)
                hfd_cause_required(v->causes, path, "must not exceed 5120 bytes in length");
        else
                check_expression(v, start, text, HFD_EXPRESSION_AUTHORIZER,
                                 HFD_RESULT_STRING_OR_NULL, path);
}

static void validate_annotations(struct validation *v) {
        const struct hf__json *list = hf__json_get(v->spec, "auditAnnotations");
        struct hf__json_index keys;
        char path[PATH_MAX_BYTES];
        size_t n = hf__json_count(list);
        size_t i = 0;

        if (n > ANNOTATIONS_MAX) {
                hfd_cause_invalid(v->causes, "spec.auditAnnotations", "[...]",
                                  "must not have more than 20 auditAnnotations");
                return;
        }
        if (!hfd_causes_check(v->causes, hf__json_index_init(&keys, list, "key")))
                return;
        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m), i++) {
                struct hf__json_index_entry *entry =
                        hf__json_index_find(&keys, hf__json_string_or_empty(m, "key"));
                char key_path[PATH_MAX_BYTES];

                hfd_rule_path_at(path, "spec.auditAnnotations", NULL, i);
                validate_annotation(v, m, path);
                if (entry && entry->position < i)
                        hfd_cause_duplicate_text(v->causes, hfd_rule_path(key_path, path, "key"),
                                                 hf__json_string_or_empty(m, "key"));
        }
        hf__json_index_done(&keys);
}

void hfd_validating_policy_validate(const struct hf__json *object, const struct hf__json *old,
                                    struct hfd_causes *causes) {
        static const char required[] =
                "validations or auditAnnotations must contain at least one item";
        const struct hf__json *list;
        char path[PATH_MAX_BYTES];
        struct validation v;
        size_t i = 0;

        if (!begin_validation(&v, object, old, causes, 0))
                return;
        validate_conditions(&v, old);
        validate_variables(&v);
        list = hf__json_get(v.spec, "validations");
        if (!hf__json_first(list) && !hf__json_first(hf__json_get(v.spec, "auditAnnotations"))) {
                hfd_cause_required(causes, "spec.validations", required);
                hfd_cause_required(causes, "spec.auditAnnotations", required);
        }
        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m), i++)
                validate_validation(&v, m, hfd_rule_path_at(path, "spec.validations", NULL, i));
        validate_annotations(&v);
        hfd_expressions_free(v.set);
}

void hfd_validating_policy_validate_status(const struct hf__json *object,
                                           const struct hf__json *old, struct hfd_causes *causes) {
        static const char list[] = "status.typeChecking.expressionWarnings";
        char path[PATH_MAX_BYTES];
        char member[PATH_MAX_BYTES];
        size_t i = 0;

        (void)old;
        for (const struct hf__json *m = hf__json_first(hf__json_path(object, list)); m;
             m = hf__json_next(m), i++) {
                hfd_rule_path_at(path, list, NULL, i);
                if (!hf__json_string_or_empty(m, "warning")[0])
                        hfd_cause_required(causes, hfd_rule_path(member, path, "warning"), NULL);
                if (is_blank(hf__json_string_or_empty(m, "fieldRef")))
                        hfd_cause_required(causes, hfd_rule_path(member, path, "fieldRef"), NULL);
        }
}

/* ---- MutatingAdmissionPolicy ---- */

void hfd_mutating_rules_validate(const struct hf__json *resources, const char *field,
                                 struct hfd_causes *causes) {
        for (const struct hf__json *rule = hf__json_first(hf__json_get(resources, "resourceRules"));
             rule; rule = hf__json_next(rule))
                for (const struct hf__json *m = hf__json_first(hf__json_get(rule, "operations")); m;
                     m = hf__json_next(m)) {
                        const char *text = hf__json_is_string(m) ? hf__json_text(m) : "";

                        if (strcmp(text, "*") != 0 && strcmp(text, "CREATE") != 0 &&
                            strcmp(text, "UPDATE") != 0 && strcmp(text, "CONNECT") != 0)
                                hfd_cause_unsupported_text(causes, field, text,
                                                           "\"*\", \"CONNECT\", \"CREATE\", "
                                                           "\"UPDATE\"");
                }
}

/* Validates the one form of a change that the patchType asks for, and refuses the other form. */
static void validate_change(struct validation *v, const struct hf__json *mutation,
                            const char *field, bool apply) {
        const char *name = apply ? "applyConfiguration" : "jsonPatch";
        const char *other = apply ? "jsonPatch" : "applyConfiguration";
        const struct hf__json *change = hf__json_get(mutation, name);
        const char *text = hf__json_string_or_empty(change, "expression");
        char path[PATH_MAX_BYTES];
        char member[PATH_MAX_BYTES];

        hfd_rule_path(path, field, name);
        if (!change)
                hfd_cause_required(v->causes, path,
                                   apply ? "must be specified when patchType is ApplyConfiguration"
                                         : "must be specified when patchType is JSONPatch");
        else if (is_blank(text))
                hfd_cause_required(v->causes, hfd_rule_path(member, path, "expression"), NULL);
        else
                check_expression(v, text + strspn(text, spaces), text + strspn(text, spaces),
                                 HFD_EXPRESSION_AUTHORIZER | HFD_EXPRESSION_PATCH,
                                 apply ? HFD_RESULT_OBJECT : HFD_RESULT_JSON_PATCH,
                                 hfd_rule_path(member, path, "expression"));
        if (!hf__json_get(mutation, other))
                return;
        hfd_cause_invalid_text(v->causes, hfd_rule_path(path, field, other),
                               apply ? "{jsonPatch}" : "{applyConfiguration}",
                               apply ? "must not be specified when patchType is "
                                       "ApplyConfiguration"
                                     : "must not be specified when patchType is JSONPatch");
}

/* Only the two forms are known, and each has its own first letter. */
static void validate_mutation(struct validation *v, const struct hf__json *mutation,
                              const char *field) {
        const char *type = hf__json_string_or_empty(mutation, "patchType");
        char path[PATH_MAX_BYTES];

        hfd_rule_path(path, field, "patchType");
        if (!type[0])
                hfd_cause_required(v->causes, path, NULL);
        else if (strcmp(type, "ApplyConfiguration") == 0 || strcmp(type, "JSONPatch") == 0)
                validate_change(v, mutation, field, type[0] == 'A');
        else
                hfd_cause_unsupported_text(v->causes, path, type,
                                           "\"ApplyConfiguration\", \"JSONPatch\"");
}

void hfd_mutating_policy_validate(const struct hf__json *object, const struct hf__json *old,
                                  struct hfd_causes *causes) {
        const struct hf__json *list;
        const char *reinvocation;
        char path[PATH_MAX_BYTES];
        struct validation v;
        size_t i = 0;

        if (!begin_validation(&v, object, old, causes, HFD_EXPRESSION_PATCH))
                return;
        hfd_mutating_rules_validate(hf__json_get(v.spec, "matchConstraints"),
                                    "spec.matchConstraints.resourceRules.operations", causes);
        validate_conditions(&v, old);
        validate_variables(&v);
        list = hf__json_get(v.spec, "mutations");
        if (!hf__json_first(list))
                hfd_cause_required(causes, "spec.mutations",
                                   "mutations must contain at least one item");
        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m), i++)
                validate_mutation(&v, m, hfd_rule_path_at(path, "spec.mutations", NULL, i));
        reinvocation = hf__json_string_or_empty(v.spec, "reinvocationPolicy");
        if (!reinvocation[0])
                hfd_cause_required(causes, "spec.reinvocationPolicy", NULL);
        else if (strcmp(reinvocation, "Never") != 0 && strcmp(reinvocation, "IfNeeded") != 0)
                hfd_cause_unsupported_text(causes, "spec.reinvocationPolicy", reinvocation,
                                           "\"IfNeeded\", \"Never\"");
        hfd_expressions_free(v.set);
}
