/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gRPC channel that lacks memory, threads or descriptors: each allocation fails once, and each
 * descriptor. A call then ends, and the channel goes on. The server is another process, because the
 * shortage is the channel's alone.
 */
#undef NDEBUG
#include <errno.h>
#include <netdb.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "count_descriptors.h"
#include "failing_memory.h"
#include "grpc_server.h"
#include "patience.h"
#include "server/storage/grpc/channel.h"
#include "server/storage/grpc/prefix.h"

/* No time passes, so nothing ends by a deadline: who lacks something says so himself. */
static hf_nsec read_boot(void *ctx) { return 1000 * SEC; }

static const struct hf_clock still_clock = {.size = sizeof still_clock, .boot = read_boot};
static const struct hf_host host = {.size = sizeof(struct hf_host), .clock = &still_clock};

static struct {
        int port, end; /* end: the server stops when it is closed */
        pid_t server;
        struct hfd_grpc_endpoint endpoint;
        struct hfd_grpc_channel *channel;
} f;

/* ---- the server ---- */

static void serve_until(int end, int port_to) {
        static struct grpc_server server;
        char byte;

        grpc_server_start(&server);
        if (write(port_to, &server.base.port, sizeof server.base.port) < 0)
                _exit(1);
        (void)!read(end, &byte, 1);
        grpc_server_stop(&server);
        _exit(0);
}

static int start_server(void **state) {
        int port[2], end[2];

        if (pipe(port) != 0 || pipe(end) != 0)
                return 1;
        f.server = fork();
        if (f.server == 0) {
                close(end[1]);
                serve_until(end[0], port[1]);
        }
        f.end = end[1];
        close(end[0]);
        close(port[1]);
        ssize_t n = read(port[0], &f.port, sizeof f.port);
        close(port[0]);
        return n == sizeof f.port ? 0 : 1;
}

static int stop_server(void **state) {
        int status;

        close(f.end);
        return waitpid(f.server, &status, 0) == f.server && status == 0 ? 0 : 1;
}

int __real_getaddrinfo(const char *node, const char *port, const struct addrinfo *hints,
                       struct addrinfo **ret);
int __wrap_getaddrinfo(const char *node, const char *port, const struct addrinfo *hints,
                       struct addrinfo **ret);

/* The one name that has an address is looked up on a thread of its own. */
int __wrap_getaddrinfo(const char *node, const char *port, const struct addrinfo *hints,
                       struct addrinfo **ret) {
        bool is_name = node && strcmp(node, "server.test") == 0;

        if (is_name && !(hints->ai_flags & AI_NUMERICHOST))
                node = "127.0.0.1";
        return __real_getaddrinfo(node, port, hints, ret);
}

/* ---- calls ---- */

struct call {
        struct hfd_grpc_stream stream;
        struct hf__buf *body;
        atomic_bool done;
        int outcome, status;
        char error_text[128], message[64];
};

static void on_done(void *ctx, const struct hfd_grpc_result *result) {
        struct call *call = ctx;

        call->outcome = result->outcome;
        call->status = result->status;
        (void)snprintf(call->error_text, sizeof call->error_text, "%.127s", result->error_text);
        if (result->message && result->n_message < sizeof call->message)
                memcpy(call->message, result->message, result->n_message);
        atomic_store(&call->done, true);
}

static void prepare(struct call *call) {
        *call = (struct call){.body = hf__buf_new(HFD_GRPC_PREFIX + 4)};
        hfd_grpc_prefix_write(call->body->data, 4);
        memcpy(call->body->data + HFD_GRPC_PREFIX, "echo", 4);
}

/* Returns how it ends. A response is a whole one. */
static int run(struct call *call) {
        const struct hfd_grpc_request request = {.path = "/test.Test/Test",
                                                 .body = call->body,
                                                 .deadline = HF_NSEC_NEVER,
                                                 .max_message = 4096,
                                                 .on_done = on_done,
                                                 .ctx = call};

        assert_int_equal(hfd_grpc_channel_start(f.channel, &call->stream, &request), 0);
        PATIENCE_AWAIT(atomic_load(&call->done));
        hf__buf_unref(call->body);
        if (call->outcome != 0)
                return call->outcome;
        assert_int_equal(call->status, 0);
        assert_string_equal(call->message, "echo");
        return 0;
}

static int make_channel(const char *name) {
        const struct hfd_grpc_channel_config config = {.thread_name = "test-grpc",
                                                       .host = &host,
                                                       .endpoints = &f.endpoint,
                                                       .n_endpoints = 1};
        struct hf_status status;
        char url[64];

        (void)snprintf(url, sizeof url, "http://%s:%d", name, f.port);
        assert_int_equal(hfd_grpc_endpoint_parse(url, &f.endpoint, &status), 0);
        f.channel = NULL;
        return hfd_grpc_channel_new(&config, &f.channel);
}

static void close_channel(void) {
        hfd_grpc_channel_stop(f.channel);
        hfd_grpc_channel_join(f.channel);
        hfd_grpc_channel_free(f.channel);
}

/* ---- tests ---- */

static void life(const char *name, int n) {
        struct call call, next;

        prepare(&call);
        failing_memory_arm(n);
        int made = make_channel(name); /* it begins to connect */
        int r = made == 0 ? run(&call) : made;
        failing_memory_disarm();
        if (!failing_memory_hit())
                assert_int_equal(r, 0);
        assert_true(r == 0 || r == HF_E_UNAVAILABLE || r == HF_E_TIMEOUT || is_shortage(r));
        if (made != 0) {
                assert_true(is_shortage(made));
                hf__buf_unref(call.body);
                return;
        }
        prepare(&next);
        assert_int_equal(run(&next), 0);
        close_channel();
}

static void life_of_a_name(int n) { life("server.test", n); }
static void life_of_an_address(int n) { life("127.0.0.1", n); }

static void test_a_call_without_memory_ends(void **state) {
        failing_memory_try_all(life_of_a_name, 6);
        failing_memory_try_all(life_of_an_address, 5);
}

/* So many further descriptors can be opened. */
static void allow_descriptors(rlim_t n) {
        struct rlimit limit;
        int lowest = dup(f.end);

        close(lowest);
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
        limit.rlim_cur = (rlim_t)lowest + n;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* First the channel has none for itself, and then none for a connection. */
static void test_a_channel_without_descriptors_is_refused(void **state) {
        struct rlimit before;
        unsigned n_before = count_descriptors(), n_refused = 0, n_unavailable = 0;
        int r = -1;

        assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
        for (rlim_t n = 0; r != 0; n++) {
                struct call call;
                allow_descriptors(n);
                r = make_channel("127.0.0.1");
                assert_true((r == 0) == (f.channel != NULL));
                if (r == 0) {
                        prepare(&call);
                        r = run(&call);
                        assert_true(r == 0 || r == HF_E_UNAVAILABLE);
                        if (r != 0)
                                assert_string_equal(call.error_text,
                                                    "cannot connect: Too many open files");
                        n_unavailable += r != 0;
                        close_channel();
                } else {
                        assert_int_equal(r, -EMFILE);
                        n_refused++;
                }
                assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
                assert_int_equal(count_descriptors(), n_before);
        }
        assert_true(n_refused >= 2);
        assert_true(n_unavailable >= 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_call_without_memory_ends),
                cmocka_unit_test(test_a_channel_without_descriptors_is_refused),
        };

        signal(SIGPIPE, SIG_IGN);
        return cmocka_run_group_tests(tests, start_server, stop_server);
}
