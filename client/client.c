/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The door to every client: checks what is misuse, hands on to the implementation, and makes the
 * blocking form out of the asynchronous one.
 *
 * A blocking call shares a small heap object, the ticket, with the callback. Two hold it: the
 * caller, until it returns, and the call, until it is answered. When the token fires first, the
 * caller cancels the call and leaves at once; the late answer then finds nobody waiting and frees
 * the ticket.
 */
#include <holdfast/client.h>
#include <holdfast/client_port.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"

struct ticket {
        const struct hf_clock *clock; /* immutable */
        pthread_mutex_t mu;
        pthread_cond_t cond; /* an answer, or the token fired */
        /* guarded by mu */
        unsigned refs;
        bool answered;
        int error;
        struct hf_status status;
        char *body; /* owned, until the caller takes it */
        size_t n_body;
};

static struct ticket *ticket_new(const struct hf_clock *clock) {
        struct ticket *ticket = calloc(1, sizeof *ticket);

        if (!ticket)
                return NULL;
        ticket->clock = clock;
        ticket->refs = 1;
        if (hf__mutex_init(&ticket->mu) < 0) {
                free(ticket);
                return NULL;
        }
        if (hf_cond_init(&ticket->cond) < 0) {
                (void)pthread_mutex_destroy(&ticket->mu);
                free(ticket);
                return NULL;
        }
        return ticket;
}

/* Called with mu held, returns without it. */
static void ticket_unref_unlock(struct ticket *ticket) {
        bool last = --ticket->refs == 0;

        (void)pthread_mutex_unlock(&ticket->mu);
        if (!last)
                return;
        (void)pthread_cond_destroy(&ticket->cond);
        (void)pthread_mutex_destroy(&ticket->mu);
        free(ticket->body);
        free(ticket);
}

static void ticket_answer(void *ctx, const struct hf_response *reply) {
        struct ticket *ticket = ctx;
        char *body = malloc(reply->n_body + 1); /* before the lock; an empty body is a body */

        if (body) {
                if (reply->n_body > 0)
                        memcpy(body, reply->body, reply->n_body);
                body[reply->n_body] = '\0';
        }
        (void)pthread_mutex_lock(&ticket->mu);
        ticket->error = reply->error;
        ticket->status = reply->status;
        if (!body && reply->error == 0)
                ticket->error = hf_fail(&ticket->status, -ENOMEM,
                                        "out of memory for an answer of %zu bytes", reply->n_body);
        ticket->body = body;
        ticket->n_body = reply->n_body;
        ticket->answered = true;
        (void)pthread_cond_broadcast(&ticket->cond);
        ticket_unref_unlock(ticket);
}

static void ticket_wake(void *ctx) {
        struct ticket *ticket = ctx;

        /* Under the lock, so that it cannot fall between the caller's look at the token and its
         * wait. */
        (void)pthread_mutex_lock(&ticket->mu);
        (void)pthread_cond_broadcast(&ticket->cond);
        (void)pthread_mutex_unlock(&ticket->mu);
}

/* Returns true when the answer is there. The call's own deadline makes one come, so the token's is
 * the only one here. */
static bool ticket_wait(struct ticket *ticket, struct hf_cancel *token) {
        struct hf_cancel_waker waker = {0};

        hf_cancel_add_waker(token, &waker, ticket_wake, ticket);
        (void)pthread_mutex_lock(&ticket->mu);
        while (!ticket->answered && !hf_cancel_fired(token))
                (void)ticket->clock->wait(ticket->clock->ctx, &ticket->cond, &ticket->mu,
                                          hf_cancel_deadline(token));
        bool answered = ticket->answered;
        (void)pthread_mutex_unlock(&ticket->mu);
        hf_cancel_remove_waker(&waker);
        return answered;
}

static int canceled(struct hf_status *reterr_status) {
        return hf_fail(reterr_status, HF_E_CANCELED, "the call was canceled by its token");
}

int hf_client_do(struct hf_client *client, const struct hf_request *request,
                 struct hf_cancel *token, char **ret_body, size_t *ret_n,
                 struct hf_status *reterr_status) {
        uint64_t id = 0;

        if (!client || !token)
                return hf_fail(reterr_status, -EINVAL,
                               "a blocking call needs a client and a token");
        if (hf_cancel_fired(token))
                return canceled(reterr_status);
        struct ticket *ticket = ticket_new(hf_host_clock(client->host));
        if (!ticket)
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        ticket->refs++; /* the call's; nobody else knows the ticket yet */
        int r = hf_client_request(client, request, ticket_answer, ticket, &id);
        if (r != 0) {
                (void)pthread_mutex_lock(&ticket->mu);
                ticket->refs--;
                ticket_unref_unlock(ticket);
                return hf_fail(reterr_status, r, "the call could not be started: %s",
                               hf_strerror(r));
        }
        bool answered = ticket_wait(ticket, token);
        if (!answered)
                hf_client_cancel(client, id);

        (void)pthread_mutex_lock(&ticket->mu);
        r = answered ? ticket->error : canceled(reterr_status);
        if (answered && r != 0 && reterr_status)
                *reterr_status = ticket->status;
        if (answered && r == 0 && ret_body) {
                *ret_body = ticket->body;
                ticket->body = NULL; /* consumed */
        }
        if (answered && r == 0 && ret_n)
                *ret_n = ticket->n_body;
        ticket_unref_unlock(ticket);
        return r;
}

static bool given(const char *text) { return text && text[0]; }

static bool resource_ok(const struct hf_resource *resource) {
        return given(resource->version) && given(resource->plural);
}

static bool call_ok(const struct hf_request *request) {
        if (!resource_ok(&request->resource) || (request->n_body > 0 && !request->body))
                return false;
        switch (request->verb) {
        case HF_VERB_GET:
        case HF_VERB_DELETE: return given(request->name);
        case HF_VERB_LIST:
        case HF_VERB_DELETE_COLLECTION: return true;
        case HF_VERB_CREATE: return request->n_body > 0;
        case HF_VERB_UPDATE: return given(request->name) && request->n_body > 0;
        }
        return false;
}

int hf_client_request(struct hf_client *client, const struct hf_request *request,
                      hf_response_fn done, void *ctx, uint64_t *ret_id) {
        if (!client || !request || !done || !call_ok(request))
                return -EINVAL;
        return client->ops->request(client, request, done, ctx, ret_id);
}

void hf_client_cancel(struct hf_client *client, uint64_t id) { client->ops->cancel(client, id); }

int hf_client_watch(struct hf_client *client, const struct hf_watch_spec *spec,
                    hf_event_fn on_event, hf_watch_end_fn on_end, void *ctx, uint64_t *ret_id) {
        if (!client || !spec || !on_event || !on_end || !resource_ok(&spec->resource))
                return -EINVAL;
        return client->ops->watch(client, spec, on_event, on_end, ctx, ret_id);
}

void hf_client_watch_cancel(struct hf_client *client, uint64_t id) {
        client->ops->watch_cancel(client, id);
}

struct hf_client *hf_client_free(struct hf_client *client) {
        if (client)
                client->ops->free(client);
        return NULL;
}
