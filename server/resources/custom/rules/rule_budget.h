/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The estimated costs of the rules of one definition, and their limits. Thread: owner only. */
#include <stddef.h>
#include <stdint.h>

struct hfd_causes;

#define HFD_RULE_COST_MAX UINT64_C(10000000) /* of one expression */

struct hfd_rule_budget {
        uint64_t total;
        size_t n;
        /* The expressions that cost most, the first one the most. */
        struct {
                uint64_t cost;
                char path[160];
        } top[4];
};

uint64_t hfd_rule_cost_times(uint64_t cost, uint64_t times); /* UINT64_MAX: more than that */
/* Adds the cost of an expression; more than the limit becomes a cause. what: "estimated rule
 * cost". */
void hfd_rule_budget_add(struct hfd_rule_budget *budget, const char *what, const char *path,
                         uint64_t cost, struct hfd_causes *causes);
/* Adds causes if the total is too large. path: of the whole schema. */
void hfd_rule_budget_check(const struct hfd_rule_budget *budget, const char *path,
                           struct hfd_causes *causes);
