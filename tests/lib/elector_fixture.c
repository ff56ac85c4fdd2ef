/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See elector_fixture.h. The controllers run on threads of the electors, so api->mu guards all that
 * they record. While the fixture holds it, hf_elector_info is the only function of the library that
 * it calls.
 */
#include "elector_fixture.h"

#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void elector_fixture_lock(struct elector_fixture *f) { pthread_mutex_lock(&f->api->mu); }

void elector_fixture_unlock(struct elector_fixture *f) {
        pthread_cond_broadcast(&f->api->changed);
        pthread_mutex_unlock(&f->api->mu);
}

void elector_fixture_await(struct fake_api *api, bool (*test)(void *ctx), void *ctx, int line) {
        const struct hf_clock *clock = hf_clock_system();
        hf_nsec until = hf_now(clock) + ELECTOR_FIXTURE_PATIENCE;

        pthread_mutex_lock(&api->mu);
        bool ok = test(ctx);
        while (!ok && hf_now(clock) < until) {
                (void)clock->wait(clock->ctx, &api->changed, &api->mu, until);
                ok = test(ctx);
        }
        pthread_mutex_unlock(&api->mu);
        if (!ok)
                fail_msg("line %d: the condition did not become true within the time limit", line);
}

/* ---- the controllers ---- */

/* Updates or creates the ConfigMap of this participant, and records the result. */
static int write_once(struct hf_term *term, struct elector_fixture *f, struct hf_cancel *token) {
        char body[200];
        (void)snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"%s\"}}", f->identity);
        struct hf_request request = {.size = sizeof request,
                                     .verb = HF_VERB_UPDATE,
                                     .resource = {"", "v1", "configmaps"},
                                     .ns = "default",
                                     .name = f->identity,
                                     .body = body,
                                     .n_body = strlen(body)};

        assert(!hf_term_ungated_client(term));
        int r = hf_client_do(hf_term_client(term), &request, token, NULL, NULL, NULL);
        if (r == HF_E_NOT_FOUND) {
                request.verb = HF_VERB_CREATE;
                r = hf_client_do(hf_term_client(term), &request, token, NULL, NULL, NULL);
        }
        elector_fixture_lock(f);
        f->last_error = r;
        f->n_written += r == 0;
        f->n_unfenced += r == HF_E_UNFENCED;
        elector_fixture_unlock(f);
        return r;
}

static int write_until_drain(struct hf_term *term, struct elector_fixture *f) {
        hf_nsec pause = 20 * HF_NSEC_PER_MSEC;

        while (hf_cancel_wait(hf_term_drain(term), hf_now(hf_clock_system()) + pause) ==
               HF_E_TIMEOUT)
                (void)write_once(term, f, hf_term_abort(term));
        return 0;
}

struct renewal {
        struct elector_fixture *f;
        size_t from;
};

static bool is_renewed(void *ctx) {
        const struct renewal *renewal = ctx;
        const struct fake_store *store = &renewal->f->api->store;

        for (size_t i = renewal->from; i < store->n_commits; i++)
                if (strcmp(store->commits[i].key, ELECTOR_FIXTURE_KEY) == 0)
                        return true;
        return false;
}

static int write_at_drain(struct hf_term *term, struct elector_fixture *f) {
        struct renewal renewal = {.f = f};

        /*
         * The controller stays in the drain until a renewal is committed: the test checks that a
         * draining leader still renews.
         */
        (void)hf_cancel_wait(hf_term_drain(term), HF_NSEC_NEVER);
        elector_fixture_lock(f);
        renewal.from = f->api->store.n_commits;
        elector_fixture_unlock(f);
        ELECTOR_AWAIT(f, elector_fixture_may_end);
        elector_fixture_await(f->api, is_renewed, &renewal, __LINE__);
        return write_once(term, f, hf_term_abort(term));
}

static int fail_twice(struct hf_term *term, struct elector_fixture *f) {
        elector_fixture_lock(f);
        bool fails = f->n_failures < 2;
        f->n_failures += fails;
        elector_fixture_unlock(f);
        if (fails)
                return HF_E_UNAVAILABLE;
        (void)hf_cancel_wait(hf_term_drain(term), HF_NSEC_NEVER);
        return 0;
}

static int do_work(struct hf_term *term, struct elector_fixture *f,
                   enum elector_fixture_work work) {
        switch (work) {
        case ELECTOR_WRITES: return write_until_drain(term, f);
        case ELECTOR_WRITES_AT_DRAIN: return write_at_drain(term, f);
        case ELECTOR_IGNORES_TOKENS: ELECTOR_AWAIT(f, elector_fixture_may_end); return 0;
        case ELECTOR_WRITES_AFTER_LOSS:
                (void)hf_cancel_wait(hf_term_abort(term), HF_NSEC_NEVER);
                (void)write_once(term, f, hf_cancel_never()); /* the client must reject it */
                return 0;
        case ELECTOR_FAILS_TWICE: return fail_twice(term, f);
        }
        return 0;
}

int elector_fixture_run_worker(struct hf_term *term, void *ctx) {
        struct elector_fixture *f = ctx;

        elector_fixture_lock(f);
        f->n_overlaps += f->n_running > 0;
        f->n_running++;
        f->n_started++;
        enum elector_fixture_work work = f->work;
        elector_fixture_unlock(f);
        assert(hf_term_fence(term)->term != 0);
        assert(strcmp(hf_term_fence(term)->identity, f->identity) == 0);
        assert(hf_term_acquired_at(term)[0]);
        int r = do_work(term, f, work);
        elector_fixture_lock(f);
        f->n_running--;
        f->n_ended++;
        elector_fixture_unlock(f);
        return r;
}

static int run_local(struct hf_term *term, void *ctx) {
        struct elector_fixture *f = ctx;

        assert(hf_term_fence(term) == NULL && hf_term_may_act(term));
        assert(!hf_term_client(term) && hf_term_ungated_client(term));
        elector_fixture_lock(f);
        f->n_local_running++;
        elector_fixture_unlock(f);
        (void)hf_cancel_wait(hf_term_drain(term), HF_NSEC_NEVER);
        elector_fixture_lock(f);
        f->n_local_running--;
        f->n_local_ended_early += f->n_running > 0;
        elector_fixture_unlock(f);
        return 0;
}

/* ---- making, stopping, freeing ---- */

/* Wakes a test that waits for the new state: unlocking signals api->changed. */
static void on_change(void *ctx, const struct hf_leader_info *info) {
        struct elector_fixture *f = ctx;

        elector_fixture_lock(f);
        elector_fixture_unlock(f);
}

struct hf_elector_config elector_fixture_config(struct elector_fixture *f,
                                                const struct hf_controller *controllers, size_t n) {
        return (struct hf_elector_config){
                .size = sizeof(struct hf_elector_config),
                .ns = "kube-system",
                .name = "lead",
                .identity = f->identity,
                .client = &f->client->base,
                .timing = {.lease_duration = 2 * HF_NSEC_PER_SEC,
                           .renew_deadline = 1 * HF_NSEC_PER_SEC,
                           .retry_period = 200 * HF_NSEC_PER_MSEC,
                           .request_timeout = 300 * HF_NSEC_PER_MSEC,
                           .drain_deadline = 1 * HF_NSEC_PER_SEC},
                .controllers = controllers,
                .n_controllers = n,
                .on_change = on_change,
                .ctx = f,
        };
}

/* Creates a participant that has no elector yet. */
static struct elector_fixture *new_without_elector(struct fake_api *api, const char *identity,
                                                   enum elector_fixture_work work) {
        struct elector_fixture *f = calloc(1, sizeof *f);

        assert_non_null(f);
        f->api = api;
        f->client = fake_api_client_new(api);
        f->identity = identity;
        f->work = work;
        assert_int_equal(hf_electors_new(&api->host, &f->electors), 0);
        return f;
}

struct elector_fixture *elector_fixture_new(struct fake_api *api, const char *identity,
                                            enum elector_fixture_work work, bool unfenced) {
        struct elector_fixture *f = new_without_elector(api, identity, work);
        const struct hf_controller controllers[] = {
                {.size = sizeof(struct hf_controller),
                 .name = "worker",
                 .runs = HF_LEADER_ONLY,
                 .run = elector_fixture_run_worker,
                 .ctx = f},
                {.size = sizeof(struct hf_controller),
                 .name = "local",
                 .runs = HF_EVERY_INSTANCE,
                 .run = run_local,
                 .ctx = f},
        };
        struct hf_elector_config config = elector_fixture_config(f, controllers, 2);

        f->client->ignores_fences = unfenced;
        config.unfenced = unfenced;
        assert_int_equal(hf_electors_add(f->electors, &config, &f->elector, NULL), 0);
        return f;
}

struct elector_fixture *elector_fixture_start(struct fake_api *api, const char *identity,
                                              enum elector_fixture_work work) {
        struct elector_fixture *f = elector_fixture_new(api, identity, work, false);

        assert_int_equal(hf_electors_start(f->electors, NULL), 0);
        return f;
}

struct elector_fixture *elector_fixture_start_migrating(struct fake_api *api,
                                                        const char *identity) {
        struct elector_fixture *f = new_without_elector(api, identity, ELECTOR_WRITES);
        const struct hf_controller worker = {.size = sizeof worker,
                                             .name = "worker",
                                             .runs = HF_LEADER_ONLY,
                                             .run = elector_fixture_run_worker,
                                             .ctx = f};
        struct hf_elector_config config = elector_fixture_config(f, &worker, 1);

        config.migrate_from = "lead-old";
        assert_int_equal(hf_electors_add(f->electors, &config, &f->elector, NULL), 0);
        assert_int_equal(hf_electors_start(f->electors, NULL), 0);
        return f;
}

void elector_fixture_stop(struct elector_fixture *f) {
        struct hf_status status = {0};
        int r = hf_electors_stop(f->electors, &status);

        if (r != 0)
                fail_msg("stop: %s", status.message);
        assert_int_equal(f->n_running, 0);
        assert_int_equal(f->n_local_running, 0);
        assert_int_equal(f->n_overlaps, 0);
        assert_int_equal(f->n_started, f->n_ended);
        assert_int_equal(f->n_local_ended_early, 0);
}

void elector_fixture_free(struct elector_fixture *f) {
        hf_electors_free(f->electors);
        hf_client_free(&f->client->base);
        free(f);
}

/* ---- what to wait for ---- */

static struct hf_leader_info info_of(const struct elector_fixture *f) {
        struct hf_leader_info info = {.size = sizeof info};

        hf_elector_info(f->elector, &info);
        return info;
}

enum hf_leader_state elector_fixture_state(struct elector_fixture *f) { return info_of(f).state; }

/* The state is HF_LEADING shortly before the worker runs, so both are checked. */
bool elector_fixture_leads(void *ctx) {
        const struct elector_fixture *f = ctx;
        return info_of(f).state == HF_LEADING && f->n_running > 0;
}

bool elector_fixture_leads_again(void *ctx) {
        return ((struct elector_fixture *)ctx)->n_started >= 2 && elector_fixture_leads(ctx);
}

bool elector_fixture_follows(void *ctx) { return info_of(ctx).state == HF_FOLLOWING; }
bool elector_fixture_knows_holder(void *ctx) { return info_of(ctx).holder[0] != '\0'; }
bool elector_fixture_drains(void *ctx) { return info_of(ctx).state == HF_DRAINING; }
bool elector_fixture_is_stuck(void *ctx) { return info_of(ctx).state == HF_STUCK; }

bool elector_fixture_has_written(void *ctx) {
        return ((struct elector_fixture *)ctx)->n_written > 0;
}

bool elector_fixture_has_ended(void *ctx) {
        return ((struct elector_fixture *)ctx)->n_running == 0;
}

bool elector_fixture_was_run_thrice(void *ctx) {
        return ((struct elector_fixture *)ctx)->n_started >= 3;
}

bool elector_fixture_runs_local(void *ctx) {
        return ((struct elector_fixture *)ctx)->n_local_running > 0;
}

bool elector_fixture_may_end(void *ctx) { return ((struct elector_fixture *)ctx)->may_end; }

/*
 * Counts the commits with a fence, and in *ret_wrong those of them whose writer did not hold the
 * Lease. A commit without a fence is a write of the Lease, an Event, or a write of the test.
 */
static size_t count_fenced(const struct fake_store *store, size_t *ret_wrong) {
        const char *holder = "";
        size_t n_fenced = 0;

        *ret_wrong = 0;
        for (size_t i = 0; i < store->n_commits; i++) {
                const struct fake_commit *commit = &store->commits[i];
                if (strcmp(commit->key, ELECTOR_FIXTURE_KEY) == 0)
                        holder = commit->holder;
                if (!commit->fence_term)
                        continue;
                n_fenced++;
                *ret_wrong += strcmp(commit->fence_identity, holder) != 0;
        }
        return n_fenced;
}

size_t elector_fixture_check_commits(struct fake_api *api) {
        size_t n_wrong;

        pthread_mutex_lock(&api->mu);
        size_t n_fenced = count_fenced(&api->store, &n_wrong);
        pthread_mutex_unlock(&api->mu);
        assert_int_equal(n_wrong, 0);
        return n_fenced;
}
