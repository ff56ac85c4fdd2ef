/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker: one thread, one epoll, and the connections that belong to it for life.
 *
 * A turn: wait for sockets; serve those with events; take the letters of other threads (new
 * sockets, news of answers) and of this one; serve the connections these marked dirty, each once,
 * in slices, so that a fan-out to thousands of watches does not hold up other requests; once a
 * second look at the time limits. With nothing to do a worker wakes once a second, which also
 * proves to the watchdog that it turns.
 *
 * A handler on this thread posts its answer without a lock or a system call, to `local`.
 *
 * Worker 0 also accepts, and gives the sockets out in turn.
 *
 * Leaving: http->closing, then a poke. The worker frees its connections, which makes their requests
 * `gone`; after that nobody posts any more.
 */
#include "server/http/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/thread.h"
#include "server/http/connection.h"

#define EVENTS_PER_TURN  64
#define DIRTY_PER_TURN   64
#define ACCEPTS_PER_TURN 32
#define TICK             HF_NSEC_PER_SEC

/* A new connection on its way to its worker. */
struct socket_message {
        struct hfd_worker_message message;
        int fd;
        struct sockaddr_storage address;
};

static __thread struct hfd_worker *this_worker;

void hfd_worker_post(struct hfd_worker *worker, struct hfd_worker_message *message) {
        if (worker != this_worker) {
                hf__mailbox_post(&worker->box, &message->message);
                return;
        }
        message->message.next = NULL;
        *worker->local_tail = &message->message;
        worker->local_tail = &message->message.next;
}

/* ---- accepting: worker 0 ---- */

static void watch_listener(struct hfd_worker *worker, bool on) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = worker->http};

        if (worker->accepting == on)
                return;
        if (!epoll_ctl(worker->epoll, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, worker->http->listen_fd,
                       &event))
                worker->accepting = on;
}

static void adopt(struct hfd_worker *worker, int fd, const struct sockaddr_storage *address) {
        if (hfd_connection_new(worker, fd, address)) {
                close(fd);
                hfd_http_connection_gone(worker->http);
        }
}

static void hand_out(struct hfd_worker *worker, int fd, const struct sockaddr_storage *address) {
        struct hfd_http *http = worker->http;
        struct hfd_worker *to = &http->workers[http->next_worker++ % http->n_workers];
        struct socket_message *message;

        if (atomic_fetch_add_explicit(&http->n_connections, 1, memory_order_relaxed) >=
            http->max_connections)
                goto refuse;
        if (to == worker) {
                adopt(worker, fd, address);
                return;
        }
        message = calloc(1, sizeof *message);
        if (!message)
                goto refuse;
        message->message.kind = HFD_MESSAGE_SOCKET;
        message->fd = fd;
        message->address = *address;
        hfd_worker_post(to, &message->message);
        return;
refuse:
        close(fd);
        hfd_http_connection_gone(http);
}

static void accept_some(struct hfd_worker *worker) {
        for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
                struct sockaddr_storage address = {0};
                socklen_t n = sizeof address;
                int fd = accept4(worker->http->listen_fd, (struct sockaddr *)&address, &n,
                                 SOCK_NONBLOCK | SOCK_CLOEXEC);

                if (fd >= 0) {
                        hand_out(worker, fd, &address);
                        continue;
                }
                if (errno == ECONNABORTED || errno == EINTR)
                        continue;
                /* Out of files or memory: the listener would be ready for ever. The tick tries
                 * again. */
                if (errno != EAGAIN)
                        watch_listener(worker, false);
                return;
        }
}

/* ---- letters ---- */

static void open_message(struct hfd_worker *worker, struct hfd_worker_message *message) {
        struct hfd_http_request *request;

        if (message->kind == HFD_MESSAGE_SOCKET) {
                struct socket_message *s = (struct socket_message *)message;

                adopt(worker, s->fd, &s->address);
                free(s);
                return;
        }
        request = (struct hfd_http_request *)message;
        hfd_http_response_taken(request);
        if (request->connection) {
                request->connection->protocol->response(request->connection, request);
                hfd_connection_mark(request->connection);
        }
        hfd_http_request_unref(request);
}

static void open_messages(struct hfd_worker *worker, struct hf__message *messages) {
        while (messages) {
                struct hf__message *next = messages->next;

                open_message(worker, (struct hfd_worker_message *)messages);
                messages = next;
        }
}

static void open_local_messages(struct hfd_worker *worker) {
        while (worker->local) {
                struct hf__message *messages = worker->local;

                worker->local = NULL;
                worker->local_tail = &worker->local;
                open_messages(worker, messages);
        }
}

/* ---- the turn ---- */

static void serve_dirty(struct hfd_worker *worker) {
        for (int i = 0; i < DIRTY_PER_TURN && worker->dirty; i++) {
                struct hfd_connection *connection = worker->dirty;

                worker->dirty = connection->dirty_next;
                if (!worker->dirty)
                        worker->dirty_tail = &worker->dirty;
                connection->is_dirty = false;
                hfd_connection_serve(connection, 0);
        }
}

static void drain(struct hfd_worker *worker) {
        worker->draining = true;
        if (worker->index == 0)
                watch_listener(worker, false);
        for (struct hfd_connection *c = worker->connections; c; c = c->next)
                if (c->state == HFD_CONNECTION_OPEN) {
                        c->protocol->drain(c);
                        hfd_connection_mark(c);
                }
}

static void tick(struct hfd_worker *worker) {
        for (struct hfd_connection *c = worker->connections; c; c = c->next)
                hfd_connection_tick(c, worker->now);
        if (worker->index == 0 && !worker->draining)
                watch_listener(worker, true);
}

static void iteration(struct hfd_worker *worker) {
        struct epoll_event events[EVENTS_PER_TURN];
        bool busy = worker->dirty || worker->local;
        hf_nsec left = worker->next_tick - worker->now;
        int timeout_ms = busy ? 0
                              : (int)((left > TICK ? TICK
                                       : left < 0  ? 0
                                                   : left) /
                                      HF_NSEC_PER_MSEC) +
                                         1;
        int n = epoll_wait(worker->epoll, events, EVENTS_PER_TURN, timeout_ms);
        bool messages = false;

        worker->now = hf_now(worker->http->clock);
        atomic_fetch_add_explicit(&worker->iterations, 1, memory_order_relaxed);
        for (int i = 0; i < n; i++) {
                if (events[i].data.ptr == worker)
                        messages = true;
                else if (events[i].data.ptr == worker->http)
                        accept_some(worker);
                else
                        hfd_connection_serve(events[i].data.ptr, events[i].events);
        }
        if (messages)
                open_messages(worker, hf__mailbox_take(&worker->box));
        open_local_messages(worker);
        if (!worker->draining &&
            atomic_load_explicit(&worker->http->draining, memory_order_acquire))
                drain(worker);
        serve_dirty(worker);
        if (worker->now >= worker->next_tick) {
                tick(worker);
                worker->next_tick = worker->now + TICK;
        }
}

static void *run(void *ctx) {
        struct hfd_worker *worker = ctx;

        this_worker = worker;
        worker->now = hf_now(worker->http->clock);
        worker->next_tick = worker->now + TICK;
        while (!atomic_load_explicit(&worker->http->closing, memory_order_acquire))
                iteration(worker);
        while (worker->connections)
                hfd_connection_free(worker->connections);
        open_local_messages(worker); /* what on_gone callbacks answered */
        this_worker = NULL;
        return NULL;
}

int hfd_worker_init(struct hfd_worker *worker, struct hfd_http *http, unsigned index) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = worker};
        int r;

        *worker = (struct hfd_worker){.http = http, .index = index, .epoll = -1};
        worker->dirty_tail = &worker->dirty;
        worker->local_tail = &worker->local;
        worker->in = malloc(HFD_IN_SPACE);
        worker->out = malloc(HFD_OUT_SPACE + HFD_OUT_SLACK);
        if (!worker->in || !worker->out) {
                free(worker->in);
                free(worker->out);
                return -ENOMEM;
        }
        r = hf__mailbox_init(&worker->box);
        if (r == 0) {
                worker->epoll = epoll_create1(EPOLL_CLOEXEC);
                if (worker->epoll >= 0 &&
                    !epoll_ctl(worker->epoll, EPOLL_CTL_ADD, worker->box.fd, &event))
                        return 0;
                r = -errno;
                if (worker->epoll >= 0)
                        close(worker->epoll);
                hf__mailbox_done(&worker->box);
        }
        free(worker->in);
        free(worker->out);
        return r;
}

int hfd_worker_start(struct hfd_worker *worker) {
        int r;

        if (worker->index == 0) {
                watch_listener(worker, true);
                if (!worker->accepting)
                        return -errno;
        }
        r = hf__thread_start(worker->http->host, worker->index == 0 ? "hfd-http-0" : "hfd-http",
                             run, worker, &worker->thread);
        worker->running = r == 0;
        return r;
}

void hfd_worker_done(struct hfd_worker *worker) {
        struct hf__message *messages;

        if (worker->running) {
                hf__mailbox_wake(&worker->box);
                pthread_join(worker->thread, NULL);
        }
        /* Sockets that worker 0 gave out too late; their connections are not made any more. */
        messages = hf__mailbox_take(&worker->box);
        while (messages) {
                struct hfd_worker_message *message = (struct hfd_worker_message *)messages;

                messages = messages->next;
                if (message->kind == HFD_MESSAGE_SOCKET) {
                        close(((struct socket_message *)message)->fd);
                        free(message);
                } else {
                        hfd_http_request_unref((struct hfd_http_request *)message);
                }
        }
        hf__mailbox_done(&worker->box);
        close(worker->epoll);
        free(worker->in);
        free(worker->out);
}
