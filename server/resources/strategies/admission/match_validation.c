/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Validates rules, selectors and MatchResources, by which webhooks and policies choose requests.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. The work grows with n log n, because a client chooses the
 * length of the lists: duplicates are found with an index.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "server/resources/causes.h"
#include "server/resources/strategies/admission/match_schema.h"
#include "server/resources/strategies/admission/rule_path.h"
#include "server/resources/validation/meta_validation.h"
#include "server/resources/validation/names.h"

#define FIELD_MAX HFD_RULE_PATH_MAX
#define LIST_MAX  300 /* bytes of a list in a cause */

/* "Invalid value" with the whole list as the value, cut to LIST_MAX. */
static void invalid_list(struct hfd_causes *causes, const char *field, const struct hf__json *list,
                         const char *detail) {
        char value[LIST_MAX];

        hfd_quote_list(list, value, sizeof value);
        hfd_cause_invalid(causes, field, value, detail);
}

/* ---- selectors ---- */

/* A value of a label. It gets two causes if it is too long and also malformed. */
static void validate_value(const char *value, const char *field, struct hfd_causes *causes) {
        if (strlen(value) > HFD_LABEL_VALUE_MAX)
                hfd_cause_invalid_text(causes, field, value, "must be no more than 63 bytes");
        if (*value && !hfd_is_name_text(value))
                hfd_cause_invalid_text(causes, field, value, hfd_label_value_rule);
}

/* An element of matchExpressions. */
static void validate_requirement(const struct hf__json *term, const char *field,
                                 struct hfd_causes *causes) {
        const char *operator= hf__json_string(term, "operator");
        const char *key = hf__json_string(term, "key");
        const struct hf__json *values = hf__json_get(term, "values");
        char path[FIELD_MAX];
        size_t i = 0;

        operator= operator? operator: "";
        if (strcmp(operator, "In") == 0 || strcmp(operator, "NotIn") == 0) {
                if (!hf__json_first(values))
                        hfd_cause_required(causes, hfd_rule_path(path, field, "values"),
                                           "must be specified when `operator` is 'In' or 'NotIn'");
        } else if (strcmp(operator, "Exists") == 0 || strcmp(operator, "DoesNotExist") == 0) {
                if (hf__json_first(values))
                        hfd_cause_forbidden(causes, hfd_rule_path(path, field, "values"),
                                            "may not be specified when `operator` is 'Exists' or "
                                            "'DoesNotExist'");
        } else {
                hfd_cause_invalid_text(causes, hfd_rule_path(path, field, "operator"), operator,
                                       "not a valid selector operator");
        }
        hfd_qualified_name_validate(key ? key : "", hfd_rule_path(path, field, "key"), causes);
        for (const struct hf__json *m = hf__json_first(values); m; m = hf__json_next(m), i++)
                validate_value(hf__json_text_or_empty(m),
                               hfd_rule_path_at(path, field, "values", i), causes);
}

void hfd_match_selector_validate(const struct hf__json *selector, const char *field,
                                 struct hfd_causes *causes) {
        char path[FIELD_MAX];
        size_t i = 0;

        hfd_labels_validate(hf__json_get(selector, "matchLabels"),
                            hfd_rule_path(path, field, "matchLabels"), causes);
        for (const struct hf__json *m = hf__json_first(hf__json_get(selector, "matchExpressions"));
             m; m = hf__json_next(m), i++)
                validate_requirement(m, hfd_rule_path_at(path, field, "matchExpressions", i),
                                     causes);
}

/* ---- rules ---- */

/* Adds a cause if the list has the element `alone`, such as "*", and others. */
static void validate_alone(const struct hf__json *list, const char *alone, const char *field,
                           const char *detail, struct hfd_causes *causes) {
        const struct hf__json *first = hf__json_first(list);

        if (first && hf__json_next(first) && hf__json_has_element(list, alone))
                invalid_list(causes, field, list, detail);
}

/* What the list of resources of a rule contains. */
struct seen {
        struct hf__json_index parts; /* all elements by their texts */
        bool any;                    /* "*" */
        bool plain; /* the last element without a subresource is not "*"; kube-apiserver also
                     * forgets the earlier ones */
};

/* Refuses the element i, whose path is the field, if the element `wider` is before it. Frees the
 * text of `wider`. */
static void refuse_after(struct hf__strbuf *wider, const char *text, size_t i, const char *field,
                         const struct seen *seen, struct hfd_causes *causes) {
        const struct hf__json_index_entry *entry = NULL;
        char detail[400];

        if (hfd_causes_check(causes, wider->error))
                entry = hf__json_index_find(&seen->parts, wider->data);
        if (entry && entry->position < i) {
                snprintf(detail, sizeof detail, "if '%.150s' is present, must not specify %.150s",
                         wider->data, text);
                hfd_cause_invalid_text(causes, field, text, detail);
        }
        hf__strbuf_done(wider);
}

/* Checks the element i of a list of resources. "pods/status" is refused if an element before it has
 * all subresources of pods, or the status of all resources, because that includes it. */
static void validate_resource(const char *text, size_t i, const char *field, struct seen *seen,
                              struct hfd_causes *causes) {
        const char *slash = strchr(text, '/');
        struct hf__strbuf wider = {0};
        char path[FIELD_MAX];

        hfd_rule_path_at(path, field, NULL, i);
        if (!text[0]) {
                hfd_cause_required(causes, path, NULL);
                return;
        }
        if (strcmp(text, "*") == 0)
                seen->any = true;
        if (!slash) {
                seen->plain = strcmp(text, "*") != 0;
                return;
        }
        hf__strbuf_add(&wider, text, (size_t)(slash - text));
        hf__strbuf_puts(&wider, "/*");
        refuse_after(&wider, text, i, path, seen, causes);
        hf__strbuf_puts(&wider, "*");
        hf__strbuf_puts(&wider, slash);
        refuse_after(&wider, text, i, path, seen, causes);
}

static void validate_resources(const struct hf__json *list, const char *field,
                               struct hfd_causes *causes) {
        struct seen seen = {0};
        size_t i = 0;

        if (!hf__json_first(list))
                hfd_cause_required(causes, field, NULL);
        if (!hfd_causes_check(causes, hf__json_index_init(&seen.parts, list, NULL)))
                return;
        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m), i++)
                validate_resource(hf__json_text_or_empty(m), i, field, &seen, causes);
        hf__json_index_done(&seen.parts);
        validate_alone(list, "*/*", field, "if '*/*' is present, must not specify other resources",
                       causes);
        if (seen.any && seen.plain)
                invalid_list(causes, field, list,
                             "if '*' is present, must not specify other resources without "
                             "subresources");
}

static void validate_operations(const struct hf__json *rule, const char *field,
                                struct hfd_causes *causes) {
        static const char *const known[] = {"*", "CREATE", "UPDATE", "DELETE", "CONNECT"};
        const struct hf__json *list = hf__json_get(rule, "operations");
        char path[FIELD_MAX];
        size_t i = 0;

        if (!hf__json_first(list))
                hfd_cause_required(causes, hfd_rule_path(path, field, "operations"), NULL);
        validate_alone(list, "*", hfd_rule_path(path, field, "operations"),
                       "if '*' is present, must not specify other operations", causes);
        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m), i++) {
                bool found = false;

                for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
                        found = found || strcmp(hf__json_text_or_empty(m), known[k]) == 0;
                if (!found)
                        hfd_cause_unsupported_text(causes,
                                                   hfd_rule_path_at(path, field, "operations", i),
                                                   hf__json_text_or_empty(m),
                                                   "\"*\", \"CONNECT\", \"CREATE\", \"DELETE\", "
                                                   "\"UPDATE\"");
        }
}

void hfd_match_rule_validate(const struct hf__json *rule, const char *field,
                             struct hfd_causes *causes) {
        const struct hf__json *groups = hf__json_get(rule, "apiGroups");
        const struct hf__json *versions = hf__json_get(rule, "apiVersions");
        const char *scope = hf__json_string(rule, "scope");
        char path[FIELD_MAX];
        size_t i = 0;

        validate_operations(rule, field, causes);
        if (!hf__json_first(groups))
                hfd_cause_required(causes, hfd_rule_path(path, field, "apiGroups"), NULL);
        validate_alone(groups, "*", hfd_rule_path(path, field, "apiGroups"),
                       "if '*' is present, must not specify other API groups", causes);
        if (!hf__json_first(versions))
                hfd_cause_required(causes, hfd_rule_path(path, field, "apiVersions"), NULL);
        validate_alone(versions, "*", hfd_rule_path(path, field, "apiVersions"),
                       "if '*' is present, must not specify other API versions", causes);
        for (const struct hf__json *m = hf__json_first(versions); m; m = hf__json_next(m), i++)
                if (!hf__json_text_or_empty(m)[0])
                        hfd_cause_required(causes, hfd_rule_path_at(path, field, "apiVersions", i),
                                           NULL);
        validate_resources(hf__json_get(rule, "resources"), hfd_rule_path(path, field, "resources"),
                           causes);
        if (scope && strcmp(scope, "*") != 0 && strcmp(scope, "Cluster") != 0 &&
            strcmp(scope, "Namespaced") != 0)
                hfd_cause_unsupported_text(causes, hfd_rule_path(path, field, "scope"), scope,
                                           "\"*\", \"Cluster\", \"Namespaced\"");
}

/* ---- MatchResources ---- */

/* As in kube-apiserver, a name with both '/' and '%' has two causes. */
void hfd_match_name_validate(const char *name, const char *field, struct hfd_causes *causes) {
        if (strcmp(name, ".") == 0)
                hfd_cause_invalid_text(causes, field, name, "may not be '.'");
        else if (strcmp(name, "..") == 0)
                hfd_cause_invalid_text(causes, field, name, "may not be '..'");
        if (strchr(name, '/'))
                hfd_cause_invalid_text(causes, field, name, "may not contain '/'");
        if (strchr(name, '%'))
                hfd_cause_invalid_text(causes, field, name, "may not contain '%'");
}

static void validate_names(const struct hf__json *rule, const char *field,
                           struct hfd_causes *causes) {
        const struct hf__json *list = hf__json_get(rule, "resourceNames");
        struct hf__json_index names;
        char path[FIELD_MAX];
        size_t i = 0;

        if (!hfd_causes_check(causes, hf__json_index_init(&names, list, NULL)))
                return;
        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m), i++) {
                const char *name = hf__json_text_or_empty(m);
                struct hf__json_index_entry *entry = hf__json_index_find(&names, name);

                hfd_rule_path_at(path, field, "resourceNames", i);
                hfd_match_name_validate(name, path, causes);
                if (entry && entry->position < i)
                        hfd_cause_duplicate_text(causes, path, name);
        }
        hf__json_index_done(&names);
}

/* name: the member of MatchResources that has the rules. */
static void validate_rules(const struct hf__json *resources, const char *name, const char *field,
                           struct hfd_causes *causes) {
        char path[FIELD_MAX];
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(hf__json_get(resources, name)); m;
             m = hf__json_next(m), i++) {
                hfd_rule_path_at(path, field, name, i);
                validate_names(m, path, causes);
                hfd_match_rule_validate(m, path, causes);
        }
}

void hfd_match_resources_validate(const struct hf__json *resources, const char *field,
                                  struct hfd_causes *causes) {
        const char *policy = hf__json_string(resources, "matchPolicy");
        char path[FIELD_MAX];

        if (!resources)
                return;
        if (!policy)
                hfd_cause_required(causes, hfd_rule_path(path, field, "matchPolicy"), NULL);
        else if (strcmp(policy, "Exact") != 0 && strcmp(policy, "Equivalent") != 0)
                hfd_cause_unsupported_text(causes, hfd_rule_path(path, field, "matchPolicy"),
                                           policy, "\"Equivalent\", \"Exact\"");
        hfd_match_selector_validate(hf__json_get(resources, "namespaceSelector"),
                                    hfd_rule_path(path, field, "namespaceSelector"), causes);
        hfd_match_selector_validate(hf__json_get(resources, "objectSelector"),
                                    hfd_rule_path(path, field, "objectSelector"), causes);
        validate_rules(resources, "resourceRules", field, causes);
        validate_rules(resources, "excludeResourceRules", field, causes);
}
