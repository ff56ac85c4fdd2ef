/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A request to the core of the API, past its clients: for what a client has no verb for (patches)
 * or no way to ask for (other forms of a response).
 */
#include "api_response.h"
#include "server/registry/request.h"

struct hfd_registry;

struct api_core_request {
        struct hfd_request request; /* first: done is given this. The test sets what to do */
        struct api_response response;
};

/* Carries it out and waits. Returns the response's error; the response is the caller's to deinit.
 */
int api_core_request_run(struct hfd_registry *registry, struct api_core_request *request);
