/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submits large writes to the pool, and bounds those that wait for it.
 *
 * Invariant: the number of new writes that wait is bounded, also for clients that send a write and
 * leave at once, whose requests no longer count as in flight. A write that has begun, for example
 * one that is tried again after a conflict, is not refused: it was accepted before.
 */
#include "server/registry/base/large_work.h"

#include <assert.h>
#include <errno.h>

#include "server/pool/work_pool.h"

int hfd_large_work_submit(struct hfd_registry *registry, struct hfd_work_task *task, bool bounded) {
        assert(registry->work && task->step);
        if (bounded && hfd_work_pending(registry->work) >= HFD_LARGE_WORK_MAX)
                return HF_E_TOO_MANY;
        task->long_step = true; /* it decodes, computes or encodes a whole object */
        return hfd_work_submit(registry->work, task) ? 0 : HF_E_CLOSED;
}

void hfd_large_work_refuse(int r, struct hfd_response *response) {
        static const struct hfd_details details = {.retry_after_s = 1};

        assert(r != 0);
        if (r == -ENOMEM)
                hfd_response_no_memory(response);
        else if (r == HF_E_TOO_MANY)
                hfd_response_status(response, HF_E_TOO_MANY, 429, "TooManyRequests",
                                    "Too many requests, please try again later.", &details);
        else
                hfd_response_store_error(response, HF_E_UNAVAILABLE, NULL);
}
