/* SPDX-License-Identifier: Apache-2.0 */
/* One watch for the Leases of a namespace (leader/lease_watches.h), over a client that the test
 * answers for. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "held_client.h"
#include "leader/lease_watches.h"

#define NS "kube-system"

static const struct hf_host host = {.size = sizeof host};
static struct hf__lease_watches *watches;

struct subscriber {
        uint64_t id;
        unsigned n_events, n_ends;
        int error;
        void (*on_event)(struct subscriber *subscriber);
};

/* Static, because the teardown ends the subscriptions that a failed test has left open. */
static struct subscriber a, b, again;

static void on_event(void *ctx, const struct hf_event *event) {
        struct subscriber *subscriber = ctx;

        subscriber->n_events++;
        if (subscriber->on_event)
                subscriber->on_event(subscriber);
}

static void on_end(void *ctx, int error, const struct hf_status *status) {
        struct subscriber *subscriber = ctx;

        subscriber->n_ends++;
        subscriber->error = error;
}

static int set_up(void **state) {
        held_client_init(&host);
        memset(&a, 0, sizeof a);
        memset(&b, 0, sizeof b);
        memset(&again, 0, sizeof again);
        assert_int_equal(hf__lease_watches_new(&watches), 0);
        for (int i = 0; i < HF__LEASE_WATCHES_SHARED; i++)
                assert_int_equal(hf__lease_watches_expect(watches, &held.base, NS), 0);
        return 0;
}

static int tear_down(void **state) {
        hf__lease_watches_free(watches);
        for (unsigned i = 0; i < held.n_watches; i++)
                if (held.watches[i].is_open)
                        held_end_watch(i, HF_E_CANCELED);
        return 0;
}

static int open_watch(struct subscriber *subscriber, const char *name) {
        return hf__lease_watches_open(watches, &held.base, NS, name, on_event, on_end, subscriber,
                                      &subscriber->id);
}

static void close_watch(struct subscriber *subscriber, const char *name) {
        hf__lease_watches_close(watches, &held.base, NS, name, subscriber->id);
}

static void send_event(unsigned watch, const char *name) {
        char text[500];

        (void)snprintf(text, sizeof text, "{\"metadata\":{\"name\":\"%s\"}}", name);
        held_event(watch, HF_EVENT_MODIFIED, text);
}

static void test_few_leases_are_not_watched_together(void **state) {
        struct hf_client other = held.base;

        assert_true(hf__lease_watches_is_shared(watches, &held.base, NS));
        assert_false(hf__lease_watches_is_shared(watches, &held.base, "default"));
        assert_false(hf__lease_watches_is_shared(watches, &other, NS));
        for (int i = 1; i < HF__LEASE_WATCHES_SHARED; i++)
                assert_int_equal(hf__lease_watches_expect(watches, &other, NS), 0);
        assert_false(hf__lease_watches_is_shared(watches, &other, NS));
        assert_int_equal(hf__lease_watches_expect(watches, &other, NS), 0);
        assert_true(hf__lease_watches_is_shared(watches, &other, NS));
        assert_true(hf__lease_watches_is_shared(watches, &held.base, NS));
}

static void test_each_subscriber_gets_the_events_of_its_lease(void **state) {
        assert_int_equal(open_watch(&a, "a"), 0);
        assert_int_equal(open_watch(&b, "b"), 0);
        assert_int_equal(held.n_watches, 1);
        assert_string_equal(held.watches[0].spec.ns, NS);
        assert_null(held.watches[0].spec.name);
        assert_int_equal(held.watches[0].spec.lane, HF_LANE_LEASE);
        assert_true(held.watches[0].spec.bookmarks);
        send_event(0, "a");
        send_event(0, "b");
        send_event(0, "b");
        send_event(0, "c");
        held_event(0, HF_EVENT_BOOKMARK, "{\"metadata\":{\"name\":\"a\"}}");
        assert_int_equal(a.n_events, 1);
        assert_int_equal(b.n_events, 2);
}

/* The server may send anything. */
static void test_events_without_a_name_are_nobodys(void **state) {
        static const char *const texts[] = {"{}", "{\"metadata\":{}}",
                                            "{\"metadata\":{\"name\":7}}",
                                            "{\"metadata\":{\"name\":\"\"}}",
                                            "{\"metadata\":{\"name\":12345}}"};
        char name[HF_NAME_MAX + 2];

        memset(name, 'x', sizeof name);
        name[HF_NAME_MAX] = '\0';
        assert_int_equal(open_watch(&a, "a"), 0);
        assert_int_equal(open_watch(&b, name), 0);
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
                held_event(0, HF_EVENT_MODIFIED, texts[i]);
        send_event(0, name);
        assert_int_equal(b.n_events, 1);
        name[HF_NAME_MAX] = 'x';
        name[HF_NAME_MAX + 1] = '\0';
        send_event(0, name);
        assert_int_equal(a.n_events, 0);
        assert_int_equal(b.n_events, 1);
}

static void test_the_end_of_the_watch_ends_all_and_the_next_one_begins_anew(void **state) {
        assert_int_equal(open_watch(&a, "a"), 0);
        assert_int_equal(open_watch(&b, "b"), 0);
        held_end_watch(0, HF_E_GONE);
        assert_int_equal(a.n_ends, 1);
        assert_int_equal(b.n_ends, 1);
        assert_int_equal(a.error, HF_E_GONE);
        assert_true(hf__lease_watches_is_shared(watches, &held.base, NS));
        close_watch(&a, "a"); /* it has ended */
        assert_int_equal(a.n_ends, 1);
        assert_int_equal(open_watch(&again, "a"), 0);
        assert_int_equal(held.n_watches, 2);
        send_event(1, "a");
        assert_int_equal(again.n_events, 1);
}

static void test_a_forbidden_collection_is_not_watched_any_more(void **state) {
        assert_int_equal(open_watch(&a, "a"), 0);
        held_end_watch(0, HF_E_FORBIDDEN);
        assert_int_equal(a.error, HF_E_FORBIDDEN);
        assert_false(hf__lease_watches_is_shared(watches, &held.base, NS));
}

static void test_the_last_one_to_leave_cancels_the_watch(void **state) {
        struct subscriber stranger = {.id = 999};

        assert_int_equal(open_watch(&a, "a"), 0);
        assert_int_equal(open_watch(&b, "b"), 0);
        close_watch(&stranger, "a"); /* an older subscription for this Lease */
        assert_int_equal(a.n_ends, 0);
        close_watch(&a, "a");
        assert_int_equal(a.n_ends, 1);
        assert_int_equal(a.error, HF_E_CANCELED);
        assert_int_equal(held.watches[0].n_cancels, 0);
        send_event(0, "a");
        send_event(0, "b");
        assert_int_equal(a.n_events, 0);
        assert_int_equal(b.n_events, 1);
        close_watch(&b, "b");
        assert_int_equal(held.watches[0].n_cancels, 1);
        /* The next one does not join a watch that is ending. */
        assert_int_equal(open_watch(&again, "a"), 0);
        assert_int_equal(held.n_watches, 2);
        held_end_watch(0, HF_E_CANCELED);
        assert_int_equal(again.n_ends, 0);
        send_event(1, "a");
        assert_int_equal(again.n_events, 1);
        assert_int_equal(a.n_ends + b.n_ends, 2);
}

static void close_a(struct subscriber *subscriber) {
        close_watch(subscriber, "a");
        assert_int_equal(subscriber->n_ends, 0); /* its callback still runs */
}

static void test_a_subscriber_may_leave_in_its_callback(void **state) {
        a.on_event = close_a;
        assert_int_equal(open_watch(&a, "a"), 0);
        assert_int_equal(open_watch(&b, "b"), 0);
        send_event(0, "a");
        assert_int_equal(a.n_ends, 1);
        assert_int_equal(a.error, HF_E_CANCELED);
        send_event(0, "a");
        assert_int_equal(a.n_events, 1);
        send_event(0, "b");
        send_event(0, "b");
        assert_int_equal(b.n_events, 2);
        close_watch(&b, "b");
        assert_int_equal(b.n_ends, 1);
}

static void close_first(void) {
        held.during = NULL;
        /* The number of the first subscription of a set. */
        hf__lease_watches_close(watches, &held.base, NS, "a", 1);
}

static void test_a_watch_that_is_being_opened_is_canceled(void **state) {
        held.during = close_first;
        assert_int_equal(open_watch(&a, "a"), 0);
        assert_int_equal(a.id, 1);
        assert_int_equal(a.n_ends, 1);
        assert_int_equal(held.watches[0].n_cancels, 1);
}

static void test_a_watch_that_cannot_be_opened_leaves_nothing(void **state) {
        held.fail = HF_E_CLOSED;
        assert_int_equal(open_watch(&a, "a"), HF_E_CLOSED);
        assert_int_equal(a.n_ends, 0);
        held.fail = 0;
        assert_int_equal(open_watch(&a, "a"), 0);
        send_event(0, "a");
        assert_int_equal(a.n_events, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_few_leases_are_not_watched_together),
                TEST(test_each_subscriber_gets_the_events_of_its_lease),
                TEST(test_events_without_a_name_are_nobodys),
                TEST(test_the_end_of_the_watch_ends_all_and_the_next_one_begins_anew),
                TEST(test_a_forbidden_collection_is_not_watched_any_more),
                TEST(test_the_last_one_to_leave_cancels_the_watch),
                TEST(test_a_subscriber_may_leave_in_its_callback),
                TEST(test_a_watch_that_is_being_opened_is_canceled),
                TEST(test_a_watch_that_cannot_be_opened_leaves_nothing),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
