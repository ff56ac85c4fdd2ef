/* SPDX-License-Identifier: Apache-2.0 */
/* How the etcd store watches, and how its watches end, without an etcd. */
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
#include "server/storage/rpc.pb-c.h"
#include "time_units.h"

static struct {
        unsigned n_events, n_ends;
        struct hfd_watch_event event;
        int end_error;
        struct hf_status end;
} f;

static size_t pack(const ProtobufCMessage *message, char *data, size_t max) {
        assert_true(protobuf_c_message_get_packed_size(message) <= max);
        return protobuf_c_message_pack(message, (uint8_t *)data);
}

static void open_store(unsigned n_endpoints) {
        memset(&f, 0, sizeof f);
        held_etcd_open(n_endpoints);
}

static void on_event(void *ctx, const struct hfd_watch_event *events, size_t n) {
        f.n_events += (unsigned)n;
        f.event = events[0];
}

static void on_end(void *ctx, int error, const struct hf_status *status) {
        f.n_ends++;
        f.end_error = error;
        f.end = *status;
}

static uint64_t watch(void) {
        static const struct hfd_watch_handler handler = {.event = on_event, .end = on_end};
        uint64_t id = 0;

        assert_int_equal(held_etcd.store->ops->watch(held_etcd.store, "/a", "/b", 3, &handler, NULL,
                                                     &id),
                         0);
        assert_int_not_equal(id, 0);
        return id;
}

/* Sends a response on the stream of this attempt. */
static int send_to(unsigned attempt, const Hfd__WatchResponse *response) {
        const struct hfd_grpc_request *request = &held_etcd.attempts[attempt].request;
        char data[400];
        size_t n = pack(&response->base, data, sizeof data);

        return request->on_message(request->ctx, data, n);
}

static int send_watch(const Hfd__WatchResponse *response) {
        return send_to(held_etcd.n_attempts - 1, response);
}

static void end_watch(unsigned attempt, int outcome) {
        const struct hfd_grpc_request request = held_etcd.attempts[attempt].request;

        request.on_done(request.ctx, &(struct hfd_grpc_result){.outcome = outcome,
                                                               .status = -1,
                                                               .status_text = "",
                                                               .error_text = ""});
        request.on_release(request.ctx);
}

static Hfd__WatchResponse watch_response(Hfd__ResponseHeader *header) {
        Hfd__WatchResponse response = HFD__WATCH_RESPONSE__INIT;

        hfd__response_header__init(header);
        header->revision = 100;
        response.header = header;
        return response;
}

static void test_only_progress_of_etcd_itself_is_passed_on(void **state) {
        Hfd__ResponseHeader header;
        Hfd__WatchResponse response = watch_response(&header);

        open_store(1);
        (void)watch();
        assert_ptr_equal(held_etcd_latest()->channel, held_etcd_channel("hfd-etcd"));
        assert_true(held_etcd_latest()->request.deadline == HF_NSEC_NEVER);
        assert_true(held_etcd_latest()->request.head_timeout == 5 * SEC);
        assert_true(held_etcd_latest()->request.probe_after == 2 * SEC);
        assert_true(held_etcd_latest()->request.probe_time == 3 * SEC);
        assert_string_equal(held_etcd_latest()->request.header_name, "hasleader");
        assert_string_equal(held_etcd_latest()->request.header_value, "true");
        assert_int_equal(held_etcd_latest()->request.max_message, HFD_ETCD_BODY_MAX);
        response.created = true;
        assert_int_equal(send_watch(&response), 0);
        assert_int_equal(f.n_events, 0);
        response.created = false;
        response.watch_id = -1; /* the response to a probe */
        assert_int_equal(send_watch(&response), 0);
        assert_int_equal(f.n_events, 0);
        response.watch_id = 0;
        assert_int_equal(send_watch(&response), 0);
        assert_int_equal(f.n_events, 1);
        assert_int_equal(f.event.type, HFD_WATCH_PROGRESS);
        assert_int_equal(f.event.revision, 100);
        end_watch(0, HF_E_CANCELED);
        held_etcd_close();
}

/* The watch asks etcd for the revision before its first one (watch.c says why). The user gets only
 * what it asked for. */
static void test_events_before_the_first_revision_are_dropped(void **state) {
        static const struct {
                int64_t revisions[2];
                unsigned n_delivered;
                uint64_t first;
        } rows[] = {{{2, 2}, 0, 0}, {{2, 3}, 1, 3}, {{3, 4}, 2, 3}};
        Hfd__ResponseHeader header;

        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                Hfd__WatchResponse response = watch_response(&header);
                Hfd__KeyValue kvs[2] = {HFD__KEY_VALUE__INIT, HFD__KEY_VALUE__INIT};
                Hfd__Event events[2] = {HFD__EVENT__INIT, HFD__EVENT__INIT};

                for (size_t k = 0; k < 2; k++) {
                        kvs[k].key = (ProtobufCBinaryData){.len = 3, .data = (uint8_t *)"/ab"};
                        kvs[k].mod_revision = rows[i].revisions[k];
                        events[k].type = HFD__EVENT__TYPE__DELETE;
                        events[k].kv = &kvs[k];
                }
                response.n_events = 2;
                response.events = (Hfd__Event *[]){&events[0], &events[1]};
                open_store(1);
                (void)watch();
                assert_int_equal(send_watch(&response), 0);
                assert_int_equal(f.n_events, rows[i].n_delivered);
                if (f.n_events > 0)
                        assert_int_equal(f.event.kv.mod_revision, rows[i].first);
                end_watch(0, HF_E_CANCELED);
                held_etcd_close();
        }
}

/* Says on the stream of this attempt that etcd has created the watch, at this revision. */
static int send_created(unsigned attempt, int64_t revision) {
        Hfd__ResponseHeader header;
        Hfd__WatchResponse response = watch_response(&header);

        header.revision = revision;
        response.created = true;
        return send_to(attempt, &response);
}

/* Sends the deletions of a key at these two revisions. */
static int send_deletions(unsigned attempt, int64_t first, int64_t second) {
        Hfd__ResponseHeader header;
        Hfd__WatchResponse response = watch_response(&header);
        Hfd__KeyValue kvs[2] = {HFD__KEY_VALUE__INIT, HFD__KEY_VALUE__INIT};
        Hfd__Event events[2] = {HFD__EVENT__INIT, HFD__EVENT__INIT};

        for (size_t i = 0; i < 2; i++) {
                kvs[i].key = (ProtobufCBinaryData){.len = 3, .data = (uint8_t *)"/ab"};
                kvs[i].mod_revision = i == 0 ? first : second;
                events[i].type = HFD__EVENT__TYPE__DELETE;
                events[i].kv = &kvs[i];
        }
        response.n_events = 2;
        response.events = (Hfd__Event *[]){&events[0], &events[1]};
        return send_to(attempt, &response);
}

/* Two streams bring the same events, the early one first. */
static void test_an_early_stream_brings_the_first_events(void **state) {
        open_store(1);
        (void)watch();
        assert_int_equal(send_created(0, 2), 0);
        assert_int_equal(held_etcd.n_attempts, 2);
        assert_null(held_etcd_latest()->request.probe);
        assert_true(held_etcd_latest()->request.deadline == held_etcd_now + 5 * SEC);
        assert_ptr_equal(held_etcd_latest()->channel, held_etcd_channel("hfd-etcd"));
        assert_int_equal(held_etcd_latest()->request.lane, held_etcd.attempts[0].request.lane);
        assert_int_equal(send_created(1, 2), 0);
        assert_int_equal(send_deletions(1, 3, 4), 0);
        assert_int_equal(f.n_events, 2);
        assert_false(held_etcd.attempts[1].is_canceled);
        /* The watch itself is served: its stream goes on alone. */
        assert_int_equal(send_deletions(0, 2, 4), 0);
        assert_int_equal(f.n_events, 2);
        assert_true(held_etcd.attempts[1].is_canceled);
        end_watch(1, HF_E_CANCELED);
        assert_int_equal(send_deletions(0, 4, 5), 0);
        assert_int_equal(f.n_events, 3);
        assert_int_equal(f.event.kv.mod_revision, 5);
        assert_int_equal(f.n_ends, 0);
        end_watch(0, HF_E_CANCELED);
        held_etcd_close();
}

/* What the early stream brings before its end counts, and its end does not end the watch. */
static void test_an_early_stream_that_ends_leaves_the_watch(void **state) {
        open_store(1);
        (void)watch();
        assert_int_equal(send_created(0, 2), 0);
        assert_int_equal(send_created(1, 2), 0);
        assert_int_equal(send_deletions(1, 3, 3), 0);
        end_watch(1, HF_E_UNAVAILABLE);
        assert_int_equal(f.n_ends, 0);
        assert_int_equal(send_deletions(0, 3, 6), 0);
        assert_int_equal(f.n_events, 3);
        assert_int_equal(f.event.kv.mod_revision, 6);
        end_watch(0, HF_E_CANCELED);
        assert_int_equal(f.n_ends, 1);
        held_etcd_close();
}

/* With a write before it, etcd would serve an early stream no earlier than the watch itself. */
static void test_an_early_stream_is_open_only_if_nothing_was_written(void **state) {
        open_store(1);
        (void)watch();
        assert_int_equal(send_created(0, 3), 0);
        assert_int_equal(held_etcd.n_attempts, 1);
        end_watch(0, HF_E_CANCELED);
        held_etcd_close();

        open_store(1);
        (void)watch();
        assert_int_equal(send_created(0, 2), 0);
        assert_int_equal(held_etcd.n_attempts, 2);
        assert_int_not_equal(send_created(1, 3), 0);
        end_watch(1, HF_E_CANCELED);
        assert_int_equal(f.n_events, 0);
        assert_int_equal(f.n_ends, 0);
        end_watch(0, HF_E_CANCELED);
        held_etcd_close();
}

/* The compaction is reported by the watch itself. */
static void test_an_early_stream_that_etcd_cancels_says_nothing(void **state) {
        Hfd__ResponseHeader header;

        for (int compacted = 0; compacted < 2; compacted++) {
                Hfd__WatchResponse response = watch_response(&header);

                open_store(1);
                (void)watch();
                assert_int_equal(send_created(0, 2), 0);
                response.canceled = true;
                response.compact_revision = compacted ? 3 : 0;
                assert_int_not_equal(send_to(1, &response), 0);
                end_watch(1, HF_E_CANCELED);
                assert_int_equal(f.n_ends, 0);
                end_watch(0, HF_E_CANCELED);
                assert_int_equal(f.end_error, HF_E_CANCELED);
                held_etcd_close();
        }
}

/* The memory of the watch belongs to the last of the two streams that is released. */
static void test_the_end_of_a_watch_ends_its_early_stream(void **state) {
        open_store(1);
        (void)watch();
        assert_int_equal(send_created(0, 2), 0);
        end_watch(0, HF_E_CANCELED);
        assert_int_equal(f.n_ends, 1);
        assert_true(held_etcd.attempts[1].is_canceled);
        assert_int_not_equal(send_deletions(1, 3, 4), 0);
        assert_int_equal(f.n_events, 0); /* none after the end */
        end_watch(1, HF_E_CANCELED);
        assert_int_equal(f.n_ends, 1);
        held_etcd_close();
}

static void test_the_end_of_a_watch_says_how_to_go_on(void **state) {
        static const struct {
                int64_t compacted;
                bool canceled;
                const char *reason;
                int error;
                const char *message;
        } rows[] = {
                {55, true, "too old", HF_E_GONE, "a revision that it needs is compacted"},
                {0, true, "no space", HF_E_UNAVAILABLE, "watch ended: no space"},
                {0, true, "", HF_E_UNAVAILABLE, "watch ended: canceled by etcd"},
        };
        Hfd__ResponseHeader header;

        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                Hfd__WatchResponse response = watch_response(&header);
                response.compact_revision = rows[i].compacted;
                response.canceled = rows[i].canceled;
                response.cancel_reason = (char *)rows[i].reason;
                open_store(2);
                (void)watch();
                assert_int_not_equal(send_watch(&response), 0);
                end_watch(0, HF_E_CANCELED);
                assert_int_equal(f.n_ends, 1);
                assert_int_equal(f.end_error, rows[i].error);
                assert_non_null(strstr(f.end.message, rows[i].message));
                assert_string_equal(held_etcd.log, ""); /* the endpoint works */
                held_etcd_close();
        }
}

static void test_an_unreadable_message_ends_the_watch(void **state) {
        open_store(1);
        (void)watch();
        assert_int_not_equal(held_etcd_latest()->request.on_message(held_etcd_latest()->request.ctx,
                                                                    "\xff", 1),
                             0);
        end_watch(0, HF_E_CANCELED);
        assert_int_equal(f.end_error, HF_E_UNAVAILABLE);
        assert_int_equal(f.n_events, 0);
        assert_non_null(strstr(f.end.message, "etcd http://127.0.0.1:1: watch ended: "));
        held_etcd_close();
}

/* A watch that fails leaves its endpoint, with the operations. One that is canceled does not. */
static void test_a_watch_that_fails_leaves_its_endpoint(void **state) {
        static const struct {
                int outcome, error;
                size_t next;
        } rows[] = {
                {HF_E_UNAVAILABLE, HF_E_UNAVAILABLE, 1},
                {HF_E_TIMEOUT, HF_E_UNAVAILABLE, 1},
                {0, HF_E_UNAVAILABLE, 1},
                {HF_E_CANCELED, HF_E_CANCELED, 0},
        };

        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                open_store(3);
                (void)watch();
                assert_int_equal(held_etcd_latest()->request.endpoint, 0);
                end_watch(0, rows[i].outcome);
                assert_int_equal(f.end_error, rows[i].error);
                (void)watch();
                assert_int_equal(held_etcd_latest()->request.endpoint, rows[i].next);
                assert_int_equal(held_etcd_get(false), 0);
                assert_int_equal(held_etcd_latest()->request.endpoint, rows[i].next);
                held_etcd_respond(5);
                end_watch(1, HF_E_CANCELED);
                held_etcd_close();
        }
}

static void watch_again(void *ctx, int error, const struct hf_status *status) {
        on_end(ctx, error, status);
        (void)watch();
}

/* The end of a watch is the moment at which its user opens the next one. */
static void test_the_next_watch_may_be_opened_when_one_fails(void **state) {
        static const struct hfd_watch_handler handler = {.event = on_event, .end = watch_again};

        open_store(3);
        assert_int_equal(held_etcd.store->ops->watch(held_etcd.store, "/a", "/b", 3, &handler, NULL,
                                                     NULL),
                         0);
        end_watch(0, HF_E_UNAVAILABLE);
        assert_int_equal(f.n_ends, 1);
        assert_int_equal(held_etcd.n_attempts, 2);
        assert_int_equal(held_etcd_latest()->request.endpoint, 1);
        end_watch(1, HF_E_CANCELED);
        held_etcd_close();
}

/* Operations that work on an endpoint stay there when a watch hangs on it. */
static void test_a_suspected_watch_moves_alone(void **state) {
        open_store(3);
        uint64_t id = watch();
        held_etcd.store->ops->watch_suspect(held_etcd.store, id);
        assert_true(held_etcd.attempts[0].is_canceled);
        /* Another thread may end the watch at once, and its user opens the next one. */
        assert_int_equal(held_etcd.attempts[0].next_watch_at, 1);
        end_watch(0, HF_E_CANCELED);
        assert_string_equal(held_etcd.log, "the watch on http://127.0.0.1:1 failed, watching on "
                                           "http://127.0.0.1:2");
        (void)watch();
        assert_int_equal(held_etcd_latest()->request.endpoint, 1);
        assert_int_equal(held_etcd_get(false), 0);
        assert_int_equal(held_etcd_latest()->request.endpoint, 0);
        held_etcd_respond(5);
        end_watch(1, HF_E_CANCELED);
        held_etcd_close();
}

/* Only the watch's own endpoint is left, and only once, however often it is suspected. */
static void test_an_endpoint_that_is_suspected_again_is_left_once(void **state) {
        uint64_t ids[3];

        open_store(3);
        for (unsigned i = 0; i < 2; i++)
                ids[i] = watch();
        for (unsigned i = 0; i < 2; i++) {
                held_etcd.store->ops->watch_suspect(held_etcd.store, ids[i]);
                held_etcd.store->ops->watch_suspect(held_etcd.store, ids[i]); /* before its end */
                assert_true(held_etcd.attempts[i].is_canceled);
        }
        ids[2] = watch();
        assert_int_equal(held_etcd_latest()->request.endpoint, 1);
        for (unsigned i = 0; i < 2; i++) {
                end_watch(i, HF_E_CANCELED);
                held_etcd.store->ops->watch_suspect(held_etcd.store, ids[i]); /* after it */
        }
        (void)watch();
        assert_int_equal(held_etcd_latest()->request.endpoint, 1);
        held_etcd.store->ops->watch_suspect(held_etcd.store, ids[2]);
        (void)watch();
        assert_int_equal(held_etcd_latest()->request.endpoint, 2);
        for (unsigned i = 2; i < 5; i++)
                end_watch(i, HF_E_CANCELED);
        held_etcd_close();
}

/* The first watch begins at the endpoint that the operations use. */
static void test_a_watch_begins_where_the_operations_are(void **state) {
        open_store(3);
        assert_int_equal(held_etcd_get(false), 0);
        held_etcd_fail(HF_E_UNAVAILABLE);
        held_etcd_respond(5);
        (void)watch();
        assert_int_equal(held_etcd_latest()->request.endpoint, 1);
        end_watch(2, HF_E_CANCELED);
        held_etcd_close();
}

static uint64_t own_id, id_at_start;

static void note_id(void) { id_at_start = own_id; }

/* A callback may run before the function that opens the watch returns, and cancel it. */
static void test_a_watch_has_its_id_when_it_starts(void **state) {
        static const struct hfd_watch_handler handler = {.event = on_event, .end = on_end};

        open_store(1);
        held_etcd.on_start = note_id;
        own_id = id_at_start = 0;
        assert_int_equal(held_etcd.store->ops->watch(held_etcd.store, "/a", "/b", 3, &handler, NULL,
                                                     &own_id),
                         0);
        assert_int_not_equal(own_id, 0);
        assert_int_equal(id_at_start, own_id);
        end_watch(0, HF_E_CANCELED);
        held_etcd_close();
}

static void test_each_watch_is_canceled_by_its_id(void **state) {
        uint64_t ids[3];

        for (unsigned i = 0; i < 3; i++) {
                open_store(1);
                for (unsigned k = 0; k < 3; k++)
                        ids[k] = watch();
                end_watch(i, HF_E_UNAVAILABLE);
                held_etcd.store->ops->watch_cancel(held_etcd.store, ids[i]); /* it has ended */
                for (unsigned k = 0; k < 3; k++) {
                        if (k == i)
                                continue;
                        assert_false(held_etcd.attempts[k].is_canceled);
                        held_etcd.store->ops->watch_cancel(held_etcd.store, ids[k]);
                        assert_true(held_etcd.attempts[k].is_canceled);
                        end_watch(k, HF_E_CANCELED);
                }
                assert_int_equal(f.n_ends, 3);
                held_etcd_close();
        }
}

static void test_a_store_that_closes_opens_no_watch(void **state) {
        static const struct hfd_watch_handler handler = {.event = on_event, .end = on_end};

        open_store(1);
        (void)watch();
        held_etcd.store->ops->stop(held_etcd.store);
        assert_int_equal(held_etcd.store->ops->watch(held_etcd.store, "/a", "/b", 3, &handler, NULL,
                                                     NULL),
                         HF_E_CLOSED);
        end_watch(0, HF_E_CANCELED);
        assert_int_equal(f.n_ends, 1);
        held_etcd_close();
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_only_progress_of_etcd_itself_is_passed_on),
                cmocka_unit_test(test_events_before_the_first_revision_are_dropped),
                cmocka_unit_test(test_an_early_stream_brings_the_first_events),
                cmocka_unit_test(test_an_early_stream_that_ends_leaves_the_watch),
                cmocka_unit_test(test_an_early_stream_is_open_only_if_nothing_was_written),
                cmocka_unit_test(test_an_early_stream_that_etcd_cancels_says_nothing),
                cmocka_unit_test(test_the_end_of_a_watch_ends_its_early_stream),
                cmocka_unit_test(test_the_end_of_a_watch_says_how_to_go_on),
                cmocka_unit_test(test_an_unreadable_message_ends_the_watch),
                cmocka_unit_test(test_a_watch_that_fails_leaves_its_endpoint),
                cmocka_unit_test(test_the_next_watch_may_be_opened_when_one_fails),
                cmocka_unit_test(test_a_suspected_watch_moves_alone),
                cmocka_unit_test(test_an_endpoint_that_is_suspected_again_is_left_once),
                cmocka_unit_test(test_a_watch_begins_where_the_operations_are),
                cmocka_unit_test(test_a_watch_has_its_id_when_it_starts),
                cmocka_unit_test(test_each_watch_is_canceled_by_its_id),
                cmocka_unit_test(test_a_store_that_closes_opens_no_watch),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
