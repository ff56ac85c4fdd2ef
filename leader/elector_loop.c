/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The elector loop: one thread that runs the cores of all electors of a set.
 *
 * The inputs of the loop are replies of the lock, watch events, requests of the embedder, the
 * return of controllers, deadlines, and the end of a process that holds a Lease (if lock files are
 * used). They arrive as a message in the mailbox, as a flag together with a wake-up, through the
 * timer, or through a pidfd. The loop turns each input into an event, steps the elector's core, and
 * carries out the core's actions at once (elector_actions.c).
 *
 * Invariants:
 *  - While electors run, the loop waits only in epoll_wait. Operations on the Lease are
 *    asynchronous, and the threads of a term are joined only after they have reported their end,
 *    or if the term has not begun, so that they only return. The loop's other calls return soon: it
 *    starts threads, takes mutexes that no thread holds for long, and tests the lock of a local
 *    file if any is used. The embedder's callbacks must not block. When all electors have stopped,
 *    the loop may wait 25 ms before it sends the last Events.
 *  - The clock is read immediately before each step. The core uses this time as the send time of
 *    the step's operation, and a term's validity counts from there. An operation that must wait for
 *    its turn (op_queue.h) is requested anew, by another step, when it is sent. A pause between
 *    reading the clock and sending can therefore only shorten the validity.
 *
 * A request to abort the current term is a flag, not a message. The client of the current term
 * sets stale_error, and the start of a term clears it: a message could be read after that term
 * has ended, and would then abort the next one. The embedder sets end_requested, which a start does
 * not clear: it also ends a term whose acquiring write is under way. To see whether the controllers
 * have returned, the loop calls hf__term_is_joined for the current term.
 *
 * An iteration handles an elector if its core was stepped since the last iteration (a message, or
 * its turn to send), if a flag of it was set, or if its wake-up time has come. It handles all
 * electors when a flag of the set was set, and once a second.
 *
 * The timer is a timerfd on CLOCK_BOOTTIME with absolute times, so that it fires at once when a
 * suspended machine or a stopped process continues. The electors' times are those of the host's
 * clock, which may show another time, so arm_timer translates. The timer fires at least once a
 * second, so that the embedder's watchdog can check the count of iterations.
 */
#include "leader/elector_loop.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/text.h"
#include "base/thread.h"
#include "leader/core_lease.h"
#include "leader/elector_actions.h"
#include "leader/holder_watch.h"
#include "leader/next_term.h"

#define COMPONENT         "elector"
#define MANY_ELECTORS     8 /* from here on, wakes of the client are delayed (step_electors) */
#define LAST_EVENTS_DELAY (25 * HF_NSEC_PER_MSEC) /* longer than a hand-over usually takes */

static const struct hf_clock *clock_of(const struct hf_elector *elector) {
        return hf_host_clock(elector->electors->host);
}
static const struct hf_log *log_of(const struct hf_elector *elector) {
        return &elector->electors->host->log;
}
static double seconds(hf_nsec duration) { return (double)duration / (double)HF_NSEC_PER_SEC; }

/* ---- messages from other threads ---- */

int hf__elector_loop_post(struct hf_elector *elector, const struct hf__elector_message *from) {
        const char *const texts[] = {from->record.holder, from->record.successor,
                                     from->record.hand_over_to, from->successor, from->why};
        size_t size = 0;

        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
                size += texts[i] ? strlen(texts[i]) + 1 : 0;
        struct hf__elector_message *message = malloc(sizeof *message + size);
        if (!message)
                return -ENOMEM;
        char *end = message->texts;
        *message = *from;
        message->elector = elector;
        message->record.holder = hf__text_copy(&end, from->record.holder);
        message->record.successor = hf__text_copy(&end, from->record.successor);
        message->record.hand_over_to = hf__text_copy(&end, from->record.hand_over_to);
        message->successor = hf__text_copy(&end, from->successor);
        message->why = hf__text_copy(&end, from->why);
        hf__mailbox_post_lazily(&elector->electors->mailbox, &message->message);
        return 0;
}

/* Out of memory: a dropped reply does no harm, because the core gives the operation up at its
 * deadline. A dropped event counts as a lost watch: the core opens another one, and a standby reads
 * the Lease until that one has reported something. */
static void post_message(struct hf_elector *elector, const struct hf__elector_message *message) {
        if (hf__elector_loop_post(elector, message) == 0)
                return;
        if (!message->is_reply)
                atomic_store(&elector->event_lost, true);
        hf__elector_wake(elector);
}

void hf__elector_loop_on_reply(void *ctx, uint32_t op_id, const struct hf__lock_reply *reply) {
        struct hf__elector_message message = {.is_reply = true,
                                              .op_id = op_id,
                                              .result = reply->result,
                                              .retry_after = reply->retry_after};
        if (reply->result == 0) {
                message.record = hf__core_see(&reply->record);
                message.term = reply->record.term;
        } else {
                message.why = reply->status.message;
        }
        post_message(ctx, &message);
}

void hf__elector_loop_on_record(void *ctx, const struct hf__record *record) {
        struct hf__elector_message message = {.type = record ? HF__EV_WATCHED : HF__EV_WATCH_LOST};
        if (record) {
                message.record = hf__core_see(record);
                message.term = record->term;
        }
        post_message(ctx, &message);
}

/* ---- state that other threads read ---- */

/* Copies the core's state into `info`, and the time by which it stops into electors->stop_by, if it
 * is the latest. Counts new holders and collisions. */
static void publish_info(struct hf_elector *elector, hf_nsec now) {
        const struct hf__core *core = &elector->core;
        bool leads = core->state == HF_LEADING || core->state == HF_DRAINING;
        bool is_new_holder, is_new_collision;

        pthread_mutex_lock(&elector->electors->mu);
        struct hf__elector_info *info = &elector->info;
        is_new_holder = strcmp(info->holder, core->observed.holder) != 0;
        if (is_new_holder || info->state != core->state)
                info->since = now;
        info->state = core->state;
        info->holder = core->observed.holder;
        info->term = leads ? core->term : 0; /* 0 while aborting: it may not act any more */
        info->n_terms = core->n_terms;
        info->free_at = hf__core_free_at(core);
        info->heard_at = core->heard_at;
        is_new_collision = core->collision && !info->identity_taken;
        info->identity_taken = core->collision;
        info->last_end = core->last_end ? core->last_end : "";
        if (hf__core_stops_by(core) > elector->electors->stop_by)
                elector->electors->stop_by = hf__core_stops_by(core);
        if (core->state == HF_STUCK && elector->term &&
            (!info->stuck_controller || !info->stuck_controller[0]))
                info->stuck_controller = hf__term_stuck_name(elector->term);
        pthread_mutex_unlock(&elector->electors->mu);

        if (is_new_holder && core->observed.holder[0])
                hf_metric_add(elector->metrics->transitions, 1);
        if (is_new_collision)
                hf_metric_add(elector->metrics->collisions, 1);
}

/* Returns the boot time until which some process leads, as far as this process knows. */
static hf_nsec known_leader_until(const struct hf__core *core) {
        if (!core->observed_once)
                return HF_NSEC_NEVER; /* the Lease was never read, so nothing is counted yet */
        if (core->state == HF_LEADING || core->state == HF_DRAINING)
                return core->valid_until;
        return core->observed.exists && core->observed.holder[0] ? hf__core_free_at(core) : 0;
}

/* Adds to the metric the time without a leader since the previous call. Must be called before each
 * step, because the step may change the known leader. */
static void count_leaderless(struct hf_elector *elector, hf_nsec now) {
        hf_nsec from = elector->leaderless_from;
        hf_nsec until = known_leader_until(&elector->core);

        if (from != 0 && until > from)
                from = until;
        if (from != 0 && now > from)
                hf_metric_add(elector->metrics->leaderless, seconds(now - from));
        elector->leaderless_from = now;
}

/* ---- steps ---- */

static void set_timer(struct hf_elector *elector, hf_nsec at) {
        struct hf__timer_heap *timers = &elector->electors->timers;

        elector->wake_at = at;
        if (elector->timer.queued && elector->timer.at == at)
                return;
        hf__timer_heap_remove(timers, &elector->timer);
        if (at != HF_NSEC_NEVER)
                hf__timer_heap_add(timers, &elector->timer, at);
}

static void add_stepped(struct hf_elector *elector) {
        if (elector->stepped)
                return;
        elector->stepped = true;
        elector->next_stepped = elector->electors->stepped;
        elector->electors->stepped = elector;
}

static void take_step(struct hf_elector *elector, struct hf__core_event *event) {
        struct hf__kept_texts *texts = &elector->electors->texts;
        struct hf__kept_texts_step step;
        struct hf__core_actions actions;
        const struct hf_clock *clock = clock_of(elector);
        struct hf__core_time now = {.boot = hf_now(clock),
                                    .real_us = clock->real(clock->ctx) / HF_NSEC_PER_USEC};

        event->op_unsent = hf__op_queue_is_unsent(elector->queue, elector);
        if (hf__kept_texts_begin(texts, &elector->core, event, &step) != 0) {
                if (event->type == HF__EV_HAND_OVER)
                        hf_log(log_of(elector), HF_LOG_WARNING, COMPONENT,
                               "%s: out of memory, so the request to hand over is forgotten",
                               elector->label);
                /* The core then does what it does after a lost reply or event (post_message). The
                 * new event has no texts, so that taking them cannot fail again. */
                *event = (struct hf__core_event){.type = event->type == HF__EV_WATCHED
                                                                 ? HF__EV_WATCH_LOST
                                                                 : HF__EV_TICK,
                                                 .op_unsent = event->op_unsent};
                (void)hf__kept_texts_begin(texts, &elector->core, event, &step);
        }
        count_leaderless(elector, now.boot);
        hf__core_step(&elector->core, event, now, &actions);
        set_timer(elector, actions.wake_at);
        add_stepped(elector);
        publish_info(elector, now.boot);
        hf__kept_texts_end(texts, &elector->core, &step); /* `info` has the new holder already */
        hf__elector_actions_carry_out(elector, &actions, now);
}

/* ---- the end of a term ---- */

static bool is_term_joined(const struct hf_elector *elector) {
        if (elector->core.state != HF_DRAINING && elector->core.state != HF_ABORTING)
                return false;
        return !elector->term || hf__term_is_joined(elector->term);
}

static void join_term(struct hf_elector *elector) {
        struct hf__core_event event = {.type = HF__EV_JOINED};

        assert(elector->core.state == HF_DRAINING || elector->core.state == HF_ABORTING);
        event.doubt_at = hf__term_writes_begin(&elector->writes, elector->term);
        if (event.doubt_at != 0)
                hf_log(log_of(elector), HF_LOG_INFO, COMPONENT,
                       "%s: a write of the term may still take effect, because %s and the server "
                       "has not confirmed fences",
                       elector->label,
                       event.doubt_at == HF_NSEC_NEVER ? "it has no response yet"
                                                       : "its outcome is unknown");
        /* This joins threads. They have returned from all controller code, so it is short. */
        elector->term = hf__term_free(elector->term);
        hf_metric_observe(elector->metrics->stop_seconds,
                          seconds(hf_now(clock_of(elector)) - elector->ending_at));
        elector->ending_at = 0;
        take_step(elector, &event);
}

/* Ends the term if stale_error or end_requested is set. event.joins: if the controllers have
 * returned already, the caller reports that before any other event (look_at_term). */
static void end_stale_term(struct hf_elector *elector) {
        struct hf__core_event event = {.type = HF__EV_STALE_TERM, .joins = is_term_joined(elector)};

        event.result = atomic_exchange(&elector->stale_error, 0);
        if (atomic_exchange(&elector->end_requested, false) || event.result != 0)
                take_step(elector, &event);
}

/* If the controllers have returned, reports that to the core. */
static void look_at_term(struct hf_elector *elector) {
        if (!is_term_joined(elector))
                return;
        end_stale_term(elector);
        if (is_term_joined(elector))
                join_term(elector);
}

/* ---- steps ---- */

/* Reports a requested stop, before whatever event is at hand. */
static void look_for_stop(struct hf_elector *elector) {
        struct hf__core_event event = {.type = HF__EV_STOP};

        if (elector->stop_sent || !atomic_load(&elector->electors->stop_requested))
                return;
        end_stale_term(elector);
        look_at_term(elector);
        elector->stop_sent = true;
        take_step(elector, &event);
}

/* Reports the return of the controllers before any other event: if the loop runs late, the stop
 * grace may be over, and the step for the other event would take the controllers for stuck. Only
 * HF__EV_STALE_TERM comes earlier (end_stale_term), because a release must not rely on what was
 * known of the Lease before that event.
 *
 * Before a step that may begin a term, a stop comes first: if the loop was blocked,
 * hf_electors_stop may have returned meanwhile, and the reply to the acquire may wait in the
 * mailbox. Elsewhere a stop waits until it is noticed (notice_stop). */
static void step_core(struct hf_elector *elector, struct hf__core_event *event) {
        if (elector->core.state == HF_FOLLOWING)
                look_for_stop(elector);
        look_at_term(elector);
        take_step(elector, event);
}

static void step_core_simple(struct hf_elector *elector, enum hf__core_event_type type) {
        struct hf__core_event event = {.type = type};
        step_core(elector, &event);
}

/* ---- replies and events ---- */

/* Keeps a failure for the health check; why NULL = the operation succeeded. */
static void keep_failure(struct hf_elector *elector, const char *why, int result) {
        char *text = why ? strdup(why) : NULL, *old;

        pthread_mutex_lock(&elector->electors->mu);
        old = elector->failure_text;
        elector->failure_text = text;
        elector->last_failure = text;
        if (why && !text)
                elector->last_failure = hf_strerror(result);
        pthread_mutex_unlock(&elector->electors->mu);
        free(old);
}

/* Reports the outcome of an operation to health, metrics and log. */
static void report_reply(struct hf_elector *elector, const struct hf__elector_message *message,
                         bool write) {
        int result = message->result;
        bool failed = result != 0 && (write || result != HF_E_NOT_FOUND);
        const char *why = message->why && *message->why ? message->why : hf_strerror(result);

        if (failed || elector->last_failure)
                keep_failure(elector, failed ? why : NULL, result);
        if (result == 0) {
                if (write)
                        hf_metric_observe(elector->metrics->renew_seconds,
                                          seconds(hf_now(clock_of(elector)) -
                                                  elector->write_sent_at));
                elector->n_failed_ops = 0;
        } else if (failed) {
                hf__leader_metrics_failed(elector->metrics, result);
                hf_log(log_of(elector), elector->n_failed_ops++ ? HF_LOG_DEBUG : HF_LOG_WARNING,
                       COMPONENT, "%s: %s failed: %s", elector->label,
                       write ? "writing the Lease" : "reading the Lease", why);
        }
}

static void handle_message(struct hf_elector *elector, const struct hf__elector_message *message) {
        struct hf__core_event event = {.type = message->type,
                                       .op_id = message->op_id,
                                       .result = message->result,
                                       .retry_after = message->retry_after,
                                       .hold_back = message->hold_back};

        if (message->record.holder) {
                hf__core_show(&message->record, &event.record);
                event.record.term = message->term;
        }
        if (message->successor)
                strcpy(event.successor, message->successor);
        if (message->is_reply) {
                bool write = message->op_id == elector->write_id;
                event.type = write ? HF__EV_WRITE_DONE : HF__EV_READ_DONE;
                hf__op_queue_ended(elector->queue, elector, message->op_id,
                                   hf_now(clock_of(elector)));
                report_reply(elector, message, write);
        }
        step_core(elector, &event);
}

static void handle_messages(struct hf_electors *electors) {
        struct hf__message *posted = hf__mailbox_take(&electors->mailbox);
        while (posted) {
                struct hf__elector_message *message = (struct hf__elector_message *)posted;
                posted = posted->next;
                handle_message(message->elector, message);
                free(message);
        }
}

/* Handles the messages that came before a requested stop, and lets the electors see it. One of the
 * messages may ask a leader to hand over: then the release of the stop names the successor. */
static void notice_stop(struct hf_electors *electors) {
        if (electors->stop_noticed || !atomic_load(&electors->stop_requested))
                return;
        electors->stop_noticed = true;
        /* An earlier iteration may have cleared the flag that was set with the request. */
        atomic_store(&electors->attention, true);
        handle_messages(electors);
}

/* Lets the waiting electors send their operations, as far as the queues have room. */
static void take_turns(struct hf_electors *electors) {
        const struct hf_clock *clock = hf_host_clock(electors->host);
        struct hf_elector *elector;

        for (struct hf__op_queue *queue = electors->queues.first; queue; queue = queue->next)
                while ((elector = hf__op_queue_next(queue, hf_now(clock))))
                        step_core_simple(elector, HF__EV_TICK);
}

/* ---- iterations ---- */

/* If the lock file proves that the holder's process is dead, reports it to the core. Without this
 * the elector would wait for the expiry. */
static void look_at_holder(struct hf_elector *elector) {
        struct hf__core_event event = {.type = HF__EV_HOLDER_DEAD};

        if (!elector->electors->holders || elector->core.holder_is_dead ||
            !hf__holder_watch_is_dead(elector->electors->holders, elector,
                                      hf_now(clock_of(elector))))
                return;
        hf__core_observed(&elector->core, &event.record);
        hf_log(log_of(elector), HF_LOG_NOTICE, COMPONENT,
               "%s: the lock file of %s proves that its process is dead: not waiting for the "
               "expiry of its Lease",
               elector->label, event.record.holder);
        step_core(elector, &event);
}

/* Turns the elector's flags, its wake-up time and the return of its controllers into events. */
static void iterate_elector(struct hf_elector *elector) {
        count_leaderless(elector, hf_now(clock_of(elector)));
        if (atomic_exchange(&elector->event_lost, false))
                step_core_simple(elector, HF__EV_WATCH_LOST);
        end_stale_term(elector);
        if (elector->electors->stop_noticed)
                look_for_stop(elector);
        if (hf_now(clock_of(elector)) >= elector->wake_at)
                step_core_simple(elector, HF__EV_TICK);
        look_at_term(elector);
        look_at_holder(elector);
        hf_nsec doubt_at;
        if (hf__term_writes_settled(&elector->writes, &doubt_at)) {
                struct hf__core_event event = {.type = HF__EV_SETTLED, .doubt_at = doubt_at};
                step_core(elector, &event);
        }
        if (elector->events)
                hf__lease_events_iterate(elector->events, hf_now(clock_of(elector)));
        hf__next_term_prepare(elector);
        set_timer(elector, elector->wake_at); /* take_stepped has removed the timer if it was due */
}

/* Takes the electors that have stepped since the last iteration, those with a flag, and those whose
 * wake-up time has come. Those that step from now on are for the next iteration. is_flagged is
 * cleared before the flags are read, so that one that is set meanwhile adds the elector again. */
static struct hf_elector *take_stepped(struct hf_electors *electors, hf_nsec now) {
        struct hf_elector *flagged = atomic_exchange(&electors->flagged, NULL);
        struct hf__timer *timer;

        while (flagged) {
                struct hf_elector *elector = flagged;
                flagged = elector->next_flagged; /* another thread may set it after the next line */
                atomic_store(&elector->is_flagged, false);
                add_stepped(elector);
        }
        while ((timer = electors->timers.first) && timer->at <= now) {
                hf__timer_heap_remove(&electors->timers, timer);
                add_stepped(
                        (struct hf_elector *)((char *)timer - offsetof(struct hf_elector, timer)));
        }
        struct hf_elector *stepped = electors->stepped;
        electors->stepped = NULL;
        for (struct hf_elector *elector = stepped; elector; elector = elector->next_stepped)
                elector->stepped = false;
        return stepped;
}

/* Skips the electors without input: a process may have ten thousand electors, and most wake-ups
 * concern a few of them. Once a second, and if `attention` is set, it includes all, which also
 * sends the Events that are due and updates the leaderless time. *all_iterated_at: boot time at
 * which it last included all. */
static void iterate_electors(struct hf_electors *electors, hf_nsec now, hf_nsec *all_iterated_at) {
        bool all = atomic_exchange(&electors->attention, false) ||
                   now - *all_iterated_at >= HF_NSEC_PER_SEC;

        struct hf_elector *stepped = take_stepped(electors, now);

        if (all)
                *all_iterated_at = now;
        for (size_t i = 0; all && i < electors->n; i++)
                iterate_elector(electors->list[i]);
        while (!all && stepped) {
                struct hf_elector *elector = stepped;
                stepped = elector->next_stepped; /* iterate_elector may set it anew */
                iterate_elector(elector);
        }
}

/* Sets the timer to the earliest wake-up time of the queues and of all electors, at most a second
 * from now. The system's time is read first: a pause between the two readings makes the timer
 * early, which costs an iteration, and never late. */
static void arm_timer(struct hf_electors *electors) {
        hf_nsec system_now = hf_now(hf_clock_system());
        hf_nsec now = hf_now(hf_host_clock(electors->host));
        hf_nsec at = now + HF_NSEC_PER_SEC;

        if (electors->timers.first && electors->timers.first->at < at)
                at = electors->timers.first->at;
        for (struct hf__op_queue *queue = electors->queues.first; queue; queue = queue->next)
                if (hf__op_queue_wake_at(queue) < at)
                        at = hf__op_queue_wake_at(queue);
        at += system_now - now;
        if (at < 1)
                at = 1; /* 0 would disarm the timer */
        struct itimerspec spec = {.it_value = {.tv_sec = (time_t)(at / HF_NSEC_PER_SEC),
                                               .tv_nsec = (long)(at % HF_NSEC_PER_SEC)}};
        (void)timerfd_settime(electors->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

static bool has_ended(const struct hf_elector *elector) {
        enum hf_leader_state state = elector->core.state;

        return elector->stop_sent && (state == HF_STOPPED || state == HF_STUCK);
}

/* An elector that has ended remains so. One that got stuck before the stop counts as ended only
 * when its core has received the stop. */
static bool have_all_ended(struct hf_electors *electors) {
        while (electors->n_ended < electors->n && has_ended(electors->list[electors->n_ended]))
                electors->n_ended++;
        return electors->n_ended == electors->n && atomic_load(&electors->stop_requested);
}

/* Waits by the host's clock. A wait on the token hf_cancel_never() would use the system's. */
static void delay_last_events(struct hf_electors *electors) {
        const struct hf_clock *clock = hf_host_clock(electors->host);
        hf_nsec until = hf_now(clock) + LAST_EVENTS_DELAY;

        pthread_mutex_lock(&electors->mu);
        while (hf_now(clock) < until)
                (void)clock->wait(clock->ctx, &electors->changed, &electors->mu, until);
        pthread_mutex_unlock(&electors->mu);
}

/* Sends the Events that are still waiting when the loop ends. Waits a moment first, so that the
 * successor's first writes do not queue behind them at the server. */
static void write_last_events(struct hf_electors *electors) {
        bool waited = false;

        for (size_t i = 0; i < electors->n; i++) {
                struct hf__lease_events *events = electors->list[i]->events;
                if (!events || !hf__lease_events_waiting(events))
                        continue;
                if (!waited)
                        delay_last_events(electors);
                waited = true;
                hf__lease_events_iterate(events, HF_NSEC_NEVER);
        }
}

static void start_elector(struct hf_elector *elector) {
        assert(elector->core.state == HF_FOLLOWING && !elector->term);
        elector->lock->on_reply = hf__elector_loop_on_reply;
        elector->lock->on_record = hf__elector_loop_on_record;
        elector->lock->ctx = elector;
        step_core_simple(elector, HF__EV_TICK);
}

/* Steps the electors that are due. If the set has many electors, often several of them send
 * something. Then the client's thread wakes once for several, and sends their requests together. */
static void step_electors(struct hf_electors *electors, hf_nsec *all_iterated_at) {
        bool delays = electors->n >= MANY_ELECTORS;

        if (delays)
                hf__mailbox_delay_wakes();
        take_turns(electors);
        iterate_electors(electors, hf_now(hf_host_clock(electors->host)), all_iterated_at);
        if (delays)
                hf__mailbox_wake_delayed();
}

void *hf__elector_loop_run(void *ctx) {
        struct hf_electors *electors = ctx;
        hf_nsec all_iterated_at = 0;

        for (size_t i = 0; i < electors->n; i++)
                start_elector(electors->list[i]);
        while (!have_all_ended(electors)) {
                struct epoll_event events[8];
                uint64_t expirations;
                arm_timer(electors);
                /* The limit of a second holds even if the timer could not be set. */
                int n = epoll_wait(electors->epoll_fd, events, 8, 1000);
                atomic_fetch_add(&electors->iterations, 1);
                for (int i = 0; i < n; i++)
                        if (events[i].data.fd == electors->timer_fd)
                                (void)!read(electors->timer_fd, &expirations, sizeof expirations);
                        else if (electors->holders &&
                                 hf__holder_watch_on_fd(electors->holders, events[i].data.fd))
                                atomic_store(&electors->attention, true);
                handle_messages(electors);
                notice_stop(electors);
                step_electors(electors, &all_iterated_at);
        }
        write_last_events(electors);
        pthread_mutex_lock(&electors->mu);
        electors->loop_over = true;
        pthread_cond_broadcast(&electors->changed);
        pthread_mutex_unlock(&electors->mu);
        return NULL;
}
