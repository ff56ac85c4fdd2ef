/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See fake_api.h for the model. Two invariants:
 *
 * Only the server's thread removes and frees requests and watches. So it may unlock for a callback
 * and still use the request or watch afterwards.
 *
 * A callback runs without the lock and is counted in its client's n_callbacks, so that
 * client_free() can wait until no callback of the client runs.
 */
#include "fake_api.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mailbox.h"
#include "base/thread.h"
#include "fake_api_private.h"
#include "patience.h"

#define NOT_YET INT32_MIN

struct fake_api_shield fake_api_shield;

void fake_api_lock(struct fake_api *api) {
        pthread_mutex_lock(&api->mu);
        if (fake_api_shield.enter)
                fake_api_shield.enter();
}

void fake_api_unlock(struct fake_api *api) {
        if (fake_api_shield.leave)
                fake_api_shield.leave();
        pthread_mutex_unlock(&api->mu);
}

void fake_api_signal_and_unlock(struct fake_api *api) {
        pthread_cond_broadcast(&api->changed);
        fake_api_unlock(api);
}

/* ---- requests: with the lock held, except in callbacks ---- */

static bool is_write(const struct hf_request *request) {
        return request->verb != HF_VERB_GET && request->verb != HF_VERB_LIST;
}

/* As over HTTP, a create names its object only in the body. */
static char *key_of(const struct fake_api_request *request, const struct hf__json *object) {
        const char *name = request->name;

        if (request->request.verb == HF_VERB_CREATE)
                name = hf__json_string(object, "metadata.name");
        return fake_store_key(request->plural, request->ns, name);
}

/* A write that names no resourceVersion is unconditional, as in Kubernetes. path: where the body
 * names it. */
static bool matches_revision(const struct hf__json *body, const char *path, uint64_t revision) {
        const char *named = hf__json_string(body, path);

        return !named || strtoull(named, NULL, 10) == revision;
}

/* json: the request's body; NULL = it has none. */
static int apply_to_store(struct fake_store *store, const struct fake_api_request *request,
                          const struct hf__json *json, const char *key,
                          const struct hf_fence *fence) {
        const struct fake_object *object = fake_store_find(store, key);

        switch (request->request.verb) {
        case HF_VERB_GET: return object ? 0 : HF_E_NOT_FOUND;
        case HF_VERB_CREATE:
                if (object)
                        return HF_E_EXISTS;
                (void)fake_store_put(store, key, request->body, fence);
                return 0;
        case HF_VERB_UPDATE:
                if (!object)
                        return HF_E_NOT_FOUND;
                if (!matches_revision(json, "metadata.resourceVersion", object->revision))
                        return HF_E_CONFLICT;
                (void)fake_store_put(store, key, request->body, fence);
                return 0;
        case HF_VERB_DELETE:
                if (!object)
                        return HF_E_NOT_FOUND;
                if (!matches_revision(json, "preconditions.resourceVersion", object->revision))
                        return HF_E_CONFLICT;
                (void)fake_store_delete(store, key, fence);
                return 0;
        case HF_VERB_LIST:
        case HF_VERB_PATCH:
        case HF_VERB_DELETE_COLLECTION: break;
        }
        abort(); /* serve_list() handles lists; no test needs the others */
}

/* Carries out a request for one object, and appends the resulting object to out. */
static int apply_request(struct fake_api *api, const struct fake_api_request *request,
                         struct hf__strbuf *out) {
        const struct hf_fence *fence =
                request->client->ignores_fences ? NULL : request->request.fence;
        enum hf_verb verb = request->request.verb;
        struct hf__json *json = NULL;

        bool has_body = verb == HF_VERB_DELETE && request->body && request->body[0];
        if ((has_body || verb == HF_VERB_CREATE || verb == HF_VERB_UPDATE) &&
            hf__json_parse(request->body, strlen(request->body), &json, NULL) != 0)
                return HF_E_INVALID;
        char *key = key_of(request, json);
        /* The fence is compared first, so a stale leader learns nothing else. */
        int r = HF_E_STALE_TERM;
        if (!fence || !is_write(&request->request) || fake_store_fence_holds(&api->store, fence))
                r = apply_to_store(&api->store, request, json, key, fence);
        const struct fake_object *object = fake_store_find(&api->store, key);
        if (r == 0 && object)
                hf__strbuf_add(out, object->text->data, object->text->n);
        free(key);
        hf__json_free(json);
        return r;
}

static int serve_list(struct fake_api *api, const struct fake_api_request *request,
                      struct hf__strbuf *out) {
        struct fake_page page = request->page;

        if (request->list_number == api->failing_list)
                return api->failing_list_error;
        if (api->page > 0 && page.limit > 0 && api->page < page.limit)
                page.limit = api->page;
        char *prefix = fake_store_key(request->plural, request->ns, NULL);
        if (!request->ns[0]) /* all namespaces */
                prefix[strlen(prefix) - 1] = '\0';
        int r = fake_store_list(&api->store, prefix, &page, out);
        free(prefix);
        return r;
}

/* A mode for writes does not affect reads, so that the test can still see what is stored. */
static enum fake_api_mode mode_for(const struct fake_api_request *request) {
        const struct fake_api_client *client = request->client;

        if (client->mode_is_of_writes && !is_write(&request->request))
                return FAKE_API_RESPONDS;
        return client->mode;
}

static bool is_held(const struct fake_api_request *request) {
        const struct fake_api_client *client = request->client;

        return client->holds_requests || mode_for(request) == FAKE_API_HANGS ||
               (client->holds_pages && request->page.continue_revision > 0);
}

static int refuse_request(struct fake_api_client *client) {
        int error = client->refuse_error;

        if (client->n_refuse > 0 && --client->n_refuse == 0)
                client->mode = FAKE_API_RESPONDS;
        return error;
}

/* The outcome of the request: 0, an error, or NOT_YET if the request has to wait. */
static int serve(struct fake_api *api, struct fake_api_request *request, struct hf_response *reply,
                 struct hf__strbuf *body) {
        enum fake_api_mode mode = mode_for(request);

        if (request->is_canceled || api->is_stopping)
                return HF_E_CANCELED;
        if (hf_now(hf_host_clock(&api->host)) >= request->request.deadline)
                return HF_E_TIMEOUT;
        if (request->is_applied || is_held(request))
                return NOT_YET;
        if (mode == FAKE_API_REFUSES)
                return refuse_request(request->client);
        if (request->request.verb == HF_VERB_LIST)
                return serve_list(api, request, body);
        reply->fence_echoed = request->request.fence && !request->client->ignores_fences;
        int r = apply_request(api, request, body);
        /* The request must not be applied again. From now on it only waits for its cancellation or
         * its deadline. */
        if (mode == FAKE_API_LOSES_REPLIES && is_write(&request->request)) {
                request->is_applied = true;
                hf__strbuf_done(body);
                return NOT_YET;
        }
        return r;
}

static void free_request(struct fake_api_request *request) {
        free(request->ns);
        free(request->name);
        free(request->plural);
        free(request->body);
        free(request);
}

static void send_response(struct fake_api *api, struct fake_api_request *request,
                          struct hf_response *reply) {
        if (reply->error)
                (void)hf_fail(&reply->status, reply->error, "the fake API server: %s",
                              hf_strerror(reply->error));
        request->client->n_callbacks++;
        fake_api_unlock(api);
        request->done(request->ctx, reply);
        fake_api_lock(api);
        request->client->n_callbacks--;
        pthread_cond_broadcast(&api->changed);
}

/* Serves the oldest request that is due. Returns false if there is none. */
static bool serve_one_request(struct fake_api *api) {
        for (struct fake_api_request **at = &api->requests; *at; at = &(*at)->next) {
                struct fake_api_request *request = *at;
                struct hf_response reply = {.size = sizeof reply};
                struct hf__strbuf body = {0};
                int outcome = serve(api, request, &reply, &body);

                if (outcome == NOT_YET)
                        continue;
                *at = request->next;
                reply.error = outcome;
                reply.body = body.data;
                reply.n_body = body.n;
                send_response(api, request, &reply);
                hf__strbuf_done(&body);
                free_request(request);
                return true;
        }
        return false;
}

/* ---- watches ---- */

static struct fake_api_event *new_event(enum hf_event_type type, struct hf__buf *text,
                                        uint64_t revision) {
        struct fake_api_event *event = calloc(1, sizeof *event);

        assert(event && text);
        *event = (struct fake_api_event){.type = type, .text = text, .revision = revision};
        return event;
}

static void free_event(struct fake_api_event *event) {
        hf__buf_unref(event->text);
        free(event);
}

void fake_api_watch_append(struct fake_api_watch *watch, enum hf_event_type type,
                           struct hf__buf *text, uint64_t revision) {
        struct fake_api_event **at = &watch->extra;

        while (*at)
                at = &(*at)->next;
        *at = new_event(type, text, revision);
}

bool fake_api_watch_covers(const struct fake_api_watch *watch, const char *key) {
        size_t n = strlen(watch->prefix);

        return strncmp(key, watch->prefix, n) == 0 && (!watch->is_of_one || key[n] == '\0');
}

static struct fake_api_event *pop_extra_event(struct fake_api_watch *watch) {
        struct fake_api_event *event = watch->extra;

        watch->extra = event->next;
        return event;
}

/* The next commit for this watch. NULL = the watch has got all of them. */
static const struct fake_commit *find_next_commit(const struct fake_store *store,
                                                  struct fake_api_watch *watch) {
        if (watch->next_commit < store->first_event)
                watch->next_commit = store->first_event;
        while (watch->next_commit < store->n_commits) {
                const struct fake_commit *commit = &store->commits[watch->next_commit++];
                if (commit->revision > watch->from && fake_api_watch_covers(watch, commit->key))
                        return commit;
        }
        return NULL;
}

/* The next event of the watch, which the caller frees. NULL = no event is due. */
static struct fake_api_event *next_due_event(struct fake_api *api, struct fake_api_watch *watch) {
        const struct fake_api_client *client = watch->client;

        if (client->holds_events || (client->mode == FAKE_API_HANGS && !client->mode_is_of_writes))
                return NULL;
        if (watch->extra)
                return pop_extra_event(watch);
        const struct fake_commit *commit = find_next_commit(&api->store, watch);
        if (commit) {
                watch->from = commit->revision;
                return new_event(commit->type, hf__buf_ref(commit->text), commit->revision);
        }
        if (!watch->bookmark_is_due)
                return NULL;
        /* All earlier events were sent, so a compaction of the present revision must not end this
         * watch. */
        watch->bookmark_is_due = false;
        watch->from = api->store.revision;
        return new_event(HF_EVENT_BOOKMARK, hf__buf_copy("{}", 2), watch->from);
}

static void send_event(struct fake_api *api, struct fake_api_watch *watch,
                       struct fake_api_event *event) {
        char revision[HF__U64_TEXT_MAX];
        const struct hf_event sent = {.type = event->type,
                                      .object = event->text->data,
                                      .n_object = event->text->n,
                                      .resource_version = revision};

        (void)hf__u64_text(event->revision, revision);
        watch->client->n_callbacks++;
        fake_api_unlock(api);
        watch->on_event(watch->ctx, &sent);
        fake_api_lock(api);
        watch->client->n_callbacks--;
        pthread_cond_broadcast(&api->changed);
        free_event(event);
}

static void send_watch_end(struct fake_api *api, struct fake_api_watch *watch, int error) {
        struct hf_status status = {0};

        (void)hf_fail(&status, error, "%s",
                      error && watch->end_message ? watch->end_message : hf_strerror(error));
        api->n_open--;
        watch->client->n_callbacks++;
        fake_api_unlock(api);
        watch->on_end(watch->ctx, error, &status);
        fake_api_lock(api);
        watch->client->n_callbacks--;
        pthread_cond_broadcast(&api->changed);
        while (watch->extra)
                free_event(pop_extra_event(watch));
        free(watch->prefix);
        free(watch);
}

/*
 * The reason to end a watch before its pending events are sent. A compaction ends every watch whose
 * `from` is older, even if none of the compacted events was for this watch. So an idle watch ends
 * too. In etcd a watch that has read all events would continue.
 */
static int end_at_once(const struct fake_api *api, const struct fake_api_watch *watch) {
        if (watch->end == HF_E_CANCELED || api->is_stopping)
                return HF_E_CANCELED;
        return watch->from < api->store.compacted ? HF_E_GONE : FAKE_API_STILL_OPEN;
}

/* Sends one event, or the end of one watch. Returns false if none is due. */
static bool serve_one_watch(struct fake_api *api) {
        for (struct fake_api_watch **at = &api->watches; *at; at = &(*at)->next) {
                struct fake_api_watch *watch = *at;
                int end = end_at_once(api, watch);
                struct fake_api_event *event =
                        end == FAKE_API_STILL_OPEN ? next_due_event(api, watch) : NULL;

                if (event) {
                        send_event(api, watch, event);
                        return true;
                }
                if (end == FAKE_API_STILL_OPEN)
                        end = watch->end;
                if (end != FAKE_API_STILL_OPEN) {
                        *at = watch->next;
                        send_watch_end(api, watch, end);
                        return true;
                }
        }
        return false;
}

/* ---- the server's thread ---- */

/* Serves all that is due. Returns false if nothing was. */
static bool serve_all(struct fake_api *api) {
        bool delays = api->delays_wakes, any = false;

        if (delays)
                hf__mailbox_delay_wakes();
        while (serve_one_watch(api) || serve_one_request(api))
                any = true;
        if (!delays)
                return any;
        if (any) /* otherwise none is delayed, and a change must not be missed */
                fake_api_unlock(api);
        hf__mailbox_wake_delayed();
        if (any)
                fake_api_lock(api);
        return any;
}

/* Ends only after all requests and watches were canceled, so each of them gets its callback. */
static void *server_main(void *ctx) {
        struct fake_api *api = ctx;

        fake_api_lock(api);
        while (!api->is_stopping || api->requests || api->watches) {
                if (serve_all(api))
                        continue;
                hf_nsec wake = HF_NSEC_NEVER;
                /* Without requests there may be no client yet, and the test may still change the
                 * host. */
                const struct hf_clock *clock =
                        api->requests ? hf_host_clock(&api->host) : hf_clock_system();
                for (struct fake_api_request *request = api->requests; request;
                     request = request->next)
                        if (request->request.deadline < wake)
                                wake = request->request.deadline;
                (void)clock->wait(clock->ctx, &api->changed, &api->mu, wake);
        }
        fake_api_unlock(api);
        return NULL;
}

struct fake_api *fake_api_new(void) {
        struct fake_api *api = calloc(1, sizeof *api);

        assert(api);
        api->host.size = sizeof api->host;
        fake_store_init(&api->store, 1);
        int r = hf__mutex_init(&api->mu);
        assert(r == 0);
        r = hf_cond_init(&api->changed);
        assert(r == 0);
        r = hf__thread_start(&api->host, "fake-api", server_main, api, &api->thread);
        assert(r == 0);
        return api;
}

void fake_api_free(struct fake_api *api) {
        fake_api_lock(api);
        api->is_stopping = true;
        fake_api_signal_and_unlock(api);
        (void)hf__thread_join(api->thread);
        fake_store_deinit(&api->store);
        pthread_cond_destroy(&api->changed);
        pthread_mutex_destroy(&api->mu);
        free(api);
}

/* ---- objects ---- */

uint64_t fake_api_put(struct fake_api *api, const char *key, const char *text) {
        fake_api_lock(api);
        uint64_t revision = fake_store_put(&api->store, key, text, NULL);
        fake_api_signal_and_unlock(api);
        return revision;
}

uint64_t fake_api_delete(struct fake_api *api, const char *key) {
        fake_api_lock(api);
        uint64_t revision = fake_store_delete(&api->store, key, NULL);
        fake_api_signal_and_unlock(api);
        return revision;
}

char *fake_api_get(struct fake_api *api, const char *key) {
        fake_api_lock(api);
        const struct fake_object *object = fake_store_find(&api->store, key);
        char *text = object ? strdup(object->text->data) : NULL;
        fake_api_unlock(api);
        return text;
}

uint64_t fake_api_put_thing(struct fake_api *api, const char *ns, const char *name,
                            const char *value) {
        char text[512];
        int n = snprintf(text, sizeof text,
                         "{\"kind\":\"Thing\",\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\"},"
                         "\"v\":\"%s\"}",
                         ns, name, value);

        assert(n > 0 && (size_t)n < sizeof text);
        fake_api_lock(api);
        char *key = fake_store_key("things", ns, name);
        uint64_t revision = fake_store_put(&api->store, key, text, NULL);
        free(key);
        fake_api_signal_and_unlock(api);
        return revision;
}

uint64_t fake_api_delete_thing(struct fake_api *api, const char *ns, const char *name) {
        fake_api_lock(api);
        char *key = fake_store_key("things", ns, name);
        uint64_t revision = fake_store_delete(&api->store, key, NULL);
        free(key);
        fake_api_signal_and_unlock(api);
        return revision;
}

/* It does not signal, because this makes no event due. */
uint64_t fake_api_raise_revision(struct fake_api *api, unsigned n) {
        fake_api_lock(api);
        uint64_t revision = api->store.revision += n;
        fake_api_unlock(api);
        return revision;
}

/* ---- what the server does to watches and lists ---- */

void fake_api_compact(struct fake_api *api) {
        fake_api_lock(api);
        fake_store_compact(&api->store);
        fake_api_signal_and_unlock(api);
}

void fake_api_roll_back(struct fake_api *api, uint64_t revision) {
        fake_api_lock(api);
        fake_store_roll_back(&api->store, revision);
        for (struct fake_api_watch *watch = api->watches; watch; watch = watch->next)
                watch->from = revision;
        fake_api_signal_and_unlock(api);
}

void fake_api_end_watches(struct fake_api *api, int error, const char *message) {
        fake_api_lock(api);
        for (struct fake_api_watch *watch = api->watches; watch; watch = watch->next)
                if (watch->end == FAKE_API_STILL_OPEN) {
                        watch->end = error;
                        watch->end_message = message;
                }
        fake_api_signal_and_unlock(api);
}

void fake_api_send_bookmarks(struct fake_api *api) {
        fake_api_lock(api);
        for (struct fake_api_watch *watch = api->watches; watch; watch = watch->next)
                watch->bookmark_is_due = watch->wants_bookmarks;
        fake_api_signal_and_unlock(api);
}

void fake_api_send_event(struct fake_api *api, enum hf_event_type type, const char *text) {
        fake_api_lock(api);
        uint64_t revision = ++api->store.revision;
        for (struct fake_api_watch *watch = api->watches; watch; watch = watch->next)
                fake_api_watch_append(watch, type, hf__buf_copy(text, strlen(text)), revision);
        fake_api_signal_and_unlock(api);
}

void fake_api_set_page(struct fake_api *api, size_t n) {
        fake_api_lock(api);
        api->page = n;
        fake_api_unlock(api);
}

void fake_api_fail_list(struct fake_api *api, unsigned number, int error) {
        fake_api_lock(api);
        api->failing_list = number;
        api->failing_list_error = error;
        fake_api_unlock(api);
}

void fake_api_delay_wakes(struct fake_api *api) {
        fake_api_lock(api);
        api->delays_wakes = true;
        fake_api_unlock(api);
}

/* ---- what was requested ---- */

static unsigned read_count(struct fake_api *api, const unsigned *count) {
        fake_api_lock(api);
        unsigned n = *count;
        fake_api_unlock(api);
        return n;
}

unsigned fake_api_n_requests(struct fake_api *api) { return read_count(api, &api->n_requests); }
unsigned fake_api_n_lists(struct fake_api *api) { return read_count(api, &api->n_lists); }
unsigned fake_api_n_watches(struct fake_api *api) { return read_count(api, &api->n_watches); }
unsigned fake_api_n_open(struct fake_api *api) { return read_count(api, &api->n_open); }

void fake_api_last_list_query(struct fake_api *api, char text[160]) {
        fake_api_lock(api);
        memcpy(text, api->last_list_query, sizeof api->last_list_query);
        fake_api_unlock(api);
}

/* Waits until *count is at least n and, if is_open, a watch is open. */
static void await_count(struct fake_api *api, const unsigned *count, unsigned n, bool is_open) {
        fake_api_lock(api);
        PATIENCE_AWAIT_LOCKED(&api->changed, &api->mu,
                              *count >= n && (!is_open || api->n_open > 0));
        fake_api_unlock(api);
}

void fake_api_await_watch(struct fake_api *api, unsigned n) {
        await_count(api, &api->n_watches, n, true);
}

void fake_api_await_list(struct fake_api *api, unsigned n) {
        await_count(api, &api->n_lists, n, false);
}

size_t fake_api_await_commits(struct fake_api *api, size_t n) {
        fake_api_lock(api);
        PATIENCE_AWAIT_LOCKED(&api->changed, &api->mu, api->store.n_commits >= n);
        size_t n_commits = api->store.n_commits;
        fake_api_unlock(api);
        return n_commits;
}
