/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See http_engine_response.h. The engine's thread writes and the test's thread waits; both hold the
 * mutex.
 */
#include "http_engine_response.h"

#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread.h"
#include "patience.h"

void http_engine_response_init(struct http_engine_response *response) {
        *response = (struct http_engine_response){0};
        assert_int_equal(hf__mutex_cond_init(&response->mu, &response->cond), 0);
}

void http_engine_response_deinit(struct http_engine_response *response) {
        pthread_mutex_destroy(&response->mu);
        pthread_cond_destroy(&response->cond);
}

int http_engine_response_on_head(void *ctx, int code) {
        struct http_engine_response *response = ctx;

        pthread_mutex_lock(&response->mu);
        response->head_code = code;
        pthread_cond_broadcast(&response->cond);
        pthread_mutex_unlock(&response->mu);
        return 0;
}

int http_engine_response_on_data(void *ctx, const void *data, size_t n) {
        struct http_engine_response *response = ctx;

        pthread_mutex_lock(&response->mu);
        assert(strlen(response->data) + n < sizeof response->data);
        strncat(response->data, data, n);
        pthread_cond_broadcast(&response->cond);
        int r = response->stop_at_data;
        pthread_mutex_unlock(&response->mu);
        return r;
}

void http_engine_response_on_done(void *ctx, const struct hf__http_result *result) {
        struct http_engine_response *response = ctx;
        size_t n = sizeof response->body - 1;

        if (result->n_body < n)
                n = result->n_body;
        pthread_mutex_lock(&response->mu);
        response->n_done++;
        response->not_sent = result->not_sent;
        response->no_memory = result->no_memory;
        response->outcome = result->outcome;
        response->code = result->code;
        response->n_body = result->n_body;
        response->retry_after_s = result->retry_after_s;
        (void)snprintf(response->body, sizeof response->body, "%.*s", (int)n,
                       (const char *)result->body);
        (void)snprintf(response->fence, sizeof response->fence, "%s",
                       result->fence_echo ? result->fence_echo : "(none)");
        (void)snprintf(response->error_text, sizeof response->error_text, "%s", result->error_text);
        pthread_cond_broadcast(&response->cond);
        pthread_mutex_unlock(&response->mu);
}

void http_engine_response_wait(struct http_engine_response *response) {
        pthread_mutex_lock(&response->mu);
        PATIENCE_AWAIT_LOCKED(&response->cond, &response->mu, response->n_done > 0);
        assert_int_equal(response->n_done, 1);
        pthread_mutex_unlock(&response->mu);
}

void http_engine_response_wait_data(struct http_engine_response *response, const char *expected) {
        pthread_mutex_lock(&response->mu);
        PATIENCE_AWAIT_LOCKED(&response->cond, &response->mu,
                              strcmp(response->data, expected) == 0);
        pthread_mutex_unlock(&response->mu);
}
