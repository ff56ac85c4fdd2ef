/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Connections that the server closed because a limit was reached: counted in a metric, and reported
 * by log lines at most every ten seconds, so that a flood of connections does not flood the log.
 *
 * Threads: any for hfd_refusals_count; worker 0 for hfd_refusals_report. No lock.
 */
#include <stdatomic.h>
#include <stddef.h>

#include <holdfast/host.h>
#include <holdfast/metrics.h>

enum hfd_refusal {
        HFD_REFUSAL_HANDSHAKES,  /* the limit of unfinished TLS handshakes was reached */
        HFD_REFUSAL_STRANGERS,   /* the limit of unauthenticated clients was reached */
        HFD_REFUSAL_CONNECTIONS, /* the server had its maximum of connections */
        HFD_REFUSAL_DESCRIPTORS, /* the process had no file descriptor left */
        HFD_N_REFUSALS
};

struct hfd_refusals {
        const struct hf_host *host;                /* borrowed */
        struct hf_metric *metrics[HFD_N_REFUSALS]; /* borrowed from the host */
        _Atomic size_t n[HFD_N_REFUSALS];          /* since the last report */
        hf_nsec next_report;                       /* boot time; worker 0 only */
};

/* refusals must be zeroed: the counts and next_report are not set. */
void hfd_refusals_init(struct hfd_refusals *refusals, const struct hf_host *host);
void hfd_refusals_count(struct hfd_refusals *refusals, enum hfd_refusal why);
/* Logs what was counted since the last report, unless that was less than ten seconds ago.
 * max_connections is named in the message. */
void hfd_refusals_report(struct hfd_refusals *refusals, hf_nsec now, size_t max_connections);
