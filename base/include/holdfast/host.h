/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The embedding program (the host) gives these to the library: clock, log, metrics, health checks
 * and the stack size of threads.
 *
 * One struct hf_host per process is usual. Every object made with it borrows it, so it must outlive
 * them all. The host owns the process: the library installs no signal handler, never calls exit or
 * fork, and calls abort only through assert; its threads block all signals. A host that uses the
 * REST client has two duties: it calls curl_global_init(CURL_GLOBAL_DEFAULT) before it starts the
 * first thread, and it ignores SIGPIPE, because TLS inside libcurl may write to a socket with
 * write(2).
 */
#include <stddef.h>

#include <holdfast/clock.h>
#include <holdfast/log.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_metrics;
struct hf_health;

struct hf_host {
        size_t size;                  /* sizeof(struct hf_host) */
        const struct hf_clock *clock; /* NULL = hf_clock_system() */
        struct hf_log log;            /* zero = no log */
        struct hf_metrics *metrics;   /* borrowed; NULL = no metrics */
        struct hf_health *health;     /* borrowed; NULL = no health checks */
        size_t thread_stack_bytes; /* per library thread, at least 64 KiB; 0 = 256 KiB. The library
                                    * adds 1 MiB of addresses for deeply nested JSON */
};

/* The host's clock, or the system's clock if the host has set none. Thread: any. */
static inline const struct hf_clock *hf_host_clock(const struct hf_host *host) {
        return host->clock ? host->clock : hf_clock_system();
}

#ifdef __cplusplus
}
#endif
