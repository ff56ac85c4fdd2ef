/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gated and fenced client, over an inner client that records its requests and completes them
 * when the test wants.
 */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/process_mark.h"
#include "leader/leader_client.h"

static hf_nsec now;
static hf_nsec read_now(void *ctx) { return now; }
static const struct hf_clock fake_clock = {.size = sizeof fake_clock,
                                           .boot = read_now,
                                           .monotonic = read_now,
                                           .real = read_now};
static const struct hf_host host = {.size = sizeof host, .clock = &fake_clock};

/* ---- the inner client ---- */

static struct {
        struct hf_client base;
        size_t n_calls, n_cancels, n_watches;
        struct hf_request request;
        struct hf_fence fence;
        hf_response_fn done;
        void *ctx;
        int fail, respond_at_once;      /* respond_at_once: the error + 1 */
        struct hf_client *ended_before; /* the leader's client: it is ended before `fail` */
        bool echo, not_sent;
} inner;

static void response(int error) {
        struct hf_response reply = {.size = sizeof reply,
                                    .error = error,
                                    .fence_echoed = inner.echo,
                                    .not_sent = inner.not_sent};
        hf_response_fn done = inner.done;
        inner.done = NULL;
        done(inner.ctx, &reply);
}
static int inner_call(struct hf_client *self, const struct hf_request *request, hf_response_fn done,
                      void *ctx, uint64_t *ret_id) {
        if (inner.ended_before) {
                hf__leader_client_end(inner.ended_before);
                assert_true(hf__leader_client_doubt_at(inner.ended_before) == HF_NSEC_NEVER);
        }
        if (inner.fail)
                return inner.fail;
        inner.n_calls++;
        inner.request = *request;
        if (request->fence)
                inner.fence = *request->fence;
        inner.done = done;
        inner.ctx = ctx;
        *ret_id = 70 + inner.n_calls;
        if (inner.respond_at_once)
                response(inner.respond_at_once - 1);
        return 0;
}
static void inner_cancel(struct hf_client *self, uint64_t id) {
        assert(id == 70 + inner.n_calls);
        inner.n_cancels++;
}
static int inner_watch(struct hf_client *self, const struct hf_watch_spec *spec,
                       hf_event_fn on_event, hf_watch_end_fn on_end, void *ctx, uint64_t *ret_id) {
        inner.n_watches++;
        return 0;
}
static void inner_free(struct hf_client *self) {}
static const struct hf_client_ops inner_ops = {sizeof inner_ops, inner_call,   inner_cancel,
                                               inner_watch,      inner_cancel, inner_free};

/* ---- the fixture ---- */

static struct hf__gate gate;
static int n_stale, stale_error, n_replies, reply_error, n_settled;

static void on_stale(void *ctx, int error) {
        n_stale++;
        stale_error = error;
}
static void on_settled(void *ctx) { n_settled++; }
static void on_reply(void *ctx, const struct hf_response *reply) {
        n_replies++;
        reply_error = reply->error;
}

static void on_event(void *ctx, const struct hf_event *event) { fail(); }
static void on_end(void *ctx, int error, const struct hf_status *status) { fail(); }

/* While this is set, nothing but the fence stops a write. */
static bool gate_is_off;

int __real_hf__gate_admit(struct hf__gate *admitting, hf_nsec at, bool is_over, hf_nsec *deadline,
                          const char **ret_why);
int __wrap_hf__gate_admit(struct hf__gate *admitting, hf_nsec at, bool is_over, hf_nsec *deadline,
                          const char **ret_why);

int __wrap_hf__gate_admit(struct hf__gate *admitting, hf_nsec at, bool is_over, hf_nsec *deadline,
                          const char **ret_why) {
        return gate_is_off ? 0 : __real_hf__gate_admit(admitting, at, is_over, deadline, ret_why);
}

static struct hf_client *make(bool unfenced) {
        struct hf__leader_client_config config =
                {.inner = &inner.base,
                 .gate = &gate,
                 .fence = {.ns = "kube-system", .name = "lead", .term = 17, .identity = "me"},
                 .unfenced = unfenced,
                 .stale = on_stale,
                 .settled = on_settled};
        struct hf_client *client = NULL;
        memset(&inner, 0, sizeof inner);
        inner.base = (struct hf_client){&inner_ops, &host};
        inner.echo = true;
        gate_is_off = false;
        n_settled = n_stale = n_replies = reply_error = stale_error = 0;
        now = 1000;
        hf__gate_shut(&gate);
        assert_int_equal(hf__process_mark_init(), 0);
        hf__gate_open(&gate, 2000);
        assert_int_equal(hf__leader_client_new(&host, &config, &client), 0);
        return client;
}

static int send_request(struct hf_client *client, enum hf_verb verb, hf_nsec deadline) {
        struct hf_request request = {.size = sizeof request,
                                     .verb = verb,
                                     .resource = {"", "v1", "configmaps"},
                                     .ns = "n",
                                     .name = "x",
                                     .deadline = deadline};
        if (verb == HF_VERB_CREATE || verb == HF_VERB_UPDATE) {
                request.body = "{}";
                request.n_body = 2;
        }
        uint64_t id = 99;
        return hf_client_request(client, &request, on_reply, NULL, &id);
}

static void test_a_write_carries_the_fence_and_ends_with_validity(void **state) {
        struct hf_client *client = make(false);
        for (int verb = HF_VERB_CREATE; verb <= HF_VERB_DELETE; verb++) {
                assert_int_equal(send_request(client, (enum hf_verb)verb, 0), 0);
                assert_non_null(inner.request.fence);
                assert_int_equal(inner.fence.term, 17);
                assert_string_equal(inner.fence.identity, "me");
                assert_int_equal(inner.request.deadline, 2000);
                response(0);
        }
        assert_int_equal(send_request(client, HF_VERB_UPDATE, 9999), 0);
        assert_int_equal(inner.request.deadline, 2000);
        response(0);
        assert_int_equal(send_request(client, HF_VERB_UPDATE, 1500), 0);
        assert_int_equal(inner.request.deadline, 1500);
        response(HF_E_CONFLICT);
        assert_int_equal(n_replies, 5);
        assert_int_equal(reply_error, HF_E_CONFLICT);
        assert_int_equal(n_stale, 0);
        hf__leader_client_release(client);
}

/* Scenario of docs/parity.md: PN03. */
static void test_the_gate_is_checked_for_each_write(void **state) {
        struct hf_client *client = make(false);
        now = 2000; /* the validity ends exactly now */
        assert_int_equal(send_request(client, HF_VERB_UPDATE, 0), 0);
        assert_int_equal(n_replies, 1);
        assert_int_equal(reply_error, HF_E_NOT_LEADER);
        assert_int_equal(inner.n_calls, 0);
        assert_int_equal(send_request(client, HF_VERB_GET, 0), 0); /* reads are allowed */
        assert_int_equal(inner.n_calls, 1);
        assert_null(inner.request.fence);
        response(0);
        hf__gate_extend(&gate, 3000);
        assert_int_equal(send_request(client, HF_VERB_UPDATE, 0), 0);
        assert_int_equal(inner.n_calls, 2);
        response(0);
        hf__gate_shut(&gate);
        assert_int_equal(send_request(client, HF_VERB_DELETE, 0), 0);
        assert_int_equal(inner.n_calls, 2);
        assert_int_equal(reply_error, HF_E_NOT_LEADER);
        hf__leader_client_release(client);
}

static void test_with_the_gate_off_only_the_fence_remains(void **state) {
        struct hf_client *client = make(false);
        gate_is_off = true;
        now = 5000;
        assert_int_equal(send_request(client, HF_VERB_UPDATE, 0), 0);
        assert_int_equal(inner.n_calls, 1);
        assert_int_equal(inner.fence.term, 17);
        response(HF_E_STALE_TERM);
        assert_int_equal(reply_error, HF_E_STALE_TERM);
        assert_int_equal(n_stale, 1);
        hf__leader_client_abort(client);
        assert_int_equal(send_request(client, HF_VERB_UPDATE, 0), 0);
        /*
         * without the gate the request is sent even after the abort, and the server must reject it
         */
        assert_int_equal(inner.n_calls, 2);
        response(HF_E_STALE_TERM);
        hf__leader_client_release(client);
}

static void test_a_stale_term_is_reported(void **state) {
        struct hf_client *client = make(false);
        assert_int_equal(send_request(client, HF_VERB_UPDATE, 0), 0);
        response(HF_E_STALE_TERM);
        assert_int_equal(n_stale, 1);
        assert_int_equal(stale_error, HF_E_STALE_TERM);
        hf__leader_client_release(client);
}

static void test_a_missing_echo_ends_the_term_unless_accepted(void **state) {
        struct hf_client *client = make(false);
        inner.echo = false;
        assert_int_equal(send_request(client, HF_VERB_UPDATE, 0), 0);
        response(0);
        assert_int_equal(reply_error, HF_E_UNFENCED);
        assert_int_equal(stale_error, HF_E_UNFENCED);
        assert_int_equal(send_request(client, HF_VERB_UPDATE, 0), 0);
        response(HF_E_CONFLICT); /* nothing was written, so nothing is reported */
        assert_int_equal(reply_error, HF_E_CONFLICT);
        assert_int_equal(n_stale, 1);
        hf__leader_client_release(client);
        client = make(true);
        inner.echo = false;
        assert_int_equal(send_request(client, HF_VERB_UPDATE, 0), 0);
        response(0);
        assert_int_equal(reply_error, 0);
        assert_int_equal(n_stale, 0);
        hf__leader_client_release(client);
}

/*
 * A dry run commits nothing, so the server compares no fence and echoes none. The client still
 * sends the fence and checks the gate.
 */
static void test_a_dry_run_needs_no_echo(void **state) {
        static const char *const queries[] = {"dryRun=All", "fieldManager=x&dryRun=All"};
        for (size_t i = 0; i < 2; i++) {
                struct hf_client *client = make(false);
                struct hf_request request = {.size = sizeof request,
                                             .verb = HF_VERB_UPDATE,
                                             .resource = {"", "v1", "configmaps"},
                                             .name = "x",
                                             .query = queries[i],
                                             .body = "{}",
                                             .n_body = 2};
                inner.echo = false;
                assert_int_equal(hf_client_request(client, &request, on_reply, NULL, NULL), 0);
                assert_non_null(inner.request.fence);
                response(0);
                assert_int_equal(reply_error, 0);
                assert_int_equal(n_stale, 0);
                request.query = "xdryRun=All";
                assert_int_equal(hf_client_request(client, &request, on_reply, NULL, NULL), 0);
                response(0);
                assert_int_equal(reply_error, HF_E_UNFENCED);
                hf__leader_client_abort(client);
                request.query = queries[i];
                assert_int_equal(hf_client_request(client, &request, on_reply, NULL, NULL), 0);
                assert_int_equal(reply_error, HF_E_NOT_LEADER);
                hf__leader_client_release(client);
        }
}

/* A delete may have dryRun in its options too. */
static void test_a_dry_run_of_a_delete_needs_no_echo(void **state) {
        static const struct {
                enum hf_verb verb;
                const char *body;
                int error;
        } rows[] = {
                {HF_VERB_DELETE, "{\"dryRun\":[\"All\"]}", 0},
                {HF_VERB_DELETE_COLLECTION, "{\"dryRun\":[\"All\"]}", 0},
                {HF_VERB_DELETE, "{\"dryRun\":[]}", HF_E_UNFENCED},
                {HF_VERB_DELETE, "{\"preconditions\":{\"dryRun\":[\"All\"]}}", HF_E_UNFENCED},
                {HF_VERB_CREATE, "{\"dryRun\":[\"All\"]}", HF_E_UNFENCED},
        };
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                struct hf_client *client = make(false);
                struct hf_request request = {.size = sizeof request,
                                             .verb = rows[i].verb,
                                             .resource = {"", "v1", "configmaps"},
                                             .name = "x",
                                             .body = rows[i].body,
                                             .n_body = strlen(rows[i].body)};
                inner.echo = false;
                assert_int_equal(hf_client_request(client, &request, on_reply, NULL, NULL), 0);
                response(0);
                assert_int_equal(reply_error, rows[i].error);
                hf__leader_client_release(client);
        }
}

/* Scenario of docs/parity.md: PN05. */
static void test_an_abort_cancels_requests_and_refuses_later_ones(void **state) {
        struct hf_client *client = make(false);
        struct hf_watch_spec spec = {.size = sizeof spec, .resource = {"", "v1", "configmaps"}};
        assert_int_equal(send_request(client, HF_VERB_UPDATE, 0), 0);
        hf__leader_client_abort(client);
        hf__leader_client_abort(client);
        assert_int_equal(inner.n_cancels, 1);
        response(HF_E_CANCELED);
        assert_int_equal(reply_error, HF_E_CANCELED);
        assert_int_equal(send_request(client, HF_VERB_CREATE, 0), 0);
        assert_int_equal(reply_error, HF_E_NOT_LEADER);
        assert_int_equal(send_request(client, HF_VERB_LIST, 0), 0);
        assert_int_equal(reply_error, HF_E_CANCELED);
        assert_int_equal(hf_client_watch(client, &spec, on_event, on_end, NULL, NULL), HF_E_CLOSED);
        assert_int_equal(inner.n_calls, 1);
        assert_int_equal(inner.n_watches, 0);
        hf_client_cancel(client, 0); /* the id of a refused request */
        assert_int_equal(inner.n_cancels, 1);
        hf__leader_client_release(client);
}

/* An unknown outcome counts from the end of the write, at most from its deadline. */
static void test_writes_of_unknown_outcome_are_in_doubt(void **state) {
        static const struct {
                int error;
                bool not_sent;
                hf_nsec doubt_at;
        } rows[] = {
                {0, false, 0},
                {HF_E_CONFLICT, false, 0},
                {HF_E_UNAVAILABLE, false, 0},
                {HF_E_TOO_MANY, false, 0},
                {HF_E_TIMEOUT, true, 0},
                {HF_E_CANCELED, true, 0},
                {HF_E_CANCELED, false, 1100},
                {HF_E_TIMEOUT, false, 1100},
                {-5, false, 1100},
        };
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                struct hf_client *client = make(true);
                inner.echo = false;
                inner.not_sent = rows[i].not_sent;
                assert_int_equal(hf__leader_client_doubt_at(client), 0);
                assert_int_equal(send_request(client, HF_VERB_UPDATE, 0), 0);
                assert_true(hf__leader_client_doubt_at(client) == HF_NSEC_NEVER);
                now = 1100;
                response(rows[i].error);
                assert_int_equal(hf__leader_client_doubt_at(client), rows[i].doubt_at);
                /* a later success says nothing about an earlier write */
                assert_int_equal(send_request(client, HF_VERB_UPDATE, 0), 0);
                response(0);
                assert_int_equal(hf__leader_client_doubt_at(client), rows[i].doubt_at);
                hf__leader_client_release(client);
        }
        struct hf_client *client = make(true);
        inner.echo = false;
        assert_int_equal(send_request(client, HF_VERB_DELETE, 1500), 0);
        now = 5000;
        response(HF_E_TIMEOUT);
        assert_int_equal(hf__leader_client_doubt_at(client), 1500);
        hf__leader_client_release(client);
}

static void test_reads_dry_runs_and_fenced_writes_are_not_in_doubt(void **state) {
        struct hf_client *client = make(true);
        struct hf_request dry = {.size = sizeof dry,
                                 .verb = HF_VERB_UPDATE,
                                 .resource = {"", "v1", "configmaps"},
                                 .name = "x",
                                 .query = "dryRun=All",
                                 .body = "{}",
                                 .n_body = 2};
        inner.echo = false;
        assert_int_equal(send_request(client, HF_VERB_GET, 0), 0);
        assert_int_equal(hf__leader_client_doubt_at(client), 0);
        response(HF_E_TIMEOUT);
        assert_int_equal(hf_client_request(client, &dry, on_reply, NULL, NULL), 0);
        assert_int_equal(hf__leader_client_doubt_at(client), 0);
        response(HF_E_TIMEOUT);
        assert_int_equal(hf__leader_client_doubt_at(client), 0);
        /* The server turns out to compare fences: it will refuse the write in doubt. */
        assert_int_equal(send_request(client, HF_VERB_UPDATE, 0), 0);
        response(HF_E_TIMEOUT);
        assert_int_equal(hf__leader_client_doubt_at(client), 1000);
        assert_false(hf__leader_client_is_fenced(client));
        inner.echo = true;
        assert_int_equal(send_request(client, HF_VERB_UPDATE, 0), 0);
        response(HF_E_CONFLICT);
        assert_true(hf__leader_client_is_fenced(client));
        assert_int_equal(hf__leader_client_doubt_at(client), 0);
        hf__leader_client_release(client);
}

static void test_the_end_refuses_new_writes_and_reports_the_last_response(void **state) {
        struct hf_client *client = make(true);
        inner.echo = false;
        assert_int_equal(send_request(client, HF_VERB_UPDATE, 0), 0);
        hf__leader_client_end(client);
        assert_int_equal(inner.n_cancels, 0);
        assert_int_equal(send_request(client, HF_VERB_UPDATE, 0), 0);
        assert_int_equal(reply_error, HF_E_NOT_LEADER);
        assert_int_equal(send_request(client, HF_VERB_GET, 0), 0);
        assert_int_equal(reply_error, HF_E_CANCELED);
        assert_int_equal(inner.n_calls, 1);
        assert_int_equal(n_settled, 0);
        assert_true(hf__leader_client_doubt_at(client) == HF_NSEC_NEVER);
        response(HF_E_STALE_TERM); /* the term is over, so this is not reported */
        assert_int_equal(n_settled, 1);
        assert_int_equal(n_stale, 0);
        assert_int_equal(hf__leader_client_doubt_at(client), 0);
        hf__leader_client_release(client);
}

static void test_a_response_after_the_release_is_harmless(void **state) {
        struct hf_client *client = make(false);
        assert_int_equal(send_request(client, HF_VERB_UPDATE, 0), 0);
        hf__leader_client_release(client);
        assert_int_equal(n_replies, 0);
        response(HF_E_STALE_TERM);
        assert_int_equal(n_replies, 1); /* every caller gets a reply, exactly once */
        assert_int_equal(n_stale,
                         0); /* nothing is reported to the elector for a term that has ended */
}

static void test_a_response_before_the_call_returns_counts_once(void **state) {
        struct hf_client *client = make(false);
        inner.respond_at_once = 1;
        assert_int_equal(send_request(client, HF_VERB_UPDATE, 0), 0);
        assert_int_equal(n_replies, 1);
        hf__leader_client_abort(client);
        assert_int_equal(inner.n_cancels, 0);
        hf__leader_client_release(client);
}

static void test_a_request_that_cannot_start_gets_no_response(void **state) {
        struct hf_client *client = make(false);
        inner.fail = HF_E_CLOSED;
        assert_int_equal(send_request(client, HF_VERB_UPDATE, 0), HF_E_CLOSED);
        assert_int_equal(n_replies, 0);
        hf__leader_client_release(client);
}

/* The client ends while a write is on its way to the inner client, which then fails. */
static void test_a_write_that_cannot_start_settles(void **state) {
        struct hf_client *client = make(true);
        inner.fail = HF_E_CLOSED;
        inner.ended_before = client;
        assert_int_equal(send_request(client, HF_VERB_UPDATE, 0), HF_E_CLOSED);
        assert_int_equal(n_replies, 0);
        assert_int_equal(n_settled, 1);
        assert_int_equal(hf__leader_client_doubt_at(client), 0);
        hf__leader_client_release(client);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_write_carries_the_fence_and_ends_with_validity),
                cmocka_unit_test(test_the_gate_is_checked_for_each_write),
                cmocka_unit_test(test_with_the_gate_off_only_the_fence_remains),
                cmocka_unit_test(test_a_stale_term_is_reported),
                cmocka_unit_test(test_a_missing_echo_ends_the_term_unless_accepted),
                cmocka_unit_test(test_a_dry_run_needs_no_echo),
                cmocka_unit_test(test_a_dry_run_of_a_delete_needs_no_echo),
                cmocka_unit_test(test_an_abort_cancels_requests_and_refuses_later_ones),
                cmocka_unit_test(test_writes_of_unknown_outcome_are_in_doubt),
                cmocka_unit_test(test_reads_dry_runs_and_fenced_writes_are_not_in_doubt),
                cmocka_unit_test(test_the_end_refuses_new_writes_and_reports_the_last_response),
                cmocka_unit_test(test_a_response_after_the_release_is_harmless),
                cmocka_unit_test(test_a_response_before_the_call_returns_counts_once),
                cmocka_unit_test(test_a_request_that_cannot_start_gets_no_response),
                cmocka_unit_test(test_a_write_that_cannot_start_settles),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
