/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client inside the process: requests go to the registry without HTTP. loopback_operation.h
 * describes the lifetime of a request.
 *
 * Invariants: the last callback of a request runs exactly once, whether the registry or a cancel
 * ends the request first. loopback_free cancels all operations and waits until each is freed.
 */
#include "server/registry/loopback.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/client_port.h>

#include "base/thread.h"
#include "server/cacher/watch/watcher.h"
#include "server/registry/base/request.h"
#include "server/registry/loopback_operation.h"
#include "server/registry/loopback_watch.h"
#include "server/resources/rows/resource_table.h"

/* The field manager of the bootstrap's writes: no webhook may hinder them (admit.h). */
#define BOOTSTRAP_MANAGER "holdfast-bootstrap"

/* ---- requests ---- */

/* Runs the last callback of a request, unless another thread has removed the request from the list:
 * then that thread runs the callback. */
static void finish_request(struct hfd_operation *op, const struct hf_response *response) {
        if (!hfd_operation_unlist(op))
                return;
        op->whole->done(op->ctx, response);
        hfd_operation_unref(op);
}

static void cancel_request(struct hfd_operation *op) {
        struct hf_response response = {.size = sizeof response, .error = HF_E_CANCELED};

        assert(op->whole);
        (void)hf_fail(&response.status, HF_E_CANCELED, "the request was canceled");
        finish_request(op, &response);
}

/* The registry has finished with the request or never got it: drops the registry's reference. */
static void on_response(struct hfd_request *request, const struct hfd_response *from_registry) {
        struct hfd_loopback_request *whole =
                (void *)((char *)request - offsetof(struct hfd_loopback_request, request));
        struct hfd_operation *op = &whole->op;
        struct hf_response response = {.size = sizeof response,
                                       .error = from_registry->status.error,
                                       .fence_echoed = from_registry->fence_compared,
                                       .status = from_registry->status};

        if (from_registry->body) {
                response.body = from_registry->body->data;
                response.n_body = from_registry->body->n;
        }
        finish_request(op, &response);
        hfd_operation_unref(op);
}

static bool is_single_object_verb(enum hf_verb verb) {
        return verb == HF_VERB_GET || verb == HF_VERB_UPDATE || verb == HF_VERB_DELETE ||
               verb == HF_VERB_PATCH;
}

/* Copies the request, whose names and verb were checked. NULL: out of memory. */
static struct hfd_loopback_request *new_request(struct hfd_loopback *client,
                                                const struct hf_request *request,
                                                hf_response_fn done, void *ctx) {
        static const enum hfd_verb verbs[] = {[HF_VERB_GET] = HFD_GET,
                                              [HF_VERB_LIST] = HFD_LIST,
                                              [HF_VERB_CREATE] = HFD_CREATE,
                                              [HF_VERB_UPDATE] = HFD_UPDATE,
                                              [HF_VERB_DELETE] = HFD_DELETE_OBJECT,
                                              [HF_VERB_DELETE_COLLECTION] = HFD_DELETE_COLLECTION,
                                              [HF_VERB_PATCH] = HFD_PATCH};
        static const enum hfd_patch patches[] = {[HF_PATCH_MERGE] = HFD_PATCH_MERGE,
                                                 [HF_PATCH_JSON] = HFD_PATCH_JSON,
                                                 [HF_PATCH_STRATEGIC] = HFD_PATCH_STRATEGIC};
        hf_nsec timeout = request->verb == HF_VERB_DELETE_COLLECTION
                                  ? HFD_REGISTRY_DELETE_COLLECTION_DEADLINE
                                  : HFD_REGISTRY_DEADLINE;
        struct hfd_loopback_request *whole = calloc(1, sizeof *whole);

        if (!whole)
                return NULL;
        struct hfd_request *own = &whole->request;
        whole->done = done;
        whole->op.whole = whole;
        hfd_operation_init(&whole->op, client, &request->resource, ctx);
        hfd_operation_request_init(own, &whole->op, request->ns,
                                   is_single_object_verb(request->verb) ? request->name : NULL);
        own->verb = verbs[request->verb];
        if (request->verb == HF_VERB_PATCH && request->patch != HF_PATCH_APPLY)
                own->patch = patches[request->patch];
        own->done = on_response;
        own->deadline = request->deadline ? request->deadline
                                          : hfd_registry_now(client->registry) + timeout;
        own->from_store = request->lane == HF_LANE_LEASE;
        own->skips_admission = request->lane == HF_LANE_LEASE; /* admit.h */
        own->takes_any_version = true;
        if (request->fence) {
                whole->fence = *request->fence;
                own->fence = &whole->fence;
        }
        if (request->n_body) {
                whole->body = malloc(request->n_body);
                if (!whole->body) {
                        hfd_operation_free(&whole->op);
                        return NULL;
                }
                memcpy(whole->body, request->body, request->n_body);
        }
        own->body = whole->body;
        own->n_body = request->n_body;
        return whole;
}

/*
 * Makes most of the checks of rest.c for a path, with the same errors, apart from these: a review
 * or a ComponentStatus gets 404; a name without a namespace gets 400 here, and 404 over HTTP; a
 * create at a subresource and any request for a subresource whose bodies are of another kind
 * (hfd_resource_of_part) get 405, and an apply 400. False: response is filled.
 */
static bool check_request(struct hfd_request *own, const struct hf_request *request,
                          struct hfd_response *response) {
        const struct hfd_resource *resource = own->resource;
        const char *subresource = request->subresource ? request->subresource : "";

        if (!resource || resource->is_review ||
            !hfd_resource_subresource(resource, subresource, &own->subresource)) {
                hfd_response_no_such_resource(response);
                return false;
        }
        bool is_allowed = own->subresource == HFD_SUB_NONE || own->verb == HFD_GET ||
                          own->verb == HFD_UPDATE || own->verb == HFD_PATCH;
        if (!is_allowed || hfd_resource_of_part(own->subresource)) {
                hfd_response_not_allowed(response);
                return false;
        }
        if (resource->namespaced && !*own->ns && is_single_object_verb(request->verb)) {
                hfd_response_bad_request(response,
                                         "an empty namespace may not be set when a resource "
                                         "name is provided");
                return false;
        }
        if (request->verb == HF_VERB_PATCH && request->patch == HF_PATCH_APPLY) {
                hfd_response_bad_request(response, "server-side apply is not supported");
                return false;
        }
        return hfd_options_parse(own, request->query, response);
}

static int loopback_request(struct hf_client *self, const struct hf_request *request,
                            hf_response_fn done, void *ctx, uint64_t *ret_id) {
        struct hfd_loopback *client = (struct hfd_loopback *)self;
        struct hfd_response response = {0};

        if (!hfd_operation_is_valid_target(&request->resource, request->ns, request->name) ||
            (unsigned)request->verb > HF_VERB_PATCH || (unsigned)request->patch > HF_PATCH_APPLY ||
            (is_single_object_verb(request->verb) && (!request->name || !*request->name)))
                return -EINVAL;
        struct hfd_loopback_request *whole = new_request(client, request, done, ctx);
        if (!whole)
                return -ENOMEM;
        struct hfd_request *own = &whole->request;
        int r = hfd_operation_list(&whole->op, ret_id);
        if (r != 0) {
                hfd_operation_free(&whole->op);
                return r;
        }
        if (check_request(own, request, &response)) {
                const char *manager = own->options.field_manager;
                own->skips_admission |= manager && strcmp(manager, BOOTSTRAP_MANAGER) == 0;
                hfd_registry_serve(client->registry, own);
                return 0;
        }
        on_response(own, &response);
        hfd_response_done(&response);
        return 0;
}

static void loopback_cancel(struct hf_client *self, uint64_t id) {
        struct hfd_loopback *client = (struct hfd_loopback *)self;

        pthread_mutex_lock(&client->mu);
        struct hfd_operation *op = hfd_operation_find_locked(client, id);
        pthread_mutex_unlock(&client->mu);
        if (!op)
                return;
        if (op->whole)
                cancel_request(op);
        hfd_operation_unref(op);
}

/* ---- the client ---- */

/* Cancels the first operation in the list. Releases mu for that time. */
static void cancel_first_locked(struct hfd_loopback *client) {
        const struct hf_clock *clock = hf_host_clock(client->registry->host);
        struct hfd_operation *op = client->operations;
        struct hfd_watcher *watcher = op->watcher;

        hf__mutex_assert_held(&client->mu);
        /* The operation is listed, so the list's reference exists. */
        atomic_fetch_add(&op->refs, 1);
        pthread_mutex_unlock(&client->mu);
        if (watcher)
                hfd_watcher_cancel(watcher);
        else if (op->whole)
                cancel_request(op);
        hfd_operation_unref(op);
        pthread_mutex_lock(&client->mu);
        /*
         * If the watch is still listed, either another thread is delivering an event, and the watch
         * ends when that callback returns; or another thread is about to start it, and will cancel
         * or end it instead. So wait a little before the next attempt.
         */
        if (client->operations == op)
                (void)clock->wait(clock->ctx, &client->idle, &client->mu,
                                  hfd_registry_now(client->registry) + HF_NSEC_PER_MSEC);
}

static void loopback_free(struct hf_client *self) {
        struct hfd_loopback *client = (struct hfd_loopback *)self;

        pthread_mutex_lock(&client->mu);
        client->closing = true;
        while (client->n_operations > 0) {
                if (client->operations)
                        cancel_first_locked(client);
                else
                        pthread_cond_wait(&client->idle, &client->mu);
        }
        pthread_mutex_unlock(&client->mu);
        assert(!client->operations);
        pthread_cond_destroy(&client->idle);
        pthread_mutex_destroy(&client->mu);
        free(client);
}

static const struct hf_client_ops loopback_ops = {.size = sizeof loopback_ops,
                                                  .request = loopback_request,
                                                  .cancel = loopback_cancel,
                                                  .watch = hfd_loopback_watch,
                                                  .watch_cancel = hfd_loopback_watch_cancel,
                                                  .free = loopback_free};

/* for_metadata: the client's watches leave out changes that keep the metadata (loopback.h). */
static int make_client(struct hfd_registry *registry, bool for_metadata,
                       struct hf_client **ret_client) {
        struct hfd_loopback *client = calloc(1, sizeof *client);

        if (!client)
                return -ENOMEM;
        client->base = (struct hf_client){&loopback_ops, registry->host};
        client->registry = registry;
        client->for_metadata = for_metadata;
        int r = hf__mutex_cond_init(&client->mu, &client->idle);
        if (r != 0) {
                free(client);
                return r;
        }
        *ret_client = &client->base;
        return 0;
}

int hfd_loopback_new(struct hfd_registry *registry, struct hf_client **ret_client) {
        return make_client(registry, false, ret_client);
}

int hfd_loopback_new_for_metadata(struct hfd_registry *registry, struct hf_client **ret_client) {
        return make_client(registry, true, ret_client);
}
