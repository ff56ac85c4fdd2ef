/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See client_watch.h. It asserts two rules for every watch: nothing follows the end, neither an
 * event nor a second end, and the resourceVersion of an event is the one of its object.
 */
#include "client_watch.h"
#include "base/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "patience.h"

static void read_event(const struct hf_event *from, struct client_watch_event *event) {
        struct hf__json *json = NULL;

        event->type = from->type;
        (void)snprintf(event->revision, sizeof event->revision, "%s", from->resource_version);
        assert_int_equal(hf__json_parse(from->object, from->n_object, &json, NULL), 0);
        const char *name = hf__json_string(json, "metadata.name");
        (void)snprintf(event->name, sizeof event->name, "%s", name ? name : "");
        assert_string_equal(hf__json_string(json, "metadata.resourceVersion"), event->revision);
        hf__json_free(json);
}

static void on_event(void *ctx, const struct hf_event *from) {
        struct client_watch *watch = ctx;

        pthread_mutex_lock(&watch->mu);
        assert_false(watch->ended);
        watch->events = reallocarray(watch->events, watch->n + 1, sizeof *watch->events);
        assert_non_null(watch->events);
        read_event(from, &watch->events[watch->n++]);
        pthread_cond_broadcast(&watch->cond);
        pthread_mutex_unlock(&watch->mu);
}

static void on_end(void *ctx, int error, const struct hf_status *status) {
        struct client_watch *watch = ctx;

        pthread_mutex_lock(&watch->mu);
        assert_false(watch->ended);
        watch->ended = true;
        watch->error = error;
        pthread_cond_broadcast(&watch->cond);
        pthread_mutex_unlock(&watch->mu);
}

struct client_watch *client_watch_new(struct hf_client *client, const struct hf_watch_spec *spec) {
        struct client_watch *watch = calloc(1, sizeof *watch);

        assert_non_null(watch);
        assert_int_equal(hf__mutex_cond_init(&watch->mu, &watch->cond), 0);
        assert_int_equal(hf_client_watch(client, spec, on_event, on_end, watch, &watch->id), 0);
        return watch;
}

void client_watch_free(struct client_watch *watch) {
        assert_true(watch->ended);
        free(watch->events);
        pthread_cond_destroy(&watch->cond);
        pthread_mutex_destroy(&watch->mu);
        free(watch);
}

void client_watch_await(struct client_watch *watch, size_t n) {
        pthread_mutex_lock(&watch->mu);
        PATIENCE_AWAIT_LOCKED(&watch->cond, &watch->mu, watch->n >= n || watch->ended);
        assert_true(watch->n >= n);
        pthread_mutex_unlock(&watch->mu);
}

int client_watch_await_end(struct client_watch *watch) {
        pthread_mutex_lock(&watch->mu);
        PATIENCE_AWAIT_LOCKED(&watch->cond, &watch->mu, watch->ended);
        int error = watch->error;
        pthread_mutex_unlock(&watch->mu);
        return error;
}

void client_watch_expect(struct client_watch *watch, size_t i, enum hf_event_type type,
                         const char *name) {
        client_watch_await(watch, i + 1);
        pthread_mutex_lock(&watch->mu); /* on_event moves the events when more of them come */
        const struct client_watch_event event = watch->events[i];
        pthread_mutex_unlock(&watch->mu);
        assert_int_equal(event.type, type);
        assert_string_equal(event.name, name);
}
