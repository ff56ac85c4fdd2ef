/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of <holdfast/client.h> that are the same for every implementation. They call the
 * operation of the implementation; those that start something check the arguments first.
 * hf_client_do builds the blocking form on top of the asynchronous one.
 *
 * A caller that waits shares a small heap object, the pending request, with the callback of the
 * request. Both hold a reference: the caller until it has waited, the request until its callback
 * has run. If the caller's cancellation token (struct hf_cancel) fires first, the caller cancels
 * the request and returns at once, and the callback usually runs later. Whoever drops the last
 * reference frees the object.
 *
 * Invariant: once the caller has waited, the callback uses none of the caller's memory.
 */
#include <holdfast/client.h>
#include <holdfast/client_port.h>

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/mailbox.h"
#include "base/sized_struct.h"
#include "base/thread.h"
#include "client/pending_request.h"

static const struct hf__sized sized_request = HF__SIZED(struct hf_request, n_body);
static const struct hf__sized sized_spec = HF__SIZED(struct hf_watch_spec, resource);
static const struct hf__sized sized_ops = HF__SIZED(struct hf_client_ops, watch_cancel);
static const struct hf__sized sized_response = HF__SIZED(struct hf_response, status);

/* A request and the response that its caller waits for. */
struct hf__pending_request {
        /* immutable once the request is started */
        struct hf_client *client; /* borrowed */
        const struct hf_clock *clock;
        uint64_t id; /* of the request */

        pthread_mutex_t mu;
        pthread_cond_t cond; /* the response has arrived, or the caller's token has fired */
        /* guarded by mu */
        unsigned refs;
        bool arrived; /* the members below are set */
        int error;
        struct hf_status status;
        char *body; /* owned; NULL once it was moved to the caller */
        size_t n_body;
};

static struct hf__pending_request *pending_new(struct hf_client *client) {
        struct hf__pending_request *pending = calloc(1, sizeof *pending);

        if (!pending)
                return NULL;
        pending->client = client;
        pending->clock = hf_host_clock(client->host);
        pending->refs = 1;
        if (hf__mutex_cond_init(&pending->mu, &pending->cond) < 0) {
                free(pending);
                return NULL;
        }
        return pending;
}

/* Drops a reference. Unlocks mu, which the caller holds, because the last reference frees mu
 * too. */
static void pending_unref_unlock(struct hf__pending_request *pending) {
        hf__mutex_assert_held(&pending->mu);
        assert(pending->refs > 0);
        bool last = --pending->refs == 0;

        (void)pthread_mutex_unlock(&pending->mu);
        if (!last)
                return;
        (void)pthread_cond_destroy(&pending->cond);
        (void)pthread_mutex_destroy(&pending->mu);
        free(pending->body);
        free(pending);
}

/* Stores the response, and drops the request's reference. Runs on a thread of the client, or on the
 * caller's if the client refuses the request at once. */
static void on_response(void *ctx, const struct hf_response *response) {
        struct hf__pending_request *pending = ctx;
        struct hf_status wrong;
        const struct hf_response refused = {.size = sizeof refused, .error = -EINVAL};
        bool is_wrong = hf__sized_check(&sized_response, response, &wrong) != 0;

        if (is_wrong)
                response = &refused;
        /* Copy the body before locking the mutex, because the body may be large. An empty body
         * becomes "". */
        char *body = malloc(response->n_body + 1);

        if (body) {
                if (response->n_body > 0)
                        memcpy(body, response->body, response->n_body);
                body[response->n_body] = '\0';
        }
        (void)pthread_mutex_lock(&pending->mu);
        assert(!pending->arrived);
        pending->error = response->error;
        pending->status = is_wrong ? wrong : response->status;
        if (!body && response->error == 0)
                pending->error =
                        hf_fail(&pending->status, -ENOMEM,
                                "out of memory for a response of %zu bytes", response->n_body);
        pending->body = body;
        pending->n_body = response->n_body;
        pending->arrived = true;
        (void)pthread_cond_broadcast(&pending->cond);
        pending_unref_unlock(pending);
}

static void wake_caller(void *ctx) {
        struct hf__pending_request *pending = ctx;

        /* Broadcast under the lock. Otherwise the caller could miss it between the check of its
         * token and its wait. */
        (void)pthread_mutex_lock(&pending->mu);
        (void)pthread_cond_broadcast(&pending->cond);
        (void)pthread_mutex_unlock(&pending->mu);
}

/* Waits for the response or the token. Returns whether the response has arrived. The deadline of
 * the request needs no check here, because the client reports it as a response. */
static bool await_response(struct hf__pending_request *pending, struct hf_cancel *token) {
        struct hf_cancel_waker waker = {0};

        hf_cancel_add_waker(token, &waker, wake_caller, pending);
        (void)pthread_mutex_lock(&pending->mu);
        while (!pending->arrived && !hf_cancel_fired(token))
                (void)pending->clock->wait(pending->clock->ctx, &pending->cond, &pending->mu,
                                           hf_cancel_deadline(token));
        bool arrived = pending->arrived;
        (void)pthread_mutex_unlock(&pending->mu);
        hf_cancel_remove_waker(&waker);
        return arrived;
}

static int fail_canceled(struct hf_status *reterr_status) {
        return hf_fail(reterr_status, HF_E_CANCELED, "the request was canceled by its token");
}

int hf__pending_request_start(struct hf_client *client, const struct hf_request *request,
                              struct hf_cancel *token, struct hf__pending_request **ret_pending,
                              struct hf_status *reterr_status) {
        struct hf_request copy;

        if (!client || !token)
                return hf_fail(reterr_status, -EINVAL,
                               "a blocking request needs a client and a token");
        int r = hf__sized_copy(&sized_request, &copy, request, reterr_status);
        if (r == 0)
                r = hf__sized_check(&sized_ops, client->ops, reterr_status);
        if (r != 0)
                return r;
        if (hf_cancel_fired(token))
                return fail_canceled(reterr_status);
        struct hf__pending_request *pending = pending_new(client);
        if (!pending)
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        pending->refs++; /* for the request; no other thread has the object yet */
        r = hf_client_request(client, &copy, on_response, pending, &pending->id);
        if (r != 0) {
                (void)pthread_mutex_lock(&pending->mu);
                assert(pending->refs > 0);
                pending->refs--;
                pending_unref_unlock(pending);
                return hf_fail(reterr_status, r, "the request could not be started: %s",
                               hf_strerror(r));
        }
        *ret_pending = pending;
        return 0;
}

int hf__pending_request_wait(struct hf__pending_request *pending, struct hf_cancel *token,
                             char **ret_body, size_t *ret_n, struct hf_status *reterr_status) {
        /* If this thread delays wakes (base/mailbox.h), the wake for this request may be one of
         * them. It must be made before the thread waits for the response. */
        hf__mailbox_call_early();
        bool arrived = await_response(pending, token);

        if (!arrived)
                hf_client_cancel(pending->client, pending->id);
        (void)pthread_mutex_lock(&pending->mu);
        int r = arrived ? pending->error : fail_canceled(reterr_status);
        if (arrived && r != 0 && reterr_status)
                *reterr_status = pending->status;
        if (arrived && r == 0 && ret_body) {
                *ret_body = pending->body;
                pending->body = NULL; /* now owned by the caller */
        }
        if (arrived && r == 0 && ret_n)
                *ret_n = pending->n_body;
        pending_unref_unlock(pending);
        return r;
}

int hf_client_do(struct hf_client *client, const struct hf_request *request,
                 struct hf_cancel *token, char **ret_body, size_t *ret_n,
                 struct hf_status *reterr_status) {
        struct hf__pending_request *pending;
        int r = hf__pending_request_start(client, request, token, &pending, reterr_status);

        return r == 0 ? hf__pending_request_wait(pending, token, ret_body, ret_n, reterr_status)
                      : r;
}

/* ---- checks, and calls of the implementation ---- */

static bool is_given(const char *text) { return text && text[0]; }

static bool is_valid_resource(const struct hf_resource *resource) {
        return is_given(resource->version) && is_given(resource->plural);
}

static bool is_valid_request(const struct hf_request *request) {
        if (!is_valid_resource(&request->resource) || (request->n_body > 0 && !request->body))
                return false;
        switch (request->verb) {
        case HF_VERB_GET:
        case HF_VERB_DELETE: return is_given(request->name);
        case HF_VERB_LIST:
        case HF_VERB_DELETE_COLLECTION: return true;
        case HF_VERB_CREATE: return request->n_body > 0;
        case HF_VERB_PATCH:
        case HF_VERB_UPDATE: return is_given(request->name) && request->n_body > 0;
        }
        return false;
}

int hf_client_request(struct hf_client *client, const struct hf_request *request,
                      hf_response_fn done, void *ctx, uint64_t *ret_id) {
        struct hf_request copy;

        if (!client || !done || hf__sized_check(&sized_ops, client->ops, NULL) != 0 ||
            hf__sized_copy(&sized_request, &copy, request, NULL) != 0 || !is_valid_request(&copy))
                return -EINVAL;
        return client->ops->request(client, &copy, done, ctx, ret_id);
}

void hf_client_cancel(struct hf_client *client, uint64_t id) { client->ops->cancel(client, id); }

int hf_client_watch(struct hf_client *client, const struct hf_watch_spec *spec,
                    hf_event_fn on_event, hf_watch_end_fn on_end, void *ctx, uint64_t *ret_id) {
        struct hf_watch_spec copy;

        if (!client || !on_event || !on_end ||
            hf__sized_check(&sized_ops, client->ops, NULL) != 0 ||
            hf__sized_copy(&sized_spec, &copy, spec, NULL) != 0 ||
            !is_valid_resource(&copy.resource))
                return -EINVAL;
        return client->ops->watch(client, &copy, on_event, on_end, ctx, ret_id);
}

void hf_client_watch_cancel(struct hf_client *client, uint64_t id) {
        client->ops->watch_cancel(client, id);
}

struct hf_client *hf_client_free(struct hf_client *client) {
        if (client && HF__SIZED_HAS(client->ops, free) && client->ops->free)
                client->ops->free(client);
        return NULL;
}
