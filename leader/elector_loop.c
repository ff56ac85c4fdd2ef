/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop: one thread that turns all elector cores of a process. Model: whatever happens (an answer of the lock, a watch
 * event, an order from outside, the end of the work, a point in time) reaches the loop as a letter in its mailbox, as a
 * flag with a poke, or through its timer; the loop makes an event of it, steps the elector's core, and carries out the
 * actions at once. Nothing the loop does waits: lock operations are asynchronous, threads of a term are made but not
 * waited for (they are joined once they have reported), callbacks of the embedder must not block.
 *
 * Time is read anew for every step, immediately before it: the core takes it for the send time of what it asks to be
 * sent, from which validity counts. A pause between the reading and the sending thus shortens validity and never
 * lengthens it.
 *
 * Flags instead of letters carry what belongs to a term (`stale`, the term's own `joined`), because a term may be gone
 * before a letter is read: stale is set by the client of the present term, or by the host who ends whichever term there is
 * (hf_elector_end_term); joined is asked of the present term.
 *
 * The timer is a timerfd on CLOCK_BOOTTIME with absolute times, so that it is due at once when a suspended machine or a
 * stopped process goes on. It fires at least once a second, which is what the watchdog counts.
 */
#include "leader/core_lease.h"
#include "leader/electors.h"
#include "leader/transitions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define COMPONENT "elector"

static const struct hf_clock *clock_of(const struct hf_elector *elector) { return hf_host_clock(elector->electors->host); }
static const struct hf_log *log_of(const struct hf_elector *elector) { return &elector->electors->host->log; }
static double seconds(hf_nsec duration) { return (double)duration / (double)HF_NSEC_PER_SEC; }

/* ---- from other threads ---- */

static void post(struct hf_elector *elector, const struct hf__elector_message *from) {
        struct hf__elector_message *message = malloc(sizeof *message);
        if (message) {
                *message = *from;
                message->elector = elector;
                hf__mailbox_post(&elector->electors->mailbox, &message->letter);
                return;
        }
        /* An answer that is lost is one that does not come: the core gives the operation up at its deadline. News that is lost
         * is a lost watch: the core reads. */
        if (!from->is_reply)
                atomic_store(&elector->news_lost, true);
        hf__mailbox_poke(&elector->electors->mailbox);
}

void hf__elector_on_reply(void *ctx, uint32_t op_id, const struct hf__lock_reply *reply) {
        struct hf__elector_message message = {.is_reply = true};
        message.event.op_id = op_id;
        message.event.result = reply->result;
        message.event.retry_after = reply->retry_after;
        if (reply->result == 0)
                message.event.record = reply->record;
        else
                message.status = reply->status;
        post(ctx, &message);
}

void hf__elector_on_record(void *ctx, const struct hf__record *record) {
        struct hf__elector_message message = {0};
        message.event.type = record ? HF__EV_WATCHED : HF__EV_WATCH_LOST;
        if (record)
                message.event.record = *record;
        post(ctx, &message);
}

static void on_joined(void *ctx) { hf__mailbox_poke(&((struct hf_elector *)ctx)->electors->mailbox); }

/* Only the client of the term that is there calls this: a client is silenced before its term is freed. */
static void on_stale(void *ctx, int error) {
        struct hf_elector *elector = ctx;
        hf_metric_add(elector->metrics.stale_writes, 1);
        atomic_store(&elector->stale, true);
        hf__mailbox_poke(&elector->electors->mailbox);
}

/* ---- what others may see ---- */

/* Copies the core's state into the info. Tells whether state or holder changed. */
static void publish(struct hf_elector *elector, hf_nsec now) {
        const struct hf__core *core = &elector->core;
        bool led = core->state == HF_LEADING || core->state == HF_DRAINING;
        bool new_holder, new_twin;

        pthread_mutex_lock(&elector->electors->mu);
        struct hf_leader_info *info = &elector->info;
        new_holder = strcmp(info->holder, core->observed.holder) != 0;
        if (new_holder || info->state != core->state)
                info->since = now;
        info->state = core->state;
        memcpy(info->holder, core->observed.holder, sizeof info->holder);
        info->term = led ? core->term : 0;
        info->n_terms = core->n_terms;
        info->free_at = hf__core_free_at(core);
        info->heard_at = core->heard_at;
        new_twin = core->twin && !info->identity_taken;
        info->identity_taken = core->twin;
        (void)snprintf(info->last_end, sizeof info->last_end, "%s", core->last_end ? core->last_end : "");
        if (core->state == HF_STUCK && elector->work && !info->stuck_controller[0])
                hf__work_stuck_name(elector->work, info->stuck_controller, sizeof info->stuck_controller);
        pthread_mutex_unlock(&elector->electors->mu);

        if (new_holder && core->observed.holder[0])
                hf_metric_add(elector->metrics.transitions, 1);
        if (new_twin)
                hf_metric_add(elector->metrics.twins, 1);
}

/* Boot time until which somebody leads, as far as this process can see. */
static hf_nsec led_until(const struct hf__core *core) {
        if (!core->observed_once)
                return HF_NSEC_NEVER; /* nothing is known: nothing is counted */
        if (core->state == HF_LEADING || core->state == HF_DRAINING)
                return core->valid_until;
        return core->observed.exists && core->observed.holder[0] ? hf__core_free_at(core) : 0;
}

/* Called before what is known changes, and now and then. */
static void count_leaderless(struct hf_elector *elector, hf_nsec now) {
        hf_nsec until = led_until(&elector->core), from = until > elector->counted_at ? until : elector->counted_at;
        if (elector->counted_at && now > from)
                hf_metric_add(elector->metrics.leaderless, seconds(now - from));
        elector->counted_at = now;
}

void hf__elector_info(struct hf_elector *elector, struct hf_leader_info *ret_info) {
        pthread_mutex_lock(&elector->electors->mu);
        *ret_info = elector->info;
        pthread_mutex_unlock(&elector->electors->mu);
        ret_info->valid_until = ret_info->state == HF_LEADING || ret_info->state == HF_DRAINING ? hf__gate_valid_until(&elector->gate) : 0;
}

/* ---- actions ---- */

static void shut_gate(struct hf_elector *elector) {
        hf__gate_shut(&elector->gate);
        hf_metric_set(elector->metrics.master_status, 0);
        hf_metric_set(elector->metrics.term, 0);
}

static void start_term(struct hf_elector *elector, const struct hf__core_action *action) {
        const struct hf__record *taken = &elector->core.mine; /* the write that began the term */
        char acquired_at[HF__REVISION_MAX];
        struct hf__work_config config = {
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
        /* The work first, the log after it: a sink that writes to a disk must not make the hand-over longer. */
        int r = hf__work_new(elector->electors->host, &config, &elector->work);
        hf_log(log_of(elector), HF_LOG_NOTICE, COMPONENT, "%s: leading, term %llu (%s%s%s, gap %.3f s)", elector->label,
               (unsigned long long)action->term, hf__cause_text(taken->cause), taken->previous[0] ? " by " : "", taken->previous,
               (double)taken->gap_us / 1e6);
        if (r == 0 && hf__work_is_complete(elector->work))
                return;
        /* A term whose work does not run is ended like one that was lost: the backoff then keeps it from coming back at once. */
        hf_log(log_of(elector), HF_LOG_ERROR, COMPONENT, "%s: the work of term %llu cannot start: %s", elector->label,
               (unsigned long long)action->term, r ? hf_strerror(r) : "not every thread could be made");
        shut_gate(elector);
        atomic_store(&elector->stale, true);
        hf__mailbox_poke(&elector->electors->mailbox);
}

static void report(struct hf_elector *elector, const char *text) {
        const struct hf__core *core = &elector->core;
        struct hf_leader_info info;

        if (text)
                hf_log(log_of(elector), HF_LOG_WARNING, COMPONENT, "%s: %s", elector->label, text);
        if (core->state == HF_FOLLOWING)
                hf_log(log_of(elector), HF_LOG_INFO, COMPONENT, "%s: following, %s%s", elector->label,
                       core->observed.holder[0] ? "led by " : "led by nobody", core->observed.holder);
        if (elector->on_change) {
                hf__elector_info(elector, &info);
                elector->on_change(elector->ctx, &info);
        }
}

static void stuck(struct hf_elector *elector) {
        char name[64] = "";
        if (elector->work)
                hf__work_stuck_name(elector->work, name, sizeof name);
        hf_metric_set(elector->metrics.is_stuck, 1);
        hf_log(log_of(elector), HF_LOG_ERROR, COMPONENT,
               "%s: controller %s has not returned within the stop grace of %.3f s: the Lease is not released and this process does not "
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

static void end_term(struct hf_elector *elector, const struct hf__core_action *action, hf_nsec now) {
        bool drain = action->type == HF__ACT_TERM_DRAIN;
        if (drain)
                hf_log(log_of(elector), HF_LOG_INFO, COMPONENT, "%s: draining the work of the term: %s", elector->label,
                       elector->core.last_end ? elector->core.last_end : "");
        else
                hf_log(log_of(elector), HF_LOG_WARNING, COMPONENT, "%s: the term is over: %s", elector->label,
                       action->text ? action->text : "");
        if (!elector->ending_at)
                elector->ending_at = now;
        if (!elector->work)
                return;
        if (drain)
                hf__work_fire_drain(elector->work);
        else
                hf__work_fire_abort(elector->work, HF_CANCEL_LOST);
}

static void stopped(struct hf_elector *elector, bool released) {
        pthread_mutex_lock(&elector->electors->mu);
        elector->released = released;
        pthread_mutex_unlock(&elector->electors->mu);
        hf_log(log_of(elector), HF_LOG_INFO, COMPONENT, "%s: stopped, the Lease %s", elector->label,
               released ? "does not bear our name" : "may bear our name until it expires");
}

static void carry_out(struct hf_elector *elector, const struct hf__core_actions *actions, hf_nsec now) {
        struct hf__lock *lock = elector->lock;

        for (unsigned i = 0; i < actions->n; i++)
                if (actions->list[i].type == HF__ACT_GATE_SHUT)
                        shut_gate(elector);
        for (unsigned i = 0; i < actions->n; i++) {
                const struct hf__core_action *action = &actions->list[i];
                switch (action->type) {
                case HF__ACT_READ:
                case HF__ACT_WRITE: send_op(elector, action, now); break;
                case HF__ACT_WATCH: lock->ops->watch(lock); break;
                case HF__ACT_UNWATCH: lock->ops->unwatch(lock); break;
                case HF__ACT_TERM_START: start_term(elector, action); break;
                case HF__ACT_EXTEND: hf__gate_extend(&elector->gate, action->valid_until); break;
                case HF__ACT_TERM_DRAIN:
                case HF__ACT_TERM_ABORT: end_term(elector, action, now); break;
                case HF__ACT_GATE_SHUT: break; /* done above, before anything else */
                case HF__ACT_STUCK: stuck(elector); break;
                case HF__ACT_REPORT: report(elector, action->text); break;
                case HF__ACT_STOPPED: stopped(elector, action->released); break;
                }
        }
}

/*
 * Notes for the Events. That a term began is written a second later: the first writes of the term's controllers go before it. That
 * it ended is written at once: behind the release, which is on its way, and before a process that stops is gone.
 */
static void announce(struct hf_elector *elector, struct hf__core_time now) {
        enum hf_leader_state state = elector->core.state;
        bool has_term = state == HF_LEADING || state == HF_DRAINING || state == HF_ABORTING;

        if (!elector->events || has_term == elector->announced)
                return;
        if (has_term)
                elector->led = elector->core.observed;
        elector->announced = has_term;
        hf__lease_events_note(elector->events, has_term, &elector->led, now.real_us, has_term ? now.boot + HF_NSEC_PER_SEC : now.boot);
        if (!has_term) /* all of it: this may be the last turn */
                hf__lease_events_turn(elector->events, HF_NSEC_NEVER);
}

static void step(struct hf_elector *elector, const struct hf__core_event *event) {
        struct hf__core_actions actions;
        const struct hf_clock *clock = clock_of(elector);
        struct hf__core_time now = {.boot = hf_now(clock), .real_us = clock->real(clock->ctx) / HF_NSEC_PER_USEC};

        count_leaderless(elector, now.boot);
        hf__core_step(&elector->core, event, now, &actions);
        elector->wake_at = actions.wake_at;
        publish(elector, now.boot);
        carry_out(elector, &actions, now.boot);
        announce(elector, now);
}

static void step_plain(struct hf_elector *elector, enum hf__core_event_type type) {
        struct hf__core_event event = {.type = type};
        step(elector, &event);
}

/* ---- the turns ---- */

static void note_reply(struct hf_elector *elector, struct hf__elector_message *message) {
        bool write = message->event.op_id == elector->write_id;
        int result = message->event.result;
        bool failed = result != 0 && (write || result != HF_E_NOT_FOUND);
        const char *why = message->status.message[0] ? message->status.message : hf_strerror(result);

        pthread_mutex_lock(&elector->electors->mu);
        (void)snprintf(elector->last_failure, sizeof elector->last_failure, "%.159s", failed ? why : "");
        pthread_mutex_unlock(&elector->electors->mu);
        message->event.type = write ? HF__EV_WRITE_DONE : HF__EV_READ_DONE;
        if (result == 0) {
                if (write)
                        hf_metric_observe(elector->metrics.renew_seconds, seconds(hf_now(clock_of(elector)) - elector->write_sent_at));
                elector->n_failed_ops = 0;
        } else if (failed) {
                hf__leader_metrics_failed(&elector->metrics, result);
                hf_log(log_of(elector), elector->n_failed_ops++ ? HF_LOG_DEBUG : HF_LOG_WARNING, COMPONENT, "%s: %s failed: %s",
                       elector->label, write ? "writing the Lease" : "reading the Lease", why);
        }
}

static void take_letters(struct hf_electors *electors) {
        struct hf__letter *letter = hf__mailbox_take(&electors->mailbox);
        while (letter) {
                struct hf__elector_message *message = (struct hf__elector_message *)letter;
                letter = letter->next;
                if (message->is_reply)
                        note_reply(message->elector, message);
                step(message->elector, &message->event);
                free(message);
        }
}

static bool work_is_over(const struct hf_elector *elector) {
        if (elector->core.state != HF_DRAINING && elector->core.state != HF_ABORTING)
                return false;
        return !elector->work || hf__work_is_joined(elector->work);
}

static void join_work(struct hf_elector *elector) {
        /* The client is silenced and the threads have made their last step: this is a matter of their exit. */
        elector->work = hf__work_free(elector->work);
        hf_metric_observe(elector->metrics.stop_seconds, seconds(hf_now(clock_of(elector)) - elector->ending_at));
        elector->ending_at = 0;
        step_plain(elector, HF__EV_JOINED);
}

static void turn(struct hf_elector *elector) {
        count_leaderless(elector, hf_now(clock_of(elector)));
        if (atomic_exchange(&elector->news_lost, false))
                step_plain(elector, HF__EV_WATCH_LOST);
        if (atomic_exchange(&elector->stale, false))
                step_plain(elector, HF__EV_STALE_TERM);
        if (atomic_load(&elector->electors->stop_asked) && !elector->stop_told) {
                elector->stop_told = true;
                step_plain(elector, HF__EV_STOP);
        }
        if (hf_now(clock_of(elector)) >= elector->wake_at)
                step_plain(elector, HF__EV_TICK);
        if (work_is_over(elector))
                join_work(elector);
        if (elector->events)
                hf__lease_events_turn(elector->events, hf_now(clock_of(elector)));
}

/* Sets the timer to the nearest wake-up. */
static void arm(struct hf_electors *electors, hf_nsec now) {
        hf_nsec at = now + HF_NSEC_PER_SEC;
        for (size_t i = 0; i < electors->n; i++)
                if (electors->list[i]->wake_at < at)
                        at = electors->list[i]->wake_at;
        if (at < 1)
                at = 1; /* 0 would disarm */
        struct itimerspec spec = {.it_value = {.tv_sec = (time_t)(at / HF_NSEC_PER_SEC), .tv_nsec = (long)(at % HF_NSEC_PER_SEC)}};
        (void)timerfd_settime(electors->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

static bool is_over(const struct hf_electors *electors) {
        for (size_t i = 0; i < electors->n; i++) {
                enum hf_leader_state state = electors->list[i]->core.state;
                if (!electors->list[i]->stop_told || (state != HF_STOPPED && state != HF_STUCK))
                        return false;
        }
        return atomic_load(&electors->stop_asked);
}

void *hf__electors_loop(void *ctx) {
        struct hf_electors *electors = ctx;
        const struct hf_clock *clock = hf_host_clock(electors->host);

        for (size_t i = 0; i < electors->n; i++)
                step_plain(electors->list[i], HF__EV_TICK);
        while (!is_over(electors)) {
                struct epoll_event events[2];
                uint64_t expirations;
                arm(electors, hf_now(clock));
                int n = epoll_wait(electors->epoll_fd, events, 2, 1000);
                atomic_fetch_add(&electors->turns, 1);
                for (int i = 0; i < n; i++)
                        if (events[i].data.fd == electors->timer_fd)
                                (void)!read(electors->timer_fd, &expirations, sizeof expirations);
                take_letters(electors);
                for (size_t i = 0; i < electors->n; i++)
                        turn(electors->list[i]);
        }
        pthread_mutex_lock(&electors->mu);
        electors->loop_over = true;
        pthread_cond_broadcast(&electors->changed);
        pthread_mutex_unlock(&electors->mu);
        return NULL;
}
