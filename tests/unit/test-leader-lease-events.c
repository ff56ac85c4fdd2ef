/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Events about the leader: their content and their number. Nothing waits for them. CG30, CG31.
 */
#undef NDEBUG
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "counting_host.h"
#include "fake_api_client.h"
#include "fake_api_private.h"
#include "patience.h"

#include "base/json.h"
#include "leader/lease_events.h"

#define GUARD  (20 * HF_NSEC_PER_SEC)
#define AT     (INT64_C(1767225600) * 1000000) /* 2026-01-01 */
#define BECAME "events/kube-system/lead.leader-3-became"

struct fixture {
        struct fake_api *api;
        struct fake_api_client *client;
        struct hf__lease_events *events;
};

static struct fixture setup(void) {
        struct fixture f = {.api = fake_api_new()};
        f.client = fake_api_client_new(f.api);
        assert_int_equal(hf__lease_events_new(&f.api->host, &f.client->base, "kube-system", "lead",
                                              "baz", &f.events),
                         0);
        return f;
}

static void teardown(struct fixture *f) {
        hf__lease_events_free(f->events);
        hf_client_free(&f->client->base);
        fake_api_free(f->api);
}

/* Runs the sender until there are n commits. */
static void await_commits(struct fixture *f, size_t n) {
        const struct hf_clock *clock = hf_clock_system();
        hf_nsec until = hf_now(clock) + GUARD;
        pthread_mutex_lock(&f->api->mu);
        while (f->api->store.n_commits < n && hf_now(clock) < until) {
                pthread_mutex_unlock(&f->api->mu);
                hf__lease_events_iterate(f->events, HF_NSEC_NEVER);
                pthread_mutex_lock(&f->api->mu);
                (void)clock->wait(clock->ctx, &f->api->changed, &f->api->mu,
                                  hf_now(clock) + HF_NSEC_PER_MSEC);
        }
        size_t n_commits = f->api->store.n_commits;
        pthread_mutex_unlock(&f->api->mu);
        assert_int_equal(n_commits, n);
}

/* Scenario of docs/parity.md: CG30. */
static void test_an_event_names_the_leader_and_the_lease(void **state) {
        struct fixture f = setup();
        const struct hf__record lease = {.transitions = 19, .uid = "u-1", .rv = "12"};
        struct hf__json *json = NULL;
        hf__lease_events_add(f.events, true, &lease, AT, 100);
        hf__lease_events_iterate(f.events, 99); /* not due yet */
        assert_int_equal(f.api->n_requests, 0);
        /* updated, then created, because this server does not create with an update */
        await_commits(&f, 1);
        char *text = fake_api_get(f.api, BECAME);
        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        assert_string_equal(hf__json_string(json, "message"), "baz became leader");
        assert_string_equal(hf__json_string(json, "reason"), "LeaderElection");
        assert_string_equal(hf__json_string(json, "type"), "Normal");
        assert_string_equal(hf__json_string(json, "firstTimestamp"), "2026-01-01T00:00:00Z");
        assert_string_equal(hf__json_string(json, "involvedObject.kind"), "Lease");
        assert_string_equal(hf__json_string(json, "involvedObject.apiVersion"),
                            "coordination.k8s.io/v1");
        assert_string_equal(hf__json_string(json, "involvedObject.namespace"), "kube-system");
        assert_string_equal(hf__json_string(json, "involvedObject.name"), "lead");
        assert_string_equal(hf__json_string(json, "involvedObject.uid"), "u-1");
        assert_string_equal(hf__json_string(json, "metadata.namespace"), "kube-system");
        hf__json_free(json);
        free(text);
        hf__lease_events_add(f.events, false, &lease, AT, 0);
        await_commits(&f, 2);
        text = fake_api_get(f.api, "events/kube-system/lead.leader-3-stopped");
        assert_non_null(strstr(text, "\"baz stopped leading\""));
        free(text);
        teardown(&f);
}

static void test_events_of_old_terms_are_replaced(void **state) {
        struct fixture f = setup();
        struct hf__record lease = {.transitions = 3};
        for (size_t i = 0; i < 3; i++) {
                hf__lease_events_add(f.events, true, &lease, AT + (int64_t)i * 1000000, 0);
                await_commits(&f, i + 1);
                lease.transitions += 16;
        }
        assert_int_equal(f.api->store.n_objects, 1);
        char *text = fake_api_get(f.api, BECAME);
        assert_non_null(strstr(text, "2026-01-01T00:00:02Z"));
        free(text);
        teardown(&f);
}

/* Whether the text can be the name of an Event: letters and digits at both ends of each part. */
static bool is_object_name(const char *text, size_t n) {
        for (size_t i = 0; i < n; i++) {
                bool is_edge = i == 0 || i + 1 == n || text[i - 1] == '.' || text[i + 1] == '.';
                if (!strchr("0123456789abcdefghijklmnopqrstuvwxyz", text[i]) &&
                    (is_edge || text[i] != '-') && (text[i] != '.' || i == 0 || i + 1 == n))
                        return false;
                if (text[i] == '.' && text[i + 1] == '.')
                        return false;
        }
        return n > 0 && n <= HF_NAME_MAX;
}

/* Leases of the longest names, which differ in the last byte. Whatever their names are cut at, the
 * Events have names of their own, and valid ones. */
static void test_events_of_leases_with_long_names_stay_apart(void **state) {
        struct fixture f = setup();
        const struct hf__record lease = {.transitions = 15};
        char name[HF_NAME_MAX + 1];
        size_t n = 0;

        for (size_t dot = 180; dot < 204; dot++)
                for (char last = 'a'; last <= 'b'; last++) {
                        hf__lease_events_free(f.events);
                        memset(name, 'x', HF_NAME_MAX);
                        name[HF_NAME_MAX] = '\0';
                        name[dot] = dot % 2 ? '.' : '-';
                        name[HF_NAME_MAX - 1] = last;
                        assert_int_equal(hf__lease_events_new(&f.api->host, &f.client->base,
                                                              "kube-system", name, "baz",
                                                              &f.events),
                                         0);
                        hf__lease_events_add(f.events, false, &lease, AT, 0);
                        await_commits(&f, ++n);
                }
        assert_int_equal(f.api->store.n_objects, n);
        for (size_t i = 0; i < n; i++) {
                const char *key = f.api->store.objects[i]->key;
                const char *at = strrchr(key, '/') + 1;
                if (!is_object_name(at, strlen(at)))
                        fail_msg("%s", at);
        }
        teardown(&f);
}

static void test_without_a_server_memory_is_bounded(void **state) {
        struct fixture f = setup();
        struct hf__record lease = {0};
        fake_api_client_refuse(f.client, HF_E_UNAVAILABLE, 0);
        for (int i = 0; i < 100; i++) {
                lease.transitions = i;
                hf__lease_events_add(f.events, i % 2, &lease, AT + i, 0);
                /* a failed one waits for a while */
                hf__lease_events_iterate(f.events, hf_now(hf_clock_system()));
        }
        fake_api_client_set_mode(f.client, FAKE_API_RESPONDS);
        await_commits(&f, 8); /* the newest ones, as many as there was room for */
        for (int i = 0; i < 50; i++)
                hf__lease_events_iterate(f.events, HF_NSEC_NEVER);
        assert_int_equal(f.api->store.n_commits, 8);
        teardown(&f);
}

static bool is_idle(const struct fixture *f) {
        pthread_mutex_lock(&f->api->mu);
        bool idle = !f->api->requests && f->client->n_callbacks == 0;
        pthread_mutex_unlock(&f->api->mu);
        return idle;
}

static void test_a_failed_event_waits_before_it_is_tried_again(void **state) {
        struct fixture f = setup();
        const struct hf__record lease = {0};
        fake_api_client_refuse(f.client, HF_E_UNAVAILABLE, 1);
        hf__lease_events_add(f.events, true, &lease, AT, 0);
        hf__lease_events_iterate(f.events, 0);
        hf_nsec sent_at = hf_now(hf_clock_system());
        PATIENCE_AWAIT(fake_api_n_requests(f.api) == 1 && is_idle(&f));
        hf__lease_events_iterate(f.events, sent_at + 4 * HF_NSEC_PER_SEC);
        assert_int_equal(fake_api_n_requests(f.api), 1);
        hf__lease_events_iterate(f.events, hf_now(hf_clock_system()) + 6 * HF_NSEC_PER_SEC);
        assert_int_equal(fake_api_n_requests(f.api), 2);
        await_commits(&f, 1);
        teardown(&f);
}

static void test_an_event_that_is_refused_for_good_is_given_up(void **state) {
        static const int errors[] = {HF_E_INVALID, HF_E_CLOSED, HF_E_TOO_LARGE};
        const struct hf__record lease = {0};
        for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
                struct fixture f = setup();
                fake_api_client_refuse(f.client, errors[i], 1);
                hf__lease_events_add(f.events, true, &lease, AT, 0);
                hf__lease_events_iterate(f.events, 0);
                PATIENCE_AWAIT(fake_api_n_requests(f.api) == 1 && is_idle(&f));
                hf__lease_events_iterate(f.events, HF_NSEC_NEVER);
                assert_int_equal(fake_api_n_requests(f.api), 1);
                teardown(&f);
        }
}

/* A request without an answer keeps the Event from being tried again, so it must end. */
static void test_a_request_has_some_seconds(void **state) {
        struct fixture f = setup();
        const struct hf__record lease = {0};
        fake_api_client_set_mode(f.client, FAKE_API_HANGS);
        hf_nsec before = hf_now(hf_clock_system());
        hf__lease_events_add(f.events, true, &lease, AT, 0);
        hf__lease_events_iterate(f.events, 0);
        pthread_mutex_lock(&f.api->mu);
        hf_nsec deadline = f.api->requests->request.deadline;
        pthread_mutex_unlock(&f.api->mu);
        assert_true(deadline >= before + 5 * HF_NSEC_PER_SEC);
        assert_true(deadline <= hf_now(hf_clock_system()) + 20 * HF_NSEC_PER_SEC);
        teardown(&f);
}

static void test_freeing_does_not_wait_for_replies(void **state) {
        struct fixture f = setup();
        const struct hf__record lease = {0};
        fake_api_client_set_mode(f.client, FAKE_API_HANGS);
        hf__lease_events_add(f.events, true, &lease, AT, 0);
        hf__lease_events_add(f.events, false, &lease, AT, 0);
        hf__lease_events_iterate(f.events, 0);
        teardown(&f); /* requests that hang end when the client is freed, after their owner */
}

/* The owner frees its host after the Events, and a response may arrive even later. */
static void test_a_late_response_does_not_use_the_host(void **state) {
        struct fixture f = setup();
        struct hf_clock clock = *hf_clock_system();
        struct hf_host host = {.size = sizeof host,
                               .clock = &clock,
                               .log = {.write = counting_host_write, .max_level = HF_LOG_DEBUG}};
        const struct hf__record lease = {0};
        struct hf__lease_events *events;
        clock.boot = counting_host_now;
        assert_int_equal(hf__lease_events_new(&host, &f.client->base, "kube-system", "lead", "baz",
                                              &events),
                         0);
        fake_api_client_set_mode(f.client, FAKE_API_HANGS);
        hf__lease_events_add(events, true, &lease, AT, 0);
        hf__lease_events_iterate(events, 0);
        hf__lease_events_free(events);
        atomic_store(&counting_host_n_uses, 0);
        teardown(&f); /* ends the request with an error after which the Event is given up */
        assert_int_equal(counting_host_n_uses, 0);
}

/* The owner logs it, because a response may not use the host. */
static void test_an_event_that_is_given_up_is_logged(void **state) {
        struct fixture f = setup();
        struct hf_host host = f.api->host;
        const struct hf__record lease = {0};
        struct hf__lease_events *events;
        host.log = (struct hf_log){.write = counting_host_write, .max_level = HF_LOG_DEBUG};
        assert_int_equal(hf__lease_events_new(&host, &f.client->base, "kube-system", "lead", "baz",
                                              &events),
                         0);
        atomic_store(&counting_host_n_uses, 0);
        fake_api_client_refuse(f.client, HF_E_INVALID, 0);
        hf__lease_events_add(events, true, &lease, AT, 0);
        hf_nsec until = hf_now(hf_clock_system()) + GUARD;
        while (counting_host_n_uses == 0 && hf_now(hf_clock_system()) < until)
                hf__lease_events_iterate(events, HF_NSEC_NEVER);
        assert_int_equal(counting_host_n_uses, 1);
        assert_false(hf__lease_events_waiting(events));
        for (int i = 0; i < 3; i++) /* the failure is reported once, and no request follows */
                hf__lease_events_iterate(events, HF_NSEC_NEVER);
        assert_int_equal(counting_host_n_uses, 1);
        assert_int_equal(fake_api_n_requests(f.api), 1);
        hf__lease_events_free(events);
        teardown(&f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_an_event_names_the_leader_and_the_lease),
                cmocka_unit_test(test_events_of_old_terms_are_replaced),
                cmocka_unit_test(test_events_of_leases_with_long_names_stay_apart),
                cmocka_unit_test(test_without_a_server_memory_is_bounded),
                cmocka_unit_test(test_a_failed_event_waits_before_it_is_tried_again),
                cmocka_unit_test(test_an_event_that_is_refused_for_good_is_given_up),
                cmocka_unit_test(test_a_request_has_some_seconds),
                cmocka_unit_test(test_freeing_does_not_wait_for_replies),
                cmocka_unit_test(test_a_late_response_does_not_use_the_host),
                cmocka_unit_test(test_an_event_that_is_given_up_is_logged),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
