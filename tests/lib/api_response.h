/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A copy of the response to a request, for a test that waits for it. If no response comes within
 * PATIENCE_MSEC, the wait ends the test program. Thread: one thread waits, any thread may fill the
 * copy.
 */
#include <pthread.h>
#include <stdbool.h>

#include <holdfast/client.h>

struct api_response {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        bool done;
        int error;
        bool fence_echoed;
        char *body; /* owned; NULL = none */
        struct hf_status status;
};

void api_response_init(struct api_response *response);
void api_response_deinit(struct api_response *response);
/* The callback for a request; ctx is the api_response. */
void api_response_fill(void *ctx, const struct hf_response *reply);
int api_response_wait(struct api_response *response); /* returns response->error */
