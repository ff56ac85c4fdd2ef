/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decisions of bootstrap; plan.h has the rules. Invariant: pure, so the same inputs give the
 * same plan on every instance.
 */
#include "bootstrap/plan.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Whether the record lists the content as superseded. */
static bool was_superseded(const struct hf__ledger_entry *entry, const char *hash) {
        for (unsigned i = 0; i < entry->n_superseded; i++)
                if (strcmp(entry->superseded[i], hash) == 0)
                        return true;
        return false;
}

bool hf__plan_settled(const struct hf__ledger *ledger, const struct hf__step *step,
                      const char *version) {
        const struct hf__ledger_entry *entry = hf__ledger_find(ledger, step->id);

        if (!entry)
                return false;
        int order = hf__version_compare(entry->version, version);
        return order > 0 || strcmp(entry->hash, step->hash) == 0 ||
               (order == 0 && was_superseded(entry, step->hash));
}

static void plan_record(struct hf__plan *plan, enum hf__outcome outcome, const char *applied) {
        plan->action = HF__PLAN_RECORD;
        plan->outcome = outcome;
        (void)snprintf(plan->applied, sizeof plan->applied, "%s", applied);
}

/* Plans for an object that exists. Its step has no record, or a record of another content. */
static void plan_present(const struct hf__ledger_entry *entry, const struct hf__step *step,
                         const struct hf__seen *seen, struct hf__plan *plan) {
        /* The stamp proves that bootstrap wrote this content. Its record was lost by a crash, with
         * a response, or with the ledger. A dry run shows how the server stores the content. */
        if (strcmp(seen->stamp, step->hash) == 0)
                plan->action = HF__PLAN_DRY_RUN;
        else if (!entry)
                plan_record(plan, HF__OUTCOME_FOUND, "");
        else if (entry->applied[0] && strcmp(seen->present, entry->applied) == 0)
                plan->action = HF__PLAN_REPLACE;
        else
                plan_record(plan, HF__OUTCOME_KEPT, entry->applied);
}

static void plan_step(const struct hf__ledger_entry *entry, const struct hf__step *step,
                      const struct hf__seen *seen, struct hf__plan *plan) {
        switch (seen->state) {
        case HF__SEEN_NOTHING: plan->action = entry ? HF__PLAN_READ : HF__PLAN_CREATE; break;
        case HF__SEEN_EXISTS: plan->action = HF__PLAN_READ; break;
        case HF__SEEN_ABSENT:
                if (entry)
                        plan_record(plan, HF__OUTCOME_DELETED, entry->applied);
                else
                        plan->action = HF__PLAN_CREATE; /* deleted after the refused create */
                break;
        case HF__SEEN_PRESENT: plan_present(entry, step, seen, plan); break;
        case HF__SEEN_CREATED: plan_record(plan, HF__OUTCOME_CREATED, seen->result); break;
        case HF__SEEN_REPLACED: plan_record(plan, HF__OUTCOME_UPDATED, seen->result); break;
        case HF__SEEN_DRY_RUN:
                plan_record(plan, entry ? HF__OUTCOME_UPDATED : HF__OUTCOME_CREATED, seen->result);
                break;
        }
}

size_t hf__plan_together(const struct hf__ledger *ledger, const char *phase,
                         const struct hf__steps *steps, const char *version, size_t first,
                         size_t *ret_list, size_t max) {
        size_t n = 1;

        assert(!ledger->newer_format && first < steps->n && max > 0);
        ret_list[0] = first;
        /* Once some version has completed the phase, users rely on its objects. If a user deletes
         * one before its record is written, a crash would bring it back. One step at a time keeps
         * that moment short. */
        if (hf__ledger_find_completed(ledger, phase))
                return n;
        for (size_t i = first; i < steps->n && steps->list[i].any_order && n < max; i++) {
                if (i == first || hf__plan_settled(ledger, &steps->list[i], version))
                        continue;
                if (hf__ledger_find(ledger, steps->list[i].id))
                        break; /* it has a record of another content, so its object is read first */
                ret_list[n++] = i;
        }
        return n;
}

size_t hf__plan_n_settled(const struct hf__ledger *ledger, const struct hf__steps *steps,
                          const char *version) {
        size_t n = 0;

        while (n < steps->n && hf__plan_settled(ledger, &steps->list[n], version))
                n++;
        return n;
}

void hf__plan_next(const struct hf__ledger *ledger, const char *phase,
                   const struct hf__steps *steps, const char *version, const struct hf__seen *seen,
                   struct hf__plan *ret_plan) {
        const struct hf__ledger_completed *completed = hf__ledger_find_completed(ledger, phase);
        /* A phase that is not complete, or whose version cannot be read, counts as older. */
        int order = -1;

        assert(!ledger->newer_format);
        if (completed && completed->version[0])
                order = hf__version_compare(completed->version, version);
        *ret_plan = (struct hf__plan){.action = HF__PLAN_FINISHED};
        if (order > 0)
                return;
        for (size_t i = 0; i < steps->n; i++) {
                if (hf__plan_settled(ledger, &steps->list[i], version))
                        continue;
                ret_plan->step = i;
                plan_step(hf__ledger_find(ledger, steps->list[i].id), &steps->list[i], seen,
                          ret_plan);
                return;
        }
        ret_plan->action = order == 0 ? HF__PLAN_FINISHED : HF__PLAN_COMPLETE;
}
