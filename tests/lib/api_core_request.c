/* SPDX-License-Identifier: Apache-2.0 */
/* See api_core_request.h. The options are freed here, because the core only borrows the request. */
#include "api_core_request.h"

#include "base/strbuf.h"
#include "server/registry/registry.h"
#include "time_units.h"

static void on_done(struct hfd_request *call, const struct hfd_response *answer) {
        struct api_core_request *request = (struct api_core_request *)call;
        struct hf_response reply = {.error = answer->status.error,
                                    .status = answer->status,
                                    .body = answer->body->data,
                                    .n_body = answer->body->n,
                                    .fence_echoed = answer->fence_compared};

        reply.status.http_code = answer->code;
        api_response_fill(&request->response, &reply);
}

int api_core_request_run(struct hfd_registry *registry, struct api_core_request *request) {
        api_response_init(&request->response);
        request->request.done = on_done;
        if (!request->request.deadline)
                request->request.deadline = in_msec(20000);
        hfd_registry_serve(registry, &request->request);
        int r = api_response_wait(&request->response);
        hfd_options_done(&request->request.options);
        return r;
}
