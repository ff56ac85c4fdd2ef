/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes between a connection's session and its socket, in clear text or by TLS.
 *
 * Output. The session fills the channel's one buffer, and the socket takes what it can. The rest is
 * kept in `unsent`, and the session fills the buffer again once that is sent. Input is read even
 * while output waits, because a peer may read nothing until its own output has been read.
 *
 * Invariant: n_written counts only bytes that the kernel has taken; with TLS, only those in
 * complete records. Whether a call was certainly not executed depends on it.
 */
#include "server/storage/grpc/io.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "server/storage/grpc/grpc_tls.h"
#include "server/storage/grpc/session.h"

/* Limits for one connection in one iteration, so that the others are served too. */
#define MAX_READS  16
#define MAX_WRITES 8

/* Reads once. Returns the number of bytes; 0 = nothing now, or the connection has failed. */
static size_t receive_bytes(struct hfd_grpc_connection *connection, char *data, size_t n) {
        struct hf_status status = {0};
        ssize_t received;
        size_t n_read = 0;
        int r;

        if (connection->tls) {
                r = hfd_grpc_tls_read(connection->tls, data, n, &n_read, &status);
                if (r == 0)
                        return n_read;
                if (r != -EAGAIN && r != -EINPROGRESS)
                        hfd_grpc_connection_fail(connection, r, "%s", status.message);
                return 0;
        }
        received = recv(connection->fd, data, n, 0);
        if (received > 0)
                return (size_t)received;
        if (received == 0)
                hfd_grpc_connection_fail(connection, HF_E_UNAVAILABLE, "the connection was closed");
        else if (errno != EAGAIN && errno != EINTR)
                hfd_grpc_connection_fail(connection, HF_E_UNAVAILABLE, "%s", strerror(errno));
        return 0;
}

void hfd_grpc_io_read(struct hfd_grpc_connection *connection) {
        struct hfd_grpc_channel *channel = connection->channel;

        hfd_grpc_assert_thread(connection->channel);
        connection->has_more_input = false;
        for (int i = 0; i < MAX_READS && !connection->dead; i++) {
                size_t n = receive_bytes(connection, channel->in, sizeof channel->in);
                int r;

                if (n == 0)
                        return;
                connection->received_at = channel->now;
                connection->pinged_at = 0;
                r = hfd_grpc_session_input(connection, channel->in, n);
                if (r != 0)
                        hfd_grpc_connection_fail(connection, HF_E_UNAVAILABLE, "HTTP/2: %s",
                                                 nghttp2_strerror(r));
                /* The socket is empty, or epoll reports it again. TLS may hold more. */
                if (!connection->tls && n < sizeof channel->in)
                        return;
        }
        connection->has_more_input = true;
        channel->has_more = true;
}

/* Writes as much as the socket accepts now. Returns the number of bytes. */
static size_t send_bytes(struct hfd_grpc_connection *connection, const char *data, size_t n) {
        struct hf_status status = {0};
        size_t done = 0;

        while (done < n && !connection->dead) {
                size_t n_taken = 0;
                ssize_t sent;
                int r;

                if (connection->tls) {
                        r = hfd_grpc_tls_write(connection->tls, data + done, n - done, &n_taken,
                                               &status);
                        if (r == -EAGAIN || r == -EINPROGRESS)
                                break;
                        if (r != 0)
                                hfd_grpc_connection_fail(connection, r, "%s", status.message);
                        done += n_taken;
                        continue;
                }
                sent = send(connection->fd, data + done, n - done, MSG_NOSIGNAL);
                if (sent > 0)
                        done += (size_t)sent;
                else if (errno == EAGAIN)
                        break;
                else if (errno != EINTR)
                        hfd_grpc_connection_fail(connection, HF_E_UNAVAILABLE, "%s",
                                                 strerror(errno));
        }
        connection->n_written += done;
        return done;
}

static void keep_unsent(struct hfd_grpc_connection *connection, const char *data, size_t n) {
        assert(!connection->unsent && n > 0);
        connection->unsent = malloc(n);
        if (!connection->unsent) {
                hfd_grpc_connection_fail(connection, HF_E_UNAVAILABLE, "out of memory");
                return;
        }
        memcpy(connection->unsent, data, n);
        connection->unsent_at = 0;
        connection->n_unsent = n;
}

/* Returns true when nothing is unsent any more. */
static bool send_unsent(struct hfd_grpc_connection *connection) {
        if (!connection->unsent)
                return true;
        connection->unsent_at += send_bytes(connection, connection->unsent + connection->unsent_at,
                                            connection->n_unsent - connection->unsent_at);
        if (connection->unsent_at < connection->n_unsent)
                return false;
        free(connection->unsent);
        connection->unsent = NULL;
        return true;
}

void hfd_grpc_io_write(struct hfd_grpc_connection *connection) {
        hfd_grpc_assert_thread(connection->channel);
        if (!send_unsent(connection) || !connection->is_dirty || !connection->session)
                return;
        for (int i = 0; i < MAX_WRITES && !connection->dead; i++) {
                size_t n, done;
                int r = hfd_grpc_session_fill(connection, &n);

                if (r != 0) {
                        hfd_grpc_connection_fail(connection, HF_E_UNAVAILABLE, "HTTP/2: %s",
                                                 nghttp2_strerror(r));
                        return;
                }
                if (n == 0) {
                        connection->is_dirty = false;
                        return;
                }
                done = send_bytes(connection, connection->channel->out, n);
                if (done < n && !connection->dead) {
                        keep_unsent(connection, connection->channel->out + done, n - done);
                        return;
                }
                /* The session stops for lack of space only if the next frame, of 16 KiB at most,
                 * does not fit. So if it leaves half of the buffer empty, it has no more output. */
                if (n < HFD_GRPC_OUT_SPACE / 2) {
                        connection->is_dirty = false;
                        return;
                }
        }
        connection->channel->has_more = true; /* the other connections are served first */
}
