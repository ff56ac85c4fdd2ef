/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See fake_api_client.h. A client only queues requests and watches. The server's thread serves them
 * as the mode and the holds of the client say. Except for those of fake_api_client_new, allocations
 * are made with the lock held and between fake_api_shield.enter and leave, so that they never fail.
 */
#include "fake_api_client.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_api_private.h"
#include "patience.h"

#define DEFAULT_TIMEOUT (30 * HF_NSEC_PER_SEC) /* for a request without a deadline */

static char *copy(const char *text) {
        char *copied = strdup(text ? text : "");

        assert(copied);
        return copied;
}

/* ---- requests ---- */

static void parse_list_query(struct fake_page *page, const char *query) {
        const char *limit = strstr(query, "limit="), *token = strstr(query, "continue=");
        unsigned long long revision;

        if (limit)
                page->limit = strtoul(limit + strlen("limit="), NULL, 10);
        if (!token)
                return;
        /* A client must percent-encode the plus sign of the token. */
        int n = sscanf(token, "continue=%llu%%2B%zu", &revision, &page->continue_from);
        assert(n == 2);
        page->continue_revision = revision;
}

static void record_list(struct fake_api *api, struct fake_api_request *request, const char *query) {
        (void)snprintf(api->last_list_query, sizeof api->last_list_query, "%s", query ? query : "");
        request->list_number = ++api->n_lists;
        parse_list_query(&request->page, api->last_list_query);
}

static void copy_request(struct fake_api_request *request, const struct hf_request *from) {
        request->request = *from;
        request->ns = copy(from->ns);
        request->name = copy(from->name);
        request->plural = copy(from->resource.plural);
        request->body = from->body ? strndup(from->body, from->n_body) : copy(NULL);
        assert(request->body);
        if (from->fence) {
                request->fence = *from->fence;
                request->request.fence = &request->fence;
        }
        if (!from->deadline)
                request->request.deadline =
                        hf_now(hf_host_clock(request->client->base.host)) + DEFAULT_TIMEOUT;
}

static int client_request(struct hf_client *self, const struct hf_request *from,
                          hf_response_fn done, void *ctx, uint64_t *ret_id) {
        struct fake_api_client *client = (struct fake_api_client *)self;
        struct fake_api *api = client->api;

        fake_api_lock(api);
        struct fake_api_request *request = calloc(1, sizeof *request), **at = &api->requests;
        assert(request);
        request->client = client;
        request->done = done;
        request->ctx = ctx;
        request->id = ++api->last_id;
        copy_request(request, from);
        api->n_requests++;
        if (from->verb == HF_VERB_LIST)
                record_list(api, request, from->query);
        while (*at)
                at = &(*at)->next;
        *at = request;
        if (ret_id) /* must be set before the server's thread can call back */
                *ret_id = request->id;
        fake_api_signal_and_unlock(api);
        return 0;
}

static void client_cancel(struct hf_client *self, uint64_t id) {
        struct fake_api *api = ((struct fake_api_client *)self)->api;

        fake_api_lock(api);
        for (struct fake_api_request *request = api->requests; request; request = request->next)
                if (request->id == id)
                        request->is_canceled = true;
        fake_api_signal_and_unlock(api);
}

/* A watch without a resourceVersion begins with the existing objects. */
static void add_present_objects(const struct fake_store *store, struct fake_api_watch *watch) {
        for (size_t i = 0; i < store->n_objects; i++) {
                const struct fake_object *object = store->objects[i];
                if (fake_api_watch_covers(watch, object->key))
                        fake_api_watch_append(watch, HF_EVENT_ADDED, hf__buf_ref(object->text),
                                              object->revision);
        }
        watch->from = store->revision;
}

static void set_prefix(struct fake_api_watch *watch, const struct hf_watch_spec *spec) {
        bool has_ns = spec->ns && spec->ns[0];

        watch->is_of_one = spec->name && spec->name[0];
        watch->prefix = fake_store_key(spec->resource.plural, spec->ns, spec->name);
        if (!has_ns && !watch->is_of_one) /* all namespaces: the prefix is "plural/" */
                watch->prefix[strlen(watch->prefix) - 1] = '\0';
}

static int client_watch(struct hf_client *self, const struct hf_watch_spec *spec,
                        hf_event_fn on_event, hf_watch_end_fn on_end, void *ctx, uint64_t *ret_id) {
        struct fake_api_client *client = (struct fake_api_client *)self;
        struct fake_api *api = client->api;

        fake_api_lock(api);
        struct fake_api_watch *watch = calloc(1, sizeof *watch), **at = &api->watches;
        assert(watch);
        *watch = (struct fake_api_watch){.client = client,
                                         .id = ++api->last_id,
                                         .wants_bookmarks = spec->bookmarks,
                                         .end = FAKE_API_STILL_OPEN,
                                         .on_event = on_event,
                                         .on_end = on_end,
                                         .ctx = ctx};
        set_prefix(watch, spec);
        if (spec->resource_version && spec->resource_version[0])
                watch->from = strtoull(spec->resource_version, NULL, 10);
        else
                add_present_objects(&api->store, watch);
        api->n_watches++;
        api->n_open++;
        while (*at)
                at = &(*at)->next;
        *at = watch;
        if (ret_id)
                *ret_id = watch->id;
        fake_api_signal_and_unlock(api);
        return 0;
}

static void client_watch_cancel(struct hf_client *self, uint64_t id) {
        struct fake_api *api = ((struct fake_api_client *)self)->api;

        fake_api_lock(api);
        for (struct fake_api_watch *watch = api->watches; watch; watch = watch->next)
                if (watch->id == id)
                        watch->end = HF_E_CANCELED;
        fake_api_signal_and_unlock(api);
}

/*
 * Cancels all requests and watches of the client. Returns whether there are any, or a callback
 * runs.
 */
static bool cancel_all(struct fake_api_client *client) {
        bool found = client->n_callbacks > 0;

        for (struct fake_api_request *request = client->api->requests; request;
             request = request->next)
                if (request->client == client)
                        found = request->is_canceled = true;
        for (struct fake_api_watch *watch = client->api->watches; watch; watch = watch->next)
                if (watch->client == client) {
                        watch->end = HF_E_CANCELED;
                        found = true;
                }
        return found;
}

/* A callback that runs now may start another request, so each call cancels everything again. */
static bool has_ended(struct fake_api_client *client) {
        if (!cancel_all(client))
                return true;
        pthread_cond_broadcast(&client->api->changed);
        return false;
}

static void client_free(struct hf_client *self) {
        struct fake_api_client *client = (struct fake_api_client *)self;
        struct fake_api *api = client->api;

        fake_api_lock(api);
        PATIENCE_AWAIT_LOCKED(&api->changed, &api->mu, has_ended(client));
        fake_api_unlock(api);
        free(client);
}

struct fake_api_client *fake_api_client_new(struct fake_api *api) {
        static const struct hf_client_ops ops = {.size = sizeof ops,
                                                 .request = client_request,
                                                 .cancel = client_cancel,
                                                 .watch = client_watch,
                                                 .watch_cancel = client_watch_cancel,
                                                 .free = client_free};
        struct fake_api_client *client = calloc(1, sizeof *client);

        assert(client);
        client->base = (struct hf_client){.ops = &ops, .host = &api->host};
        client->api = api;
        return client;
}

/* ---- what a client meets ---- */

static void set_mode(struct fake_api_client *client, enum fake_api_mode mode, bool is_of_writes,
                     int error, unsigned n) {
        fake_api_lock(client->api);
        client->mode = mode;
        client->mode_is_of_writes = is_of_writes;
        client->refuse_error = error;
        client->n_refuse = n;
        fake_api_signal_and_unlock(client->api);
}

void fake_api_client_set_mode(struct fake_api_client *client, enum fake_api_mode mode) {
        assert(mode != FAKE_API_REFUSES); /* it needs an error: see fake_api_client_refuse */
        set_mode(client, mode, false, 0, 0);
}

void fake_api_client_set_write_mode(struct fake_api_client *client, enum fake_api_mode mode) {
        assert(mode != FAKE_API_REFUSES);
        set_mode(client, mode, true, 0, 0);
}

void fake_api_client_refuse(struct fake_api_client *client, int error, unsigned n) {
        set_mode(client, FAKE_API_REFUSES, false, error, n);
}

void fake_api_client_refuse_writes(struct fake_api_client *client, int error, unsigned n) {
        set_mode(client, FAKE_API_REFUSES, true, error, n);
}

static void set_flag(struct fake_api_client *client, bool *flag, bool value) {
        fake_api_lock(client->api);
        *flag = value;
        fake_api_signal_and_unlock(client->api);
}

void fake_api_client_hold_requests(struct fake_api_client *client, bool hold) {
        set_flag(client, &client->holds_requests, hold);
}

void fake_api_client_hold_pages(struct fake_api_client *client, bool hold) {
        set_flag(client, &client->holds_pages, hold);
}

void fake_api_client_hold_events(struct fake_api_client *client, bool hold) {
        set_flag(client, &client->holds_events, hold);
}
