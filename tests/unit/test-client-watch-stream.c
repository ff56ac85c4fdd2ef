/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stream of a watch of the REST client: which lines are events, which lines end the watch, and
 * with which message; and which error responses make the client read its token again.
 */
#undef NDEBUG
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
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

#include <holdfast/cancel.h>
#include <holdfast/client.h>
#include <holdfast/error.h>

#include "patience.h"
#include "scripted_server.h"

#define WHO "401 Unauthorized"
#define A                                                                                          \
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"7\"}}" \
        "}"
#define B                                                                                          \
        "{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"name\":\"b\",\"resourceVersion\":"      \
        "\"8\"}}}"

/* What the client's next random number is; NULL = a real one. */
static const uint32_t *chosen;

ssize_t __real_getrandom(void *to, size_t n, unsigned flags);
ssize_t __wrap_getrandom(void *to, size_t n, unsigned flags);
ssize_t __wrap_getrandom(void *to, size_t n, unsigned flags) {
        if (!chosen)
                return __real_getrandom(to, n, flags);
        assert_int_equal(n, sizeof *chosen);
        memcpy(to, chosen, n);
        return (ssize_t)n;
}

static struct scripted_server server;
static struct hf_client *client;
static char dir[] = "/tmp/hf-stream-XXXXXX", token_path[64];

/* How far the boot clock runs ahead. The tests move it, because a token is read again at most once
 * a second. */
static _Atomic int64_t ahead;

static hf_nsec boot_ahead(void *ctx) { return hf_clock_system()->boot(NULL) + atomic_load(&ahead); }

static int wait_ahead(void *ctx, pthread_cond_t *cond, pthread_mutex_t *mutex, hf_nsec deadline) {
        hf_nsec until = deadline == HF_NSEC_NEVER ? deadline : deadline - atomic_load(&ahead);

        return hf_clock_system()->wait(NULL, cond, mutex, until);
}

static struct hf_clock the_clock;
static const struct hf_host host = {.size = sizeof host, .clock = &the_clock};

static void write_token(const char *text) {
        FILE *file = fopen(token_path, "w");

        assert_non_null(file);
        fputs(text, file);
        assert_int_equal(fclose(file), 0);
        atomic_fetch_add(&ahead, 2 * SEC);
}

static int set_up(void **state) {
        char url[64];

        scripted_server_start(&server);
        write_token("first");
        snprintf(url, sizeof url, "http://127.0.0.1:%d", server.base.port);
        const struct hf_rest_config config = {.size = sizeof config,
                                              .server = url,
                                              .token_file = token_path};
        return hf_rest_client_new(&host, &config, &client, NULL);
}

static int tear_down(void **state) {
        client = hf_client_free(client);
        scripted_server_stop(&server);
        return 0;
}

static struct {
        char text[512];
        size_t n;
        atomic_bool began, ended;
        int error;
        char message[512];
} seen;

static void on_event(void *ctx, const struct hf_event *event) {
        seen.n += (size_t)snprintf(seen.text + seen.n, sizeof seen.text - seen.n, "%c%s ",
                                   "+~-b"[event->type], event -> resource_version);
        atomic_store(&seen.began, true);
}

static void on_end(void *ctx, int error, const struct hf_status *status) {
        seen.error = error;
        (void)snprintf(seen.message, sizeof seen.message, "%s", status ? status->message : "");
        atomic_store(&seen.ended, true);
}

static void begin_watch(void) {
        const struct hf_watch_spec spec = {.size = sizeof spec,
                                           .resource = {.version = "v1", .plural = "configmaps"},
                                           .ns = "ns",
                                           .resource_version = "5"};

        memset(&seen, 0, sizeof seen);
        assert_int_equal(hf_client_watch(client, &spec, on_event, on_end, NULL, NULL), 0);
}

/* Watches until the stream ends, and compares the events and the error with these. */
static void expect(const char *events, int error, const char *message) {
        begin_watch();
        PATIENCE_AWAIT(atomic_load(&seen.ended));
        assert_string_equal(seen.text, events);
        assert_int_equal(seen.error, error);
        if (!strstr(seen.message, message))
                assert_string_equal(seen.message, message);
}

static void stream(const char *text) {
        scripted_server_set(&server, SCRIPT_CLOSES, "HTTP/1.1 200 OK\r\n\r\n%s", text);
}

/* ---- lines ---- */

static void test_white_space_between_events_does_not_count(void **state) {
        stream(A "\n" B "\n");
        expect("+7 -8 ", 0, "");
        stream("\n\r\n  \n" A "\r\n \r\n" B " \r \n\n");
        expect("+7 -8 ", 0, "");
        stream(A "\n" B); /* the second line has no newline, so it may be cut off */
        expect("+7 ", -EPROTO, "the stream ended within a line");
}

static void test_a_line_that_is_no_event_ends_the_watch(void **state) {
        static const struct {
                const char *line, *message;
        } cases[] = {
                {"nonsense", "the stream has a line that is not a watch event"},
                {"{\"type\":\"ADDED\"}", "the stream has a line that is not a watch event"},
                {"{\"object\":{}}", "the stream has a line that is not a watch event"},
                {"{\"type\":\"OTHER\",\"object\":{}}", "the stream has an event of unknown type"},
                {"{\"type\":\"ADDED\",\"object\":{}}", "the stream has an object without metadata"},
                {"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"x\":nonsense}}}", "the stream"},
                {"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"x\":1e}}}",
                 "the stream has an object whose metadata is not JSON"},
                {"{\"type\":\"ADDED\",\"object\":{\"metadata\":{}}}",
                 "the stream has an object without a resourceVersion"},
        };
        char text[512];

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                (void)snprintf(text, sizeof text, "%s\n%s\n%s\n", A, cases[i].line, B);
                stream(text);
                expect("+7 ", -EPROTO, cases[i].message);
        }
        /* The watch ends even if the server would go on. */
        scripted_server_set(&server, SCRIPT_HANGS, "HTTP/1.1 200 OK\r\n\r\n%s\nnonsense\n", A);
        expect("+7 ", -EPROTO, "the stream has a line that is not a watch event");
}

static void test_an_error_event_is_the_end(void **state) {
        stream(A "\n{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,"
                 "\"reason\":\"Expired\",\"message\":\"too old\"}}\n" B "\n");
        expect("+7 ", HF_E_GONE, "too old");
}

/* ---- tokens ---- */

static void test_only_a_401_makes_the_client_read_its_token(void **state) {
        static const char *const refusals[] = {"403 Forbidden", "404 Not Found", "400 Bad Request"};
        static const int errors[] = {HF_E_FORBIDDEN, HF_E_NOT_FOUND, HF_E_INVALID};

        for (size_t i = 0; i < 3; i++) {
                scripted_server_set_response(&server, refusals[i], "", "{\"message\":\"no\"}");
                write_token(i % 2 ? "second" : "third");
                expect("", errors[i], "no");
                assert_int_equal(scripted_server_n_requests(&server), 1);
        }
}

static void test_a_watch_is_sent_again_with_another_token(void **state) {
        stream(A "\n");
        scripted_server_add_first(&server, WHO, "", "{\"message\":\"who?\"}");
        write_token("second");
        expect("+7 ", 0, "");
        assert_int_equal(scripted_server_n_requests(&server), 2);
        assert_true(scripted_server_got(&server, "Bearer second\r\n"));
        assert_true(scripted_server_got(&server, "resourceVersion=5"));
}

/* First the server refuses the new token, too. Then the file has no new token. */
static void test_a_watch_is_sent_again_once(void **state) {
        scripted_server_set_response(&server, WHO, "", "{\"message\":\"who?\"}");
        write_token("second");
        expect("", HF_E_UNAUTHORIZED, "who?");
        assert_int_equal(scripted_server_n_requests(&server), 2);
        atomic_fetch_add(&ahead, 2 * SEC);
        scripted_server_set_response(&server, WHO, "", "{\"message\":\"who?\"}");
        expect("", HF_E_UNAUTHORIZED, "who?");
        assert_int_equal(scripted_server_n_requests(&server), 1);
}

/* The time that a watch asks for, in seconds. */
static int watch_and_get_timeout(void) {
        stream(A "\n");
        expect("+7 ", 0, "");
        const char *at = strstr(server.request, "timeoutSeconds=");
        assert_non_null(at);
        return atoi(at + strlen("timeoutSeconds="));
}

/* If the times were equal, all watches that a fleet began together would end together. */
static void test_the_times_of_watches_are_spread(void **state) {
        int first = -1;
        bool differ = false;

        for (int i = 0; i < 8; i++) {
                int seconds = watch_and_get_timeout();
                assert_in_range(seconds, 300, 600);
                differ = differ || (first >= 0 && seconds != first);
                first = seconds;
        }
        assert_true(differ);
        for (uint32_t i = 0; i <= 301; i += i < 299 ? 299 : 1) {
                chosen = &i;
                assert_int_equal(watch_and_get_timeout(), i <= 300 ? 300 + i : 300);
        }
        chosen = NULL;
}

/* Requests whose deadline has passed need no server. After the second one, the client has looked at
 * its clock since this was called, and has ended what was due. */
static void let_the_client_look(void) {
        const struct hf_request late = {.size = sizeof late,
                                        .verb = HF_VERB_GET,
                                        .resource = {.version = "v1", .plural = "configmaps"},
                                        .ns = "ns",
                                        .name = "a",
                                        .deadline = 1};

        for (int i = 0; i < 2; i++)
                assert_int_not_equal(hf_client_do(client, &late, hf_cancel_never(), NULL, NULL,
                                                  NULL),
                                     0);
}

/* The connection may have stopped working. But a server that ends the watch in time, as it was
 * asked, needs a few seconds for that. */
static void test_a_watch_that_the_server_does_not_end_ends_soon(void **state) {
        static const uint32_t shortest = 0;

        scripted_server_set(&server, SCRIPT_HANGS, "HTTP/1.1 200 OK\r\n\r\n%s\n", A);
        chosen = &shortest;
        begin_watch();
        chosen = NULL;
        PATIENCE_AWAIT(atomic_load(&seen.began));
        atomic_fetch_add(&ahead, 305 * SEC);
        let_the_client_look();
        assert_false(atomic_load(&seen.ended));
        atomic_fetch_add(&ahead, 25 * SEC);
        PATIENCE_AWAIT(atomic_load(&seen.ended));
        assert_int_equal(seen.error, HF_E_TIMEOUT);
}

/* A server may be slow, but not for ever. */
static void test_the_head_of_a_watch_has_a_while_to_come(void **state) {
        scripted_server_set(&server, SCRIPT_HANGS, "%s", "");
        begin_watch();
        scripted_server_await_requests(&server, 1);
        atomic_fetch_add(&ahead, 20 * SEC);
        let_the_client_look();
        assert_false(atomic_load(&seen.ended));
        atomic_fetch_add(&ahead, 40 * SEC);
        PATIENCE_AWAIT(atomic_load(&seen.ended));
        assert_int_equal(seen.error, HF_E_TIMEOUT);
}

/* ---- sizes ---- */

/* Lists may be much larger than objects. */
static void test_only_lists_may_be_large(void **state) {
        static const struct {
                enum hf_verb verb;
                int r;
        } cases[] = {{HF_VERB_GET, HF_E_TOO_LARGE},
                     {HF_VERB_DELETE, HF_E_TOO_LARGE},
                     {HF_VERB_LIST, 0},
                     {HF_VERB_DELETE_COLLECTION, 0}};

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf_request request = {.size = sizeof request,
                                             .verb = cases[i].verb,
                                             .resource = {.version = "v1", .plural = "configmaps"},
                                             .ns = "ns",
                                             .name = cases[i].r != 0 ? "a" : NULL};
                struct hf_status status = {0};
                /* The end of the connection ends the body. */
                scripted_server_set(&server, SCRIPT_CLOSES, "HTTP/1.1 200 OK\r\n\r\n");
                scripted_server_add_filler(&server, (size_t)9 << 20);
                int r = hf_client_do(client, &request, hf_cancel_never(), NULL, NULL, &status);
                if (r != cases[i].r)
                        fail_msg("case %zu: %d: %s", i, r, status.message);
        }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_white_space_between_events_does_not_count),
                TEST(test_a_line_that_is_no_event_ends_the_watch),
                TEST(test_an_error_event_is_the_end),
                TEST(test_only_a_401_makes_the_client_read_its_token),
                TEST(test_a_watch_is_sent_again_with_another_token),
                TEST(test_a_watch_is_sent_again_once),
                TEST(test_the_times_of_watches_are_spread),
                TEST(test_a_watch_that_the_server_does_not_end_ends_soon),
                TEST(test_the_head_of_a_watch_has_a_while_to_come),
                TEST(test_only_lists_may_be_large),
        };

        the_clock = *hf_clock_system();
        the_clock.boot = boot_ahead;
        the_clock.wait = wait_ahead;
        (void)signal(SIGPIPE, SIG_IGN);
        curl_global_init(CURL_GLOBAL_DEFAULT);
        if (!mkdtemp(dir))
                return 1;
        snprintf(token_path, sizeof token_path, "%s/token", dir);
        int failed = cmocka_run_group_tests(tests, NULL, NULL);
        curl_global_cleanup();
        (void)unlink(token_path);
        (void)rmdir(dir);
        return failed;
}
