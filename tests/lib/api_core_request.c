/* SPDX-License-Identifier: Apache-2.0 */
/* See api_core_request.h. The options are freed here, because the core only borrows the request. */
#include "api_core_request.h"

#include <stdio.h>

#include "base/strbuf.h"
#include "server/registry/registry.h"
#include "time_units.h"

static void on_done(struct hfd_request *base, const struct hfd_response *from) {
        struct api_core_request *request = (struct api_core_request *)base;
        struct hf_response response = {.size = sizeof response,
                                       .error = from->status.error,
                                       .status = from->status,
                                       .body = from->body->data,
                                       .n_body = from->body->n,
                                       .fence_echoed = from->fence_compared};

        response.status.http_code = from->code;
        if (base->options.strict.lines.data)
                (void)snprintf(request->warnings, sizeof request->warnings, "%s",
                               base->options.strict.lines.data);
        api_response_fill(&request->response, &response);
}

void api_core_request_begin(struct hfd_registry *registry, struct api_core_request *request) {
        api_response_init(&request->response);
        request->request.done = on_done;
        if (!request->request.deadline)
                request->request.deadline = in_msec(20000);
        hfd_registry_serve(registry, &request->request);
}

int api_core_request_wait(struct api_core_request *request) {
        int r = api_response_wait(&request->response);

        hfd_options_done(&request->request.options);
        return r;
}

int api_core_request_run(struct hfd_registry *registry, struct api_core_request *request) {
        api_core_request_begin(registry, request);
        return api_core_request_wait(request);
}
