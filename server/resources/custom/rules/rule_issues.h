/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reports what is wrong with the rules of a definition. Thread: owner only. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "server/resources/custom/rules/rule_budget.h"

struct hf__json;
struct hfd_causes;
struct hfd_rule;
struct hfd_rule_findings;

struct hfd_rule_issues {
        struct hfd_causes *causes; /* NULL: nothing is reported */
        struct hf__strbuf path;    /* of the part */
        struct hfd_rule_budget budget;
};

/* The place of a part in the schema. */
struct hfd_rule_place {
        bool bounded;   /* all lists and maps above have a largest size */
        uint64_t times; /* if bounded: how often the part occurs at most */
        /* Bytes of the path of the nearest list above whose elements have no counterpart in the old
         * object; 0: there is none. */
        size_t n_uncorrelatable;
};

/* Turns the place of `props` into that of a part below it. n_path: bytes of the path of props.
 * property: the part is a property, not an element or a value of a map. */
void hfd_rule_place_enter(struct hfd_rule_place *place, const struct hf__json *props, size_t n_path,
                          bool property);
/* Reports what was found in rule number `index` of the part. min_size: of the JSON of the part. */
void hfd_rule_issues_add(struct hfd_rule_issues *issues, const struct hfd_rule_place *place,
                         size_t index, const struct hfd_rule *rule, const struct hf__json *json,
                         const struct hfd_rule_findings *findings, int64_t min_size);
/* Reports why no further rule is compiled, at the rules of the part. */
void hfd_rule_issues_spent(struct hfd_rule_issues *issues, const char *problem);
/* Reports that the part has rules, but expressions cannot see it. */
void hfd_rule_issues_undeclared(struct hfd_rule_issues *issues, const struct hfd_rule_place *place);
