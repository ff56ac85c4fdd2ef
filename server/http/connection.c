/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection, from the accepted socket to its close.
 *
 * States: HANDSHAKE (TLS; the protocol is not known), OPEN (HTTP/1.1 or HTTP/2 by ALPN), LINGER (we
 * have said all and shut our direction; what the peer still sends is read and dropped, so that its
 * kernel does not answer our last bytes with a reset).
 *
 * Handshakes. Anybody can begin one, at 45 KiB for us and nothing for them, before we know who it
 * is. So they have a time and a number of their own, n_handshakes of the worker: counted from
 * hfd_connection_new until the state is left or the connection freed. The number is a fraction of
 * all connections, so that strangers leave room for those who finish theirs; beyond it the newest
 * is closed (and not the oldest: when many clients come back at once, each would end another's
 * half-made handshake).
 *
 * Output. The protocol fills the worker's one output buffer; TLS takes what the socket takes; the
 * rest, at most that buffer, is kept in `unsent`. While bytes are unsent nothing is read and the
 * protocol is not asked for more, so that a peer that does not read also cannot make us work.
 * TCP_NOTSENT_LOWAT keeps the kernel's share small.
 *
 * Freeing happens at one place, the end of hfd_connection_serve (and of the worker): others set
 * `dead` or `ending`.
 */
#include "server/http/connection.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>

#include "server/http/tls.h"

#define READS_PER_TURN  8 /* then others have their turn */
#define WRITES_PER_TURN 4
#define NOTSENT_LOWAT   (128 * 1024)

static void set_socket_options(int fd) {
        int on = 1, idle = 30, interval = 10, count = 3, lowat = NOTSENT_LOWAT,
            user_timeout_ms = 60000;

        /* None of them is needed for correct service, so a failure (a unix socket) is nobody's
         * business. */
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_timeout_ms,
                         sizeof user_timeout_ms);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &lowat, sizeof lowat);
}

int hfd_connection_new(struct hfd_worker *worker, int fd, const struct sockaddr_storage *address) {
        struct hfd_http *http = worker->http;
        struct hfd_connection *connection;
        struct epoll_event event = {.events = EPOLLIN};
        SSL_CTX *tls;
        int r;

        if (worker->n_handshakes >= http->max_handshakes)
                return HF_E_TOO_LARGE;
        event.data.ptr = connection = calloc(1, sizeof *connection);
        if (!connection)
                return -ENOMEM;
        set_socket_options(fd);
        pthread_mutex_lock(&http->mu);
        tls = http->tls;
        SSL_CTX_up_ref(tls);
        pthread_mutex_unlock(&http->mu);
        connection->ssl = hfd_tls_accept(tls, fd, &connection->bad_cert);
        SSL_CTX_free(tls);
        r = connection->ssl ? hfd_origin_new(address, &connection->origin) : -ENOMEM;
        if (r == 0 && epoll_ctl(worker->epoll, EPOLL_CTL_ADD, fd, &event))
                r = -errno;
        if (r != 0) {
                SSL_free(connection->ssl);
                hfd_origin_unref(connection->origin);
                free(connection);
                return r;
        }
        connection->fd = fd;
        connection->worker = worker;
        connection->events = EPOLLIN;
        connection->since = worker->now;
        connection->next = worker->connections;
        if (connection->next)
                connection->next->prev = connection;
        worker->connections = connection;
        worker->n_handshakes++;
        return 0;
}

static void close_protocol(struct hfd_connection *connection) {
        if (connection->protocol_state)
                connection->protocol->close(connection);
        connection->protocol_state = NULL;
}

void hfd_connection_free(struct hfd_connection *connection) {
        struct hfd_worker *worker = connection->worker;

        close_protocol(connection);
        if (connection->state == HFD_CONNECTION_HANDSHAKE)
                worker->n_handshakes--;
        if (connection->is_dirty) {
                struct hfd_connection **at = &worker->dirty;

                while (*at != connection)
                        at = &(*at)->dirty_next;
                *at = connection->dirty_next;
                if (!*at)
                        worker->dirty_tail = at;
        }
        if (connection->next)
                connection->next->prev = connection->prev;
        if (connection->prev)
                connection->prev->next = connection->next;
        else
                worker->connections = connection->next;
        SSL_free(connection->ssl);
        close(connection->fd);
        hfd_origin_unref(connection->origin);
        free(connection->unsent);
        free(connection);
        hfd_http_connection_gone(worker->http);
}

void hfd_connection_mark(struct hfd_connection *connection) {
        struct hfd_worker *worker = connection->worker;

        if (connection->is_dirty)
                return;
        connection->is_dirty = true;
        connection->dirty_next = NULL;
        *worker->dirty_tail = connection;
        worker->dirty_tail = &connection->dirty_next;
}

/* Begins the end: our direction is shut, the peer's is drained for a moment. */
static void linger(struct hfd_connection *connection) {
        close_protocol(connection);
        ERR_clear_error();
        (void)SSL_shutdown(connection->ssl); /* says goodbye; does not wait for the peer's */
        if (shutdown(connection->fd, SHUT_WR)) {
                connection->dead = true;
                return;
        }
        connection->state = HFD_CONNECTION_LINGER;
        connection->since = connection->worker->now;
}

static void drop_input(struct hfd_connection *connection) {
        for (int i = 0; i < READS_PER_TURN; i++) {
                ssize_t n = recv(connection->fd, connection->worker->in, HFD_IN_SPACE, 0);

                if (n < 0 && (errno == EAGAIN || errno == EINTR))
                        return;
                if (n <= 0) {
                        connection->dead = true;
                        return;
                }
        }
}

static void handshake(struct hfd_connection *connection) {
        int r, e;

        ERR_clear_error();
        connection->tls_wants_write = false;
        r = SSL_do_handshake(connection->ssl);
        if (r != 1) {
                e = SSL_get_error(connection->ssl, r);
                if (e == SSL_ERROR_WANT_WRITE)
                        connection->tls_wants_write = true;
                else if (e != SSL_ERROR_WANT_READ)
                        connection->dead = true;
                return;
        }
        connection->protocol = hfd_tls_is_h2(connection->ssl) ? &hfd_h2 : &hfd_h1;
        connection->since = connection->worker->now;
        if (hfd_tls_peer(connection->ssl, connection->bad_cert, connection->origin) ||
            connection->protocol->open(connection)) {
                connection->dead = true;
                return;
        }
        connection->state = HFD_CONNECTION_OPEN;
        connection->worker->n_handshakes--;
        if (connection->worker->draining)
                connection->protocol->drain(connection);
}

static void read_some(struct hfd_connection *connection) {
        struct hfd_worker *worker = connection->worker;

        for (int i = 0; i < READS_PER_TURN; i++) {
                int n;

                if (connection->ending || !connection->protocol->wants_input(connection))
                        return;
                ERR_clear_error();
                n = SSL_read(connection->ssl, worker->in, HFD_IN_SPACE);
                if (n <= 0) {
                        int r = SSL_get_error(connection->ssl, n);

                        /* The end of the stream is the end of the connection: nobody answers a peer
                         * that hung up. */
                        if (r != SSL_ERROR_WANT_READ && r != SSL_ERROR_WANT_WRITE)
                                connection->dead = true;
                        return;
                }
                if (connection->protocol->input(connection, worker->in, (size_t)n))
                        connection->ending = true;
        }
        hfd_connection_mark(connection);
}

/* Writes as much as goes. Returns how many bytes were taken. */
static size_t write_tls(struct hfd_connection *connection, const char *data, size_t n) {
        size_t done = 0;

        while (done < n && !connection->dead) {
                int w, r;

                ERR_clear_error();
                w = SSL_write(connection->ssl, data + done, (int)(n - done));
                if (w > 0) {
                        done += (size_t)w;
                        connection->since = connection->worker->now;
                        continue;
                }
                r = SSL_get_error(connection->ssl, w);
                if (r == SSL_ERROR_WANT_WRITE || r == SSL_ERROR_WANT_READ)
                        break;
                connection->dead = true;
        }
        return done;
}

/* True when nothing is unsent afterwards. */
static bool flush_unsent(struct hfd_connection *connection) {
        if (!connection->unsent)
                return true;
        connection->unsent_at += write_tls(connection, connection->unsent + connection->unsent_at,
                                           connection->unsent_n - connection->unsent_at);
        if (connection->unsent_at < connection->unsent_n)
                return false;
        free(connection->unsent);
        connection->unsent = NULL;
        return true;
}

static void keep_unsent(struct hfd_connection *connection, const char *data, size_t n) {
        connection->unsent = malloc(n);
        if (!connection->unsent) {
                connection->dead = true;
                return;
        }
        memcpy(connection->unsent, data, n);
        connection->unsent_at = 0;
        connection->unsent_n = n;
}

static void flush(struct hfd_connection *connection) {
        struct hfd_worker *worker = connection->worker;

        for (int i = 0; i < WRITES_PER_TURN; i++) {
                size_t n, done;

                n = connection->protocol->fill(connection, worker->out);
                if (connection->dead)
                        return;
                if (n == 0) {
                        if (connection->ending || connection->protocol->finished(connection))
                                linger(connection);
                        return;
                }
                done = write_tls(connection, worker->out, n);
                if (connection->dead)
                        return;
                if (done < n) {
                        keep_unsent(connection, worker->out + done, n - done);
                        return;
                }
        }
        hfd_connection_mark(connection); /* more to say, after the others */
}

static void ask_epoll(struct hfd_connection *connection) {
        struct epoll_event event = {.data.ptr = connection};

        switch (connection->state) {
        case HFD_CONNECTION_HANDSHAKE:
                event.events = connection->tls_wants_write ? EPOLLOUT : EPOLLIN;
                break;
        case HFD_CONNECTION_LINGER: event.events = EPOLLIN; break;
        case HFD_CONNECTION_OPEN:
                if (connection->unsent)
                        event.events = EPOLLOUT;
                else
                        event.events =
                                EPOLLRDHUP |
                                (connection->protocol->wants_input(connection) ? EPOLLIN : 0);
                break;
        }
        if (event.events == connection->events)
                return;
        connection->events = event.events;
        if (epoll_ctl(connection->worker->epoll, EPOLL_CTL_MOD, connection->fd, &event))
                connection->dead = true;
}

void hfd_connection_serve(struct hfd_connection *connection, uint32_t events) {
        if (connection->state != HFD_CONNECTION_LINGER && events & (EPOLLERR | EPOLLHUP))
                connection->dead = true;
        if (!connection->dead && connection->state == HFD_CONNECTION_HANDSHAKE)
                handshake(connection);
        if (!connection->dead && connection->state == HFD_CONNECTION_OPEN) {
                if (events & EPOLLRDHUP && !(connection->events & EPOLLIN))
                        connection->dead = true; /* nothing is read that would show it */
                else if (flush_unsent(connection) && !connection->dead) {
                        read_some(connection);
                        if (!connection->dead)
                                flush(connection);
                }
        }
        if (!connection->dead && connection->state == HFD_CONNECTION_LINGER)
                drop_input(connection);
        if (!connection->dead)
                ask_epoll(connection);
        if (connection->dead)
                hfd_connection_free(connection);
}

void hfd_connection_tick(struct hfd_connection *connection, hf_nsec now) {
        hf_nsec age = now - connection->since;

        switch (connection->state) {
        case HFD_CONNECTION_HANDSHAKE: connection->dead |= age > HFD_HANDSHAKE_TIME; break;
        case HFD_CONNECTION_LINGER: connection->dead |= age > HFD_LINGER_TIME; break;
        case HFD_CONNECTION_OPEN:
                if (connection->unsent)
                        connection->dead |= age > HFD_IDLE_TIME;
                else
                        connection->protocol->tick(connection, now);
                break;
        }
        if (connection->dead)
                hfd_connection_mark(connection);
}

/* ---- for the protocols ---- */

int hfd_connection_account_body(struct hfd_connection *connection, size_t n) {
        struct hfd_http *http = connection->worker->http;
        size_t total = atomic_fetch_add_explicit(&http->body_bytes, n, memory_order_relaxed) + n;

        connection->body_bytes += n;
        if (total > HFD_TOTAL_BODY || connection->body_bytes > HFD_CONNECTION_BODY)
                return HF_E_TOO_LARGE;
        return 0;
}

void hfd_connection_detach(struct hfd_connection *connection, struct hfd_http_request *request) {
        connection->body_bytes -= request->n_body;
        atomic_fetch_sub_explicit(&connection->worker->http->body_bytes, request->n_body,
                                  memory_order_relaxed);
        hfd_http_request_detach(request);
}

void hfd_connection_show_head(struct hfd_connection *connection, struct hfd_http_request *request) {
        struct hfd_http *http = connection->worker->http;

        if (http->on_head)
                http->on_head(http->ctx, request);
}

void hfd_connection_dispatch(struct hfd_connection *connection, struct hfd_http_request *request) {
        struct hfd_http *http = connection->worker->http;

        request->received_at = connection->worker->now;
        request->received = request->dispatched = true;
        http->handler(http->ctx, hfd_http_request_ref(request));
}

void hfd_connection_refuse(struct hfd_connection *connection, struct hfd_http_request *request,
                           int code) {
        const char *phrase = hfd_reason_phrase(code);
        char status[256];
        int n = snprintf(status, sizeof status,
                         "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":"
                         "\"Failure\",\"message\":\"Request entity "
                         "too "
                         "large: limit is "
                         "%zu\",\"reason\":\"RequestEntityTooLarge\",\"code\":413}\n",
                         connection->worker->http->max_body);
        /* The one refusal that a well-behaved client meets: kubectl shows the message of a Status,
         * and nothing of a text. */
        bool too_large = code == 413 && n > 0 && (size_t)n < sizeof status;
        struct hf__buf *body =
                too_large ? hf__buf_copy(status, (size_t)n) : hf__buf_copy(phrase, strlen(phrase));

        request->answered_early = true;
        hfd_http_request_reply(request, code, too_large ? "application/json" : "text/plain", NULL,
                               0, body);
        hf__buf_unref(body);
}

const char *hfd_reason_phrase(int code) {
        static const struct {
                int code;
                const char *phrase;
        } phrases[] = {{100, "Continue"},
                       {200, "OK"},
                       {201, "Created"},
                       {202, "Accepted"},
                       {204, "No Content"},
                       {301, "Moved Permanently"},
                       {302, "Found"},
                       {304, "Not Modified"},
                       {307, "Temporary Redirect"},
                       {400, "Bad Request"},
                       {401, "Unauthorized"},
                       {403, "Forbidden"},
                       {404, "Not Found"},
                       {405, "Method Not Allowed"},
                       {406, "Not Acceptable"},
                       {408, "Request Timeout"},
                       {409, "Conflict"},
                       {410, "Gone"},
                       {413, "Content Too Large"},
                       {415, "Unsupported Media Type"},
                       {417, "Expectation Failed"},
                       {422, "Unprocessable Content"},
                       {429, "Too Many Requests"},
                       {431, "Request Header Fields Too Large"},
                       {500, "Internal Server Error"},
                       {501, "Not Implemented"},
                       {503, "Service Unavailable"},
                       {504, "Gateway Timeout"},
                       {505, "HTTP Version Not Supported"}};

        for (size_t i = 0; i < sizeof phrases / sizeof phrases[0]; i++)
                if (phrases[i].code == code)
                        return phrases[i].phrase;
        return "Status";
}
