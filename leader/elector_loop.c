/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop: one thread that turns all elector cores of a process. Model: whatever happens (an
 * answer of the lock, a watch event, an order from outside, the end of the work, a point in time)
 * reaches the loop as a letter in its mailbox, as a flag with a poke, or through its timer; the
 * loop makes an event of it, steps the elector's core, and carries out the actions at once. Nothing
 * the loop does waits: lock operations are asynchronous, threads of a term are made but not waited
 * for (they are joined once they have reported), callbacks of the embedder must not block. What an
 * action is in the world stands in elector_actions.c.
 *
 * Time is read anew for every step, immediately before it: the core takes it for the send time of
 * what it asks to be sent, from which validity counts. A pause between the reading and the sending
 * thus shortens validity and never lengthens it.
 *
 * Flags instead of letters carry what belongs to a term (`stale`, the term's own `joined`), because
 * a term may be gone before a letter is read: stale is set by the client of the present term, and
 * cleared when a term starts, for it may be a former one's; doubted is set by the host who ends
 * whichever term there is (hf_elector_end_term); joined is asked of the present term.
 *
 * After a letter, or at its time, the loop turns the elector concerned; after a poke, and once a
 * second, all of them.
 *
 * The timer is a timerfd on CLOCK_BOOTTIME with absolute times, so that it is due at once when a
 * suspended machine or a stopped process goes on. It fires at least once a second, which is what
 * the watchdog counts.
 */
#include "leader/elector_core_lease.h"
#include "leader/electors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define COMPONENT       "elector"
#define SUCCESSOR_FIRST (25 * HF_NSEC_PER_MSEC) /* a few times what a hand-over takes */

static const struct hf_clock *clock_of(const struct hf_elector *elector) {
        return hf_host_clock(elector->electors->host);
}
static const struct hf_log *log_of(const struct hf_elector *elector) {
        return &elector->electors->host->log;
}
static double seconds(hf_nsec duration) { return (double)duration / (double)HF_NSEC_PER_SEC; }

/* ---- from other threads ---- */

static void post(struct hf_elector *elector, const struct hf__elector_message *from) {
        struct hf__elector_message *message = malloc(sizeof *message);
        if (message) {
                *message = *from;
                message->elector = elector;
                hf__mailbox_post(&elector->electors->mailbox, &message->message);
                return;
        }
        /* An answer that is lost is one that does not come: the core gives the operation up at its
         * deadline. News that is lost is a lost watch: the core reads. */
        if (!from->is_reply)
                atomic_store(&elector->event_lost, true);
        hf__electors_wake(elector->electors);
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

/* ---- what others may see ---- */

/* Copies the core's state into the info. Tells whether state or holder changed. */
static void publish(struct hf_elector *elector, hf_nsec now) {
        const struct hf__core *core = &elector->core;
        bool led = core->state == HF_LEADING || core->state == HF_DRAINING;
        bool new_holder, is_new_collision;

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
        is_new_collision = core->collision && !info->identity_taken;
        info->identity_taken = core->collision;
        (void)snprintf(info->last_end, sizeof info->last_end, "%s",
                       core->last_end ? core->last_end : "");
        if (core->state == HF_STUCK && elector->work && !info->stuck_controller[0])
                hf__term_stuck_name(elector->work, info->stuck_controller,
                                    sizeof info->stuck_controller);
        pthread_mutex_unlock(&elector->electors->mu);

        if (new_holder && core->observed.holder[0])
                hf_metric_add(elector->metrics.transitions, 1);
        if (is_new_collision)
                hf_metric_add(elector->metrics.collisions, 1);
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
        hf_nsec until = led_until(&elector->core),
                from = until > elector->counted_at ? until : elector->counted_at;
        if (elector->counted_at && now > from)
                hf_metric_add(elector->metrics.leaderless, seconds(now - from));
        elector->counted_at = now;
}

void hf__elector_info(struct hf_elector *elector, struct hf_leader_info *ret_info) {
        pthread_mutex_lock(&elector->electors->mu);
        *ret_info = elector->info;
        pthread_mutex_unlock(&elector->electors->mu);
        ret_info->valid_until = ret_info->state == HF_LEADING || ret_info->state == HF_DRAINING
                                        ? hf__gate_valid_until(&elector->gate)
                                        : 0;
}

/* ---- the turns ---- */

static void step(struct hf_elector *elector, const struct hf__core_event *event) {
        struct hf__core_actions actions;
        const struct hf_clock *clock = clock_of(elector);
        struct hf__core_time now = {.boot = hf_now(clock),
                                    .real_us = clock->real(clock->ctx) / HF_NSEC_PER_USEC};

        count_leaderless(elector, now.boot);
        hf__core_step(&elector->core, event, now, &actions);
        elector->wake_at = actions.wake_at;
        elector->stepped = true;
        publish(elector, now.boot);
        hf__elector_carry_out(elector, &actions, now);
}

static void step_plain(struct hf_elector *elector, enum hf__core_event_type type) {
        struct hf__core_event event = {.type = type};
        step(elector, &event);
}

static void note_reply(struct hf_elector *elector, struct hf__elector_message *message) {
        bool write = message->event.op_id == elector->write_id;
        int result = message->event.result;
        bool failed = result != 0 && (write || result != HF_E_NOT_FOUND);
        const char *why =
                message->status.message[0] ? message->status.message : hf_strerror(result);

        pthread_mutex_lock(&elector->electors->mu);
        (void)snprintf(elector->last_failure, sizeof elector->last_failure, "%.159s",
                       failed ? why : "");
        pthread_mutex_unlock(&elector->electors->mu);
        message->event.type = write ? HF__EV_WRITE_DONE : HF__EV_READ_DONE;
        if (result == 0) {
                if (write)
                        hf_metric_observe(elector->metrics.renew_seconds,
                                          seconds(hf_now(clock_of(elector)) -
                                                  elector->write_sent_at));
                elector->n_failed_ops = 0;
        } else if (failed) {
                hf__leader_metrics_failed(&elector->metrics, result);
                hf_log(log_of(elector), elector->n_failed_ops++ ? HF_LOG_DEBUG : HF_LOG_WARNING,
                       COMPONENT, "%s: %s failed: %s", elector->label,
                       write ? "writing the Lease" : "reading the Lease", why);
        }
}

static void take_messages(struct hf_electors *electors) {
        struct hf__message *posted = hf__mailbox_take(&electors->mailbox);
        while (posted) {
                struct hf__elector_message *message = (struct hf__elector_message *)posted;
                posted = posted->next;
                if (message->is_reply)
                        note_reply(message->elector, message);
                step(message->elector, &message->event);
                free(message);
        }
}

static bool work_is_over(const struct hf_elector *elector) {
        if (elector->core.state != HF_DRAINING && elector->core.state != HF_ABORTING)
                return false;
        return !elector->work || hf__term_is_joined(elector->work);
}

static void join_work(struct hf_elector *elector) {
        /* The client is silenced and the threads have made their last step: this is a matter of
         * their exit. */
        elector->work = hf__term_free(elector->work);
        hf_metric_observe(elector->metrics.stop_seconds,
                          seconds(hf_now(clock_of(elector)) - elector->ending_at));
        elector->ending_at = 0;
        step_plain(elector, HF__EV_JOINED);
}

static void iteration(struct hf_elector *elector) {
        elector->stepped = false;
        count_leaderless(elector, hf_now(clock_of(elector)));
        if (atomic_exchange(&elector->event_lost, false))
                step_plain(elector, HF__EV_WATCH_LOST);
        bool stale = atomic_exchange(&elector->stale, false),
             doubted = atomic_exchange(&elector->doubted, false);
        if (stale || doubted)
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
                hf__lease_events_iterate(elector->events, hf_now(clock_of(elector)));
}

/* With a thousand electors most wake-ups are the business of one. */
static void iteration_those_concerned(struct hf_electors *electors, hf_nsec now,
                                      hf_nsec *seen_all_at) {
        bool all = atomic_exchange(&electors->attention, false) ||
                   now - *seen_all_at >= HF_NSEC_PER_SEC;

        if (all)
                *seen_all_at = now;
        for (size_t i = 0; i < electors->n; i++)
                if (all || electors->list[i]->stepped || now >= electors->list[i]->wake_at)
                        iteration(electors->list[i]);
}

/* Sets the timer to the nearest wake-up. */
static void arm(struct hf_electors *electors, hf_nsec now) {
        hf_nsec at = now + HF_NSEC_PER_SEC;
        for (size_t i = 0; i < electors->n; i++)
                if (electors->list[i]->wake_at < at)
                        at = electors->list[i]->wake_at;
        if (at < 1)
                at = 1; /* 0 would disarm */
        struct itimerspec spec = {.it_value = {.tv_sec = (time_t)(at / HF_NSEC_PER_SEC),
                                               .tv_nsec = (long)(at % HF_NSEC_PER_SEC)}};
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

/* Who takes what was just released writes first: the Events of a stop wait for that, and the stop
 * for them to be sent. */
static void write_last_events(struct hf_electors *electors) {
        bool waited = false;

        for (size_t i = 0; i < electors->n; i++) {
                struct hf__lease_events *events = electors->list[i]->events;
                if (!events || !hf__lease_events_waiting(events))
                        continue;
                if (!waited)
                        (void)hf_cancel_wait(hf_cancel_never(),
                                             hf_now(hf_host_clock(electors->host)) +
                                                     SUCCESSOR_FIRST);
                waited = true;
                hf__lease_events_iterate(events, HF_NSEC_NEVER);
        }
}

void *hf__electors_loop(void *ctx) {
        struct hf_electors *electors = ctx;
        const struct hf_clock *clock = hf_host_clock(electors->host);
        hf_nsec seen_all_at = 0;

        for (size_t i = 0; i < electors->n; i++)
                step_plain(electors->list[i], HF__EV_TICK);
        while (!is_over(electors)) {
                struct epoll_event events[2];
                uint64_t expirations;
                arm(electors, hf_now(clock));
                int n = epoll_wait(electors->epoll_fd, events, 2, 1000);
                atomic_fetch_add(&electors->iterations, 1);
                for (int i = 0; i < n; i++)
                        if (events[i].data.fd == electors->timer_fd)
                                (void)!read(electors->timer_fd, &expirations, sizeof expirations);
                take_messages(electors);
                iteration_those_concerned(electors, hf_now(clock), &seen_all_at);
        }
        write_last_events(electors);
        pthread_mutex_lock(&electors->mu);
        electors->loop_over = true;
        pthread_cond_broadcast(&electors->changed);
        pthread_mutex_unlock(&electors->mu);
        return NULL;
}
