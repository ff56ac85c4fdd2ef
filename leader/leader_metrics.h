/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The metrics of one elector. Where client-go has a metric, it has client-go's name; the others are
 * called holdfast_leader_*. Handles are NULL if the host has no metrics. They are set once; after
 * that any thread may use them.
 */
#include <holdfast/host.h>
#include <holdfast/metrics.h>

struct hf__leader_metrics {
        struct hf_metric *master_status; /* leader_election_master_status: 1 while leading */
        struct hf_metric *slowpath;      /* leader_election_slowpath_total: reads that a leader
                                            needed to complete a renewal */
        struct hf_metric *term;          /* this process's term; 0 = it does not lead */
        struct hf_metric *transitions; /* times that this process saw a new holder; a release alone
                                          does not count */
        struct hf_metric *gap_seconds; /* from the previous holder's last renewal or release to
                                          our last acquire */
        struct hf_metric *remaining;   /* seconds for which this process may still act */
        struct hf_metric *renew_seconds; /* duration of successful writes of the Lease */
        struct hf_metric *stop_seconds;  /* from drain or abort to the return of all controllers */
        struct hf_metric *stale_writes;  /* writes that the fence refused, or whose response did
                                            not confirm the fence; the first ends the term */
        struct hf_metric *failed_by[6];  /* failed operations on the Lease, by reason */
        struct hf_metric *is_stuck;      /* 1 = a controller did not return */
        struct hf_metric *silence;       /* seconds since the last read, write or watch event */
        struct hf_metric *leaderless;    /* total seconds in which no leader was known */
        struct hf_metric *collisions;    /* times the Lease was held by another process under our
                                            identity */
};

/* Without handles: for the electors of a host that has no metrics. */
extern const struct hf__leader_metrics hf__leader_metrics_none;
/* Registers the metrics of the elector of Lease ns/name in the host's registry. cluster: "" = no
 * label of this name. The texts are copied. */
void hf__leader_metrics_init(struct hf__leader_metrics *metrics, const struct hf_host *host,
                             const char *cluster, const char *ns, const char *name);
/* Counts a failed read or write of the Lease under the reason for this error. */
void hf__leader_metrics_failed(const struct hf__leader_metrics *metrics, int error);
