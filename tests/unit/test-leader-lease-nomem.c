/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each allocation of a lease lock, a shared watch and a term's client fails once. Each operation
 * is then done completely, or its failure is reported once.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json_blocks.h"
#include "base/process_mark.h"
#include "failing_memory.h"
#include "held_client.h"
#include "leader/leader_client.h"
#include "leader/lease_events.h"
#include "leader/lease_lock.h"
#include "leader/lease_watches.h"

static const struct hf_host host = {.size = sizeof host};

static unsigned n_replies, n_records, n_lost;
static struct hf__lock_reply last_reply;

static void on_reply(void *ctx, uint32_t op_id, const struct hf__lock_reply *reply) {
        n_replies++;
        last_reply = *reply;
}

static void on_record(void *ctx, const struct hf__record *record) {
        n_records += record != NULL;
        n_lost += record == NULL;
}

/* Sends this response to each request. Does not allocate memory itself. */
static void answer(const char *body) {
        for (unsigned i = 0; i < held.n_requests; i++)
                if (held.requests[i].is_open)
                        held_respond(i, 0, NULL, body);
}

static void end_watches(void) {
        for (unsigned i = 0; i < held.n_watches; i++)
                if (held.watches[i].is_open)
                        held_end_watch(i, HF_E_CANCELED);
}

static const char seen[] =
        "{\"metadata\":{\"name\":\"lead\",\"resourceVersion\":\"7\"},\"spec\":{}}";
static char expected[4096]; /* what is written when nothing fails */

static void write_lease(struct hf__lock *lock) {
        const struct hf__record record = {.exists = true,
                                          .holder = "me",
                                          .successor = "you",
                                          .duration_s = 15,
                                          .acquire_us = 1767225600000000,
                                          .renew_us = 1767225600000000,
                                          .cause = HF__CAUSE_EXPIRED,
                                          .previous = "x",
                                          .rv = "7"};

        n_replies = 0;
        lock->ops->write(lock, 2, &record, 1000);
        if (n_replies > 0) { /* nothing was sent */
                assert(last_reply.result == -ENOMEM);
                assert(last_reply.status.message[0]);
                return;
        }
        const char *body = held.requests[held.n_requests - 1].body;
        if (!expected[0])
                strcpy(expected, body);
        assert_string_equal(body, expected);
        answer(seen);
        assert(n_replies == 1);
        /* The server has written it, so the outcome is unknown without its response. */
        assert(last_reply.result == 0 || last_reply.result == HF_E_TIMEOUT);
}

static bool read_lease(struct hf__lock *lock) {
        n_replies = 0;
        lock->ops->read(lock, 1, 1000);
        answer(seen);
        assert(n_replies == 1);
        assert(last_reply.result == 0 || last_reply.result == -ENOMEM);
        return last_reply.result == 0;
}

static void use_watch(struct hf__lock *lock) {
        n_records = n_lost = 0;
        lock->ops->watch(lock);
        if (n_lost > 0)
                return;
        held_event(held.n_watches - 1, HF_EVENT_MODIFIED, seen);
        assert(n_records + n_lost == 1);
        lock->ops->unwatch(lock);
}

static int make_lock(struct hf__lease_watches *watches, struct hf__lock **ret_lock) {
        static const char *const labels[] = {"a=1", "b=2"};
        const struct hf_elector_config config = {.ns = "kube-system",
                                                 .name = "lead",
                                                 .labels = labels,
                                                 .n_labels = 2,
                                                 .client = &held.base};

        int r = hf__lease_lock_new(&host, &config, watches, "the process", ret_lock);
        if (r != 0)
                return r;
        (*ret_lock)->on_reply = on_reply;
        (*ret_lock)->on_record = on_record;
        return 0;
}

static void lease_lock_life(int n) {
        struct hf__lease_watches *watches = NULL;
        struct hf__lock *lock = NULL;

        held_client_init(&host);
        failing_memory_arm(n);
        int r = hf__lease_watches_new(&watches);
        for (int i = 1; r == 0 && i < HF__LEASE_WATCHES_SHARED; i++)
                r = hf__lease_watches_expect(watches, &held.base, "kube-system");
        if (r == 0)
                r = make_lock(watches, &lock);
        assert(r == 0 || r == -ENOMEM);
        if (r == 0) {
                use_watch(lock);
                if (read_lease(lock))
                        write_lease(lock);
                lock->ops->free(lock);
        }
        end_watches();
        hf__lease_watches_free(watches);
}

static void test_a_lease_lock_does_all_or_tells(void **state) {
        lease_lock_life(1 << 30); /* nothing fails: fills `expected` */
        failing_memory_disarm();
        assert_non_null(strstr(expected, "\"a\":\"1\",\"b\":\"2\""));
        assert_non_null(strstr(expected, "\"kind\":\"Lease\""));
        assert_non_null(strstr(expected, "\"resourceVersion\":\"7\""));
        assert_non_null(strstr(expected, "1767225600000000 me the process"));
        assert_non_null(strstr(expected, "\"holdfast.dev/successor\":\"you\""));
        failing_memory_try_all(lease_lock_life, 15);
}

static int n_told; /* replies and lost watches */

static void refused_life(void) {
        struct hf__lease_watches *watches = NULL;
        struct hf__lock *lock = NULL;
        const struct hf__record record = {.exists = true, .holder = "me", .duration_s = 15};

        held_client_init(&host);
        assert_int_equal(hf__lease_watches_new(&watches), 0);
        assert_int_equal(make_lock(watches, &lock), 0);
        held.fail = HF_E_CLOSED;
        n_replies = n_lost = 0;
        lock->ops->read(lock, 1, 1000);
        lock->ops->write(lock, 2, &record, 1000);
        lock->ops->watch(lock);
        n_told = n_replies + n_lost;
        held.fail = 0;
        lock->ops->free(lock);
        end_watches();
        hf__lease_watches_free(watches);
}

/* Each refusal is reported at once, and leaves no memory behind. */
static void test_requests_that_the_client_refuses_leave_nothing(void **state) {
        size_t n_live = failing_memory_n_live();

        for (int i = 0; i < 3; i++) {
                refused_life();
                assert_int_equal(n_told, 3);
                assert_int_equal(failing_memory_n_live(), n_live);
        }
}

static unsigned n_responses;

static void on_response(void *ctx, const struct hf_response *response) { n_responses++; }

static void leader_client_life(int n) {
        static struct hf__gate gate;
        const struct hf__leader_client_config config =
                {.inner = &held.base,
                 .gate = &gate,
                 .fence = {.ns = "kube-system", .name = "lead", .term = 17, .identity = "me"}};
        const struct hf_request request = {.size = sizeof request,
                                           .verb = HF_VERB_DELETE,
                                           .resource = {"", "v1", "things"},
                                           .name = "x",
                                           .body = "{\"dryRun\":[\"All\"]}",
                                           .n_body = 18};
        struct hf_client *client = NULL;

        held_client_init(&host);
        n_responses = 0;
        hf__gate_open(&gate, HF_NSEC_NEVER);
        failing_memory_arm(n);
        int r = hf__leader_client_new(&host, &config, &client);
        if (r == 0) {
                r = hf_client_request(client, &request, on_response, NULL, NULL);
                answer(NULL);
                assert(n_responses == (r == 0 ? 1 : 0));
                hf__leader_client_release(client);
        }
        assert(r == 0 || r == -ENOMEM);
        assert(r != 0 || client);
}

static void test_a_write_of_a_term_is_sent_or_refused(void **state) {
        assert_int_equal(hf__process_mark_init(), 0);
        failing_memory_try_all(leader_client_life, 2);
}

/* An attempt without memory counts as failed, and the Event is sent later. */
static void lease_events_life(int n) {
        const struct hf__record lease = {.transitions = 3, .uid = "u", .rv = "7"};
        struct hf__lease_events *events = NULL;

        held_client_init(&host);
        failing_memory_arm(n);
        int r = hf__lease_events_new(&host, &held.base, "kube-system", "lead", "me", &events);
        assert(r == 0 || r == -ENOMEM);
        assert((r == 0) == !failing_memory_hit());
        if (r != 0)
                return;
        hf__lease_events_add(events, true, &lease, 1767225600000000, 0);
        hf__lease_events_iterate(events, HF_NSEC_NEVER);
        if (held.n_requests == 0) {
                assert(failing_memory_hit() && hf__lease_events_waiting(events));
                hf__lease_events_iterate(events, HF_NSEC_NEVER);
        }
        assert(held.n_requests == 1);
        assert_non_null(strstr(held.requests[0].body, "\"message\":\"me became leader\""));
        assert_non_null(strstr(held.requests[0].body,
                               "\"firstTimestamp\":\"2026-01-01T00:00:00Z\",\"lastTimestamp\":"
                               "\"2026-01-01T00:00:00Z\""));
        answer(NULL);
        assert(!hf__lease_events_waiting(events));
        hf__lease_events_free(events);
}

static void test_an_event_is_sent_when_there_is_memory(void **state) {
        failing_memory_try_all(lease_events_life, 1);
}

/* A client that takes no requests any more ends an Event, and keeps nothing of it. */
static void test_an_event_that_the_client_refuses_leaves_nothing(void **state) {
        const struct hf__record lease = {.transitions = 3};
        size_t n_live = failing_memory_n_live();
        struct hf__lease_events *events = NULL;

        held_client_init(&host);
        assert_int_equal(hf__lease_events_new(&host, &held.base, "kube-system", "lead", "me",
                                              &events),
                         0);
        held.fail = HF_E_CLOSED;
        hf__lease_events_add(events, true, &lease, 1767225600000000, 0);
        hf__lease_events_iterate(events, HF_NSEC_NEVER);
        assert_false(hf__lease_events_waiting(events));
        hf__lease_events_free(events);
        assert_int_equal(failing_memory_n_live(), n_live);
}

int main(void) {
        hf__json_blocks_init(); /* so that the allocations of cJSON fail too */
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_lease_lock_does_all_or_tells),
                cmocka_unit_test(test_requests_that_the_client_refuses_leave_nothing),
                cmocka_unit_test(test_a_write_of_a_term_is_sent_or_refused),
                cmocka_unit_test(test_an_event_is_sent_when_there_is_memory),
                cmocka_unit_test(test_an_event_that_the_client_refuses_leaves_nothing),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
