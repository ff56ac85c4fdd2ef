/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failing allocations and thread creations. Each scenario runs again and again, and the n-th
 * allocation (or thread creation) of the library in it fails, for every n, on whichever thread it
 * happens. A function either does its work or reports the failure, and background work is retried.
 * What is not freed is an error, too.
 *
 * failing_memory.h makes them fail. Allocations of the fake API server do not fail: it reports when
 * a thread runs its code (fake_api_shield).
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/bootstrap.h>
#include <holdfast/condition.h>
#include <holdfast/informer.h>
#include <holdfast/leader.h>
#include <holdfast/owner.h>
#include <holdfast/reconciler.h>
#include <holdfast/recorder.h>
#include <holdfast/selector.h>
#include <holdfast/shards.h>
#include <holdfast/upsert.h>
#include <holdfast/workqueue.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "bootstrap/content.h"
#include "bootstrap/ledger.h"
#include "bootstrap/manifest.h"
#include "bootstrap/step_body.h"
#include "failing_memory.h"
#include "fake_api_client.h"
#include "leader/term.h"

#define GUARD (20 * HF_NSEC_PER_SEC)

/* ---- an elector ---- */

struct fixture {
        struct fake_api *api;
        int n_running; /* guarded by api->mu, like the next field */
        bool has_run;
};

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

static int elector_begin(struct fixture *f, struct fake_api_client *client,
                         struct hf_electors **ret_electors) {
        const struct hf_controller controllers[] = {
                {.name = "worker", .runs = HF_LEADER_ONLY, .run = run, .ctx = f},
                {.name = "other",
                 .runs = HF_LEADER_ONLY,
                 .run = run_instance,
                 .after = (const char *const[]){"worker"},
                 .n_after = 1},
                {.name = "local", .runs = HF_EVERY_INSTANCE, .run = run_instance},
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
        };
        struct hf_status status = {0};
        int r = hf_electors_new(&f->api->host, ret_electors);
        if (r != 0)
                *ret_electors = NULL;
        r = r != 0 ? r : hf_electors_add(*ret_electors, &config, NULL, &status);
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

static void elector_life(int n) {
        struct fixture f = {.api = fake_api_new()};
        struct fake_api_client *client = fake_api_client_new(f.api);
        struct hf_electors *electors = NULL;
        struct hf_status status = {0};

        failing_memory_arm(n);
        int r = elector_begin(&f, client, &electors);
        if (r == 0) {
                await_run(&f);
                r = hf_electors_stop(electors, &status);
                failing_memory_disarm();
                if (r != 0)
                        fail_msg("allocation %d: stop: %s", n, status.message);
                assert_int_equal(f.n_running, 0);
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

static int run_shard(struct hf_term *term, unsigned shard, void *ctx) { return 0; }

static void shards_life(int n) {
        struct fake_api *api = fake_api_new();
        struct fake_api_client *client = fake_api_client_new(api);
        const struct hf_elector_config elector = {.size = sizeof elector,
                                                  .ns = "kube-system",
                                                  .name = "jobs",
                                                  .identity = "a",
                                                  .client = &client->base};
        const struct hf_shard_controller controller = {.name = "job", .run = run_shard};
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

static void test_shards_are_added_or_the_failure_is_reported(void **state) {
        failing_memory_try_all(shards_life, 20);
}

static void test_an_elector_leads_or_reports_the_failure(void **state) {
        failing_memory_try_all(elector_life, 20);
}

/* ---- a work queue ---- */

static void queue_life(int n) {
        static const struct hf_host host = {.size = sizeof host};
        struct hf_workqueue *queue = NULL;
        char key[16];
        int n_in = 0, n_out = 0;
        const char *taken;

        failing_memory_arm(n);
        int r = hf_workqueue_new(&host, "q", &queue);
        assert_true(r == 0 || is_shortage(r));
        for (int i = 0; r == 0 && i < 50; i++) {
                (void)snprintf(key, sizeof key, "ns/%d", i);
                int added = i % 2 ? hf_workqueue_add(queue, key)
                                  : hf_workqueue_add_after(queue, key, 1);
                assert_true(added == 0 || is_shortage(added));
                n_in += added == 0;
        }
        failing_memory_disarm();
        for (; r == 0 && n_out < n_in; n_out++) { /* all accepted keys come out */
                assert_int_equal(hf_workqueue_take(queue, hf_cancel_never(), &taken), 0);
                hf_workqueue_done(queue, taken);
        }
        if (r == 0)
                hf_workqueue_drain(queue);
        if (r == 0)
                assert_int_equal(hf_workqueue_take(queue, hf_cancel_never(), &taken), HF_E_CLOSED);
        hf_workqueue_free(queue);
}

static void test_a_queue_keeps_the_keys_it_accepted(void **state) {
        failing_memory_try_all(queue_life, 50);
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

/* The object appears and disappears; its key is reconciled after each. Returns whether anything
 * failed. */
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
        const struct hf_controller controller = {.name = "keys", .run = run_reconciler};
        const struct hf__term_config term_config = {.controllers = &controller,
                                                    .n_controllers = 1,
                                                    .label = "ns/name",
                                                    .acquired_at = "",
                                                    .joined = on_joined,
                                                    .ctx = &watched};

        pthread_mutex_init(&watched.mu, NULL);
        (void)hf_cond_init(&watched.changed);
        assert_int_equal(hf_informer_new(&host, &config, &informer), 0);
        assert_int_equal(hf_informer_start(informer), 0);
        const struct hf_reconciler_source source = {.informer = informer, .map = map};
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
        failing_memory_arm(n);
        fake_api_put_thing(api, "a", "new", "2");
        await_watched(&watched, 0, n);
        failing_memory_disarm();
        bool was_hit = failing_memory_hit();
        failing_memory_arm(n);
        fake_api_delete_thing(api, "a", "new");
        await_watched(&watched, 0, n);
        failing_memory_disarm();
        was_hit = failing_memory_hit() || was_hit;
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

/* A worker's key needs no memory to come again. */
static void test_a_retry_needs_no_memory(void **state) {
        static const struct hf_host host = {.size = sizeof host};
        struct hf_workqueue *queue = NULL;
        const char *key = NULL;
        assert_int_equal(hf_workqueue_new(&host, "q", &queue), 0);
        assert_int_equal(hf_workqueue_add(queue, "a/b"), 0);
        assert_int_equal(hf_workqueue_take(queue, hf_cancel_never(), &key), 0);
        for (int i = 0; i < 3; i++) {
                failing_memory_arm(0);
                int r = 0;
                switch (i) {
                case 0: r = hf_workqueue_add(queue, key); break;
                case 1: r = hf_workqueue_add_after(queue, key, 1); break;
                default: r = hf_workqueue_retry(queue, key); break;
                }
                failing_memory_disarm();
                assert_int_equal(r, 0);
                assert_false(failing_memory_hit());
        }
        hf_workqueue_free(queue);
}

/* ---- helpers of controllers ---- */

static void helpers_life(int n) {
        static const char
                owner[] = "{\"apiVersion\":\"v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":"
                          "\"o\",\"namespace\":\"a\",\"uid\":\"u\"}}",
                body[] = "{\"metadata\":{\"name\":\"x\",\"namespace\":\"a\"},\"w\":{\"b\":1}}";
        struct fake_api *api = fake_api_new();
        struct hf_client *client = &fake_api_client_new(api)->base;
        const struct hf_condition condition = {.size = sizeof condition,
                                               .type = "Ready",
                                               .status = "True",
                                               .reason = "Done"};
        const char *const values[] = {"a", "b"};
        const struct hf_selector_term term = {.key = "k",
                                              .op = HF_SELECTOR_IN,
                                              .values = values,
                                              .n_values = 2};
        const struct hf_selector selector = {.size = sizeof selector,
                                             .labels = &term,
                                             .n_labels = 1};
        const struct hf_recorder_config config = {.size = sizeof config,
                                                  .client = client,
                                                  .component = "c",
                                                  .instance = "i"};
        const struct hf_request request = {.resource = {"", "v1", "things"},
                                           .ns = "a",
                                           .name = "x",
                                           .body = body,
                                           .n_body = sizeof body - 1};
        struct hf_recorder *recorder = NULL;
        char *texts[4] = {NULL};
        int r[5];

        fake_api_put_thing(api, "a", "x", "1");
        failing_memory_arm(n);
        r[0] = hf_owner_set(body, sizeof body - 1, owner, sizeof owner - 1, &texts[0]);
        r[1] = hf_condition_set(&api->host, body, sizeof body - 1, &condition, &texts[1], NULL);
        r[2] = hf_selector_query(&selector, &texts[2], NULL);
        r[3] = hf_upsert(client, &request, hf_cancel_never(), NULL, &texts[3], NULL);
        r[4] = hf_recorder_new(&api->host, &config, &recorder);
        if (r[4] == 0)
                hf_recorder_event(recorder, owner, sizeof owner - 1, HF_RECORDER_NORMAL, "R", "m");
        failing_memory_disarm();
        for (size_t i = 0; i < 5; i++)
                assert_true(r[i] == 0 || is_shortage(r[i]));
        for (size_t i = 0; i < 4; i++) {
                assert_true((r[i] == 0) == (texts[i] != NULL));
                free(texts[i]);
        }
        hf_recorder_free(recorder);
        hf_client_free(client);
        fake_api_free(api);
}

static void test_helpers_do_their_work_or_report_the_failure(void **state) {
        failing_memory_try_all(helpers_life, 14);
}

/* ---- requests over HTTP ---- */

struct replies {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        int n;
};

static void count_reply(void *ctx, const struct hf_response *reply) {
        struct replies *replies = ctx;
        assert(reply->error != 0);
        pthread_mutex_lock(&replies->mu);
        replies->n++;
        pthread_cond_broadcast(&replies->cond);
        pthread_mutex_unlock(&replies->mu);
}

static void count_end(void *ctx, int error, const struct hf_status *status) {
        const struct hf_response reply = {.error = error};
        count_reply(ctx, &reply);
}
static void no_event(void *ctx, const struct hf_event *event) { abort(); }

static void rest_life(int n) {
        static const struct hf_host host = {.size = sizeof host};
        const struct hf_rest_config config = {.size = sizeof config,
                                              .server = "https://127.0.0.1:1",
                                              .bearer_token = "t",
                                              .server_name = "a.test"}; /* nothing listens there */
        const struct hf_fence fence = {.ns = "a", .name = "b", .identity = "c", .term = 5};
        const struct hf_request request = {.verb = HF_VERB_UPDATE,
                                           .resource = {"", "v1", "configmaps"},
                                           .ns = "a",
                                           .name = "b",
                                           .body = "{}",
                                           .n_body = 2,
                                           .fence = &fence};
        const struct hf_watch_spec spec = {.resource = {"", "v1", "configmaps"}, .ns = "a"};
        struct replies replies = {.mu = PTHREAD_MUTEX_INITIALIZER,
                                  .cond = PTHREAD_COND_INITIALIZER};
        struct hf_client *client = NULL;
        int expected = 0;

        failing_memory_arm(n);
        int r = hf_rest_client_new(&host, &config, &client, NULL);
        assert_true(r == 0 || is_shortage(r));
        if (r == 0) {
                r = hf_client_request(client, &request, count_reply, &replies, NULL);
                assert_true(r == 0 || is_shortage(r));
                expected += r == 0;
                r = hf_client_watch(client, &spec, no_event, count_end, &replies, NULL);
                assert_true(r == 0 || is_shortage(r));
                expected += r == 0;
        }
        pthread_mutex_lock(&replies.mu);
        while (replies.n < expected)
                pthread_cond_wait(&replies.cond, &replies.mu);
        pthread_mutex_unlock(&replies.mu);
        failing_memory_disarm();
        hf_client_free(client);
        assert_int_equal(replies.n, expected);
}

static void test_every_accepted_request_gets_a_reply(void **state) {
        failing_memory_try_all(rest_life, 10);
}

/* ---- an informer ---- */

static void cache_life(int n) {
        static const struct hf_host host = {.size = sizeof host};
        struct fake_api *api = fake_api_new();
        struct hf_client *client = &fake_api_client_new(api)->base;
        struct hf_informer *informer = NULL;
        struct hf_cancel *guard = NULL;
        char revision[24];
        const struct hf_informer_config config = {.size = sizeof config,
                                                  .client = client,
                                                  .resource = {"", "v1", "things"}};

        assert_int_equal(hf_cancel_new(NULL, NULL, &guard), 0);
        hf_cancel_set_deadline(guard, hf_now(hf_clock_system()) + GUARD);
        (void)fake_api_put_thing(api, "a", "one", "1");
        failing_memory_arm(n);
        int r = hf_informer_new(&host, &config, &informer);
        r = r != 0 ? r : hf_informer_start(informer);
        assert_true(r == 0 || is_shortage(r));
        if (r == 0) {
                assert_int_equal(hf_informer_wait(informer, NULL, guard), 0);
                uint64_t put = fake_api_put_thing(api, "a", "two", "2");
                (void)snprintf(revision, sizeof revision, "%llu", (unsigned long long)put);
                assert_int_equal(hf_informer_wait(informer, revision, guard), 0);
                assert_int_equal(hf_informer_count(informer), 2);
        }
        failing_memory_disarm();
        hf_informer_free(informer);
        hf_cancel_unref(guard);
        hf_client_free(client);
        fake_api_free(api);
}

static void test_an_informer_syncs_or_reports_the_failure(void **state) {
        failing_memory_try_all(cache_life, 5);
}

/* ---- a bootstrap: its manifests, its ledger, the bodies that it sends ---- */

static void manifests_life(int n) {
        static const char yaml[] =
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n---\n"
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: b, annotations: "
                "{x: y}}\n";
        static const struct hf_bootstrap_kind kinds[] = {{"v1", "ConfigMap", "configmaps", true}};
        const struct hf_bootstrap_manifest manifest = {"a.yaml", yaml, sizeof yaml - 1};
        const struct hf_bootstrap_phase phases[] = {{.name = "zero",
                                                     .manifests = &manifest,
                                                     .n_manifests = 1},
                                                    {.name = "one"}};
        const struct hf_bootstrap_config config = {.size = sizeof config,
                                                   .version = "1",
                                                   .kinds = kinds,
                                                   .n_kinds = 1,
                                                   .phases = phases,
                                                   .n_phases = 2};
        const struct hf_host host = {.size = sizeof host};
        struct hf_bootstrap *bootstrap = NULL;
        struct hf_status status = {0};

        failing_memory_arm(n);
        int r = hf_bootstrap_new(&host, &config, &bootstrap, &status);
        failing_memory_disarm();
        assert_true(r == 0 || is_shortage(r));
        assert_true((r == 0) == (bootstrap != NULL));
        assert_true(r == 0 || status.message[0]);
        hf_bootstrap_free(bootstrap);
}

static void ledger_life(int n) {
        static const char content[] = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{"
                                      "\"name\":\"a\"},\"data\":{\"b\":\"c\"}}";
        const struct hf__step step = {.content = (char *)content,
                                      .n_content = sizeof content - 1,
                                      .hash = "0123456789abcdef0123456789abcdef"};
        struct hf__ledger_entry entry = {.step = (char *)"a",
                                         .phase = "zero",
                                         .version = "1",
                                         .hash = "0123456789abcdef0123456789abcdef"};
        const char *const phases[] = {"zero"};
        struct hf__ledger ledger = {0}, back = {0};
        struct hf__strbuf text = {0}, body = {0};
        struct hf__content_seen seen;
        struct hf__json *json = NULL;

        failing_memory_arm(n);
        int r = hf__ledger_add(&ledger, &entry);
        r = r != 0 ? r : hf__ledger_complete(&ledger, "zero", "1", "now");
        r = r != 0 ? r : hf__ledger_write(&ledger, NULL, "n", "l", &text);
        r = r != 0 ? r : hf__json_parse(text.data, text.n, &json, NULL);
        r = r != 0 ? r : hf__ledger_read(json, phases, 1, &back, NULL);
        r = r != 0 ? r : hf__content_inspect(content, sizeof content - 1, &seen);
        r = r != 0 ? r : hf__step_body_replacement(&step, content, sizeof content - 1, &body);
        failing_memory_disarm();
        assert_true(r == 0 || is_shortage(r));
        assert_true(r != 0 || (back.n_entries == 1 && back.n_completed == 1));
        hf__json_free(json);
        hf__strbuf_done(&text);
        hf__strbuf_done(&body);
        hf__ledger_done(&ledger);
        hf__ledger_done(&back);
}

static void test_a_bootstrap_is_read_whole_or_not_at_all(void **state) {
        failing_memory_try_all(manifests_life, 20);
        failing_memory_try_all(ledger_life, 5);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_an_elector_leads_or_reports_the_failure),
                cmocka_unit_test(test_shards_are_added_or_the_failure_is_reported),
                cmocka_unit_test(test_a_queue_keeps_the_keys_it_accepted),
                cmocka_unit_test(test_a_reconciler_loses_no_key),
                cmocka_unit_test(test_a_retry_needs_no_memory),
                cmocka_unit_test(test_helpers_do_their_work_or_report_the_failure),
                cmocka_unit_test(test_every_accepted_request_gets_a_reply),
                cmocka_unit_test(test_an_informer_syncs_or_reports_the_failure),
                cmocka_unit_test(test_a_bootstrap_is_read_whole_or_not_at_all),
        };
        fake_api_shield = (struct fake_api_shield){.enter = failing_memory_enter,
                                                   .leave = failing_memory_leave};
        return cmocka_run_group_tests(tests, NULL, NULL);
}
