/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether a phase has anything left to do, for the leader's controller and for the hook.
 *
 * Invariant: a phase is settled (nothing is left to do) only if the ledger that was read says so,
 * or has a newer format, because this program must not undo what a newer one did.
 */
#include "bootstrap/phase.h"

#include "bootstrap/plan.h"

const struct hf_resource hf__ledger_resource = {"", "v1", "configmaps"};

bool hf__phase_settled_by(const struct hf__phase *phase, const struct hf__ledger *ledger) {
        static const struct hf__seen nothing;
        struct hf__plan plan;

        if (ledger->newer_format)
                return true;
        hf__plan_next(ledger, phase->name, &phase->steps, phase->bootstrap->version, &nothing,
                      &plan);
        return plan.action == HF__PLAN_FINISHED;
}

bool hf__phase_is_settled(void *ctx) {
        struct hf__phase *phase = ctx;

        return atomic_load(&phase->settled);
}
