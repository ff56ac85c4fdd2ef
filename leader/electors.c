/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The set of electors: the embedder adds, starts and stops electors with these functions. The
 * election itself is in elector_loop.c (the thread) and core.c (the decisions).
 *
 *      NEW --start--> STARTING --> RUNNING --stop--> STOPPING --> STOPPED
 *       |                +--the start failed--------------------->
 *       +--stop-------------------------------------------------->
 *
 * HUNG replaces STOPPED if the loop's thread did not end in time.
 *
 * Ownership: the list of electors changes only in state NEW. The state changes under `mu`. An
 * elector belongs to the loop while the loop runs, except for the members that elector.h names, and
 * afterwards to the thread that joined the loop.
 *
 * Invariants:
 *  - After hf_electors_stop has returned, no controller begins: a stop waits for a start that is
 *    under way, and a start after a stop is refused. If the loop goes on after HUNG, it sees the
 *    stop before anything that could begin a term.
 *  - A stop always ends, because each stage has a time limit. First the loop drains, joins and
 *    releases every elector, then the controllers of class HF_EVERY_INSTANCE are drained and
 *    joined, then the loop's thread is joined.
 *  - If a controller has not returned, the memory that it may still use is never freed.
 */
#include "leader/electors.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/host.h"
#include "base/process_mark.h"
#include "base/sized_struct.h"
#include "base/thread.h"
#include "base/time_format.h"
#include "leader/elector_loop.h"
#include "leader/holder_watch.h"
#include "leader/leader_health.h"
#include "leader/lease_watches.h"
#include "leader/next_term.h"

#define COMPONENT    "elector"
#define STOP_MARGIN  (2 * HF_NSEC_PER_SEC) /* extra time for a stop on a busy machine */
#define MOMENT_PARTS 20                    /* see give_moment_locked */

const struct hf__sized hf__sized_elector_config = HF__SIZED(struct hf_elector_config, client);

/* ---- adding ---- */

HF__CLEANUP_DEFINE(watches_cleanup, struct hf__lease_watches *, hf__lease_watches_free)

/* Initializes mu, changed and mailbox, or none of them. 0 or -errno. */
static int init_locks(struct hf_electors *electors) {
        int r = hf__mutex_cond_init(&electors->mu, &electors->changed);

        if (r != 0)
                return r;
        r = hf__mailbox_init(&electors->mailbox);
        if (r != 0) {
                pthread_cond_destroy(&electors->changed);
                pthread_mutex_destroy(&electors->mu);
        }
        return r;
}

int hf_electors_new(const struct hf_host *host, struct hf_electors **ret_electors) {
        int r = hf__host_check(host, NULL);
        if (r == 0)
                r = hf__process_mark_init(); /* so that a forked child does not lead (gate.h) */
        if (r != 0)
                return r;
        HF__CLEANUP(watches_cleanup) struct hf__lease_watches *watches = NULL;
        r = hf__lease_watches_new(&watches);
        if (r != 0)
                return r;
        HF__CLEANUP(hf__free_cleanup) struct hf_electors *electors = calloc(1, sizeof *electors);
        if (!electors)
                return -ENOMEM;
        r = init_locks(electors);
        if (r != 0)
                return r;
        electors->host = host;
        electors->epoll_fd = electors->timer_fd = -1;
        electors->watches = HF__TAKE(watches);
        hf__kept_texts_init(&electors->texts);
        *ret_electors = HF__TAKE(electors);
        return 0;
}

int hf_electors_add(struct hf_electors *electors, const struct hf_elector_config *given,
                    struct hf_elector **ret_elector, struct hf_status *reterr_status) {
        struct hf_elector_config config;
        struct hf_elector *elector = NULL;
        int r = hf__sized_copy(&hf__sized_elector_config, &config, given, reterr_status);
        if (r != 0)
                return r;
        if (electors->state != HF__ELECTORS_NEW)
                return hf_fail(reterr_status, HF_E_CLOSED,
                               "electors cannot be added after the start");
        struct hf_elector **list =
                realloc(electors->list, (electors->n + 1) * sizeof(struct hf_elector *));
        if (!list)
                return hf_fail(reterr_status, -ENOMEM, "electors: out of memory");
        electors->list = list;
        r = hf__elector_new(electors, &config, &elector, reterr_status);
        if (r != 0)
                return r;
        list[electors->n++] = elector;
        if (ret_elector)
                *ret_elector = elector;
        return 0;
}

int hf_electors_use_lock_file(struct hf_electors *electors, const char *path,
                              struct hf_status *reterr_status) {
        if (!path)
                return hf_fail(reterr_status, -EINVAL, "electors: no lock file is given");
        if (electors->state != HF__ELECTORS_NEW || electors->n > 0 || electors->holders)
                return hf_fail(reterr_status, HF_E_CLOSED,
                               "the lock file must be set once, before electors are added");
        return hf__holder_watch_new(path, &electors->holders, reterr_status);
}

/* ---- starting ---- */

/*
 * The HF_EVERY_INSTANCE controllers of one elector have returned. Called on a controller's thread,
 * or on the one that drains or aborts them, without the mutex. Takes the mutex, because otherwise a
 * stop could miss the broadcast between its test and its wait.
 */
static void on_instance_joined(void *ctx) {
        struct hf_electors *electors = ctx;
        pthread_mutex_lock(&electors->mu);
        pthread_cond_broadcast(&electors->changed);
        pthread_mutex_unlock(&electors->mu);
}

/* Starts an elector's HF_EVERY_INSTANCE controllers, all or none, because they may depend on each
 * other. */
static int start_instance(struct hf_elector *elector) {
        assert(!elector->instance);
        if (!hf__elector_runs(elector, HF_EVERY_INSTANCE))
                return 0;
        struct hf__term_config config = {
                .controllers = elector->controllers,
                .n_controllers = elector->n_controllers,
                .runs = HF_EVERY_INSTANCE,
                .label = elector->label,
                .client = {.inner = elector->client},
                .joined = on_instance_joined,
                .ctx = elector->electors,
        };
        return hf__term_new(elector->electors->host, &config, &elector->instance);
}

static bool all_instances_joined(struct hf_electors *electors) {
        hf__mutex_assert_held(&electors->mu);
        for (size_t i = 0; i < electors->n; i++)
                if (electors->list[i]->instance && !hf__term_is_joined(electors->list[i]->instance))
                        return false;
        return true;
}

/* How long a stop waits for threads. */
struct limit {
        struct hf__deadline until; /* its `at` may be moved (is_limit_over_locked and others) */
        hf_nsec duration;          /* with which `until` began, and begins anew */
};

static struct limit begin_limit(struct hf_electors *electors, hf_nsec duration) {
        const hf_nsec now = hf_now(hf_host_clock(electors->host));

        return (struct limit){.until = hf__deadline_after(now, duration), .duration = duration};
}

/* Whether the limit is over. It lasts at least until STOP_MARGIN after electors->stop_by, because
 * the cores know best how long they take: a core may have noticed a pause of which this thread
 * knows nothing, or may have noticed each of its deadlines a little late. */
static bool is_limit_over_locked(struct hf_electors *electors, struct limit *limit, hf_nsec now) {
        hf__mutex_assert_held(&electors->mu);
        if (now < limit->until.at)
                return false;
        hf_nsec stop_by = hf__nsec_after(electors->stop_by, STOP_MARGIN);
        if (stop_by > limit->until.at)
                limit->until.at = stop_by;
        return hf__deadline_is_over(&limit->until, limit->duration, now);
}

/* Waits once: until a change or until the limit. Then the caller looks what has changed. False: the
 * limit is over, and it did not wait. */
static bool await_change_locked(struct hf_electors *electors, struct limit *limit) {
        const struct hf_clock *clock = hf_host_clock(electors->host);

        hf__mutex_assert_held(&electors->mu);
        if (is_limit_over_locked(electors, limit, hf_now(clock)))
                return false;
        (void)clock->wait(clock->ctx, &electors->changed, &electors->mu, limit->until.at);
        return true;
}

/* Waits for the controllers of class HF_EVERY_INSTANCE. True: all have returned. False: the limit
 * is over. */
static bool wait_for_instances(struct hf_electors *electors, struct limit *limit) {
        pthread_mutex_lock(&electors->mu);
        bool joined = all_instances_joined(electors);
        while (!joined && await_change_locked(electors, limit))
                joined = all_instances_joined(electors);
        pthread_mutex_unlock(&electors->mu);
        return joined;
}

/* 0, or HF_E_STUCK: stop_instances has left a controller of this elector that has not returned. */
static int check_instance(const struct hf_elector *elector, struct hf_status *reterr_status) {
        const char *name = elector->instance ? hf__term_stuck_name(elector->instance) : "";

        return name[0] ? hf_fail(reterr_status, HF_E_STUCK,
                                 "controller %s of %s did not return within its deadline", name,
                                 elector->label)
                       : 0;
}

/* Drains the HF_EVERY_INSTANCE controllers until the limit of the stop is over, then aborts them.
 * If one has not returned a stop grace later, no controller's memory is freed, and `instance`
 * remains set. */
static void stop_instances(struct hf_electors *electors, struct limit *limit) {
        hf_nsec grace = 0;
        for (size_t i = 0; i < electors->n; i++) {
                struct hf_elector *elector = electors->list[i];
                if (elector->core.config.timing.stop_grace > grace)
                        grace = elector->core.config.timing.stop_grace;
                if (elector->instance)
                        hf__term_fire_drain(elector->instance);
        }
        if (!wait_for_instances(electors, limit)) {
                for (size_t i = 0; i < electors->n; i++)
                        if (electors->list[i]->instance)
                                hf__term_fire_abort(electors->list[i]->instance,
                                                    HF_CANCEL_DEADLINE);
                struct limit last = begin_limit(electors, grace);
                if (!wait_for_instances(electors, &last))
                        return;
        }
        for (size_t i = 0; i < electors->n; i++)
                electors->list[i]->instance = hf__term_free(electors->list[i]->instance);
}

/* The timer uses CLOCK_BOOTTIME, because a Lease also expires while the machine is suspended. */
static int open_loop(struct hf_electors *electors) {
        struct epoll_event event = {.events = EPOLLIN};
        electors->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        electors->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
        if (electors->holders)
                hf__holder_watch_set_epoll(electors->holders, electors->epoll_fd);
        if (electors->epoll_fd < 0 || electors->timer_fd < 0)
                return -errno;
        event.data.fd = electors->timer_fd;
        if (epoll_ctl(electors->epoll_fd, EPOLL_CTL_ADD, electors->timer_fd, &event) < 0)
                return -errno;
        event.data.fd = electors->mailbox.fd;
        return epoll_ctl(electors->epoll_fd, EPOLL_CTL_ADD, electors->mailbox.fd, &event) < 0
                       ? -errno
                       : 0;
}

/* Logs the worst cases that follow from the timing, so that operators need not compute them. */
static void log_timing(const struct hf_elector *elector) {
        char lease[32], takeover[32], act[32], overlap[32];
        const struct hf_leader_timing *timing = &elector->core.config.timing;
        hf__duration_format(timing->lease_duration, lease);
        hf__duration_format(hf_leader_timing_worst_takeover(timing), takeover);
        hf__duration_format(timing->renew_deadline, act);
        hf__duration_format(timing->lease_duration - timing->renew_deadline - timing->stop_grace,
                            overlap);
        hf_log(&elector->electors->host->log, HF_LOG_INFO, COMPONENT,
               "%s: contending as %s; if a leader dies, another process leads about %s later, and "
               "at most %s later even if watches are silent and each request takes as long as it "
               "may; a leader without a connection acts for at most %s after its last renewal; its "
               "controllers return at least %s before another process can lead, so terms do not "
               "overlap if clocks differ by less than that",
               elector->label, elector->identity, lease, takeover, act, overlap);
}

/* Starts the loop's thread last, so that after a failure no elector contends for its Lease. */
static int start_electors(struct hf_electors *electors) {
        int r = open_loop(electors);
        for (size_t i = 0; r == 0 && i < electors->n; i++)
                r = start_instance(electors->list[i]);
        if (r == 0)
                r = hf__leader_health_add(electors);
        for (size_t i = 0; r == 0 && i < electors->n; i++)
                log_timing(electors->list[i]);
        if (r != 0)
                return r;
        return hf__thread_start(electors->host, "hf-elector", hf__elector_loop_run, electors,
                                &electors->thread);
}

/* Ends a start or a stop. */
static void set_state(struct hf_electors *electors, enum hf__electors_state state) {
        pthread_mutex_lock(&electors->mu);
        assert(electors->state == HF__ELECTORS_STARTING ||
               electors->state == HF__ELECTORS_STOPPING);
        assert(state != HF__ELECTORS_RUNNING || electors->state == HF__ELECTORS_STARTING);
        assert(state != HF__ELECTORS_HUNG || electors->state == HF__ELECTORS_STOPPING);
        electors->state = state;
        pthread_cond_broadcast(&electors->changed);
        pthread_mutex_unlock(&electors->mu);
}

/* After a start that has failed: aborts the controllers that it has begun. If one does not return,
 * a later stop says so, because what it uses must not be freed. */
static void abort_instances(struct hf_electors *electors) {
        struct limit none = begin_limit(electors, 0);

        stop_instances(electors, &none);
        pthread_mutex_lock(&electors->mu);
        for (size_t i = 0; i < electors->n && electors->stop_result == 0; i++)
                electors->stop_result = check_instance(electors->list[i], &electors->stop_status);
        pthread_mutex_unlock(&electors->mu);
}

int hf_electors_start(struct hf_electors *electors, struct hf_status *reterr_status) {
        pthread_mutex_lock(&electors->mu);
        bool is_new = electors->state == HF__ELECTORS_NEW;
        if (is_new)
                electors->state = HF__ELECTORS_STARTING;
        pthread_mutex_unlock(&electors->mu);
        if (!is_new)
                return hf_fail(reterr_status, HF_E_CLOSED,
                               "the electors have already been started or stopped");
        hf__taken_names_done(&electors->names);
        int r = start_electors(electors);
        if (r != 0) {
                abort_instances(electors);
                (void)hf_fail(reterr_status, r, "the electors cannot start: %s", hf_strerror(r));
        }
        set_state(electors, r == 0 ? HF__ELECTORS_RUNNING : HF__ELECTORS_STOPPED);
        return r;
}

/* ---- stopping ---- */

/* Returns how long the slowest elector may take to drain, join and release. A release may take two
 * request timeouts (hf__core_state_limit). */
static hf_nsec stop_bound(const struct hf_electors *electors) {
        hf_nsec longest = 0;
        for (size_t i = 0; i < electors->n; i++) {
                const struct hf_leader_timing *timing = &electors->list[i]->core.config.timing;
                hf_nsec bound =
                        timing->drain_deadline + timing->stop_grace + 2 * timing->request_timeout;
                if (bound > longest)
                        longest = bound;
        }
        return longest;
}

/*
 * Gives the loop the time for a step, STOP_MARGIN, after the limit is over: if the limit has ended
 * shortly after a pause, this thread may come before the loop, whose cores do not know of the pause
 * yet. The time passes in parts. However long another pause is, it costs one of them, and the loop
 * has the others. True: a step has moved the limit. False: the loop is over, or it hangs.
 */
static bool give_moment_locked(struct hf_electors *electors, struct limit *limit) {
        const struct hf_clock *clock = hf_host_clock(electors->host);
        const hf_nsec stop_by = electors->stop_by;

        hf__mutex_assert_held(&electors->mu);
        for (int i = 0; i < MOMENT_PARTS; i++) {
                limit->until.at = hf__nsec_after(hf_now(clock), STOP_MARGIN / MOMENT_PARTS);
                while (!electors->loop_over && hf_now(clock) < limit->until.at)
                        (void)clock->wait(clock->ctx, &electors->changed, &electors->mu,
                                          limit->until.at);
                if (electors->stop_by != stop_by)
                        return true;
        }
        return false;
}

/* Waits for the end of the loop. True: it is over. False: it hangs. The caller passes the same
 * limit to stop_instances afterwards, so that one pause lengthens the stop only once. */
static bool wait_for_loop(struct hf_electors *electors, struct limit *limit) {
        pthread_mutex_lock(&electors->mu);
        while (!electors->loop_over &&
               (await_change_locked(electors, limit) || give_moment_locked(electors, limit)))
                ;
        bool over = electors->loop_over;
        pthread_mutex_unlock(&electors->mu);
        return over;
}

/* Returns the result of the stop, which is the worst result of any elector. A stuck controller is
 * worse than a Lease that was not released, because then no memory may be freed. */
static int collect_result(struct hf_electors *electors, struct hf_status *reterr_status) {
        int r = 0;
        for (size_t i = 0; i < electors->n; i++) {
                struct hf_elector *elector = electors->list[i];
                struct hf_leader_info info = {.size = sizeof info};
                hf_elector_info(elector, &info);
                if (info.state == HF_STUCK)
                        return hf_fail(reterr_status, HF_E_STUCK,
                                       "controller %s of %s did not return within its deadline: "
                                       "its Lease is not released",
                                       info.stuck_controller, elector->label);
                if (check_instance(elector, reterr_status) != 0)
                        return HF_E_STUCK;
                if (!elector->released && r == 0)
                        r = hf_fail(reterr_status, HF_E_TIMEOUT,
                                    "the Lease %s could not be released: it may name this process "
                                    "until it expires",
                                    elector->label);
        }
        return r;
}

/* True: the caller must stop the electors. False: they never ran or were stopped before, and
 * *ret_result is electors->stop_result, which a failed start may have set, too. */
static bool begin_stop(struct hf_electors *electors, int *ret_result,
                       struct hf_status *reterr_status) {
        const struct hf_clock *clock = hf_host_clock(electors->host);
        pthread_mutex_lock(&electors->mu);
        /* This wait needs no time limit, because every start and every stop ends. */
        while (electors->state == HF__ELECTORS_STARTING || electors->state == HF__ELECTORS_STOPPING)
                (void)clock->wait(clock->ctx, &electors->changed, &electors->mu, HF_NSEC_NEVER);
        bool must_stop = electors->state == HF__ELECTORS_RUNNING;
        if (must_stop)
                electors->state = HF__ELECTORS_STOPPING;
        else if (electors->state == HF__ELECTORS_NEW)
                electors->state = HF__ELECTORS_STOPPED;
        *ret_result = electors->stop_result;
        if (*ret_result && reterr_status)
                *reterr_status = electors->stop_status;
        pthread_mutex_unlock(&electors->mu);
        return must_stop;
}

static void end_stop(struct hf_electors *electors, enum hf__electors_state state, int result,
                     const struct hf_status *status) {
        pthread_mutex_lock(&electors->mu);
        assert(electors->state == HF__ELECTORS_STOPPING);
        electors->stop_result = result;
        electors->stop_status = *status;
        pthread_mutex_unlock(&electors->mu);
        set_state(electors, state);
}

int hf_electors_stop(struct hf_electors *electors, struct hf_status *reterr_status) {
        enum hf__electors_state state = HF__ELECTORS_STOPPED;
        struct hf_status status = {0};
        int r;
        if (!begin_stop(electors, &r, reterr_status))
                return r;

        struct limit limit = begin_limit(electors, stop_bound(electors) + STOP_MARGIN);
        assert(!atomic_load(&electors->stop_requested));
        atomic_store(&electors->stop_requested, true);
        hf__electors_wake(electors);
        bool loop_over = wait_for_loop(electors, &limit);
        stop_instances(electors, &limit);
        if (loop_over) {
                (void)hf__thread_join(electors->thread);
                for (size_t i = 0; i < electors->n; i++)
                        hf__next_term_dismiss(electors->list[i]);
                r = collect_result(electors, &status);
        } else {
                state = HF__ELECTORS_HUNG;
                r = hf_fail(&status, HF_E_STUCK,
                            "the elector loop does not end: an on_change callback may be blocked");
        }
        if (r != 0 && reterr_status)
                *reterr_status = status;
        end_stop(electors, state, r, &status);
        return r;
}

/* Whether no thread runs any more that could use the electors' memory. */
static bool has_no_threads(const struct hf_electors *electors) {
        if (electors->state != HF__ELECTORS_NEW && electors->state != HF__ELECTORS_STOPPED)
                return false;
        for (size_t i = 0; i < electors->n; i++) {
                const struct hf_elector *elector = electors->list[i];
                if ((elector->term && !hf__term_is_joined(elector->term)) ||
                    (elector->instance && !hf__term_is_joined(elector->instance)))
                        return false;
        }
        return true;
}

struct hf_electors *hf_electors_free(struct hf_electors *electors) {
        if (!electors)
                return NULL;
        hf__stop_thread_join(electors);
        hf__leader_health_remove(electors);
        if (!has_no_threads(electors))
                return NULL; /* leaked on purpose: a thread may still use the memory */
        for (size_t i = 0; i < electors->n; i++) {
                electors->list[i]->term = hf__term_free(electors->list[i]->term);
                hf__term_writes_give_up(&electors->list[i]->writes);
                electors->list[i]->instance = hf__term_free(electors->list[i]->instance);
                hf__elector_free(electors->list[i]);
        }
        struct hf__message *message = hf__mailbox_take(&electors->mailbox);
        while (message) { /* replies and requests that came after the loop had ended */
                struct hf__message *next = message->next;
                free((struct hf__elector_message *)message);
                message = next;
        }
        hf__taken_names_done(&electors->names);
        hf__op_queues_done(&electors->queues);
        hf__kept_texts_done(&electors->texts);
        hf__lease_watches_free(electors->watches);
        hf__holder_watch_free(electors->holders);
        hf__mailbox_done(&electors->mailbox);
        if (electors->epoll_fd >= 0)
                close(electors->epoll_fd);
        if (electors->timer_fd >= 0)
                close(electors->timer_fd);
        pthread_cond_destroy(&electors->changed);
        pthread_mutex_destroy(&electors->mu);
        free(electors->list);
        while (electors->parts) {
                struct hf__electors_part *part = electors->parts;
                electors->parts = part->next;
                part->free(part);
        }
        free(electors);
        return NULL;
}

/* ---- the hook pair ---- */

static int start_controllers(struct hf_hook_context *context, void *ctx,
                             struct hf_status *reterr_status) {
        if (hf_cancel_fired(hf_hook_shutting_down(context)))
                return hf_fail(reterr_status, HF_E_CANCELED,
                               "shut down before the controllers started");
        return hf_electors_start(ctx, reterr_status);
}

static int stop_controllers(struct hf_hook_context *context, void *ctx,
                            struct hf_status *reterr_status) {
        return hf_electors_stop(ctx, reterr_status);
}

int hf_controllers_install(struct hf_hooks *hooks, struct hf_electors *electors,
                           const char *const *after, size_t n_after,
                           struct hf_status *reterr_status) {
        const struct hf_hook hook = {
                .size = sizeof hook,
                .name = "start-controllers",
                .after = after,
                .n_after = n_after,
                .start = start_controllers,
                .stop = stop_controllers,
                /* hf_electors_stop limits its own duration. Its limits may begin anew after pauses,
                 * so a deadline of the hook could pass before they do. */
                .stop_deadline = HF_NSEC_NEVER,
                .ctx = electors,
        };
        return hf_hooks_add(hooks, &hook, HF_HOOKS_HERE, reterr_status);
}

/* ---- requests to the loop ---- */

/* Sends the loop a request to end the term and release the Lease. successor "" = any standby. If
 * the term ends before the loop reads the message, the core ignores it, unless it leads again. */
static int request_hand_over(struct hf_elector *elector, const char *successor) {
        struct hf_leader_info info = {.size = sizeof info};
        hf_elector_info(elector, &info);
        if (info.state != HF_LEADING)
                return HF_E_NOT_LEADER;
        const struct hf__elector_message message = {.type = HF__EV_HAND_OVER,
                                                    .successor = successor};
        return hf__elector_loop_post(elector, &message);
}

int hf_elector_hand_over(struct hf_elector *elector, const char *identity) {
        return hf__elector_is_identity(identity) ? request_hand_over(elector, identity) : -EINVAL;
}

int hf_elector_step_down(struct hf_elector *elector) { return request_hand_over(elector, ""); }

int hf__elector_hold_back(struct hf_elector *elector, hf_nsec hold_back) {
        const struct hf__elector_message message = {.type = HF__EV_HOLD_BACK,
                                                    .hold_back = hold_back};
        return hf__elector_loop_post(elector, &message);
}

void hf_elector_end_term(struct hf_elector *elector) {
        atomic_store(&elector->end_requested, true);
        hf__elector_wake(elector);
}

void hf__elector_wake(struct hf_elector *elector) {
        struct hf_electors *electors = elector->electors;

        if (!atomic_exchange(&elector->is_flagged, true)) {
                elector->next_flagged = atomic_load(&electors->flagged);
                while (!atomic_compare_exchange_weak(&electors->flagged, &elector->next_flagged,
                                                     elector))
                        ;
        }
        hf__mailbox_wake(&electors->mailbox);
}

uint64_t hf_electors_iterations(struct hf_electors *electors) {
        return atomic_load(&electors->iterations);
}
