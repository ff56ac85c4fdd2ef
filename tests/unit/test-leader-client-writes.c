/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gated and fenced client of a term (leader/leader_client.h) with several writes under way.
 * After the end of the term the client reports `settled` when the last write has got its response.
 * Until then doubt_at says how long a write may still take effect.
 */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/process_mark.h"
#include "held_client.h"
#include "leader/leader_client.h"

static hf_nsec now;
static hf_nsec read_now(void *ctx) { return now; }
static const struct hf_clock fake_clock = {.size = sizeof fake_clock,
                                           .boot = read_now,
                                           .monotonic = read_now,
                                           .real = read_now};
static const struct hf_host host = {.size = sizeof host, .clock = &fake_clock};

/* The client under test, and what it has reported. */
static struct {
        struct hf__gate gate;
        struct hf_client *client;
        unsigned n_settled, n_stale, n_replies;
        struct hf_response reply;
} f;

static void on_stale(void *ctx, int error) { f.n_stale++; }
static void on_settled(void *ctx) { f.n_settled++; }
static void on_reply(void *ctx, const struct hf_response *reply) {
        f.n_replies++;
        f.reply = *reply;
}

static void make(bool is_fenced) {
        const struct hf__leader_client_config config =
                {.inner = &held.base,
                 .gate = &f.gate,
                 .fence = {.ns = "kube-system", .name = "lead", .term = 17, .identity = "me"},
                 .unfenced = true,
                 .is_fenced = is_fenced,
                 .stale = on_stale,
                 .settled = on_settled};

        memset(&f, 0, sizeof f);
        held_client_init(&host);
        now = 1000;
        assert_int_equal(hf__process_mark_init(), 0);
        hf__gate_open(&f.gate, 2000);
        assert_int_equal(hf__leader_client_new(&host, &config, &f.client), 0);
}

static int request(enum hf_verb verb, uint64_t *ret_id) {
        const struct hf_request request = {.size = sizeof request,
                                           .verb = verb,
                                           .resource = {"", "v1", "configmaps"},
                                           .ns = "n",
                                           .name = "x",
                                           .body = "{}",
                                           .n_body = 2};

        return hf_client_request(f.client, &request, on_reply, NULL, ret_id);
}

static const unsigned orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

static void test_the_last_of_several_responses_settles(void **state) {
        for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
                make(false);
                for (unsigned k = 0; k < 3; k++)
                        assert_int_equal(request(HF_VERB_UPDATE, NULL), 0);
                hf__leader_client_end(f.client);
                for (unsigned k = 0; k < 3; k++) {
                        assert_true(hf__leader_client_doubt_at(f.client) == HF_NSEC_NEVER);
                        assert_int_equal(f.n_settled, 0);
                        held_respond(orders[i][k], 0, NULL, NULL);
                }
                assert_int_equal(f.n_settled, 1);
                assert_int_equal(hf__leader_client_doubt_at(f.client), 0);
                hf__leader_client_release(f.client);
        }
}

/* Before the end of the term no response settles anything: the controllers may write again. */
static void test_nothing_settles_before_the_end(void **state) {
        make(false);
        assert_int_equal(request(HF_VERB_UPDATE, NULL), 0);
        held_respond(0, 0, NULL, NULL);
        assert_int_equal(f.n_settled, 0);
        assert_int_equal(request(HF_VERB_UPDATE, NULL), 0);
        hf__leader_client_end(f.client);
        hf__leader_client_release(f.client);
        held_respond(1, 0, NULL, NULL);
        assert_int_equal(f.n_settled,
                         0); /* the Lease is released already: the report is not needed */
}

static void test_each_write_under_way_is_canceled_once(void **state) {
        for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
                make(false);
                for (unsigned k = 0; k < 3; k++)
                        assert_int_equal(request(HF_VERB_UPDATE, NULL), 0);
                held_respond(orders[i][0], 0, NULL, NULL);
                hf__leader_client_abort(f.client);
                hf__leader_client_release(f.client);
                for (unsigned k = 0; k < 3; k++)
                        assert_int_equal(held.requests[orders[i][k]].n_cancels, k > 0);
                held_respond(orders[i][1], HF_E_CANCELED, NULL, NULL);
                held_respond(orders[i][2], HF_E_CANCELED, NULL, NULL);
                assert_int_equal(f.n_replies, 3);
        }
}

static void test_the_release_cancels_what_is_under_way(void **state) {
        make(false);
        assert_int_equal(request(HF_VERB_UPDATE, NULL), 0);
        hf__leader_client_release(f.client);
        assert_int_equal(held.requests[0].n_cancels, 1);
        held_respond(0, HF_E_CANCELED, NULL, NULL);
}

static void abort_now(void) { hf__leader_client_abort(f.client); }

/* The abort finds a write whose id is not known yet. */
static void test_a_write_that_is_being_sent_is_canceled(void **state) {
        uint64_t id = 0;

        make(false);
        held.during = abort_now;
        assert_int_equal(request(HF_VERB_UPDATE, &id), 0);
        assert_int_equal(id, HELD_ID);
        assert_int_equal(held.requests[0].n_cancels, 1);
        held_respond(0, HF_E_CANCELED, NULL, NULL);
        hf__leader_client_release(f.client);
}

static void assert_refused(enum hf_verb verb, int error, const char *message) {
        uint64_t id = 99;
        unsigned n = f.n_replies;

        assert_int_equal(request(verb, &id), 0);
        assert_int_equal(id, 0);
        assert_int_equal(request(verb, NULL), 0);
        assert_int_equal(f.n_replies, n + 2);
        assert_int_equal(f.reply.error, error);
        assert_int_equal(f.reply.status.error, error);
        assert_string_equal(f.reply.status.message, message);
        assert_int_equal(held.n_requests, 0);
}

static void test_a_refusal_says_why(void **state) {
        make(false);
        now = 2000;
        assert_refused(HF_VERB_UPDATE, HF_E_NOT_LEADER, "this process does not lead now");
        hf__leader_client_abort(f.client);
        assert_refused(HF_VERB_UPDATE, HF_E_NOT_LEADER, "the term is over");
        assert_refused(HF_VERB_GET, HF_E_CANCELED, "the term is over");
        hf__leader_client_release(f.client);
}

static void on_event(void *ctx, const struct hf_event *event) {}
static void on_end(void *ctx, int error, const struct hf_status *status) {}

static void test_a_watch_is_canceled_by_its_id(void **state) {
        const struct hf_watch_spec spec = {.size = sizeof spec,
                                           .resource = {"", "v1", "configmaps"}};
        uint64_t ids[2];

        make(false);
        for (int i = 0; i < 2; i++)
                assert_int_equal(hf_client_watch(f.client, &spec, on_event, on_end, NULL, &ids[i]),
                                 0);
        hf_client_watch_cancel(f.client, ids[1]);
        assert_int_equal(held.watches[0].n_cancels, 0);
        assert_int_equal(held.watches[1].n_cancels, 1);
        hf__leader_client_release(f.client);
}

/* An earlier term has seen that the server compares fences. */
static void test_a_server_with_fences_leaves_no_doubt(void **state) {
        make(true);
        assert_int_equal(request(HF_VERB_UPDATE, NULL), 0);
        assert_int_equal(hf__leader_client_doubt_at(f.client), 0);
        held_respond(0, HF_E_TIMEOUT, NULL, NULL);
        assert_int_equal(hf__leader_client_doubt_at(f.client), 0);
        assert_true(hf__leader_client_is_fenced(f.client));
        hf__leader_client_release(f.client);
}

/* A response without a size cannot be read. The write may have been applied. */
static void test_a_response_that_cannot_be_read_leaves_a_doubt(void **state) {
        const struct hf_response wrong = {.error = 0};

        make(false);
        assert_int_equal(request(HF_VERB_CREATE, NULL), 0);
        held.requests[0].is_open = false;
        held.requests[0].done(held.requests[0].ctx, &wrong);
        assert_int_equal(f.n_replies, 1);
        assert_int_equal(f.reply.error, -EINVAL);
        assert_non_null(strstr(f.reply.status.message, "the member size of struct hf_response"));
        hf__leader_client_end(f.client);
        assert_int_equal(hf__leader_client_doubt_at(f.client), now);
        hf__leader_client_release(f.client);
}

/* ---- many writes ---- */

#define N_MANY 20000

/* Another inner client: it keeps more writes than held_client does. */
static struct {
        struct hf_client base;
        hf_response_fn done;
        void *writes[N_MANY];
        size_t n, n_canceled;
} many;

static int many_request(struct hf_client *self, const struct hf_request *request,
                        hf_response_fn done, void *ctx, uint64_t *ret_id) {
        assert_true(many.n < N_MANY);
        many.done = done;
        many.writes[many.n++] = ctx;
        *ret_id = many.n;
        return 0;
}
static void many_cancel(struct hf_client *self, uint64_t id) { many.n_canceled++; }

static double cpu_now(void) {
        struct timespec t;

        assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t), 0);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* An abort must not search for each write among all of them. It is compared with the work of making
 * the writes, so that no machine is too slow for this. */
static void test_an_abort_costs_as_little_as_its_writes(void **state) {
        static const struct hf_client_ops ops = {.size = sizeof ops,
                                                 .request = many_request,
                                                 .cancel = many_cancel};
        const struct hf_response reply = {.size = sizeof reply, .error = HF_E_CANCELED};
        const struct hf__leader_client_config config = {.inner = &many.base,
                                                        .gate = &f.gate,
                                                        .fence = {.term = 17},
                                                        .settled = on_settled};

        make(false);
        hf__leader_client_release(f.client);
        many.base = (struct hf_client){.ops = &ops, .host = &host};
        assert_int_equal(hf__leader_client_new(&host, &config, &f.client), 0);
        double began = cpu_now();
        for (size_t i = 0; i < N_MANY; i++)
                assert_int_equal(request(HF_VERB_UPDATE, NULL), 0);
        double made = cpu_now();
        hf__leader_client_abort(f.client);
        double aborted = cpu_now();
        assert_int_equal(many.n_canceled, N_MANY);
        if (aborted - made > 10 * (made - began))
                fail_msg("%d writes: made in %.4f s, aborted in %.4f s", N_MANY, made - began,
                         aborted - made);
        hf__leader_client_end(f.client);
        for (size_t i = 0; i < N_MANY; i++) {
                assert_int_equal(f.n_settled, 0);
                many.done(many.writes[i], &reply);
        }
        assert_int_equal(f.n_settled, 1);
        hf__leader_client_release(f.client);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_response_that_cannot_be_read_leaves_a_doubt),
                cmocka_unit_test(test_the_last_of_several_responses_settles),
                cmocka_unit_test(test_nothing_settles_before_the_end),
                cmocka_unit_test(test_each_write_under_way_is_canceled_once),
                cmocka_unit_test(test_the_release_cancels_what_is_under_way),
                cmocka_unit_test(test_an_abort_costs_as_little_as_its_writes),
                cmocka_unit_test(test_a_write_that_is_being_sent_is_canceled),
                cmocka_unit_test(test_a_refusal_says_why),
                cmocka_unit_test(test_a_watch_is_canceled_by_its_id),
                cmocka_unit_test(test_a_server_with_fences_leaves_no_doubt),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
