/* SPDX-License-Identifier: Apache-2.0 */
/* See counting_host.h. */
#include "counting_host.h"

atomic_int counting_host_n_uses;

hf_nsec counting_host_now(void *ctx) {
        atomic_fetch_add(&counting_host_n_uses, 1);
        return hf_now(hf_clock_system());
}

void counting_host_write(void *ctx, enum hf_log_level level, const char *component,
                         const char *message) {
        atomic_fetch_add(&counting_host_n_uses, 1);
}
