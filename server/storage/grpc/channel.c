/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The channel: its thread, the loop of that thread, and the commands that other threads send to it.
 *
 * Invariant: only the channel's thread touches connections and calls that have begun; other threads
 * post commands, and set only cancel_posted of a call, under mu.
 *
 * One iteration of the loop reads what has arrived, runs the commands of other threads, handles
 * the timers, and then lets each connection send. Timers run after the input, so that a response
 * that has arrived wins over a deadline that has just passed. Sending is last, so that the frames
 * of an iteration leave together.
 *
 * The life of a call: started by any thread, which posts a command; begun by the loop, which adds
 * it to the connection of its endpoint and lane; ended by the connection, by the call's timer or by
 * a cancel command.
 *
 * After hfd_grpc_channel_stop, starting is refused. The loop runs the commands that are left, ends
 * every call with HF_E_CANCELED, waits for the look-ups of hosts and exits.
 */
#include "server/storage/grpc/channel.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/blocks.h"
#include "base/cleanup.h"
#include "base/thread.h"
#include "server/storage/grpc/channel_private.h"
#include "server/storage/grpc/connect.h"
#include "server/storage/grpc/grpc_connection.h"
#include "server/storage/grpc/io.h"
#include "server/storage/grpc/resolver.h"
#include "server/storage/grpc/session.h"

#define N_EVENTS    32   /* events of epoll that one iteration handles */
#define MAX_WAIT_MS 1000 /* so that `iterations` grows also while nothing happens (watchdog) */

#define CONTAINER(pointer, type, member)                                                           \
        ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* ---- any thread ---- */

void hfd_grpc_channel_post(struct hfd_grpc_channel *channel, struct hfd_grpc_command *command,
                           enum hfd_grpc_command_kind kind) {
        command->kind = kind;
        hf__mailbox_post(&channel->mailbox, &command->message);
}

int hfd_grpc_channel_start(struct hfd_grpc_channel *channel, struct hfd_grpc_stream *stream,
                           const struct hfd_grpc_request *request) {
        bool closed;

        assert(request->body && request->body->n > 0 && request->on_done);
        assert(request->endpoint < channel->config.n_endpoints && request->lane < HFD_GRPC_LANES);
        hfd_grpc_stream_init(stream, request, hf_now(channel->clock));
        stream->channel = channel;
        /* Posted under the lock, so that no start command follows the stop command. */
        pthread_mutex_lock(&channel->mu);
        closed = channel->closed;
        if (!closed) {
                stream->start_command.kind = HFD_GRPC_START;
                hf__mailbox_post_lazily(&channel->mailbox, &stream->start_command.message);
        }
        pthread_mutex_unlock(&channel->mu);
        return closed ? HF_E_CLOSED : 0;
}

void hfd_grpc_channel_cancel(struct hfd_grpc_channel *channel, struct hfd_grpc_stream *stream) {
        assert(stream->request.on_release);
        pthread_mutex_lock(&channel->mu);
        if (!channel->closed && !stream->cancel_posted) {
                stream->cancel_posted = true;
                hfd_grpc_channel_post(channel, &stream->cancel_command, HFD_GRPC_CANCEL);
        }
        pthread_mutex_unlock(&channel->mu);
}

uint64_t hfd_grpc_channel_iterations(const struct hfd_grpc_channel *channel) {
        return atomic_load_explicit(&channel->iterations, memory_order_relaxed);
}

hf_nsec hfd_grpc_channel_alive_at(const struct hfd_grpc_channel *channel) {
        return atomic_load_explicit(&channel->alive_at, memory_order_relaxed);
}

/* ---- calls: the channel's thread ---- */

void hfd_grpc_channel_set_timer(struct hfd_grpc_stream *stream) {
        struct hf__timer_heap *heap = &stream->channel->stream_timers;
        hf_nsec due = hfd_grpc_stream_due(stream);

        hf__timer_heap_remove(heap, &stream->timer);
        if (due != HF_NSEC_NEVER)
                hf__timer_heap_add(heap, &stream->timer, due);
}

void hfd_grpc_channel_end_stream(struct hfd_grpc_channel *channel, struct hfd_grpc_stream *stream,
                                 int outcome, const char *error_text) {
        /* Read first: without on_release, on_done may free the stream. */
        void (*on_release)(void *ctx) = stream->request.on_release;
        void *ctx = stream->request.ctx;
        bool cancel_posted;

        hfd_grpc_assert_thread(channel);
        hf__timer_heap_remove(&channel->stream_timers, &stream->timer);
        hfd_grpc_stream_finish(stream, outcome, error_text);
        if (!on_release)
                return;
        pthread_mutex_lock(&channel->mu);
        cancel_posted = stream->cancel_posted;
        pthread_mutex_unlock(&channel->mu);
        if (!cancel_posted)
                on_release(ctx); /* otherwise cancel_stream calls it */
}

static void begin_stream(struct hfd_grpc_channel *channel, struct hfd_grpc_stream *stream) {
        const struct hfd_grpc_request *request = &stream->request;
        struct hfd_grpc_connection **slot =
                &channel->current[request->endpoint * HFD_GRPC_LANES + request->lane];
        struct hfd_grpc_connection *connection = *slot;

        hfd_grpc_assert_thread(channel);
        if (!connection)
                connection = hfd_grpc_connection_new(channel,
                                                     &channel->config.endpoints[request->endpoint],
                                                     slot);
        if (!connection) {
                hfd_grpc_channel_end_stream(channel, stream, HF_E_UNAVAILABLE, "out of memory");
                return;
        }
        hfd_grpc_channel_set_timer(stream);
        hfd_grpc_connection_add(connection, stream);
}

/* The start command was posted earlier to the same mailbox, so the stream has begun. */
static void cancel_stream(struct hfd_grpc_channel *channel, struct hfd_grpc_stream *stream) {
        hfd_grpc_assert_thread(channel);
        if (stream->ended) {
                stream->request.on_release(stream->request.ctx);
                return;
        }
        pthread_mutex_lock(&channel->mu);
        stream->cancel_posted = false; /* so that end_stream releases the stream */
        pthread_mutex_unlock(&channel->mu);
        hfd_grpc_connection_abort(stream, HF_E_CANCELED, "canceled");
}

/* The call's deadline, or that of its header block, has passed. If the connection was silent since
 * the call was sent, its peer may be dead, so later calls must not use it. */
static void expire_stream(struct hfd_grpc_stream *stream, const char *error_text) {
        struct hfd_grpc_connection *connection = stream->connection;

        if (stream->id != 0 && connection->received_at < stream->submitted_at)
                hfd_grpc_connection_retire(connection);
        hfd_grpc_connection_abort(stream, hfd_grpc_connection_lost_outcome(stream), error_text);
}

static void send_probe(struct hfd_grpc_stream *stream, hf_nsec now) {
        stream->probed_at = now;
        /* If the previous message is still being sent, it serves as the probe: the stream ends if
         * nothing arrives within probe_time. */
        if (stream->n_sent < stream->out->n)
                return;
        stream->out = stream->request.probe;
        stream->n_sent = 0;
        hfd_grpc_session_resume(stream->connection, stream);
}

static void on_stream_timer(struct hfd_grpc_channel *channel, struct hfd_grpc_stream *stream) {
        const struct hfd_grpc_request *request = &stream->request;
        hf_nsec now = channel->now;

        if (request->deadline <= now) {
                expire_stream(stream, "the deadline has passed");
                return;
        }
        if (!stream->head_done && stream->head_deadline <= now) {
                expire_stream(stream, "no response has begun in time");
                return;
        }
        if (request->probe && stream->head_done) {
                if (stream->probed_at != 0 && stream->probed_at + request->probe_time <= now) {
                        hfd_grpc_connection_retire(stream->connection);
                        hfd_grpc_connection_abort(stream, HF_E_TIMEOUT, "the server is silent");
                        return;
                }
                if (stream->probed_at == 0 && stream->received_at + request->probe_after <= now)
                        send_probe(stream, now);
        }
        hfd_grpc_channel_set_timer(stream);
}

/* ---- the loop ---- */

static void run_command(struct hfd_grpc_channel *channel, struct hfd_grpc_command *command) {
        switch (command->kind) {
        case HFD_GRPC_START:
                begin_stream(channel, CONTAINER(command, struct hfd_grpc_stream, start_command));
                break;
        case HFD_GRPC_CANCEL:
                cancel_stream(channel, CONTAINER(command, struct hfd_grpc_stream, cancel_command));
                break;
        case HFD_GRPC_RESOLVED: {
                struct hfd_grpc_resolver *resolver =
                        CONTAINER(command, struct hfd_grpc_resolver, command);

                if (resolver->connection)
                        hfd_grpc_connect_resolved(resolver->connection);
                hfd_grpc_resolver_free(resolver);
                break;
        }
        case HFD_GRPC_STOP: channel->stopping = true; break;
        }
}

static void run_commands(struct hfd_grpc_channel *channel, struct hf__message *message) {
        while (message) {
                /* the command may free the struct that contains it */
                struct hf__message *next = message->next;

                run_command(channel, CONTAINER(message, struct hfd_grpc_command, message));
                message = next;
        }
}

static void run_timers(struct hfd_grpc_channel *channel) {
        struct hf__timer *first;

        hfd_grpc_assert_thread(channel);
        /* The loops end, because each pass removes the timer or sets it to a later time. */
        while ((first = channel->stream_timers.first) != NULL && first->at <= channel->now)
                on_stream_timer(channel, CONTAINER(first, struct hfd_grpc_stream, timer));
        while ((first = channel->connection_timers.first) != NULL && first->at <= channel->now)
                hfd_grpc_connection_on_timer(CONTAINER(first, struct hfd_grpc_connection, timer));
}

/* Lets all connections send, and frees those that are over. */
static void flush_connections(struct hfd_grpc_channel *channel) {
        struct hfd_grpc_connection *connection = channel->connections, *next;

        for (; connection; connection = next) {
                bool open = hfd_grpc_connection_flush(connection);

                next = connection->next;
                if (!open)
                        hfd_grpc_connection_free(connection);
        }
}

/* How long the loop may sleep: until the next timer, MAX_WAIT_MS at most, or not at all if a
 * connection may have more to read or to write at once. */
static int wait_ms(const struct hfd_grpc_channel *channel) {
        const struct hf__timer *stream = channel->stream_timers.first,
                               *connection = channel->connection_timers.first;
        hf_nsec due = HF_NSEC_NEVER, left;

        if (channel->has_more)
                return 0;
        if (stream)
                due = stream->at;
        if (connection && connection->at < due)
                due = connection->at;
        if (due == HF_NSEC_NEVER)
                return MAX_WAIT_MS;
        left = due - hf_now(channel->clock);
        if (left <= 0)
                return 0;
        /* Rounded up, so that the timer is due when epoll_wait returns. */
        left = (left + HF_NSEC_PER_MSEC - 1) / HF_NSEC_PER_MSEC;
        return left < MAX_WAIT_MS ? (int)left : MAX_WAIT_MS;
}

static void run_iteration(struct hfd_grpc_channel *channel) {
        struct epoll_event events[N_EVENTS];
        int n = epoll_wait(channel->epoll_fd, events, N_EVENTS, wait_ms(channel));
        bool read_more = channel->has_more, has_commands = false;

        hfd_grpc_assert_thread(channel);
        hf__mailbox_delay_wakes();
        channel->now = hf_now(channel->clock);
        channel->has_more = false;
        atomic_fetch_add_explicit(&channel->iterations, 1, memory_order_relaxed);
        atomic_store_explicit(&channel->alive_at, channel->now, memory_order_relaxed);
        for (int i = 0; i < n; i++) {
                if (events[i].data.ptr)
                        hfd_grpc_connection_event(events[i].data.ptr, events[i].events);
                else
                        has_commands = true;
        }
        for (struct hfd_grpc_connection *connection = channel->connections; read_more && connection;
             connection = connection->next)
                if (connection->has_more_input && !connection->dead)
                        hfd_grpc_io_read(connection);
        if (has_commands)
                run_commands(channel, hf__mailbox_take(&channel->mailbox));
        run_timers(channel);
        /* The callbacks of this iteration may have started calls. */
        if (hf__mailbox_is_wake_due(&channel->mailbox))
                run_commands(channel, hf__mailbox_take_early(&channel->mailbox));
        hf__mailbox_wake_delayed();
        flush_connections(channel);
}

static void *run_loop(void *ctx) {
        struct hfd_grpc_channel *channel = ctx;

        channel->self = pthread_self();
        hf__blocks_begin();
        while (!channel->stopping)
                run_iteration(channel);
        /* Only look-ups can post a command after the stop. */
        while (channel->connections) {
                hfd_grpc_connection_fail(channel->connections, HF_E_CANCELED, "canceled");
                hfd_grpc_connection_free(channel->connections);
        }
        while (channel->resolvers) {
                hfd_grpc_resolver_join(channel->resolvers);
                /* The command is a member of the resolver, so the mailbox must not keep it. */
                (void)hf__mailbox_take(&channel->mailbox);
                hfd_grpc_resolver_free(channel->resolvers);
        }
        hf__blocks_end();
        return NULL;
}

/* ---- life ---- */

static void destroy_channel(struct hfd_grpc_channel *channel) {
        assert(!channel->connections && !channel->resolvers);
        assert(!channel->stream_timers.first && !channel->connection_timers.first);
        if (channel->epoll_fd >= 0)
                close(channel->epoll_fd);
        hf__mailbox_done(&channel->mailbox);
        pthread_mutex_destroy(&channel->mu);
        free(channel->current);
        free(channel);
}

HF__CLEANUP_DEFINE(channel_cleanup, struct hfd_grpc_channel *, destroy_channel)

/* Makes the mutex and the mailbox, or neither: destroy_channel could not see which one was made. */
static int init_locks(struct hfd_grpc_channel *channel) {
        int r = hf__mutex_init(&channel->mu);

        if (r != 0)
                return r;
        r = hf__mailbox_init(&channel->mailbox);
        if (r != 0)
                pthread_mutex_destroy(&channel->mu);
        return r;
}

static int open_epoll(struct hfd_grpc_channel *channel) {
        struct epoll_event event = {.events = EPOLLIN}; /* data.ptr NULL: the mailbox */

        channel->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (channel->epoll_fd < 0 ||
            epoll_ctl(channel->epoll_fd, EPOLL_CTL_ADD, channel->mailbox.fd, &event) != 0)
                return -errno;
        return 0;
}

int hfd_grpc_channel_new(const struct hfd_grpc_channel_config *config,
                         struct hfd_grpc_channel **ret_channel) {
        assert(config->host && config->endpoints && config->n_endpoints > 0);
        HF__CLEANUP(hf__free_cleanup) struct hfd_grpc_channel *memory = calloc(1, sizeof *memory);
        if (!memory)
                return -ENOMEM;
        int r = init_locks(memory);
        if (r != 0)
                return r;
        HF__CLEANUP(channel_cleanup) struct hfd_grpc_channel *channel = HF__TAKE(memory);
        channel->config = *config;
        channel->clock = hf_host_clock(config->host);
        channel->now = hf_now(channel->clock);
        atomic_init(&channel->alive_at, channel->now);
        channel->epoll_fd = -1;
        channel->current = calloc(config->n_endpoints * HFD_GRPC_LANES, sizeof *channel->current);
        if (!channel->current)
                return -ENOMEM;
        r = open_epoll(channel);
        if (r != 0)
                return r;
        r = hf__thread_start(config->host, config->thread_name, run_loop, channel,
                             &channel->thread);
        if (r != 0)
                return r;
        *ret_channel = HF__TAKE(channel);
        return 0;
}

void hfd_grpc_channel_stop(struct hfd_grpc_channel *channel) {
        if (!channel)
                return;
        pthread_mutex_lock(&channel->mu);
        if (!channel->closed)
                hfd_grpc_channel_post(channel, &channel->stop_command, HFD_GRPC_STOP);
        channel->closed = true;
        pthread_mutex_unlock(&channel->mu);
}

void hfd_grpc_channel_join(struct hfd_grpc_channel *channel) {
        if (!channel)
                return;
        assert(!pthread_equal(channel->thread, pthread_self()));
        (void)hf__thread_join(channel->thread);
}

struct hfd_grpc_channel *hfd_grpc_channel_free(struct hfd_grpc_channel *channel) {
        if (channel)
                destroy_channel(channel);
        return NULL;
}
