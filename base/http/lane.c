/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes: curl's multi handles, their sockets in the engine's epoll set, and their timers.
 *
 * curl's callbacks set which descriptors the loop watches, and when it must call curl next. The
 * loop calls curl_multi_socket_action for descriptors that have events, for timers, and in
 * reread_sockets.
 *
 * Invariant: when curl has closed a connection, its descriptor is neither in the tables nor in the
 * epoll set. Another thread may get the same number for its own socket at once, and
 * hf__lanes_flush, for example, would set an option of that socket. Descriptors of curl's resolver
 * are an exception: curl closes them without a callback, and set_epoll_events handles that.
 *
 * Three workarounds for faults of libcurl 7.88:
 *
 * - libcurl can keep received bytes of one stream in a buffer without asking to be called again. If
 *   nothing more arrives on the connection, the stream makes no progress until its deadline. So
 *   reread_sockets makes curl read from all sockets of the pool that have received data. It runs in
 *   the iteration that delivers a piece of a body that may have filled curl's buffer, otherwise
 *   REREAD_DELAY after input, and in each further iteration as long as it delivers more data.
 *
 * - libcurl opens more connections than it needs: of a thousand concurrent requests, most get a
 *   connection of their own. So a pool limits the connections to each origin. The limit grows with
 *   the number of requests, by one connection for each STREAMS_PER_CONNECTION. It is removed for
 *   the rest of the pool's life when a request cannot share a connection or sets
 *   no_connection_limit, or when a response arrives in HTTP/1.x. In the last case restart_waiting
 *   restarts the requests that wait for a connection.
 *
 * - libcurl writes each HTTP/2 frame separately: a request's headers, its body, a window update.
 *   Each write wakes the peer. So up to HF__HTTP_N_CORKED shared connections are corked. With
 *   TCP_CORK the kernel collects the written frames, and hf__lanes_flush sends them at the end of
 *   an iteration of the loop.
 */
#include "base/http/lane.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/http/engine_private.h"
#include "base/http/exchange.h"

#define MAX_IDLE_CONNECTIONS 64L   /* per pool */
#define MAX_STREAMS          1000L /* on one connection; the server's limit is usually lower */
#define MIN_CONNECTIONS      4L    /* the lowest limit of connections to one origin */
/* Must be less than the number of streams that a server allows on a connection (holdfastd: 250,
 * kube-apiserver: 100, or 250 in old releases). Otherwise requests would wait in curl although
 * another connection could be opened. */
#define STREAMS_PER_CONNECTION 64

/* How long after input curl may keep bytes back. A shorter delay would reread busy pools more
 * often. */
#define REREAD_DELAY (20 * HF_NSEC_PER_MSEC)

/* ---- sockets ---- */

/* Returns the table entry of a descriptor. Grows the table when needed. NULL = out of memory. */
static struct hf__socket *socket_at(struct hf__lanes *lanes, int fd) {
        size_t n = lanes->n_sockets;

        assert(fd >= 0);
        if ((size_t)fd < n)
                return &lanes->sockets[fd];
        while (n <= (size_t)fd)
                n = n ? 2 * n : 64;
        struct hf__socket *sockets = realloc(lanes->sockets, n * sizeof *sockets);
        if (!sockets)
                return NULL;
        memset(sockets + lanes->n_sockets, 0, (n - lanes->n_sockets) * sizeof *sockets);
        lanes->sockets = sockets;
        lanes->n_sockets = n;
        return &sockets[fd];
}

/* Adds the descriptor to the epoll set, or changes its events there. Returns the events that are
 * watched afterwards; 0 = epoll_ctl failed. */
static uint32_t set_epoll_events(int epoll_fd, int fd, uint32_t watched, uint32_t events) {
        struct epoll_event event = {.events = events, .data.fd = fd};

        if (watched == events)
                return events;
        int r = epoll_ctl(epoll_fd, watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event);
        /* The set may differ from the table, because curl closes some descriptors without a
         * callback and their numbers are reused. */
        if (r < 0 && errno == EEXIST)
                r = epoll_ctl(epoll_fd, EPOLL_CTL_MOD, fd, &event);
        else if (r < 0 && errno == ENOENT)
                r = epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
        return r < 0 ? 0 : event.events;
}

/* CURLMOPT_SOCKETFUNCTION. After a failure the descriptor stays unwatched, and its requests wait
 * for their deadlines or a cancellation: an error returned to curl would end all requests of the
 * pool. */
static int on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *socket_ctx) {
        struct hf__pool *pool = ctx;
        struct hf__socket *sock = socket_at(&pool->engine->lanes, fd);
        uint32_t events = 0;

        if (!sock)
                return 0;
        sock->closed = false;
        if (what == CURL_POLL_REMOVE) {
                /* Leave the descriptor in the epoll set: when curl uses the connection again, no
                 * system call is needed. Besides, curl may already have closed it, and another
                 * thread may have got its number. A connection is removed from the set when it is
                 * closed, or at its next event while it is idle. */
                sock->pool = NULL;
                /* curl's resolver closes the descriptors it opened, which removes them from the
                 * set. */
                if (!sock->is_connection)
                        sock->watched = 0;
                return 0;
        }
        if (what & CURL_POLL_IN)
                events |= EPOLLIN;
        if (what & CURL_POLL_OUT)
                events |= EPOLLOUT;
        sock->watched = set_epoll_events(pool->engine->epoll_fd, fd, sock->watched, events);
        sock->pool = sock->watched ? pool : NULL;
        return 0;
}

void hf__lanes_socket_opened(struct hf__http_engine *engine, curl_socket_t fd) {
        hf__engine_assert_thread(engine);
        struct hf__socket *sock = socket_at(&engine->lanes, fd);

        if (!sock)
                return;
        sock->closed = false;
        sock->is_connection = true;
        sock->opened_at = engine->now;
}

/* curl may close a descriptor before it asks to stop watching it. So this function removes the
 * descriptor from every table before it closes it. hf__lanes_done calls this function after the
 * engine's thread has ended, so do not assert here that the thread is the engine's. */
int hf__lanes_close_socket(void *ctx, curl_socket_t fd) {
        struct hf__http_engine *engine = ctx;
        struct hf__lanes *lanes = &engine->lanes;

        for (size_t i = 0; i < lanes->n_corked; i++)
                if (lanes->corked[i].fd == fd)
                        lanes->corked[i--] = lanes->corked[--lanes->n_corked];
        if ((size_t)fd < lanes->n_sockets) {
                struct hf__socket *sock = &lanes->sockets[fd];
                if (sock->watched)
                        (void)epoll_ctl(engine->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
                *sock = (struct hf__socket){.closed = true};
        }
        return close(fd);
}

/* ---- corked connections ---- */

void hf__lanes_mark_dirty(struct hf__pool *pool) { pool->engine->lanes.dirty |= 1u << pool->index; }

void hf__lanes_cork_socket(struct hf__pool *pool, curl_socket_t fd) {
        struct hf__lanes *lanes = &pool->engine->lanes;
        const int on = 1;

        assert(lanes->n_corked <= HF__HTTP_N_CORKED);
        if (lanes->n_corked < HF__HTTP_N_CORKED &&
            setsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, sizeof on) == 0)
                lanes->corked[lanes->n_corked++] = (struct hf__corked){fd, pool->index};
}

/* Setting TCP_NODELAY sends the collected bytes even if the option is already set, and leaves the
 * socket corked: see tcp(7). */
void hf__lanes_flush(struct hf__http_engine *engine) {
        struct hf__lanes *lanes = &engine->lanes;
        const int on = 1;

        hf__engine_assert_thread(engine);
        for (size_t i = 0; i < lanes->n_corked && lanes->dirty != 0; i++)
                if (lanes->dirty & 1u << lanes->corked[i].index)
                        (void)setsockopt(lanes->corked[i].fd, IPPROTO_TCP, TCP_NODELAY, &on,
                                         sizeof on);
        lanes->dirty = 0;
}

/* ---- pools ---- */

/* CURLMOPT_TIMERFUNCTION */
static int on_curl_timer(CURLM *multi, long timeout_ms, void *ctx) {
        struct hf__pool *pool = ctx;

        if (timeout_ms < 0)
                pool->curl_due = HF_NSEC_NEVER;
        else if (timeout_ms == 0)
                pool->curl_due = 0;
        else
                pool->curl_due = hf_now(pool->engine->clock) + timeout_ms * HF_NSEC_PER_MSEC;
        return 0;
}

/* A multi handle closes its connections through an internal easy handle. Without NOSIGNAL the
 * internal handle changes the process's action for SIGPIPE, which belongs to the host. The internal
 * handle copies NOSIGNAL from each handle that is added, so this function adds one and removes it
 * again. */
static bool set_no_signal(CURLM *multi) {
        CURL *easy = curl_easy_init();
        bool ok = easy && !curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) &&
                  curl_multi_add_handle(multi, easy) == CURLM_OK &&
                  curl_multi_remove_handle(multi, easy) == CURLM_OK;

        curl_easy_cleanup(easy);
        return ok;
}

/* NULL = out of memory. */
static struct hf__pool *pool_new(struct hf__http_engine *engine, size_t index) {
        struct hf__pool *pool = calloc(1, sizeof *pool);

        if (!pool)
                return NULL;
        pool->engine = engine;
        pool->index = index;
        pool->curl_due = HF_NSEC_NEVER;
        pool->reread_at = HF_NSEC_NEVER;
        pool->multi = curl_multi_init();
        if (!pool->multi || !set_no_signal(pool->multi)) {
                (void)curl_multi_cleanup(pool->multi);
                free(pool);
                return NULL;
        }
        curl_multi_setopt(pool->multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket);
        curl_multi_setopt(pool->multi, CURLMOPT_SOCKETDATA, pool);
        curl_multi_setopt(pool->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer);
        curl_multi_setopt(pool->multi, CURLMOPT_TIMERDATA, pool);
        curl_multi_setopt(pool->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
        curl_multi_setopt(pool->multi, CURLMOPT_MAXCONNECTS, MAX_IDLE_CONNECTIONS);
        curl_multi_setopt(pool->multi, CURLMOPT_MAX_CONCURRENT_STREAMS, MAX_STREAMS);
        return pool;
}

void hf__lanes_limit_connections(struct hf__pool *pool, bool shares) {
        hf__engine_assert_thread(pool->engine);
        pool->unlimited = pool->unlimited || !shares;
        if (pool->unlimited) {
                if (pool->max_connections == 0)
                        return;
                pool->max_connections = 0;
        } else {
                long limit = MIN_CONNECTIONS + (long)(pool->n_active / STREAMS_PER_CONNECTION);
                if (limit <= pool->max_connections)
                        return;
                pool->max_connections = limit;
        }
        curl_multi_setopt(pool->multi, CURLMOPT_MAX_HOST_CONNECTIONS, pool->max_connections);
}

/* Only sets a flag, because one of curl's callbacks calls this function, and curl accepts no
 * options during a callback. */
void hf__lanes_lift_limit(struct hf__pool *pool) {
        if (pool->max_connections > 0)
                pool->must_restart_waiting = true;
}

/* Restarts the requests that wait for a connection. curl itself would try them again only when a
 * connection ends or becomes free. */
static void restart_waiting(struct hf__pool *pool) {
        pool->must_restart_waiting = false;
        hf__lanes_limit_connections(pool, false);
        for (struct hf__exchange *x = pool->engine->exchanges, *next; x; x = next) {
                next = x->next; /* a restart may end x, but no other exchange */
                if (x->pool == pool && !x->may_have_sent)
                        hf__exchange_restart(x);
        }
}

static void pool_free(struct hf__pool *pool) {
        struct hf__lanes *lanes = &pool->engine->lanes;

        assert(pool->n_active == 0);
        /* This closes the connections, which removes them from the epoll set. */
        curl_multi_cleanup(pool->multi);
        for (size_t fd = 0; fd < lanes->n_sockets; fd++)
                if (lanes->sockets[fd].pool == pool)
                        lanes->sockets[fd].pool = NULL;
        free(pool);
}

int hf__lanes_init(struct hf__http_engine *engine) {
        for (size_t i = 0; i < HF__HTTP_N_LANES; i++) {
                engine->lanes.pools[i] = pool_new(engine, i);
                if (!engine->lanes.pools[i])
                        return -ENOMEM;
        }
        return 0;
}

void hf__lanes_done(struct hf__http_engine *engine) {
        for (size_t i = 0; i < HF__HTTP_N_LANES; i++)
                for (struct hf__pool *pool = engine->lanes.pools[i], *next; pool; pool = next) {
                        next = pool->next;
                        pool_free(pool);
                }
        free(engine->lanes.sockets);
}

void hf__lanes_replace_pool(struct hf__pool *pool) {
        struct hf__pool **newest = &pool->engine->lanes.pools[pool->index];

        hf__engine_assert_thread(pool->engine);
        if (*newest != pool)
                return; /* another timed-out request has replaced it already */
        struct hf__pool *fresh = pool_new(pool->engine, pool->index);
        if (!fresh)
                return; /* keeps the old pool; the next timeout tries again */
        fresh->next = pool;
        *newest = fresh;
}

/* ---- calling curl ---- */

/* Ends the requests that curl reports as done. */
static void end_finished_requests(struct hf__pool *pool) {
        CURLMsg *message;
        int n_left;

        while ((message = curl_multi_info_read(pool->multi, &n_left)) != NULL)
                if (message->msg == CURLMSG_DONE) {
                        char *x = NULL;
                        /* Copy the result first: removing the handle frees the message. */
                        CURLcode result = message->data.result;
                        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &x);
                        hf__exchange_on_curl_done((struct hf__exchange *)(void *)x, result);
                }
}

static int select_mask(uint32_t events) {
        int mask = 0;

        if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP))
                mask |= CURL_CSELECT_IN;
        if (events & EPOLLOUT)
                mask |= CURL_CSELECT_OUT;
        if (events & EPOLLERR)
                mask |= CURL_CSELECT_ERR;
        return mask;
}

void hf__lanes_socket_event(struct hf__http_engine *engine, int fd, uint32_t events) {
        struct hf__lanes *lanes = &engine->lanes;
        int n_running;

        hf__engine_assert_thread(engine);
        /* The descriptor was closed in this iteration, after epoll had reported the event. Another
         * thread may have the same number for a file of its own already. */
        if ((size_t)fd < lanes->n_sockets && lanes->sockets[fd].closed)
                return;
        /* The event belongs to an idle connection. If a new connection has the same number already,
         * removing that does no harm: set_epoll_events adds the number again when curl wants its
         * events. */
        if ((size_t)fd >= lanes->n_sockets || !lanes->sockets[fd].pool) {
                (void)epoll_ctl(engine->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
                if ((size_t)fd < lanes->n_sockets)
                        lanes->sockets[fd].watched = 0;
                return;
        }
        struct hf__pool *pool = lanes->sockets[fd].pool;
        if (events & EPOLLIN)
                lanes->sockets[fd].last_in = engine->now;
        hf__lanes_mark_dirty(pool);
        (void)curl_multi_socket_action(pool->multi, fd, select_mask(events), &n_running);
        end_finished_requests(pool);
        if (events & EPOLLIN && pool->reread_at == HF_NSEC_NEVER && pool->n_active > 0)
                pool->reread_at = engine->now + REREAD_DELAY;
}

/* Makes curl read from each connection of the pool that has received data; the comment at the top
 * of this file explains why. */
static void reread_sockets(struct hf__http_engine *engine, struct hf__pool *pool) {
        struct hf__lanes *lanes = &engine->lanes;
        uint64_t n_received = pool->n_received;
        int n_running;

        hf__lanes_mark_dirty(pool);
        for (size_t fd = 0; fd < lanes->n_sockets; fd++)
                if (lanes->sockets[fd].pool == pool && lanes->sockets[fd].last_in > 0)
                        (void)curl_multi_socket_action(pool->multi, (int)fd, CURL_CSELECT_IN,
                                                       &n_running);
        end_finished_requests(pool);
        bool again = pool->n_received != n_received && pool->n_active > 0;
        pool->reread_at = again ? engine->now : HF_NSEC_NEVER;
}

/* Calls curl if it is due. Then restarts the waiting requests if one of curl's callbacks has set
 * must_restart_waiting: the callback cannot restart them itself, because it must not change curl's
 * state. */
static void run_pool(struct hf__http_engine *engine, struct hf__pool *pool) {
        int n_running;

        if (pool->curl_due <= engine->now) {
                /* before the call, because curl may set a new time during it */
                pool->curl_due = HF_NSEC_NEVER;
                hf__lanes_mark_dirty(pool);
                (void)curl_multi_socket_action(pool->multi, CURL_SOCKET_TIMEOUT, 0, &n_running);
                end_finished_requests(pool);
        }
        if (pool->reread_at <= engine->now)
                reread_sockets(engine, pool);
        if (pool->must_restart_waiting)
                restart_waiting(pool);
}

void hf__lanes_run(struct hf__http_engine *engine) {
        hf__engine_assert_thread(engine);
        for (size_t i = 0; i < HF__HTTP_N_LANES; i++) {
                struct hf__pool **newest = &engine->lanes.pools[i], **link = newest;
                while (*link) {
                        struct hf__pool *pool = *link;
                        run_pool(engine, pool);
                        if (link != newest && pool->n_active == 0) {
                                *link = pool->next;
                                pool_free(pool);
                        } else {
                                link = &pool->next;
                        }
                }
        }
}

hf_nsec hf__lanes_due(const struct hf__http_engine *engine) {
        hf_nsec due = HF_NSEC_NEVER;

        for (size_t i = 0; i < HF__HTTP_N_LANES; i++)
                for (const struct hf__pool *pool = engine->lanes.pools[i]; pool;
                     pool = pool->next) {
                        if (pool->curl_due < due)
                                due = pool->curl_due;
                        if (pool->reread_at < due)
                                due = pool->reread_at;
                }
        return due;
}
