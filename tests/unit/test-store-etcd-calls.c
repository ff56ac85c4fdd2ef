/* SPDX-License-Identifier: Apache-2.0 */
/* How the etcd store makes calls and chooses endpoints, without an etcd. test-store-etcd.c has it
 * over a real one. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "held_etcd.h"
#include "server/storage/etcd/etcd.h"
#include "server/storage/keys.h"
#include "time_units.h"

#define REQUEST_MAX ((size_t)1536 * 1024) /* etcd's default limit */

static const struct hfd_op delete_x = {.kind = HFD_DELETE, .key = "/x"};

static int write_x(void) {
        const struct hfd_txn txn = {.ops = &delete_x, .n_ops = 1};

        return held_etcd.store->ops->txn(held_etcd.store, &txn, held_etcd_now + 100 * SEC,
                                         held_etcd_on_reply, NULL);
}

static void test_each_kind_of_operation_has_its_thread_and_connection(void **state) {
        struct hfd_txn txn = {.ops = &delete_x, .n_ops = 1, .urgent = true};

        held_etcd_open(1);
        assert_int_equal(held_etcd_get(true), 0);
        assert_ptr_equal(held_etcd_latest()->channel, held_etcd_channel("hfd-etcd-leases"));
        assert_int_equal(held_etcd_latest()->request.lane, 0);
        held_etcd_respond(5);
        assert_int_equal(held_etcd_get(false), 0);
        assert_ptr_equal(held_etcd_latest()->channel, held_etcd_channel("hfd-etcd"));
        unsigned lane = held_etcd_latest()->request.lane;
        held_etcd_respond(5);
        assert_int_equal(held_etcd.store->ops->txn(held_etcd.store, &txn, held_etcd_now + SEC,
                                                   held_etcd_on_reply, NULL),
                         0);
        assert_ptr_equal(held_etcd_latest()->channel, held_etcd_channel("hfd-etcd-leases"));
        held_etcd_fail(HF_E_CANCELED);
        assert_int_equal(held_etcd.store->ops->list(held_etcd.store, "/a/", NULL, 0, 0, false,
                                                    held_etcd_now + SEC, held_etcd_on_reply, NULL),
                         0);
        assert_ptr_equal(held_etcd_latest()->channel, held_etcd_channel("hfd-etcd-lists"));
        assert_int_equal(held_etcd_latest()->request.max_message, HFD_ETCD_BODY_MAX);
        assert_int_equal(held_etcd_latest()->request.lane, 0);
        held_etcd_respond(5);
        assert_int_equal(held_etcd.store->ops->compact(held_etcd.store, 5, held_etcd_now + SEC,
                                                       held_etcd_on_reply, NULL),
                         0);
        assert_ptr_equal(held_etcd_latest()->channel, held_etcd_channel("hfd-etcd"));
        assert_int_equal(held_etcd_latest()->request.lane, lane);
        held_etcd_fail(HF_E_CANCELED);
        assert_int_equal(held_etcd.store->ops->revision(held_etcd.store, held_etcd_now + SEC,
                                                        held_etcd_on_reply, NULL),
                         0);
        assert_int_equal(held_etcd_latest()->request.lane, lane);
        held_etcd_respond(9);
        assert_int_equal(held_etcd.revision, 9);
        assert_int_equal(held_etcd.n_replies, 6);
        held_etcd_close();
}

/* An idle connection may be dead, and only the first attempt shows that. */
static void test_one_endpoint_is_tried_twice(void **state) {
        held_etcd_open(1);
        assert_int_equal(held_etcd_get(false), 0);
        assert_true(held_etcd_latest()->request.deadline == held_etcd_now + 100 * SEC);
        held_etcd_fail(HF_E_UNAVAILABLE);
        assert_int_equal(held_etcd.n_attempts, 2);
        assert_int_equal(held_etcd.n_replies, 0);
        assert_true(held_etcd_latest()->request.deadline == held_etcd_now + 100 * SEC);
        held_etcd_fail(HF_E_UNAVAILABLE);
        assert_int_equal(held_etcd.n_attempts, 2);
        assert_int_equal(held_etcd.n_replies, 1);
        assert_int_equal(held_etcd.error, HF_E_UNAVAILABLE);
        assert_string_equal(held_etcd.status.message,
                            "etcd http://127.0.0.1:1 is unreachable: a reason");
        assert_string_equal(held_etcd.log, "");
        assert_int_equal(held_etcd_get(false), 0);
        held_etcd_fail(HF_E_UNAVAILABLE);
        held_etcd_respond(5);
        assert_int_equal(held_etcd.error, 0);
        assert_int_equal(held_etcd.revision, 5);
        held_etcd_close();
}

/* Half of the time that is left is for the endpoints after this one. */
static void test_a_read_is_tried_on_each_endpoint(void **state) {
        held_etcd_open(3);
        hf_nsec deadline = held_etcd_now + 100 * SEC;
        assert_int_equal(held_etcd_get(false), 0);
        assert_int_equal(held_etcd_latest()->request.endpoint, 0);
        assert_true(held_etcd_latest()->request.deadline == held_etcd_now + 50 * SEC);
        held_etcd_now += 50 * SEC;
        held_etcd_fail(HF_E_TIMEOUT);
        assert_int_equal(held_etcd_latest()->request.endpoint, 1);
        assert_true(held_etcd_latest()->request.deadline == held_etcd_now + 25 * SEC);
        held_etcd_fail(HF_E_UNAVAILABLE);
        assert_int_equal(held_etcd_latest()->request.endpoint, 2);
        assert_true(held_etcd_latest()->request.deadline == deadline); /* the last attempt */
        held_etcd_fail(HF_E_UNAVAILABLE);
        assert_int_equal(held_etcd.n_attempts, 3);
        assert_int_equal(held_etcd.error, HF_E_UNAVAILABLE);
        assert_string_equal(held_etcd.log, "http://127.0.0.1:1 failed, trying http://127.0.0.1:2"
                                           "http://127.0.0.1:2 failed, trying http://127.0.0.1:3"
                                           "http://127.0.0.1:3 failed, trying http://127.0.0.1:1");
        assert_int_equal(held_etcd_get(false), 0);
        assert_int_equal(held_etcd_latest()->request.endpoint, 0);
        held_etcd_respond(5);
        assert_int_equal(held_etcd_get(false), 0);
        assert_int_equal(held_etcd_latest()->request.endpoint, 0); /* it works */
        held_etcd_respond(5);
        held_etcd_close();
}

static void test_calls_that_fail_together_skip_no_endpoint(void **state) {
        held_etcd_open(3);
        assert_int_equal(held_etcd_get(false), 0);
        const struct hfd_grpc_request first = held_etcd_latest()->request;
        assert_int_equal(held_etcd_get(false), 0);
        held_etcd_fail(HF_E_UNAVAILABLE);
        assert_int_equal(held_etcd_latest()->request.endpoint, 1);
        held_etcd_respond(5);
        first.on_done(first.ctx, &(struct hfd_grpc_result){.outcome = HF_E_UNAVAILABLE,
                                                           .status = -1,
                                                           .status_text = "",
                                                           .error_text = ""});
        assert_int_equal(held_etcd_latest()->request.endpoint, 1);
        held_etcd_respond(5);
        held_etcd_close();
}

static void test_nothing_is_tried_after_the_deadline(void **state) {
        held_etcd_open(3);
        assert_int_equal(held_etcd_get(false), 0);
        held_etcd_now += 100 * SEC - 1;
        held_etcd_fail(HF_E_UNAVAILABLE);
        assert_int_equal(held_etcd.n_attempts, 2);
        held_etcd_now++;
        held_etcd_fail(HF_E_UNAVAILABLE);
        assert_int_equal(held_etcd.n_attempts, 2);
        assert_int_equal(held_etcd.error, HF_E_UNAVAILABLE);
        assert_int_equal(held_etcd_get(false), 0); /* with the next endpoint */
        assert_int_equal(held_etcd_latest()->request.endpoint, 2);
        held_etcd_respond(5);
        held_etcd_close();
}

/* If the store repeated a write that may have been done, it could do it twice. */
static void test_only_a_write_that_was_not_done_is_tried_again(void **state) {
        static const struct {
                int outcome, status;
                const char *text;
                int error;
                unsigned on_one, on_three; /* attempts, with so many endpoints */
        } rows[] = {
                {HF_E_UNAVAILABLE, -1, "", HF_E_UNAVAILABLE, 2, 3},
                {HF_E_TIMEOUT, -1, "", HF_E_TIMEOUT, 1, 1},
                {0, 14, "etcdserver: no leader", HF_E_UNAVAILABLE, 1, 3},
                {0, 14, "etcdserver: request timed out", HF_E_TIMEOUT, 1, 1},
                {0, 3, "etcdserver: bad", HF_E_INVALID, 1, 1},
                {HF_E_CANCELED, -1, "", HF_E_CANCELED, 1, 1},
        };

        for (size_t i = 0; i < 2 * (sizeof rows / sizeof *rows); i++) {
                bool is_one = i % 2 == 0;
                held_etcd_open(is_one ? 1 : 3);
                assert_int_equal(write_x(), 0);
                assert_true(held_etcd_latest()->request.deadline == held_etcd_now + 100 * SEC);
                while (held_etcd.n_replies == 0)
                        held_etcd_end(&(struct hfd_grpc_result){.outcome = rows[i / 2].outcome,
                                                                .code = 200,
                                                                .status = rows[i / 2].status,
                                                                .status_text = rows[i / 2].text,
                                                                .error_text = ""});
                assert_int_equal(held_etcd.error, rows[i / 2].error);
                assert_int_equal(held_etcd.n_attempts,
                                 is_one ? rows[i / 2].on_one : rows[i / 2].on_three);
                held_etcd_close();
        }
}

/* The next operation tries another endpoint, although this one could not be repeated. */
static void test_a_write_of_unknown_outcome_leaves_its_endpoint(void **state) {
        held_etcd_open(3);
        assert_int_equal(write_x(), 0);
        held_etcd_fail(HF_E_TIMEOUT);
        assert_int_equal(held_etcd.error, HF_E_TIMEOUT);
        assert_int_equal(held_etcd_get(false), 0);
        assert_int_equal(held_etcd_latest()->request.endpoint, 1);
        held_etcd_respond(5);
        held_etcd_close();
}

static void test_a_transaction_that_writes_nothing_is_a_read(void **state) {
        static const char *const keys[] = {"/k"};
        const struct hfd_txn txn = {.get_on_failure = keys, .n_get_on_failure = 1};

        held_etcd_open(1);
        assert_int_equal(held_etcd.store->ops->txn(held_etcd.store, &txn, held_etcd_now + SEC,
                                                   held_etcd_on_reply, NULL),
                         0);
        held_etcd_fail(HF_E_TIMEOUT);
        assert_int_equal(held_etcd.n_attempts, 2);
        held_etcd_fail(HF_E_TIMEOUT);
        held_etcd_close();
}

static void test_a_malformed_response_is_an_error(void **state) {
        static const struct hfd_grpc_result bad[] = {
                {.code = 200, .status_text = "", .error_text = ""},
                {.code = 200,
                 .status_text = "",
                 .error_text = "",
                 .message = "\xff",
                 .n_message = 1},
        };

        held_etcd_open(1);
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
                assert_int_equal(held_etcd_get(false), 0);
                held_etcd_end(&bad[i]);
                assert_int_equal(held_etcd.n_replies, i + 1);
                assert_int_equal(held_etcd.error, -EPROTO);
                assert_int_equal(held_etcd.revision, 0);
                assert_non_null(strstr(held_etcd.status.message,
                                       "etcd http://127.0.0.1:1: the response is malformed: "));
        }
        assert_int_equal(held_etcd_get(false), 0);
        held_etcd_end(&(struct hfd_grpc_result){.code = 404, .status_text = "", .error_text = ""});
        assert_int_equal(held_etcd.error, -EIO);
        assert_non_null(strstr(held_etcd.status.message, "HTTP status 404"));
        held_etcd_close();
}

/* A proxy whose etcd is away answers in its place. */
static void test_a_gateway_error_leads_to_the_next_endpoint(void **state) {
        static const struct hfd_grpc_result bad_gateway = {.code = 502,
                                                           .status = -1,
                                                           .status_text = "",
                                                           .error_text = ""};

        held_etcd_open(3);
        assert_int_equal(held_etcd_get(false), 0);
        held_etcd_end(&bad_gateway);
        assert_int_equal(held_etcd_latest()->request.endpoint, 1);
        held_etcd_respond(5);
        assert_int_equal(held_etcd.error, 0);
        assert_int_equal(write_x(), 0);
        held_etcd_end(&bad_gateway); /* it may have passed the write on */
        assert_int_equal(held_etcd.error, HF_E_TIMEOUT);
        assert_non_null(strstr(held_etcd.status.message, "HTTP status 502"));
        assert_int_equal(held_etcd_get(false), 0);
        assert_int_equal(held_etcd_latest()->request.endpoint, 2);
        held_etcd_respond(5);
        held_etcd_close();
}

static void test_a_store_that_closes_refuses_operations_and_attempts(void **state) {
        held_etcd_open(1);
        assert_int_equal(held_etcd_get(false), 0);
        const struct hfd_grpc_request first = held_etcd_latest()->request;
        held_etcd.store->ops->stop(held_etcd.store);
        assert_int_equal(held_etcd_get(false), HF_E_CLOSED);
        first.on_done(first.ctx, &(struct hfd_grpc_result){.outcome = HF_E_UNAVAILABLE,
                                                           .status = -1,
                                                           .status_text = "",
                                                           .error_text = ""});
        assert_int_equal(held_etcd.n_replies, 1);
        assert_int_equal(held_etcd.error, HF_E_CANCELED);
        assert_string_equal(held_etcd.status.message, "the store is closing");
        held_etcd_close();
}

static void test_keys_and_sizes_are_checked(void **state) {
        struct hf__buf *value = hf__buf_new(REQUEST_MAX);
        struct hfd_op put = {.kind = HFD_PUT, .key = "/x", .value = value};
        const struct hfd_txn txn = {.ops = &put, .n_ops = 1};
        char prefix[HFD_KEY_MAX + 1] = "";

        held_etcd_open(1);
        assert_int_equal(held_etcd.store->ops->get(held_etcd.store, NULL, false, held_etcd_now,
                                                   held_etcd_on_reply, NULL),
                         -EINVAL);
        assert_int_equal(held_etcd.store->ops->get(held_etcd.store, "", false, held_etcd_now,
                                                   held_etcd_on_reply, NULL),
                         -EINVAL);
        memset(prefix, 'p', HFD_KEY_MAX);
        assert_int_equal(held_etcd.store->ops->list(held_etcd.store, prefix, NULL, 0, 0, false,
                                                    held_etcd_now, held_etcd_on_reply, NULL),
                         HF_E_TOO_LARGE);
        assert_int_equal(held_etcd.n_attempts, 0);
        assert_non_null(value);
        memset(value->data, 'x', REQUEST_MAX);
        /* The request has a few bytes more than its value. */
        while (held_etcd.store->ops->txn(held_etcd.store, &txn, held_etcd_now + SEC,
                                         held_etcd_on_reply, NULL) == HF_E_TOO_LARGE)
                value->n--;
        assert_int_equal(held_etcd_latest()->request.body->n, REQUEST_MAX);
        held_etcd_fail(HF_E_TIMEOUT);
        hf__buf_unref(value);
        held_etcd_close();
}

static void test_a_store_that_cannot_be_opened_says_why(void **state) {
        static const char *const none[] = {NULL}, *const bad[] = {"https://127.0.0.1:1", "x", NULL};
        static const char *const good[] = {"http://127.0.0.1:1", NULL};
        struct hfd_store *store = NULL;
        struct hf_status status = {0};

        assert_int_equal(hfd_etcd_store_new(&held_etcd_host, &(struct hfd_etcd_config){0}, &store,
                                            &status),
                         HF_E_INVALID);
        assert_int_equal(hfd_etcd_store_new(&held_etcd_host,
                                            &(struct hfd_etcd_config){.endpoints = none}, &store,
                                            &status),
                         HF_E_INVALID);
        assert_non_null(strstr(status.message, "no etcd endpoint is given"));
        assert_int_equal(hfd_etcd_store_new(&held_etcd_host,
                                            &(struct hfd_etcd_config){.endpoints = bad}, &store,
                                            &status),
                         HF_E_INVALID);
        assert_non_null(strstr(status.message, "x"));
        assert_int_equal(hfd_etcd_store_new(&held_etcd_host,
                                            &(struct hfd_etcd_config){
                                                    .endpoints = (const char *const
                                                                          []){"https://127.0.0.1:1",
                                                                              NULL},
                                                    .ca_pem = "no certificate"},
                                            &store, &status),
                         HF_E_INVALID);
        for (size_t i = 0; i < HELD_ETCD_CHANNELS; i++) {
                held_etcd_reset();
                held_etcd.n_at_most = i;
                assert_int_equal(hfd_etcd_store_new(&held_etcd_host,
                                                    &(struct hfd_etcd_config){.endpoints = good,
                                                                              .ca_pem = "not used"},
                                                    &store, &status),
                                 -EMFILE);
                assert_non_null(strstr(status.message, "cannot start the etcd client: "));
                assert_int_equal(held_etcd.n_channels, i);
        }
        assert_null(store);
}

/* Lists may take long. The watchdog sees a hanging thread 10 s after its last turn. */
static void test_a_hanging_thread_is_noticed(void **state) {
        held_etcd_open(1);
        struct hfd_grpc_channel *lists = held_etcd_channel("hfd-etcd-lists"),
                                *leases = held_etcd_channel("hfd-etcd-leases");
        held_etcd_channel("hfd-etcd")->iterations = 7;
        lists->alive_at = leases->alive_at = held_etcd_now - 10 * SEC;
        assert_int_equal(held_etcd.store->ops->iterations(held_etcd.store), 7);
        lists->alive_at--;
        assert_int_equal(held_etcd.store->ops->iterations(held_etcd.store), 0);
        lists->alive_at++;
        leases->alive_at--;
        assert_int_equal(held_etcd.store->ops->iterations(held_etcd.store), 0);
        held_etcd_close();
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_kind_of_operation_has_its_thread_and_connection),
                cmocka_unit_test(test_one_endpoint_is_tried_twice),
                cmocka_unit_test(test_a_read_is_tried_on_each_endpoint),
                cmocka_unit_test(test_calls_that_fail_together_skip_no_endpoint),
                cmocka_unit_test(test_nothing_is_tried_after_the_deadline),
                cmocka_unit_test(test_only_a_write_that_was_not_done_is_tried_again),
                cmocka_unit_test(test_a_write_of_unknown_outcome_leaves_its_endpoint),
                cmocka_unit_test(test_a_transaction_that_writes_nothing_is_a_read),
                cmocka_unit_test(test_a_malformed_response_is_an_error),
                cmocka_unit_test(test_a_gateway_error_leads_to_the_next_endpoint),
                cmocka_unit_test(test_a_store_that_closes_refuses_operations_and_attempts),
                cmocka_unit_test(test_keys_and_sizes_are_checked),
                cmocka_unit_test(test_a_store_that_cannot_be_opened_says_why),
                cmocka_unit_test(test_a_hanging_thread_is_noticed),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
