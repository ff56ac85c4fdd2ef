/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State, all guarded by mu: the objects with their revisions, the events since the last compaction,
 * and the requests. The one thread looks for a request that has something to say, makes its words
 * under the lock, and says them without.
 */
#include "api-fake.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/thread.h"

#define API_FAKE_MAX 4096
#ifndef API_FAKE_MAX_EVENTS
#define API_FAKE_MAX_EVENTS API_FAKE_MAX
#endif

struct api_fake_event {
        uint64_t revision;
        enum hf_event_type type;
        char *object; /* owned */
};

struct api_fake_object {
        char ns[64], name[64], value[64];
        uint64_t revision, uid;
};

struct api_fake_request {
        struct api_fake_request *next;
        uint64_t id;
        bool is_watch, canceled, wants_bookmarks, bookmark_due;
        enum hf_verb verb;
        uint64_t from; /* a watch: events after it */
        int end;       /* INT32_MIN = open */
        const char *end_message;
        size_t limit;         /* a list's; 0 = none */
        uint64_t continue_at; /* the revision in its token; 0 = a first page */
        size_t continue_from;
        unsigned number; /* of all lists */
        hf_response_fn done;
        hf_event_fn on_event;
        hf_watch_end_fn on_end;
        void *ctx;
};

struct api_fake {
        struct hf_client base;
        pthread_t thread;
        pthread_mutex_t mu;
        pthread_cond_t cond, started;
        bool stop, mute, hold;
        uint64_t revision, compacted, next_id, last_uid;
        struct api_fake_object objects[API_FAKE_MAX];
        size_t n_objects;
        struct api_fake_event events[API_FAKE_MAX_EVENTS];
        size_t n_events;
        struct api_fake_request *requests;
        unsigned n_lists, n_watches, n_open, fail_lists, fail_list;
        int fail_error;
        size_t page;
        bool hold_pages;
        struct api_fake_object snapshot[API_FAKE_MAX]; /* what pages after a first one are of */
        size_t n_snapshot;
        uint64_t snapshot_at;
        char last_query[160]; /* of the newest list */
};

static char *api_fake_object_text(const struct api_fake_object *object, uint64_t revision) {
        char *text = NULL;
        if (asprintf(&text,
                     "{\"kind\":\"Thing\",\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\","
                     "\"uid\":\"%llu\","
                     "\"resourceVersion\":\"%llu\"},\"v\":\"%s\"}",
                     object->ns, object->name, (unsigned long long)object->uid,
                     (unsigned long long)revision, object->value) < 0)
                abort();
        return text;
}

static void api_fake_unlock_wake(struct api_fake *fake) {
        pthread_cond_broadcast(&fake->cond);
        pthread_mutex_unlock(&fake->mu);
}

static void api_fake_record(struct api_fake *fake, enum hf_event_type type,
                            const struct api_fake_object *object) {
        if (fake->n_events == API_FAKE_MAX_EVENTS)
                abort();
        fake->events[fake->n_events++] =
                (struct api_fake_event){fake->revision, type,
                                        api_fake_object_text(object, fake->revision)};
}

static size_t api_fake_find(struct api_fake *fake, const char *ns, const char *name) {
        size_t i = 0;
        while (i < fake->n_objects &&
               (strcmp(fake->objects[i].ns, ns) != 0 || strcmp(fake->objects[i].name, name) != 0))
                i++;
        return i;
}

uint64_t api_fake_put(struct api_fake *fake, const char *ns, const char *name, const char *value) {
        pthread_mutex_lock(&fake->mu);
        size_t i = api_fake_find(fake, ns, name);
        bool is_new = i == fake->n_objects;
        if (i == API_FAKE_MAX)
                abort();
        struct api_fake_object *object = &fake->objects[i];
        snprintf(object->ns, sizeof object->ns, "%s", ns);
        snprintf(object->name, sizeof object->name, "%s", name);
        snprintf(object->value, sizeof object->value, "%s", value);
        uint64_t revision = object->revision = ++fake->revision;
        object->uid = is_new ? ++fake->last_uid : object->uid;
        fake->n_objects += is_new ? 1 : 0;
        api_fake_record(fake, is_new ? HF_EVENT_ADDED : HF_EVENT_MODIFIED, object);
        api_fake_unlock_wake(fake);
        return revision;
}

uint64_t api_fake_delete(struct api_fake *fake, const char *ns, const char *name) {
        pthread_mutex_lock(&fake->mu);
        size_t i = api_fake_find(fake, ns, name);
        uint64_t revision = ++fake->revision;
        if (i < fake->n_objects) {
                api_fake_record(fake, HF_EVENT_DELETED, &fake->objects[i]);
                fake->objects[i] = fake->objects[--fake->n_objects];
        }
        api_fake_unlock_wake(fake);
        return revision;
}

uint64_t api_fake_other_writes(struct api_fake *fake, unsigned n) {
        pthread_mutex_lock(&fake->mu);
        uint64_t revision = fake->revision += n;
        pthread_mutex_unlock(&fake->mu);
        return revision;
}

static void api_fake_forget_events(struct api_fake *fake) {
        for (size_t i = 0; i < fake->n_events; i++)
                free(fake->events[i].object);
        fake->n_events = 0;
}

void api_fake_compact(struct api_fake *fake) {
        pthread_mutex_lock(&fake->mu);
        api_fake_forget_events(fake);
        fake->compacted = fake->revision;
        api_fake_unlock_wake(fake);
}

void api_fake_end_watches(struct api_fake *fake, int error) {
        pthread_mutex_lock(&fake->mu);
        for (struct api_fake_request *r = fake->requests; r; r = r->next)
                if (r->is_watch && r->end == INT32_MIN)
                        r->end = error;
        api_fake_unlock_wake(fake);
}

void api_fake_end_watches_with(struct api_fake *fake, int error, const char *message) {
        pthread_mutex_lock(&fake->mu);
        for (struct api_fake_request *r = fake->requests; r; r = r->next)
                if (r->is_watch && r->end == INT32_MIN) {
                        r->end = error;
                        r->end_message = message;
                }
        api_fake_unlock_wake(fake);
}

void api_fake_set_back(struct api_fake *fake, uint64_t revision) {
        pthread_mutex_lock(&fake->mu);
        api_fake_forget_events(fake);
        fake->revision = revision;
        fake->compacted = 0;
        for (struct api_fake_request *r = fake->requests; r; r = r->next)
                r->from = revision;
        api_fake_unlock_wake(fake);
}

void api_fake_bookmark(struct api_fake *fake) {
        pthread_mutex_lock(&fake->mu);
        for (struct api_fake_request *r = fake->requests; r; r = r->next)
                r->bookmark_due = r->wants_bookmarks;
        api_fake_unlock_wake(fake);
}

void api_fake_fail_lists(struct api_fake *fake, unsigned n, int error) {
        pthread_mutex_lock(&fake->mu);
        fake->fail_lists = n;
        fake->fail_error = error;
        pthread_mutex_unlock(&fake->mu);
}

void api_fake_fail_list(struct api_fake *fake, unsigned number, int error) {
        pthread_mutex_lock(&fake->mu);
        fake->fail_list = number;
        fake->fail_error = error;
        pthread_mutex_unlock(&fake->mu);
}

void api_fake_page(struct api_fake *fake, size_t n) {
        pthread_mutex_lock(&fake->mu);
        fake->page = n;
        pthread_mutex_unlock(&fake->mu);
}

void api_fake_hold_pages(struct api_fake *fake, bool hold) {
        pthread_mutex_lock(&fake->mu);
        fake->hold_pages = hold;
        api_fake_unlock_wake(fake);
}

void api_fake_mute_watches(struct api_fake *fake, bool mute) {
        pthread_mutex_lock(&fake->mu);
        fake->mute = mute;
        api_fake_unlock_wake(fake);
}

void api_fake_hold_calls(struct api_fake *fake, bool hold) {
        pthread_mutex_lock(&fake->mu);
        fake->hold = hold;
        api_fake_unlock_wake(fake);
}

static unsigned api_fake_count(struct api_fake *fake, const unsigned *count) {
        pthread_mutex_lock(&fake->mu);
        unsigned n = *count;
        pthread_mutex_unlock(&fake->mu);
        return n;
}
void api_fake_last_query(struct api_fake *fake, char text[160]) {
        pthread_mutex_lock(&fake->mu);
        memcpy(text, fake->last_query, sizeof fake->last_query);
        pthread_mutex_unlock(&fake->mu);
}
unsigned api_fake_n_lists(struct api_fake *fake) { return api_fake_count(fake, &fake->n_lists); }
unsigned api_fake_n_watches(struct api_fake *fake) {
        return api_fake_count(fake, &fake->n_watches);
}
unsigned api_fake_n_open(struct api_fake *fake) { return api_fake_count(fake, &fake->n_open); }

void api_fake_await_watch(struct api_fake *fake, unsigned n) {
        pthread_mutex_lock(&fake->mu);
        while (fake->n_watches < n || fake->n_open == 0)
                pthread_cond_wait(&fake->started, &fake->mu);
        pthread_mutex_unlock(&fake->mu);
}

void api_fake_await_list(struct api_fake *fake, unsigned n) {
        pthread_mutex_lock(&fake->mu);
        while (fake->n_lists < n)
                pthread_cond_wait(&fake->started, &fake->mu);
        pthread_mutex_unlock(&fake->mu);
}

/* ---- saying things: called with the lock, returns with it ---- */

static void api_fake_remove(struct api_fake *fake, struct api_fake_request *request) {
        struct api_fake_request **place = &fake->requests;
        while (*place != request)
                place = &(*place)->next;
        *place = request->next;
        fake->n_open -= request->is_watch ? 1 : 0;
}

static void api_fake_list(struct api_fake *fake, const struct api_fake_request *request,
                          struct hf__strbuf *body) {
        size_t from = 0, page = fake->page && request->limit > 0 && fake->page < request->limit
                                        ? fake->page
                                        : request->limit;

        if (request->continue_at > 0) {
                from = request->continue_from;
        } else {
                memcpy(fake->snapshot, fake->objects, fake->n_objects * sizeof *fake->objects);
                fake->n_snapshot = fake->n_objects;
                fake->snapshot_at = fake->revision;
        }
        size_t to = page > 0 && page < fake->n_snapshot - from ? from + page : fake->n_snapshot;
        hf__strbuf_printf(body, "{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"%llu\"",
                          (unsigned long long)fake->snapshot_at);
        if (to < fake->n_snapshot)
                hf__strbuf_printf(body, ",\"continue\":\"%llu+%zu\"",
                                  (unsigned long long)fake->snapshot_at, to);
        hf__strbuf_puts(body, "},\"items\":[");
        for (size_t i = from; i < to; i++) {
                char *text = api_fake_object_text(&fake->snapshot[i], fake->snapshot[i].revision);
                hf__strbuf_puts(body, i > from ? ", " : "");
                hf__strbuf_puts(body, text);
                free(text);
        }
        hf__strbuf_puts(body, "]}");
}

static void api_fake_answer(struct api_fake *fake, struct api_fake_request *request) {
        struct hf__strbuf body = {0};
        struct hf_response reply = {0};

        if (request->canceled) {
                reply.error = HF_E_CANCELED;
        } else if (request->verb == HF_VERB_LIST && fake->fail_lists > 0) {
                fake->fail_lists--;
                reply.error = fake->fail_error;
        } else if (request->verb == HF_VERB_LIST && request->number == fake->fail_list) {
                reply.error = fake->fail_error;
        } else if (request->continue_at > 0 && (request->continue_at != fake->snapshot_at ||
                                                request->continue_at < fake->compacted)) {
                reply.error = HF_E_GONE;
        } else if (request->verb == HF_VERB_LIST) {
                api_fake_list(fake, request, &body);
        } else {
                hf__strbuf_puts(&body, "{}");
        }
        (void)hf_fail(&reply.status, reply.error, "%s", hf_strerror(reply.error));
        reply.body = body.data;
        reply.n_body = body.n;
        api_fake_remove(fake, request);
        pthread_mutex_unlock(&fake->mu);
        request->done(request->ctx, &reply);
        hf__strbuf_done(&body);
        free(request);
        pthread_mutex_lock(&fake->mu);
}

static void api_fake_say(struct api_fake *fake, struct api_fake_request *request,
                         enum hf_event_type type, const char *object, uint64_t revision) {
        char version[24], *copy = strdup(object);
        snprintf(version, sizeof version, "%llu", (unsigned long long)revision);
        const struct hf_event event = {.type = type,
                                       .object = copy,
                                       .n_object = strlen(copy),
                                       .resource_version = version};
        pthread_mutex_unlock(&fake->mu);
        request->on_event(request->ctx, &event);
        free(copy);
        pthread_mutex_lock(&fake->mu);
}

static void api_fake_end(struct api_fake *fake, struct api_fake_request *request, int error) {
        struct hf_status status = {0};
        (void)hf_fail(&status, error, "%s",
                      error && request->end_message ? request->end_message : hf_strerror(error));
        api_fake_remove(fake, request);
        pthread_mutex_unlock(&fake->mu);
        request->on_end(request->ctx, error, &status);
        free(request);
        pthread_mutex_lock(&fake->mu);
}

/* Returns whether it had something to say. Only this thread removes requests, so request stays
 * valid while unlocked. */
static bool api_fake_serve(struct api_fake *fake, struct api_fake_request *request) {
        if (!request->is_watch) {
                if ((fake->hold || (fake->hold_pages && request->continue_at > 0)) &&
                    !request->canceled)
                        return false;
                api_fake_answer(fake, request);
                return true;
        }
        if (request->canceled || request->from < fake->compacted) {
                api_fake_end(fake, request, request->canceled ? HF_E_CANCELED : HF_E_GONE);
                return true;
        }
        for (size_t i = 0; !fake->mute && i < fake->n_events; i++) {
                struct api_fake_event event = fake->events[i];
                if (event.revision <= request->from)
                        continue;
                request->from = event.revision;
                api_fake_say(fake, request, event.type, event.object, event.revision);
                return true;
        }
        if (request->bookmark_due && !fake->mute) {
                request->bookmark_due = false;
                request->from = fake->revision;
                api_fake_say(fake, request, HF_EVENT_BOOKMARK, "{}", fake->revision);
                return true;
        }
        if (request->end == INT32_MIN)
                return false;
        api_fake_end(fake, request, request->end);
        return true;
}

static void *api_fake_run(void *ctx) {
        struct api_fake *fake = ctx;
        pthread_mutex_lock(&fake->mu);
        while (!fake->stop || fake->requests) {
                bool said = false;
                for (struct api_fake_request *r = fake->requests; r && !said; r = r->next) {
                        r->canceled = r->canceled || fake->stop;
                        said = api_fake_serve(fake, r);
                        if (said) /* the list may be another now */
                                break;
                }
                if (!said)
                        pthread_cond_wait(&fake->cond, &fake->mu);
        }
        pthread_mutex_unlock(&fake->mu);
        return NULL;
}

/* ---- the operations ---- */

static void api_fake_append(struct api_fake *fake, struct api_fake_request *request,
                            uint64_t *ret_id) {
        struct api_fake_request **place = &fake->requests;
        request->id = ++fake->next_id;
        if (ret_id)
                *ret_id = request->id;
        while (*place)
                place = &(*place)->next;
        *place = request;
        pthread_cond_broadcast(&fake->started);
        api_fake_unlock_wake(fake);
}

static void api_fake_read_query(struct api_fake_request *request, const char *query) {
        const char *limit = strstr(query, "limit="), *token = strstr(query, "continue=");
        unsigned long long revision;

        if (limit)
                request->limit = strtoul(limit + 6, NULL, 10);
        if (token && sscanf(token + 9, "%llu%%2B%zu", &revision, &request->continue_from) ==
                             2) /* the plus must be encoded */
                request->continue_at = revision;
        else if (token)
                abort();
}

static int api_fake_call(struct hf_client *self, const struct hf_request *call, hf_response_fn done,
                         void *ctx, uint64_t *ret_id) {
        struct api_fake *fake = (struct api_fake *)self;
        struct api_fake_request *request = calloc(1, sizeof *request);
        request->verb = call->verb;
        request->done = done;
        request->ctx = ctx;
        pthread_mutex_lock(&fake->mu);
        if (call->verb == HF_VERB_LIST) {
                snprintf(fake->last_query, sizeof fake->last_query, "%s",
                         call->query ? call->query : "");
                request->number = ++fake->n_lists;
                api_fake_read_query(request, fake->last_query);
                pthread_cond_broadcast(&fake->started);
        }
        api_fake_append(fake, request, ret_id);
        return 0;
}

static int api_fake_watch(struct hf_client *self, const struct hf_watch_spec *spec,
                          hf_event_fn on_event, hf_watch_end_fn on_end, void *ctx,
                          uint64_t *ret_id) {
        struct api_fake *fake = (struct api_fake *)self;
        struct api_fake_request *request = calloc(1, sizeof *request);
        request->is_watch = true;
        request->wants_bookmarks = spec->bookmarks;
        request->from = strtoull(spec->resource_version ? spec->resource_version : "0", NULL, 10);
        request->end = INT32_MIN;
        request->on_event = on_event;
        request->on_end = on_end;
        request->ctx = ctx;
        pthread_mutex_lock(&fake->mu);
        fake->n_watches++;
        fake->n_open++;
        api_fake_append(fake, request, ret_id);
        return 0;
}

static void api_fake_cancel(struct hf_client *self, uint64_t id) {
        struct api_fake *fake = (struct api_fake *)self;
        pthread_mutex_lock(&fake->mu);
        for (struct api_fake_request *r = fake->requests; r; r = r->next)
                r->canceled = r->canceled || r->id == id;
        api_fake_unlock_wake(fake);
}

static void api_fake_free(struct hf_client *self) {
        struct api_fake *fake = (struct api_fake *)self;
        pthread_mutex_lock(&fake->mu);
        fake->stop = true;
        api_fake_unlock_wake(fake);
        pthread_join(fake->thread, NULL);
        api_fake_forget_events(fake);
        pthread_cond_destroy(&fake->cond);
        pthread_cond_destroy(&fake->started);
        pthread_mutex_destroy(&fake->mu);
        free(fake);
}

struct api_fake *api_fake_new(const struct hf_host *host) {
        static const struct hf_client_ops ops = {
                .request = api_fake_call,
                .cancel = api_fake_cancel,
                .watch = api_fake_watch,
                .watch_cancel = api_fake_cancel,
                .free = api_fake_free,
        };
        struct api_fake *fake = calloc(1, sizeof *fake);
        fake->base = (struct hf_client){.ops = &ops, .host = host};
        pthread_mutex_init(&fake->mu, NULL);
        pthread_cond_init(&fake->cond, NULL);
        pthread_cond_init(&fake->started, NULL);
        fake->revision = 1;
        if (hf__thread_start(host, "api-fake", api_fake_run, fake, &fake->thread) != 0)
                abort();
        return fake;
}

struct hf_client *api_fake_client(struct api_fake *fake) {
        return &fake->base;
}
