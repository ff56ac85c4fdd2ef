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
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/client_port.h>

#include "base/thread.h"
#include "server/cacher/cacher.h"
#include "server/cacher/watcher.h"

struct loopback;

struct pending {
        struct hfd_call call; /* first: done is given this */
        struct loopback *client;
        void *body;            /* owned */
        struct hf_fence fence; /* the call's, if it has one */
        atomic_int refs;

        /* guarded by client->mu */
        struct pending *next, **link;
        uint64_t id;
        bool answered;
        struct hfd_watch *watch; /* a reference; NULL = a call, or a watch that did not start */

        hf_reply_fn done;
        hf_event_fn on_event;
        hf_watch_end_fn on_end;
        void *ctx;
};

struct loopback {
        struct hf_client base;
        struct hfd_api *api; /* borrowed */
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
        hfd_options_done(&p->call.options);
        hfd_watch_unref(p->watch);
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
        p->call.resource = hfd_resource_find(resource->group ? resource->group : "",
                                             resource->version, resource->plural);
        (void)snprintf(p->call.ns, sizeof p->call.ns, "%s", ns ? ns : "");
        (void)snprintf(p->call.name, sizeof p->call.name, "%s", name ? name : "");
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
        hfd_options_done(&p->call.options);
        free(p->body);
        free(p);
}

/* ---- calls ---- */

static void reply_with(struct pending *p, const struct hfd_answer *answer) {
        struct hf_reply reply = {.error = answer->status.error,
                                 .fence_echoed = answer->fence_compared,
                                 .status = answer->status};

        if (!take(p))
                return;
        if (answer->body) {
                reply.body = answer->body->data;
                reply.n_body = answer->body->n;
        }
        p->done(p->ctx, &reply);
        pending_unref(p);
}

static void on_answer(struct hfd_call *call, const struct hfd_answer *answer) {
        struct pending *p = (struct pending *)call;

        reply_with(p, answer);
        pending_unref(p);
}

static void cancel_pending(struct pending *p) {
        struct hf_reply reply = {.error = HF_E_CANCELED};

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
static bool subresource_fits(struct pending *p, const struct hf_call *call,
                             struct hfd_answer *answer) {
        if (!hfd_resource_subresource(p->call.resource, call->subresource ? call->subresource : "",
                                      &p->call.subresource)) {
                hfd_answer_no_such_resource(answer);
                return false;
        }
        if (p->call.subresource && p->call.verb != HFD_GET && p->call.verb != HFD_UPDATE) {
                hfd_answer_not_allowed(answer);
                return false;
        }
        return true;
}

static int loopback_call(struct hf_client *self, const struct hf_call *call, hf_reply_fn done,
                         void *ctx, uint64_t *ret_id) {
        static const enum hfd_verb verbs[] = {HFD_GET,    HFD_LIST,       HFD_CREATE,
                                              HFD_UPDATE, HFD_DELETE_ONE, HFD_DELETE_MANY};
        struct loopback *client = (struct loopback *)self;
        struct hfd_answer answer = {0};

        if (!names_fit(&call->resource, call->ns, call->name) ||
            (unsigned)call->verb >= sizeof verbs / sizeof verbs[0])
                return -EINVAL;
        bool one = call->verb == HF_VERB_GET || call->verb == HF_VERB_UPDATE ||
                   call->verb == HF_VERB_DELETE;
        if (one && (!call->name || !*call->name))
                return -EINVAL;
        struct pending *p = pending_new(client, &call->resource, call->ns, one ? call->name : NULL);
        if (!p)
                return -ENOMEM;
        p->done = done;
        p->ctx = ctx;
        p->call.verb = verbs[call->verb];
        p->call.done = on_answer;
        p->call.deadline =
                call->deadline ? call->deadline
                               : hfd_api_now(client->api) + (call->verb == HF_VERB_DELETE_COLLECTION
                                                                     ? HFD_MANY_DEADLINE
                                                                     : HFD_DEFAULT_DEADLINE);
        if (call->fence) {
                p->fence = *call->fence;
                p->call.fence = &p->fence;
        }
        p->body = call->n_body ? malloc(call->n_body) : NULL;
        if (call->n_body && !p->body) {
                discard(p);
                return -ENOMEM;
        }
        if (call->n_body)
                memcpy(p->body, call->body, call->n_body);
        p->call.body = p->body;
        p->call.n_body = call->n_body;
        int e = enlist(p, ret_id);
        if (e) {
                discard(p);
                return e;
        }
        if (!p->call.resource) {
                hfd_answer_no_such_resource(&answer);
        } else if (!subresource_fits(p, call, &answer)) {
                /* answered below */
        } else if (p->call.resource->namespaced && !*p->call.ns && one) {
                hfd_answer_bad_request(&answer, "an empty namespace may not be set when a resource "
                                                "name is provided");
        } else if (hfd_options_parse(&p->call, call->query, &answer)) {
                hfd_api_call(client->api, &p->call);
                return 0;
        }
        on_answer(&p->call, &answer);
        hfd_answer_done(&answer);
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
                        hfd_resource_api_version(p->call.resource, version);
                        event.n_object =
                                (size_t)snprintf(bookmark, sizeof bookmark,
                                                 "{\"kind\":\"%s\",\"apiVersion\":\"%s\","
                                                 "\"metadata\":{\"resourceVersion\":\"%s\"}}",
                                                 p->call.resource->kind, version, revision);
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

static void on_watch_end(void *ctx, int error, const struct hfd_answer *answer) {
        struct pending *p = ctx;
        struct hf_status status = answer->status;

        if (error == HF_E_CANCELED)
                (void)hf_fail(&status, HF_E_CANCELED, "the watch was cancelled");
        end_watch(p, error, &status);
        pending_unref(p);
}

static const struct hfd_watch_sink sink = {on_watch_events, on_watch_end};

static bool watch_options(struct pending *p, const struct hf_watch_spec *spec,
                          struct hfd_answer *answer) {
        struct hf__strbuf query = {0};

        hf__strbuf_printf(&query, "watch=true&allowWatchBookmarks=%s",
                          spec->bookmarks ? "true" : "false");
        if (spec->resource_version && *spec->resource_version)
                hf__strbuf_printf(&query, "&resourceVersion=%s", spec->resource_version);
        if (spec->name && *spec->name)
                hf__strbuf_printf(&query, "&fieldSelector=metadata.name%%3D%s", spec->name);
        if (spec->query && *spec->query)
                hf__strbuf_printf(&query, "&%s", spec->query);
        bool good = !query.error && hfd_options_parse(&p->call, query.data, answer);
        if (query.error)
                hfd_answer_no_memory(answer);
        hf__strbuf_done(&query);
        return good;
}

static int loopback_watch(struct hf_client *self, const struct hf_watch_spec *spec,
                          hf_event_fn on_event, hf_watch_end_fn on_end, void *ctx,
                          uint64_t *ret_id) {
        struct loopback *client = (struct loopback *)self;
        struct hfd_answer answer = {0};
        struct hfd_watch *watch;

        if (!names_fit(&spec->resource, spec->ns, spec->name))
                return -EINVAL;
        struct pending *p = pending_new(client, &spec->resource, spec->ns, NULL);
        if (!p)
                return -ENOMEM;
        p->on_event = on_event;
        p->on_end = on_end;
        p->ctx = ctx;
        p->call.verb = HFD_LIST;
        p->call.in_process = true;
        int e = enlist(p, ret_id);
        if (e) {
                discard(p);
                return e;
        }
        if (!p->call.resource) {
                hfd_answer_status(&answer, HF_E_NOT_FOUND, 404, "NotFound",
                                  "the server could not find the requested resource", NULL);
        } else if (watch_options(p, spec, &answer) &&
                   hfd_watch_new(client->api, &p->call, &sink, p, &answer, &watch)) {
                pthread_mutex_lock(&client->mu);
                p->watch = watch;
                bool cancel = client->closing;
                pthread_mutex_unlock(&client->mu);
                /* The core's reference to p ends with on_watch_end, which may come within either of
                 * these. */
                atomic_fetch_add(&p->refs, 1);
                if (cancel)
                        hfd_watch_cancel(watch);
                else
                        hfd_watch_go(watch);
                pending_unref(p);
                return 0;
        }
        end_watch(p, answer.status.error, &answer.status);
        pending_unref(p);
        hfd_answer_done(&answer);
        return 0;
}

static void loopback_watch_cancel(struct hf_client *self, uint64_t id) {
        struct loopback *client = (struct loopback *)self;
        struct hfd_watch *watch = NULL;

        pthread_mutex_lock(&client->mu);
        struct pending *p = find_locked(client, id);
        if (p)
                watch = p->watch;
        pthread_mutex_unlock(&client->mu);
        if (watch)
                hfd_watch_cancel(watch); /* alive by p's reference */
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
                struct hfd_watch *watch = p->watch;
                atomic_fetch_add(&p->refs, 1);
                pthread_mutex_unlock(&client->mu);
                if (watch)
                        hfd_watch_cancel(watch);
                else if (p->done)
                        cancel_pending(p);
                pending_unref(p);
                pthread_mutex_lock(&client->mu);
                /* A watch that another thread delivers to leaves the list when that delivery
                 * returns. */
                if (client->pending == p)
                        (void)hf_host_clock(client->api->host)
                                ->wait(hf_host_clock(client->api->host)->ctx, &client->idle,
                                       &client->mu, hfd_api_now(client->api) + HF_NSEC_PER_MSEC);
        }
        pthread_mutex_unlock(&client->mu);
        pthread_cond_destroy(&client->idle);
        pthread_mutex_destroy(&client->mu);
        free(client);
}

static const struct hf_client_ops ops = {loopback_call, loopback_cancel, loopback_watch,
                                         loopback_watch_cancel, loopback_free};

int hfd_api_loopback(struct hfd_api *api, struct hf_client **ret_client) {
        struct loopback *client = calloc(1, sizeof *client);

        if (!client)
                return -ENOMEM;
        client->base = (struct hf_client){&ops, api->host};
        client->api = api;
        int e = hf__mutex_init(&client->mu);
        if (!e && (e = hf_cond_init(&client->idle)))
                pthread_mutex_destroy(&client->mu);
        if (e) {
                free(client);
                return e;
        }
        *ret_client = &client->base;
        return 0;
}
