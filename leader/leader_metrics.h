/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The metrics of one elector: the field's names where the field has them, holdfast_leader_* else.
 * Handles may be NULL.
 */
#include <holdfast/host.h>
#include <holdfast/metrics.h>

struct hf__leader_metrics {
        struct hf_metric *master_status; /* leader_election_master_status{name}: 1 while leading */
        struct hf_metric *slowpath; /* leader_election_slowpath_total{name}: reads a leader needed
                                       to settle a renewal */
        struct hf_metric *term;     /* of ours, 0 = not leading */
        struct hf_metric *transitions; /* changes of holder seen */
        struct hf_metric *gap_seconds; /* before our last term: since the former holder's last sign
                                          of life or release */
        struct hf_metric *remaining;   /* seconds until this process may no longer act */
        struct hf_metric *renew_seconds; /* successful lease writes, from sending to the answer */
        struct hf_metric *stop_seconds;  /* from drain or abort to joined */
        struct hf_metric *stale_writes;  /* writes that ended a term: refused by the fence, or
                                            without its echo */
        struct hf_metric *failed_by[6];  /* lease operations by reason */
        struct hf_metric *is_stuck;      /* 1 = work ignored its tokens */
        struct hf_metric *silence;       /* seconds since the Lease last answered or told */
        struct hf_metric *leaderless;    /* seconds, in total, in which nobody was seen to lead */
        struct hf_metric
                *collisions; /* times the Lease was seen to bear our identity by another's hand */
};

void hf__leader_metrics_init(struct hf__leader_metrics *metrics, const struct hf_host *host,
                             const char *ns, const char *name);
void hf__leader_metrics_failed(struct hf__leader_metrics *metrics, int error);
