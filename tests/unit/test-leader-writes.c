/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes that outlive the controllers of a term. The client of the test passes everything to a fake
 * API server, except that it can keep a controller's write: the server has it, and has not applied
 * it. The test notes whether the Lease is released meanwhile.
 */
#undef NDEBUG
#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread.h"
#include "fake_api_client.h"
#include "patience.h"

#include <holdfast/leader.h>

#define LEASE_KEY "leases/kube-system/lead"

static struct {
        struct hf_client base; /* first */
        struct fake_api *api;
        struct fake_api_client *server;
        struct hf_electors *electors;
        struct hf_elector *elector;
        int (*run)(struct hf_term *term);

        pthread_mutex_t mu;
        pthread_cond_t changed;
        /* guarded by mu */
        bool keeps;          /* the next write of a controller is kept */
        hf_response_fn done; /* of the kept write; NULL = its caller has got a response */
        void *ctx;
        bool is_on_its_way;  /* the server has the kept write */
        hf_nsec ended_at;    /* when its caller got a response; 0 = not yet */
        hf_nsec released_at; /* when the last release was sent; 0 = never */
        bool released_early; /* a release was sent while the write was unanswered */
        bool has_returned;   /* the controller */
        int stop_result;
} f;

static hf_nsec now(void) { return hf_now(hf_clock_system()); }

/* ---- the client ---- */

static bool is_write(const struct hf_request *request) {
        return request->verb != HF_VERB_GET && request->verb != HF_VERB_LIST;
}

static bool is_release(const struct hf_request *request) {
        return strcmp(request->resource.plural, "leases") == 0 && is_write(request) &&
               !memmem(request->body, request->n_body, "\"holderIdentity\":\"me\"", 21);
}

static int on_request(struct hf_client *self, const struct hf_request *request, hf_response_fn done,
                      void *ctx, uint64_t *ret_id) {
        pthread_mutex_lock(&f.mu);
        if (is_release(request)) {
                f.released_at = now();
                f.released_early |= f.is_on_its_way && f.ended_at == 0;
        }
        bool keep = f.keeps && is_write(request) && strcmp(request->resource.plural, "leases") != 0;
        if (keep) {
                f.keeps = false;
                f.is_on_its_way = true;
                f.done = done;
                f.ctx = ctx;
                *ret_id = UINT64_MAX;
                pthread_cond_broadcast(&f.changed);
        }
        pthread_mutex_unlock(&f.mu);
        return keep ? 0 : hf_client_request(&f.server->base, request, done, ctx, ret_id);
}

/* Responds to the kept write, unless its caller has a response already. */
static void respond(int error) {
        struct hf_response response = {.size = sizeof response, .error = error};

        pthread_mutex_lock(&f.mu);
        hf_response_fn done = f.done;
        f.done = NULL;
        if (done) {
                f.ended_at = now();
                f.is_on_its_way = error != 0;
        }
        pthread_mutex_unlock(&f.mu);
        if (done)
                done(f.ctx, &response);
}

static void on_cancel(struct hf_client *self, uint64_t id) {
        if (id == UINT64_MAX)
                respond(HF_E_CANCELED);
        else
                hf_client_cancel(&f.server->base, id);
}
static int on_watch(struct hf_client *self, const struct hf_watch_spec *spec, hf_event_fn on_event,
                    hf_watch_end_fn on_end, void *ctx, uint64_t *ret_id) {
        return hf_client_watch(&f.server->base, spec, on_event, on_end, ctx, ret_id);
}
static void on_watch_cancel(struct hf_client *self, uint64_t id) {
        hf_client_watch_cancel(&f.server->base, id);
}
static void on_free(struct hf_client *self) {}

/* ---- the controller ---- */

static void make_thing(struct hf_request *request, const char *name) {
        *request = (struct hf_request){.size = sizeof(struct hf_request),
                                       .verb = HF_VERB_CREATE,
                                       .resource = {"", "v1", "things"},
                                       .ns = "default",
                                       .name = name,
                                       .body = "{\"metadata\":{\"name\":\"x\"}}",
                                       .n_body = 25};
}

static void ignore(void *ctx, const struct hf_response *response) {}

/* Begins a write, and returns at the drain without its response. */
static int leave_a_write(struct hf_term *term) {
        struct hf_request request;

        make_thing(&request, "x");
        assert(hf_client_request(hf_term_client(term), &request, ignore, NULL, NULL) == 0);
        (void)hf_cancel_wait(hf_term_drain(term), HF_NSEC_NEVER);
        return 0;
}

/* Waits for the response until the drain, which cancels the write. */
static int cancel_a_write(struct hf_term *term) {
        struct hf_request request;
        struct hf_status status;

        make_thing(&request, "x");
        assert(hf_client_do(hf_term_client(term), &request, hf_term_drain(term), NULL, NULL,
                            &status) == HF_E_CANCELED);
        return 0;
}

/* The same after a write that the server has confirmed, with its fence. */
static int cancel_a_second_write(struct hf_term *term) {
        struct hf_request request;
        struct hf_status status;

        pthread_mutex_lock(&f.mu);
        f.keeps = false;
        pthread_mutex_unlock(&f.mu);
        make_thing(&request, "first");
        request.body = "{\"metadata\":{\"name\":\"first\"}}";
        request.n_body = 29;
        assert(hf_client_do(hf_term_client(term), &request, hf_term_drain(term), NULL, NULL,
                            &status) == 0);
        pthread_mutex_lock(&f.mu);
        f.keeps = true;
        pthread_mutex_unlock(&f.mu);
        return cancel_a_write(term);
}

static int run(struct hf_term *term, void *ctx) {
        int r = f.run(term);

        pthread_mutex_lock(&f.mu);
        f.has_returned = true;
        pthread_cond_broadcast(&f.changed);
        pthread_mutex_unlock(&f.mu);
        return r;
}

/* ---- the test ---- */

static void start(int (*run_term)(struct hf_term *term), bool unfenced,
                  const struct hf_leader_timing *timing) {
        static const struct hf_client_ops ops = {sizeof ops, on_request,      on_cancel,
                                                 on_watch,   on_watch_cancel, on_free};
        const struct hf_controller controller = {.size = sizeof controller,
                                                 .name = "c",
                                                 .runs = HF_LEADER_ONLY,
                                                 .run = run};

        memset(&f, 0, sizeof f);
        f.api = fake_api_new();
        f.server = fake_api_client_new(f.api);
        f.server->ignores_fences = unfenced;
        f.base = (struct hf_client){&ops, &f.api->host};
        f.run = run_term;
        f.keeps = true;
        assert_int_equal(hf__mutex_cond_init(&f.mu, &f.changed), 0);
        const struct hf_elector_config config = {.size = sizeof config,
                                                 .ns = "kube-system",
                                                 .name = "lead",
                                                 .identity = "me",
                                                 .client = &f.base,
                                                 .timing = *timing,
                                                 .controllers = &controller,
                                                 .n_controllers = 1,
                                                 .unfenced = unfenced};
        assert_int_equal(hf_electors_new(&f.api->host, &f.electors), 0);
        assert_int_equal(hf_electors_add(f.electors, &config, &f.elector, NULL), 0);
        assert_int_equal(hf_electors_start(f.electors, NULL), 0);
        pthread_mutex_lock(&f.mu);
        PATIENCE_AWAIT_LOCKED(&f.changed, &f.mu, f.is_on_its_way);
        pthread_mutex_unlock(&f.mu);
}

static void finish(void) {
        f.electors = hf_electors_free(f.electors);
        respond(0);
        hf_client_free(&f.server->base);
        fake_api_free(f.api);
        pthread_cond_destroy(&f.changed);
        pthread_mutex_destroy(&f.mu);
}

static void *stop(void *ctx) {
        f.stop_result = hf_electors_stop(f.electors, NULL);
        return NULL;
}

static bool lease_names_me(void) {
        char *text = fake_api_get(f.api, LEASE_KEY);
        bool names_me = text && strstr(text, "\"holderIdentity\":\"me\"");

        free(text);
        return names_me;
}

/* If a holder did not release, its last write would have 10 s until the Lease expires. A release
 * may wait for the write for 60 s. */
static const struct hf_leader_timing patient = {.lease_duration = 100 * SEC,
                                                .renew_deadline = 90 * SEC,
                                                .retry_period = 20 * MSEC,
                                                .request_timeout = 30 * SEC,
                                                .stop_grace = SEC,
                                                .drain_deadline = 60 * SEC};

static void test_the_lease_is_released_after_the_last_response(void **state) {
        pthread_t thread;

        start(leave_a_write, true, &patient);
        assert_int_equal(pthread_create(&thread, NULL, stop, NULL), 0);
        pthread_mutex_lock(&f.mu);
        PATIENCE_AWAIT_LOCKED(&f.changed, &f.mu, f.has_returned);
        pthread_mutex_unlock(&f.mu);
        struct hf_leader_info info = {.size = sizeof info};
        do { /* the loop joins the controller */
                (void)hf_cancel_wait(hf_cancel_never(), in_msec(1));
                hf_elector_info(f.elector, &info);
        } while (info.state == HF_DRAINING);
        (void)hf_cancel_wait(hf_cancel_never(), in_msec(50)); /* a release would be sent now */
        assert_true(lease_names_me());
        respond(0);
        pthread_join(thread, NULL);
        assert_int_equal(f.stop_result, 0);
        assert_false(f.released_early);
        assert_false(lease_names_me());
        finish();
}

/* If a holder did not release, its last write would have less than 1 s until the Lease expires. */
static const struct hf_leader_timing quick = {.lease_duration = 4 * SEC,
                                              .renew_deadline = 3 * SEC,
                                              .retry_period = 20 * MSEC,
                                              .request_timeout = 2 * SEC,
                                              .stop_grace = 100 * MSEC};

static void test_a_canceled_write_gets_the_time_that_an_expiry_would_leave(void **state) {
        start(cancel_a_write, true, &quick);
        assert_int_equal(hf_electors_stop(f.electors, NULL), 0);
        assert_true(f.ended_at > 0);
        assert_true(f.released_at >= f.ended_at + SEC);
        assert_false(lease_names_me());
        finish();
}

/* Unfenced, the release would have to wait for longer than it may, and would not happen. */
static const struct hf_leader_timing hasty = {.lease_duration = 100 * SEC,
                                              .renew_deadline = 10 * SEC,
                                              .retry_period = 20 * MSEC,
                                              .request_timeout = 500 * MSEC,
                                              .stop_grace = SEC};

static void test_a_lease_is_left_to_expire_when_a_write_may_still_come(void **state) {
        struct hf_status status = {0};

        start(cancel_a_write, true, &hasty);
        assert_int_equal(hf_electors_stop(f.electors, &status), HF_E_TIMEOUT);
        assert_int_equal(f.released_at, 0);
        assert_true(lease_names_me());
        finish();
}

static void test_a_server_with_fences_is_not_waited_for(void **state) {
        start(cancel_a_second_write, false, &hasty);
        assert_int_equal(hf_electors_stop(f.electors, NULL), 0);
        assert_true(f.released_at >= f.ended_at);
        assert_false(lease_names_me());
        finish();
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_lease_is_released_after_the_last_response),
                cmocka_unit_test(test_a_canceled_write_gets_the_time_that_an_expiry_would_leave),
                cmocka_unit_test(test_a_lease_is_left_to_expire_when_a_write_may_still_come),
                cmocka_unit_test(test_a_server_with_fences_is_not_waited_for),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
