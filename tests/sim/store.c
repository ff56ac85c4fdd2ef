/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store: one Lease with its revisions, its term record, the fence, and the restore of a backup.
 *
 * The term record names the term that may write: the revision at which the holder took the Lease,
 * and the holder. The fence commits a write of a leader's work only if the writer's term and
 * identity are those of the term record.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/sim.h"

const struct hf__record *sim_store_lease(const struct sim *sim) {
        return &sim->history[sim->n_history - 1];
}

static bool same_term(const struct sim *sim, const struct hf__record *old,
                      const struct hf__record *written) {
        if (HAS_DEFECT(sim, term_not_renewed))
                return old->exists && old->acquire_us == written->acquire_us;
        return old->exists && old->acquire_us == written->acquire_us &&
               strcmp(old->holder, written->holder) == 0;
}

/*
 * Writes a new term record when the Lease is created, or its holder or acquire time changes. A
 * deleted Lease has none.
 */
static void keep_term(struct sim *sim, const struct hf__record *old,
                      const struct hf__record *written) {
        if (!written->exists) {
                sim->term.revision = 0;
                return;
        }
        if (same_term(sim, old, written))
                return;
        sim->term.revision = sim->revision;
        snprintf(sim->term.holder, sizeof sim->term.holder, "%.31s", written->holder);
        sim->term.acquire_us = written->acquire_us;
        if (written->holder[0] != '\0') {
                sim->newest_term = sim->revision;
                COUNT(sim, take_overs);
                if (old->exists && old->holder[0] != '\0')
                        COUNT(sim, takeovers_by_expiry);
        }
}

/* After a restore the store issues revisions that it has issued before. */
static void next_revision(struct sim *sim) {
        if (++sim->revision <= sim->highest_revision)
                COUNT(sim, reissued_revisions);
        else
                sim->highest_revision = sim->revision;
}

static struct hf__record *append_record(struct sim *sim, const struct hf__record *record) {
        struct hf__record *written = &sim->history[sim->n_history];

        if (sim->n_history == MAX_HISTORY)
                sim_violate(sim, "the Lease was written %d times", MAX_HISTORY);
        *written = *record;
        sim->put_times[sim->n_history] = sim->now;
        return written;
}

void sim_store_put(struct sim *sim, const struct hf__record *record) {
        struct hf__record *written = append_record(sim, record);

        if (written->exists && written->holder[0] != '\0' &&
            strcmp(written->holder, sim_store_lease(sim)->holder) != 0 && !sim->took) {
                sim->took = true;
                sim->took_at = sim->now;
                sim->put_at = sim->last_put_at;
        }
        next_revision(sim);
        snprintf(written->rv, sizeof written->rv, "%s%" PRIu64, sim->opaque ? "x" : "",
                 sim->revision);
        written->rv_number = sim->opaque ? 0 : sim->revision;
        keep_term(sim, sim_store_lease(sim), written);
        sim->terms[sim->n_history] = sim->term;
        sim->n_history++;
        sim->last_put_at = sim->now;
        if (written->exists && written->holder[0] == '\0')
                sim->release_at = sim->now;
        TRACE(sim, "store  rv %" PRIu64 " %s holder=%s acquire=%" PRId64 " successor=%s",
              sim->revision, written->exists ? "" : "(deleted)", written->holder,
              written->acquire_us, written->successor);
        sim_net_notify(sim);
}

/* The result of a write: 0 = its condition holds, and it can be applied. */
static int check_condition(struct sim *sim, const struct hf__record *record) {
        const struct hf__record *lease = sim_store_lease(sim);

        if (!record->exists)
                return lease->exists ? HF_E_EXISTS : 0;
        if (!lease->exists)
                return HF_E_NOT_FOUND;
        if (record->rv[0] == '\0' || strcmp(record->rv, lease->rv) == 0)
                return 0;
        COUNT(sim, conflicts);
        return HF_E_CONFLICT;
}

static bool is_own_lease(const struct sim *sim, const struct sim_op *op) {
        char identity[32];

        snprintf(identity, sizeof identity, "e%d-%u", op->proc, op->incarnation);
        return strcmp(sim_store_lease(sim)->holder, identity) == 0;
}

int sim_store_write(struct sim *sim, const struct sim_op *op) {
        struct hf__record record = op->record;
        int r = check_condition(sim, &record);

        if (r != 0)
                return r;
        sim_check_write(sim, op);
        if (record.holder[0] == '\0' && is_own_lease(sim, op))
                sim_unfenced_release(sim, op);
        if (sim->steps)
                printf("store writes %u\n", (unsigned)(op - sim->ops));
        record.exists = true;
        record.hand_over_to[0] = '\0'; /* the lock drops this annotation with each write */
        sim_store_put(sim, &record);
        return 0;
}

/*
 * Restores a backup: Lease, term record and revision are what they were some writes ago, so the
 * store issues revisions for the second time. All watches break. Each process learns of the restore
 * from the epoch key, once its watch is open again. Until then it uses what it knew before, and its
 * writes count as those of an outsider.
 */
void sim_store_restore(struct sim *sim) {
        unsigned back = (unsigned)sim_between(sim, 1, 12), to;

        if (sim->n_history <= 2)
                return;
        to = sim->n_history - 1 > back ? sim->n_history - 1 - back : 1;
        COUNT(sim, restores);
        if (sim_leader(sim) >= 0)
                COUNT(sim, restores_under_a_leader);
        append_record(sim, &sim->history[to]);
        sim->revision = sim->history[to].rv_number;
        if (sim->opaque)
                sim->revision = strtoull(sim->history[to].rv + 1, NULL, 10);
        sim->term = sim->terms[sim->n_history] = sim->terms[to];
        sim->restored_index = sim->n_history++;
        sim->n_restores++;
        sim->newest_term = sim->last_commit_term = 0;
        TRACE(sim, "store  is restored: rv %" PRIu64 " holder=%s", sim->revision,
              sim_store_lease(sim)->holder);
        sim_mark(sim, MARK_STORE, -1, sim->now, 0, "restored from a backup");
        sim_note_outsider(sim);
        for (int p = 0; p < sim->n_procs; p++) {
                struct sim_proc *proc = &sim->procs[p];

                proc->clean_since_stop = false;
                proc->watch_open = false;
                proc->stopped_free = false;
                if (!proc->alive)
                        continue;
                proc->stale_history = true;
                sim_event_at(sim, sim->now + sim_between(sim, 0, 3 * S), E_EPOCH, p, 0, 0);
        }
}

/* ---- the fence ---- */

static bool fence_holds(const struct sim *sim, const char *identity, uint64_t term) {
        if (HAS_DEFECT(sim, fence_off))
                return true;
        if (HAS_DEFECT(sim, fence_identity_only))
                return strcmp(identity, sim->term.holder) == 0;
        if (HAS_DEFECT(sim, fence_revision_only))
                return term == sim->term.revision;
        return term == sim->term.revision && strcmp(identity, sim->term.holder) == 0;
}

/* A write of a leader's work arrives. event->a: its term; event->b: the work reports a refusal. */
void sim_store_fenced(struct sim *sim, const struct sim_event *event) {
        struct sim_proc *proc = &sim->procs[event->proc];
        /* The work that sent the write still runs. */
        bool runs = event->incarnation == proc->incarnation && proc->alive && proc->work_alive &&
                    proc->term == event->a;
        char identity[32];

        COUNT(sim, fenced_writes);
        if (sim->fence_off)
                return;
        snprintf(identity, sizeof identity, "e%d-%u", event->proc, event->incarnation);
        if (fence_holds(sim, identity, event->a)) {
                if (event->a < sim->last_commit_term || event->a < sim->newest_term)
                        sim_violate(sim,
                                    "P2: a write of term %" PRIu64 " committed after term %" PRIu64,
                                    event->a, sim->newest_term);
                if (event->a != sim->term.revision || strcmp(identity, sim->term.holder) != 0)
                        sim_violate(sim, "P2: %s wrote under a term of %s", identity,
                                    sim->term.holder);
                if (strcmp(identity, sim_store_lease(sim)->holder) != 0)
                        sim_violate(sim, "P2: %s wrote, but the Lease is %s's", identity,
                                    sim_store_lease(sim)->holder);
                sim->last_commit_term = event->a;
                next_revision(sim);
                return;
        }
        COUNT(sim, stale_writes_refused);
        TRACE(sim, "%-6s write of term %" PRIu64 " refused", identity, event->a);
        sim_mark(sim, MARK_REFUSED, event->proc, sim->now, 0, "a write was refused by the fence");
        /*
         * The fence must not refuse a process that may act, unless its clock was wrong or an
         * outsider wrote.
         */
        if (runs && sim_is_leading(proc) && !proc->outsider_wrote &&
            proc->ok_sent_at > proc->thawed_at && !proc->frozen && proc->rate > 0.9 &&
            hf__gate_may_act(&proc->gate, sim_local_time(sim, proc)))
                sim_violate(sim, "P2: a write of %s, which may act, was refused", proc->identity);
        if (runs && event->b)
                sim_event_at(sim, sim->now + sim_between(sim, MS, 20 * MS), E_STALE, event->proc,
                             proc->work_gen, 0);
}
