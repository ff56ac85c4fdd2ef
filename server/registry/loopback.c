/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The in-process client.
 *
 * Each request and each watch is a `pending`, which stays in the client's list until its last
 * callback (done or on_end). Cancelling a request calls done at once; the registry finishes the
 * request later, and that response is dropped. free cancels everything and waits until every
 * pending is freed.
 *
 * References of a pending: one for the registry, dropped when it has finished; one while listed,
 * dropped after the last callback; one for each function that works on it without the lock.
 *
 * Invariant: the last callback runs exactly once. Several threads may try to run it (the registry,
 * a cancel, free). The thread that removes the pending from the list runs it.
 */
#include "server/registry/loopback.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/client_port.h>

#include "base/strbuf.h"
#include "base/thread.h"
#include "server/cacher/watcher.h"
#include "server/registry/request.h"

struct loopback;

struct pending {
        struct hfd_request request; /* first: done is given this */

        /* Immutable once it is listed. */
        struct loopback *client;
        void *body;             /* owned; NULL = none */
        struct hf_fence fence;  /* the request's, if it has one */
        hf_response_fn done;    /* for a request; NULL = a watch */
        hf_event_fn on_event;   /* for a watch */
        hf_watch_end_fn on_end; /* for a watch */
        void *ctx;

        atomic_int refs;

        /* Guarded by client->mu. */
        struct pending *next, **link; /* in the client's list; link NULL = not listed */
        uint64_t id;
        /* owned reference; NULL = a request, or a watch that has not begun */
        struct hfd_watcher *watcher;
};

struct loopback {
        struct hf_client base;         /* first: the operations are given this */
        struct hfd_registry *registry; /* borrowed */
        pthread_mutex_t mu;
        pthread_cond_t idle; /* n_pending is 0 */

        /* Guarded by mu. */
        struct pending *pending;
        size_t n_pending; /* pendings that were listed and are not freed yet */
        uint64_t last_id;
        bool closing; /* no further pending may be listed */
};

/* ---- pendings ---- */

/* ns and name may be NULL; names_fit has checked their length. NULL: out of memory. */
static struct pending *pending_new(struct loopback *client, const struct hf_resource *resource,
                                   const char *ns, const char *name) {
        struct pending *p = calloc(1, sizeof *p);

        if (!p)
                return NULL;
        p->client = client;
        atomic_init(&p->refs, 2); /* the registry's and the list's */
        p->request.resource = hfd_resource_find(resource->group ? resource->group : "",
                                                resource->version, resource->plural);
        (void)snprintf(p->request.ns, sizeof p->request.ns, "%s", ns ? ns : "");
        (void)snprintf(p->request.name, sizeof p->request.name, "%s", name ? name : "");
        return p;
}

static void pending_free(struct pending *p) {
        assert(!p->link);
        hfd_options_done(&p->request.options);
        hfd_watcher_unref(p->watcher);
        free(p->body);
        free(p);
}

static void pending_unref(struct pending *p) {
        struct loopback *client = p->client;
        int refs = atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel);

        assert(refs > 0);
        if (refs != 1)
                return;
        pending_free(p);
        pthread_mutex_lock(&client->mu);
        assert(client->n_pending > 0);
        if (--client->n_pending == 0)
                pthread_cond_broadcast(&client->idle);
        pthread_mutex_unlock(&client->mu); /* from here on the client may be gone */
}

/* Lists p, so that its last callback will run. 0, or HF_E_CLOSED: p is not listed. */
static int pending_list(struct pending *p, uint64_t *ret_id) {
        struct loopback *client = p->client;

        assert(!p->link);
        pthread_mutex_lock(&client->mu);
        if (client->closing) {
                pthread_mutex_unlock(&client->mu);
                return HF_E_CLOSED;
        }
        p->id = ++client->last_id;
        if (ret_id)
                *ret_id = p->id;
        p->next = client->pending;
        p->link = &client->pending;
        if (p->next)
                p->next->link = &p->next;
        client->pending = p;
        client->n_pending++;
        pthread_mutex_unlock(&client->mu);
        return 0;
}

/*
 * Removes p from the list. True: the caller must run the last callback, and then drop the list's
 * reference. False: another thread has removed it.
 */
static bool pending_unlist(struct pending *p) {
        struct loopback *client = p->client;

        pthread_mutex_lock(&client->mu);
        bool listed = p->link != NULL;
        if (listed) {
                *p->link = p->next;
                if (p->next)
                        p->next->link = p->link;
                p->link = NULL;
        }
        pthread_mutex_unlock(&client->mu);
        return listed;
}

/* Returns the listed pending with this ID, with a new reference. NULL: it has ended. */
static struct pending *find_locked(struct loopback *client, uint64_t id) {
        struct pending *p = client->pending;

        hf__mutex_assert_held(&client->mu);
        while (p && p->id != id)
                p = p->next;
        if (p)
                atomic_fetch_add(&p->refs, 1);
        return p;
}

/* ---- requests ---- */

/* Runs the last callback of a request, unless it has run already. */
static void finish_request(struct pending *p, const struct hf_response *response) {
        if (!pending_unlist(p))
                return;
        p->done(p->ctx, response);
        pending_unref(p);
}

static void cancel_request(struct pending *p) {
        struct hf_response response = {.error = HF_E_CANCELED};

        assert(p->done);
        (void)hf_fail(&response.status, HF_E_CANCELED, "the request was cancelled");
        finish_request(p, &response);
}

/* The registry has finished, and drops its reference. */
static void on_response(struct hfd_request *request, const struct hfd_response *from_registry) {
        struct pending *p = (struct pending *)request;
        struct hf_response response = {.error = from_registry->status.error,
                                       .fence_echoed = from_registry->fence_compared,
                                       .status = from_registry->status};

        if (from_registry->body) {
                response.body = from_registry->body->data;
                response.n_body = from_registry->body->n;
        }
        finish_request(p, &response);
        pending_unref(p);
}

static bool names_fit(const struct hf_resource *resource, const char *ns, const char *name) {
        return resource->version && resource->plural && (!ns || strlen(ns) <= HF_NAME_MAX) &&
               (!name || strlen(name) <= HF_NAME_MAX);
}

static bool is_of_one(enum hf_verb verb) {
        return verb == HF_VERB_GET || verb == HF_VERB_UPDATE || verb == HF_VERB_DELETE;
}

/* Copies the request, which is valid. NULL: out of memory. */
static struct pending *request_new(struct loopback *client, const struct hf_request *request) {
        static const enum hfd_verb verbs[] =
                {[HF_VERB_GET] = HFD_GET,           [HF_VERB_LIST] = HFD_LIST,
                 [HF_VERB_CREATE] = HFD_CREATE,     [HF_VERB_UPDATE] = HFD_UPDATE,
                 [HF_VERB_DELETE] = HFD_DELETE_ONE, [HF_VERB_DELETE_COLLECTION] = HFD_DELETE_MANY};
        hf_nsec timeout = request->verb == HF_VERB_DELETE_COLLECTION ? HFD_REGISTRY_MANY_DEADLINE
                                                                     : HFD_REGISTRY_DEADLINE;
        struct pending *p = pending_new(client, &request->resource, request->ns,
                                        is_of_one(request->verb) ? request->name : NULL);

        if (!p)
                return NULL;
        p->request.verb = verbs[request->verb];
        p->request.done = on_response;
        p->request.deadline = request->deadline ? request->deadline
                                                : hfd_registry_now(client->registry) + timeout;
        if (request->fence) {
                p->fence = *request->fence;
                p->request.fence = &p->fence;
        }
        if (request->n_body) {
                p->body = malloc(request->n_body);
                if (!p->body) {
                        pending_free(p);
                        return NULL;
                }
                memcpy(p->body, request->body, request->n_body);
        }
        p->request.body = p->body;
        p->request.n_body = request->n_body;
        return p;
}

/* Makes the same checks as the HTTP server does for a path. False: response is filled. */
static bool check_request(struct pending *p, const struct hf_request *request,
                          struct hfd_response *response) {
        const struct hfd_resource *resource = p->request.resource;
        const char *subresource = request->subresource ? request->subresource : "";

        if (!resource ||
            !hfd_resource_subresource(resource, subresource, &p->request.subresource)) {
                hfd_response_no_such_resource(response);
                return false;
        }
        if (p->request.subresource && p->request.verb != HFD_GET && p->request.verb != HFD_UPDATE) {
                hfd_response_not_allowed(response);
                return false;
        }
        if (resource->namespaced && !*p->request.ns && is_of_one(request->verb)) {
                hfd_response_bad_request(response,
                                         "an empty namespace may not be set when a resource "
                                         "name is provided");
                return false;
        }
        return hfd_options_parse(&p->request, request->query, response);
}

static int loopback_request(struct hf_client *self, const struct hf_request *request,
                            hf_response_fn done, void *ctx, uint64_t *ret_id) {
        struct loopback *client = (struct loopback *)self;
        struct hfd_response response = {0};
        struct pending *p;
        int r;

        if (!names_fit(&request->resource, request->ns, request->name) ||
            (unsigned)request->verb > HF_VERB_DELETE_COLLECTION ||
            (is_of_one(request->verb) && (!request->name || !*request->name)))
                return -EINVAL;
        p = request_new(client, request);
        if (!p)
                return -ENOMEM;
        p->done = done;
        p->ctx = ctx;
        r = pending_list(p, ret_id);
        if (r != 0) {
                pending_free(p);
                return r;
        }
        if (check_request(p, request, &response)) {
                hfd_registry_serve(client->registry, &p->request);
                return 0;
        }
        on_response(&p->request, &response);
        hfd_response_done(&response);
        return 0;
}

static void loopback_cancel(struct hf_client *self, uint64_t id) {
        struct loopback *client = (struct loopback *)self;

        pthread_mutex_lock(&client->mu);
        struct pending *p = find_locked(client, id);
        pthread_mutex_unlock(&client->mu);
        if (!p)
                return;
        if (p->done)
                cancel_request(p);
        pending_unref(p);
}

/* ---- watches ---- */

static void send_bookmark(struct pending *p, struct hf_event *event) {
        const struct hfd_resource *resource = p->request.resource;
        char bookmark[320], version[128];

        hfd_resource_api_version(resource, version);
        event->n_object = (size_t)snprintf(bookmark, sizeof bookmark,
                                           "{\"kind\":\"%s\",\"apiVersion\":\"%s\","
                                           "\"metadata\":{\"resourceVersion\":\"%s\"}}",
                                           resource->kind, version, event->resource_version);
        event->object = bookmark;
        p->on_event(p->ctx, event);
}

static bool on_watch_events(void *ctx, struct hfd_watch_item *items, size_t n) {
        struct pending *p = ctx;

        for (size_t i = 0; i < n; i++) {
                char revision[HF__U64_TEXT_MAX];
                struct hf_event event = {.type = items[i].type, .resource_version = revision};
                (void)hf__u64_text(items[i].revision, revision);
                if (items[i].object) {
                        event.object = items[i].object->bytes->data;
                        event.n_object = items[i].object->bytes->n;
                        p->on_event(p->ctx, &event);
                } else {
                        send_bookmark(p, &event);
                }
        }
        return true;
}

/* Runs the last callback of a watch, unless it has run already. */
static void finish_watch(struct pending *p, int error, const struct hf_status *status) {
        if (!pending_unlist(p))
                return;
        p->on_end(p->ctx, error, error ? status : NULL);
        pending_unref(p);
}

/* The watcher makes no further calls, and drops the registry's reference. */
static void on_watch_end(void *ctx, int error, const struct hfd_response *response) {
        struct pending *p = ctx;
        struct hf_status status = response->status;

        if (error == HF_E_CANCELED)
                (void)hf_fail(&status, HF_E_CANCELED, "the watch was cancelled");
        finish_watch(p, error, &status);
        pending_unref(p);
}

static const struct hfd_watcher_sink sink = {on_watch_events, on_watch_end};

/* Parses the options of spec as a query, like those of HTTP. False: response is filled. */
static bool parse_watch_options(struct pending *p, const struct hf_watch_spec *spec,
                                struct hfd_response *response) {
        struct hf__strbuf query = {0};

        hf__strbuf_printf(&query, "allowWatchBookmarks=%s", spec->bookmarks ? "true" : "false");
        if (spec->resource_version && *spec->resource_version)
                hf__strbuf_printf(&query, "&resourceVersion=%s", spec->resource_version);
        if (spec->name && *spec->name)
                hf__strbuf_printf(&query, "&fieldSelector=metadata.name%%3D%s", spec->name);
        if (spec->query && *spec->query)
                hf__strbuf_printf(&query, "&%s", spec->query);
        bool good = !query.error && hfd_options_parse(&p->request, query.data, response);
        if (query.error)
                hfd_response_no_memory(response);
        hf__strbuf_done(&query);
        return good;
}

/* Lets the watcher begin, or cancels it if the client is being freed meanwhile. */
static void start_watcher(struct pending *p, struct hfd_watcher *watcher) {
        struct loopback *client = p->client;

        /* go and cancel may call on_watch_end, which drops the registry's reference. */
        atomic_fetch_add(&p->refs, 1);
        pthread_mutex_lock(&client->mu);
        p->watcher = watcher;
        bool closing = client->closing;
        pthread_mutex_unlock(&client->mu);
        if (closing)
                hfd_watcher_cancel(watcher);
        else
                hfd_watcher_start(watcher);
        pending_unref(p);
}

static int loopback_watch(struct hf_client *self, const struct hf_watch_spec *spec,
                          hf_event_fn on_event, hf_watch_end_fn on_end, void *ctx,
                          uint64_t *ret_id) {
        struct loopback *client = (struct loopback *)self;
        struct hfd_response response = {0};
        struct hfd_watcher *watcher;

        if (!names_fit(&spec->resource, spec->ns, spec->name))
                return -EINVAL;
        struct pending *p = pending_new(client, &spec->resource, spec->ns, NULL);
        if (!p)
                return -ENOMEM;
        p->on_event = on_event;
        p->on_end = on_end;
        p->ctx = ctx;
        p->request.verb = HFD_WATCH;
        p->request.in_process = true;
        int r = pending_list(p, ret_id);
        if (r != 0) {
                pending_free(p);
                return r;
        }
        if (!p->request.resource) {
                hfd_response_no_such_resource(&response);
        } else if (parse_watch_options(p, spec, &response) &&
                   hfd_registry_watch(client->registry, &p->request, &sink, p, &response,
                                      &watcher)) {
                start_watcher(p, watcher);
                return 0;
        }
        /* There is no watcher: both references end here. */
        finish_watch(p, response.status.error, &response.status);
        pending_unref(p);
        hfd_response_done(&response);
        return 0;
}

static void loopback_watch_cancel(struct hf_client *self, uint64_t id) {
        struct loopback *client = (struct loopback *)self;
        struct hfd_watcher *watcher = NULL;

        pthread_mutex_lock(&client->mu);
        struct pending *p = find_locked(client, id);
        if (p)
                watcher = p->watcher;
        pthread_mutex_unlock(&client->mu);
        if (watcher)
                hfd_watcher_cancel(watcher); /* p's reference keeps it alive */
        if (p)
                pending_unref(p);
}

/* ---- the client ---- */

/* Cancels the first pending in the list. Releases mu meanwhile. */
static void cancel_first_locked(struct loopback *client) {
        const struct hf_clock *clock = hf_host_clock(client->registry->host);
        struct pending *p = client->pending;
        struct hfd_watcher *watcher = p->watcher;

        hf__mutex_assert_held(&client->mu);
        atomic_fetch_add(&p->refs, 1);
        pthread_mutex_unlock(&client->mu);
        if (watcher)
                hfd_watcher_cancel(watcher);
        else if (p->done)
                cancel_request(p);
        pending_unref(p);
        pthread_mutex_lock(&client->mu);
        /*
         * If the watch is still listed, either another thread is delivering an event, and the watch
         * ends when that callback returns; or it has not begun, and start_watcher cancels it.
         */
        if (client->pending == p)
                (void)clock->wait(clock->ctx, &client->idle, &client->mu,
                                  hfd_registry_now(client->registry) + HF_NSEC_PER_MSEC);
}

static void loopback_free(struct hf_client *self) {
        struct loopback *client = (struct loopback *)self;

        pthread_mutex_lock(&client->mu);
        client->closing = true;
        while (client->n_pending > 0) {
                if (client->pending)
                        cancel_first_locked(client);
                else
                        pthread_cond_wait(&client->idle, &client->mu);
        }
        pthread_mutex_unlock(&client->mu);
        assert(!client->pending);
        pthread_cond_destroy(&client->idle);
        pthread_mutex_destroy(&client->mu);
        free(client);
}

static const struct hf_client_ops ops = {.request = loopback_request,
                                         .cancel = loopback_cancel,
                                         .watch = loopback_watch,
                                         .watch_cancel = loopback_watch_cancel,
                                         .free = loopback_free};

int hfd_loopback_new(struct hfd_registry *registry, struct hf_client **ret_client) {
        struct loopback *client = calloc(1, sizeof *client);
        int r;

        if (!client)
                return -ENOMEM;
        client->base = (struct hf_client){&ops, registry->host};
        client->registry = registry;
        r = hf__mutex_init(&client->mu);
        if (r != 0) {
                free(client);
                return r;
        }
        r = hf_cond_init(&client->idle);
        if (r != 0) {
                pthread_mutex_destroy(&client->mu);
                free(client);
                return r;
        }
        *ret_client = &client->base;
        return 0;
}
