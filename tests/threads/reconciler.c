/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reconciler in a term, with up to three workers, over an informer: objects that change,
 * reconciles that fail or ask to be called again, idle times after which workers leave, and the end
 * of the term by a drain or an abort at any moment.
 *
 * Promised: a key is with one worker at a time, and no more workers than allowed run; the last
 * version of each object is reconciled, and so is a key that failed or asked for another call;
 * while one worker is busy another takes the next key, but no thread is started for a key that is
 * done soon; without keys only the calling thread is left, after a while; an event for which there
 * is no memory is mapped again, not too often; after the end of the term nothing is reconciled.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>
#include <holdfast/informer.h>
#include <holdfast/reconciler.h>

#include "fake_api_client.h"
#include "leader/term.h"
#include "threads.h"

enum { N_KEYS = 3 };

static struct {
        struct fake_api *api;
        struct fake_api_client *client;
        struct hf_informer *informer;
        struct hf__term *term;
        unsigned n_workers, n_threads; /* threads: without further workers */
        /* by key */
        bool has_key[N_KEYS], is_due[N_KEYS]; /* a worker has it; it must be reconciled again */
        int written[N_KEYS], seen[N_KEYS];    /* versions */
        unsigned n_running;
        bool is_calm;             /* nothing fails any more */
        bool must_wait, was_done; /* key 0 waits for key 1 */
        unsigned n_shortages;     /* so often there is no memory for an event */
        bool is_aborted, is_over;
        pthread_mutex_t mu;
        pthread_cond_t changed; /* was_done or is_over */
} c = {.mu = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void set(bool *flag) {
        pthread_mutex_lock(&c.mu);
        *flag = true;
        pthread_cond_broadcast(&c.changed);
        pthread_mutex_unlock(&c.mu);
}

static void await(const bool *flag) {
        pthread_mutex_lock(&c.mu);
        while (!*flag)
                pthread_cond_wait(&c.changed, &c.mu);
        pthread_mutex_unlock(&c.mu);
}

/* ---- the work ---- */

static int version_in_cache(const char *name) {
        char *object = NULL;
        int version = 0;

        if (hf_informer_get(c.informer, "ns", name, &object, NULL) == 0) {
                const char *v = strstr(object, "\"v\":\"");
                BATON_CHECK(v);
                version = atoi(v + 5);
        }
        free(object);
        return version;
}

static int reconcile(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again) {
        int k = key[3] - 'a', r = 0;

        BATON_CHECK(!c.has_key[k] && !c.is_over);
        c.has_key[k] = true;
        c.n_running++;
        BATON_CHECK(c.n_running <= c.n_workers);
        c.is_due[k] = false;
        c.seen[k] = version_in_cache(key + 3);
        baton_point();
        if (!c.is_calm && baton_random(4) == 0)
                scenario_sleep(HF_NSEC_PER_SEC);
        if (!c.is_calm && baton_random(4) == 0)
                r = HF_E_UNAVAILABLE;
        else if (!c.is_calm && baton_random(4) == 0)
                *ret_again = HF_NSEC_PER_SEC;
        if (c.must_wait && k == 0)
                await(&c.was_done);
        if (c.must_wait && k == 1)
                set(&c.was_done);
        c.is_due[k] = c.is_due[k] || r != 0 || *ret_again > 0;
        c.n_running--;
        c.has_key[k] = false;
        return r;
}

static int map_key(void *ctx, struct hf_workqueue *queue, enum hf_event_type type, const char *ns,
                   const char *name, const char *object, size_t n) {
        char key[HF_KEY_MAX];

        if (c.n_shortages > 0) {
                c.n_shortages--;
                return -ENOMEM;
        }
        BATON_CHECK(hf_key_make(key, ns, name) == 0);
        return hf_workqueue_add(queue, key);
}

static int run_reconciler(struct hf_term *term, void *ctx) {
        const struct hf_reconciler_source source = {.size = sizeof source,
                                                    .informer = c.informer,
                                                    .map = map_key};
        const struct hf_reconciler reconciler = {.size = sizeof reconciler,
                                                 .name = "things",
                                                 .sources = &source,
                                                 .n_sources = 1,
                                                 .n_workers = c.n_workers,
                                                 .reconcile = reconcile};

        return hf_reconciler_run(&reconciler, term);
}

static void put(int k) {
        char value[16], name[2] = {(char)('a' + k), '\0'};

        (void)snprintf(value, sizeof value, "%d", ++c.written[k]);
        (void)fake_api_put_thing(c.api, "ns", name, value);
}

static void *write_some(void *ctx) {
        for (uint64_t left = baton_random(6); left > 0; left--) {
                put((int)baton_random(N_KEYS));
                if (baton_random(3) == 0)
                        scenario_sleep((hf_nsec)baton_random(4) * HF_NSEC_PER_SEC);
        }
        return NULL;
}

/* ---- what must hold when nothing fails ---- */

static void check_all_is_reconciled(void) {
        scenario_sleep(1000 * HF_NSEC_PER_SEC); /* the longest retry comes earlier */
        for (int k = 0; k < N_KEYS; k++)
                BATON_CHECK(c.seen[k] == c.written[k] && !c.is_due[k]);
}

/* The other worker is started when the first one has been busy for a moment, and it stays for a
 * while. */
static void check_another_worker_helps(void) {
        c.must_wait = true;
        put(0);
        put(1);
        scenario_sleep(HF_NSEC_PER_MSEC);
        BATON_CHECK(!c.was_done);
        scenario_sleep(10 * HF_NSEC_PER_MSEC);
        BATON_CHECK(c.was_done);
        c.must_wait = false;
        scenario_sleep(HF_NSEC_PER_SEC);
        BATON_CHECK(baton_n_threads() > c.n_threads);
        scenario_sleep(10 * HF_NSEC_PER_SEC);
        BATON_CHECK(baton_n_threads() == c.n_threads);
}

static void check_an_event_waits_for_memory(void) {
        c.n_shortages = 3;
        put(2);
        scenario_sleep(50 * HF_NSEC_PER_MSEC);
        BATON_CHECK(c.n_shortages == 2);
        scenario_sleep(450 * HF_NSEC_PER_MSEC);
        BATON_CHECK(c.seen[2] == c.written[2]);
}

static void be_calm(void) {
        baton_be_quick();
        c.is_calm = true;
        check_all_is_reconciled();
        BATON_CHECK(baton_n_threads() == c.n_threads);
        if (c.n_workers > 1)
                check_another_worker_helps();
        check_an_event_waits_for_memory();
        check_all_is_reconciled();
        BATON_CHECK(baton_n_threads() == c.n_threads);
}

/* ---- the scenario ---- */

static void on_joined(void *ctx) {
        BATON_CHECK(c.n_running == 0);
        set(&c.is_over);
}

static void begin(void) {
        static const struct hf_controller controller = {.size = sizeof controller,
                                                        .name = "things",
                                                        .runs = HF_EVERY_INSTANCE,
                                                        .run = run_reconciler};
        const struct hf__term_config config = {.controllers = &controller,
                                               .n_controllers = 1,
                                               .runs = HF_EVERY_INSTANCE,
                                               .label = "ns/name",
                                               .joined = on_joined};
        const struct hf_resource things = {"", "v1", "things"};

        c.api = fake_api_new();
        c.client = fake_api_client_new(c.api);
        c.n_workers = 1 + (unsigned)baton_random(3);
        for (uint64_t left = baton_random(4); left > 0; left--)
                put((int)baton_random(N_KEYS));
        const struct hf_informer_config informer = {.size = sizeof informer,
                                                    .client = &c.client->base,
                                                    .resource = things,
                                                    .one_revision = true};
        BATON_CHECK(hf_informer_new(&scenario_host, &informer, &c.informer) == 0);
        BATON_CHECK(hf_informer_start(c.informer) == 0);
        c.n_threads = baton_n_threads() + 1; /* the controller's */
        BATON_CHECK(hf__term_new(&scenario_host, &config, &c.term) == 0);
}

static void end_term(void) {
        if (baton_random(2) == 0) {
                hf__term_fire_drain(c.term);
        } else {
                c.is_aborted = true;
                hf__term_fire_abort(c.term, HF_CANCEL_LOST);
        }
        await(&c.is_over);
        if (!c.is_aborted)
                for (int k = 0; k < N_KEYS; k++)
                        BATON_CHECK(!c.has_key[k]);
        c.term = hf__term_free(c.term);
}

void reconciler_workers(void) {
        memset(c.has_key, 0, sizeof c.has_key);
        memset(c.is_due, 0, sizeof c.is_due);
        memset(c.written, 0, sizeof c.written);
        memset(c.seen, 0, sizeof c.seen);
        c.n_running = 0;
        c.is_calm = c.must_wait = c.was_done = c.is_aborted = c.is_over = false;
        begin();
        pthread_t writer = scenario_thread("writer", write_some, NULL);
        if (baton_random(4) == 0)
                end_term();
        (void)hf__thread_join(writer);
        if (c.term)
                be_calm();
        if (c.term)
                end_term();
        baton_be_quick();
        c.informer = hf_informer_free(c.informer);
        hf_client_free(&c.client->base);
        fake_api_free(c.api);
}
