/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds up the estimated costs of the CEL rules of one schema, and refuses a schema that is too
 * expensive. Limits and messages are those of kube-apiserver.
 *
 * Invariant: sums and products stay at UINT64_MAX rather than overflow.
 */
#include "server/resources/custom/rules/rule_budget.h"

#include <stdio.h>
#include <string.h>

#include "server/resources/causes.h"

#define TOTAL_MAX UINT64_C(100000000) /* of all expressions of a schema; as in kube-apiserver */

uint64_t hfd_rule_cost_times(uint64_t cost, uint64_t times) {
        if (cost == 0)
                return 0;
        return UINT64_MAX / cost < times ? UINT64_MAX : cost * times;
}

/* Adds the cause. A factor below 1.5 gets six decimals, so that one just above 1 does not become
 * "1.0x". */
static void refuse_cost(struct hfd_causes *causes, const char *path, const char *what,
                        uint64_t cost, uint64_t limit) {
        double factor = (double)cost / (double)limit;
        char shown[64] = "more than 100";
        char text[400];

        if (factor < 1.5)
                snprintf(shown, sizeof shown, "%f", factor);
        else if (factor <= 100)
                snprintf(shown, sizeof shown, "%.1f", factor);
        snprintf(text, sizeof text,
                 "%s exceeds budget by factor of %sx (try simplifying the rule, or adding "
                 "maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
                 "declared)",
                 what, shown);
        hfd_cause_forbidden(causes, path, text);
}

/* Keeps the cost in budget->top, in order, if it is one of the largest. */
static void remember_cost(struct hfd_rule_budget *budget, const char *path, uint64_t cost) {
        const size_t max = sizeof budget->top / sizeof budget->top[0];
        size_t at = budget->n;

        while (at > 0 && budget->top[at - 1].cost < cost)
                at--;
        if (at == max)
                return;
        if (budget->n < max)
                budget->n++;
        memmove(&budget->top[at + 1], &budget->top[at],
                (budget->n - at - 1) * sizeof budget->top[0]);
        budget->top[at].cost = cost;
        snprintf(budget->top[at].path, sizeof budget->top[at].path, "%s", path);
}

void hfd_rule_budget_add(struct hfd_rule_budget *budget, const char *what, const char *path,
                         uint64_t cost, struct hfd_causes *causes) {
        if (cost > HFD_RULE_COST_MAX)
                refuse_cost(causes, path, what, cost, HFD_RULE_COST_MAX);
        budget->total = cost > UINT64_MAX - budget->total ? UINT64_MAX : budget->total + cost;
        /* Less than a hundredth of the limit for all is not worth a cause of its own. */
        if (cost >= TOTAL_MAX / 100)
                remember_cost(budget, path, cost);
}

void hfd_rule_budget_check(const struct hfd_rule_budget *budget, const char *path,
                           struct hfd_causes *causes) {
        if (budget->total <= TOTAL_MAX)
                return;
        for (size_t i = 0; i < budget->n; i++)
                hfd_cause_forbidden(causes, budget->top[i].path,
                                    "contributed to estimated rule cost total exceeding cost limit "
                                    "for entire OpenAPIv3 schema");
        refuse_cost(causes, path,
                    "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 "
                    "schema",
                    budget->total, TOTAL_MAX);
}
