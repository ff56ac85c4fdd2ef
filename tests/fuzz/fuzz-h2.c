/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the HTTP/2 protocol of a connection: what the peer sends after TLS. The connection and its
 * worker are real objects without a socket and a thread; the worker's part, to hand on messages and
 * to fetch the output, is done here. After the client's preface the input is a list of steps, each
 * a byte that says what happens and, for input, its length: bytes arrive, a second passes, the
 * server drains, held requests get responses. Handlers respond at once, later, in pieces, or never;
 * senders are strangers until a head says who they are.
 *
 * Each request must be dispatched at most once, with a method and a path, and when the connection
 * ends nothing of it may be left: no reference, no body byte in the account.
 */
#undef NDEBUG
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/http/connection/connection.h"
#include "server/http/protocol/h2.h"
#include "server/http/request/http_response.h"
#include "server/http/request/origin.h"

#define MAX_HELD 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
/* By the linker's --wrap: there is one thread. */
bool __wrap_hfd_worker_mailbox_is_current(const struct hfd_worker_mailbox *mailbox);
bool __wrap_hfd_worker_mailbox_is_current(const struct hfd_worker_mailbox *mailbox) {
        return mailbox != NULL;
}
/* There is no TLS. */
void __wrap_hfd_tls_keep_buffers(SSL *ssl, bool keep);
void __wrap_hfd_tls_keep_buffers(SSL *ssl, bool keep) { assert(!ssl); }

static struct hf_host host = {.size = sizeof host};
static struct hfd_http http;
static struct hfd_worker worker;
static struct hfd_http_request *held[MAX_HELD];
static size_t n_held, n_handled, n_finished;

static void on_finished(void *ctx, int code, size_t n_bytes) { n_finished++; }

static void reply(struct hfd_http_request *request) {
        static const struct hfd_header header = {"x-fuzz", "1"};
        size_t n;
        const char *body = hfd_http_request_body(request, &n);
        struct hf__buf *copy = hf__buf_copy(body, n);

        hfd_http_request_reply(request, 200, "text/plain", &header, 1, copy);
        hf__buf_unref(copy);
}

static void stream(struct hfd_http_request *request) {
        struct hf__buf *piece = hf__buf_copy("0123456789", 10);

        hfd_http_request_stream(request, 200, "text/plain", NULL, 0);
        for (int i = 0; i < 100; i++)
                (void)hfd_http_request_push(request, piece);
        hf__buf_unref(piece);
}

static void handle(void *ctx, struct hfd_http_request *request) {
        const char *path = hfd_http_request_path(request);

        n_handled++;
        assert(path && hfd_http_request_method(request)[0]);
        hfd_http_request_on_finished(request, on_finished, NULL);
        if (strcmp(path, "/hold") == 0 && n_held < MAX_HELD) {
                held[n_held++] = request;
                return;
        }
        if (strcmp(path, "/stream") == 0)
                stream(request);
        else
                reply(request);
        if (strcmp(path, "/stream") == 0 && strcmp(hfd_http_request_query(request), "open") != 0)
                hfd_http_request_end(request);
        hfd_http_request_unref(request);
}

/* Strangers are refused, or get a response without their body; all others are known. */
static enum hfd_http_verdict decide(void *ctx, struct hfd_http_request *request) {
        const char *path = hfd_http_request_path(request);

        if (strcmp(path, "/ignore") == 0)
                return HFD_HTTP_IGNORE_BODY;
        if (strcmp(path, "/refuse") != 0)
                return HFD_HTTP_READ_BODY;
        hfd_http_request_reply(request, 401, "text/plain", NULL, 0, NULL);
        return HFD_HTTP_REFUSED_STRANGER;
}

static void set_up(void) {
        if (http.workers)
                return;
        http = (struct hfd_http){.host = &host,
                                 .clock = hf_clock_system(),
                                 .max_body = 4096,
                                 .max_header_bytes = 4096,
                                 .max_connections = 8,
                                 .max_handshakes = 8,
                                 .max_strangers = 8,
                                 .handler = handle,
                                 .on_head = decide,
                                 .listen_fd = -1,
                                 .workers = &worker,
                                 .n_workers = 1};
        assert(hfd_worker_init(&worker, &http, 0) == 0);
}

/* What a worker does in each iteration. */
static void iterate(struct hfd_connection *connection) {
        struct hf__message *next, *message = hf__mailbox_take(&worker.mailbox.shared);

        for (; message; message = next) {
                struct hfd_http_request *request = (struct hfd_http_request *)message;

                next = message->next;
                void *ctx;
                (void)hfd_http_response_clear_posted(request, worker.now, &ctx);
                if (request->connection && connection)
                        connection->protocol->response_changed(connection, request);
                hfd_http_request_unref(request);
        }
        for (int i = 0; connection && i < 64 && !connection->dead; i++)
                if (connection->protocol->fill(connection, worker.out) == 0)
                        break;
        if (connection)
                hfd_connection_unmark_dirty(connection);
}

static void answer_held(void) {
        for (size_t i = 0; i < n_held; i++) {
                reply(held[i]);
                hfd_http_request_unref(held[i]);
        }
        n_held = 0;
}

/* One step; returns how many bytes of the input it used. */
static size_t step(struct hfd_connection *connection, const uint8_t *data, size_t n) {
        size_t n_input;

        switch (data[0]) {
        case 0xf0: worker.now += HF_NSEC_PER_SEC; break;
        case 0xf1: worker.now += HFD_IDLE_TIME; break;
        case 0xf2: connection->protocol->drain(connection); return 1;
        case 0xf3: answer_held(); return 1;
        default:
                n_input = n - 1 < data[0] ? n - 1 : data[0];
                if (connection->protocol->input(connection, (const char *)data + 1, n_input) != 0)
                        connection->dead = true;
                return 1 + n_input;
        }
        connection->protocol->tick(connection, worker.now);
        return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        struct hfd_connection connection = {.worker = &worker,
                                            .fd = -1,
                                            .state = HFD_CONNECTION_OPEN,
                                            .protocol = &hfd_h2};
        const struct sockaddr_storage nobody = {0};

        set_up();
        n_handled = n_finished = 0;
        worker.now = HF_NSEC_PER_SEC;
        if (hfd_origin_new(&nobody, &connection.origin) != 0 || hfd_h2.open(&connection) != 0)
                abort();
        assert(hfd_h2.input(&connection, preface, sizeof preface - 1) == 0);
        while (n > 0 && !connection.dead && !hfd_h2.finished(&connection)) {
                size_t used = step(&connection, data, n);

                data += used;
                n -= used;
                iterate(&connection);
        }
        hfd_h2.close(&connection);
        answer_held();
        iterate(NULL);
        assert(n_finished == n_handled && !connection.dirty_list);
        assert(connection.share.n == 0 && atomic_load(&http.account.known) == 0 &&
               atomic_load(&http.account.strangers) == 0 && connection.n_requests == 0);
        hfd_strangers_remove(&connection.stranger);
        hfd_origin_unref(connection.origin);
        return 0;
}
