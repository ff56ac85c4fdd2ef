/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controllers of one term, some of which depend on others (`after`) and some of which are
 * settled. The term is prepared, and then begins or is freed. It ends at any moment by a drain, an
 * abort or both.
 *
 * Promised: no controller runs before the term begins, and none of a term that never does. A
 * controller begins when those on which it depends have started. In a drain it is
 * drained when those that depend on it have returned. An abort reaches all controllers. `joined` is
 * called once, after a drain or an abort, when no controller runs any more. Then the term can be
 * freed at once.
 */
#include <string.h>

#include <holdfast/error.h>
#include <holdfast/leader.h>

#include "leader/term.h"
#include "threads.h"

enum { MAX_PARTS = 4 };

static struct {
        struct hf__term *term;
        size_t n;
        struct hf_controller controllers[MAX_PARTS];
        struct part {
                bool after[MAX_PARTS]; /* the parts on which this one depends */
                const char *names[MAX_PARTS + 1];
                int n_failures; /* further runs that fail */
                bool is_settled, reports, has_started;
                bool is_over; /* it must not run any more */
                int n_running;
        } parts[MAX_PARTS];
        bool has_begun, is_draining, is_aborted; /* has been requested */
        int n_joined;
        pthread_mutex_t mu;
        pthread_cond_t joined; /* n_joined has changed */
} c = {.mu = PTHREAD_MUTEX_INITIALIZER, .joined = PTHREAD_COND_INITIALIZER};

static const char *const names[MAX_PARTS] = {"0", "1", "2", "3"};

static void check_order(const struct part *part) {
        for (size_t i = 0; i < c.n; i++)
                BATON_CHECK(!part->after[i] || c.parts[i].has_started);
}

/* Checks that the controllers that depend on this one have returned, unless the term is aborted:
 * only a drain has an order. */
static void check_drain(const struct part *part) {
        BATON_CHECK(c.is_draining || c.is_aborted);
        for (size_t i = 0; i < c.n && !c.is_aborted; i++)
                if (c.parts[i].after[part - c.parts]) {
                        BATON_CHECK(c.parts[i].n_running == 0);
                        c.parts[i].is_over = true;
                }
}

static int run_part(struct hf_term *term, struct part *part) {
        if (part->reports) {
                part->has_started = true;
                hf_term_started(term);
        }
        if (part->n_failures > 0) {
                part->n_failures--;
                return HF_E_UNAVAILABLE;
        }
        if (!part->reports && baton_random(2) == 0) {
                part->has_started = true; /* by its return */
                return 0;
        }
        BATON_CHECK(hf_cancel_wait(hf_term_drain(term), HF_NSEC_NEVER) == HF_E_CANCELED);
        check_drain(part);
        return 0;
}

static int run(struct hf_term *term, void *ctx) {
        struct part *part = ctx;

        BATON_CHECK(c.has_begun && c.n_joined == 0 && !part->is_over && part->n_running++ == 0);
        check_order(part);
        int r = run_part(term, part);
        part->n_running--;
        return r;
}

static bool is_settled(void *ctx) {
        struct part *part = ctx;

        part->has_started = part->is_settled;
        return part->is_settled;
}

static void on_joined(void *ctx) {
        BATON_CHECK(c.is_draining || c.is_aborted);
        for (size_t i = 0; i < c.n; i++)
                BATON_CHECK(c.parts[i].n_running == 0);
        pthread_mutex_lock(&c.mu);
        c.n_joined++;
        pthread_cond_signal(&c.joined);
        pthread_mutex_unlock(&c.mu);
}

static void *drain(void *ctx) {
        if (baton_random(2) == 0)
                scenario_sleep((hf_nsec)baton_random(3) * HF_NSEC_PER_SEC);
        c.is_draining = true;
        hf__term_fire_drain(c.term);
        return NULL;
}

static void *abort_all(void *ctx) {
        if (baton_random(2) == 0)
                scenario_sleep((hf_nsec)baton_random(3) * HF_NSEC_PER_SEC);
        c.is_aborted = true;
        hf__term_fire_abort(c.term, HF_CANCEL_LOST);
        return NULL;
}

static void make_part(size_t i) {
        struct part *part = &c.parts[i];
        size_t n_after = 0;

        memset(part, 0, sizeof *part);
        part->is_settled = baton_random(4) == 0;
        part->reports = baton_random(2) == 0;
        part->n_failures = baton_random(3) == 0;
        for (size_t k = 0; k < i; k++)
                if (baton_random(2) == 0) {
                        part->after[k] = true;
                        part->names[n_after++] = names[k];
                }
        c.controllers[i] = (struct hf_controller){.size = sizeof(struct hf_controller),
                                                  .name = names[i],
                                                  .runs = HF_EVERY_INSTANCE,
                                                  .run = run,
                                                  .is_settled = is_settled,
                                                  .ctx = part,
                                                  .after = part->names,
                                                  .n_after = n_after};
}

static void end_term(void) {
        pthread_t enders[2];
        uint64_t how = baton_random(3);

        enders[0] = scenario_thread("ends", how == 0 ? abort_all : drain, NULL);
        enders[1] = scenario_thread("ends-too", how < 2 ? abort_all : drain, NULL);
        pthread_mutex_lock(&c.mu);
        while (c.n_joined == 0)
                pthread_cond_wait(&c.joined, &c.mu);
        pthread_mutex_unlock(&c.mu);
        BATON_CHECK(hf__term_is_joined(c.term));
        /* Joined first, because these threads may still be in the functions that end the term. */
        (void)hf__thread_join(enders[0]);
        (void)hf__thread_join(enders[1]);
        BATON_CHECK(c.n_joined == 1);
}

void controller_order(void) {
        c.n = 1 + (size_t)baton_random(MAX_PARTS);
        c.has_begun = c.is_draining = c.is_aborted = false;
        c.n_joined = 0;
        for (size_t i = 0; i < c.n; i++)
                make_part(i);
        const struct hf__term_config config = {.controllers = c.controllers,
                                               .n_controllers = c.n,
                                               .runs = HF_EVERY_INSTANCE,
                                               .label = "ns/name",
                                               .joined = on_joined};
        BATON_CHECK(hf__term_prepare(&scenario_host, &config, &c.term) == 0);
        if (baton_random(2) == 0)
                scenario_sleep(HF_NSEC_PER_SEC); /* until all threads wait */
        if (baton_random(8) > 0) {
                c.has_begun = true;
                BATON_CHECK(hf__term_begin(c.term, &config) == 0);
                end_term();
        }
        hf__term_free(c.term);
        BATON_CHECK(c.n_joined == c.has_begun);
}
