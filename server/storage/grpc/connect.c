/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Establishes a connection: looks up the host, connects by TCP, does TLS's handshake and starts
 * HTTP/2.
 *
 * A host may have several addresses. They are tried one after the other. Each but the last one has
 * only TIME_PER_ADDRESS, so that an address which does not respond does not delay the next for
 * long.
 *
 * Invariant: each state before READY has a timer, so a connection cannot hang in it.
 */
#include "server/storage/grpc/connect.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/storage/grpc/grpc_tls.h"
#include "server/storage/grpc/resolver.h"
#include "server/storage/grpc/session.h"

#define TIME_PER_ADDRESS (1 * HF_NSEC_PER_SEC)

static void set_socket_options(int fd) {
        int on = 1, idle = 30, interval = 10, count = 3;

        /* TCP's keepalive finds a dead peer of an idle connection, to which no PINGs are sent,
         * within a minute (the times are in seconds). Calls work without any of these options, so
         * failures are ignored. */
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

/* close alone would leave the socket in the epoll set while a child process of another thread,
 * between fork and exec, has a copy of it. */
void hfd_grpc_connect_close(struct hfd_grpc_connection *connection) {
        hfd_grpc_assert_thread(connection->channel);
        if (connection->events != 0)
                (void)epoll_ctl(connection->channel->epoll_fd, EPOLL_CTL_DEL, connection->fd, NULL);
        if (connection->fd >= 0)
                close(connection->fd);
        connection->fd = -1;
        connection->events = 0;
}

/* Begins to connect to one address. 0 or an errno. */
static int begin_connect(struct hfd_grpc_connection *connection, const struct addrinfo *address) {
        assert(connection->fd < 0);
        connection->fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (connection->fd < 0)
                return errno;
        set_socket_options(connection->fd);
        if (connect(connection->fd, address->ai_addr, address->ai_addrlen) == 0 ||
            errno == EINPROGRESS)
                return 0;
        return errno;
}

void hfd_grpc_connect_next(struct hfd_grpc_connection *connection, int error) {
        const struct addrinfo *address;

        hfd_grpc_assert_thread(connection->channel);
        while ((address = connection->address_next) != NULL) {
                hfd_grpc_connect_close(connection);
                connection->address_next = address->ai_next;
                error = begin_connect(connection, address);
                if (error != 0)
                        continue;
                connection->state = HFD_GRPC_CONNECTING;
                hfd_grpc_connection_set_timer(connection,
                                              connection->channel->now +
                                                      (connection->address_next
                                                               ? TIME_PER_ADDRESS
                                                               : HFD_GRPC_CONNECT_TIME));
                hfd_grpc_connection_update_events(connection);
                return;
        }
        hfd_grpc_connection_fail(connection, HF_E_UNAVAILABLE, "cannot connect: %s",
                                 strerror(error));
}

static void begin_session(struct hfd_grpc_connection *connection) {
        int r = hfd_grpc_session_new(connection);

        connection->state = HFD_GRPC_GREETING;
        if (r != 0)
                hfd_grpc_connection_fail(connection, HF_E_UNAVAILABLE, "%s", nghttp2_strerror(r));
}

void hfd_grpc_connect_handshake(struct hfd_grpc_connection *connection) {
        struct hf_status status;
        int r = hfd_grpc_tls_handshake(connection->tls, &status);

        hfd_grpc_assert_thread(connection->channel);
        connection->tls_wants_write = r == -EINPROGRESS;
        if (r == 0)
                begin_session(connection);
        else if (r != -EAGAIN && r != -EINPROGRESS)
                hfd_grpc_connection_fail(connection, r, "%s", status.message);
}

void hfd_grpc_connect_finish(struct hfd_grpc_connection *connection) {
        hfd_grpc_assert_thread(connection->channel);
        const struct hfd_grpc_channel_config *config = &connection->channel->config;
        socklen_t n = sizeof(int);
        int error = 0;

        if (getsockopt(connection->fd, SOL_SOCKET, SO_ERROR, &error, &n) != 0)
                error = errno;
        if (error != 0) {
                hfd_grpc_connect_next(connection, error);
                return;
        }
        hfd_grpc_connection_set_timer(connection, connection->channel->now + HFD_GRPC_CONNECT_TIME);
        if (!connection->endpoint->tls) {
                begin_session(connection);
                return;
        }
        connection->tls =
                hfd_grpc_tls_open(config->tls, connection->fd, connection->endpoint->host);
        if (!connection->tls) {
                hfd_grpc_connection_fail(connection, HF_E_UNAVAILABLE, "out of memory");
                return;
        }
        connection->state = HFD_GRPC_HANDSHAKE;
        hfd_grpc_connect_handshake(connection);
}

void hfd_grpc_connect_resolved(struct hfd_grpc_connection *connection) {
        struct hfd_grpc_resolver *resolver = connection->resolver;

        assert(connection->state == HFD_GRPC_RESOLVING && !connection->addresses);
        connection->resolver = NULL;
        connection->addresses = connection->address_next = resolver->addresses;
        resolver->addresses = NULL;
        if (connection->dead)
                return;
        if (connection->addresses)
                hfd_grpc_connect_next(connection, 0);
        else
                hfd_grpc_connection_fail(connection, HF_E_UNAVAILABLE, "%s", resolver->error);
}

void hfd_grpc_connect_begin(struct hfd_grpc_connection *connection) {
        struct hfd_grpc_channel *channel = connection->channel;
        int r;

        assert(connection->state == HFD_GRPC_RESOLVING && !connection->addresses);
        hfd_grpc_connection_set_timer(connection, channel->now + HFD_GRPC_CONNECT_TIME);
        if (hfd_grpc_resolve_numeric(connection->endpoint, &connection->addresses) == 0) {
                connection->address_next = connection->addresses;
                hfd_grpc_connect_next(connection, 0);
                return;
        }
        r = hfd_grpc_resolver_new(channel, connection->endpoint, connection, &connection->resolver);
        if (r != 0)
                hfd_grpc_connection_fail(connection, HF_E_UNAVAILABLE,
                                         "cannot resolve the host: %s", hf_strerror(r));
}
