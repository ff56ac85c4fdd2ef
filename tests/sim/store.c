/* SPDX-License-Identifier: Apache-2.0 */
/* The store: one Lease with revisions, its term record, and the fence (design 6). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/sim.h"

const struct hf__record *sim_store_lease(const struct sim *sim) { return &sim->history[sim->n_history - 1]; }

/* The term record is written whenever the Lease is made, or its holder or acquire time changes; it goes with the Lease. */
static void keep_term(struct sim *sim, const struct hf__record *old, const struct hf__record *new) {
        if (!new->exists) {
                sim->term_revision = 0;
                return;
        }
        if (old->exists && old->acquire_us == new->acquire_us &&strcmp(old->holder, new->holder) == 0)
                return;
        sim->term_revision = sim->revision;
        snprintf(sim->term_holder, sizeof(sim->term_holder), "%.31s", new->holder);
        sim->term_acquire_us = new->acquire_us;
        if (new->holder[0] != '\0') {
                sim->newest_term = sim->revision;
                COUNT(sim, take_overs);
                if (old->exists && old->holder[0] != '\0')
                        COUNT(sim, takeovers_by_expiry);
        }
}

void sim_store_put(struct sim *sim, const struct hf__record *record) {
        struct hf__record *new;

        if (sim->n_history == MAX_HISTORY)
                sim_violate(sim, "the Lease was written %d times", MAX_HISTORY);
        new = &sim->history[sim->n_history];
        *new = *record;
        if (new->exists &&new->holder[0] != '\0' && strcmp(new->holder, sim_store_lease(sim)->holder) != 0 && !sim->took) {
                sim->took = true;
                sim->took_at = sim->now;
                sim->put_at = sim->last_put_at;
        }
        sim->revision++;
        snprintf(new->rv, sizeof(new->rv), "%s%" PRIu64, sim->opaque ? "x" : "", sim->revision);
        new->rv_number = sim->opaque ? 0 : sim->revision;
        keep_term(sim, sim_store_lease(sim), new);
        sim->n_history++;
        sim->last_put_at = sim->now;
        if (new->exists &&new->holder[0] == '\0')
                sim->release_at = sim->now;
        TRACE(sim, "store  rv %" PRIu64 " %s holder=%s acquire=%" PRId64 " successor=%s", sim->revision, new->exists ? "" : "(deleted)",
              new->holder, new->acquire_us, new->successor);
        sim_net_news(sim);
}

int sim_store_write(struct sim *sim, const struct hf__record *record) {
        const struct hf__record *lease = sim_store_lease(sim);

        if (!record->exists) {
                struct hf__record new = *record;

                if (lease->exists)
                        return HF_E_EXISTS;
                new.exists = true;
                sim_store_put(sim, &new);
                return 0;
        }
        if (!lease->exists)
                return HF_E_NOT_FOUND;
        if (record->rv[0] != '\0' && strcmp(record->rv, lease->rv) != 0) {
                COUNT(sim, conflicts);
                return HF_E_CONFLICT;
        }
        sim_store_put(sim, record);
        return 0;
}

/* A leader's write arrives: event->a is its term, event->b whether it asked the gate. */
void sim_store_fenced(struct sim *sim, const struct sim_event *event) {
        struct sim_proc *proc = &sim->procs[event->proc];
        bool same = event->incarnation == proc->incarnation && proc->alive && proc->work_alive && proc->term == event->a;

        COUNT(sim, fenced_writes);
        if (sim->fence_off)
                return;
        if (event->a == sim->term_revision) {
                if (event->a < sim->last_commit_term || event->a < sim->newest_term)
                        sim_violate(sim, "P2: a write of term %" PRIu64 " committed after term %" PRIu64, event->a, sim->newest_term);
                if (same && strcmp(proc->identity, sim->term_holder) != 0)
                        sim_violate(sim, "P2: %s wrote under a term of %s", proc->identity, sim->term_holder);
                sim->last_commit_term = event->a;
                sim->revision++;
                return;
        }
        COUNT(sim, stale_writes_refused);
        TRACE(sim, "%-6s write of term %" PRIu64 " refused", proc->identity, event->a);
        /* Who may act by an unbroken clock, and was not robbed by an outsider, is never refused. */
        if (same && sim_leads(proc) && !proc->robbed && proc->ok_sent_at > proc->thawed_at && !proc->frozen && proc->rate > 0.9 &&
            hf__gate_may_act(&proc->gate, sim_local(sim, proc)))
                sim_violate(sim, "P2: %s, who leads, was refused", proc->identity);
        if (same && event->b)
                sim_at(sim, sim->now + sim_between(sim, MS, 20 * MS), E_STALE, event->proc, proc->work_gen, 0);
}
