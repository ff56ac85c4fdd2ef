/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network between the processes and the store.
 *
 * A request may be lost, be refused, be applied while its reply is lost, or hang and be applied
 * long after its sender gave up. A watch delivers its events in order. It may race with replies,
 * fall silent, break, and begin with old records when it is opened again.
 */
#include <string.h>

#include "tests/sim/sim.h"

/* In some schedules all delays are equal, as in a quick local network. Then a sequence of events
 * that happens once can repeat for ever. */
static hf_nsec short_delay(struct sim *sim) {
        hf_nsec delay = sim_between(sim, MS / 2, 20 * MS);

        return sim->has_steady_network ? MS / 2 : delay;
}

/* Whether a request, or a watch that is opened, fails. */
static bool goes_wrong(struct sim *sim, enum sim_network network) {
        switch (network) {
        case NET_GOOD: return !sim->calm && sim_draw(sim) % 256 == 0;
        case NET_LOSSY: return sim_chance(sim, 40);
        case NET_CUT:
        case NET_REFUSING: return sim_chance(sim, 95);
        case NET_SLOW: return sim_chance(sim, 70);
        case _N_NETWORKS: break;
        }
        return false;
}

static void reply_at(struct sim *sim, const struct sim_op *op, hf_nsec at) {
        sim_event_at(sim, at, E_REPLY, op->proc, (uint64_t)(op - sim->ops), 0);
}

static void refuse_request(struct sim *sim, struct sim_op *op) {
        static const int kinds[] = {HF_E_FORBIDDEN, HF_E_TOO_MANY, HF_E_UNAVAILABLE,
                                    HF_E_UNAUTHORIZED, -5};

        COUNT(sim, refusals);
        op->result = kinds[sim_draw(sim) % 5];
        if (op->result == HF_E_TOO_MANY)
                op->retry_after = sim_between(sim, 0, 4) * S;
        reply_at(sim, op, sim->now + short_delay(sim));
}

/* The values are chosen by random numbers, so their order is part of the meaning of a seed. */
enum way { LOSE_REQUEST, LOSE_REPLY, REFUSE, BREAK_CONNECTION, SLOW_DOWN, HANG, _N_WAYS };

static enum way way_to_fail(struct sim *sim, enum sim_network network) {
        switch (network) {
        case NET_REFUSING: return REFUSE;
        case NET_CUT: return sim_draw(sim) % 2 == 0 ? LOSE_REQUEST : HANG;
        case NET_SLOW: return SLOW_DOWN;
        case NET_GOOD:
        case NET_LOSSY:
        case _N_NETWORKS: break;
        }
        return (enum way)(sim_draw(sim) % _N_WAYS);
}

static void break_request(struct sim *sim, struct sim_op *op, enum sim_network network) {
        uint64_t index = (uint64_t)(op - sim->ops);
        enum way way = way_to_fail(sim, network);
        hf_nsec late = sim_between(sim, 0, sim->timing.lease_duration);

        op->reply_after = HF_NSEC_NEVER;
        sim->procs[op->proc].clean_since_stop = false;
        sim->procs[op->proc].op_went_wrong = true;
        switch (way) {
        case LOSE_REQUEST: COUNT(sim, lost_requests); break;
        case LOSE_REPLY:
                COUNT(sim, lost_replies);
                sim_event_at(sim, sim->now + short_delay(sim), E_APPLY, op->proc, index, 0);
                break;
        case REFUSE: refuse_request(sim, op); break;
        case BREAK_CONNECTION: /* an error comes at once; the request may still be applied */
                COUNT(sim, broken_connections);
                if (sim_chance(sim, 50))
                        sim_event_at(sim, sim->now + short_delay(sim), E_APPLY, op->proc, index, 0);
                op->result = HF_E_TIMEOUT;
                reply_at(sim, op, sim->now + short_delay(sim));
                break;
        case SLOW_DOWN: /* in both directions */
                op->reply_after = sim_between(sim, 0, sim->timing.request_timeout / 2);
                sim_event_at(sim, sim->now + sim_between(sim, 0, sim->timing.request_timeout),
                             E_APPLY, op->proc, index, 0);
                sim->procs[op->proc].late_until = sim->now + sim->timing.request_timeout;
                break;
        case HANG:
        case _N_WAYS:
                COUNT(sim, hung_requests);
                op->reply_after = short_delay(sim);
                sim_event_at(sim, sim->now + late, E_APPLY, op->proc, index, 0);
                if (sim->procs[op->proc].late_until < sim->now + late)
                        sim->procs[op->proc].late_until = sim->now + late;
                break;
        }
}

void sim_net_send(struct sim *sim, int p, const struct hf__core_action *action) {
        struct sim_proc *proc = &sim->procs[p];
        struct sim_op *op;

        if (sim->n_ops == MAX_OPS)
                sim_violate(sim, "more than %d operations in one schedule", MAX_OPS);
        op = &sim->ops[sim->n_ops++];
        op->proc = p;
        op->incarnation = proc->incarnation;
        op->op_id = action->op_id;
        op->is_write = action->type == HF__ACT_WRITE;
        op->sent_local = sim_local_time(sim, proc);
        op->sent_at = sim->now;
        op->result = 0;
        op->retry_after = 0;
        op->applied_at = op->replied_at = -1;
        op->stale = proc->stale_history;
        op->n_restores = sim->n_restores;
        if (op->is_write) {
                static const char *const kinds[] = {[HF__OP_ACQUIRE] = "an acquire",
                                                    [HF__OP_RENEW] = "a renewal",
                                                    [HF__OP_RELEASE] = "a release"};

                STEP(sim, p, "sends %s %u", kinds[proc->core.op_kind], sim->n_ops - 1);
                op->record = action->record;
                proc->has_written = true;
                proc->last_write = sim->n_ops - 1;
        }
        proc->op_went_wrong = false;
        op->delayed = op->delivered = false;
        op->n_epochs_seen = proc->n_epochs_seen;
        if (sim->is_slow) {
                sim_slow_send(sim, op);
                return;
        }
        if (goes_wrong(sim, proc->network)) {
                break_request(sim, op, proc->network);
                return;
        }
        op->reply_after = short_delay(sim);
        sim_event_at(sim, sim->now + short_delay(sim), E_APPLY, p, (uint64_t)(op - sim->ops), 0);
}

/* A store that hangs or is slow accepts requests and applies them later, when the senders may have
 * given up. */
static bool is_delayed(struct sim *sim, struct sim_op *op) {
        hf_nsec at;

        if (sim->hung_until > sim->now)
                at = sim->hung_until + short_delay(sim);
        else if (sim->slow_until > sim->now && !op->delayed)
                at = sim->now + sim_between(sim, 0, sim->timing.request_timeout);
        else
                return false;
        op->delayed = true;
        sim->procs[op->proc].op_went_wrong = true;
        if (sim->procs[op->proc].late_until < at)
                sim->procs[op->proc].late_until = at;
        sim_event_at(sim, at, E_APPLY, op->proc, (uint64_t)(op - sim->ops), 0);
        return true;
}

/* A request reaches the store. The reply has the state of this moment, however late it arrives. */
void sim_net_apply(struct sim *sim, uint64_t index) {
        struct sim_op *op = &sim->ops[index];
        const struct sim_proc *proc = &sim->procs[op->proc];
        int r = 0;

        if (is_delayed(sim, op))
                return;
        op->applied_at = sim->now;
        if (op->is_write) {
                r = sim_store_write(sim, op);
                if (proc->incarnation != op->incarnation || proc->core.op_id != op->op_id ||
                    proc->core.op_kind == 0)
                        COUNT(sim, late_applications);
        } else if (!sim_store_lease(sim)->exists) {
                r = HF_E_NOT_FOUND;
        }
        op->history = sim->n_history - 1;
        op->n_restores = sim->n_restores;
        if (op->reply_after == HF_NSEC_NEVER)
                return;
        op->result = r;
        reply_at(sim, op, sim->now + op->reply_after);
}

void sim_net_reply(struct sim *sim, uint64_t index) {
        struct sim_op *op = &sim->ops[index];
        struct sim_proc *proc = &sim->procs[op->proc];
        struct hf__core_event *event = &sim->event;

        if (op->incarnation != proc->incarnation)
                return;
        op->replied_at = sim->now;
        op->delivered = proc->core.op_id == op->op_id && proc->core.op_kind != 0;
        event->type = op->is_write ? HF__EV_WRITE_DONE : HF__EV_READ_DONE;
        event->op_id = op->op_id;
        event->result = op->result;
        event->retry_after = op->retry_after;
        if (op->result == 0)
                event->record = sim->history[op->history];
        if (op->is_write && op->result == 0 && op->delivered) {
                proc->ok_sent_local = op->sent_local;
                proc->ok_sent_at = op->sent_at;
                proc->ok_restores = op->n_restores;
                proc->outsider_wrote = op->sent_at <= sim->outsider_at;
                proc->acquire_us = op->record.acquire_us;
        }
        /* A read that was sent before the process learned of the last restore does not count. */
        if (!op->is_write && (op->result == 0 || op->result == HF_E_NOT_FOUND) && op->delivered)
                proc->must_read = proc->must_read && op->n_epochs_seen != proc->n_epochs_seen;
        sim_proc_step(sim, op->proc);
}

/* ---- watches ---- */

static void send_watch_event(struct sim *sim, int p, unsigned history) {
        struct sim_proc *proc = &sim->procs[p];
        hf_nsec at = sim->now + (sim->is_slow ? sim_slow_event_delay(sim) : short_delay(sim));

        if (proc->network == NET_SLOW)
                at += sim_between(sim, 0, 2 * S);
        if (at < proc->watch_last_at) /* a watch never changes the order of its events */
                at = proc->watch_last_at;
        proc->watch_last_at = at;
        sim_event_at(sim, at, E_WATCH, p, history, proc->watch_gen);
}

void sim_net_watch(struct sim *sim, int p) {
        struct sim_proc *proc = &sim->procs[p];
        unsigned past = 0;

        proc->watch_gen++;
        proc->watch_mute = false;
        proc->watch_open = !goes_wrong(sim, proc->network);
        proc->watch_last_at = sim->now;
        if (!proc->watch_open) {
                COUNT(sim, watches_lost);
                sim_event_at(sim, sim->now + short_delay(sim), E_WATCH_LOST, p, proc->watch_gen, 0);
                return;
        }
        if (sim->is_slow)
                sim_slow_watch(sim, p);
        if (!proc->watch_open || proc->watch_mute)
                return;
        /* The watch begins with the present record, or, from a cache that lags, with older ones. */
        if (!sim->calm && sim_chance(sim, 20) && sim->n_history > 3) {
                past = (unsigned)(sim_draw(sim) % 3);
                if (past)
                        COUNT(sim, stale_watch_events);
        }
        if (past > sim->n_history - 1 - sim->restored_index) /* a restore empties the cache */
                past = sim->n_history - 1 - sim->restored_index;
        for (unsigned i = sim->n_history - 1 - past; i < sim->n_history; i++)
                send_watch_event(sim, p, i);
}

void sim_net_unwatch(struct sim *sim, int p) {
        sim->procs[p].watch_gen++;
        sim->procs[p].watch_open = false;
}

void sim_net_notify(struct sim *sim) {
        for (int p = 0; p < sim->n_procs; p++) {
                struct sim_proc *proc = &sim->procs[p];

                if (!proc->alive || !proc->watch_open || proc->watch_mute ||
                    proc->network == NET_CUT)
                        continue;
                if (proc->network == NET_LOSSY && sim_chance(sim, 20)) {
                        COUNT(sim, watches_lost);
                        proc->watch_open = false;
                        sim_event_at(sim, sim->now + short_delay(sim), E_WATCH_LOST, p,
                                     proc->watch_gen, 0);
                        continue;
                }
                send_watch_event(sim, p, sim->n_history - 1);
        }
}
