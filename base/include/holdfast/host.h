/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the embedding host gives the library: clock, log, metrics, thread attributes.
 *
 * One struct hf_host per process is usual. It is borrowed by every object made with it and must
 * outlive them. The host owns the process: the library installs no signal handler, calls no exit,
 * abort or fork; its threads block all signals. Two duties stay with the host: call
 * curl_global_init(CURL_GLOBAL_DEFAULT) before the first thread, and ignore SIGPIPE (OpenSSL inside
 * libcurl writes with write(2)).
 */
#include <stddef.h>

#include <holdfast/clock.h>
#include <holdfast/log.h>

struct hf_metrics;
struct hf_health;

struct hf_host {
        size_t size;                  /* sizeof(struct hf_host) */
        const struct hf_clock *clock; /* NULL = hf_clock_system() */
        struct hf_log log;            /* zero = silent */
        struct hf_metrics *metrics;   /* borrowed; NULL = no metrics */
        struct hf_health *health;     /* borrowed; NULL = no health checks registered */
        size_t thread_stack_bytes;    /* of each library thread; 0 = 256 KiB; at least 64 KiB */
};

static inline const struct hf_clock *hf_host_clock(const struct hf_host *host) {
        return host->clock ? host->clock : hf_clock_system();
}
