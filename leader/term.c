/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of a term. Model: each controller has a part of it, a struct hf_term, with a thread and
 * a drain token of its own. The thread waits until all that come before it have started, then calls
 * run() again, after a growing pause, as long as run() fails and the term goes on.
 *
 *      WAITING --all before it started--> RUNNING --returned 0, or drained--> RETURNED
 *         +---------------------drained-------------------------------------->
 *
 * Two counters of each part make the order. `n_not_started` counts those before it that have not
 * started; who brings it to zero fires its `begin`. `n_after_alive` counts those after it that have
 * not returned; once an end is planned, whoever finds it at zero fires its drain: the planner, or
 * the last of those after it. The planner sets `draining` before it reads the counters, and a part
 * that returns counts down before it reads `draining`, so one of the two sees both. A part that has
 * started stays so for the term, also while it is down between two runs: those after it are neither
 * held up nor stopped.
 *
 * `n_alive` counts the threads and one more, the work's own hold, which the first drain or abort
 * lets go; whoever brings it to zero reports `joined`. So joined comes exactly once, only after an
 * end was asked for, and only when nothing of the work runs any more.
 *
 * All drain tokens are children of the abort token, and each begin is a child of its part's drain:
 * an abort reaches everybody at once, in no order, and who waits for a later one of abort, drain,
 * begin wakes for an earlier one too.
 *
 * Threads are made on the elector loop, which does not wait for them; they are joined in
 * hf__term_free, when each has made its last step but its exit. Tokens and parts live until then,
 * so that a part may be told of by others after it has returned.
 */
#include "leader/term.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"

#define RESTART_MIN (100 * HF_NSEC_PER_MSEC)
#define RESTART_MAX (30 * HF_NSEC_PER_SEC)

struct hf_term {
        /* immutable, once the threads are made */
        struct hf__term *work;
        const struct hf_controller *controller; /* borrowed */
        struct hf_cancel *drain, *begin;        /* owned */
        struct hf_term **before;                /* n_before of them; borrowed from work->edges */
        size_t n_before;
        pthread_t thread;
        bool made; /* the owner's only */

        atomic_bool started, returned;
        atomic_size_t n_not_started, n_after_alive;
};

struct hf__term {
        /* immutable */
        const struct hf_host *host; /* borrowed */
        struct hf_cancel *abort;    /* owned */
        struct hf_client *client;   /* owned when gated, else borrowed */
        struct hf__gate *gate;      /* borrowed; NULL = every instance */
        struct hf_fence fence;
        char acquired_at[40];
        const char *label;
        void (*joined)(void *ctx);
        void *ctx;
        struct hf_term *parts; /* owned */
        size_t n_parts;
        struct hf_term **edges; /* owned */

        atomic_bool ending;   /* the hold is let go */
        atomic_bool draining; /* an end is planned: who has nobody after it is drained */
        atomic_size_t n_alive;
};

static const struct hf_clock *clock_of(const struct hf__term *work) {
        return hf_host_clock(work->host);
}

/* ---- order ---- */

static void let_go(struct hf__term *work) {
        void (*joined)(void *) = work->joined;
        void *ctx = work->ctx;
        /* After the decrement the work may be freed by the loop, but not before this thread has
         * been joined. */
        if (atomic_fetch_sub(&work->n_alive, 1) == 1)
                joined(ctx);
}

void hf_term_started(struct hf_term *term) {
        struct hf__term *work = term->work;
        if (atomic_exchange(&term->started, true))
                return;
        for (size_t i = 0; i < work->n_parts; i++) {
                struct hf_term *after = &work->parts[i];
                for (size_t k = 0; k < after->n_before; k++)
                        if (after->before[k] == term &&
                            atomic_fetch_sub(&after->n_not_started, 1) == 1)
                                hf_cancel_fire(after->begin, HF_CANCEL_STOPPING);
        }
}

/* The part's last step but let_go: those before it may be drained, if that was the plan. */
static void part_returned(struct hf_term *term) {
        atomic_store(&term->returned, true);
        for (size_t i = 0; i < term->n_before; i++) {
                struct hf_term *before = term->before[i];
                if (atomic_fetch_sub(&before->n_after_alive, 1) == 1 &&
                    atomic_load(&term->work->draining))
                        hf_cancel_fire(before->drain, HF_CANCEL_STOPPING);
        }
}

/* ---- one controller ---- */

static void run_until_drained(struct hf_term *term) {
        const struct hf_controller *controller = term->controller;
        const struct hf_clock *clock = clock_of(term->work);
        hf_nsec pause = RESTART_MIN;
        while (!hf_cancel_fired(term->drain)) {
                hf_nsec began = hf_now(clock);
                int r = controller->run(term, controller->ctx);
                if (r == 0)
                        hf_term_started(term); /* it has done all it wanted to */
                if (r == 0 || hf_cancel_fired(term->drain))
                        return;
                if (hf_now(clock) - began >= RESTART_MAX)
                        pause = RESTART_MIN; /* it ran well for long: this is a new trouble */
                hf_log(&term->work->host->log, HF_LOG_WARNING, "controller",
                       "%s: controller %s failed (%s), again in %lld ms", term->work->label,
                       controller->name, hf_strerror(r), (long long)(pause / HF_NSEC_PER_MSEC));
                if (hf_cancel_wait(term->drain, hf_now(clock) + pause) == HF_E_CANCELED)
                        return;
                pause = pause * 2 > RESTART_MAX ? RESTART_MAX : pause * 2;
        }
}

static void *part_main(void *ctx) {
        struct hf_term *term = ctx;
        if (term->n_before)
                (void)hf_cancel_wait(term->begin, HF_NSEC_NEVER);
        run_until_drained(term);
        part_returned(term);
        let_go(term->work);
        return NULL;
}

/* ---- making ---- */

static void work_destroy(struct hf__term *work) {
        if (work->gate)
                hf__leader_client_release(work->client);
        for (size_t i = 0; i < work->n_parts; i++) {
                hf_cancel_unref(work->parts[i].begin);
                hf_cancel_unref(work->parts[i].drain);
        }
        hf_cancel_unref(work->abort);
        free(work->edges);
        free(work->parts);
        free(work);
}

static struct hf_term *find_part(struct hf__term *work, const char *name) {
        for (size_t i = 0; i < work->n_parts; i++)
                if (strcmp(work->parts[i].controller->name, name) == 0)
                        return &work->parts[i];
        return NULL;
}

/* Resolves the names in `after`. They are known to exist: whoever registered the controllers was
 * told otherwise. */
static int link_parts(struct hf__term *work) {
        size_t n_edges = 0;
        for (size_t i = 0; i < work->n_parts; i++)
                for (const char *const *name = work->parts[i].controller->after; name && *name;
                     name++)
                        n_edges++;
        if (n_edges == 0)
                return 0;
        work->edges = calloc(n_edges, sizeof(struct hf_term *));
        if (!work->edges)
                return -ENOMEM;
        struct hf_term **edge = work->edges;
        for (size_t i = 0; i < work->n_parts; i++) {
                struct hf_term *part = &work->parts[i];
                part->before = edge;
                for (const char *const *name = part->controller->after; name && *name; name++) {
                        struct hf_term *before = find_part(work, *name);
                        if (!before)
                                return -EINVAL;
                        part->before[part->n_before++] = before;
                        before->n_after_alive++;
                }
                part->n_not_started = part->n_before;
                edge += part->n_before;
        }
        return 0;
}

static int make_parts(struct hf__term *work, const struct hf__term_config *config) {
        work->parts =
                calloc(config->n_controllers ? config->n_controllers : 1, sizeof *work->parts);
        if (!work->parts)
                return -ENOMEM;
        for (size_t i = 0; i < config->n_controllers; i++)
                if (config->controllers[i].class == config->class) {
                        struct hf_term *part = &work->parts[work->n_parts++];
                        part->work = work;
                        part->controller = &config->controllers[i];
                }
        int r = link_parts(work);
        for (size_t i = 0; r == 0 && i < work->n_parts; i++) {
                struct hf_term *part = &work->parts[i];
                r = hf_cancel_new(work->abort, clock_of(work), &part->drain);
                if (r == 0 && part->n_before)
                        r = hf_cancel_new(part->drain, clock_of(work), &part->begin);
        }
        return r;
}

static int prepare(struct hf__term *work, const struct hf__term_config *config) {
        int r = hf_cancel_new(NULL, clock_of(work), &work->abort);
        r = r != 0 ? r : make_parts(work, config);
        if (r != 0)
                return r;
        if (!config->client.gate) {
                work->client = config->client.inner;
                return 0;
        }
        r = hf__leader_client_new(work->host, &config->client, &work->client);
        work->gate = r == 0 ? config->client.gate : NULL; /* with it the client is owned */
        return r;
}

static void make_threads(struct hf__term *work) {
        int r = 0;
        for (size_t i = 0; i < work->n_parts && r == 0; i++) {
                struct hf_term *part = &work->parts[i];
                char name[16];
                (void)snprintf(name, sizeof name, "hf-%s", part->controller->name);
                r = hf__thread_start(work->host, name, part_main, part, &part->thread);
                part->made = r == 0;
                if (r != 0)
                        hf_log(&work->host->log, HF_LOG_ERROR, "controller",
                               "%s: no thread for controller %s: %s", work->label,
                               part->controller->name, hf_strerror(r));
        }
        /* A part of the controllers is no term: it is ended the way any other is. The parts never
         * made are gone at once. */
        for (size_t i = 0; i < work->n_parts; i++)
                if (!work->parts[i].made) {
                        part_returned(&work->parts[i]);
                        atomic_fetch_sub(&work->n_alive, 1); /* the hold is still there */
                }
}

int hf__term_new(const struct hf_host *host, const struct hf__term_config *config,
                 struct hf__term **ret_work) {
        struct hf__term *work = calloc(1, sizeof *work);
        if (!work)
                return -ENOMEM;
        work->host = host;
        work->fence = config->client.fence;
        work->label = config->label;
        work->joined = config->joined;
        work->ctx = config->ctx;
        (void)snprintf(work->acquired_at, sizeof work->acquired_at, "%s",
                       config->acquired_at ? config->acquired_at : "");
        int r = prepare(work, config);
        if (r != 0) {
                work_destroy(work);
                return r;
        }
        atomic_store(&work->n_alive, work->n_parts + 1);
        for (size_t i = 0; i < work->n_parts; i++) {
                const struct hf_controller *controller = work->parts[i].controller;
                if (controller->is_settled && controller->is_settled(controller->ctx))
                        hf_term_started(&work->parts[i]);
        }
        make_threads(work);
        *ret_work = work;
        return 0;
}

/* ---- ending ---- */

static void let_hold_go(struct hf__term *work) {
        if (!atomic_exchange(&work->ending, true))
                let_go(work);
}

void hf__term_fire_drain(struct hf__term *work) {
        atomic_store(&work->draining, true);
        for (size_t i = 0; i < work->n_parts; i++)
                if (atomic_load(&work->parts[i].n_after_alive) == 0)
                        hf_cancel_fire(work->parts[i].drain, HF_CANCEL_STOPPING);
        let_hold_go(work);
}

void hf__term_fire_abort(struct hf__term *work, enum hf_cancel_reason reason) {
        if (work->gate)
                hf__leader_client_abort(work->client); /* before the controllers hear of it: what
                                                          they then try is refused */
        hf_cancel_fire(work->abort, reason);
        let_hold_go(work);
}

bool hf__term_is_complete(struct hf__term *work) {
        for (size_t i = 0; i < work->n_parts; i++)
                if (!work->parts[i].made)
                        return false;
        return true;
}

bool hf__term_is_joined(struct hf__term *work) { return atomic_load(&work->n_alive) == 0; }

void hf__term_stuck_name(struct hf__term *work, char *name, size_t max_name) {
        (void)snprintf(name, max_name, "%s", "");
        for (size_t i = 0; i < work->n_parts; i++)
                if (!atomic_load(&work->parts[i].returned)) {
                        (void)snprintf(name, max_name, "%s", work->parts[i].controller->name);
                        return;
                }
}

struct hf__term *hf__term_free(struct hf__term *work) {
        if (!work)
                return NULL;
        for (size_t i = 0; i < work->n_parts; i++)
                if (work->parts[i].made)
                        pthread_join(work->parts[i].thread, NULL);
        work_destroy(work);
        return NULL;
}

/* ---- what a controller may ask ---- */

struct hf_cancel *hf_term_drain(struct hf_term *term) {
        return term->drain;
}
struct hf_cancel *hf_term_abort(struct hf_term *term) {
        return term->work->abort;
}
struct hf_client *hf_term_client(struct hf_term *term) {
        return term->work->client;
}
const struct hf_fence *hf_term_fence(struct hf_term *term) {
        return term->work->gate ? &term->work->fence : NULL;
}
const char *hf_term_acquired_at(struct hf_term *term) { return term->work->acquired_at; }
const struct hf_host *hf_term_host(struct hf_term *term) { return term->work->host; }

bool hf_term_may_act(struct hf_term *term) {
        struct hf__term *work = term->work;
        if (hf_cancel_fired(work->abort))
                return false;
        return !work->gate || hf__gate_may_act(work->gate, hf_now(clock_of(work)));
}
