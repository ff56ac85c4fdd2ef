/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the core's actions are in the world: lock operations, the gate, the work of a term, log
 * lines, metrics, Events. On the loop's thread, in the order the core gave, but for the gate, which
 * is shut before anything else of a step.
 */
#include <stdio.h>
#include <string.h>

#include "leader/electors.h"
#include "leader/lease_history.h"

#define COMPONENT "elector"

static const struct hf_log *log_of(const struct hf_elector *elector) {
        return &elector->electors->host->log;
}
static double seconds(hf_nsec duration) { return (double)duration / (double)HF_NSEC_PER_SEC; }

/* ---- from the term's own threads ---- */

static void on_joined(void *ctx) { hf__electors_wake(((struct hf_elector *)ctx)->electors); }

/* Only the client of the term that is there calls this: a client is silenced before its term is
 * freed. */
static void on_stale(void *ctx, int error) {
        struct hf_elector *elector = ctx;
        hf_metric_add(elector->metrics.stale_writes, 1);
        atomic_store(&elector->stale, true);
        hf__electors_wake(elector->electors);
}

/* ---- actions ---- */

static void shut_gate(struct hf_elector *elector) {
        hf__gate_shut(&elector->gate);
        hf_metric_set(elector->metrics.master_status, 0);
        hf_metric_set(elector->metrics.term, 0);
}

/* Before the lines about the change: a host whose log lines name the term has the new one then. */
static void tell_host(struct hf_elector *elector) {
        struct hf_leader_info info;

        if (!elector->on_change)
                return;
        hf__elector_info(elector, &info);
        elector->on_change(elector->ctx, &info);
}

static void start_term(struct hf_elector *elector, const struct hf__core_action *action) {
        const struct hf__record *taken = &elector->core.mine; /* the write that began the term */
        char acquired_at[HF__REVISION_MAX];
        struct hf__term_config config = {
                .controllers = elector->controllers,
                .n_controllers = elector->n_controllers,
                .class = HF_LEADER_ONLY,
                .label = elector->label,
                .client = {.inner = elector->client,
                           .gate = &elector->gate,
                           .fence = {.term = action->term},
                           .unfenced = elector->unfenced,
                           .gate_off = elector->unsafe_gate_off,
                           .stale = on_stale,
                           .ctx = elector},
                .acquired_at = acquired_at,
                .joined = on_joined,
                .ctx = elector,
        };
        memcpy(config.client.fence.ns, elector->ns, sizeof elector->ns);
        memcpy(config.client.fence.name, elector->name, sizeof elector->name);
        memcpy(config.client.fence.identity, elector->identity, sizeof elector->identity);

        memcpy(acquired_at, action->record.rv, sizeof acquired_at);
        if (elector->lock->ops->grant)
                elector->lock->ops->grant(elector->lock, &config.client.fence, acquired_at);

        atomic_store(&elector->stale, false);
        hf__gate_open(&elector->gate, action->valid_until);
        hf_metric_set(elector->metrics.master_status, 1);
        hf_metric_set(elector->metrics.term, (double)action->term);
        hf_metric_set(elector->metrics.gap_seconds, (double)taken->gap_us / 1e6);
        /* The work first, the log after it: a sink that writes to a disk must not make the
         * hand-over longer. */
        int r = hf__term_new(elector->electors->host, &config, &elector->work);
        tell_host(elector);
        hf_log(log_of(elector), HF_LOG_NOTICE, COMPONENT,
               "%s: leading, term %llu (%s%s%s, gap %.3f s)", elector->label,
               (unsigned long long)action->term, hf__cause_text(taken->cause),
               taken->previous[0] ? " by " : "", taken->previous, (double)taken->gap_us / 1e6);
        if (r == 0 && hf__term_is_complete(elector->work))
                return;
        /* A term whose work does not run is ended like one that was lost: the backoff then keeps it
         * from coming back at once. */
        hf_log(log_of(elector), HF_LOG_ERROR, COMPONENT,
               "%s: the work of term %llu cannot start: %s", elector->label,
               (unsigned long long)action->term,
               r ? hf_strerror(r) : "not every thread could be made");
        shut_gate(elector);
        atomic_store(&elector->stale, true);
        hf__electors_wake(elector->electors);
}

/* told: the host has been told of this step's change already. */
static void report(struct hf_elector *elector, const char *text, bool told) {
        const struct hf__core *core = &elector->core;

        if (!told)
                tell_host(elector);
        if (text)
                hf_log(log_of(elector), HF_LOG_WARNING, COMPONENT, "%s: %s", elector->label, text);
        if (core->state == HF_FOLLOWING)
                hf_log(log_of(elector), HF_LOG_INFO, COMPONENT, "%s: following, %s%s",
                       elector->label, core->observed.holder[0] ? "led by " : "led by nobody",
                       core->observed.holder);
}

static void stuck(struct hf_elector *elector) {
        char name[64] = "";
        if (elector->work)
                hf__term_stuck_name(elector->work, name, sizeof name);
        hf_metric_set(elector->metrics.is_stuck, 1);
        hf_log(log_of(elector), HF_LOG_ERROR, COMPONENT,
               "%s: controller %s has not returned within the stop grace of %.3f s: the Lease is "
               "not released and this process does not "
               "contend for it any more",
               elector->label, name, seconds(elector->timing.stop_grace));
}

static void send_op(struct hf_elector *elector, const struct hf__core_action *action, hf_nsec now) {
        struct hf__lock *lock = elector->lock;
        if (action->type == HF__ACT_READ) {
                if (elector->core.state == HF_LEADING)
                        hf_metric_add(elector->metrics.slowpath, 1);
                lock->ops->read(lock, action->op_id, action->deadline);
                return;
        }
        elector->write_id = action->op_id;
        elector->write_sent_at = now;
        lock->ops->write(lock, action->op_id, &action->record, action->deadline);
}

static void end_term(struct hf_elector *elector, const struct hf__core_action *action,
                     hf_nsec now) {
        bool drain = action->type == HF__ACT_TERM_DRAIN;
        if (drain)
                hf_log(log_of(elector), HF_LOG_INFO, COMPONENT,
                       "%s: draining the work of the term: %s", elector->label,
                       elector->core.last_end ? elector->core.last_end : "");
        else
                hf_log(log_of(elector), HF_LOG_WARNING, COMPONENT, "%s: the term is over: %s",
                       elector->label, action->text ? action->text : "");
        if (!elector->ending_at)
                elector->ending_at = now;
        if (!elector->work)
                return;
        if (drain)
                hf__term_fire_drain(elector->work);
        else
                hf__term_fire_abort(elector->work, HF_CANCEL_LOST);
}

static void stopped(struct hf_elector *elector, bool released) {
        pthread_mutex_lock(&elector->electors->mu);
        elector->released = released;
        pthread_mutex_unlock(&elector->electors->mu);
        hf_log(log_of(elector), HF_LOG_INFO, COMPONENT, "%s: stopped, the Lease %s", elector->label,
               released ? "does not bear our name" : "may bear our name until it expires");
}

/*
 * Notes for the Events, written a second later: the first writes of the term's controllers, here or
 * where the Lease goes now, go before them. What a stop leaves is written by the loop's end.
 */
static void announce(struct hf_elector *elector, struct hf__core_time now) {
        enum hf_leader_state state = elector->core.state;
        bool has_term = state == HF_LEADING || state == HF_DRAINING || state == HF_ABORTING;

        if (!elector->events || has_term == elector->announced)
                return;
        if (has_term)
                elector->led = elector->core.observed;
        elector->announced = has_term;
        hf__lease_events_note(elector->events, has_term, &elector->led, now.real_us,
                              now.boot + HF_NSEC_PER_SEC);
}

void hf__elector_carry_out(struct hf_elector *elector, const struct hf__core_actions *actions,
                           struct hf__core_time now) {
        struct hf__lock *lock = elector->lock;
        bool told = false;

        for (unsigned i = 0; i < actions->n; i++)
                if (actions->list[i].type == HF__ACT_GATE_SHUT)
                        shut_gate(elector);
        for (unsigned i = 0; i < actions->n; i++) {
                const struct hf__core_action *action = &actions->list[i];
                switch (action->type) {
                case HF__ACT_READ:
                case HF__ACT_WRITE: send_op(elector, action, now.boot); break;
                case HF__ACT_WATCH: lock->ops->watch(lock); break;
                case HF__ACT_UNWATCH: lock->ops->unwatch(lock); break;
                case HF__ACT_TERM_START:
                        start_term(elector, action);
                        told = true;
                        break;
                case HF__ACT_EXTEND: hf__gate_extend(&elector->gate, action->valid_until); break;
                case HF__ACT_TERM_DRAIN:
                case HF__ACT_TERM_ABORT: end_term(elector, action, now.boot); break;
                case HF__ACT_GATE_SHUT: break; /* done above, before anything else */
                case HF__ACT_STUCK: stuck(elector); break;
                case HF__ACT_REPORT: report(elector, action->text, told); break;
                case HF__ACT_STOPPED: stopped(elector, action->released); break;
                }
        }
        announce(elector, now);
}
