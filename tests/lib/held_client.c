/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See held_client.h. Request i has the id HELD_ID + i, and watch i too: `held` keeps each of them
 * until the next held_client_init, also after its end, so an end that comes twice is found.
 */
#undef NDEBUG
#include "held_client.h"

#include <assert.h>
#include <string.h>

struct held_client held;

static int on_request(struct hf_client *self, const struct hf_request *from, hf_response_fn done,
                      void *ctx, uint64_t *ret_id) {
        if (held.during)
                held.during();
        if (held.fail)
                return held.fail;
        assert(held.n_requests < HELD_MAX && from->n_body < sizeof held.requests[0].body);
        struct held_request *request = &held.requests[held.n_requests++];
        *request =
                (struct held_request){.request = *from, .done = done, .ctx = ctx, .is_open = true};
        if (from->fence)
                request->fence = *from->fence;
        if (from->n_body)
                memcpy(request->body, from->body, from->n_body);
        if (ret_id)
                *ret_id = HELD_ID + held.n_requests - 1;
        return 0;
}

static void on_cancel(struct hf_client *self, uint64_t id) {
        assert(id >= HELD_ID && id < HELD_ID + held.n_requests);
        held.requests[id - HELD_ID].n_cancels++;
}

static int on_watch(struct hf_client *self, const struct hf_watch_spec *spec, hf_event_fn on_event,
                    hf_watch_end_fn on_end, void *ctx, uint64_t *ret_id) {
        if (held.during)
                held.during();
        if (held.fail)
                return held.fail;
        assert(held.n_watches < HELD_MAX);
        held.watches[held.n_watches++] = (struct held_watch){.spec = *spec,
                                                             .on_event = on_event,
                                                             .on_end = on_end,
                                                             .ctx = ctx,
                                                             .is_open = true};
        if (ret_id)
                *ret_id = HELD_ID + held.n_watches - 1;
        return 0;
}

static void on_watch_cancel(struct hf_client *self, uint64_t id) {
        assert(id >= HELD_ID && id < HELD_ID + held.n_watches);
        held.watches[id - HELD_ID].n_cancels++;
}

static void on_free(struct hf_client *self) {}

void held_client_init(const struct hf_host *host) {
        static const struct hf_client_ops ops = {.size = sizeof ops,
                                                 .request = on_request,
                                                 .cancel = on_cancel,
                                                 .watch = on_watch,
                                                 .watch_cancel = on_watch_cancel,
                                                 .free = on_free};

        held = (struct held_client){.base = {.ops = &ops, .host = host}};
}

void held_respond(unsigned number, int error, const struct hf_status *status, const char *body) {
        struct held_request *request = &held.requests[number];
        struct hf_response response = {.size = sizeof response,
                                       .error = error,
                                       .body = body,
                                       .n_body = body ? strlen(body) : 0,
                                       .fence_echoed = held.echoes,
                                       .status = {.error = error}};

        assert(number < held.n_requests && request->is_open);
        request->is_open = false;
        if (status)
                response.status = *status;
        request->done(request->ctx, &response);
}

void held_event(unsigned watch, enum hf_event_type type, const char *object) {
        assert(watch < held.n_watches && held.watches[watch].is_open);
        const struct hf_event event = {.type = type, .object = object, .n_object = strlen(object)};

        held.watches[watch].on_event(held.watches[watch].ctx, &event);
}

void held_end_watch(unsigned watch, int error) {
        assert(watch < held.n_watches && held.watches[watch].is_open);
        held.watches[watch].is_open = false;
        held.watches[watch].on_end(held.watches[watch].ctx, error, NULL);
}
