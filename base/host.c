/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks and reads the struct of a host. Invariant: no function reads a member beyond the struct's
 * `size`. hf__host_check runs when an object is created with the host, so later reads of the
 * members up to `health` need no check.
 */
#include "base/host.h"

#include "base/sized_struct.h"

static const struct hf__sized sized_host = HF__SIZED(struct hf_host, health);
static const struct hf__sized sized_clock = HF__SIZED(struct hf_clock, ctx);

int hf__clock_check(const struct hf_clock *clock, struct hf_status *reterr_status) {
        return clock ? hf__sized_check(&sized_clock, clock, reterr_status) : 0;
}

int hf__host_check(const struct hf_host *host, struct hf_status *reterr_status) {
        int r = hf__sized_check(&sized_host, host, reterr_status);

        return r == 0 ? hf__clock_check(host->clock, reterr_status) : r;
}

size_t hf__host_stack_bytes(const struct hf_host *host) {
        return HF__SIZED_HAS(host, thread_stack_bytes) ? host->thread_stack_bytes : 0;
}
