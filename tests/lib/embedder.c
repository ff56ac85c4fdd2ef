/* SPDX-License-Identifier: Apache-2.0 */
/* See embedder.h. Each callback of the library records the stack of the thread that it runs on. */
#include "embedder.h"

#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include <holdfast/health.h>
#include <holdfast/metrics.h>

#include "base/thread.h"

#define GUARD (60 * HF_NSEC_PER_SEC) /* how long a test waits at most */

static void record_stack(struct embedder *e) {
        pthread_attr_t attr;
        void *low;
        size_t n = 0;

        assert(pthread_getattr_np(pthread_self(), &attr) == 0);
        assert(pthread_attr_getstack(&attr, &low, &n) == 0);
        (void)pthread_attr_destroy(&attr);
        pthread_mutex_lock(&e->mu);
        e->least_stack = n < e->least_stack ? n : e->least_stack;
        e->most_stack = n > e->most_stack ? n : e->most_stack;
        pthread_cond_broadcast(&e->changed);
        pthread_mutex_unlock(&e->mu);
}

int embedder_controller(struct hf_term *term, void *ctx) {
        struct embedder *e = ctx;

        record_stack(e);
        pthread_mutex_lock(&e->mu);
        e->leads = true;
        pthread_cond_broadcast(&e->changed);
        pthread_mutex_unlock(&e->mu);
        (void)hf_cancel_wait(hf_term_drain(term), HF_NSEC_NEVER);
        pthread_mutex_lock(&e->mu);
        e->n_ended++;
        e->leads = false;
        pthread_cond_broadcast(&e->changed);
        pthread_mutex_unlock(&e->mu);
        return 0;
}

static void on_change(void *ctx, const struct hf_leader_info *info) { record_stack(ctx); }

static const struct hf_leader_timing quick = {
        .lease_duration = 2 * HF_NSEC_PER_SEC,
        .renew_deadline = 1 * HF_NSEC_PER_SEC,
        .retry_period = 200 * HF_NSEC_PER_MSEC,
        .request_timeout = 300 * HF_NSEC_PER_MSEC,
};

struct hf_elector_config embedder_config(struct embedder *e, const struct hf_controller *it) {
        return (struct hf_elector_config){.size = sizeof(struct hf_elector_config),
                                          .ns = "default",
                                          .name = "lead",
                                          .identity = "me",
                                          .client = &e->client->base,
                                          .timing = quick,
                                          .controllers = it,
                                          .n_controllers = 1,
                                          .on_change = on_change,
                                          .ctx = e};
}

struct embedder *embedder_new(void) {
        struct embedder *e = calloc(1, sizeof *e);
        const struct hf_rest_config rest = {.size = sizeof rest, .server = "http://127.0.0.1:1"};
        struct hf_status status = {0};

        assert_non_null(e);
        e->least_stack = SIZE_MAX;
        assert_int_equal(hf__mutex_cond_init(&e->mu, &e->changed), 0);
        e->api = fake_api_new();
        e->client = fake_api_client_new(e->api);
        e->host = (struct hf_host){.size = sizeof e->host, .thread_stack_bytes = EMBEDDER_STACK};
        assert_int_equal(hf_health_new(&e->host.health), 0);
        assert_int_equal(hf_metrics_new(&e->host.metrics), 0);
        assert_int_equal(hf_rest_client_new(&e->host, &rest, &e->rest, &status), 0);
        const struct hf_controller it = {.size = sizeof it,
                                         .name = "worker",
                                         .run = embedder_controller,
                                         .ctx = e};
        const struct hf_elector_config config = embedder_config(e, &it);
        assert_int_equal(hf_electors_new(&e->host, &e->electors), 0);
        assert_int_equal(hf_electors_add(e->electors, &config, &e->elector, &status), 0);
        return e;
}

void embedder_await_leading(struct embedder *e) {
        const struct hf_clock *clock = hf_clock_system();
        hf_nsec until = hf_now(clock) + GUARD;

        pthread_mutex_lock(&e->mu);
        while (!e->leads)
                assert_int_equal(clock->wait(clock->ctx, &e->changed, &e->mu, until), 0);
        pthread_mutex_unlock(&e->mu);
}

void embedder_free(struct embedder *e) {
        hf_electors_free(e->electors);
        hf_client_free(e->rest);
        hf_client_free(&e->client->base);
        fake_api_free(e->api);
        hf_metrics_free(e->host.metrics);
        hf_health_free(e->host.health);
        pthread_cond_destroy(&e->changed);
        pthread_mutex_destroy(&e->mu);
        free(e);
}
