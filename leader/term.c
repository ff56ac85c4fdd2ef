/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The running controllers of one term. Each controller has a part of the term (struct hf_term) with
 * a thread and a drain token. The thread waits until the term has begun and the controllers named
 * in `after` have started, then calls run(). If run() fails while the term goes on, it is called
 * again after a growing pause.
 *
 * A standby prepares its next term: to start twenty threads would take longer than the rest of a
 * hand-over. hf__term_begin then only wakes the first thread, and each thread wakes the next one
 * before it begins its own work. So they mostly begin in the order of the controllers. If all were
 * woken at once, the first controller's write would wait for a processor behind all of them.
 *
 * A controller has started when it has said so (hf_term_started) or run() has returned 0. If its
 * is_settled() returns true when the term begins, it counts as started from then on.
 *
 * The states of a term, and of each part in it:
 *
 *      PREPARED --hf__term_begin--> BEGUN
 *         +-------hf__term_free---> DISMISSED: each part returns, and none has run anything
 *
 *      WAITING --begun, all before it have started--> RUNNING --returned 0, or drained--> RETURNED
 *         +------------------drained, or dismissed-------------------------------------->
 *
 * "Before" and "after" speak only of the parts that an `after` member names directly. Each part has
 * two counters:
 *  - n_not_started: the number of parts before it that have not started. The thread that decrements
 *    it to zero fires the part's `begin` token.
 *  - n_after_alive: the number of parts after it that have not returned. In a planned end the part
 *    is drained when this is zero, either by hf__term_fire_drain or by the part that decrements it
 *    to zero.
 *
 * hf__term_fire_drain sets `draining` before it reads the counters, and a part that returns
 * decrements them before it reads `draining`. So at least one of the two threads drains the part.
 * (Each stores first and then reads what the other one stores, so all four accesses must stay
 * sequentially consistent.) A part that has started counts as started for the whole term: if its
 * run() fails and is called again, the parts after it go on.
 *
 * Invariants:
 *  - No controller code runs before the term has begun, and a term begins with all of its threads
 *    or not at all.
 *  - `joined` is reported exactly once, only after a drain or an abort of a term that has begun,
 *    and only when no thread runs controller code any more. n_alive is the number of threads, plus
 *    one for the term itself (the hold) until its first drain or abort. The thread that decrements
 *    n_alive to zero reports.
 *  - An abort reaches all controllers at once, in any order: all drain tokens are children of the
 *    abort token, and each begin token is a child of its part's drain token. A thread that waits
 *    for begin is therefore woken by drain and by abort too.
 *  - The tokens and the parts live until hf__term_free, because other parts refer to them after
 *    their own thread has returned.
 *
 * The owner creates the threads and does not wait for them. It calls hf__term_free only after
 * hf__term_is_joined, or for a term that never began, so the joins there are short.
 */
#include "leader/term.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/thread.h"

#define RESTART_MIN (100 * HF_NSEC_PER_MSEC)
#define RESTART_MAX (30 * HF_NSEC_PER_SEC)

struct hf_term {
        /* immutable once the threads have been created */
        struct hf__term *term;                  /* borrowed; the whole term */
        const struct hf_controller *controller; /* borrowed */
        struct hf_cancel *drain, *begin;        /* owned; begin NULL = no part comes before it */
        struct hf_term **before;                /* borrowed from term->edges; n_before of them */
        size_t n_before;

        /* only the owner's thread */
        pthread_t thread;
        bool has_thread;

        /* any thread */
        atomic_bool started, returned;
        atomic_size_t n_not_started, n_after_alive;
};

struct hf__term {
        /* immutable */
        const struct hf_host *host; /* borrowed */
        struct hf_cancel *abort;    /* owned; NULL = there are no controllers */
        const char *label;          /* borrowed */
        void (*joined)(void *ctx);
        void *ctx;
        struct hf_term *parts; /* owned; one per controller */
        size_t n_parts;
        struct hf_term **edges; /* owned; each part's `before` points into it */

        /* immutable once the term has begun, except that hf__term_take_client clears client */
        struct hf_client *client; /* owned if there is a gate, else borrowed */
        struct hf__gate *gate;    /* borrowed; NULL = HF_EVERY_INSTANCE, or no controllers */
        char acquired_at[40];     /* a resourceVersion: HF__REVISION_MAX of record.h */

        pthread_mutex_t mu; /* initialised if there are controllers, like `changed` */
        pthread_cond_t changed;
        /* guarded by mu, except for the owner's thread, which alone writes it */
        enum { PREPARED, BEGUN, DISMISSED } state;

        /* any thread */
        atomic_bool ending;    /* the first drain or abort has dropped the hold */
        atomic_bool draining;  /* a planned end: a part is drained once no part after it runs */
        atomic_size_t n_alive; /* number of threads, plus one hold */
};

static const struct hf_clock *clock_of(const struct hf__term *term) {
        return hf_host_clock(term->host);
}

/* ---- order ---- */

static void drop_alive(struct hf__term *term) {
        /* Both are read before the decrement, because the owner may free the term right after the
         * decrement. (A thread of the term would be joined first, but drop_hold calls this function
         * on any thread.) */
        void (*joined)(void *) = term->joined;
        void *ctx = term->ctx;
        size_t n_before = atomic_fetch_sub(&term->n_alive, 1);

        assert(n_before > 0);
        if (n_before == 1)
                joined(ctx);
}

void hf_term_started(struct hf_term *part) {
        struct hf__term *term = part->term;
        if (atomic_exchange(&part->started, true))
                return;
        for (size_t i = 0; i < term->n_parts; i++) {
                struct hf_term *after = &term->parts[i];
                for (size_t k = 0; k < after->n_before; k++)
                        if (after->before[k] == part &&
                            atomic_fetch_sub(&after->n_not_started, 1) == 1)
                                hf_cancel_fire(after->begin, HF_CANCEL_STOPPING);
        }
}

/* Called when the part's controller will not run again. In a planned end, drains the parts before
 * it, except those that are also before a part that has not returned. */
static void part_returned(struct hf_term *part) {
        atomic_store(&part->returned, true);
        for (size_t i = 0; i < part->n_before; i++) {
                struct hf_term *before = part->before[i];
                if (atomic_fetch_sub(&before->n_after_alive, 1) == 1 &&
                    atomic_load(&part->term->draining))
                        hf_cancel_fire(before->drain, HF_CANCEL_STOPPING);
        }
}

/* ---- one controller ---- */

static void run_until_drained(struct hf_term *part) {
        const struct hf_controller *controller = part->controller;
        const struct hf_clock *clock = clock_of(part->term);
        hf_nsec pause = RESTART_MIN;
        while (!hf_cancel_fired(part->drain)) {
                hf_nsec began = hf_now(clock);
                int r = controller->run(part, controller->ctx);
                if (r == 0)
                        hf_term_started(part); /* the parts after it need not wait any more */
                if (r == 0 || hf_cancel_fired(part->drain))
                        return;
                if (hf_now(clock) - began >= RESTART_MAX)
                        pause = RESTART_MIN; /* it ran for so long that this is a new failure */
                hf_log(&part->term->host->log, HF_LOG_WARNING, "controller",
                       "%s: controller %s failed (%s), restarting in %lld ms", part->term->label,
                       controller->name, hf_strerror(r), (long long)(pause / HF_NSEC_PER_MSEC));
                if (hf_cancel_wait(part->drain, hf_now(clock) + pause) == HF_E_CANCELED)
                        return;
                pause = pause * 2 > RESTART_MAX ? RESTART_MAX : pause * 2;
        }
}

/* Waits until the owner begins or frees the term, and wakes the next thread that waits. True: it
 * has begun. */
static bool await_begin(struct hf__term *term) {
        pthread_mutex_lock(&term->mu);
        while (term->state == PREPARED)
                pthread_cond_wait(&term->changed, &term->mu);
        bool has_begun = term->state == BEGUN;
        pthread_mutex_unlock(&term->mu);
        pthread_cond_signal(&term->changed);
        return has_begun;
}

/* Wakes the first thread, which wakes the next one (await_begin). Both signal without the lock:
 * otherwise each thread would wake up only to wait for the lock. `changed` still exists then,
 * because the term is freed only after its threads have been joined. */
static void set_state(struct hf__term *term, int state) {
        if (!term->abort) {
                term->state = state;
                return;
        }
        pthread_mutex_lock(&term->mu);
        assert(term->state == PREPARED);
        term->state = state;
        pthread_mutex_unlock(&term->mu);
        pthread_cond_signal(&term->changed);
}

/* The thread of one part. drop_alive must come last: after it the owner may join the thread and
 * free the term. */
static void *part_main(void *ctx) {
        struct hf_term *part = ctx;
        bool has_begun = await_begin(part->term);

        if (has_begun && part->n_before)
                (void)hf_cancel_wait(part->begin, HF_NSEC_NEVER);
        if (has_begun)
                run_until_drained(part);
        part_returned(part);
        drop_alive(part->term);
        return NULL;
}

/* ---- construction ---- */

static void destroy_term(struct hf__term *term) {
        if (term->gate)
                hf__leader_client_release(term->client);
        for (size_t i = 0; i < term->n_parts; i++) {
                hf_cancel_unref(term->parts[i].begin);
                hf_cancel_unref(term->parts[i].drain);
        }
        if (term->abort) {
                pthread_cond_destroy(&term->changed);
                pthread_mutex_destroy(&term->mu);
        }
        hf_cancel_unref(term->abort);
        free(term->edges);
        free(term->parts);
        free(term);
}

static struct hf_term *find_part(struct hf__term *term, const char *name) {
        for (size_t i = 0; i < term->n_parts; i++)
                if (strcmp(term->parts[i].controller->name, name) == 0)
                        return &term->parts[i];
        return NULL;
}

/* Finds the parts that `after` names. They exist, because hf__controller_set_copy refuses unknown
 * names. */
static int link_parts(struct hf__term *term) {
        size_t n_edges = 0;
        for (size_t i = 0; i < term->n_parts; i++)
                for (const char *const *name = term->parts[i].controller->after; name && *name;
                     name++)
                        n_edges++;
        if (n_edges == 0)
                return 0;
        term->edges = calloc(n_edges, sizeof(struct hf_term *));
        if (!term->edges)
                return -ENOMEM;
        struct hf_term **edge = term->edges;
        for (size_t i = 0; i < term->n_parts; i++) {
                struct hf_term *part = &term->parts[i];
                part->before = edge;
                for (const char *const *name = part->controller->after; name && *name; name++) {
                        struct hf_term *before = find_part(term, *name);
                        assert(before);
                        part->before[part->n_before++] = before;
                        before->n_after_alive++;
                }
                part->n_not_started = part->n_before;
                edge += part->n_before;
        }
        return 0;
}

static int make_parts(struct hf__term *term, const struct hf__term_config *config) {
        term->parts = calloc(config->n_controllers, sizeof *term->parts);
        if (!term->parts)
                return -ENOMEM;
        for (size_t i = 0; i < config->n_controllers; i++)
                if (config->controllers[i].runs == config->runs) {
                        struct hf_term *part = &term->parts[term->n_parts++];
                        part->term = term;
                        part->controller = &config->controllers[i];
                }
        int r = link_parts(term);
        for (size_t i = 0; r == 0 && i < term->n_parts; i++) {
                struct hf_term *part = &term->parts[i];
                r = hf_cancel_new(term->abort, clock_of(term), &part->drain);
                if (r == 0 && part->n_before)
                        r = hf_cancel_new(part->drain, clock_of(term), &part->begin);
        }
        return r;
}

static int prepare_parts(struct hf__term *term, const struct hf__term_config *config) {
        int r = hf__mutex_cond_init(&term->mu, &term->changed);

        if (r != 0)
                return r;
        r = hf_cancel_new(NULL, clock_of(term), &term->abort);
        if (r != 0) {
                pthread_cond_destroy(&term->changed);
                pthread_mutex_destroy(&term->mu);
                return r;
        }
        return make_parts(term, config);
}

static int start_threads(struct hf__term *term) {
        int r = 0;

        for (size_t i = 0; i < term->n_parts && r == 0; i++) {
                struct hf_term *part = &term->parts[i];
                char name[16];
                (void)snprintf(name, sizeof name, "hf-%s", part->controller->name);
                r = hf__thread_start(term->host, name, part_main, part, &part->thread);
                part->has_thread = r == 0;
                if (r != 0)
                        hf_log(&term->host->log, HF_LOG_ERROR, "controller",
                               "%s: cannot start the thread of controller %s: %s", term->label,
                               part->controller->name, hf_strerror(r));
        }
        return r;
}

HF__CLEANUP_DEFINE(term_cleanup, struct hf__term *, hf__term_free)

int hf__term_prepare(const struct hf_host *host, const struct hf__term_config *config,
                     struct hf__term **ret_term) {
        HF__CLEANUP(term_cleanup) struct hf__term *term = calloc(1, sizeof *term);
        if (!term)
                return -ENOMEM;
        term->host = host;
        term->label = config->label;
        term->joined = config->joined;
        term->ctx = config->ctx;
        /* There may be thousands of terms without controllers: none needs a token or a client. */
        int r = config->n_controllers > 0 ? prepare_parts(term, config) : 0;
        if (r != 0)
                return r;
        atomic_store(&term->n_alive, term->n_parts + 1);
        r = start_threads(term);
        if (r == 0)
                *ret_term = HF__TAKE(term);
        return r;
}

static int set_client(struct hf__term *term, const struct hf__term_config *config) {
        if (config->n_controllers == 0)
                return 0;
        if (!config->client.gate) {
                term->client = config->client.inner;
                return 0;
        }
        int r = hf__leader_client_new(term->host, &config->client, &term->client);
        term->gate = r == 0 ? config->client.gate : NULL; /* if set, the client is owned */
        return r;
}

int hf__term_begin(struct hf__term *term, const struct hf__term_config *config) {
        assert(term->state == PREPARED && term->n_parts == hf__term_n_threads(config));
        int r = set_client(term, config);
        if (r != 0)
                return r;
        (void)snprintf(term->acquired_at, sizeof term->acquired_at, "%s",
                       config->acquired_at ? config->acquired_at : "");
        /* This comes before the first part runs, so that no part waits for a settled one. */
        for (size_t i = 0; i < term->n_parts; i++) {
                const struct hf_controller *controller = term->parts[i].controller;
                if (controller->is_settled && controller->is_settled(controller->ctx))
                        hf_term_started(&term->parts[i]);
        }
        set_state(term, BEGUN);
        return 0;
}

int hf__term_new(const struct hf_host *host, const struct hf__term_config *config,
                 struct hf__term **ret_term) {
        HF__CLEANUP(term_cleanup) struct hf__term *term = NULL;
        int r = hf__term_prepare(host, config, &term);

        if (r == 0)
                r = hf__term_begin(term, config);
        if (r == 0)
                *ret_term = HF__TAKE(term);
        return r;
}

size_t hf__term_n_threads(const struct hf__term_config *config) {
        size_t n = 0;

        for (size_t i = 0; i < config->n_controllers; i++)
                n += config->controllers[i].runs == config->runs;
        return n;
}

/* ---- ending ---- */

static void drop_hold(struct hf__term *term) {
        if (!atomic_exchange(&term->ending, true))
                drop_alive(term);
}

void hf__term_fire_drain(struct hf__term *term) {
        atomic_store(&term->draining, true);
        for (size_t i = 0; i < term->n_parts; i++)
                if (atomic_load(&term->parts[i].n_after_alive) == 0)
                        hf_cancel_fire(term->parts[i].drain, HF_CANCEL_STOPPING);
        drop_hold(term);
}

void hf__term_fire_abort(struct hf__term *term, enum hf_cancel_reason reason) {
        /* Abort the client first, so that no controller that sees the abort can still write. */
        if (term->gate)
                hf__leader_client_abort(term->client);
        if (term->abort)
                hf_cancel_fire(term->abort, reason);
        drop_hold(term);
}

bool hf__term_is_joined(struct hf__term *term) { return atomic_load(&term->n_alive) == 0; }

const char *hf__term_stuck_name(struct hf__term *term) {
        for (size_t i = 0; i < term->n_parts; i++)
                if (!atomic_load(&term->parts[i].returned))
                        return term->parts[i].controller->name;
        return "";
}

struct hf_client *hf__term_take_client(struct hf__term *term) {
        struct hf_client *client = term->gate ? term->client : NULL;

        assert(hf__term_is_joined(term));
        if (client)
                term->client = NULL;
        return client;
}

struct hf__term *hf__term_free(struct hf__term *term) {
        if (!term)
                return NULL;
        assert(term->state == PREPARED || hf__term_is_joined(term));
        if (term->state == PREPARED)
                set_state(term, DISMISSED);
        for (size_t i = 0; i < term->n_parts; i++)
                if (term->parts[i].has_thread)
                        (void)hf__thread_join(term->parts[i].thread);
        destroy_term(term);
        return NULL;
}

/* ---- for the controllers ---- */

struct hf_cancel *hf_term_drain(struct hf_term *part) {
        return part->drain;
}
struct hf_cancel *hf_term_abort(struct hf_term *part) {
        return part->term->abort;
}
struct hf_client *hf_term_client(struct hf_term *part) {
        return part->term->gate ? part->term->client : NULL;
}
struct hf_client *hf_term_ungated_client(struct hf_term *part) {
        return part->term->gate ? NULL : part->term->client;
}
const struct hf_fence *hf_term_fence(struct hf_term *part) {
        return part->term->gate ? hf__leader_client_fence(part->term->client) : NULL;
}
const char *hf_term_acquired_at(struct hf_term *part) { return part->term->acquired_at; }
const struct hf_host *hf_term_host(struct hf_term *part) { return part->term->host; }

bool hf_term_may_act(struct hf_term *part) {
        struct hf__term *term = part->term;
        if (hf_cancel_fired(term->abort))
                return false;
        return !term->gate || hf__gate_may_act(term->gate, hf_now(clock_of(term)));
}
