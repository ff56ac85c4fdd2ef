/* SPDX-License-Identifier: Apache-2.0 */
/* The lock port with one Lease (leader/lease_lock.h), over a client that the test answers for. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "held_client.h"
#include "leader/lease_lock.h"
#include "leader/lease_watches.h"

static const struct hf_host host = {.size = sizeof host};

static struct {
        struct hf__lock *lock;
        unsigned n_replies, n_records, n_lost;
        uint32_t reply_id;
        struct hf__lock_reply reply;
        struct hf__record record; /* the last one of the watch */
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
                                                 .client = &held.base};

        memset(&f, 0, sizeof f);
        held_client_init(&host);
        assert_int_equal(hf__lease_lock_new(&host, &config, NULL, NULL, &f.lock), 0);
        f.lock->on_reply = on_reply;
        f.lock->on_record = on_record;
        return 0;
}

static void free_lock(void) {
        f.lock->ops->free(f.lock);
        f.lock = NULL;
}

static int tear_down(void **state) {
        if (f.lock)
                free_lock();
        for (unsigned i = 0; i < held.n_requests; i++)
                if (held.requests[i].is_open)
                        held_respond(i, HF_E_CANCELED, NULL, NULL);
        for (unsigned i = 0; i < held.n_watches; i++)
                if (held.watches[i].is_open)
                        held_end_watch(i, HF_E_CANCELED);
        return 0;
}

/* A Lease as the server returns it. */
static const char *lease(const char *holder, unsigned revision) {
        static char text[400];

        (void)snprintf(text, sizeof text,
                       "{\"metadata\":{\"name\":\"lead\",\"namespace\":\"kube-system\","
                       "\"resourceVersion\":\"%u\",\"labels\":{\"theirs\":\"kept\"}},"
                       "\"spec\":{\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":15}}",
                       revision, holder);
        return text;
}

static void read_lease(uint32_t op_id, const char *holder, unsigned revision) {
        f.lock->ops->read(f.lock, op_id, 1000);
        held_respond(held.n_requests - 1, 0, NULL, lease(holder, revision));
        assert_int_equal(f.reply_id, op_id);
        assert_int_equal(f.reply.result, 0);
        assert_string_equal(f.reply.record.holder, holder);
}

static void write_as_me(uint32_t op_id, const char *revision) {
        struct hf__record record = {.exists = revision != NULL, .holder = "me", .duration_s = 15};

        if (revision)
                strcpy(record.rv, revision);
        f.lock->ops->write(f.lock, op_id, &record, 1000);
}

static void test_requests_use_the_lane_of_leases(void **state) {
        f.lock->ops->read(f.lock, 1, 1000);
        f.lock->ops->watch(f.lock);
        write_as_me(2, NULL);
        for (unsigned i = 0; i < 2; i++) {
                assert_int_equal(held.requests[i].request.lane, HF_LANE_LEASE);
                assert_int_equal(held.requests[i].request.deadline, 1000);
        }
        assert_string_equal(held.watches[0].spec.ns, "kube-system");
        assert_string_equal(held.watches[0].spec.name, "lead");
        assert_int_equal(held.watches[0].spec.lane, HF_LANE_LEASE);
        assert_true(held.watches[0].spec.bookmarks);
}

static void test_a_failure_keeps_the_servers_words(void **state) {
        const struct hf_status status = {.error = HF_E_TOO_MANY,
                                         .retry_after_s = 7,
                                         .message = "too many"};

        f.lock->ops->read(f.lock, 5, 1000);
        held_respond(0, HF_E_TOO_MANY, &status, NULL);
        assert_int_equal(f.reply_id, 5);
        assert_int_equal(f.reply.result, HF_E_TOO_MANY);
        assert_true(f.reply.retry_after == 7 * HF_NSEC_PER_SEC);
        assert_string_equal(f.reply.status.message, "too many");
}

/* After an unreadable response to a write, the Lease must be read. */
static void test_an_unreadable_response_is_an_error(void **state) {
        static const char *const texts[] = {"[1", "[]", ""};

        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
                f.lock->ops->read(f.lock, 1, 1000);
                held_respond(held.n_requests - 1, 0, NULL, texts[i]);
                assert_int_not_equal(f.reply.result, 0);
                assert_int_not_equal(f.reply.result, HF_E_TIMEOUT);
                assert_string_equal(f.reply.status.message,
                                    "lease kube-system/lead: the server's response is not a Lease");
                write_as_me(2, NULL);
                held_respond(held.n_requests - 1, 0, NULL, texts[i]);
                assert_int_equal(f.reply.result, HF_E_TIMEOUT);
        }
        assert_int_equal(f.n_replies, 2 * sizeof texts / sizeof *texts);
}

static void test_only_failures_that_prove_nothing_written_are_passed_on(void **state) {
        static const struct {
                int error, result, http_code;
        } rows[] = {
                {HF_E_CONFLICT, HF_E_CONFLICT, 0},
                {HF_E_UNAVAILABLE, HF_E_UNAVAILABLE, 0},
                {HF_E_FORBIDDEN, HF_E_FORBIDDEN, 0},
                {HF_E_CANCELED, HF_E_TIMEOUT, 0},
                {HF_E_TIMEOUT, HF_E_TIMEOUT, 0},
                {-EIO, HF_E_TIMEOUT, 0},
                /* The request was too large, or the response that says what was written. */
                {HF_E_TOO_LARGE, HF_E_TOO_LARGE, 413},
                {HF_E_TOO_LARGE, HF_E_TIMEOUT, 200},
                {HF_E_TOO_LARGE, HF_E_TIMEOUT, 0},
        };

        for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
                const struct hf_status status = {.error = rows[i].error,
                                                 .http_code = rows[i].http_code};
                write_as_me(i, NULL);
                held_respond(i, rows[i].error, &status, NULL);
                assert_int_equal(f.reply.result, rows[i].result);
        }
}

static void test_what_cannot_be_started_is_answered_once(void **state) {
        held.fail = HF_E_CLOSED;
        f.lock->ops->read(f.lock, 3, 1000);
        assert_int_equal(f.n_replies, 1);
        assert_int_equal(f.reply_id, 3);
        assert_int_equal(f.reply.result, HF_E_CLOSED);
        assert_non_null(strstr(f.reply.status.message, "kube-system/lead: cannot send a request"));
        write_as_me(4, NULL);
        assert_int_equal(f.n_replies, 2);
        assert_int_equal(f.reply_id, 4);
        f.lock->ops->watch(f.lock);
        assert_int_equal(f.n_lost, 1);
        held.fail = 0;
        free_lock();
        assert_int_equal(f.n_replies + f.n_lost, 3);
}

/* An update keeps what others wrote, so it must begin with the revision that it replaces. */
static void test_an_update_is_based_on_the_lease_that_was_seen(void **state) {
        read_lease(1, "x", 7);
        write_as_me(2, "6");
        assert_int_equal(f.reply.result, HF_E_CONFLICT);
        assert_int_equal(held.n_requests, 1);
        write_as_me(3, "7");
        assert_int_equal(held.n_requests, 2);
        assert_int_equal(held.requests[1].request.verb, HF_VERB_UPDATE);
        assert_non_null(strstr(held.requests[1].body, "\"theirs\":\"kept\""));
        assert_non_null(strstr(held.requests[1].body, "\"holderIdentity\":\"me\""));
        assert_non_null(strstr(held.requests[1].body, "\"resourceVersion\":\"7\""));
        held_respond(1, HF_E_NOT_FOUND, NULL, NULL);
        write_as_me(4, "7");
        assert_int_equal(f.reply.result, HF_E_CONFLICT); /* it has been deleted */
        assert_int_equal(held.n_requests, 2);
}

/* The server keeps its managedFields when an update has none. They are large, so the lock does not
 * keep them. */
static void test_managed_fields_are_not_kept(void **state) {
        static const char text[] =
                "{\"metadata\":{\"name\":\"lead\",\"resourceVersion\":\"7\",\"managedFields\":["
                "{\"manager\":\"a\",\"fieldsV1\":{\"f:spec\":{\"f:renewTime\":{}}}}],"
                "\"annotations\":{\"theirs\":\"managedFields\"}},"
                "\"spec\":{\"holderIdentity\":\"me\",\"managedFields\":[1]}}";

        f.lock->ops->watch(f.lock);
        held_event(0, HF_EVENT_ADDED, lease("x", 6));
        write_as_me(1, "6");
        held_respond(0, 0, NULL, text);
        assert_string_equal(f.reply.record.rv, "7");
        held_event(0, HF_EVENT_MODIFIED, text);
        assert_int_equal(f.n_records, 1); /* it is known to be an echo nevertheless */
        write_as_me(2, "7");
        assert_null(strstr(held.requests[1].body, "f:renewTime"));
        assert_non_null(strstr(held.requests[1].body, "{\"theirs\":\"managedFields\"}"));
        assert_non_null(strstr(held.requests[1].body, "\"managedFields\":[1]"));
        assert_non_null(strstr(held.requests[1].body, "\"resourceVersion\":\"7\""));
}

static void test_an_update_needs_a_lease_that_was_seen(void **state) {
        write_as_me(1, "");
        assert_int_equal(f.reply.result, HF_E_CONFLICT);
        assert_int_equal(held.n_requests, 0);
}

static void test_an_update_needs_a_revision(void **state) {
        f.lock->ops->read(f.lock, 1, 1000);
        held_respond(0, 0, NULL, "{\"metadata\":{\"name\":\"lead\"},\"spec\":{}}");
        assert_int_equal(f.reply.result, 0);
        write_as_me(2, "");
        assert_int_equal(f.reply.result, HF_E_CONFLICT);
        assert_int_equal(held.n_requests, 1);
}

/* The watch may lag behind a response, and a response is right even with a smaller revision. */
static void test_an_old_event_does_not_replace_a_newer_lease(void **state) {
        f.lock->ops->watch(f.lock);
        read_lease(1, "x", 7);
        held_event(0, HF_EVENT_MODIFIED, lease("w", 6));
        assert_string_equal(f.record.rv, "6"); /* the elector ignores old records */
        write_as_me(2, "7");
        assert_int_equal(held.n_requests, 2);
        held_event(0, HF_EVENT_MODIFIED, lease("y", 8));
        write_as_me(3, "8");
        assert_int_equal(held.n_requests, 3);
        read_lease(4, "z", 5);
        write_as_me(5, "5");
        assert_int_equal(held.n_requests, 5);
}

static void test_a_deletion_is_told_with_its_revision(void **state) {
        f.lock->ops->watch(f.lock);
        held_event(0, HF_EVENT_ADDED, lease("x", 7));
        assert_true(f.record.exists);
        held_event(0, HF_EVENT_DELETED, lease("x", 7));
        assert_int_equal(f.n_records, 2);
        assert_false(f.record.exists);
        assert_string_equal(f.record.rv, "7");
        assert_int_equal(f.record.rv_number, 7);
        assert_string_equal(f.record.holder, "");
        write_as_me(1, "7");
        assert_int_equal(f.reply.result, HF_E_CONFLICT);
}

/* The first event is always reported, because it shows that the watch works. Later, an event that
 * repeats the response to the lock's own write is dropped. */
static void test_the_echo_of_an_own_write_is_dropped(void **state) {
        f.lock->ops->watch(f.lock);
        write_as_me(1, NULL);
        held_respond(0, 0, NULL, lease("me", 7));
        held_event(0, HF_EVENT_ADDED, lease("me", 7));
        assert_int_equal(f.n_records, 1);
        held_event(0, HF_EVENT_MODIFIED, lease("me", 7));
        assert_int_equal(f.n_records, 1);
        held_event(0, HF_EVENT_BOOKMARK, lease("me", 9));
        assert_int_equal(f.n_records, 1);
        read_lease(2, "me", 8);
        held_event(0, HF_EVENT_MODIFIED, lease("me", 8));
        assert_int_equal(f.n_records, 2); /* a read is no write of this lock */
        held_event(0, HF_EVENT_DELETED, lease("me", 8));
        assert_int_equal(f.n_records, 3);
}

/* A server that does not apply the selector of the watch sends the events of other Leases too. */
static void test_the_event_of_another_lease_is_dropped(void **state) {
        static const char *const names[] = {"lea", "leader", "lent"};
        char text[200];

        read_lease(1, "me", 6);
        f.lock->ops->watch(f.lock);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                for (int type = HF_EVENT_ADDED; type <= HF_EVENT_DELETED; type++) {
                        (void)snprintf(text, sizeof text,
                                       "{\"metadata\":{\"name\":\"%s\",\"resourceVersion\":\"9\"},"
                                       "\"spec\":{\"holderIdentity\":\"x\"}}",
                                       names[i]);
                        held_event(0, (enum hf_event_type)type, text);
                }
        assert_int_equal(f.n_records + f.n_lost, 0);
        write_as_me(2, "6"); /* it is based on the Lease that was read */
        assert_non_null(strstr(held.requests[1].body, "\"theirs\":\"kept\""));
}

static void test_an_unreadable_event_counts_as_a_lost_watch(void **state) {
        f.lock->ops->watch(f.lock);
        held_event(0, HF_EVENT_MODIFIED, "[1");
        assert_int_equal(f.n_records, 0);
        assert_int_equal(f.n_lost, 1);
        held_end_watch(0, 0);
        assert_int_equal(f.n_lost, 2);
}

static void test_a_replaced_watch_reports_nothing_more(void **state) {
        f.lock->ops->read(f.lock, 1, 1000);
        f.lock->ops->watch(f.lock);
        f.lock->ops->watch(f.lock);
        assert_int_equal(held.watches[0].n_cancels, 1);
        assert_int_equal(held.watches[1].n_cancels, 0);
        held_event(0, HF_EVENT_MODIFIED, lease("x", 7));
        held_end_watch(0, HF_E_CANCELED);
        assert_int_equal(f.n_records + f.n_lost, 0);
        held_event(1, HF_EVENT_MODIFIED, lease("x", 7));
        assert_int_equal(f.n_records, 1);
        f.lock->ops->unwatch(f.lock);
        f.lock->ops->unwatch(f.lock);
        assert_int_equal(held.watches[1].n_cancels, 1);
        held_event(1, HF_EVENT_MODIFIED, lease("y", 8));
        assert_int_equal(f.n_records, 1);
        assert_int_equal(held.requests[0].n_cancels, 0); /* the read goes on */
        held_respond(0, 0, NULL, lease("x", 7));
        assert_int_equal(f.n_replies, 1);
}

static void test_the_free_cancels_everything_and_nothing_is_told_after_it(void **state) {
        f.lock->ops->read(f.lock, 1, 1000);
        f.lock->ops->watch(f.lock);
        write_as_me(2, NULL);
        f.lock->ops->read(f.lock, 3, 1000);
        free_lock();
        for (unsigned i = 0; i < 3; i++)
                assert_int_equal(held.requests[i].n_cancels, 1);
        assert_int_equal(held.watches[0].n_cancels, 1);
        held_respond(1, 0, NULL, lease("me", 7));
        held_respond(0, 0, NULL, lease("me", 7));
        held_event(0, HF_EVENT_MODIFIED, lease("me", 7));
        held_end_watch(0, HF_E_CANCELED);
        held_respond(2, HF_E_CANCELED, NULL, NULL);
        assert_int_equal(f.n_replies + f.n_records + f.n_lost, 0);
}

/* The watch that is shared by all Leases of the namespace ends with its last subscriber. */
static void test_a_lock_leaves_the_shared_watch(void **state) {
        const struct hf_elector_config config = {.ns = "kube-system",
                                                 .name = "lead",
                                                 .client = &held.base};
        struct hf__lease_watches *watches;

        free_lock();
        assert_int_equal(hf__lease_watches_new(&watches), 0);
        for (int i = 1; i < HF__LEASE_WATCHES_SHARED; i++)
                assert_int_equal(hf__lease_watches_expect(watches, &held.base, "kube-system"), 0);
        assert_int_equal(hf__lease_lock_new(&host, &config, watches, NULL, &f.lock), 0);
        f.lock->on_reply = on_reply;
        f.lock->on_record = on_record;
        for (unsigned i = 0; i < 2; i++) {
                f.lock->ops->watch(f.lock);
                assert_null(held.watches[i].spec.name);
                held_event(i, HF_EVENT_MODIFIED, lease("x", 7 + i));
                assert_int_equal(f.n_records, i + 1);
                if (i == 0)
                        f.lock->ops->unwatch(f.lock);
                else
                        free_lock();
                assert_int_equal(held.watches[i].n_cancels, 1);
                held_end_watch(i, HF_E_CANCELED);
        }
        assert_int_equal(f.n_lost, 0);
        hf__lease_watches_free(watches);
}

static void unwatch_now(void) {
        held.during = NULL;
        f.lock->ops->unwatch(f.lock);
}

static void test_a_watch_that_is_being_opened_is_closed(void **state) {
        held.during = unwatch_now;
        f.lock->ops->watch(f.lock);
        assert_int_equal(held.watches[0].n_cancels, 1);
        held_event(0, HF_EVENT_MODIFIED, lease("x", 7));
        assert_int_equal(f.n_records, 0);
}

static void test_the_process_of_a_record_is_known(void **state) {
        const int64_t acquire_us = 1767225600000000;
        char process[40];

        assert_false(f.lock->ops->process(f.lock, "x", acquire_us, process, sizeof process));
        f.lock->ops->read(f.lock, 1, 1000);
        held_respond(0, 0, NULL,
                     "{\"metadata\":{\"annotations\":{\"holdfast.dev/holder-process\":"
                     "\"1767225600000000 x the process\"}},\"spec\":{\"holderIdentity\":\"x\"}}");
        assert_true(f.lock->ops->process(f.lock, "x", acquire_us, process, sizeof process));
        assert_string_equal(process, "the process");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_requests_use_the_lane_of_leases),
                TEST(test_a_failure_keeps_the_servers_words),
                TEST(test_an_unreadable_response_is_an_error),
                TEST(test_only_failures_that_prove_nothing_written_are_passed_on),
                TEST(test_what_cannot_be_started_is_answered_once),
                TEST(test_an_update_is_based_on_the_lease_that_was_seen),
                TEST(test_managed_fields_are_not_kept),
                TEST(test_an_update_needs_a_lease_that_was_seen),
                TEST(test_an_update_needs_a_revision),
                TEST(test_an_old_event_does_not_replace_a_newer_lease),
                TEST(test_a_deletion_is_told_with_its_revision),
                TEST(test_the_echo_of_an_own_write_is_dropped),
                TEST(test_the_event_of_another_lease_is_dropped),
                TEST(test_an_unreadable_event_counts_as_a_lost_watch),
                TEST(test_a_replaced_watch_reports_nothing_more),
                TEST(test_the_free_cancels_everything_and_nothing_is_told_after_it),
                TEST(test_a_lock_leaves_the_shared_watch),
                TEST(test_a_watch_that_is_being_opened_is_closed),
                TEST(test_the_process_of_a_record_is_known),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
