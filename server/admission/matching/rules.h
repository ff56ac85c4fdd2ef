/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The rules of a webhook or a policy (RuleWithOperations, NamedRuleWithOperations): which requests
 * they name. Compiled once, immutable. Pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

#include "server/admission/admission.h"

struct hf__json;

struct hfd_rule {
        unsigned operations; /* a set of enum hfd_admission_operation */
        /* Lists of texts, borrowed from the JSON. */
        const struct hf__json *groups, *versions, *resources, *names; /* names NULL = all */
        enum { HFD_RULE_ALL_SCOPES, HFD_RULE_CLUSTER, HFD_RULE_NAMESPACED } scope;
};

struct hfd_rules {
        size_t n;
        struct hfd_rule items[];
};

/* json: the list, which must live as long as the rules; NULL = none. The caller frees the result
 * with free. 0 or -ENOMEM. */
int hfd_rules_new(const struct hf__json *json, struct hfd_rules **ret_rules);
/* Whether a rule would name the request if the request's resource were the row `as`, which is its
 * own row or another version of it. */
bool hfd_rule_matches(const struct hfd_rule *rule, const struct hfd_admission_attributes *of,
                      const struct hfd_resource *as);
/* For `wants` of a plug-in (admission.h): whether some rule may name the request, judged by
 * operation, resource and subresource, and by the group unless `equivalent` is true. */
bool hfd_rules_may_match(const struct hfd_rules *rules, const struct hfd_admission_attributes *of,
                         bool equivalent);
/*
 * Finds the rule that names the request. equivalent: it may name another version of the resource
 * (matchPolicy Equivalent); rules that name the resource itself come first. Returns the row that
 * the rule has matched: of->resource, or another row of the built-in table or of the same custom
 * kind, which lives as long. NULL = no rule.
 */
const struct hfd_resource *hfd_rules_match(const struct hfd_rules *rules,
                                           const struct hfd_admission_attributes *of,
                                           bool equivalent);
