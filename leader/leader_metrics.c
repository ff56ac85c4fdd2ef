/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registers the metrics of one elector.
 *
 * Invariants: names and labels are part of the interface, because dashboards and alerts use them.
 * All series of an elector are created at once.
 */
#include "leader/leader_metrics.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <holdfast/error.h>
#include <holdfast/leader.h>

const struct hf__leader_metrics hf__leader_metrics_none;

enum reason { CONFLICT, TIMEOUT, UNAVAILABLE, REFUSED, TOO_MANY, OTHER };
/* The values of the label `reason`, indexed by enum reason. */
static const char *const reasons[] = {"conflict", "timeout",  "unavailable",
                                      "refused",  "too_many", "other"};
_Static_assert(sizeof reasons / sizeof *reasons ==
                       sizeof((struct hf__leader_metrics *)0)->failed_by / sizeof(void *),
               "a metric for each reason");

/* A metric of which each elector has one series. */
struct row {
        size_t member; /* offset of the member of struct hf__leader_metrics that points to it */
        enum hf_metric_kind kind;
        const char *name, *help;
};
#define MEMBER(member) offsetof(struct hf__leader_metrics, member)

/* Named as in client-go, which labels these metrics by the Lease's name alone. */
static const struct row client_go_rows[] = {
        {MEMBER(master_status), HF_METRIC_GAUGE, "leader_election_master_status",
         "1 while this process leads, 0 while it follows"},
        {MEMBER(slowpath), HF_METRIC_COUNTER, "leader_election_slowpath_total",
         "Renewals that needed a read of the Lease"},
};

static const struct row own_rows[] = {
        {MEMBER(term), HF_METRIC_GAUGE, "holdfast_leader_term",
         "Number of the term in which this process leads, 0 = it does not lead"},
        {MEMBER(transitions), HF_METRIC_COUNTER, "holdfast_leader_transitions_total",
         "Changes of the Lease's holder that this process saw"},
        {MEMBER(gap_seconds), HF_METRIC_GAUGE, "holdfast_leader_handover_gap_seconds",
         "Seconds from the previous holder's release or last renewal to the acquire that began "
         "this process's last term"},
        {MEMBER(remaining), HF_METRIC_GAUGE, "holdfast_leader_lease_remaining_seconds",
         "Seconds for which this process may still act without another renewal"},
        {MEMBER(renew_seconds), HF_METRIC_HISTOGRAM, "holdfast_leader_renew_duration_seconds",
         "Duration of successful writes of the Lease"},
        {MEMBER(stop_seconds), HF_METRIC_HISTOGRAM, "holdfast_leader_stop_duration_seconds",
         "Seconds from drain or abort until all controllers of the term had returned"},
        {MEMBER(stale_writes), HF_METRIC_COUNTER, "holdfast_leader_fenced_writes_refused_total",
         "Writes of a term that the fence refused, or whose response did not confirm the fence"},
        {MEMBER(is_stuck), HF_METRIC_GAUGE, "holdfast_leader_stuck",
         "1 when a controller has not returned within the stop grace"},
        {MEMBER(silence), HF_METRIC_GAUGE, "holdfast_leader_lock_silence_seconds",
         "Seconds since this process last read or wrote the Lease, or got a watch event of it"},
        {MEMBER(leaderless), HF_METRIC_COUNTER, "holdfast_leader_leaderless_seconds_total",
         "Seconds in which no process led, as far as this process knows"},
        {MEMBER(collisions), HF_METRIC_COUNTER, "holdfast_leader_identity_collisions_total",
         "Times another process held the Lease under this process's identity"},
};

/* Gets the metrics of n rows, and stores their addresses in the members of `metrics`. */
static void add_rows(struct hf__leader_metrics *metrics, struct hf_metrics *registry,
                     const struct row *rows, size_t n, const char *labels) {
        for (size_t i = 0; i < n; i++) {
                struct hf_metric *metric =
                        hf_metrics_get(registry, rows[i].kind, rows[i].name, rows[i].help, labels);
                memcpy((char *)metrics + rows[i].member, &metric, sizeof metric);
        }
}

void hf__leader_metrics_init(struct hf__leader_metrics *metrics, const struct hf_host *host,
                             const char *cluster, const char *ns, const char *name) {
        char labels[2 * HF_NAME_MAX + HF_CLUSTER_MAX + 96];
        char suffix[HF_CLUSTER_MAX + 16] = "";
        struct hf_metrics *registry = host->metrics;

        if (*cluster)
                (void)snprintf(suffix, sizeof suffix, ",cluster=\"%s\"", cluster);
        (void)snprintf(labels, sizeof labels, "name=\"%s\"%s", name, suffix);
        add_rows(metrics, registry, client_go_rows, sizeof client_go_rows / sizeof *client_go_rows,
                 labels);
        /* Leases of two namespaces may have the same name, so our own metrics have both. */
        (void)snprintf(labels, sizeof labels, "lease=\"%s/%s\"%s", ns, name, suffix);
        add_rows(metrics, registry, own_rows, sizeof own_rows / sizeof *own_rows, labels);
        /* Create all series at once: a rate over a series that appears later misses its first
         * increment. */
        for (unsigned i = 0; i < sizeof reasons / sizeof *reasons; i++) {
                (void)snprintf(labels, sizeof labels, "lease=\"%s/%s\"%s,reason=\"%s\"", ns, name,
                               suffix, reasons[i]);
                metrics->failed_by[i] =
                        hf_metrics_get(registry, HF_METRIC_COUNTER,
                                       "holdfast_leader_failed_operations_total",
                                       "Reads and writes of the Lease that failed, by reason",
                                       labels);
        }
}

/* Few reasons, because each is one series per Lease. An error without its own reason is OTHER. */
void hf__leader_metrics_failed(const struct hf__leader_metrics *metrics, int error) {
        enum reason reason = OTHER;

        switch (error) {
        case HF_E_CONFLICT:
        case HF_E_EXISTS: reason = CONFLICT; break;
        case HF_E_TIMEOUT: reason = TIMEOUT; break;
        case HF_E_UNAVAILABLE: reason = UNAVAILABLE; break;
        case HF_E_UNAUTHORIZED:
        case HF_E_FORBIDDEN: reason = REFUSED; break;
        case HF_E_TOO_MANY: reason = TOO_MANY; break;
        default: break;
        }
        hf_metric_add(metrics->failed_by[reason], 1);
}
