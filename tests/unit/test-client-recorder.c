/* SPDX-License-Identifier: Apache-2.0 */
/* Events: their content and their number. Nothing waits for them. */
#undef NDEBUG
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/client_port.h>
#include <holdfast/recorder.h>

#include "base/json.h"
#include "base/time_format.h"
#include "counting_host.h"
#include "fake_api_client.h"
#include "fake_api_private.h"
#include "patience.h"

#define OBJECT                                                                                     \
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"x\","              \
        "\"namespace\":\"a\",\"uid\":\"u-1\",\"resourceVersion\":\"7\"}}"

/* Boot time is the system's plus an offset that the test sets. */
static hf_nsec offset;
static hf_nsec boot(void *ctx) { return hf_now(hf_clock_system()) + offset; }
static hf_nsec real_time(void *ctx) {
        return hf_clock_system()->real(hf_clock_system()->ctx) + offset;
}

static struct {
        struct fake_api *api;
        struct fake_api_client *client;
        struct hf_clock clock;
        struct hf_host host;
        struct hf_recorder *recorder;
        char logged[256]; /* the last line; only the test's thread records */
} f;

static void on_log(void *ctx, enum hf_log_level level, const char *component, const char *message) {
        (void)snprintf(f.logged, sizeof f.logged, "%s", message);
}

static int setup(void **state) {
        offset = 0;
        f.api = fake_api_new();
        f.client = fake_api_client_new(f.api);
        f.clock = *hf_clock_system();
        f.clock.boot = boot;
        f.clock.real = real_time;
        f.logged[0] = '\0';
        f.host = (struct hf_host){.size = sizeof f.host,
                                  .clock = &f.clock,
                                  .log = {.write = on_log, .max_level = HF_LOG_DEBUG}};
        const struct hf_recorder_config config = {.size = sizeof config,
                                                  .client = &f.client->base,
                                                  .component = "copies",
                                                  .instance = "r-1"};
        assert_int_equal(hf_recorder_new(&f.host, &config, &f.recorder), 0);
        return 0;
}
static int teardown(void **state) {
        hf_recorder_free(f.recorder);
        hf_client_free(&f.client->base);
        fake_api_free(f.api);
        return 0;
}

static void await_commits(size_t n) { assert_int_equal(fake_api_await_commits(f.api, n), n); }

static bool is_idle(void) {
        pthread_mutex_lock(&f.api->mu);
        bool idle = !f.api->requests && f.client->n_callbacks == 0;
        pthread_mutex_unlock(&f.api->mu);
        return idle;
}

/* Waits until the client has answered all requests. */
static void await_idle(void) { PATIENCE_AWAIT(is_idle()); }

static struct hf__json *last_event(void) {
        struct hf__json *json = NULL;
        pthread_mutex_lock(&f.api->mu);
        const char *text = f.api->store.commits[f.api->store.n_commits - 1].text->data;
        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        pthread_mutex_unlock(&f.api->mu);
        return json;
}

static void record(int i) {
        hf_recorder_event(f.recorder, OBJECT, strlen(OBJECT), HF_RECORDER_WARNING, "NoCopy",
                          "try %d", i);
}

static void test_an_event_names_the_object_and_the_reason(void **state) {
        record(1);
        await_commits(1); /* a PUT that finds nothing, then a POST */
        assert_true(strncmp(f.api->store.commits[0].key, "events/a/x.", 11) == 0);
        struct hf__json *json = last_event();
        assert_string_equal(hf__json_string(json, "kind"), "Event");
        assert_string_equal(hf__json_string(json, "metadata.namespace"), "a");
        assert_string_equal(hf__json_string(json, "involvedObject.kind"), "ConfigMap");
        assert_string_equal(hf__json_string(json, "involvedObject.apiVersion"), "v1");
        assert_string_equal(hf__json_string(json, "involvedObject.name"), "x");
        assert_string_equal(hf__json_string(json, "involvedObject.namespace"), "a");
        assert_string_equal(hf__json_string(json, "involvedObject.uid"), "u-1");
        assert_string_equal(hf__json_string(json, "involvedObject.resourceVersion"), "7");
        assert_string_equal(hf__json_string(json, "type"), "Warning");
        assert_string_equal(hf__json_string(json, "reason"), "NoCopy");
        assert_string_equal(hf__json_string(json, "message"), "try 1");
        assert_string_equal(hf__json_string(json, "source.component"), "copies");
        assert_string_equal(hf__json_string(json, "reportingComponent"), "copies");
        assert_string_equal(hf__json_string(json, "reportingInstance"), "r-1");
        assert_non_null(hf__json_string(json, "firstTimestamp"));
        hf__json_free(json);
}

static void test_repetitions_are_counted_in_one_object(void **state) {
        int64_t count = 0;

        record(1);
        await_commits(1);
        await_idle();
        for (int i = 0; i < 5; i++)
                record(1); /* too soon to be written */
        assert_int_equal(f.api->store.n_commits, 1);
        offset += 10 * HF_NSEC_PER_SEC;
        record(1);
        await_commits(2);
        /* A PUT that finds nothing, a POST, and one PUT more. */
        assert_int_equal(fake_api_n_requests(f.api), 3);
        struct hf__json *json = last_event();
        assert_true(hf__json_i64(json, "count", &count));
        assert_int_equal(count, 7);
        const char *first = hf__json_string(json, "firstTimestamp"),
                   *last = hf__json_string(json, "lastTimestamp");
        int64_t first_s = 0, last_s = 0;
        assert_int_equal(hf__time_parse(first, &first_s), 0);
        assert_int_equal(hf__time_parse(last, &last_s), 0);
        assert_in_range(last_s - first_s, 10, 30);
        hf__json_free(json);
        assert_int_equal(f.api->store.n_objects, 1);
}

/* The server deletes Events after an hour. Then each write is a PUT, which finds nothing, and a
 * POST. */
static void test_an_event_that_the_server_has_deleted_is_made_again(void **state) {
        for (size_t i = 0; i < 5; i++) {
                record(1);
                await_commits(2 * i + 1);
                await_idle();
                pthread_mutex_lock(&f.api->mu);
                const struct fake_commit *last = &f.api->store.commits[2 * i];
                assert_int_equal(last->type, HF_EVENT_ADDED);
                char *key = strdup(last->key);
                pthread_mutex_unlock(&f.api->mu);
                (void)fake_api_delete(f.api, key);
                free(key);
                offset += 10 * HF_NSEC_PER_SEC;
        }
}

static void test_an_object_without_a_namespace_has_its_events_in_default(void **state) {
        static const char node[] = "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"}}";
        hf_recorder_event(f.recorder, node, strlen(node), HF_RECORDER_NORMAL, "Up", "up");
        await_commits(1);
        struct hf__json *json = last_event();
        assert_string_equal(hf__json_string(json, "metadata.namespace"), "default");
        assert_null(hf__json_path(json, "involvedObject.namespace"));
        assert_string_equal(hf__json_string(json, "type"), "Normal");
        hf__json_free(json);
        hf_recorder_event(f.recorder, "{}", 2, HF_RECORDER_NORMAL, "Up", "no object");
        hf_recorder_event(f.recorder, "{", 1, HF_RECORDER_NORMAL, "Up", "no JSON");
        await_idle();
        assert_int_equal(f.api->store.n_commits, 1);
}

/* Each of many Events is one object, even if the recorder has to forget the first ones. */
static void test_different_events_are_different_objects(void **state) {
        for (int i = 0; i < 80; i++) {
                int64_t count = 0;

                offset += HF_NSEC_PER_SEC;
                record(i);
                await_commits((size_t)i + 1);
                await_idle();
                struct hf__json *json = last_event();
                assert_true(hf__json_i64(json, "count", &count));
                assert_int_equal(count, 1);
                hf__json_free(json);
        }
        assert_int_equal(f.api->store.n_objects, 80);
        /* The last 64 are known, and are not written again so soon. */
        for (int i = 79; i >= 79 - 8; i--)
                record(i);
        await_idle();
        assert_int_equal(f.api->store.n_commits, 80);
}

static void test_without_a_server_a_recorder_is_bounded_and_does_not_wait(void **state) {
        fake_api_client_set_mode(f.client, FAKE_API_HANGS);
        unsigned n = fake_api_n_requests(f.api);
        for (int i = 0; i < 1000; i++)
                record(i);
        assert_int_equal(fake_api_n_requests(f.api) - n, 64);
        /* freed with requests that hang, which the client's end cancels */
}

static void test_a_failed_write_is_made_up_for_by_the_next(void **state) {
        fake_api_client_refuse(f.client, HF_E_UNAVAILABLE, 1);
        record(1);
        await_idle();
        assert_int_equal(f.api->store.n_commits, 0);
        assert_string_equal(f.logged, "");
        offset += 10 * HF_NSEC_PER_SEC;
        record(1);
        assert_non_null(strstr(f.logged, "an Event was not written: "));
        await_commits(1);
        await_idle();
        f.logged[0] = '\0'; /* the failure is logged once, and a written Event is not a failure */
        offset += 10 * HF_NSEC_PER_SEC;
        record(1);
        await_commits(2);
        await_idle();
        record(2);
        assert_string_equal(f.logged, "");
}

/* The owner may free its host after the recorder, and a response may arrive even later. */
static void test_a_late_response_uses_no_host_and_sends_nothing(void **state) {
        static const int errors[] = {HF_E_NOT_FOUND, HF_E_CANCELED};

        for (size_t i = 0; i < 2; i++) {
                fake_api_client_set_mode(f.client, FAKE_API_RESPONDS);
                fake_api_client_hold_requests(f.client, true);
                record(1); /* a PUT that finds nothing, or that the end of the client cancels */
                f.recorder = hf_recorder_free(f.recorder);
                f.clock.boot = counting_host_now;
                f.host.log =
                        (struct hf_log){.write = counting_host_write, .max_level = HF_LOG_DEBUG};
                atomic_store(&counting_host_n_uses, 0);
                if (errors[i] == HF_E_NOT_FOUND) {
                        fake_api_client_hold_requests(f.client, false);
                        await_idle();
                } else {
                        hf_client_free(&f.client->base);
                        f.client = fake_api_client_new(f.api);
                }
                assert_int_equal(counting_host_n_uses, 0);
                assert_int_equal(fake_api_n_requests(f.api), i + 1);
                assert_int_equal(f.api->store.n_commits, 0);
                f.clock.boot = boot;
                const struct hf_recorder_config config = {.size = sizeof config,
                                                          .client = &f.client->base,
                                                          .component = "copies",
                                                          .instance = "r-1"};
                assert_int_equal(hf_recorder_new(&f.host, &config, &f.recorder), 0);
        }
}

/* Another write, later, includes the repetition in its count. */
static void test_a_repetition_during_a_write_is_not_sent(void **state) {
        int64_t count = 0;

        fake_api_client_hold_requests(f.client, true);
        record(1);
        offset += 10 * HF_NSEC_PER_SEC;
        record(1);
        record(1);
        assert_int_equal(fake_api_n_requests(f.api), 1);
        fake_api_client_hold_requests(f.client, false);
        await_commits(1);
        await_idle();
        offset += 10 * HF_NSEC_PER_SEC;
        record(1);
        await_commits(2);
        await_idle();
        struct hf__json *json = last_event();
        assert_true(hf__json_i64(json, "count", &count));
        assert_int_equal(count, 4);
        hf__json_free(json);
}

static unsigned n_refused;

static int refuse(struct hf_client *self, const struct hf_request *request, hf_response_fn done,
                  void *ctx, uint64_t *ret_id) {
        const int error = request->verb == HF_VERB_CREATE ? HF_E_EXISTS : HF_E_NOT_FOUND;

        n_refused++;
        done(ctx, &(struct hf_response){.size = sizeof(struct hf_response), .error = error});
        return 0;
}

/* Others create and delete the Event in turn. Without a limit the requests would never end. */
static void test_an_event_takes_three_requests_at_most(void **state) {
        static const struct hf_client_ops ops = {.size = sizeof ops, .request = refuse};
        struct hf_client client = {.ops = &ops, .host = &f.host};
        const struct hf_recorder_config config = {.size = sizeof config,
                                                  .client = &client,
                                                  .component = "copies",
                                                  .instance = "r-1"};

        hf_recorder_free(f.recorder);
        assert_int_equal(hf_recorder_new(&f.host, &config, &f.recorder), 0);
        n_refused = 0;
        for (unsigned i = 1; i <= 2; i++) {
                record(1);
                assert_int_equal(n_refused, 3 * i);
                offset += 10 * HF_NSEC_PER_SEC;
        }
        f.recorder = hf_recorder_free(f.recorder);
}

static void test_a_namespace_that_is_too_long_has_no_events(void **state) {
        char object[HF_NAME_MAX + 100], ns[HF_NAME_MAX + 2];

        for (size_t n = HF_NAME_MAX + 1; n >= HF_NAME_MAX; n--) {
                memset(ns, 'n', n);
                ns[n] = '\0';
                (void)snprintf(object, sizeof object,
                               "{\"metadata\":{\"name\":\"x\",\"namespace\":\"%s\"}}", ns);
                hf_recorder_event(f.recorder, object, strlen(object), HF_RECORDER_NORMAL, "R", "m");
                await_idle();
                assert_int_equal(f.api->store.n_commits, n == HF_NAME_MAX);
        }
}

/* A name is cut so that it is still a name: neither - nor . stands before the dot. */
static void test_a_long_name_is_cut_before_its_last_letter(void **state) {
        char object[2 * HF_NAME_MAX], name[HF_NAME_MAX + 1], part[HF_NAME_MAX + 1];

        memset(name, 'n', HF_NAME_MAX);
        name[HF_NAME_MAX] = '\0';
        name[198] = '.';
        name[199] = '-';
        (void)snprintf(object, sizeof object,
                       "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"default\"}}", name);
        hf_recorder_event(f.recorder, object, strlen(object), HF_RECORDER_NORMAL, "R", "m");
        await_idle();
        assert_int_equal(f.api->store.n_objects, 1);
        (void)snprintf(part, sizeof part, "events/default/%.198s.", name);
        assert_memory_equal(f.api->store.objects[0]->key, part, strlen(part));
        assert_int_equal(strlen(f.api->store.objects[0]->key), strlen(part) + 16);
}

/* A request without an answer keeps later Events of the object back, so it must end. */
static void test_a_request_has_some_seconds(void **state) {
        fake_api_client_set_mode(f.client, FAKE_API_HANGS);
        hf_nsec before = boot(NULL);
        record(1);
        pthread_mutex_lock(&f.api->mu);
        hf_nsec deadline = f.api->requests->request.deadline;
        pthread_mutex_unlock(&f.api->mu);
        assert_true(deadline >= before + 5 * HF_NSEC_PER_SEC);
        assert_true(deadline <= boot(NULL) + 20 * HF_NSEC_PER_SEC);
        fake_api_client_set_mode(f.client, FAKE_API_RESPONDS);
        await_idle();
}

static void test_a_recorder_and_an_event_need_their_arguments(void **state) {
        const struct hf_recorder_config good = {.size = sizeof good,
                                                .client = &f.client->base,
                                                .component = "copies",
                                                .instance = "r-1"};
        struct hf_recorder_config bad[] = {good, good, good, good};
        struct hf_recorder *recorder = NULL;

        bad[0].size = 1;
        bad[1].client = NULL;
        bad[2].component = NULL;
        bad[3].instance = NULL;
        for (size_t i = 0; i < 4; i++)
                assert_int_equal(hf_recorder_new(&f.host, &bad[i], &recorder), -EINVAL);
        assert_int_equal(hf_recorder_new(NULL, &good, &recorder), -EINVAL);
        assert_int_equal(hf_recorder_new(&f.host, NULL, &recorder), -EINVAL);
        assert_int_equal(hf_recorder_new(&f.host, &good, NULL), -EINVAL);
        assert_null(recorder);
        assert_null(hf_recorder_free(NULL));
        hf_recorder_event(NULL, OBJECT, strlen(OBJECT), HF_RECORDER_NORMAL, "R", "m");
        hf_recorder_event(f.recorder, NULL, 2, HF_RECORDER_NORMAL, "R", "m");
        hf_recorder_event(f.recorder, OBJECT, strlen(OBJECT), HF_RECORDER_NORMAL, NULL, "m");
        await_idle();
        assert_int_equal(fake_api_n_requests(f.api), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_an_event_names_the_object_and_the_reason,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(test_repetitions_are_counted_in_one_object, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(
                        test_an_object_without_a_namespace_has_its_events_in_default, setup,
                        teardown),
                cmocka_unit_test_setup_teardown(
                        test_an_event_that_the_server_has_deleted_is_made_again, setup, teardown),
                cmocka_unit_test_setup_teardown(test_different_events_are_different_objects, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(
                        test_without_a_server_a_recorder_is_bounded_and_does_not_wait, setup,
                        teardown),
                cmocka_unit_test_setup_teardown(test_a_late_response_uses_no_host_and_sends_nothing,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_failed_write_is_made_up_for_by_the_next,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_repetition_during_a_write_is_not_sent, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_an_event_takes_three_requests_at_most, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_a_long_name_is_cut_before_its_last_letter,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_namespace_that_is_too_long_has_no_events,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_request_has_some_seconds, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_recorder_and_an_event_need_their_arguments,
                                                setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
