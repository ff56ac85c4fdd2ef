/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client whose callbacks run in the host's event loop. It passes requests on to another client,
 * copies what that client's callbacks get, and queues it for the loop.
 *
 * Invariants: every operation (a request or a watch) is on one of the lists `ops` and `canceled`
 * until its references are gone. When the inner client ends an operation, end_op queues the
 * operation's final task, exactly once. The task is part of the operation, so queuing it cannot
 * fail. If an event cannot be copied, or too many bytes wait, the watch ends with an error. No lock
 * is held while the inner client or a callback is called.
 */
#include <holdfast/client_port.h>

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/loop.h"
#include "base/sized_struct.h"
#include "base/thread.h"

/* The limit on the events of one watch that wait in the loop. */
#define MAX_QUEUED_BYTES ((size_t)64 << 20)

static const struct hf__sized sized_response = HF__SIZED(struct hf_response, status);

struct loop_client {
        struct hf_client base;   /* first */
        struct hf_client *inner; /* immutable; borrowed */
        struct hf_loop *loop;    /* immutable; borrowed */
        pthread_mutex_t mu;
        pthread_cond_t ended; /* an operation of the inner client has ended */
        /* guarded by mu */
        struct op *ops;
        struct op *canceled; /* the operations that loop_free has canceled */
        size_t n_inner;      /* operations that the inner client has not ended */
        bool closing;        /* no operation may be started any more */
};

/* An operation: a request or a watch. */
struct op {
        /* immutable once it is started */
        struct loop_client *client;
        bool is_watch;
        hf_response_fn done;
        hf_event_fn on_event;
        hf_watch_end_fn on_end;
        void *ctx;

        /* guarded by client->mu */
        struct op *next, **at; /* one of the client's lists; at: the pointer that points here */
        uint64_t inner_id;     /* 0 = not known yet, or the inner client has ended it at once */
        bool cancel_wanted;
        int lost;        /* why an event could not be queued; 0 = all were queued */
        size_t n_queued; /* bytes of events that wait */
        int refs;        /* one for the start, one for the end */

        /* set when the inner client ends it */
        struct hf_response response;
        char *body; /* owned */
        struct hf__loop_task end;
};

/* The copy of an event that waits in the loop. run_event frees it. */
struct event {
        struct hf__loop_task task;
        struct op *op;
        struct hf_event event; /* its texts follow this struct */
        char text[];
};

static void link_locked(struct op *op, struct op **list) {
        hf__mutex_assert_held(&op->client->mu);
        assert(!*list || (*list)->at == list);
        op->next = *list;
        op->at = list;
        if (op->next)
                op->next->at = &op->next;
        *list = op;
}

static void unlink_locked(struct op *op) {
        hf__mutex_assert_held(&op->client->mu);
        assert(*op->at == op);
        *op->at = op->next;
        if (op->next)
                op->next->at = op->at;
}

static void op_unref(struct op *op) {
        struct loop_client *client = op->client;

        pthread_mutex_lock(&client->mu);
        assert(op->refs > 0);
        bool is_last = --op->refs == 0;
        if (is_last)
                unlink_locked(op);
        pthread_mutex_unlock(&client->mu);
        if (is_last) {
                free(op->body);
                free(op);
        }
}

static void cancel_inner(const struct op *op, uint64_t id) {
        if (op->is_watch)
                hf_client_watch_cancel(op->client->inner, id);
        else
                hf_client_cancel(op->client->inner, id);
}

/* ---- in the loop ---- */

static void run_end(void *ctx) {
        struct op *op = ctx;

        if (op->is_watch)
                op->on_end(op->ctx, op->response.error, &op->response.status);
        else
                op->done(op->ctx, &op->response);
        op_unref(op);
}

static void run_event(void *ctx) {
        struct event *event = ctx;
        struct op *op = event->op;

        pthread_mutex_lock(&op->client->mu);
        assert(op->n_queued >= event->event.n_object);
        op->n_queued -= event->event.n_object;
        pthread_mutex_unlock(&op->client->mu);
        op->on_event(op->ctx, &event->event);
        free(event);
}

/* ---- on a thread of the inner client ---- */

/* Queues the operation's final task. The loop's thread may free the client as soon as n_inner is 0,
 * so the task is queued before that, and nothing here uses the client after the unlock. The loop's
 * mutex is taken under the client's, never the other way round. */
static void end_op(struct op *op) {
        struct loop_client *client = op->client;

        op->end = (struct hf__loop_task){.fn = run_end, .ctx = op};
        pthread_mutex_lock(&client->mu);
        hf__loop_queue(client->loop, &op->end);
        assert(client->n_inner > 0);
        client->n_inner--;
        pthread_cond_broadcast(&client->ended);
        pthread_mutex_unlock(&client->mu);
}

static void on_response(void *ctx, const struct hf_response *response) {
        struct op *op = ctx;

        int r = hf__sized_copy(&sized_response, &op->response, response, &op->response.status);
        if (r != 0) {
                op->response.size = sizeof op->response;
                op->response.error = r;
                end_op(op);
                return;
        }
        op->response.body = NULL;
        if (response->body) {
                op->body = malloc(response->n_body + 1);
                if (op->body) {
                        memcpy(op->body, response->body, response->n_body);
                        op->body[response->n_body] = '\0';
                        op->response.body = op->body;
                } else if (response->error == 0) {
                        op->response.error = hf_fail(&op->response.status, -ENOMEM,
                                                     "out of memory for a response of %zu bytes",
                                                     response->n_body);
                }
        }
        if (!op->response.body)
                op->response.n_body = 0;
        end_op(op);
}

static struct event *copy_event(struct op *op, const struct hf_event *from) {
        const char *version = from->resource_version ? from->resource_version : "";
        size_t n_version = strlen(version) + 1;
        struct event *event = malloc(sizeof *event + n_version + from->n_object + 1);

        if (!event)
                return NULL;
        *event = (struct event){.task = {.fn = run_event, .ctx = event}, .op = op, .event = *from};
        memcpy(event->text, version, n_version);
        if (from->n_object > 0)
                memcpy(event->text + n_version, from->object, from->n_object);
        event->text[n_version + from->n_object] = '\0';
        event->event.resource_version = event->text;
        event->event.object = event->text + n_version;
        return event;
}

static void on_event(void *ctx, const struct hf_event *from) {
        struct op *op = ctx;
        struct event *event = copy_event(op, from);

        pthread_mutex_lock(&op->client->mu);
        if (op->lost == 0 && !event)
                op->lost = -ENOMEM;
        else if (op->lost == 0 && op->n_queued > MAX_QUEUED_BYTES)
                op->lost = HF_E_TOO_LARGE;
        bool lost = op->lost != 0;
        uint64_t id = op->inner_id;
        op->cancel_wanted |= lost;
        if (!lost) {
                op->n_queued += from->n_object;
                hf__loop_queue(op->client->loop, &event->task);
        }
        pthread_mutex_unlock(&op->client->mu);
        if (!lost)
                return;
        free(event);
        if (id)
                cancel_inner(op, id);
}

static void on_end(void *ctx, int error, const struct hf_status *status) {
        struct op *op = ctx;

        op->response.error = error;
        if (status)
                op->response.status = *status;
        pthread_mutex_lock(&op->client->mu);
        int lost = op->lost;
        pthread_mutex_unlock(&op->client->mu);
        if (lost != 0)
                op->response.error = hf_fail(&op->response.status, lost,
                                             "events could not be queued: %s", hf_strerror(lost));
        end_op(op);
}

/* ---- starting and canceling; any thread ---- */

/* 0, -ENOMEM or HF_E_CLOSED. */
static int op_new(struct loop_client *client, struct op **ret_op) {
        struct op *op = calloc(1, sizeof *op);

        if (!op)
                return -ENOMEM;
        op->client = client;
        op->refs = 2;
        pthread_mutex_lock(&client->mu);
        bool closing = client->closing;
        if (!closing) {
                client->n_inner++;
                link_locked(op, &client->ops);
        }
        pthread_mutex_unlock(&client->mu);
        if (closing) {
                free(op);
                return HF_E_CLOSED;
        }
        *ret_op = op;
        return 0;
}

/* Called after the inner client was asked to start the operation. r: the inner client's result. */
static int op_started(struct op *op, int r, uint64_t id, uint64_t *ret_id) {
        struct loop_client *client = op->client;

        if (r == 0 && ret_id)
                *ret_id = id;
        pthread_mutex_lock(&client->mu);
        assert(op->refs > 0 && op->inner_id == 0);
        op->inner_id = id;
        bool cancel = r == 0 && op->cancel_wanted;
        if (r != 0) {
                assert(client->n_inner > 0);
                client->n_inner--;
        }
        pthread_mutex_unlock(&client->mu);
        if (cancel)
                cancel_inner(op, id);
        if (r != 0)
                op_unref(op); /* the reference for the end, which will not come */
        op_unref(op);
        return r;
}

static int loop_request(struct hf_client *self, const struct hf_request *request,
                        hf_response_fn done, void *ctx, uint64_t *ret_id) {
        struct loop_client *client = (struct loop_client *)self;
        uint64_t id = 0;
        struct op *op;
        int r = op_new(client, &op);

        if (r != 0)
                return r;
        op->done = done;
        op->ctx = ctx;
        r = hf_client_request(client->inner, request, on_response, op, &id);
        return op_started(op, r, id, ret_id);
}

static int loop_watch(struct hf_client *self, const struct hf_watch_spec *spec, hf_event_fn event,
                      hf_watch_end_fn end, void *ctx, uint64_t *ret_id) {
        struct loop_client *client = (struct loop_client *)self;
        uint64_t id = 0;
        struct op *op;
        int r = op_new(client, &op);

        if (r != 0)
                return r;
        op->is_watch = true;
        op->on_event = event;
        op->on_end = end;
        op->ctx = ctx;
        r = hf_client_watch(client->inner, spec, on_event, on_end, op, &id);
        return op_started(op, r, id, ret_id);
}

static void loop_cancel(struct hf_client *self, uint64_t id) {
        hf_client_cancel(((struct loop_client *)self)->inner, id);
}

static void loop_watch_cancel(struct hf_client *self, uint64_t id) {
        hf_client_watch_cancel(((struct loop_client *)self)->inner, id);
}

/* ---- freeing; on the loop's thread ---- */

/* Each pass cancels one operation, and unlocks before it calls the inner client. */
static void cancel_operations(struct loop_client *client) {
        for (;;) {
                uint64_t id = 0;
                pthread_mutex_lock(&client->mu);
                struct op *op = client->ops;
                if (op) {
                        unlink_locked(op);
                        link_locked(op, &client->canceled);
                        if (!op->cancel_wanted)
                                id = op->inner_id;
                        op->cancel_wanted = true;
                }
                pthread_mutex_unlock(&client->mu);
                if (!op)
                        return;
                if (id)
                        cancel_inner(op, id);
        }
}

/* Waits until the inner client has ended the canceled operations, and then lets the loop deliver
 * what is queued. Callbacks cannot start other operations, so this ends. */
static void loop_free(struct hf_client *self) {
        struct loop_client *client = (struct loop_client *)self;

        pthread_mutex_lock(&client->mu);
        client->closing = true;
        pthread_mutex_unlock(&client->mu);
        cancel_operations(client);
        pthread_mutex_lock(&client->mu);
        while (client->n_inner > 0)
                pthread_cond_wait(&client->ended, &client->mu);
        while (client->canceled) {
                pthread_mutex_unlock(&client->mu);
                (void)hf_loop_dispatch(client->loop);
                pthread_mutex_lock(&client->mu);
        }
        assert(client->n_inner == 0);
        assert(!client->ops);
        pthread_mutex_unlock(&client->mu);
        pthread_cond_destroy(&client->ended);
        pthread_mutex_destroy(&client->mu);
        free(client);
}

/* ---- creating; any thread ---- */

int hf_loop_client_new(struct hf_loop *loop, struct hf_client *inner,
                       struct hf_client **ret_client) {
        static const struct hf_client_ops ops = {
                .size = sizeof ops,
                .request = loop_request,
                .cancel = loop_cancel,
                .watch = loop_watch,
                .watch_cancel = loop_watch_cancel,
                .free = loop_free,
        };

        if (!loop || !inner || !ret_client)
                return -EINVAL;
        struct loop_client *client = calloc(1, sizeof *client);
        if (!client)
                return -ENOMEM;
        int r = hf__mutex_cond_init(&client->mu, &client->ended);
        if (r != 0) {
                free(client);
                return r;
        }
        client->base = (struct hf_client){.ops = &ops, .host = inner->host};
        client->inner = inner;
        client->loop = loop;
        *ret_client = &client->base;
        return 0;
}
