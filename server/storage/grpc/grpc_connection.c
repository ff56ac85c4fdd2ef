/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection and the calls on it. connect.c makes the connection, session.c speaks HTTP/2, io.c
 * moves the bytes.
 *
 * States follow each other in the order of enum hfd_grpc_state; clear text leaves out HANDSHAKE.
 * Calls are added in any state and submitted once it is READY, so that a call which waits for a
 * connection that never becomes ready was certainly not executed.
 *
 * Invariants: a connection is freed only at the end of an iteration of the loop, or of the loop
 * itself; all other code sets `dead`. A connection that is dead or retired is in no slot, so no
 * call is added to it, except the one for which it was made, if it died at once. When a connection
 * becomes ready, all calls that wait for it are submitted, even if one of them causes it to retire.
 */
#include "server/storage/grpc/grpc_connection.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "server/storage/grpc/connect.h"
#include "server/storage/grpc/grpc_tls.h"
#include "server/storage/grpc/io.h"
#include "server/storage/grpc/resolver.h"
#include "server/storage/grpc/session.h"

void hfd_grpc_connection_set_timer(struct hfd_grpc_connection *connection, hf_nsec at) {
        struct hf__timer_heap *heap = &connection->channel->connection_timers;

        hfd_grpc_assert_thread(connection->channel);
        hf__timer_heap_remove(heap, &connection->timer);
        hf__timer_heap_add(heap, &connection->timer, at);
}

void hfd_grpc_connection_retire(struct hfd_grpc_connection *connection) {
        hfd_grpc_assert_thread(connection->channel);
        if (connection->slot)
                *connection->slot = NULL;
        connection->slot = NULL;
}

void hfd_grpc_connection_fail(struct hfd_grpc_connection *connection, int error, const char *format,
                              ...) {
        va_list args;

        assert(error != 0);
        if (connection->dead)
                return;
        connection->dead = true;
        connection->end.error = error;
        va_start(args, format);
        vsnprintf(connection->end.message, sizeof connection->end.message, format, args);
        va_end(args);
        hfd_grpc_connection_retire(connection);
}

void hfd_grpc_connection_update_events(struct hfd_grpc_connection *connection) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
        int op = connection->events != 0 ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

        hfd_grpc_assert_thread(connection->channel);
        if (connection->fd < 0 || connection->dead)
                return;
        if (connection->state == HFD_GRPC_CONNECTING)
                event.events = EPOLLOUT;
        else if (connection->unsent || connection->tls_wants_write)
                event.events |= EPOLLOUT;
        if (event.events == connection->events)
                return;
        if (epoll_ctl(connection->channel->epoll_fd, op, connection->fd, &event) != 0)
                hfd_grpc_connection_fail(connection, HF_E_UNAVAILABLE, "epoll: %s",
                                         strerror(errno));
        connection->events = event.events;
}

struct hfd_grpc_connection *hfd_grpc_connection_new(struct hfd_grpc_channel *channel,
                                                    const struct hfd_grpc_endpoint *endpoint,
                                                    struct hfd_grpc_connection **slot) {
        struct hfd_grpc_connection *connection = calloc(1, sizeof *connection);

        hfd_grpc_assert_thread(channel);
        assert(!*slot);
        if (!connection)
                return NULL;
        *connection = (struct hfd_grpc_connection){.channel = channel,
                                                   .endpoint = endpoint,
                                                   .slot = slot,
                                                   .next = channel->connections,
                                                   .fd = -1,
                                                   .received_at = channel->now};
        connection->streams_tail = &connection->streams;
        channel->connections = connection;
        *slot = connection;
        hfd_grpc_connect_begin(connection);
        return connection;
}

/* ---- calls ---- */

/* If nghttp2 refuses a request, the connection's stream ids are used up, or memory is short and
 * nghttp2 asks not to use the session any more. So new calls get another connection.
 * Calls that were added before may still succeed, and stay. */
static void submit(struct hfd_grpc_connection *connection, struct hfd_grpc_stream *stream) {
        int r = hfd_grpc_session_submit(connection, stream);

        if (r == 0)
                return;
        hfd_grpc_connection_retire(connection);
        hfd_grpc_connection_end(stream, HF_E_UNAVAILABLE, nghttp2_strerror(r));
}

void hfd_grpc_connection_add(struct hfd_grpc_connection *connection,
                             struct hfd_grpc_stream *stream) {
        assert(!stream->connection);
        stream->connection = connection;
        stream->next = NULL;
        stream->link = connection->streams_tail;
        *connection->streams_tail = stream;
        connection->streams_tail = &stream->next;
        connection->n_streams++;
        if (connection->state != HFD_GRPC_READY || connection->dead)
                return;
        /* An idle connection has no timer (check_peer). */
        if (!connection->timer.queued)
                hfd_grpc_connection_set_timer(connection,
                                              connection->channel->now + HFD_GRPC_PING_AFTER);
        submit(connection, stream);
}

void hfd_grpc_connection_end(struct hfd_grpc_stream *stream, int outcome, const char *error_text) {
        struct hfd_grpc_connection *connection = stream->connection;

        assert(connection->n_streams > 0 && *stream->link == stream);
        *stream->link = stream->next;
        if (stream->next)
                stream->next->link = stream->link;
        else
                connection->streams_tail = stream->link;
        connection->n_streams--;
        stream->connection = NULL;
        hfd_grpc_channel_end_stream(connection->channel, stream, outcome, error_text);
}

void hfd_grpc_connection_abort(struct hfd_grpc_stream *stream, int outcome,
                               const char *error_text) {
        if (stream->id != 0)
                hfd_grpc_session_reset(stream->connection, stream);
        hfd_grpc_connection_end(stream, outcome, error_text);
}

/* etcd executes a unary call when it has the whole request. So until the kernel has taken all bytes
 * up to the request's END_STREAM, the call was certainly not executed. */
int hfd_grpc_connection_lost_outcome(const struct hfd_grpc_stream *stream) {
        const struct hfd_grpc_connection *connection = stream->connection;

        return stream->written_at != 0 && connection->n_written >= stream->written_at
                       ? HF_E_TIMEOUT
                       : HF_E_UNAVAILABLE;
}

void hfd_grpc_connection_ready(struct hfd_grpc_connection *connection) {
        struct hfd_grpc_stream *stream = connection->streams, *next;

        hfd_grpc_assert_thread(connection->channel);
        if (connection->state != HFD_GRPC_GREETING || connection->dead)
                return; /* the peer may send SETTINGS again later */
        connection->state = HFD_GRPC_READY;
        hfd_grpc_connection_set_timer(connection, connection->channel->now + HFD_GRPC_PING_AFTER);
        for (; stream; stream = next) {
                next = stream->next;
                submit(connection, stream);
        }
}

void hfd_grpc_connection_event(struct hfd_grpc_connection *connection, uint32_t events) {
        hfd_grpc_assert_thread(connection->channel);
        if (connection->dead)
                return;
        switch (connection->state) {
        case HFD_GRPC_RESOLVING: break;
        case HFD_GRPC_CONNECTING: hfd_grpc_connect_finish(connection); break;
        case HFD_GRPC_HANDSHAKE: hfd_grpc_connect_handshake(connection); break;
        case HFD_GRPC_GREETING:
        case HFD_GRPC_READY:
                if (events & ~(uint32_t)EPOLLOUT)
                        hfd_grpc_io_read(connection);
                break;
        }
}

bool hfd_grpc_connection_flush(struct hfd_grpc_connection *connection) {
        hfd_grpc_assert_thread(connection->channel);
        if (!connection->dead && connection->session)
                hfd_grpc_io_write(connection);
        /* A peer ends the session when it breaks the protocol or does not speak it, and with a
         * GOAWAY once no call is left. */
        if (!connection->dead && !connection->unsent && hfd_grpc_session_is_over(connection))
                hfd_grpc_connection_fail(connection, HF_E_UNAVAILABLE, "HTTP/2 has ended");
        /* A retired connection without calls is closed, without a GOAWAY frame. */
        if (!connection->dead && !connection->slot && connection->n_streams == 0)
                hfd_grpc_connection_fail(connection, HF_E_UNAVAILABLE, "retired");
        hfd_grpc_connection_update_events(connection);
        return !connection->dead;
}

/* ---- time ---- */

/* The time at which a silent peer gets a PING or, after a PING, loses the connection. */
static hf_nsec silence_due(const struct hfd_grpc_connection *connection) {
        hf_nsec due = connection->received_at + HFD_GRPC_PING_AFTER;

        if (connection->pinged_at != 0)
                return connection->pinged_at + HFD_GRPC_PING_TIME;
        return due > connection->no_ping_before ? due : connection->no_ping_before;
}

static void check_peer(struct hfd_grpc_connection *connection, hf_nsec now) {
        /* etcd admits PINGs only while calls are under way. The next call sets the timer. */
        if (connection->n_streams == 0)
                return;
        if (connection->pinged_at == 0 && silence_due(connection) <= now) {
                connection->pinged_at = now;
                connection->no_ping_before = now + HFD_GRPC_PING_EVERY;
                if (hfd_grpc_session_ping(connection) != 0)
                        hfd_grpc_connection_fail(connection, HF_E_UNAVAILABLE, "out of memory");
        }
        if (silence_due(connection) <= now)
                hfd_grpc_connection_fail(connection, HF_E_UNAVAILABLE,
                                         "the server does not respond to a PING");
        else
                hfd_grpc_connection_set_timer(connection, silence_due(connection));
}

void hfd_grpc_connection_on_timer(struct hfd_grpc_connection *connection) {
        hf_nsec now = connection->channel->now;

        hfd_grpc_assert_thread(connection->channel);
        hf__timer_heap_remove(&connection->channel->connection_timers, &connection->timer);
        if (connection->dead)
                return;
        if (connection->state == HFD_GRPC_READY)
                check_peer(connection, now);
        else if (connection->state == HFD_GRPC_CONNECTING && connection->address_next)
                hfd_grpc_connect_next(connection, ETIMEDOUT);
        else
                hfd_grpc_connection_fail(connection, HF_E_UNAVAILABLE,
                                         "no connection within %d seconds",
                                         (int)(HFD_GRPC_CONNECT_TIME / HF_NSEC_PER_SEC));
}

/* ---- end ---- */

/* The outcome of a call that ends because the connection has ended. */
static int outcome_at_end(const struct hfd_grpc_stream *stream) {
        const struct hfd_grpc_connection *connection = stream->connection;

        if (connection->end.error == HF_E_CANCELED)
                return HF_E_CANCELED;
        /* A refusal after our handshake (grpc_tls.c) still comes before any request is read. */
        if (connection->end.error == HF_E_UNAUTHORIZED)
                return HF_E_UNAUTHORIZED;
        return hfd_grpc_connection_lost_outcome(stream);
}

/* The calls end first: their outcomes depend on how much this connection has written. */
void hfd_grpc_connection_free(struct hfd_grpc_connection *connection) {
        struct hfd_grpc_connection **at = &connection->channel->connections;

        hfd_grpc_assert_thread(connection->channel);
        assert(connection->dead && !connection->slot);
        while (connection->streams)
                hfd_grpc_connection_end(connection->streams, outcome_at_end(connection->streams),
                                        connection->end.message);
        while (*at != connection)
                at = &(*at)->next;
        *at = connection->next;
        hf__timer_heap_remove(&connection->channel->connection_timers, &connection->timer);
        if (connection->resolver)
                connection->resolver->connection = NULL;
        if (connection->addresses)
                freeaddrinfo(connection->addresses);
        nghttp2_session_del(connection->session); /* calls no callback */
        hfd_grpc_tls_close(connection->tls);
        hfd_grpc_connect_close(connection);
        free(connection->unsent);
        free(connection);
}
