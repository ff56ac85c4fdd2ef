/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the cacher learns from the store's replies, and how it reacts: to a watch that delivers
 * nothing, the progress key, a store that is full. test-store-watch-lag.c has the decisions
 * themselves.
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
#include "patience.h"
#include "scripted_cacher.h"
#include "server/cacher/requests/store_identity.h"
#include "server/cacher/requests/store_request.h"
#include "time_units.h"

#define REVISIONS "holdfast_store_watch_lag_revisions"
#define SECONDS   "holdfast_store_watch_lag_seconds"
#define REOPENED  "holdfast_store_watch_reopened_total"
#define PROGRESS  "/registry.holdfast/progress"

static void ignore(void *ctx, const struct hfd_store_reply *reply) {}

static struct scripted_request ask(void) {
        assert_int_equal(hfd_store_request_revision(scripted.cacher, hand_clock_now() + SEC, ignore,
                                                    NULL),
                         0);
        return scripted_store_next(&scripted.store, SCRIPTED_REVISION);
}

static struct scripted_request ask_for_key(void) {
        assert_int_equal(hfd_store_request_get(scripted.cacher, "/registry/x/y", true,
                                               hand_clock_now() + SEC, ignore, NULL),
                         0);
        struct scripted_request request = scripted_store_next(&scripted.store, SCRIPTED_GET);
        assert_true(request.urgent);
        return request;
}

/* A transaction with this operation; NULL: with none. */
static struct scripted_request send_txn(const struct hfd_op *op, hfd_store_fn done) {
        const struct hfd_compare compare = {.kind = HFD_MOD_EQUALS, .key = "/registry/x/z"};
        const struct hfd_txn txn = {.compares = &compare,
                                    .n_compares = 1,
                                    .ops = op,
                                    .n_ops = op ? 1 : 0};

        assert_int_equal(hfd_store_request_txn(scripted.cacher, &txn, hand_clock_now() + SEC, done,
                                               NULL),
                         0);
        return scripted_store_next(&scripted.store, SCRIPTED_TXN);
}

/* A transaction with n_ops puts, one or none. */
static struct scripted_request write_and(size_t n_ops, hfd_store_fn done) {
        struct hf__buf *value = hf__buf_copy("x", 1);
        const struct hfd_op op = {.kind = HFD_PUT, .key = "/registry/x/y", .value = value};
        struct scripted_request request = send_txn(n_ops > 0 ? &op : NULL, done);

        hf__buf_unref(value);
        return request;
}

static struct scripted_request write(size_t n_ops) { return write_and(n_ops, ignore); }

static void expect_lag(uint64_t revisions, hf_nsec time) {
        hf_nsec shown;

        assert_int_equal(hfd_cacher_lag(scripted.cacher, &shown), revisions);
        assert_true(shown == time);
        assert_int_equal((int)scripted_cacher_metric(REVISIONS), (int)revisions);
        assert_int_equal((int)scripted_cacher_metric(SECONDS), (int)(time / SEC));
}

/* ---- what a reply shows ---- */

static void test_a_write_shows_that_the_cache_is_behind(void **state) {
        scripted_cacher_fill();
        expect_lag(0, 0);
        struct scripted_request request = write(1);
        scripted_reply_revision(&request, 17);
        expect_lag(7, 0);
        hand_clock_move(SEC / 2);
        expect_lag(7, SEC / 2);
        scripted_store_event(&scripted.store, scripted_cacher_key("a"), SCRIPTED_OBJECT("a"), 16);
        expect_lag(1, SEC / 2);
        scripted_store_event(&scripted.store, NULL, NULL, 17);
        expect_lag(0, 0);
}

static uint64_t lag_at_reply;

static void note_lag(void *ctx, const struct hfd_store_reply *reply) {
        hf_nsec time;

        lag_at_reply = hfd_cacher_lag(scripted.cacher, &time);
}

/* Whoever gets the reply finds that the cacher has looked at it. */
static void test_the_writer_finds_the_cache_behind(void **state) {
        scripted_cacher_fill();
        lag_at_reply = 0;
        struct scripted_request request = write_and(1, note_lag);
        scripted_reply_revision(&request, 17);
        assert_int_equal(lag_at_reply, 7);
}

/* The highest revision of the keys counts, and not the one of the reply. */
static void test_a_read_shows_what_was_written(void **state) {
        const struct hfd_kv kvs[] = {{.key = "/registry/x/a", .mod_revision = 3},
                                     {.key = "/registry/x/b", .mod_revision = 14},
                                     {.key = "/registry/x/c", .mod_revision = 12}};

        scripted_cacher_fill();
        struct scripted_request request = ask_for_key();
        scripted_reply(&request, &(struct hfd_store_reply){.revision = 20, .kvs = kvs, .n_kvs = 3});
        expect_lag(4, 0);
}

/* Another program may have written outside of our prefix. */
static void test_a_revision_alone_shows_no_lag(void **state) {
        scripted_cacher_fill();
        struct scripted_request request = ask();
        scripted_reply_revision(&request, 20);
        request = ask_for_key();
        scripted_reply_key(&request, 21, "/registry/x/a", "", 9);
        request = write(0); /* it only compares */
        scripted_reply_revision(&request, 22);
        expect_lag(0, 0);
}

static void test_failures_show_no_lag(void **state) {
        const struct hfd_kv kv = {.key = "/registry/x/a", .mod_revision = 14};

        scripted_cacher_fill();
        struct scripted_request request = write(1);
        scripted_reply(&request, &(struct hfd_store_reply){.error = HF_E_TIMEOUT,
                                                           .revision = 20,
                                                           .kvs = &kv,
                                                           .n_kvs = 1});
        request = write(1);
        scripted_reply(&request, &(struct hfd_store_reply){.error = HF_E_CONFLICT, .revision = 20});
        expect_lag(0, 0);
        request = write(1); /* but keys that a failed compare has read were written */
        scripted_reply(&request, &(struct hfd_store_reply){.error = HF_E_CONFLICT,
                                                           .revision = 21,
                                                           .kvs = &kv,
                                                           .n_kvs = 1});
        expect_lag(4, 0);
}

/* The revisions of the old history say nothing about the new one. */
static void test_replies_of_a_replaced_store_show_no_lag(void **state) {
        scripted_cacher_fill();
        struct scripted_request known = write(1), before = write(1), during;
        scripted_reply_revision(&known, 95);
        expect_lag(85, 0);
        hfd_store_identity_replaced(scripted.cacher, "a test");
        during = write(1);
        scripted_reply_revision(&during, 90);
        scripted_cacher_move(50 * MSEC);
        scripted_cacher_reply_epoch(NULL, 12);
        scripted_cacher_reply_list(12);
        scripted_cacher_await_watch(2);
        scripted_reply_revision(&before, 91);
        expect_lag(0, 0);
        during = write(1);
        scripted_reply_revision(&during, 13);
        expect_lag(1, 0);
}

static void deliver_late(void) { scripted_store_event(&scripted.store, NULL, NULL, 90); }

/* An event of the old history may come until its watch has ended. */
static void test_a_late_event_of_a_replaced_store_hides_no_lag(void **state) {
        scripted_cacher_fill();
        scripted.when_replaced = deliver_late;
        hfd_store_identity_replaced(scripted.cacher, "a test");
        assert_int_equal(hfd_cacher_revision(scripted.cacher), 90);
        scripted_cacher_move(50 * MSEC);
        scripted_cacher_reply_epoch(NULL, 12);
        scripted_cacher_reply_list(12);
        scripted_cacher_await_watch(2);
        struct scripted_request request = write(1);
        scripted_reply_revision(&request, 13);
        expect_lag(1, 0);
}

/* ---- a watch that delivers nothing ---- */

static void test_a_quiet_store_is_asked_every_five_seconds(void **state) {
        scripted_cacher_fill();
        for (int i = 0; i < 3; i++) {
                scripted_cacher_move(5 * SEC - 1);
                assert_int_equal(scripted_store_n_waiting(&scripted.store), 0);
                scripted_cacher_move(1);
                struct scripted_request probe =
                        scripted_store_next(&scripted.store, SCRIPTED_REVISION);
                assert_true(probe.deadline == hand_clock_now() + 5 * SEC);
                scripted_reply_revision(&probe, 10);
        }
}

/* Until it was opened again, nothing was due: whoever opens it must wake the timer. */
static void test_a_watch_that_was_opened_again_is_watched_over(void **state) {
        scripted_cacher_fill();
        scripted_store_end_watch(&scripted.store, HF_E_UNAVAILABLE, NULL);
        scripted_cacher_await_backoff();
        scripted_cacher_move(50 * MSEC);
        scripted_cacher_reply_epoch(NULL, 10);
        scripted_cacher_await_watch(2);
        scripted_cacher_move(5 * SEC);
        struct scripted_request probe = scripted_store_next(&scripted.store, SCRIPTED_REVISION);
        scripted_reply_revision(&probe, 10);
}

static void test_a_watch_that_is_behind_is_opened_anew(void **state) {
        scripted_cacher_fill();
        struct scripted_request request = write(1);
        scripted_reply_revision(&request, 17);
        scripted_cacher_move(SEC - 1);
        assert_true(scripted_store_is_watched(&scripted.store));
        scripted_cacher_move(1);
        PATIENCE_AWAIT(!scripted_store_is_watched(&scripted.store));
        assert_int_equal(scripted.store.n_suspected, 1);
        assert_int_equal(scripted.store.suspected, 1);
        assert_int_equal(scripted_cacher_n_logged("the cache is 7 revisions behind 17"), 1);
        assert_int_equal((int)scripted_cacher_metric(REOPENED), 1);
        scripted_cacher_move(50 * MSEC);
        scripted_cacher_reply_epoch(NULL, 17);
        scripted_cacher_await_watch(2);
        assert_int_equal(scripted.store.from, 11);
        expect_lag(7, SEC + 50 * MSEC);
}

/* While there is no watch, nothing can be done about the lag but to open one. */
static void test_a_watch_that_has_ended_is_not_suspected(void **state) {
        scripted_cacher_fill();
        struct scripted_request request = write(1);
        scripted_reply_revision(&request, 17);
        scripted_store_end_watch(&scripted.store, HF_E_UNAVAILABLE, NULL);
        scripted_cacher_await_backoff();
        scripted_cacher_move(50 * MSEC);
        request = scripted_store_next(&scripted.store, SCRIPTED_GET); /* the epoch */
        scripted_cacher_move(10 * SEC);
        assert_int_equal(scripted_store_n_waiting(&scripted.store), 0);
        assert_int_equal(scripted.store.n_suspected, 0);
        assert_int_equal((int)scripted_cacher_metric(REOPENED), 0);
        expect_lag(7, 10 * SEC + 50 * MSEC);
        scripted_reply_revision(&request, 17);
        scripted_cacher_await_watch(2);
}

/* ---- the progress key ---- */

/* The store is ahead of the cache, perhaps by writes of others. Returns the write after a second.
 */
static struct scripted_request write_progress(uint64_t revision) {
        struct scripted_request request = ask();

        scripted_reply_revision(&request, revision);
        scripted_cacher_move(SEC - 1);
        assert_int_equal(scripted_store_n_waiting(&scripted.store), 0);
        scripted_cacher_move(1);
        request = scripted_store_next(&scripted.store, SCRIPTED_TXN);
        assert_string_equal(request.key, PROGRESS);
        assert_true(request.deadline == hand_clock_now() + 5 * SEC);
        return request;
}

/* The watch delivers the event of the progress key. */
static void reach(uint64_t revision) {
        scripted_store_event(&scripted.store, PROGRESS, "", revision);
        assert_int_equal(hfd_cacher_revision(scripted.cacher), revision);
}

/* Each write compares the revision of the last one, so that of several instances one succeeds. */
static void test_a_watched_key_shows_whether_the_watch_hangs(void **state) {
        const struct hfd_kv kv = {.key = PROGRESS, .mod_revision = 45};

        scripted_cacher_fill();
        struct scripted_request request = write_progress(20);
        assert_int_equal(request.revision, 0);
        scripted_reply_revision(&request, 21);
        reach(21);
        request = write_progress(30);
        assert_int_equal(request.revision, 21);
        scripted_reply_error(&request, HF_E_UNAVAILABLE);
        reach(31); /* another instance has written it */
        request = write_progress(40);
        assert_int_equal(request.revision, 21);
        scripted_reply(&request, &(struct hfd_store_reply){.error = HF_E_CONFLICT,
                                                           .revision = 45,
                                                           .kvs = &kv,
                                                           .n_kvs = 1});
        reach(45);
        request = write_progress(50);
        assert_int_equal(request.revision, 45);
        scripted_reply(&request, &(struct hfd_store_reply){.error = HF_E_CONFLICT, .revision = 51});
        reach(51);
        request = write_progress(60);
        assert_int_equal(request.revision, 0);
        scripted_reply_revision(&request, 61);
        expect_lag(10, 0);
}

/* ---- a store without room ---- */

static void test_a_refused_write_shows_that_the_store_is_full(void **state) {
        const struct hfd_op removal = {.kind = HFD_DELETE, .key = "/registry/x/y"};

        scripted_cacher_fill();
        assert_true(hfd_cacher_store_full(scripted.cacher) == 0);
        struct scripted_request request = write(1);
        hand_clock_move(MSEC);
        scripted_reply_error(&request, -ENOSPC);
        assert_true(hfd_cacher_store_full(scripted.cacher) == hand_clock_now());
        hf_nsec at = hand_clock_now();
        hand_clock_move(MSEC);
        request = ask(); /* a full store can be read, and may refuse a write for other reasons */
        scripted_reply_revision(&request, 11);
        request = write(0);
        scripted_reply_revision(&request, 11);
        request = write(1);
        scripted_reply_error(&request, HF_E_CONFLICT);
        request = write(1);
        scripted_reply_error(&request, HF_E_UNAVAILABLE);
        request = send_txn(&removal, ignore); /* etcd needs no room for it */
        scripted_reply_revision(&request, 11);
        assert_true(hfd_cacher_store_full(scripted.cacher) == at);
        request = send_txn(&removal, ignore); /* SQLite does */
        scripted_reply_error(&request, -ENOSPC);
        assert_true(hfd_cacher_store_full(scripted.cacher) == hand_clock_now());
        hand_clock_move(MSEC);
        request = write(1);
        scripted_reply_error(&request, -ENOSPC);
        assert_true(hfd_cacher_store_full(scripted.cacher) == hand_clock_now());
        request = write(1);
        scripted_reply_revision(&request, 12);
        assert_true(hfd_cacher_store_full(scripted.cacher) == 0);
}

/* ---- requests ---- */

/* The store may refuse to begin: then the caller is told, and no reply follows. */
static void test_a_refused_request_has_no_reply(void **state) {
        const struct hfd_txn txn = {.n_ops = 0};
        struct hfd_cacher *cacher = scripted.cacher;
        hf_nsec at = hand_clock_now() + SEC;

        for (int kind = 0; kind < SCRIPTED_N_KINDS; kind++)
                scripted_store_refuse(&scripted.store, (enum scripted_kind)kind, -ENOMEM);
        assert_int_equal(hfd_store_request_get(cacher, "/k", false, at, ignore, NULL), -ENOMEM);
        assert_int_equal(hfd_store_request_list(cacher, "/", NULL, 0, 0, at, ignore, NULL),
                         -ENOMEM);
        assert_int_equal(hfd_store_request_keys(cacher, "/", NULL, 0, 0, at, ignore, NULL),
                         -ENOMEM);
        assert_int_equal(hfd_store_request_txn(cacher, &txn, at, ignore, NULL), -ENOMEM);
        assert_int_equal(hfd_store_request_revision(cacher, at, ignore, NULL), -ENOMEM);
}

/* All parameters of a list arrive at the store. */
static void test_requests_are_passed_on(void **state) {
        hf_nsec at = hand_clock_now() + 7 * SEC;

        assert_int_equal(hfd_store_request_list(scripted.cacher, "/p/", "/p/s", 9, 4, at, ignore,
                                                NULL),
                         0);
        struct scripted_request request = scripted_store_next(&scripted.store, SCRIPTED_LIST);
        assert_string_equal(request.key, "/p/");
        assert_string_equal(request.start, "/p/s");
        assert_int_equal(request.revision, 9);
        assert_int_equal(request.limit, 4);
        assert_false(request.keys_only);
        assert_true(request.deadline == at);
        hand_clock_move(2 * SEC);
        scripted_reply_revision(&request, 9);
        assert_int_equal((int)scripted_cacher_metric(
                                 "etcd_request_duration_seconds_sum{operation=\"list\"}"),
                         2);
        assert_int_equal((int)scripted_cacher_metric(
                                 "etcd_request_duration_seconds_count{operation=\"get\"}"),
                         0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                SCRIPTED_TEST(test_a_write_shows_that_the_cache_is_behind),
                SCRIPTED_TEST(test_the_writer_finds_the_cache_behind),
                SCRIPTED_TEST(test_a_read_shows_what_was_written),
                SCRIPTED_TEST(test_a_revision_alone_shows_no_lag),
                SCRIPTED_TEST(test_failures_show_no_lag),
                SCRIPTED_TEST(test_replies_of_a_replaced_store_show_no_lag),
                SCRIPTED_TEST(test_a_late_event_of_a_replaced_store_hides_no_lag),
                SCRIPTED_TEST(test_a_quiet_store_is_asked_every_five_seconds),
                SCRIPTED_TEST(test_a_watch_that_was_opened_again_is_watched_over),
                SCRIPTED_TEST(test_a_watch_that_is_behind_is_opened_anew),
                SCRIPTED_TEST(test_a_watch_that_has_ended_is_not_suspected),
                SCRIPTED_TEST(test_a_watched_key_shows_whether_the_watch_hangs),
                SCRIPTED_TEST(test_a_refused_write_shows_that_the_store_is_full),
                SCRIPTED_TEST(test_a_refused_request_has_no_reply),
                SCRIPTED_TEST(test_requests_are_passed_on),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
