/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A node of an election: one hf_electors over an API in memory on a client of its own, in real time
 * with short timings, and what to wait for. Waits are for events (a commit, a change of state, a
 * controller's note), with a guard far beyond what they take; order is asserted, not duration. To
 * be included after cmocka; everything is static.
 */
#include <errno.h>
#include <stdatomic.h>

#include "fake_api.h"

#include <holdfast/health.h>
#include <holdfast/leader.h>
#include <holdfast/metrics.h>

#include "leader/electors.h"

#define KEY   "leases/kube-system/lead"
#define GUARD (20 * HF_NSEC_PER_SEC)

/* ---- a node: one hf_electors on a client of its own ---- */

enum habit {
        WRITES,          /* writes all the time until drain */
        WRITES_AT_DRAIN, /* at drain waits for a renewal, then writes once more */
        IGNORES_TOKENS,  /* until the test frees it */
        TRIES_AFTER_LOSS,
        FAILS_TWICE,
};

struct node {
        struct fake_api *api;
        struct fake_client *client;
        struct hf_electors *electors;
        struct hf_elector *elector;
        const char *identity;
        enum habit habit;
        /* guarded by api->mu */
        int n_running, n_started, n_ended, n_overlaps, n_failures;
        int n_instance_running, n_instance_ended_early;
        int n_written, last_error, n_unfenced;
        bool let_go;
};

static inline void lock_api(struct node *node) { pthread_mutex_lock(&node->api->mu); }
static inline void unlock_api(struct node *node) {
        pthread_cond_broadcast(&node->api->changed);
        pthread_mutex_unlock(&node->api->mu);
}

/* Waits until test(ctx), which is asked with the API's lock held, or fails. */
static inline void await_at(struct fake_api *api, bool (*test)(void *ctx), void *ctx, int line) {
        const struct hf_clock *clock = hf_clock_system();
        hf_nsec until = hf_now(clock) + GUARD;
        pthread_mutex_lock(&api->mu);
        bool ok = test(ctx);
        while (!ok && hf_now(clock) < until) {
                (void)clock->wait(clock->ctx, &api->changed, &api->mu, until);
                ok = test(ctx);
        }
        pthread_mutex_unlock(&api->mu);
        if (!ok)
                fail_msg("line %d: what was waited for did not come", line);
}
#define AWAIT(node, test) await_at((node)->api, test, (node), __LINE__)

static inline void on_change(void *ctx, const struct hf_leader_info *info) {
        struct node *node = ctx;
        lock_api(node);
        unlock_api(node);
}

static inline int write_something(struct hf_term *term, struct node *node,
                                  struct hf_cancel *token) {
        char body[200];
        (void)snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"%s\"}}", node->identity);
        struct hf_request request = {.resource = {"", "v1", "configmaps"},
                                     .ns = "default",
                                     .name = node->identity,
                                     .body = body,
                                     .n_body = strlen(body)};
        request.verb = HF_VERB_UPDATE;
        int r = hf_client_do(hf_term_client(term), &request, token, NULL, NULL, NULL);
        if (r == HF_E_NOT_FOUND) {
                request.verb = HF_VERB_CREATE;
                r = hf_client_do(hf_term_client(term), &request, token, NULL, NULL, NULL);
        }
        lock_api(node);
        node->last_error = r;
        node->n_written += r == 0;
        node->n_unfenced += r == HF_E_UNFENCED;
        unlock_api(node);
        return r;
}

struct renewals {
        struct node *node;
        size_t from;
};
static inline bool renewed(void *ctx) {
        struct renewals *renewals = ctx;
        for (size_t i = renewals->from; i < renewals->node->api->n_commits; i++)
                if (strcmp(renewals->node->api->commits[i].key, KEY) == 0)
                        return true;
        return false;
}
static inline bool is_let_go(void *ctx) { return ((struct node *)ctx)->let_go; }

static inline int work(struct hf_term *term, struct node *node) {
        switch (node->habit) {
        case WRITES:
                while (hf_cancel_wait(hf_term_drain(term),
                                      hf_now(hf_clock_system()) + 20 * HF_NSEC_PER_MSEC) ==
                       HF_E_TIMEOUT)
                        (void)write_something(term, node, hf_term_abort(term));
                return 0;
        case WRITES_AT_DRAIN:
                (void)hf_cancel_wait(hf_term_drain(term), HF_NSEC_NEVER);
                lock_api(node);
                struct renewals renewals = {node, node->api->n_commits};
                unlock_api(node);
                AWAIT(node, is_let_go);
                await_at(node->api, renewed, &renewals, __LINE__);
                return write_something(term, node, hf_term_abort(term));
        case IGNORES_TOKENS: AWAIT(node, is_let_go); return 0;
        case TRIES_AFTER_LOSS:
                (void)hf_cancel_wait(hf_term_abort(term), HF_NSEC_NEVER);
                (void)write_something(term, node, hf_cancel_never()); /* it ignores the token: the
                                                                         client refuses */
                return 0;
        case FAILS_TWICE:
                lock_api(node);
                bool fail = node->n_failures < 2;
                node->n_failures += fail;
                unlock_api(node);
                if (fail)
                        return HF_E_UNAVAILABLE;
                (void)hf_cancel_wait(hf_term_drain(term), HF_NSEC_NEVER);
                return 0;
        }
        return 0;
}

/* Counts that terms of this node strictly alternate, and that writes carry its own term. */
static inline int run(struct hf_term *term, void *ctx) {
        struct node *node = ctx;
        lock_api(node);
        node->n_overlaps += node->n_running > 0;
        node->n_running++;
        node->n_started++;
        unlock_api(node);
        assert(hf_term_fence(term)->term != 0 &&
               strcmp(hf_term_fence(term)->identity, node->identity) == 0);
        assert(hf_term_acquired_at(term)[0]);
        int r = work(term, node);
        lock_api(node);
        node->n_running--;
        node->n_ended++;
        unlock_api(node);
        return r;
}

static inline int run_instance(struct hf_term *term, void *ctx) {
        struct node *node = ctx;
        assert(hf_term_fence(term) == NULL && hf_term_may_act(term));
        lock_api(node);
        node->n_instance_running++;
        unlock_api(node);
        (void)hf_cancel_wait(hf_term_drain(term), HF_NSEC_NEVER);
        lock_api(node);
        node->n_instance_running--;
        node->n_instance_ended_early += node->n_running > 0; /* the leader's work ends first */
        unlock_api(node);
        return 0;
}

static const struct hf_leader_timing quick = {
        .lease_duration = 2 * HF_NSEC_PER_SEC,
        .renew_deadline = 1 * HF_NSEC_PER_SEC,
        .retry_period = 200 * HF_NSEC_PER_MSEC,
        .request_timeout = 300 * HF_NSEC_PER_MSEC,
        .drain_deadline = 1 * HF_NSEC_PER_SEC,
};

static inline struct hf_elector_config
config_of(struct node *node, const struct hf_controller *controllers, size_t n) {
        return (struct hf_elector_config){.size = sizeof(struct hf_elector_config),
                                          .ns = "kube-system",
                                          .name = "lead",
                                          .identity = node->identity,
                                          .client = &node->client->base,
                                          .timing = quick,
                                          .controllers = controllers,
                                          .n_controllers = n,
                                          .on_change = on_change,
                                          .ctx = node};
}

static inline struct node *node_new(struct fake_api *api, const char *identity, enum habit habit,
                                    bool unfenced) {
        struct node *node = calloc(1, sizeof *node);
        struct hf_status status = {0};
        node->api = api;
        node->client = fake_client_new(api);
        node->client->no_echo = unfenced;
        node->identity = identity;
        node->habit = habit;
        struct hf_controller controllers[] = {
                {.name = "worker", .class = HF_LEADER_ONLY, .run = run, .ctx = node},
                {.name = "local", .class = HF_EVERY_INSTANCE, .run = run_instance, .ctx = node},
        };
        struct hf_elector_config config = config_of(node, controllers, 2);
        config.unfenced = unfenced;
        assert_int_equal(hf_electors_new(&api->host, &node->electors), 0);
        assert_int_equal(hf_electors_add(node->electors, &config, &node->elector, &status), 0);
        return node;
}

/* lead is the new name; lead-old the one from which the fleet comes. */
static inline struct node *node_start_migrating(struct fake_api *api, const char *identity) {
        struct node *node = calloc(1, sizeof *node);
        struct hf_controller worker = {.name = "worker",
                                       .class = HF_LEADER_ONLY,
                                       .run = run,
                                       .ctx = node};
        node->api = api;
        node->client = fake_client_new(api);
        node->identity = identity;
        node->habit = WRITES;
        struct hf_elector_config config = config_of(node, &worker, 1);
        config.migrate_from = "lead-old";
        assert_int_equal(hf_electors_new(&api->host, &node->electors), 0);
        assert_int_equal(hf_electors_add(node->electors, &config, &node->elector, NULL), 0);
        assert_int_equal(hf_electors_start(node->electors, NULL), 0);
        return node;
}

static inline struct node *node_start(struct fake_api *api, const char *identity,
                                      enum habit habit) {
        struct node *node = node_new(api, identity, habit, false);
        assert_int_equal(hf_electors_start(node->electors, NULL), 0);
        return node;
}

static inline void node_free(struct node *node) {
        hf_electors_free(node->electors);
        hf_client_free(&node->client->base);
        free(node);
}

static inline void node_stop(struct node *node) {
        struct hf_status status = {0};
        int r = hf_electors_stop(node->electors, &status);
        if (r != 0)
                fail_msg("stop: %s", status.message);
        assert_int_equal(node->n_running, 0);
        assert_int_equal(node->n_instance_running, 0);
        assert_int_equal(node->n_overlaps, 0);
        assert_int_equal(node->n_started, node->n_ended);
        assert_int_equal(node->n_instance_ended_early, 0);
}

/* ---- what to wait for ---- */

static inline enum hf_leader_state state_of(struct node *node) {
        struct hf_leader_info info;
        hf_elector_info(node->elector, &info);
        return info.state;
}
static inline bool leads(void *ctx) {
        return state_of(ctx) == HF_LEADING && ((struct node *)ctx)->n_running > 0;
}
static inline bool follows(void *ctx) { return state_of(ctx) == HF_FOLLOWING; }
static inline bool is_stuck(void *ctx) { return state_of(ctx) == HF_STUCK; }
static inline bool drains(void *ctx) { return state_of(ctx) == HF_DRAINING; }
static inline bool has_written(void *ctx) { return ((struct node *)ctx)->n_written > 0; }
static inline bool has_ended(void *ctx) { return ((struct node *)ctx)->n_running == 0; }
static inline bool started_thrice(void *ctx) { return ((struct node *)ctx)->n_started >= 3; }
static inline bool instance_runs(void *ctx) { return ((struct node *)ctx)->n_instance_running > 0; }
static inline bool has_two_terms(void *ctx) {
        return ((struct node *)ctx)->n_started >= 2 && leads(ctx);
}
static inline bool knows_holder(void *ctx) {
        struct hf_leader_info info;
        hf_elector_info(((struct node *)ctx)->elector, &info);
        return info.holder[0] != '\0';
}

/* Every fenced commit is of the Lease's holder at that point. The API saw to it; this shows that it
 * was tested at all. */
static inline size_t check_witness(struct fake_api *api) {
        char holder[128] = "";
        size_t n_fenced = 0;
        for (size_t i = 0; i < api->n_commits; i++) {
                const struct fake_commit *commit = &api->commits[i];
                if (strcmp(commit->key, KEY) == 0)
                        strcpy(holder, commit->holder);
                if (!commit->fence_term)
                        continue;
                n_fenced++;
                assert_string_equal(commit->fence_identity, holder);
        }
        return n_fenced;
}
