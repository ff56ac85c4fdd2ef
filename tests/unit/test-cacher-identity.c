/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store that was replaced: which replies and epochs are signs of a replacement, when a sign is
 * believed, and what follows.
 */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "failing_memory.h"
#include "patience.h"
#include "scripted_cacher.h"
#include "server/cacher/requests/store_identity.h"
#include "server/cacher/requests/store_request.h"
#include "time_units.h"

#define REPLACED "holdfast_store_history_replaced_total"
#define SIGN     "may have been replaced"

/* ---- replies ---- */

static void ignore(void *ctx, const struct hfd_store_reply *reply) {}

/* Somebody's request. */
static struct scripted_request ask(void) {
        assert_int_equal(hfd_store_request_revision(scripted.cacher, hand_clock_now() + SEC, ignore,
                                                    NULL),
                         0);
        return scripted_store_next(&scripted.store, SCRIPTED_REVISION);
}

static void answer(const struct scripted_request *request, uint64_t revision, uint64_t cluster) {
        scripted_reply(request,
                       &(struct hfd_store_reply){.revision = revision, .cluster_id = cluster});
}

static void learn(uint64_t revision, uint64_t cluster) {
        struct scripted_request request = ask();

        answer(&request, revision, cluster);
        assert_int_equal(scripted_store_n_waiting(&scripted.store), 0);
}

/* Sends a reply that is a sign of a replacement. Returns the request that is sent to confirm it. */
static struct scripted_request be_suspicious(uint64_t revision, uint64_t cluster) {
        struct scripted_request request = ask();
        size_t n = scripted_cacher_n_logged(SIGN);

        answer(&request, revision, cluster);
        assert_int_equal(scripted_cacher_n_logged(SIGN), n + 1);
        request = scripted_store_next(&scripted.store, SCRIPTED_REVISION);
        assert_true(request.deadline == hand_clock_now() + 5 * SEC);
        return request;
}

static void expect_replaced(unsigned n, const char *why) {
        assert_int_equal(atomic_load(&scripted.n_replaced), n);
        assert_int_equal((int)scripted_cacher_metric(REPLACED), (int)n);
        if (n > 0) {
                assert_int_equal(scripted_cacher_n_logged("the store was replaced"), n);
                assert_true(scripted_cacher_n_logged(why) >= 1);
        }
}

/* Asserts that everything is listed again, and that the replacement is over then. */
static void expect_filling(unsigned n_watches, uint64_t revision) {
        assert_false(scripted_store_is_watched(&scripted.store));
        assert_true(hfd_store_identity_replacement_pending(scripted.cacher));
        scripted_cacher_move(SEC);
        scripted_cacher_reply_epoch(NULL, revision);
        scripted_cacher_reply_list(revision);
        scripted_cacher_await_watch(n_watches);
        assert_int_equal(hfd_cacher_revision(scripted.cacher), revision);
        assert_false(hfd_store_identity_replacement_pending(scripted.cacher));
}

static void test_a_lower_revision_is_a_sign(void **state) {
        scripted_cacher_fill();
        learn(20, 0);
        struct scripted_request again = be_suspicious(19, 0);
        expect_replaced(0, "");
        answer(&again, 18, 0);
        expect_replaced(1, "(revision 18 after 20)");
        assert_true(atomic_load(&scripted.replaced_before_stop)); /* a leader stops first */
        expect_filling(2, 18);
        assert_int_equal(scripted_cacher_n_logged("(revision 19 after 20)"), 1);
}

static void test_another_cluster_is_a_sign(void **state) {
        scripted_cacher_fill();
        learn(10, 0xabc);
        learn(10, 0); /* unknown */
        learn(30, 0xabc);
        struct scripted_request again = be_suspicious(31, 0xabd);
        answer(&again, 32, 0xabd);
        expect_replaced(1, "(another cluster responds: abd)");
        expect_filling(2, 30);
        learn(33, 0xabd);
        learn(34, 0xabd);
        expect_replaced(1, "");
}

/* The sign came from a member that lags, or the reply was late. */
static void test_a_sign_that_is_not_confirmed_is_nothing(void **state) {
        scripted_cacher_fill();
        learn(20, 0xa);
        struct scripted_request again = be_suspicious(19, 0xa);
        answer(&again, 20, 0xa);
        again = be_suspicious(21, 0xb);
        answer(&again, 21, 0xa);
        again = be_suspicious(20, 0xa); /* revision 21 is already known */
        answer(&again, 22, 0xa);
        expect_replaced(0, "");
        assert_true(scripted_store_is_watched(&scripted.store));
        assert_false(hfd_store_identity_replacement_pending(scripted.cacher));
}

static void ask_again(void *ctx, const struct hfd_store_reply *reply) {
        assert_int_equal(hfd_store_request_revision(scripted.cacher, hand_clock_now() + SEC, ignore,
                                                    NULL),
                         0);
}

/* Whoever gets a reply may send the next request at once, and that is newer than the reply. */
static void test_a_request_is_compared_with_the_reply_that_caused_it(void **state) {
        scripted_cacher_fill();
        assert_int_equal(hfd_store_request_revision(scripted.cacher, hand_clock_now() + SEC,
                                                    ask_again, NULL),
                         0);
        struct scripted_request request = scripted_store_next(&scripted.store, SCRIPTED_REVISION);
        answer(&request, 20, 0);
        request = scripted_store_next(&scripted.store, SCRIPTED_REVISION);
        answer(&request, 19, 0);
        assert_int_equal(scripted_cacher_n_logged("(revision 19 after 20)"), 1);
        request = scripted_store_next(&scripted.store, SCRIPTED_REVISION);
        answer(&request, 20, 0);
        expect_replaced(0, "");
}

static void test_without_a_reply_the_next_sign_counts(void **state) {
        scripted_cacher_fill();
        learn(20, 0);
        struct scripted_request again = be_suspicious(19, 0);
        scripted_reply(&again, &(struct hfd_store_reply){.error = HF_E_UNAVAILABLE, .revision = 2});
        expect_replaced(0, "");
        scripted_store_refuse(&scripted.store, SCRIPTED_REVISION, 0);
        struct scripted_request request = ask();
        scripted_store_refuse(&scripted.store, SCRIPTED_REVISION, HF_E_CLOSED);
        answer(&request, 19, 0);
        assert_int_equal(scripted_cacher_n_logged(SIGN), 2);
        scripted_store_refuse(&scripted.store, SCRIPTED_REVISION, 0);
        again = be_suspicious(19, 0);
        answer(&again, 19, 0);
        expect_replaced(1, "(revision 19 after 20)");
        expect_filling(2, 19);
}

static void test_one_confirmation_runs_at_a_time(void **state) {
        scripted_cacher_fill();
        learn(20, 0);
        struct scripted_request other = ask(), again = be_suspicious(19, 0);
        answer(&other, 18, 0);
        assert_int_equal(scripted_store_n_waiting(&scripted.store), 0);
        assert_int_equal(scripted_cacher_n_logged(SIGN), 1);
        answer(&again, 20, 0);
        expect_replaced(0, "");
}

/* Replies may come in any order: each is compared with what was known when its request was sent. */
static void test_replies_that_overtake_each_other_are_no_sign(void **state) {
        scripted_cacher_fill();
        learn(20, 0);
        struct scripted_request first = ask(), second = ask();
        answer(&second, 40, 0);
        answer(&first, 30, 0);
        assert_int_equal(scripted_store_n_waiting(&scripted.store), 0);
        assert_int_equal(scripted_cacher_n_logged(SIGN), 0);
        struct scripted_request again = be_suspicious(39, 0); /* 40 is still known */
        answer(&again, 40, 0);
        expect_replaced(0, "");
}

/* A failed reply does not have the store's revision, unless only the compare has failed. */
static void test_failures_are_no_sign(void **state) {
        scripted_cacher_fill();
        learn(20, 0xa);
        struct scripted_request request = ask();
        scripted_reply(&request, &(struct hfd_store_reply){.error = HF_E_INVALID,
                                                           .revision = 2,
                                                           .cluster_id = 0xb});
        request = ask();
        scripted_reply(&request, &(struct hfd_store_reply){.error = HF_E_TIMEOUT});
        request = ask();
        answer(&request, 0, 0xb);
        assert_int_equal(scripted_store_n_waiting(&scripted.store), 0);
        request = ask();
        scripted_reply(&request, &(struct hfd_store_reply){.error = HF_E_CONFLICT, .revision = 19});
        request = scripted_store_next(&scripted.store, SCRIPTED_REVISION);
        answer(&request, 20, 0xa);
        expect_replaced(0, "");
}

/* Until the cache is filled again, all further signs belong to the same replacement. */
static void test_a_replacement_is_handled_once(void **state) {
        scripted_cacher_fill();
        learn(20, 0);
        struct scripted_request before = ask(), again = be_suspicious(5, 0);
        answer(&again, 5, 0);
        expect_replaced(1, "(revision 5 after 20)");
        answer(&before, 4, 0);
        learn(3, 0);
        before = ask();
        hfd_store_identity_replaced(scripted.cacher, "again");
        expect_replaced(1, "");
        expect_filling(2, 6);
        answer(&before, 2, 0);
        assert_int_equal(scripted_store_n_waiting(&scripted.store), 0);
        learn(8, 0);
        again = be_suspicious(7, 0);
        answer(&again, 7, 0);
        expect_replaced(2, "(revision 7 after 8)");
        expect_filling(3, 7);
}

/* ---- the epoch ---- */

static void expect_epoch(const char *value) {
        bool exists;
        struct hf__buf *epoch = hfd_store_identity_epoch_known(scripted.cacher, &exists);

        assert_non_null(epoch);
        assert_int_equal(exists, value != NULL);
        assert_int_equal(epoch->n, value ? strlen(value) : 0);
        assert_memory_equal(epoch->data, value ? value : "", epoch->n);
        hf__buf_unref(epoch);
}

/* The watch delivers a write of the epoch. Returns the request that reads it. */
static struct scripted_request write_epoch(uint64_t revision) {
        scripted_store_event(&scripted.store, "/registry.holdfast/epoch", "whatever", revision);
        struct scripted_request request = scripted_store_next(&scripted.store, SCRIPTED_GET);
        assert_string_equal(request.key, "/registry.holdfast/epoch");
        assert_true(request.deadline == hand_clock_now() + 5 * SEC);
        assert_false(request.urgent);
        return request;
}

static void test_the_epoch_is_known_when_it_was_read(void **state) {
        bool exists = true;

        assert_null(hfd_store_identity_epoch_known(scripted.cacher, &exists));
        assert_false(exists);
        scripted_cacher_fill();
        expect_epoch(NULL);
        scripted_store_end_watch(&scripted.store, HF_E_UNAVAILABLE, NULL);
        scripted_cacher_move(50 * MSEC);
        scripted_cacher_reply_epoch(NULL, 10); /* still none */
        scripted_cacher_await_watch(2);
        expect_replaced(0, "");
}

/* Every change of the epoch counts, also to and from an empty one. */
static void test_another_epoch_is_a_replacement(void **state) {
        static const char *const epochs[] = {"one", "two", "tw", "", NULL, "", "one", NULL};
        unsigned n = 0;

        scripted_cacher_fill();
        for (size_t i = 0; i < sizeof epochs / sizeof epochs[0]; i++) {
                struct scripted_request request = write_epoch(20 + i);
                if (epochs[i])
                        scripted_reply_key(&request, 20 + i, request.key, epochs[i], 20 + i);
                else
                        scripted_reply_revision(&request, 20 + i);
                expect_replaced(++n, "(the epoch key changed)");
                assert_true(hfd_store_identity_replacement_pending(scripted.cacher));
                expect_epoch(epochs[i]);
                scripted_cacher_move(SEC);
                scripted_cacher_reply_epoch(epochs[i], 20 + i);
                scripted_cacher_reply_list(20 + i);
                scripted_cacher_await_watch(2 + (unsigned)i);
                assert_false(hfd_store_identity_replacement_pending(scripted.cacher));
        }
        expect_replaced(n, "");
}

static void test_the_same_epoch_is_no_replacement(void **state) {
        scripted_cacher_fill();
        struct scripted_request request = write_epoch(11);
        scripted_reply_revision(&request, 11);
        expect_replaced(0, "");
        assert_true(scripted_store_is_watched(&scripted.store));
        scripted_store_event(&scripted.store, "/registry.holdfast/epoch", NULL, 12);
        scripted_store_event(&scripted.store, "/registry.holdfast/epoch2", "x", 13);
        assert_int_equal(scripted_store_n_waiting(&scripted.store), 0);
}

/* Before each watch the epoch is read, so a change cannot be missed between two of them. */
static void test_an_epoch_that_changed_between_watches_is_a_replacement(void **state) {
        scripted_cacher_fill();
        scripted_store_end_watch(&scripted.store, HF_E_UNAVAILABLE, NULL);
        scripted_cacher_move(50 * MSEC);
        scripted_cacher_reply_epoch("new", 10);
        expect_replaced(1, "(the epoch key changed)");
        scripted_cacher_reply_list(10);
        scripted_cacher_await_watch(2);
        expect_epoch("new");
}

/* The next watch begins with the same read, and that is repeated until it succeeds. */
static void test_an_epoch_that_cannot_be_read_ends_the_watch(void **state) {
        scripted_cacher_fill();
        struct scripted_request request = write_epoch(11);
        scripted_reply_error(&request, HF_E_TIMEOUT);
        assert_false(scripted_store_is_watched(&scripted.store));
        scripted_cacher_move(50 * MSEC);
        scripted_cacher_reply_epoch(NULL, 11);
        scripted_cacher_await_watch(2);
        expect_replaced(0, "");
        scripted_store_refuse(&scripted.store, SCRIPTED_GET, -ENOMEM);
        scripted_store_event(&scripted.store, "/registry.holdfast/epoch", "whatever", 12);
        assert_false(scripted_store_is_watched(&scripted.store));
        scripted_store_refuse(&scripted.store, SCRIPTED_GET, 0);
        scripted_cacher_move(50 * MSEC);
        scripted_cacher_reply_epoch("new", 12);
        expect_replaced(1, "(the epoch key changed)");
}

static void write_epoch_without_memory(struct scripted_store *store) {
        store->on_watch = NULL;
        scripted_store_refuse(store, SCRIPTED_GET, -ENOMEM);
        scripted_store_event(store, "/registry.holdfast/epoch", "whatever", 11);
        scripted_store_refuse(store, SCRIPTED_GET, 0);
}

/* A watch delivers events before the cacher has its ID, so it can be canceled only afterwards. */
static void test_an_epoch_that_cannot_be_read_ends_a_watch_that_is_being_opened(void **state) {
        scripted.store.on_watch = write_epoch_without_memory;
        assert_int_equal(hfd_cacher_start(scripted.cacher), 0);
        scripted_cacher_reply_epoch(NULL, 10);
        scripted_cacher_reply_list(10);
        scripted_cacher_await_backoff();
        assert_false(scripted_store_is_watched(&scripted.store));
        scripted_cacher_move(50 * MSEC);
        scripted_cacher_reply_epoch("new", 11);
        expect_replaced(1, "(the epoch key changed)");
        scripted_cacher_reply_list(11);
        scripted_cacher_await_watch(2); /* it stays */
        expect_epoch("new");
}

/* The next allocation is the copy of the epoch. */
static void reply_epoch_without_memory(const char *value, uint64_t revision) {
        failing_memory_arm(value ? 1 : 0); /* the reply itself takes one */
        scripted_cacher_reply_epoch(value, revision);
        failing_memory_disarm();
        assert_true(failing_memory_hit());
        scripted_cacher_await_backoff();
}

/* Otherwise a change could not be seen, and the writes of a leader would not be compared. */
static void test_no_watch_begins_with_an_epoch_that_is_not_recorded(void **state) {
        assert_int_equal(hfd_cacher_start(scripted.cacher), 0);
        reply_epoch_without_memory(NULL, 10);
        assert_int_equal(scripted_store_n_waiting(&scripted.store), 0);
        scripted_cacher_move(50 * MSEC);
        scripted_cacher_reply_epoch(NULL, 10);
        scripted_cacher_reply_list(10);
        scripted_cacher_await_watch(1);
        expect_epoch(NULL);
        scripted_store_end_watch(&scripted.store, HF_E_UNAVAILABLE, NULL);
        scripted_cacher_move(50 * MSEC);
        reply_epoch_without_memory("new", 11);
        expect_replaced(1, "(the epoch key changed)");
        assert_int_equal(scripted_store_n_waiting(&scripted.store), 0);
        scripted_cacher_move(SEC);
        scripted_cacher_reply_epoch("new", 11);
        expect_replaced(1, "");
        scripted_cacher_reply_list(11);
        scripted_cacher_await_watch(2);
        expect_epoch("new");
}

/* Readers of the epoch notice the change at once, before the replacement is handled. */
static void test_a_changed_epoch_is_pending_at_once(void **state) {
        struct hf__buf *epoch = hf__buf_copy("new", 3);
        bool changed = true;

        scripted_cacher_fill();
        assert_int_equal(hfd_store_identity_epoch_read(scripted.cacher, NULL, &changed), 0);
        assert_false(changed);
        assert_false(hfd_store_identity_replacement_pending(scripted.cacher));
        assert_int_equal(hfd_store_identity_epoch_read(scripted.cacher, epoch, &changed), 0);
        assert_true(changed);
        assert_true(hfd_store_identity_replacement_pending(scripted.cacher));
        assert_int_equal(hfd_store_identity_epoch_read(scripted.cacher, epoch, &changed), 0);
        assert_false(changed);
        assert_true(hfd_store_identity_replacement_pending(scripted.cacher));
        hf__buf_unref(epoch);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                SCRIPTED_TEST(test_a_lower_revision_is_a_sign),
                SCRIPTED_TEST(test_another_cluster_is_a_sign),
                SCRIPTED_TEST(test_a_sign_that_is_not_confirmed_is_nothing),
                SCRIPTED_TEST(test_a_request_is_compared_with_the_reply_that_caused_it),
                SCRIPTED_TEST(test_without_a_reply_the_next_sign_counts),
                SCRIPTED_TEST(test_one_confirmation_runs_at_a_time),
                SCRIPTED_TEST(test_replies_that_overtake_each_other_are_no_sign),
                SCRIPTED_TEST(test_failures_are_no_sign),
                SCRIPTED_TEST(test_a_replacement_is_handled_once),
                SCRIPTED_TEST(test_the_epoch_is_known_when_it_was_read),
                SCRIPTED_TEST(test_another_epoch_is_a_replacement),
                SCRIPTED_TEST(test_the_same_epoch_is_no_replacement),
                SCRIPTED_TEST(test_an_epoch_that_changed_between_watches_is_a_replacement),
                SCRIPTED_TEST(test_an_epoch_that_cannot_be_read_ends_the_watch),
                SCRIPTED_TEST(test_an_epoch_that_cannot_be_read_ends_a_watch_that_is_being_opened),
                SCRIPTED_TEST(test_no_watch_begins_with_an_epoch_that_is_not_recorded),
                SCRIPTED_TEST(test_a_changed_epoch_is_pending_at_once),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
