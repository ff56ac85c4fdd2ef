/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Electors end to end over an API in memory, in real time with short timings. Waits are for events (a commit, a change of
 * state, a controller's note), with a guard far beyond what they take; order is asserted, not duration.
 */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

static void lock_api(struct node *node) { pthread_mutex_lock(&node->api->mu); }
static void unlock_api(struct node *node) {
        pthread_cond_broadcast(&node->api->changed);
        pthread_mutex_unlock(&node->api->mu);
}

/* Waits until test(ctx), which is asked with the API's lock held, or fails. */
static void await_at(struct fake_api *api, bool (*test)(void *ctx), void *ctx, int line) {
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

static void on_change(void *ctx, const struct hf_leader_info *info) {
        struct node *node = ctx;
        lock_api(node);
        unlock_api(node);
}

static int write_something(struct hf_term *term, struct node *node, struct hf_cancel *token) {
        char body[200];
        (void)snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"%s\"}}", node->identity);
        struct hf_call call = {.resource = {"", "v1", "configmaps"},
                               .ns = "default",
                               .name = node->identity,
                               .body = body,
                               .n_body = strlen(body)};
        call.verb = HF_VERB_UPDATE;
        int r = hf_client_do(hf_term_client(term), &call, token, NULL, NULL, NULL);
        if (r == HF_E_NOT_FOUND) {
                call.verb = HF_VERB_CREATE;
                r = hf_client_do(hf_term_client(term), &call, token, NULL, NULL, NULL);
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
static bool renewed(void *ctx) {
        struct renewals *renewals = ctx;
        for (size_t i = renewals->from; i < renewals->node->api->n_commits; i++)
                if (strcmp(renewals->node->api->commits[i].key, KEY) == 0)
                        return true;
        return false;
}
static bool is_let_go(void *ctx) { return ((struct node *)ctx)->let_go; }

static int work(struct hf_term *term, struct node *node) {
        switch (node->habit) {
        case WRITES:
                while (hf_cancel_wait(hf_term_drain(term), hf_now(hf_clock_system()) + 20 * HF_NSEC_PER_MSEC) == HF_E_TIMEOUT)
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
                (void)write_something(term, node, hf_cancel_never()); /* it ignores the token: the client refuses */
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
static int run(struct hf_term *term, void *ctx) {
        struct node *node = ctx;
        lock_api(node);
        node->n_overlaps += node->n_running > 0;
        node->n_running++;
        node->n_started++;
        unlock_api(node);
        assert(hf_term_fence(term)->term != 0 && strcmp(hf_term_fence(term)->identity, node->identity) == 0);
        assert(hf_term_acquired_at(term)[0]);
        int r = work(term, node);
        lock_api(node);
        node->n_running--;
        node->n_ended++;
        unlock_api(node);
        return r;
}

static int run_instance(struct hf_term *term, void *ctx) {
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

static struct hf_elector_config config_of(struct node *node, const struct hf_controller *controllers, size_t n) {
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

static struct node *node_new(struct fake_api *api, const char *identity, enum habit habit, bool unfenced) {
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
static struct node *node_start_migrating(struct fake_api *api, const char *identity) {
        struct node *node = calloc(1, sizeof *node);
        struct hf_controller worker = {.name = "worker", .class = HF_LEADER_ONLY, .run = run, .ctx = node};
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

static struct node *node_start(struct fake_api *api, const char *identity, enum habit habit) {
        struct node *node = node_new(api, identity, habit, false);
        assert_int_equal(hf_electors_start(node->electors, NULL), 0);
        return node;
}

static void node_free(struct node *node) {
        hf_electors_free(node->electors);
        hf_client_free(&node->client->base);
        free(node);
}

static void node_stop(struct node *node) {
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

static enum hf_leader_state state_of(struct node *node) {
        struct hf_leader_info info;
        hf_elector_info(node->elector, &info);
        return info.state;
}
static bool leads(void *ctx) { return state_of(ctx) == HF_LEADING && ((struct node *)ctx)->n_running > 0; }
static bool follows(void *ctx) { return state_of(ctx) == HF_FOLLOWING; }
static bool is_stuck(void *ctx) { return state_of(ctx) == HF_STUCK; }
static bool drains(void *ctx) { return state_of(ctx) == HF_DRAINING; }
static bool has_written(void *ctx) { return ((struct node *)ctx)->n_written > 0; }
static bool has_ended(void *ctx) { return ((struct node *)ctx)->n_running == 0; }
static bool started_thrice(void *ctx) { return ((struct node *)ctx)->n_started >= 3; }
static bool instance_runs(void *ctx) { return ((struct node *)ctx)->n_instance_running > 0; }
static bool has_two_terms(void *ctx) { return ((struct node *)ctx)->n_started >= 2 && leads(ctx); }
static bool knows_holder(void *ctx) {
        struct hf_leader_info info;
        hf_elector_info(((struct node *)ctx)->elector, &info);
        return info.holder[0] != '\0';
}

/* Every fenced commit is of the Lease's holder at that point. The API saw to it; this shows that it was tested at all. */
static size_t check_witness(struct fake_api *api) {
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

/* ---- tests ---- */

static void test_a_stop_hands_over_by_releasing(void **state) { /* CG31, PN02, PN08, CR10, CR14 */
        struct fake_api *api = fake_api_new();
        struct node *a = node_start(api, "a", WRITES);
        AWAIT(a, leads);
        AWAIT(a, has_written);
        struct node *b = node_start(api, "b", WRITES);
        AWAIT(b, instance_runs);
        AWAIT(b, knows_holder);
        assert_true(hf_elector_may_act(a->elector));
        assert_false(hf_elector_may_act(b->elector));
        uint64_t turns = hf_electors_turns(a->electors);
        node_stop(a);
        assert_true(hf_electors_turns(a->electors) > turns);
        assert_false(hf_elector_may_act(a->elector));
        AWAIT(b, leads);
        AWAIT(b, has_written);
        node_stop(b);
        assert_string_equal(api->commits[api->n_commits - 1].holder, ""); /* b has released, as its last commit */
        for (size_t i = 0; i < api->n_commits; i++)
                assert_int_not_equal(strncmp(api->commits[i].key, "events/", 7), 0); /* none were asked for */
        assert_true(check_witness(api) >= 2);
        assert_int_equal(a->n_started, 1);
        node_free(a);
        node_free(b);
        fake_api_free(api);
}

static void test_terms_alternate_under_overwrites_and_deletions(void **state) { /* PN04, PN06, A03, A10 */
        struct fake_api *api = fake_api_new();
        struct node *a = node_start(api, "a", WRITES);
        for (int round = 1; round <= 3; round++) {
                AWAIT(a, leads);
                lock_api(a);
                a->n_written = 0;
                unlock_api(a);
                AWAIT(a, has_written);
                if (round % 2)
                        fake_delete(api, KEY);
                else
                        fake_put(api, KEY,
                                 "{\"metadata\":{\"name\":\"lead\"},\"spec\":{\"holderIdentity\":\"x\",\"leaseDurationSeconds\":1}}");
                AWAIT(a, follows);
        }
        AWAIT(a, leads);
        struct hf_leader_info info;
        hf_elector_info(a->elector, &info);
        assert_true(info.n_terms >= 4);
        assert_true(info.term > 0 && info.valid_until > 0);
        assert_non_null(strstr(info.last_end, "Lease"));
        node_stop(a);
        assert_int_equal(a->n_started, info.n_terms);
        check_witness(api);
        node_free(a);
        fake_api_free(api);
}

static void look_at_health(void *ctx, const char *name, bool healthy, const char *reason) {
        if (!healthy)
                (void)snprintf(ctx, 200, "%s: %s", name, reason);
}

/* Where the node is kept whose electors may have been left as they are. Volatile, so that leak checkers find it. */
static struct node *volatile kept;

static void test_a_stuck_controller_is_named_and_nothing_released(void **state) {
        struct fake_api *api = fake_api_new();
        struct hf_status status = {0};
        char health[200] = "";
        assert_int_equal(hf_health_new(&api->host.health), 0);
        struct node *a = node_start(api, "a", IGNORES_TOKENS);
        AWAIT(a, leads);
        assert_int_equal(hf_health_each(api->host.health, HF_LIVEZ, look_at_health, health), 0);
        assert_int_equal(hf_electors_stop(a->electors, &status), HF_E_STUCK);
        assert_non_null(strstr(status.message, "worker"));
        status = (struct hf_status){0};
        assert_int_equal(hf_electors_stop(a->electors, &status), HF_E_STUCK); /* asked again it says the same */
        assert_non_null(strstr(status.message, "worker"));
        assert_true(is_stuck(a));
        assert_false(hf_elector_may_act(a->elector));
        assert_int_equal(hf_health_each(api->host.health, HF_LIVEZ, look_at_health, health), 1);
        assert_non_null(strstr(health, "leaderElection: controller worker"));
        for (size_t i = 0; i < api->n_commits; i++)
                assert_string_equal(api->commits[i].holder, "a");
        lock_api(a);
        a->let_go = true;
        unlock_api(a);
        AWAIT(a, is_let_go);
        AWAIT(a, has_ended); /* its thread is about to exit: what it may touch until then stays */
        struct hf_health *checks = api->host.health;
        hf_electors_free(a->electors);
        hf_client_free(&a->client->base);
        kept = a;
        hf_health_free(checks);
        fake_api_free(api);
}

static bool lease_is_renewed_once(void *ctx) { return ((struct node *)ctx)->api->n_commits >= 2; }

static void *stop_main(void *ctx) {
        node_stop(ctx);
        return NULL;
}

static void test_a_drain_lets_work_finish_while_renewals_go_on(void **state) { /* CR01, CR16 */
        struct fake_api *api = fake_api_new();
        struct node *a = node_start(api, "a", WRITES_AT_DRAIN);
        pthread_t thread;
        AWAIT(a, leads);
        AWAIT(a, lease_is_renewed_once);
        assert_int_equal(pthread_create(&thread, NULL, stop_main, a), 0);
        AWAIT(a, drains);
        assert_true(hf_elector_may_act(a->elector));
        lock_api(a);
        a->let_go = true;
        unlock_api(a);
        pthread_join(thread, NULL);
        assert_int_equal(a->last_error, 0);
        assert_int_equal(a->n_written, 1);
        /* The last two commits: the work's write, then the release. */
        assert_int_equal(strncmp(api->commits[api->n_commits - 2].key, "configmaps/", 11), 0);
        assert_string_equal(api->commits[api->n_commits - 1].holder, "");
        node_free(a);
        fake_api_free(api);
}

static bool was_unfenced(void *ctx) { return ((struct node *)ctx)->n_unfenced > 0; }
static bool was_refused(void *ctx) { return ((struct node *)ctx)->last_error != 0; }

static void test_a_second_stop_waits_for_the_first(void **state) {
        struct fake_api *api = fake_api_new();
        struct node *a = node_start(api, "a", WRITES_AT_DRAIN);
        pthread_t first, second;
        AWAIT(a, leads);
        assert_int_equal(pthread_create(&first, NULL, stop_main, a), 0);
        AWAIT(a, drains);
        assert_int_equal(pthread_create(&second, NULL, stop_main, a), 0); /* it asserts that all work has ended */
        lock_api(a);
        a->let_go = true;
        unlock_api(a);
        pthread_join(first, NULL);
        pthread_join(second, NULL);
        assert_int_equal(state_of(a), HF_STOPPED);
        node_free(a);
        fake_api_free(api);
}

/* on_change may hang, against the contract: the stop then ends by its bound, says so for good, and nothing is freed under the loop. */
struct hang {
        atomic_bool hangs, entered;
};
static void hang_on_change(void *ctx, const struct hf_leader_info *info) {
        struct hang *hang = ctx;
        const struct hf_clock *clock = hf_clock_system();
        atomic_store(&hang->entered, true);
        for (hf_nsec until = hf_now(clock) + GUARD; atomic_load(&hang->hangs) && hf_now(clock) < until;)
                (void)hf_cancel_wait(hf_cancel_never(), hf_now(clock) + 5 * HF_NSEC_PER_MSEC);
}

static void test_a_loop_that_hangs_does_not_hang_the_stop(void **state) {
        struct fake_api *api = fake_api_new();
        struct node *a = node_new(api, "a", WRITES, false);
        struct hf_elector *other = NULL;
        struct hf_status status = {0};
        struct hang hang = {.hangs = true};
        struct hf_elector_config config = config_of(a, NULL, 0);
        config.name = "other";
        config.on_change = hang_on_change;
        config.ctx = &hang;
        assert_int_equal(hf_electors_add(a->electors, &config, &other, &status), 0);
        assert_int_equal(hf_electors_start(a->electors, NULL), 0);
        while (!atomic_load(&hang.entered))
                (void)hf_cancel_wait(hf_cancel_never(), hf_now(hf_clock_system()) + HF_NSEC_PER_MSEC);
        assert_int_equal(hf_electors_stop(a->electors, &status), HF_E_STUCK);
        assert_non_null(strstr(status.message, "loop"));
        assert_int_equal(hf_electors_stop(a->electors, &status), HF_E_STUCK);
        assert_null(hf_electors_free(a->electors));   /* the loop is alive: it leaks them */
        assert_false(hf_elector_may_act(a->elector)); /* validity has ended by itself */
        atomic_store(&hang.hangs, false);
        pthread_join(a->electors->thread, NULL); /* it goes on, is told to stop, and ends */
        assert_true(a->electors->loop_over);
        a->electors->state = HF__ELECTORS_STOPPED; /* now they may be freed, for the leak checkers */
        node_free(a);
        fake_api_free(api);
}

static void test_after_a_loss_writes_are_refused_at_once(void **state) { /* CR02, PN05 */
        struct fake_api *api = fake_api_new();
        struct node *a = node_start(api, "a", TRIES_AFTER_LOSS);
        AWAIT(a, leads);
        fake_put(api, KEY, "{\"metadata\":{\"name\":\"lead\"},\"spec\":{\"holderIdentity\":\"x\",\"leaseDurationSeconds\":1}}");
        AWAIT(a, was_refused);
        assert_int_equal(a->last_error, HF_E_NOT_LEADER);
        assert_int_equal(a->n_written, 0);
        lock_api(a);
        a->habit = WRITES;
        unlock_api(a);
        node_stop(a);
        node_free(a);
        fake_api_free(api);
}

static void test_a_hung_api_ends_the_term_and_does_not_hold_up_the_stop(void **state) { /* A04, A18 */
        struct fake_api *api = fake_api_new();
        struct hf_status status = {0};
        struct node *a = node_start(api, "a", WRITES);
        AWAIT(a, leads);
        fake_set_mode(a->client, FAKE_HANG, false, 0, 0);
        AWAIT(a, follows); /* joined: the work was let go although its own writes hung */
        assert_int_equal(a->n_running, 0);
        assert_false(hf_elector_may_act(a->elector));
        int r = hf_electors_stop(a->electors, &status); /* while everything still hangs */
        assert_true(r == 0 || r == HF_E_TIMEOUT);
        assert_int_equal(a->n_overlaps, 0);
        node_free(a);
        fake_api_free(api);
}

static void test_refusals_end_the_term_and_it_comes_back(void **state) {
        struct fake_api *api = fake_api_new();
        struct node *a = node_start(api, "a", WRITES);
        AWAIT(a, leads);
        fake_set_mode(a->client, FAKE_REFUSE, true, HF_E_FORBIDDEN, 0);
        AWAIT(a, follows);
        fake_set_mode(a->client, FAKE_OK, false, 0, 0);
        AWAIT(a, has_two_terms);
        node_stop(a);
        check_witness(api);
        node_free(a);
        fake_api_free(api);
}

static void test_a_hand_over_reaches_the_named_one(void **state) {
        struct fake_api *api = fake_api_new();
        struct node *a = node_start(api, "a", WRITES);
        AWAIT(a, leads);
        struct node *b = node_start(api, "b", WRITES), *c = node_start(api, "c", WRITES);
        AWAIT(b, knows_holder);
        AWAIT(c, knows_holder);
        assert_int_equal(hf_elector_hand_over(b->elector, "c"), HF_E_NOT_LEADER);
        assert_int_equal(hf_elector_hand_over(a->elector, "not an identity"), -EINVAL);
        assert_int_equal(hf_elector_hand_over(a->elector, "c"), 0);
        AWAIT(c, leads);
        assert_int_equal(b->n_started, 0);
        char *text = fake_get(api, KEY);
        assert_null(strstr(text, "successor")); /* gone with the acquire */
        free(text);
        node_stop(b);
        node_stop(a);
        node_stop(c);
        node_free(a);
        node_free(b);
        node_free(c);
        fake_api_free(api);
}

static void test_a_server_without_fences_ends_the_term_unless_accepted(void **state) {
        struct fake_api *api = fake_api_new();
        struct node *a = node_new(api, "a", WRITES, true); /* accepted */
        assert_int_equal(hf_electors_start(a->electors, NULL), 0);
        AWAIT(a, leads);
        AWAIT(a, has_written);
        assert_int_equal(state_of(a), HF_LEADING);
        node_stop(a);
        node_free(a);
        a = node_new(api, "b", WRITES, false);
        a->client->no_echo = true;
        assert_int_equal(hf_electors_start(a->electors, NULL), 0);
        AWAIT(a, was_unfenced); /* in this term or a later one: its end may be quicker than the answer */
        AWAIT(a, has_two_terms);
        node_stop(a);
        node_free(a);
        fake_api_free(api);
}

static void test_a_failing_controller_is_run_again(void **state) {
        struct fake_api *api = fake_api_new();
        struct node *a = node_start(api, "a", FAILS_TWICE);
        AWAIT(a, leads);
        AWAIT(a, started_thrice);
        struct hf_leader_info info;
        hf_elector_info(a->elector, &info);
        assert_int_equal(info.n_terms, 1); /* it was one term all the time */
        node_stop(a);
        node_free(a);
        fake_api_free(api);
}

static void test_two_electors_share_a_loop(void **state) { /* CR19 */
        struct fake_api *api = fake_api_new();
        struct node *a = node_new(api, "a", WRITES, false);
        struct hf_elector *other = NULL;
        struct hf_status status = {0};
        struct hf_controller controllers[] = {{.name = "worker", .run = run, .ctx = a}};
        struct hf_elector_config config = config_of(a, controllers, 1);
        assert_int_equal(hf_electors_add(a->electors, &config, &other, &status), HF_E_EXISTS);
        config.name = "other";
        assert_int_equal(hf_electors_add(a->electors, &config, &other, &status), HF_E_EXISTS);
        assert_non_null(strstr(status.message, "worker"));
        config.n_controllers = 0;
        config.ctx = a;
        assert_int_equal(hf_electors_add(a->electors, &config, &other, &status), 0);
        assert_int_equal(hf_electors_start(a->electors, NULL), 0);
        assert_int_equal(hf_electors_add(a->electors, &config, &other, &status), HF_E_CLOSED);
        AWAIT(a, leads);
        struct node second = {.api = api, .elector = other, .n_running = 1};
        AWAIT(&second, leads); /* a term without controllers is a term */
        node_stop(a);
        char *text = fake_get(api, "leases/kube-system/other");
        assert_non_null(strstr(text, "\"holderIdentity\":\"\""));
        free(text);
        node_free(a);
        fake_api_free(api);
}

static void test_wrong_configurations_are_refused_with_a_line(void **state) { /* CG17, CG60, CG61, CR06, CR07, CR13, A05 */
        struct fake_api *api = fake_api_new();
        struct node *a = node_new(api, "a", WRITES, false);
        struct hf_status status = {0};
        struct hf_elector_config good = config_of(a, NULL, 0), bad;
        const char *labels[] = {"no-value", NULL}, *identities[] = {"", "has space", "line\nbreak", "caf\xc3\xa9", NULL};
        char long_identity[HF_IDENTITY_MAX + 2];
        good.name = "other";
        for (size_t i = 0; i < 4; i++) {
                bad = good;
                bad.identity = identities[i];
                assert_int_equal(hf_electors_add(a->electors, &bad, NULL, &status), HF_E_INVALID);
                assert_non_null(strstr(status.message, "identity"));
        }
        memset(long_identity, 'x', sizeof long_identity);
        long_identity[sizeof long_identity - 1] = '\0';
        bad = good;
        bad.identity = long_identity;
        assert_int_equal(hf_electors_add(a->electors, &bad, NULL, &status), HF_E_INVALID);
        bad = good;
        bad.ns = NULL;
        assert_int_equal(hf_electors_add(a->electors, &bad, NULL, &status), HF_E_INVALID);
        assert_non_null(strstr(status.message, "no namespace and name of a Lease"));
        bad = good;
        bad.name = NULL;
        assert_int_equal(hf_electors_add(a->electors, &bad, NULL, &status), HF_E_INVALID);
        bad = good;
        bad.client = NULL;
        assert_int_equal(hf_electors_add(a->electors, &bad, NULL, &status), -EINVAL);
        assert_non_null(strstr(status.message, "has no client"));
        bad = good;
        bad.name = "Upper";
        assert_int_equal(hf_electors_add(a->electors, &bad, NULL, &status), HF_E_INVALID);
        bad = good;
        bad.labels = labels;
        assert_int_equal(hf_electors_add(a->electors, &bad, NULL, &status), HF_E_INVALID);
        bad = good;
        bad.timing = (struct hf_leader_timing){.lease_duration = 10 * HF_NSEC_PER_SEC, .renew_deadline = 9 * HF_NSEC_PER_SEC};
        assert_int_equal(hf_electors_add(a->electors, &bad, NULL, &status), HF_E_INVALID); /* A05: 10/9/2 */
        assert_int_equal(hf_electors_stop(a->electors, NULL), 0);                          /* never started */
        assert_int_equal(hf_electors_start(a->electors, &status), HF_E_CLOSED);            /* nor will it be */
        node_free(a);
        fake_api_free(api);
}

#define OLD_KEY "leases/kube-system/lead-old"

static uint64_t term_of(struct fake_api *api, const char *key) {
        pthread_mutex_lock(&api->mu);
        struct fake_object *object = fake_find(api, key);
        uint64_t term = object ? object->term : 0;
        pthread_mutex_unlock(&api->mu);
        return term;
}

static void steal(struct fake_api *api, const char *key, const char *name) {
        char text[200];
        (void)snprintf(text, sizeof text,
                       "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"holderIdentity\":\"thief\",\"leaseDurationSeconds\":1}}", name);
        fake_put(api, key, text);
}

struct pair {
        struct node *a, *b;
        int n_ended;
};
static bool one_leads(void *ctx) { return leads(((struct pair *)ctx)->a) || leads(((struct pair *)ctx)->b); }
static bool one_more_has_ended(void *ctx) {
        struct pair *pair = ctx;
        return pair->a->n_ended + pair->b->n_ended > pair->n_ended;
}

/* The real locks over two Leases: both are held, both are fenced by, the loss of either ends the term, a stop releases both. */
static void test_two_leases_are_led_as_one(void **state) { /* CR12 */
        struct fake_api *api = fake_api_new();
        struct pair pair = {.a = node_start_migrating(api, "a"), .b = node_start_migrating(api, "b")};
        struct hf_leader_info info;

        await_at(api, one_leads, &pair, __LINE__);
        struct node *first = hf_elector_may_act(pair.a->elector) ? pair.a : pair.b, *second = first == pair.a ? pair.b : pair.a;
        AWAIT(first, has_written);
        hf_elector_info(first->elector, &info);
        assert_int_equal(info.term, term_of(api, KEY));
        assert_true(term_of(api, OLD_KEY) != 0 && term_of(api, OLD_KEY) < info.term);
        AWAIT(second, knows_holder);
        assert_false(hf_elector_may_act(second->elector));
        for (int i = 0; i < 2; i++) {
                lock_api(first);
                pair.n_ended = first->n_ended + second->n_ended;
                unlock_api(first);
                steal(api, i ? KEY : OLD_KEY, i ? "lead" : "lead-old");
                await_at(api, one_more_has_ended, &pair, __LINE__);
                await_at(api, one_leads, &pair, __LINE__);
        }
        node_stop(first);
        node_stop(second);
        for (int i = 0; i < 2; i++) {
                char *text = fake_get(api, i ? KEY : OLD_KEY);
                assert_non_null(strstr(text, "\"holderIdentity\":\"\""));
                free(text);
        }
        assert_true(check_witness(api) >= 1);
        node_free(first);
        node_free(second);
        fake_api_free(api);
}

/* The leader of two Leases loses the API, or the replies to its writes, which are applied: its term ends in time, and one leads again. */
static void test_two_leases_outlive_a_bad_connection(void **state) {
        static const enum fake_mode modes[] = {FAKE_HANG, FAKE_LOSE_REPLY};
        struct fake_api *api = fake_api_new();
        struct pair pair = {.a = node_start_migrating(api, "a"), .b = node_start_migrating(api, "b")};

        for (int i = 0; i < 2; i++) {
                await_at(api, one_leads, &pair, __LINE__);
                struct node *first = hf_elector_may_act(pair.a->elector) ? pair.a : pair.b, *second = first == pair.a ? pair.b : pair.a;
                AWAIT(first, has_written);
                lock_api(first);
                pair.n_ended = first->n_ended + second->n_ended;
                unlock_api(first);
                fake_set_mode(first->client, modes[i], modes[i] == FAKE_LOSE_REPLY, 0, 0);
                await_at(api, one_more_has_ended, &pair, __LINE__);
                if (modes[i] == FAKE_HANG)
                        AWAIT(second, leads);
                fake_set_mode(first->client, FAKE_OK, false, 0, 0);
                await_at(api, one_leads, &pair, __LINE__);
        }
        node_stop(pair.a);
        node_stop(pair.b);
        assert_true(check_witness(api) >= 2);
        node_free(pair.a);
        node_free(pair.b);
        fake_api_free(api);
}

static void test_migrations_that_cannot_be_are_refused(void **state) {
        struct fake_api *api = fake_api_new();
        struct node *a = node_start_migrating(api, "a");
        struct hf_electors *electors;
        struct hf_status status = {0};
        assert_int_equal(hf_electors_new(&api->host, &electors), 0);
        struct hf_elector_config config = config_of(a, NULL, 0);
        config.migrate_from = "lead";
        assert_int_equal(hf_electors_add(electors, &config, NULL, &status), HF_E_INVALID);
        assert_non_null(strstr(status.message, "itself"));
        config.migrate_from = "Upper";
        assert_int_equal(hf_electors_add(electors, &config, NULL, &status), HF_E_INVALID);
        config.migrate_from = NULL;
        config.migrate_from_ns = "elsewhere";
        assert_int_equal(hf_electors_add(electors, &config, NULL, &status), HF_E_INVALID);
        config.migrate_from = "lead"; /* in another namespace */
        assert_int_equal(hf_electors_add(electors, &config, NULL, &status), 0);
        config.ns = "elsewhere"; /* contended for already, as the old one */
        config.migrate_from = NULL;
        config.migrate_from_ns = NULL;
        assert_int_equal(hf_electors_add(electors, &config, NULL, &status), HF_E_EXISTS);
        assert_int_equal(hf_electors_stop(electors, NULL), 0);
        hf_electors_free(electors);
        node_stop(a);
        node_free(a);
        fake_api_free(api);
}

static void test_the_hook_pair_starts_and_stops_everything(void **state) {
        struct fake_api *api = fake_api_new();
        struct hf_hooks *hooks = NULL;
        struct hf_status status = {0};
        assert_int_equal(hf_metrics_new(&api->host.metrics), 0);
        struct node *a = node_new(api, "a", WRITES, false);
        assert_int_equal(hf_hooks_new(&api->host, &a->client->base, &hooks), 0);
        assert_int_equal(hf_controllers_install(hooks, a->electors, NULL, &status), 0);
        assert_int_equal(hf_controllers_install(hooks, a->electors, NULL, &status), HF_E_EXISTS);
        assert_int_equal(hf_hooks_start(hooks, &status), 0);
        AWAIT(a, leads);
        struct hf_metric *master = hf_metrics_get(api->host.metrics, HF_METRIC_GAUGE, "leader_election_master_status", "", "name=\"lead\"");
        assert_non_null(master);
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        hf_hooks_stopped(hooks);
        hf_hooks_free(hooks);
        assert_int_equal(a->n_running + a->n_instance_running, 0);
        struct hf_metrics *metrics = api->host.metrics;
        node_free(a);
        hf_metrics_free(metrics);
        fake_api_free(api);
}

/* A stuck thread is left as it is, on purpose: that it is never joined is no finding here. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "report_thread_leaks=0"; }

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_stop_hands_over_by_releasing),
                cmocka_unit_test(test_terms_alternate_under_overwrites_and_deletions),
                cmocka_unit_test(test_a_stuck_controller_is_named_and_nothing_released),
                cmocka_unit_test(test_a_drain_lets_work_finish_while_renewals_go_on),
                cmocka_unit_test(test_a_second_stop_waits_for_the_first),
                cmocka_unit_test(test_a_loop_that_hangs_does_not_hang_the_stop),
                cmocka_unit_test(test_after_a_loss_writes_are_refused_at_once),
                cmocka_unit_test(test_a_hung_api_ends_the_term_and_does_not_hold_up_the_stop),
                cmocka_unit_test(test_refusals_end_the_term_and_it_comes_back),
                cmocka_unit_test(test_a_hand_over_reaches_the_named_one),
                cmocka_unit_test(test_a_server_without_fences_ends_the_term_unless_accepted),
                cmocka_unit_test(test_a_failing_controller_is_run_again),
                cmocka_unit_test(test_two_electors_share_a_loop),
                cmocka_unit_test(test_wrong_configurations_are_refused_with_a_line),
                cmocka_unit_test(test_two_leases_are_led_as_one),
                cmocka_unit_test(test_two_leases_outlive_a_bad_connection),
                cmocka_unit_test(test_migrations_that_cannot_be_are_refused),
                cmocka_unit_test(test_the_hook_pair_starts_and_stops_everything),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
