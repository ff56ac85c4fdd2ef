/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A request that goes to the API core directly. Tests use it for what an hf_client cannot send,
 * such as requests for other forms of a response.
 */
#include "api_response.h"
#include "server/registry/request.h"

struct hfd_registry;

struct api_core_request {
        /* Must be first, because done() gets its address. The test sets what to do. */
        struct hfd_request request;
        struct api_response response;
        char warnings[200]; /* the mistakes in the body, cut; set when the response is there */
};

/* Carries it out and waits. Returns the response's error. The caller deinitializes the response. */
int api_core_request_run(struct hfd_registry *registry, struct api_core_request *request);
