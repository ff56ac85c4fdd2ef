/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lock operations and watches on their way. A request may be lost, refused, hang and be applied
 * long after its sender gave up, or be applied with its reply lost; a watch keeps the order of its
 * news, but may race with replies, fall silent, break, and start with the past when it is opened
 * again.
 */
#include <string.h>

#include "tests/sim/sim.h"

static hf_nsec quick(struct sim *sim) { return sim_between(sim, MS / 2, 20 * MS); }

static bool goes_wrong(struct sim *sim, enum sim_weather weather) {
        switch (weather) {
        case CLEAR: return !sim->calm && sim_draw(sim) % 256 == 0;
        case LOSSY: return sim_chance(sim, 40);
        case DARK:
        case REFUSING: return sim_chance(sim, 95);
        case SLUGGISH: return sim_chance(sim, 70);
        case _N_WEATHERS: break;
        }
        return false;
}

static void reply_at(struct sim *sim, const struct sim_op *op, hf_nsec at) {
        sim_at(sim, at, E_REPLY, op->proc, (uint64_t)(op - sim->ops), 0);
}

static void refuse(struct sim *sim, struct sim_op *op) {
        static const int kinds[] = {HF_E_FORBIDDEN, HF_E_TOO_MANY, HF_E_UNAVAILABLE,
                                    HF_E_UNAUTHORIZED, -5};

        COUNT(sim, refusals);
        op->result = kinds[sim_draw(sim) % 5];
        if (op->result == HF_E_TOO_MANY)
                op->retry_after = sim_between(sim, 0, 4) * S;
        reply_at(sim, op, sim->now + quick(sim));
}

/* One of the ways in which a request goes wrong. */
static void misroute(struct sim *sim, struct sim_op *op, enum sim_weather weather) {
        uint64_t index = (uint64_t)(op - sim->ops);
        unsigned way = weather == REFUSING   ? 2
                       : weather == DARK     ? (unsigned)(sim_draw(sim) % 2) * 5
                       : weather == SLUGGISH ? 4
                                             : (unsigned)(sim_draw(sim) % 6);
        hf_nsec late = sim_between(sim, 0, sim->timing.lease_duration);

        op->answer_after = HF_NSEC_NEVER;
        sim->procs[op->proc].clean_since_stop = false;
        sim->procs[op->proc].op_went_wrong = true;
        switch (way) {
        case 0: COUNT(sim, lost_requests); break;
        case 1:
                COUNT(sim, lost_replies);
                sim_at(sim, sim->now + quick(sim), E_APPLY, op->proc, index, 0);
                break;
        case 2: refuse(sim, op); break;
        case 3: /* the connection breaks after sending: applied or not, and said so at once */
                COUNT(sim, broken_connections);
                if (sim_chance(sim, 50))
                        sim_at(sim, sim->now + quick(sim), E_APPLY, op->proc, index, 0);
                op->result = HF_E_TIMEOUT;
                reply_at(sim, op, sim->now + quick(sim));
                break;
        case 4: /* slow, both ways */
                op->answer_after = sim_between(sim, 0, sim->timing.request_timeout / 2);
                sim_at(sim, sim->now + sim_between(sim, 0, sim->timing.request_timeout), E_APPLY,
                       op->proc, index, 0);
                sim->procs[op->proc].dirty_until = sim->now + sim->timing.request_timeout;
                break;
        default:
                COUNT(sim, hung_requests);
                op->answer_after = quick(sim);
                sim_at(sim, sim->now + late, E_APPLY, op->proc, index, 0);
                if (sim->procs[op->proc].dirty_until < sim->now + late)
                        sim->procs[op->proc].dirty_until = sim->now + late;
                break;
        }
}

void sim_net_send(struct sim *sim, int p, const struct hf__core_action *action) {
        struct sim_proc *proc = &sim->procs[p];
        struct sim_op *op;

        if (sim->n_ops == MAX_OPS)
                sim_violate(sim, "%d operations in one schedule", MAX_OPS);
        op = &sim->ops[sim->n_ops++];
        op->proc = p;
        op->incarnation = proc->incarnation;
        op->op_id = action->op_id;
        op->is_write = action->type == HF__ACT_WRITE;
        op->sent_local = sim_local(sim, proc);
        op->sent_at = sim->now;
        op->result = 0;
        op->retry_after = 0;
        op->applied_at = op->answered_at = -1;
        op->old = proc->old_history;
        op->n_restores = sim->n_restores;
        if (op->is_write) {
                op->record = action->record;
                proc->has_written = true;
                proc->last_write = sim->n_ops - 1;
        }
        proc->op_went_wrong = false;
        op->slowed = op->heard = false;
        op->told_n = proc->told_n;
        if (goes_wrong(sim, proc->weather)) {
                misroute(sim, op, proc->weather);
                return;
        }
        op->answer_after = quick(sim);
        sim_at(sim, sim->now + quick(sim), E_APPLY, p, (uint64_t)(op - sim->ops), 0);
}

/* A store that hangs takes requests in and applies them later, after those who sent them may have
 * given up. */
static bool is_held_up(struct sim *sim, struct sim_op *op) {
        hf_nsec at;

        if (sim->hung_until > sim->now)
                at = sim->hung_until + quick(sim);
        else if (sim->slow_until > sim->now && !op->slowed)
                at = sim->now + sim_between(sim, 0, sim->timing.request_timeout);
        else
                return false;
        op->slowed = true;
        sim->procs[op->proc].op_went_wrong = true;
        if (sim->procs[op->proc].dirty_until < at)
                sim->procs[op->proc].dirty_until = at;
        sim_at(sim, at, E_APPLY, op->proc, (uint64_t)(op - sim->ops), 0);
        return true;
}

void sim_net_apply(struct sim *sim, uint64_t index) {
        struct sim_op *op = &sim->ops[index];
        const struct sim_proc *proc = &sim->procs[op->proc];
        int result = 0;

        if (is_held_up(sim, op))
                return;
        op->applied_at = sim->now;
        if (op->is_write) {
                result = sim_store_write(sim, op);
                if (proc->incarnation != op->incarnation || proc->core.op_id != op->op_id ||
                    proc->core.op_kind == 0)
                        COUNT(sim, late_applications);
        } else if (!sim_store_lease(sim)->exists) {
                result = HF_E_NOT_FOUND;
        }
        op->history = sim->n_history - 1;
        op->n_restores = sim->n_restores;
        if (op->answer_after == HF_NSEC_NEVER)
                return;
        op->result = result;
        reply_at(sim, op, sim->now + op->answer_after);
}

void sim_net_reply(struct sim *sim, uint64_t index) {
        struct sim_op *op = &sim->ops[index];
        struct sim_proc *proc = &sim->procs[op->proc];
        struct hf__core_event *event = &sim->event;

        if (op->incarnation != proc->incarnation)
                return;
        op->answered_at = sim->now;
        op->heard = proc->core.op_id == op->op_id && proc->core.op_kind != 0;
        event->type = op->is_write ? HF__EV_WRITE_DONE : HF__EV_READ_DONE;
        event->op_id = op->op_id;
        event->result = op->result;
        event->retry_after = op->retry_after;
        if (op->result == 0)
                event->record = sim->history[op->history];
        if (op->is_write && op->result == 0 && op->heard) {
                proc->ok_sent_local = op->sent_local;
                proc->ok_sent_at = op->sent_at;
                proc->ok_restores = op->n_restores;
                proc->robbed = op->sent_at <= sim->outsider_at;
                proc->acquire_us = op->record.acquire_us;
        }
        if (!op->is_write && (op->result == 0 || op->result == HF_E_NOT_FOUND) && op->heard)
                proc->must_hear = proc->must_hear && op->told_n != proc->told_n;
        sim_proc_step(sim, op->proc);
}

/* ---- watches ---- */

static void tell(struct sim *sim, int p, unsigned history) {
        struct sim_proc *proc = &sim->procs[p];
        hf_nsec at = sim->now + quick(sim);

        if (proc->weather == SLUGGISH)
                at += sim_between(sim, 0, 2 * S);
        if (at < proc->watch_last_at)
                at = proc->watch_last_at;
        proc->watch_last_at = at;
        sim_at(sim, at, E_WATCH, p, history, proc->watch_gen);
}

void sim_net_watch(struct sim *sim, int p) {
        struct sim_proc *proc = &sim->procs[p];
        unsigned past = 0;

        proc->watch_gen++;
        proc->watch_mute = false;
        proc->watch_open = !goes_wrong(sim, proc->weather);
        proc->watch_last_at = sim->now;
        if (!proc->watch_open) {
                COUNT(sim, watches_lost);
                sim_at(sim, sim->now + quick(sim), E_WATCH_LOST, p, proc->watch_gen, 0);
                return;
        }
        /* It begins with the record as it is, or, from a cache that lags, as it was. */
        if (!sim->calm && sim_chance(sim, 20) && sim->n_history > 3) {
                past = (unsigned)(sim_draw(sim) % 3);
                if (past)
                        COUNT(sim, stale_event);
        }
        if (past > sim->n_history - 1 -
                           sim->restored_index) /* what is cached is thrown away with the history */
                past = sim->n_history - 1 - sim->restored_index;
        for (unsigned i = sim->n_history - 1 - past; i < sim->n_history; i++)
                tell(sim, p, i);
}

void sim_net_unwatch(struct sim *sim, int p) {
        sim->procs[p].watch_gen++;
        sim->procs[p].watch_open = false;
}

void sim_net_news(struct sim *sim) {
        for (int p = 0; p < sim->n_procs; p++) {
                struct sim_proc *proc = &sim->procs[p];

                if (!proc->alive || !proc->watch_open || proc->watch_mute || proc->weather == DARK)
                        continue;
                if (proc->weather == LOSSY && sim_chance(sim, 20)) {
                        COUNT(sim, watches_lost);
                        proc->watch_open = false;
                        sim_at(sim, sim->now + quick(sim), E_WATCH_LOST, p, proc->watch_gen, 0);
                        continue;
                }
                tell(sim, p, sim->n_history - 1);
        }
}
