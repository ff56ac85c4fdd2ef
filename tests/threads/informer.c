/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An informer over an API server in memory, which fails at times, and its end at any moment: during
 * a list, a watch, a backoff. It has a thread of its own, or shares one with an informer that
 * begins and ends beside it. In some schedules the server's thread delays the wakes of others.
 *
 * Promised: the end joins the thread and leaves no request or watch open; a handler is not called
 * after its removal; a wait that succeeds has seen everything that was written before; a wait whose
 * token fires ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>
#include <holdfast/informer.h>

#include "fake_api_client.h"
#include "threads.h"

static struct {
        struct fake_api *api;
        struct fake_api_client *client;
        struct hf_informer_thread *thread; /* NULL = the informer has its own */
        struct hf_informer *informer;
        struct hf_cancel *token; /* of the waits */
        bool is_fired;
} n;

/* ---- a handler ---- */

struct handled {
        bool is_removed;
        int n_running;
};

static void handle(void *ctx, enum hf_event_type type, const char *ns, const char *name,
                   const char *object, size_t n_object) {
        struct handled *handled = ctx;

        BATON_CHECK(!handled->is_removed);
        handled->n_running++;
        baton_point();
        handled->n_running--;
}

static void *add_and_remove(void *ctx) {
        struct handled *handled = calloc(1, sizeof *handled);
        struct hf_informer_handler *handler;

        BATON_CHECK(hf_informer_add_handler(n.informer, handle, handled, &handler) == 0);
        if (baton_random(2) == 0)
                scenario_sleep(HF_NSEC_PER_SEC);
        hf_informer_remove_handler(n.informer, handler);
        BATON_CHECK(handled->n_running == 0);
        handled->is_removed = true;
        baton_point();
        free(handled);
        return NULL;
}

/* ---- writes and waits ---- */

static void *write_some(void *ctx) {
        for (uint64_t left = baton_random(4); left > 0; left--) {
                (void)fake_api_put_thing(n.api, "ns", baton_random(2) == 0 ? "a" : "b", "1");
                if (baton_random(4) == 0)
                        fake_api_compact(n.api);
                if (baton_random(4) == 0)
                        fake_api_end_watches(n.api, HF_E_GONE, NULL);
        }
        return NULL;
}

/* Writes an object and waits until the informer has it. */
static void *write_and_wait(void *ctx) {
        char revision[24], *object;

        (void)snprintf(revision, sizeof revision, "%llu",
                       (unsigned long long)fake_api_put_thing(n.api, "ns", "mine", "1"));
        int r = hf_informer_wait(n.informer, revision, n.token);
        BATON_CHECK(r == 0 || (r == HF_E_CANCELED && n.is_fired));
        if (r == 0) {
                BATON_CHECK(hf_informer_get(n.informer, "ns", "mine", &object, NULL) == 0);
                free(object);
        }
        return NULL;
}

static void *fire(void *ctx) {
        if (baton_random(2) == 0)
                scenario_sleep(HF_NSEC_PER_SEC);
        n.is_fired = true;
        hf_cancel_fire(n.token, HF_CANCEL_STOPPING);
        return NULL;
}

/* ---- the other informer of the thread ---- */

static struct hf_informer *start_informer(void) {
        const struct hf_resource things = {"", "v1", "things"};
        const struct hf_informer_config config = {.size = sizeof config,
                                                  .client = &n.client->base,
                                                  .resource = things,
                                                  .one_revision = baton_random(2) == 0,
                                                  .resync = baton_random(4) == 0 ? HF_NSEC_PER_SEC
                                                                                 : 0,
                                                  .thread = n.thread};
        struct hf_informer *informer;

        BATON_CHECK(hf_informer_new(&scenario_host, &config, &informer) == 0);
        BATON_CHECK(hf_informer_start(informer) == 0);
        return informer;
}

static void *begin_and_end(void *ctx) {
        for (uint64_t left = 1 + baton_random(2); left > 0; left--) {
                struct handled handled = {0};
                struct hf_informer_handler *handler;
                struct hf_informer *informer = start_informer();

                BATON_CHECK(hf_informer_add_handler(informer, handle, &handled, &handler) == 0);
                if (baton_random(2) == 0)
                        scenario_sleep(HF_NSEC_PER_SEC);
                hf_informer_free(informer);
                BATON_CHECK(handled.n_running == 0);
        }
        return NULL;
}

/* ---- the scenarios ---- */

static void begin(bool shares) {
        memset(&n, 0, sizeof n);
        n.api = fake_api_new();
        n.client = fake_api_client_new(n.api);
        if (baton_random(4) == 0)
                fake_api_set_page(n.api, 1);
        for (uint64_t left = baton_random(3); left > 0; left--)
                (void)fake_api_put_thing(n.api, "ns", left == 1 ? "x" : "y", "1");
        if (baton_random(3) == 0)
                fake_api_client_refuse(n.client, HF_E_UNAVAILABLE, 1 + (unsigned)baton_random(2));
        if (baton_random(4) == 0)
                fake_api_fail_list(n.api, 1 + (unsigned)baton_random(2), HF_E_GONE);
        if (baton_random(2) == 0)
                fake_api_delay_wakes(n.api);
        if (shares)
                BATON_CHECK(hf_informer_thread_new(&scenario_host, &n.thread) == 0);
        BATON_CHECK(hf_cancel_new(NULL, NULL, &n.token) == 0);
        n.informer = start_informer();
}

static void run(bool shares) {
        pthread_t threads[4], other;
        unsigned n_threads = 0;

        begin(shares);
        if (shares)
                other = scenario_thread("other", begin_and_end, NULL);
        /* No thread may be in a function of the informer when it is freed. Writes may go on. */
        pthread_t writer = scenario_thread("writer", write_some, NULL);
        if (baton_random(2) == 0)
                threads[n_threads++] = scenario_thread("handler", add_and_remove, NULL);
        if (baton_random(2) == 0)
                threads[n_threads++] = scenario_thread("waiter", write_and_wait, NULL);
        if (baton_random(2) == 0)
                threads[n_threads++] = scenario_thread("fires", fire, NULL);
        while (n_threads > 0)
                (void)hf__thread_join(threads[--n_threads]);
        if (baton_random(4) == 0)
                scenario_sleep(HF_NSEC_PER_SEC);
        n.informer = hf_informer_free(n.informer);
        if (shares) {
                (void)hf__thread_join(other);
                n.thread = hf_informer_thread_free(n.thread);
        }
        (void)hf__thread_join(writer);
        baton_be_quick();
        hf_client_free(&n.client->base);
        fake_api_free(n.api);
        hf_cancel_unref(n.token);
}

void informer_end(void) { run(false); }
void informers_share(void) { run(true); }
