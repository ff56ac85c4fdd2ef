/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes what a delete is told: a query, a NUL, a body of DeleteOptions. What is taken must say one
 * thing about the dependents, and what is refused must say why.
 */
#undef NDEBUG
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/registry/write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(struct hfd_call *call) {
        struct hfd_answer answer = {0};
        struct hf__json *sent = NULL;

        bool good = (!call->n_body || hfd_body_parse(call, "DeleteOptions", &sent, &answer)) &&
                    hfd_delete_options_read(&call->options, sent, &answer);
        if (good) {
                assert(!call->options.has_orphan ||
                       call->options.propagation == HFD_PROPAGATE_UNSET);
                assert(!answer.body);
        } else {
                assert(answer.code == 400 || answer.code == 422);
                assert(answer.body && answer.status.error && *answer.status.message);
        }
        hf__json_free(sent);
        hfd_answer_done(&answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        const uint8_t *cut = n ? memchr(data, 0, n) : NULL;
        struct hfd_call call = {.verb = HFD_DELETE_MANY,
                                .resource = hfd_resource_find("", "v1", "configmaps")};
        struct hfd_answer answer = {0};

        if (!cut)
                return 0;
        call.body = cut + 1;
        call.n_body = n - (size_t)(cut - data) - 1;
        if (hfd_options_parse(&call, (const char *)data, &answer))
                check(&call);
        else
                assert(answer.code == 400 || answer.code == 422);
        hfd_answer_done(&answer);
        hfd_options_done(&call.options);
        return 0;
}
