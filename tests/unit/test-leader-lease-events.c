/* SPDX-License-Identifier: Apache-2.0 */
/* The Events about who led: what they say, that they are bounded, and that nobody waits for them.
 * CG30, CG31. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_api.h"

#include "leader/lease_events.h"

#define GUARD  (20 * HF_NSEC_PER_SEC)
#define AT     (INT64_C(1767225600) * 1000000) /* 2026-01-01 */
#define BECAME "events/kube-system/lead.leader-3-became"

struct rig {
        struct fake_api *api;
        struct fake_client *client;
        struct hf__lease_events *events;
};

static struct rig setup(void) {
        struct rig rig = {.api = fake_api_new()};
        rig.client = fake_client_new(rig.api);
        assert_int_equal(hf__lease_events_new(&rig.api->host, &rig.client->base, "kube-system",
                                              "lead", "baz", &rig.events),
                         0);
        return rig;
}

static void teardown(struct rig *rig) {
        hf__lease_events_free(rig->events);
        hf_client_free(&rig->client->base);
        fake_api_free(rig->api);
}

/* Turns until n changes were committed. */
static void await_commits(struct rig *rig, size_t n) {
        const struct hf_clock *clock = hf_clock_system();
        hf_nsec until = hf_now(clock) + GUARD;
        pthread_mutex_lock(&rig->api->mu);
        while (rig->api->n_commits < n && hf_now(clock) < until) {
                pthread_mutex_unlock(&rig->api->mu);
                hf__lease_events_iterate(rig->events, HF_NSEC_NEVER);
                pthread_mutex_lock(&rig->api->mu);
                (void)clock->wait(clock->ctx, &rig->api->changed, &rig->api->mu,
                                  hf_now(clock) + HF_NSEC_PER_MSEC);
        }
        size_t n_commits = rig->api->n_commits;
        pthread_mutex_unlock(&rig->api->mu);
        assert_int_equal(n_commits, n);
}

static void test_an_event_says_who_and_of_what(void **state) { /* CG30 */
        struct rig rig = setup();
        const struct hf__record lease = {.transitions = 19, .uid = "u-1", .rv = "12"};
        struct hf__json *json = NULL;
        hf__lease_events_note(rig.events, true, &lease, AT, 100);
        hf__lease_events_iterate(rig.events, 99); /* not yet */
        assert_int_equal(rig.api->n_calls, 0);
        await_commits(&rig, 1); /* put, then created, as this server does not create what is put */
        char *text = fake_get(rig.api, BECAME);
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
        hf__lease_events_note(rig.events, false, &lease, AT, 0);
        await_commits(&rig, 2);
        text = fake_get(rig.api, "events/kube-system/lead.leader-3-stopped");
        assert_non_null(strstr(text, "\"baz stopped leading\""));
        free(text);
        teardown(&rig);
}

static void test_a_later_term_takes_an_old_ones_place(void **state) {
        struct rig rig = setup();
        struct hf__record lease = {.transitions = 3};
        for (size_t i = 0; i < 3; i++) {
                hf__lease_events_note(rig.events, true, &lease, AT + (int64_t)i * 1000000, 0);
                await_commits(&rig, i + 1);
                lease.transitions += 16;
        }
        size_t n = 0;
        for (struct fake_object *object = rig.api->objects; object; object = object->next)
                n++;
        assert_int_equal(n, 1);
        char *text = fake_get(rig.api, BECAME);
        assert_non_null(strstr(text, "2026-01-01T00:00:02Z"));
        free(text);
        teardown(&rig);
}

static void test_an_absent_server_costs_a_bounded_memory(void **state) {
        struct rig rig = setup();
        struct hf__record lease = {0};
        fake_set_mode(rig.client, FAKE_REFUSE, false, HF_E_UNAVAILABLE, 0);
        for (int i = 0; i < 100; i++) {
                lease.transitions = i;
                hf__lease_events_note(rig.events, i % 2, &lease, AT + i, 0);
                hf__lease_events_iterate(rig.events,
                                         hf_now(hf_clock_system())); /* what failed waits
                                                                     for a while */
        }
        fake_set_mode(rig.client, FAKE_OK, false, 0, 0);
        await_commits(&rig, 8); /* the newest that there was room for */
        for (int i = 0; i < 50; i++)
                hf__lease_events_iterate(rig.events, HF_NSEC_NEVER);
        assert_int_equal(rig.api->n_commits, 8);
        teardown(&rig);
}

static void test_leaving_waits_for_nothing(void **state) {
        struct rig rig = setup();
        const struct hf__record lease = {0};
        fake_set_mode(rig.client, FAKE_HANG, false, 0, 0);
        hf__lease_events_note(rig.events, true, &lease, AT, 0);
        hf__lease_events_note(rig.events, false, &lease, AT, 0);
        hf__lease_events_iterate(rig.events, 0);
        teardown(&rig); /* what hangs is answered when the client goes, after its owner */
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_an_event_says_who_and_of_what),
                cmocka_unit_test(test_a_later_term_takes_an_old_ones_place),
                cmocka_unit_test(test_an_absent_server_costs_a_bounded_memory),
                cmocka_unit_test(test_leaving_waits_for_nothing),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
