/* SPDX-License-Identifier: Apache-2.0 */
/* See api_response.h. It asserts that each request gets exactly one response. */
#include "api_response.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "patience.h"

void api_response_init(struct api_response *response) {
        *response = (struct api_response){0};
        pthread_mutex_init(&response->mu, NULL);
        int r = hf_cond_init(&response->cond);
        assert(r == 0);
}

void api_response_deinit(struct api_response *response) {
        free(response->body);
        pthread_cond_destroy(&response->cond);
        pthread_mutex_destroy(&response->mu);
}

void api_response_fill(void *ctx, const struct hf_response *reply) {
        struct api_response *response = ctx;

        pthread_mutex_lock(&response->mu);
        assert(!response->done);
        response->done = true;
        response->error = reply->error;
        response->fence_echoed = reply->fence_echoed;
        response->status = reply->status;
        response->body = reply->body ? strndup(reply->body, reply->n_body) : NULL;
        pthread_cond_signal(&response->cond);
        pthread_mutex_unlock(&response->mu);
}

int api_response_wait(struct api_response *response) {
        pthread_mutex_lock(&response->mu);
        PATIENCE_AWAIT_LOCKED(&response->cond, &response->mu, response->done);
        pthread_mutex_unlock(&response->mu);
        return response->error;
}
