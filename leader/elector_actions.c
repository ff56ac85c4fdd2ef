/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carries out the core's actions: lock operations, the gate, the controllers of a term, log lines,
 * metrics, Events.
 *
 * Invariants:
 *  - actions are carried out on the loop's thread, in the core's order, except that the gate is
 *    shut first, because no other action may delay that;
 *  - nothing here blocks, as long as the host's callbacks (log, on_change, is_settled) do not.
 */
#include "leader/elector_actions.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "leader/lease_history.h"
#include "leader/next_term.h"

#define COMPONENT "elector"

static const struct hf_log *log_of(const struct hf_elector *elector) {
        return &elector->electors->host->log;
}
static double seconds(hf_nsec duration) { return (double)duration / (double)HF_NSEC_PER_SEC; }

/* ---- callbacks of the term's client, and of the host ---- */

/* The fence refused a write, or the server did not confirm the fence. Only the client of the
 * current term can call on_stale, because a term's end ends its client. Thread: any, with a lock of
 * the client held (leader_client.h). */
static void on_stale(void *ctx, int error) {
        struct hf_elector *elector = ctx;
        hf_metric_add(elector->metrics->stale_writes, 1);
        atomic_store(&elector->stale_error, error);
        hf__elector_wake(elector);
}

/* The last unanswered write of the ended term has got its response, or could not be sent. May also
 * be called without such a write (leader_client.h). Thread: any, with a lock of the client held. */
static void on_settled(void *ctx) {
        struct hf_elector *elector = ctx;
        atomic_store(&elector->writes.settled, true);
        hf__elector_wake(elector);
}

/* Calls on_change, or queues the call in the host's loop. At the beginning of a term the call
 * precedes the log line about the term, because an embedder that adds the term to its log lines
 * must know the term by then. (In the host's loop, on_change may run after the log line.) */
static void notify_host(struct hf_elector *elector) {
        struct hf_leader_info info = {.size = sizeof info};

        if (!elector->on_change)
                return;
        if (elector->host_loop) {
                hf__loop_queue(elector->host_loop, &elector->change);
                return;
        }
        hf_elector_info(elector, &info);
        elector->on_change(elector->ctx, &info);
}

/* ---- the beginning of a term ---- */

static void shut_gate(struct hf_elector *elector) {
        hf__gate_shut(&elector->gate);
        hf_metric_set(elector->metrics->master_status, 0);
        hf_metric_set(elector->metrics->term, 0);
}

static void open_gate(struct hf_elector *elector, const struct hf__core_action *action) {
        atomic_store(&elector->stale_error, 0);
        hf__gate_open(&elector->gate, action->valid_until);
        hf_metric_set(elector->metrics->master_status, 1);
        hf_metric_set(elector->metrics->term, (double)action->term);
        hf_metric_set(elector->metrics->gap_seconds,
                      (double)elector->core.term_record.gap_us / 1e6);
}

/* Without leader-only controllers there is no struct hf__term: a process may have thousands of such
 * electors. */
static int start_controllers(struct hf_elector *elector, const struct hf__core_action *action) {
        char acquired_at[HF__REVISION_MAX];
        if (!hf__elector_runs(elector, HF_LEADER_ONLY))
                return 0;
        struct hf__term_config config = hf__next_term_config(elector);

        config.client = (struct hf__leader_client_config){.inner = elector->client,
                                                          .gate = &elector->gate,
                                                          .fence = {.term = action->term},
                                                          .unfenced = elector->unfenced,
                                                          .is_fenced = elector->writes.is_fenced,
                                                          .stale = on_stale,
                                                          .settled = on_settled,
                                                          .ctx = elector};
        config.acquired_at = acquired_at;
        (void)snprintf(config.client.fence.ns, sizeof config.client.fence.ns, "%s", elector->ns);
        (void)snprintf(config.client.fence.name, sizeof config.client.fence.name, "%s",
                       elector->name);
        (void)snprintf(config.client.fence.identity, sizeof config.client.fence.identity, "%s",
                       elector->identity);

        memcpy(acquired_at, action->record.rv, sizeof acquired_at);
        if (elector->lock->ops->grant)
                elector->lock->ops->grant(elector->lock, &config.client.fence, acquired_at);
        return hf__next_term_begin(elector, &config);
}

static void start_term(struct hf_elector *elector, const struct hf__core_action *action) {
        const struct hf__core_term_record *acquire = &elector->core.term_record;

        assert(!elector->term);
        hf__term_writes_give_up(&elector->writes);
        open_gate(elector, action);
        /* Controllers start before the log line is written: a slow log must not delay them. */
        int r = start_controllers(elector, action);
        notify_host(elector);
        hf_log(log_of(elector), HF_LOG_NOTICE, COMPONENT,
               "%s: leading, term %llu (%s%s%s, gap %.3f s)", elector->label,
               (unsigned long long)action->term, hf__cause_text(acquire->cause),
               acquire->previous[0] ? " by " : "", acquire->previous,
               (double)acquire->gap_us / 1e6);
        if (r == 0)
                return;
        /* A term whose controllers cannot run ends like a lost term, with a backoff that grows. */
        shut_gate(elector);
        hf_log(log_of(elector), HF_LOG_ERROR, COMPONENT,
               "%s: the controllers of term %llu cannot start, so the term ends: %s",
               elector->label, (unsigned long long)action->term, hf_strerror(r));
        atomic_store(&elector->stale_error, r);
        hf__elector_wake(elector);
}

/* ---- the end of a term ---- */

static void end_term(struct hf_elector *elector, const struct hf__core_action *action,
                     hf_nsec now) {
        bool drain = action->type == HF__ACT_TERM_DRAIN;
        if (drain)
                hf_log(log_of(elector), HF_LOG_INFO, COMPONENT,
                       "%s: draining the controllers of the term: %s", elector->label,
                       elector->core.last_end ? elector->core.last_end : "");
        else
                hf_log(log_of(elector), HF_LOG_WARNING, COMPONENT, "%s: the term is over: %s",
                       elector->label, action->text ? action->text : "");
        /* If an abort follows a drain, the time is still measured from the drain. */
        if (!elector->ending_at)
                elector->ending_at = now;
        if (!elector->term)
                return;
        if (drain)
                hf__term_fire_drain(elector->term);
        else
                hf__term_fire_abort(elector->term, HF_CANCEL_LOST);
}

static void report_stuck(struct hf_elector *elector) {
        const char *name = elector->term ? hf__term_stuck_name(elector->term) : "";
        hf_metric_set(elector->metrics->is_stuck, 1);
        hf_log(log_of(elector), HF_LOG_ERROR, COMPONENT,
               "%s: controller %s has not returned by the end of the stop grace (%.3f s): the "
               "Lease "
               "is not released, and this process does not contend for it any more",
               elector->label, name, seconds(elector->core.config.timing.stop_grace));
}

static void report_stopped(struct hf_elector *elector, bool released) {
        assert(elector->core.state == HF_STOPPED);
        pthread_mutex_lock(&elector->electors->mu);
        elector->released = released;
        pthread_mutex_unlock(&elector->electors->mu);
        hf_log(log_of(elector), HF_LOG_INFO, COMPONENT, "%s: stopped, %s", elector->label,
               released ? "this process does not hold the Lease"
                        : "the Lease may name this process until it expires");
}

/* ---- operations, reports, Events ---- */

static void send_op(struct hf_elector *elector, const struct hf__core_action *action, hf_nsec now) {
        assert(elector->queue);
        if (!hf__op_queue_add(elector->queue, elector, now))
                return;
        if (action->type == HF__ACT_READ) {
                if (elector->core.state == HF_LEADING)
                        hf_metric_add(elector->metrics->slowpath, 1);
        } else {
                elector->write_id = action->op_id;
                elector->write_sent_at = now;
        }
}

/* Notifies the host and logs. is_notified: on_change was already called in this step. */
static void report_change(struct hf_elector *elector, const char *warning, bool is_notified) {
        const struct hf__core *core = &elector->core;

        if (!is_notified)
                notify_host(elector);
        if (warning)
                hf_log(log_of(elector), HF_LOG_WARNING, COMPONENT, "%s: %s", elector->label,
                       warning);
        if (core->state == HF_FOLLOWING)
                hf_log(log_of(elector), HF_LOG_INFO, COMPONENT, "%s: following, %s%s",
                       elector->label, core->observed.holder[0] ? "led by " : "led by nobody",
                       core->observed.holder);
}

/*
 * Adds an Event when a term has begun or ended. It is sent at least a second later, so that the
 * first writes of the controllers, here or at the next leader, do not queue behind it. An Event
 * that is not yet due when the electors stop is sent when the loop ends.
 */
static void add_events(struct hf_elector *elector, struct hf__core_time now) {
        enum hf_leader_state state = elector->core.state;
        bool has_term = state == HF_LEADING || state == HF_DRAINING || state == HF_ABORTING;

        if (!elector->events || has_term == elector->term_announced)
                return;
        if (has_term)
                hf__core_observed(&elector->core, elector->announced_record);
        elector->term_announced = has_term;
        hf__lease_events_add(elector->events, has_term, elector->announced_record, now.real_us,
                             now.boot + HF_NSEC_PER_SEC);
}

void hf__elector_actions_carry_out(struct hf_elector *elector,
                                   const struct hf__core_actions *actions,
                                   struct hf__core_time now) {
        struct hf__lock *lock = elector->lock;
        bool is_notified = false;

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
                        is_notified = true;
                        break;
                case HF__ACT_EXTEND: hf__gate_extend(&elector->gate, action->valid_until); break;
                case HF__ACT_TERM_DRAIN:
                case HF__ACT_TERM_ABORT: end_term(elector, action, now.boot); break;
                case HF__ACT_GATE_SHUT: break; /* carried out above */
                case HF__ACT_STUCK: report_stuck(elector); break;
                case HF__ACT_REPORT: report_change(elector, action->text, is_notified); break;
                case HF__ACT_STOPPED: report_stopped(elector, action->released); break;
                }
        }
        add_events(elector, now);
}
