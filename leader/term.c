/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of a term. Model: each controller has a thread, which calls run() again, after a growing pause, as long as
 * run() fails and the term goes on. `n_alive` counts these threads and one more, the term's own hold, which the first
 * drain or abort lets go; whoever brings it to zero reports `joined`. So joined comes exactly once, only after an end was
 * asked for, and only when nothing of the work runs any more.
 *
 * The drain token is a child of the abort token: who waits for either may wait for drain.
 *
 * Threads are made on the elector loop, which does not wait for them; they are joined in hf__term_free, when each has
 * made its last step but its exit.
 */
#include "leader/term.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/thread.h"

#define RESTART_MIN (100 * HF_NSEC_PER_MSEC)
#define RESTART_MAX (30 * HF_NSEC_PER_SEC)

struct runner {
        struct hf_term *term;
        const struct hf_controller *controller; /* borrowed */
        pthread_t thread;
        bool made; /* owner only */
        atomic_bool returned;
};

struct hf_term {
        /* immutable */
        const struct hf_host *host;      /* borrowed */
        struct hf_cancel *abort, *drain; /* owned */
        struct hf_client *client;        /* owned when gated, else borrowed */
        struct hf__gate *gate;           /* borrowed; NULL = every instance */
        struct hf_fence fence;
        char acquired_at[40];
        const char *label;
        void (*joined)(void *ctx);
        void *ctx;
        struct runner *runners; /* owned */
        size_t n_runners;

        atomic_bool ending; /* the hold is let go */
        atomic_size_t n_alive;
};

static void let_go(struct hf_term *term) {
        void (*joined)(void *) = term->joined;
        void *ctx = term->ctx;
        /* After the decrement the term may be freed by the loop, but not before this thread has been joined. */
        if (atomic_fetch_sub(&term->n_alive, 1) == 1)
                joined(ctx);
}

static void *runner_main(void *ctx) {
        struct runner *runner = ctx;
        struct hf_term *term = runner->term;
        const struct hf_controller *controller = runner->controller;
        hf_nsec pause = RESTART_MIN;
        const struct hf_clock *clock = hf_host_clock(term->host);
        while (!hf_cancel_fired(term->drain)) {
                hf_nsec began = hf_now(clock);
                int r = controller->run(term, controller->ctx);
                if (r == 0 || hf_cancel_fired(term->drain))
                        break;
                if (hf_now(clock) - began >= RESTART_MAX)
                        pause = RESTART_MIN; /* it ran well for long: this is a new trouble */
                hf_log(&term->host->log, HF_LOG_WARNING, "controller", "%s: controller %s failed (%s), again in %lld ms", term->label,
                       controller->name, hf_strerror(r), (long long)(pause / HF_NSEC_PER_MSEC));
                if (hf_cancel_wait(term->drain, hf_now(clock) + pause) == HF_E_CANCELED)
                        break;
                pause = pause * 2 > RESTART_MAX ? RESTART_MAX : pause * 2;
        }
        atomic_store(&runner->returned, true);
        let_go(term);
        return NULL;
}

static void term_destroy(struct hf_term *term) {
        if (term->gate)
                hf__leader_client_release(term->client);
        hf_cancel_unref(term->drain);
        hf_cancel_unref(term->abort);
        free(term->runners);
        free(term);
}

static int prepare(struct hf_term *term, const struct hf__term_config *config) {
        const struct hf_clock *clock = hf_host_clock(term->host);
        int r = hf_cancel_new(NULL, clock, &term->abort);
        r = r ? r : hf_cancel_new(term->abort, clock, &term->drain);
        if (r != 0)
                return r;
        term->runners = calloc(config->n_controllers ? config->n_controllers : 1, sizeof *term->runners);
        if (!term->runners)
                return -ENOMEM;
        for (size_t i = 0; i < config->n_controllers; i++)
                if (config->controllers[i].class == config->class)
                        term->runners[term->n_runners++] = (struct runner){.term = term, .controller = &config->controllers[i]};
        if (!config->client.gate) {
                term->client = config->client.inner;
                return 0;
        }
        r = hf__leader_client_new(term->host, &config->client, &term->client);
        term->gate = r == 0 ? config->client.gate : NULL; /* with it the client is owned */
        return r;
}

int hf__term_new(const struct hf_host *host, const struct hf__term_config *config, struct hf_term **ret_term) {
        struct hf_term *term = calloc(1, sizeof *term);
        if (!term)
                return -ENOMEM;
        term->host = host;
        term->fence = config->client.fence;
        term->label = config->label;
        term->joined = config->joined;
        term->ctx = config->ctx;
        (void)snprintf(term->acquired_at, sizeof term->acquired_at, "%s", config->acquired_at ? config->acquired_at : "");
        int r = prepare(term, config);
        if (r != 0) {
                term_destroy(term);
                return r;
        }
        atomic_store(&term->n_alive, term->n_runners + 1);
        for (size_t i = 0; i < term->n_runners && r == 0; i++) {
                char name[16];
                (void)snprintf(name, sizeof name, "hf-%s", term->runners[i].controller->name);
                r = hf__thread_start(host, name, runner_main, &term->runners[i], &term->runners[i].thread);
                if (r == 0)
                        term->runners[i].made = true;
                else
                        hf_log(&host->log, HF_LOG_ERROR, "controller", "%s: no thread for controller %s: %s", term->label,
                               term->runners[i].controller->name, hf_strerror(r));
        }
        /* A part of the controllers is no term: it is ended the way any other is. The runners never made are gone at once. */
        for (size_t i = 0; i < term->n_runners; i++)
                if (!term->runners[i].made) {
                        atomic_store(&term->runners[i].returned, true);
                        atomic_fetch_sub(&term->n_alive, 1); /* the hold is still there */
                }
        *ret_term = term;
        return 0;
}

static void let_hold_go(struct hf_term *term) {
        if (!atomic_exchange(&term->ending, true))
                let_go(term);
}

void hf__term_fire_drain(struct hf_term *term) {
        hf_cancel_fire(term->drain, HF_CANCEL_STOPPING);
        let_hold_go(term);
}

void hf__term_fire_abort(struct hf_term *term, enum hf_cancel_reason reason) {
        if (term->gate)
                hf__leader_client_abort(term->client); /* before the controllers hear of it: what they then try is refused */
        hf_cancel_fire(term->abort, reason);
        let_hold_go(term);
}

bool hf__term_is_complete(struct hf_term *term) {
        for (size_t i = 0; i < term->n_runners; i++)
                if (!term->runners[i].made)
                        return false;
        return true;
}

bool hf__term_is_joined(struct hf_term *term) { return atomic_load(&term->n_alive) == 0; }

void hf__term_stuck_name(struct hf_term *term, char *name, size_t max_name) {
        (void)snprintf(name, max_name, "%s", "");
        for (size_t i = 0; i < term->n_runners; i++)
                if (!atomic_load(&term->runners[i].returned)) {
                        (void)snprintf(name, max_name, "%s", term->runners[i].controller->name);
                        return;
                }
}

struct hf_term *hf__term_free(struct hf_term *term) {
        if (!term)
                return NULL;
        for (size_t i = 0; i < term->n_runners; i++)
                if (term->runners[i].made)
                        pthread_join(term->runners[i].thread, NULL);
        term_destroy(term);
        return NULL;
}

struct hf_cancel *hf_term_drain(struct hf_term *term) {
        return term->drain;
}
struct hf_cancel *hf_term_abort(struct hf_term *term) {
        return term->abort;
}
struct hf_client *hf_term_client(struct hf_term *term) {
        return term->client;
}
const struct hf_fence *hf_term_fence(struct hf_term *term) { return term->gate ? &term->fence : NULL; }
const char *hf_term_acquired_at(struct hf_term *term) { return term->acquired_at; }
const struct hf_host *hf_term_host(struct hf_term *term) { return term->host; }

bool hf_term_may_act(struct hf_term *term) {
        if (hf_cancel_fired(term->abort))
                return false;
        return !term->gate || hf__gate_may_act(term->gate, hf_now(hf_host_clock(term->host)));
}
