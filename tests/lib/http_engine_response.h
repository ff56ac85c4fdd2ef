/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The result of a request to the HTTP engine. The engine's callbacks fill it, the test waits for
 * it. Its address is the ctx of the request. Waiting aborts after PATIENCE_MSEC. Thread: any.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "base/http/engine.h"

struct http_engine_response {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        int n_done; /* how often the request ended; must be 1 */
        int outcome, code;
        bool not_sent, no_memory;
        int head_code;    /* set by on_head */
        int stop_at_data; /* the value that on_data returns */
        uint32_t retry_after_s;
        char body[512]; /* the beginning of the body */
        char data[64];  /* set by on_data */
        char fence[64], error_text[256];
        size_t n_body;
};

void http_engine_response_init(struct http_engine_response *response);
void http_engine_response_deinit(struct http_engine_response *response);

/* The engine's callbacks. */
int http_engine_response_on_head(void *ctx, int code);
int http_engine_response_on_data(void *ctx, const void *data, size_t n);
void http_engine_response_on_done(void *ctx, const struct hf__http_result *result);

/* Waits until the request has ended, and asserts that it ended once. */
void http_engine_response_wait(struct http_engine_response *response);
/* Waits until on_data has received exactly these bytes. */
void http_engine_response_wait_data(struct http_engine_response *response, const char *expected);
