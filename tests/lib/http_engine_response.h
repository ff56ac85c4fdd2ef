/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a request to the HTTP engine came to: filled by the engine's callbacks, waited for by the
 * test. Its address is the request's ctx. Waiting fails when it takes too long. Thread: any.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "base/http/engine.h"

struct http_engine_response {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        int n_done; /* how often it ended: once */
        int outcome, code, grpc_status;
        int head_code;    /* by on_head */
        int stop_at_data; /* on_data returns it */
        uint32_t retry_after_s;
        char body[512]; /* the beginning of it */
        char data[64];  /* by on_data */
        char grpc_message[64], fence[64], error_text[256];
        size_t n_body;
};

void http_engine_response_init(struct http_engine_response *response);
void http_engine_response_deinit(struct http_engine_response *response);

/* The engine's callbacks. */
int http_engine_response_on_head(void *ctx, int code);
int http_engine_response_on_data(void *ctx, const void *data, size_t n);
void http_engine_response_on_done(void *ctx, const struct hf__http_result *result);

/* Waits until it has ended, and asserts that it ended once. */
void http_engine_response_wait(struct http_engine_response *response);
/* Waits until on_data was called with these bytes in all. */
void http_engine_response_wait_data(struct http_engine_response *response, const char *expected);
