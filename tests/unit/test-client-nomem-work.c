/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failing allocations and thread creations in clients while they work: queues, the helpers of
 * controllers, requests over HTTP, informers. Each scenario runs again and again, and its n-th
 * allocation (or thread creation) fails, for every n, on whichever thread it happens.
 * test-client-nomem.c has the parts one by one.
 */
#undef NDEBUG
#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <holdfast/condition.h>
#include <holdfast/definition.h>
#include <holdfast/finalizer.h>
#include <holdfast/informer.h>
#include <holdfast/owned.h>
#include <holdfast/owner.h>
#include <holdfast/recorder.h>
#include <holdfast/selector.h>
#include <holdfast/upsert.h>
#include <holdfast/workqueue.h>

#include "failing_memory.h"
#include "fake_api_client.h"
#include "patience.h"

#define GUARD (20 * HF_NSEC_PER_SEC)

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

/* A key that a worker has can be queued again without an allocation. */
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

static const char *const two_values[] = {"a", "b"};
static const struct hf_selector_term one_of_two = {.key = "k",
                                                   .op = HF_SELECTOR_IN,
                                                   .values = two_values,
                                                   .n_values = 2};

static void helpers_life(int n) {
        static const char
                owner[] = "{\"apiVersion\":\"v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":"
                          "\"o\",\"namespace\":\"a\",\"uid\":\"u\"}}",
                body[] = "{\"metadata\":{\"name\":\"x\",\"namespace\":\"a\"},\"w\":{\"b\":1}}";
        static const char definition[] =
                "{\"metadata\":{\"name\":\"things.g.com\"},\"spec\":{\"group\":\"g.com\",\"names\":"
                "{"
                "\"plural\":\"things\"},\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":"
                "true}]},"
                "\"status\":{\"conditions\":[{\"type\":\"Established\",\"status\":\"True\"}]}}";
        struct fake_api *api = fake_api_new();
        struct hf_client *client = &fake_api_client_new(api)->base;
        const struct hf_condition condition = {.size = sizeof condition,
                                               .type = "Ready",
                                               .status = "True",
                                               .reason = "Done"};
        const struct hf_selector selector = {.size = sizeof selector,
                                             .labels = &one_of_two,
                                             .n_labels = 1};
        const struct hf_recorder_config config = {.size = sizeof config,
                                                  .client = client,
                                                  .component = "c",
                                                  .instance = "i"};
        const struct hf_request request = {.size = sizeof request,
                                           .resource = {"", "v1", "things"},
                                           .ns = "a",
                                           .name = "x",
                                           .body = body,
                                           .n_body = sizeof body - 1};
        const struct hf_request owned = {.size = sizeof owned,
                                         .resource = {"", "v1", "things"},
                                         .ns = "a",
                                         .name = "owned",
                                         .body = "{\"v\":\"1\"}",
                                         .n_body = 9};
        struct hf_recorder *recorder = NULL;
        char *texts[5] = {NULL};
        int r[9];

        fake_api_put_thing(api, "a", "x", "1");
        fake_api_put(api, "customresourcedefinitions//things.g.com", definition);
        failing_memory_arm(n);
        r[0] = hf_owner_set(body, sizeof body - 1, owner, sizeof owner - 1, &texts[0]);
        r[1] = hf_condition_set(&api->host, body, sizeof body - 1, &condition, &texts[1], NULL);
        r[2] = hf_selector_query(&selector, &texts[2], NULL);
        r[3] = hf_upsert(client, &request, hf_cancel_never(), NULL, &texts[3], NULL);
        r[4] = hf_recorder_new(&api->host, &config, &recorder);
        if (r[4] == 0)
                hf_recorder_event(recorder, owner, sizeof owner - 1, HF_RECORDER_NORMAL, "R", "m");
        r[5] = hf_finalizer_set(body, sizeof body - 1, "f", true, &texts[4], NULL);
        r[6] = hf_owned_upsert(client, &owned, owner, sizeof owner - 1, hf_cancel_never(), NULL,
                               NULL);
        r[7] = hf_owned_delete(client, &owned, owner, sizeof owner - 1, hf_cancel_never(), NULL);
        r[8] = hf_definition_establish(client, definition, sizeof definition - 1, hf_cancel_never(),
                                       NULL);
        failing_memory_disarm();
        for (size_t i = 0; i < sizeof r / sizeof *r; i++)
                assert_true(r[i] == 0 || is_shortage(r[i]));
        /* An object that was written is complete. */
        static const char *const parts[] = {"\"controller\":true,\"blockOwnerDeletion\":true}]}",
                                            "\"reason\":\"Done\",\"message\":\"\"}]}}",
                                            "labelSelector=k%20in%20%28a%2Cb%29", "\"w\":{\"b\":1}",
                                            "\"finalizers\":[\"f\"]}"};
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
                assert_true((r[i == 4 ? 5 : i] == 0) == (texts[i] != NULL));
                if (texts[i] && !strstr(texts[i], parts[i]))
                        fail_msg("%s", texts[i]);
                free(texts[i]);
        }
        if (r[7] == 0 && r[6] == 0)
                assert_null(fake_api_get(api, "things/a/owned"));
        hf_recorder_free(recorder);
        hf_client_free(client);
        fake_api_free(api);
}

static void test_helpers_do_their_work_or_report_the_failure(void **state) {
        failing_memory_try_all(helpers_life, 14);
}

/* ---- Events ---- */

static unsigned n_events;

static int take_event(struct hf_client *self, const struct hf_request *request, hf_response_fn done,
                      void *ctx, uint64_t *ret_id) {
        static const char name[] = "\"metadata\":{\"name\":\"o.";

        assert_non_null(memmem(request->body, request->n_body, name, strlen(name)));
        assert_int_equal(((const char *)request->body)[request->n_body - 1], '}');
        n_events++;
        done(ctx, &(struct hf_response){.size = sizeof(struct hf_response)});
        return 0;
}

static void event_life(int n) {
        static const struct hf_client_ops ops = {.size = sizeof ops, .request = take_event};
        static const struct hf_host host = {.size = sizeof host};
        static const char object[] =
                "{\"apiVersion\":\"v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":"
                "\"o\",\"namespace\":\"a\",\"uid\":\"u\"}}";
        struct hf_client client = {.ops = &ops, .host = &host};
        const struct hf_recorder_config config = {.size = sizeof config,
                                                  .client = &client,
                                                  .component = "c",
                                                  .instance = "i"};
        struct hf_recorder *recorder = NULL;

        n_events = 0;
        failing_memory_arm(n);
        int r = hf_recorder_new(&host, &config, &recorder);
        if (r == 0)
                hf_recorder_event(recorder, object, strlen(object), HF_RECORDER_NORMAL, "R", "m");
        failing_memory_disarm();
        assert_int_equal(r == 0, recorder != NULL);
        assert_int_equal(n_events, failing_memory_hit() ? 0 : 1);
        hf_recorder_free(recorder);
}

static void test_an_event_is_written_whole_or_not_at_all(void **state) {
        failing_memory_try_all(event_life, 5);
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
        const struct hf_response reply = {.size = sizeof reply, .error = error};
        count_reply(ctx, &reply);
}
static void no_event(void *ctx, const struct hf_event *event) { abort(); }

static void rest_life(int n) {
        static const struct hf_host host = {.size = sizeof host};
        const struct hf_rest_config config =
                {.size = sizeof config,
                 .server = "https://127.0.0.1:1", /* nothing listens on this port */
                 .bearer_token = "t",
                 .server_name = "a.test"};
        const struct hf_fence fence = {.ns = "a", .name = "b", .identity = "c", .term = 5};
        const struct hf_request request = {.size = sizeof request,
                                           .verb = HF_VERB_UPDATE,
                                           .resource = {"", "v1", "configmaps"},
                                           .ns = "a",
                                           .name = "b",
                                           .body = "{}",
                                           .n_body = 2,
                                           .fence = &fence};
        const struct hf_watch_spec spec = {.size = sizeof spec,
                                           .resource = {"", "v1", "configmaps"},
                                           .ns = "a"};
        struct replies replies = {.mu = PTHREAD_MUTEX_INITIALIZER,
                                  .cond = PTHREAD_COND_INITIALIZER};
        struct hf_client *client = NULL;
        struct hf_status status = {0};
        int expected = 0;

        failing_memory_arm(n);
        int r = hf_rest_client_new(&host, &config, &client, &status);
        assert_true(r == 0 || is_shortage(r));
        assert_int_equal(status.error, r);
        if (r == 0) {
                r = hf_client_request(client, &request, count_reply, &replies, NULL);
                assert_true(r == 0 || is_shortage(r));
                expected += r == 0;
                r = hf_client_watch(client, &spec, no_event, count_end, &replies, NULL);
                assert_true(r == 0 || is_shortage(r));
                expected += r == 0;
        }
        pthread_mutex_lock(&replies.mu);
        PATIENCE_AWAIT_LOCKED(&replies.cond, &replies.mu, replies.n >= expected);
        pthread_mutex_unlock(&replies.mu);
        failing_memory_disarm();
        hf_client_free(client);
        assert_int_equal(replies.n, expected);
}

static void test_every_accepted_request_gets_a_reply(void **state) {
        failing_memory_try_all(rest_life, 10);
}

/* ---- a client in a cluster ---- */

static char account_dir[] = "/tmp/account-XXXXXX";

static void write_account(const char *name, const char *text) {
        char path[64];

        (void)snprintf(path, sizeof path, "%s/%s", account_dir, name);
        FILE *file = fopen(path, "we");
        assert(file);
        assert(fputs(text, file) >= 0 && fclose(file) == 0);
}

static void in_cluster_life(int n) {
        static const struct hf_host host = {.size = sizeof host};
        const struct hf_in_cluster_config config = {.size = sizeof config,
                                                    .directory = account_dir};
        struct hf_client *client = NULL;
        struct hf_status status = {0};
        char ns[HF_NAME_MAX + 1];

        failing_memory_arm(n);
        int r = hf_rest_client_in_cluster(&host, &config, &client, ns, &status);
        failing_memory_disarm();
        assert_true(r == 0 || is_shortage(r));
        assert_true((r == 0) == (client != NULL));
        assert_int_equal(status.error, r);
        hf_client_free(client);
}

static void test_a_client_in_a_cluster_is_made_or_the_failure_is_reported(void **state) {
        static const char *const names[] = {"ca.crt", "token", "namespace"};
        char path[64];

        assert_non_null(mkdtemp(account_dir));
        write_account("ca.crt", "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n");
        write_account("token", "secret\n");
        write_account("namespace", "team-a\n");
        assert_int_equal(setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1", 1), 0);
        assert_int_equal(setenv("KUBERNETES_SERVICE_PORT", "1", 1), 0);
        failing_memory_try_all(in_cluster_life, 10);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
                (void)snprintf(path, sizeof path, "%s/%s", account_dir, names[i]);
                assert_int_equal(unlink(path), 0);
        }
        assert_int_equal(rmdir(account_dir), 0);
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

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_queue_keeps_the_keys_it_accepted),
                cmocka_unit_test(test_a_retry_needs_no_memory),
                cmocka_unit_test(test_helpers_do_their_work_or_report_the_failure),
                cmocka_unit_test(test_an_event_is_written_whole_or_not_at_all),
                cmocka_unit_test(test_every_accepted_request_gets_a_reply),
                cmocka_unit_test(test_a_client_in_a_cluster_is_made_or_the_failure_is_reported),
                cmocka_unit_test(test_an_informer_syncs_or_reports_the_failure),
        };
        fake_api_shield = (struct fake_api_shield){.enter = failing_memory_enter,
                                                   .leave = failing_memory_leave};
        return cmocka_run_group_tests(tests, NULL, NULL);
}
