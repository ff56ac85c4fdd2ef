/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads a struct hf_host and the clock in it. The host program may have been compiled with an older
 * release, in which struct hf_host was shorter. So only the functions of this header read the
 * members that later releases added. Both structs are borrowed. Pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/clock.h>
#include <holdfast/error.h>
#include <holdfast/host.h>

/* Every public function that takes a host and makes an object calls this. 0, or -EINVAL with a
 * message. */
int hf__host_check(const struct hf_host *host, struct hf_status *reterr_status);
/* The same for a clock; NULL stands for the system clock. */
int hf__clock_check(const struct hf_clock *clock, struct hf_status *reterr_status);
/* now + period, at most HF_NSEC_NEVER. Neither argument may be negative. */
static inline hf_nsec hf__nsec_after(hf_nsec now, hf_nsec period) {
        return period < HF_NSEC_NEVER - now ? now + period : HF_NSEC_NEVER;
}
/* The stack size that the host wants for each thread, in bytes; 0 = the default. */
size_t hf__host_stack_bytes(const struct hf_host *host);
