/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bearer token of a REST client.
 *
 * `current` is the newest token. A request keeps a reference to its token until its response. After
 * a 401 the client can then check whether that token was replaced in the meantime (retry) or is
 * still the newest (read the file).
 *
 * The file is read when the client is created. Later it is read only on the engine's thread: after
 * a 401, and when a request starts a minute or more after the file was last read. That request
 * still uses the previous token, which the kubelet replaces long before it expires. Therefore no
 * caller waits for the file system, and an idle client does nothing.
 *
 * Invariants: if the file cannot be read, the previous token is kept, because a file may be missing
 * for a moment while it is replaced. A struct hf__token is wiped before it is freed.
 */
#include "client/bearer.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/cleanup.h"
#include "base/http/engine.h"
#include "base/http/head_text.h"
#include "base/thread.h"
#include "client/file_text.h"

#define MAX_TOKEN           ((size_t)64 << 10)
#define MAX_TOKEN_AGE       (60 * HF_NSEC_PER_SEC)
#define MIN_RELOAD_INTERVAL HF_NSEC_PER_SEC
#define HEADER_PREFIX       "Authorization: Bearer "

struct hf__token {
        /* A reference is taken only under the source's mu, while `current` holds one. So the count
         * is not 0 then, and relaxed order is enough. */
        atomic_int refs;
        char header[]; /* the whole header line */
};

struct hf__bearer {
        /* immutable after attach */
        const struct hf_host *host;
        struct hf__http_engine *engine; /* borrowed */
        char *path;                     /* owned; NULL = the token never changes */
        pthread_mutex_t mu;
        /* guarded by mu */
        struct hf__token *current; /* a reference; NULL = no token */
        hf_nsec read_at;           /* boot time when the file was last read, even if that failed */
        bool reload_scheduled;     /* the engine's thread will soon read the file */
        /* the engine's thread only */
        bool reload_failing; /* the file could not be read the last time, and that was logged */
};

static struct hf__token *token_new(const char *text) {
        size_t n = sizeof HEADER_PREFIX + strlen(text);
        struct hf__token *token = malloc(sizeof *token + n);

        if (!token)
                return NULL;
        atomic_init(&token->refs, 1);
        (void)snprintf(token->header, n, HEADER_PREFIX "%s", text);
        return token;
}

const char *hf__token_header(const struct hf__token *token) { return token->header; }

struct hf__token *hf__token_unref(struct hf__token *token) {
        if (!token)
                return NULL;
        int refs = atomic_fetch_sub_explicit(&token->refs, 1, memory_order_acq_rel);
        assert(refs > 0);
        if (refs > 1)
                return NULL;
        explicit_bzero(token->header, strlen(token->header));
        free(token);
        return NULL;
}

static int read_token(const char *path, struct hf__token **ret_token,
                      struct hf_status *reterr_status) {
        char *text = NULL;
        size_t n;

        int r = hf__file_text(path, &text, &n);
        if (r < 0)
                return hf_fail(reterr_status, r, "cannot read the token file %s: %s", path,
                               hf_strerror(r));
        hf__trim_end(text);
        if (!hf__http_is_head_text(text, MAX_TOKEN))
                r = hf_fail(reterr_status, HF_E_INVALID,
                            "the token file %s is empty, too long or has control characters", path);
        struct hf__token *token = r == 0 ? token_new(text) : NULL;
        hf__wipe_free(text);
        if (r == 0 && !token)
                r = hf_fail(reterr_status, -ENOMEM, "out of memory");
        if (r == 0)
                *ret_token = token;
        return r;
}

/* ---- reading the file again; thread: the engine's ---- */

/* Reads the file without the lock, because other threads must not wait for the file system. */
static void reload_token(struct hf__bearer *bearer) {
        assert(bearer->path);
        struct hf__token *fresh = NULL;
        struct hf_status status = {0};
        int r = read_token(bearer->path, &fresh, &status);

        if (r != 0 && !bearer->reload_failing)
                hf_log(&bearer->host->log, HF_LOG_WARNING, "client",
                       "%s; keeping the previous token", status.message);
        bearer->reload_failing = r != 0;
        (void)pthread_mutex_lock(&bearer->mu);
        bearer->reload_scheduled = false;
        bearer->read_at = hf_now(hf_host_clock(bearer->host));
        assert(bearer->current); /* hf__bearer_new has read a first token from the path */
        if (fresh && strcmp(fresh->header, bearer->current->header) != 0) {
                struct hf__token *previous = bearer->current;
                bearer->current = fresh;
                fresh = previous; /* unreferenced below, without the lock */
        }
        (void)pthread_mutex_unlock(&bearer->mu);
        (void)hf__token_unref(fresh);
}

static void on_reload_timer(void *ctx) { reload_token(ctx); }

bool hf__bearer_renew(struct hf__bearer *bearer, const struct hf__token *used) {
        if (!bearer->path)
                return false;
        hf_nsec now = hf_now(hf_host_clock(bearer->host));
        (void)pthread_mutex_lock(&bearer->mu);
        bool is_newest = bearer->current == used;
        bool is_recent = now - bearer->read_at < MIN_RELOAD_INTERVAL;
        (void)pthread_mutex_unlock(&bearer->mu);
        if (!is_newest)
                return true;
        if (is_recent)
                return false;
        reload_token(bearer);
        (void)pthread_mutex_lock(&bearer->mu);
        is_newest = bearer->current == used;
        (void)pthread_mutex_unlock(&bearer->mu);
        return !is_newest;
}

/* ---- thread: any ---- */

struct hf__token *hf__bearer_get(struct hf__bearer *bearer) {
        hf_nsec now = hf_now(hf_host_clock(bearer->host));
        (void)pthread_mutex_lock(&bearer->mu);
        struct hf__token *token = bearer->current;
        assert(!token || atomic_load_explicit(&token->refs, memory_order_relaxed) > 0);
        if (token)
                (void)atomic_fetch_add_explicit(&token->refs, 1, memory_order_relaxed);
        bool is_due =
                bearer->path && !bearer->reload_scheduled && now - bearer->read_at >= MAX_TOKEN_AGE;
        if (is_due)
                bearer->reload_scheduled = true;
        (void)pthread_mutex_unlock(&bearer->mu);
        if (is_due && hf__http_schedule(bearer->engine, 0, on_reload_timer, bearer) != 0) {
                (void)pthread_mutex_lock(&bearer->mu);
                bearer->reload_scheduled = false; /* the next request tries again */
                (void)pthread_mutex_unlock(&bearer->mu);
        }
        return token;
}

void hf__bearer_attach(struct hf__bearer *bearer, struct hf__http_engine *engine) {
        assert(!bearer->engine);
        bearer->engine = engine;
}

struct hf__bearer *hf__bearer_free(struct hf__bearer *bearer) {
        if (!bearer)
                return NULL;
        (void)hf__token_unref(bearer->current);
        (void)pthread_mutex_destroy(&bearer->mu);
        free(bearer->path);
        free(bearer);
        return NULL;
}

HF__CLEANUP_DEFINE(bearer_cleanup, struct hf__bearer *, hf__bearer_free)

int hf__bearer_new(const struct hf_host *host, const char *text, const char *path,
                   struct hf__bearer **ret_bearer, struct hf_status *reterr_status) {
        HF__CLEANUP(hf__free_cleanup) struct hf__bearer *memory = calloc(1, sizeof *memory);

        if (!memory)
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        int r = hf__mutex_init(&memory->mu);
        if (r < 0)
                return hf_fail(reterr_status, r, "%s", hf_strerror(r));
        HF__CLEANUP(bearer_cleanup) struct hf__bearer *bearer = HF__TAKE(memory);
        bearer->host = host;
        bearer->read_at = hf_now(hf_host_clock(host));
        if (path) {
                bearer->path = strdup(path);
                r = bearer->path ? read_token(path, &bearer->current, reterr_status)
                                 : hf_fail(reterr_status, -ENOMEM, "out of memory");
        } else if (text && !hf__http_is_head_text(text, MAX_TOKEN)) {
                r = hf_fail(reterr_status, HF_E_INVALID,
                            "the bearer token is empty, too long or has control characters");
        } else if (text) {
                bearer->current = token_new(text);
                if (!bearer->current)
                        r = hf_fail(reterr_status, -ENOMEM, "out of memory");
        }
        if (r != 0)
                return r;
        *ret_bearer = HF__TAKE(bearer);
        return 0;
}
