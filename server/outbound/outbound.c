/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's side of the module (module.h): the list of calls, and the loading.
 *
 *      idle      nothing is loaded; a call starts the loader's thread
 *      loading   calls wait in a list, which the loader sends when it has the module
 *      ready     calls go to the module at once
 *
 * If the module cannot be loaded, the calls that wait end with the reason, and the state is idle
 * again: the next call tries once more, so that installing the module is enough.
 *
 * Invariants. A call is in the hash table (buckets) from hfd_outbound_send until just before its
 * callback. The lock is held neither in callbacks nor while the module is called. If a call is
 * canceled while it waits, the loader ends it. If it is canceled while the module accepts it, the
 * thread that sends it passes the cancellation on as soon as the module has given it a number.
 */
#include "server/outbound/outbound.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/thread.h"
#include "server/outbound/https_url.h"
#include "server/outbound/loader.h"
#include "server/outbound/module.h"
#include "server/outbound/outbound_call.h"

#define N_BUCKETS         256
#define MAX_EXTRA_HEADERS 16

enum state { IDLE, LOADING, READY };

struct hfd_outbound {
        const struct hf_host *host;
        const char *module_path; /* NULL = find it */

        pthread_mutex_t mu;
        /* guarded by mu */
        struct hfd_outbound_call *buckets[N_BUCKETS];
        struct hfd_outbound_call *waiting, **waiting_end;
        size_t n_calls;
        uint64_t last_id;
        enum state state;
        bool stopped;
        bool has_thread; /* `thread` must be joined, before the next loader or at the end */
        pthread_t thread;
        /* Used by the loader's thread only: the log has a message that the module cannot be
         * loaded. */
        bool reported;
        /* immutable once the state is READY */
        const struct hfd_outbound_module *module;
        struct hfd_outbound_engine *engine;
};

/* ---- the list of calls ---- */

static struct hfd_outbound_call **bucket_locked(struct hfd_outbound *outbound, uint64_t id) {
        hf__mutex_assert_held(&outbound->mu);
        return &outbound->buckets[id % N_BUCKETS];
}

static void insert_locked(struct hfd_outbound *outbound, struct hfd_outbound_call *call) {
        struct hfd_outbound_call **bucket = bucket_locked(outbound, call->id);

        hf__mutex_assert_held(&outbound->mu);
        call->next_in_bucket = *bucket;
        *bucket = call;
        outbound->n_calls++;
}

static void remove_call(struct hfd_outbound *outbound, struct hfd_outbound_call *call) {
        pthread_mutex_lock(&outbound->mu);
        struct hfd_outbound_call **link = bucket_locked(outbound, call->id);
        while (*link != call)
                link = &(*link)->next_in_bucket;
        *link = call->next_in_bucket;
        assert(outbound->n_calls > 0);
        outbound->n_calls--;
        pthread_mutex_unlock(&outbound->mu);
}

/* Takes the call off the list, and calls its callback. */
static void end_call(struct hfd_outbound_call *call, const struct hfd_outbound_result *result) {
        remove_call(call->outbound, call);
        call->request.done(call->request.ctx, result);
        hfd_outbound_call_unref(call);
}

static void on_done(void *ctx, const struct hfd_outbound_result *result) { end_call(ctx, result); }

/* Ends a call that the module does not have. */
static void end_unsent(struct hfd_outbound_call *call, enum hfd_outbound_end end,
                       const char *text) {
        const struct hfd_outbound_result result = {.end = end, .body = "", .text = text};

        assert(end != HFD_OUTBOUND_ANSWERED && text);
        end_call(call, &result);
}

/* ---- sending ---- */

/* Hands a listed call to the module. 0 or the module's error: then the call is still listed. */
static int send_to_module(struct hfd_outbound *outbound, struct hfd_outbound_call *call) {
        struct hfd_outbound_request request = call->request;
        uint64_t engine_id = 0;

        hfd_outbound_call_ref(call);
        request.done = on_done;
        request.ctx = call;
        int r = outbound->module->send(outbound->engine, &request, &engine_id);
        pthread_mutex_lock(&outbound->mu);
        call->engine_id = engine_id;
        bool canceled = r == 0 && call->canceled;
        pthread_mutex_unlock(&outbound->mu);
        if (canceled)
                outbound->module->cancel(outbound->engine, engine_id);
        hfd_outbound_call_unref(call);
        return r;
}

/* For calls that have waited: hfd_outbound_send cannot return a failure; the callback gets it. */
static void send_or_end(struct hfd_outbound *outbound, struct hfd_outbound_call *call) {
        int r = send_to_module(outbound, call);

        if (r == -ENOMEM)
                end_unsent(call, HFD_OUTBOUND_NO_MEMORY, "out of memory");
        else if (r != 0)
                end_unsent(call, HFD_OUTBOUND_LOCAL, hf_strerror(r));
}

static struct hfd_outbound_call *take_waiting(struct hfd_outbound *outbound) {
        struct hfd_outbound_call *call = outbound->waiting;

        hf__mutex_assert_held(&outbound->mu);
        if (!call)
                return NULL;
        outbound->waiting = call->next_waiting;
        if (!outbound->waiting)
                outbound->waiting_end = &outbound->waiting;
        return call;
}

/* Sends the calls that have waited for the module, or ends them if it cannot be loaded. The state
 * changes only when no call is left, so that no call is overtaken or forgotten. */
static void serve_waiting(struct hfd_outbound *outbound, bool loaded, const char *reason) {
        pthread_mutex_lock(&outbound->mu);
        for (struct hfd_outbound_call *call; (call = take_waiting(outbound)) != NULL;) {
                bool canceled = call->canceled || outbound->stopped;
                pthread_mutex_unlock(&outbound->mu);
                if (canceled)
                        end_unsent(call, HFD_OUTBOUND_CANCELED, "context canceled");
                else if (!loaded)
                        end_unsent(call, HFD_OUTBOUND_LOCAL, reason);
                else
                        send_or_end(outbound, call);
                pthread_mutex_lock(&outbound->mu);
        }
        assert(outbound->state == LOADING);
        outbound->state = loaded ? READY : IDLE;
        bool stopped = outbound->stopped;
        pthread_mutex_unlock(&outbound->mu);
        /* hfd_outbound_stop ends the calls only if the module was ready */
        if (loaded && stopped)
                outbound->module->stop(outbound->engine);
}

static void *load_module(void *ctx) {
        struct hfd_outbound *outbound = ctx;
        struct hf_status status = {0};
        int r = hfd_outbound_load(outbound->module_path, &outbound->module, &status);

        if (r == 0) {
                r = outbound->module->start(outbound->host, &outbound->engine);
                if (r != 0)
                        (void)hf_fail(&status, r, "cannot start the client of webhooks: %s",
                                      hf_strerror(r));
        }
        if (r != 0 && !outbound->reported)
                hf_log(&outbound->host->log, HF_LOG_ERROR, "outbound", "%s", status.message);
        outbound->reported = r != 0; /* so the log has one message, not one for each call */
        serve_waiting(outbound, r == 0, status.message);
        return NULL;
}

/* Starts the loader. The thread of an earlier one has ended, or is about to return: it has set the
 * state to IDLE in its last use of the lock, so the join here is short and cannot deadlock. */
static int start_loader_locked(struct hfd_outbound *outbound) {
        hf__mutex_assert_held(&outbound->mu);
        if (outbound->has_thread)
                (void)hf__thread_join(outbound->thread);
        outbound->has_thread = false;
        int r = hf__thread_start(outbound->host, "hf-out-load", load_module, outbound,
                                 &outbound->thread);
        if (r == 0) {
                outbound->has_thread = true;
                outbound->state = LOADING;
        }
        return r;
}

/* Adds the call to its bucket and, if the module is not loaded, to the waiting calls. *ret_ready:
 * the module is loaded, and the caller must send the call. */
static int list_call(struct hfd_outbound *outbound, struct hfd_outbound_call *call,
                     bool *ret_ready) {
        int r = 0;

        pthread_mutex_lock(&outbound->mu);
        if (outbound->stopped)
                r = HF_E_CLOSED;
        else if (outbound->n_calls >= HFD_OUTBOUND_MAX_CALLS)
                r = HF_E_TOO_MANY;
        else if (outbound->state == IDLE)
                r = start_loader_locked(outbound);
        if (r == 0) {
                call->id = ++outbound->last_id;
                insert_locked(outbound, call);
                *ret_ready = outbound->state == READY;
                if (!*ret_ready) {
                        *outbound->waiting_end = call;
                        outbound->waiting_end = &call->next_waiting;
                }
        }
        pthread_mutex_unlock(&outbound->mu);
        return r;
}

int hfd_outbound_send(struct hfd_outbound *outbound, const struct hfd_outbound_request *request,
                      uint64_t *ret_id) {
        struct hfd_https_url url;
        bool ready = false;

        if (!request->method || !request->url || !request->done || request->deadline <= 0 ||
            request->deadline == HF_NSEC_NEVER || request->n_headers > HFD_OUTBOUND_MAX_HEADERS)
                return -EINVAL;
        if (!hfd_https_url_parse(request->url, &url))
                return HF_E_INVALID;
        struct hfd_outbound_call *call = hfd_outbound_call_new(request);
        if (!call)
                return -ENOMEM;
        call->outbound = outbound;
        hfd_outbound_call_ref(call); /* the callback may run before this function returns */
        int r = list_call(outbound, call, &ready);
        if (r != 0) {
                hfd_outbound_call_unref(call);
        } else {
                if (ret_id)
                        *ret_id = call->id;
                if (ready)
                        r = send_to_module(outbound, call);
                if (r != 0) {
                        remove_call(outbound, call);
                        hfd_outbound_call_unref(call);
                }
        }
        hfd_outbound_call_unref(call);
        return r;
}

int hfd_outbound_post_json(struct hfd_outbound *outbound,
                           const struct hfd_outbound_request *request, uint64_t *ret_id) {
        struct hfd_outbound_request post = *request;
        const char *headers[MAX_EXTRA_HEADERS + 2];

        if (request->n_headers > MAX_EXTRA_HEADERS)
                return -EINVAL;
        for (size_t i = 0; i < request->n_headers; i++)
                headers[i] = request->headers[i];
        headers[post.n_headers++] = "Content-Type: application/json";
        headers[post.n_headers++] = "Accept: application/json, */*";
        post.headers = headers;
        post.method = "POST";
        return hfd_outbound_send(outbound, &post, ret_id);
}

void hfd_outbound_cancel(struct hfd_outbound *outbound, uint64_t id) {
        uint64_t engine_id = 0;

        pthread_mutex_lock(&outbound->mu);
        struct hfd_outbound_call *call = *bucket_locked(outbound, id);
        while (call && call->id != id)
                call = call->next_in_bucket;
        if (call) {
                call->canceled = true;
                engine_id = call->engine_id;
        }
        pthread_mutex_unlock(&outbound->mu);
        /* If the engine has given the call a number, the module is loaded. The engine lives until
         * hfd_outbound_join, which must not run at the same time. */
        if (engine_id)
                outbound->module->cancel(outbound->engine, engine_id);
}

/* ---- creating, stopping and freeing ---- */

int hfd_outbound_new(const struct hf_host *host, const struct hfd_outbound_config *config,
                     struct hfd_outbound **ret_outbound) {
        struct hfd_outbound *outbound = calloc(1, sizeof *outbound);

        if (!outbound)
                return -ENOMEM;
        assert(host);
        outbound->host = host;
        outbound->module_path = config ? config->module : NULL;
        outbound->waiting_end = &outbound->waiting;
        int r = hf__mutex_init(&outbound->mu);
        if (r != 0) {
                free(outbound);
                return r;
        }
        *ret_outbound = outbound;
        return 0;
}

void hfd_outbound_stop(struct hfd_outbound *outbound) {
        if (!outbound)
                return;
        pthread_mutex_lock(&outbound->mu);
        bool ready = outbound->state == READY;
        outbound->stopped = true;
        pthread_mutex_unlock(&outbound->mu);
        if (ready)
                outbound->module->stop(outbound->engine);
}

void hfd_outbound_join(struct hfd_outbound *outbound) {
        if (!outbound)
                return;
        hfd_outbound_stop(outbound);
        /* no new loader can start now */
        if (outbound->has_thread)
                (void)hf__thread_join(outbound->thread);
        outbound->has_thread = false;
        pthread_mutex_lock(&outbound->mu);
        struct hfd_outbound_engine *engine = outbound->engine;
        outbound->state = IDLE;
        pthread_mutex_unlock(&outbound->mu);
        /* Late cancellations find no call, and do not use the engine. */
        if (engine)
                outbound->engine = outbound->module->free(engine);
        assert(outbound->n_calls == 0);
}

struct hfd_outbound *hfd_outbound_free(struct hfd_outbound *outbound) {
        if (!outbound)
                return NULL;
        hfd_outbound_join(outbound);
        pthread_mutex_destroy(&outbound->mu);
        free(outbound);
        return NULL;
}
