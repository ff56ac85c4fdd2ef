/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guard of clear-text HTTP/2 (h2c): decides which request may open a connection, and which must
 * share one. libcurl 8.0 and later do not need it: hf__h2c_guard_applies returns false for them.
 *
 * Before libcurl 8.0 a request with the version "prior knowledge" can only open a new connection,
 * and fails on a reused one (curl issue 10634). A request with the version "HTTP/2" can only share
 * a connection: on a new one it begins in HTTP/1.1. So the guard predicts which of the two will
 * happen (x->expects_reuse), and the version is chosen accordingly. When curl has a connection and
 * is about to send, hf__h2c_guard_must_restart checks the prediction. If it was wrong, the request
 * restarts before any byte of it is sent.
 *
 * Each pool has two lists, for requests that do not expect to reuse a connection. The first one to
 * an origin is in first_requests while it opens the connection. Others to that origin wait in held:
 * they have no curl handle yet, and only their timer runs. A first request leaves its list when
 * bytes have been received on the pool's connections, or when it ends or restarts. That sets
 * h2c_changed, and the loop then starts all held requests, which may be held again.
 *
 * An exchange is in at most one list, and guard_pool points to that pool. Only the engine's thread
 * uses the lists.
 */
#include "base/http/h2c_guard.h"

#include <assert.h>
#include <string.h>

#include "base/http/engine_private.h"
#include "base/http/exchange.h"

bool hf__h2c_guard_applies(const struct hf__http_engine *engine,
                           const struct hf__http_request *request) {
        return engine->needs_h2c_guard && request->version == HF__HTTP_2_PRIOR_KNOWLEDGE &&
               strncmp(request->url, "http:", 5) == 0;
}

static void insert_into_list(struct hf__pool *pool, struct hf__exchange **list,
                             struct hf__exchange *x) {
        assert(!x->guard_pool);
        x->guard_pool = pool;
        x->guard_next = *list;
        if (x->guard_next)
                x->guard_next->guard_link = &x->guard_next;
        x->guard_link = list;
        *list = x;
}

void hf__h2c_guard_leave(struct hf__exchange *x) {
        struct hf__pool *pool = x->guard_pool;

        hf__engine_assert_thread(x->engine);
        if (!pool)
                return;
        *x->guard_link = x->guard_next;
        if (x->guard_next)
                x->guard_next->guard_link = x->guard_link;
        x->guard_pool = NULL;
        /* This makes the loop call hf__h2c_guard_start_held. */
        pool->h2c_changed = true;
        pool->curl_due = 0;
}

/* A connection can be shared once the server has sent something: the server's first frame is
 * SETTINGS, which may contain SETTINGS_MAX_CONCURRENT_STREAMS. The bytes may belong to another
 * connection of the pool. Then the prediction may be wrong, which costs a restart. */
void hf__h2c_guard_on_received(struct hf__pool *pool) {
        for (struct hf__exchange *x = pool->first_requests, *next; x; x = next) {
                next = x->guard_next;
                if (x->may_have_sent) {
                        pool->h2c_connected = true;
                        hf__h2c_guard_leave(x);
                }
        }
}

bool hf__h2c_guard_must_restart(struct hf__exchange *x) {
        long n_connects = 0;

        if (!x->is_h2c ||
            curl_easy_getinfo(x->easy, CURLINFO_NUM_CONNECTS, &n_connects) != CURLE_OK)
                return false;
        bool reuses = n_connects == 0;
        if (reuses == x->expects_reuse) {
                x->pool->h2c_connected = x->pool->h2c_connected || reuses;
                return false;
        }
        x->pool->h2c_connected = reuses;
        x->expects_reuse = reuses;
        x->must_restart = true;
        return true;
}

static bool have_same_origin(const struct hf__exchange *a, const struct hf__exchange *b) {
        const char *unix_a = a->request.unix_socket ? a->request.unix_socket : "";
        const char *unix_b = b->request.unix_socket ? b->request.unix_socket : "";
        size_t n_scheme = strlen("http://");
        size_t n = n_scheme + strcspn(a->request.url + n_scheme, "/?#");

        /* The strchr also matches the NUL at the end of a URL without a path. */
        return strncmp(a->request.url, b->request.url, n) == 0 &&
               strchr("/?#", b->request.url[n]) && strcmp(unix_a, unix_b) == 0;
}

bool hf__h2c_guard_enter(struct hf__exchange *x, struct hf__pool *pool) {
        struct hf__exchange *first_request = pool->first_requests;

        hf__engine_assert_thread(x->engine);
        assert(x->is_h2c && !x->pool);
        while (first_request && !have_same_origin(first_request, x))
                first_request = first_request->guard_next;
        insert_into_list(pool, first_request ? &pool->held : &pool->first_requests, x);
        return first_request != NULL;
}

void hf__h2c_guard_start_held(struct hf__pool *pool) {
        struct hf__exchange *held = pool->held, *next;

        hf__engine_assert_thread(pool->engine);
        /* Empty the list first, because hf__exchange_activate may hold some of the requests again.
         * A request may also end at once and call its callback. The callback cannot change this
         * chain, because it can start or cancel other requests only through the mailbox. */
        for (struct hf__exchange *x = held; x; x = x->guard_next)
                x->guard_pool = NULL;
        pool->held = NULL;
        pool->h2c_changed = false;
        for (struct hf__exchange *x = held; x; x = next) {
                next = x->guard_next;
                x->expects_reuse = pool->h2c_connected;
                hf__exchange_activate(x);
        }
}
