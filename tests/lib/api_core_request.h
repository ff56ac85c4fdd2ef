/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A request that goes to the API core directly. Tests use it for requests that an hf_client cannot
 * send, for example for another form of the response.
 */
#include "api_response.h"
#include "server/registry/base/request.h"

struct hfd_registry;

struct api_core_request {
        /* Must be first, because done() gets its address. The test sets its members except done. */
        struct hfd_request request;
        struct api_response response;
        char warnings[200]; /* the mistakes in the body, cut; set when the response is there */
};

/* Serves the request, and waits for the response. A request without a deadline gets one of 20 s.
 * Returns the response's error. The caller deinitializes the response. */
int api_core_request_run(struct hfd_registry *registry, struct api_core_request *request);
/* The same in two steps. The request must stay until the second one, which is called once. */
void api_core_request_begin(struct hfd_registry *registry, struct api_core_request *request);
int api_core_request_wait(struct api_core_request *request);
