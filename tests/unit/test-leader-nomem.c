/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failing allocations and thread creations in electors, shards and reconcilers. Each scenario runs
 * again and again, and the n-th allocation (or thread creation) of the library in it fails, for
 * every n, on whichever thread it happens. A function either does its work or reports the failure,
 * and background work is retried. Memory that is not freed is an error, too.
 *
 * failing_memory.h makes them fail. Allocations of the fake API server do not fail: it reports when
 * a thread runs its code (fake_api_shield).
 */
#undef NDEBUG
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/candidate.h>
#include <holdfast/informer.h>
#include <holdfast/leader.h>
#include <holdfast/operator.h>
#include <holdfast/reconciler.h>
#include <holdfast/shards.h>
#include <holdfast/workqueue.h>

#include "base/thread.h"
#include "clocked_elector.h"
#include "failing_memory.h"
#include "fake_api_client.h"
#include "leader/electors.h"
#include "leader/term.h"

#define GUARD (20 * HF_NSEC_PER_SEC)

/* ---- an elector ---- */

struct fixture {
        struct fake_api *api;
        int n_running; /* guarded by api->mu, like the next field */
        bool has_run;
        struct hf_elector *elector;
        bool acts_without_controllers; /* only the elector loop's thread writes it */
        atomic_bool began_too_early, follows;
};

/* A host that is told that the controllers cannot start must not be able to act. */
static void on_log(void *ctx, enum hf_log_level level, const char *component, const char *message) {
        struct fixture *f = ctx;
        if (strstr(message, "cannot start, so the term ends") && hf_elector_may_act(f->elector))
                f->acts_without_controllers = true;
}

static int run(struct hf_term *term, void *ctx) {
        struct fixture *f = ctx;
        pthread_mutex_lock(&f->api->mu);
        f->n_running++;
        f->has_run = true;
        pthread_cond_broadcast(&f->api->changed);
        pthread_mutex_unlock(&f->api->mu);
        (void)hf_cancel_wait(hf_term_drain(term), HF_NSEC_NEVER);
        pthread_mutex_lock(&f->api->mu);
        f->n_running--;
        pthread_mutex_unlock(&f->api->mu);
        return 0;
}

static int run_instance(struct hf_term *term, void *ctx) {
        (void)hf_cancel_wait(hf_term_drain(term), HF_NSEC_NEVER);
        return 0;
}

/* The loop prepares the next term before it reads another message. */
static void on_change(void *ctx, const struct hf_leader_info *info) {
        struct fixture *f = ctx;

        if (strcmp(info->holder, "b") == 0)
                atomic_store(&f->follows, true);
}

/* After "worker", which is never said to have started, so this must not begin. */
static int run_too_early(struct hf_term *term, void *ctx) {
        struct fixture *f = ctx;

        atomic_store(&f->began_too_early, true);
        return 0;
}

static int elector_begin(struct fixture *f, struct fake_api_client *client,
                         struct hf_electors **ret_electors) {
        const struct hf_controller controllers[] = {
                {.size = sizeof(struct hf_controller),
                 .name = "worker",
                 .runs = HF_LEADER_ONLY,
                 .run = run,
                 .ctx = f},
                {.size = sizeof(struct hf_controller),
                 .name = "other",
                 .runs = HF_LEADER_ONLY,
                 .run = run_too_early,
                 .ctx = f,
                 .after = (const char *const[]){"worker"},
                 .n_after = 1},
                {.size = sizeof(struct hf_controller),
                 .name = "local",
                 .runs = HF_EVERY_INSTANCE,
                 .run = run_instance},
        };
        const struct hf_elector_config config = {
                .size = sizeof config,
                .ns = "kube-system",
                .name = "lead",
                .identity = "a",
                .client = &client->base,
                .timing = {.lease_duration = HF_NSEC_PER_SEC,
                           .renew_deadline = 700 * HF_NSEC_PER_MSEC,
                           .retry_period = 50 * HF_NSEC_PER_MSEC,
                           .request_timeout = 200 * HF_NSEC_PER_MSEC},
                .controllers = controllers,
                .n_controllers = 3,
                .labels = (const char *const[]){"a=b"},
                .n_labels = 1,
                .on_change = on_change,
                .ctx = f,
        };
        struct hf_status status = {0};
        int r = hf_electors_new(&f->api->host, ret_electors);
        if (r != 0)
                *ret_electors = NULL;
        r = r != 0 ? r : hf_electors_add(*ret_electors, &config, &f->elector, &status);
        return r != 0 ? r : hf_electors_start(*ret_electors, &status);
}

static void await_run(struct fixture *f) {
        const struct hf_clock *clock = hf_clock_system();
        hf_nsec until = hf_now(clock) + GUARD;
        pthread_mutex_lock(&f->api->mu);
        while (!f->has_run && hf_now(clock) < until)
                (void)clock->wait(clock->ctx, &f->api->changed, &f->api->mu, until);
        bool has_run = f->has_run;
        pthread_mutex_unlock(&f->api->mu);
        if (!has_run)
                fail_msg("it never led");
}

static void put_lease(struct fake_api *api, const char *holder) {
        char text[300];

        (void)snprintf(text, sizeof text,
                       "{\"metadata\":{\"name\":\"lead\"},\"spec\":{\"holderIdentity\":\"%s\","
                       "\"leaseDurationSeconds\":3600,"
                       "\"acquireTime\":\"2026-01-01T00:00:00.000000Z\","
                       "\"renewTime\":\"2026-01-01T00:00:00.000000Z\"}}",
                       holder);
        fake_api_put(api, "leases/kube-system/lead", text);
}

/* is_standby: another process leads at first, so a term is prepared. */
static void elector_life(int n, bool is_standby) {
        struct fixture f = {.api = fake_api_new()};
        struct fake_api_client *client = fake_api_client_new(f.api);
        struct hf_electors *electors = NULL;
        struct hf_status status = {0};

        f.api->host.log = (struct hf_log){.write = on_log, .ctx = &f, .max_level = HF_LOG_ERROR};
        if (is_standby)
                put_lease(f.api, "b");
        failing_memory_arm(n);
        int r = elector_begin(&f, client, &electors);
        if (r == 0) {
                if (is_standby) {
                        PATIENCE_AWAIT(atomic_load(&f.follows));
                        put_lease(f.api, "");
                }
                await_run(&f);
                r = hf_electors_stop(electors, &status);
                failing_memory_disarm();
                if (r != 0)
                        fail_msg("allocation %d: stop: %s", n, status.message);
                assert_int_equal(f.n_running, 0);
                assert_false(f.acts_without_controllers);
                assert_false(atomic_load(&f.began_too_early));
                char holder[] = "\"holderIdentity\":\"\"",
                     *text = fake_api_get(f.api, "leases/kube-system/lead");
                assert_non_null(strstr(text, holder));
                free(text);
        }
        failing_memory_disarm();
        if (r != 0 && !is_shortage(r))
                fail_msg("allocation %d: %s", n, hf_strerror(r));
        hf_electors_free(electors);
        hf_client_free(&client->base);
        fake_api_free(f.api);
}

static void leader_life(int n) { elector_life(n, false); }
static void standby_life(int n) { elector_life(n, true); }

static int run_shard(struct hf_term *term, unsigned shard, void *ctx) { return 0; }

static void shards_life(int n) {
        struct fake_api *api = fake_api_new();
        struct fake_api_client *client = fake_api_client_new(api);
        const struct hf_elector_config elector = {.size = sizeof elector,
                                                  .ns = "kube-system",
                                                  .name = "jobs",
                                                  .identity = "a",
                                                  .client = &client->base};
        const struct hf_shard_controller controller = {.size = sizeof controller,
                                                       .name = "job",
                                                       .run = run_shard};
        const struct hf_shards_config config = {.size = sizeof config,
                                                .elector = &elector,
                                                .n_shards = 3,
                                                .controllers = &controller,
                                                .n_controllers = 1};
        struct hf_electors *electors = NULL;
        struct hf_shards *shards = NULL;
        struct hf_status status = {0};

        assert_int_equal(hf_electors_new(&api->host, &electors), 0);
        failing_memory_arm(n);
        int r = hf_shards_add(electors, &config, &shards, &status);
        failing_memory_disarm();
        if (r != 0 && !is_shortage(r))
                fail_msg("allocation %d: %s", n, hf_strerror(r));
        if (r == 0) {
                assert_non_null(hf_shards_elector(shards, 2));
                assert_null(hf_shards_elector(shards, 3));
        } else {
                assert_true(status.message[0]);
        }
        hf_electors_free(electors);
        hf_client_free(&client->base);
        fake_api_free(api);
}

static int reconcile_nothing(void *ctx, struct hf_operator_work *work, hf_nsec *ret_again) {
        return 0;
}

static void operator_life(int n) {
        static const struct hf_operator_owned owned = {.size = sizeof owned,
                                                       .resource = {"", "v1", "parts"}};
        struct fake_api *api = fake_api_new();
        struct fake_api_client *client = fake_api_client_new(api);
        const struct hf_operator_config config = {.size = sizeof config,
                                                  .name = "things",
                                                  .ns = "default",
                                                  .identity = "one",
                                                  .client = &client->base,
                                                  .resource = {"", "v1", "things"},
                                                  .kind = "Thing",
                                                  .owned = &owned,
                                                  .n_owned = 1,
                                                  .reconcile = reconcile_nothing};
        struct hf_operator *op = NULL;
        struct hf_status status = {0};

        failing_memory_arm(n);
        int r = hf_operator_new(&api->host, &config, &op, &status);
        assert_true((r == 0) == (op != NULL));
        if (r == 0)
                r = hf_operator_start(op, &status);
        failing_memory_disarm();
        if (r != 0 && !is_shortage(r))
                fail_msg("allocation %d: %s", n, hf_strerror(r));
        if (r == 0)
                assert_int_equal(hf_operator_stop(op, &status), 0);
        hf_operator_free(op);
        hf_client_free(&client->base);
        fake_api_free(api);
}

/* Two Leases that are led as one. */
static void migration_life(int n) {
        struct fake_api *api = fake_api_new();
        struct fake_api_client *client = fake_api_client_new(api);
        const struct hf_elector_config config = {.size = sizeof config,
                                                 .ns = "kube-system",
                                                 .name = "lead",
                                                 .migrate_from = "lead-old",
                                                 .identity = "a",
                                                 .client = &client->base};
        struct hf_electors *electors = NULL;
        struct hf_status status = {0};

        assert_int_equal(hf_electors_new(&api->host, &electors), 0);
        failing_memory_arm(n);
        int r = hf_electors_add(electors, &config, NULL, &status);
        failing_memory_disarm();
        if (r != 0 && !is_shortage(r))
                fail_msg("allocation %d: %s", n, hf_strerror(r));
        assert_int_equal(electors->n, r == 0 ? 1 : 0);
        assert_true(r != 0 || electors->list[0]->lock);
        hf_electors_free(electors);
        hf_client_free(&client->base);
        fake_api_free(api);
}

/* Only the creation: later failures are retried after a time, and test-leader-candidate-times has
 * those. */
static void candidate_life(int n) {
        struct fake_api *api = fake_api_new();
        struct fake_api_client *client = fake_api_client_new(api);
        const struct hf_candidate_config config = {.size = sizeof config,
                                                   .client = &client->base,
                                                   .ns = "kube-system",
                                                   .name = "me",
                                                   .lease_name = "lead",
                                                   .binary_version = "1.3.0"};
        struct hf_candidate *candidate = NULL;
        struct hf_status status = {0};

        failing_memory_arm(n);
        int r = hf_candidate_new(&api->host, &config, &candidate, &status);
        failing_memory_disarm();
        if (r != 0) {
                assert_true(is_shortage(r) && status.message[0] && !candidate);
        } else {
                assert_int_equal(hf_candidate_start(candidate), 0);
                pthread_mutex_lock(&api->mu);
                hf_nsec until = hf_now(hf_clock_system()) + GUARD;
                while (!fake_store_find(&api->store, "leasecandidates/kube-system/me") &&
                       hf_now(hf_clock_system()) < until)
                        (void)hf_clock_system()->wait(hf_clock_system()->ctx, &api->changed,
                                                      &api->mu, until);
                assert_non_null(fake_store_find(&api->store, "leasecandidates/kube-system/me"));
                pthread_mutex_unlock(&api->mu);
                hf_candidate_free(candidate);
        }
        hf_client_free(&client->base);
        fake_api_free(api);
}

static void test_a_candidate_is_made_or_the_failure_is_reported(void **state) {
        failing_memory_try_all(candidate_life, 5);
}

static void test_shards_are_added_or_the_failure_is_reported(void **state) {
        failing_memory_try_all(shards_life, 20);
}

static void test_an_operator_is_made_or_the_failure_is_reported(void **state) {
        failing_memory_try_all(operator_life, 10);
}
static void test_a_migration_is_added_or_the_failure_is_reported(void **state) {
        failing_memory_try_all(migration_life, 5);
}

static void test_an_elector_leads_or_reports_the_failure(void **state) {
        failing_memory_try_all(leader_life, 20);
}

static void test_a_standby_leads_in_spite_of_the_failure(void **state) {
        failing_memory_try_all(standby_life, 20);
}

/* The clock stands still, so nobody else allocates meanwhile. */
static int with_no_memory(int (*request)(struct hf_elector *elector)) {
        clocked_settle();
        failing_memory_arm(0);
        int r = request(clocked.elector);
        failing_memory_disarm();
        assert_true(failing_memory_hit());
        clocked_settle();
        assert_true(clocked_is(HF_LEADING));
        return r;
}

static int hand_over(struct hf_elector *elector) { return hf_elector_hand_over(elector, "b"); }
static int hold_back(struct hf_elector *elector) { return hf__elector_hold_back(elector, 1); }

/* A caller whose request did not reach the loop gets an error. */
static void test_a_request_to_the_loop_is_made_or_refused(void **state) {
        clocked_elector_init();
        clocked_elector_start(&(struct clocked_options){0});
        clocked_await_term();
        assert_int_equal(with_no_memory(hand_over), -ENOMEM);
        assert_int_equal(with_no_memory(hf_elector_step_down), -ENOMEM);
        assert_int_equal(with_no_memory(hold_back), -ENOMEM);
        clocked_elector_stop();
        clocked_elector_free();
}

/* The elector opens another watch at once, which begins with the present Lease. The clock stands
 * still, so the loop is not rescued by its look at all electors once a second. */
static void test_an_event_that_was_lost_is_made_up_for_at_once(void **state) {
        int n = 0;

        clocked_elector_init();
        clocked_put_lease("x", "");
        clocked_elector_start(&(struct clocked_options){0});
        CLOCKED_AWAIT(strcmp(clocked_info().holder, "x") == 0);
        do {
                char holder[16];
                (void)snprintf(holder, sizeof holder, "x%d", n);
                clocked_move(30 * SEC); /* after that it may open a watch */
                failing_memory_arm(n++);
                clocked_put_lease(holder, "");
                PATIENCE_AWAIT(strcmp(clocked_info().holder, holder) == 0);
                failing_memory_disarm();
        } while (failing_memory_hit());
        assert_true(n > 2);
        clocked_elector_stop();
        clocked_elector_free();
}

/* ---- a reconciler ---- */

/* Counts how often the key "a/new" was reconciled. */
struct watched {
        pthread_mutex_t mu;
        pthread_cond_t changed;
        unsigned n_seen;
        bool joined;
};

static int count_key(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again) {
        struct watched *watched = ctx;
        pthread_mutex_lock(&watched->mu);
        watched->n_seen += strcmp(key, "a/new") == 0;
        pthread_cond_broadcast(&watched->changed);
        pthread_mutex_unlock(&watched->mu);
        return 0;
}

static void on_joined(void *ctx) {
        struct watched *watched = ctx;
        pthread_mutex_lock(&watched->mu);
        watched->joined = true;
        pthread_cond_broadcast(&watched->changed);
        pthread_mutex_unlock(&watched->mu);
}

/* Waits until the key was reconciled more than n times, or the term's work was joined. */
static void await_watched(struct watched *watched, unsigned n, int allocation) {
        const struct hf_clock *clock = hf_clock_system();
        hf_nsec until = hf_now(clock) + GUARD;
        pthread_mutex_lock(&watched->mu);
        while (watched->n_seen <= n && !watched->joined && hf_now(clock) < until)
                (void)clock->wait(clock->ctx, &watched->changed, &watched->mu, until);
        bool seen = watched->n_seen > n || watched->joined;
        watched->n_seen = 0;
        pthread_mutex_unlock(&watched->mu);
        if (!seen)
                fail_msg("allocation %d: a key was lost", allocation);
}

static int map_key(void *ctx, struct hf_workqueue *queue, enum hf_event_type type, const char *ns,
                   const char *name, const char *object, size_t n) {
        char key[HF_KEY_MAX], *copy = malloc(n);
        int r = copy ? hf_key_make(key, ns, name) : -ENOMEM;
        free(copy);
        return r != 0 ? r : hf_workqueue_add(queue, key);
}

static struct hf_reconciler the_reconciler;
static int run_reconciler(struct hf_term *term, void *ctx) {
        return hf_reconciler_run(&the_reconciler, term);
}

/* The object appears and disappears while the n-th allocation fails; its key is reconciled after
 * each. Returns whether anything failed. */
static bool appear_and_disappear(struct fake_api *api, struct watched *watched, int n) {
        failing_memory_arm(n);
        fake_api_put_thing(api, "a", "new", "2");
        await_watched(watched, 0, n);
        failing_memory_disarm();
        bool was_hit = failing_memory_hit();
        failing_memory_arm(n);
        fake_api_delete_thing(api, "a", "new");
        await_watched(watched, 0, n);
        failing_memory_disarm();
        return failing_memory_hit() || was_hit;
}

/* The life of a reconciler. Returns whether anything failed. */
static bool reconciler_life(int n, hf_reconciler_map_fn map) {
        static const struct hf_host host = {.size = sizeof host};
        struct fake_api *api = fake_api_new();
        struct hf_client *client = &fake_api_client_new(api)->base;
        struct watched watched = {.n_seen = 0};
        struct hf_informer *informer = NULL;
        struct hf__term *term = NULL;
        const struct hf_informer_config config = {.size = sizeof config,
                                                  .client = client,
                                                  .resource = {"", "v1", "things"}};
        const struct hf_controller controller = {.size = sizeof controller,
                                                 .name = "keys",
                                                 .run = run_reconciler};
        const struct hf__term_config term_config = {.controllers = &controller,
                                                    .n_controllers = 1,
                                                    .label = "ns/name",
                                                    .acquired_at = "",
                                                    .joined = on_joined,
                                                    .ctx = &watched};

        assert_int_equal(hf__mutex_cond_init(&watched.mu, &watched.changed), 0);
        assert_int_equal(hf_informer_new(&host, &config, &informer), 0);
        assert_int_equal(hf_informer_start(informer), 0);
        const struct hf_reconciler_source source = {.size = sizeof source,
                                                    .informer = informer,
                                                    .map = map};
        the_reconciler = (struct hf_reconciler){.size = sizeof the_reconciler,
                                                .name = "keys",
                                                .sources = &source,
                                                .n_sources = 1,
                                                .reconcile = count_key,
                                                .ctx = &watched};
        fake_api_put_thing(api, "a", "new", "1");
        assert_int_equal(hf__term_new(&host, &term_config, &term), 0);
        await_watched(&watched, 0, -1);
        fake_api_delete_thing(api, "a", "new");
        await_watched(&watched, 0, -1);
        bool was_hit = appear_and_disappear(api, &watched, n);
        hf__term_fire_drain(term);
        await_watched(&watched, UINT32_MAX, n);
        hf__term_free(term);
        hf_informer_free(informer);
        hf_client_free(client);
        fake_api_free(api);
        pthread_cond_destroy(&watched.changed);
        pthread_mutex_destroy(&watched.mu);
        return was_hit;
}

static void test_a_reconciler_loses_no_key(void **state) {
        static const hf_reconciler_map_fn maps[] = {NULL, map_key};
        for (size_t i = 0; i < 2; i++) {
                int n = 0;
                while (reconciler_life(n, maps[i]))
                        n++;
                assert_true(n > 2);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_candidate_is_made_or_the_failure_is_reported),
                cmocka_unit_test(test_shards_are_added_or_the_failure_is_reported),
                cmocka_unit_test(test_an_operator_is_made_or_the_failure_is_reported),
                cmocka_unit_test(test_a_migration_is_added_or_the_failure_is_reported),
                cmocka_unit_test(test_an_elector_leads_or_reports_the_failure),
                cmocka_unit_test(test_a_standby_leads_in_spite_of_the_failure),
                cmocka_unit_test(test_a_request_to_the_loop_is_made_or_refused),
                cmocka_unit_test(test_an_event_that_was_lost_is_made_up_for_at_once),
                cmocka_unit_test(test_a_reconciler_loses_no_key),
        };
        fake_api_shield = (struct fake_api_shield){.enter = failing_memory_enter,
                                                   .leave = failing_memory_leave};
        return cmocka_run_group_tests(tests, NULL, NULL);
}
