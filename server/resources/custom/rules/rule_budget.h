/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The estimated costs of the CEL rules of one version's schema, and their limits. Thread: owner
 * only. */
#include <stddef.h>
#include <stdint.h>

struct hfd_causes;

#define HFD_RULE_COST_MAX UINT64_C(10000000) /* of one expression; as in kube-apiserver */

struct hfd_rule_budget {
        uint64_t total;
        size_t n; /* elements of top in use */
        /* The most expensive expressions, the largest cost first; as many as kube-apiserver has. */
        struct {
                uint64_t cost;
                char path[160]; /* as in struct hfd_cause: cut if it is longer */
        } top[4];
};

/* cost * times, or UINT64_MAX if that overflows. */
uint64_t hfd_rule_cost_times(uint64_t cost, uint64_t times);
/* Adds the cost of one expression to the total, and a cause if it is above HFD_RULE_COST_MAX. what:
 * begins the text of the cause, for example "estimated rule cost". */
void hfd_rule_budget_add(struct hfd_rule_budget *budget, const char *what, const char *path,
                         uint64_t cost, struct hfd_causes *causes);
/* Adds causes if the total is too large. path: of the whole schema. */
void hfd_rule_budget_check(const struct hfd_rule_budget *budget, const char *path,
                           struct hfd_causes *causes);
