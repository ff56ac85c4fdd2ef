/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client inside the process: the same core, without HTTP. It asks as system:masters, so nothing
 * is authorized here.
 *
 * Each call and watch is a `pending`, listed under the client's mutex until its last callback.
 * Cancelling a call answers it at once and lets the core finish into the void. free cancels all and
 * waits until the core has let go of every one. References of a pending: one for the core's later
 * answer, one while listed.
 */
#include "server/registry/loopback.h"

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
        struct loopback *client;
        void *body;            /* owned */
        struct hf_fence fence; /* the call's, if it has one */
        atomic_int refs;

        /* guarded by client->mu */
        struct pending *next, **link;
        uint64_t id;
        bool answered;
        struct hfd_watcher *watch; /* a reference; NULL = a call, or a watch that did not start */

        hf_response_fn done;
        hf_event_fn on_event;
        hf_watch_end_fn on_end;
        void *ctx;
};

struct loopback {
        struct hf_client base;
        struct hfd_registry *registry; /* borrowed */
        pthread_mutex_t mu;
        pthread_cond_t idle;
        /* guarded by mu */
        struct pending *pending;
        size_t n_pending; /* not yet freed */
        uint64_t last_id;
        bool closing;
};

static void pending_unref(struct pending *p) {
        struct loopback *client = p->client;

        if (atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
                return;
        hfd_options_done(&p->request.options);
        hfd_watcher_unref(p->watch);
        free(p->body);
        free(p);
        pthread_mutex_lock(&client->mu);
        if (!--client->n_pending)
                pthread_cond_broadcast(&client->idle);
        pthread_mutex_unlock(&client->mu);
}

/* Whoever gets true calls the last callback, and drops the list's reference after it. */
static bool take(struct pending *p) {
        struct loopback *client = p->client;

        pthread_mutex_lock(&client->mu);
        bool mine = !p->answered;
        if (mine) {
                p->answered = true;
                *p->link = p->next;
                if (p->next)
                        p->next->link = p->link;
        }
        pthread_mutex_unlock(&client->mu);
        return mine;
}

static struct pending *pending_new(struct loopback *client, const struct hf_resource *resource,
                                   const char *ns, const char *name) {
        struct pending *p = calloc(1, sizeof *p);

        if (!p)
                return NULL;
        p->client = client;
        atomic_init(&p->refs, 2);
        p->request.resource = hfd_resource_find(resource->group ? resource->group : "",
                                                resource->version, resource->plural);
        (void)snprintf(p->request.ns, sizeof p->request.ns, "%s", ns ? ns : "");
        (void)snprintf(p->request.name, sizeof p->request.name, "%s", name ? name : "");
        return p;
}

/* Lists it. HF_E_CLOSED when the client is going. */
static int enlist(struct pending *p, uint64_t *ret_id) {
        struct loopback *client = p->client;

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

static void discard(struct pending *p) {
        hfd_options_done(&p->request.options);
        free(p->body);
        free(p);
}

/* ---- calls ---- */

static void reply_with(struct pending *p, const struct hfd_response *response) {
        struct hf_response reply = {.error = response->status.error,
                                    .fence_echoed = response->fence_compared,
                                    .status = response->status};

        if (!take(p))
                return;
        if (response->body) {
                reply.body = response->body->data;
                reply.n_body = response->body->n;
        }
        p->done(p->ctx, &reply);
        pending_unref(p);
}

static void on_answer(struct hfd_request *request, const struct hfd_response *response) {
        struct pending *p = (struct pending *)request;

        reply_with(p, response);
        pending_unref(p);
}

static void cancel_pending(struct pending *p) {
        struct hf_response reply = {.error = HF_E_CANCELED};

        (void)hf_fail(&reply.status, HF_E_CANCELED, "the call was cancelled");
        if (!take(p))
                return;
        p->done(p->ctx, &reply);
        pending_unref(p);
}

static bool names_fit(const struct hf_resource *resource, const char *ns, const char *name) {
        return resource->version && resource->plural && (!ns || strlen(ns) <= HF_NAME_MAX) &&
               (!name || strlen(name) <= HF_NAME_MAX);
}

/* False: answer is filled. */
static bool subresource_fits(struct pending *p, const struct hf_request *request,
                             struct hfd_response *response) {
        if (!hfd_resource_subresource(p->request.resource,
                                      request->subresource ? request->subresource : "",
                                      &p->request.subresource)) {
                hfd_response_no_such_resource(response);
                return false;
        }
        if (p->request.subresource && p->request.verb != HFD_GET && p->request.verb != HFD_UPDATE) {
                hfd_response_not_allowed(response);
                return false;
        }
        return true;
}

static int loopback_call(struct hf_client *self, const struct hf_request *request,
                         hf_response_fn done, void *ctx, uint64_t *ret_id) {
        static const enum hfd_verb verbs[] = {HFD_GET,    HFD_LIST,       HFD_CREATE,
                                              HFD_UPDATE, HFD_DELETE_ONE, HFD_DELETE_MANY};
        struct loopback *client = (struct loopback *)self;
        struct hfd_response response = {0};

        if (!names_fit(&request->resource, request->ns, request->name) ||
            (unsigned)request->verb >= sizeof verbs / sizeof verbs[0])
                return -EINVAL;
        bool one = request->verb == HF_VERB_GET || request->verb == HF_VERB_UPDATE ||
                   request->verb == HF_VERB_DELETE;
        if (one && (!request->name || !*request->name))
                return -EINVAL;
        struct pending *p =
                pending_new(client, &request->resource, request->ns, one ? request->name : NULL);
        if (!p)
                return -ENOMEM;
        p->done = done;
        p->ctx = ctx;
        p->request.verb = verbs[request->verb];
        p->request.done = on_answer;
        p->request.deadline = request->deadline
                                      ? request->deadline
                                      : hfd_registry_now(client->registry) +
                                                (request->verb == HF_VERB_DELETE_COLLECTION
                                                         ? HFD_REGISTRY_MANY_DEADLINE
                                                         : HFD_REGISTRY_DEADLINE);
        if (request->fence) {
                p->fence = *request->fence;
                p->request.fence = &p->fence;
        }
        p->body = request->n_body ? malloc(request->n_body) : NULL;
        if (request->n_body && !p->body) {
                discard(p);
                return -ENOMEM;
        }
        if (request->n_body)
                memcpy(p->body, request->body, request->n_body);
        p->request.body = p->body;
        p->request.n_body = request->n_body;
        int r = enlist(p, ret_id);
        if (r != 0) {
                discard(p);
                return r;
        }
        if (!p->request.resource) {
                hfd_response_no_such_resource(&response);
        } else if (!subresource_fits(p, request, &response)) {
                /* answered below */
        } else if (p->request.resource->namespaced && !*p->request.ns && one) {
                hfd_response_bad_request(&response,
                                         "an empty namespace may not be set when a resource "
                                         "name is provided");
        } else if (hfd_options_parse(&p->request, request->query, &response)) {
                hfd_registry_serve(client->registry, &p->request);
                return 0;
        }
        on_answer(&p->request, &response);
        hfd_response_done(&response);
        return 0;
}

static struct pending *find_locked(struct loopback *client, uint64_t id) {
        struct pending *p = client->pending;

        while (p && p->id != id)
                p = p->next;
        if (p)
                atomic_fetch_add(&p->refs, 1);
        return p;
}

static void loopback_cancel(struct hf_client *self, uint64_t id) {
        struct loopback *client = (struct loopback *)self;

        pthread_mutex_lock(&client->mu);
        struct pending *p = find_locked(client, id);
        pthread_mutex_unlock(&client->mu);
        if (!p)
                return;
        if (p->done)
                cancel_pending(p);
        pending_unref(p);
}

/* ---- watches ---- */

static bool on_watch_events(void *ctx, struct hfd_watch_item *items, size_t n) {
        struct pending *p = ctx;

        for (size_t i = 0; i < n; i++) {
                char revision[HF__U64_TEXT_MAX], bookmark[320], version[128];
                struct hf_event event = {.type = items[i].type, .resource_version = revision};
                (void)hf__u64_text(items[i].revision, revision);
                if (items[i].object) {
                        event.object = items[i].object->bytes->data;
                        event.n_object = items[i].object->bytes->n;
                } else {
                        hfd_resource_api_version(p->request.resource, version);
                        event.n_object =
                                (size_t)snprintf(bookmark, sizeof bookmark,
                                                 "{\"kind\":\"%s\",\"apiVersion\":\"%s\","
                                                 "\"metadata\":{\"resourceVersion\":\"%s\"}}",
                                                 p->request.resource->kind, version, revision);
                        event.object = bookmark;
                }
                p->on_event(p->ctx, &event);
        }
        return true;
}

static void end_watch(struct pending *p, int error, const struct hf_status *status) {
        if (!take(p))
                return;
        p->on_end(p->ctx, error, error ? status : NULL);
        pending_unref(p);
}

static void on_watch_end(void *ctx, int error, const struct hfd_response *response) {
        struct pending *p = ctx;
        struct hf_status status = response->status;

        if (error == HF_E_CANCELED)
                (void)hf_fail(&status, HF_E_CANCELED, "the watch was cancelled");
        end_watch(p, error, &status);
        pending_unref(p);
}

static const struct hfd_watcher_sink sink = {on_watch_events, on_watch_end};

static bool watch_options(struct pending *p, const struct hf_watch_spec *spec,
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

static int loopback_watch(struct hf_client *self, const struct hf_watch_spec *spec,
                          hf_event_fn on_event, hf_watch_end_fn on_end, void *ctx,
                          uint64_t *ret_id) {
        struct loopback *client = (struct loopback *)self;
        struct hfd_response response = {0};
        struct hfd_watcher *watch;

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
        int r = enlist(p, ret_id);
        if (r != 0) {
                discard(p);
                return r;
        }
        if (!p->request.resource) {
                hfd_response_status(&response, HF_E_NOT_FOUND, 404, "NotFound",
                                    "the server could not find the requested resource", NULL);
        } else if (watch_options(p, spec, &response) &&
                   hfd_registry_watch(client->registry, &p->request, &sink, p, &response, &watch)) {
                pthread_mutex_lock(&client->mu);
                p->watch = watch;
                bool cancel = client->closing;
                pthread_mutex_unlock(&client->mu);
                /* The core's reference to p ends with on_watch_end, which may come within either of
                 * these. */
                atomic_fetch_add(&p->refs, 1);
                if (cancel)
                        hfd_watcher_cancel(watch);
                else
                        hfd_watcher_go(watch);
                pending_unref(p);
                return 0;
        }
        end_watch(p, response.status.error, &response.status);
        pending_unref(p);
        hfd_response_done(&response);
        return 0;
}

static void loopback_watch_cancel(struct hf_client *self, uint64_t id) {
        struct loopback *client = (struct loopback *)self;
        struct hfd_watcher *watch = NULL;

        pthread_mutex_lock(&client->mu);
        struct pending *p = find_locked(client, id);
        if (p)
                watch = p->watch;
        pthread_mutex_unlock(&client->mu);
        if (watch)
                hfd_watcher_cancel(watch); /* alive by p's reference */
        if (p)
                pending_unref(p);
}

/* ---- life ---- */

static void loopback_free(struct hf_client *self) {
        struct loopback *client = (struct loopback *)self;

        pthread_mutex_lock(&client->mu);
        client->closing = true;
        while (client->n_pending) {
                struct pending *p = client->pending;
                if (!p) {
                        pthread_cond_wait(&client->idle, &client->mu);
                        continue;
                }
                struct hfd_watcher *watch = p->watch;
                atomic_fetch_add(&p->refs, 1);
                pthread_mutex_unlock(&client->mu);
                if (watch)
                        hfd_watcher_cancel(watch);
                else if (p->done)
                        cancel_pending(p);
                pending_unref(p);
                pthread_mutex_lock(&client->mu);
                /* A watch that another thread delivers to leaves the list when that delivery
                 * returns. */
                if (client->pending == p)
                        (void)hf_host_clock(client->registry->host)
                                ->wait(hf_host_clock(client->registry->host)->ctx, &client->idle,
                                       &client->mu,
                                       hfd_registry_now(client->registry) + HF_NSEC_PER_MSEC);
        }
        pthread_mutex_unlock(&client->mu);
        pthread_cond_destroy(&client->idle);
        pthread_mutex_destroy(&client->mu);
        free(client);
}

static const struct hf_client_ops ops = {loopback_call, loopback_cancel, loopback_watch,
                                         loopback_watch_cancel, loopback_free};

int hfd_loopback_new(struct hfd_registry *registry, struct hf_client **ret_client) {
        struct loopback *client = calloc(1, sizeof *client);

        if (!client)
                return -ENOMEM;
        client->base = (struct hf_client){&ops, registry->host};
        client->registry = registry;
        int r = hf__mutex_init(&client->mu);
        if (r == 0 && (r = hf_cond_init(&client->idle)))
                pthread_mutex_destroy(&client->mu);
        if (r != 0) {
                free(client);
                return r;
        }
        *ret_client = &client->base;
        return 0;
}
