/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two health checks. They are separate because they call for different actions.
 *
 *      leaderElection        healthz, livez   Does the election work in this process? It fails when
 *                                             a controller does not return, or when the loop hangs
 *                                             with its gate open. Only a restart helps. (After a
 *                                             suspension it may also fail for a moment.)
 *      leaderElection-lock   healthz          Can the Lease be reached, and is our identity unique?
 *                                             It fails on a standby that could not take over,
 *                                             before the take-over is needed.
 *
 * The second check is never under livez, because a restart would not help, and never under readyz,
 * because a process that cannot lead can still serve.
 *
 * Thread: the checks run on any thread; they read the electors' `info` under the electors' mutex.
 */
#include "leader/leader_health.h"

#include <stdio.h>
#include <string.h>

#include <holdfast/health.h>
#include <holdfast/metrics.h>

#include "base/thread.h"
#include "leader/electors.h"

#define LIVE_CHECK "leaderElection"
#define LOCK_CHECK "leaderElection-lock"

static hf_nsec now_of(const struct hf_elector *elector) {
        return hf_now(hf_host_clock(elector->electors->host));
}

static bool is_alive(struct hf_elector *elector, char *reason, size_t max_reason) {
        struct hf_leader_info info = {.size = sizeof info};
        hf_elector_info(elector, &info);
        if (info.state == HF_STUCK) {
                (void)snprintf(reason, max_reason, "controller %s of %s ignores its tokens",
                               info.stuck_controller, elector->label);
                return false;
        }
        /* The loop shuts the gate when the validity ends. If it has not done so when the Lease has
         * expired, the loop hangs, or the machine has just resumed. (The text is that of
         * client-go's check.) */
        hf_nsec lease_end = info.valid_until + elector->core.config.timing.lease_duration -
                            elector->core.config.timing.renew_deadline;
        if (info.valid_until && now_of(elector) > lease_end) {
                (void)snprintf(reason, max_reason,
                               "failed election to renew leadership on lease %s", elector->label);
                return false;
        }
        return true;
}

/* If nothing is reported about the Lease, a standby reads it after half a lease duration, or,
 * without a watch, after a retry period x 1.2; a leader renews after a retry period at most. The
 * check fails if that request has timed out too. */
static hf_nsec silence_allowed(const struct hf_elector *elector) {
        const struct hf_leader_timing *timing = &elector->core.config.timing;
        hf_nsec half = timing->lease_duration / 2;
        hf_nsec retry = timing->retry_period + timing->retry_period / 5;

        return (half > retry ? half : retry) + timing->request_timeout;
}

static bool can_lead(struct hf_elector *elector, char *reason, size_t max_reason) {
        struct hf_leader_info info = {.size = sizeof info};
        char why[160];
        hf_nsec now = now_of(elector);
        hf_elector_info(elector, &info);
        if (info.state == HF_STOPPED)
                return true;
        pthread_mutex_lock(&elector->electors->mu);
        (void)snprintf(why, sizeof why, "%.159s",
                       elector->last_failure ? elector->last_failure : "");
        pthread_mutex_unlock(&elector->electors->mu);
        if (now - info.heard_at > silence_allowed(elector)) {
                (void)snprintf(reason, max_reason, "lease %s has not been reached for %lld s%s%s",
                               elector->label, (long long)((now - info.heard_at) / HF_NSEC_PER_SEC),
                               why[0] ? ": " : "", why);
                return false;
        }
        if (info.identity_taken && now < info.free_at) {
                (void)snprintf(reason, max_reason,
                               "lease %s is held by another process that uses our identity, %s",
                               elector->label, elector->identity);
                return false;
        }
        return true;
}

static bool check_electors(struct hf_electors *electors,
                           bool (*is_good)(struct hf_elector *, char *, size_t), char *reason,
                           size_t max_reason) {
        for (size_t i = 0; i < electors->n; i++)
                if (!is_good(electors->list[i], reason, max_reason))
                        return false;
        return true;
}

static bool check_is_alive(void *ctx, char *reason, size_t max_reason) {
        return check_electors(ctx, is_alive, reason, max_reason);
}
static bool check_can_lead(void *ctx, char *reason, size_t max_reason) {
        return check_electors(ctx, can_lead, reason, max_reason);
}

/* Sets the metrics that change with time alone. Called before the metrics are written out. */
static void collect_metrics(void *ctx) {
        struct hf_electors *electors = ctx;
        for (size_t i = 0; i < electors->n; i++) {
                struct hf_elector *elector = electors->list[i];
                struct hf_leader_info info = {.size = sizeof info};
                hf_nsec now = now_of(elector), left = hf__gate_valid_until(&elector->gate) - now;
                hf_elector_info(elector, &info);
                hf_metric_set(elector->metrics->remaining,
                              left > 0 ? (double)left / (double)HF_NSEC_PER_SEC : 0);
                hf_metric_set(elector->metrics->silence,
                              (double)(now - info.heard_at) / (double)HF_NSEC_PER_SEC);
        }
}

int hf__leader_health_add(struct hf_electors *electors) {
        struct hf_health *health = electors->host->health;
        int r = hf_health_add(health, LIVE_CHECK, HF_HEALTHZ | HF_LIVEZ, check_is_alive, electors);
        if (r != 0)
                return r;
        r = hf_health_add(health, LOCK_CHECK, HF_HEALTHZ, check_can_lead, electors);
        if (r != 0) {
                hf_health_remove(health, LIVE_CHECK);
                return r;
        }
        electors->has_health = true;
        return electors->host->metrics ? hf_metrics_add_collector(electors->host->metrics,
                                                                  collect_metrics, electors)
                                       : 0;
}

void hf__leader_health_remove(struct hf_electors *electors) {
        /* If the add failed, checks with these names may belong to another set of electors. */
        if (electors->has_health) {
                hf_health_remove(electors->host->health, LIVE_CHECK);
                hf_health_remove(electors->host->health, LOCK_CHECK);
        }
        if (electors->host->metrics)
                hf_metrics_remove_collector(electors->host->metrics, collect_metrics, electors);
}
