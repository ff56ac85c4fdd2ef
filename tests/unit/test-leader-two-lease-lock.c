/* SPDX-License-Identifier: Apache-2.0 */
/* The lock of two Leases (leader/two_lease_lock.h) with a client and a clock that the test
 * controls: which requests it makes for which Lease, and what it tells the elector. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "hand_clock.h"
#include "held_client.h"
#include "leader/two_lease_lock.h"
#include "time_units.h"

static const struct hf_host host = {.size = sizeof host, .clock = &hand_clock};

static struct {
        struct hf__lock *lock;
        unsigned n_replies, n_records, n_lost;
        uint32_t reply_id;
        struct hf__lock_reply reply;
        struct hf__record record; /* the last one of a watch */
} f;

static void on_reply(void *ctx, uint32_t op_id, const struct hf__lock_reply *reply) {
        f.n_replies++;
        f.reply_id = op_id;
        f.reply = *reply;
}

static void on_record(void *ctx, const struct hf__record *record) {
        if (record) {
                f.n_records++;
                f.record = *record;
        } else {
                f.n_lost++;
        }
}

static int set_up(void **state) {
        const struct hf_elector_config config = {.ns = "kube-system",
                                                 .name = "lead",
                                                 .migrate_from_ns = "old-ns",
                                                 .migrate_from = "lead-old",
                                                 .identity = "me",
                                                 .client = &held.base};

        memset(&f, 0, sizeof f);
        hand_clock_reset();
        held_client_init(&host);
        assert_int_equal(hf__two_lease_lock_new(&host, &config, 15 * SEC, &f.lock), 0);
        f.lock->on_reply = on_reply;
        f.lock->on_record = on_record;
        return 0;
}

static int tear_down(void **state) {
        f.lock->ops->free(f.lock);
        for (unsigned i = 0; i < held.n_requests; i++)
                if (held.requests[i].is_open)
                        held_respond(i, HF_E_CANCELED, NULL, NULL);
        for (unsigned i = 0; i < held.n_watches; i++)
                if (held.watches[i].is_open)
                        held_end_watch(i, HF_E_CANCELED);
        return 0;
}

/* The request with this number is of this verb and for this Lease. */
static void expect_request(unsigned number, enum hf_verb verb, const char *ns, const char *name) {
        assert_true(held.n_requests > number);
        assert_int_equal(held.requests[number].request.verb, verb);
        assert_string_equal(held.requests[number].request.ns, ns);
        assert_string_equal(held.requests[number].request.name, name);
}

/* Responds to a write with what it has written. */
static void accept_write(unsigned number, const char *revision) {
        char text[1200];

        (void)snprintf(text, sizeof text,
                       "{\"metadata\":{\"resourceVersion\":\"%s\"},\"spec\":{\"holderIdentity\":"
                       "\"me\",\"leaseDurationSeconds\":15,\"acquireTime\":\"" HAND_CLOCK_REAL_Z
                       "\",\"renewTime\":\"" HAND_CLOCK_REAL_Z "\"}}",
                       revision);
        held_respond(number, 0, NULL, text);
}

/* Both Leases are absent, and the acquire has written the old one at revision 5. */
static void acquire_the_old_one(void) {
        const struct hf__record record = {.holder = "me",
                                          .duration_s = 15,
                                          .acquire_us = HAND_CLOCK_REAL * 1000000,
                                          .renew_us = HAND_CLOCK_REAL * 1000000,
                                          .cause = HF__CAUSE_CREATED};
        hf_nsec deadline = hand_clock_now() + 5 * SEC;

        f.lock->ops->read(f.lock, 1, deadline);
        assert_int_equal(held.n_requests, 2);
        expect_request(0, HF_VERB_GET, "old-ns", "lead-old");
        expect_request(1, HF_VERB_GET, "kube-system", "lead");
        assert_true(held.requests[0].request.deadline == deadline);
        held_respond(0, HF_E_NOT_FOUND, NULL, NULL);
        assert_int_equal(f.n_replies, 0);
        held_respond(1, HF_E_NOT_FOUND, NULL, NULL);
        assert_int_equal(f.n_replies, 1);
        assert_int_equal(f.reply_id, 1);
        assert_int_equal(f.reply.result, HF_E_NOT_FOUND);
        f.lock->ops->write(f.lock, 2, &record, deadline);
        assert_int_equal(held.n_requests, 3);
        expect_request(2, HF_VERB_CREATE, "old-ns", "lead-old");
        accept_write(2, "5");
        assert_int_equal(held.n_requests, 4);
        expect_request(3, HF_VERB_CREATE, "kube-system", "lead");
}

static void test_the_fence_names_both_leases(void **state) {
        struct hf_fence fence = {.ns = "kube-system", .name = "lead", .identity = "me"};
        char acquired_at[HF__REVISION_MAX] = "?";

        acquire_the_old_one();
        accept_write(3, "6");
        assert_int_equal(f.n_replies, 2);
        assert_int_equal(f.reply_id, 2);
        assert_int_equal(f.reply.result, 0);
        f.lock->ops->grant(f.lock, &fence, acquired_at);
        assert_string_equal(fence.name, "lead");
        assert_string_equal(fence.also_ns, "old-ns");
        assert_string_equal(fence.also_name, "lead-old");
        assert_int_equal(fence.also_term, 5);
        assert_string_equal(acquired_at, "6"); /* that of the write that came last */
}

/* Whoever took the new Lease meanwhile need not wait for the old one. */
static void test_the_old_lease_is_given_back_when_the_new_one_is_refused(void **state) {
        acquire_the_old_one();
        held_respond(3, HF_E_EXISTS, NULL, NULL);
        assert_int_equal(held.n_requests, 5);
        expect_request(4, HF_VERB_UPDATE, "old-ns", "lead-old");
        assert_non_null(strstr(held.requests[4].body, "\"resourceVersion\":\"5\""));
        assert_non_null(strstr(held.requests[4].body, "\"holderIdentity\":\"\""));
        assert_non_null(strstr(held.requests[4].body, "\"renewTime\":\"" HAND_CLOCK_REAL_Z "\""));
        held_respond(4, HF_E_CONFLICT, NULL, NULL);
        assert_int_equal(f.n_replies, 2);
        assert_int_equal(f.reply_id, 2);
        assert_true(f.reply.result != 0);
        assert_true(f.reply.status.message[0]);
}

static void test_a_failure_keeps_the_servers_words(void **state) {
        const struct hf_status status = {.error = HF_E_TOO_MANY,
                                         .retry_after_s = 7,
                                         .message = "too many"};

        f.lock->ops->read(f.lock, 1, hand_clock_now() + 5 * SEC);
        held_respond(0, HF_E_TOO_MANY, &status, NULL);
        assert_int_equal(f.reply_id, 1);
        assert_int_equal(f.reply.result, HF_E_TOO_MANY);
        assert_true(f.reply.retry_after == 7 * SEC);
        assert_string_equal(f.reply.status.message, "too many");
}

/* The old Lease is ours, and another process holds the new one. */
static void read_half_a_pair(uint32_t op_id) {
        static const char text[] = "{\"metadata\":{\"resourceVersion\":\"%d\"},\"spec\":{"
                                   "\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":15,"
                                   "\"acquireTime\":\"" HAND_CLOCK_REAL_Z "\"}}";
        unsigned n = held.n_requests;
        char lease[200];

        f.lock->ops->read(f.lock, op_id, hand_clock_now() + 5 * SEC);
        (void)snprintf(lease, sizeof lease, text, 5, "me");
        held_respond(n, 0, NULL, lease);
        (void)snprintf(lease, sizeof lease, text, 7, "x");
        held_respond(n + 1, 0, NULL, lease);
}

/* The controllers of a term have certainly ended a lease duration later. */
static void test_half_a_pair_is_given_back_after_a_lease_duration(void **state) {
        acquire_the_old_one();
        held_respond(3, HF_E_TIMEOUT, NULL, NULL);
        read_half_a_pair(3);
        assert_int_equal(held.n_requests, 6);
        assert_int_equal(f.reply_id, 3);
        assert_true(f.reply.record.unsettled);
        hand_clock_move(15 * SEC - 1);
        read_half_a_pair(4);
        assert_int_equal(held.n_requests, 8);
        hand_clock_move(SEC);
        read_half_a_pair(5);
        assert_int_equal(held.n_requests, 11);
        expect_request(10, HF_VERB_UPDATE, "old-ns", "lead-old");
        assert_non_null(strstr(held.requests[10].body, "\"holderIdentity\":\"\""));
        held_respond(10, HF_E_CONFLICT, NULL, NULL);
}

static void test_the_pair_needs_both_watches(void **state) {
        static const char event[] = "{\"metadata\":{\"resourceVersion\":\"7\"},\"spec\":{"
                                    "\"holderIdentity\":\"x\",\"leaseDurationSeconds\":15}}";

        f.lock->ops->watch(f.lock);
        assert_int_equal(held.n_watches, 2);
        assert_string_equal(held.watches[0].spec.name, "lead-old");
        assert_string_equal(held.watches[1].spec.name, "lead");
        held_event(0, HF_EVENT_ADDED, event);
        held_event(1, HF_EVENT_ADDED, event);
        assert_true(f.n_records > 0);
        assert_string_equal(f.record.holder, "x");
        held_end_watch(0, HF_E_UNAVAILABLE);
        assert_int_equal(f.n_lost, 1);
        held_end_watch(1, HF_E_UNAVAILABLE); /* both are reopened anyway */
        assert_int_equal(f.n_lost, 1);
        f.lock->ops->watch(f.lock);
        assert_int_equal(held.n_watches, 4);
        held_end_watch(3, HF_E_UNAVAILABLE);
        assert_int_equal(f.n_lost, 2);
        f.lock->ops->watch(f.lock);
        assert_int_equal(held.n_watches, 6);
        f.lock->ops->unwatch(f.lock);
        for (unsigned i = 0; i < 6; i++)
                assert_int_equal(held.watches[i].n_cancels, i == 2 || i >= 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_the_fence_names_both_leases),
                TEST(test_the_old_lease_is_given_back_when_the_new_one_is_refused),
                TEST(test_a_failure_keeps_the_servers_words),
                TEST(test_half_a_pair_is_given_back_after_a_lease_duration),
                TEST(test_the_pair_needs_both_watches),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
