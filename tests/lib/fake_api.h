/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An API server in memory, for unit tests of what uses an hf_client: objects by key, revisions,
 * watches, term records and fences as design 6 has them, and faults per client. To be included by
 * one file of a test.
 *
 * One thread answers everything, in order. A client has a mode: it answers; it hangs (a call ends
 * by its deadline or its cancellation, watches fall silent); it refuses with an error; or it
 * applies a write and loses the reply. `commits` is the outside witness: every change, in order,
 * with the fence it came with.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/client_port.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/thread.h"

enum fake_mode { FAKE_OK, FAKE_HANG, FAKE_REFUSE, FAKE_LOSE_REPLY };

struct fake_object {
        struct fake_object *next;
        char key[600]; /* "leases/ns/name" */
        char *text;    /* owned */
        uint64_t rv;
        char holder[256], acquired[64]; /* of a Lease */
        uint64_t term;                  /* the term record's revision */
};

struct fake_commit {
        uint64_t rv;
        char key[128];
        char holder[128]; /* a Lease's holder after it; "-" = the object was deleted */
        uint64_t fence_term;
        char fence_identity[128];
};

struct fake_job {
        struct fake_job *next;
        struct fake_client *client;
        uint64_t id;
        struct hf_request request;
        char *ns, *name, *body, *plural;
        struct hf_fence fence;
        hf_response_fn done;
        void *ctx;
        bool canceled, applied;
        struct hf_status lost_status;
};

struct fake_event {
        struct fake_event *next;
        enum hf_event_type type;
        char *text;
        char rv[24];
};

struct fake_watch {
        struct fake_watch *next;
        struct fake_client *client;
        uint64_t id;
        char prefix[600];
        hf_event_fn on_event;
        hf_watch_end_fn on_end;
        void *ctx;
        struct fake_event *events;
        int end; /* -1 = open */
};

#ifndef FAKE_MAX_COMMITS
#define FAKE_MAX_COMMITS 4096
#endif

struct fake_api {
        struct hf_host host;
        pthread_mutex_t mu;
        pthread_cond_t changed;
        pthread_t thread;
        bool stopping;
        uint64_t rv, next_id;
        struct fake_object *objects;
        struct fake_job *jobs;
        struct fake_watch *watches;
        struct fake_commit commits[FAKE_MAX_COMMITS];
        size_t n_commits;
        size_t n_calls;
};

struct fake_client {
        struct hf_client base; /* first */
        struct fake_api *api;
        /* guarded by api->mu */
        enum fake_mode mode;
        bool writes_only;  /* the mode concerns writes only */
        int refuse_error;  /* FAKE_REFUSE */
        unsigned n_refuse; /* how many times; then FAKE_OK. 0 = for ever */
        bool no_echo;      /* fences are ignored, as a foreign server does */
        unsigned n_busy;   /* callbacks that run */
};

static void fake_key(char *key, size_t max, const char *plural, const char *ns, const char *name) {
        (void)snprintf(key, max, "%s/%s/%s", plural, ns ? ns : "", name ? name : "");
}

static struct fake_object *fake_find(struct fake_api *api, const char *key) {
        for (struct fake_object *object = api->objects; object; object = object->next)
                if (strcmp(object->key, key) == 0)
                        return object;
        return NULL;
}

static void fake_tell_watch(struct fake_watch *watch, enum hf_event_type type, const char *text,
                            uint64_t rv) {
        struct fake_event *event = calloc(1, sizeof *event), **at = &watch->events;
        event->type = type;
        event->text = strdup(text);
        (void)snprintf(event->rv, sizeof event->rv, "%llu", (unsigned long long)rv);
        while (*at)
                at = &(*at)->next;
        *at = event;
}

static void fake_tell(struct fake_api *api, const struct fake_object *object,
                      enum hf_event_type type) {
        for (struct fake_watch *watch = api->watches; watch; watch = watch->next)
                if (strncmp(object->key, watch->prefix, strlen(watch->prefix)) == 0 &&
                    watch->end < 0)
                        fake_tell_watch(watch, type, object->text, object->rv);
}

static void fake_record(struct fake_api *api, const struct fake_object *object, bool deleted,
                        const struct hf_fence *fence) {
        assert(api->n_commits < FAKE_MAX_COMMITS);
        struct fake_commit *commit = &api->commits[api->n_commits++];
        *commit = (struct fake_commit){.rv = object->rv};
        (void)snprintf(commit->key, sizeof commit->key, "%.127s", object->key);
        (void)snprintf(commit->holder, sizeof commit->holder, "%.127s",
                       deleted ? "-" : object->holder);
        if (fence) {
                commit->fence_term = fence->term;
                (void)snprintf(commit->fence_identity, sizeof commit->fence_identity, "%.127s",
                               fence->identity);
        }
        pthread_cond_broadcast(&api->changed);
}

/* Stores text as the object's new state and tells everybody. */
static void fake_store(struct fake_api *api, const char *key, const char *text,
                       const struct hf_fence *fence) {
        struct fake_object *object = fake_find(api, key);
        bool added = !object;
        struct hf__json *json = NULL;
        struct hf__strbuf out = {0};
        char rv[24];
        if (!object) {
                object = calloc(1, sizeof *object);
                (void)snprintf(object->key, sizeof object->key, "%s", key);
                object->next = api->objects;
                api->objects = object;
        }
        int r = hf__json_parse(text, strlen(text), &json, NULL);
        assert(r == 0);
        object->rv = ++api->rv;
        (void)snprintf(rv, sizeof rv, "%llu", (unsigned long long)object->rv);
        r = hf__json_set_string(json, "metadata.resourceVersion", rv);
        assert(r == 0);
        const char *holder = hf__json_string(json, "spec.holderIdentity"),
                   *acquired = hf__json_string(json, "spec.acquireTime");
        if (added || strcmp(object->holder, holder ? holder : "") != 0 ||
            strcmp(object->acquired, acquired ? acquired : "") != 0)
                object->term = object->rv;
        (void)snprintf(object->holder, sizeof object->holder, "%s", holder ? holder : "");
        (void)snprintf(object->acquired, sizeof object->acquired, "%s", acquired ? acquired : "");
        hf__json_print(json, &out);
        hf__json_free(json);
        free(object->text);
        object->text = out.data;
        fake_tell(api, object, added ? HF_EVENT_ADDED : HF_EVENT_MODIFIED);
        fake_record(api, object, false, fence);
}

static void fake_remove(struct fake_api *api, const char *key, const struct hf_fence *fence) {
        for (struct fake_object **at = &api->objects; *at; at = &(*at)->next) {
                struct fake_object *object = *at;
                if (strcmp(object->key, key) != 0)
                        continue;
                object->rv = ++api->rv;
                *at = object->next;
                fake_tell(api, object, HF_EVENT_DELETED);
                fake_record(api, object, true, fence);
                free(object->text);
                free(object);
                return;
        }
}

/* Carries a call out. 0 or an error; *ret_body is the object's text, owned by the store. */
static bool fake_term_holds(struct fake_api *api, const char *ns, const char *name, uint64_t term,
                            const char *identity) {
        char lease[600];
        fake_key(lease, sizeof lease, "leases", ns, name);
        struct fake_object *object = fake_find(api, lease);
        return object && object->term == term && strcmp(object->holder, identity) == 0;
}

static int fake_apply(struct fake_api *api, const struct fake_job *job, const char **ret_body) {
        char key[600];
        const struct hf_fence *fence =
                job->request.fence && !job->client->no_echo ? job->request.fence : NULL;
        fake_key(key, sizeof key, job->plural, job->ns, job->name);
        *ret_body = NULL;
        if (job->request.verb == HF_VERB_CREATE) {
                struct hf__json *json = NULL;
                if (hf__json_parse(job->body, strlen(job->body), &json, NULL) != 0)
                        return HF_E_INVALID;
                fake_key(key, sizeof key, job->plural, job->ns,
                         hf__json_string(json, "metadata.name"));
                hf__json_free(json);
        }
        if (fence && job->request.verb != HF_VERB_GET) {
                if (!fake_term_holds(api, fence->ns, fence->name, fence->term, fence->identity) ||
                    (fence->also_term && !fake_term_holds(api, fence->also_ns, fence->also_name,
                                                          fence->also_term, fence->identity)))
                        return HF_E_STALE_TERM;
        }
        struct fake_object *object = fake_find(api, key);
        if (job->request.verb == HF_VERB_CREATE) {
                if (object)
                        return HF_E_EXISTS;
                fake_store(api, key, job->body, fence);
        } else if (!object) {
                return HF_E_NOT_FOUND;
        } else if (job->request.verb == HF_VERB_UPDATE) {
                struct hf__json *json = NULL;
                if (hf__json_parse(job->body, strlen(job->body), &json, NULL) != 0)
                        return HF_E_INVALID;
                const char *rv = hf__json_string(json, "metadata.resourceVersion");
                bool same = !rv || strtoull(rv, NULL, 10) == object->rv;
                hf__json_free(json);
                if (!same)
                        return HF_E_CONFLICT;
                fake_store(api, key, job->body, fence);
        } else if (job->request.verb == HF_VERB_DELETE) {
                fake_remove(api, key, fence);
                return 0;
        }
        *ret_body = fake_find(api, key)->text;
        return 0;
}

static hf_nsec fake_deadline(const struct fake_job *job) { return job->request.deadline; }

/* Is the job to be answered now, and how? Held with the lock. */
static bool fake_settle(struct fake_api *api, struct fake_job *job, struct hf_response *reply,
                        char **ret_body) {
        struct fake_client *client = job->client;
        bool write = job->request.verb != HF_VERB_GET && job->request.verb != HF_VERB_LIST;
        enum fake_mode mode = client->writes_only && !write ? FAKE_OK : client->mode;
        const char *body = NULL;
        *reply = (struct hf_response){0};
        *ret_body = NULL;
        if (job->canceled || api->stopping) {
                reply->error = HF_E_CANCELED;
        } else if (hf_now(hf_clock_system()) >= fake_deadline(job)) {
                reply->error = HF_E_TIMEOUT;
        } else if (job->applied || mode == FAKE_HANG) {
                return false;
        } else if (mode == FAKE_REFUSE) {
                reply->error = client->refuse_error;
                if (client->n_refuse && --client->n_refuse == 0)
                        client->mode = FAKE_OK;
        } else {
                reply->error = fake_apply(api, job, &body);
                reply->fence_echoed = job->request.fence && !client->no_echo;
                if (mode == FAKE_LOSE_REPLY && write) {
                        job->applied = true;
                        return false;
                }
        }
        if (body)
                *ret_body = strdup(body);
        reply->body = *ret_body;
        reply->n_body = *ret_body ? strlen(*ret_body) : 0;
        if (reply->error)
                (void)hf_fail(&reply->status, reply->error, "the fake says: %s",
                              hf_strerror(reply->error));
        return true;
}

static void fake_job_free(struct fake_job *job) {
        free(job->ns);
        free(job->name);
        free(job->body);
        free(job->plural);
        free(job);
}

/* Answers one call, if one is due. */
static bool fake_turn_calls(struct fake_api *api) {
        for (struct fake_job **at = &api->jobs; *at; at = &(*at)->next) {
                struct fake_job *job = *at;
                struct hf_response reply;
                char *body;
                if (!fake_settle(api, job, &reply, &body))
                        continue;
                *at = job->next;
                job->client->n_busy++;
                pthread_mutex_unlock(&api->mu);
                job->done(job->ctx, &reply);
                free(body);
                pthread_mutex_lock(&api->mu);
                job->client->n_busy--;
                pthread_cond_broadcast(&api->changed);
                fake_job_free(job);
                return true;
        }
        return false;
}

/* Delivers one event, or one end, if there is one. */
static bool fake_turn_watches(struct fake_api *api) {
        for (struct fake_watch **at = &api->watches; *at; at = &(*at)->next) {
                struct fake_watch *watch = *at;
                struct fake_event *event = watch->events;
                bool hung = watch->client->mode == FAKE_HANG && !watch->client->writes_only;
                bool ended = watch->end >= 0 || api->stopping;
                if (ended)
                        *at = watch->next;
                else if (!event || hung)
                        continue;
                else
                        watch->events = event->next;
                watch->client->n_busy++;
                pthread_mutex_unlock(&api->mu);
                if (ended) {
                        watch->on_end(watch->ctx, watch->end >= 0 ? watch->end : HF_E_CANCELED,
                                      NULL);
                        while ((event = watch->events)) {
                                watch->events = event->next;
                                free(event->text);
                                free(event);
                        }
                } else {
                        struct hf_event told = {event->type, event->text, strlen(event->text),
                                                event->rv};
                        watch->on_event(watch->ctx, &told);
                        free(event->text);
                        free(event);
                }
                pthread_mutex_lock(&api->mu);
                watch->client->n_busy--;
                pthread_cond_broadcast(&api->changed);
                if (ended)
                        free(watch);
                return true;
        }
        return false;
}

static void *fake_main(void *ctx) {
        struct fake_api *api = ctx;
        const struct hf_clock *clock = hf_clock_system();
        pthread_mutex_lock(&api->mu);
        while (!api->stopping || api->jobs || api->watches) {
                if (fake_turn_calls(api) || fake_turn_watches(api))
                        continue;
                hf_nsec wake = HF_NSEC_NEVER;
                for (struct fake_job *job = api->jobs; job; job = job->next)
                        if (fake_deadline(job) < wake)
                                wake = fake_deadline(job);
                (void)clock->wait(clock->ctx, &api->changed, &api->mu, wake);
        }
        pthread_mutex_unlock(&api->mu);
        return NULL;
}

static int fake_call(struct hf_client *self, const struct hf_request *request, hf_response_fn done,
                     void *ctx, uint64_t *ret_id) {
        struct fake_client *client = (struct fake_client *)self;
        struct fake_job *job = calloc(1, sizeof *job), **at;
        job->client = client;
        job->request = *request;
        if (!job->request.deadline)
                job->request.deadline = hf_now(hf_clock_system()) + 30 * HF_NSEC_PER_SEC;
        job->ns = strdup(request->ns ? request->ns : "");
        job->name = strdup(request->name ? request->name : "");
        job->plural = strdup(request->resource.plural);
        job->body = strndup(request->body ? request->body : "", request->n_body);
        if (request->fence) {
                job->fence = *request->fence;
                job->request.fence = &job->fence;
        }
        job->done = done;
        job->ctx = ctx;
        pthread_mutex_lock(&client->api->mu);
        job->id = ++client->api->next_id;
        client->api->n_calls++;
        for (at = &client->api->jobs; *at;)
                at = &(*at)->next;
        *at = job;
        if (ret_id)
                *ret_id = job->id;
        pthread_cond_broadcast(&client->api->changed);
        pthread_mutex_unlock(&client->api->mu);
        return 0;
}

static void fake_cancel(struct hf_client *self, uint64_t id) {
        struct fake_api *api = ((struct fake_client *)self)->api;
        pthread_mutex_lock(&api->mu);
        for (struct fake_job *job = api->jobs; job; job = job->next)
                if (job->id == id)
                        job->canceled = true;
        pthread_cond_broadcast(&api->changed);
        pthread_mutex_unlock(&api->mu);
}

static int fake_watch(struct hf_client *self, const struct hf_watch_spec *spec,
                      hf_event_fn on_event, hf_watch_end_fn on_end, void *ctx, uint64_t *ret_id) {
        struct fake_client *client = (struct fake_client *)self;
        struct fake_api *api = client->api;
        struct fake_watch *watch = calloc(1, sizeof *watch);
        watch->client = client;
        watch->end = -1;
        fake_key(watch->prefix, sizeof watch->prefix, spec->resource.plural, spec->ns, spec->name);
        watch->on_event = on_event;
        watch->on_end = on_end;
        watch->ctx = ctx;
        pthread_mutex_lock(&api->mu);
        watch->id = ++api->next_id;
        for (struct fake_object *object = api->objects; object; object = object->next)
                if (strncmp(object->key, watch->prefix, strlen(watch->prefix)) == 0)
                        fake_tell_watch(watch, HF_EVENT_ADDED, object->text, object->rv);
        watch->next = api->watches;
        api->watches = watch;
        if (ret_id)
                *ret_id = watch->id;
        pthread_cond_broadcast(&api->changed);
        pthread_mutex_unlock(&api->mu);
        return 0;
}

static void fake_watch_cancel(struct hf_client *self, uint64_t id) {
        struct fake_api *api = ((struct fake_client *)self)->api;
        pthread_mutex_lock(&api->mu);
        for (struct fake_watch *watch = api->watches; watch; watch = watch->next)
                if (watch->id == id && watch->end < 0)
                        watch->end = HF_E_CANCELED;
        pthread_cond_broadcast(&api->changed);
        pthread_mutex_unlock(&api->mu);
}

static bool fake_has_work(struct fake_client *client) {
        bool work = client->n_busy > 0;
        for (struct fake_job *job = client->api->jobs; job; job = job->next)
                if (job->client == client)
                        work = job->canceled = true;
        for (struct fake_watch *watch = client->api->watches; watch; watch = watch->next)
                if (watch->client == client) {
                        work = true;
                        watch->end = HF_E_CANCELED;
                }
        return work;
}

static void fake_client_free(struct hf_client *self) {
        struct fake_client *client = (struct fake_client *)self;
        pthread_mutex_lock(&client->api->mu);
        while (fake_has_work(client)) {
                pthread_cond_broadcast(&client->api->changed);
                pthread_cond_wait(&client->api->changed, &client->api->mu);
        }
        pthread_mutex_unlock(&client->api->mu);
        free(client);
}

static struct fake_api *fake_api_new(void) {
        struct fake_api *api = calloc(1, sizeof *api);
        api->host.size = sizeof api->host;
        api->rv = 100;
        int r = hf__mutex_init(&api->mu);
        r = r != 0 ? r : hf_cond_init(&api->changed);
        r = r != 0 ? r : hf__thread_start(&api->host, "fake-api", fake_main, api, &api->thread);
        assert(r == 0);
        return api;
}

static struct fake_client *fake_client_new(struct fake_api *api) {
        static const struct hf_client_ops ops = {fake_call, fake_cancel, fake_watch,
                                                 fake_watch_cancel, fake_client_free};
        struct fake_client *client = calloc(1, sizeof *client);
        client->base = (struct hf_client){.ops = &ops, .host = &api->host};
        client->api = api;
        return client;
}

/* After its clients. */
static void fake_api_free(struct fake_api *api) {
        pthread_mutex_lock(&api->mu);
        api->stopping = true;
        pthread_cond_broadcast(&api->changed);
        pthread_mutex_unlock(&api->mu);
        pthread_join(api->thread, NULL);
        while (api->objects) {
                struct fake_object *object = api->objects;
                api->objects = object->next;
                free(object->text);
                free(object);
        }
        pthread_cond_destroy(&api->changed);
        pthread_mutex_destroy(&api->mu);
        free(api);
}

__attribute__((unused)) static void fake_set_mode(struct fake_client *client, enum fake_mode mode,
                                                  bool writes_only, int refuse_error,
                                                  unsigned n_refuse) {
        pthread_mutex_lock(&client->api->mu);
        client->mode = mode;
        client->writes_only = writes_only;
        client->refuse_error = refuse_error;
        client->n_refuse = n_refuse;
        pthread_cond_broadcast(&client->api->changed);
        pthread_mutex_unlock(&client->api->mu);
}

/* Somebody else (kubectl) overwrites or deletes. */
__attribute__((unused)) static void fake_put(struct fake_api *api, const char *key,
                                             const char *text) {
        pthread_mutex_lock(&api->mu);
        fake_store(api, key, text, NULL);
        pthread_mutex_unlock(&api->mu);
}
__attribute__((unused)) static void fake_delete(struct fake_api *api, const char *key) {
        pthread_mutex_lock(&api->mu);
        fake_remove(api, key, NULL);
        pthread_mutex_unlock(&api->mu);
}
/* The object's text, malloc'ed; NULL = none. */
__attribute__((unused)) static char *fake_get(struct fake_api *api, const char *key) {
        pthread_mutex_lock(&api->mu);
        struct fake_object *object = fake_find(api, key);
        char *text = object ? strdup(object->text) : NULL;
        pthread_mutex_unlock(&api->mu);
        return text;
}
