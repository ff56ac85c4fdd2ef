/* SPDX-License-Identifier: Apache-2.0 */
/* The REST client against a scripted HTTP/1.1 server in this process. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <holdfast/client.h>

#include "patience.h"
#include "scripted_server.h"

static struct scripted_server server;

static int start_server(void **state) {
        scripted_server_start(&server);
        return 0;
}

static int stop_server(void **state) {
        scripted_server_stop(&server);
        return 0;
}

/* ---- the client ---- */

static const struct hf_host host = {.size = sizeof host};
static const struct hf_resource leases = {.group = "coordination.k8s.io",
                                          .version = "v1",
                                          .plural = "leases"};

static struct hf_client *connect_with(hf_nsec timeout) {
        char url[64];
        struct hf_client *client = NULL;
        struct hf_status status = {0};
        snprintf(url, sizeof url, "http://127.0.0.1:%d/", server.base.port);
        const struct hf_rest_config config = {
                .size = sizeof config,
                .server = url,
                .bearer_token = "secret",
                .user_agent = "tester/1",
                .timeout = timeout,
        };
        if (hf_rest_client_new(&host, &config, &client, &status) != 0)
                fail_msg("%s", status.message);
        return client;
}

/* The outcome of an asynchronous request or watch. */
struct outcome {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        int n_ends, error;
        bool echoed;
        char events[1024];
        struct hf_status status;
};
#define OUTCOME                                                                                    \
        ((struct outcome){.mu = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER})

static void ended(struct outcome *o, int error, bool echoed, const struct hf_status *status) {
        pthread_mutex_lock(&o->mu);
        o->n_ends++;
        o->error = error;
        o->echoed = echoed;
        o->status = *status;
        pthread_cond_broadcast(&o->cond);
        pthread_mutex_unlock(&o->mu);
}

static void on_reply(void *ctx, const struct hf_response *reply) {
        ended(ctx, reply->error, reply->fence_echoed, &reply->status);
}
static void on_end(void *ctx, int error, const struct hf_status *status) {
        ended(ctx, error, false, status);
}
static void on_event(void *ctx, const struct hf_event *event) {
        struct outcome *o = ctx;
        pthread_mutex_lock(&o->mu);
        size_t n = strlen(o->events);
        snprintf(o->events + n, sizeof o->events - n, "%d@%s:%.*s ", (int)event->type,
                 event->resource_version, event->n_object < 60 ? (int)event->n_object : 60,
                 event->object);
        pthread_cond_broadcast(&o->cond);
        pthread_mutex_unlock(&o->mu);
}

static int await(struct outcome *o) {
        pthread_mutex_lock(&o->mu);
        PATIENCE_AWAIT_LOCKED(&o->cond, &o->mu, o->n_ends != 0);
        int error = o->error;
        pthread_mutex_unlock(&o->mu);
        return error;
}

static void await_events(struct outcome *o) {
        pthread_mutex_lock(&o->mu);
        PATIENCE_AWAIT_LOCKED(&o->cond, &o->mu, o->events[0]);
        pthread_mutex_unlock(&o->mu);
}

static int request(struct hf_client *client, const struct hf_request *what,
                   struct outcome *ret_outcome) {
        *ret_outcome = OUTCOME;
        assert_int_equal(hf_client_request(client, what, on_reply, ret_outcome, NULL), 0);
        return await(ret_outcome);
}

static int watch(struct hf_client *client, struct outcome *ret_outcome) {
        const struct hf_watch_spec spec = {.size = sizeof spec,
                                           .resource = leases,
                                           .ns = "a",
                                           .resource_version = "5",
                                           .bookmarks = true,
                                           .lane = HF_LANE_WATCH};
        *ret_outcome = OUTCOME;
        assert_int_equal(hf_client_watch(client, &spec, on_event, on_end, ret_outcome, NULL), 0);
        return await(ret_outcome);
}

/* ---- tests ---- */

#define LEASES "/apis/coordination.k8s.io/v1/namespaces/a/leases"

static void test_requests_are_what_servers_expect(void **state) {
        struct hf_client *client = connect_with(0);
        struct hf_request what = {.size = sizeof what,
                                  .verb = HF_VERB_GET,
                                  .resource = leases,
                                  .ns = "a",
                                  .name = "b"};
        char *body = NULL;
        size_t n = 0;

        scripted_server_set_response(&server, "200 OK", "", "{\"x\":1}");
        assert_int_equal(hf_client_do(client, &what, hf_cancel_never(), &body, &n, NULL), 0);
        assert_string_equal(body, "{\"x\":1}");
        assert_int_equal(n, 7);
        free(body);
        assert_true(scripted_server_got(&server, "GET " LEASES "/b HTTP/1.1\r\n"));
        assert_true(scripted_server_got(&server, "\r\nAccept: application/json\r\n"));
        assert_true(scripted_server_got(&server, "\r\nUser-Agent: tester/1\r\n"));
        assert_true(scripted_server_got(&server, "\r\nAuthorization: Bearer secret\r\n"));
        assert_false(scripted_server_got(&server, "Content-Type"));
        what.verb = HF_VERB_CREATE;
        what.body = "{\"y\":2}";
        what.n_body = 7;
        what.query = "dryRun=All";
        scripted_server_set_response(&server, "201 Created", "", "{}");
        assert_int_equal(hf_client_do(client, &what, hf_cancel_never(), NULL, NULL, NULL), 0);
        assert_true(scripted_server_got(&server, "POST " LEASES "?dryRun=All HTTP/1.1\r\n"));
        assert_true(scripted_server_got(&server, "\r\nContent-Type: application/json\r\n"));
        assert_true(scripted_server_got(&server, "\r\n\r\n{\"y\":2}"));
        what = (struct hf_request){.size = sizeof(struct hf_request),
                                   .verb = HF_VERB_DELETE,
                                   .resource = leases,
                                   .ns = "a",
                                   .name = "b"};
        scripted_server_set_response(&server, "200 OK", "", "{}");
        assert_int_equal(hf_client_do(client, &what, hf_cancel_never(), NULL, NULL, NULL), 0);
        assert_true(scripted_server_got(&server, "DELETE " LEASES "/b HTTP/1.1\r\n"));
        what = (struct hf_request){.size = sizeof(struct hf_request),
                                   .verb = HF_VERB_LIST,
                                   .resource = leases};
        assert_int_equal(hf_client_do(client, &what, hf_cancel_never(), NULL, NULL, NULL), 0);
        assert_true(scripted_server_got(&server,
                                        "GET /apis/coordination.k8s.io/v1/leases HTTP/1.1\r\n"));
        hf_client_free(client);
}

static void test_a_client_may_have_no_timeout(void **state) {
        struct hf_client *client = connect_with(HF_NSEC_NEVER);
        const struct hf_request what = {.size = sizeof what,
                                        .verb = HF_VERB_GET,
                                        .resource = leases,
                                        .ns = "a",
                                        .name = "b"};

        scripted_server_set_response(&server, "200 OK", "", "{}");
        assert_int_equal(hf_client_do(client, &what, hf_cancel_never(), NULL, NULL, NULL), 0);
        hf_client_free(client);
}

static void test_a_patch_names_its_type_and_its_object(void **state) {
        static const char *const types[] = {[HF_PATCH_MERGE] = "merge-patch+json",
                                            [HF_PATCH_JSON] = "json-patch+json",
                                            [HF_PATCH_STRATEGIC] = "strategic-merge-patch+json",
                                            [HF_PATCH_APPLY] = "apply-patch+yaml"};
        struct hf_client *client = connect_with(0);
        struct hf_request what = {.size = sizeof what,
                                  .verb = HF_VERB_PATCH,
                                  .resource = leases,
                                  .ns = "a",
                                  .name = "b",
                                  .body = "{\"y\":2}",
                                  .n_body = 7};

        scripted_server_set_response(&server, "200 OK", "", "{}");
        for (int i = HF_PATCH_MERGE; i <= HF_PATCH_APPLY; i++) {
                char type[80];
                (void)snprintf(type, sizeof type, "\r\nContent-Type: application/%s\r\n", types[i]);
                what.patch = (enum hf_patch)i;
                assert_int_equal(hf_client_do(client, &what, hf_cancel_never(), NULL, NULL, NULL),
                                 0);
                assert_true(scripted_server_got(&server, "PATCH " LEASES "/b HTTP/1.1\r\n"));
                assert_true(scripted_server_got(&server, type));
                assert_true(scripted_server_got(&server, "\r\n\r\n{\"y\":2}"));
        }
        what.name = NULL;
        assert_int_equal(hf_client_do(client, &what, hf_cancel_never(), NULL, NULL, NULL), -EINVAL);
        hf_client_free(client);
}

static void test_fences_are_sent_with_writes_and_echoes_compared(void **state) {
        struct hf_client *client = connect_with(0);
        const struct hf_fence fence = {.ns = "n", .name = "l", .term = 9, .identity = "me"};
        struct hf_request what = {.size = sizeof what,
                                  .verb = HF_VERB_UPDATE,
                                  .resource = leases,
                                  .ns = "a",
                                  .name = "b",
                                  .body = "{}",
                                  .n_body = 2,
                                  .fence = &fence};
        struct outcome o;

        scripted_server_set_response(&server, "200 OK", "Holdfast-Fence: n/l;9;me\r\n", "{}");
        assert_int_equal(request(client, &what, &o), 0);
        assert_true(scripted_server_got(&server, "\r\nHoldfast-Fence: n/l;9;me\r\n"));
        assert_true(o.echoed);
        scripted_server_set_response(&server, "200 OK", "", "{}");
        assert_int_equal(request(client, &what, &o), 0);
        assert_false(o.echoed);
        scripted_server_set_response(&server, "200 OK", "Holdfast-Fence: n/l;8;me\r\n", "{}");
        assert_int_equal(request(client, &what, &o), 0);
        assert_false(o.echoed);
        scripted_server_set_response(&server, "409 Conflict", "Holdfast-Fence: n/l;9;me\r\n",
                                     "{\"reason\":\"Conflict\",\"message\":\"no\",\"details\":{"
                                     "\"causes\":[{\"reason\":\"StaleLeaderTerm\"}]}}");
        assert_int_equal(request(client, &what, &o), HF_E_STALE_TERM);
        what.verb = HF_VERB_GET;
        what.n_body = 0;
        scripted_server_set_response(&server, "200 OK", "Holdfast-Fence: n/l;9;me\r\n", "{}");
        assert_int_equal(request(client, &what, &o), 0);
        assert_false(scripted_server_got(&server, "Holdfast-Fence"));
        assert_false(o.echoed);
        struct hf_fence bad = fence;
        strcpy(bad.identity, "x\r\nEvil: 1");
        what.verb = HF_VERB_DELETE;
        what.fence = &bad;
        assert_int_equal(hf_client_request(client, &what, on_reply, &o, NULL), -EINVAL);
        hf_client_free(client);
}

static void test_failures_are_distinguished(void **state) {
        struct hf_client *client = connect_with(0);
        struct hf_request get = {.size = sizeof get,
                                 .verb = HF_VERB_GET,
                                 .resource = leases,
                                 .ns = "a",
                                 .name = "b"};
        struct hf_request put = {.size = sizeof put,
                                 .verb = HF_VERB_UPDATE,
                                 .resource = leases,
                                 .ns = "a",
                                 .name = "b",
                                 .body = "{}",
                                 .n_body = 2};
        struct outcome o;
        uint64_t id = 0;

        scripted_server_set_response(&server, "429 Too Many Requests", "Retry-After: 4\r\n",
                                     "busy");
        /* The deadline comes before the next attempt is allowed. */
        get.deadline = hf_now(hf_clock_system()) + 3 * HF_NSEC_PER_SEC;
        assert_int_equal(request(client, &get, &o), HF_E_TOO_MANY);
        get.deadline = 0;
        assert_int_equal(o.status.retry_after_s, 4);
        assert_non_null(strstr(o.status.message, "busy"));
        scripted_server_set_response(&server, "404 Not Found", "",
                                     "{\"message\":\"leases \\\"b\\\" not "
                                     "found\",\"reason\":\"NotFound\"}");
        assert_int_equal(request(client, &get, &o), HF_E_NOT_FOUND);
        assert_string_equal(o.status.message, "leases \"b\" not found");
        scripted_server_set_response(&server, "500 Internal Server Error", "", "");
        assert_int_equal(request(client, &put, &o), HF_E_TIMEOUT);
        assert_int_equal(request(client, &get, &o), HF_E_UNAVAILABLE);
        scripted_server_set(&server, SCRIPT_CLOSES, "%s",
                            ""); /* closed after the request was read: the outcome is unknown */
        assert_int_equal(request(client, &put, &o), HF_E_TIMEOUT);
        scripted_server_set(&server, SCRIPT_HANGS, "%s", "");
        put.deadline = hf_now(hf_clock_system()) + 50 * HF_NSEC_PER_MSEC;
        assert_int_equal(request(client, &put, &o), HF_E_TIMEOUT);
        put.deadline = 0;
        o = OUTCOME;
        assert_int_equal(hf_client_request(client, &put, on_reply, &o, &id), 0);
        hf_client_cancel(client, id);
        assert_int_equal(await(&o), HF_E_CANCELED);
        hf_client_free(client);
}

static void test_a_refused_connection_is_unavailable(void **state) {
        struct hf_client *client = NULL;
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t n = sizeof address;
        /* bound but not listening, so no other process gets the port */
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        char url[64];
        struct outcome o;

        assert_int_equal(bind(fd, (struct sockaddr *)&address, n), 0);
        assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &n), 0);
        snprintf(url, sizeof url, "http://127.0.0.1:%d", ntohs(address.sin_port));
        const struct hf_rest_config config = {.size = sizeof config, .server = url};
        const struct hf_request put = {.size = sizeof put,
                                       .verb = HF_VERB_UPDATE,
                                       .resource = leases,
                                       .ns = "a",
                                       .name = "b",
                                       .body = "{}",
                                       .n_body = 2};
        assert_int_equal(hf_rest_client_new(&host, &config, &client, NULL), 0);
        assert_int_equal(request(client, &put, &o), HF_E_UNAVAILABLE);
        assert_non_null(strstr(o.status.message, url));
        hf_client_free(client);
        close(fd);
}

#define STREAM         "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
#define OBJECT(rv)     "{\"kind\":\"Lease\",\"metadata\":{\"resourceVersion\":\"" rv "\"}}"
#define LINE(type, rv) "{\"type\":\"" type "\",\"object\":" OBJECT(rv) "}\n"

static void test_events_come_line_by_line(void **state) {
        struct hf_client *client = connect_with(0);
        struct outcome o;
        const char *first = "\n" LINE("ADDED", "6") LINE("MODIFIED", "7") "{\"type\":\"DEL",
                   *second = "ETED\",\"object\":" OBJECT("8") "}\r\n" LINE("BOOKMARK", "9");

        scripted_server_set(&server, SCRIPT_CLOSES,
                            STREAM
                            "Transfer-Encoding: chunked\r\n\r\n%zx\r\n%s\r\n%zx\r\n%s\r\n0\r\n\r\n",
                            strlen(first), first, strlen(second), second);
        assert_int_equal(watch(client, &o), 0);
        assert_string_equal(o.events, "0@6:" OBJECT("6") " 1@7:" OBJECT("7") " 2@8:" OBJECT(
                                              "8") " 3@9:" OBJECT("9") " ");
        assert_int_equal(o.n_ends, 1);
        assert_true(scripted_server_got(&server,
                                        "GET "
                                        "/apis/coordination.k8s.io/v1/namespaces/a/"
                                        "leases?watch=1&resourceVersion=5&allowWatchBookmarks=true&"
                                        "timeoutSeconds="));
        hf_client_free(client);
}

static void test_watches_end_for_a_reason(void **state) {
        static const struct {
                const char *text;
                int error;
        } cases[] = {
                /* without a length it ends with the connection */
                {STREAM "\r\n" LINE("ADDED", "6"), 0},
                {STREAM "\r\n{\"type\":\"ERROR\",\"object\":{\"code\":410,\"reason\":\"Expired\","
                        "\"message\":\"too old\"}}\n",
                 HF_E_GONE},
                {STREAM "\r\n{\"type\":\"ERROR\",\"object\":{\"code\":500,\"message\":\"x\"}}\n",
                 HF_E_UNAVAILABLE},
                {STREAM "\r\n{\"type\":\"NEWS\",\"object\":{}}\n", -EPROTO},
                {STREAM "\r\nwhat?\n", -EPROTO},
                {STREAM "\r\n{\"type\":\"ADDED\",\"object\":{\"metadata\":{}}}\n", -EPROTO},
                {STREAM "\r\n{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"a\":}}}\n", -EPROTO},
                {STREAM "\r\n{\"type\":\"ADDED\",\"obj", -EPROTO},
                /* The line has no end, so more of it may be missing. */
                {STREAM "\r\n{\"type\":\"ADDED\",\"object\":" OBJECT("6") "}", -EPROTO},
                {STREAM "Content-Length: 100000\r\n\r\n" LINE("ADDED", "6"),
                 HF_E_TIMEOUT}, /* the connection broke */
                {"HTTP/1.1 410 Gone\r\nContent-Length: 2\r\n\r\n{}", HF_E_GONE},
                {"HTTP/1.1 403 Forbidden\r\nContent-Length: 19\r\n\r\n{\"message\":\"no no\"}",
                 HF_E_FORBIDDEN},
        };
        struct hf_client *client = connect_with(0);
        struct outcome o;

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                scripted_server_set(&server, SCRIPT_CLOSES, "%s", cases[i].text);
                int error = watch(client, &o);
                if (error != cases[i].error)
                        fail_msg("case %zu: %d (%s), not %d", i, error, o.status.message,
                                 cases[i].error);
        }
        hf_client_free(client);
}

static void test_a_line_has_a_limit(void **state) {
        struct hf_client *client = connect_with(0);
        struct outcome o;

        scripted_server_set(&server, SCRIPT_HANGS, STREAM "Transfer-Encoding: chunked\r\n\r\n");
        scripted_server_add_filler(&server, (size_t)9 << 20);
        assert_int_equal(watch(client, &o), HF_E_TOO_LARGE);
        hf_client_free(client);
}

static void test_a_silent_server_times_out(void **state) {
        struct hf_client *client = connect_with(50 * HF_NSEC_PER_MSEC);
        struct outcome o;

        scripted_server_set(&server, SCRIPT_HANGS, "%s", ""); /* not even a header */
        assert_int_equal(watch(client, &o), HF_E_TIMEOUT);
        hf_client_free(client);
}

static void test_cancel_and_free_end_a_watch(void **state) {
        const struct hf_watch_spec spec = {.size = sizeof spec, .resource = leases, .ns = "a"};
        struct hf_client *client = connect_with(0);
        struct outcome first = OUTCOME, second = OUTCOME;
        uint64_t id = 0;

        scripted_server_set(&server, SCRIPT_HANGS,
                            STREAM "Transfer-Encoding: chunked\r\n\r\n%zx\r\n%s\r\n",
                            strlen(LINE("ADDED", "6")), LINE("ADDED", "6"));
        assert_int_equal(hf_client_watch(client, &spec, on_event, on_end, &first, &id), 0);
        assert_int_equal(hf_client_watch(client, &spec, on_event, on_end, &second, NULL), 0);
        await_events(&first);
        await_events(&second);
        hf_client_watch_cancel(client, id);
        assert_int_equal(await(&first), HF_E_CANCELED);
        assert_int_equal(second.n_ends, 0);
        hf_client_free(client);
        assert_int_equal(second.n_ends, 1); /* the free called its callback */
        assert_int_equal(second.error, HF_E_CANCELED);
}

static void test_bad_configurations_are_refused(void **state) {
        const struct hf_rest_config bad[] = {
                {.server = NULL},
                {.server = ""},
                {.server = "127.0.0.1:6443"},
                {.server = "ftp://h"},
                {.server = "https://"},
                {.server = "https://:6443"},
                {.server = "http://h/a b"},
                {.server = "http://u@h"},
                {.server = "http://u:secret@h"},
                {.server = "http://h?x"},
                {.server = "http://h", .bearer_token = "a\nb"},
                {.server = "http://h", .bearer_token = ""},
                {.server = "http://h", .user_agent = "a\rb"},
                {.server = "http://h", .timeout = -1},
                {.server = "https://h", .cert_pem = "x"},
                {.server = "https://h", .key_pem = "x"},
                {.server = "https://h", .insecure = true, .ca_pem = "x"},
        };
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
                struct hf_client *client = NULL;
                struct hf_status status = {0};
                struct hf_rest_config config = bad[i];
                config.size = sizeof config;
                if (hf_rest_client_new(&host, &config, &client, &status) != HF_E_INVALID ||
                    !status.message[0] || strstr(status.message, "secret"))
                        fail_msg("case %zu: %s", i, status.message);
                assert_null(client);
        }
}

static void test_a_kubeconfig_makes_a_client(void **state) {
        char path[] = "/tmp/hf-rest-XXXXXX";
        int fd = mkstemp(path);
        struct hf_client *client = NULL;
        struct hf_status status = {0};
        struct outcome o;
        const struct hf_request get = {.size = sizeof get,
                                       .verb = HF_VERB_GET,
                                       .resource = leases,
                                       .ns = "a",
                                       .name = "b"};

        assert_true(fd >= 0);
        dprintf(fd,
                "{\"current-context\":\"m\",\"contexts\":[{\"name\":\"m\",\"context\":{\"cluster\":"
                "\"c\",\"user\":\"u\"}}],\"clusters\":[{"
                "\"name\":\"c\",\"cluster\":{\"server\":\"http://"
                "127.0.0.1:%d\"}}],\"users\":[{\"name\":\"u\",\"user\":{\"token\":\"t\"}}]}",
                server.base.port);
        close(fd);
        if (hf_rest_client_from_kubeconfig(&host, path, &client, &status) != 0)
                fail_msg("%s", status.message);
        assert_int_equal(unlink(path), 0);
        scripted_server_set_response(&server, "200 OK", "", "{}");
        assert_int_equal(request(client, &get, &o), 0);
        assert_true(scripted_server_got(&server, "\r\nAuthorization: Bearer t\r\n"));
        hf_client_free(client);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_client_may_have_no_timeout),
                cmocka_unit_test(test_requests_are_what_servers_expect),
                cmocka_unit_test(test_a_patch_names_its_type_and_its_object),
                cmocka_unit_test(test_fences_are_sent_with_writes_and_echoes_compared),
                cmocka_unit_test(test_failures_are_distinguished),
                cmocka_unit_test(test_a_refused_connection_is_unavailable),
                cmocka_unit_test(test_events_come_line_by_line),
                cmocka_unit_test(test_watches_end_for_a_reason),
                cmocka_unit_test(test_a_line_has_a_limit),
                cmocka_unit_test(test_a_silent_server_times_out),
                cmocka_unit_test(test_cancel_and_free_end_a_watch),
                cmocka_unit_test(test_bad_configurations_are_refused),
                cmocka_unit_test(test_a_kubeconfig_makes_a_client),
        };
        (void)signal(SIGPIPE, SIG_IGN);
        curl_global_init(CURL_GLOBAL_DEFAULT);
        int failed = cmocka_run_group_tests(tests, start_server, stop_server);
        curl_global_cleanup();
        return failed;
}
