/* SPDX-License-Identifier: Apache-2.0 */
/* A host whose callbacks all run in its own event loop, and whose stop blocks nothing. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_api_client.h"

#include <holdfast/health.h>
#include <holdfast/loop_controller.h>

#define GUARD (60 * HF_NSEC_PER_SEC)

/* The members belong to the loop's thread, which is the thread of the test. */
struct guest {
        struct hf_host host;
        struct fake_api *api;
        struct fake_api_client *client;
        struct hf_loop *loop;
        struct hf_electors *electors;
        struct hf_elector *elector;
        pthread_t thread;
        struct hf_client *term_client;
        struct hf_client *retries_with; /* after each failed write; NULL = none */
        struct hf_loop_run *run;
        int n_begun, n_drained, n_aborted, n_written, n_events, n_changes;
        enum hf_leader_state state;
        bool ends_on_abort, watch_ended, stopped, posted;
        int stop_result, watch_error, last_error;
};

static void assert_thread(const struct guest *g) {
        assert_true(pthread_equal(g->thread, pthread_self()));
}

/* Runs the host's loop until the condition holds. */
#define RUN_UNTIL(g, condition)                                                                    \
        do {                                                                                       \
                hf_nsec until_ = hf_now(hf_clock_system()) + GUARD;                                \
                while (!(condition)) {                                                             \
                        struct pollfd fd_ = {.fd = hf_loop_fd((g)->loop), .events = POLLIN};       \
                        assert_true(hf_now(hf_clock_system()) < until_);                           \
                        (void)poll(&fd_, 1, 1000);                                                 \
                        (void)hf_loop_dispatch((g)->loop);                                         \
                }                                                                                  \
        } while (false)

static void on_change(void *ctx, const struct hf_leader_info *info) {
        struct guest *g = ctx;

        assert_thread(g);
        g->state = info->state;
        g->n_changes++;
}

static int write_object(struct guest *g, struct hf_client *client);

static void on_written(void *ctx, const struct hf_response *response) {
        struct guest *g = ctx;

        assert_thread(g);
        g->last_error = response->error;
        g->n_written++;
        if (response->error != 0 && g->retries_with)
                assert_int_equal(write_object(g, g->retries_with), HF_E_CLOSED);
}

static int write_object(struct guest *g, struct hf_client *client) {
        const char *body = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":"
                           "\"written\"}}";
        const struct hf_request request = {.size = sizeof request,
                                           .verb = HF_VERB_CREATE,
                                           .resource = {"", "v1", "configmaps"},
                                           .ns = "default",
                                           .body = body,
                                           .n_body = strlen(body)};

        return hf_client_request(client, &request, on_written, g, NULL);
}

static void begin(void *ctx, struct hf_loop_run *run) {
        struct guest *g = ctx;

        assert_thread(g);
        assert_null(g->run); /* the last run has ended */
        g->run = run;
        g->n_begun++;
        assert_int_equal(hf_loop_client_new(g->loop, hf_term_client(hf_loop_run_term(run)),
                                            &g->term_client),
                         0);
        assert_int_equal(write_object(g, g->term_client), 0);
}

static void end_run(struct guest *g) {
        struct hf_loop_run *run = g->run;

        g->term_client = hf_client_free(g->term_client);
        g->run = NULL;
        hf_loop_run_done(run, 0);
}

static void drain(void *ctx, struct hf_loop_run *run) {
        struct guest *g = ctx;

        assert_thread(g);
        g->n_drained++;
        if (!g->ends_on_abort)
                end_run(g);
}

static void abort_run(void *ctx, struct hf_loop_run *run) {
        struct guest *g = ctx;

        assert_thread(g);
        g->n_aborted++;
        end_run(g);
}

static struct guest *guest_new(hf_nsec drain_deadline) {
        struct guest *g = calloc(1, sizeof *g);
        struct hf_status status = {0};

        assert_non_null(g);
        g->thread = pthread_self();
        g->host = (struct hf_host){.size = sizeof g->host};
        g->api = fake_api_new();
        g->client = fake_api_client_new(g->api);
        assert_int_equal(hf_loop_new(&g->loop), 0);
        struct hf_loop_controller in_loop = {.size = sizeof in_loop,
                                             .loop = g->loop,
                                             .begin = begin,
                                             .drain = drain,
                                             .abort = abort_run,
                                             .ctx = g};
        static struct hf_loop_controller kept;
        kept = in_loop;
        const struct hf_controller controller = {.size = sizeof controller,
                                                 .name = "in-loop",
                                                 .run = hf_loop_controller_run,
                                                 .ctx = &kept};
        const struct hf_elector_config config = {.size = sizeof config,
                                                 .ns = "default",
                                                 .name = "lead",
                                                 .identity = "me",
                                                 .client = &g->client->base,
                                                 .timing = {.lease_duration = 2 * HF_NSEC_PER_SEC,
                                                            .renew_deadline = 1 * HF_NSEC_PER_SEC,
                                                            .retry_period = 200 * HF_NSEC_PER_MSEC,
                                                            .request_timeout =
                                                                    300 * HF_NSEC_PER_MSEC,
                                                            .drain_deadline = drain_deadline},
                                                 .controllers = &controller,
                                                 .n_controllers = 1,
                                                 .on_change = on_change,
                                                 .ctx = g,
                                                 .loop = g->loop};
        assert_int_equal(hf_electors_new(&g->host, &g->electors), 0);
        if (hf_electors_add(g->electors, &config, &g->elector, &status) != 0)
                fail_msg("%s", status.message);
        assert_int_equal(hf_electors_start(g->electors, &status), 0);
        return g;
}

static void on_stopped(void *ctx, int result, const struct hf_status *status) {
        struct guest *g = ctx;

        assert_thread(g);
        g->stopped = true;
        g->stop_result = result;
}

static void stop(struct guest *g) {
        assert_int_equal(hf_electors_stop_poll(g->electors, NULL), -EINVAL);
        assert_int_equal(hf_electors_stop_begin(g->electors, g->loop, on_stopped, g), 0);
        assert_int_equal(hf_electors_stop_begin(g->electors, g->loop, on_stopped, g), HF_E_CLOSED);
        /* the controller cannot end before the loop dispatches its drain */
        assert_int_equal(hf_electors_stop_poll(g->electors, NULL), HF_E_BUSY);
        RUN_UNTIL(g, g->stopped);
        assert_int_equal(g->stop_result, 0);
        struct hf_status status = {.error = 7, .message = "untouched"};
        assert_int_equal(hf_electors_stop_poll(g->electors, &status), 0);
        assert_string_equal(status.message, "untouched");
}

static void guest_free(struct guest *g) {
        g->electors = hf_electors_free(g->electors);
        (void)hf_client_free(&g->client->base);
        g->loop = hf_loop_free(g->loop);
        fake_api_free(g->api);
        free(g);
}

static void test_a_leader_runs_and_stops_in_the_hosts_loop(void **state) {
        struct guest *g = guest_new(0);

        RUN_UNTIL(g, g->n_written > 0 && g->state == HF_LEADING);
        assert_int_equal(g->last_error, 0);
        stop(g);
        assert_int_equal(g->n_begun, 1);
        assert_int_equal(g->n_drained, 1);
        assert_int_equal(g->n_aborted, 0);
        assert_null(g->run);
        RUN_UNTIL(g, g->state == HF_STOPPED);
        guest_free(g);
}

/* Nothing of the loop's controller is called before its configuration was checked. */
static void test_a_controller_of_the_loop_needs_all_its_functions(void **state) {
        struct hf_loop *loop = NULL;

        assert_int_equal(hf_loop_new(&loop), 0);
        const struct hf_loop_controller whole = {.size = sizeof whole,
                                                 .loop = loop,
                                                 .begin = begin,
                                                 .drain = drain,
                                                 .abort = abort_run};
        struct hf_loop_controller wrong = whole;
        wrong.size = 0;
        assert_int_equal(hf_loop_controller_run(NULL, &wrong), -EINVAL);
        wrong = whole;
        wrong.loop = NULL;
        assert_int_equal(hf_loop_controller_run(NULL, &wrong), -EINVAL);
        wrong = whole;
        wrong.begin = NULL;
        assert_int_equal(hf_loop_controller_run(NULL, &wrong), -EINVAL);
        wrong = whole;
        wrong.drain = NULL;
        assert_int_equal(hf_loop_controller_run(NULL, &wrong), -EINVAL);
        wrong = whole;
        wrong.abort = NULL;
        assert_int_equal(hf_loop_controller_run(NULL, &wrong), -EINVAL);
        assert_null(hf_loop_free(loop));
}

/* A stop that could not begin, because no thread could be created, can begin later. */
static void test_a_stop_that_cannot_begin_may_be_begun_again(void **state) {
        struct guest *g = guest_new(0);

        RUN_UNTIL(g, g->n_written > 0 && g->state == HF_LEADING);
        g->host.thread_stack_bytes = SIZE_MAX / 2;
        assert_true(hf_electors_stop_begin(g->electors, g->loop, on_stopped, g) < 0);
        g->host.thread_stack_bytes = 0;
        stop(g);
        RUN_UNTIL(g, g->state == HF_STOPPED);
        guest_free(g);
}

static void test_a_stop_that_fails_says_why(void **state) {
        struct guest *g = guest_new(0);
        struct hf_status status = {0};

        RUN_UNTIL(g, g->n_written > 0 && g->state == HF_LEADING);
        fake_api_client_refuse_writes(g->client, HF_E_FORBIDDEN, 0);
        assert_int_equal(hf_electors_stop_begin(g->electors, g->loop, on_stopped, g), 0);
        RUN_UNTIL(g, g->stopped);
        assert_int_equal(g->stop_result, HF_E_TIMEOUT);
        assert_int_equal(hf_electors_stop_poll(g->electors, NULL), HF_E_TIMEOUT);
        assert_int_equal(hf_electors_stop_poll(g->electors, &status), HF_E_TIMEOUT);
        assert_non_null(strstr(status.message, "could not be released"));
        guest_free(g);
}

/* The loop of `done` is not run before the electors are freed. */
static void test_freed_electors_report_no_stop(void **state) {
        struct guest *g = guest_new(0);
        struct hf_loop *other;

        RUN_UNTIL(g, g->n_written > 0);
        assert_int_equal(hf_loop_new(&other), 0);
        assert_int_equal(hf_electors_stop_begin(g->electors, other, on_stopped, g), 0);
        RUN_UNTIL(g, hf_electors_stop_poll(g->electors, NULL) != HF_E_BUSY);
        g->electors = hf_electors_free(g->electors);
        assert_int_equal(hf_loop_dispatch(other), 0);
        assert_false(g->stopped);
        assert_null(hf_loop_free(other));
        guest_free(g);
}

static void test_a_drain_that_takes_too_long_becomes_an_abort(void **state) {
        struct guest *g = guest_new(200 * HF_NSEC_PER_MSEC);

        g->ends_on_abort = true;
        RUN_UNTIL(g, g->n_written > 0);
        stop(g);
        assert_int_equal(g->n_drained, 1);
        assert_int_equal(g->n_aborted, 1);
        guest_free(g);
}

static void test_a_lost_term_is_followed_by_another(void **state) {
        struct guest *g = guest_new(0);

        RUN_UNTIL(g, g->n_written > 0);
        hf_elector_end_term(g->elector);
        RUN_UNTIL(g, g->n_begun == 2 && g->run && g->n_written == 2);
        assert_int_equal(g->last_error, HF_E_EXISTS);
        stop(g);
        guest_free(g);
}

static void test_requests_that_hang_are_canceled_when_their_client_is_freed(void **state) {
        struct guest *g = guest_new(0);
        struct hf_client *client;

        RUN_UNTIL(g, g->n_written == 1);
        assert_int_equal(hf_loop_client_new(g->loop, &g->client->base, &client), 0);
        fake_api_client_hold_requests(g->client, true);
        for (int i = 0; i < 20; i++)
                assert_int_equal(write_object(g, client), 0);
        g->retries_with = client;
        client = hf_client_free(client);
        g->retries_with = NULL;
        assert_int_equal(g->n_written, 21);
        assert_int_equal(g->last_error, HF_E_CANCELED);
        fake_api_client_hold_requests(g->client, false);
        stop(g);
        guest_free(g);
}

static void on_event(void *ctx, const struct hf_event *event) {
        struct guest *g = ctx;

        assert_thread(g);
        assert_non_null(strstr(event->object, "written")); /* the copy ends with a NUL */
        assert_non_null(event->resource_version);
        g->n_events++;
}

static void on_watch_end(void *ctx, int error, const struct hf_status *status) {
        struct guest *g = ctx;

        assert_thread(g);
        g->watch_ended = true;
        g->watch_error = error;
}

static void test_events_arrive_in_the_loop_until_the_watch_is_canceled(void **state) {
        struct guest *g = guest_new(0);
        const struct hf_watch_spec spec = {.size = sizeof spec,
                                           .resource = {"", "v1", "configmaps"},
                                           .ns = "default"};
        struct hf_client *client;
        uint64_t id;

        RUN_UNTIL(g, g->n_written > 0);
        assert_int_equal(hf_loop_client_new(g->loop, &g->client->base, &client), 0);
        assert_int_equal(hf_client_watch(client, &spec, on_event, on_watch_end, g, &id), 0);
        RUN_UNTIL(g, g->n_events > 0);
        hf_client_watch_cancel(client, id);
        RUN_UNTIL(g, g->watch_ended);
        assert_int_equal(g->watch_error, HF_E_CANCELED);
        client = hf_client_free(client);
        stop(g);
        guest_free(g);
}

static void on_posted(void *ctx) {
        struct guest *g = ctx;

        if (g->posted)
                return;
        g->posted = true;
        assert_int_equal(hf_loop_post(g->loop, on_posted, g), 0);
}

static void test_a_posted_function_waits_for_the_next_dispatch(void **state) {
        struct guest g = {.thread = pthread_self()};
        struct pollfd fd = {.events = POLLIN};

        assert_int_equal(hf_loop_new(&g.loop), 0);
        fd.fd = hf_loop_fd(g.loop);
        assert_int_equal(poll(&fd, 1, 0), 0);
        assert_int_equal(hf_loop_dispatch(g.loop), 0);
        assert_int_equal(hf_loop_post(g.loop, on_posted, &g), 0);
        assert_int_equal(poll(&fd, 1, 0), 1);
        assert_int_equal(hf_loop_dispatch(g.loop), 1);
        assert_int_equal(poll(&fd, 1, 0), 1);
        assert_int_equal(hf_loop_dispatch(g.loop), 1);
        assert_int_equal(poll(&fd, 1, 0), 0);
        g.loop = hf_loop_free(g.loop);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_leader_runs_and_stops_in_the_hosts_loop),
                cmocka_unit_test(test_a_controller_of_the_loop_needs_all_its_functions),
                cmocka_unit_test(test_a_stop_that_cannot_begin_may_be_begun_again),
                cmocka_unit_test(test_a_stop_that_fails_says_why),
                cmocka_unit_test(test_freed_electors_report_no_stop),
                cmocka_unit_test(test_a_drain_that_takes_too_long_becomes_an_abort),
                cmocka_unit_test(test_a_lost_term_is_followed_by_another),
                cmocka_unit_test(test_requests_that_hang_are_canceled_when_their_client_is_freed),
                cmocka_unit_test(test_events_arrive_in_the_loop_until_the_watch_is_canceled),
                cmocka_unit_test(test_a_posted_function_waits_for_the_next_dispatch),
        };

        (void)signal(SIGPIPE, SIG_IGN);
        curl_global_init(CURL_GLOBAL_DEFAULT);
        int r = cmocka_run_group_tests(tests, NULL, NULL);
        curl_global_cleanup();
        return r;
}
