/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two electors that contend for one Lease at an API server in memory: they start and stop at any
 * moment, and hand over, step down and lose the Lease while requests fail or hang.
 *
 * Promised: at most one may act at any time, by its gate; no two terms of a process overlap; no
 * write is committed under a Lease that another holds; a stop waits for a start, ends all that runs
 * and releases the Lease, and a second one returns the same. In schedules in which time passes only
 * when nothing can run: controllers of the two never run at the same time, a stop without faults
 * takes no time, and in the end one elector leads.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>
#include <holdfast/leader.h>

#include "fake_api_client.h"
#include "leader/electors.h"
#include "threads.h"

#define KEY "leases/kube-system/lead"

enum { N = 2 };

static struct {
        struct fake_api *api;
        bool is_unfenced, has_faults, is_slow;
        struct participant {
                const char *identity;
                struct fake_api_client *client;
                struct hf_electors *electors;
                struct hf_elector *elector;
                int n_running, n_local; /* controllers */
                bool is_stopped;        /* a stop has returned */
                int stop_results[2];
                bool is_polled;
                int n_done; /* calls after a polled stop */
        } list[N];
} e;

static hf_nsec now(void) { return hf_now(hf_clock_system()); }

/* ---- what is checked while they run ---- */

/* Reads all gates at one moment, because no other thread runs meanwhile. */
static void check_gates(void) {
        int n_open = 0, n_running = 0;

        for (int i = 0; i < N; i++) {
                struct participant *p = &e.list[i];
                n_open += p->elector && atomic_load(&p->elector->gate.valid_until) > now();
                n_running += p->n_running;
        }
        BATON_CHECK(n_open <= 1);
        BATON_CHECK(e.is_slow || n_running <= 1);
}

static void write_once(struct hf_term *term) {
        const char *body = "{\"metadata\":{\"name\":\"a\"}}";
        struct hf_request request = {.size = sizeof request,
                                     .verb = HF_VERB_UPDATE,
                                     .resource = {"", "v1", "configmaps"},
                                     .ns = "default",
                                     .name = "a",
                                     .body = body,
                                     .n_body = strlen(body)};

        (void)hf_client_do(hf_term_client(term), &request, hf_term_abort(term), NULL, NULL, NULL);
}

/* The controller of the leader: writes now and then until it is drained. */
static int work(struct hf_term *term, void *ctx) {
        struct participant *p = ctx;

        BATON_CHECK(!p->is_stopped && p->n_running++ == 0);
        check_gates();
        while (hf_cancel_wait(hf_term_drain(term),
                              now() + (hf_nsec)(1 + baton_random(3)) * HF_NSEC_PER_SEC) ==
               HF_E_TIMEOUT) {
                write_once(term);
                check_gates();
        }
        baton_point();
        p->n_running--;
        return 0;
}

/* The controller of every instance. */
static int work_always(struct hf_term *term, void *ctx) {
        struct participant *p = ctx;

        BATON_CHECK(!p->is_stopped && p->n_local++ == 0);
        (void)hf_cancel_wait(hf_term_drain(term), HF_NSEC_NEVER);
        p->n_local--;
        return 0;
}

static void on_change(void *ctx, const struct hf_leader_info *info) { check_gates(); }

/* ---- the participants ---- */

static void make_participant(struct participant *p, const char *identity) {
        const struct hf_controller controllers[] = {
                {.size = sizeof(struct hf_controller),
                 .name = "worker",
                 .runs = HF_LEADER_ONLY,
                 .run = work,
                 .ctx = p},
                {.size = sizeof(struct hf_controller),
                 .name = "local",
                 .runs = HF_EVERY_INSTANCE,
                 .run = work_always,
                 .ctx = p},
        };
        p->identity = identity;
        p->client = fake_api_client_new(e.api);
        p->client->ignores_fences = e.is_unfenced;
        const struct hf_elector_config config = {.size = sizeof config,
                                                 .ns = "kube-system",
                                                 .name = "lead",
                                                 .identity = identity,
                                                 .client = &p->client->base,
                                                 .controllers = controllers,
                                                 .n_controllers = 2,
                                                 .unfenced = e.is_unfenced,
                                                 .on_change = on_change};
        BATON_CHECK(hf_electors_new(&scenario_host, &p->electors) == 0);
        BATON_CHECK(hf_electors_add(p->electors, &config, &p->elector, NULL) == 0);
}

static void begin(void) {
        memset(&e, 0, sizeof e);
        e.api = fake_api_new();
        e.is_slow = baton_is_slow();
        e.is_unfenced = baton_random(4) == 0;
        for (int i = 0; i < N; i++)
                make_participant(&e.list[i], i == 0 ? "a" : "b");
        (void)fake_api_put(e.api, "configmaps/default/a", "{\"metadata\":{\"name\":\"a\"}}");
}

static bool holds_lease(const struct participant *p) {
        char holder[64], *lease = fake_api_get(e.api, KEY);

        (void)snprintf(holder, sizeof holder, "\"holderIdentity\":\"%s\"", p->identity);
        bool holds = lease && strstr(lease, holder);
        free(lease);
        return holds;
}

/* A fenced write must name the holder that the Lease had. */
static void check_commits(void) {
        const struct fake_store *store = &e.api->store;
        const char *holder = "";

        for (size_t i = 0; i < store->n_commits; i++) {
                const struct fake_commit *commit = &store->commits[i];
                if (strcmp(commit->key, KEY) == 0)
                        holder = commit->holder;
                BATON_CHECK(!commit->fence_term || strcmp(commit->fence_identity, holder) == 0);
        }
}

/* In a slow schedule a controller may have been too slow for the stop. It ends soon all the same,
 * and then the memory can be freed. */
static void end(void) {
        for (int i = 0; i < N; i++) {
                struct participant *p = &e.list[i];
                while ((p->elector->term && !hf__term_is_joined(p->elector->term)) ||
                       (p->elector->instance && !hf__term_is_joined(p->elector->instance)))
                        scenario_sleep(HF_NSEC_PER_SEC);
                hf_electors_free(p->electors);
                BATON_CHECK(p->n_done == p->is_polled);
                hf_client_free(&p->client->base);
        }
        check_commits();
        fake_api_free(e.api);
}

/* ---- starts and stops ---- */

static void *start(void *ctx) {
        struct participant *p = ctx;
        bool was_stopped = p->is_stopped;
        int r = hf_electors_start(p->electors, NULL);

        BATON_CHECK(r == 0 || r == HF_E_CLOSED);
        BATON_CHECK(!was_stopped || r == HF_E_CLOSED);
        return NULL;
}

static int stop(struct participant *p) {
        hf_nsec began = now();
        bool is_quick = !e.is_slow && !e.has_faults;
        /* In a slow schedule the loop itself could be too slow for the stop, which would not join
         * it. */
        baton_be_quick();
        int r = hf_electors_stop(p->electors, NULL);

        p->is_stopped = true;
        BATON_CHECK(r == 0 || (r == HF_E_TIMEOUT && !is_quick) || (r == HF_E_STUCK && e.is_slow));
        BATON_CHECK(r == HF_E_STUCK || (p->n_running == 0 && p->n_local == 0));
        BATON_CHECK(!is_quick || (now() == began && !holds_lease(p)));
        return r;
}

static void sleep_a_while(void) {
        static const hf_nsec longest[] = {0, HF_NSEC_PER_SEC, 30 * HF_NSEC_PER_SEC};
        hf_nsec most = longest[baton_random(3)];

        if (most > 0)
                scenario_sleep((hf_nsec)baton_random((uint64_t)most));
}

static void *stop_first(void *ctx) {
        struct participant *p = ctx;

        sleep_a_while();
        p->stop_results[0] = stop(p);
        return NULL;
}

static void on_stopped(void *ctx, int result, const struct hf_status *status) {
        struct participant *p = ctx;

        BATON_CHECK(p->n_done++ == 0);
        BATON_CHECK(!p->is_polled || result == p->stop_results[1]);
}

/* Stops as an event loop does: begins the stop and looks whether it is over. */
static int stop_by_polling(struct participant *p) {
        int r;

        baton_be_quick();
        BATON_CHECK(hf_electors_stop_begin(p->electors, NULL, on_stopped, p) == 0);
        while ((r = hf_electors_stop_poll(p->electors, NULL)) == HF_E_BUSY)
                scenario_sleep(HF_NSEC_PER_MSEC);
        p->stop_results[1] = r;
        p->is_polled = true;
        return r;
}

static void *stop_second(void *ctx) {
        struct participant *p = ctx;

        sleep_a_while();
        p->stop_results[1] = baton_random(2) == 0 ? stop(p) : stop_by_polling(p);
        return NULL;
}

void elector_start_stop(void) {
        pthread_t threads[3 * N];
        unsigned n = 0;

        begin();
        for (int i = 0; i < N; i++) {
                threads[n++] = scenario_thread("starter", start, &e.list[i]);
                threads[n++] = scenario_thread("stopper", stop_first, &e.list[i]);
                threads[n++] = scenario_thread("stopper-2", stop_second, &e.list[i]);
        }
        while (n > 0)
                (void)hf__thread_join(threads[--n]);
        for (int i = 0; i < N; i++)
                BATON_CHECK(e.list[i].stop_results[0] == e.list[i].stop_results[1]);
        end();
}

/* ---- terms ---- */

static void hang_for_a_while(struct fake_api_client *client) {
        fake_api_client_set_mode(client,
                                 baton_random(2) == 0 ? FAKE_API_HANGS : FAKE_API_LOSES_REPLIES);
        scenario_sleep((hf_nsec)baton_random(20) * HF_NSEC_PER_SEC);
        fake_api_client_set_mode(client, FAKE_API_RESPONDS);
}

/* Ends the term, even if the reply to its acquire is still on its way. Checks that a moment later
 * the process leads only by an acquire that was committed after this call. */
static void end_term(struct participant *p) {
        uint64_t revision = e.api->store.revision;
        struct hf_leader_info info = {.size = sizeof info};

        hf_elector_end_term(p->elector);
        scenario_sleep(HF_NSEC_PER_MSEC);
        BATON_CHECK(hf_elector_info(p->elector, &info) == 0);
        const struct fake_object *lease = fake_store_find(&e.api->store, KEY);
        BATON_CHECK(e.is_slow || info.state != HF_LEADING || lease->term > revision);
}

static void *disturb(void *ctx) {
        for (uint64_t left = 1 + baton_random(4); left > 0; left--) {
                struct participant *p = &e.list[baton_random(N)];
                const char *other = e.list[p == e.list].identity;
                sleep_a_while();
                switch (baton_random(6)) {
                case 0: (void)hf_elector_step_down(p->elector); break;
                case 1: (void)hf_elector_hand_over(p->elector, other); break;
                case 2: end_term(p); break;
                case 3:
                        fake_api_client_refuse(p->client, HF_E_UNAVAILABLE,
                                               1 + (unsigned)baton_random(4));
                        break;
                case 4: fake_api_end_watches(e.api, HF_E_GONE, NULL); break;
                default: hang_for_a_while(p->client);
                }
        }
        return NULL;
}

static bool does_anybody_lead(void) {
        for (int i = 0; i < N; i++)
                if (hf_elector_may_act(e.list[i].elector) && e.list[i].n_running > 0)
                        return true;
        return false;
}

/* Checks that one of the electors leads within a minute. Called only when no controller can be
 * stuck. */
static void check_somebody_leads(void) {
        hf_nsec until = now() + 60 * HF_NSEC_PER_SEC;

        while (!does_anybody_lead()) {
                BATON_CHECK(now() < until);
                scenario_sleep(HF_NSEC_PER_SEC);
        }
}

void elector_terms(void) {
        begin();
        e.has_faults = true;
        for (int i = 0; i < N; i++)
                BATON_CHECK(hf_electors_start(e.list[i].electors, NULL) == 0);
        pthread_t disturber = scenario_thread("disturber", disturb, NULL);
        if (baton_random(2) == 0)
                (void)stop(&e.list[1]); /* amid the faults */
        (void)hf__thread_join(disturber);
        if (!e.is_slow && !e.list[1].is_stopped)
                check_somebody_leads();
        for (int i = 0; i < N; i++)
                if (!e.list[i].is_stopped)
                        (void)stop(&e.list[i]);
        end();
}
