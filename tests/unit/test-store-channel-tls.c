/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS to the store over a pair of sockets: which servers a session trusts, how it ends, and
 * when it only waits. The server is OpenSSL; the certificates are those of openssl(1).
 */
#undef NDEBUG
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/buf.h"
#include "grpc_server.h"
#include "patience.h"
#include "pki_dir.h"
#include "server/storage/grpc/channel.h"
#include "server/storage/grpc/grpc_tls.h"
#include "server/storage/grpc/prefix.h"

#define NEW_KEY "openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
#define SIGN    "openssl x509 -req -days 2 -CA ca.pem -CAkey ca.key -CAcreateserial "

static char texts[6][4096];
static const char *const ca = texts[0], *const other_ca = texts[1], *const cert = texts[2],
                         *const key = texts[3], *const server_cert = texts[4],
                         *const server_key = texts[5];

static int make_certificates(void **state) {
        static const char *const names[] = {"ca.pem",     "other.pem",  "client.pem",
                                            "client.key", "server.pem", "server.key"};
        static const char *const commands[] = {
                NEW_KEY "-x509 -days 2 -keyout ca.key -out ca.pem -subj /CN=ca",
                NEW_KEY "-x509 -days 2 -keyout other.key -out other.pem -subj /CN=other",
                NEW_KEY "-keyout client.key -out c.csr -subj /CN=client",
                SIGN "-in c.csr -out client.pem",
                NEW_KEY "-keyout server.key -out s.csr -subj /CN=server",
                "echo subjectAltName=DNS:etcd.test,IP:127.0.0.1 > ext",
                SIGN "-in s.csr -out server.pem -extfile ext",
        };

        if (pki_dir_make(state) != 0)
                return 1;
        for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
                if (!pki_dir_says(pki_dir, commands[i], ""))
                        return 1;
        for (size_t i = 0; i < 6; i++) {
                char path[128];
                (void)snprintf(path, sizeof path, "%s/%s", pki_dir, names[i]);
                FILE *file = fopen(path, "r");
                if (!file)
                        return 1;
                texts[i][fread(texts[i], 1, sizeof texts[i] - 1, file)] = '\0';
                (void)fclose(file);
        }
        return 0;
}

/* ---- replaced functions ---- */

static SSL_CTX *listener_ctx;      /* of the server: its thread opens a session at the same time */
static atomic_bool has_no_session; /* OpenSSL has no memory for the client's next one */
static atomic_bool writes_fail;    /* those of the client */

SSL *__real_SSL_new(SSL_CTX *ctx);
SSL *__wrap_SSL_new(SSL_CTX *ctx);

SSL *__wrap_SSL_new(SSL_CTX *ctx) {
        if (ctx == listener_ctx || !atomic_exchange(&has_no_session, false))
                return __real_SSL_new(ctx);
        ERR_raise(ERR_LIB_SSL, ERR_R_MALLOC_FAILURE);
        return NULL;
}

int __real_SSL_write_ex(SSL *ssl, const void *data, size_t n, size_t *ret_n);
int __wrap_SSL_write_ex(SSL *ssl, const void *data, size_t n, size_t *ret_n);

int __wrap_SSL_write_ex(SSL *ssl, const void *data, size_t n, size_t *ret_n) {
        if (!atomic_load(&writes_fail))
                return __real_SSL_write_ex(ssl, data, n, ret_n);
        ERR_raise(ERR_LIB_SSL, ERR_R_INTERNAL_ERROR);
        return 0;
}

/* ---- the two ends ---- */

static struct {
        struct hfd_grpc_tls *tls;
        struct ssl_st *session;
        SSL_CTX *server_ctx;
        SSL *server;
        int fds[2]; /* the client's and the server's */
        struct hf_status status;
} f;

static int choose_h2(SSL *ssl, const unsigned char **out, unsigned char *n_out,
                     const unsigned char *in, unsigned n_in, void *ctx) {
        static const unsigned char h2[] = "\x02h2";

        return SSL_select_next_proto((unsigned char **)out, n_out, h2, sizeof h2 - 1, in, n_in) ==
                               OPENSSL_NPN_NEGOTIATED
                       ? SSL_TLSEXT_ERR_OK
                       : SSL_TLSEXT_ERR_ALERT_FATAL;
}

struct server_spec {
        bool no_h2, wants_certificate;
};

static void begin(const char *host, const char *trusted, bool has_certificate,
                  struct server_spec spec) {
        char path[128];

        memset(&f, 0, sizeof f);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, f.fds), 0);
        f.server_ctx = SSL_CTX_new(TLS_server_method());
        (void)snprintf(path, sizeof path, "%s/server.pem", pki_dir);
        assert_int_equal(SSL_CTX_use_certificate_file(f.server_ctx, path, SSL_FILETYPE_PEM), 1);
        (void)snprintf(path, sizeof path, "%s/server.key", pki_dir);
        assert_int_equal(SSL_CTX_use_PrivateKey_file(f.server_ctx, path, SSL_FILETYPE_PEM), 1);
        (void)snprintf(path, sizeof path, "%s/ca.pem", pki_dir);
        assert_int_equal(SSL_CTX_load_verify_locations(f.server_ctx, path, NULL), 1);
        if (!spec.no_h2)
                SSL_CTX_set_alpn_select_cb(f.server_ctx, choose_h2, NULL);
        if (spec.wants_certificate)
                SSL_CTX_set_verify(f.server_ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                                   NULL);
        f.server = SSL_new(f.server_ctx);
        assert_int_equal(SSL_set_fd(f.server, f.fds[1]), 1);
        SSL_set_accept_state(f.server);
        assert_int_equal(hfd_grpc_tls_new(trusted, has_certificate ? cert : NULL,
                                          has_certificate ? key : NULL, &f.tls, &f.status),
                         0);
        f.session = hfd_grpc_tls_open(f.tls, f.fds[0], host);
        assert_non_null(f.session);
}

static void close_server(void) {
        SSL_free(f.server);
        SSL_CTX_free(f.server_ctx);
        close(f.fds[1]);
        f.server = NULL;
}

static void end(void) {
        hfd_grpc_tls_close(f.session);
        assert_null(hfd_grpc_tls_free(f.tls));
        if (f.server)
                close_server();
        close(f.fds[0]);
        ERR_clear_error();
}

/* What the client's handshake ends with. */
static int shake_hands(void) {
        int r = -EAGAIN;

        for (int i = 0; i < 20 && r == -EAGAIN; i++) {
                r = hfd_grpc_tls_handshake(f.session, &f.status);
                (void)SSL_do_handshake(f.server);
                ERR_clear_error();
        }
        return r;
}

static int receive(char *data, size_t n, size_t *ret_n) {
        return hfd_grpc_tls_read(f.session, data, n, ret_n, &f.status);
}

/* ---- whom it trusts ---- */

static void test_a_server_with_the_name_is_trusted(void **state) {
        static const char *const hosts[] = {"etcd.test", "127.0.0.1"};

        for (size_t i = 0; i < 2; i++) {
                begin(hosts[i], ca, false, (struct server_spec){0});
                assert_int_equal(shake_hands(), 0);
                const char *sent = SSL_get_servername(f.server, TLSEXT_NAMETYPE_host_name);
                if (i == 0)
                        assert_string_equal(sent, "etcd.test");
                else
                        assert_null(sent); /* an address is no name */
                assert_true(SSL_version(f.server) >= TLS1_2_VERSION);
                end();
        }
}

static void test_a_server_with_another_name_is_refused(void **state) {
        static const struct {
                const char *host, *trusted, *message;
        } cases[] = {{"other.test", ca, "the server's certificate: hostname mismatch"},
                     {"127.0.0.2", ca, "the server's certificate: IP address mismatch"},
                     {"::1", ca, "the server's certificate: IP address mismatch"},
                     {"etcd.test", other_ca, "the server's certificate: "}};

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                begin(cases[i].host, cases[i].trusted, false, (struct server_spec){0});
                assert_int_equal(shake_hands(), HF_E_UNAUTHORIZED);
                assert_ptr_equal(strstr(f.status.message, cases[i].message), f.status.message);
                assert_int_equal(ERR_peek_error(), 0);
                end();
        }
        begin("etcd.test", NULL, false, (struct server_spec){0}); /* the system's CAs */
        assert_int_equal(shake_hands(), HF_E_UNAUTHORIZED);
        end();
}

static void test_a_server_without_http2_is_left(void **state) {
        begin("etcd.test", ca, false, (struct server_spec){.no_h2 = true});
        assert_int_equal(shake_hands(), HF_E_UNAVAILABLE);
        assert_string_equal(f.status.message, "the server speaks no HTTP/2");
        end();
}

/* With TLS 1.3 the client hears of it after its own handshake. */
static void test_a_server_may_want_a_certificate(void **state) {
        char data[16];
        size_t n;

        begin("etcd.test", ca, true, (struct server_spec){.wants_certificate = true});
        assert_int_equal(shake_hands(), 0);
        assert_int_equal(SSL_do_handshake(f.server), 1);
        end();
        begin("etcd.test", ca, false, (struct server_spec){.wants_certificate = true});
        assert_int_equal(shake_hands(), 0);
        (void)SSL_do_handshake(f.server);
        assert_int_equal(receive(data, sizeof data, &n), HF_E_UNAUTHORIZED);
        assert_non_null(strstr(f.status.message, "the server says: "));
        assert_non_null(strstr(f.status.message, "certificate required"));
        end();
}

static void test_a_peer_without_tls_is_told_apart(void **state) {
        static const char text[] = "HTTP/1.1 400 Bad Request\r\n\r\n";

        begin("etcd.test", ca, false, (struct server_spec){0});
        assert_int_equal(write(f.fds[1], text, sizeof text - 1), sizeof text - 1);
        assert_int_equal(hfd_grpc_tls_handshake(f.session, &f.status), HF_E_UNAVAILABLE);
        assert_string_equal(f.status.message, "wrong version number");
        end();
}

/* ---- bytes ---- */

static void test_bytes_arrive_in_both_directions(void **state) {
        char data[64];
        size_t n = 0;

        begin("etcd.test", ca, false, (struct server_spec){0});
        assert_int_equal(shake_hands(), 0);
        assert_int_equal(receive(data, sizeof data, &n), -EAGAIN);
        assert_int_equal(SSL_write(f.server, "hello", 5), 5);
        assert_int_equal(receive(data, 3, &n), 0);
        assert_int_equal(n, 3);
        assert_memory_equal(data, "hel", 3);
        assert_int_equal(receive(data, sizeof data, &n), 0);
        assert_int_equal(n, 2);
        assert_int_equal(receive(data, sizeof data, &n), -EAGAIN);
        assert_int_equal(hfd_grpc_tls_write(f.session, "there", 5, &n, &f.status), 0);
        assert_int_equal(n, 5);
        assert_int_equal(SSL_read(f.server, data, sizeof data), 5);
        assert_memory_equal(data, "there", 5);
        close_server();
        assert_int_equal(receive(data, sizeof data, &n), HF_E_UNAVAILABLE);
        assert_true(f.status.message[0] != '\0');
        end();
}

/* A write is repeated from another address: what the socket has not taken is copied meanwhile. */
static void test_a_full_socket_takes_the_rest_later(void **state) {
        static char data[1 << 20], again[1 << 20], back[1 << 20];
        size_t n_sent = 0, n_back = 0, n;
        int r;

        for (size_t i = 0; i < sizeof data; i++)
                data[i] = (char)(i * 7 + i / 251);
        begin("etcd.test", ca, false, (struct server_spec){0});
        assert_int_equal(shake_hands(), 0);
        for (;;) {
                r = hfd_grpc_tls_write(f.session, data + n_sent, sizeof data - n_sent, &n,
                                       &f.status);
                if (r != 0)
                        break;
                n_sent += n;
        }
        assert_int_equal(r, -EINPROGRESS);
        assert_true(n_sent > 0 && n_sent < sizeof data);
        memcpy(again, data, sizeof data);
        while (n_back < sizeof data) {
                int n_read = SSL_read(f.server, back + n_back, (int)(sizeof back - n_back));
                if (n_read > 0)
                        n_back += (size_t)n_read;
                if (n_sent < sizeof data &&
                    hfd_grpc_tls_write(f.session, again + n_sent, sizeof again - n_sent, &n,
                                       &f.status) == 0)
                        n_sent += n;
                ERR_clear_error();
        }
        assert_int_equal(n_sent, sizeof data);
        assert_memory_equal(back, data, sizeof data);
        end();
}

/* What it says last is in the session's buffer already, so no call of the system sets errno: an
 * errno from before is no reason. */
static void test_a_peer_that_says_goodbye_has_closed_the_connection(void **state) {
        char data[16];
        size_t n;

        begin("etcd.test", ca, false, (struct server_spec){0});
        assert_int_equal(shake_hands(), 0);
        assert_int_equal(SSL_write(f.server, "hello", 5), 5);
        assert_int_equal(SSL_shutdown(f.server), 0);
        assert_int_equal(receive(data, sizeof data, &n), 0);
        assert_int_equal(n, 5);
        errno = EBADF;
        assert_int_equal(receive(data, sizeof data, &n), HF_E_UNAVAILABLE);
        assert_string_equal(f.status.message, "the connection was closed");
        end();
}

/* A peer that closes its socket without reading what is in it resets the connection. */
static void test_a_lost_connection_has_the_reason_of_the_system(void **state) {
        char data[16];
        size_t n;

        begin("etcd.test", ca, false, (struct server_spec){0});
        assert_int_equal(hfd_grpc_tls_handshake(f.session, &f.status), -EAGAIN);
        close_server();
        assert_int_equal(hfd_grpc_tls_handshake(f.session, &f.status), HF_E_UNAVAILABLE);
        assert_string_equal(f.status.message, "Connection reset by peer");
        end();
        begin("etcd.test", ca, false, (struct server_spec){0});
        assert_int_equal(shake_hands(), 0);
        assert_int_equal(hfd_grpc_tls_write(f.session, "there", 5, &n, &f.status), 0);
        close_server();
        assert_int_equal(receive(data, sizeof data, &n), HF_E_UNAVAILABLE);
        assert_string_equal(f.status.message, "Connection reset by peer");
        end();
        begin("etcd.test", ca, false, (struct server_spec){0});
        assert_int_equal(shake_hands(), 0);
        close_server();
        assert_int_equal(hfd_grpc_tls_write(f.session, "there", 5, &n, &f.status),
                         HF_E_UNAVAILABLE);
        assert_string_equal(f.status.message, "Broken pipe");
        end();
}

/* The queue of errors is the thread's, so nothing may stay in it. */
static void test_a_session_without_memory_is_none(void **state) {
        begin("etcd.test", ca, false, (struct server_spec){0});
        atomic_store(&has_no_session, true);
        assert_null(hfd_grpc_tls_open(f.tls, f.fds[0], "etcd.test"));
        assert_int_equal(ERR_peek_error(), 0);
        end();
}

/* The thread has other sessions, and what failed in one of them says nothing about this one. */
static void test_an_error_of_another_session_does_not_count(void **state) {
        static char data[1 << 20];
        size_t n;
        int r = 0;

        ERR_raise(ERR_LIB_USER, 1);
        begin("etcd.test", ca, false, (struct server_spec){0});
        ERR_raise(ERR_LIB_USER, 1);
        assert_int_equal(hfd_grpc_tls_handshake(f.session, &f.status), -EAGAIN);
        assert_int_equal(shake_hands(), 0);
        ERR_raise(ERR_LIB_USER, 1);
        assert_int_equal(receive(data, sizeof data, &n), -EAGAIN);
        while (r == 0) {
                ERR_raise(ERR_LIB_USER, 1);
                r = hfd_grpc_tls_write(f.session, data, sizeof data, &n, &f.status);
        }
        assert_int_equal(r, -EINPROGRESS);
        end();
}

/* A peer can use none of what has made TLS unsafe before, and no state is kept for later sessions.
 */
static void test_renegotiation_compression_and_a_cache_are_off(void **state) {
        const uint64_t off = SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION;

        begin("etcd.test", ca, false, (struct server_spec){0});
        assert_true((SSL_get_options(f.session) & off) == off);
        assert_int_equal(SSL_CTX_get_session_cache_mode(SSL_get_SSL_CTX(f.session)),
                         SSL_SESS_CACHE_OFF);
        end();
}

/* ---- unusable credentials ---- */

/* ---- a channel ---- */

static struct loopback_server listener; /* TLS, before `server` if the client wants HTTP/2 */
static struct grpc_server server;
static struct hfd_grpc_endpoint endpoint;
static struct hfd_grpc_channel *channel;

static bool send_all(SSL *ssl, int fd, const char *data, int n) {
        int r = SSL_write(ssl, data, n);

        while (r <= 0 && SSL_get_error(ssl, r) == SSL_ERROR_WANT_WRITE) {
                struct pollfd room = {.fd = fd, .events = POLLOUT};
                (void)poll(&room, 1, -1);
                r = SSL_write(ssl, data, n);
        }
        return r == n;
}

#define RECORD 48 /* bytes; of TLS to the client: so a response has several of them */

/* Passes bytes on in both directions until one side ends. */
static void relay(SSL *ssl, int fd, int inner) {
        char data[16384];
        bool open = true;

        while (open) {
                struct pollfd fds[] = {{.fd = fd, .events = POLLIN},
                                       {.fd = inner, .events = POLLIN}};
                if (SSL_pending(ssl) == 0)
                        (void)poll(fds, 2, -1);
                int n = SSL_read(ssl, data, sizeof data);
                if (n > 0)
                        open = loopback_server_send(inner, data, (size_t)n);
                else
                        open = SSL_get_error(ssl, n) == SSL_ERROR_WANT_READ;
                ssize_t n_back = open ? recv(inner, data, RECORD, MSG_DONTWAIT) : 0;
                if (n_back > 0)
                        open = send_all(ssl, fd, data, (int)n_back);
                else if (n_back == 0 || errno != EAGAIN)
                        open = false;
        }
}

static void serve_tls(void *ctx, int fd) {
        const struct sockaddr_in address = {.sin_family = AF_INET,
                                            .sin_port = htons((uint16_t)server.base.port),
                                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        const unsigned char *protocol = NULL;
        unsigned n_protocol = 0;
        SSL *ssl = SSL_new(ctx);

        if (SSL_set_fd(ssl, fd) == 1 && SSL_accept(ssl) == 1) {
                SSL_get0_alpn_selected(ssl, &protocol, &n_protocol);
                int inner = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
                if (n_protocol == 2 &&
                    connect(inner, (const struct sockaddr *)&address, sizeof address) == 0 &&
                    fcntl(fd, F_SETFL, O_NONBLOCK) == 0)
                        relay(ssl, fd, inner);
                else
                        loopback_server_wait_for_close(fd);
                close(inner);
        }
        ERR_clear_error();
        SSL_free(ssl);
}

struct call {
        struct hfd_grpc_stream stream;
        struct hf__buf *body;
        atomic_bool done;
        int outcome, status;
        char error_text[256], message[64];
};

static void on_done(void *ctx, const struct hfd_grpc_result *result) {
        struct call *call = ctx;

        call->outcome = result->outcome;
        call->status = result->status;
        (void)snprintf(call->error_text, sizeof call->error_text, "%.255s", result->error_text);
        if (result->message && result->n_message < sizeof call->message)
                memcpy(call->message, result->message, result->n_message);
        atomic_store(&call->done, true);
}

static void listen_with(bool has_h2) {
        char path[128];

        memset(&f, 0, sizeof f);
        listener_ctx = SSL_CTX_new(TLS_server_method());
        (void)snprintf(path, sizeof path, "%s/server.pem", pki_dir);
        assert_int_equal(SSL_CTX_use_certificate_file(listener_ctx, path, SSL_FILETYPE_PEM), 1);
        (void)snprintf(path, sizeof path, "%s/server.key", pki_dir);
        assert_int_equal(SSL_CTX_use_PrivateKey_file(listener_ctx, path, SSL_FILETYPE_PEM), 1);
        if (has_h2)
                SSL_CTX_set_alpn_select_cb(listener_ctx, choose_h2, NULL);
        grpc_server_start(&server);
        loopback_server_start(&listener, serve_tls, listener_ctx);
}

static void end_listening(void) {
        loopback_server_stop(&listener);
        grpc_server_stop(&server);
        SSL_CTX_free(listener_ctx);
}

static void open_channel(const char *trusted) {
        static const struct hf_host host = {.size = sizeof host};
        char url[64];

        (void)snprintf(url, sizeof url, "https://127.0.0.1:%d", listener.port);
        assert_int_equal(hfd_grpc_endpoint_parse(url, &endpoint, &f.status), 0);
        assert_int_equal(hfd_grpc_tls_new(trusted, NULL, NULL, &f.tls, &f.status), 0);
        const struct hfd_grpc_channel_config config = {.thread_name = "test-grpc",
                                                       .host = &host,
                                                       .endpoints = &endpoint,
                                                       .n_endpoints = 1,
                                                       .tls = f.tls};
        assert_int_equal(hfd_grpc_channel_new(&config, &channel), 0);
}

static void close_channel(void) {
        hfd_grpc_channel_stop(channel);
        hfd_grpc_channel_join(channel);
        hfd_grpc_channel_free(channel);
        assert_null(hfd_grpc_tls_free(f.tls));
}

static void start(struct call *call, const char *text, size_t n_filler) {
        size_t n = strlen(text) + n_filler;

        *call = (struct call){.outcome = -1, .body = hf__buf_new(HFD_GRPC_PREFIX + n)};
        hfd_grpc_prefix_write(call->body->data, (uint32_t)n);
        memset(call->body->data + HFD_GRPC_PREFIX, '.', n);
        memcpy(call->body->data + HFD_GRPC_PREFIX, text, strlen(text));
        const struct hfd_grpc_request request = {.path = "/test.Test/Test",
                                                 .body = call->body,
                                                 .deadline = HF_NSEC_NEVER,
                                                 .max_message = 4096,
                                                 .on_done = on_done,
                                                 .ctx = call};
        assert_int_equal(hfd_grpc_channel_start(channel, &call->stream, &request), 0);
}

static int await(struct call *call) {
        PATIENCE_AWAIT(atomic_load(&call->done));
        hf__buf_unref(call->body);
        return call->outcome;
}

static int call_with(struct call *call, const char *text) {
        start(call, text, 0);
        return await(call);
}

/* Waiting does not help, so the call has another error than one to an unreachable server. */
static void test_a_call_to_an_untrusted_server_is_unauthorized(void **state) {
        struct call call;

        listen_with(false);
        open_channel(other_ca);
        assert_int_equal(call_with(&call, "echo"), HF_E_UNAUTHORIZED);
        assert_non_null(strstr(call.error_text, "the server's certificate: "));
        close_channel();
        open_channel(ca); /* it is trusted, and speaks no HTTP/2 */
        assert_int_equal(call_with(&call, "echo"), HF_E_UNAVAILABLE);
        assert_string_equal(call.error_text, "the server speaks no HTTP/2");
        close_channel();
        end_listening();
}

static void test_calls_work_over_tls(void **state) {
        enum { LARGE = 60000, N = 10 };
        struct call call, large[N];

        listen_with(true);
        open_channel(ca);
        assert_int_equal(call_with(&call, "echo"), 0);
        assert_int_equal(call.status, 0);
        assert_string_equal(call.message, "echo");
        for (int i = 0; i < 20; i++) {
                assert_int_equal(call_with(&call, "piece by piece"), 0);
                assert_string_equal(call.message, "piece by piece");
        }
        int before = atomic_load(&server.n_data);
        for (int i = 0; i < N; i++)
                start(&large[i], "nothing", LARGE);
        PATIENCE_AWAIT(atomic_load(&server.n_data) - before > N * LARGE);
        assert_int_equal(call_with(&call, "echo"), 0);
        assert_int_equal(atomic_load(&listener.n_connections), 1);
        assert_int_equal(call_with(&call, "close"), HF_E_TIMEOUT);
        assert_string_equal(call.error_text, "unexpected eof while reading"); /* at once */
        for (int i = 0; i < N; i++)
                assert_int_equal(await(&large[i]), HF_E_TIMEOUT);
        assert_int_equal(call_with(&call, "echo"), 0); /* on a new connection */
        assert_int_equal(atomic_load(&listener.n_connections), 2);
        close_channel();
        end_listening();
}

static void test_a_session_that_fails_ends_its_connection(void **state) {
        struct call call;

        listen_with(true);
        open_channel(ca);
        atomic_store(&has_no_session, true);
        assert_int_equal(call_with(&call, "echo"), HF_E_UNAVAILABLE);
        assert_string_equal(call.error_text, "out of memory");
        assert_int_equal(call_with(&call, "echo"), 0);
        atomic_store(&writes_fail, true);
        assert_int_equal(call_with(&call, "echo"), HF_E_UNAVAILABLE);
        assert_string_equal(call.error_text, "internal error");
        atomic_store(&writes_fail, false);
        assert_int_equal(call_with(&call, "echo"), 0);
        close_channel();
        end_listening();
}

static void test_unusable_texts_are_refused(void **state) {
        static const struct {
                const char *ca, *cert, *key, *message;
        } cases[] = {
                {ca, cert, NULL, "etcd needs the client certificate and its key, or neither"},
                {ca, NULL, key, "etcd needs the client certificate and its key, or neither"},
                {"nonsense", NULL, NULL, "the CA of etcd is not usable ("},
                {key, NULL, NULL, "the CA of etcd is not usable ("},
                {ca, "nonsense", key, "the client certificate for etcd is not usable ("},
                {ca, cert, "nonsense", "the client key for etcd is not usable ("},
                {ca, cert, server_key, "the client key for etcd is not usable ("},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hfd_grpc_tls *tls = NULL;
                struct hf_status status = {0};
                assert_int_equal(hfd_grpc_tls_new(cases[i].ca, cases[i].cert, cases[i].key, &tls,
                                                  &status),
                                 HF_E_INVALID);
                assert_null(tls);
                assert_int_equal(status.error, HF_E_INVALID);
                assert_ptr_equal(strstr(status.message, cases[i].message), status.message);
                assert_int_equal(ERR_peek_error(), 0);
        }
        assert_null(hfd_grpc_tls_free(NULL));
        assert_true(*server_cert != '\0');
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_server_with_the_name_is_trusted),
                cmocka_unit_test(test_a_server_with_another_name_is_refused),
                cmocka_unit_test(test_a_server_without_http2_is_left),
                cmocka_unit_test(test_a_server_may_want_a_certificate),
                cmocka_unit_test(test_a_peer_without_tls_is_told_apart),
                cmocka_unit_test(test_bytes_arrive_in_both_directions),
                cmocka_unit_test(test_a_full_socket_takes_the_rest_later),
                cmocka_unit_test(test_a_peer_that_says_goodbye_has_closed_the_connection),
                cmocka_unit_test(test_a_lost_connection_has_the_reason_of_the_system),
                cmocka_unit_test(test_a_session_without_memory_is_none),
                cmocka_unit_test(test_an_error_of_another_session_does_not_count),
                cmocka_unit_test(test_renegotiation_compression_and_a_cache_are_off),
                cmocka_unit_test(test_a_call_to_an_untrusted_server_is_unauthorized),
                cmocka_unit_test(test_calls_work_over_tls),
                cmocka_unit_test(test_a_session_that_fails_ends_its_connection),
                cmocka_unit_test(test_unusable_texts_are_refused),
        };

        signal(SIGPIPE, SIG_IGN);
        return cmocka_run_group_tests(tests, make_certificates, pki_dir_remove);
}
