/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate of clear-text HTTP/2: which request may make a connection, and which must share one.
 *
 * With libcurl before 8.0 a request with "prior knowledge" can only make a new connection (on a
 * kept one it fails, curl issue 10634), one with "HTTP/2" can only share one (with none it would
 * begin in HTTP/1.1). So the version is chosen by what is expected (expects_reuse), on_prereq sees
 * which it has become, and a request that guessed wrong starts again, before anything of it was
 * sent.
 *
 * A pool has the gate's two lists. While one request, the pioneer, makes the first connection to an
 * origin, the others to that origin are held: no curl handle yet, only their deadline runs. A
 * pioneer leaves when the peer has spoken, or with its end; that sets gate_moved, and the loop then
 * starts all that are held, as things stand then. Later libcurls need no gate:
 * hf__h2c_guard_concerns is false for all.
 *
 * All is the engine thread's.
 */
#include <string.h>

#include "base/http/engine_private.h"

bool hf__h2c_guard_concerns(const struct hf__http_engine *engine,
                            const struct hf__http_request *request) {
        return engine->needs_h2c_guard && request->version == HF__HTTP_2_PRIOR_KNOWLEDGE &&
               strncmp(request->url, "http:", 5) == 0;
}

static void enter_h2c_guard(struct hf__pool *pool, struct hf__exchange **list,
                            struct hf__exchange *x) {
        x->h2c_guard = pool;
        x->next_h2c_guard = *list;
        if (x->next_h2c_guard)
                x->next_h2c_guard->link_h2c_guard = &x->next_h2c_guard;
        x->link_h2c_guard = list;
        *list = x;
}

/* The loop then looks at those that are held. */
void hf__h2c_guard_leave(struct hf__exchange *x) {
        if (!x->h2c_guard)
                return;
        *x->link_h2c_guard = x->next_h2c_guard;
        if (x->next_h2c_guard)
                x->next_h2c_guard->link_h2c_guard = x->link_h2c_guard;
        x->h2c_guard->h2c_guard_moved = true;
        x->h2c_guard->curl_due = 0;
        x->h2c_guard = NULL;
}

/* A pioneer's connection can be shared once the peer has spoken: its first words say how many
 * streams it takes. */
void hf__h2c_guard_heard(struct hf__pool *pool) {
        for (struct hf__exchange *x = pool->first_requests, *next; x; x = next) {
                next = x->next_h2c_guard;
                if (x->may_have_sent) {
                        pool->h2c_up = true;
                        hf__h2c_guard_leave(x);
                }
        }
}

bool hf__h2c_guard_guessed_wrong(struct hf__exchange *x) {
        long n_connects = 0;

        if (!x->is_h2c || curl_easy_getinfo(x->easy, CURLINFO_NUM_CONNECTS, &n_connects))
                return false;
        bool reuses = n_connects == 0;
        if (reuses == x->expects_reuse) {
                x->pool->h2c_up = x->pool->h2c_up || reuses;
                return false;
        }
        x->pool->h2c_up = reuses;
        x->expects_reuse = reuses;
        x->must_restart = true;
        return true;
}

static bool same_origin(const struct hf__exchange *a, const struct hf__exchange *b) {
        const char *unix_a = a->request.unix_socket ? a->request.unix_socket : "",
                   *unix_b = b->request.unix_socket ? b->request.unix_socket : "";
        size_t n = 7 + strcspn(a->request.url + 7, "/?#"); /* behind "http://" */

        return strncmp(a->request.url, b->request.url, n) == 0 &&
               strchr("/?#", b->request.url[n]) && strcmp(unix_a, unix_b) == 0;
}

/* True when it must wait for another's connection; else it is a pioneer itself. */
bool hf__h2c_guard_holds(struct hf__exchange *x, struct hf__pool *pool) {
        struct hf__exchange *first_request = pool->first_requests;

        while (first_request && !same_origin(first_request, x))
                first_request = first_request->next_h2c_guard;
        enter_h2c_guard(pool, first_request ? &pool->held : &pool->first_requests, x);
        return first_request != NULL;
}

/* Each starts as things stand now, or is held once more. One that ends here and now calls back,
 * which may change the lists only by way of the mailbox. */
void hf__h2c_guard_release(struct hf__pool *pool) {
        struct hf__exchange *held = pool->held, *next;

        for (struct hf__exchange *x = held; x; x = x->next_h2c_guard)
                x->h2c_guard = NULL;
        pool->held = NULL;
        pool->h2c_guard_moved = false;
        for (struct hf__exchange *x = held; x; x = next) {
                next = x->next_h2c_guard;
                x->expects_reuse = pool->h2c_up;
                hf__exchange_begin(x);
        }
}
