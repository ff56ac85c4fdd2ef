/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Members of a host (its clock and its log) that count how often they are used, to show that
 * something does not use its host any more. Thread: any.
 */
#include <stdatomic.h>

#include <holdfast/host.h>

extern atomic_int counting_host_n_uses; /* the test sets it to 0 */

hf_nsec counting_host_now(void *ctx); /* the boot time */
void counting_host_write(void *ctx, enum hf_log_level level, const char *component,
                         const char *message);
