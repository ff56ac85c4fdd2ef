/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schema and the rules of ResourceQuotas. spec.hard says how much a namespace may have of each
 * resource. The server compares creates, and updates that raise the use, with status.hard and
 * status.used, which it keeps up to date itself (server/quota/).
 *
 * Invariants: the set of spec.scopes never changes, because status.used counts only objects within
 * the scopes. Resources and pairs of scopes are checked with sets of bits, so their cost does not
 * grow when a client repeats scopes. The texts of the causes and their order are those of
 * kube-apiserver, because clients show them and tests compare them.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/causes.h"
#include "server/resources/strategies/strategies.h"
#include "server/resources/validation/resource_names.h"
#include "server/schema/common.h"

/* ---- the schema ---- */

/*
 * A row of a table is a field: its name in JSON, the schema of the value, a description for
 * `kubectl explain`, its number in protobuf (protobuf_tag), and flags (schema.h). Names and numbers
 * are those of k8s.io/api/core/v1 and never change. Rows are sorted by name, because look-ups
 * bisect a table.
 */

static const struct hfd_schema_field requirement_fields[] = {
        {"operator", HFD_NAMED_TEXT(HFD_CORE "ScopeSelectorOperator"),
         "In, NotIn, Exists or DoesNotExist.", .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"scopeName", HFD_NAMED_TEXT(HFD_CORE "ResourceQuotaScope"), "The scope.",
         .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"values", &hfd_schema_list_of_texts, "The values for In and NotIn.", .protobuf_tag = 3},
};
static const struct hfd_schema requirement_schema =
        {HFD_STRUCT(HFD_CORE "ScopedResourceSelectorRequirement", requirement_fields),
         .description = "A condition on a scope of an object."};

static const struct hfd_schema_field selector_fields[] = {
        {"matchExpressions", HFD_LIST_OF(&requirement_schema), "Conditions that all must hold.",
         .protobuf_tag = 1},
};
static const struct hfd_schema selector_schema = {HFD_STRUCT(HFD_CORE "ScopeSelector",
                                                             selector_fields),
                                                  .atomic = true,
                                                  .description =
                                                          "Selects objects by their scopes."};

static const struct hfd_schema_field spec_fields[] = {
        {"hard", &hfd_schema_resource_list, "How much the namespace may have of each resource.",
         .protobuf_tag = 1},
        {"scopeSelector", &selector_schema, "Restricts the quota to objects of some scopes.",
         .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
        {"scopes", HFD_LIST_OF(HFD_NAMED_TEXT(HFD_CORE "ResourceQuotaScope")),
         "Restricts the quota to objects of all these scopes. It cannot be changed.",
         .protobuf_tag = 2},
};
static const struct hfd_schema spec_schema = {HFD_STRUCT(HFD_CORE "ResourceQuotaSpec", spec_fields),
                                              .description = "The limits of a namespace."};

static const struct hfd_schema_field status_fields[] = {
        {"hard", &hfd_schema_resource_list, "The limits that are enforced.", .protobuf_tag = 1},
        {"used", &hfd_schema_resource_list, "What the namespace has now.", .protobuf_tag = 2},
};
static const struct hfd_schema status_schema =
        {HFD_STRUCT(HFD_CORE "ResourceQuotaStatus", status_fields),
         .description = "The limits that are enforced, and what is used of them."};

static const struct hfd_schema_field fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
        {"spec", &spec_schema, "The desired limits.", .protobuf_tag = 2},
        {"status", &status_schema, "The limits in effect.", .protobuf_tag = 3},
};
const struct hfd_schema hfd_resource_quota_schema =
        {HFD_STRUCT(HFD_CORE "ResourceQuota", fields),
         .description = "ResourceQuota limits what a namespace may have."};

/* ---- limits ---- */

/* Checks the names and values of a map of quantities, such as spec.hard. */
static void validate_map(const struct hf__json *object, const char *path,
                         struct hfd_causes *causes) {
        for (const struct hf__json *m = hf__json_first(hf__json_path(object, path)); m;
             m = hf__json_next(m)) {
                char field[160];
                (void)snprintf(field, sizeof field, "%s[%.120s]", path, hf__json_key(m));
                hfd_resource_name_validate_quota(hf__json_key(m), field, causes);
                hfd_resource_value_validate(hf__json_key(m), m, field, causes);
        }
}

/* ---- scopes ---- */

/* spec.scopes as a set of HFD_SCOPE_...; unknown names are left out. */
static unsigned scopes_of(const struct hf__json *object) {
        unsigned scopes = 0;

        for (const struct hf__json *m = hf__json_first(hf__json_path(object, "spec.scopes")); m;
             m = hf__json_next(m))
                scopes |= hfd_quota_scope(hf__json_text_or_empty(m));
        return scopes;
}

/* Adds a cause for each scope and resource of spec.hard that exclude each other: a quota for pods
 * only cannot limit Secrets. value: the scopes or their selector, as the cause shows them. */
static void validate_fit(const struct hf__json *object, unsigned scopes, const char *field,
                         const char *value, struct hfd_causes *causes) {
        for (unsigned scope = 1; scope < HFD_SCOPES_END; scope <<= 1)
                for (const struct hf__json *m = hf__json_first(hf__json_path(object, "spec.hard"));
                     m && scopes & scope; m = hf__json_next(m))
                        if (!hfd_quota_scope_fits(scope, hf__json_key(m)))
                                hfd_cause_invalid(causes, field, value,
                                                  "unsupported scope applied to resource");
}

/* No object is in both scopes of one of these pairs, so the quota would count nothing. */
static void validate_conflicts(unsigned scopes, const char *field, const char *value,
                               struct hfd_causes *causes) {
        static const unsigned pairs[] = {HFD_SCOPE_BEST_EFFORT | HFD_SCOPE_NOT_BEST_EFFORT,
                                         HFD_SCOPE_TERMINATING | HFD_SCOPE_NOT_TERMINATING};

        for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
                if ((scopes & pairs[i]) == pairs[i])
                        hfd_cause_invalid(causes, field, value, "conflicting scopes");
}

static void validate_scopes(const struct hf__json *object, struct hfd_causes *causes) {
        const struct hf__json *list = hf__json_path(object, "spec.scopes");
        unsigned scopes = scopes_of(object);
        char value[300];

        hfd_quote_list(list, value, sizeof value);
        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m))
                if (hfd_quota_scope(hf__json_text_or_empty(m)) == 0)
                        hfd_cause_invalid(causes, "spec.scopes", value, "unsupported scope");
        validate_fit(object, scopes, "spec.scopes", value, causes);
        validate_conflicts(scopes, "spec.scopes", value, causes);
}

/* ---- the selector ---- */

#define EXPRESSIONS "spec.scopeSelector.matchExpressions"
/* These scopes have no values to compare, so the operator can only be Exists. */
#define ONLY_EXISTS                                                                                \
        (HFD_SCOPE_TERMINATING | HFD_SCOPE_NOT_TERMINATING | HFD_SCOPE_BEST_EFFORT |               \
         HFD_SCOPE_NOT_BEST_EFFORT | HFD_SCOPE_CROSS_NAMESPACE_POD_AFFINITY)

/* The texts say 'Exist' for Exists, as kube-apiserver does. */
static void validate_operator(const struct hf__json *requirement, unsigned scope,
                              struct hfd_causes *causes) {
        const char *op = hf__json_text_or_empty(hf__json_get(requirement, "operator"));
        const struct hf__json *values = hf__json_get(requirement, "values");
        bool has_values = hf__json_first(values) != NULL;
        char list[300];

        if (scope & ONLY_EXISTS && strcmp(op, "Exists") != 0)
                hfd_cause_invalid_text(
                        causes, EXPRESSIONS ".operator", op,
                        "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, "
                        "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
                        "ResourceQuotaScopeNotBestEffort or "
                        "ResourceQuotaScopeCrossNamespacePodAffinity");
        if (strcmp(op, "In") == 0 || strcmp(op, "NotIn") == 0) {
                if (!has_values)
                        hfd_cause_required(causes, EXPRESSIONS ".values",
                                           "must be at least one value when `operator` is 'In' or "
                                           "'NotIn' for scope selector");
        } else if (strcmp(op, "Exists") == 0 || strcmp(op, "DoesNotExist") == 0) {
                hfd_quote_list(values, list, sizeof list);
                if (has_values)
                        hfd_cause_invalid(causes, EXPRESSIONS ".values", list,
                                          "must be no value when `operator` is 'Exist' or "
                                          "'DoesNotExist' for scope selector");
        } else {
                hfd_cause_invalid_text(causes, EXPRESSIONS ".operator", op,
                                       "not a valid selector operator");
        }
}

static void validate_selector(const struct hf__json *object, struct hfd_causes *causes) {
        const struct hf__json *selector = hf__json_path(object, "spec.scopeSelector");
        struct hf__strbuf printed = {.max = 300};
        unsigned scopes = 0;
        char value[300];

        for (const struct hf__json *m = hf__json_first(hf__json_get(selector, "matchExpressions"));
             m; m = hf__json_next(m)) {
                const char *name = hf__json_text_or_empty(hf__json_get(m, "scopeName"));
                unsigned scope = hfd_quota_scope(name);
                if (scope == 0)
                        hfd_cause_invalid_text(causes, EXPRESSIONS ".scopeName", name,
                                               "unsupported scope");
                validate_operator(m, scope, causes);
                scopes |= scope;
        }
        hf__json_print(selector, &printed); /* a long selector is cut to at most printed.max */
        (void)hfd_causes_check(causes, printed.error);
        validate_fit(object, scopes, EXPRESSIONS, printed.data ? printed.data : "{}", causes);
        hf__strbuf_done(&printed);
        /* kube-apiserver's cause shows spec.scopes here, and so does this one. */
        hfd_quote_list(hf__json_path(object, "spec.scopes"), value, sizeof value);
        validate_conflicts(scopes, EXPRESSIONS, value, causes);
}

void hfd_resource_quota_validate(const struct hf__json *object, const struct hf__json *old,
                                 struct hfd_causes *causes) {
        char value[300];

        validate_map(object, "spec.hard", causes);
        validate_scopes(object, causes);
        validate_selector(object, causes);
        validate_map(object, "status.hard", causes);
        validate_map(object, "status.used", causes);
        if (old && scopes_of(old) != scopes_of(object)) {
                hfd_quote_list(hf__json_path(object, "spec.scopes"), value, sizeof value);
                hfd_cause_invalid(causes, "spec.scopes", value, "field is immutable");
        }
}
