/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The in-process client.
 *
 * Each request and each watch is an operation, which stays in the client's list until its last
 * callback (done or on_end). Canceling a request calls done at once; the registry finishes the
 * request later, and that response is dropped. loopback_free cancels all operations and waits until
 * each is freed.
 *
 * References of an operation: one for the registry, dropped when the registry has finished; one
 * while it is listed, dropped after the last callback; one for each function that uses it without
 * the lock.
 *
 * Invariant: the last callback runs exactly once. Several threads may try to run it (the registry,
 * a cancel, free). Only the thread that removes the operation from the list runs it.
 */
#include "server/registry/loopback.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/client_port.h>

#include "base/strbuf.h"
#include "base/thread.h"
#include "server/cacher/watch/watcher.h"
#include "server/registry/base/request.h"
#include "server/registry/kept_metadata.h"
#include "server/resources/custom/custom_table.h"
#include "server/resources/forms/conversion.h"

/* The field manager of the bootstrap's writes: no webhook may hinder them (admit.h). */
#define BOOTSTRAP_MANAGER "holdfast-bootstrap"

#define BOOKMARK_EVERY (20 * HF_NSEC_PER_MSEC) /* in place of changes that are left out */

struct loopback;

/* A request or a watch. */
struct operation {
        /* Immutable after operation_list. */
        struct loopback *client;
        const struct hfd_resource *resource; /* owned reference; NULL = there is none */
        struct call *call;                   /* the call that contains this; NULL = a watch */
        hf_event_fn on_event;                /* for a watch */
        hf_watch_end_fn on_end;              /* for a watch */
        void *ctx;

        /* For a watch; only the watcher's calls, which do not overlap, use it. */
        hf_nsec told_at; /* when a bookmark was last sent in place of a change that is left out */

        atomic_int refs;

        /* Guarded by client->mu. */
        struct operation *next, **link; /* in the client's list; link NULL = not listed */
        uint64_t id;
        /* owned reference; NULL = a request, or a watch that has not begun */
        struct hfd_watcher *watcher;
};

/*
 * A request. A watch is only an operation, which is much smaller: there are many watches, and they
 * last long.
 */
struct call {
        struct operation op; /* first member: it is freed with the call */
        /* Filled before the registry gets it, and then used by the registry only. */
        struct hfd_request request;

        /* Immutable after operation_list. */
        void *body;            /* owned; NULL = none */
        struct hf_fence fence; /* the request's, if it has one */
        hf_response_fn done;
};

struct loopback {
        struct hf_client base; /* first member: a pointer to it is cast to the outer struct */
        struct hfd_registry *registry; /* borrowed */
        bool for_metadata;             /* immutable */
        pthread_mutex_t mu;
        pthread_cond_t idle; /* signalled when n_operations becomes 0 */

        /* Guarded by mu. */
        struct operation *operations; /* list */
        size_t n_operations;          /* operations that were listed and are not freed yet */
        uint64_t last_id;
        bool closing; /* loopback_free has begun: no operation may be added to the list */
};

/* ---- operations ---- */

static void operation_init(struct operation *op, struct loopback *client,
                           const struct hf_resource *resource, void *ctx) {
        op->client = client;
        op->ctx = ctx;
        atomic_init(&op->refs, 2); /* the registry's and the list's */
        op->resource = hfd_custom_table_find_stored(hfd_cacher_table(client->registry->cacher),
                                                    resource->group ? resource->group : "",
                                                    resource->version, resource->plural);
}

/* ns and name may be NULL; is_valid_target has checked their lengths. */
static void request_init(struct hfd_request *request, const struct operation *op, const char *ns,
                         const char *name) {
        request->resource = op->resource;
        request->in_process = true;
        (void)snprintf(request->ns, sizeof request->ns, "%s", ns ? ns : "");
        (void)snprintf(request->name, sizeof request->name, "%s", name ? name : "");
}

static void request_deinit(struct hfd_request *request) {
        hfd_options_done(&request->options);
        hfd_admission_notes_done(&request->notes);
}

static void operation_free(struct operation *op) {
        struct call *call = op->call;

        assert(!op->link);
        hfd_watcher_unref(op->watcher);
        hfd_resource_unref(op->resource);
        if (call) {
                request_deinit(&call->request);
                free(call->body);
        }
        free(op);
}

static void operation_unref(struct operation *op) {
        struct loopback *client = op->client;
        int refs = atomic_fetch_sub_explicit(&op->refs, 1, memory_order_acq_rel);

        assert(refs > 0);
        if (refs != 1)
                return;
        operation_free(op);
        pthread_mutex_lock(&client->mu);
        assert(client->n_operations > 0);
        if (--client->n_operations == 0)
                pthread_cond_broadcast(&client->idle);
        pthread_mutex_unlock(&client->mu); /* loopback_free may free the client from here on */
}

/* Adds op to the list, so that its last callback will run. 0, or HF_E_CLOSED: op was not added. */
static int operation_list(struct operation *op, uint64_t *ret_id) {
        struct loopback *client = op->client;

        assert(!op->link);
        pthread_mutex_lock(&client->mu);
        if (client->closing) {
                pthread_mutex_unlock(&client->mu);
                return HF_E_CLOSED;
        }
        op->id = ++client->last_id;
        if (ret_id)
                *ret_id = op->id;
        op->next = client->operations;
        op->link = &client->operations;
        if (op->next)
                op->next->link = &op->next;
        client->operations = op;
        client->n_operations++;
        pthread_mutex_unlock(&client->mu);
        return 0;
}

/*
 * Removes op from the list. True: the caller must run the last callback, and then drop the list's
 * reference. False: another thread has removed op.
 */
static bool operation_unlist(struct operation *op) {
        struct loopback *client = op->client;

        pthread_mutex_lock(&client->mu);
        bool listed = op->link != NULL;
        if (listed) {
                *op->link = op->next;
                if (op->next)
                        op->next->link = op->link;
                op->link = NULL;
        }
        pthread_mutex_unlock(&client->mu);
        return listed;
}

/* Returns the listed operation with this ID, with a new reference. NULL: it has ended. */
static struct operation *find_operation_locked(struct loopback *client, uint64_t id) {
        struct operation *op = client->operations;

        hf__mutex_assert_held(&client->mu);
        while (op && op->id != id)
                op = op->next;
        if (op)
                atomic_fetch_add(&op->refs, 1);
        return op;
}

/* ---- requests ---- */

/* Runs the last callback of a request, unless another thread has run it. */
static void finish_request(struct operation *op, const struct hf_response *response) {
        if (!operation_unlist(op))
                return;
        op->call->done(op->ctx, response);
        operation_unref(op);
}

static void cancel_request(struct operation *op) {
        struct hf_response response = {.size = sizeof response, .error = HF_E_CANCELED};

        assert(op->call);
        (void)hf_fail(&response.status, HF_E_CANCELED, "the request was canceled");
        finish_request(op, &response);
}

/* The registry has finished with the request or never got it: drops the registry's reference. */
static void on_response(struct hfd_request *request, const struct hfd_response *from_registry) {
        struct call *call = (void *)((char *)request - offsetof(struct call, request));
        struct operation *op = &call->op;
        struct hf_response response = {.size = sizeof response,
                                       .error = from_registry->status.error,
                                       .fence_echoed = from_registry->fence_compared,
                                       .status = from_registry->status};

        if (from_registry->body) {
                response.body = from_registry->body->data;
                response.n_body = from_registry->body->n;
        }
        finish_request(op, &response);
        operation_unref(op);
}

/* Whether the resource has version and plural, and ns and name fit into the request. */
static bool is_valid_target(const struct hf_resource *resource, const char *ns, const char *name) {
        return resource->version && resource->plural && (!ns || strlen(ns) <= HF_NAME_MAX) &&
               (!name || strlen(name) <= HF_NAME_MAX);
}

static bool is_single_object_verb(enum hf_verb verb) {
        return verb == HF_VERB_GET || verb == HF_VERB_UPDATE || verb == HF_VERB_DELETE ||
               verb == HF_VERB_PATCH;
}

/* Copies the request, whose names and verb were checked. NULL: out of memory. */
static struct call *call_new(struct loopback *client, const struct hf_request *request,
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
        struct call *call = calloc(1, sizeof *call);

        if (!call)
                return NULL;
        struct hfd_request *own = &call->request;
        call->done = done;
        call->op.call = call;
        operation_init(&call->op, client, &request->resource, ctx);
        request_init(own, &call->op, request->ns,
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
                call->fence = *request->fence;
                own->fence = &call->fence;
        }
        if (request->n_body) {
                call->body = malloc(request->n_body);
                if (!call->body) {
                        operation_free(&call->op);
                        return NULL;
                }
                memcpy(call->body, request->body, request->n_body);
        }
        own->body = call->body;
        own->n_body = request->n_body;
        return call;
}

/*
 * Makes most of the checks of rest.c for a path, with the same errors; only a name without a
 * namespace gets 400 here, and 405 over HTTP. False: response is filled.
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
        if (own->subresource && own->verb != HFD_GET && own->verb != HFD_UPDATE &&
            own->verb != HFD_PATCH) {
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
        struct loopback *client = (struct loopback *)self;
        struct hfd_response response = {0};

        if (!is_valid_target(&request->resource, request->ns, request->name) ||
            (unsigned)request->verb > HF_VERB_PATCH || (unsigned)request->patch > HF_PATCH_APPLY ||
            (is_single_object_verb(request->verb) && (!request->name || !*request->name)))
                return -EINVAL;
        struct call *call = call_new(client, request, done, ctx);
        if (!call)
                return -ENOMEM;
        struct hfd_request *own = &call->request;
        int r = operation_list(&call->op, ret_id);
        if (r != 0) {
                operation_free(&call->op);
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
        struct loopback *client = (struct loopback *)self;

        pthread_mutex_lock(&client->mu);
        struct operation *op = find_operation_locked(client, id);
        pthread_mutex_unlock(&client->mu);
        if (!op)
                return;
        if (op->call)
                cancel_request(op);
        operation_unref(op);
}

/* ---- watches ---- */

static void send_bookmark(struct operation *op, struct hf_event *event) {
        const struct hfd_resource *resource = op->resource;
        char bookmark[320 + HFD_API_VERSION_MAX], version[HFD_API_VERSION_MAX];

        hfd_resource_api_version(resource, version);
        event->n_object = (size_t)snprintf(bookmark, sizeof bookmark,
                                           "{\"kind\":\"%s\",\"apiVersion\":\"%s\","
                                           "\"metadata\":{\"resourceVersion\":\"%s\"}}",
                                           resource->kind, version, event->resource_version);
        event->object = bookmark;
        op->on_event(op->ctx, event);
}

/* Whether the watch does not need the change. */
static bool is_left_out(const struct operation *op, const struct hfd_watch_item *item) {
        return op->client->for_metadata && item->before &&
               hfd_kept_metadata(item->before, item->object);
}

/* Whether a bookmark is due in place of a change that is left out. */
static bool is_bookmark_due(struct operation *op) {
        hf_nsec now = hfd_registry_now(op->client->registry);

        if (now - op->told_at < BOOKMARK_EVERY)
                return false;
        op->told_at = now;
        return true;
}

static bool on_watch_events(void *ctx, struct hfd_watch_item *items, size_t n) {
        struct operation *op = ctx;
        bool good = true;

        for (size_t i = 0; i < n && good; i++) {
                char revision[HF__U64_TEXT_MAX];
                struct hf_event event = {.type = items[i].type, .resource_version = revision};
                bool left_out = is_left_out(op, &items[i]);
                if (left_out && !is_bookmark_due(op))
                        continue;
                (void)hf__u64_text(items[i].revision, revision);
                if (!items[i].object || left_out) {
                        event.type = HF_EVENT_BOOKMARK;
                        send_bookmark(op, &event);
                        continue;
                }
                struct hfd_object *object = hfd_conversion_object(op->resource, items[i].object);
                good = object != NULL;
                if (good) {
                        event.object = object->bytes->data;
                        event.n_object = object->bytes->n;
                        op->on_event(op->ctx, &event);
                }
                hfd_object_unref(object);
        }
        return good;
}

/* Runs the last callback of a watch, unless another thread has run it. */
static void finish_watch(struct operation *op, int error, const struct hf_status *status) {
        if (!operation_unlist(op))
                return;
        op->on_end(op->ctx, error, error ? status : NULL);
        operation_unref(op);
}

/* The watcher makes no further calls, so the registry's reference is dropped. */
static void on_watch_end(void *ctx, int error, const struct hfd_response *response) {
        struct operation *op = ctx;
        struct hf_status status = response->status;

        if (error == HF_E_CANCELED)
                (void)hf_fail(&status, HF_E_CANCELED, "the watch was canceled");
        finish_watch(op, error, &status);
        operation_unref(op);
}

static const struct hfd_watch_sink watcher_sink = {.events = on_watch_events, .end = on_watch_end};

/*
 * Builds a query from spec and parses it, so that the options get the same checks as over HTTP.
 * False: response is filled.
 */
static bool parse_watch_options(struct hfd_request *request, const struct hf_watch_spec *spec,
                                struct hfd_response *response) {
        struct hf__strbuf query = {0};

        hf__strbuf_printf(&query, "allowWatchBookmarks=%s", spec->bookmarks ? "true" : "false");
        if (spec->resource_version && *spec->resource_version)
                hf__strbuf_printf(&query, "&resourceVersion=%s", spec->resource_version);
        if (spec->name && *spec->name)
                hf__strbuf_printf(&query, "&fieldSelector=metadata.name%%3D%s", spec->name);
        if (spec->query && *spec->query)
                hf__strbuf_printf(&query, "&%s", spec->query);
        bool good = !query.error && hfd_options_parse(request, query.data, response);
        if (query.error)
                hfd_response_no_memory(response);
        hf__strbuf_done(&query);
        return good;
}

/* Starts the watcher, or cancels it if loopback_free has begun. */
static void start_watcher(struct operation *op, struct hfd_watcher *watcher) {
        struct loopback *client = op->client;

        /* Starting or canceling may call on_watch_end, which drops the registry's reference. */
        atomic_fetch_add(&op->refs, 1);
        pthread_mutex_lock(&client->mu);
        op->watcher = watcher;
        bool closing = client->closing;
        pthread_mutex_unlock(&client->mu);
        if (closing)
                hfd_watcher_cancel(watcher);
        else
                hfd_watcher_start(watcher);
        operation_unref(op);
}

/* Begins the watch. NULL: response is filled. */
static struct hfd_watcher *begin_watch(struct operation *op, const struct hf_watch_spec *spec,
                                       struct hfd_response *response) {
        struct hfd_request request = {.verb = HFD_WATCH};
        struct hfd_watcher *watcher = NULL;

        if (!op->resource || op->resource->is_review) {
                hfd_response_no_such_resource(response);
                return NULL;
        }
        request_init(&request, op, spec->ns, NULL);
        if (parse_watch_options(&request, spec, response) &&
            !hfd_registry_watch(op->client->registry, &request, &watcher_sink, op, response,
                                &watcher))
                watcher = NULL;
        request_deinit(&request);
        return watcher;
}

static int loopback_watch(struct hf_client *self, const struct hf_watch_spec *spec,
                          hf_event_fn on_event, hf_watch_end_fn on_end, void *ctx,
                          uint64_t *ret_id) {
        struct loopback *client = (struct loopback *)self;
        struct hfd_response response = {0};

        if (!is_valid_target(&spec->resource, spec->ns, spec->name))
                return -EINVAL;
        struct operation *op = calloc(1, sizeof *op);
        if (!op)
                return -ENOMEM;
        operation_init(op, client, &spec->resource, ctx);
        op->on_event = on_event;
        op->on_end = on_end;
        int r = operation_list(op, ret_id);
        if (r != 0) {
                operation_free(op);
                return r;
        }
        struct hfd_watcher *watcher = begin_watch(op, spec, &response);
        if (watcher) {
                start_watcher(op, watcher);
                return 0;
        }
        /* There is no watcher, so both references are dropped here. */
        finish_watch(op, response.status.error, &response.status);
        operation_unref(op);
        hfd_response_done(&response);
        return 0;
}

static void loopback_watch_cancel(struct hf_client *self, uint64_t id) {
        struct loopback *client = (struct loopback *)self;
        struct hfd_watcher *watcher = NULL;

        pthread_mutex_lock(&client->mu);
        struct operation *op = find_operation_locked(client, id);
        if (op)
                watcher = op->watcher;
        pthread_mutex_unlock(&client->mu);
        if (watcher)
                hfd_watcher_cancel(watcher); /* op, which is referenced, keeps the watcher alive */
        if (op)
                operation_unref(op);
}

/* ---- the client ---- */

/* Cancels the first operation in the list. Releases mu for that time. */
static void cancel_first_locked(struct loopback *client) {
        const struct hf_clock *clock = hf_host_clock(client->registry->host);
        struct operation *op = client->operations;
        struct hfd_watcher *watcher = op->watcher;

        hf__mutex_assert_held(&client->mu);
        atomic_fetch_add(&op->refs, 1);
        pthread_mutex_unlock(&client->mu);
        if (watcher)
                hfd_watcher_cancel(watcher);
        else if (op->call)
                cancel_request(op);
        operation_unref(op);
        pthread_mutex_lock(&client->mu);
        /*
         * If the watch is still listed, either another thread is delivering an event, and the watch
         * ends when that callback returns; or it was not started yet, and start_watcher will cancel
         * it. So wait a little before the next attempt.
         */
        if (client->operations == op)
                (void)clock->wait(clock->ctx, &client->idle, &client->mu,
                                  hfd_registry_now(client->registry) + HF_NSEC_PER_MSEC);
}

static void loopback_free(struct hf_client *self) {
        struct loopback *client = (struct loopback *)self;

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
                                                  .watch = loopback_watch,
                                                  .watch_cancel = loopback_watch_cancel,
                                                  .free = loopback_free};

static int make_client(struct hfd_registry *registry, bool for_metadata,
                       struct hf_client **ret_client) {
        struct loopback *client = calloc(1, sizeof *client);

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
