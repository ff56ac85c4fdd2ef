/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the options of a delete. The input is a query, a NUL, and a body of DeleteOptions.
 * Accepted input must name one propagation policy, and a refusal must have a message.
 */
#undef NDEBUG
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/registry/base/delete_options.h"
#include "server/registry/write/body.h"
#include "server/resources/rows/resource_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(struct hfd_request *request) {
        struct hfd_response response = {0};
        struct hf__json *sent = NULL;

        bool good = (!request->n_body ||
                     hfd_write_body_parse(request, "DeleteOptions", &sent, &response)) &&
                    hfd_delete_options_read(&request->options, sent, &response);
        if (good) {
                assert(!request->options.has_orphan ||
                       request->options.propagation == HFD_PROPAGATE_UNSET);
                assert(!response.body);
        } else {
                assert(response.code == 400 || response.code == 422);
                assert(response.body && response.status.error && *response.status.message);
        }
        hf__json_free(sent);
        hfd_response_done(&response);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        const uint8_t *cut = n ? memchr(data, 0, n) : NULL;
        struct hfd_request request = {.verb = HFD_DELETE_COLLECTION,
                                      .resource = hfd_resource_find("", "v1", "configmaps")};
        struct hfd_response response = {0};

        if (!cut)
                return 0;
        request.body = cut + 1;
        request.n_body = n - (size_t)(cut - data) - 1;
        if (hfd_options_parse(&request, (const char *)data, &response))
                check(&request);
        else
                assert(response.code == 400 || response.code == 422);
        hfd_response_done(&response);
        hfd_options_done(&request.options);
        return 0;
}
