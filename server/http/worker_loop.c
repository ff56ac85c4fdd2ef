/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop of a worker: one thread that serves the worker's connections. A connection is a
 * stranger's until its sender is known (connection.c).
 *
 * One iteration:
 * - wait for events of sockets, for about a second at most. So an idle worker makes progress too;
 *   the watchdog checks this.
 * - serve the known senders' connections with events.
 * - handle the messages (new sockets, changed responses, requests that continue, calls) of other
 *   threads and of this one.
 * - when http->draining has been set: begin to drain the connections.
 * - serve the dirty connections of known senders, and those that are only to be freed, in at most
 *   MAX_DIRTY steps, so that an event for thousands of watches does not delay other requests. A
 *   connection is dirty if one of its responses has changed, or it has more to do.
 * - serve one stranger's connection: in turn one with an event and a dirty one. Strangers' sockets
 *   are in a second epoll, and the dirty ones in a second list, so that a flood of handshakes or
 *   requests, of which a step takes up to some milliseconds, delays known senders by one step only.
 *   The epoll and the list return the strangers in turn.
 * - report the responses that have begun and are not complete (report_unsent).
 * - once a second, check the time limits.
 *
 * Worker 0 also accepts connections, and distributes the sockets over all workers in turn.
 *
 * Invariant: only this thread touches the worker's connections, and it blocks in epoll_wait only.
 *
 * The end: http->closing is set and the worker is woken. It frees its connections, which detaches
 * their requests (response.gone). After that only worker 0 may post to it: sockets.
 * hfd_worker_loop_stop closes them, and handles what was posted before and not taken.
 */
#include "server/http/worker_loop.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/blocks.h"
#include "base/json_blocks.h"
#include "base/thread.h"
#include "server/http/connection/connection.h"
#include "server/http/connection/http_private.h"

/* Limits per iteration, so that no kind of work delays the others. */
#define MAX_EVENTS  64
#define MAX_DIRTY   64
#define MAX_ACCEPTS 8

#define TICK HF_NSEC_PER_SEC /* interval between checks of the time limits */

/* A new connection on its way to its worker. */
struct socket_message {
        struct hfd_worker_message message;
        int fd; /* owned */
        struct sockaddr_storage address;
};

/* ---- accepting: worker 0 ---- */

static void watch_listener(struct hfd_worker *worker, bool on) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = worker->http};

        assert(worker->index == 0);
        if (worker->accepting == on)
                return;
        if (epoll_ctl(worker->epoll, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, worker->http->listen_fd,
                      &event) == 0)
                worker->accepting = on;
}

/* Creates a connection for an accepted socket, which n_connections already includes. */
static void adopt_socket(struct hfd_worker *worker, int fd,
                         const struct sockaddr_storage *address) {
        assert(hfd_worker_mailbox_is_current(&worker->mailbox));
        if (hfd_connection_new(worker, fd, address) != 0) {
                close(fd);
                hfd_connection_uncount(worker->http);
        }
}

/* Counts the socket before it is handed over, so that max_connections holds for all workers: the
 * worker that gets it makes room or refuses it. */
static void assign_socket(struct hfd_worker *worker, int fd,
                          const struct sockaddr_storage *address) {
        struct hfd_http *http = worker->http;
        struct hfd_worker *to = &http->workers[http->next_worker++ % http->n_workers];
        struct socket_message *message;

        atomic_fetch_add_explicit(&http->n_connections, 1, memory_order_relaxed);
        if (to == worker) {
                adopt_socket(worker, fd, address);
                return;
        }
        message = calloc(1, sizeof *message);
        if (!message) {
                close(fd);
                hfd_connection_uncount(http);
                return;
        }
        message->message.kind = HFD_WORKER_MESSAGE_SOCKET;
        message->fd = fd;
        message->address = *address;
        hfd_worker_mailbox_post(&to->mailbox, &message->message);
}

/* Without a free descriptor, a connection in the backlog can neither be accepted nor refused. So
 * this closes the spare descriptor, accepts the connection and closes it at once. Its client then
 * sees a closed connection and need not wait for a timeout. False: that did not work. */
static bool refuse_socket(struct hfd_worker *worker) {
        struct hfd_http *http = worker->http;
        int fd;

        if (http->spare_fd < 0)
                http->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (http->spare_fd < 0)
                return false;
        close(http->spare_fd);
        fd = accept4(http->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
                close(fd);
                hfd_refusals_count(&http->refusals, HFD_REFUSAL_DESCRIPTORS);
        }
        http->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        return fd >= 0;
}

static void accept_sockets(struct hfd_worker *worker) {
        assert(worker->index == 0);
        for (int i = 0; i < MAX_ACCEPTS; i++) {
                struct sockaddr_storage address = {0};
                socklen_t n = sizeof address;
                int fd = accept4(worker->http->listen_fd, (struct sockaddr *)&address, &n,
                                 SOCK_NONBLOCK | SOCK_CLOEXEC);

                if (fd >= 0) {
                        assign_socket(worker, fd, &address);
                        continue;
                }
                if (errno == ECONNABORTED || errno == EINTR)
                        continue;
                if ((errno == EMFILE || errno == ENFILE) && refuse_socket(worker))
                        continue;
                /* Without descriptors or memory the listener would stay ready for ever and the
                 * thread would spin. The next tick tries again. */
                if (errno != EAGAIN)
                        watch_listener(worker, false);
                return;
        }
}

/* ---- messages ---- */

static void handle_request_message(struct hfd_worker *worker, struct hfd_http_request *request) {
        void *ctx;
        void (*continuation)(void *ctx) =
                hfd_http_response_clear_posted(request, worker->now, &ctx);

        if (continuation) {
                if (request->connection)
                        continuation(ctx);
                hfd_http_request_unref(request); /* the reference that post_locked took */
                return;
        }
        if (request->connection) {
                /* Without a continuation a message means that the response has changed: it has
                 * started, grown, ended or been cut. So it has started, and `streaming` does not
                 * change any more. */
                if (request->response.streaming && request->headers)
                        hfd_connection_drop_content(request->connection, request);
                request->connection->protocol->response_changed(request->connection, request);
                hfd_connection_mark_dirty(request->connection);
        }
        if (request->on_unsent && !request->responded && request->connection) {
                request->responded = true;
                request->responded_next = worker->responded; /* with the reference of post_locked */
                worker->responded = request;
                return;
        }
        hfd_http_request_unref(request); /* the reference that post_locked took */
}

static void handle_message(struct hfd_worker *worker, struct hfd_worker_message *message) {
        if (message->kind == HFD_WORKER_MESSAGE_CALL) {
                struct hfd_http_call *call = (struct hfd_http_call *)message;

                call->fn(call);
        } else if (message->kind == HFD_WORKER_MESSAGE_SOCKET) {
                struct socket_message *socket = (struct socket_message *)message;

                adopt_socket(worker, socket->fd, &socket->address);
                free(socket);
        } else {
                assert(message->kind == HFD_WORKER_MESSAGE_REQUEST);
                handle_request_message(worker, (struct hfd_http_request *)message);
        }
}

static void handle_messages(struct hfd_worker *worker, struct hf__message *messages) {
        assert(hfd_worker_mailbox_is_current(&worker->mailbox));
        while (messages) {
                struct hf__message *next = messages->next;

                handle_message(worker, (struct hfd_worker_message *)messages);
                messages = next;
        }
}

/* Repeats until the list is empty, because handling a message may post another one. */
static void handle_local_messages(struct hfd_worker *worker) {
        while (worker->mailbox.local)
                handle_messages(worker, hfd_worker_mailbox_take_local(&worker->mailbox));
}

/* ---- the loop ---- */

/* One read may contain many requests, and most of them post to the store's thread. Delayed wakes
 * let that thread wake once for many of them. */
static void serve_connection(struct hfd_connection *connection, uint32_t events) {
        hf__mailbox_delay_wakes();
        hfd_connection_serve(connection, events);
        hf__mailbox_wake_delayed();
}

/* Serves the first connection of the list, which is not empty. */
static void serve_first(struct hfd_dirty_list *list) {
        struct hfd_connection *connection = list->first;

        assert(connection->dirty_list == list);
        hfd_connection_unmark_dirty(connection);
        serve_connection(connection, 0);
}

static void serve_dirty(struct hfd_worker *worker) {
        for (int i = 0; i < MAX_DIRTY && worker->dirty.first; i++)
                serve_first(&worker->dirty);
}

/* has_events: a stranger's socket may have an event. */
static void serve_stranger(struct hfd_worker *worker, bool has_events) {
        struct epoll_event event;
        bool has_dirty = worker->dirty_strangers.first != NULL;
        bool serves_dirty = has_dirty && (worker->turn_of_dirty || !has_events);

        worker->turn_of_dirty = !serves_dirty;
        if (serves_dirty)
                serve_first(&worker->dirty_strangers);
        else if (has_events && epoll_wait(worker->stranger_epoll, &event, 1, 0) == 1)
                serve_connection(event.data.ptr, event.events);
}

/* Reports the responses of which this iteration has learned and which are not complete. Those whose
 * connection is still to be served, such as most strangers', are reported again after its turn if
 * they are not complete then. The worker may read content_length without the lock, because it is
 * final once the response has started. */
static void report_unsent(struct hfd_worker *worker) {
        assert(hfd_worker_mailbox_is_current(&worker->mailbox));
        while (worker->responded) {
                struct hfd_http_request *request = worker->responded;

                worker->responded = request->responded_next;
                struct hfd_connection *connection = request->connection;
                bool is_unsent = connection && !request->response.complete;
                bool waits = is_unsent && connection->dirty_list;
                if (is_unsent)
                        request->on_unsent(request->on_unsent_ctx, request->response.content_length,
                                           waits);
                if (waits) {
                        request->responded_next = connection->responded;
                        connection->responded = request; /* with the reference */
                } else {
                        hfd_http_request_unref(request);
                }
        }
}

static void drain_connections(struct hfd_worker *worker) {
        assert(!worker->draining);
        worker->draining = true;
        worker->draining_since = worker->now;
        if (worker->index == 0)
                watch_listener(worker, false);
        for (struct hfd_connection *c = worker->connections; c; c = c->next)
                if (c->state == HFD_CONNECTION_OPEN) {
                        c->protocol->drain(c);
                        hfd_connection_mark_dirty(c);
                }
}

static void tick_connections(struct hfd_worker *worker) {
        assert(hfd_worker_mailbox_is_current(&worker->mailbox));
        for (struct hfd_connection *c = worker->connections; c; c = c->next)
                hfd_connection_tick(c, worker->now);
        if (worker->index == 0) {
                hfd_refusals_report(&worker->http->refusals, worker->now,
                                    worker->http->max_connections);
                if (!worker->draining)
                        watch_listener(worker, true);
        }
        worker->next_tick = worker->now + TICK;
}

/* How long epoll may wait, in milliseconds: 0 while there is work, else until the next tick, and
 * one more, because a wait that is rounded down would end before the tick. */
static int wait_ms(const struct hfd_worker *worker) {
        hf_nsec left = worker->next_tick - worker->now;

        if (worker->dirty.first || worker->dirty_strangers.first || worker->mailbox.local)
                return 0;
        if (left > TICK)
                left = TICK;
        if (left < 0)
                left = 0;
        return (int)(left / HF_NSEC_PER_MSEC) + 1;
}

static void run_iteration(struct hfd_worker *worker) {
        struct epoll_event events[MAX_EVENTS];
        int n = epoll_wait(worker->epoll, events, MAX_EVENTS, wait_ms(worker));
        bool has_messages = false, has_strangers = false;

        assert(hfd_worker_mailbox_is_current(&worker->mailbox));
        worker->now = hf_now(worker->http->clock);
        atomic_fetch_add_explicit(&worker->iterations, 1, memory_order_relaxed);
        /* epoll reports a connection once, and serving it frees no other connection. So all
         * pointers in events stay valid. */
        for (int i = 0; i < n; i++) {
                if (events[i].data.ptr == worker)
                        has_messages = true;
                else if (events[i].data.ptr == &worker->stranger_epoll)
                        has_strangers = true;
                else if (events[i].data.ptr == worker->http)
                        accept_sockets(worker);
                else
                        serve_connection(events[i].data.ptr, events[i].events);
        }
        if (has_messages)
                handle_messages(worker, hf__mailbox_take(&worker->mailbox.shared));
        handle_local_messages(worker);
        if (!worker->draining &&
            atomic_load_explicit(&worker->http->draining, memory_order_acquire))
                drain_connections(worker);
        serve_dirty(worker);
        serve_stranger(worker, has_strangers);
        report_unsent(worker);
        if (worker->now >= worker->next_tick)
                tick_connections(worker);
}

static void *worker_main(void *ctx) {
        struct hfd_worker *worker = ctx;

        hfd_worker_mailbox_set_current(&worker->mailbox);
        hf__json_blocks_begin(); /* requests are parsed on this thread */
        hf__blocks_begin();
        worker->now = hf_now(worker->http->clock);
        worker->next_tick = worker->now + TICK;
        while (!atomic_load_explicit(&worker->http->closing, memory_order_acquire))
                run_iteration(worker);
        while (worker->connections)
                hfd_connection_free(worker->connections);
        /* A callback on_gone may have responded to other requests. */
        handle_local_messages(worker);
        report_unsent(worker);
        hf__blocks_end();
        hf__json_blocks_end();
        hfd_worker_mailbox_set_current(NULL);
        return NULL;
}

/* ---- start and end: the creating thread ---- */

int hfd_worker_loop_start(struct hfd_worker *worker) {
        int r;

        assert(!worker->running);
        if (worker->index == 0) {
                watch_listener(worker, true);
                if (!worker->accepting)
                        return -errno;
        }
        r = hf__thread_start(worker->http->host, worker->index == 0 ? "hfd-http-0" : "hfd-http",
                             worker_main, worker, &worker->thread);
        worker->running = r == 0;
        return r;
}

/* Handles the messages that the thread has not taken before it exited: sockets that worker 0
 * assigned too late, and responses and calls that were posted just before their requests were gone.
 */
static void drop_messages(struct hfd_worker *worker) {
        struct hf__message *messages = hf__mailbox_take(&worker->mailbox.shared);

        while (messages) {
                struct hfd_worker_message *message = (struct hfd_worker_message *)messages;

                messages = messages->next;
                if (message->kind == HFD_WORKER_MESSAGE_SOCKET) {
                        close(((struct socket_message *)message)->fd);
                        free(message);
                        hfd_connection_uncount(worker->http);
                } else if (message->kind == HFD_WORKER_MESSAGE_CALL) {
                        struct hfd_http_call *call = (struct hfd_http_call *)message;

                        call->fn(call);
                } else {
                        struct hfd_http_request *request = (struct hfd_http_request *)message;
                        void *ctx;

                        (void)hfd_http_response_clear_posted(request, worker->now, &ctx);
                        hfd_http_request_unref(request);
                }
        }
}

void hfd_worker_loop_stop(struct hfd_worker *worker) {
        assert(atomic_load_explicit(&worker->http->closing, memory_order_relaxed));
        if (worker->running) {
                hf__mailbox_wake(&worker->mailbox.shared);
                (void)hf__thread_join(worker->thread);
        }
        worker->running = false;
        drop_messages(worker);
}
