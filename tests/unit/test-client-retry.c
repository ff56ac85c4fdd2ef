/* SPDX-License-Identifier: Apache-2.0 */
/* When the REST client sends a request again: Retry-After, and a token that was replaced. */
#undef NDEBUG
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <signal.h>

#include <holdfast/client.h>

#include "client/bearer.h"
#include "patience.h"
#include "scripted_server.h"

/* How often the token is newer than the one that a server has just refused. */
static atomic_int n_new_tokens;

bool __real_hf__bearer_renew(struct hf__bearer *bearer, const struct hf__token *used);
bool __wrap_hf__bearer_renew(struct hf__bearer *bearer, const struct hf__token *used);
bool __wrap_hf__bearer_renew(struct hf__bearer *bearer, const struct hf__token *used) {
        if (atomic_load(&n_new_tokens) == 0)
                return __real_hf__bearer_renew(bearer, used);
        atomic_fetch_sub(&n_new_tokens, 1);
        return true;
}

static struct scripted_server server;

static int start_server(void **state) {
        scripted_server_start(&server);
        return 0;
}

static int stop_server(void **state) {
        scripted_server_stop(&server);
        return 0;
}

/* The offset of the boot clock, which the test increases. */
static _Atomic int64_t pushed;
static hf_nsec pushed_boot(void *ctx) {
        return hf_clock_system()->boot(NULL) + atomic_load(&pushed);
}
static void push(hf_nsec by) { atomic_fetch_add(&pushed, by); }
static int pushed_wait(void *ctx, pthread_cond_t *cond, pthread_mutex_t *mutex, hf_nsec deadline) {
        int64_t by = atomic_load(&pushed);
        return hf_clock_system()->wait(NULL, cond, mutex,
                                       deadline == HF_NSEC_NEVER ? deadline : deadline - by);
}
static struct hf_clock the_clock;
static atomic_uint n_logged;
static void on_log(void *ctx, enum hf_log_level level, const char *component, const char *message) {
        atomic_fetch_add(&n_logged, 1);
}
static struct hf_host the_host = {.size = sizeof the_host,
                                  .clock = &the_clock,
                                  .log = {.write = on_log}};
static const struct hf_resource leases = {.group = "coordination.k8s.io",
                                          .version = "v1",
                                          .plural = "leases"};

static char dir[] = "/tmp/hf-retry-XXXXXX", token_path[64];

static void write_token(const char *text) {
        char fresh[80];
        snprintf(fresh, sizeof fresh, "%s.new", token_path);
        FILE *file = fopen(fresh, "w");
        assert_non_null(file);
        fputs(text, file);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(rename(fresh, token_path), 0);
}

static struct hf_client *client; /* of the running test */

static int begin(void **state) {
        char url[64];
        struct hf_status status = {0};

        write_token("first\n");
        snprintf(url, sizeof url, "http://127.0.0.1:%d", server.base.port);
        const struct hf_rest_config config = {.size = sizeof config,
                                              .server = url,
                                              .bearer_token = "unused",
                                              .token_file = token_path};
        if (hf_rest_client_new(&the_host, &config, &client, &status) != 0)
                fail_msg("%s", status.message);
        return 0;
}

static int end(void **state) {
        client = hf_client_free(client);
        return 0;
}

static const struct hf_request get = {.size = sizeof get,
                                      .verb = HF_VERB_GET,
                                      .resource = {"", "v1", "configmaps"},
                                      .ns = "a",
                                      .name = "b"};
static const struct hf_request put = {.size = sizeof put,
                                      .verb = HF_VERB_UPDATE,
                                      .resource = {"", "v1", "configmaps"},
                                      .ns = "a",
                                      .name = "b",
                                      .body = "{\"z\":1}",
                                      .n_body = 7};

static int run(const struct hf_request *request, struct hf_status *ret_status) {
        *ret_status = (struct hf_status){0};
        return hf_client_do(client, request, hf_cancel_never(), NULL, NULL, ret_status);
}

#define BUSY "429 Too Many Requests"
#define DOWN "503 Service Unavailable"
/* with this body holdfastd reports that it did not apply the request */
#define NOT_APPLIED "{\"details\":{\"causes\":[{\"reason\":\"NotApplied\"}]}}"
#define AFTER_1     "Retry-After: 1\r\n"
#define AFTER_100   "Retry-After: 100\r\n"

static void test_retry_after_is_honoured(void **state) {
        struct hf_status status;

        scripted_server_set_response(&server, "200 OK", "", "{}");
        scripted_server_add_first(&server, BUSY, AFTER_1, "");
        scripted_server_add_first(&server, DOWN, AFTER_1, NOT_APPLIED);
        hf_nsec begun = pushed_boot(NULL);
        assert_int_equal(run(&put, &status), 0);
        assert_int_equal(scripted_server_n_requests(&server), 3);
        /* the retry is never earlier than Retry-After */
        assert_true(pushed_boot(NULL) - begun >= 2 * HF_NSEC_PER_SEC);
        assert_true(
                scripted_server_got(&server, "PUT /api/v1/namespaces/a/configmaps/b HTTP/1.1\r\n"));
        assert_true(scripted_server_got(&server, "\r\n\r\n{\"z\":1}"));
        scripted_server_set_response(&server, "200 OK", "", "{}");
        scripted_server_add_first(&server, "500 Internal Server Error", AFTER_1, "");
        scripted_server_add_first(&server, DOWN, AFTER_1, "");
        assert_int_equal(run(&get, &status), 0);
        assert_int_equal(scripted_server_n_requests(&server), 3);
}

/* Each of these ends with the server's first response. */
static void test_some_requests_are_not_sent_again(void **state) {
        struct hf_request late = get, lease = get, sweep = put;
        const struct {
                const char *status, *headers;
                const struct hf_request *request;
                int error;
                const char *body;
        } cases[] = {
                /* A proxy may send this although the server has applied the write. */
                {DOWN, AFTER_1, &put, HF_E_TIMEOUT, "{\"kind\":\"Status\",\"code\":503}"},
                {DOWN, AFTER_1, &put, HF_E_TIMEOUT, "upstream connect error or disconnect"},
                {DOWN, "", &put, HF_E_UNAVAILABLE, NOT_APPLIED},
                /* Some of the objects may have been deleted. */
                {DOWN, AFTER_1, &sweep, HF_E_TIMEOUT, NOT_APPLIED},
                {BUSY, "", &get, HF_E_TOO_MANY},
                {BUSY, "Retry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\n", &get, HF_E_TOO_MANY},
                {DOWN, "", &get, HF_E_UNAVAILABLE},
                {"500 Internal Server Error", AFTER_1, &put,
                 HF_E_TIMEOUT}, /* the write may have been applied */
                {"504 Gateway Timeout", AFTER_1, &put, HF_E_TIMEOUT},
                {"504 Gateway Timeout", AFTER_1, &get,
                 HF_E_TIMEOUT}, /* the server has waited already */
                {"409 Conflict", AFTER_1, &put, HF_E_CONFLICT},
                {BUSY, AFTER_100, &get, HF_E_TOO_MANY}, /* beyond the default timeout */
                {BUSY, AFTER_1, &late, HF_E_TOO_MANY},
                {BUSY, AFTER_1, &lease, HF_E_TOO_MANY}, /* the elector has its own schedule */
        };
        lease.lane = HF_LANE_LEASE;
        sweep.verb = HF_VERB_DELETE_COLLECTION;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf_status status;
                late.deadline = pushed_boot(NULL) + 900 * HF_NSEC_PER_MSEC;
                scripted_server_set_response(&server, "200 OK", "", "{}");
                scripted_server_add_first(&server, cases[i].status, cases[i].headers,
                                          cases[i].body ? cases[i].body : "");
                int r = run(cases[i].request, &status);
                if (r != cases[i].error || scripted_server_n_requests(&server) != 1)
                        fail_msg("case %zu: %d after %u requests: %s", i, r,
                                 scripted_server_n_requests(&server), status.message);
        }
}

struct outcome {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        bool ended;
        int error;
        struct hf_status status;
};
#define OUTCOME                                                                                    \
        ((struct outcome){.mu = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER})

static void ended(struct outcome *o, int error, const struct hf_status *status) {
        pthread_mutex_lock(&o->mu);
        assert_false(o->ended);
        o->ended = true;
        o->error = error;
        o->status = *status;
        pthread_cond_broadcast(&o->cond);
        pthread_mutex_unlock(&o->mu);
}
static void on_reply(void *ctx, const struct hf_response *reply) {
        ended(ctx, reply->error, &reply->status);
}
static void on_event(void *ctx, const struct hf_event *event) {}
static void on_end(void *ctx, int error, const struct hf_status *status) {
        ended(ctx, error, status);
}

static int await(struct outcome *o) {
        pthread_mutex_lock(&o->mu);
        PATIENCE_AWAIT_LOCKED(&o->cond, &o->mu, o->ended);
        pthread_mutex_unlock(&o->mu);
        return o->error;
}

static bool has_ended(struct outcome *o) {
        pthread_mutex_lock(&o->mu);
        bool yes = o->ended;
        pthread_mutex_unlock(&o->mu);
        return yes;
}

static void test_there_are_at_most_ten_retries(void **state) {
        struct hf_request patient = get, other = get;
        struct hf_status status;
        struct outcome o = OUTCOME;
        unsigned n_others = 0;

        patient.deadline = pushed_boot(NULL) + 1000000 * HF_NSEC_PER_SEC;
        other.lane = HF_LANE_LEASE;
        scripted_server_set_response(&server, BUSY, AFTER_100, "");
        assert_int_equal(hf_client_request(client, &patient, on_reply, &o, NULL), 0);
        for (; !has_ended(&o); n_others++) {
                push(101 * HF_NSEC_PER_SEC);
                /* this request wakes the engine, which then reads the clock */
                assert_int_equal(run(&other, &status), HF_E_TOO_MANY);
        }
        assert_int_equal(o.error, HF_E_TOO_MANY);
        assert_int_equal(o.status.retry_after_s, 100);
        assert_int_equal(scripted_server_n_requests(&server) - n_others, 11);
}

/*
 * A request that waits for its next attempt is still under way: a cancellation ends it, and so does
 * freeing the client.
 */
static void test_waiting_requests_can_be_canceled(void **state) {
        struct outcome canceled = OUTCOME, freed = OUTCOME;
        struct hf_request patient = put;
        uint64_t id = 0;

        patient.deadline = pushed_boot(NULL) + 3600 * HF_NSEC_PER_SEC;
        scripted_server_set_response(&server, BUSY, AFTER_100, "");
        assert_int_equal(hf_client_request(client, &patient, on_reply, &canceled, &id), 0);
        assert_int_equal(hf_client_request(client, &patient, on_reply, &freed, NULL), 0);
        scripted_server_await_requests(&server, 2);
        hf_client_cancel(client, id);
        /* If the cancellation comes before the response is looked at, the response still wins. */
        int error = await(&canceled);
        assert_true(error == HF_E_CANCELED || error == HF_E_TOO_MANY);
        client = hf_client_free(client);
        assert_true(freed.ended);
        assert_true(freed.error == HF_E_CANCELED || freed.error == HF_E_TOO_MANY);
        assert_int_equal(scripted_server_n_requests(&server), 2);
}

/* After a sleep beyond the deadline nothing is sent again, whatever Retry-After permits. */
static void test_the_deadline_comes_before_the_next_try(void **state) {
        struct outcome o = OUTCOME;
        struct hf_request patient = put;

        patient.deadline = pushed_boot(NULL) + 2 * HF_NSEC_PER_SEC;
        scripted_server_set_response(&server, "200 OK", "", "{}");
        scripted_server_add_first(&server, BUSY, AFTER_1, "");
        assert_int_equal(hf_client_request(client, &patient, on_reply, &o, NULL), 0);
        scripted_server_await_requests(&server, 1);
        push(100 * HF_NSEC_PER_SEC);
        /* too late for another attempt when the response is looked at, or later when it is sent */
        int error = await(&o);
        assert_true(error == HF_E_TOO_MANY || error == HF_E_TIMEOUT);
        assert_int_equal(scripted_server_n_requests(&server), 1);
}

static void test_a_token_file_is_read_again_after_a_minute(void **state) {
        struct hf_status status;

        scripted_server_set_response(&server, "200 OK", "", "{}");
        assert_int_equal(run(&get, &status), 0);
        assert_true(scripted_server_got(&server, "\r\nAuthorization: Bearer first\r\n"));
        write_token("second");
        assert_int_equal(run(&get, &status), 0);
        assert_true(scripted_server_got(&server, "Bearer first\r\n"));
        push(61 * HF_NSEC_PER_SEC);
        assert_int_equal(run(&get, &status), 0); /* makes the client read the file */
        for (int i = 0; i < 1000 && !scripted_server_got(&server, "Bearer second\r\n"); i++)
                assert_int_equal(run(&get, &status), 0);
        assert_true(scripted_server_got(&server, "Bearer second\r\n"));
        /* A file that is missing or empty for a moment changes nothing, and is logged once. */
        unsigned n = atomic_load(&n_logged);
        write_token("\n");
        for (int i = 0; i < 3; i++) {
                push(61 * HF_NSEC_PER_SEC);
                assert_int_equal(run(&get, &status), 0);
                assert_int_equal(run(&get, &status), 0);
                assert_true(scripted_server_got(&server, "Bearer second\r\n"));
        }
        assert_int_equal(atomic_load(&n_logged), n + 1);
}

#define WHO "401 Unauthorized"

static void test_a_401_makes_the_client_read_the_token_again(void **state) {
        struct hf_status status;
        struct outcome o = OUTCOME;

        push(2 * HF_NSEC_PER_SEC);
        scripted_server_set_response(&server, "200 OK", "", "{}");
        scripted_server_add_first(&server, WHO, "", "{\"message\":\"who?\"}");
        write_token("second");
        assert_int_equal(run(&put, &status), 0);
        assert_int_equal(scripted_server_n_requests(&server), 2);
        assert_true(scripted_server_got(&server, "Bearer second\r\n"));
        /* The same token is not tried again. */
        push(2 * HF_NSEC_PER_SEC);
        scripted_server_set_response(&server, WHO, "", "{\"message\":\"who?\"}");
        assert_int_equal(run(&put, &status), HF_E_UNAUTHORIZED);
        assert_string_equal(status.message, "who?");
        assert_int_equal(scripted_server_n_requests(&server), 1);
        push(2 * HF_NSEC_PER_SEC);
        write_token("third");
        assert_int_equal(run(&put, &status), HF_E_UNAUTHORIZED);
        assert_int_equal(scripted_server_n_requests(&server), 3);
        /* Watches behave in the same way. */
        push(2 * HF_NSEC_PER_SEC);
        write_token("fourth");
        scripted_server_set(&server, SCRIPT_CLOSES, "HTTP/1.1 200 OK\r\n\r\n");
        scripted_server_add_first(&server, WHO, "", "who?");
        const struct hf_watch_spec spec = {.size = sizeof spec,
                                           .resource = leases,
                                           .ns = "a",
                                           .resource_version = "5"};
        assert_int_equal(hf_client_watch(client, &spec, on_event, on_end, &o, NULL), 0);
        assert_int_equal(await(&o), 0);
        assert_int_equal(scripted_server_n_requests(&server), 2);
        assert_true(scripted_server_got(&server, "Bearer fourth\r\n"));
}

/* However often the token changes, a server that refuses all of them gets two requests. */
static void test_a_third_token_is_not_tried(void **state) {
        const struct hf_watch_spec spec = {.size = sizeof spec, .resource = leases, .ns = "a"};
        struct hf_status status;
        struct outcome o = OUTCOME;

        scripted_server_set_response(&server, WHO, "", "{\"message\":\"who?\"}");
        atomic_store(&n_new_tokens, 3);
        assert_int_equal(run(&get, &status), HF_E_UNAUTHORIZED);
        assert_int_equal(scripted_server_n_requests(&server), 2);
        assert_int_equal(atomic_load(&n_new_tokens), 2);
        assert_int_equal(hf_client_watch(client, &spec, on_event, on_end, &o, NULL), 0);
        assert_int_equal(await(&o), HF_E_UNAUTHORIZED);
        assert_int_equal(scripted_server_n_requests(&server), 4);
        assert_int_equal(atomic_exchange(&n_new_tokens, 0), 1);
}

/*
 * Many requests with the old token: each is sent once more, whichever of them caused the file to be
 * read again.
 */
static void test_many_401_responses_at_once_are_retried(void **state) {
        static struct outcome o[8];

        push(2 * HF_NSEC_PER_SEC);
        scripted_server_set_response(&server, "200 OK", "", "{}");
        scripted_server_require(&server, "Bearer second\r\n");
        write_token("second");
        for (int i = 0; i < 8; i++) {
                o[i] = OUTCOME;
                assert_int_equal(hf_client_request(client, i % 2 ? &put : &get, on_reply, &o[i],
                                                   NULL),
                                 0);
        }
        for (int i = 0; i < 8; i++)
                assert_int_equal(await(&o[i]), 0);
}

static void test_a_token_file_must_be_there_at_first(void **state) {
        const struct hf_rest_config config = {.size = sizeof config,
                                              .server = "http://127.0.0.1:1",
                                              .token_file = "/nonexistent/token"};
        struct hf_client *none = NULL;
        struct hf_status status = {0};

        assert_int_equal(hf_rest_client_new(&the_host, &config, &none, &status), -ENOENT);
        assert_non_null(strstr(status.message, "/nonexistent/token"));
        write_token(" \n");
        struct hf_rest_config empty = config;
        empty.token_file = token_path;
        assert_int_equal(hf_rest_client_new(&the_host, &empty, &none, &status), HF_E_INVALID);
        assert_non_null(strstr(status.message, token_path));
}

/*
 * A program built with the first version of the struct does not know token_file. Members beyond its
 * struct are ignored.
 */
static void test_older_and_newer_configurations_work(void **state) {
        struct {
                struct hf_rest_config config;
                char more[8];
        } newer = {.config = {.size = sizeof newer, .server = "http://127.0.0.1:1"}};
        struct hf_rest_config config = {.server = "http://127.0.0.1:1",
                                        .token_file = (const char *)0x10};
        struct hf_client *none = NULL;

        config.size = offsetof(struct hf_rest_config, token_file);
        assert_int_equal(hf_rest_client_new(&the_host, &config, &none, NULL), 0);
        none = hf_client_free(none);
        assert_int_equal(hf_rest_client_new(&the_host, &newer.config, &none, NULL), 0);
        none = hf_client_free(none);
        newer.more[3] = 1; /* a setting that this library cannot know */
        assert_int_equal(hf_rest_client_new(&the_host, &newer.config, &none, NULL), -EINVAL);
        config.size = 0; /* a program may forget to set the size */
        assert_int_equal(hf_rest_client_new(&the_host, &config, &none, NULL), -EINVAL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_retry_after_is_honoured),
                TEST(test_some_requests_are_not_sent_again),
                TEST(test_there_are_at_most_ten_retries),
                TEST(test_waiting_requests_can_be_canceled),
                TEST(test_the_deadline_comes_before_the_next_try),
                TEST(test_a_token_file_is_read_again_after_a_minute),
                TEST(test_a_401_makes_the_client_read_the_token_again),
                TEST(test_a_third_token_is_not_tried),
                TEST(test_many_401_responses_at_once_are_retried),
                TEST(test_a_token_file_must_be_there_at_first),
                TEST(test_older_and_newer_configurations_work),
        };
        the_clock = *hf_clock_system();
        the_clock.boot = pushed_boot;
        the_clock.wait = pushed_wait;
        (void)signal(SIGPIPE, SIG_IGN);
        curl_global_init(CURL_GLOBAL_DEFAULT);
        assert_non_null(mkdtemp(dir));
        snprintf(token_path, sizeof token_path, "%s/token", dir);
        int failed = cmocka_run_group_tests(tests, start_server, stop_server);
        curl_global_cleanup();
        (void)unlink(token_path);
        (void)rmdir(dir);
        return failed;
}
