/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lanes: curl's multi handles, their sockets in the engine's epoll set, and their timers. curl
 * tells by callback which descriptors it wants watched and when it wants to be called; it is called
 * for just these, never for all.
 *
 * But libcurl 7.88 can hold input of a stream (its buffer was full while another stream was served)
 * and forget to ask to be called again: with nothing more to come on the connection, the stream
 * stood still until its deadline. So it is told that there is input on the lane's connections: at
 * once after a piece that may have filled a buffer, else a while after input, and again for as long
 * as that moved something.
 *
 * And libcurl 7.88 makes connections in vain: of a thousand streams begun at once it gives eight
 * hundred one of their own, where four connections would do. So a lane is allowed as many to one
 * origin as its requests need when each has 64 streams. That holds until a request cannot share a
 * connection, or an answer comes in HTTP/1.1: then the limit is lifted, and those that wait begin
 * again.
 *
 * And it writes each frame of HTTP/2 by itself: the head of a request, its body, a window's update,
 * and the peer's process is woken for every one. So connections that are shared are corked, and
 * what they have gathered is sent at the end of a turn.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/http/engine_private.h"

/* Idle connections a lane keeps. */
#define MAX_IDLE_CONNECTIONS 64L
#define MAX_STREAMS          1000L
/* To one origin; requests beyond what their streams allow wait for one. More than one, for a
 * connection may be draining. */
#define MAX_H2C_CONNECTIONS 4L
#define MIN_TLS_CONNECTIONS 4L
#define STREAMS_EACH        64 /* fewer than any server of ours or of the field allows on a connection */

#define KICK_DELAY (20 * HF_NSEC_PER_MSEC)

static struct hf__socket *socket_at(struct hf__http_engine *engine, int fd) {
        size_t n = engine->n_sockets;

        if ((size_t)fd < n)
                return &engine->sockets[fd];
        while (n <= (size_t)fd)
                n = n ? 2 * n : 64;
        struct hf__socket *sockets = realloc(engine->sockets, n * sizeof *sockets);
        if (!sockets)
                return NULL;
        memset(sockets + engine->n_sockets, 0, (n - engine->n_sockets) * sizeof *sockets);
        engine->sockets = sockets;
        engine->n_sockets = n;
        return &sockets[fd];
}

/* Without memory the descriptor stays unwatched and its requests end by their deadline: an error
 * here would make curl give up the whole lane. */
static int on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *socket_ctx) {
        struct hf__pool *pool = ctx;
        struct hf__http_engine *engine = pool->engine;
        struct hf__socket *sock = socket_at(engine, fd);
        struct epoll_event event = {.data.fd = fd};

        if (!sock)
                return 0;
        if (what == CURL_POLL_REMOVE) {
                /* curl may have closed it before it says so, and the number may be another thread's
                 * by now. Closing takes it out of the set; if it is only idle, its next event does,
                 * or its next request finds it there. */
                sock->pool = NULL;
                if (!sock->is_connection) /* what a name is awaited with: curl closes it by itself,
                                             and out of the set it is */
                        sock->watched = 0;
                return 0;
        }
        event.events =
                (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
        if (sock->watched != event.events) {
                int r = epoll_ctl(engine->epoll_fd, sock->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD,
                                  fd, &event);
                if (r < 0 && errno == EEXIST)
                        r = epoll_ctl(engine->epoll_fd, EPOLL_CTL_MOD, fd, &event);
                else if (r < 0 && errno == ENOENT)
                        r = epoll_ctl(engine->epoll_fd, EPOLL_CTL_ADD, fd, &event);
                sock->watched = r < 0 ? 0 : event.events;
        }
        sock->pool = sock->watched ? pool : NULL;
        return 0;
}

void hf__lanes_opened(struct hf__http_engine *engine, curl_socket_t fd) {
        struct hf__socket *sock = socket_at(engine, fd);

        if (sock)
                sock->is_connection = true;
}

/* curl may say that it no longer watches a descriptor only after it has closed it: so closing does
 * that too. */
int hf__lanes_close_socket(void *ctx, curl_socket_t fd) {
        struct hf__http_engine *engine = ctx;

        for (size_t i = 0; i < engine->n_corked; i++)
                if (engine->corked[i].fd == fd)
                        engine->corked[i--] = engine->corked[--engine->n_corked];
        if ((size_t)fd < engine->n_sockets) {
                struct hf__socket *sock = &engine->sockets[fd];
                if (sock->watched)
                        (void)epoll_ctl(engine->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
                *sock = (struct hf__socket){0};
        }
        return close(fd);
}

/* ---- what a turn writes ---- */

void hf__lanes_stir(struct hf__pool *pool) { pool->engine->stirred |= 1u << pool->index; }

void hf__lanes_cork(struct hf__pool *pool, curl_socket_t fd) {
        struct hf__http_engine *engine = pool->engine;
        const int on = 1;

        if (engine->n_corked < HF__HTTP_N_CORKED &&
            setsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, sizeof on) == 0)
                engine->corked[engine->n_corked++] = (struct hf__corked){fd, pool->index};
}

/* To set TCP_NODELAY, though it is set, sends what is gathered, and the cork stays in: see tcp(7).
 */
void hf__lanes_flush(struct hf__http_engine *engine) {
        const int on = 1;

        for (size_t i = 0; i < engine->n_corked && engine->stirred; i++)
                if (engine->stirred & 1u << engine->corked[i].index)
                        (void)setsockopt(engine->corked[i].fd, IPPROTO_TCP, TCP_NODELAY, &on,
                                         sizeof on);
        engine->stirred = 0;
}

static int on_curl_timer(CURLM *multi, long timeout_ms, void *ctx) {
        struct hf__pool *pool = ctx;
        pool->curl_due = timeout_ms < 0 ? HF_NSEC_NEVER
                         : timeout_ms == 0
                                 ? 0
                                 : hf_now(pool->engine->clock) + timeout_ms * HF_NSEC_PER_MSEC;
        return 0;
}

/* A multi handle closes by a handle of its own, which would touch the process's SIGPIPE: it takes
 * NOSIGNAL from those that are added. */
static bool keep_from_signals(CURLM *multi) {
        CURL *easy = curl_easy_init();
        bool ok = easy && !curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) &&
                  curl_multi_add_handle(multi, easy) == CURLM_OK &&
                  curl_multi_remove_handle(multi, easy) == CURLM_OK;

        curl_easy_cleanup(easy);
        return ok;
}

static struct hf__pool *pool_new(struct hf__http_engine *engine, size_t index) {
        struct hf__pool *pool = calloc(1, sizeof *pool);

        if (!pool)
                return NULL;
        pool->engine = engine;
        pool->index = index;
        pool->curl_due = HF_NSEC_NEVER;
        pool->kick_at = HF_NSEC_NEVER;
        pool->multi = curl_multi_init();
        if (!pool->multi || !keep_from_signals(pool->multi)) {
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
        if (index >= HF__HTTP_N_LANES)
                curl_multi_setopt(pool->multi, CURLMOPT_MAX_HOST_CONNECTIONS, MAX_H2C_CONNECTIONS);
        return pool;
}

void hf__lanes_make_room(struct hf__pool *pool, bool shares) {
        if (pool->index >= HF__HTTP_N_LANES)
                return;
        pool->unlimited = pool->unlimited || !shares;
        long limit =
                pool->unlimited ? 0 : MIN_TLS_CONNECTIONS + (long)(pool->n_active / STREAMS_EACH);
        if (limit == 0 ? pool->max_connections != 0 : limit > pool->max_connections) {
                curl_multi_setopt(pool->multi, CURLMOPT_MAX_HOST_CONNECTIONS, limit);
                pool->max_connections = limit;
        }
}

void hf__lanes_cannot_share(struct hf__pool *pool) {
        pool->restart_waiting =
                pool->restart_waiting ||
                pool->max_connections > 0; /* later: curl is calling, and takes no options then */
}

/* curl looks at those that wait for a connection only when one changes. */
static void restart_waiting(struct hf__pool *pool) {
        pool->restart_waiting = false;
        hf__lanes_make_room(pool, false);
        for (struct hf__exchange *x = pool->engine->exchanges, *next; x; x = next) {
                next = x->next;
                if (x->pool == pool && !x->may_have_sent)
                        hf__exchange_restart(x);
        }
}

/* No request is in it any more. */
static void pool_free(struct hf__pool *pool) {
        struct hf__http_engine *engine = pool->engine;

        curl_multi_cleanup(
                pool->multi); /* closes the connections, which takes them out of the epoll set */
        for (size_t fd = 0; fd < engine->n_sockets; fd++)
                if (engine->sockets[fd].pool == pool)
                        engine->sockets[fd].pool = NULL;
        free(pool);
}

int hf__lanes_init(struct hf__http_engine *engine) {
        for (size_t i = 0; i < HF__N_POOLS; i++)
                if (!(engine->lanes[i] = pool_new(engine, i)))
                        return -ENOMEM;
        return 0;
}

void hf__lanes_done(struct hf__http_engine *engine) {
        for (size_t i = 0; i < HF__N_POOLS; i++)
                for (struct hf__pool *pool = engine->lanes[i], *next; pool; pool = next) {
                        next = pool->next;
                        pool_free(pool);
                }
        free(engine->sockets);
}

void hf__lanes_distrust(struct hf__pool *pool) {
        struct hf__pool **lane = &pool->engine->lanes[pool->index];

        if (*lane != pool)
                return; /* replaced already */
        struct hf__pool *fresh = pool_new(pool->engine, pool->index);
        if (!fresh)
                return; /* the old one goes on; the next timeout tries again */
        fresh->next = pool;
        *lane = fresh;
}

static void end_done(struct hf__pool *pool) {
        CURLMsg *message;
        int n_left;

        while ((message = curl_multi_info_read(pool->multi, &n_left)))
                if (message->msg == CURLMSG_DONE) {
                        char *x = NULL;
                        CURLcode result =
                                message->data
                                        .result; /* the message dies with the handle's removal */
                        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &x);
                        hf__exchange_curl_done((struct hf__exchange *)(void *)x, result);
                }
}

void hf__lanes_socket_event(struct hf__http_engine *engine, int fd, uint32_t events) {
        int mask = (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP) ? CURL_CSELECT_IN : 0) |
                   (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                   (events & EPOLLERR ? CURL_CSELECT_ERR : 0);
        int n_running;

        /* Of an idle connection, or left over from one that was closed in this turn. If the number
         * is used again already, it is one call for nothing. */
        if ((size_t)fd >= engine->n_sockets || !engine->sockets[fd].pool) {
                (void)epoll_ctl(engine->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
                if ((size_t)fd < engine->n_sockets)
                        engine->sockets[fd].watched = 0;
                return;
        }
        struct hf__pool *pool = engine->sockets[fd].pool;
        if (events & EPOLLIN)
                engine->sockets[fd].last_in = engine->now;
        hf__lanes_stir(pool);
        (void)curl_multi_socket_action(pool->multi, fd, mask, &n_running);
        if (events & EPOLLIN)
                hf__h2c_guard_heard(pool);
        end_done(pool);
        if (events & EPOLLIN && pool->kick_at == HF_NSEC_NEVER && pool->n_active > 0)
                pool->kick_at = engine->now + KICK_DELAY;
}

static void kick(struct hf__http_engine *engine, struct hf__pool *pool) {
        uint64_t n_moved = pool->n_moved;
        int n_running;

        hf__lanes_stir(pool);
        for (size_t fd = 0; fd < engine->n_sockets; fd++)
                if (engine->sockets[fd].pool == pool && engine->sockets[fd].last_in > 0)
                        (void)curl_multi_socket_action(pool->multi, (int)fd, CURL_CSELECT_IN,
                                                       &n_running);
        end_done(pool);
        pool->kick_at =
                pool->n_moved != n_moved && pool->n_active > 0 ? engine->now : HF_NSEC_NEVER;
}

void hf__lanes_run(struct hf__http_engine *engine) {
        int n_running;

        for (size_t i = 0; i < HF__N_POOLS; i++)
                for (struct hf__pool **link = &engine->lanes[i], *pool; (pool = *link);) {
                        if (pool->curl_due <= engine->now) {
                                pool->curl_due = HF_NSEC_NEVER; /* curl sets it anew */
                                hf__lanes_stir(pool);
                                (void)curl_multi_socket_action(pool->multi, CURL_SOCKET_TIMEOUT, 0,
                                                               &n_running);
                                end_done(pool);
                        }
                        if (pool->kick_at <= engine->now)
                                kick(engine, pool);
                        if (pool->h2c_guard_moved)
                                hf__h2c_guard_release(pool);
                        if (pool->restart_waiting)
                                restart_waiting(pool);
                        if (link != &engine->lanes[i] && pool->n_active == 0) {
                                *link = pool->next;
                                pool_free(pool);
                        } else {
                                link = &pool->next;
                        }
                }
}

hf_nsec hf__lanes_due(const struct hf__http_engine *engine) {
        hf_nsec due = HF_NSEC_NEVER;

        for (size_t i = 0; i < HF__N_POOLS; i++)
                for (const struct hf__pool *pool = engine->lanes[i]; pool; pool = pool->next) {
                        due = pool->curl_due < due ? pool->curl_due : due;
                        due = pool->kick_at < due ? pool->kick_at : due;
                }
        return due;
}
