/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of an event loop, over an API server in memory. The loop's thread and another one start
 * requests and watches and cancel some, and the loop's thread frees the client at any moment.
 *
 * Promised: callbacks run on the loop's thread, which is woken for them; each request gets one
 * response, and each watch one end, after its events; the free returns, and everything has ended
 * then; a callback that runs meanwhile can start nothing.
 */
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <holdfast/client.h>
#include <holdfast/error.h>
#include <holdfast/loop.h>

#include "fake_api_client.h"
#include "threads.h"

enum { MAX_OPS = 12 };

static struct {
        struct fake_api *api;
        struct fake_api_client *inner;
        struct hf_loop *loop;
        struct hf_client *client;
        pthread_t thread; /* the loop's */
        struct op {
                uint64_t id;
                bool is_watch, has_ended;
        } ops[MAX_OPS];
        unsigned n_ops, n_requests; /* n_requests: without a response */
        bool is_ending;
} p;

static void start_one(void);

/* ---- callbacks ---- */

static void check_callback(const struct op *op) {
        BATON_CHECK(pthread_equal(pthread_self(), p.thread));
        BATON_CHECK(!op->has_ended);
}

static void on_response(void *ctx, const struct hf_response *response) {
        struct op *op = ctx;

        check_callback(op);
        op->has_ended = true;
        p.n_requests--;
        if (baton_random(4) == 0)
                start_one();
}

static void on_event(void *ctx, const struct hf_event *event) { check_callback(ctx); }

static void on_end(void *ctx, int error, const struct hf_status *status) {
        struct op *op = ctx;

        check_callback(op);
        op->has_ended = true;
        if (baton_random(4) == 0)
                start_one();
}

/* ---- starting; any thread ---- */

static const struct hf_resource things = {"", "v1", "things"};

static void start_one(void) {
        const struct hf_request request = {.size = sizeof request,
                                           .verb = HF_VERB_GET,
                                           .resource = things,
                                           .ns = "ns",
                                           .name = "a"};
        const struct hf_watch_spec watch = {.size = sizeof watch, .resource = things};
        struct op *op = &p.ops[p.n_ops];
        int r;

        if (p.n_ops == MAX_OPS)
                return;
        p.n_ops++;
        op->is_watch = baton_random(2) == 0;
        p.n_requests += !op->is_watch;
        if (op->is_watch)
                r = hf_client_watch(p.client, &watch, on_event, on_end, op, &op->id);
        else
                r = hf_client_request(p.client, &request, on_response, op, &op->id);
        BATON_CHECK(r == (p.is_ending ? HF_E_CLOSED : 0));
        if (r == 0)
                return;
        op->has_ended = true;
        p.n_requests -= !op->is_watch;
}

static void cancel_one(void) {
        const struct op *op = &p.ops[baton_random(MAX_OPS)];

        if (op->id && op->is_watch)
                hf_client_watch_cancel(p.client, op->id);
        else if (op->id)
                hf_client_cancel(p.client, op->id);
}

static void *start_some(void *ctx) {
        for (uint64_t left = baton_random(5); left > 0; left--) {
                start_one();
                if (baton_random(3) == 0)
                        cancel_one();
                if (baton_random(3) == 0)
                        (void)fake_api_put_thing(p.api, "ns", "a", "1");
        }
        return NULL;
}

static void *disturb(void *ctx) {
        for (uint64_t left = baton_random(4); left > 0; left--) {
                (void)fake_api_put_thing(p.api, "ns", "b", "1");
                if (baton_random(3) == 0)
                        fake_api_end_watches(p.api, HF_E_GONE, NULL);
        }
        return NULL;
}

/* ---- the loop ---- */

/* Dispatches whenever the loop's descriptor is readable, until all requests have their responses.
 */
static void await_responses(void) {
        int epoll = epoll_create1(EPOLL_CLOEXEC);
        struct epoll_event event = {.events = EPOLLIN};

        BATON_CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, hf_loop_fd(p.loop), &event) == 0);
        while (p.n_requests > 0) {
                BATON_CHECK(epoll_wait(epoll, &event, 1, -1) == 1);
                BATON_CHECK(hf_loop_dispatch(p.loop) > 0);
        }
        (void)close(epoll);
}

void loop_client(void) {
        memset(&p, 0, sizeof p);
        p.thread = pthread_self();
        p.api = fake_api_new();
        p.inner = fake_api_client_new(p.api);
        BATON_CHECK(hf_loop_new(&p.loop) == 0);
        BATON_CHECK(hf_loop_client_new(p.loop, &p.inner->base, &p.client) == 0);
        pthread_t other = scenario_thread("other", start_some, NULL);
        pthread_t disturber = scenario_thread("disturber", disturb, NULL);
        (void)start_some(NULL);
        if (baton_random(2) == 0)
                (void)hf_loop_dispatch(p.loop);
        (void)hf__thread_join(other); /* it must not use the client any more */
        if (baton_random(2) == 0)
                await_responses();
        p.is_ending = true;
        p.client = hf_client_free(p.client);
        for (unsigned i = 0; i < p.n_ops; i++)
                BATON_CHECK(p.ops[i].has_ended);
        BATON_CHECK(hf_loop_dispatch(p.loop) == 0);
        (void)hf__thread_join(disturber);
        baton_be_quick();
        p.loop = hf_loop_free(p.loop);
        hf_client_free(&p.inner->base);
        fake_api_free(p.api);
}
