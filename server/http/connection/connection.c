/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection, from the accepted socket to its close. connection_requests.c has the requests on
 * it.
 *
 * States, in this order; a connection may be freed in each of them:
 *
 *      HANDSHAKE   TLS; the protocol is not known yet
 *      OPEN        HTTP/1.1 or HTTP/2, as chosen by ALPN
 *      LINGER      everything was sent, and our direction of the socket is shut down. Input is read
 *                  and dropped: if a socket with unread input is closed, the kernel sends a reset,
 *                  which can destroy our last bytes before the peer reads them.
 *
 * Invariant: a connection is freed at one place only, the end of hfd_connection_serve (or the
 * worker's exit). All other code sets `dead` or `ending`, because its callers may still use the
 * connection, and events that epoll has reported point to it.
 *
 * Strangers. A client can connect and begin a handshake before we know who it is. It costs us up to
 * 45 KiB and the client little. Until its sender is known, a connection is in one of its worker's
 * two sets: `handshakes`, then `strangers`. Each has a maximum, which is a fraction of all
 * connections, so that strangers leave room for known senders. When a set is full, strangers.h
 * chooses the connection to close. The sockets of strangers are in an epoll of their own, of which
 * the worker serves one in each iteration, after all known senders. A sender becomes known by a
 * client certificate that verifies, or by the first request that on_head accepts for reading. The
 * sender becomes a stranger again by a request that names nobody, unless accepted requests are
 * still under way or the client certificate verifies: a sender whose token or certificate was
 * revoked must not keep a place for ever.
 *
 * Output. The protocol fills the worker's output buffer, and TLS writes what the socket accepts.
 * The rest, at most the size of that buffer, is copied to `unsent`. While bytes are unsent, nothing
 * is read and the protocol produces no more output, so that a peer which does not read cannot make
 * us work. TCP_NOTSENT_LOWAT limits the unsent bytes in the kernel.
 */
#include "server/http/connection/connection.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/thread.h"
#include "server/http/connection/tls.h"

/* Limits for one call of hfd_connection_serve, so that the other connections are served too. */
#define MAX_READS       8
#define MAX_WRITES      4
#define NOTSENT_LOWAT   (128 * 1024) /* bytes */
#define RECORD_MAX      (16 * 1024)  /* bytes in one record of TLS */
#define LINGER_BUFFER   (32 * 1024)  /* bytes; Linux allocates twice as much */
#define VERIFY_INTERVAL HF_NSEC_PER_SEC

/* A peer that vanishes without a word is noticed within a minute: by probes after 30 s without
 * traffic or, while bytes are not acknowledged, by TCP_USER_TIMEOUT. */
static void set_socket_options(int fd) {
        int on = 1, idle = 30, interval = 10, count = 3;
        int lowat = NOTSENT_LOWAT, user_timeout_ms = 60000;

        /* Service is correct without any of them, so failures (on a unix socket) are ignored. */
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_timeout_ms,
                         sizeof user_timeout_ms);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &lowat, sizeof lowat);
}

/* Returns the current TLS settings with a reference, because a reload may replace them at any time.
 * The caller drops the reference with SSL_CTX_free. */
static SSL_CTX *ref_tls(struct hfd_http *http) {
        SSL_CTX *tls;

        pthread_mutex_lock(&http->mu);
        tls = http->tls;
        assert(tls); /* the server listens, so it has settings */
        SSL_CTX_up_ref(tls);
        pthread_mutex_unlock(&http->mu);
        return tls;
}

/* Whether to verify the client certificate again, because time may have changed the result. Either
 * its chain has expired, though another chain may verify (of a CA that was renewed with its key).
 * Or the certificate was refused, perhaps because a clock was wrong. Unless there was a reload, it
 * is verified at most once per VERIFY_INTERVAL. */
static bool is_due(const struct hfd_connection *connection) {
        const struct hf_clock *clock = hf_host_clock(connection->worker->http->host);
        const struct hfd_origin *origin = connection->origin;

        return (atomic_load(&origin->refused) ||
                clock->real(clock->ctx) / HF_NSEC_PER_SEC > atomic_load(&origin->expires)) &&
               connection->worker->now >= connection->verify_at;
}

static bool has_good_cert(const struct hfd_connection *connection) {
        return connection->origin->kind == HFD_PEER_VERIFIED &&
               !atomic_load(&connection->origin->refused);
}

/* As in kube-apiserver, a certificate of a CA that is trusted no more names no user, also on a
 * connection that is open already, and one whose CA was unknown in the handshake names its user
 * once the CA is trusted. A watch that has begun goes on. After a shortage of memory, the old
 * result stands for the requests under way, and the next request verifies the certificate again. */
int hfd_connection_verify_again(struct hfd_connection *connection) {
        struct hfd_http *http = connection->worker->http;
        struct hfd_origin *origin = connection->origin;
        unsigned n = atomic_load(&http->n_reloads);
        int64_t expires = 0;

        if (origin->kind != HFD_PEER_VERIFIED ||
            (connection->n_reloads == n && !is_due(connection)))
                return 0;
        SSL_CTX *tls = ref_tls(http); /* of reload n, or of a later one */
        int r = hfd_tls_verify_again(connection->ssl, tls, &expires);
        SSL_CTX_free(tls);
        if (r == -ENOMEM)
                return r;
        if (r == 0)
                atomic_store(&origin->expires, expires);
        atomic_store(&origin->refused, r != 0);
        if (r == 0)
                hfd_connection_make_known(connection);
        connection->n_reloads = n;
        connection->verify_at = connection->worker->now + VERIFY_INTERVAL;
        return 0;
}

static void link_connection(struct hfd_worker *worker, struct hfd_connection *connection) {
        connection->next = worker->connections;
        if (connection->next)
                connection->next->prev = connection;
        worker->connections = connection;
}

static void unlink_connection(struct hfd_worker *worker, struct hfd_connection *connection) {
        assert(connection->prev ? connection->prev->next == connection
                                : worker->connections == connection);
        if (connection->next)
                connection->next->prev = connection->prev;
        if (connection->prev)
                connection->prev->next = connection->next;
        else
                worker->connections = connection->next;
}

/* Removes a stranger from its set. The worker closes the stranger's connection in this iteration or
 * soon after. */
static void close_stranger(struct hfd_stranger *stranger) {
        struct hfd_connection *connection =
                (void *)((char *)stranger - offsetof(struct hfd_connection, stranger));

        hfd_strangers_remove(stranger);
        connection->dead = true;
        hfd_connection_mark_dirty(connection);
}

/* Makes room in a set that holds at most max; with max 0, closes one of its members. 0 or
 * HF_E_TOO_LARGE. */
static int make_room(struct hfd_worker *worker, const struct hfd_strangers *set, size_t max,
                     const struct hfd_stranger_key *key, hf_nsec min_age, enum hfd_refusal why) {
        struct hfd_stranger *victim;

        if (set->n < max)
                return 0;
        hfd_refusals_count(&worker->http->refusals, why);
        victim = hfd_strangers_victim(set, key, worker->now, min_age);
        if (!victim)
                return HF_E_TOO_LARGE;
        close_stranger(victim);
        return 0;
}

/* Makes room for one more connection, which n_connections includes already. A known sender is never
 * closed for another, and a stranger of another worker cannot be, because it belongs to that
 * thread. 0 or HF_E_TOO_LARGE. */
static int make_room_for_new(struct hfd_worker *worker, const struct hfd_stranger_key *key) {
        struct hfd_http *http = worker->http;
        size_t n = atomic_load_explicit(&http->n_connections, memory_order_relaxed);
        int r = 0;

        if (n > http->max_connections)
                r = make_room(worker, &worker->strangers, 0, key, 0, HFD_REFUSAL_CONNECTIONS);
        if (r == 0)
                r = make_room(worker, &worker->handshakes, http->max_handshakes, key,
                              HFD_HANDSHAKE_GRACE, HFD_REFUSAL_HANDSHAKES);
        return r;
}

/* For a connection that is not linked yet. The caller closes the socket. */
static void discard_new(struct hfd_connection *connection) {
        hfd_strangers_remove(&connection->stranger);
        SSL_free(connection->ssl);
        hfd_origin_unref(connection->origin);
        free(connection);
}

HF__CLEANUP_DEFINE(new_cleanup, struct hfd_connection *, discard_new)

int hfd_connection_new(struct hfd_worker *worker, int fd, const struct sockaddr_storage *address) {
        struct epoll_event event = {.events = EPOLLIN};
        const struct hfd_stranger_key key = hfd_stranger_key(address);
        SSL_CTX *tls;
        int r;

        assert(hfd_worker_mailbox_is_current(&worker->mailbox) && fd >= 0);
        r = make_room_for_new(worker, &key);
        if (r != 0)
                return r;
        HF__CLEANUP(new_cleanup)
        struct hfd_connection *connection = calloc(1, sizeof *connection);
        if (!connection)
                return -ENOMEM;
        event.data.ptr = connection;
        set_socket_options(fd);
        /* Read before ref_tls: after a reload in between, the certificate is verified once too
         * often. In the other order the reload could be missed. */
        connection->n_reloads = atomic_load(&worker->http->n_reloads);
        tls = ref_tls(worker->http);
        connection->ssl = hfd_tls_accept(tls, fd, &connection->bad_cert);
        SSL_CTX_free(tls);
        if (!connection->ssl)
                return -ENOMEM;
        r = hfd_origin_new(address, &connection->origin);
        if (r != 0)
                return r;
        connection->key = key;
        r = hfd_strangers_add(&worker->handshakes, &connection->stranger, &key, worker->now);
        if (r != 0)
                return r;
        if (epoll_ctl(worker->stranger_epoll, EPOLL_CTL_ADD, fd, &event) != 0)
                return -errno;
        connection->fd = fd;
        connection->worker = worker;
        connection->events = EPOLLIN;
        connection->epoll = worker->stranger_epoll;
        connection->since = worker->now;
        link_connection(worker, HF__TAKE(connection));
        return 0;
}

void hfd_connection_uncount(struct hfd_http *http) {
        /* Sequentially consistent, as in hfd_http_stop_accepting and hfd_http_wait_closed: either
         * this sees `draining`, or the waiter sees that no connection is left. */
        size_t before = atomic_fetch_sub(&http->n_connections, 1);

        assert(before > 0);
        if (before != 1 || !atomic_load(&http->draining))
                return;
        /* Under the mutex. Otherwise a waiter that has read the old count, but does not wait yet,
         * would miss the broadcast. */
        pthread_mutex_lock(&http->mu);
        pthread_cond_broadcast(&http->all_closed);
        pthread_mutex_unlock(&http->mu);
}

static void close_protocol(struct hfd_connection *connection) {
        if (connection->protocol_state)
                connection->protocol->close(connection);
        connection->protocol_state = NULL;
}

void hfd_connection_unmark_dirty(struct hfd_connection *connection) {
        struct hfd_dirty_list *list = connection->dirty_list;

        assert(hfd_worker_mailbox_is_current(&connection->worker->mailbox));
        if (!list)
                return;
        assert(*connection->dirty_at == connection);
        *connection->dirty_at = connection->dirty_next;
        if (connection->dirty_next)
                connection->dirty_next->dirty_at = connection->dirty_at;
        else
                list->tail = connection->dirty_at;
        connection->dirty_list = NULL;
        connection->dirty_next = NULL;
        connection->dirty_at = NULL;
}

void hfd_connection_free(struct hfd_connection *connection) {
        struct hfd_worker *worker = connection->worker;

        assert(hfd_worker_mailbox_is_current(&worker->mailbox));
        close_protocol(connection);
        assert(connection->share.n == 0);         /* every request was detached */
        hfd_connection_report_unsent(connection); /* so this only drops references */
        hfd_strangers_remove(&connection->stranger);
        /* Detaching the requests may have marked it. */
        hfd_connection_unmark_dirty(connection);
        unlink_connection(worker, connection);
        SSL_free(connection->ssl);
        /* If a forked child has a copy of the descriptor, close alone would not end the events. */
        (void)epoll_ctl(connection->epoll, EPOLL_CTL_DEL, connection->fd, NULL);
        close(connection->fd);
        hfd_origin_unref(connection->origin);
        if (connection->context.pointer)
                connection->context.free_fn(connection->context.pointer);
        free(connection->unsent);
        free(connection);
        hfd_connection_uncount(worker->http);
}

/* A stranger that only has to be freed goes into the list of the known senders: it costs them
 * little time, and its place is needed. */
void hfd_connection_mark_dirty(struct hfd_connection *connection) {
        struct hfd_worker *worker = connection->worker;
        bool may_wait = !connection->share.known && !connection->dead;
        struct hfd_dirty_list *list = may_wait ? &worker->dirty_strangers : &worker->dirty;

        assert(hfd_worker_mailbox_is_current(&worker->mailbox));
        if (connection->dirty_list == list)
                return;
        hfd_connection_unmark_dirty(connection);
        connection->dirty_list = list;
        connection->dirty_at = list->tail;
        *list->tail = connection;
        list->tail = &connection->dirty_next;
}

/* OPEN -> LINGER: everything was sent. Sends TLS's close notification without waiting for the
 * peer's, and shuts down our direction. */
static void begin_linger(struct hfd_connection *connection) {
        assert(connection->state == HFD_CONNECTION_OPEN && !connection->unsent);
        close_protocol(connection);
        hfd_tls_clear_errors();
        (void)SSL_shutdown(connection->ssl);
        if (shutdown(connection->fd, SHUT_WR) != 0) {
                connection->dead = true;
                return;
        }
        /* A small buffer: the kernel's would grow while input is dropped, and a peer that ignores
         * the response could make us drop megabytes at a time, which keeps a processor busy. */
        int n = LINGER_BUFFER;
        (void)setsockopt(connection->fd, SOL_SOCKET, SO_RCVBUF, &n, sizeof n);
        connection->state = HFD_CONNECTION_LINGER;
        connection->since = connection->worker->now;
}

static void drop_input(struct hfd_connection *connection) {
        assert(connection->state == HFD_CONNECTION_LINGER);
        for (int i = 0; i < MAX_READS; i++) {
                /* The flag makes the kernel drop the bytes without copying them. */
                ssize_t n = recv(connection->fd, connection->worker->in, HFD_IN_SPACE, MSG_TRUNC);

                if (n < 0 && (errno == EAGAIN || errno == EINTR))
                        return;
                if (n <= 0) {
                        connection->dead = true;
                        return;
                }
        }
}

static void set_known(struct hfd_connection *connection, bool known) {
        hfd_account_set_known(&connection->worker->http->account, &connection->share, known);
        if (connection->dirty_list)
                hfd_connection_mark_dirty(connection); /* known senders do not wait for strangers */
        hfd_tls_keep_buffers(connection->ssl, known);
}

void hfd_connection_make_known(struct hfd_connection *connection) {
        assert(hfd_worker_mailbox_is_current(&connection->worker->mailbox));
        hfd_strangers_remove(&connection->stranger);
        set_known(connection, true);
}

/* The connection is open, and its sender unknown: moves the connection to the set `strangers`. If
 * there is no room or no memory, the connection is dead. */
static void settle_stranger(struct hfd_connection *connection) {
        struct hfd_worker *worker = connection->worker;

        hfd_strangers_remove(&connection->stranger);
        if (make_room(worker, &worker->strangers, worker->http->max_strangers, &connection->key, 0,
                      HFD_REFUSAL_STRANGERS) != 0 ||
            hfd_strangers_add(&worker->strangers, &connection->stranger, &connection->key,
                              worker->now) != 0)
                connection->dead = true;
}

/* With an accepted request under way the sender stays known: the connection may be that of a proxy
 * for many users, and a stranger's can be closed at any time. The protocols also rely on it that no
 * body is being read for a stranger. Other requests do not count. Otherwise somebody whose token
 * was revoked could keep the place by requests that overlap. */
void hfd_connection_forget_sender(struct hfd_connection *connection) {
        if (!connection->share.known || connection->n_accepted > 0 || has_good_cert(connection))
                return;
        set_known(connection, false);
        settle_stranger(connection);
}

/* HANDSHAKE -> OPEN: ALPN has chosen the protocol. */
static void open_protocol(struct hfd_connection *connection) {
        const struct hfd_http *http = connection->worker->http;

        assert(connection->state == HFD_CONNECTION_HANDSHAKE && !connection->protocol);
        connection->protocol = hfd_tls_is_h2(connection->ssl) ? http->h2 : http->h1;
        connection->since = connection->worker->now;
        if (hfd_tls_peer(connection->ssl, connection->bad_cert, connection->origin) != 0 ||
            connection->protocol->open(connection) != 0) {
                connection->dead = true;
                return;
        }
        connection->state = HFD_CONNECTION_OPEN;
        connection->verify_at = connection->worker->now + VERIFY_INTERVAL;
        if (has_good_cert(connection))
                hfd_connection_make_known(connection);
        else
                settle_stranger(connection);
        if (connection->worker->draining)
                connection->protocol->drain(connection);
}

static void continue_handshake(struct hfd_connection *connection) {
        int ok, error;

        hfd_tls_clear_errors();
        connection->tls_wants_write = false;
        ok = SSL_do_handshake(connection->ssl);
        if (ok == 1) {
                open_protocol(connection);
                return;
        }
        error = SSL_get_error(connection->ssl, ok);
        if (error == SSL_ERROR_WANT_WRITE)
                connection->tls_wants_write = true;
        else if (error != SSL_ERROR_WANT_READ)
                connection->dead = true;
}

/*
 * Reads what the socket has, at most HFD_IN_SPACE bytes. Clients send each request in a record of
 * its own, and the protocol is faster if it gets many of them at once. *ret_more: there may be more
 * that epoll does not report. Returns the number of bytes.
 */
static size_t read_tls(struct hfd_connection *connection, char *in, bool *ret_more) {
        size_t done = 0;

        *ret_more = true;
        while (done < HFD_IN_SPACE) {
                int n;

                hfd_tls_clear_errors();
                n = SSL_read(connection->ssl, in + done, (int)(HFD_IN_SPACE - done));
                if (n <= 0) {
                        int error = SSL_get_error(connection->ssl, n);

                        /* This includes the end of the input: a peer that shuts down its sending
                         * side counts as gone. */
                        if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
                                connection->dead = true;
                        *ret_more = false;
                        break;
                }
                done += (size_t)n;
                /* OpenSSL has nothing left. If the socket has more, epoll reports it again. That
                 * costs less than another read, which usually finds the socket empty. */
                if (!SSL_has_pending(connection->ssl)) {
                        *ret_more = false;
                        break;
                }
        }
        return done;
}

static void read_input(struct hfd_connection *connection) {
        struct hfd_worker *worker = connection->worker;

        for (int i = 0; i < MAX_READS; i++) {
                bool more = true;
                size_t n;

                if (connection->ending || !connection->protocol->wants_input(connection))
                        return;
                n = read_tls(connection, worker->in, &more);
                if (n > 0 && connection->protocol->input(connection, worker->in, n) != 0)
                        connection->ending = true;
                if (!more)
                        return;
        }
        /* OpenSSL may have more bytes in its buffer, which epoll does not report. */
        hfd_connection_mark_dirty(connection);
}

/* While a socket is corked, the kernel keeps what is written, to send it in one piece. */
static void cork_socket(struct hfd_connection *connection, int on) {
        (void)setsockopt(connection->fd, IPPROTO_TCP, TCP_CORK, &on, sizeof on);
}

/* Writes as much as the socket accepts now. Returns the number of bytes. OpenSSL writes each TLS
 * record with a call of its own. If there are several, the socket is corked: a peer that gets many
 * responses in one piece sends its next requests in one piece, too. */
static size_t write_tls(struct hfd_connection *connection, const char *data, size_t n) {
        bool is_corked = n > RECORD_MAX;
        size_t done = 0;

        if (is_corked)
                cork_socket(connection, 1);
        while (done < n && !connection->dead) {
                int written, error;

                hfd_tls_clear_errors();
                written = SSL_write(connection->ssl, data + done, (int)(n - done));
                if (written > 0) {
                        done += (size_t)written;
                        connection->since = connection->worker->now;
                        continue;
                }
                error = SSL_get_error(connection->ssl, written);
                if (error == SSL_ERROR_WANT_WRITE || error == SSL_ERROR_WANT_READ)
                        break;
                connection->dead = true;
        }
        if (is_corked)
                cork_socket(connection, 0);
        return done;
}

/* Returns true when nothing is unsent any more. */
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
        assert(!connection->unsent && n > 0);
        connection->unsent = malloc(n);
        if (!connection->unsent) {
                connection->dead = true;
                return;
        }
        memcpy(connection->unsent, data, n);
        connection->unsent_at = 0;
        connection->unsent_n = n;
}

static void write_output(struct hfd_connection *connection) {
        struct hfd_worker *worker = connection->worker;

        assert(hfd_worker_mailbox_is_current(&connection->worker->mailbox));
        for (int i = 0; i < MAX_WRITES; i++) {
                size_t n, done;

                n = connection->protocol->fill(connection, worker->out);
                if (connection->dead)
                        return;
                if (n == 0) {
                        if (connection->ending || connection->protocol->finished(connection))
                                begin_linger(connection);
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
        /* There may be more output, but the other connections are served first. */
        hfd_connection_mark_dirty(connection);
}

/* Sets the events that epoll reports for the socket. A connection moves from the strangers' epoll
 * to the other one when its sender has become known, and back when the sender is forgotten. */
static void watch_socket(struct hfd_connection *connection, struct epoll_event *event) {
        struct hfd_worker *worker = connection->worker;
        int epoll = connection->share.known ? worker->epoll : worker->stranger_epoll;
        int r = 0;

        if (epoll != connection->epoll) {
                (void)epoll_ctl(connection->epoll, EPOLL_CTL_DEL, connection->fd, NULL);
                r = epoll_ctl(epoll, EPOLL_CTL_ADD, connection->fd, event);
        } else if (event->events != connection->events) {
                r = epoll_ctl(epoll, EPOLL_CTL_MOD, connection->fd, event);
        }
        connection->epoll = epoll;
        connection->events = event->events;
        if (r != 0)
                connection->dead = true;
}

/* Makes epoll report only the events that the connection can handle now. Otherwise a socket with
 * input that the connection must not read yet would keep the thread busy. */
static void update_epoll(struct hfd_connection *connection) {
        struct epoll_event event = {.data.ptr = connection};

        assert(hfd_worker_mailbox_is_current(&connection->worker->mailbox));
        switch (connection->state) {
        case HFD_CONNECTION_HANDSHAKE:
                event.events = connection->tls_wants_write ? EPOLLOUT : EPOLLIN;
                break;
        case HFD_CONNECTION_LINGER: event.events = EPOLLIN; break;
        case HFD_CONNECTION_OPEN:
                if (connection->unsent) {
                        event.events = EPOLLOUT;
                        break;
                }
                /* Without EPOLLIN, only EPOLLRDHUP shows that the peer has left. */
                event.events = EPOLLRDHUP;
                if (connection->protocol->wants_input(connection))
                        event.events |= EPOLLIN;
                break;
        }
        watch_socket(connection, &event);
}

static void serve_open(struct hfd_connection *connection, uint32_t events) {
        assert(hfd_worker_mailbox_is_current(&connection->worker->mailbox));
        if (events & EPOLLRDHUP && !(connection->events & EPOLLIN)) {
                connection->dead = true; /* the peer has left, and no read would show it */
                return;
        }
        if (!flush_unsent(connection) || connection->dead)
                return;
        read_input(connection);
        if (!connection->dead)
                write_output(connection);
}

/* One call may pass through several states: the last bytes of a handshake often arrive together
 * with a request. */
void hfd_connection_serve(struct hfd_connection *connection, uint32_t events) {
        assert(hfd_worker_mailbox_is_current(&connection->worker->mailbox));
        if (connection->state != HFD_CONNECTION_LINGER && events & (EPOLLERR | EPOLLHUP))
                connection->dead = true;
        if (!connection->dead && connection->state == HFD_CONNECTION_HANDSHAKE)
                continue_handshake(connection);
        if (!connection->dead && connection->state == HFD_CONNECTION_OPEN)
                serve_open(connection, events);
        if (!connection->dead && connection->state == HFD_CONNECTION_LINGER)
                drop_input(connection);
        if (!connection->dead)
                update_epoll(connection);
        if (connection->dead)
                hfd_connection_free(connection);
        else
                hfd_connection_report_unsent(connection);
}

/* While bytes are unsent the connection does not read. So only the socket's progress counts then,
 * and not the protocol's time limits for input. */
void hfd_connection_tick(struct hfd_connection *connection, hf_nsec now) {
        hf_nsec age = now - connection->since;

        assert(hfd_worker_mailbox_is_current(&connection->worker->mailbox));
        /* A shutdown waits for connections. A stranger must not be able to prolong it. */
        if (connection->worker->draining && !connection->share.known &&
            now - connection->worker->draining_since > HFD_STRANGER_DRAIN_TIME)
                connection->dead = true;
        switch (connection->state) {
        case HFD_CONNECTION_HANDSHAKE: connection->dead |= age > HFD_HANDSHAKE_TIME; break;
        case HFD_CONNECTION_LINGER: connection->dead |= age > HFD_LINGER_TIME; break;
        case HFD_CONNECTION_OPEN:
                if (connection->unsent)
                        connection->dead |= age > HFD_IDLE_TIME;
                else if (!connection->dead)
                        connection->protocol->tick(connection, now);
                hfd_tls_free_buffers(connection->ssl);
                break;
        }
        if (connection->dead)
                hfd_connection_mark_dirty(connection);
}
